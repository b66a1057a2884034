package import BundleModel
package import GateVocabulary

/// Everything a bundle says about one (type, caller, channel, critical): what the gates read besides facts.
///
/// Small and without references, so that deciding copies and counts nothing. Two requests with equal
/// rules are decided alike on every set of facts, which is what lets a proof go through the
/// rules of a bundle instead of its types.
package struct CompiledRule: Hashable, Sendable {
    /// Yes-or-no answers.
    package struct RuleFlags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let typeKnown = RuleFlags(rawValue: 1 << 0)
        package static let typeEnabled = RuleFlags(rawValue: 1 << 1)
        package static let callerKnown = RuleFlags(rawValue: 1 << 2)
        /// The caller holds `send` and the type is in its scope.
        package static let typeGranted = RuleFlags(rawValue: 1 << 3)
        package static let criticalAsked = RuleFlags(rawValue: 1 << 4)
        package static let criticalListed = RuleFlags(rawValue: 1 << 5)
        /// The caller holds `send.critical` and the allow-list names it for this type.
        package static let criticalGranted = RuleFlags(rawValue: 1 << 6)
        package static let onByDefault = RuleFlags(rawValue: 1 << 7)
        package static let stepUpToSwitchOff = RuleFlags(rawValue: 1 << 8)
        package static let refusesMinors = RuleFlags(rawValue: 1 << 9)
        package static let mutableAlone = RuleFlags(rawValue: 1 << 10)
        package static let needsPurpose = RuleFlags(rawValue: 1 << 11)
        package static let genericWithoutKey = RuleFlags(rawValue: 1 << 12)
        package static let mandatoryPassesPreferences = RuleFlags(rawValue: 1 << 13)
        package static let mandatoryPassesQuietHours = RuleFlags(rawValue: 1 << 14)
        package static let mandatoryPassesCaps = RuleFlags(rawValue: 1 << 15)
        package static let smsFallbackForbidden = RuleFlags(rawValue: 1 << 16)
        /// Two sends of one event are one: the type declares `dedupe_by`.
        package static let deduplicated = RuleFlags(rawValue: 1 << 17)
        /// The type has a time of day of its own.
        package static let timed = RuleFlags(rawValue: 1 << 18)
        package static let ownRequestPassesQuietHours = RuleFlags(rawValue: 1 << 19)
        package static let ownRequestPassesCaps = RuleFlags(rawValue: 1 << 20)
        /// The law obliges us to say it, and this is the e-mail that says it.
        package static let statutoryEmail = RuleFlags(rawValue: 1 << 21)
        /// The category does not go to people who take part in something: it declares `withheld_from`.
        package static let withheldFromSome = RuleFlags(rawValue: 1 << 22)
        /// Goes on to an address that another person verified later: neither a security type nor one of high sensitivity.
        package static let reachesOlderHolders = RuleFlags(rawValue: 1 << 23)
        /// A text message that says a code, where the account's region allows one.
        package static let codeText = RuleFlags(rawValue: 1 << 24)
    }

    package var flags: RuleFlags
    package var channel: Channel
    package var category: GateVocabulary.Category
    package var sensitivity: Sensitivity
    package var body: BodyForm
    package var interruption: Interruption
    package var quietHours: QuietHoursRule
    package var overflow: OverflowRule
    /// The category's table for this channel.
    package var permission: ByRegime<PermissionRule>
    /// Forwards inside the type's window; 0 when the type has no cap.
    package var typeCap: UInt32
    /// The same for the category.
    package var categoryCap: UInt32
    /// The same over everything; 0 also for what no limit may silence.
    package var everythingCap: UInt32
    /// Bytes the channel carries.
    package var payloadByteCountMax: UInt32

    /// Asked for, on the list, and by a caller that may.
    package var isCriticalPermitted: Bool {
        flags.isSuperset(of: [.criticalAsked, .criticalListed, .criticalGranted])
    }

    /// What is known of a type that is not in the registry: the caller and the channel alone.
    package static func ofUnknownType(flags: RuleFlags, channel: Channel) -> CompiledRule {
        CompiledRule(
            flags: flags, channel: channel, category: .marketing, sensitivity: .high, body: .never,
            interruption: .passive, quietHours: .drop, overflow: .drop,
            permission: ByRegime(
                gdpr: .writtenConsent, ukGDPR: .writtenConsent, gdprLike: .writtenConsent,
                other: .writtenConsent),
            typeCap: 0, categoryCap: 0, everythingCap: 0, payloadByteCountMax: 0)
    }
}

/// What a bundle says about one request, and what has to be known to decide it.
package struct RequestTerms: Sendable {
    package let rule: CompiledRule
    /// `nil` for a type that is not in the registry.
    package let type: NotificationType?
    /// That of ``type`` in ``CompiledPolicy/types``.
    let typePosition: Int?
    /// `nil` for a type that is not in the registry, as ``CompiledPolicy/needs(for:)`` gives it.
    package let needs: FactNeeds?
}

/// What the recipient's whereabouts demand of one rule: the law, and the permission it asks for.
package struct Jurisdiction: Hashable, Sendable {
    /// The strictest law of the account's region and of every device's; ``Regime/gdpr`` when one is unknown.
    package var regime: Regime
    /// Whether every place that matters is known, mapped and fresh.
    package var isKnown: Bool
    /// Whether the regime is as strict as it is only because something is unknown.
    package var isStrictForWantOfRegion: Bool
    /// What must be on record.
    ///
    /// An unknown place asks for what `gdpr` asks. Where the account's region or the list of devices is lost, this is the
    /// strictest rule of **every** region: elsewhere a text to a phone may need more than in the EU, and forgetting
    /// where the recipient lives must not make a refused text go out.
    package var rule: PermissionRule
    /// What the known places ask, and `gdpr` where none is known: a send that satisfies it is refused for want of a region
    /// alone.
    package var knownRule: PermissionRule
    /// Whether a text message may bring a code to an account there; looked up for ``CompiledRule/RuleFlags/codeText``
    /// alone, and false without an account's region.
    package var allowsCodeText: Bool

    package init(
        regime: Regime, isKnown: Bool, isStrictForWantOfRegion: Bool, rule: PermissionRule,
        knownRule: PermissionRule, allowsCodeText: Bool
    ) {
        self.regime = regime
        self.isKnown = isKnown
        self.isStrictForWantOfRegion = isStrictForWantOfRegion
        self.rule = rule
        self.knownRule = knownRule
        self.allowsCodeText = allowsCodeText
    }
}
