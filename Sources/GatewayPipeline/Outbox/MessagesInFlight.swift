import GateSteps
import GateVocabulary
import GateRecords
import Synchronization

/// Messages between their commit and the hop's result, and when the next of those that wait in the store is due.
///
/// A message that may go at once is written as one that was tried and goes to the relay from here, without being read
/// back:
///
///     committed → durable: offered → under way → result
///         ↓                ↓
///        called back: waits in the store again, as if it had never been offered
///
/// Nothing of this is durable. After a crash the rows were tried and have no result: the hop may have them, and they go
/// again under the same id.
final class MessagesInFlight: Sendable {
    /// The largest number of offered messages of a lane. As many may go before one of a higher tier that comes after
    /// them.
    private static func offerCountMax(in lane: DeliveryLane) -> Int {
        switch lane {
        case .security: 32
        case .general: 128
        }
    }

    private struct State {
        var isHopUsable = false
        var offers = LaneValues<[MessageOffer]>(repeating: [])
        /// Offers of each batch that is committed and not durable yet, the oldest batch first.
        var undurable: [[MessageOffer]] = []
        /// Not durable, offered and under way: these must not be claimed from the store.
        var messages: Set<MessageID> = []
        /// Whether messages of the store are being claimed to be offered.
        var isRefilling = LaneValues(repeating: false)
        /// Messages that damage stops, and until when: their rows cannot say so.
        var aside: [MessageID: Instant] = [:]
        /// At or before the time of the next row to claim; `nil` where there is none. Nothing is known of what an earlier
        /// process left.
        var due = LaneValues<Instant?>(repeating: .longAgo)

        mutating func markInFlight(_ offers: [MessageOffer]) {
            for place in offers.indices { messages.insert(offers[place].delivery.message) }
        }
    }
    private let state = Mutex(State())

    var all: Set<MessageID> { state.withLock { $0.messages } }

    /// What is not to be claimed now, and when the first of those that damage stops may be tried again.
    func unclaimable(at now: Instant) -> (messages: Set<MessageID>, until: Instant?) {
        state.withLock { state in
            state.aside = state.aside.filter { $0.value > now }
            return (state.messages.union(state.aside.keys), state.aside.values.min())
        }
    }

    func setAside(_ message: MessageID, until: Instant) {
        state.withLock { $0.aside[message] = until }
    }

    func insert(_ claimed: [MessageID]) { state.withLock { $0.messages.formUnion(claimed) } }
    func remove(_ messages: some Sequence<MessageID>) {
        state.withLock { state in
            for message in messages { state.messages.remove(message) }
        }
    }

    /// When the store has to be looked into for the next message of each lane, at the latest; `nil` where there is
    /// none. Changed by the engine alone, with the commit that makes it so.
    var due: LaneValues<Instant?> {
        get { state.withLock { $0.due } }
        set { state.withLock { $0.due = newValue } }
    }

    // MARK: Offering

    /// How many more messages of a lane may be offered: none while the hop is down, so that everything can still be
    /// withdrawn.
    func room(in lane: DeliveryLane) -> Int {
        state.withLock { state in
            guard state.isHopUsable else { return 0 }
            let undurableCount = state.undurable.reduce(0) { $0 + $1.count(in: lane) }
            return max(0, Self.offerCountMax(in: lane) - state.offers[lane].count - undurableCount)
        }
    }

    /// Begins to claim messages of the store ahead of the relay, so that it need not wait for the commit of a claim.
    ///
    /// - Returns: Whether to claim: less than half of what may be offered is left, and no such claim is under way.
    func beginRefill(of lane: DeliveryLane) -> Bool {
        guard room(in: lane) > Self.offerCountMax(in: lane) / 2 else { return false }
        return state.withLock { state in
            defer { state.isRefilling[lane] = true }
            return !state.isRefilling[lane]
        }
    }

    func endRefill(of lane: DeliveryLane) { state.withLock { $0.isRefilling[lane] = false } }

    func isRefilling(_ lane: DeliveryLane) -> Bool { state.withLock { $0.isRefilling[lane] } }

    /// Keeps what a batch offers from the relay until it is durable. Called once for each committed batch, with nothing too.
    func awaitDurability(of offers: [MessageOffer]) {
        state.withLock { state in
            state.undurable.append(offers)
            state.markInFlight(offers)
        }
    }

    /// The oldest batch of those is durable now: the relay may take what it offers.
    ///
    /// - Returns: Whether there is anything to take.
    func releaseOldest() -> Bool {
        state.withLock { state in
            let offers = state.undurable.removeFirst()
            for offer in offers { state.offers[offer.lane].append(offer) }
            return !offers.isEmpty
        }
    }

    /// Offers again what is in flight already; no earlier than the newest batch is durable, for it may be of that.
    func add(_ offers: [MessageOffer]) {
        guard !offers.isEmpty else { return }
        state.withLock { state in
            state.markInFlight(offers)
            guard state.undurable.isEmpty else {
                state.undurable[state.undurable.count - 1] += offers
                return
            }
            for offer in offers { state.offers[offer.lane].append(offer) }
        }
    }

    /// Takes offers for the relay: by tier, then one of each caller in turn, then by age.
    func take(_ count: Int, of lane: DeliveryLane) -> [MessageOffer] {
        state.withLock { state in
            let offers = state.offers[lane]
            guard offers.count > count else {
                state.offers[lane] = []
                return offers
            }
            var turns: [Turn: Int] = [:]
            let order = offers.indices.map { index in
                let offer = offers[index]
                let turn = turns[Turn(offer), default: 0]
                turns[Turn(offer)] = turn + 1
                return (rank: offer.tier.rank, turn: turn, index: index)
            }.sorted { ($0.rank, $0.turn, $0.index) < ($1.rank, $1.turn, $1.index) }
            state.offers[lane] = order.dropFirst(count).map(\.index).sorted().map { offers[$0] }
            return order.prefix(count).map { offers[$0.index] }
        }
    }

    private struct Turn: Hashable {
        var tier: Tier
        var caller: CallerName
        init(_ offer: MessageOffer) { (tier, caller) = (offer.tier, offer.caller) }
    }

    /// An offer the relay has not taken, which then never gets it. The message stays in flight until the batch that
    /// recalled it is committed (``remove(_:)``) or undone (``add(_:)``).
    func recall(_ message: MessageID) -> MessageOffer? {
        state.withLock { state in
            for batch in state.undurable.indices {
                guard let index = state.undurable[batch].firstIndex(where: { $0.delivery.message == message })
                else { continue }
                return state.undurable[batch].remove(at: index)
            }
            for lane in DeliveryLane.allCases {
                guard let index = state.offers[lane].firstIndex(where: { $0.delivery.message == message })
                else { continue }
                return state.offers[lane].remove(at: index)
            }
            return nil
        }
    }

    /// - Returns: Offers that can go nowhere now; the caller reports that they were not written.
    func setHopUsable(_ isUsable: Bool) -> [MessageOffer] {
        state.withLock { state in
            state.isHopUsable = isUsable
            guard !isUsable else { return [] }
            defer {
                state.offers = LaneValues(repeating: [])
                state.undurable = state.undurable.map { _ in [] }
            }
            // In the order in which they would have been taken: what is not durable comes last.
            return DeliveryLane.allCases.flatMap { state.offers[$0] } + state.undurable.joined()
        }
    }
}

extension [MessageOffer] {
    fileprivate func count(in lane: DeliveryLane) -> Int { count { $0.lane == lane } }
}

extension Tier {
    /// First to go first.
    fileprivate var rank: Int { Self.allCases.firstIndex(of: self)! }
}
