import CourierModel
package import GateSteps

/// What an answer to `POST /v1/deliveries` means: the contract of the page `DeliveryLayer`.
///
/// Only what the contract names ends a message. Any other answer can only come from something that is no delivery layer, or one that
/// is set up wrong: a wrong path, a proxy in between. It says nothing about the message, which waits.
package enum HopProtocol: Int, CaseIterable, Sendable {
    /// The status alone says what became of the message, and nothing of the provider.
    case statusOnly = 1
    /// The answer comes after the provider's, and its body says what that was.
    case outcomes = 2

    /// Longest wait that `Retry-After` can ask for: a day, in seconds.
    private static let retryAfterSecondsMax: Int64 = 86_400

    /// - Parameter retryAfter: The field as it came. Whole seconds (RFC 9110 section 10.2.3); the form of a date is not read.
    package func result(status: Int, retryAfter: String?, body: [UInt8]) -> HopResult {
        let wait = retryAfter.flatMap { Int64($0) }.map { min(max($0, 0), Self.retryAfterSecondsMax) * 1_000 }
        switch self {
        case .statusOnly: return Self.result(status, wait)
        case .outcomes: return Self.result(status, wait, DeliveryOutcome(answer: body), isEmpty: body.isEmpty)
        }
    }

    private static func result(_ status: Int, _ wait: Int64?) -> HopResult {
        switch status {
        case 200...299: .accepted(status: status, byProvider: false)
        case 409: .seenBefore
        case 400, 410, 413, 422: .refused(status: status, reason: nil)
        case 429, 500...599: .busy(status: status, retryAfterMilliseconds: wait, scope: .message)
        default: misconfigured(status)
        }
    }

    private static func result(
        _ status: Int, _ wait: Int64?, _ outcome: DeliveryOutcome?, isEmpty: Bool
    ) -> HopResult {
        switch (status, outcome) {
        case (200...299, nil) where isEmpty: .accepted(status: status, byProvider: false)
        case (200...299, .accepted): .accepted(status: status, byProvider: true)
        // The answer to the first try was lost on its way to the trail.
        case (409, .accepted): .accepted(status: status, byProvider: true)
        case (409, .tokenGone(let reason, let at)): .tokenGone(status: status, reason: reason, at: at)
        case (409, .failed(let reason)): .refused(status: status, reason: reason)
        case (409, _): .seenBefore
        case (422, .tokenGone(let reason, let at)): .tokenGone(status: status, reason: reason, at: at)
        case (400, .failed(let reason)), (413, .failed(let reason)), (422, .failed(let reason)):
            .refused(status: status, reason: reason)
        case (429, .later(let reason, _, let scope)), (503, .later(let reason, _, let scope)):
            .busy(
                status: status, retryAfterMilliseconds: wait, scope: HopResult.Scope(scope),
                reason: reason.isEmpty ? nil : reason)
        case (429, _), (503, _), (500, _), (502, _):
            .busy(status: status, retryAfterMilliseconds: wait, scope: .message)
        case (504, .ambiguous(let reason, let mayRepeat)):
            .ambiguous(reason.isEmpty ? "status_504" : reason, mayRepeat: mayRepeat)
        case (504, _): .ambiguous("status_504", mayRepeat: true)
        default: misconfigured(status)
        }
    }

    private static func misconfigured(_ status: Int) -> HopResult {
        let hint =
            switch status {
            case 404, 405: "is what listens there a delivery layer?"
            case 401, 403: "the delivery layer does not let this gateway in"
            case 300...399: "something in between sends the gateway elsewhere"
            case 200...299, 400, 413, 422: "with a body that the contract does not know"
            default: "which the contract does not know"
            }
        return .misconfigured(status: status, "the hop answered \(status): \(hint)")
    }
}

extension HopResult.Scope {
    fileprivate init(_ scope: DeliveryOutcome.Scope) {
        switch scope {
        case .message: self = .message
        case .app: self = .app
        }
    }
}
