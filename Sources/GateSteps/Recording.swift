import AuditTrail
package import GateVocabulary
import OpenSSLCrypto
package import GateRecords
import WireProtocol

extension StepContext {
    /// Changes a person's state and writes the entry that records the change. Nothing else changes a person's state. Of a person who is
    /// imported, all changes are in one entry.
    @discardableResult
    package func record(
        _ change: PersonChange, of subject: SubjectID, by caller: CallerName, at now: Instant
    ) throws -> EntryReference {
        try memory.apply(change, to: subject)
        return try recordEntry(of: change, of: subject, by: caller, at: now)
    }

    /// Writes the entry of a change, or takes the change into that of an import.
    func recordEntry(
        of change: PersonChange, of subject: SubjectID, by caller: CallerName, at now: Instant
    ) throws -> EntryReference {
        if let placed = try placed(change, of: subject, by: caller, at: now) { return placed }
        return try record(change.entry(of: subject, by: caller, at: now), at: now)
    }

    /// Writes one entry.
    @discardableResult
    package func record(_ body: some EntryBody, at time: Instant) throws -> EntryReference {
        let index = upcomingIndex
        let bytes = try body.bytes(index: index, time: time)
        return try record(StoredEntry(index: index, time: time, bytes: bytes))
    }

    /// Writes one entry that an operator finds in the log as well.
    @discardableResult
    package func record<Body: LoggedEntry>(_ body: Body, at time: Instant) throws -> EntryReference {
        let entry = StoredEntry(
            index: upcomingIndex, time: time, bytes: try body.bytes(index: upcomingIndex, time: time))
        memory.affect { $0.notices.append(.recorded(Body.kind, entry)) }
        return try record(entry)
    }
}

extension TrailReference {
    /// Where an entry that was written earlier stands.
    package init(entry bytes: [UInt8], index: UInt64, origin: String) {
        self.init(origin: origin, index: index, leaf: TreeHash.leaf(bytes).bytes)
    }
}
