import CanonicalJSON
package import GateVocabulary

/// The name of the trail since the newest restore, and the one before it.
///
/// A setting of the store; a store that was never restored has none, and its trail has the configured name. After a second restore
/// ``origin`` is `gate.example.com/prod/restored-20261121T120000Z` and ``previous`` the name that the first one gave. Older
/// names are in the `restore` entries.
package struct TrailLineage: Hashable, Sendable {
    package var origin: String
    /// The name before it.
    package var previous: String
    /// When it was restored.
    package var restoredAt: Instant

    package init(origin: String, previous: String, restoredAt: Instant) {
        self.origin = origin
        self.previous = previous
        self.restoredAt = restoredAt
    }
}

extension RecordReading {
    /// - Returns: `nil` for a trail that was never restored.
    package func trailLineage() throws -> TrailLineage? {
        guard let text = try setting(RestoreSettings.lineage) else { return nil }
        guard let object = (try? CanonicalJSON.read(Array(text.utf8)))?.objectValue,
            let origin = object["origin"]?.stringValue, let previous = object["previous"]?.stringValue,
            let time = object["restored_at"]?.integerValue
        else {
            throw StoreError.damaged(
                table: "setting", row: RestoreSettings.lineage, "it holds no names of a trail")
        }
        return TrailLineage(
            origin: origin, previous: previous, restoredAt: Instant(milliseconds: time))
    }

    /// The restore that was begun and has not ended; its counts are those so far.
    package func restoreUnderWay() throws -> RestoreUnderWay? {
        guard let text = try setting(RestoreUnderWay.settingName) else { return nil }
        guard let object = (try? CanonicalJSON.read(Array(text.utf8)))?.objectValue,
            let progress = RestoreUnderWay(object)
        else {
            throw StoreError.damaged(
                table: "setting", row: RestoreUnderWay.settingName, "it holds no state of a restore")
        }
        return progress
    }
}

extension GateMemory {
    package func setTrailLineage(_ lineage: TrailLineage) throws {
        let object: JSONObject = [
            "origin": .string(lineage.origin), "previous": .string(lineage.previous),
            "restored_at": .integer(lineage.restoredAt.milliseconds),
        ]
        setSetting(RestoreSettings.lineage, to: object.text)
    }

    /// `nil` ends it.
    package func setRestoreUnderWay(_ progress: RestoreUnderWay?) throws {
        setSetting(RestoreUnderWay.settingName, to: progress?.object.text)
    }
}

extension JSONObject {
    fileprivate var text: String { String(decoding: CanonicalJSON.write(.object(self)), as: UTF8.self) }
}

private enum RestoreSettings {
    static let lineage = "trail_lineage"
}
