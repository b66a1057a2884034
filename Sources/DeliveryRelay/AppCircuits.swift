package import GateSteps
import GateVocabulary
import Synchronization

/// The apps of which the delivery layer said "later", each with a time: their messages are not handed over before it, and those of
/// others go on.
package final class AppCircuits: Sendable {
    /// An app with one push service; the whole channel where there is no app.
    private struct Place: Hashable {
        var channel: Channel
        /// `nil` where the service is the same for every platform.
        var platform: Platform?
        var provider: PushProvider?
        var app: String?

        init(of delivery: Delivery) {
            (channel, provider, app) = (delivery.channel, delivery.provider, delivery.app)
            platform = delivery.provider == nil ? delivery.platform : nil
        }
    }

    /// Wait where the delivery layer names none, in milliseconds.
    private static let waitMilliseconds: Int64 = 5_000

    /// Until when, in milliseconds of uptime.
    private let opened = Mutex<[Place: Int64]>([:])

    package init() {}

    /// What the hop would answer while the circuit is open; `nil` while it is not.
    ///
    /// - Parameter uptime: Milliseconds since the machine booted.
    package func refusal(of delivery: Delivery, at uptime: Int64) -> HopResult? {
        let place = Place(of: delivery)
        return opened.withLock { opened in
            guard let until = opened[place] else { return nil }
            guard until > uptime else {
                opened[place] = nil
                return nil
            }
            return .busy(status: 503, retryAfterMilliseconds: until - uptime, scope: .app)
        }
    }

    /// Of two answers the longer wait counts.
    package func take(_ result: HopResult, of delivery: Delivery, at uptime: Int64) {
        guard case .busy(_, let wait, .app, _) = result else { return }
        let until = uptime + (wait ?? Self.waitMilliseconds)
        opened.withLock { $0[Place(of: delivery)] = max($0[Place(of: delivery)] ?? until, until) }
    }
}
