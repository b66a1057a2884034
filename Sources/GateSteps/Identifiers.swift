package import GateVocabulary

/// Where new ids come from.
package protocol IdentifierDrawing {
    /// Sixteen bytes of a cryptographic random source. Throws when the source fails.
    func randomBytes16() throws -> (high: UInt64, low: UInt64)
}

extension IdentifierDrawing {
    /// A version 7 UUID: ids of one time lie side by side in a store's index, and neither an id nor two of them say how
    /// many sends there are.
    package func newSendID(at now: Instant) throws -> SendID {
        SendID(version7: try randomBytes16(), at: now)
    }

    /// A version 4 UUID: APNs wants one as `apns-id`.
    package func newMessageID() throws -> MessageID { MessageID(version4: try randomBytes16()) }

    package func newKeyID() throws -> KeyID {
        let (high, low) = try randomBytes16()
        return KeyID(high: high, low: low)
    }

    package func newSubjectID() throws -> SubjectID {
        let (high, low) = try randomBytes16()
        return SubjectID(high: high, low: low)
    }
}

/// Random ids in the order they are taken, drawn before the step that takes them.
package final class IdentifierPool: IdentifierDrawing {
    // No access calls other code: the check of another at the same time would find nothing.
    @exclusivity(unchecked) private var drawn: [(high: UInt64, low: UInt64)] = []
    @exclusivity(unchecked) private var taken = 0

    package init() {}

    /// How many of those drawn are taken. Set back, it gives the same ids again. Computed, because another module pays for a
    /// check of each stored property that it looks at.
    package var takenCount: Int {
        get { taken }
        set { taken = newValue }
    }

    package var isEmpty: Bool { taken == drawn.count }

    /// Adds ids behind those that are not taken yet.
    package func add(_ more: [(high: UInt64, low: UInt64)]) {
        drawn = drawn[taken...] + more
        taken = 0
    }

    package func randomBytes16() throws -> (high: UInt64, low: UInt64) {
        guard !isEmpty else { throw MissingRows(.identifiers) }
        defer { taken += 1 }
        return drawn[taken]
    }
}
