package import GateVocabulary

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
    package static let waysOut = ["email", "sms", "letter", "phone"]
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
    package let body: ByChannel<BodyForm>
    package let withoutKey: WithoutKey
    package let params: [String: ParamSchema]
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
    package let deepLink: String?
    /// Where a send's own link may lead: below ``deepLink``, and the places the page adds.
    package let linkPrefixes: [LinkPrefix]
    package let androidChannel: String?
    package let apnsCategory: String?
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

    /// - Parameter eventScope: What ``subOf`` of this type and of those above it leads to.
    init(_ reader: NodeReader, eventScope: TypeID) {
        let members = reader.members()
        id = TypeID(members.text("type", byteCountMax: 128))
        means = members.text("means")
        source = members.text("source")
        category = members.name("category")
        let tier: Tier = members.name("tier")
        self.tier = tier
        sensitivity = members.name("sensitivity")
        notMarketingBecause = members.optional("not_marketing_because")?.reason()
        let bases = members.required("basis")?.members()
        basis = ByRegime(
            gdpr: bases?.text("gdpr") ?? "", ukGDPR: bases?.text("uk_gdpr") ?? "",
            gdprLike: bases?.text("gdpr_like") ?? "", other: bases?.text("other") ?? "")
        bases?.refuseOthers()
        mandatory = members.optional("mandatory").map { MandatoryRule($0) }
        let channels = members.required("channels")?.members()
        let push = channels?.optional("push")?.members()
        body = ByChannel(
            push: push?.name("body") ?? .never, sms: Self.body(channels, .sms),
            email: Self.body(channels, .email))
        let withoutKey: WithoutKey? = push?.optionalName("without_key")
        self.withoutKey = withoutKey ?? .reject
        if withoutKey != nil, body.push != .sealed {
            push?.reader.problem("has `without_key`, which only a sealed body can need")
        }
        push?.ignoreRationale()
        push?.refuseOthers()
        channels?.refuseOthers()
        var params: [String: ParamSchema] = [:]
        for (key, value) in members.optional("params")?.members().others() ?? [] {
            if !Self.isParamName(key) {
                value.problem(
                    "is no name for a param",
                    hint: "letters, digits and `_`, starting with a letter, at most 64")
            }
            params[key] = ParamSchema(value)
        }
        self.params = params
        let users = members.optional("used_by")?.members()
        appParams = users?.texts("app") ?? []
        users?.refuseOthers()
        dedupeBy = members.optionalText("dedupe_by", byteCountMax: 64)
        let scope: DedupeScope? = members.optionalName("dedupe_scope")
        dedupeScope = scope ?? .caller
        if scope != nil, dedupeBy == nil {
            reader.problem(
                "has `dedupe_scope` and no `dedupe_by`", hint: "name the param that tells events apart")
        }
        (ttlSeconds, ttlCountsFrom) = Self.ttl(members.required("ttl"))
        timing = members.optional("timing").flatMap { SendTime($0) }
        ownRequest = members.optional("own_request").map { OwnRequestRule($0) }
        let link = members.optional("deep_link")
        deepLink = link?.text(byteCountMax: LinkPrefix.byteCountMax)
        linkPrefixes = (members.optional("deep_link_prefixes")?.elements(countMax: 64) ?? [])
            .reduce(into: link.map { [$0] } ?? []) { $0.append($1) }
            .compactMap { Self.place($0) }
        androidChannel = members.optionalText("android_channel", byteCountMax: 128)
        apnsCategory = members.optionalText("apns_category", byteCountMax: 128)
        sound = members.optionalText("sound", byteCountMax: 128)
        badge = members.optional("badge")?.integer(0...99_999)
        collapses = members.boolean("collapse", default: false)
        isEnabled = members.boolean("enabled", default: true)
        disabledHint = members.optionalText("disabled_hint")
        alertType = members.optional("alert_type")?.integer(1...11)
        hasAlertRecord = members.boolean("alert_record", default: false)
        isMutableAlone = members.boolean("mutable_alone", default: false)
        purpose = members.optionalText("purpose", byteCountMax: 64).map { Purpose($0) }
        let minors: MinorsRule? = members.optionalName("minors")
        refusesMinors = minors == .refuse
        subOf = members.optionalText("sub_of", byteCountMax: 128).map { TypeID($0) }
        self.eventScope = eventScope
        interruption = members.optionalName("interruption") ?? Self.interruption(of: tier)
        ownOverflow = members.optionalName("overflow")
        ownSummary = members.optionalText("summary", byteCountMax: 128).map { TypeID($0) }
        messageKey = members.optionalText("messages", byteCountMax: 128) ?? id.text
        members.ignoreRationale()
        members.refuseOthers()
    }
}

extension NotificationType {
    /// Whether a second send of one event is withheld.
    ///
    /// Not where a law obliges us to tell: it is not known that the first was read, so the second goes too and
    /// takes the place of the first on the device.
    package var isDeduplicated: Bool { dedupeBy != nil && mandatory == nil }

    /// Whether a message of the type says what its texts say, on some channel; the others carry constant texts.
    var saysItsTexts: Bool { Channel.allCases.contains { body[$0] == .sealed || body[$0] == .full } }

    /// Whether the channel is where a duty to tell is done: by e-mail, in full whatever was chosen for a lock screen.
    ///
    /// Never what is of high sensitivity: that leaves no seal.
    package func isStatutoryEmail(on channel: Channel) -> Bool {
        channel == .email && mandatory != nil && body.email == .full && sensitivity != .high
    }

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

    /// 28 days, in seconds: the longest time FCM stores a message (FCM, "Set the lifespan of a message").
    package static let ttlSecondsMax: Int64 = 28 * 86_400

    /// S0's classes in the platform's words. Critical delivery is asked for by a send, never by a type, so
    /// the highest tier starts at `time_sensitive` like the next.
    package static func interruption(of tier: Tier) -> Interruption {
        switch tier {
        case .critical, .important: .timeSensitive
        case .informational: .active
        case .promotional: .passive
        }
    }

    private static func body(_ channels: MemberReader?, _ channel: Channel) -> BodyForm {
        guard let members = channels?.optional(channel.rawValue)?.members() else { return .never }
        let form: BodyForm = members.name("body")
        if form == .sealed {
            members.reader.problem(
                "has a sealed body, which only push can carry", hint: "use `generic`, `full` or `never`")
        }
        members.ignoreRationale()
        members.refuseOthers()
        return form
    }

    private static func place(_ reader: NodeReader) -> LinkPrefix? {
        let text = reader.text(byteCountMax: LinkPrefix.byteCountMax)
        let place = LinkPrefix(inApp: text)
        if place == nil {
            reader.problem(
                "is `\(text)`, which is no place in the app",
                hint:
                    "the app's own scheme and a path, the same for everybody, such as drop://send; no web page and no {param}"
            )
        }
        return place
    }

    private static func ttl(_ reader: NodeReader?) -> (seconds: Int64, from: TTLStart) {
        guard let reader else { return (1, .arrival) }
        let members = reader.members()
        var parts: [Int64] = []
        for (unit, length) in [("hours", 3600), ("minutes", 60), ("seconds", 1)] {
            if let value = members.optional(unit) {
                parts.append(Int64(value.integer(1...Int(ttlSecondsMax)) * length))
            }
        }
        let start: TTLStart = members.name("counts_from")
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

    private static func isParamName(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        func isLetter(_ byte: UInt8) -> Bool {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
        }
        guard (1...64).contains(bytes.count), isLetter(bytes[0]) else { return false }
        return bytes.allSatisfy {
            isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "_")
        }
    }
}

extension MandatoryRule {
    init(_ reader: NodeReader) {
        let members = reader.members()
        law = members.texts("law")
        passes = members.names("passes")
        mustReachWithin = members.text("must_reach_within", byteCountMax: 256)
        ifUnreachable = members.text("if_unreachable", byteCountMax: 256)
        dischargedBy = members.names("discharged_by")
        let within = members.required("discharge_within")?.members()
        dischargeWithinHours = within?.integer("hours", 1...Self.dischargeHoursMax) ?? 1
        within?.refuseOthers()
        if members.optional("approved") != nil, !reader.list.takesUnknownNames {
            reader.problem(
                "has `approved`, and a name in a page approves nothing",
                hint:
                    "keep `review`, and sign the page with `sendgate policy sign BUNDLE --role legal --key FILE`"
            )
        }
        reviewOn = members.date("review")
        members.ignoreRationale()
        members.refuseOthers()
    }
}

extension OwnRequestRule {
    init(_ reader: NodeReader) {
        let members = reader.members()
        purpose = Purpose(members.text("purpose", byteCountMax: 64))
        passes = members.names("passes")
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
        if let after = members.optional("after")?.members() {
            found.append(.after(minutes: after.integer("minutes", 1...10_080)))
            after.refuseOthers()
        }
        if let daily = members.optional("daily") { found.append(.daily(minute: daily.timeOfDay())) }
        if let weekly = members.optional("weekly")?.members() {
            let day: Day = weekly.name("day")
            found.append(
                .weekly(
                    day: Day.allCases.firstIndex(of: day) ?? 0,
                    minute: weekly.required("at")?.timeOfDay() ?? 0))
            weekly.refuseOthers()
        }
        if let between = members.optional("between")?.elements() {
            let times = between.map { $0.timeOfDay() }
            if times.count == 2, times[0] < times[1] {
                found.append(.between(first: times[0], last: times[1]))
            } else {
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
