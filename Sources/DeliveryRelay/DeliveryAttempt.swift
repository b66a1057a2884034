package import GateSteps
import GatewayPipeline
package import GateVocabulary

/// Decides when to try one message again. Knows no socket, store or clock.
///
/// Exponential back-off with full jitter between half and the whole of the step, so that messages that failed
/// together do not come back together; never past the message's own expiry. A pause that the hop names for a whole app is
/// no message's own failure: when it is over, all of the app's messages are due, and the claim orders them by tier.
package struct DeliveryAttempt: Sendable, Hashable {
    /// The first step, in milliseconds.
    package static let firstStepMilliseconds: Int64 = 250
    /// The longest step, in milliseconds: FCM asks for at least ten seconds after a 5xx, APNs for back-off; a
    /// minute keeps a recovered hop from waiting long.
    package static let stepMillisecondsMax: Int64 = 60_000

    package var attemptCount: Int
    package var expiresAt: Instant

    package init(attemptCount: Int, expiresAt: Instant) {
        self.attemptCount = attemptCount
        self.expiresAt = expiresAt
    }

    /// When to try again after the result of one hand-over.
    ///
    /// - Parameter jitter: 0 ..< 1, from the shell.
    /// - Returns: `nil` for a message that is done (accepted, refused for good, or in doubt and not to be repeated), and for one that
    ///   would be tried again after its expiry.
    package func retryTime(after result: HopResult, at now: Instant, jitter: Double) -> Instant? {
        switch result {
        case .accepted, .seenBefore, .refused, .tokenGone, .ambiguous(_, mayRepeat: false): return nil
        case .busy(_, let retryAfter?, .app, _):
            return retry(
                at: now, waiting: retryAfter + Int64(Double(Self.firstStepMilliseconds) * jitter))
        case .busy(_, let retryAfter, _, _):
            return retry(at: now, waiting: max(retryAfter ?? 0, step(jitter: jitter)))
        case .misconfigured, .notWritten, .ambiguous(_, mayRepeat: true):
            return retry(at: now, waiting: step(jitter: jitter))
        }
    }

    private func retry(at now: Instant, waiting milliseconds: Int64) -> Instant? {
        let moment = now.advanced(byMilliseconds: milliseconds)
        return moment >= expiresAt ? nil : moment
    }

    private func step(jitter: Double) -> Int64 {
        let exponent = min(attemptCount, 16)
        let whole = min(Self.firstStepMilliseconds << Int64(exponent), Self.stepMillisecondsMax)
        return whole / 2 + Int64(Double(whole / 2) * jitter)
    }
}
