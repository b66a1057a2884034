package import CanonicalJSON
import GateRecords
package import GateVocabulary

/// The plain answer to something recorded: where in the trail it stands.
package struct RecordedAnswer: WireAnswer, Hashable {
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
        self.trail = trail
        self.isReplayed = isReplayed
        self.noEffect = noEffect
        self.notOptional = notOptional
    }

    package static let name = "Recorded"
    package static let means = "Done, durably, and recorded."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.optional(
            "effect", as: .choice(["none"]), answer, { $0.noEffect.map { _ in "none" } },
            "Present when the person gets and does not get the same as before.")
        fields.optional(
            "not_optional", answer, \.notOptional,
            "Who says so, and what can be changed; present when `why` is `not_optional`.")
        fields.flag("replayed", answer, \.isReplayed, "True when the same was recorded before.")
        fields.required("trail", answer, \.trail, "The evidence.")
        fields.optional("why", answer, \.noEffect, "Why there is no effect; present with `effect`.")
    }
}

/// Why a consent, a withdrawal or a choice that was recorded changes nothing.
package enum NoEffect: String, CaseIterable, Sendable, Hashable, AnswerValue {
    case recordedBefore = "recorded_before"
    case shownOnly = "shown_only"
    case alreadySo = "already_so"
    case newerWord = "newer_word"
    case notOptional = "not_optional"
}

/// Why a category goes on without a consent to it, and what the person can change.
package struct NotOptional: WireAnswer, Hashable {
    /// What the bundle cites for the category.
    package var law: [String]
    /// The bundle's reason, in a sentence.
    package var because: String

    package init(law: [String], because: String) {
        self.law = law
        self.because = because
    }

    package static let name = "NotOptional"
    package static let means =
        "Why a category goes on without a consent to it, and what the person can change."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required(
            "because", answer, \.because, "The reason, in the words of the policy (`categories.yaml`).")
        fields.required(
            "can_change", as: .choice([Self.change]), answer, { _ in Self.change },
            "How the person can switch it off all the same: in the app, behind a second confirmation (`PUT …/preferences/{category}` with this `source`)."
        )
        fields.required("law", answer, \.law, "What the policy cites for it.")
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
package struct SendEvent: WireAnswer, Hashable {
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

    package static let name = "SendEvent"
    package static let means =
        "Something that became of a send. There is no \"delivered\": only what was observed."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("at", answer, \.at, "RFC 3339.")
        fields.required("cursor", answer, \.cursor, "Rising; give the newest as `after`.")
        fields.optional("destination", answer, \.destination, "The device or address.")
        fields.required("event", answer, \.event, "What became of it.")
        fields.optional(
            "reason", answer, \.reason,
            """
            Of a withdrawal, and of what is not tried again though the hop may have it, why; of a summary, its `send_id`; of a notice that reached nobody, the way it must \
            go; of a failure, the provider's word; of what the recipient did, the app's.
            """)
        fields.required("send_id", answer, \.send, "The send.")
    }
}

/// `GET /v1/events`
package struct EventsAnswer: WireAnswer, Hashable {
    /// Oldest first.
    package var events: [SendEvent]
    /// What to give as `after` next: the newest cursor here, or the one asked with.
    package var next: Int64

    package init(events: [SendEvent], after: Int64) {
        self.events = events
        next = events.last?.cursor ?? after
    }

    package static let name = "Events"
    package static let means = "Outcomes of the caller's own sends since a cursor, oldest first."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required(
            "events", as: .list(of: SendEvent.shape, countMax: Int(WireLimits.eventCountMax)), answer,
            \.events,
            "Oldest first.")
        fields.required("next", answer, \.next, "What to give as `after` next.")
    }
}

/// `GET /v1/sends/{send_id}`: the recorded decision and what became of it.
package struct SendStatusAnswer: WireAnswer, Hashable {
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

    package static let name = "SendStatus"
    package static let means = "The recorded decision and what became of it."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("channel", answer, \.channel, "The channel.")
        fields.required(
            "deliveries", as: .list(of: SendAnswer.Delivery.shape, countMax: WireLimits.destinationCountMax),
            answer,
            \.decision.deliveries, "As decided.")
        fields.optional("detail", answer, \.decision.detail, "What exactly was missing.")
        fields.required("events", answer, \.events, "What became of it, oldest first.")
        fields.required("id", answer, \.decision.id, "The caller's id.")
        fields.required("outcome", answer, \.decision.outcome, "The best of the deliveries, as decided.")
        fields.required("policy", answer, \.decision.policy, "Digest of the bundle that decided.")
        fields.required("reason", answer, \.decision.reason, "Why.")
        fields.required("received_at", answer, \.receivedAt, "RFC 3339.")
        fields.required("send_id", answer, \.decision.sendID, "The gateway's id.")
        fields.flag(
            "shadow", answer, \.decision.isShadow, "True of a send that was decided and recorded alone.")
        fields.required("trail", answer, \.decision.trail, "The evidence.")
        fields.required("type", answer, \.type, "The type.")
        fields.required(
            "waiting", as: .list(of: .anyText, countMax: WireLimits.destinationCountMax), answer, \.waiting,
            "Destinations whose message still waits here.")
        fields.required(
            "who_can_fix", answer, { $0.decision.reason.whoCanFix($0.decision.detail) },
            "Who can make the next attempt succeed.")
    }
}

/// `POST /v1/sends/{send_id}/cancel`
package struct CancelAnswer: WireAnswer, Hashable {
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
        self.sendID = sendID
        self.withdrawn = withdrawn
        self.underWay = underWay
        self.gone = gone
        self.trail = trail
    }

    package static let name = "Cancelled"
    package static let means = "What could still be withdrawn, and what could not."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required(
            "gone", as: .list(of: .anyText, countMax: WireLimits.destinationCountMax), answer, \.gone,
            "Handed over before, or perhaps; nothing calls these back.")
        fields.required("send_id", answer, \.sendID, "The send.")
        fields.required("trail", answer, \.trail, "The evidence.")
        fields.required(
            "under_way", as: .list(of: .anyText, countMax: WireLimits.destinationCountMax), answer,
            \.underWay,
            "Being handed over now, and not tried again; the next event says whether it went.")
        fields.required(
            "withdrawn", as: .list(of: .anyText, countMax: WireLimits.destinationCountMax), answer,
            \.withdrawn,
            "Withdrawn before hand-over.")
    }
}

/// `POST /v1/replies`: follows from what came from the address, so that a caller does not learn from it whose the address is.
package struct ReplyAnswer: WireAnswer, Hashable {
    package var trail: TrailReference
    package var effect: ReplyEffect
    /// What to send back to the number; `nil` where nothing is to be sent.
    package var confirmation: Confirmation?
    package var isReplayed: Bool

    /// The one text that confirms a withdrawal (47 CFR 64.1200(a)(12)).
    package struct Confirmation: WireAnswer, Hashable {
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

        package static let name = "ReplyConfirmation"
        package static let means = "The one text that confirms a withdrawal."

        package static func show<Fields: AnswerFields<Self> & ~Copyable>(
            _ answer: borrowing Fields.Source, to fields: inout Fields
        ) {
            fields.required("language", answer, \.language, "The language of the word that was said.")
            fields.required("text", answer, \.text, "The text, whole; nothing is added to it.")
            fields.required("until", as: .instant, answer, \.until, "It is not sent later than this.")
        }
    }

    package init(
        trail: TrailReference, effect: ReplyEffect, confirmation: Confirmation? = nil,
        isReplayed: Bool = false
    ) {
        self.trail = trail
        self.effect = effect
        self.confirmation = confirmation
        self.isReplayed = isReplayed
    }

    package static let name = "ReplyTaken"
    package static let means = "Taken, durably, and recorded."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.optional(
            "confirmation", answer, \.confirmation,
            "What to text back, once: a withdrawal by text that came in time, of a number that was sent none in the day before."
        )
        fields.required(
            "effect", as: .choice(["withdrawn", "none"]), answer,
            { $0.effect == .withdrawn ? "withdrawn" : "none" },
            "`withdrawn`: something that counted at the number or mailbox ended. `none`: nothing did, and `why` says why not."
        )
        fields.flag("replayed", answer, \.isReplayed, "True when a reply of this id was taken before.")
        fields.required("trail", answer, \.trail, "The evidence.")
        fields.optional(
            "why", as: .choice(ReplyEffect.withoutEffect.map(\.rawValue)), answer,
            { $0.effect == .withdrawn ? nil : $0.effect.rawValue },
            "`not_a_withdrawal`: the text is none by the bundle's words (START is one of those; consent is given on the consent route alone). `not_an_address`: the sender is a short code, a name, or a number without its country, which nobody can have registered. `nothing_known_here`: nobody has registered the number or mailbox; who registers it later begins with the no. `already_so`: nothing that it ends counted there; it had ended before, or was never agreed to."
        )
    }
}

/// `POST /v1/sends/acknowledge`
package struct AcknowledgeAnswer: WireAnswer, Hashable {
    /// Sends that waited to tell it and are withdrawn.
    package var withdrawn: [SendID]
    package var trail: TrailReference

    package init(withdrawn: [SendID], trail: TrailReference) {
        self.withdrawn = withdrawn
        self.trail = trail
    }

    package static let name = "Acknowledged"
    package static let means = "Nothing will tell it any more."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("trail", answer, \.trail, "The evidence.")
        fields.required(
            "withdrawn", as: .list(of: .uuid, countMax: Channel.allCases.count), answer, \.withdrawn,
            "Sends that waited to tell it and are withdrawn.")
    }
}

/// `GET /v1/types/{type}`: what a producer reads before its first send.
package struct TypeAnswer: WireAnswer, Hashable {
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

    /// - Parameter isWhole: Of one type that was asked for; a line of the list has less.
    fileprivate static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, isWhole: Bool, to fields: inout Fields
    ) {
        fields.required("category", answer, \.category, "The kind of permission it needs.")
        fields.required(
            "channels", as: .map(keys: .anyText, values: .choice(of: BodyForm.self), countMax: 3), answer,
            \.forms,
            "The form of the body per channel.")
        fields.required("critical_allowed", answer, \.isCriticalAllowed, "It is on the critical allow-list.")
        if isWhole {
            fields.required(
                "deep_link_prefixes", answer, \.linkPrefixes,
                "Where a send's own `deep_link` may lead: there, and below.")
        }
        fields.optional("disabled_hint", answer, \.disabledHint, "What to do instead.")
        fields.optional(
            "discharged_by",
            as: .list(of: .choice(of: DischargeMeans.self), countMax: DischargeMeans.allCases.count),
            answer,
            { $0.isMandatory ? $0.dischargedBy : nil },
            "Of a mandatory type: any of these does the duty, what goes by another channel does not.")
        fields.required("enabled", answer, \.isEnabled, "A disabled type is refused as `type_disabled`.")
        if isWhole { fields.required("example", answer, \.example, "A body of `POST /v1/sends` that fits.") }
        fields.required("mandatory", answer, \.isMandatory, "A cited law obliges us to send it.")
        fields.required("means", answer, \.means, "What it tells the recipient.")
        if isWhole { fields.required("params", answer, \.params, "JSON Schema of `params`.") }
        fields.required("permitted", answer, \.isPermitted, "The asking caller may send it.")
        fields.optional("purpose", answer, \.purpose, "The special consent purpose it needs besides.")
        fields.required("sensitivity", answer, \.sensitivity, "What an eavesdropper would learn.")
        fields.required("tier", answer, \.tier, "How urgent it is.")
        if isWhole {
            fields.required("ttl_seconds", answer, \.ttlSeconds, "Its time to live when the send gives none.")
        }
        fields.required("type", answer, \.type, "Its identity.")
    }

    package static let name = "Type"
    package static let means = "One notification type, with what its params must be."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        show(answer, isWhole: true, to: &fields)
    }

    private var forms: JSONObject {
        JSONObject(channels.map { ($0.key.rawValue, .string($0.value.rawValue)) })
    }
}

/// One line of the list.
private struct TypeSummary: AnswerValue {
    let type: TypeAnswer

    static var answerShape: Shape {
        .named(
            "TypeSummary",
            .object(
                AnswerShapes<TypeAnswer>.object("One notification type.") {
                    TypeAnswer.show((), isWhole: false, to: &$0)
                }))
    }

    func write(answer json: inout CanonicalWriter) {
        var fields = AnswerWriter<TypeAnswer>(json)
        TypeAnswer.show(type, isWhole: false, to: &fields)
        json = fields.finish()
    }
}

/// `GET /v1/types`
package struct TypesAnswer: WireAnswer, Hashable {
    package var policy: PolicyDigest
    package var types: [TypeAnswer]

    package init(policy: PolicyDigest, types: [TypeAnswer]) {
        self.policy = policy
        self.types = types
    }

    package static let name = "Types"
    package static let means = "Every notification type of the bundle in force."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("policy", answer, \.policy, "Digest of the bundle in force.")
        fields.required("types", answer, { $0.types.map(TypeSummary.init(type:)) }, "Sorted by name.")
    }
}
