import BundleModel
import CanonicalJSON
import GateSteps
import GateVocabulary
import KeyLifecycle
import WireProtocol

extension Route {
    static let operating: [Route] = [
        Route(
            "listKeys", .get, "/v1/keys", tag: "Keys", "The gateway's own keys and their states",
            grants: [.keysRotate, .trailRead],
            answers: [.ok("The keyring.", Samples.keys)]
        ) { _ in
            .answer {
                Answer(KeysAnswer(keys: $0.dependencies.keys.keyring.keys.map { KeyAnswer($0) }))
            }
        },
        Route(
            "listLaggingRows", .get, "/v1/keys/lagging", tag: "Keys",
            "What is still sealed under an earlier data key",
            means:
                "Counts stored values. The earlier key can be destroyed once none is left.",
            grants: [.keysRotate, .trailRead],
            answers: [.ok("How many are left.", Samples.keyLag)],
            problems: [.unavailable]
        ) { request in
            .run { gateway, _, answer in
                gateway.read(for: request.caller, answer: answer) {
                    try $0.dataKeyLag(gateway.dependencies.keys)
                }
            }
        },
        Route(
            "addKey", .post, "/v1/keys", tag: "Keys", "Make a key, which waits to be promoted",
            means:
                "One waits at a time: a second request is 409 until the first key is promoted or destroyed.",
            grants: CallerAct.changeKey.grants,
            body: .json(KeyAddBody.self, "What it is for"),
            answers: [.ok("It waits.", Samples.keyAdded)],
            problems: [.wrongState]
        ) { request in .run { $0.addKey(request.body, for: request.caller, answer: $2) } },
        Route(
            "promoteKey", .post, "/v1/keys/{key}/promote", .key, tag: "Keys", "Use a key from now on",
            means:
                "The key that was in use stays valid for what it signed; no send is lost. A root key needs two callers: the first is answered 202, another asks for the same within the hour.",
            grants: CallerAct.changeKey.grants, body: .optional(KeyChangeBody.self, "A dry run"),
            answers: [
                .ok("In use.", Samples.keyChanged),
                .ok("Proposed; another caller must ask too.", Samples.keyProposed, status: 202),
            ],
            problems: [.notFound, .wrongState]
        ) { changeKey($1, .promote, isDryRun: $0.body.isDryRun, by: $0.caller) },
        Route(
            "suspendKey", .post, "/v1/keys/{key}/suspend", .key, tag: "Keys", "Stop using a key for now",
            means: "It reads on and protects nothing new. Nothing is sealed while no origin key is in use.",
            grants: CallerAct.changeKey.grants, body: .optional(KeyChangeBody.self, "A dry run"),
            answers: [.ok("Suspended.", Samples.keyChanged)],
            problems: [.notFound, .wrongState]
        ) { changeKey($1, .suspend, isDryRun: $0.body.isDryRun, by: $0.caller) },
        Route(
            "resumeKey", .post, "/v1/keys/{key}/resume", .key, tag: "Keys", "Use a suspended key again",
            grants: CallerAct.changeKey.grants, body: .optional(KeyChangeBody.self, "A dry run"),
            answers: [.ok("In use.", Samples.keyChanged)],
            problems: [.notFound, .wrongState]
        ) { changeKey($1, .resume, isDryRun: $0.body.isDryRun, by: $0.caller) },
        Route(
            "revokeKey", .post, "/v1/keys/{key}/revoke", .key, tag: "Keys", "Stop using a key for good",
            means: "Refused at the next decision, not at its expiry.", grants: CallerAct.changeKey.grants,
            body: .json(KeyRevokeBody.self, "Somebody may know it"),
            answers: [.ok("Revoked.", Samples.keyChanged)],
            problems: [.notFound, .wrongState]
        ) { request, key in
            let cause = KeyCause(request.body.cause)
            return changeKey(
                key, cause.ending, because: cause, isDryRun: request.body.isDryRun, by: request.caller)
        },
        Route(
            "destroyKey", .post, "/v1/keys/{key}/destroy", .key, tag: "Keys",
            "Destroy what is left of a key",
            means:
                "A key in use cannot be destroyed. It never comes back. It needs two callers, for a device's key too: the first is answered 202, another asks for the same within the hour.",
            grants: CallerAct.changeKey.grants, body: .optional(KeyChangeBody.self, "A dry run"),
            answers: [
                .ok("Destroyed.", Samples.keyChanged),
                .ok("Proposed; another caller must ask too.", Samples.keyProposed, status: 202),
            ],
            problems: [.notFound, .wrongState]
        ) { changeKey($1, .destroy, isDryRun: $0.body.isDryRun, by: $0.caller) },
        Route(
            "revokeDeviceKeys", .post, "/v1/device-keys/revoke", tag: "Keys",
            "Stop using many device keys, a piece at a time",
            means:
                "Looks at the next \(DeviceKeySelection.pieceCount) device keys of everybody, or at those of one `recipient`, and revokes those that were registered before a moment, of one app or of one suite. Asked again with `next` until the answer has none; asked from the beginning it finds what is left, so an interrupted revocation is simply begun again. Messages that wait for a revoked key are decided again at once.",
            grants: CallerAct.changeKey.grants, body: .json(DeviceKeysRevokeBody.self, "Keys of one app"),
            answers: [.ok("One piece.", Samples.deviceKeysRevoked)],
            problems: [.eventInFuture, .unavailable]
        ) { request in .run { $0.revokeDeviceKeys(request.body, for: request.caller, answer: $2) } },
        Route(
            "getKeyset", .get, "/v1/keyset", tag: "Keys", "Which public keys are genuine",
            means:
                "A C2SP signed note by the offline authority, which apps and auditors pin: the origin, trail and policy keys with their states, a version that only rises, and an expiry. 404 before the first is in force.",
            grants: nil,
            answers: [.init(status: 200, means: "The note.", content: .text(example: Samples.keyset))],
            problems: [.notFound]
        ) { _ in .read { try $0.keyset() } },
        Route(
            "putKeyset", .put, "/v1/keyset", tag: "Keys", "Put a signed list of genuine keys in force",
            means:
                "Two callers must bring the same note: the first is answered 202, another puts it in force within the hour. Refused unless a pinned authority signed it for this gateway, its version is above the one in force, it has not expired, and every origin and trail key in use is in it as genuine.",
            grants: CallerAct.putKeyset.grants, body: .json(KeysetBody.self, "A signed note"),
            answers: [
                .ok("In force.", Samples.keysetInForce),
                .ok("Proposed; another caller must bring it too.", Samples.keysetProposed, status: 202),
            ],
            problems: [.wrongState]
        ) { request in .run { $0.adoptKeyset(request.body, for: request.caller, answer: $2) } },
        Route(
            "runDrift", .post, "/v1/drift", tag: "Drift", "Begin a drift audit over all recipients",
            means:
                "Compares preferences, the provider's subscriptions, the operating system's permission, receipts, time zones, entitlements and tokens, at a bounded rate, beside everything else. A run that is under way is answered instead of another one begun.",
            grants: CallerAct.runDrift.grants,
            body: .json(DriftRunBody.self, "Only count", adding: ("Record and repair", [:])),
            answers: [
                .ok("How it stands.", Samples.driftRunUnderWay, status: 202)
            ], problems: [.wrongState]
        ) { request in
            .edit(lane: .general, order: .free) { step, now in
                let run = try step.startDriftRun(
                    by: request.caller, isDryRun: request.body.isDryRun, at: now)
                return { _ in Answer(status: 202, DriftRunAnswer(run)) }
            }
        },
        Route(
            "getDrift", .get, "/v1/drift", tag: "Drift", "How the newest drift audit stands",
            means: "Counts only: nothing in it names a person. 404 before the first.",
            grants: [.driftRun, .metricsRead],
            answers: [.ok("How it stands.", Samples.driftRun)],
            problems: [.notFound]
        ) { _ in .read { try $0.driftRun() } },
        Route(
            "listDrifts", .get, "/v1/drift/findings", tag: "Drift", "What the newest audits found",
            means:
                "Goes over the recipients a page at a time. A finding with the action `repaired` about a subscription is an order: whoever speaks to the provider carries it out, and reports the provider's state afterwards.",
            grants: [.subjectsRead], query: DriftFindingsQuery.self,
            answers: [.ok("Findings.", Samples.driftFindings)]
        ) { request in .read { try $0.driftFindings(request.query) } },
        Route(
            "activatePolicy", .post, "/v1/policy/activate", tag: "Policy", "Put the reviewed bundle in force",
            means: "The swap is atomic. A bundle that does not pass its checks leaves the old one in force.",
            grants: CallerAct.activatePolicy.grants,
            body: .json(PolicyActivateBody.self, "A reviewed bundle"),
            answers: [.ok("In force.", Samples.policyActivated)],
            problems: [.policyMismatch, .policyRefused]
        ) { request in .run { $0.activate(request.body, for: request.caller, answer: $2) } },
        Route(
            "getCheckpoint", .get, "/v1/trail/checkpoint", tag: "Trail", "The newest signed checkpoint",
            means:
                "A C2SP signed note: origin, size and root of the tree. 404 before the first entry is published.",
            grants: [.trailRead],
            answers: [
                .init(status: 200, means: "The note.", content: .text(example: Samples.checkpoint))
            ],
            problems: [.notFound]
        ) { _ in .file(path: "checkpoint", mediaType: MediaType.text) },
        Route(
            "getTile", .get, "/v1/trail/tile/{tile}", .tile, tag: "Trail", "One file of the tree",
            means: "The C2SP `tlog-tiles` layout. A full tile never changes.", grants: [.trailRead],
            answers: [.init(status: 200, means: "The tile.", content: .bytes)],
            problems: [.notFound, .unavailable]
        ) { .file(path: "tile/\($1)", mediaType: MediaType.bytes) },
        Route(
            open: "getHealth", "/healthz", tag: "Operations", "The process answers",
            answers: [.ok("It does.", HealthAnswer())],
            action: .answer { Answer(HealthAnswer()) }),
        Route(
            open: "getReadiness", "/readyz", tag: "Operations", "Whether a send would be taken now",
            answers: [
                .ok("It would.", Samples.readiness),
                .ok("It would not, and why.", Samples.unready, status: 503),
            ], action: .readiness),
        Route(
            "getMetrics", .get, "/metrics", tag: "Operations",
            "Counters and gauges in the Prometheus text format", grants: [.metricsRead],
            answers: [
                .init(
                    status: 200, means: "Metrics. Nothing in them names a person.",
                    content: .text(example: "sendgate_outbox_rows 0\n"))
            ]
        ) { _ in
            .answer { gateway in
                Answer(
                    status: 200, contentType: MediaType.text,
                    body: Array(gateway.management.metrics(of: gateway).utf8))
            }
        },
        Route(
            open: "getOpenAPI", "/openapi.json", tag: "Operations", "This document",
            answers: [
                .init(
                    status: 200, means: "OpenAPI 3.1.",
                    content: .json(.foreign, example: ["openapi": "3.1.0"]))
            ],
            action: .answer {
                Answer(status: 200, contentType: MediaType.json, body: openAPIBytes)
            }),
    ]

    private static func changeKey(
        _ key: String, _ event: KeyEvent, because cause: KeyCause = .request, isDryRun: Bool,
        by caller: CallerName
    ) -> RouteAction {
        let order = KeyChangeOrder(key: key, event: event, cause: cause, isDryRun: isDryRun)
        return .run { $0.changeKey(order, for: caller, answer: $2) }
    }
}

extension KeyCause {
    init(_ cause: KeyRevokeBody.Cause) {
        self.init(rawValue: cause.rawValue)!
    }
}

extension Route {
    /// Every route of the gateway. The commonest stands first: matching goes along the list.
    static let all: [Route] = sends + recipients + choices + operating
    static let table = RouteTable(all.map(\.description))

    /// The reference of the socket, as `GET /openapi.json` serves it: canonical JSON, the same on every machine.
    static let openAPI: JSONObject = OpenAPIDocument.json(of: all.map(\.description))
    static let openAPIBytes: [UInt8] = CanonicalJSON.write(openAPI)
}
