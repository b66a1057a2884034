import AuditTrail
import CanonicalJSON
import GateRecords
package import GateVocabulary

extension SendEntry {
    /// - Returns: The entry with the place and time it was recorded at. Encoding it gives `bytes` again.
    package static func read(
        _ bytes: [UInt8]
    ) throws(EntryError) -> (index: UInt64, time: Instant, entry: SendEntry) {
        try EntryFrame.read(bytes, kind) { cursor, envelope throws(EntryError) in
            let found = try read(entry: &cursor, in: envelope)
            if let locale = found.object.request.locale, LanguageTag(locale)?.core != locale {
                throw .contradictory(what: "locale")
            }
            return found
        }
    }
}

extension RedecisionEntry {
    /// - Returns: The entry with the place and time it was recorded at. Encoding it gives `bytes` again.
    package static func read(
        _ bytes: [UInt8]
    ) throws(EntryError) -> (index: UInt64, time: Instant, entry: RedecisionEntry) {
        try EntryFrame.read(bytes, kind) { cursor, envelope throws(EntryError) in
            try read(entry: &cursor, in: envelope)
        }
    }
}

/// Reading a whole entry that decides, and what an entry that cannot be read is.
private enum EntryFrame {
    /// The kind of any entry; `nil` for what is none.
    private static func kind(of bytes: [UInt8]) -> String? {
        try? CanonicalJSON.readCanonical(bytes, limits: .entry)["kind"]?.stringValue
    }

    static func read<Entry>(
        _ bytes: [UInt8], _ kind: EntryKind,
        _ read: (inout EntryCursor, EntryEnvelope) throws(EntryError) -> (EntryEnvelope, Entry)
    ) throws(EntryError) -> (index: UInt64, time: Instant, entry: Entry) {
        guard bytes.count <= EntryBundle.entryByteCountMax else {
            throw .tooLarge(byteCount: bytes.count, byteCountMax: EntryBundle.entryByteCountMax)
        }
        var cursor = EntryCursor(bytes)
        do throws(EntryError) {
            let (envelope, entry) = try read(&cursor, EntryEnvelope(kind: kind.text))
            guard cursor.isAtEnd else { throw cursor.failure("the end of the entry") }
            return (envelope.index, envelope.time, entry)
        } catch {
            // Another kind has other members, so the first of them is where reading stopped.
            if let other = self.kind(of: bytes), other != kind.text { throw .otherKind(other) }
            // A reason or a fact that came with a gate may be what stopped reading, before the trace was counted.
            if case .gates(let gateCount)? = (try? TrailEntry(reading: bytes))?.newer?.sign {
                throw .newer(gateCount: gateCount)
            }
            throw error
        }
    }
}
