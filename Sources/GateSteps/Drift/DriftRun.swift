import CanonicalJSON
package import GateVocabulary
import GateRecords

/// One pass of the drift audit over all people: where it stands, and what it has found so far.
///
/// Kept in the store as a setting, and written in the transaction that records what was found: a process that ends in the
/// middle goes on where it stood, and nothing is counted or recorded twice.
package struct DriftRun: Hashable, Sendable {
    static let settingName = "drift_run"

    package var startedAt: Instant
    /// The caller that started it; ``CallerName/gateway`` for the weekly run.
    package var startedBy: CallerName
    /// Whether the run counts drifts and records nothing.
    package var isDryRun: Bool
    /// The person whom the run looked at last, in the order of pseudonyms; `nil` before the first.
    package var newest: SubjectID?
    package var examinedCount: Int64 = 0
    /// People whose rows cannot be read; the store's own list names them.
    package var unreadableCount: Int64 = 0
    /// Drifts that there are, by kind and what is done about them.
    package var found: [DriftKind: [DriftAction: Int64]] = [:]
    /// Entries that this run wrote, those of resolved drifts among them; for a dry run, those that it would write.
    package var recordedCount: Int64 = 0
    package var resolvedCount: Int64 = 0
    /// `nil` while it is under way.
    package var finishedAt: Instant?
    /// The newest finished run before it that recorded what it found; `nil` before the first.
    private var auditBefore: Audit?

    /// When a run that records what it finds began and finished.
    private struct Audit: Hashable, Sendable {
        var startedAt: Instant
        var finishedAt: Instant
    }

    /// - Parameter earlier: The finished run that it takes the place of.
    package init(startedAt: Instant, startedBy: CallerName, isDryRun: Bool, after earlier: DriftRun? = nil) {
        self.startedAt = startedAt
        self.startedBy = startedBy
        self.isDryRun = isDryRun
        guard let earlier else { return }
        auditBefore = earlier.auditBefore
        if !earlier.isDryRun, let finishedAt = earlier.finishedAt {
            auditBefore = Audit(startedAt: earlier.startedAt, finishedAt: finishedAt)
        }
    }

    /// When the newest run began that records what it finds. A run that only counts puts off no audit.
    package var auditStartedAt: Instant? { isDryRun ? auditBefore?.startedAt : startedAt }
    /// When the newest finished run did that recorded what it found, also while the next one is under way.
    package var auditFinishedAt: Instant? { (isDryRun ? nil : finishedAt) ?? auditBefore?.finishedAt }

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
        object["audit_started"] = auditBefore.map { .integer($0.startedAt.milliseconds) }
        object["audit_finished"] = auditBefore.map { .integer($0.finishedAt.milliseconds) }
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
        if let started = object["audit_started"]?.integerValue,
            let finished = object["audit_finished"]?.integerValue
        {
            auditBefore = Audit(
                startedAt: Instant(milliseconds: started), finishedAt: Instant(milliseconds: finished))
        }
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
