import CanonicalJSON
package import GateVocabulary

/// One key of the keyring, or one device key.
package struct KeyAnswer: WireAnswer, Hashable {
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

    package static let name = "Key"
    package static let means = "One key and its state. Never a private one."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.optional("changed_at", answer, \.changedAt, "RFC 3339.")
        fields.optional("created_at", answer, \.createdAt, "RFC 3339.")
        fields.required("key", answer, \.key, "Its id.")
        fields.optional("public_key", answer, \.publicKey, "In base64url.")
        fields.required("purpose", answer, \.purpose, "What it is for.")
        fields.required("state", answer, \.state, "Its state (NIST SP 800-57).")
        fields.required("suite", answer, \.suite, "Its algorithm.")
    }
}

/// `GET /v1/keys`
package struct KeysAnswer: WireAnswer, Hashable {
    package var keys: [KeyAnswer]

    package init(keys: [KeyAnswer]) { self.keys = keys }

    package static let name = "Keys"
    package static let means = "The gateway's own keys."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("keys", answer, \.keys, "By purpose and id.")
    }
}

/// What a key's state is after a verb or a proof of possession.
package struct KeyChangedAnswer: WireAnswer, Hashable {
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

    package static let name = "KeyChanged"
    package static let means = "The key's state now; the next decision follows it."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.flag("dry_run", answer, \.isDryRun, "True when nothing was changed.")
        fields.optional("key", answer, \.key, "Its id; absent on the dry run of one that would be made.")
        fields.optional(
            "second_caller_by", answer, \.secondCallerBy,
            "RFC 3339: nothing has changed yet, and another caller must ask for the same by then; on a dry run, would have to."
        )
        fields.required("state", answer, \.state, "Its state.")
        fields.optional("trail", answer, \.trail, "The evidence; absent on a dry run.")
    }
}

/// `POST /v1/device-keys/revoke`
package struct DeviceKeysRevokedAnswer: WireAnswer, Hashable {
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

    package static let name = "DeviceKeysRevoked"
    package static let means = "What became of one piece; each revoked key has an entry of its own."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.flag("dry_run", answer, \.isDryRun, "True when nothing was changed.")
        fields.required("examined", answer, \.examinedCount, "Keys that were looked at.")
        fields.optional("next", answer, \.next, "To be sent as `after`; absent when this was the last piece.")
        fields.required("revoked", answer, \.revokedCount, "Keys that are refused from the next decision on.")
        fields.required(
            "unreadable", answer, \.unreadableCount,
            "Keys whose rows are damaged: nothing is sealed to them, and `store check` names them.")
    }
}

/// `PUT /v1/keyset`
package struct KeysetChangedAnswer: WireAnswer, Hashable {
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

    package static let name = "KeysetChanged"
    package static let means = "The keyset that was brought, and whether it is in force."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("expires_at", answer, \.expiresAt, "RFC 3339: from here on it says nothing.")
        fields.flag("replayed", answer, { $0.trail == nil }, "True when this very note was in force already.")
        fields.optional(
            "second_caller_by", answer, \.secondCallerBy,
            "RFC 3339: nothing has changed yet, and another caller must bring the same note by then.")
        fields.optional("trail", answer, \.trail, "The evidence; absent when nothing was recorded.")
        fields.required(
            "version", as: .integer(1...CanonicalJSON.integerMax), answer, { Int64($0.version) },
            "Rises with every keyset.")
    }
}

/// `GET /v1/keys/lagging`
package struct KeyLagAnswer: WireAnswer, Hashable {
    package var key: String
    package var rowCount: Int64
    package var isDone: Bool

    package init(key: String, rowCount: Int64, isDone: Bool) {
        self.key = key
        self.rowCount = rowCount
        self.isDone = isDone
    }

    package static let name = "KeyLag"
    package static let means = "What is still sealed under an earlier data key."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("data_key", answer, \.key, "The data key in use.")
        fields.required(
            "done", answer, \.isDone,
            "Every stored value is known to be under the key in use: an earlier one may be destroyed.")
        fields.required("rows", answer, \.rowCount, "Stored values under another key.")
    }
}

/// `POST /v1/policy/activate`
package struct PolicyActivatedAnswer: WireAnswer, Hashable {
    package var policy: PolicyDigest
    package var previous: PolicyDigest?
    package var trail: TrailReference

    package init(policy: PolicyDigest, previous: PolicyDigest?, trail: TrailReference) {
        self.policy = policy
        self.previous = previous
        self.trail = trail
    }

    package static let name = "PolicyActivated"
    package static let means = "The bundle now in force."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("policy", answer, \.policy, "Its digest.")
        fields.optional("previous", answer, \.previous, "The digest it replaces.")
        fields.required("trail", answer, \.trail, "The evidence.")
    }
}

/// `GET /healthz`: the process answers. Says nothing of what it depends on.
package struct HealthAnswer: WireAnswer, Hashable {
    package init() {}

    package static let name = "Health"
    package static let means = "The process answers."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("status", as: .choice(["ok"]), answer, { _ in "ok" }, "Always `ok`.")
    }
}

/// `GET /readyz`: whether a send would be taken now. 503 when one check fails.
package struct ReadinessAnswer: WireAnswer, Hashable {
    /// The result of one check.
    package struct Check: WireAnswer, Hashable {
        package var name: String
        package var isPassed: Bool
        /// What is wrong and what to do; empty when nothing is.
        package var detail: String?

        package init(name: String, isPassed: Bool, detail: String?) {
            self.name = name
            self.isPassed = isPassed
            self.detail = detail
        }

        package static let name = "ReadinessCheck"
        package static let means = "One thing a send depends on."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.optional("detail", answer, \.detail, "What is wrong, and what to do.")
            fields.required("name", answer, \.name, "What.")
            fields.required("passed", answer, \.isPassed, "Whether it is well.")
        }
    }

    package var checks: [Check]

    package init(checks: [Check]) { self.checks = checks }

    package var isReady: Bool { checks.allSatisfy(\.isPassed) }
    package var status: Int { isReady ? 200 : 503 }

    package static let name = "Readiness"
    package static let means = "Whether a send would be taken now."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("checks", as: .list(of: Check.shape, countMax: 64), answer, \.checks, "Each of them.")
        fields.required("ready", answer, \.isReady, "Every check passes.")
    }

    package var answer: Answer { Answer(status: status, self) }
}
