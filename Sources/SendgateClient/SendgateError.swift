import CanonicalJSON

/// Why there is no decision about a send.
///
/// Only ``unanswered(_:)`` leaves open whether the send was taken, and even then repeating it **with the
/// same id** is right: the gateway sends a repeated id once. After every other error it was not taken.
public enum SendgateError: Error, Hashable, Sendable {
    /// The send cannot be written as a request; nothing was sent to the gateway.
    case invalidSend(String)
    /// The gateway answered, and the answer will be the same however often it is asked: 400, 401, 409, 413,
    /// 415, 422, or a 403 that is no decision. See the problem's `detail`.
    case refused(SendgateProblem)
    /// Every attempt was answered with 429 or 503, the last one with this. Try later.
    case busy(SendgateProblem)
    /// The gateway could not be reached; nothing was sent to it.
    case unreachable(String)
    /// A request was written and its answer did not come, and trying again did not bring it either.
    case unanswered(String)
    /// A user other than the configured ones listens on the socket; nothing was sent.
    case gatewayNotTrusted(userID: UInt32)
    /// The answer is not one this version understands. It was taken when `status` is 202.
    case unreadableAnswer(status: Int)
    /// The task was cancelled. When `mayHaveBeenTaken`, treat it as ``unanswered(_:)``.
    case cancelled(mayHaveBeenTaken: Bool)
}

/// A problem document (RFC 9457).
public struct SendgateProblem: Hashable, Sendable {
    /// The HTTP status.
    public var status: Int
    /// E.g. `urn:sendgate:problem:id_conflict`; empty when the answer was no problem document.
    public var type: String
    /// One sentence, the same for every problem of the type.
    public var title: String
    /// What happened this time, and what to do.
    public var detail: String?
    /// What in the request is not what it should be, as `pointer: message`.
    public var violations: [String]
    /// How long to wait before the next attempt; `nil` where the gateway did not say.
    public var retryAfterSeconds: Int?
}

extension SendgateProblem {
    init(status: Int, _ json: JSONValue?) {
        self.status = status
        type = json?["type"]?.stringValue ?? ""
        title = json?["title"]?.stringValue ?? "The gateway answered \(status)"
        detail = json?["detail"]?.stringValue
        violations = json.map(Self.violations) ?? []
        retryAfterSeconds = json?["retry_after"]?.integerValue.flatMap { Int(exactly: $0) }
    }

    static func violations(in json: JSONValue) -> [String] {
        (json["violations"]?.arrayValue ?? []).map {
            let place = $0["pointer"]?.stringValue ?? $0["parameter"]?.stringValue ?? ""
            return "\(place): \($0["message"]?.stringValue ?? "")"
        }
    }

    /// Such an answer binds nothing, so the same id may be tried again.
    var isTemporary: Bool { status == 408 || status == 429 || status == 503 }
}

extension SendgateError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .invalidSend(let sentence): sentence
        case .refused(let problem), .busy(let problem):
            ([problem.title] + [problem.detail].compactMap { $0 } + problem.violations).joined(
                separator: "; ")
        case .unreachable(let sentence), .unanswered(let sentence): sentence
        case .gatewayNotTrusted(let user): "the socket is served by user \(user), which is not configured"
        case .unreadableAnswer(let status): "the gateway's answer \(status) could not be read"
        case .cancelled(let mayHaveBeenTaken):
            mayHaveBeenTaken
                ? "cancelled; whether the send was taken is not known" : "cancelled before sending"
        }
    }
}
