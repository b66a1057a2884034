import AuditTrail
import CanonicalJSON
import GateVocabulary

/// What all kinds of entries have in common, and their bounds.
enum EntryFrame {
    /// A recipient has at most 20 devices and 20 addresses; a send goes to one kind.
    static let deliveryCountMax = 20

    static func checked(_ bytes: [UInt8]) throws(EntryError) -> [UInt8] {
        guard bytes.count <= EntryBundle.entryByteCountMax else {
            throw .tooLarge(byteCount: bytes.count, byteCountMax: EntryBundle.entryByteCountMax)
        }
        return bytes
    }

    /// The kind of any entry; `nil` for what is none.
    static func kind(of bytes: [UInt8]) -> String? {
        try? CanonicalJSON.readCanonical(bytes, limits: .entry)["kind"]?.stringValue
    }

    /// Reads a whole entry of `kind`.
    static func read<Entry>(
        _ bytes: [UInt8], kind: String, _ body: (inout EntryCursor) throws(EntryError) -> Entry
    ) throws(EntryError) -> Entry {
        _ = try checked(bytes)
        var cursor = EntryCursor(bytes)
        do throws(EntryError) {
            let entry = try body(&cursor)
            guard cursor.isAtEnd else { throw cursor.failure("the end of the entry") }
            return entry
        } catch {
            // Another kind has other members, so the first of them is where reading stopped.
            if let other = self.kind(of: bytes), other != kind { throw .otherKind(other) }
            // A reason or a fact that came with a gate may be what stopped reading, before the trace was counted.
            if let newer = (try? TrailEntry(reading: bytes))?.newer {
                throw .newer(gateCount: newer.gateCount)
            }
            throw error
        }
    }
}
