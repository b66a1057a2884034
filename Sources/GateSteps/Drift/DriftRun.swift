import CanonicalJSON
package import GateVocabulary
import RecipientModel

/// One pass of the drift audit over all people: where it stands, and what it has found so far.
///
/// Kept in the store as a setting, and written in the transaction that records what was found: a process that ends in the
/// middle goes on where it stood, and nothing is counted or recorded twice.
package struct DriftRun: Hashable, Sendable {
    static let settingName = "drift_run"

    package var startedAt: Instant
    /// Who asked for it; ``CallerName/gateway`` where its week was over.
    package var startedBy: CallerName
    /// Whether it only counts.
    package var isDryRun: Bool
    /// Whom it came by last, in the order of pseudonyms; `nil` before the first.
    package var newest: SubjectID?
    package var examinedCount: Int64 = 0
    /// People whose rows cannot be read; the store's own list names them.
    package var unreadableCount: Int64 = 0
    /// Drifts that there are, by kind and what is done about them.
    package var found: [DriftKind: [DriftAction: Int64]] = [:]
    /// Entries that this run wrote, those of drifts that are no more among them; of one that only counts, that it would
    /// write.
    package var recordedCount: Int64 = 0
    package var resolvedCount: Int64 = 0
    /// `nil` while it is under way.
    package var finishedAt: Instant?

    package init(startedAt: Instant, startedBy: CallerName, isDryRun: Bool) {
        self.startedAt = startedAt
        self.startedBy = startedBy
        self.isDryRun = isDryRun
    }

    package var isUnderWay: Bool { finishedAt == nil }
    package var foundCount: Int64 { found.values.flatMap(\.values).reduce(0, +) }

    package mutating func add(_ audited: AuditedPerson) {
        examinedCount += 1
        for finding in audited.findings { found[finding.kind, default: [:]][finding.action, default: 0] += 1 }
        recordedCount += Int64(audited.changed.count + audited.resolved.count)
        resolvedCount += Int64(audited.resolved.count)
    }
}

// MARK: In the store

extension DriftRun {
    var text: String {
        let kinds = found.map { kind, actions -> (String, JSONValue) in
            (kind.rawValue, .object(JSONObject(actions.map { ($0.key.rawValue, .integer($0.value)) })))
        }
        var object: JSONObject = [
            "started": .integer(startedAt.milliseconds), "by": .string(startedBy.text),
            "dry_run": .boolean(isDryRun), "examined": .integer(examinedCount),
            "unreadable": .integer(unreadableCount), "recorded": .integer(recordedCount),
            "resolved": .integer(resolvedCount),
        ]
        object["found"] = .object(JSONObject(kinds))
        object["newest"] = newest.map { .string($0.hexadecimal) }
        object["finished"] = finishedAt.map { .integer($0.milliseconds) }
        return String(decoding: CanonicalJSON.write(object), as: UTF8.self)
    }

    /// - Returns: `nil` of a text that ``text`` does not write.
    init?(text: String) {
        guard let object = try? CanonicalJSON.read(Array(text.utf8)).objectValue,
            let started = object["started"]?.integerValue, let by = object["by"]?.stringValue,
            let isDryRun = object["dry_run"]?.booleanValue, let examined = object["examined"]?.integerValue,
            let unreadable = object["unreadable"]?.integerValue,
            let recorded = object["recorded"]?.integerValue,
            let resolved = object["resolved"]?.integerValue, let kinds = object["found"]?.objectValue
        else { return nil }
        self.init(
            startedAt: Instant(milliseconds: started), startedBy: CallerName(by), isDryRun: isDryRun)
        if let newest = object["newest"]?.stringValue {
            guard let subject = SubjectID(hexadecimal: newest) else { return nil }
            self.newest = subject
        }
        for (name, actions) in kinds {
            guard let kind = DriftKind(rawValue: name), let actions = actions.objectValue else { return nil }
            for (name, count) in actions {
                guard let action = DriftAction(rawValue: name), let count = count.integerValue else {
                    return nil
                }
                found[kind, default: [:]][action] = count
            }
        }
        (examinedCount, unreadableCount) = (examined, unreadable)
        (recordedCount, resolvedCount) = (recorded, resolved)
        finishedAt = object["finished"]?.integerValue.map { Instant(milliseconds: $0) }
    }
}

extension RecordReading {
    /// The newest pass; `nil` before the first.
    package func driftRun() throws -> DriftRun? {
        guard let text = try setting(DriftRun.settingName) else { return nil }
        guard let run = DriftRun(text: text) else {
            throw StoreError.damaged(table: "setting", row: DriftRun.settingName, "it holds no drift run")
        }
        return run
    }
}
