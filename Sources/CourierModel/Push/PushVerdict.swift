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

    /// - Parameters:
    ///   - providerID: What the service calls a message that it took.
    ///   - mayRepeat: Whether a second copy replaces the first.
    ///   - at: Milliseconds on a clock that never jumps.
    package func outcome(
        providerID: String?, mayRepeat: Bool, weighing suspects: inout SuspectAnswers, at now: Int64
    ) -> DeliveryOutcome {
        switch verdict {
        case .accepted:
            suspects.accepted(at: now)
            return .accepted(providerID: providerID)
        case .tokenGone(let at): return .tokenGone(reason: reason, at: at)
        case .failed: return .failed(reason: reason)
        case .suspect: return suspects.suspected(reason, at: now)
        case .later(let seconds, let scope): return .later(reason: reason, seconds: seconds, scope: scope)
        case .configuration, .staleCredential: return .misconfigured(reason: reason)
        case .unclear: return .ambiguous(reason: reason, mayRepeat: mayRepeat)
        }
    }
}

/// Tells a wrong token from a wrong configuration, by the other answers of the app.
///
/// Apple answers `BadDeviceToken` to one malformed token and to every token of the other environment. One among many messages
/// that were taken is the token's own fault, and its message ends. Where nothing was taken yet, the message waits. Where most
/// answers are such, the app is misconfigured and everything waits. No case takes a token out.
package struct SuspectAnswers: Sendable, Hashable {
    /// Answers are counted over one to two of these, in milliseconds.
    package static let windowMilliseconds: Int64 = 60_000
    /// Fewer suspect answers than this are no spike.
    package static let spikeMin = 5
    /// How long one accepted message proves the configuration, in milliseconds.
    package static let proofMilliseconds: Int64 = 3_600_000
    /// When a message is tried again that nothing proves to be at fault, in seconds.
    package static let retrySeconds = 60

    private struct Window: Sendable, Hashable {
        var start: Int64
        var suspect = 0
        var accepted = 0
    }

    private var current = Window(start: .min)
    private var previous = Window(start: .min)
    private var lastAccepted: Int64?

    package init() {}

    package mutating func accepted(at now: Int64) {
        turn(now)
        current.accepted += 1
        lastAccepted = now
    }

    package mutating func suspected(_ reason: String, at now: Int64) -> DeliveryOutcome {
        turn(now)
        current.suspect += 1
        let suspect = current.suspect + previous.suspect
        if suspect >= Self.spikeMin, suspect > current.accepted + previous.accepted {
            return .misconfigured(reason: reason)
        }
        guard let lastAccepted, now - lastAccepted < Self.proofMilliseconds else {
            return .later(reason: reason, seconds: Self.retrySeconds, scope: .message)
        }
        return .failed(reason: reason)
    }

    /// Forgets everything, as after a change of the configuration.
    package mutating func reset() { self = SuspectAnswers() }

    private mutating func turn(_ now: Int64) {
        let start = now - now % Self.windowMilliseconds
        guard start != current.start else { return }
        previous = start - Self.windowMilliseconds == current.start ? current : Window(start: .min)
        current = Window(start: start)
    }
}
