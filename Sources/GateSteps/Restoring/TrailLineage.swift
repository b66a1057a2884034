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
}

extension RecordReading {
    /// - Returns: `nil` for a trail that was never restored.
    package func trailLineage() throws -> TrailLineage? {
        try setting(RestoreSettings.lineage, orDamaged: "it holds no names of a trail") { text in
            guard let object = try? CanonicalJSON.read(Array(text.utf8)),
                let origin = object["origin"]?.stringValue, let previous = object["previous"]?.stringValue,
                let time = object["restored_at"]?.integerValue
            else { return nil }
            return TrailLineage(
                origin: origin, previous: previous, restoredAt: Instant(milliseconds: time))
        }
    }

    /// The restore that was begun and has not ended; its counts are those so far.
    package func restoreUnderWay() throws -> RestoreUnderWay? {
        try setting(RestoreUnderWay.settingName, orDamaged: "it holds no state of a restore") { text in
            (try? CanonicalJSON.read(Array(text.utf8)))?.objectValue.flatMap(RestoreUnderWay.init)
        }
    }
}

extension GateMemory {
    package func setTrailLineage(_ lineage: TrailLineage) throws {
        let object: JSONObject = [
            "origin": .string(lineage.origin), "previous": .string(lineage.previous),
            "restored_at": .integer(lineage.restoredAt.milliseconds),
        ]
        setSetting(RestoreSettings.lineage, to: object.description)
    }

    /// `nil` ends it.
    package func setRestoreUnderWay(_ progress: RestoreUnderWay?) throws {
        setSetting(RestoreUnderWay.settingName, to: progress?.object.description)
    }
}

private enum RestoreSettings {
    static let lineage = "trail_lineage"
}
