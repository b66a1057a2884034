import BundleModel
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
    /// The times of the newest finished run before this one that recorded its findings; `nil` before the first.
    private var earlierStartedAt: Instant?
    private var earlierFinishedAt: Instant?

    /// - Parameter earlier: The finished run that it takes the place of.
    package init(startedAt: Instant, startedBy: CallerName, isDryRun: Bool, after earlier: DriftRun? = nil) {
        self.startedAt = startedAt
        self.startedBy = startedBy
        self.isDryRun = isDryRun
        guard let earlier else { return }
        (earlierStartedAt, earlierFinishedAt) = (earlier.auditStartedAt, earlier.auditFinishedAt)
    }

    /// When the newest run began that records what it finds. A run that only counts puts off no audit.
    package var auditStartedAt: Instant? { isDryRun ? earlierStartedAt : startedAt }
    /// When the newest finished run did that recorded what it found, also while the next one is under way.
    package var auditFinishedAt: Instant? { (isDryRun ? nil : finishedAt) ?? earlierFinishedAt }

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

extension DriftRun: FieldObject {
    package static let means = "A pass of the drift audit."
    package static var blank: DriftRun { DriftRun(startedAt: .longAgo, startedBy: .gateway, isDryRun: false) }

    package static func show<Visitor: FieldVisitor & ~Copyable>(
        to fields: inout Visitor
    ) throws(Visitor.Failure) where Visitor.Object == DriftRun {
        try fields.optional("audit_finished", \.earlierFinishedAt)
        try fields.optional("audit_started", \.earlierStartedAt)
        try fields.required("by", \.startedBy)
        try fields.required("dry_run", \.isDryRun)
        try fields.required("examined", \.examinedCount)
        try fields.optional("finished", \.finishedAt)
        try fields.required("found", \.found)
        try fields.optional("newest", \.newest)
        try fields.required("recorded", \.recordedCount)
        try fields.required("resolved", \.resolvedCount)
        try fields.required("started", \.startedAt)
        try fields.required("unreadable", \.unreadableCount)
    }
}

extension RecordReading {
    /// The newest pass; `nil` before the first.
    package func driftRun() throws -> DriftRun? {
        try setting(DriftRun.settingName, orDamaged: "it holds no drift run") {
            try? DriftRun.read(knownIn: CanonicalJSON.read(Array($0.utf8)).objectValue ?? [:])
        }
    }
}
