/// Whether an app's messages may go to its provider now.
///
///     closed ──"later" for the app──▶ open ──time is up──▶ one order tries ──taken or ended──▶ closed
///        └──────────no answers──────────▲───────────"later" for the app, or no answer───────────┘
///
/// Pure: times are milliseconds on a clock that never jumps, and chance comes from outside.
package struct Circuit: Sendable, Hashable {
    /// The first pause of a provider that names none, in milliseconds.
    package static let firstPauseMilliseconds: Int64 = 1_000
    /// The longest such pause. The gateway's own longest is a minute as well.
    package static let pauseMillisecondsMax: Int64 = 60_000
    /// Longest `Retry-After` that is followed, in milliseconds: with a longer one nobody would notice the end of the outage.
    package static let retryAfterMillisecondsMax: Int64 = 900_000

    /// Orders in a row that the provider left without an answer, after which the circuit opens. Each of them holds one of the
    /// gateway's places for as long as an order may take, 64 for security, and a text or a mail ends with it.
    package static let unansweredCountMax = 8

    /// Why the circuit is open.
    package struct Cause: Sendable, Hashable {
        /// The provider's word, or ours.
        package var reason: String
        /// Whether the configuration has to be mended: time alone will not close the circuit.
        package var isConfiguration: Bool

        package init(reason: String, isConfiguration: Bool) {
            self.reason = reason
            self.isConfiguration = isConfiguration
        }
    }

    /// What an order may do.
    package enum Admission: Sendable, Hashable {
        /// - Parameter pass: To be given back to ``finished(_:pass:at:jitter:)``.
        case go(pass: Pass)
        /// - Parameter seconds: At least 1.
        case wait(seconds: Int, reason: String)
    }

    /// Which opening of the circuit an order started after. The 500 orders under way when it opens lengthen no pause.
    package struct Pass: Sendable, Hashable {
        fileprivate var openings: Int
        fileprivate var isProbe: Bool
    }

    private struct Opening: Sendable, Hashable {
        var cause: Cause
        var until: Int64
    }

    private var openings = 0
    /// Openings in a row, each after the last one's pause.
    private var failures = 0
    /// Orders without an answer since the last one that had some.
    private var unansweredCount = 0
    private var opened: Opening?
    private var isProbing = false

    package init() {}

    /// `nil` while it is closed.
    package var cause: Cause? { opened?.cause }

    package mutating func admit(at now: Int64) -> Admission {
        guard let opened else { return .go(pass: Pass(openings: openings, isProbe: false)) }
        if now < opened.until {
            return .wait(seconds: Self.seconds(opened.until - now), reason: opened.cause.reason)
        }
        if isProbing { return .wait(seconds: 1, reason: opened.cause.reason) }
        isProbing = true
        return .go(pass: Pass(openings: openings, isProbe: true))
    }

    /// Takes in what became of an order that went.
    /// - Parameter jitter: 0 ..< 1.
    package mutating func finished(
        _ outcome: DeliveryOutcome, pass: Pass, at now: Int64, jitter: Double
    ) {
        if pass.isProbe, pass.openings == openings { isProbing = false }
        // Nothing is known of the provider: the next order tries.
        if outcome.isLocal { return }
        switch outcome {
        case .later(let reason, let seconds, .app):
            open(Cause(reason: reason, isConfiguration: false), seconds, pass, now, jitter)
        case .misconfigured(let reason):
            open(Cause(reason: reason, isConfiguration: true), nil, pass, now, jitter)
        case .ambiguous(let reason, _):
            // No answer to one order among many says nothing of the provider; to many in a row, or to the one that tries, it does.
            unansweredCount += 1
            if pass.isProbe || unansweredCount >= Self.unansweredCountMax {
                open(Cause(reason: reason, isConfiguration: false), nil, pass, now, jitter)
            }
        case .accepted, .seenBefore, .tokenGone, .failed:
            unansweredCount = 0
            guard pass.openings == openings else { return }
            opened = nil
            failures = 0
        // Nothing is known of the app: the next order tries.
        case .later(_, _, .message): break
        }
    }

    /// Lets the next order try, such as after credentials were read again.
    package mutating func retry(at now: Int64) {
        opened?.until = now
    }

    private mutating func open(
        _ cause: Cause, _ seconds: Int?, _ pass: Pass, _ now: Int64, _ jitter: Double
    ) {
        let stated = seconds.map {
            min(Int64(max(RetryAfter.bounded($0), 1)) * 1_000, Self.retryAfterMillisecondsMax)
        }
        guard pass.openings == openings else {
            // It started before the circuit opened. Only what the provider states counts.
            if let opened, let stated { self.opened?.until = max(opened.until, now + stated) }
            return
        }
        let whole = min(Self.firstPauseMilliseconds << Int64(min(failures, 16)), Self.pauseMillisecondsMax)
        let pause = whole / 2 + Int64(Double(whole / 2) * jitter)
        openings += 1
        failures += 1
        unansweredCount = 0
        isProbing = false
        opened = Opening(cause: cause, until: now + (stated ?? pause))
    }

    private static func seconds(_ milliseconds: Int64) -> Int { Int(max(1, (milliseconds + 999) / 1_000)) }
}
