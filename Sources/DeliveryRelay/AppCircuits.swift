package import GateSteps
package import GateVocabulary
import Synchronization

/// For which apps the delivery layer said "later", and until when: their messages are not handed over meanwhile, and those of
/// others go on.
package final class AppCircuits: Sendable {
    /// An app of a push destination; the whole channel where there is none.
    private struct Place: Hashable {
        var channel: Channel
        var app: String?
    }

    /// Wait where the delivery layer names none, in milliseconds.
    private static let waitMilliseconds: Int64 = 5_000

    private let opened = Mutex<[Place: Instant]>([:])

    package init() {}

    /// What the hop would answer while the circuit is open; `nil` while it is not.
    package func refusal(of delivery: Delivery, at now: Instant) -> HopResult? {
        let place = Place(channel: delivery.channel, app: delivery.app)
        return opened.withLock { opened in
            guard let until = opened[place] else { return nil }
            guard until > now else {
                opened[place] = nil
                return nil
            }
            return .busy(
                status: 503, retryAfterMilliseconds: until.milliseconds - now.milliseconds, scope: .message)
        }
    }

    package func take(_ result: HopResult, of delivery: Delivery, at now: Instant) {
        guard case .busy(_, let wait, .app) = result else { return }
        let place = Place(channel: delivery.channel, app: delivery.app)
        opened.withLock { $0[place] = now.advanced(byMilliseconds: wait ?? Self.waitMilliseconds) }
    }
}
