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
    package var key: String
    package var state: String
    package var trail: TrailReference

    package init(key: String, state: String, trail: TrailReference) {
        self.key = key
        self.state = state
        self.trail = trail
    }

    package var json: JSONObject {
        ["key": .string(key), "state": .string(state), "trail": .object(trail.json)]
    }

    package static let shape = Shape.answer(
        "KeyChanged", "The key's state now; the next decision follows it.",
        [
            .required("key", .anyText, "Its id."), .required("state", .anyText, "Its state."),
            .required("trail", TrailReference.shape, "The evidence."),
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
