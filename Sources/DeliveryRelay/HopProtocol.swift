import CanonicalJSON
import CourierModel
package import GateSteps
import GateVocabulary

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
        case .outcomes: return Self.result(status, wait, HopAnswer(body), isEmpty: body.isEmpty)
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
        _ status: Int, _ wait: Int64?, _ answer: HopAnswer?, isEmpty: Bool
    ) -> HopResult {
        switch (status, answer) {
        case (200...299, nil) where isEmpty: .accepted(status: status, byProvider: false)
        case (200...299, .accepted): .accepted(status: status, byProvider: true)
        case (409, _): .seenBefore
        case (422, .tokenGone(let reason, let at)): .tokenGone(status: status, reason: reason, at: at)
        case (400, .failed(let reason)), (413, .failed(let reason)), (422, .failed(let reason)):
            .refused(status: status, reason: reason)
        case (429, .later(let scope)), (503, .later(let scope)):
            .busy(status: status, retryAfterMilliseconds: wait, scope: scope)
        case (429, _), (503, _), (500, _), (502, _):
            .busy(status: status, retryAfterMilliseconds: wait, scope: .message)
        case (504, .ambiguous(let mayRepeat)): .ambiguous("the hop answered 504", mayRepeat: mayRepeat)
        case (504, _): .ambiguous("the hop answered 504", mayRepeat: true)
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

/// The body of an answer in version 2.
private enum HopAnswer {
    case accepted
    case tokenGone(reason: String, at: Instant?)
    case failed(reason: String)
    case later(scope: HopResult.Scope)
    case ambiguous(mayRepeat: Bool)

    /// - Returns: `nil` for what is no body of the contract. Members that are not known are passed over.
    init?(_ bytes: [UInt8]) {
        guard let object = (try? CanonicalJSON.read(bytes))?.objectValue else { return nil }
        // Another layer's mistake in it loses no answer.
        let reason = object["reason"]?.stringValue.flatMap(ProviderReason.word)
        switch object["outcome"]?.stringValue {
        case "accepted": self = .accepted
        case "token_gone":
            guard let reason else { return nil }
            self = .tokenGone(reason: reason, at: object["at"]?.stringValue.flatMap { Instant(rfc3339: $0) })
        case "failed":
            guard let reason else { return nil }
            self = .failed(reason: reason)
        case "later":
            self = .later(scope: object["scope"]?.stringValue.flatMap(HopResult.Scope.init) ?? .message)
        case "ambiguous":
            guard case .boolean(let mayRepeat) = object["retry"] ?? .boolean(true) else { return nil }
            self = .ambiguous(mayRepeat: mayRepeat)
        default: return nil
        }
    }
}
