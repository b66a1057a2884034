import BundleModel
import CompliancePolicy
import GateVocabulary
import PolicyStatutes

/// Step 1 of the proof: goes through every combination inside a group, and folds those into classes that nothing
/// can tell apart.
final class EquivalenceClasses {
    private let proof: BundleProof
    private let space: FactSpace
    private let favourable: Facts
    /// Where an account may be that gets a code by text; `nil` where the bundle names no such place.
    private let codeTextAccount: FactSpace.Setting?
    private let unlawful = Statute.unlawful
    /// States decided so far.
    private(set) var decidedCount: UInt64 = 0
    private var known: [Key: FactGroup] = [:]
    private var knownAgreements: [Key: [FactSpace.Setting]] = [:]

    /// Ways of asking that differ in nothing a group's gates and statutes read share its classes. If one of them
    /// read more than this says, its answers in step 2 would not be those of step 1.
    private struct Key: Hashable {
        var group: Int
        var rule: CompiledRule
        var declared: SendAsDeclared
    }

    init(_ proof: BundleProof, _ space: FactSpace) {
        self.proof = proof
        self.space = space
        favourable = space.favourable
        let favourable = space.favourable
        codeTextAccount = space.accounts.first { account in
            var facts = favourable
            account(&facts)
            let rows = proof.policy.bundle.regions.codeTextRows
            guard let region = facts.accountRegion?.code, let now = facts.now else { return false }
            return rows.contains { row in
                row.regions.contains(region) && row.from.instant <= now
                    && row.until.map { now < $0.instant } != false
            }
        }
    }

    func space(of send: BundleProof.Send) -> FactGroups {
        FactGroups(
            send: send, favourable: base(send),
            permission: group(0, send, reading: Self.permissionOnly, build: permission),
            course: group(1, send, reading: Self.courseOnly, build: course),
            around: [
                group(2, send, reading: Self.typeOnly) { send in
                    fold([space.params], [.type], [.paramsUnfit], send)
                },
                group(3, send, reading: Self.channelOnly) { send in
                    fold([space.systems], [.osPermission], [.blockedByOS], send)
                },
                group(4, send, reading: Self.flagOnly) { send in
                    fold([space.flags], [], [.deviceWithoutFlag], send)
                },
                group(5, send, reading: Self.endsOnly) { send in
                    fold([space.ends], [.destination], [.recipientUnknown, .destinationUnusable], send)
                },
            ],
            contents: group(6, send, reading: Self.contentsOnly) { send in
                let most = Int(send.rule.payloadByteCountMax)
                return fold(
                    [space.contents(payloadByteCountMax: most)], [.deviceKey, .size],
                    [.keyUnusable, .worthlessWithoutKey, .clearTextUnwanted, .doesNotFit], send)
            })
    }

    private func group(
        _ number: Int, _ send: BundleProof.Send,
        reading blank: (inout CompiledRule, inout SendAsDeclared) -> Void,
        build: (BundleProof.Send) -> FactGroup
    ) -> FactGroup {
        var key = Key(group: number, rule: send.rule, declared: send.declared)
        Self.forgetAsker(&key.rule, &key.declared)
        blank(&key.rule, &key.declared)
        var found = known[key] ?? build(send)
        known[key] = found
        // What is refused whatever the facts are: all there is to see is that nothing brings it back.
        if !send.declared.isLawfulToAsk { found.classes = Self.byOutcome(found.classes) }
        return found
    }

    /// One class for each thing the group's gates together do to a send.
    private static func byOutcome(_ classes: [FactClass]) -> [FactClass] {
        var seen: Set<[GateResult]> = []
        return classes.filter { one in
            let isRefusal = one.answers.contains { $0.reason.map { !$0.outcome.isPromise } ?? false }
            return seen.insert(isRefusal ? [.fail(.factMissing)] : reasons(one.answers)).inserted
        }
    }

    // MARK: What a group does not read

    /// The caller matters to gates 2 and 3 alone; only whether critical delivery was granted is felt elsewhere.
    private static func forgetAsker(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        let isPermitted = rule.isCriticalPermitted
        let flags: CompiledRule.RuleFlags = [.criticalAsked, .criticalListed, .criticalGranted]
        rule.flags.subtract([.callerKnown, .typeGranted])
        if isPermitted { rule.flags.formUnion(flags) } else { rule.flags.subtract(flags) }
        let isCritical = declared.isCritical
        declared.asksCritical = isCritical
        declared.mayBeCritical = isCritical
        declared.isCallerPermitted = true
    }

    private static func forgetContents(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        rule.flags.subtract([.genericWithoutKey, .statutoryEmail])
        rule.sensitivity = .open
        rule.payloadByteCountMax = 0
        rule.interruption = .passive
        declared.sensitivity = .open
        declared.payloadByteCountMax = 0
        declared.standsInWithoutKey = false
        declared.isStatutoryEmail = false
        // Gate 4 asks whether there is a body at all.
        if rule.body != .never { rule.body = .generic }
        if declared.body != .never { declared.body = .generic }
    }

    private static func forgetPermission(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        rule.flags.subtract([
            .refusesMinors, .needsPurpose, .smsFallbackForbidden, .onByDefault, .stepUpToSwitchOff,
            .mutableAlone, .mandatoryPassesPreferences, .withheldFromSome,
        ])
        rule.permission = ByRegime(
            gdpr: .noneNeeded, ukGDPR: .noneNeeded, gdprLike: .noneNeeded, other: .noneNeeded)
        declared.refusesMinors = false
        declared.needsPurpose = false
        declared.isFallbackForbidden = false
        declared.isOnByDefault = false
        declared.isMutableAlone = false
        declared.passesPreferences = false
    }

    private static func forgetCourse(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        rule.flags.subtract([
            .deduplicated, .timed, .ownRequestPassesQuietHours, .ownRequestPassesCaps,
            .mandatoryPassesQuietHours,
            .mandatoryPassesCaps,
        ])
        rule.quietHours = .pass
        rule.overflow = .allow
        rule.typeCap = 0
        rule.categoryCap = 0
        rule.everythingCap = 0
        declared.isDeduplicated = false
        declared.isTimed = false
        declared.requestPassesHours = false
        declared.requestPassesCaps = false
        declared.passesHours = false
        declared.passesCaps = false
        declared.quietHours = .pass
        declared.overflow = .allow
        declared.typeCap = nil
        declared.categoryCap = nil
        declared.everythingCap = nil
    }

    private static func forgetKind(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        rule.flags.subtract([.typeEnabled])
        declared.isEnabled = true
    }

    private static func forgetEnds(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        rule.flags.subtract([.reachesOlderHolders])
        declared.mayReachOlderHolders = false
    }

    private static func forgetBody(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        rule.body = .never
        declared.body = .never
    }

    private static func forgetPlace(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        rule.channel = .push
        declared.channel = .push
        rule.category = .marketing
        declared.category = .marketing
    }

    private static func permissionOnly(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        forgetContents(&rule, &declared)
        forgetEnds(&rule, &declared)
        forgetCourse(&rule, &declared)
        forgetKind(&rule, &declared)
    }

    /// Gate 4 reads it, and so does what leaves.
    private static func forgetCodeText(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        rule.flags.subtract([.codeText])
        declared.isCodeText = false
    }

    private static func courseOnly(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        forgetContents(&rule, &declared)
        forgetEnds(&rule, &declared)
        forgetCodeText(&rule, &declared)
        forgetPermission(&rule, &declared)
        forgetKind(&rule, &declared)
        forgetBody(&rule, &declared)
        rule.channel = .push
        declared.channel = .push
    }

    private static func typeOnly(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        forgetContents(&rule, &declared)
        forgetEnds(&rule, &declared)
        forgetCodeText(&rule, &declared)
        forgetPermission(&rule, &declared)
        forgetCourse(&rule, &declared)
        forgetBody(&rule, &declared)
        forgetPlace(&rule, &declared)
    }

    private static func nothing(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        typeOnly(&rule, &declared)
        forgetKind(&rule, &declared)
    }

    private static func channelOnly(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        let channel = rule.channel
        nothing(&rule, &declared)
        rule.channel = channel
        declared.channel = channel
    }

    private static func endsOnly(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        let isOfRule = rule.flags.contains(.reachesOlderHolders)
        let isDeclared = declared.mayReachOlderHolders
        nothing(&rule, &declared)
        if isOfRule { rule.flags.insert(.reachesOlderHolders) }
        declared.mayReachOlderHolders = isDeclared
    }

    private static func contentsOnly(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        forgetEnds(&rule, &declared)
        forgetPermission(&rule, &declared)
        forgetCourse(&rule, &declared)
        forgetKind(&rule, &declared)
        rule.interruption = .passive
        rule.category = .marketing
        declared.category = .marketing
    }

    private static func flagOnly(_ rule: inout CompiledRule, _ declared: inout SendAsDeclared) {
        let interruption = rule.interruption
        channelOnly(&rule, &declared)
        rule.interruption = interruption
    }

    // MARK: Folding

    /// In favour, counts and sizes as this send needs them.
    private func base(_ send: BundleProof.Send) -> Facts {
        var facts = favourable
        let most = Int(send.rule.payloadByteCountMax)
        facts.sizes = PayloadSizes(sealed: most, generic: most, full: most)
        if send.rule.flags.contains(.codeText), let account = codeTextAccount { account(&facts) }
        return facts
    }

    private func decided(_ facts: Facts, _ send: BundleProof.Send) -> Decision {
        decidedCount += 1
        return proof.decide(
            facts, proof.policy.jurisdiction(of: facts, under: send.rule), send.rule)
    }

    /// What can be told of a combination: the gates' answers, what the statutes forbid, and what leaves.
    struct Tell: Hashable {
        var answers: [GateResult] = []
        var forbidden: [DecisionEffects] = []
        var isAdverse: [Bool] = []
        var form: BodyForm?
        var interruption: Interruption?
    }

    /// - Parameter contexts: The other facts' values that this group's have to be told apart under.
    func tell(
        _ setting: @escaping FactSpace.Setting, _ gates: [Gate], _ mask: Conditions,
        _ send: BundleProof.Send, grain: BundleProof.Grain? = nil, contexts: [FactSpace.Setting]
    ) -> (tell: Tell, of: FactClass) {
        var tell = Tell()
        var first: FactClass?
        let base = base(send)
        for context in contexts {
            var facts = base
            // The context first: what a setting says of time is relative to the `now` a context may bring.
            context(&facts)
            setting(&facts)
            let decision = decided(facts, send)
            let answers = gates.map { decision.trace[$0] }
            let seen = proof.book.circumstances(of: send.declared, given: facts, within: mask)
            tell.answers += Self.distinguished(answers, grain ?? proof.grain)
            tell.forbidden.append(forbidden(in: seen))
            tell.isAdverse.append(!seen.isDisjoint(with: .adverse))
            if first == nil {
                first = FactClass(setting: setting, answers: answers, circumstances: seen)
                if decision.outcome.isPromise {
                    tell.form = decision.form
                    tell.interruption = decision.interruption
                }
            }
        }
        guard let first else { preconditionFailure("a combination was told apart under no context") }
        return (tell, first)
    }

    /// Without the details of refusals: whatever they are, the refusal stands, so a gate that looked at them by mistake
    /// could let nothing out. What waits or stands in keeps its detail.
    private static func reasons(_ answers: [GateResult]) -> [GateResult] {
        answers.map { answer in
            guard let reason = answer.reason else { return .pass }
            return reason.outcome.isPromise ? answer : .fail(reason)
        }
    }

    private static func distinguished(_ answers: [GateResult], _ grain: BundleProof.Grain) -> [GateResult] {
        switch grain {
        case .reasons: return reasons(answers)
        case .effects:
            // The first that refuses decides; where none does, all that wait or stand in are felt.
            let reasons = answers.compactMap(\.reason)
            let refusals = reasons.filter { !$0.outcome.isPromise }
            guard !refusals.isEmpty else { return Self.reasons(answers) }
            // A reason that a statute forbids by its name keeps it. So does the first gate's: what is too late would else
            // be one with an unknown count, and stand nowhere for itself.
            return refusals.prefix(1).map { reason in
                switch reason {
                case .pushDisabled, .userPreference: .fail(.userPreference)
                case .quietHoursDropped, .quietHoursZoneMissing: .fail(.quietHoursDropped)
                case .frequencyCap, .noMarketingOptIn, .expired: .fail(reason)
                default: .fail(.factMissing)
                }
            }
        }
    }

    /// All that is unlawful in the circumstances.
    private func forbidden(in circumstances: Conditions) -> DecisionEffects {
        var effects: UInt32 = 0
        for bit in 0..<DecisionEffects.count where unlawful[bit] & circumstances.rawValue != 0 {
            effects |= 1 << UInt32(bit)
        }
        return DecisionEffects(rawValue: effects)
    }

    /// One class for each thing that can be told, the first combination of it to show it.
    private func fold(
        _ settings: [FactSpace.Setting], _ gates: [Gate], _ mask: Conditions, _ send: BundleProof.Send,
        grain: BundleProof.Grain? = nil, contexts: [FactSpace.Setting] = [{ _ in }]
    ) -> [FactClass] {
        var seen: Set<Tell> = []
        var classes: [FactClass] = []
        for setting in settings {
            let (tell, found) = tell(setting, gates, mask, send, grain: grain, contexts: contexts)
            if seen.insert(tell).inserted { classes.append(found) }
        }
        return classes
    }

    /// A group whose combinations are few enough to be gone through at once.
    private func fold(
        _ dimensions: [[FactSpace.Setting]], _ gates: [Gate], _ circumstances: [Circumstance],
        _ send: BundleProof.Send
    ) -> FactGroup {
        let mask = Conditions(circumstances)
        let settings = FactSpace.combinations(of: dimensions)
        return FactGroup(
            gates: gates, circumstances: mask, classes: fold(settings, gates, mask, send),
            combinations: Double(settings.count))
    }

    // MARK: Permission and choices

    private static let permissionGates: [Gate] = [.fallback, .permission, .preferences]

    private static let permissionConditions = Conditions([
        .fallbackUnproved, .fallbackForbidden, .codeTextForbidden, .minor, .ageUnknown,
        .marketingWithoutOptIn,
        .textWithoutConsent, .fallbackWithoutConsent, .declaredPermissionMissing, .purposeMissing,
        .europeanOptInMissing, .withheld, .switchedOff, .neverWanted, .preferencesUnknown,
        .securityNotSwitchedOff,
    ])

    private func permission(_ send: BundleProof.Send) -> FactGroup {
        let gates = Self.permissionGates
        let mask = Self.permissionConditions
        func fold(_ settings: [FactSpace.Setting], _ contexts: [FactSpace.Setting] = [{ _ in }])
            -> [FactSpace.Setting]
        {
            self.fold(settings, gates, mask, send, contexts: contexts).map(\.setting)
        }
        let purposes = fold(space.purposes)
        let asked = fold(FactSpace.combinations(of: [agreements(send), space.asides, purposes]))
        // Choices meet a consent only where silence may be a yes: under every one of these.
        let switches = fold(space.switches, asked)
        let types = fold(space.types)
        let withholdings = fold(space.withholdings)
        let chosen = fold(FactSpace.combinations(of: [switches, types, withholdings]), asked)
        let settings = FactSpace.combinations(of: [asked, chosen])
        let combinations = [
            space.clocks, space.accounts, space.devices, space.consents, space.asides, space.purposes,
            space.switches, space.types, space.withholdings,
        ].reduce(1.0) { $0 * Double($1.count) }
        return FactGroup(
            gates: gates, circumstances: mask, classes: self.fold(settings, gates, mask, send),
            combinations: combinations)
    }

    /// Places with consents, as the plainest type of a category tells them apart: one that passes nothing.
    private func agreements(_ send: BundleProof.Send) -> [FactSpace.Setting] {
        let gates = Self.permissionGates
        var plain = send
        plain.rule.flags.subtract([.mandatoryPassesPreferences, .criticalAsked, .criticalGranted])
        plain.declared.passesPreferences = false
        plain.declared.asksCritical = false
        if plain.rule.body == .never { plain.rule.body = .generic }
        let key = Key(
            group: -1, rule: plainest(plain.rule), declared: plainest(plain.declared))
        if let found = knownAgreements[key] { return found }
        let mask = Self.permissionConditions
        let somewhere = places(plain)
        var contexts = somewhere
        // What else a consent has to be told apart under: texts that replace a push, and phones Apple has no say on.
        switch send.rule.channel {
        case .sms:
            contexts += FactSpace.combinations(of: [somewhere, [{ $0.fallback = .replacesOwnSend }]])
        case .push: contexts += FactSpace.combinations(of: [somewhere, [{ $0.platform = .android }]])
        case .email: break
        }
        let consents = fold(space.consents, gates, mask, plain, grain: .reasons, contexts: contexts).map(
            \.setting)
        let found = fold(
            FactSpace.combinations(of: [somewhere, consents]), gates, mask, plain, grain: .reasons,
            contexts: [{ _ in }, { $0.fallback = .replacesOwnSend }, { $0.platform = .android }]
        ).map(\.setting)
        knownAgreements[key] = found
        return found
    }

    /// What a type of its own adds is not felt by places and consents.
    private func plainest(_ rule: CompiledRule) -> CompiledRule {
        var rule = rule
        rule.flags.formIntersection([
            .typeKnown, .onByDefault, .stepUpToSwitchOff, .refusesMinors, .smsFallbackForbidden, .codeText,
        ])
        rule.sensitivity = .open
        rule.body = .generic
        rule.interruption = .passive
        rule.quietHours = .pass
        rule.overflow = .allow
        rule.typeCap = 0
        rule.categoryCap = 0
        rule.everythingCap = 0
        rule.payloadByteCountMax = 0
        return rule
    }

    private func plainest(_ declared: SendAsDeclared) -> SendAsDeclared {
        var plain = SendAsDeclared(channel: declared.channel)
        plain.isRegistered = declared.isRegistered
        plain.category = declared.category
        plain.isOnByDefault = declared.isOnByDefault
        plain.refusesMinors = declared.refusesMinors
        plain.isFallbackForbidden = declared.isFallbackForbidden
        plain.isCodeText = declared.isCodeText
        return plain
    }

    /// What gates and statutes make of a person's whereabouts.
    private struct Whereabouts: Hashable {
        var jurisdiction: Jurisdiction
        var place: StatuteBook.Place
    }

    private func whereabouts(
        _ send: BundleProof.Send, _ clock: FactSpace.Setting, _ account: FactSpace.Sighting?,
        _ devices: [FactSpace.Sighting]?
    ) -> Whereabouts {
        var facts = favourable
        clock(&facts)
        FactSpace.account(account)(&facts)
        FactSpace.devices(devices)(&facts)
        return Whereabouts(
            jurisdiction: proof.policy.jurisdiction(of: facts, under: send.rule),
            place: proof.book.place(of: facts, for: send.declared))
    }

    /// Devices together are three at most: what several places demand is the strictest regime, the strictest row, and
    /// what the strictest regime asks where it has no row, so that three of them demand what all do.
    private static let devicesMax = 3

    /// One of each set of places that neither the gates nor the statutes can tell from another.
    private func places(_ send: BundleProof.Send) -> [FactSpace.Setting] {
        var seen: Set<Whereabouts> = []
        var found: [FactSpace.Setting] = []
        for clock in space.clocks {
            let (accounts, devices) = kinds(send, clock)
            let together = Self.sets(of: devices, countMax: Self.devicesMax).map(Optional.some) + [nil]
            for account in accounts.map(Optional.some) + [nil] {
                for devices in together {
                    guard seen.insert(whereabouts(send, clock, account, devices)).inserted else { continue }
                    let (account, devices) = (FactSpace.account(account), FactSpace.devices(devices))
                    found.append { @Sendable facts in
                        clock(&facts)
                        account(&facts)
                        devices(&facts)
                    }
                }
            }
        }
        return found
    }

    /// The regions that differ in anything that bears on a send: as an account, as a device beside an account of each
    /// regime, and in the row they have, which shows in no law that asks for the same.
    private func kinds(
        _ send: BundleProof.Send, _ clock: FactSpace.Setting
    ) -> (accounts: [FactSpace.Sighting], devices: [FactSpace.Sighting]) {
        struct Kind: Hashable {
            var seen: [Whereabouts]
            var row: PermissionRule?
            var isDated: Bool
        }
        var at = favourable
        clock(&at)
        guard let now = at.now else { preconditionFailure("a clock sets no time") }
        // Beside an account of each regime that asks for the least, what a device adds can be seen.
        var least: [Regime: (FactSpace.Sighting, Jurisdiction)] = [:]
        for sighting in space.accountSightings {
            let jurisdiction = whereabouts(send, clock, sighting, []).jurisdiction
            guard jurisdiction.isKnown else { continue }
            if let known = least[jurisdiction.regime], known.1.rule <= jurisdiction.rule { continue }
            least[jurisdiction.regime] = (sighting, jurisdiction)
        }
        let witnesses = Regime.allCases.compactMap { least[$0]?.0 }
        func firsts(_ sightings: [FactSpace.Sighting], isDevice: Bool) -> [FactSpace.Sighting] {
            var kinds: Set<Kind> = []
            return sightings.filter { sighting in
                let row = proof.book.line(for: sighting(now).code, of: send.declared, at: now)
                let seen =
                    isDevice
                    ? witnesses.map { whereabouts(send, clock, $0, [sighting]) }
                    : [whereabouts(send, clock, sighting, [])]
                        + witnesses.map { whereabouts(send, clock, sighting, [$0]) }
                return kinds.insert(Kind(seen: seen, row: row?.rule, isDated: row?.from != nil)).inserted
            }
        }
        return (
            firsts(space.accountSightings, isDevice: false), firsts(space.deviceSightings, isDevice: true)
        )
    }

    /// Every set of up to `countMax` elements.
    private static func sets<Element>(of elements: [Element], countMax: Int) -> [[Element]] {
        var found: [[Element]] = [[]]
        for element in elements { found += found.filter { $0.count < countMax }.map { $0 + [element] } }
        return found
    }

    // MARK: Time, hours and caps

    private static let courseConditions = Conditions([
        .timeUnknown, .expired, .dueAfterExpiry, .waitsBeyondExpiry, .beforeItsTime, .toldBefore,
        .repetitionUnknown, .quietHours, .zoneMissing, .hoursUnknown, .askedForAnyHour, .askedHoweverOften,
        .overCap, .countsUnknown,
    ])

    private func course(_ send: BundleProof.Send) -> FactGroup {
        let gates: [Gate] = [.expiry, .quietHours, .caps]
        let mask = Self.courseConditions
        let counts = space.counts(
            typeCap: Int(send.rule.typeCap), categoryCap: Int(send.rule.categoryCap),
            everythingCap: Int(send.rule.everythingCap))
        func fold(_ settings: [FactSpace.Setting], _ contexts: [FactSpace.Setting] = [{ _ in }])
            -> [FactSpace.Setting]
        {
            self.fold(settings, gates, mask, send, contexts: contexts).map(\.setting)
        }
        // A request is felt where hours or caps would stop: under every kind of either.
        let unasked: FactSpace.Setting = { $0.ownRequest = nil }
        let requests = fold(space.requests, fold(space.times, [unasked]) + fold(counts, [unasked]))
        let times = fold(space.times, requests)
        let settings = FactSpace.combinations(of: [
            FactSpace.combinations(of: [times, fold(counts, requests)]),
            FactSpace.combinations(of: [space.repetitions, requests]),
        ])
        let combinations = [space.times, counts, space.repetitions, space.requests].reduce(1.0) {
            $0 * Double($1.count)
        }
        return FactGroup(
            gates: gates, circumstances: mask, classes: self.fold(settings, gates, mask, send),
            combinations: combinations)
    }
}
