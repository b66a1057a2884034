import GateSteps
import GatewayPipeline
import GateVocabulary
import Synchronization

/// How many messages of each lane are at the hop, and how many have no recorded result.
///
/// Security has places of its own, which no other message takes. While it has more to send than those hold, after an outage
/// for one, it takes every general place that becomes free, down to ``DeliveryRelay/Concurrency/generalMin``.
final class HopPlaces: Sendable {
    /// Results of so many messages of a lane may wait to be recorded, beside those at the hop: all of them go again after a
    /// crash.
    static let unrecordedCountMax = 256

    private struct Counts: Sendable {
        var atHop = 0
        var underWay = 0
    }

    private struct State {
        var lanes = LaneValues(repeating: Counts())
        /// Whether the last claim of security found a message. The next one is made at once, or as soon as there is a place.
        var hasSecurityBacklog = false
    }

    private let concurrency: DeliveryRelay.Concurrency
    private let state = Mutex(State())

    init(_ concurrency: DeliveryRelay.Concurrency) { self.concurrency = concurrency }

    /// How many more messages of a lane may be claimed.
    func free(for lane: DeliveryLane) -> Int {
        state.withLock { state in
            let all = concurrency.general + concurrency.security
            let countMax =
                switch lane {
                case .security: all - max(state.lanes[.general].atHop, concurrency.generalMin)
                case .general where state.hasSecurityBacklog: concurrency.generalMin
                case .general: all - max(state.lanes[.security].atHop, concurrency.security)
                }
            let counts = state.lanes[lane]
            return max(0, min(countMax - counts.atHop, countMax + Self.unrecordedCountMax - counts.underWay))
        }
    }

    /// Says what a claim found.
    func take(_ count: Int, of lane: DeliveryLane) {
        state.withLock { state in
            state.lanes[lane].atHop += count
            state.lanes[lane].underWay += count
            if case .security = lane { state.hasSecurityBacklog = count > 0 }
        }
    }

    func leaveHop(_ lane: DeliveryLane) { state.withLock { $0.lanes[lane].atHop -= 1 } }
    func end(_ lane: DeliveryLane) { state.withLock { $0.lanes[lane].underWay -= 1 } }
}
