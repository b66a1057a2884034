package import GateVocabulary

/// The newest messages that providers took or whose token they called dead, each with what was said of it. A repeat is not sent twice,
/// and is told what the first try was told. The oldest goes first.
///
/// Lost at a restart: then `apns-id`, the collapse id and the journal of text messages are what keeps a repeat harmless.
package struct RecentMessages: Sendable {
    /// Messages kept by default: ten minutes at a hundred a second, in some 16 MiB with the names that providers gave them.
    package static let standardCountMax = 65_536

    private let countMax: Int
    private struct Known: Sendable {
        var outcome: DeliveryOutcome
        /// The address that the message went to; the hash, because a token is as long as the rest.
        var addressHash: Int
    }

    private var known: [MessageID: Known] = [:]
    private var ring: [MessageID] = []
    private var oldest = 0

    package init(countMax: Int = standardCountMax) {
        precondition(countMax > 0, "nothing could be remembered")
        self.countMax = countMax
    }

    /// - Parameter address: Where the message would go now. What was taken is known whatever address the repeat has. That a token is dead
    ///   says nothing of another one.
    /// - Returns: What the provider said of the message; `nil` where it would have to be asked.
    package func outcome(of message: MessageID, to address: String) -> DeliveryOutcome? {
        guard let known = known[message] else { return nil }
        if case .tokenGone = known.outcome, known.addressHash != address.hashValue { return nil }
        return known.outcome
    }

    /// Takes in what became of a try. Only what ends a message for good is kept: the newest outcome of a message counts.
    package mutating func insert(_ outcome: DeliveryOutcome, of message: MessageID, to address: String) {
        switch outcome {
        case .accepted, .tokenGone: break
        case .seenBefore, .failed, .later, .misconfigured, .ambiguous: return
        }
        let entry = Known(outcome: outcome, addressHash: address.hashValue)
        guard known.updateValue(entry, forKey: message) == nil else { return }
        if ring.count < countMax { return ring.append(message) }
        known[ring[oldest]] = nil
        ring[oldest] = message
        oldest = (oldest + 1) % countMax
    }
}
