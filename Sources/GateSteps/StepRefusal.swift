package import CanonicalJSON
package import WireProtocol

/// Why a step did nothing: what is wrong with the request. The route answers with a `Problem` that says it.
package struct StepRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// Why a step refuses a request; each has one problem document.
    package enum Kind: CaseIterable, Hashable, Sendable {
        /// The caller may not send this type, or may not report something that is this old.
        case grantMissing
        /// The caller may not assert this method of a consent, or this source of a choice.
        case assertionNotPermitted
        /// The answer to a challenge does not prove possession of the key.
        case proofWrong
        case notFound
        /// An id was used before for something else.
        case idConflict
        /// The thing that the request is about is in a state that does not allow it.
        case wrongState
        case tooManyDestinations
        case challengeExpired
        case alreadyPrompted
        /// Members that fit their shape, but contradict each other or the stored state.
        case invalid
        case unknownNotice
        case unknownPurpose
        case otherPurpose
        case eventInFuture
        case unknownTimeZone
        case unknownScope
        case unknownEvent
        case invalidPublicKey
        /// The request is allowed, but came too often; ``StepRefusal/retryAfterSeconds`` says when it is taken again.
        case rateLimited
        /// Something outside the store that the change needs cannot be used now.
        case unavailable

        /// What the caller is answered, and the reason that an auditor is told of an entry which the gate would refuse.
        package var problem: ProblemName {
            switch self {
            case .grantMissing: .grantMissing
            case .assertionNotPermitted: .assertionNotPermitted
            case .proofWrong: .proofWrong
            case .notFound: .notFound
            case .idConflict: .idConflict
            case .wrongState: .wrongState
            case .tooManyDestinations: .tooManyDestinations
            case .challengeExpired: .challengeExpired
            case .alreadyPrompted: .alreadyPrompted
            case .invalid: .invalidRequest
            case .unknownNotice: .unknownNotice
            case .unknownPurpose: .unknownPurpose
            case .otherPurpose: .otherPurpose
            case .eventInFuture: .eventInFuture
            case .unknownTimeZone: .unknownTimeZone
            case .unknownScope: .unknownScope
            case .unknownEvent: .unknownEvent
            case .invalidPublicKey: .invalidPublicKey
            case .rateLimited: .rateLimited
            case .unavailable: .unavailable
            }
        }
    }

    package var kind: Kind
    /// What exactly is wrong, and what to do about it.
    package var detail: String?
    /// The members of the request that are wrong; for ``Kind/invalid`` only.
    package var violations: [Violation]
    /// Whole seconds until the same is taken; of ``Kind/rateLimited`` only.
    package var retryAfterSeconds: Int?

    package var description: String { detail ?? violations.map(\.description).joined(separator: "; ") }

    package init(
        _ kind: Kind, detail: String? = nil, violations: [Violation] = [], retryAfterSeconds: Int? = nil
    ) {
        self.kind = kind
        self.detail = detail
        self.violations = violations
        self.retryAfterSeconds = retryAfterSeconds
    }
}
