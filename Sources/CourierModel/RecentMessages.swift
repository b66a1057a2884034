package import GateVocabulary

/// The ids of the messages that providers took last, so that a repeat is not sent twice. The oldest goes first.
///
/// Lost at a restart: then `apns-id`, the collapse id and the journal of text messages are what keeps a repeat harmless.
package struct RecentMessages: Sendable {
    /// Ids kept by default: ten minutes at a hundred messages a second, in some 4 MiB.
    package static let standardCountMax = 65_536

    private let countMax: Int
    private var known: Set<MessageID> = []
    private var ring: [MessageID] = []
    private var oldest = 0

    package init(countMax: Int = standardCountMax) {
        precondition(countMax > 0, "nothing could be remembered")
        self.countMax = countMax
    }

    package func contains(_ message: MessageID) -> Bool { known.contains(message) }

    package mutating func insert(_ message: MessageID) {
        guard known.insert(message).inserted else { return }
        if ring.count < countMax { return ring.append(message) }
        known.remove(ring[oldest])
        ring[oldest] = message
        oldest = (oldest + 1) % countMax
    }
}
