import CanonicalJSON
import GateVocabulary

extension OpenAPIDocument {
    static let sends: [Operation] = [
        Operation(
            .postSend, "Sends", "Decide one send",
            means:
                "202 when at least one destination will get it: now, later or in a summary. 403 when none will. Both are recorded before the answer is given. The same `id` with the same content is answered the same way again and sent once, for at least 31 days; 400, 401, 422, 429 and 503 bind nothing.",
            request: .body(SendRequest.self, "A transaction notice")
                .adding(
                    "The least there can be",
                    ["id": "n-1", "type": "social.comment", "recipient": ["user": "u_42"]]),
            answers: [
                .ok(
                    "It goes out, or waits for its time.", SendAnswer.acceptedShape, Samples.forwarded.json(),
                    status: 202),
                Operation.Response(
                    status: 403,
                    means:
                        "No destination will get it: a decision (`urn:sendgate:reason:…`), recorded; or the caller lacks the grant.",
                    content: .refusal(
                        .either([SendAnswer.refusedShape, Problem.shape]), example: Samples.refused.json())),
            ],
            problems: [.idConflict, .outboxFull, .sealingFailed]),
        Operation(
            .streamSends, "Sends", "Decide many sends, one per line",
            means:
                "Each line is a body of `POST /v1/sends` of at most 64 KiB, answered by one line in the same order, as if sent alone, with its `status` inside. With `Content-Length` a batch of at most 10,000 lines and 16 MiB, answered after the body. Chunked with `Sendgate-Stream: live`: full duplex with backpressure, for clients that read while they write.",
            request: Operation.Request(
                shape: SendRequest.shape, examples: [("A transaction notice", SendRequest.example)]),
            query: [
                Parameter(
                    name: "Sendgate-Stream", place: "header", schema: ["enum": ["live"], "type": "string"],
                    means: "Answers each line as soon as it is decided.")
            ],
            answers: [
                Operation.Response(
                    status: 200, means: "One line per line.",
                    content: .lines(
                        .either([SendAnswer.acceptedShape, SendAnswer.refusedShape, Problem.shape])))
            ],
            problems: [.tooManyLines]),
        Operation(
            .explainSend, "Sends", "Explain a send without sending it",
            means:
                "The decision with every gate and every fact it looked at. No effect: nothing is sent, counted or held. On a stored recipient it is rate-limited and leaves one aggregated entry.",
            request: .body(ExplainBody.self, "Inside quiet hours, with facts of one's own")
                .adding(
                    "About a stored recipient",
                    [
                        "type": "promo.offer", "recipient": ["user": "u_42"], "caller": "marketing",
                        "params": [
                            "headline": "No fees this week",
                            "offer_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
                        ],
                    ]),
            answers: [.ok("What the gate would decide.", ExplainAnswer.shape, Samples.explanation.json)],
            problems: [.grantMissing, .notFound, .rateLimited, .trailBehind]),
        Operation(
            .acknowledgeEvent, "Sends", "Say that something need not be told any more",
            means:
                "For a type with `dedupe_by`: what waits to tell this one event is withdrawn, on every channel, and a send that comes later to tell it is refused with `repeated`, `acknowledged`. It is about the caller's own sends, or about those of every caller where the type says `dedupe_scope: type`. Remembered for 31 days, and as good when it comes before the send.",
            request: .body(AcknowledgeBody.self, "A payment that the app knows of"),
            answers: [
                .ok("Nothing will tell it any more.", AcknowledgeAnswer.shape, Samples.acknowledged.json)
            ],
            problems: [.notFound, .grantMissing, .unknownEvent]),
        Operation(
            .getSend, "Sends", "The recorded decision and what became of it",
            answers: [.ok("The send.", SendStatusAnswer.shape, Samples.status.json)],
            problems: [.notFound]),
        Operation(
            .cancelSend, "Sends", "Withdraw a send that still waits",
            means: "What was handed over before cannot be called back; the answer says which.",
            request: .body(EmptyBody.self, "Nothing"),
            answers: [.ok("What could still be withdrawn.", CancelAnswer.shape, Samples.cancelled.json)],
            problems: [.notFound]),
        Operation(
            .listTypes, "Types", "Every notification type",
            answers: [
                .ok(
                    "The registry.", TypesAnswer.shape,
                    TypesAnswer(policy: Samples.policy, types: [Samples.type]).json)
            ]),
        Operation(
            .getType, "Types", "One notification type, with the schema of its params",
            answers: [.ok("The type.", TypeAnswer.shape, Samples.type.json)], problems: [.notFound]),
        Operation(
            .listEvents, "Sends", "What became of the caller's own sends",
            means: "Ask again with the answer's `next` as `after`.",
            query: [
                .query("after", .count, default: 0, "The newest cursor already seen."),
                .query(
                    "limit", .integer(1...WireLimits.eventCountMax),
                    default: .integer(WireLimits.eventCountDefault), "At most so many."),
            ],
            answers: [
                .ok("Events.", EventsAnswer.shape, EventsAnswer(events: [Samples.event], after: 0).json)
            ]),
        Operation(
            .addReceipt, "Sends", "Report what was observed of a message",
            request: .body(ReceiptBody.self, "The person opened it"),
            answers: [.recorded], problems: [.notFound]),
    ]
}
