package import CanonicalJSON
package import GateRecords
import GateVocabulary

/// A restore between its first commit and its last: what its entry will say, and whether that is recorded.
///
/// How far it has come is the store's number of entries, which is in the same commit.
package struct RestoreUnderWay: Hashable, Sendable {
    package var entry: RestoreEntry
    /// The `restore` entry is in the store; what is left is to end what could not be brought back.
    package var isRecorded: Bool

    /// The setting of the store that is there until it ends.
    package static let settingName = "restoring"

    package init(_ entry: RestoreEntry) {
        self.entry = entry
        isRecorded = false
    }

    package var object: JSONObject {
        var object = entry.json
        object["recorded"] = .boolean(isRecorded)
        return object
    }

    package init?(_ object: JSONObject) {
        guard let entry = try? RestoreEntry(object), let isRecorded = object["recorded"]?.booleanValue else {
            return nil
        }
        self.entry = entry
        self.isRecorded = isRecorded
    }

    package mutating func applied(_ item: RestoreEntry.Item) { entry.applied[item, default: 0] += 1 }
    package mutating func skipped(_ item: RestoreEntry.Item) { entry.skipped[item, default: 0] += 1 }
}
