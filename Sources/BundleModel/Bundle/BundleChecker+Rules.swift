import GateVocabulary

/// The pages that hold for every type: categories, regions, callers, critical delivery, channels and limits.
extension BundleChecker {
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
                    if permission == .optInOrExistingCustomer,
                        channel != .email || regime != .gdpr && regime != .ukGDPR
                    {
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

    /// What a category gathers is told by a type of its own.
    private func checkSummary(of category: GateVocabulary.Category, _ rule: CategoryRule, _ file: String) {
        let path = [category.rawValue, "summary"]
        let types = bundle.types.values.filter { $0.category == category }.sorted { $0.id < $1.id }
        for type in types { checkOverflow(of: type, under: rule) }
        if rule.overflow != .digest, rule.summary != nil {
            problem(file, path, "is said of a category that gathers nothing")
        } else if rule.overflow == .digest {
            checkSummary(
                rule.summary, of: category, telling: types.filter { bundle.summary(of: $0) == rule.summary },
                file, path)
        }
        for type in types {
            guard let summary = type.ownSummary, bundle.overflow(of: type) == .digest else { continue }
            checkSummary(
                summary, of: category, telling: [type], "types/\(type.id.text).yaml", ["summary"])
        }
    }

    /// What a page may say of its own about what is above a limit.
    private func checkOverflow(of type: NotificationType, under rule: CategoryRule) {
        let file = "types/\(type.id.text).yaml"
        let overflow = bundle.overflow(of: type)
        if let own = type.ownOverflow {
            if type.category == .security, own != .allow {
                problem(file, ["overflow"], "must be `allow`: no cap silences a warning")
            }
            if own == .allow, type.category == .marketing || type.category == .social {
                problem(
                    file, ["overflow"],
                    "is `allow`, and nobody has to have a `\(type.category.rawValue)` message however often",
                    hint: "say `drop` or `digest`, or give the type a limit of its own in limits.yaml")
            }
            if own == rule.overflow, type.ownSummary == nil {
                problem(
                    file, ["overflow"], "says what its category says",
                    hint: "remove the line: a rule has one place")
            }
        }
        if type.ownSummary != nil, overflow != .digest {
            problem(
                file, ["summary"], "is said of a type that is not gathered",
                hint: "add `overflow: digest`, or remove the line")
        }
        if overflow == .digest, bundle.summary(of: type) == nil, rule.overflow != .digest {
            problem(
                file, ["summary"], "must name the type that tells what was gathered",
                hint: Self.summaryHint)
        }
    }

    private static let summaryHint =
        "a type of this category with `params: {count: {integer: {min: 1, max: 1000000}}, totals: {optional: totals}}`, or one of the two"

    /// A summary says what others would have said, so it may show no more than the most careful of them.
    private func checkSummary(
        _ name: TypeID?, of category: GateVocabulary.Category, telling members: [NotificationType],
        _ file: String, _ path: [String]
    ) {
        guard let name, let summary = bundle.types[name] else {
            return problem(
                file, path, "must name the type that tells what was gathered", hint: Self.summaryHint)
        }
        if summary.category != category || !summary.isEnabled {
            problem(file, path, "names `\(name)`, which is disabled or of another category")
        }
        let known = [
            "count": ParamSchema(kind: .integer(min: 1, max: 1_000_000), isOptional: false),
            "totals": ParamSchema(kind: .totals, isOptional: true),
        ]
        if summary.params.isEmpty || summary.params.contains(where: { known[$0.key] != $0.value }) {
            problem(
                file, path, "names `\(name)`, whose params are not those of a summary",
                hint: Self.summaryHint)
        }
        if summary.dedupeBy != nil || summary.timing != nil || summary.mandatory != nil
            || summary.purpose != nil || summary.isMutableAlone || bundle.limits.types[name] != nil
            || summary.ownOverflow != nil || summary.ownSummary != nil
        {
            problem(
                file, path, "names `\(name)`, which has rules of its own",
                hint: "a summary has no cap, no time, no consent and no switch but its category's")
        }
        for type in members where type.id != name {
            if type.sensitivity.rank > summary.sensitivity.rank {
                problem(
                    file, path, "names `\(name)`, which is less sensitive than `\(type.id)`",
                    hint: "a summary is as sensitive as the most sensitive type it can hold")
            }
            let isCapped = bundle.typeCap(of: type) != nil || bundle.categoryCap(of: type) != nil
            if let duty = type.mandatory, !duty.passes.contains(.caps), isCapped {
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
            let hasCap = isCapped || bundle.everythingCap(of: type) != nil
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
        checkCodeTexts()
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

    /// Rows of `code_texts` name places that have a line, and no place is in two rows at one time.
    private func checkCodeTexts() {
        let file = "regions.yaml"
        var seen: [RegionCode: [CodeTextRow]] = [:]
        for (index, row) in bundle.regions.codeTextRows.enumerated() {
            let path = ["code_texts", String(index)]
            if let until = row.until, until <= row.from {
                problem(file, path + ["until"], "is \(until), and the row counts from \(row.from)")
            }
            for (place, region) in row.regions.enumerated() {
                let path = path + ["regions", String(place)]
                if bundle.regions.regions[region.country] == nil {
                    problem(file, path, "is `\(region)`, whose country has no line")
                }
                let overlaps = seen[region, default: []].contains { other in
                    (other.until.map { $0 > row.from } ?? true) && (row.until.map { $0 > other.from } ?? true)
                }
                if overlaps {
                    problem(
                        file, path, "is `\(region)`, which a row above has for some of the same days",
                        hint: "keep the one that counts, or end the earlier one by `until`")
                }
                seen[region, default: []].append(row)
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
            if let reason = rule.consentsBecause, name != bundle.developmentCaller,
                !CallerRule.isReason(reason)
            {
                problem(
                    file, path + ["consents_because"], "is `\(reason)`, which says nothing",
                    hint:
                        "say in a sentence of \(CallerRule.reasonWordsMin) words or more whose yes it records, and where it was said"
                )
            }
            let promotes = promotes(rule.types) && name != bundle.developmentCaller
            let held = rule.grants.intersection(.separatedFromPromotion).grants
            if promotes, !held.isEmpty {
                problem(
                    file, path + ["grants"],
                    "may send marketing or social types and holds \(held.quoted(\.rawValue))",
                    hint:
                        "separation of duties: a sender that can mint its own consent defeats everything else"
                )
            }
            for duties in GrantSet.separations where name != bundle.developmentCaller {
                let one = rule.grants.intersection(duties.held).grants
                let other = rule.grants.intersection(duties.apart).grants
                guard !one.isEmpty, !other.isEmpty else { continue }
                problem(
                    file, path + ["grants"],
                    "holds \(one.quoted(\.rawValue)) together with \(other.quoted(\.rawValue))",
                    hint: "separation of duties: \(duties.because)")
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
                    let place = path + ["types", key, String(index)]
                    guard let type = type(id, namedBy: file, place) else { continue }
                    if !rule.types.categories.contains(type.category) {
                        problem(
                            file, place,
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
            guard let type = type(allowance.type, namedBy: file, path + ["type"]) else { continue }
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
        checkReplacementNotice()
        checkContestedNotice()
        checkConfirmations()
        for (index, region) in (bundle.channels.smsHours?.regions ?? []).enumerated()
        where bundle.regions.regions[region.country] == nil {
            problem(
                "channels.yaml", ["sms", "hours", "regions", String(index)],
                "is `\(region)`, which has no line in regions.yaml")
        }
    }

    /// A bundle that confirms withdrawals confirms those of every language of its words, in a language that its readers read.
    private func checkConfirmations() {
        guard let rule = bundle.channels.smsRevocation, !rule.confirmations.isEmpty else { return }
        for locale in Set(rule.words.keys).union(rule.aloneWords.keys).sorted()
        where rule.confirmation(toWordsIn: locale, under: bundle.languages) == nil {
            problem(
                "channels.yaml", ["sms", "revocation", "confirmation"],
                "confirms nothing that was said in `\(locale)`",
                hint: "add a text for it, or a line to `languages.also_read` of bundle.yaml")
        }
    }

    /// What tells the holder of a replaced key goes at once, whatever the person chose about anything else.
    private func checkReplacementNotice() {
        checkNotice(
            bundle.channels.deviceKeyAge?.replacementNotice, at: ["push", "device_key", "replacement_notice"]
        ) { type in
            type.body.push == .sealed
                ? nil : ("whose push is not sealed", "only the key that was replaced is to open it")
        }
    }

    /// The notice to the older holder of a number or mailbox goes to each device at once, with a key or without.
    private func checkContestedNotice() {
        checkNotice(bundle.channels.contestedNotice, at: ["push", "contested_notice"]) { type in
            type.body.push == .never
                ? ("which has no push", "the address itself is in doubt, so a device is told") : nil
        }
    }

    /// - Parameter fault: What is wrong with the type's push, and why that matters; `nil` where nothing is.
    private func checkNotice(
        _ name: TypeID?, at path: [String],
        fault: (NotificationType) -> (message: String, hint: String)?
    ) {
        guard let name else { return }
        func refuse(_ message: String, _ hint: String? = nil) {
            problem("channels.yaml", path, "names `\(name)`, \(message)", hint: hint)
        }
        guard let type = bundle.types[name] else { return refuse("which is not in the registry") }
        if type.category != .security || !type.isEnabled {
            refuse("which is disabled or no security type")
        }
        if let fault = fault(type) { refuse(fault.message, fault.hint) }
        if type.params.values.contains(where: { !$0.isOptional }) {
            refuse("which needs params", "the gateway knows of nothing to say in them")
        }
        if type.dedupeBy != nil || type.timing != nil || type.mandatory != nil || type.purpose != nil
            || type.isMutableAlone
        {
            refuse(
                "which has rules of its own", "it has no time, no consent and no switch but its category's")
        }
    }

    func checkLimits() {
        for id in bundle.limits.types.keys {
            guard let type = type(id, namedBy: "limits.yaml", ["types", id.text]),
                bundle.overflow(of: type) == .allow
            else { continue }
            problem(
                "limits.yaml", ["types", id.text],
                "limits a `\(type.category.rawValue)` type, whose `overflow` is `allow`, so it limits nothing",
                hint: "remove the line; no cap silences a warning")
        }
        if let everything = bundle.limits.everything {
            // Above the shortest and widest of the others nothing else would ever be reached.
            for (category, cap) in bundle.limits.categories.sorted(by: { $0.key.rawValue < $1.key.rawValue })
            where cap.windowHours <= everything.windowHours && cap.count > everything.count {
                problem(
                    "limits.yaml", ["categories", category.rawValue],
                    "lets through more than `everything` does, so it limits nothing",
                    hint: "lower it, or raise `everything`")
            }
        }
        for category in bundle.limits.categories.keys
        where bundle.categories[category]?.overflow == .allow {
            problem(
                "limits.yaml", ["categories", category.rawValue],
                "limits a category whose `overflow` is `allow`, so it limits nothing")
        }
    }
}

extension Sensitivity {
    /// How much harm it would do, in the order of the declaration.
    fileprivate var rank: Int { Self.allCases.firstIndex(of: self)! }
}

extension BodyForm {
    /// How much of what is said may be seen by a person who sees the screen.
    fileprivate var openness: Int { [.never, .sealed, .generic, .full].firstIndex(of: self)! }
}
