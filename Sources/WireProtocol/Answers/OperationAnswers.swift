package import CanonicalJSON
package import GateVocabulary

/// One key of the keyring, or one device key.
package struct KeyAnswer: Hashable, Sendable {
    package var key: String
    /// `device`, `origin`, `trail`, `policy`, `link`, `data`, `index`, …
    package var purpose: String
    package var suite: String
    /// `pre_activation active suspended deactivated compromised destroyed` (NIST SP 800-57).
    package var state: String
    package var createdAt: Instant?
    package var changedAt: Instant?
    /// In base64url; absent for a symmetric key.
    package var publicKey: String?

    package init(
        key: String, purpose: String, suite: String, state: String, createdAt: Instant?, changedAt: Instant?,
        publicKey: String?
    ) {
        self.key = key
        self.purpose = purpose
        self.suite = suite
        self.state = state
        self.createdAt = createdAt
        self.changedAt = changedAt
        self.publicKey = publicKey
    }

    package var json: JSONObject {
        JSONObject(present: [
            "key": .string(key), "purpose": .string(purpose), "suite": .string(suite),
            "state": .string(state),
            "created_at": createdAt.map { .string($0.rfc3339) },
            "changed_at": changedAt.map { .string($0.rfc3339) }, "public_key": publicKey.map { .string($0) },
        ])
    }

    static let members: [ObjectShape.Member] = [
        .required("key", .anyText, "Its id."), .required("purpose", .anyText, "What it is for."),
        .required("suite", .anyText, "Its algorithm."),
        .required("state", .anyText, "Its state (NIST SP 800-57)."),
        .optional("created_at", .anyText, "RFC 3339."), .optional("changed_at", .anyText, "RFC 3339."),
        .optional("public_key", .anyText, "In base64url."),
    ]

    package static let shape = Shape.answer("Key", "One key and its state. Never a private one.", members)
}

/// `GET /v1/keys`
package struct KeysAnswer: Hashable, Sendable {
    package var keys: [KeyAnswer]

    package init(keys: [KeyAnswer]) { self.keys = keys }

    package var json: JSONObject { ["keys": .array(keys.map { .object($0.json) })] }

    package static let shape = Shape.answer(
        "Keys", "The gateway's own keys.", [.required("keys", .all(KeyAnswer.shape), "By purpose and id.")])
}

/// What a key's state is after a verb or a proof of possession.
package struct KeyChangedAnswer: Hashable, Sendable {
    /// `nil` on the dry run of a key that would be made.
    package var key: String?
    package var state: String
    /// `nil` on a dry run.
    package var trail: TrailReference?
    package var isDryRun: Bool
    /// Until when another caller must ask for the same; `nil` where one is enough.
    package var secondCallerBy: Instant?

    package init(
        key: String?, state: String, trail: TrailReference?, isDryRun: Bool = false,
        secondCallerBy: Instant? = nil
    ) {
        self.key = key
        self.state = state
        self.trail = trail
        self.isDryRun = isDryRun
        self.secondCallerBy = secondCallerBy
    }

    package var json: JSONObject {
        JSONObject(present: [
            "key": key.map { .string($0) }, "state": .string(state),
            "trail": trail.map { .object($0.json) }, "dry_run": isDryRun ? true : nil,
            "second_caller_by": secondCallerBy.map { .string($0.rfc3339) },
        ])
    }

    package static let shape = Shape.answer(
        "KeyChanged", "The key's state now; the next decision follows it.",
        [
            .optional("key", .anyText, "Its id; absent on the dry run of one that would be made."),
            .required("state", .anyText, "Its state."),
            .optional("trail", TrailReference.shape, "The evidence; absent on a dry run."),
            .optional("dry_run", .boolean, "True when nothing was changed."),
            .optional(
                "second_caller_by", .anyText,
                "RFC 3339: nothing has changed yet, and another caller must ask for the same by then; on a dry run, would have to."
            ),
        ])
}

/// `POST /v1/device-keys/revoke`
package struct DeviceKeysRevokedAnswer: Hashable, Sendable {
    /// Keys that were looked at in this piece.
    package var examinedCount: Int
    package var revokedCount: Int
    /// Keys whose rows are not as they were written; nothing is sealed to them either.
    package var unreadableCount: Int
    /// Where the next piece begins; `nil` when this was the last.
    package var next: KeyID?
    package var isDryRun: Bool

    package init(
        examinedCount: Int, revokedCount: Int, unreadableCount: Int, next: KeyID?, isDryRun: Bool
    ) {
        self.examinedCount = examinedCount
        self.unreadableCount = unreadableCount
        self.revokedCount = revokedCount
        self.next = next
        self.isDryRun = isDryRun
    }

    package var json: JSONObject {
        JSONObject(present: [
            "examined": .integer(Int64(examinedCount)), "revoked": .integer(Int64(revokedCount)),
            "unreadable": .integer(Int64(unreadableCount)), "next": next.map { .string($0.hexadecimal) },
            "dry_run": isDryRun ? true : nil,
        ])
    }

    package static let shape = Shape.answer(
        "DeviceKeysRevoked", "What became of one piece; each revoked key has an entry of its own.",
        [
            .required("examined", .count, "Keys that were looked at."),
            .required("revoked", .count, "Keys that are refused from the next decision on."),
            .required(
                "unreadable", .count,
                "Keys whose rows are damaged: nothing is sealed to them, and `store check` names them."),
            .optional("next", .keyID, "To be sent as `after`; absent when this was the last piece."),
            .optional("dry_run", .boolean, "True when nothing was changed."),
        ])
}

/// `PUT /v1/keyset`
package struct KeysetChangedAnswer: Hashable, Sendable {
    package var version: UInt64
    package var expiresAt: Instant
    /// Until when another caller must bring the same note; `nil` when it is in force.
    package var secondCallerBy: Instant?
    /// `nil` when this very note was in force already, and nothing was recorded.
    package var trail: TrailReference?

    package init(version: UInt64, expiresAt: Instant, secondCallerBy: Instant?, trail: TrailReference?) {
        self.version = version
        self.expiresAt = expiresAt
        self.secondCallerBy = secondCallerBy
        self.trail = trail
    }

    package var json: JSONObject {
        JSONObject(present: [
            "version": .integer(Int64(version)), "expires_at": .string(expiresAt.rfc3339),
            "trail": trail.map { .object($0.json) }, "replayed": trail == nil ? true : nil,
            "second_caller_by": secondCallerBy.map { .string($0.rfc3339) },
        ])
    }

    package static let shape = Shape.answer(
        "KeysetChanged", "The keyset that was brought, and whether it is in force.",
        [
            .required("version", .integer(1...Int64(1) << 53 - 1), "Rises with every keyset."),
            .required("expires_at", .anyText, "RFC 3339: from here on it says nothing."),
            .optional("trail", TrailReference.shape, "The evidence; absent when nothing was recorded."),
            .optional("replayed", .boolean, "True when this very note was in force already."),
            .optional(
                "second_caller_by", .anyText,
                "RFC 3339: nothing has changed yet, and another caller must bring the same note by then."),
        ])
}

/// `GET /v1/keys/lagging`
package struct KeyLagAnswer: Hashable, Sendable {
    package var key: String
    package var rowCount: Int64
    package var isDone: Bool

    package init(key: String, rowCount: Int64, isDone: Bool) {
        self.key = key
        self.rowCount = rowCount
        self.isDone = isDone
    }

    package var json: JSONObject {
        ["data_key": .string(key), "rows": .integer(rowCount), "done": .boolean(isDone)]
    }

    package static let shape = Shape.answer(
        "KeyLag", "What is still sealed under an earlier data key.",
        [
            .required("data_key", .anyText, "The data key in use."),
            .required("rows", .integer(0...(1 << 53 - 1)), "Stored values under another key."),
            .required(
                "done", .boolean,
                "Every stored value is known to be under the key in use: an earlier one may be destroyed."),
        ])
}

/// `POST /v1/policy/activate`
package struct PolicyActivatedAnswer: Hashable, Sendable {
    package var policy: PolicyDigest
    package var previous: PolicyDigest?
    package var trail: TrailReference

    package init(policy: PolicyDigest, previous: PolicyDigest?, trail: TrailReference) {
        self.policy = policy
        self.previous = previous
        self.trail = trail
    }

    package var json: JSONObject {
        JSONObject(present: [
            "policy": .string(policy.text), "previous": previous.map { .string($0.text) },
            "trail": .object(trail.json),
        ])
    }

    package static let shape = Shape.answer(
        "PolicyActivated", "The bundle now in force.",
        [
            .required("policy", .sha256, "Its digest."),
            .optional("previous", .sha256, "The digest it replaces."),
            .required("trail", TrailReference.shape, "The evidence."),
        ])
}

/// `GET /healthz`: the process answers. Says nothing of what it depends on.
package struct HealthAnswer: Hashable, Sendable {
    package init() {}

    package var json: JSONObject { ["status": "ok"] }

    package static let shape = Shape.answer(
        "Health", "The process answers.", [.required("status", .choice(["ok"]), "Always `ok`.")])
}

/// `GET /readyz`: whether a send would be taken now. 503 when one check fails.
package struct ReadinessAnswer: Hashable, Sendable {
    package struct Check: Hashable, Sendable {
        package var name: String
        package var isPassed: Bool
        /// What is wrong and what to do; empty when nothing is.
        package var detail: String?

        package init(name: String, isPassed: Bool, detail: String?) {
            self.name = name
            self.isPassed = isPassed
            self.detail = detail
        }
    }

    package var checks: [Check]

    package init(checks: [Check]) { self.checks = checks }

    package var isReady: Bool { checks.allSatisfy(\.isPassed) }
    package var status: Int { isReady ? 200 : 503 }

    package var json: JSONObject {
        [
            "checks": .array(
                checks.map { check in
                    .object(
                        JSONObject(present: [
                            "name": .string(check.name), "passed": .boolean(check.isPassed),
                            "detail": check.detail.map { .string($0) },
                        ]))
                }),
            "ready": .boolean(isReady),
        ]
    }

    package var answer: Answer { Answer(status: status, json: json) }

    private static let check = Shape.answer(
        "ReadinessCheck", "One thing a send depends on.",
        [
            .required("name", .anyText, "What."), .required("passed", .boolean, "Whether it is well."),
            .optional("detail", .anyText, "What is wrong, and what to do."),
        ])

    package static let shape = Shape.answer(
        "Readiness", "Whether a send would be taken now.",
        [
            .required("ready", .boolean, "Every check passes."),
            .required("checks", .list(of: check, countMax: 64), "Each of them."),
        ])
}
