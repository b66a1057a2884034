import GateVocabulary

/// What no single line can get wrong: rules that contradict one another, the law, or the source documents.
extension PolicyBundle {
    /// Every problem that remains once each file reads well by itself.
    package func check() -> [PolicyProblem] {
        let checker = BundleChecker(self)
        checker.checkCategories()
        checker.checkRegions()
        checker.checkCallers()
        checker.checkCritical()
        checker.checkChannels()
        checker.checkLimits()
        for type in types.values { checker.check(type) }
        checker.checkAcrossTypes()
        checker.checkMessages()
        checker.checkNotices()
        checker.checkCases()
        return checker.list.problems
    }
}

private struct BundleChecker {
    let bundle: PolicyBundle
    let list = ProblemList()

    init(_ bundle: PolicyBundle) { self.bundle = bundle }

    private func problem(_ file: String, _ path: [String], _ message: String, hint: String? = nil) {
        let name = path.isEmpty ? "the file" : "`\(path.joined(separator: "."))`"
        list.add(
            PolicyProblem(file: file, at: bundle.location(file, path), "\(name) \(message)", hint: hint))
    }

    // MARK: categories.yaml

    func checkCategories() {
        let file = "categories.yaml"
        for (category, rule) in bundle.categories {
            for channel in Channel.allCases {
                for regime in Regime.allCases {
                    let permission = rule.permission[channel][regime]
                    let path = [category.rawValue, "permission", channel.rawValue, regime.rawValue]
                    if category == .marketing, permission <= .optOut {
                        problem(
                            file, path, "lets marketing go out without an opt-in",
                            hint: "only a dated row of `permission_rows` may cite an opt-out law")
                    }
                    if permission == .optInOrExistingCustomer, channel != .email || regime.strictness < 2 {
                        problem(
                            file, path, "rests on existing customers outside e-mail in the EU and the UK",
                            hint: "ePrivacy Directive Art. 13(2) and UK PECR reg. 22(3) go no further")
                    }
                }
            }
        }
        for (category, rule) in bundle.categories { checkSummary(of: category, rule, file) }
        if let marketing = bundle.categories[.marketing] {
            if marketing.isOnByDefault {
                problem(file, ["marketing", "default"], "must be \"off\": marketing is asked for first (S1)")
            }
            if !marketing.refusesMinors {
                problem(file, ["marketing", "minors"], "must be `refuse`: a minor gets no marketing")
            }
        }
        for category in [GateVocabulary.Category.marketing, .social]
        where bundle.categories[category]?.hasUnsubscribeLink == false {
            problem(
                file, [category.rawValue, "unsubscribe_link"],
                "must be true: every such message carries the one-tap way out (S1)")
        }
        if let security = bundle.categories[.security] {
            if !security.isOnByDefault { problem(file, ["security", "default"], "must be \"on\"") }
            if security.switchOff != .stepUp {
                problem(file, ["security", "switch_off"], "must be `step_up`: very hard to turn off (S1)")
            }
            if security.quietHours != .pass {
                problem(file, ["security", "quiet_hours"], "must be `pass`: security bypasses entirely (S1)")
            }
            if security.overflow != .allow {
                problem(file, ["security", "overflow"], "must be `allow`: no cap silences a warning")
            }
            if security.refusesMinors {
                problem(file, ["security", "minors"], "must be `allow`: an account is to be protected")
            }
        }
    }

    /// A summary says what others would have said, so it may show no more than the most careful of them.
    private func checkSummary(of category: GateVocabulary.Category, _ rule: CategoryRule, _ file: String) {
        let path = [category.rawValue, "summary"]
        guard rule.overflow == .digest else {
            if rule.summary != nil { problem(file, path, "is said of a category that gathers nothing") }
            return
        }
        guard let name = rule.summary, let summary = bundle.types[name] else {
            return problem(
                file, path, "must name the type that tells what was gathered",
                hint: "a type of this category with `params: {count: integer, totals: {optional: totals}}`")
        }
        if summary.category != category || !summary.isEnabled {
            problem(file, path, "names `\(name)`, which is disabled or of another category")
        }
        if summary.params["count"]?.kind != .integer(min: 1, max: 1_000_000)
            || summary.params["totals"] != ParamSchema(kind: .totals, isOptional: true)
            || summary.params.count != 2
        {
            problem(
                file, path, "names `\(name)`, whose params are not those of a summary",
                hint: "params: {count: {integer: {min: 1, max: 1000000}}, totals: {optional: totals}}")
        }
        if summary.dedupeBy != nil || summary.timing != nil || summary.mandatory != nil
            || summary.purpose != nil || summary.isMutableAlone || bundle.limits.types[name] != nil
        {
            problem(
                file, path, "names `\(name)`, which has rules of its own",
                hint: "a summary has no cap, no time, no consent and no switch but its category's")
        }
        for type in bundle.types.values where type.category == category && type.id != name {
            if type.sensitivity.rank > summary.sensitivity.rank {
                problem(
                    file, path, "names `\(name)`, which is less sensitive than `\(type.id)`",
                    hint: "a summary is as sensitive as the most sensitive type it can hold")
            }
            if let duty = type.mandatory, !duty.passes.contains(.caps),
                bundle.limits.types[type.id] != nil || bundle.limits.categories[category] != nil
            {
                problem(
                    "types/\(type.id.text).yaml", ["mandatory", "passes"],
                    "lacks `caps`, and a duty is not told in a summary",
                    hint: "add `caps`, or lift the limit")
            }
            if type.body.push == .sealed, type.withoutKey == .generic, summary.body.push == .sealed,
                summary.withoutKey == .reject
            {
                problem(
                    file, path, "names `\(name)`, which a device without a key could not get",
                    hint: "`without_key: generic`, as `\(type.id)` has it")
            }
            let hasCap = bundle.limits.types[type.id] != nil || bundle.limits.categories[category] != nil
            for channel in Channel.allCases where hasCap && type.body[channel] != .never {
                let shown = summary.body[channel]
                if shown != .never, shown.openness > type.body[channel].openness {
                    problem(
                        file, path,
                        "names `\(name)`, which shows more by \(channel.rawValue) than `\(type.id)` may",
                        hint: "a summary is as closed as the most closed type it can hold")
                }
            }
        }
    }

    // MARK: regions.yaml

    func checkRegions() {
        let file = "regions.yaml"
        let rules = bundle.regions
        if bundle.documents[file] != nil {
            let missing = ISOCodes.countries.filter { rules.regions[RegionCode($0)!] == nil }.sorted()
            if !missing.isEmpty {
                problem(
                    file, ["regions"],
                    "lacks \(missing.count) of the ISO 3166-1 codes: \(missing.prefix(12).joined(separator: " "))",
                    hint: "every country has a line, so that none is forgotten by accident")
            }
        }
        for (code, rule) in rules.regions {
            let path = ["regions", code.description]
            if !ISOCodes.countries.contains(code.country.description) {
                problem(file, path, "is not an ISO 3166-1 country")
            }
            if let since = rule.since, since > bundle.effectiveFrom {
                problem(
                    file, path + ["since"], "is \(since), after the bundle takes effect",
                    hint: "put the change into a bundle that takes effect that day")
            }
        }
        struct Key: Hashable {
            var region: RegionCode
            var channel: Channel
            var category: GateVocabulary.Category
            var from: CalendarDate?
        }
        struct Table: Hashable {
            var region: RegionCode
            var channel: Channel
            var category: GateVocabulary.Category
        }
        var seen: Set<Key> = []
        var inForce: Set<Table> = []
        for (index, row) in rules.permissionRows.enumerated() {
            let path = ["permission_rows", String(index)]
            if rules.regions[row.region.country] == nil {
                problem(file, path + ["region"], "is `\(row.region)`, whose country has no line")
            }
            if row.categories.isEmpty { problem(file, path + ["categories"], "names no category") }
            for category in row.categories {
                let key = Key(region: row.region, channel: row.channel, category: category, from: row.from)
                if !seen.insert(key).inserted {
                    problem(file, path, "says a second time what holds for `\(category.rawValue)`")
                }
                if row.from.map({ $0 <= bundle.effectiveFrom }) ?? true,
                    !inForce.insert(
                        Table(region: row.region, channel: row.channel, category: category)
                    ).inserted
                {
                    problem(
                        file, path,
                        "holds for `\(category.rawValue)` when the bundle takes effect, and so does a row above",
                        hint: "keep the one that counts; a row to come has a later `from`")
                }
            }
            if row.categories.contains(.marketing) {
                if row.rule == .noneNeeded {
                    problem(file, path + ["rule"], "lets marketing go out without any permission")
                }
                if row.rule == .optOut, row.from == nil {
                    problem(
                        file, path, "cites an opt-out law without the day it counts from",
                        hint: "add `from`; marketing needs an opt-in unless a dated row says otherwise")
                }
            }
        }
    }

    // MARK: callers.yaml

    func checkCallers() {
        if bundle.callers[.gateway] != nil {
            problem("callers.yaml", ["gateway"], "is the gateway's own name", hint: "choose another")
        }
        let file = "callers.yaml"
        for (name, rule) in bundle.callers {
            let path = ["callers", name.text]
            if !(1...128).contains(name.text.utf8.count) { problem(file, path, "must be 1 to 128 bytes") }
            let promotes = promotes(rule.types) && name != bundle.developmentCaller
            let held = rule.grants.intersection(.separatedFromPromotion).grants
            if promotes, !held.isEmpty {
                let grants = held.map { "`\($0.rawValue)`" }.joined(separator: ", ")
                problem(
                    file, path + ["grants"], "may send marketing or social types and holds \(grants)",
                    hint:
                        "separation of duties: a sender that can mint its own consent defeats everything else"
                )
            }
            if rule.grants.contains(.sendCritical), !rule.grants.contains(.send) {
                problem(file, path + ["grants"], "has `send.critical` without `send`")
            }
            if rule.grants.contains(.consentsImport), !rule.grants.contains(.consentsWrite) {
                problem(file, path + ["grants"], "has `consents.import` without `consents.write`")
            }
            if rule.grants.contains(.preferencesStepUp), !rule.sources.contains(.inAppStepUp) {
                problem(
                    file, path + ["grants"],
                    "has `preferences.step_up` and may not assert the source `in_app_step_up`",
                    hint: "a grant that no request can use is one that somebody believes in")
            }
            if !rule.types.categories.isEmpty, !rule.grants.contains(.send) {
                problem(file, path + ["types"], "names types to a caller that may not send")
            }
            for (key, types) in [("only", rule.types.only ?? []), ("except", rule.types.except)] {
                for (index, id) in types.enumerated() {
                    guard let type = bundle.types[id] else {
                        problem(
                            file, path + ["types", key, String(index)],
                            "is `\(id)`, which is not in the registry")
                        continue
                    }
                    if !rule.types.categories.contains(type.category) {
                        problem(
                            file, path + ["types", key, String(index)],
                            "is `\(id)`, whose category `\(type.category.rawValue)` the caller has not")
                    }
                }
            }
        }
    }

    private func promotes(_ scope: TypeScope) -> Bool {
        let promotional = scope.categories.filter { $0 == .marketing || $0 == .social }
        guard !promotional.isEmpty else { return false }
        guard let only = scope.only else { return true }
        return only.contains { id in bundle.types[id].map { promotional.contains($0.category) } ?? true }
    }

    // MARK: critical.yaml

    func checkCritical() {
        let file = "critical.yaml"
        var seen: Set<TypeID> = []
        for (index, allowance) in bundle.critical.enumerated() {
            let path = ["allow", String(index)]
            if !seen.insert(allowance.type).inserted {
                problem(file, path + ["type"], "lists `\(allowance.type)` twice")
            }
            guard let type = bundle.types[allowance.type] else {
                problem(file, path + ["type"], "is `\(allowance.type)`, which is not in the registry")
                continue
            }
            if type.category != .security {
                problem(
                    file, path + ["type"],
                    "is `\(type.id)`, which is `\(type.category.rawValue)`; only security may be critical (S1)"
                )
            }
            if allowance.callers.isEmpty { problem(file, path + ["callers"], "names nobody who may ask") }
            for name in allowance.callers {
                guard let caller = bundle.callers[name] else {
                    problem(file, path + ["callers"], "names `\(name)`, who is not in callers.yaml")
                    continue
                }
                if !caller.grants.contains(.sendCritical) {
                    problem(
                        file, path + ["callers"], "names `\(name)`, who does not hold `send.critical`")
                }
                if !caller.types.covers(type.id, of: type.category) {
                    problem(file, path + ["callers"], "names `\(name)`, who may not send `\(type.id)`")
                }
            }
        }
    }

    // MARK: channels.yaml, limits.yaml

    func checkChannels() {
        if bundle.documents["channels.yaml"] != nil, bundle.channels.smsFallbackForMarketing != .forbidden {
            problem(
                "channels.yaml", ["sms", "fallback", "marketing"],
                "must be `forbidden`: a text never replaces a marketing push (S1)")
        }
        for (index, region) in (bundle.channels.smsHours?.regions ?? []).enumerated()
        where bundle.regions.regions[region.country] == nil {
            problem(
                "channels.yaml", ["sms", "hours", "regions", String(index)],
                "is `\(region)`, which has no line in regions.yaml")
        }
    }

    func checkLimits() {
        for id in bundle.limits.types.keys where bundle.types[id] == nil {
            problem("limits.yaml", ["types", id.text], "is not in the registry")
        }
        for id in bundle.limits.types.keys {
            guard let type = bundle.types[id], bundle.categories[type.category]?.overflow == .allow else {
                continue
            }
            problem(
                "limits.yaml", ["types", id.text],
                "limits a `\(type.category.rawValue)` type, whose `overflow` is `allow`, so it limits nothing",
                hint: "remove the line; no cap silences a warning")
        }
        for category in bundle.limits.categories.keys
        where bundle.categories[category]?.overflow == .allow {
            problem(
                "limits.yaml", ["categories", category.rawValue],
                "limits a category whose `overflow` is `allow`, so it limits nothing")
        }
    }

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
        if let key = type.dedupeBy {
            if let schema = type.params[key] {
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
            } else {
                problem(file, ["dedupe_by"], "names `\(key)`, which is no param of the type")
            }
        }
        if !type.isEnabled, type.disabledHint == nil {
            problem(file, ["enabled"], "is false without a `disabled_hint` that says what is missing")
        }
        if type.isEnabled, type.disabledHint != nil {
            problem(file, ["disabled_hint"], "is said of an enabled type")
        }
        if let broader = type.subOf {
            if broader == type.id || bundle.types[broader] == nil {
                problem(
                    file, ["sub_of"], "is `\(broader)`, which is no other type of the registry",
                    hint: "name a broader type that has a file, or remove the line")
            } else if leadsBack(type) {
                problem(
                    file, ["sub_of"], "is `\(broader)`, which is in the end a variant of `\(type.id)`",
                    hint: "one of them is the broader one; remove its `sub_of`")
            }
        }
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
        if type.isMutableAlone, type.category == .security || type.mandatory != nil {
            problem(
                file, ["mutable_alone"], "gives a switch of its own to what must not be switched off alone",
                hint: type.mandatory == nil
                    ? "security is turned off with step-up only, as a whole (S1)"
                    : "what the law obliges us to send is not the recipient's to mute")
        }
        checkPresentation(of: type, file)
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

    /// Where a tap leads, and how loudly a notification comes.
    private func checkPresentation(of type: NotificationType, _ file: String) {
        if let link = type.deepLink, !isDeepLink(link) {
            problem(
                file, ["deep_link"], "is `\(link)`, which is no place in the app",
                hint:
                    "the app's own scheme and a path, the same for everybody, such as drop://send; no web page and no {param}"
            )
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
        let alarms = bundle.types.values.filter { $0.category != .marketing && $0.tier == .critical }
        if let sound = type.sound, sound != "default",
            let alarm = alarms.filter({ $0.sound == sound }).min(by: { $0.id < $1.id })
        {
            problem(
                file, ["sound"], "is `\(sound)`, the alarm of `\(alarm.id)`",
                hint: "an alarm that sells is not heard the next time")
        }
        if let channel = type.androidChannel,
            let alarm = alarms.filter({ $0.androidChannel == channel }).min(by: { $0.id < $1.id })
        {
            problem(
                file, ["android_channel"], "is `\(channel)`, the channel of `\(alarm.id)`",
                hint: "whoever mutes the offers would mute the alarm")
        }
    }

    /// `scheme://path` in visible ASCII without braces, of a scheme that no browser, telephone or system answers to.
    private func isDeepLink(_ text: String) -> Bool {
        let others: Set<String> = [
            "http", "https", "javascript", "data", "file", "ftp", "intent", "content", "about", "blob", "tel",
            "sms", "mailto", "itms", "itms-apps", "market", "ws", "wss",
        ]
        guard let end = text.firstRange(of: "://")?.lowerBound else { return false }
        let scheme = text[..<end]
        guard let first = scheme.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first),
            !others.contains(String(scheme)),
            scheme.utf8.allSatisfy({ byte in
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
                    || byte == UInt8(ascii: "+") || byte == UInt8(ascii: ".")
            })
        else { return false }
        return text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x7B && $0 != 0x7D }
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
            && text.utf8.allSatisfy { byte in
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
            }
    }

    private func checkBodies(of type: NotificationType, _ file: String) {
        if Channel.allCases.allSatisfy({ type.body[$0] == .never }) {
            problem(file, ["channels"], "carries the type on no channel")
        }
        if type.sensitivity == .high {
            for channel in Channel.allCases where type.body[channel] == .full {
                problem(
                    file, ["channels", channel.rawValue, "body"],
                    "is `full`, and the type's sensitivity is `high`",
                    hint: channel == .push ? "use `sealed`" : "use `generic` or `never`")
            }
        }
        for (name, schema) in type.params where schema.kind == .code {
            for channel in Channel.allCases where type.body[channel] == .full {
                problem(
                    file, ["params", name],
                    "is a code, and the \(channel.rawValue) body is `full`: a code never leaves a seal")
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
        if mandatory.law.isEmpty {
            problem(
                file, ["mandatory", "law"], "cites no law",
                hint: "name the article that obliges us, or remove `mandatory`")
        }
        if !mandatory.approvedBy.contains(where: \.isLetter) {
            problem(
                file, ["mandatory", "approved", "by"], "names nobody",
                hint: "write who approved it, or their office")
        }
        if mandatory.reviewOn <= bundle.effectiveFrom {
            problem(
                file, ["mandatory", "approved", "review"],
                "is \(mandatory.reviewOn), and the bundle takes effect \(bundle.effectiveFrom)",
                hint: "an approval whose review is due approves nothing; have it reviewed first")
        }
        if !MandatoryRule.waysOut.contains(mandatory.ifUnreachable) {
            problem(
                file, ["mandatory", "if_unreachable"],
                "is `\(mandatory.ifUnreachable)`, which is no way to reach somebody whom no push reached",
                hint: "one of \(MandatoryRule.waysOut.map { "`\($0)`" }.joined(separator: ", "))")
        }
        if mandatory.approvedOn > bundle.effectiveFrom {
            problem(file, ["mandatory", "approved", "date"], "is after the bundle takes effect")
        }
        if Set(mandatory.passes).count < mandatory.passes.count {
            problem(file, ["mandatory", "passes"], "names one thing twice")
        }
        if let channel = Channel(rawValue: mandatory.ifUnreachable), type.body[channel] == .never {
            problem(
                file, ["mandatory", "if_unreachable"],
                "is `\(channel.rawValue)`, and the type has no body there")
        }
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

    // MARK: messages/

    func checkMessages() {
        guard let last = bundle.messages[LocaleMessages.lastLocale] else {
            list.add(
                PolicyProblem(
                    file: "messages/\(LocaleMessages.lastLocale).yaml", message: "the file is missing",
                    hint: "every chain of locales ends there"))
            return
        }
        var typesByKey: [String: [NotificationType]] = [:]
        for type in bundle.types.values { typesByKey[type.messageKey, default: []].append(type) }
        for type in bundle.types.values
        where Channel.allCases.contains(where: { type.body[$0] == .sealed || type.body[$0] == .full }) {
            if last.texts[type.messageKey] == nil {
                list.add(
                    PolicyProblem(
                        file: "messages/\(last.locale).yaml",
                        message: "lacks texts for `\(type.messageKey)`, which types/\(type.id).yaml needs",
                        hint: "every chain of locales ends here"))
            }
        }
        for messages in bundle.messages.values {
            let file = "messages/\(messages.locale).yaml"
            checkChain(of: messages, file)
            for (key, texts) in messages.texts {
                guard let types = typesByKey[key] else {
                    problem(file, [key], "is the text of no type", hint: "name it like the type")
                    continue
                }
                for type in types { check(texts, of: type, file, key) }
                checkPlurals(of: texts, in: messages.locale, file, key)
            }
        }
    }

    private func checkChain(of messages: LocaleMessages, _ file: String) {
        var seen: Set<String> = [messages.locale]
        var next = messages.fallback
        while let locale = next {
            guard seen.insert(locale).inserted else {
                problem(file, ["fallback"], "leads back to `\(locale)`")
                return
            }
            guard let found = bundle.messages[locale] else {
                problem(file, ["fallback"], "leads to `\(locale)`, which has no file")
                return
            }
            next = found.fallback
        }
    }

    private func check(_ texts: MessageTexts, of type: NotificationType, _ file: String, _ key: String) {
        let parts: [(name: String, text: MessageText?, isPublic: Bool)] = [
            ("title", texts.title, false), ("body", texts.body, false),
            ("public_title", texts.publicTitle, true), ("public_body", texts.publicBody, true),
        ]
        for (name, text, isPublic) in parts {
            guard let text else { continue }
            for param in text.params.sorted() {
                guard let schema = type.params[param] else {
                    problem(
                        file, [key, name], "names {\(param)}, which is no param of `\(type.id)`",
                        hint: "its params: \(type.params.keys.sorted().joined(separator: ", "))")
                    continue
                }
                // Totals stand at the end of what is complete without them.
                if schema.isOptional, schema.kind != .totals {
                    problem(
                        file, [key, name], "names {\(param)}, which is optional, so the text may have a hole",
                        hint: "make the param required or leave it out of the text")
                }
                if isPublic, type.sensitivity == .high || schema.kind == .code {
                    problem(
                        file, [key, name],
                        "names {\(param)} where anybody may see it, and `\(type.id)` is of high sensitivity")
                }
            }
            if case .plural(let param, _) = text, let schema = type.params[param] {
                if case .integer = schema.kind { continue }
                problem(file, [key, name], "counts by {\(param)}, which is no integer")
            }
        }
        checkCompleteness(texts, of: type, file, key)
    }

    /// A form that a language has and a text lacks is a wrong ending under every such number.
    private func checkPlurals(of texts: MessageTexts, in locale: String, _ file: String, _ key: String) {
        let parts: [(name: String, text: MessageText?)] = [
            ("title", texts.title), ("body", texts.body), ("public_title", texts.publicTitle),
            ("public_body", texts.publicBody),
        ]
        for (name, text) in parts {
            guard case .plural(let param, let forms)? = text else { continue }
            let missing = PluralForm.needed(in: locale).filter { forms[$0] == nil }
            guard !missing.isEmpty else { continue }
            problem(
                file, [key, name, param],
                "lacks \(missing.map { "`\($0.rawValue)`" }.joined(separator: ", ")), which \(locale) has",
                hint: "Unicode CLDR, Language Plural Rules")
        }
    }

    /// What the law demands of a notice, or a code stands for, is worth nothing half said.
    private func checkCompleteness(
        _ texts: MessageTexts, of type: NotificationType, _ file: String, _ key: String
    ) {
        let carriesCode = type.params.values.contains { $0.kind == .code }
        let saysIt = Channel.allCases.contains { type.body[$0] == .sealed || type.body[$0] == .full }
        guard type.mandatory != nil || carriesCode, saysIt else { return }
        let said = Set(texts.title.params + texts.body.params)
        let missing = type.params.filter { name, schema in
            let isSaid =
                switch schema.kind {
                case .text, .money, .code: true
                default: false
                }
            return isSaid && !schema.isOptional && !said.contains(name)
        }
        guard !missing.isEmpty else { return }
        problem(
            file, [key, "body"],
            "does not say \(missing.keys.sorted().map { "{\($0)}" }.joined(separator: ", "))",
            hint: carriesCode
                ? "a code says what it approves (Delegated Regulation (EU) 2018/389 Art. 5(1)(a))"
                : "a notice of law says all of it (e.g. GDPR Art. 34(2)); leave out the param if it need not be said"
        )
    }

    // MARK: notices/

    /// A consent is to what somebody read; so every text says what it asks for, and nothing else is taken from it.
    func checkNotices() {
        let file = Notice.purposesPage
        let ids = Set(bundle.notices.keys.map(\.id))
        if !ids.isEmpty, bundle.documents[file] == nil {
            return list.add(
                PolicyProblem(
                    file: file, message: "the file is missing",
                    hint:
                        "it says what each notice of notices/ asks for: `notices: {promo: {asks_for: [marketing]}}`"
                ))
        }
        for id in ids.sorted() where bundle.noticePurposes[id] == nil {
            problem(
                file, ["notices"], "does not say what the notice `\(id)` asks for",
                hint: "add `\(id): {asks_for: […]}` with a category or a type's `purpose`")
        }
        let marketing = Purpose(GateVocabulary.Category.marketing.rawValue)
        for (id, purposes) in bundle.noticePurposes where purposes.contains(marketing) && purposes.count > 1 {
            problem(
                file, ["notices", id], "asks for marketing together with something else",
                hint: "consent is asked for each purpose apart (GDPR Art. 7(2) and 7(4), recital 43)")
        }
        checkSpecialPurposes(file)
        for id in bundle.noticePurposes.keys.sorted() where !ids.contains(id) {
            problem(
                file, ["notices", id], "is no notice of this bundle",
                hint: "add notices/\(id).<version>.<language>.txt or remove the line")
        }
    }

    /// A consent besides the category's is asked for in words of its own, by the notice that bears its name.
    private func checkSpecialPurposes(_ file: String) {
        let alone = "consent is asked for each purpose apart (GDPR Arts. 4(11) and 7(2), recital 43)"
        let categories = Set(GateVocabulary.Category.allCases.map { Purpose($0.rawValue) })
        var special: Set<Purpose> = []
        for type in bundle.types.values.sorted(by: { $0.id < $1.id }) {
            let asked = [
                (["purpose"], type.purpose), (["own_request", "purpose"], type.ownRequest?.purpose),
            ]
            for (path, purpose) in asked {
                guard let purpose, !categories.contains(purpose) else { continue }
                special.insert(purpose)
                guard !bundle.noticePurposes.values.contains(where: { $0.contains(purpose) }) else {
                    continue
                }
                problem(
                    "types/\(type.id).yaml", path, "is `\(purpose)`, which no notice asks for",
                    hint:
                        "add notices/\(purpose).1.en.txt, and what it asks for to \(file); nobody can say yes otherwise"
                )
            }
        }
        for (id, purposes) in bundle.noticePurposes.sorted(by: { $0.key < $1.key }) {
            let named = purposes.filter { !categories.contains($0) }
            if !named.isEmpty, purposes.count > 1 {
                problem(
                    file, ["notices", id], "asks for `\(named[0])` together with something else", hint: alone)
            } else if let purpose = named.first, purpose.text != id {
                problem(
                    file, ["notices", id], "asks for `\(purpose)`, and is not the notice of that name",
                    hint: "a consent besides the category's is asked for by the notice that bears its name")
            } else if special.contains(Purpose(id)), named.isEmpty {
                problem(
                    file, ["notices", id],
                    "bears the name of the purpose `\(id)` and asks for something else",
                    hint: alone)
            }
        }
    }

    // MARK: cases/

    func checkCases() {
        var seen: Set<String> = []
        for example in bundle.cases where !seen.insert(example.name).inserted {
            list.add(
                PolicyProblem(
                    file: example.file, line: example.line,
                    message: "a second case is named `\(example.name)`"))
        }
    }
}

extension Sensitivity {
    fileprivate var rank: Int {
        switch self {
        case .open: 0
        case .personal: 1
        case .high: 2
        }
    }
}

extension BodyForm {
    /// How much of what is said whoever sees the screen may see.
    fileprivate var openness: Int {
        switch self {
        case .never: 0
        case .sealed: 1
        case .generic: 2
        case .full: 3
        }
    }
}

extension PolicyBundle {
    /// What is no problem and still worth a look: texts that a locale borrows from another.
    package var remarks: [PolicyProblem] {
        let spoken = types.values.filter { type in
            Channel.allCases.contains { type.body[$0] == .sealed || type.body[$0] == .full }
        }
        let keys = Set(spoken.map(\.messageKey)).sorted()
        return messages.values.sorted { $0.locale < $1.locale }.flatMap { own in
            let missing = Dictionary(grouping: keys.filter { own.texts[$0] == nil }) {
                reader(of: $0, from: own)
            }
            return missing.sorted { $0.key < $1.key }.map { locale, missing in
                let shown = missing.prefix(8).map { "`\($0)`" }.joined(separator: ", ")
                let rest = missing.count > 8 ? " and \(missing.count - 8) more" : ""
                return PolicyProblem(
                    file: "messages/\(own.locale).yaml",
                    message:
                        "lacks texts for \(missing.count) of \(keys.count) types, whose readers get `\(locale)`: \(shown)\(rest)",
                    hint: "translate them, or keep the fallback")
            }
        }
    }

    /// The first locale of a chain that has a text.
    private func reader(of key: String, from own: LocaleMessages) -> String {
        var locale = own
        while locale.texts[key] == nil, let next = locale.fallback.flatMap({ messages[$0] }) { locale = next }
        return locale.locale
    }
}
