package import AuditTrail
package import GateRecords
import GateVocabulary

/// The name under which a store knows which snapshot of its trail it recorded last.
private let snapshotSetting = "trail_snapshot"

extension StepContext {
    /// Records that a snapshot was made, whose lines are durable. Bundles go once a checkpoint covers the entry.
    package func recordSnapshot(_ entry: SnapshotEntry) throws -> SnapshotHead {
        let head = SnapshotHead(entry, recordedAs: try record(entry, at: try now()).index)
        memory.setSetting(snapshotSetting, to: String(decoding: head.bytes, as: UTF8.self))
        return head
    }
}

extension RecordReading {
    /// The snapshot that was recorded last; `nil` before the first. After a restore it may be an earlier one than is in force.
    package func recordedSnapshot() throws -> SnapshotHead? {
        guard let text = try setting(snapshotSetting) else { return nil }
        do throws(SnapshotDamage) {
            return try SnapshotHead(parsing: Array(text.utf8))
        } catch {
            throw StoreError.damaged(table: "setting", row: snapshotSetting, error.message)
        }
    }
}
