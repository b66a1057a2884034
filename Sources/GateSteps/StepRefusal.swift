package import WireProtocol

/// Why a step did nothing: what is wrong with what was asked of it. The edge says it as a problem.
package struct StepRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: CaseIterable, Hashable, Sendable {
        /// The caller may not send this type, or not report what is that old.
        case grantMissing
        /// The caller may not say by which method, or from which source, somebody spoke.
        case assertionNotPermitted
        /// What was answered does not prove that somebody has the key.
        case proofWrong
        case notFound
        /// An id was used before for something else.
        case idConflict
        /// What is there is in a state that does not go with what was asked.
        case wrongState
        case tooManyDestinations
        case challengeExpired
        case alreadyPrompted
        /// Members that fit their shape, and not each other or what is known.
        case invalid
        case unknownNotice
        case unknownPurpose
        case otherPurpose
        case eventInFuture
        case unknownTimeZone
        case unknownScope
        case unknownEvent
        case invalidPublicKey
        /// Allowed, and asked for too often; ``StepRefusal/retryAfterSeconds`` says when it is taken again.
        case rateLimited
    }

    package var kind: Kind
    /// What exactly, and what to do about it.
    package var detail: String?
    /// Members of what was asked that are wrong; of ``Kind/invalid`` only.
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
