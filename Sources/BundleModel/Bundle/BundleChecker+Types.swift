import CanonicalJSON
import GateVocabulary

/// The page of one type.
extension BundleChecker {
    // MARK: types/

    func check(_ type: NotificationType) {
        let file = "types/\(type.id).yaml"
        guard bundle.documents[file] != nil else { return }
        if !isTypeName(type.id.text) {
            problem(
                file, ["type"], "is `\(type.id)`",
                hint:
                    "lower-case letters, digits, `_` and `.`, at most 128, so that no two differ by case alone"
            )
        }
        checkBodies(of: type, file)
        checkMandatory(type, file)
        if type.category != .marketing, type.notMarketingBecause == nil {
            problem(
                file, [], "lacks `not_marketing_because`",
                hint: "say in a sentence why this is not marketing, or make it marketing")
        }
        if type.category == .marketing, type.notMarketingBecause != nil {
            problem(file, ["not_marketing_because"], "is said of a marketing type")
        }
        checkDedupeParam(of: type, file)
        checkDedupeScope(of: type, file)
        if !type.isEnabled, type.disabledHint == nil {
            problem(file, ["enabled"], "is false without a `disabled_hint` that says what is missing")
        }
        if type.isEnabled, type.disabledHint != nil {
            problem(file, ["disabled_hint"], "is said of an enabled type")
        }
        checkBroaderType(of: type, file)
        checkPurposes(of: type, file)
        if type.isMutableAlone, type.category == .security || type.mandatory != nil {
            problem(
                file, ["mutable_alone"], "gives a switch of its own to what must not be switched off alone",
                hint: type.mandatory == nil
                    ? "security is turned off with step-up only, as a whole (S1)"
                    : "what the law obliges us to send is not the recipient's to mute")
        }
        checkPresentation(of: type, file)
        checkAlert(of: type, file)
        if type.timing != nil, type.category == .security || type.mandatory != nil {
            problem(
                file, ["timing"], "makes a notification wait that must not wait",
                hint: "security and mandatory types go out as soon as they are asked for")
        }
        if type.refusesMinors, type.category == .security || type.mandatory != nil {
            problem(
                file, ["minors"], "keeps from minors what they have to be told",
                hint: "security and mandatory types go to everybody")
        }
        if type.interruption == .critical {
            problem(
                file, ["interruption"], "is `critical`, which only a permitted send can ask for",
                hint: "put the type on the list in critical.yaml")
        }
    }

    /// The param that tells one event from another.
    private func checkDedupeParam(of type: NotificationType, _ file: String) {
        guard let key = type.dedupeBy else { return }
        guard let schema = type.params[key] else {
            problem(file, ["dedupe_by"], "names `\(key)`, which is no param of the type")
            return
        }
        if schema.isOptional {
            problem(file, ["dedupe_by"], "names the param `\(key)`, which is optional")
        }
        switch schema.kind {
        case .uuid: break
        case .text, .integer, .code:
            guard type.mandatory != nil || type.category == .security else { break }
            problem(
                file, ["dedupe_by"],
                "names `\(key)`, which two events can share, and the second must be told too",
                hint: "use a uuid that is new for every event")
        default:
            problem(
                file, ["dedupe_by"], "names `\(key)`, which cannot tell one event from another",
                hint: "use a uuid, a text, a code or an integer")
        }
    }

    /// Where several callers send a type, one may tell what another told, and its page says which it is.
    private func checkDedupeScope(of type: NotificationType, _ file: String) {
        guard type.isDeduplicated, bundle.documents[file]?.json.objectValue?["dedupe_scope"] == nil else {
            return
        }
        let senders = bundle.callers.filter { name, rule in
            name != bundle.developmentCaller && rule.grants.contains(.send)
                && rule.types.covers(type.id, of: type.category)
        }.keys.map { "`\($0)`" }.sorted()
        guard senders.count > 1 else { return }
        problem(
            file, ["dedupe_by"],
            "tells events apart, and does not say whether those of \(senders.joined(separator: " and ")) are the same",
            hint:
                "`dedupe_scope: type` if any of them may tell, acknowledge or cancel what another tells; `caller` if each has its own"
        )
    }

    /// The broader type that this one is sent in place of.
    private func checkBroaderType(of type: NotificationType, _ file: String) {
        guard let broader = type.subOf else { return }
        if broader == type.id || bundle.types[broader] == nil {
            problem(
                file, ["sub_of"], "is `\(broader)`, which is no other type of the registry",
                hint: "name a broader type that has a file, or remove the line")
        } else if leadsBack(type) {
            problem(
                file, ["sub_of"], "is `\(broader)`, which is in the end a variant of `\(type.id)`",
                hint: "one of them is the broader one; remove its `sub_of`")
        } else if type.dedupeBy == nil || type.dedupeBy != bundle.types[broader]?.dedupeBy
            || type.dedupeScope != bundle.types[broader]?.dedupeScope
        {
            problem(
                file, ["sub_of"],
                "is `\(broader)`, and without one `dedupe_by` of both an event would be told by each of them",
                hint: "name the param that both have in `dedupe_by` of both pages")
        }
    }

    /// The consents that the type asks for besides its category's.
    private func checkPurposes(of type: NotificationType, _ file: String) {
        if let purpose = type.purpose, GateVocabulary.Category(rawValue: purpose.text) != nil {
            problem(
                file, ["purpose"], "is `\(purpose)`, the name of a category",
                hint: "a special purpose is asked for besides the category's permission")
        }
        if let purpose = type.ownRequest?.purpose,
            GateVocabulary.Category(rawValue: purpose.text) != nil || purpose == type.purpose
        {
            problem(
                file, ["own_request", "purpose"], "is `\(purpose)`, which already stands for a consent",
                hint: "asking to be reached at any hour is more than allowing to be reached; name it apart")
        }
        if type.ownRequest != nil, type.category != .transactional {
            problem(
                file, ["own_request"], "is said of a \(type.category.rawValue) type",
                hint: "only help that somebody asked for may come at any hour")
        }
    }

    /// A number of the alerts table, and whether the app finds a row of it.
    private func checkAlert(of type: NotificationType, _ file: String) {
        guard type.hasAlertRecord else { return }
        if type.alertType == nil {
            problem(
                file, ["alert_record"], "is said of a type without `alert_type`",
                hint: "the app looks up numbered types only; add the number or remove the line")
        } else if type.params["alertId"]?.kind != .uuid {
            problem(
                file, ["alert_record"], "is true, and the app has no `alertId` to look the row up by",
                hint: "params: {alertId: uuid}")
        }
    }

    /// How loudly a notification comes.
    private func checkPresentation(of type: NotificationType, _ file: String) {
        if type.body.push == .sealed, type.interruption != NotificationType.interruption(of: type.tier) {
            problem(
                file, ["interruption"],
                "is `\(type.interruption.rawValue)`, which outside the seal tells it from every other of its tier",
                hint: "remove the line; a sealed notification is as urgent as its tier")
        }
        guard type.category == .marketing else { return }
        if type.tier == .critical || type.tier == .important {
            problem(
                file, ["tier"], "is `\(type.tier.rawValue)`, and nobody waits for marketing",
                hint: "use `promotional` or `informational`")
        }
        if type.interruption == .timeSensitive {
            problem(
                file, ["interruption"], "is `time_sensitive`, and marketing breaks through nothing",
                hint: "Apple, Human Interface Guidelines, Managing notifications: never for marketing")
        }
        if let sound = type.sound, sound != "default",
            let alarm = alarms.first(where: { $0.sound == sound })
        {
            problem(
                file, ["sound"], "is `\(sound)`, the alarm of `\(alarm.id)`",
                hint: "an alarm that sells is not heard the next time")
        }
        if let channel = type.androidChannel,
            let alarm = alarms.first(where: { $0.androidChannel == channel })
        {
            problem(
                file, ["android_channel"], "is `\(channel)`, the channel of `\(alarm.id)`",
                hint: "whoever mutes the offers would mute the alarm")
        }
    }

    /// Whether following `sub_of` comes back to where it began.
    private func leadsBack(_ type: NotificationType) -> Bool {
        var seen: Set<TypeID> = []
        var next = type.subOf
        while let id = next, seen.insert(id).inserted {
            if id == type.id { return true }
            next = bundle.types[id]?.subOf
        }
        return false
    }

    private func isTypeName(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isLowercaseLetter || $0.isDigit || $0.isOneOf("_.") }
    }

    private func checkBodies(of type: NotificationType, _ file: String) {
        if Channel.allCases.allSatisfy({ type.body[$0] == .never }) {
            problem(file, ["channels"], "carries the type on no channel")
        }
        if type.sensitivity == .high {
            for channel in Channel.allCases
            where type.body[channel] == .full && !type.isCodeText(on: channel) {
                problem(
                    file, ["channels", channel.rawValue, "body"],
                    "is `full`, and the type's sensitivity is `high`",
                    hint: channel == .push ? "use `sealed`" : "use `generic` or `never`")
            }
        }
        for (name, schema) in type.params where schema.kind == .code {
            for channel in Channel.allCases
            where type.body[channel] == .full && !type.isCodeText(on: channel) {
                problem(
                    file, ["params", name],
                    "is a code, and the \(channel.rawValue) body is `full`: a code never leaves a seal, but by SMS where all sends have one",
                    hint: channel == .sms ? "make it a required param" : nil)
            }
        }
    }

    private func checkMandatory(_ type: NotificationType, _ file: String) {
        guard let mandatory = type.mandatory else { return }
        if type.category == .marketing || type.category == .social {
            problem(
                file, ["mandatory"], "is said of a `\(type.category.rawValue)` type",
                hint: "no law obliges us to send marketing, and a duty must not carry any")
        }
        if type.dutyParam == nil {
            problem(
                file, ["mandatory"], "does not say which param tells one duty from the next",
                hint: "a second event would count as done with the first: name its uuid in `dedupe_by`")
        }
        if mandatory.law.isEmpty {
            problem(
                file, ["mandatory", "law"], "cites no law",
                hint: "name the article that obliges us, or remove `mandatory`")
        }
        checkDutyLaw(mandatory, file)
        let latest = bundle.effectiveFrom.adding(months: MandatoryRule.reviewMonthsMax)
        if mandatory.reviewOn > latest {
            problem(
                file, ["mandatory", "review"],
                "is \(mandatory.reviewOn), more than \(MandatoryRule.reviewMonthsMax) months after the bundle takes effect (\(bundle.effectiveFrom))",
                hint:
                    "a duty is looked at again by \(latest): laws change, and a date nobody lives to see is no review"
            )
        }
        if mandatory.reviewOn <= bundle.effectiveFrom {
            problem(
                file, ["mandatory", "review"],
                "is \(mandatory.reviewOn), and the bundle takes effect \(bundle.effectiveFrom)",
                hint: "a duty whose review is due is not agreed to any more; have it reviewed first")
        }
        if !MandatoryRule.waysOut.contains(mandatory.ifUnreachable) {
            problem(
                file, ["mandatory", "if_unreachable"],
                "is `\(mandatory.ifUnreachable)`, which is no way to reach somebody whom no push reached",
                hint: "one of \(MandatoryRule.waysOut.quoted)")
        }
        if mandatory.dischargedBy.isEmpty {
            problem(
                file, ["mandatory", "discharged_by"], "names nothing",
                hint: "say by which of push, sms, email, letter and phone the duty is done")
        }
        if mandatory.dischargedBy.namesOneTwice {
            problem(file, ["mandatory", "discharged_by"], "names one thing twice")
        }
        for channel in mandatory.dischargedBy.compactMap(\.channel) where type.body[channel] == .never {
            problem(
                file, ["mandatory", "discharged_by"],
                "names `\(channel.rawValue)`, and the type has no body there",
                hint: "give it one under `channels`, or leave it out")
        }
        if !mandatory.dischargedBy.map(\.rawValue).contains(mandatory.ifUnreachable),
            MandatoryRule.waysOut.contains(mandatory.ifUnreachable)
        {
            problem(
                file, ["mandatory", "if_unreachable"],
                "is `\(mandatory.ifUnreachable)`, which is not in `discharged_by`",
                hint: "the last way must do the duty too")
        }
        if mandatory.passes.namesOneTwice {
            problem(file, ["mandatory", "passes"], "names one thing twice")
        }
        if let channel = Channel(rawValue: mandatory.ifUnreachable), type.body[channel] == .never {
            problem(
                file, ["mandatory", "if_unreachable"],
                "is `\(channel.rawValue)`, and the type has no body there")
        }
    }

    /// A duty stands on a law that is known to oblige us to tell, and is owed no longer than that law leaves.
    private func checkDutyLaw(_ mandatory: MandatoryRule, _ file: String) {
        let known = mandatory.law.compactMap(DutyLaw.of)
        guard let strictest = known.min(by: { $0.hoursMax < $1.hoursMax }) else {
            guard !mandatory.law.isEmpty else { return }
            return problem(
                file, ["mandatory", "law"],
                "cites \(mandatory.law.quoted), which no table knows as a duty to tell",
                hint:
                    "one of \(DutyLaw.all.quoted(\.citation)), first in its line; or remove `mandatory`"
            )
        }
        guard mandatory.dischargeWithinHours > strictest.hoursMax else { return }
        problem(
            file, ["mandatory", "discharge_within"],
            "is \(mandatory.dischargeWithinHours) hours, and `\(strictest.citation)` leaves \(strictest.hoursMax) at most",
            hint: strictest.because)
    }

    func checkAcrossTypes() {
        var numbers: [Int: TypeID] = [:]
        for type in bundle.types.values.sorted(by: { $0.id < $1.id }) {
            guard let number = type.alertType else { continue }
            if let other = numbers[number] {
                problem(
                    "types/\(type.id).yaml", ["alert_type"], "is \(number), the number of `\(other)` already")
            }
            numbers[number] = type.id
        }
    }
}
