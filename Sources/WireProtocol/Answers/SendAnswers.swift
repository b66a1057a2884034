package import CanonicalJSON
package import GateVocabulary

/// The plain answer to something recorded: where in the trail it stands.
package struct RecordedAnswer: Hashable, Sendable {
    package var trail: TrailReference
    /// The same was recorded before; nothing was recorded again.
    package var isReplayed: Bool
    /// Why what was recorded changes no consent and no preference; `nil` where it does, or is about something else.
    package var noEffect: NoEffect?

    package init(trail: TrailReference, isReplayed: Bool = false, noEffect: NoEffect? = nil) {
        self.trail = trail
        self.isReplayed = isReplayed
        self.noEffect = noEffect
    }

    package var json: JSONObject {
        JSONObject(present: [
            "trail": .object(trail.json), "replayed": isReplayed ? true : nil,
            "effect": noEffect.map { _ in "none" }, "why": noEffect.map { .string($0.rawValue) },
        ])
    }

    package static let shape = Shape.answer(
        "Recorded", "Done, durably, and recorded.",
        [
            .required("trail", TrailReference.shape, "The evidence."),
            .optional("replayed", .boolean, "True when the same was recorded before."),
            .optional(
                "effect", .choice(["none"]), "Present when no consent and no preference is other than before."
            ),
            .optional("why", .choice(of: NoEffect.self), "Why there is no effect; present with `effect`."),
        ])
}

/// Why a consent, a withdrawal or a choice that was recorded changes nothing.
package enum NoEffect: String, CaseIterable, Sendable, Hashable {
    case recordedBefore = "recorded_before"
    case shownOnly = "shown_only"
    case alreadySo = "already_so"
    case newerWord = "newer_word"
}

extension NoEffect: DescribedChoice {
    static var means: String {
        """
        - `recorded_before`: the same record, repeated
        - `shown_only`: the notice was shown and nothing was said
        - `already_so`: what it says held before
        - `newer_word`: something the person said later stands
        """
    }
}

/// Something that became of a send.
package struct SendEvent: Hashable, Sendable {
    /// Rising per caller; `after=` takes the newest one seen.
    package var cursor: Int64
    package var send: SendID
    package var event: SendEventKind
    package var destination: String?
    package var at: Instant
    package var reason: String?

    package init(
        cursor: Int64, send: SendID, event: SendEventKind, destination: String?, at: Instant, reason: String?
    ) {
        self.cursor = cursor
        self.send = send
        self.event = event
        self.destination = destination
        self.at = at
        self.reason = reason
    }

    package var json: JSONObject {
        JSONObject(present: [
            "cursor": .integer(cursor), "send_id": .string(send.uuidText), "event": .string(event.rawValue),
            "destination": destination.map { .string($0) }, "at": .string(at.rfc3339),
            "reason": reason.map { .string($0) },
        ])
    }

    package static let shape = Shape.answer(
        "SendEvent", "Something that became of a send. There is no \"delivered\": only what was observed.",
        [
            .required("cursor", .count, "Rising; give the newest as `after`."),
            .required("send_id", .uuid, "The send."),
            .required("event", .choice(of: SendEventKind.self), "What became of it."),
            .optional("destination", .anyText, "The device or address."),
            .required("at", .anyText, "RFC 3339."),
            .optional(
                "reason", .anyText,
                """
                Of a withdrawal, why; of a summary, its `send_id`; of a notice that reached nobody, the way it must \
                go; of a failure, the provider's word; of what the recipient did, the app's.
                """),
        ])
}

/// `GET /v1/events`
package struct EventsAnswer: Hashable, Sendable {
    /// Oldest first.
    package var events: [SendEvent]
    /// What to give as `after` next: the newest cursor here, or the one asked with.
    package var next: Int64

    package init(events: [SendEvent], after: Int64) {
        self.events = events
        next = events.last?.cursor ?? after
    }

    package var json: JSONObject {
        ["events": .array(events.map { .object($0.json) }), "next": .integer(next)]
    }

    package static let shape = Shape.answer(
        "Events", "Outcomes of the caller's own sends since a cursor, oldest first.",
        [
            .required(
                "events", .list(of: SendEvent.shape, countMax: Int(WireLimits.eventCountMax)), "Oldest first."
            ),
            .required("next", .count, "What to give as `after` next."),
        ])
}

/// `GET /v1/sends/{send_id}`: the recorded decision and what became of it.
package struct SendStatusAnswer: Hashable, Sendable {
    /// The recorded answer, as the producer got it.
    package var decision: SendAnswer
    package var type: TypeID
    package var channel: Channel
    package var receivedAt: Instant
    /// Destinations whose message still waits here.
    package var waiting: [String]
    /// Oldest first.
    package var events: [SendEvent]

    package init(
        decision: SendAnswer, type: TypeID, channel: Channel, receivedAt: Instant, waiting: [String],
        events: [SendEvent]
    ) {
        self.decision = decision
        self.type = type
        self.channel = channel
        self.receivedAt = receivedAt
        self.waiting = waiting
        self.events = events
    }

    package var json: JSONObject {
        var object = JSONObject(present: [
            "id": .string(decision.id.text), "send_id": .string(decision.sendID.uuidText),
            "type": .string(type.text), "channel": .string(channel.rawValue),
            "received_at": .string(receivedAt.rfc3339),
            "outcome": .string(decision.outcome.name), "reason": .string(decision.reason.rawValue),
            "detail": decision.detail.map { .string($0.rawValue) },
            "who_can_fix": .string(decision.reason.whoCanFix(decision.detail).rawValue),
            "policy": .string(decision.policy.text), "trail": .object(decision.trail.json),
        ])
        object["deliveries"] = .array(decision.deliveries.map { .object($0.json) })
        object["waiting"] = .array(waiting.map { .string($0) })
        object["events"] = .array(events.map { .object($0.json) })
        return object
    }

    package static let shape = Shape.answer(
        "SendStatus", "The recorded decision and what became of it.",
        [
            .required("id", .anyText, "The caller's id."),
            .required("send_id", .uuid, "The gateway's id."),
            .required("type", .anyText, "The type."),
            .required("channel", .choice(of: Channel.self), "The channel."),
            .required("received_at", .anyText, "RFC 3339."),
            .required(
                "outcome", .choice(Outcome.allCases.map(\.name)), "The best of the deliveries, as decided."),
            .required("reason", .choice(of: Reason.self), "Why."),
            .optional("detail", .choice(of: Detail.self), "What exactly was missing."),
            .required("who_can_fix", .choice(of: WhoCanFix.self), "Who can make the next attempt succeed."),
            .required("policy", .sha256, "Digest of the bundle that decided."),
            .required("trail", TrailReference.shape, "The evidence."),
            .required(
                "deliveries", .list(of: SendAnswer.Delivery.shape, countMax: WireLimits.destinationCountMax),
                "As decided."),
            .required(
                "waiting", .list(of: .anyText, countMax: WireLimits.destinationCountMax),
                "Destinations whose message still waits here."),
            .required("events", .all(SendEvent.shape), "What became of it, oldest first."),
        ])
}

/// `POST /v1/sends/{send_id}/cancel`
package struct CancelAnswer: Hashable, Sendable {
    package var sendID: SendID
    /// Destinations whose message was still here and is withdrawn.
    package var withdrawn: [String]
    /// Destinations whose message was handed over before; nothing can call it back.
    package var gone: [String]
    package var trail: TrailReference

    package init(sendID: SendID, withdrawn: [String], gone: [String], trail: TrailReference) {
        self.sendID = sendID
        self.withdrawn = withdrawn
        self.gone = gone
        self.trail = trail
    }

    package var json: JSONObject {
        [
            "gone": .array(gone.map { .string($0) }), "send_id": .string(sendID.uuidText),
            "trail": .object(trail.json), "withdrawn": .array(withdrawn.map { .string($0) }),
        ]
    }

    package static let shape = Shape.answer(
        "Cancelled", "What could still be withdrawn, and what could not.",
        [
            .required("send_id", .uuid, "The send."),
            .required(
                "withdrawn", .list(of: .anyText, countMax: WireLimits.destinationCountMax),
                "Withdrawn before hand-over."),
            .required(
                "gone", .list(of: .anyText, countMax: WireLimits.destinationCountMax),
                "Handed over before; nothing calls these back."),
            .required("trail", TrailReference.shape, "The evidence."),
        ])
}

/// `POST /v1/replies`: follows from what came from the address, so that nobody learns from it whose the address is.
package struct ReplyAnswer: Hashable, Sendable {
    package enum NoEffect: String, CaseIterable, Sendable, Hashable {
        case notAWithdrawal = "not_a_withdrawal"
    }

    package var trail: TrailReference
    /// `nil` where consent is withdrawn.
    package var noEffect: NoEffect?
    /// What to send back to the number; `nil` where nothing is to be sent.
    package var confirmation: Confirmation?
    package var isReplayed: Bool

    /// The one text that confirms a withdrawal (47 CFR 64.1200(a)(12)).
    package struct Confirmation: Hashable, Sendable {
        /// The locale of the word that was said.
        package var language: String
        package var text: String
        /// When it is too late to send it.
        package var until: Instant

        package init(language: String, text: String, until: Instant) {
            self.language = language
            self.text = text
            self.until = until
        }

        var json: JSONObject {
            ["language": .string(language), "text": .string(text), "until": .string(until.rfc3339)]
        }

        static let shape = Shape.answer(
            "ReplyConfirmation", "The one text that confirms a withdrawal.",
            [
                .required("language", .anyText, "The language of the word that was said."),
                .required("text", .anyText, "The text, whole; nothing is added to it."),
                .required("until", .instant, "It is not sent later than this."),
            ])
    }

    package init(
        trail: TrailReference, noEffect: NoEffect?, confirmation: Confirmation? = nil,
        isReplayed: Bool = false
    ) {
        self.trail = trail
        self.noEffect = noEffect
        self.confirmation = confirmation
        self.isReplayed = isReplayed
    }

    package var json: JSONObject {
        JSONObject(present: [
            "trail": .object(trail.json), "replayed": isReplayed ? true : nil,
            "effect": noEffect == nil ? "withdrawn" : "none",
            "why": noEffect.map { .string($0.rawValue) },
            "confirmation": confirmation.map { .object($0.json) },
        ])
    }

    package static let shape = Shape.answer(
        "ReplyTaken", "Taken, durably, and recorded.",
        [
            .required(
                "effect", .choice(["withdrawn", "none"]),
                "`withdrawn`: whoever has the address is written to on the strength of no earlier consent. The same whether anybody has it."
            ),
            .optional(
                "why", .choice(["not_a_withdrawal"]),
                "Why there is no effect: the text begins with none of the bundle's words. START is one of those; consent is given on the consent route alone."
            ),
            .optional(
                "confirmation", Confirmation.shape,
                "What to text back, once: a withdrawal by text that came in time, of a number that was sent none in the day before."
            ),
            .optional("replayed", .boolean, "True when a reply of this id was taken before."),
            .required("trail", TrailReference.shape, "The evidence."),
        ])
}

/// `POST /v1/sends/acknowledge`
package struct AcknowledgeAnswer: Hashable, Sendable {
    /// Sends that waited to tell it and are withdrawn.
    package var withdrawn: [SendID]
    package var trail: TrailReference

    package init(withdrawn: [SendID], trail: TrailReference) {
        self.withdrawn = withdrawn
        self.trail = trail
    }

    package var json: JSONObject {
        [
            "trail": .object(trail.json),
            "withdrawn": .array(withdrawn.map { .string($0.uuidText) }),
        ]
    }

    package static let shape = Shape.answer(
        "Acknowledged", "Nothing will tell it any more.",
        [
            .required(
                "withdrawn", .list(of: .uuid, countMax: Channel.allCases.count),
                "Sends that waited to tell it and are withdrawn."),
            .required("trail", TrailReference.shape, "The evidence."),
        ])
}

/// `GET /v1/types/{type}`: what a producer reads before its first send.
package struct TypeAnswer: Hashable, Sendable {
    package var type: TypeID
    package var means: String
    package var category: Category
    package var tier: Tier
    package var sensitivity: Sensitivity
    package var isEnabled: Bool
    /// What to do instead, for a disabled type.
    package var disabledHint: String?
    package var isMandatory: Bool
    /// Of a mandatory type: by which the duty is done.
    package var dischargedBy: [DischargeMeans]
    /// Whether the type is on the critical allow-list.
    package var isCriticalAllowed: Bool
    /// Whether the caller that asks may send it.
    package var isPermitted: Bool
    /// Form of the body per channel; a channel that is absent does not carry the type.
    package var channels: [Channel: BodyForm]
    /// The special consent purpose it needs beside its category's.
    package var purpose: Purpose?
    package var ttlSeconds: Int64
    /// Below which a send's own `deep_link` has to lie; none where it may have none.
    package var linkPrefixes: [String]
    /// JSON Schema of `params`.
    package var params: JSONObject
    /// A body of `POST /v1/sends` that fits.
    package var example: JSONObject

    package init(
        type: TypeID, means: String, category: Category, tier: Tier, sensitivity: Sensitivity,
        isEnabled: Bool,
        disabledHint: String?, isMandatory: Bool, dischargedBy: [DischargeMeans], isCriticalAllowed: Bool,
        isPermitted: Bool, channels: [Channel: BodyForm], purpose: Purpose?, ttlSeconds: Int64,
        linkPrefixes: [String], params: JSONObject, example: JSONObject
    ) {
        self.type = type
        self.means = means
        self.category = category
        self.tier = tier
        self.sensitivity = sensitivity
        self.isEnabled = isEnabled
        self.disabledHint = disabledHint
        self.isMandatory = isMandatory
        self.dischargedBy = dischargedBy
        self.isCriticalAllowed = isCriticalAllowed
        self.isPermitted = isPermitted
        self.channels = channels
        self.purpose = purpose
        self.ttlSeconds = ttlSeconds
        self.linkPrefixes = linkPrefixes
        self.params = params
        self.example = example
    }

    /// One line of the list.
    package var summary: JSONObject {
        JSONObject(present: [
            "type": .string(type.text), "means": .string(means), "category": .string(category.rawValue),
            "tier": .string(tier.rawValue), "sensitivity": .string(sensitivity.rawValue),
            "enabled": .boolean(isEnabled), "disabled_hint": disabledHint.map { .string($0) },
            "mandatory": .boolean(isMandatory),
            "discharged_by": isMandatory ? .array(dischargedBy.map { .string($0.rawValue) }) : nil,
            "critical_allowed": .boolean(isCriticalAllowed),
            "permitted": .boolean(isPermitted),
            "channels": .object(JSONObject(channels.map { ($0.key.rawValue, .string($0.value.rawValue)) })),
            "purpose": purpose.map { .string($0.text) },
        ])
    }

    package var json: JSONObject {
        var object = summary
        object["ttl_seconds"] = .integer(ttlSeconds)
        object["deep_link_prefixes"] = .array(linkPrefixes.map { .string($0) })
        object["params"] = .object(params)
        object["example"] = .object(example)
        return object
    }

    private static let members: [ObjectShape.Member] = [
        .required("type", .anyText, "Its identity."),
        .required("means", .anyText, "What it tells the recipient."),
        .required("category", .choice(of: Category.self), "The kind of permission it needs."),
        .required("tier", .choice(of: Tier.self), "How urgent it is."),
        .required("sensitivity", .choice(of: Sensitivity.self), "What an eavesdropper would learn."),
        .required("enabled", .boolean, "A disabled type is refused as `type_disabled`."),
        .optional("disabled_hint", .anyText, "What to do instead."),
        .required("mandatory", .boolean, "A cited law obliges us to send it."),
        .optional(
            "discharged_by",
            .list(of: .choice(of: DischargeMeans.self), countMax: DischargeMeans.allCases.count),
            "Of a mandatory type: any of these does the duty, what goes by another channel does not."),
        .required("critical_allowed", .boolean, "It is on the critical allow-list."),
        .required("permitted", .boolean, "The asking caller may send it."),
        .required(
            "channels", .map(keys: .anyText, values: .choice(of: BodyForm.self), countMax: 3),
            "The form of the body per channel."),
        .optional("purpose", .anyText, "The special consent purpose it needs besides."),
    ]

    package static let summaryShape = Shape.answer("TypeSummary", "One notification type.", members)
    package static let shape = Shape.answer(
        "Type", "One notification type, with what its params must be.",
        members + [
            .required("ttl_seconds", .count, "Its time to live when the send gives none."),
            .required(
                "deep_link_prefixes", .all(.anyText),
                "Where a send's own `deep_link` may lead: there, and below."),
            .required("params", .foreign, "JSON Schema of `params`."),
            .required("example", .foreign, "A body of `POST /v1/sends` that fits."),
        ])
}

/// `GET /v1/types`
package struct TypesAnswer: Hashable, Sendable {
    package var policy: PolicyDigest
    package var types: [TypeAnswer]

    package init(policy: PolicyDigest, types: [TypeAnswer]) {
        self.policy = policy
        self.types = types
    }

    package var json: JSONObject {
        ["policy": .string(policy.text), "types": .array(types.map { .object($0.summary) })]
    }

    package static let shape = Shape.answer(
        "Types", "Every notification type of the bundle in force.",
        [
            .required("policy", .sha256, "Digest of the bundle in force."),
            .required("types", .all(TypeAnswer.summaryShape), "Sorted by name."),
        ])
}
