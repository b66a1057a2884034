package import CanonicalJSON
package import GateVocabulary

/// `POST /v1/drift`, `GET /v1/drift`: how a drift audit stands.
package struct DriftRunAnswer: Hashable, Sendable {
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

    package var json: JSONObject {
        var rows: [JSONValue] = []
        for kind in DriftKind.allCases {
            for action in DriftAction.allCases {
                guard let count = found[kind]?[action] else { continue }
                rows.append([
                    "finding": .string(kind.rawValue), "action": .string(action.rawValue),
                    "count": .integer(count),
                ])
            }
        }
        return JSONObject(present: [
            "started_at": .string(startedAt.rfc3339), "started_by": .string(startedBy.text),
            "finished_at": finishedAt.map { .string($0.rfc3339) }, "dry_run": isDryRun ? true : nil,
            "examined": .integer(examinedCount), "unreadable": .integer(unreadableCount),
            "recorded": .integer(recordedCount), "resolved": .integer(resolvedCount), "found": .array(rows),
        ])
    }

    private static let row = Shape.answer(
        "DriftCount", "How many drifts of a kind there are.",
        [
            .required("finding", .choice(of: DriftKind.self), "What disagrees."),
            .required("action", .choice(of: DriftAction.self), "What is done about it."),
            .required("count", .count, "How many."),
        ])

    package static let shape = Shape.answer(
        "DriftRun", "How a drift audit stands.",
        [
            .required("started_at", .anyText, "RFC 3339."),
            .required("started_by", .anyText, "The caller, or `gateway` where its week was over."),
            .optional("finished_at", .anyText, "RFC 3339; absent while it is under way."),
            .optional("dry_run", .boolean, "True of a run that only counts."),
            .required("examined", .count, "Recipients it has looked at."),
            .required("unreadable", .count, "Recipients whose rows are damaged; `store check` names them."),
            .required(
                "recorded", .count, "Entries it wrote; of a run that only counts, that it would write."),
            .required("resolved", .count, "Those of them that say that a drift is no more."),
            .required("found", .all(row), "What there is, whether it was on record or is new."),
        ])
}

/// `GET /v1/drift/findings`: what is found of some people.
package struct DriftFindingsAnswer: Hashable, Sendable {
    package struct Row: Hashable, Sendable {
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

        package var json: JSONObject {
            JSONObject(present: [
                "subject": .string(subject.hexadecimal), "finding": .string(kind.rawValue),
                "action": .string(action.rawValue), "device": device.map { .string($0) },
                "category": category.map { .string($0.rawValue) }, "old": .string(old),
                "new": new.map { .string($0) }, "app": app.map { .string($0) },
                "token": token.map { .string($0) },
            ])
        }

        package static let shape = Shape.answer(
            "DriftFinding", "Two sides that disagree, and what is done about it.",
            [
                .required("subject", .anyText, "The person's pseudonym in the trail."),
                .required("finding", .choice(of: DriftKind.self), "What disagrees."),
                .required("action", .choice(of: DriftAction.self), "What is done about it."),
                .optional("device", .anyText, "Which device; absent for the account."),
                .optional("category", .choice(of: Category.self), "Which category, where it is about one."),
                .required("old", .anyText, "What is on record of the side that gives way."),
                .optional("new", .anyText, "What it is set to, or is to be set to by the provider."),
                .optional("app", .anyText, "The app of the device."),
                .optional(
                    "token", .anyText,
                    "The device's push token, where a provider is to change its subscription."),
            ])
    }

    package var rows: [Row]
    package var next: SubjectID?

    package init(rows: [Row], next: SubjectID?) {
        self.rows = rows
        self.next = next
    }

    package var json: JSONObject {
        JSONObject(present: [
            "findings": .array(rows.map { .object($0.json) }), "next": next.map { .string($0.hexadecimal) },
        ])
    }

    package static let shape = Shape.answer(
        "DriftFindings", "What was found of the next people and is not gone since.",
        [
            .required("findings", .all(Row.shape), "Person by person."),
            .optional("next", .anyText, "To be sent as `after`; absent when these were the last people."),
        ])
}
