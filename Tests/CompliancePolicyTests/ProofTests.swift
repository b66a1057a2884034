import CanonicalJSON
import Dispatch
import GateTestKit
import GateVocabulary
import PolicyFiles
import Synchronization
import Testing

@testable import CompliancePolicy

/// The proof itself: that it leaves nothing out, that its shortcuts change nothing, and what it says.
@Suite struct ProofTests {
    let policy: CompiledPolicy

    init() throws { policy = try Repository.policy() }

    @Test func `no decision under the product's own rule book breaks a statute`() {
        let report = BundleProof(of: policy, grain: .verdicts).run(on: Threads.all)
        #expect(report.flaws == [])
        for refutation in report.refutations {
            Issue.record("\(refutation.summary)\n\(refutation.example)")
        }
        #expect(report.sendCount > 100)
        #expect(report.combinationsPowerOfTen > 20)
    }

    @Test func `told apart by reasons, the states are more than two to the twenty-fourth`() {
        let proof = BundleProof(of: policy, grain: .reasons)
        let folding = FactFolding(proof, FactSpace(bundle: policy.bundle))
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
        for state in ["off", "zone_missing", "outside", "inside"] {
            #expect(seen.contains("quiet_hours \(state)"))
        }
    }

    /// The step from the classes to all combinations, tried where it could fail.
    @Test(arguments: [BundleProof.Grain.reasons, .verdicts])
    func `a combination of any values is decided like the one that stands for it`(grain: BundleProof.Grain) {
        let proof = BundleProof(of: policy, grain: grain)
        let space = FactSpace(bundle: policy.bundle)
        var standIns = StandIns(FactFolding(proof, space))
        let seed: UInt64 = 20_261_121
        var numbers = SeededNumbers(seed: seed)
        let sends = proof.sends().filter(\.declared.isLawfulToAsk)
        var seen: [Outcome: Int] = [:]
        for round in 0..<1_500 {
            let send = sends[Int(numbers.next() % UInt64(sends.count))]
            var facts = Facts()
            for settings in space.dimensions(of: send) {
                // Most lists stay in favour, or nothing but refusals would be seen.
                let index = numbers.next() % 8 > 0 ? 0 : Int(numbers.next() % UInt64(settings.count))
                settings[index](&facts)
            }
            func decided(_ facts: Facts) -> Decision {
                decide(
                    given: facts, in: policy.territory(of: facts, under: send.behaviour),
                    under: send.behaviour)
            }
            let standIn = standIns.standIn(for: facts, of: send)
            let (decision, other) = (decided(facts), decided(standIn))
            seen[decision.outcome, default: 0] += 1
            // Told apart by verdicts, one refusal is like another.
            let isAlike =
                grain == .reasons
                ? decision.outcome == other.outcome && decision.reason == other.reason
                : decision.outcome == other.outcome
                    || !decision.outcome.isPromise && !other.outcome.isPromise
            #expect(
                isAlike && decision.form == other.form && decision.interruption == other.interruption,
                "seed \(seed), round \(round): \(send.request) \(facts.json) \(standIn.json)")
            func forbidden(_ facts: Facts) -> Conduct {
                let circumstances = proof.book.circumstances(of: send.declared, given: facts)
                return Statute.all.reduce(into: []) {
                    if circumstances.contains($1.when) { $0.formUnion($1.forbids) }
                }
            }
            #expect(
                forbidden(facts) == forbidden(standIn),
                "seed \(seed), round \(round): \(send.request) \(facts.json) \(standIn.json)")
        }
        // The choice must not be so random that hardly anything is reached.
        for outcome in Outcome.allCases where outcome != .digest { #expect(seen[outcome, default: 0] > 0) }
    }

    @Test func `progress counts up to all there is`() {
        let seen = Mutex<[UInt64]>([])
        let types: Set<TypeID> = [TypeID("promo.offer"), TypeID("2fa_code")]
        let report = BundleProof(of: policy, grain: .verdicts).run(
            of: types,
            progress: { done, total in
                seen.withLock { $0.append(done) }
                #expect(done <= total)
            })
        let counts = seen.withLock { $0 }
        #expect(counts == counts.sorted())
        #expect(counts.count == report.sendCount)
    }

    @Test func `a broken statute comes with the smallest case, and the case fails when it is run`() throws {
        // Given a rule book that lets marketing pass quiet hours.
        var bundle = TestBundle.minimal
        bundle.set("categories.yaml", "marketing", "quiet_hours", to: "pass")
        let broken = try bundle.compile()
        // When it is proved.
        let report = BundleProof(of: broken, grain: .verdicts).run(on: Threads.all)
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
        let behaviour = send.behaviour
        return dimensions.dropLast(3) + [
            counts(typeCap: Int(behaviour.typeCap), categoryCap: Int(behaviour.categoryCap)),
            contents(payloadByteCountMax: Int(behaviour.payloadByteCountMax)), flags,
        ]
    }
}

/// For any facts, those that stand for them in a proof.
private struct StandIns {
    let folding: FactFolding
    private var spaces: [AttestedRequest: FactGroups] = [:]
    private var classes: [Key: FactClass] = [:]

    private struct Key: Hashable {
        var request: AttestedRequest
        var group: Int
        var tell: FactFolding.Tell
    }

    init(_ folding: FactFolding) { self.folding = folding }

    /// The facts of each group, by the first gate that reads them.
    private static let facts: [Gate?: [String]] = [
        .fallback: [
            "now", "account_region", "device_regions", "consent", "purpose_consent", "fallback", "age",
            "platform", "push_enabled", "account_preference", "destination_preference",
            "account_type_preference", "destination_type_preference",
        ],
        .expiry: [
            "expiry", "due", "quiet_hours", "repetition", "own_request", "type_count", "category_count",
        ],
        .type: ["params"], .destination: ["recipient", "destination"], .osPermission: ["os_permission"],
        .deviceKey: ["privacy", "device_key", "sizes"], nil: ["critical_alerts"],
    ]

    mutating func standIn(for facts: Facts, of send: BundleProof.Send) -> Facts {
        let space = spaces[send.request] ?? folding.space(of: send)
        if spaces[send.request] == nil {
            spaces[send.request] = space
            for (index, group) in space.all.enumerated() {
                for one in group.classes {
                    let tell = tell(one.setting, group, send)
                    classes[Key(request: send.request, group: index, tell: tell)] = one
                }
            }
        }
        var found = space.favourable
        for (index, group) in space.all.enumerated() {
            let names = Self.facts[group.gates.first] ?? []
            // What is relative to `now` has to follow it.
            let setting: FactSpace.Setting = { @Sendable (target: inout Facts) in
                target.now = facts.now
                var object = target.json
                for name in names { object[name] = facts.json[name] }
                guard let read = try? Facts(json: object) else { preconditionFailure("facts do not read") }
                target = read
            }
            guard
                let one = classes[Key(request: send.request, group: index, tell: tell(setting, group, send))]
            else {
                Issue.record("nothing stands for \(names) of \(facts.json) in \(send.request)")
                return facts
            }
            one.setting(&found)
        }
        return found
    }

    private func tell(
        _ setting: @escaping FactSpace.Setting, _ group: FactGroup, _ send: BundleProof.Send
    ) -> FactFolding.Tell {
        folding.tell(
            setting, group.gates, group.circumstances, send, contexts: [{ _ in }]
        ).tell
    }
}
