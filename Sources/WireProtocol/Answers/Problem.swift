package import CanonicalJSON
package import GateRecords
import GateVocabulary

/// A problem document (RFC 9457).
package struct Problem: ShownRecord, Error, CustomStringConvertible {
    package var description: String { detail.map { "\(name.title): \($0)" } ?? name.title }

    package var name: ProblemName
    /// What happened this time, and what to do; ends without a full stop.
    package var detail: String?
    package var violations: [Violation]
    /// For `Retry-After`, in whole seconds; set for every temporary problem.
    package var retryAfterSeconds: Int?
    /// For `Allow` on 405.
    package var allow: [String]

    package init(
        _ name: ProblemName, detail: String? = nil, violations: [Violation] = [],
        retryAfterSeconds: Int? = nil, allow: [String] = []
    ) {
        self.name = name
        self.detail = detail
        self.violations = violations
        self.retryAfterSeconds = retryAfterSeconds ?? (name.isTemporary ? 1 : nil)
        self.allow = allow
    }

    package var status: Int { name.status }

    package static let shownName = "Problem"
    package static let shownMeans = "A problem document (RFC 9457)."

    package static let fields = Fields<Self> { fields in
        fields.joined("detail", "What happened this time, and what to do.") { $0.shownDetail }
        fields.joined(
            "retry_after", \.retryAfterSeconds, "Seconds, as in `Retry-After`.", shape: .integer(0...86_400))
        fields.joined("status", "The HTTP status.", shape: .integer(400...599)) { $0.status }
        fields.joined("title", "The same for every occurrence.") { $0.name.title }
        fields.joined("type", \.name, "Which problem.")
        fields.joined(
            "violations", "Everything in the request that is not what it should be.",
            shape: .list(of: Violation.shownShape, countMax: WireLimits.violationCountMax)
        ) { $0.violations.isEmpty ? nil : Array($0.violations.prefix(WireLimits.violationCountMax)) }
    }

    private var shownDetail: String? {
        violations.count > WireLimits.violationCountMax
            ? "the first \(WireLimits.violationCountMax) of \(violations.count) violations are listed"
            : detail
    }

    package var answer: Answer {
        var headers: [(name: String, value: String)] = []
        if let retryAfterSeconds {
            headers.append(("retry-after", String(retryAfterSeconds)))
        }
        if !allow.isEmpty {
            headers.append(("allow", allow.joined(separator: ", ")))
        }
        return Answer(
            status: status, contentType: MediaType.problem, headers: headers, body: bytes)
    }
}

/// Everything that can go wrong with a request other than the decision itself. A closed list with stable
/// names; each has one status.
package enum ProblemName: String, CaseIterable, Sendable, Hashable {
    // 400
    case malformedRequest = "malformed_request"
    case malformedJSON = "malformed_json"
    // 401
    case unknownPeer = "unknown_peer"
    // 403
    case grantMissing = "grant_missing"
    case assertionNotPermitted = "assertion_not_permitted"
    case proofWrong = "proof_wrong"
    case otherListener = "other_listener"
    // 404
    case notFound = "not_found"
    // 405
    case methodNotAllowed = "method_not_allowed"
    // 408
    case requestTimeout = "request_timeout"
    // 409
    case idConflict = "id_conflict"
    case wrongState = "wrong_state"
    case tooManyDestinations = "too_many_destinations"
    case challengeExpired = "challenge_expired"
    case alreadyPrompted = "already_prompted"
    case policyMismatch = "policy_mismatch"
    // 413
    case bodyTooLarge = "body_too_large"
    // 415
    case unsupportedMediaType = "unsupported_media_type"
    // 422
    case invalidRequest = "invalid_request"
    case tooManyLines = "too_many_lines"
    case unknownNotice = "unknown_notice"
    case unknownPurpose = "unknown_purpose"
    case otherPurpose = "other_purpose"
    case eventInFuture = "event_in_future"
    case unknownTimeZone = "unknown_time_zone"
    case unknownScope = "unknown_scope"
    case unknownEvent = "unknown_event"
    case invalidPublicKey = "invalid_public_key"
    case policyRefused = "policy_refused"
    // 429
    case tooManyInFlight = "too_many_in_flight"
    case outboxFull = "outbox_full"
    case rateLimited = "rate_limited"
    // 431
    case headersTooLarge = "headers_too_large"
    // 503
    case draining
    case unavailable
    case trailBehind = "trail_behind"
    case clockWentBack = "clock_went_back"
    case clockJumped = "clock_jumped"
    case sealingFailed = "sealing_failed"

    package var status: Int {
        switch self {
        case .malformedRequest, .malformedJSON: 400
        case .unknownPeer: 401
        case .grantMissing, .assertionNotPermitted, .proofWrong, .otherListener: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .requestTimeout: 408
        case .idConflict, .wrongState, .tooManyDestinations, .challengeExpired, .alreadyPrompted,
            .policyMismatch:
            409
        case .bodyTooLarge: 413
        case .unsupportedMediaType: 415
        case .invalidRequest, .tooManyLines, .unknownNotice, .unknownPurpose, .otherPurpose, .eventInFuture,
            .unknownTimeZone,
            .unknownScope, .unknownEvent, .invalidPublicKey, .policyRefused:
            422
        case .tooManyInFlight, .outboxFull, .rateLimited: 429
        case .headersTooLarge: 431
        case .draining, .unavailable, .trailBehind, .clockWentBack, .clockJumped, .sealingFailed: 503
        }
    }

    /// The same for every occurrence (RFC 9457 section 3.1.3).
    package var title: String {
        switch self {
        case .malformedRequest: "The request is not HTTP/1.1 as this gateway reads it"
        case .malformedJSON: "The body is not JSON as this gateway reads it"
        case .unknownPeer: "No caller is configured for this process"
        case .grantMissing: "The caller lacks the grant this request needs"
        case .assertionNotPermitted: "The caller may not assert this source or method"
        case .otherListener: "This socket does not take it"
        case .proofWrong: "The proof of possession does not match the challenge"
        case .notFound: "Nothing is known under this path"
        case .methodNotAllowed: "The path exists, but not under this method"
        case .requestTimeout: "The request was not complete in time"
        case .idConflict: "This id was used before with other content"
        case .wrongState: "What is asked cannot be done in the present state"
        case .tooManyDestinations: "The recipient has as many devices or addresses as can be registered"
        case .challengeExpired: "The challenge is past its time; register the key again"
        case .alreadyPrompted: "The operating system's prompt was already shown on this device"
        case .policyMismatch: "The configured bundle is not the one that was named"
        case .bodyTooLarge: "The body is longer than this gateway accepts"
        case .unsupportedMediaType: "The body has another media type than this route reads"
        case .invalidRequest: "The request is well-formed but not of the right shape"
        case .tooManyLines: "The stream has more lines than one request may carry"
        case .unknownNotice: "No bundle in force or in the archive holds this notice"
        case .unknownPurpose: "Nothing in the bundle asks consent for this purpose"
        case .otherPurpose: "The notice that was shown asks about another purpose or channel"
        case .eventInFuture: "The event lies in the future"
        case .unknownTimeZone: "The time zone is not in the gateway's tzdata"
        case .unknownEvent: "Nothing of this type is told once, or the params do not say which event is meant"
        case .unknownScope: "The scope is neither a category nor a type that can be muted alone"
        case .invalidPublicKey: "The public key is not a point of its curve"
        case .policyRefused: "The bundle does not pass its checks; the one in force stays"
        case .tooManyInFlight: "Too many requests are under way"
        case .outboxFull: "Too many sends wait to be handed over"
        case .rateLimited: "This is asked too often"
        case .headersTooLarge: "The header section is longer than this gateway accepts"
        case .draining: "The gateway is shutting down and takes nothing new"
        case .unavailable: "The store or the trail cannot take the request"
        case .trailBehind: "The published trail is too far behind"
        case .clockWentBack: "The clock went back; entries would be out of order"
        case .clockJumped: "The clock jumped forward; later entries would be out of order once it is right"
        case .sealingFailed: "The payload could not be sealed or signed"
        }
    }

    /// Whether trying the same again later can help; such answers carry `Retry-After`.
    package var isTemporary: Bool { status == 429 || status == 503 || status == 408 }
}

/// The `type` of a problem document.
extension ProblemName: ShownValue {
    package static var shownShape: Shape { .choice(allCases.map(\.urn)) }
    package func write(shown json: inout CanonicalWriter) { json.text(urn) }

    private var urn: String { "urn:sendgate:problem:\(rawValue)" }
}

extension Problem {
    package init(_ error: BodyError) {
        switch error {
        case .tooLarge(let byteCount, let byteCountMax):
            self.init(
                .bodyTooLarge, detail: "the body has \(byteCount) bytes; at most \(byteCountMax) are accepted"
            )
        case .empty:
            self.init(.malformedJSON, detail: "the body is empty; send a JSON object")
        case .malformed(let error):
            self.init(.malformedJSON, detail: error.message)
        case .invalid(let violations):
            self.init(.invalidRequest, violations: violations)
        }
    }

    /// - Returns: `nil` for a match.
    package init?(_ match: RouteTable.Match) {
        switch match {
        case .match: return nil
        case .notFound: self.init(.notFound, detail: "see `GET /openapi.json` for every route")
        case .methodNotAllowed(let allow):
            self.init(
                .methodNotAllowed, detail: "this path knows \(allow.joined(separator: ", "))", allow: allow)
        case .malformed(let message): self.init(.malformedRequest, detail: message)
        }
    }

    /// Checks a body's presence and media type before it is read.
    ///
    /// - Parameter contentType: The `Content-Type` header as sent; `nil` when there is none.
    /// - Returns: `nil` when the route can go on to read its body.
    package static func refusing(
        body: [UInt8], contentType: String?, where expected: RouteDescription.Body
    ) -> Problem? {
        guard let mediaType = expected.mediaType else {
            guard body.isEmpty else {
                return Problem(.malformedRequest, detail: "this route takes no body")
            }
            return nil
        }
        if body.isEmpty, expected.mayBeLeftOut { return nil }
        guard let contentType, MediaType.matches(contentType, mediaType) else {
            return Problem(
                .unsupportedMediaType, detail: "send the body with `Content-Type: \(mediaType)`, in UTF-8")
        }
        return nil
    }
}

/// As RFC 9457 section 3 shows it for a member of a body; a part of the target has its name and place instead. A long
/// pointer is cut: its keys are the caller's.
extension Violation: ShownRecord {
    package static let shownName = "Violation"
    package static let shownMeans =
        "One thing that is not what it should be: a member of the body, or a part of the target."

    package static let fields = Fields<Self> { fields in
        fields.joined("in", "Where the parameter stands.", shape: .choice(["path", "query"])) {
            $0.parameter?.place
        }
        fields.joined("message", \.message, "What would be right.")
        fields.joined("parameter", "The part of the path or the query parameter.") { $0.parameter?.name }
        fields.joined("pointer", "The member of the body (RFC 6901).") { $0.pointer?.shortened() }
    }

    private var parameter: (place: String, name: String)? {
        switch place {
        case .body: nil
        case .path(let name): ("path", name)
        case .query(let name): ("query", Self.quotable(name))
        }
    }
}
