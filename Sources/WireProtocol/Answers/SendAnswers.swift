package import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// The plain answer to something recorded: where in the trail it stands.
package struct RecordedAnswer: ShownRecord {
    package var trail: TrailReference
    /// The same was recorded before; nothing was recorded again.
    package var isReplayed: Bool
    /// Why what was recorded changes no consent and no preference; `nil` where it does, or is about something else.
    package var noEffect: NoEffect?
    /// Present with ``NoEffect/notOptional``.
    package var notOptional: NotOptional?

    package init(
        trail: TrailReference, isReplayed: Bool = false, noEffect: NoEffect? = nil,
        notOptional: NotOptional? = nil
    ) {
        (self.trail, self.isReplayed, self.noEffect, self.notOptional) = (
            trail, isReplayed, noEffect, notOptional
        )
    }

    package static let shownName = "Recorded"
    package static let shownMeans = "Done, durably, and recorded."

    package static let fields = Fields<Self> { fields in
        fields.joined(
            "effect", "Present when the person gets and does not get the same as before.",
            shape: .choice(["none"])
        ) { $0.noEffect.map { _ in "none" } }
        fields.joined(
            "not_optional", \.notOptional,
            "Who says so, and what can be changed; present when `why` is `not_optional`.")
        fields.flag("replayed", "True when the same was recorded before.") { $0.isReplayed }
        fields.joined("trail", \.trail, "The evidence.")
        fields.joined("why", \.noEffect, "Why there is no effect; present with `effect`.")
    }
}

/// Why a consent, a withdrawal or a choice that was recorded changes nothing.
package enum NoEffect: String, CaseIterable, Sendable, Hashable, ShownValue, FieldValue {
    case recordedBefore = "recorded_before"
    case shownOnly = "shown_only"
    case alreadySo = "already_so"
    case newerWord = "newer_word"
    case notOptional = "not_optional"
}

/// Why a category goes on without a consent to it, and what the person can change.
package struct NotOptional: ShownRecord {
    /// What the bundle cites for the category.
    package var law: [String]
    /// The bundle's reason, in a sentence.
    package var because: String

    package init(law: [String], because: String) {
        (self.law, self.because) = (law, because)
    }

    package static let shownName = "NotOptional"
    package static let shownMeans =
        "Why a category goes on without a consent to it, and what the person can change."

    package static let fields = Fields<Self> { fields in
        fields.joined("because", \.because, "The reason, in the words of the policy (`categories.yaml`).")
        fields.joined(
            "can_change",
            "How the person can switch it off all the same: in the app, behind a second confirmation (`PUT …/preferences/{category}` with this `source`).",
            shape: .choice([Self.change])
        ) { _ in Self.change }
        fields.joined("law", \.law, "What the policy cites for it.")
    }

    private static let change = PreferenceSource.inAppStepUp.rawValue
}

extension NoEffect: DescribedChoice {
    package static var means: String {
        """
        - `recorded_before`: the same record, repeated
        - `shown_only`: the notice was shown and nothing was said
        - `already_so`: what it says held before
        - `newer_word`: something the person said later stands
        - `not_optional`: the consent ended, and what it was to goes on without one: no law asks for a consent there, and only a \
        step-up switches it off
        """
    }
}

/// Something that became of a send.
package struct SendEvent: ShownRecord {
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
        (self.cursor, self.send, self.event, self.destination) = (cursor, send, event, destination)
        (self.at, self.reason) = (at, reason)
    }

    package static let shownName = "SendEvent"
    package static let shownMeans =
        "Something that became of a send. There is no \"delivered\": only what was observed."

    package static let fields = Fields<Self> { fields in
        fields.joined("at", \.at, "RFC 3339.")
        fields.joined("cursor", \.cursor, "Rising; give the newest as `after`.")
        fields.joined("destination", \.destination, "The device or address.")
        fields.joined("event", \.event, "What became of it.")
        fields.joined(
            "reason", \.reason,
            """
            Of a withdrawal, and of what is not tried again though the hop may have it, why; of a summary, its `send_id`; of a notice that reached nobody, the way it must \
            go; of a failure, the provider's word; of what the recipient did, the app's.
            """)
        fields.joined("send_id", \.send, "The send.")
    }
}

/// `GET /v1/events`
package struct EventsAnswer: ShownRecord {
    /// Oldest first.
    package var events: [SendEvent]
    /// What to give as `after` next: the newest cursor here, or the one asked with.
    package var next: Int64

    package init(events: [SendEvent], after: Int64) {
        self.events = events
        next = events.last?.cursor ?? after
    }

    package static let shownName = "Events"
    package static let shownMeans = "Outcomes of the caller's own sends since a cursor, oldest first."

    package static let fields = Fields<Self> { fields in
        fields.joined(
            "events", \.events, "Oldest first.",
            shape: .list(of: SendEvent.shownShape, countMax: Int(WireLimits.eventCountMax)))
        fields.joined("next", \.next, "What to give as `after` next.")
    }
}

/// `GET /v1/sends/{send_id}`: the recorded decision and what became of it.
package struct SendStatusAnswer: ShownRecord {
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
        (self.decision, self.type, self.channel, self.receivedAt) = (decision, type, channel, receivedAt)
        (self.waiting, self.events) = (waiting, events)
    }

    package static let shownName = "SendStatus"
    package static let shownMeans = "The recorded decision and what became of it."

    package static let fields = Fields<Self> { fields in
        fields.joined("channel", \.channel, "The channel.")
        fields.joined(
            "deliveries", "As decided.",
            shape: .list(of: SendAnswer.Delivery.shownShape, countMax: WireLimits.destinationCountMax)
        ) { $0.decision.deliveries }
        fields.joined("detail", \.decision.detail, "What exactly was missing.")
        fields.joined("events", \.events, "What became of it, oldest first.")
        fields.joined("id", \.decision.id, "The caller's id.")
        fields.joined("outcome", \.decision.outcome, "The best of the deliveries, as decided.")
        fields.joined("policy", \.decision.policy, "Digest of the bundle that decided.")
        fields.joined("reason", \.decision.reason, "Why.")
        fields.joined("received_at", \.receivedAt, "RFC 3339.")
        fields.joined("send_id", \.decision.sendID, "The gateway's id.")
        fields.flag("shadow", "True of a send that was decided and recorded only.") {
            $0.decision.isShadow
        }
        fields.joined("trail", \.decision.trail, "The evidence.")
        fields.joined("type", \.type, "The type.")
        fields.joined(
            "waiting", \.waiting, "Destinations whose message still waits here.",
            shape: .list(of: .anyText, countMax: WireLimits.destinationCountMax))
        fields.joined("who_can_fix", "Who can make the next attempt succeed.") {
            $0.decision.reason.whoCanFix($0.decision.detail)
        }
    }
}

/// `POST /v1/sends/{send_id}/cancel`
package struct CancelAnswer: ShownRecord {
    package var sendID: SendID
    /// Destinations whose message was still here and is withdrawn.
    package var withdrawn: [String]
    /// Destinations whose message is being handed over now. It is not tried again, and its next event says whether the next
    /// hop took it.
    package var underWay: [String]
    /// Destinations whose message was, or may have been, handed over before; nothing can call it back.
    package var gone: [String]
    package var trail: TrailReference

    package init(
        sendID: SendID, withdrawn: [String], underWay: [String], gone: [String], trail: TrailReference
    ) {
        (self.sendID, self.withdrawn, self.underWay) = (sendID, withdrawn, underWay)
        (self.gone, self.trail) = (gone, trail)
    }

    package static let shownName = "Cancelled"
    package static let shownMeans = "What could still be withdrawn, and what could not."

    package static let fields = Fields<Self> { fields in
        fields.joined(
            "gone", \.gone, "Handed over before, or perhaps; nothing calls these back.",
            shape: .list(of: .anyText, countMax: WireLimits.destinationCountMax))
        fields.joined("send_id", \.sendID, "The send.")
        fields.joined("trail", \.trail, "The evidence.")
        fields.joined(
            "under_way", \.underWay,
            "Being handed over now, and not tried again; the next event says whether it went.",
            shape: .list(of: .anyText, countMax: WireLimits.destinationCountMax))
        fields.joined(
            "withdrawn", \.withdrawn, "Withdrawn before hand-over.",
            shape: .list(of: .anyText, countMax: WireLimits.destinationCountMax))
    }
}

/// `POST /v1/replies`: follows from what came from the address, so that a caller does not learn from it whose the address is.
package struct ReplyAnswer: ShownRecord {
    package var trail: TrailReference
    package var effect: ReplyEffect
    /// What to send back to the number; `nil` where nothing is to be sent.
    package var confirmation: Confirmation?
    package var isReplayed: Bool

    /// The one text that confirms a withdrawal (47 CFR 64.1200(a)(12)).
    package struct Confirmation: ShownRecord {
        /// The locale of the word that was said.
        package var language: String
        package var text: String
        /// When it is too late to send it.
        package var until: Instant

        package init(language: String, text: String, until: Instant) {
            (self.language, self.text, self.until) = (language, text, until)
        }

        package static let shownName = "ReplyConfirmation"
        package static let shownMeans = "The one text that confirms a withdrawal."

        package static let fields = Fields<Self> { fields in
            fields.joined("language", \.language, "The language of the word that was said.")
            fields.joined("text", \.text, "The text, whole; nothing is added to it.")
            fields.joined("until", \.until, "It is not sent later than this.", shape: .instant)
        }
    }

    package init(
        trail: TrailReference, effect: ReplyEffect, confirmation: Confirmation? = nil,
        isReplayed: Bool = false
    ) {
        (self.trail, self.effect, self.confirmation, self.isReplayed) = (
            trail, effect, confirmation, isReplayed
        )
    }

    package static let shownName = "ReplyTaken"
    package static let shownMeans = "Taken, durably, and recorded."

    package static let fields = Fields<Self> { fields in
        fields.joined(
            "confirmation", \.confirmation,
            "What to text back, once: a withdrawal by text that came in time, of a number that was sent none in the day before."
        )
        fields.joined(
            "effect",
            "`withdrawn`: something that counted at the number or mailbox ended. `none`: nothing did, and `why` says why not.",
            shape: .choice(["withdrawn", "none"])
        ) { $0.effect == .withdrawn ? "withdrawn" : "none" }
        fields.flag("replayed", "True when a reply of this id was taken before.") { $0.isReplayed }
        fields.joined("trail", \.trail, "The evidence.")
        fields.joined(
            "why",
            "`not_a_withdrawal`: the text is none by the bundle's words (START is one of those; consent is given on the consent route alone). `not_an_address`: the sender is a short code, a name, or a number without its country, which nobody can have registered. `nothing_known_here`: nobody has registered the number or mailbox; who registers it later begins with the no. `already_so`: nothing that it ends counted there; it had ended before, or was never agreed to.",
            shape: .choice(ReplyEffect.withoutEffect.map(\.rawValue))
        ) { $0.effect == .withdrawn ? nil : $0.effect.rawValue }
    }
}

/// `POST /v1/sends/acknowledge`
package struct AcknowledgeAnswer: ShownRecord {
    /// Sends that waited to tell it and are withdrawn.
    package var withdrawn: [SendID]
    package var trail: TrailReference

    package init(withdrawn: [SendID], trail: TrailReference) {
        (self.withdrawn, self.trail) = (withdrawn, trail)
    }

    package static let shownName = "Acknowledged"
    package static let shownMeans = "Nothing will tell it any more."

    package static let fields = Fields<Self> { fields in
        fields.joined("trail", \.trail, "The evidence.")
        fields.joined(
            "withdrawn", \.withdrawn, "Sends that waited to tell it and are withdrawn.",
            shape: .list(of: .uuid, countMax: Channel.allCases.count))
    }
}

/// `GET /v1/types/{type}`: what a producer reads before its first send.
package struct TypeAnswer: ShownRecord {
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
        (self.type, self.means, self.category, self.tier) = (type, means, category, tier)
        (self.sensitivity, self.isEnabled, self.disabledHint, self.isMandatory) = (
            sensitivity, isEnabled, disabledHint, isMandatory
        )
        (self.dischargedBy, self.isCriticalAllowed, self.isPermitted, self.channels) = (
            dischargedBy, isCriticalAllowed, isPermitted, channels
        )
        (self.purpose, self.ttlSeconds, self.linkPrefixes) = (purpose, ttlSeconds, linkPrefixes)
        (self.params, self.example) = (params, example)
    }

    package static let shownName = "Type"
    package static let shownMeans = "One notification type, with what its params must be."

    package static let fields = Fields<Self> { fields in
        fields.joined("category", \.category, "The kind of permission it needs.")
        fields.joined(
            "channels", "The form of the body per channel.",
            shape: .map(keys: .anyText, values: .choice(of: BodyForm.self), countMax: 3)
        ) { $0.forms }
        fields.joined("critical_allowed", \.isCriticalAllowed, "It is on the critical allow-list.")
        fields.joined(
            "deep_link_prefixes", \.linkPrefixes, "Where a send's own `deep_link` may lead: there, and below."
        )
        fields.joined("disabled_hint", \.disabledHint, "What to do instead.")
        fields.joined(
            "discharged_by",
            "Of a mandatory type: any of these does the duty, what goes by another channel does not.",
            shape: .list(of: .choice(of: DischargeMeans.self), countMax: DischargeMeans.allCases.count)
        ) { $0.isMandatory ? $0.dischargedBy : nil }
        fields.joined("enabled", \.isEnabled, "A disabled type is refused as `type_disabled`.")
        fields.joined("example", \.example, "A body of `POST /v1/sends` that fits.")
        fields.joined("mandatory", \.isMandatory, "A cited law obliges us to send it.")
        fields.joined("means", \.means, "What it tells the recipient.")
        fields.joined("params", \.params, "JSON Schema of `params`.")
        fields.joined("permitted", \.isPermitted, "The asking caller may send it.")
        fields.joined("purpose", \.purpose, "The special consent purpose it needs besides.")
        fields.joined("sensitivity", \.sensitivity, "What an eavesdropper would learn.")
        fields.joined("tier", \.tier, "How urgent it is.")
        fields.joined("ttl_seconds", \.ttlSeconds, "Its time to live when the send gives none.")
        fields.joined("type", \.type, "Its identity.")
    }

    private var forms: JSONObject {
        JSONObject(channels.map { ($0.key.rawValue, .string($0.value.rawValue)) })
    }
}

/// One line of the list.
private struct TypeSummary: ShownRecord {
    var type: TypeAnswer

    static let shownName = "TypeSummary"
    static let shownMeans = "One notification type."

    static let fields = Fields<Self> { fields in
        fields.some(
            TypeAnswer.fields.without(["deep_link_prefixes", "example", "params", "ttl_seconds"]), of: \.type)
    }
}

/// `GET /v1/types`
package struct TypesAnswer: ShownRecord {
    package var policy: PolicyDigest
    package var types: [TypeAnswer]

    package init(policy: PolicyDigest, types: [TypeAnswer]) {
        (self.policy, self.types) = (policy, types)
    }

    package static let shownName = "Types"
    package static let shownMeans = "Every notification type of the bundle in force."

    package static let fields = Fields<Self> { fields in
        fields.joined("policy", \.policy, "Digest of the bundle in force.")
        fields.joined("types", "Sorted by name.") { $0.types.map(TypeSummary.init(type:)) }
    }
}
