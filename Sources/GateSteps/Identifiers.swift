import GateVocabulary

/// Random ids in the order they are taken, drawn before the step that takes them.
package final class IdentifierPool {
    private var drawn: [(high: UInt64, low: UInt64)] = []
    /// How many of those drawn are taken. Set back, it gives the same ids again.
    package var takenCount = 0

    package init() {}

    package var isEmpty: Bool { takenCount == drawn.count }

    /// Adds ids behind those that are not taken yet.
    package func add(_ more: [(high: UInt64, low: UInt64)]) {
        drawn = drawn[takenCount...] + more
        takenCount = 0
    }

    package func randomBytes16() throws -> (high: UInt64, low: UInt64) {
        guard !isEmpty else { throw MissingRows(.identifiers) }
        defer { takenCount += 1 }
        return drawn[takenCount]
    }

    /// A version 7 UUID: ids of one time lie side by side in a store's index, and neither an id nor two of them say how
    /// many sends there are.
    func newSendID(at now: Instant) throws -> SendID { SendID(version7: try randomBytes16(), at: now) }

    /// A version 4 UUID: APNs wants one as `apns-id`.
    func newMessageID() throws -> MessageID { MessageID(version4: try randomBytes16()) }

    func newKeyID() throws -> KeyID {
        let (high, low) = try randomBytes16()
        return KeyID(high: high, low: low)
    }
}
