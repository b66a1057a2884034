package import CanonicalJSON
import GateVocabulary

/// The answer to `POST /v1/deliveries`, hop protocol version 2: the courier writes it, the gateway reads it.
extension DeliveryOutcome {
    /// The name of an outcome in an answer, in logs and in metrics.
    package enum Word: String, CaseIterable, Sendable {
        case accepted, failed, later, misconfigured, ambiguous
        case seenBefore = "seen_before"
        case tokenGone = "token_gone"
    }

    package var word: Word {
        switch self {
        case .accepted: .accepted
        case .seenBefore: .seenBefore
        case .tokenGone: .tokenGone
        case .failed: .failed
        case .later: .later
        case .misconfigured: .misconfigured
        case .ambiguous: .ambiguous
        }
    }

    package var name: String { word.rawValue }

    /// The members of a body.
    private enum Member {
        static let (outcome, reason, scope) = ("outcome", "reason", "scope")
        static let (providerID, at, retry) = ("provider_id", "at", "retry")
    }

    /// Status, `Retry-After` in seconds, and body. Of a reason the gateway gets one word; a part behind a colon or a comma is for
    /// the courier's own log.
    package var answer: (status: Int, retryAfter: Int?, body: JSONValue?) {
        switch self {
        case .accepted(let providerID):
            (200, nil, body([Member.providerID: providerID.map(JSONValue.string)]))
        case .seenBefore(let first):
            (409, nil, first.answer.body)
        case .tokenGone(_, let at):
            (422, nil, body([Member.at: at.map { .string($0.rfc3339) }]))
        case .failed:
            (422, nil, body([:]))
        case .later(_, let seconds, let scope):
            (
                503, seconds.map { Self.retryAfter($0, scope) },
                body([Member.scope: .string(scope.rawValue)])
            )
        case .misconfigured(let reason):
            Self.later(reason: reason, seconds: nil, scope: .app).answer
        case .ambiguous(_, let mayRepeat):
            (504, nil, body([Member.retry: .boolean(mayRepeat)]))
        }
    }

    /// A pause of a whole app is no longer than its circuit follows: the gateway would wait on where the courier has long tried.
    private static func retryAfter(_ seconds: Int, _ scope: Scope) -> Int {
        let longest =
            switch scope {
            case .message: RetryAfter.secondsMax
            case .app: Int(Circuit.retryAfterMillisecondsMax / 1_000)
            }
        return min(RetryAfter.bounded(seconds), longest)
    }

    private func body(_ members: [String: JSONValue?]) -> JSONValue {
        var object: JSONObject = [Member.outcome: .string(name)]
        object[Member.reason] = reason.map { reason in
            .string(InboundReport.reason(String(reason.prefix { $0 != ":" && $0 != "," })))
        }
        for (name, value) in members { object[name] = value }
        return .object(object)
    }

    /// Reads the body of an answer. Unknown members are ignored, and so is a provider's id. The pause of
    /// ``later(reason:seconds:scope:)`` is in a header and not here.
    ///
    /// - Returns: `nil` for a body that is none of the contract's.
    package init?(answer body: [UInt8]) {
        guard case .success(.object(let object)) = Result(catching: { try CanonicalJSON.read(body) }),
            let word = object[Member.outcome]?.stringValue.flatMap(Word.init)
        else { return nil }
        // A reason in letters of its own costs a foreign layer no answer.
        let reason = object[Member.reason]?.stringValue.flatMap(ProviderReason.word)
        switch word {
        case .accepted: self = .accepted(providerID: nil)
        case .tokenGone:
            guard let reason else { return nil }
            guard let at = object[Member.at] else {
                self = .tokenGone(reason: reason, at: nil)
                return
            }
            // A time that cannot be read is not the same as none: without one every token of before is meant.
            guard let moment = at.stringValue.flatMap({ Instant(rfc3339: $0) }) else { return nil }
            self = .tokenGone(reason: reason, at: moment)
        case .failed:
            guard let reason else { return nil }
            self = .failed(reason: reason)
        case .later:
            let scope = object[Member.scope]?.stringValue.flatMap(Scope.init)
            self = .later(reason: reason ?? "", seconds: nil, scope: scope ?? .message)
        case .ambiguous:
            guard case .boolean(let mayRepeat) = object[Member.retry] ?? .boolean(true) else { return nil }
            self = .ambiguous(reason: reason ?? "", mayRepeat: mayRepeat)
        // The courier answers them with a status and with `later`.
        case .seenBefore, .misconfigured: return nil
        }
    }
}
