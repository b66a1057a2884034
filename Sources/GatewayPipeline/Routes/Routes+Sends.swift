import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateSteps
import GateVocabulary
import WireProtocol

extension Route {
    /// `POST /v1/sends`, to which every line of a stream is a request, too.
    static let postSend = Route(
        "postSend", .post, "/v1/sends", tag: "Sends", "Decide one send",
        means:
            "202 when at least one destination will get it: now, later or in a summary. 403 when none will. Both are recorded before the answer is given. The same `id` with the same content is answered the same way again and sent once, for at least 31 days; 400, 401, 422, 429 and 503 bind nothing.",
        grants: [.send], also: [critical], grantIsDecided: true, headers: [traced],
        body: .unread(
            SendRequest.self, "A transaction notice",
            adding: (
                "The least there can be",
                [
                    "id": "n-1", "type": "social.comment", "recipient": ["user": "u_42"],
                    "params": [
                        "commenter_name": "Ana Horvat", "post_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
                    ],
                ]
            )),
        answers: [
            .init(
                status: 202,
                means:
                    "It goes out, or waits for its time; on a listener in shadow, what enforcing would have come to.",
                content: .json(
                    .either([SendAnswer.acceptedShape, SendAnswer.shadowedShape]),
                    example: Samples.forwarded.json())),
            .init(
                status: 403,
                means:
                    "No destination will get it: a decision (`urn:sendgate:reason:…`), recorded; or the caller lacks the grant.",
                content: .refusal(
                    .either([SendAnswer.refusedShape, Problem.shownShape]), example: Samples.refused.json())),
        ],
        problems: [.idConflict, .outboxFull, .sealingFailed]
    ) { .send($0.body) }

    /// Any text: a wrong one is passed over (W3C Trace Context, section 4.3).
    static let traced = Parameter(
        name: "traceparent", place: .header, schema: ["type": "string"],
        means:
            "W3C Trace Context. It goes with the message to the next hop, and into the log where its flag says that the trace is sampled."
    )

    static let streamsLive = Parameter(
        name: "Sendgate-Stream", place: .header, schema: ["enum": ["live"], "type": "string"],
        means: "Answers each line as soon as it is decided.")

    private static let critical = ConditionalGrant(
        .sendCritical,
        when: "when the send asks for `critical`; without it the answer is 403 `critical_not_permitted`")

    static let sends: [Route] = [
        postSend,
        Route(
            "streamSends", .post, "/v1/sends/stream", tag: "Sends", "Decide many sends, one per line",
            means:
                "Each line is a body of `POST /v1/sends` of at most 64 KiB, answered by one line in the same order, as if sent alone, with its `status` inside. With `Content-Length` a batch of at most 10,000 lines and 16 MiB, answered after the body. Chunked with `Sendgate-Stream: live`: full duplex with backpressure, for clients that read while they write.",
            grants: [.send], also: [critical],
            headers: [streamsLive, traced],
            body: .lines(of: SendRequest.shape, example: ("A transaction notice", SendRequest.example)),
            answers: [
                .init(
                    status: 200, means: "One line per line.",
                    content: .lines(
                        .either([
                            SendAnswer.acceptedShape, SendAnswer.shadowedShape, SendAnswer.refusedShape,
                            Problem.shownShape,
                        ])))
            ],
            problems: [.tooManyLines]
        ) { _ in
            // The endpoint makes each line a request; what comes here has none.
            throw Problem(.malformedRequest, detail: "a stream needs a body of lines")
        },
        Route(
            "explainSend", .post, "/v1/sends/explain", tag: "Sends", "Explain a send without sending it",
            means:
                "The decision with every gate and every fact it looked at. No effect: nothing is sent, counted or held. On a stored recipient it is rate-limited and leaves one aggregated entry, and a caller without `subjects.read` is told of its own sends what their answer would say.",
            grants: nil,
            also: [
                ConditionalGrant(
                    .subjectsRead,
                    when:
                        "or `send` when the body names a stored recipient: `send` for the caller's own sends, without gates and facts; with inline `facts` none is needed"
                )
            ],
            query: LocaleQuery.self,
            body: .json(
                ExplainBody.self, "Inside quiet hours, with facts of one's own",
                adding: (
                    "About a stored recipient",
                    [
                        "type": "promo.offer", "recipient": ["user": "u_42"], "caller": "marketing",
                        "params": [
                            "headline": "No fees this week",
                            "offer_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
                        ],
                    ]
                )),
            answers: [.ok("What the gate would decide.", Samples.explanation)],
            problems: [.grantMissing, .notFound, .rateLimited, .trailBehind]
        ) { request in
            .run { gateway, listener, answer in
                gateway.explain(
                    request.body, in: request.query, for: request.caller, request.grants, over: listener,
                    answer: answer)
            }
        },
        Route(
            "acknowledgeEvent", .post, "/v1/sends/acknowledge", tag: "Sends",
            "Say that something need not be told any more",
            means:
                "For a type with `dedupe_by`: what waits to tell this one event is withdrawn, on every channel, and a send that comes later to tell it is refused with `repeated`, `acknowledged`. It is about the caller's own sends, or about those of every caller where the type says `dedupe_scope: type`. Remembered for 31 days, and as good when it comes before the send.",
            grants: CallerAct.acknowledgeEvent.grants,
            body: .json(AcknowledgeBody.self, "A payment that the app knows of"),
            answers: [
                .ok("Nothing will tell it any more.", Samples.acknowledged)
            ],
            problems: [.notFound, .grantMissing, .unknownEvent]
        ) { request in
            .edit(lane: .general, order: .free) { step, now in
                let answer = try step.acknowledge(request.body, by: request.caller, at: now)
                return { Answer(answer($0)) }
            }
        },
        Route(
            "getSend", .get, "/v1/sends/{send_id}", .send, tag: "Sends",
            "The recorded decision and what became of it",
            grants: [.send, .receiptsWrite, .subjectsRead],
            also: [
                ConditionalGrant(
                    .subjectsRead, when: "or `receipts.write`, when another caller made the send")
            ],
            answers: [.ok("The send.", Samples.status)], problems: [.notFound]
        ) { request, id in .read { try $0.sendStatus(id, request.caller, request.grants) } },
        Route(
            "cancelSend", .post, "/v1/sends/{send_id}/cancel", .send, tag: "Sends",
            "Withdraw a send that still waits",
            means: "What was handed over before cannot be called back; the answer says which.",
            grants: CallerAct.cancelSend.grants, body: .empty,
            answers: [.ok("What could still be withdrawn.", Samples.cancelled)],
            problems: [.notFound]
        ) { request, id in
            .edit(lane: .general, order: .free) { step, now in
                let answer = try step.cancel(id, by: request.caller, at: now)
                return { Answer(answer($0)) }
            }
        },
        Route(
            "listTypes", .get, "/v1/types", tag: "Types", "Every notification type", grants: nil,
            answers: [
                .ok("The registry.", TypesAnswer(policy: Samples.policy, types: [Samples.type]))
            ]
        ) { request in
            .answer { gateway in
                let policy = gateway.policy.current
                let types = policy.types.map { TypeAnswer($0, for: request.caller, under: policy) }
                return Answer(TypesAnswer(policy: policy.digest, types: types))
            }
        },
        Route(
            "getType", .get, "/v1/types/{type}", .type, tag: "Types",
            "One notification type, with the schema of its params", grants: nil,
            answers: [.ok("The type.", Samples.type)], problems: [.notFound]
        ) { request, id in
            .answer { gateway in
                let policy = gateway.policy.current
                guard let type = policy.type(id) else {
                    return Problem(.notFound, detail: "the registry has no type of this name").answer
                }
                return Answer(TypeAnswer(type, for: request.caller, under: policy))
            }
        },
        Route(
            "listEvents", .get, "/v1/events", tag: "Sends", "What became of the caller's own sends",
            means: "Ask again with the answer's `next` as `after`.", grants: [.send],
            query: EventsQuery.self,
            answers: [
                .ok("Events.", EventsAnswer(events: [Samples.event], after: 0))
            ]
        ) { request in .read { try $0.events(of: request.caller, request.query) } },
        Route(
            "addReceipt", .post, "/v1/receipts", tag: "Sends", "Report what was observed of a message",
            means:
                "In any order, and late: each stands for itself, and the same one again is answered with the entry of the first and `replayed`. 409 where nothing can have been observed, because the message waits here, was taken back or went into a summary, and beyond \(StepContext.receiptCountMax) of what a person did at one destination, or of the provider's word; the first of each event is always taken.",
            grants: CallerAct.addReceipt.grants, body: .json(ReceiptBody.self, "The person opened it"),
            answers: [.recorded], problems: [.notFound, .wrongState, .eventInFuture]
        ) { request in
            // A receipt `token_gone` deactivates a device, and names no person.
            .record(.change(nil)) { try $0.addReceipt(request.body, by: request.caller, at: $1) }
        },
        Route(
            "addReply", .post, "/v1/replies", tag: "Consents", "Pass on what a recipient answered",
            means:
                "A text or an e-mail that the bundle's revocation words say is a withdrawal ends every consent given for the number or mailbox, and marketing there, and takes what waits on the strength of it out of the outbox, in the same transaction. Anything else changes nothing; no reply gives consent. The answer says what ended: nothing where nobody has registered the number or mailbox. The same `id` is answered the same way again for at least 31 days.",
            grants: CallerAct.addReply.grants,
            body: .json(
                ReplyBody.self, "A text that says stop",
                adding: (
                    "An e-mail that says something else",
                    [
                        "id": "m-1", "channel": "email", "from": "customer@example.org",
                        "text": "When does the branch open?", "received_at": "2026-11-21T05:00:00Z",
                    ]
                )),
            answers: [.ok("Taken.", Samples.reply)],
            problems: [.idConflict]
        ) { request in
            // A reply names an address and no person, and must not wait behind what a flood of sends asks for.
            .edit(lane: .security, order: .change(nil)) { step, now in
                let answer = try step.takeReply(request.body, by: request.caller, at: now)
                return {
                    answer($0).map { Answer($0) }
                        ?? Problem(
                            .unavailable,
                            detail:
                                "so many people have this number or mailbox that their consents end a part at a time; pass the same reply on again"
                        ).answer
                }
            }
        },
    ]
}
