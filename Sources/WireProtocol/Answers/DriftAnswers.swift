import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// `POST /v1/drift`, `GET /v1/drift`: how a drift audit stands.
package struct DriftRunAnswer: ShownRecord {
    package var startedAt: Instant
    package var startedBy: CallerName
    /// `nil` while it is under way.
    package var finishedAt: Instant?
    package var isDryRun: Bool
    package var examinedCount: Int64
    package var unreadableCount: Int64
    package var recordedCount: Int64
    package var resolvedCount: Int64
    package var found: [DriftKind: [DriftAction: Int64]]

    package init(
        startedAt: Instant, startedBy: CallerName, finishedAt: Instant?, isDryRun: Bool, examinedCount: Int64,
        unreadableCount: Int64, recordedCount: Int64, resolvedCount: Int64,
        found: [DriftKind: [DriftAction: Int64]]
    ) {
        (self.startedAt, self.startedBy, self.finishedAt, self.isDryRun) = (
            startedAt, startedBy, finishedAt, isDryRun
        )
        (self.examinedCount, self.unreadableCount, self.recordedCount) = (
            examinedCount, unreadableCount, recordedCount
        )
        (self.resolvedCount, self.found) = (resolvedCount, found)
    }

    /// How many drifts of a kind there are.
    private struct Row: ShownRecord {
        var kind: DriftKind
        var action: DriftAction
        var count: Int64

        static let shownName = "DriftCount"
        static let shownMeans = "How many drifts of a kind there are."

        static let fields = Fields<Self> { fields in
            fields.joined("action", \.action, "What is done about it.")
            fields.joined("count", \.count, "How many.")
            fields.joined("finding", \.kind, "What disagrees.")
        }
    }

    private var rows: [Row] {
        DriftKind.allCases.flatMap { kind in
            DriftAction.allCases.compactMap { action in
                found[kind]?[action].map { Row(kind: kind, action: action, count: $0) }
            }
        }
    }

    package static let shownName = "DriftRun"
    package static let shownMeans = "How a drift audit stands."

    package static let fields = Fields<Self> { fields in
        fields.flag("dry_run", "True of a run that only counts.") { $0.isDryRun }
        fields.joined("examined", \.examinedCount, "Recipients it has looked at.")
        fields.joined("finished_at", \.finishedAt, "RFC 3339; absent while it is under way.")
        fields.joined("found", "What there is, whether it was on record or is new.") { $0.rows }
        fields.joined(
            "recorded", \.recordedCount, "Entries it wrote; of a run that only counts, that it would write.")
        fields.joined("resolved", \.resolvedCount, "Those of them that say that a drift is no more.")
        fields.joined("started_at", \.startedAt, "RFC 3339.")
        fields.joined("started_by", \.startedBy, "The caller, or `gateway` where its week was over.")
        fields.joined(
            "unreadable", \.unreadableCount, "Recipients whose rows are damaged; `store check` names them.")
    }
}

/// `GET /v1/drift/findings`: what is found of some people.
package struct DriftFindingsAnswer: ShownRecord {
    /// One drift of one person.
    package struct Row: ShownRecord {
        package var subject: SubjectID
        package var finding: DriftFinding
        package var device: String?
        package var app: String?
        package var token: String?

        package init(
            subject: SubjectID, finding: DriftFinding, device: String?, app: String?, token: String?
        ) {
            (self.subject, self.finding) = (subject, finding)
            (self.device, self.app, self.token) = (device, app, token)
        }

        package static let shownName = "DriftFinding"
        package static let shownMeans = "Two sides that disagree, and what is done about it."

        package static let fields = Fields<Self> { fields in
            fields.all(of: \.finding)
            fields.joined("app", \.app, "The app of the device.")
            fields.joined("device", \.device, "Which device; absent for the account.")
            fields.joined("subject", \.subject, "The person's pseudonym in the trail.", shape: .anyText)
            fields.joined(
                "token", \.token, "The device's push token, where a provider is to change its subscription.")
        }
    }

    package var rows: [Row]
    package var next: SubjectID?

    package init(rows: [Row], next: SubjectID?) {
        (self.rows, self.next) = (rows, next)
    }

    package static let shownName = "DriftFindings"
    package static let shownMeans = "What was found of the next people and is not gone since."

    package static let fields = Fields<Self> { fields in
        fields.joined("findings", \.rows, "Person by person.")
        fields.joined(
            "next", \.next, "To be sent as `after`; absent when these were the last people.", shape: .anyText)
    }
}
