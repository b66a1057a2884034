package import BundleModel
package import CanonicalJSON
package import GateVocabulary

/// A bundle made ready to decide: immutable, shared by every thread, swapped as a whole.
///
/// Made only from a ``PolicyBundle``, and those exist only without problems.
package final class CompiledPolicy: Sendable {
    /// The model it was made from, for everything that is not on the path of a decision.
    package let bundle: PolicyBundle
    /// ``PolicyBundle/brand``, which stands in every notification.
    package let brand: CountedText
    /// ``PolicyBundle/languages``, by which a reader's language becomes one of the bundle.
    package let languages: ReaderLanguages
    /// For how long a device that is not heard from counts as in use: as long as its word on where it is counts.
    /// `nil`: for good.
    package let deviceFreshSeconds: Int64?
    /// SHA-256 over the bundle's canonical form; goes into every entry.
    package let digest: PolicyDigest
    /// Verified signatures under the bundle, in the order of roles; empty for a bundle that needs no signature.
    package let approvals: [Approval]

    // One property each: of a tuple, a look-up would copy every category to give one.
    private let transactional: CategoryRule
    private let security: CategoryRule
    private let social: CategoryRule
    private let marketing: CategoryRule
    private let typeNames: NameTable
    /// Every type, by id.
    package let types: [NotificationType]
    /// Three per type, in the order push, sms, email.
    private let rules: [CompiledRule]
    /// The same of what has to be looked up.
    private let needs: [FactNeeds]
    /// By type, whether its sends are not counted in everything.
    private let uncounted: [Bool]
    /// As their files are named.
    let localeNames: NameTable
    /// By the position of their locale.
    let locales: [LocaleTexts]
    /// By locale in lower case: what is said of decisions there.
    let sentences: [String: Sentences]
    /// Types that another type is sent in place of, or that are sent in place of another (`sub_of`).
    private let typesOfSeveral: Set<TypeID>
    private let callerNames: NameTable
    /// A row per caller, the gateway's first: what it may do of each type and, last, of an unregistered type.
    private let permits: [CompiledRule.RuleFlags]
    private let map: RegionMap

    package init(_ bundle: PolicyBundle, approvals: [Approval] = []) {
        self.bundle = bundle
        brand = CountedText(bundle.brand)
        languages = bundle.languages
        self.approvals = approvals
        digest = bundle.digest
        func rule(_ category: GateVocabulary.Category) -> CategoryRule { bundle.categories[category]! }
        transactional = rule(.transactional)
        security = rule(.security)
        social = rule(.social)
        marketing = rule(.marketing)
        let types = bundle.types.values.sorted { $0.id < $1.id }
        self.types = types
        typeNames = NameTable(types.map(\.id.text))
        rules = types.flatMap { type in
            Self.channels.map { Self.rule(of: type, on: $0, in: bundle) }
        }
        let uncountedTypes = bundle.uncountedTypes
        uncounted = types.map { uncountedTypes.contains($0.id) }
        needs = types.flatMap { type in
            Self.channels.map { FactNeeds(of: type, on: $0, in: bundle, uncountedTypes: uncountedTypes) }
        }
        locales = Self.localeTexts(of: bundle, for: types)
        localeNames = NameTable(locales.map(\.locale))
        sentences = Dictionary(
            bundle.sentences.map { ($0.key.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first })
        typesOfSeveral = Set(
            Dictionary(grouping: types, by: \.eventScope).values.filter { $0.count > 1 }.joined().map(\.id))
        let callers = bundle.callers.sorted { $0.key < $1.key }
        callerNames = NameTable([CallerName.gateway.text] + callers.map(\.key.text))
        permits =
            Self.permitsOfGateway(to: types, in: bundle)
            + callers.flatMap { name, rule in Self.permits(of: name, under: rule, to: types, in: bundle) }
        map = RegionMap(bundle.regions)
        deviceFreshSeconds = (bundle.regions.freshnessDays[.device] ?? nil).map { Int64($0) * 86_400 }
    }

    private static let channels: [Channel] = [.push, .sms, .email]

    /// Where what is known of a type on a channel stands in the tables that have three per type.
    private func place(of type: Int, on channel: Channel) -> Int {
        switch channel {
        case .push: type * 3
        case .sms: type * 3 + 1
        case .email: type * 3 + 2
        }
    }

    private static func permits(
        of name: CallerName, under rule: CallerRule, to types: [NotificationType], in bundle: PolicyBundle
    ) -> [CompiledRule.RuleFlags] {
        let maySend = rule.grants.contains(.send)
        let ofTypes = types.map { type in
            var flags: CompiledRule.RuleFlags = [.callerKnown]
            if maySend, rule.types.covers(type.id, of: type.category) { flags.insert(.typeGranted) }
            let allowed = bundle.critical.contains { $0.type == type.id && $0.callers.contains(name) }
            if allowed, rule.grants.contains(.sendCritical) { flags.insert(.criticalGranted) }
            return flags
        }
        // Whether it may send an unregistered type is unknown; that it may not send at all is known.
        return ofTypes + [maySend ? [.callerKnown, .typeGranted] : [.callerKnown]]
    }

    /// Summaries and the notices of `channels.yaml` are the gateway's own sends: it may send those and nothing else.
    private static func permitsOfGateway(
        to types: [NotificationType], in bundle: PolicyBundle
    ) -> [CompiledRule.RuleFlags] {
        let own = bundle.gatewayTypes
        return types.map { own.contains($0.id) ? [.callerKnown, .typeGranted] : [.callerKnown] }
            + [[.callerKnown, .typeGranted]]
    }

    private static func rule(
        of type: NotificationType, on channel: Channel, in bundle: PolicyBundle
    ) -> CompiledRule {
        let category = bundle.categories[type.category]!
        var flags = flags(of: category)
        func mark(_ mark: CompiledRule.RuleFlags, _ isSet: Bool) {
            if isSet { flags.insert(mark) }
        }
        mark(.typeEnabled, type.isEnabled)
        mark(.criticalListed, bundle.critical.contains { $0.type == type.id })
        mark(.refusesMinors, type.refusesMinors)
        mark(.mutableAlone, type.isMutableAlone)
        mark(.needsPurpose, type.purpose != nil)
        mark(.genericWithoutKey, type.withoutKey == .generic)
        mark(.deduplicated, type.isDeduplicated)
        mark(.timed, type.timing != nil)
        mark(.ownRequestPassesQuietHours, type.ownRequest?.passes.contains(.quietHours) == true)
        mark(.ownRequestPassesCaps, type.ownRequest?.passes.contains(.caps) == true)
        mark(.statutoryEmail, type.isStatutoryEmail(on: channel))
        mark(.reachesOlderHolders, type.category != .security && type.sensitivity != .high)
        mark(.codeText, type.isCodeText(on: channel))
        let passes = type.mandatory?.passes ?? []
        mark(.mandatoryPassesPreferences, passes.contains(.preferences))
        mark(.mandatoryPassesQuietHours, passes.contains(.quietHours))
        mark(.mandatoryPassesCaps, passes.contains(.caps))
        let fallback =
            type.category == .marketing
            ? bundle.channels.smsFallbackForMarketing : bundle.channels.smsFallbackForOthers
        mark(.smsFallbackForbidden, fallback == .forbidden)
        return CompiledRule(
            flags: flags, channel: channel, category: type.category, sensitivity: type.sensitivity,
            body: type.body[channel], interruption: type.interruption, quietHours: category.quietHours,
            overflow: overflow(of: type, on: channel, in: bundle),
            permission: category.permission[channel],
            typeCap: UInt32(bundle.typeCap(of: type)?.count ?? 0),
            categoryCap: UInt32(bundle.categoryCap(of: type)?.count ?? 0),
            everythingCap: UInt32(bundle.everythingCap(of: type)?.count ?? 0),
            payloadByteCountMax: UInt32(bundle.channels.rules[channel].payloadByteCountMax))
    }

    private static func flags(of category: CategoryRule) -> CompiledRule.RuleFlags {
        var flags: CompiledRule.RuleFlags = [.typeKnown]
        if category.isOnByDefault { flags.insert(.onByDefault) }
        if category.switchOff == .stepUp { flags.insert(.stepUpToSwitchOff) }
        if category.refusesMinors { flags.insert(.refusesMinors) }
        if !category.withheldFrom.isEmpty { flags.insert(.withheldFromSome) }
        return flags
    }

    /// What all types of a category share: as much as gates 6 to 8 need to say how a preference stands.
    func rule(of category: GateVocabulary.Category, on channel: Channel) -> CompiledRule {
        let rule = self.category(category)
        return CompiledRule(
            flags: Self.flags(of: rule), channel: channel, category: category, sensitivity: .high,
            body: .never, interruption: .passive, quietHours: rule.quietHours, overflow: rule.overflow,
            permission: rule.permission[channel], typeCap: 0, categoryCap: 0, everythingCap: 0,
            payloadByteCountMax: 0)
    }

    /// The overflow rule of a type on a channel: `drop` instead of `digest` where its summary has no body on the channel.
    private static func overflow(
        of type: NotificationType, on channel: Channel, in bundle: PolicyBundle
    ) -> OverflowRule {
        let overflow = bundle.overflow(of: type)
        guard overflow == .digest else { return overflow }
        guard let summary = bundle.summary(of: type).flatMap({ bundle.types[$0] }),
            summary.body[channel] != .never
        else { return .drop }
        return .digest
    }

    /// Everything the bundle says about a request.
    package func rule(for request: AttestedRequest) -> CompiledRule {
        rule(for: request, type: typeNames.position(of: request.type.text))
    }

    /// What a decision and its facts ask the bundle about a request, looked up once for both.
    package func terms(of request: AttestedRequest) -> RequestTerms {
        let type = typeNames.position(of: request.type.text)
        return RequestTerms(
            rule: rule(for: request, type: type), type: type.map { types[$0] }, typePosition: type,
            needs: type.map { needs[place(of: $0, on: request.channel)] })
    }

    private func rule(for request: AttestedRequest, type: Int?) -> CompiledRule {
        var flags: CompiledRule.RuleFlags = request.critical ? [.criticalAsked] : []
        if let caller = callerNames.position(of: request.caller.text) {
            flags.formUnion(permits[caller * (types.count + 1) + (type ?? types.count)])
        }
        guard let type else { return .ofUnknownType(flags: flags, channel: request.channel) }
        var compiled = rules[place(of: type, on: request.channel)]
        compiled.flags.formUnion(flags)
        return compiled
    }

    /// - Returns: `nil` for a type that is not in the registry: nothing about the recipient is needed to
    ///   refuse it.
    package func needs(for request: AttestedRequest) -> FactNeeds? {
        typeNames.position(of: request.type.text).map { needs[place(of: $0, on: request.channel)] }
    }

    /// The law and the permission rule for where the recipient is believed to be.
    package func jurisdiction(of facts: Facts, under compiled: CompiledRule) -> Jurisdiction {
        map.jurisdiction(of: facts, under: compiled)
    }

    // MARK: What others read

    /// What a person may switch off by itself, by name.
    package var typesMutableAlone: [NotificationType] {
        types.filter { $0.isMutableAlone && $0.isEnabled }
    }

    package func type(_ id: TypeID) -> NotificationType? {
        typeNames.position(of: id.text).map { types[$0] }
    }

    /// Whether ``Facts/everythingCount`` leaves out the sends of a type.
    package func isUncounted(_ id: TypeID) -> Bool {
        typeNames.position(of: id.text).map { uncounted[$0] } ?? false
    }

    /// How the params and the link of a send fall short of what its type declares; empty when they fit, and for a type that is
    /// not in the registry, which gate 1 refuses by itself.
    package func paramsViolations(
        _ params: JSONObject, deepLink: String? = nil, of id: TypeID
    ) -> [ParamsViolation] {
        type(id)?.violations(in: params, deepLink: deepLink) ?? []
    }

    /// The params of a send as they are used, or how they and the link fall short of what the type declares. Those of a type that
    /// is not in the registry are none: gate 1 refuses it by itself.
    package func check(
        _ params: JSONObject, deepLink: String? = nil, of id: TypeID
    ) -> Result<CheckedParams, ParamsMisfit> {
        type(id)?.check(params, deepLink: deepLink) ?? .success(.none)
    }

    /// Where a number belongs by how it begins, the longest beginning first; `nil` where the bundle names none.
    package func region(ofNumber number: String) -> RegionCode? {
        bundle.regions.callingCodes.filter { number.hasPrefix($0.key) }
            .max { $0.key.utf8.count < $1.key.utf8.count }?.value
    }

    /// What a caller may do; `nil` for a name the bundle does not know, which may do nothing.
    package func caller(_ name: CallerName) -> CallerRule? { bundle.callers[name] }

    package func grants(of name: CallerName) -> GrantSet { bundle.callers[name]?.grants ?? [] }

    package func category(_ category: GateVocabulary.Category) -> CategoryRule {
        switch category {
        case .transactional: transactional
        case .security: security
        case .social: social
        case .marketing: marketing
        }
    }

    /// Whether every message of the type carries the link that mutes its category without a login.
    package func hasUnsubscribeLink(_ type: NotificationType) -> Bool {
        // Of the rule itself: ``category(_:)`` copies all of it.
        switch type.category {
        case .transactional: transactional.hasUnsubscribeLink
        case .security: security.hasUnsubscribeLink
        case .social: social.hasUnsubscribeLink
        case .marketing: marketing.hasUnsubscribeLink
        }
    }

    /// A consent text that was shown; `nil` for one the bundle does not hold.
    package func notice(_ key: Notice.Key) -> Notice? { bundle.notices[key] }

    /// The purposes that the notice asks for; `nil` for a notice the bundle does not know.
    package func scope(of notice: Notice.Key) -> Notice.Scope? { bundle.noticeScopes[notice.id] }

    /// Days after which a consent to a purpose ends at the latest, by whatever notice it was given; `nil` without an end.
    package func consentDaysMax(for purpose: Purpose) -> Int? {
        bundle.noticeScopes.values.filter { $0.purposes.contains(purpose) }.compactMap(\.endsAfterDays).min()
    }

    /// Everything consent can be recorded for, sorted: the categories, what types ask for besides, what notices ask.
    package var purposes: [Purpose] {
        var all = Set(GateVocabulary.Category.allCases.map { Purpose($0.rawValue) })
        for type in types {
            if let purpose = type.purpose { all.insert(purpose) }
            if let purpose = type.ownRequest?.purpose { all.insert(purpose) }
        }
        for purposes in bundle.noticePurposes.values { all.formUnion(purposes) }
        return all.sorted { $0.text < $1.text }
    }

    /// Whether another type is sent in place of this one, or this one of another (`sub_of`).
    package func isOneOfSeveral(_ type: NotificationType) -> Bool { typesOfSeveral.contains(type.id) }

    /// A category's own purpose, and those that types of no other category ask for besides.
    package func purposes(onlyOf category: GateVocabulary.Category) -> [Purpose] {
        func asked(_ isWanted: (NotificationType) -> Bool) -> Set<Purpose> {
            Set(types.filter(isWanted).compactMap(\.purpose))
        }
        let own = asked { $0.category == category }.subtracting(asked { $0.category != category })
        return own.union([Purpose(category.rawValue)]).sorted { $0.text < $1.text }
    }
}
