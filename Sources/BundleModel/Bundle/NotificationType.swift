package import CanonicalJSON
package import GateVocabulary

/// One notification type: what the registry says of it (`types/<type>.yaml`).
///
/// A class, because every send hands it from step to step: as a value each hand-over copied three dozen members.
package final class NotificationType: Sendable {
    package let id: TypeID
    package let means: String
    /// Which source document or law asked for it.
    package let source: String
    package let category: GateVocabulary.Category
    package let tier: Tier
    package let sensitivity: Sensitivity
    /// Required unless ``category`` is marketing: the sentence that stops marketing from sneaking in (S1).
    package let notMarketingBecause: String?
    /// The legal basis, in words, per regime.
    package let basis: ByRegime<String>
    package let mandatory: MandatoryRule?
    /// Whether there is a ``mandatory``: asked of every send, and comparing the rule with `nil` copies all of it.
    package let isMandatory: Bool
    package let body: ByChannel<BodyForm>
    package let withoutKey: WithoutKey
    package let params: [String: ParamSchema]
    /// The kinds of ``params``, in the order in which a canonical object has its members.
    package let paramKinds: [(name: String, kind: ParamSchema.Kind)]
    /// Those of ``params`` that are random references.
    package let referenceNames: [String]
    /// Whether one of ``params`` is a moment, which a text says by the recipient's clock.
    package let hasMoment: Bool
    /// Params that no text says and the app needs: a sealed content carries them all.
    package let appParams: [String]
    /// The param that makes two sends the same event.
    package let dedupeBy: String?
    package let dedupeScope: DedupeScope
    /// Seconds, 1 to 28 days (the longest time FCM stores a message).
    package let ttlSeconds: Int64
    package let ttlCountsFrom: TTLStart
    /// `nil`: as soon as it is asked for.
    package let timing: SendTime?
    package let ownRequest: OwnRequestRule?
    package let deepLink: CountedText?
    /// Where a send's own link may lead: below ``deepLink``, and the places the page adds.
    package let linkPrefixes: [LinkPrefix]
    package let androidChannel: String?
    package let apnsCategory: CountedText?
    package let sound: String?
    package let badge: Int?
    /// Whether a newer one replaces an older one on the device.
    package let collapses: Bool
    package let isEnabled: Bool
    /// What to tell a producer of a disabled type.
    package let disabledHint: String?
    /// S2's number; payloads carry it beside the type.
    package let alertType: Int?
    /// Whether S2's alerts table has a row for it.
    package let hasAlertRecord: Bool
    /// Whether it has a preference of its own.
    package let isMutableAlone: Bool
    /// A consent purpose it needs besides its category's permission.
    package let purpose: Purpose?
    /// Whether it is kept from minors although its category is not.
    package let refusesMinors: Bool
    /// A broader type it is sent in place of: an event that one of them told is not told by the other.
    package let subOf: TypeID?
    /// What its events are told under: the broadest type it is a variant of, or itself.
    package let eventScope: TypeID
    package let interruption: Interruption
    /// What happens to it above a limit, where the page says something other than its category.
    package let ownOverflow: OverflowRule?
    /// By which summary it is told when it was gathered, where the page says something other than its category.
    package let ownSummary: TypeID?
    /// The key of its texts in `messages/`.
    package let messageKey: String
    /// Its family, `transaction` of `transaction.failed`: what a device stacks together.
    package let thread: CountedText

    /// - Parameters:
    ///   - eventScope: What ``subOf`` of this type and of those above it leads to.
    ///   - appLinks: Where on the web the places of an app lie, by the app's scheme.
    init(_ reader: NodeReader, eventScope: TypeID, appLinks: [String: LinkPrefix] = [:]) {
        let members = reader.members()
        id = members.required("type", "What it is called, as its file is.")?.typeID() ?? TypeID("")
        thread = CountedText(String(id.text.prefix { $0 != "." }))
        means = members.text("means", "What happened when it goes out.")
        source = members.text("source", "Which document asked for it.")
        category = members.name("category", "The consent axis.")
        let tier: Tier = members.name("tier", "The urgency axis.")
        self.tier = tier
        sensitivity = members.name("sensitivity", "The privacy axis. `high` leaves on push only sealed.")
        notMarketingBecause = members.optional(
            "not_marketing_because",
            "Why it is no marketing, in a sentence; needed unless the category is marketing.")?.reason()
        let bases = members.required("basis", "The legal basis under each regime.")?.members()
        func basis(_ regime: Regime) -> String {
            bases?.text(regime.rawValue, "The legal basis under it, in words.") ?? ""
        }
        self.basis = ByRegime(
            gdpr: basis(.gdpr), ukGDPR: basis(.ukGDPR), gdprLike: basis(.gdprLike), other: basis(.other))
        bases?.refuseOthers()
        mandatory = members.optional(
            "mandatory", "Which law obliges us to tell it, and what it therefore passes."
        ).map { MandatoryRule($0) }
        isMandatory = mandatory != nil
        let channels = members.required("channels", "A channel that is not named is never used.")?.members()
        let push = channels?.optional("push", "On push.")?.members()
        body = ByChannel(
            push: push?.name("body", Self.meansBody) ?? .never, sms: Self.body(channels, .sms),
            email: Self.body(channels, .email))
        let withoutKey: WithoutKey? = push?.optionalName(
            "without_key", "What a device without a usable key gets; for a sealed body only.")
        self.withoutKey = withoutKey ?? .reject
        if withoutKey != nil, body.push != .sealed {
            push?.reader.problem("has `without_key`, which only a sealed body can need")
        }
        push?.ignoreRationale()
        push?.refuseOthers()
        channels?.refuseOthers()
        var params: [String: ParamSchema] = [:]
        let ownParams = members.optional("params", "What a send says besides the type, by its name.")
        for (key, value) in ownParams?.members().others(.params) ?? [] {
            if !Self.isParamName(key) {
                value.problem(
                    "is no name for a param",
                    hint: "letters, digits and `_`, starting with a letter, at most 64")
            }
            params[key] = ParamSchema(value)
        }
        self.params = params
        paramKinds = params.map { (name: $0.key, kind: $0.value.kind) }
            .sorted { CodeUnits.precedes($0.name, $1.name) }
        referenceNames = paramKinds.filter { $0.kind == .uuid }.map(\.name)
        hasMoment = paramKinds.contains { if case .timestamp = $0.kind { true } else { false } }
        let users = members.optional("used_by", "What uses a param that no text says.")?.members()
        appParams =
            users?.texts(
                "app", "Params that no text says and the app shows by itself; a sealed push carries them.")
            ?? []
        users?.refuseOthers()
        dedupeBy = members.optionalText(
            "dedupe_by", byteCountMax: 64, "The param that makes two sends one.")
        let scope: DedupeScope? = members.optionalName(
            "dedupe_scope", "Among whose sends: one caller's own (when absent), or every caller's.")
        dedupeScope = scope ?? .caller
        if scope != nil, dedupeBy == nil {
            reader.problem(
                "has `dedupe_scope` and no `dedupe_by`", hint: "name the param that tells events apart")
        }
        (ttlSeconds, ttlCountsFrom) = Self.ttl(
            members.required("ttl", "How long the notification is worth something, at most 28 days."))
        timing = members.optional(
            "timing",
            "When it goes out, in the recipient's own time, by exactly one of `after`, `daily`, `weekly` and `between`; absent: as soon as it is asked for."
        ).flatMap { SendTime($0) }
        ownRequest = members.optional(
            "own_request", "What the recipient's own recorded request lets this type pass."
        ).map { OwnRequestRule($0) }
        let link = members.optional(
            "deep_link", "Where a tap leads. A send's own link has to lie below it.")
        deepLink = (link?.text(byteCountMax: LinkPrefix.byteCountMax)).map { CountedText($0) }
        let otherLinks = members.optional(
            "deep_link_prefixes", "Other places in the app that a send's own link may lead to.")
        let places = (otherLinks?.elements(countMax: 64) ?? [])
            .reduce(into: link.map { [$0] } ?? []) { $0.append($1) }
            .compactMap { Self.place($0, appLinks) }
        // A link that the app answers to on the web leads to the same place, so it is as good as the app's own.
        let twins = places.compactMap { $0.onWeb(by: appLinks) }
        linkPrefixes = places + twins.filter { !places.contains($0) }
        androidChannel = members.optionalText(
            "android_channel", byteCountMax: 128, "The notification channel of the Android app.")
        apnsCategory = members.optionalText(
            "apns_category", byteCountMax: 128, "The category of the iOS app, with its buttons."
        ).map { CountedText($0) }
        sound = members.optionalText("sound", byteCountMax: 128, "Which sound of the app it plays.")
        badge = members.optional("badge", "The number on the app's icon.")?
            .integer(0...99_999)
        collapses = members.boolean(
            "collapse", default: false, "Whether a newer one takes the place of an older one on the device.")
        isEnabled = members.boolean("enabled", default: true, "Whether it may be sent.")
        disabledHint = members.optionalText(
            "disabled_hint", "What a producer is told of a type that is not enabled; needed for one.")
        alertType = members.optional("alert_type", "Its number among S2's alerts.")?.integer(1...11)
        hasAlertRecord = members.boolean(
            "alert_record", default: false,
            "Whether the alerts table has a row the app can look up by `alertId`; told beside the number in every payload."
        )
        isMutableAlone = members.boolean(
            "mutable_alone", default: false, "Whether it has a switch of its own beside its category's.")
        purpose = members.optionalText(
            "purpose", byteCountMax: 64, "A consent purpose it needs besides its category's permission."
        ).map { Purpose($0) }
        let minors: MinorsRule? = members.optionalName(
            "minors", "Whether it is kept from minors although its category is not.")
        refusesMinors = minors == .refuse
        subOf = members.optional(
            "sub_of",
            "A broader type it is sent in place of. Both name the same param in `dedupe_by`, and an event is told by one of them, on whatever channel."
        )?.typeID()
        self.eventScope = eventScope
        interruption =
            members.optionalName(
                "interruption", shown: Interruption.allCases.filter { $0 != .critical },
                "How much it interrupts, where that is not what its tier says.")
            ?? Self.interruption(of: tier)
        ownOverflow = members.optionalName(
            "overflow", "What happens to it above a limit, where that is not what its category says.")
        ownSummary = members.optional(
            "summary", "The type that tells what was gathered of it, where that is not its category's.")?
            .typeID()
        messageKey =
            members.optionalText(
                "messages", byteCountMax: 128, "The key of its texts, when it is not the type.")
            ?? id.text
        members.ignoreRationale()
        members.refuseOthers()
    }
}

/// What a mandatory notice may pass, by the gate that would have stopped it.
package enum MandatoryPass: String, CaseIterable, Sendable, Hashable {
    case preferences
    case quietHours = "quiet_hours"
    case caps
}

/// Why a type must reach the recipient, and what it therefore passes.
package struct MandatoryRule: Hashable, Sendable {
    package var law: [String]
    package var passes: [MandatoryPass]
    /// In words, as the law puts it.
    package var mustReachWithin: String
    /// The way it must go when no destination could take it, one of ``waysOut`` and of ``dischargedBy``.
    package var ifUnreachable: String
    /// By which the duty is done. What goes out on another channel says that there is something to read, and the duty
    /// stays owed.
    package var dischargedBy: [DischargeMeans]
    /// Hours after a send that leaves the duty owed until the alarm, 1 to ``dischargeHoursMax``.
    package var dischargeWithinHours: Int
    /// When the duty has to be looked at again. Who agreed to it signs the page (``ApprovalRole/legal``).
    package var reviewOn: CalendarDate

    /// By which a recipient is reached whom no notification reached.
    package static let waysOut = [DischargeMeans.email, .sms, .letter, .phone].map(\.rawValue)
    /// Sixty days. The law a duty stands on leaves less (``DutyLaw/all``).
    package static let dischargeHoursMax = 1_440
    /// Months from the day the bundle takes effect in which a duty is looked at again, at the latest.
    static let reviewMonthsMax = 18
}

/// What a push of a sealed type does for a device without a usable key.
package enum WithoutKey: String, CaseIterable, Sendable, Hashable {
    /// Send the constant text of the app and tier instead.
    case generic
    case reject
}

/// From when the time to live counts.
package enum TTLStart: String, CaseIterable, Sendable, Hashable {
    case arrival
    case due
}

/// Among whose sends two with one value of `dedupe_by` are the same event.
package enum DedupeScope: String, CaseIterable, Sendable, Hashable {
    /// One caller's own. No caller can have another's notice withheld, by sending its event first or acknowledging it.
    case caller
    /// Every caller's that may send the type.
    case type
}

/// What the recipient's own recorded request lets a type pass (S3: a person who asked to be stopped wants it at
/// night too).
package struct OwnRequestRule: Hashable, Sendable {
    /// The consent purpose that records the request.
    package var purpose: Purpose
    /// `quiet_hours`, `caps` or both; never the switches: the recipient who asked can switch off.
    package var passes: [MandatoryPass]
}

/// When, in the recipient's own time, a type goes out.
package enum SendTime: Hashable, Sendable {
    /// So long after it was asked for.
    case after(minutes: Int)
    /// The next time the clock reads it.
    case daily(minute: Int)
    /// The next such day. Days count from Monday, 0, to Sunday, 6.
    case weekly(day: Int, minute: Int)
    /// A time of the day that is the same for one recipient and differs between them; `last` is not reached.
    case between(first: Int, last: Int)
}

extension NotificationType {
    /// Whether a second send of one event is withheld.
    ///
    /// Not where a law obliges us to tell: it is not known that the first was read, so the second goes too and
    /// takes the place of the first on the device.
    package var isDeduplicated: Bool { dedupeBy != nil && !isMandatory }

    /// Whether a message of the type says what its texts say, on some channel; the others carry constant texts.
    var saysItsTexts: Bool { Channel.allCases.contains { body[$0] == .sealed || body[$0] == .full } }

    /// Whether the channel is where a duty to tell is done: by e-mail, in full whatever was chosen for a lock screen.
    ///
    /// Never what is of high sensitivity: that leaves no seal.
    package func isStatutoryEmail(on channel: Channel) -> Bool {
        channel == .email && mandatory != nil && body.email == .full && sensitivity != .high
    }

    /// Whether a text message of the type says the code that it carries: by SMS there is nothing to seal to, and a text
    /// without the code would be worthless. Always in full, whatever was chosen for a lock screen.
    package func isCodeText(on channel: Channel) -> Bool {
        channel == .sms && body.sms == .full && carriesCode
    }

    /// Whether every send of the type has a code.
    package var carriesCode: Bool { params.values.contains { $0.kind == .code && !$0.isOptional } }

    /// The param that tells one event of a duty from another: `dedupe_by`, or the only uuid; `nil` where nothing does,
    /// which no bundle's mandatory type may have.
    package var dutyParam: String? {
        if let dedupeBy { return dedupeBy }
        let identifiers = params.filter { $0.value == ParamSchema(kind: .uuid, isOptional: false) }.keys
        return identifiers.count == 1 ? identifiers.first : nil
    }

    /// Whether a message in a form does the duty on a channel: one of the page's own, in the form the page gives it. The
    /// constant text that stands in for a sealed body, or for one that a privacy choice cut, says too little.
    package func isDischarged(by form: BodyForm, on channel: Channel) -> Bool {
        mandatory?.dischargedBy.contains(DischargeMeans(channel)) == true && form == body[channel]
    }

    package static let ttlSecondsMax = SendRequest.ttlSecondsMax

    /// S0's classes in the platform's words. Critical delivery is asked for by a send, never by a type, so
    /// the highest tier starts at `time_sensitive` like the next.
    package static func interruption(of tier: Tier) -> Interruption {
        switch tier {
        case .critical, .important: .timeSensitive
        case .informational: .active
        case .promotional: .passive
        }
    }

    private static let meansBody = "What a message says there."

    private static func body(_ channels: MemberReader?, _ channel: Channel) -> BodyForm {
        let row = channels?.optional(channel.rawValue, "On this channel.")
        guard let members = row?.members() else { return .never }
        let form: BodyForm = members.name(
            "body", shown: BodyForm.allCases.filter { $0 != .sealed }, meansBody)
        if form == .sealed {
            members.reader.problem(
                "has a sealed body, which only push can carry", hint: "use `generic`, `full` or `never`")
        }
        members.ignoreRationale()
        members.refuseOthers()
        return form
    }

    private static func place(_ reader: NodeReader, _ appLinks: [String: LinkPrefix]) -> LinkPrefix? {
        let text = reader.text(byteCountMax: LinkPrefix.byteCountMax)
        let isAnswered = appLinks.values.contains { $0.covers(text) }
        let place = LinkPrefix(inApp: text) ?? (isAnswered ? LinkPrefix(onWeb: text) : nil)
        if place == nil {
            reader.problem(
                "is `\(text)`, which is no place in the app",
                hint:
                    "the app's own scheme and a path, the same for everybody, such as drop://send; a web page only below a place of `app_links` in bundle.yaml; no {param}"
            )
        }
        return place
    }

    private static func ttl(_ reader: NodeReader?) -> (seconds: Int64, from: TTLStart) {
        guard let reader else { return (1, .arrival) }
        let members = reader.members()
        var parts: [Int64] = []
        for (unit, length) in [("hours", 3600), ("minutes", 60), ("seconds", 1)] {
            if let value = members.optional(unit, "How many of them; exactly one unit is named.") {
                parts.append(Int64(value.integer(1...Int(ttlSecondsMax)) * length))
            }
        }
        let start: TTLStart = members.name(
            "counts_from",
            "`due`: from when it may go out, after its own time of day and the quiet hours that hold it.")
        members.ignoreRationale()
        members.refuseOthers()
        guard parts.count == 1, let seconds = parts.first else {
            reader.problem("must have exactly one of `hours`, `minutes` and `seconds`")
            return (1, start)
        }
        if seconds > ttlSecondsMax {
            reader.problem("is longer than 28 days, the longest FCM stores a message")
        }
        return (seconds, start)
    }

    static func isParamName(_ text: String) -> Bool {
        (1...SendRequest.paramNameCharacterCountMax).contains(text.utf8.count)
            && text.utf8.first?.isLetter == true
            && text.utf8.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: "_") }
    }
}

extension MandatoryRule {
    init(_ reader: NodeReader) {
        let members = reader.members()
        law = members.texts("law", countMin: 1, "Which article obliges us.")
        passes = members.names("passes", "What it passes: the gates that would have stopped it.")
        mustReachWithin = members.text(
            "must_reach_within", byteCountMax: 256, "How soon it must be told, as the law puts it.")
        ifUnreachable =
            members.required(
                "if_unreachable", "The way it must go when no destination could take it.")?
            .shown(as: .choice(Self.waysOut)).text(byteCountMax: 256) ?? ""
        dischargedBy = members.names(
            "discharged_by", countMin: 1,
            "By which the duty is done. What goes by another channel leaves it owed, and the answer to the send says so."
        )
        let within = members.required(
            "discharge_within", "How long after a send that leaves the duty owed the alarm is raised.")?
            .members()
        dischargeWithinHours =
            within?.integer("hours", 1...Self.dischargeHoursMax, "Hours after the send.") ?? 1
        within?.refuseOthers()
        if members.refused("approved") != nil, !reader.list.takesUnknownNames {
            reader.problem(
                "has `approved`, and a name in a page approves nothing",
                hint:
                    "keep `review`, and sign the page with `sendgate policy sign BUNDLE --role legal --key FILE`"
            )
        }
        reviewOn = members.date(
            "review",
            "The day the duty has to be looked at again; an alarm is raised from then on. The page is signed as `legal`."
        )
        members.ignoreRationale()
        members.refuseOthers()
    }
}

extension OwnRequestRule {
    init(_ reader: NodeReader) {
        let members = reader.members()
        purpose = Purpose(
            members.text("purpose", byteCountMax: 64, "The consent purpose that records the request."))
        passes = members.names("passes", shown: [.quietHours, .caps], "What it passes at such a request.")
        if passes.contains(.preferences) {
            reader.problem(
                "passes `preferences`, and whoever asked can switch off again",
                hint: "keep `quiet_hours`, `caps` or both")
        }
        members.ignoreRationale()
        members.refuseOthers()
    }
}

extension SendTime {
    private enum Day: String, CaseIterable {
        case monday, tuesday, wednesday, thursday, friday, saturday, sunday
    }

    /// - Returns: `nil` for anything that is not exactly one of the four, and the reader knows why.
    init?(_ reader: NodeReader) {
        let members = reader.members()
        var found: [SendTime] = []
        if let after = members.optional("after", "So long after it was asked for.")?.members() {
            found.append(.after(minutes: after.integer("minutes", 1...10_080, "Minutes, up to a week.")))
            after.refuseOthers()
        }
        if let daily = members.optional("daily", "The next time the clock reads it.") {
            found.append(.daily(minute: daily.timeOfDay()))
        }
        if let weekly = members.optional("weekly", "The next such day and time.")?.members() {
            let day: Day = weekly.name("day", "Which day of the week.")
            found.append(
                .weekly(
                    day: Day.allCases.firstIndex(of: day) ?? 0,
                    minute: weekly.required("at", "At which time.")?.timeOfDay() ?? 0))
            weekly.refuseOthers()
        }
        let between = members.optional(
            "between",
            "A time between two of one day, the earlier one first; the same for one recipient, and not for all."
        )
        if let between = between?.elements(countMin: 2, shownCountMax: 2) {
            let times = between.map { $0.timeOfDay() }
            if times.count == 2, times[0] < times[1] {
                found.append(.between(first: times[0], last: times[1]))
            } else if reader.recorder == nil {
                // A reader that describes the page goes on to its other members.
                reader.problem("must be two times of one day, the earlier one first")
                return nil
            }
        }
        members.ignoreRationale()
        members.refuseOthers()
        guard found.count == 1, let only = found.first else {
            reader.problem("must have exactly one of `after`, `daily`, `weekly` and `between`")
            return nil
        }
        self = only
    }
}
