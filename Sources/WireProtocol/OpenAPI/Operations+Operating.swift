import CanonicalJSON
import GateVocabulary

extension OpenAPIDocument {
    static let operating: [Operation] = [
        Operation(
            .listKeys, "Keys", "The gateway's own keys and their states",
            answers: [.ok("The keyring.", KeysAnswer.shape, Samples.keys.json)]),
        Operation(
            .promoteKey, "Keys", "Use a key from now on",
            means: "The key that was in use stays valid for what it signed; no send is lost.",
            request: .body(EmptyBody.self, "Nothing"),
            answers: [.ok("In use.", KeyChangedAnswer.shape, Samples.keyChanged.json)],
            problems: [.notFound, .wrongState]),
        Operation(
            .suspendKey, "Keys", "Stop using a key for now",
            request: .body(EmptyBody.self, "Nothing"),
            answers: [.ok("Suspended.", KeyChangedAnswer.shape, Samples.keyChanged.json)],
            problems: [.notFound, .wrongState]),
        Operation(
            .revokeKey, "Keys", "Stop using a key for good",
            means: "Refused at the next decision, not at its expiry.",
            request: .body(KeyRevokeBody.self, "Somebody may know it"),
            answers: [.ok("Revoked.", KeyChangedAnswer.shape, Samples.keyChanged.json)],
            problems: [.notFound, .wrongState]),
        Operation(
            .destroyKey, "Keys", "Destroy what is left of a key",
            means: "Only a deactivated or compromised key can be destroyed. It never comes back.",
            request: .body(EmptyBody.self, "Nothing"),
            answers: [.ok("Destroyed.", KeyChangedAnswer.shape, Samples.keyChanged.json)],
            problems: [.notFound, .wrongState]),
        Operation(
            .activatePolicy, "Policy", "Put the reviewed bundle in force",
            means: "The swap is atomic. A bundle that does not pass its checks leaves the old one in force.",
            request: .body(PolicyActivateBody.self, "A reviewed bundle"),
            answers: [.ok("In force.", PolicyActivatedAnswer.shape, Samples.policyActivated.json)],
            problems: [.policyMismatch, .policyRefused]),
        Operation(
            .getCheckpoint, "Trail", "The newest signed checkpoint",
            means:
                "A C2SP signed note: origin, size and root of the tree. 404 before the first entry is published.",
            answers: [
                Operation.Response(
                    status: 200, means: "The note.", content: .text(example: Samples.checkpoint))
            ],
            problems: [.notFound]),
        Operation(
            .getTile, "Trail", "One file of the tree",
            means: "The C2SP `tlog-tiles` layout. A full tile never changes.",
            answers: [Operation.Response(status: 200, means: "The tile.", content: .bytes)],
            problems: [.notFound, .unavailable]),
        Operation(
            .getHealth, "Operations", "The process answers",
            answers: [.ok("It does.", HealthAnswer.shape, HealthAnswer().json)]),
        Operation(
            .getReadiness, "Operations", "Whether a send would be taken now",
            answers: [
                .ok("It would.", ReadinessAnswer.shape, Samples.readiness.json),
                .ok("It would not, and why.", ReadinessAnswer.shape, Samples.unready.json, status: 503),
            ]),
        Operation(
            .getMetrics, "Operations", "Counters and gauges in the Prometheus text format",
            answers: [
                Operation.Response(
                    status: 200, means: "Metrics. Nothing in them names a person.",
                    content: .text(example: "sendgate_outbox_rows 0\n"))
            ]),
        Operation(
            .getOpenAPI, "Operations", "This document",
            answers: [
                Operation.Response(
                    status: 200, means: "OpenAPI 3.1.",
                    content: .json(.foreign, example: ["openapi": "3.1.0"]))
            ]),
    ]
}
