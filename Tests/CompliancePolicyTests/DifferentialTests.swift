import Dispatch
import GateTestKit
import GateVocabulary
import Synchronization
import Testing

@testable import CompliancePolicy

/// Random sends and facts, a million of them: what is compiled decides like what is read off the pages, and what gets
/// lost never helps.
@Suite struct DifferentialTests {
    /// Printed with every failure; the run is the same for the same seed.
    static let seed: UInt64 = 20_261_121

    private let repository: CompiledPolicy
    private let minimal: CompiledPolicy

    init() throws {
        repository = try Repository.policy()
        minimal = try TestBundle.minimal.compile()
    }

    @Test func `a million random decisions are those of a plain reading of the pages`() {
        let parts = 16
        let each = 62_500
        let policies = [repository, minimal]
        let seen = Mutex<(outcomes: [Outcome: Int], issues: Int)>(([:], 0))
        DispatchQueue.concurrentPerform(iterations: parts) { part in
            let policy = policies[part % policies.count]
            let plain = PlainInterpreter(policy.bundle)
            var source = RandomSends(policy, seed: Self.seed &+ UInt64(part))
            var outcomes: [Outcome: Int] = [:]
            for round in 0..<each {
                let (request, facts) = source.next()
                let decision = decide(request, given: facts, under: policy)
                outcomes[decision.outcome, default: 0] += 1
                let other = plain.decide(request, given: facts)
                if decision == other { continue }
                let isFirst = seen.withLock { seen in
                    seen.issues += 1
                    return seen.issues <= 5
                }
                if isFirst {
                    Issue.record(
                        "seed \(Self.seed), part \(part), round \(round): \(request) \(facts.json): \(decision.json) and not \(other.json)"
                    )
                }
            }
            seen.withLock { seen in seen.outcomes.merge(outcomes) { $0 + $1 } }
        }
        let (outcomes, issues) = seen.withLock { $0 }
        #expect(issues == 0, "seed \(Self.seed)")
        #expect(outcomes.values.reduce(0, +) >= 1_000_000)
        // The facts must not be so random that hardly anything but refusals is reached.
        for outcome in Outcome.allCases { #expect(outcomes[outcome, default: 0] > 500, "\(outcomes)") }
    }

    @Test func `dropping any one fact of a hundred thousand random sends turns no refusal into a send`() {
        let parts = 16
        let each = 6_250
        let policies = [repository, minimal]
        let seen = Mutex<(refusals: Int, issues: Int)>((0, 0))
        // Who loses one of these loses the place.
        let places: Set<String> = ["now", "account_region", "device_regions"]
        DispatchQueue.concurrentPerform(iterations: parts) { part in
            let policy = policies[part % policies.count]
            var source = RandomSends(policy, seed: ~Self.seed &+ UInt64(part))
            var refusals = 0
            for round in 0..<each {
                let (request, facts) = source.next()
                let behaviour = policy.behaviour(for: request)
                let territory = policy.territory(of: facts, under: behaviour)
                if decide(given: facts, in: territory, under: behaviour).outcome.isPromise { continue }
                refusals += 1
                for name in Facts.names {
                    guard let rest = facts.removing(name) else { continue }
                    let there =
                        places.contains(name) ? policy.territory(of: rest, under: behaviour) : territory
                    guard decide(given: rest, in: there, under: behaviour).outcome.isPromise else { continue }
                    seen.withLock { $0.issues += 1 }
                    Issue.record(
                        "seed \(Self.seed), part \(part), round \(round): \(request) without \(name): \(facts.json)"
                    )
                }
            }
            seen.withLock { $0.refusals += refusals }
        }
        let (refusals, issues) = seen.withLock { $0 }
        #expect(issues == 0, "seed \(Self.seed)")
        #expect(refusals > 50_000)
    }
}

/// Random sends with random facts, from the values that lie on both sides of every limit. Cheap: a million of them are
/// made in the time a test may take.
struct RandomSends {
    private var numbers: SeededNumbers
    private let kinds: [Kind]
    private let usual: [Kind]
    private let dimensions: [[FactSpace.Setting]]

    private struct Kind {
        var request: AttestedRequest
        /// Counts and contents, as its caps and its channel have them.
        var own: [[FactSpace.Setting]]
    }

    init(_ policy: CompiledPolicy, seed: UInt64) {
        numbers = SeededNumbers(seed: seed)
        let space = FactSpace(bundle: policy.bundle)
        dimensions = Array(space.dimensions.dropLast(3)) + [space.flags]
        let bundle = policy.bundle
        let callers = bundle.callers.keys.sorted() + [.gateway, CallerName("nobody.known")]
        var kinds: [Kind] = []
        var usual: [Kind] = []
        var known: [Behaviour: [[FactSpace.Setting]]] = [:]
        for type in policy.types.map(\.id) + [TypeID("no.such.type")] {
            for caller in callers {
                for channel in Channel.allCases {
                    for critical in [false, true] {
                        let request = AttestedRequest(
                            caller: caller, type: type, channel: channel, critical: critical)
                        let behaviour = policy.behaviour(for: request)
                        let own =
                            known[behaviour] ?? [
                                space.counts(
                                    typeCap: Int(behaviour.typeCap), categoryCap: Int(behaviour.categoryCap)),
                                space.contents(payloadByteCountMax: Int(behaviour.payloadByteCountMax)),
                            ]
                        known[behaviour] = own
                        let kind = Kind(request: request, own: own)
                        kinds.append(kind)
                        if SendAsDeclared(request, in: bundle).isLawfulToAsk { usual.append(kind) }
                    }
                }
            }
        }
        self.kinds = kinds
        self.usual = usual
    }

    /// Most sends are ones that may be asked for, and most facts are in favour, or nothing but refusals would come out.
    mutating func next() -> (AttestedRequest, Facts) {
        let kind =
            numbers.next() % 8 == 0
            ? kinds[Int(numbers.next() % UInt64(kinds.count))]
            : usual[Int(numbers.next() % UInt64(usual.count))]
        var facts = Facts()
        var dice = numbers.next()
        func set(_ settings: [FactSpace.Setting], _ numbers: inout SeededNumbers) {
            let isUsual = dice & 7 != 0
            dice >>= 3
            settings[isUsual ? 0 : Int(numbers.next() % UInt64(settings.count))](&facts)
        }
        for settings in dimensions { set(settings, &numbers) }
        for settings in kind.own { set(settings, &numbers) }
        if dice & 31 == 0 { facts.now = nil }
        return (kind.request, facts)
    }
}
