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
            answers: [.ok("The keyring.", KeysAnswer.shape, Samples.keys.json)]
        ) { _ in .answer { Answer(json: KeysAnswer(keys: $0.operations.gateKeys()).json) } },
        Route(
            "promoteKey", .post, "/v1/keys/{key}/promote", .key, tag: "Keys", "Use a key from now on",
            means: "The key that was in use stays valid for what it signed; no send is lost.",
            grants: [.keysRotate], body: .empty,
            answers: [.ok("In use.", KeyChangedAnswer.shape, Samples.keyChanged.json)],
            problems: [.notFound, .wrongState]
        ) { try changeKey($1, .promote, by: $0.caller) },
        Route(
            "suspendKey", .post, "/v1/keys/{key}/suspend", .key, tag: "Keys", "Stop using a key for now",
            grants: [.keysRotate], body: .empty,
            answers: [.ok("Suspended.", KeyChangedAnswer.shape, Samples.keyChanged.json)],
            problems: [.notFound, .wrongState]
        ) { try changeKey($1, .suspend, by: $0.caller) },
        Route(
            "revokeKey", .post, "/v1/keys/{key}/revoke", .key, tag: "Keys", "Stop using a key for good",
            means: "Refused at the next decision, not at its expiry.", grants: [.keysRotate],
            body: .json(KeyRevokeBody.self, "Somebody may know it"),
            answers: [.ok("Revoked.", KeyChangedAnswer.shape, Samples.keyChanged.json)],
            problems: [.notFound, .wrongState]
        ) { request, key in
            try changeKey(
                key, request.body.cause == .compromised ? .revoke : .deactivate, by: request.caller)
        },
        Route(
            "destroyKey", .post, "/v1/keys/{key}/destroy", .key, tag: "Keys",
            "Destroy what is left of a key",
            means: "Only a deactivated or compromised key can be destroyed. It never comes back.",
            grants: [.keysRotate], body: .empty,
            answers: [.ok("Destroyed.", KeyChangedAnswer.shape, Samples.keyChanged.json)],
            problems: [.notFound, .wrongState]
        ) { try changeKey($1, .destroy, by: $0.caller) },
        Route(
            "activatePolicy", .post, "/v1/policy/activate", tag: "Policy", "Put the reviewed bundle in force",
            means: "The swap is atomic. A bundle that does not pass its checks leaves the old one in force.",
            grants: [.policyActivate], body: .json(PolicyActivateBody.self, "A reviewed bundle"),
            answers: [.ok("In force.", PolicyActivatedAnswer.shape, Samples.policyActivated.json)],
            problems: [.policyMismatch, .policyRefused]
        ) { .activate($0.body) },
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
            answers: [.ok("It does.", HealthAnswer.shape, HealthAnswer().json)],
            action: .answer { Answer(json: HealthAnswer().json) }),
        Route(
            open: "getReadiness", "/readyz", tag: "Operations", "Whether a send would be taken now",
            answers: [
                .ok("It would.", ReadinessAnswer.shape, Samples.readiness.json),
                .ok("It would not, and why.", ReadinessAnswer.shape, Samples.unready.json, status: 503),
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
                    body: Array(gateway.operations.metrics(of: gateway).utf8))
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

    /// - Throws: A problem for a key that is no device's.
    private static func changeKey(_ key: String, _ event: KeyEvent, by caller: CallerName) throws
        -> RouteAction
    {
        guard let id = KeyID(hexadecimal: key) else {
            throw Problem(
                .notFound,
                detail:
                    "no device key `\(key)`; the gateway's own keys change with `sendgate keys` and a restart"
            )
        }
        return .edit(lane: .security, order: .change(nil)) { step, now in
            let answer = try step.changeDeviceKey(id, event, by: caller, at: now)
            return { Answer(json: answer($0).json) }
        }
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
