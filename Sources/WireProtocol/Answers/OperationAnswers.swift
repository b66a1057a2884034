import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// One key of the keyring, or one device key.
package struct KeyAnswer: ShownRecord {
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
        (self.key, self.purpose, self.suite, self.state) = (key, purpose, suite, state)
        (self.createdAt, self.changedAt, self.publicKey) = (createdAt, changedAt, publicKey)
    }

    package static let shownName = "Key"
    package static let shownMeans = "One key and its state. Never a private one."

    package static let fields = Fields<Self> { fields in
        fields.joined("changed_at", \.changedAt, "RFC 3339.")
        fields.joined("created_at", \.createdAt, "RFC 3339.")
        fields.joined("key", \.key, "Its id.")
        fields.joined("public_key", \.publicKey, "In base64url.")
        fields.joined("purpose", \.purpose, "What it is for.")
        fields.joined("state", \.state, "Its state (NIST SP 800-57).")
        fields.joined("suite", \.suite, "Its algorithm.")
    }
}

/// `GET /v1/keys`
package struct KeysAnswer: ShownRecord {
    package var keys: [KeyAnswer]

    package init(keys: [KeyAnswer]) { self.keys = keys }

    package static let shownName = "Keys"
    package static let shownMeans = "The gateway's own keys."

    package static let fields = Fields<Self> { fields in
        fields.joined("keys", \.keys, "By purpose and id.")
    }
}

/// What a key's state is after a verb or a proof of possession.
package struct KeyChangedAnswer: ShownRecord {
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
        (self.key, self.state, self.trail) = (key, state, trail)
        (self.isDryRun, self.secondCallerBy) = (isDryRun, secondCallerBy)
    }

    package static let shownName = "KeyChanged"
    package static let shownMeans = "The key's state now; the next decision follows it."

    package static let fields = Fields<Self> { fields in
        fields.flag("dry_run", "True when nothing was changed.") { $0.isDryRun }
        fields.joined("key", \.key, "Its id; absent on the dry run of one that would be made.")
        fields.joined(
            "second_caller_by", \.secondCallerBy,
            "RFC 3339: nothing has changed yet, and another caller must ask for the same by then; on a dry run, would have to."
        )
        fields.joined("state", \.state, "Its state.")
        fields.joined("trail", \.trail, "The evidence; absent on a dry run.")
    }
}

/// `POST /v1/device-keys/revoke`
package struct DeviceKeysRevokedAnswer: ShownRecord {
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
        (self.examinedCount, self.unreadableCount, self.revokedCount) = (
            examinedCount, unreadableCount, revokedCount
        )
        (self.next, self.isDryRun) = (next, isDryRun)
    }

    package static let shownName = "DeviceKeysRevoked"
    package static let shownMeans = "What became of one piece; each revoked key has an entry of its own."

    package static let fields = Fields<Self> { fields in
        fields.flag("dry_run", "True when nothing was changed.") { $0.isDryRun }
        fields.joined("examined", \.examinedCount, "Keys that were looked at.")
        fields.joined("next", \.next, "To be sent as `after`; absent when this was the last piece.")
        fields.joined("revoked", \.revokedCount, "Keys that are refused from the next decision on.")
        fields.joined(
            "unreadable", \.unreadableCount,
            "Keys whose rows are damaged: nothing is sealed to them, and `store check` names them.")
    }
}

/// `PUT /v1/keyset`
package struct KeysetChangedAnswer: ShownRecord {
    package var version: UInt64
    package var expiresAt: Instant
    /// Until when another caller must bring the same note; `nil` when it is in force.
    package var secondCallerBy: Instant?
    /// `nil` when this very note was in force already, and nothing was recorded.
    package var trail: TrailReference?

    package init(version: UInt64, expiresAt: Instant, secondCallerBy: Instant?, trail: TrailReference?) {
        (self.version, self.expiresAt, self.secondCallerBy, self.trail) = (
            version, expiresAt, secondCallerBy, trail
        )
    }

    package static let shownName = "KeysetChanged"
    package static let shownMeans = "The keyset that was brought, and whether it is in force."

    package static let fields = Fields<Self> { fields in
        fields.joined("expires_at", \.expiresAt, "RFC 3339: from here on it says nothing.")
        fields.flag("replayed", "True when this very note was in force already.") { $0.trail == nil }
        fields.joined(
            "second_caller_by", \.secondCallerBy,
            "RFC 3339: nothing has changed yet, and another caller must bring the same note by then.")
        fields.joined("trail", \.trail, "The evidence; absent when nothing was recorded.")
        fields.joined("version", "Rises with every keyset.", shape: .integer(1...CanonicalJSON.integerMax)) {
            Int64($0.version)
        }
    }
}

/// `GET /v1/keys/lagging`
package struct KeyLagAnswer: ShownRecord {
    package var key: String
    package var rowCount: Int64
    package var isDone: Bool

    package init(key: String, rowCount: Int64, isDone: Bool) {
        (self.key, self.rowCount, self.isDone) = (key, rowCount, isDone)
    }

    package static let shownName = "KeyLag"
    package static let shownMeans = "What is still sealed under an earlier data key."

    package static let fields = Fields<Self> { fields in
        fields.joined("data_key", \.key, "The data key in use.")
        fields.joined(
            "done", \.isDone,
            "Every stored value is known to be under the key in use: an earlier one may be destroyed.")
        fields.joined("rows", \.rowCount, "Stored values under another key.")
    }
}

/// `POST /v1/policy/activate`
package struct PolicyActivatedAnswer: ShownRecord {
    package var policy: PolicyDigest
    package var previous: PolicyDigest?
    package var trail: TrailReference

    package init(policy: PolicyDigest, previous: PolicyDigest?, trail: TrailReference) {
        (self.policy, self.previous, self.trail) = (policy, previous, trail)
    }

    package static let shownName = "PolicyActivated"
    package static let shownMeans = "The bundle now in force."

    package static let fields = Fields<Self> { fields in
        fields.joined("policy", \.policy, "Its digest.")
        fields.joined("previous", \.previous, "The digest it replaces.")
        fields.joined("trail", \.trail, "The evidence.")
    }
}

/// `GET /healthz`: the process answers. Says nothing of what it depends on.
package struct HealthAnswer: ShownRecord {
    package init() {}

    package static let shownName = "Health"
    package static let shownMeans = "The process answers."

    package static let fields = Fields<Self> { fields in
        fields.joined("status", "Always `ok`.", shape: .choice(["ok"])) { _ in "ok" }
    }
}

/// `GET /readyz`: whether a send would be taken now. 503 when one check fails.
package struct ReadinessAnswer: ShownRecord {
    /// The result of one check.
    package struct Check: ShownRecord {
        package var name: String
        package var isPassed: Bool
        /// What is wrong and what to do; empty when nothing is.
        package var detail: String?

        package init(name: String, isPassed: Bool, detail: String?) {
            (self.name, self.isPassed, self.detail) = (name, isPassed, detail)
        }

        package static let shownName = "ReadinessCheck"
        package static let shownMeans = "One thing a send depends on."

        package static let fields = Fields<Self> { fields in
            fields.joined("detail", \.detail, "What is wrong, and what to do.")
            fields.joined("name", \.name, "What.")
            fields.joined("passed", \.isPassed, "Whether it is well.")
        }
    }

    package var checks: [Check]

    package init(checks: [Check]) { self.checks = checks }

    package var isReady: Bool { checks.allSatisfy(\.isPassed) }
    package var status: Int { isReady ? 200 : 503 }

    package static let shownName = "Readiness"
    package static let shownMeans = "Whether a send would be taken now."

    package static let fields = Fields<Self> { fields in
        fields.joined("checks", \.checks, "Each of them.", shape: .list(of: Check.shownShape, countMax: 64))
        fields.joined("ready", "Every check passes.") { $0.isReady }
    }

    package var answer: Answer { Answer(status: status, self) }
}
