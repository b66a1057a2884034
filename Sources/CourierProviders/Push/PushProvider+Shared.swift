import CourierModel
import GateVocabulary

extension DeliveryOutcome {
    /// What a request without an answer means for its message. The gateway gets the word before the colon.
    static func fault(
        _ fault: ExchangeFault, of order: DeliveryOrder, mayRepeat: Bool, _ clock: ProviderClock
    ) -> DeliveryOutcome {
        switch fault {
        case .notWritten where Task.isCancelled, .unusable where Task.isCancelled: .stopping
        // The connections ask the clock before they write, too.
        case .notWritten(let why):
            clock.allows(order)
                ? .later(reason: "provider_unreachable: \(why)", seconds: nil, scope: .app) : .tooLate
        case .unusable(let why):
            clock.allows(order) ? .misconfigured(reason: "provider_unreachable: \(why)") : .tooLate
        case .unanswered(let why): .ambiguous(reason: "unanswered: \(why)", mayRepeat: mayRepeat)
        }
    }
}

/// Bounds of one push request.
enum PushLimits {
    /// Apple and Google take at most so many bytes of body.
    static let bodyBytesMax = 4_096
    /// Longest time from the call to the whole answer, and less where the order came earlier. Apple answers in some 80 ms.
    static let timeoutMilliseconds = DeliveryOrder.answerMilliseconds
    /// Longest time of a request for an access token, so that some is left for the push that waits for it.
    static let credentialMilliseconds: Int64 = 4_000
    /// How far two clocks may differ before it is worth a word, in seconds.
    static let clockSecondsMax: Int64 = 60
}

extension ProviderAnswer {
    /// What to say where a provider refuses a token that the courier has just signed: nearly always the clock is wrong.
    func clockHint(_ now: Instant) -> String {
        guard let theirs = header("date").flatMap(RetryAfter.httpDate) else {
            return "though it is new: check this machine's clock"
        }
        let seconds = theirs.seconds - now.seconds
        if abs(seconds) <= PushLimits.clockSecondsMax { return "though it is new and the clocks agree" }
        return
            "this machine's clock is \(abs(seconds)) s \(seconds > 0 ? "behind" : "ahead of") the provider's"
    }
}
