import CanonicalJSON
package import GateVocabulary

// What happened to sends and their messages, and what came back.

extension EntryKind {
    package static let unsent = EntryKind("unsent")
    package static let delivery = EntryKind("delivery")
    package static let cancel = EntryKind("cancel")
    package static let acknowledgement = EntryKind("acknowledgement")
    package static let mandatoryUnreached = EntryKind("mandatory_unreached")
    package static let receipt = EntryKind("receipt")
    package static let reply = EntryKind("reply")
    package static let switchOff = EntryKind("switch_off")
}

extension EntrySchema {
    /// The kinds of entries about sends and their messages.
    static let messages: [any EntryBody.Type] = [
        DeliveryEntry.self, UnsentEntry.self, CancelEntry.self, AcknowledgementEntry.self,
        MandatoryUnreachedEntry.self, ReceiptEntry.self, ReplyEntry.self, SwitchOffEntry.self,
    ]
}

/// What the next hop made of a message.
package struct DeliveryEntry: DeclaredEntry {
    package static let kind = EntryKind.delivery
    package static let blank = Self(
        send: .blank, message: .blank, subject: .blank, destination: .blank, result: Code(""), attempts: 0)

    package var send: SendID
    package var message: MessageID
    package var subject: SubjectID
    package var destination: Tag
    /// A `HandOver`.
    package var result: Code
    package var status: Int?
    package var attempts: Int
    /// Why a message that the hop may have is not tried again: a `WithdrawalCause`, or the `Reason` of a decision made again;
    /// `nil` of every other result.
    package var cause: Code?

    package init(
        send: SendID, message: MessageID, subject: SubjectID, destination: Tag, result: Code,
        status: Int? = nil, attempts: Int, cause: Code? = nil
    ) {
        (self.send, self.message, self.subject, self.destination) = (send, message, subject, destination)
        (self.result, self.status, self.attempts, self.cause) = (result, status, attempts, cause)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("attempts", \.attempts, "How often it was offered.")
        fields.entry("cause", \.cause, "Why one that the hop may have is not tried again.")
        fields.entry("destination", \.destination, "Where it was to go.")
        fields.entry("message_id", \.message, "The message.")
        fields.entry("result", \.result, "What the next hop made of it.")
        fields.entry("send_id", \.send, "The send.")
        fields.entry("status", \.status, "The HTTP status of its answer.", bound: .integer(100...599))
        fields.entry("subject", \.subject, "Whose it is.")
    }
}

/// A message that waited was taken out without being decided again.
package struct UnsentEntry: DeclaredEntry {
    package static let kind = EntryKind.unsent
    package static let blank = Self(
        send: .blank, message: .blank, subject: .blank, destination: .blank, cause: Code(""))

    package var send: SendID
    package var message: MessageID
    package var subject: SubjectID
    package var destination: Tag
    /// A `WithdrawalCause`.
    package var cause: Code

    package init(send: SendID, message: MessageID, subject: SubjectID, destination: Tag, cause: Code) {
        (self.send, self.message, self.subject, self.destination) = (send, message, subject, destination)
        self.cause = cause
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("cause", \.cause, "Why it was taken out.")
        fields.entry("destination", \.destination, "Where it was to go.")
        fields.entry("message_id", \.message, "The message.")
        fields.entry("send_id", \.send, "The send.")
        fields.entry("subject", \.subject, "Whose it is.")
    }
}

/// A caller withdrew a send.
package struct CancelEntry: DeclaredEntry {
    package static let kind = EntryKind.cancel
    package static let blank = Self(send: .blank, caller: CallerName(""), withdrawn: 0)

    package var send: SendID
    package var caller: CallerName
    /// Messages that were taken out of the outbox.
    package var withdrawn: Int

    package init(send: SendID, caller: CallerName, withdrawn: Int) {
        (self.send, self.caller, self.withdrawn) = (send, caller, withdrawn)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who asked.", bound: .name)
        fields.entry("send_id", \.send, "The send.")
        fields.entry("withdrawn", \.withdrawn, "Messages that were taken out.")
    }
}

/// An event need not be told any more.
package struct AcknowledgementEntry: DeclaredEntry {
    package static let kind = EntryKind.acknowledgement
    package static let blank = Self(
        caller: CallerName(""), type: TypeID(""), subject: .blank, eventTags: [:], withdrawn: 0)

    package var caller: CallerName
    package var type: TypeID
    package var subject: SubjectID
    /// What the event is marked by on each channel it may be told on.
    package var eventTags: [Channel: Tag]
    /// Sends of which messages were taken out of the outbox.
    package var withdrawn: Int

    package init(
        caller: CallerName, type: TypeID, subject: SubjectID, eventTags: [Channel: Tag], withdrawn: Int
    ) {
        (self.caller, self.type, self.subject, self.eventTags) = (caller, type, subject, eventTags)
        self.withdrawn = withdrawn
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("caller", \.caller, "Who asked.", bound: .name)
        fields.entry("event_tags", \.eventTags, "What marks the event, by channel.")
        fields.entry("subject", \.subject, "Whose it is.")
        fields.entry("type", \.type, "The type that would have told it.", bound: .name)
        fields.entry("withdrawn", \.withdrawn, "Sends that waited to tell it.")
    }
}

/// A notice that a law obliges us to send reached its recipient by no channel; names the way it must go instead.
package struct MandatoryUnreachedEntry: DeclaredEntry {
    package static let kind = EntryKind.mandatoryUnreached
    package static let blank = Self(
        send: .blank, type: TypeID(""), subject: Nullable(nil), mustGoBy: "", within: "",
        policy: PolicyDigest(""))

    package var send: SendID
    package var type: TypeID
    package var subject: Nullable<SubjectID>
    package var mustGoBy: String
    /// How soon, in the words of its law.
    package var within: String
    package var policy: PolicyDigest

    package init(
        send: SendID, type: TypeID, subject: Nullable<SubjectID>, mustGoBy: String, within: String,
        policy: PolicyDigest
    ) {
        (self.send, self.type, self.subject, self.mustGoBy) = (send, type, subject, mustGoBy)
        (self.within, self.policy) = (within, policy)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry(
            "must_go_by", \.mustGoBy, "The way that it must go instead.", bound: .text(byteCountMax: 256))
        fields.entry("policy", \.policy, "Digest of the bundle.")
        fields.entry("send_id", \.send, "The send.")
        fields.entry("subject", \.subject, "Whose it is.")
        fields.entry("type", \.type, "The type of the notice.", bound: .name)
        fields.entry(
            "within", \.within, "How soon, in the words of its law.", bound: .text(byteCountMax: 256))
    }
}

/// What the delivery layer or the app observed.
package struct ReceiptEntry: DeclaredEntry {
    package static let kind = EntryKind.receipt
    package static let blank = Self(
        send: .blank, destination: .blank, event: Code(""), at: Instant(milliseconds: 0),
        caller: CallerName(""), channel: Code(""))

    package var send: SendID
    package var destination: Tag
    /// A `ReceiptBody.Event`.
    package var event: Code
    package var at: Instant
    package var caller: CallerName
    package var subject: SubjectID?
    package var channel: Code
    /// `nil` of a type that is in no bundle.
    package var category: Code?
    /// An `ObservedAct`; `nil` for what a provider reports.
    package var act: Code?
    /// From the hand-over to the first time that the person had the message before them; `nil` for any later one, and
    /// for an event that does not imply a look.
    package var openedAfterMilliseconds: Int64?
    package var isFirstTap: Bool?

    package init(
        send: SendID, destination: Tag, event: Code, at: Instant, caller: CallerName,
        subject: SubjectID? = nil, channel: Code, category: Code? = nil, act: Code? = nil,
        openedAfterMilliseconds: Int64? = nil, isFirstTap: Bool? = nil
    ) {
        (self.send, self.destination, self.event, self.at) = (send, destination, event, at)
        (self.caller, self.subject, self.channel, self.category) = (caller, subject, channel, category)
        (self.act, self.openedAfterMilliseconds, self.isFirstTap) = (act, openedAfterMilliseconds, isFirstTap)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("act", \.act, "What the person did.")
        fields.entry("at", \.at, "When it was observed.")
        fields.entry("caller", \.caller, "Who observed it.", bound: .name)
        fields.entry("category", \.category, "The category of the type.")
        fields.entry("channel", \.channel, "The channel.")
        fields.entry("destination", \.destination, "Where it was to go.")
        fields.entry("event", \.event, "What was observed.")
        fields.entry(
            "opened_after", \.openedAfterMilliseconds,
            "Milliseconds from the hand-over until the person first had it before them.")
        fields.entry("send_id", \.send, "The send.")
        fields.entry("subject", \.subject, "Whose it is.")
        fields.entry("tapped", \.isFirstTap, "Whether it is the first tap.")
    }
}

/// A recipient answered a text or an e-mail.
package struct ReplyEntry: DeclaredEntry {
    package static let kind = EntryKind.reply
    package static let blank = Self(
        caller: CallerName(""), channel: .sms, idTag: "", at: Instant(milliseconds: 0), effect: Code(""),
        subjects: [])

    package var caller: CallerName
    package var channel: Channel
    package var idTag: String
    /// When the carrier received it, and never after the entry.
    package var at: Instant
    /// When the carrier says that it received it, where its clock was ahead of the gateway's.
    package var statedAt: Instant?
    /// `withdrawn` or `none`.
    package var effect: Code
    package var subjects: [SubjectID]
    /// A `ReplyEffect`, of one without effect.
    package var why: Code?
    /// The locale of the text that confirmed it.
    package var confirmation: String?

    package init(
        caller: CallerName, channel: Channel, idTag: String, at: Instant, statedAt: Instant? = nil,
        effect: Code, subjects: [SubjectID], why: Code? = nil, confirmation: String? = nil
    ) {
        (self.caller, self.channel, self.idTag, self.at, self.effect) = (caller, channel, idTag, at, effect)
        (self.statedAt, self.subjects, self.why, self.confirmation) = (statedAt, subjects, why, confirmation)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry("at", \.at, "When the carrier received it, and never after the entry.")
        fields.entry("caller", \.caller, "Who passed it on.", bound: .name)
        fields.entry("channel", \.channel, "What was answered to.", bound: .name)
        fields.entry(
            "confirmation", \.confirmation, "The locale of the text that confirmed it.",
            bound: .text(byteCountMax: 35))
        fields.entry("effect", \.effect, "Whether something ended.")
        fields.entry("id_tag", \.idTag, "The carrier's id of it, as a tag.", bound: .tag)
        fields.entry("stated_at", \.statedAt, "When a carrier whose clock is ahead says that it received it.")
        fields.entry("subjects", \.subjects, "Who has the number or mailbox.")
        fields.entry("why", \.why, "Why nothing ended.")
    }
}

/// A recipient switched notifications off; follows what they did, or stands before it where they answered a text.
package struct SwitchOffEntry: DeclaredEntry {
    package static let kind = EntryKind.switchOff
    package static let blank = Self(means: Code(""), subject: .blank)

    /// A `DisabledBy`.
    package var means: Code
    /// For a switch of everything, each that the recipient was sent lately, and `nil` where there is none.
    package var category: Category?
    package var subject: SubjectID
    /// The newest send of the category that was forwarded to them in the 24 hours before; `nil` also where one of the
    /// same UTC day and category counts them already.
    package var after: SendID?

    package init(means: Code, category: Category? = nil, subject: SubjectID, after: SendID? = nil) {
        (self.means, self.category, self.subject, self.after) = (means, category, subject, after)
    }

    package static let fields = Fields<Self> { fields in
        fields.entry(
            "category", \.category,
            "The category; absent where everything was switched off and nothing was sent lately.",
            bound: .name)
        fields.entry("means", \.means, "By what.")
        fields.entry("send_id", \.after, "The newest send of the category in the day before.")
        fields.entry("subject", \.subject, "Who did.")
    }
}

extension SubjectID: RecordedElement {
    /// The recipients of one number or mailbox that one reply counts for.
    package static var countMax: Int { 100 }
}
