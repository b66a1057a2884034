import CanonicalJSON
import Dispatch
import GateTestKit
import GateVocabulary
import PolicyFiles
import PolicyPages
import Synchronization
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

/// The proof itself: that it leaves nothing out, that its shortcuts change nothing, and what it says.
@Suite struct ProofTests {
    let policy: CompiledPolicy

    init() throws { policy = try Repository.policy() }

    /// At both grains: a release proves by reasons, and what a debug build proves by verdicts must not be another law.
    @Test(arguments: BundleProof.Grain.allCases)
    func `no decision under the product's own bundle breaks a statute`(grain: BundleProof.Grain) {
        let report = BundleProof(of: policy, grain: grain).run(on: Threads.all)
        #expect(report.flaws == [])
        for refutation in report.refutations {
            Issue.record("\(refutation.summary)\n\(refutation.example)")
        }
        #expect(report.sendCount > 100)
        #expect(report.combinationsPowerOfTen > 20)
    }

    @Test func `told apart by reasons, the states are more than two to the twenty-fourth`() {
        let proof = BundleProof(of: policy, grain: .reasons)
        let folding = EquivalenceClasses(proof, FactSpace(bundle: policy.bundle))
        let states = proof.sends().reduce(UInt64(0)) { $0 + folding.space(of: $1).stateCount }
        #expect(states >= 1 << 24)
    }

    @Test func `every fact takes several values, nobody knowing it among them`() {
        let space = FactSpace(bundle: policy.bundle)
        let usual = space.favourable
        var values: [String: Set<JSONValue?>] = [:]
        for settings in space.dimensions {
            for setting in settings {
                var facts = usual
                setting(&facts)
                let json = facts.json
                for name in Facts.names { values[name, default: []].insert(json[name]) }
            }
        }
        for name in Facts.names {
            // A walk takes the clock away by itself, and a bundle without rows to come has one day.
            if name == "now" { continue }
            #expect(values[name, default: []].count > 1, "\(name) is the same in every state")
            #expect(values[name, default: []].contains(nil), "\(name) is known in every state")
        }
    }

    @Test func `each fact but the time takes its other values alone, as a comparison of bundles varies it`() {
        let space = FactSpace(bundle: policy.bundle)
        for name in Facts.names where name != "now" {
            #expect(!space.variations(of: name).isEmpty, "\(name) changes only together with another fact")
        }
        #expect(space.variations(of: "withheld").map(\.value) == [.boolean(true), nil])
        #expect(space.variations(of: "age").map(\.value) == [.string("minor"), nil])
        for (value, setting) in space.variations(of: "age") {
            var facts = space.favourable
            setting(&facts)
            #expect(facts.json["age"] == value)
        }
        #expect(space.variations(of: "weather").isEmpty)
    }

    @Test func `every name of a fact is a property, and every property has a name`() {
        // A fact that is in the struct and in no list would be decided on and never enumerated.
        #expect(Mirror(reflecting: Facts()).children.count == Facts.names.count)
    }

    @Test func `every closed list of a fact is enumerated whole`() {
        let space = FactSpace(bundle: policy.bundle)
        var seen: Set<String> = []
        for settings in space.dimensions {
            for setting in settings {
                var facts = space.favourable
                setting(&facts)
                for (name, value) in facts.json {
                    if case .string(let text) = value { seen.insert("\(name) \(text)") }
                    if case .object(let object) = value, case .string(let text) = object["state"] {
                        seen.insert("\(name) \(text)")
                    }
                    if case .object(let object) = value, case .string(let text) = object["method"] {
                        seen.insert("\(name) \(text)")
                    }
                }
            }
        }
        func expectAll<Value: CaseIterable & RawRepresentable<String>>(_: Value.Type, _ names: String...) {
            for name in names {
                for value in Value.allCases {
                    #expect(seen.contains("\(name) \(value.rawValue)"), "\(name) is never \(value.rawValue)")
                }
            }
        }
        expectAll(ParamsFact.self, "params")
        expectAll(FallbackFact.self, "fallback")
        expectAll(RepetitionFact.self, "repetition")
        expectAll(RecipientFact.self, "recipient")
        expectAll(AgeFact.self, "age")
        expectAll(PrivacyLevel.self, "privacy")
        expectAll(ConsentState.self, "consent", "purpose_consent", "own_request")
        expectAll(ConsentMethod.self, "consent", "purpose_consent", "own_request")
        expectAll(
            PreferenceState.self, "account_preference", "destination_preference", "account_type_preference",
            "destination_type_preference")
        expectAll(DestinationFact.self, "destination")
        expectAll(Platform.self, "platform")
        expectAll(OSPermission.self, "os_permission")
        expectAll(DeviceKeyFact.self, "device_key")
        for state in ["off", "zone_missing", "outside", "inside", "inside_somewhere"] {
            #expect(seen.contains("quiet_hours \(state)"))
        }
    }

    /// The step from the classes to all combinations: a million of them, half told apart by reasons and half by verdicts,
    /// under this bundle and under one that lacks the row a traveller depends on.
    @Test
    func `random facts are decided like the class that stands for them, a million times in a whole run`()
        throws
    {
        let seed = Soak.seed("random facts") &* 31
        let count = Soak.count(1_000_000, short: 100_000)
        let bundles = [policy, try TravellerTests.repositoryWithout(region: "US", category: "security")]
        let seen = Mutex<(outcomes: [Outcome: Int], rounds: Int, issues: [String])>(([:], 0, []))
        DispatchQueue.concurrentPerform(iterations: 4) { part in
            let grain: BundleProof.Grain = part % 2 == 0 ? .reasons : .effects
            let found = Self.compared(count / 4, bundles[part / 2], grain, seed: seed &+ UInt64(part))
            seen.withLock { seen in
                seen.outcomes.merge(found.outcomes) { $0 + $1 }
                seen.rounds += found.rounds
                seen.issues += found.issues.map { "part \(part), \($0)" }
            }
        }
        let (outcomes, rounds, issues) = seen.withLock { $0 }
        #expect(issues.isEmpty, "seed \(seed): \(issues.prefix(3).joined(separator: "\n"))")
        #expect(rounds == count)
        // The choice must not be so random that hardly anything is reached.
        for outcome in Outcome.allCases {
            #expect(outcomes[outcome, default: 0] > count / 1_000, "\(outcomes)")
        }
    }

    private static func compared(
        _ count: Int, _ policy: CompiledPolicy, _ grain: BundleProof.Grain, seed: UInt64
    ) -> (outcomes: [Outcome: Int], rounds: Int, issues: [String]) {
        let proof = BundleProof(of: policy, grain: grain)
        let space = FactSpace(bundle: policy.bundle)
        let sends = proof.sends().filter(\.declared.isLawfulToAsk)
        let dimensions = sends.map { space.dimensions(of: $0) }
        var standIns = StandIns(EquivalenceClasses(proof, space), sends)
        var numbers = SeededNumbers(seed: seed)
        var (outcomes, issues) = ([Outcome: Int](), [String]())
        for round in 0..<count where issues.count < 10 {
            let index = Int(numbers.next() % UInt64(sends.count))
            let send = sends[index]
            let facts = randomFacts(space, dimensions[index], &numbers)
            func decided(_ facts: Facts) -> Decision {
                decide(
                    given: facts, in: policy.jurisdiction(of: facts, under: send.rule),
                    under: send.rule)
            }
            func forbidden(_ facts: Facts) -> DecisionEffects {
                let circumstances = proof.book.circumstances(of: send.declared, given: facts)
                return Statute.all.reduce(into: []) {
                    if circumstances.contains($1.when) { $0.formUnion($1.forbids) }
                }
            }
            let decision = decided(facts)
            outcomes[decision.outcome, default: 0] += 1
            guard let standIn = standIns.standIn(for: facts, of: index) else {
                issues.append(
                    "round \(round): nothing stands for \(send.request) \(facts.json)")
                continue
            }
            let other = decided(standIn)
            // Told apart by effects, one refusal is like another.
            let isAlike =
                grain == .reasons
                ? decision.outcome == other.outcome && decision.reason == other.reason
                : decision.outcome == other.outcome
                    || !decision.outcome.isPromise && !other.outcome.isPromise
            if isAlike, decision.form == other.form, decision.interruption == other.interruption,
                forbidden(facts) == forbidden(standIn)
            {
                continue
            }
            issues.append("round \(round): \(send.request) \(facts.json) and \(standIn.json)")
        }
        return (outcomes, count, issues)
    }

    /// Most lists stay in favour, or nothing but refusals would be seen; every second person is somewhere, with up to five
    /// telephones anywhere.
    private static func randomFacts(
        _ space: FactSpace, _ dimensions: [[FactSpace.Setting]], _ numbers: inout SeededNumbers
    ) -> Facts {
        var facts = Facts()
        for settings in dimensions {
            let index = numbers.next() % 8 > 0 ? 0 : Int(numbers.next() % UInt64(settings.count))
            settings[index](&facts)
        }
        guard numbers.next() % 2 == 0 else { return facts }
        func anywhere(_ sightings: [FactSpace.Sighting], _ numbers: inout SeededNumbers) -> FactSpace.Sighting
        {
            sightings[Int(numbers.next() % UInt64(sightings.count))]
        }
        FactSpace.account(anywhere(space.accountSightings, &numbers))(&facts)
        var devices: [FactSpace.Sighting] = []
        for _ in 0..<numbers.next() % 6 { devices.append(anywhere(space.deviceSightings, &numbers)) }
        FactSpace.devices(devices)(&facts)
        return facts
    }

    @Test func `progress counts up to all there is`() {
        let seen = Mutex<(counts: [UInt64], totals: Set<UInt64>)>(([], []))
        let types: Set<TypeID> = [TypeID("promo.offer"), TypeID("2fa_code")]
        let report = BundleProof(of: policy, grain: .effects).run(
            of: types,
            progress: { done, total in
                seen.withLock {
                    $0.counts.append(done)
                    $0.totals.insert(total)
                }
                #expect(done <= total)
            })
        let (counts, totals) = seen.withLock { $0 }
        #expect(counts == counts.sorted())
        #expect(counts.count == report.sendCount)
        #expect(totals == [report.stateCount])
        #expect(counts.last == report.stateCount)
    }

    @Test func `a broken statute comes with the smallest case, and the case fails when it is run`() throws {
        // Given a bundle that lets marketing pass quiet hours.
        var bundle = TestBundle.minimal
        bundle.set("categories.yaml", "marketing", "quiet_hours", to: "pass")
        let broken = try bundle.compile()
        // When it is proved.
        let report = BundleProof(of: broken, grain: .effects).run(on: Threads.all)
        let refutation = try #require(report.refutations.first { $0.statute.name == "quiet_hours" })
        // Then one fact is unusual, and the case says what must come out.
        #expect(refutation.unusual == ["quiet_hours"])
        #expect(refutation.expected.reason == .quietHoursDropped)
        try expectFails(refutation, in: bundle)
    }

    /// Pastes the example into the bundle and runs it.
    private func expectFails(_ refutation: Refutation, in bundle: TestBundle) throws {
        let text = "cases:\n" + refutation.example
        var bundle = bundle
        bundle.documents["cases/found.yaml"] =
            try PolicyPage.read(Array(text.utf8), file: "cases/found.yaml").json
        let pasted = try bundle.compile()
        let found = try #require(pasted.bundle.cases.first { $0.file == "cases/found.yaml" })
        #expect(!found.run(under: pasted).passed, "\(refutation.example)")
    }
}

enum Threads {
    /// On every processor there is.
    static var all: BundleProof.Executor {
        { count, body in DispatchQueue.concurrentPerform(iterations: count) { body($0) } }
    }
}

extension FactSpace {
    /// Every list of values, as this send needs them.
    fileprivate func dimensions(of send: BundleProof.Send) -> [[Setting]] {
        let rule = send.rule
        return dimensions.dropLast(3) + [
            counts(
                typeCap: Int(rule.typeCap), categoryCap: Int(rule.categoryCap),
                everythingCap: Int(rule.everythingCap)),
            contents(payloadByteCountMax: Int(rule.payloadByteCountMax)), flags,
        ]
    }
}

/// For any facts, those that stand for them in a proof.
private struct StandIns {
    private let folding: EquivalenceClasses
    private let spaces: [FactGroups]
    /// By way of asking and group: every class by what can be told of it, and what was asked before by its facts.
    private var classes: [[[EquivalenceClasses.Tell: FactClass]]] = []
    private var known: [[[Facts: FactClass]]] = []

    init(_ folding: EquivalenceClasses, _ sends: [BundleProof.Send]) {
        self.folding = folding
        spaces = sends.map(folding.space(of:))
        for space in spaces {
            classes.append(
                space.all.map { group in
                    var found: [EquivalenceClasses.Tell: FactClass] = [:]
                    for one in group.classes {
                        found[Self.tell(one.setting, group, space.send, folding)] = one
                    }
                    return found
                })
            known.append(space.all.map { _ in [:] })
        }
    }

    /// The facts of each group, in the order of ``FactGroups/all``. What is relative to `now` follows it.
    private static let copies: [@Sendable (Facts, inout Facts) -> Void] = [
        { from, to in
            to.accountRegion = from.accountRegion
            to.deviceRegions = from.deviceRegions
            to.consent = from.consent
            to.purposeConsent = from.purposeConsent
            to.fallback = from.fallback
            to.age = from.age
            to.withheld = from.withheld
            to.platform = from.platform
            to.pushEnabled = from.pushEnabled
            to.accountPreference = from.accountPreference
            to.destinationPreference = from.destinationPreference
            to.accountTypePreference = from.accountTypePreference
            to.destinationTypePreference = from.destinationTypePreference
        },
        { from, to in
            to.expiry = from.expiry
            to.due = from.due
            to.quietHours = from.quietHours
            to.repetition = from.repetition
            to.ownRequest = from.ownRequest
            to.typeCount = from.typeCount
            to.categoryCount = from.categoryCount
            to.everythingCount = from.everythingCount
        },
        { from, to in to.params = from.params },
        { from, to in to.osPermission = from.osPermission },
        { from, to in to.criticalAlerts = from.criticalAlerts },
        { from, to in
            to.recipient = from.recipient
            to.destination = from.destination
        },
        { from, to in
            to.privacy = from.privacy
            to.deviceKey = from.deviceKey
            to.sizes = from.sizes
        },
    ]

    /// - Returns: `nil` when no class stands for them.
    mutating func standIn(for facts: Facts, of send: Int) -> Facts? {
        let space = spaces[send]
        var found = space.favourable
        for (index, group) in space.all.enumerated() {
            let copy = Self.copies[index]
            var own = Facts()
            own.now = facts.now
            copy(facts, &own)
            if let one = known[send][index][own] {
                one.setting(&found)
                continue
            }
            let setting: FactSpace.Setting = { target in
                target.now = facts.now
                copy(facts, &target)
            }
            guard let one = classes[send][index][Self.tell(setting, group, space.send, folding)] else {
                return nil
            }
            if index > 0 { known[send][index][own] = one }
            one.setting(&found)
        }
        return found
    }

    private static func tell(
        _ setting: @escaping FactSpace.Setting, _ group: FactGroup, _ send: BundleProof.Send,
        _ folding: EquivalenceClasses
    ) -> EquivalenceClasses.Tell {
        folding.tell(setting, group.gates, group.circumstances, send, contexts: [{ _ in }]).tell
    }
}
