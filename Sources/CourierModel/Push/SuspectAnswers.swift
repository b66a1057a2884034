/// Tells a wrong address from a wrong configuration, by the other answers of the app.
///
/// Apple answers `BadDeviceToken` to one malformed token and to every token of the other environment. One among many messages
/// that were taken is the token's own fault, and its message ends. Where nothing was taken yet, the message waits. Where most
/// answers are such, the app is misconfigured and everything waits. No case takes a token out.
///
/// `Unregistered` is said of an app that was removed, and by a service that is asked about the wrong app or has lost its data. Few among
/// many are believed. A spike is doubted: the app is misconfigured, and no token and no message ends, until addresses are found alive
/// again or an operator confirms that so many are dead.
package struct SuspectAnswers: Sendable, Hashable {
    /// Answers are counted over one to two of these, in milliseconds.
    package static let windowMilliseconds: Int64 = 60_000
    /// Fewer suspect answers than this are no spike.
    package static let spikeMin = 5
    /// Fewer dead addresses than this are no spike. They have to be more than ``deadShareMax`` allows, or to come without a living one
    /// between them. With both bounds a campaign to an app of which a third of the tokens are dead, as may be after silent months, is
    /// doubted by chance once in 7,000 campaigns; from 5 on it would be once in 19, and from one half on once in 43.
    package static let deadSpikeMin = 20
    /// How many dead addresses to a living one are believed.
    package static let deadShareMax = 2
    /// The same until the first message was taken: nothing speaks for the configuration then.
    package static let unprovenDeadSpikeMin = 5
    /// How long an operator's word that addresses are dead counts, in milliseconds: an outbox of a million such drains in it.
    package static let confirmationMilliseconds: Int64 = 3_600_000
    /// How long one accepted message proves the configuration, in milliseconds.
    package static let proofMilliseconds: Int64 = 3_600_000
    /// So many of the newest dead answers are known by their message or ticket. One that is tried again says nothing new.
    package static let countedMax = 1_024
    /// When a message is tried again that nothing proves to be at fault, in seconds.
    package static let retrySeconds = 60

    private struct Window: Sendable, Hashable {
        var start: Int64
        var suspect = 0
        var dead = 0
        var accepted = 0
    }

    private var current = Window(start: .min)
    private var previous = Window(start: .min)
    private var lastAccepted: Int64?
    /// Dead addresses since the last message that was taken, however long that took.
    private var deadRun = 0
    /// The messages and tickets whose dead answer was counted, and their order.
    private var counted: Set<String> = []
    private var countedOrder: [String] = []

    private struct Doubt: Sendable, Hashable {
        var reason: String
        /// Messages taken less addresses called dead since the doubt began, and never below 0.
        var alive = 0
    }

    private var standing: Doubt?
    private var confirmedUntil: Int64?

    package init() {}

    /// Why dead addresses are not believed now; `nil` while they are.
    package var doubt: String? { standing?.reason }

    package mutating func accepted(at now: Int64) {
        turn(now)
        current.accepted += 1
        lastAccepted = now
        deadRun = 0
        standing?.alive += 1
        if let standing, standing.alive >= Self.deadSpikeMin { endDoubt() }
    }

    package mutating func suspected(_ reason: String, at now: Int64) -> DeliveryOutcome {
        turn(now)
        current.suspect += 1
        let suspect = current.suspect + previous.suspect
        if suspect >= Self.spikeMin, suspect > current.accepted + previous.accepted {
            return .misconfigured(reason: reason)
        }
        guard let lastAccepted, now - lastAccepted < Self.proofMilliseconds else {
            return .later(reason: reason, seconds: Self.retrySeconds, scope: .message)
        }
        return .failed(reason: reason)
    }

    /// Takes in that a provider calls the address of a message dead.
    ///
    /// - Parameters:
    ///   - outcome: What that means for the message where it is believed.
    ///   - id: The message or the ticket, which counts once, however often it is tried or asked for.
    package mutating func dead(_ outcome: DeliveryOutcome, of id: String, at now: Int64) -> DeliveryOutcome {
        if let confirmedUntil, now < confirmedUntil { return outcome }
        turn(now)
        guard count(id) else { return standing.map { .misconfigured(reason: $0.reason) } ?? outcome }
        current.dead += 1
        deadRun += 1
        let (dead, accepted) = (current.dead + previous.dead, current.accepted + previous.accepted)
        let runMin = lastAccepted == nil ? Self.unprovenDeadSpikeMin : Self.deadSpikeMin
        let isSpike = deadRun >= runMin || (dead >= Self.deadSpikeMin && dead > Self.deadShareMax * accepted)
        guard isSpike || standing != nil else { return outcome }
        let share = deadRun > dead ? "\(deadRun) in a row" : "\(dead) beside \(accepted) that were taken"
        let reason =
            "\(Self.doubtWord): \(outcome.reason ?? outcome.name) of \(share); nothing is ended for it. A wrong environment or project and a provider's fault look so. If these are dead indeed, confirm it (handbook, The courier)"
        standing = Doubt(reason: reason, alive: max(0, (standing?.alive ?? 0) - 1))
        return .misconfigured(reason: reason)
    }

    /// - Returns: Whether it was not counted before.
    private mutating func count(_ id: String) -> Bool {
        guard counted.insert(id).inserted else { return false }
        countedOrder.append(id)
        if countedOrder.count > Self.countedMax { counted.remove(countedOrder.removeFirst()) }
        return true
    }

    /// The first word of a doubt, as the gateway is told it.
    package static let doubtWord = "dead_addresses_doubted"

    /// An operator says that the addresses are dead indeed. For ``confirmationMilliseconds`` all are believed.
    package mutating func confirmDead(at now: Int64) {
        endDoubt()
        confirmedUntil = now + Self.confirmationMilliseconds
    }

    /// Forgets every answer, as after a change of the configuration. An operator's word stands.
    package mutating func reset() {
        let confirmedUntil = confirmedUntil
        self = SuspectAnswers()
        self.confirmedUntil = confirmedUntil
    }

    private mutating func endDoubt() {
        standing = nil
        deadRun = 0
        (current.dead, previous.dead) = (0, 0)
    }

    private mutating func turn(_ now: Int64) {
        let start = now - now % Self.windowMilliseconds
        guard start != current.start else { return }
        previous = start - Self.windowMilliseconds == current.start ? current : Window(start: .min)
        current = Window(start: start)
    }
}
