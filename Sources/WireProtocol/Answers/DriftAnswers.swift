import CanonicalJSON
package import GateVocabulary

/// `POST /v1/drift`, `GET /v1/drift`: how a drift audit stands.
package struct DriftRunAnswer: WireAnswer, Hashable {
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
        self.startedAt = startedAt
        self.startedBy = startedBy
        self.finishedAt = finishedAt
        self.isDryRun = isDryRun
        self.examinedCount = examinedCount
        self.unreadableCount = unreadableCount
        self.recordedCount = recordedCount
        self.resolvedCount = resolvedCount
        self.found = found
    }

    /// How many drifts of a kind there are.
    private struct Row: WireAnswer {
        let kind: DriftKind
        let action: DriftAction
        let count: Int64

        static let name = "DriftCount"
        static let means = "How many drifts of a kind there are."

        static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("action", answer, \.action, "What is done about it.")
            fields.required("count", answer, \.count, "How many.")
            fields.required("finding", answer, \.kind, "What disagrees.")
        }
    }

    private var rows: [Row] {
        DriftKind.allCases.flatMap { kind in
            DriftAction.allCases.compactMap { action in
                found[kind]?[action].map { Row(kind: kind, action: action, count: $0) }
            }
        }
    }

    package static let name = "DriftRun"
    package static let means = "How a drift audit stands."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.flag("dry_run", answer, \.isDryRun, "True of a run that only counts.")
        fields.required("examined", answer, \.examinedCount, "Recipients it has looked at.")
        fields.optional("finished_at", answer, \.finishedAt, "RFC 3339; absent while it is under way.")
        fields.required("found", answer, \.rows, "What there is, whether it was on record or is new.")
        fields.required(
            "recorded", answer, \.recordedCount,
            "Entries it wrote; of a run that only counts, that it would write.")
        fields.required(
            "resolved", answer, \.resolvedCount, "Those of them that say that a drift is no more.")
        fields.required("started_at", answer, \.startedAt, "RFC 3339.")
        fields.required(
            "started_by", answer, \.startedBy, "The caller, or `gateway` where its week was over.")
        fields.required(
            "unreadable", answer, \.unreadableCount,
            "Recipients whose rows are damaged; `store check` names them.")
    }
}

/// `GET /v1/drift/findings`: what is found of some people.
package struct DriftFindingsAnswer: WireAnswer, Hashable {
    /// One drift of one person.
    package struct Row: WireAnswer, Hashable {
        package var subject: SubjectID
        package var kind: DriftKind
        package var action: DriftAction
        package var device: String?
        package var category: Category?
        package var old: String
        package var new: String?
        package var app: String?
        package var token: String?

        package init(
            subject: SubjectID, kind: DriftKind, action: DriftAction, device: String?, category: Category?,
            old: String, new: String?, app: String?, token: String?
        ) {
            self.subject = subject
            self.kind = kind
            self.action = action
            self.device = device
            self.category = category
            self.old = old
            self.new = new
            self.app = app
            self.token = token
        }

        package static let name = "DriftFinding"
        package static let means = "Two sides that disagree, and what is done about it."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("action", answer, \.action, "What is done about it.")
            fields.optional("app", answer, \.app, "The app of the device.")
            fields.optional("category", answer, \.category, "Which category, where it is about one.")
            fields.optional("device", answer, \.device, "Which device; absent for the account.")
            fields.required("finding", answer, \.kind, "What disagrees.")
            fields.optional("new", answer, \.new, "What it is set to, or is to be set to by the provider.")
            fields.required("old", answer, \.old, "What is on record of the side that gives way.")
            fields.required(
                "subject", as: .anyText, answer, \.subject, "The person's pseudonym in the trail.")
            fields.optional(
                "token", answer, \.token,
                "The device's push token, where a provider is to change its subscription.")
        }
    }

    package var rows: [Row]
    package var next: SubjectID?

    package init(rows: [Row], next: SubjectID?) {
        self.rows = rows
        self.next = next
    }

    package static let name = "DriftFindings"
    package static let means = "What was found of the next people and is not gone since."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("findings", answer, \.rows, "Person by person.")
        fields.optional(
            "next", as: .anyText, answer, \.next,
            "To be sent as `after`; absent when these were the last people.")
    }
}
