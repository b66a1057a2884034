import Dispatch
import GateTestKit
import GateVocabulary
import PlainPolicy
import Synchronization
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

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
        let seen = Mutex<(outcomes: [Outcome: Int], reasons: Set<Reason>, edges: [String: Int], issues: Int)>(
            ([:], [], [:], 0))
        DispatchQueue.concurrentPerform(iterations: parts) { part in
            let policy = policies[part % policies.count]
            let plain = PlainInterpreter(policy.bundle)
            var source = RandomSends(policy.bundle, seed: Self.seed &+ UInt64(part))
            var outcomes: [Outcome: Int] = [:]
            var reasons: Set<Reason> = []
            for round in 0..<each {
                let (request, facts) = source.next()
                let decision = decide(request, given: facts, under: policy)
                outcomes[decision.outcome, default: 0] += 1
                reasons.insert(decision.reason)
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
            seen.withLock { [source] seen in
                seen.outcomes.merge(outcomes) { $0 + $1 }
                seen.reasons.formUnion(reasons)
                seen.edges.merge(source.edges) { $0 + $1 }
            }
        }
        let (outcomes, reasons, edges, issues) = seen.withLock { $0 }
        #expect(issues == 0, "seed \(Self.seed)")
        #expect(outcomes.values.reduce(0, +) >= 1_000_000)
        // The facts must not be so random that hardly anything but refusals is reached.
        for outcome in Outcome.allCases { #expect(outcomes[outcome, default: 0] > 500, "\(outcomes)") }
        #expect(reasons == Set(Reason.allCases), "\(Set(Reason.allCases).subtracting(reasons))")
        // Every value beside a limit was given out, often enough to meet every gate.
        #expect(edges.count == 7 + 7 + 11 + 3 + 3 + 5 + 4 + 4 + 4 + 3, "\(edges)")
        for (edge, count) in edges { #expect(count > 1_000, "\(edge)") }
    }

    @Test func `a decision made before its sizes were known is, again, the one on all its facts`() {
        for policy in [repository, minimal] {
            var source = RandomSends(policy.bundle, seed: Self.seed)
            var (kept, changed) = (0, 0)
            for round in 0..<30_000 {
                let (request, facts) = source.next()
                let rule = policy.rule(for: request)
                var earlier = facts
                earlier.sizes = PayloadSizes(sealed: 0, generic: 0, full: 0)
                let preview = decide(given: earlier, under: rule, of: policy)
                let decision = decide(given: facts, under: rule, of: policy)
                if preview == decision { kept += 1 } else { changed += 1 }
                #expect(
                    preview.again(given: facts, under: rule, of: policy) == decision,
                    "seed \(Self.seed), round \(round): \(request) \(facts.json)")
            }
            #expect(kept > 1_000 && changed > 1_000, "\(kept) and \(changed)")
        }
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
            var source = RandomSends(policy.bundle, seed: ~Self.seed &+ UInt64(part))
            var refusals = 0
            for round in 0..<each {
                let (request, facts) = source.next()
                let rule = policy.rule(for: request)
                let jurisdiction = policy.jurisdiction(of: facts, under: rule)
                if decide(given: facts, in: jurisdiction, under: rule).outcome.isPromise { continue }
                refusals += 1
                for name in Facts.names {
                    guard let rest = facts.removing(name) else { continue }
                    let there =
                        places.contains(name) ? policy.jurisdiction(of: rest, under: rule) : jurisdiction
                    guard decide(given: rest, in: there, under: rule).outcome.isPromise else { continue }
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
