package import GateVocabulary

/// What one answer of a push service means, before it is weighed against the others.
package enum PushVerdict: Sendable, Hashable {
    case accepted
    /// - Parameter at: Since when the token leads nowhere, as the service says.
    case tokenGone(at: Instant?)
    /// The message can never go: the body or a header is at fault.
    case failed
    /// Either this token is wrong or the configuration is, which one answer does not tell. ``SuspectAnswers`` does.
    case suspect
    /// - Parameter seconds: Not before so many.
    case later(seconds: Int?, scope: DeliveryOutcome.Scope)
    case configuration
    /// The credential that the courier made has run out: once more with a new one.
    case staleCredential
    /// An answer that does not say whether the message was taken.
    case unclear
}

/// A verdict with the service's word for it.
package struct PushFinding: Sendable, Hashable {
    package var verdict: PushVerdict
    package var reason: String

    package init(_ verdict: PushVerdict, _ reason: String) {
        self.verdict = verdict
        self.reason = reason
    }

    /// Whether it says that the token leads nowhere.
    package var isDead: Bool { if case .tokenGone = verdict { true } else { false } }

    /// - Parameters:
    ///   - message: The message that was answered, or its ticket.
    ///   - providerID: What the service calls a message that it took.
    ///   - mayRepeat: Whether a second copy replaces the first.
    ///   - at: Milliseconds on a clock that never jumps.
    package func outcome(
        of message: String, providerID: String?, mayRepeat: Bool, weighing suspects: inout SuspectAnswers,
        at now: Int64
    ) -> DeliveryOutcome {
        switch verdict {
        case .accepted:
            suspects.accepted(at: now)
            return .taken(as: providerID)
        case .tokenGone(let at):
            return suspects.dead(.tokenGone(reason: reason, at: at), of: message, at: now)
        case .failed: return .failed(reason: reason)
        case .suspect: return suspects.suspected(reason, at: now)
        case .later(let seconds, let scope): return .later(reason: reason, seconds: seconds, scope: scope)
        case .configuration, .staleCredential: return .misconfigured(reason: reason)
        case .unclear: return .ambiguous(reason: reason, mayRepeat: mayRepeat)
        }
    }
}
