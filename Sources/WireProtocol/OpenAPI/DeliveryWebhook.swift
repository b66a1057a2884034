import CanonicalJSON

/// What the gateway asks of the delivery layer, as OpenAPI describes requests that go the other way (OpenAPI 3.1, `webhooks`): the
/// contract of the page `DeliveryLayer`, version 2.
enum DeliveryWebhook {
    static let document: JSONObject = [
        "delivery": [
            "post": [
                "operationId": "deliver",
                "summary": "Hand one message over",
                "description":
                    "`POST /v1/deliveries` on the delivery layer's own Unix socket, one message at a time on each connection. It answers when the provider has answered, and within the time of `hand_over_by`. An answer that is not below never ends a message: everything waits until the configuration is mended.",
                "requestBody": [
                    "required": true, "content": ["application/json": ["schema": .object(request)]],
                ],
                "responses": .object(responses),
            ]
        ]
    ]

    private static let request: JSONObject = object(
        required: [
            ("message_id", text("The same on every try of the message.", format: "uuid")),
            ("send_id", text("Its send, as receipts name it.", format: "uuid")),
            ("destination", text("The destination as its owner calls it.")),
            ("channel", name("What it goes by.", ["push", "sms", "email"])),
            ("token", text("The push token, the number in E.164 or the mailbox.")),
            (
                "headers",
                [
                    "type": "object", "additionalProperties": ["type": "string"],
                    "description": "Header fields for the provider.",
                ]
            ),
            ("body", ["type": "object", "description": "The provider's body, or `subject` and `text`."]),
            ("expires_at", text("Nothing may be written to a provider after it.", format: "date-time")),
        ],
        optional: [
            ("platform", name("Of a push.", ["ios", "android"])),
            ("app", text("Of a push: the app, as `channels.yaml` names it.")),
            (
                "hand_over_by",
                .object(
                    object(
                        required: [
                            ("boot_id", text("As in `/proc/sys/kernel/random/boot_id`.")),
                            (
                                "uptime_ms",
                                [
                                    "type": "integer", "minimum": 0,
                                    "description": "Milliseconds of `CLOCK_BOOTTIME`.",
                                ]
                            ),
                        ], optional: []))
            ),
        ])

    private static let responses: JSONObject = [
        "200": answer(
            "The provider took it. Any 2xx without a body: it was taken, and nothing more is known.",
            accepted),
        "409": [
            "description":
                "It was taken, or ended, on an earlier try, and this was the answer. Without a body: it was taken, and nothing more is known.",
            "content": ["application/json": ["schema": ["oneOf": .array([accepted] + ended)]]],
        ],
        "422": [
            "description":
                "The token leads nowhere any more, or the message can never go (400 and 413, too).",
            "content": ["application/json": ["schema": ["oneOf": .array(ended)]]],
        ],
        "503": answer(
            "Not now (429, too): not before `Retry-After`, in seconds.",
            outcome(
                "later", required: [("reason", reason)],
                optional: [("scope", name("Whom that is about.", ["message", "app"]))])),
        "504": answer(
            "It was written to the provider, whose answer is lost.",
            outcome(
                "ambiguous", required: [("reason", reason)],
                optional: [
                    ("retry", ["type": "boolean", "description": "Whether a second copy is harmless."])
                ])),
    ]

    private static let accepted = outcome(
        "accepted", optional: [("provider_id", text("What the provider calls it."))])

    /// The bodies that end a message.
    private static let ended = [
        outcome(
            "token_gone", required: [("reason", reason)],
            optional: [("at", text("Since when, as the provider says.", format: "date-time"))]),
        outcome("failed", required: [("reason", reason)]),
    ]

    private typealias Member = (String, JSONValue)

    private static let reason: JSONValue = [
        "type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$", "description": "The provider's own word.",
    ]

    private static func text(_ means: String, format: String? = nil) -> JSONValue {
        var schema: JSONObject = ["type": "string", "description": .string(means)]
        schema["format"] = format.map(JSONValue.string)
        return .object(schema)
    }

    private static func name(_ means: String, _ names: [String]) -> JSONValue {
        ["type": "string", "enum": .array(names.map(JSONValue.string)), "description": .string(means)]
    }

    private static func object(required: [Member], optional: [Member]) -> JSONObject {
        [
            "type": "object", "required": .array(required.map { .string($0.0) }),
            "properties": .object(JSONObject(required + optional)),
        ]
    }

    private static func outcome(
        _ name: String, required: [Member] = [], optional: [Member] = []
    ) -> JSONValue {
        .object(object(required: [("outcome", ["const": .string(name)])] + required, optional: optional))
    }

    private static func answer(_ means: String, _ body: JSONValue) -> JSONValue {
        ["description": .string(means), "content": ["application/json": ["schema": body]]]
    }
}
