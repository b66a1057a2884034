import GateTestKit
import GateVocabulary
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

/// Step 2 of the proof: that it puts every fact of one group beside every fact of the others, and sees when one gate
/// looks at another's.
@Suite struct WalkTests {
    struct Peek: Sendable, CustomTestStringConvertible {
        var fact: String
        /// A type for which the fact is told apart from the favourable one.
        var type: TypeID
        var grain: BundleProof.Grain

        var testDescription: String { "\(fact) of \(type), by \(grain)" }
    }

    static let peeks: [Peek] = [BundleProof.Grain.effects, .reasons].flatMap { grain in
        [
            ("params", TestType.sealedOnly), ("recipient", TestType.sealedOnly),
            ("destination", TestType.sealedOnly), ("os_permission", TestType.sealedOnly),
            ("critical_alerts", TestType.login), ("privacy", TestType.statement),
            ("device_key", TestType.sealedOnly), ("sizes", TestType.sealedOnly),
        ]
        // By effects, an unknown recipient and one without a destination are one class.
        .filter { grain == .reasons || $0.0 != "recipient" }
        .map { Peek(fact: $0.0, type: $0.1, grain: grain) }
    }

    /// Only both together are seen, so that no look at one unusual thing at a time finds it.
    @Test(arguments: peeks)
    func `a gate that minds a fact of another group, only when it is too late, is found`(peek: Peek) throws {
        let policy = try TestBundle.lawful.compile()
        let proof = BundleProof(of: policy, grain: peek.grain) { facts, jurisdiction, rule in
            var decision = decide(given: facts, in: jurisdiction, under: rule)
            guard decision.trace[.expiry].verdict == .fail else { return decision }
            let isUnusual =
                switch peek.fact {
                case "params": facts.params != .valid
                case "recipient": facts.recipient != .registered
                case "destination": facts.destination != .active
                case "os_permission": facts.osPermission == .denied || facts.osPermission == nil
                case "critical_alerts": facts.criticalAlerts != true
                case "privacy": facts.privacy != .full
                case "device_key": facts.deviceKey != .usable
                default: (facts.sizes?.sealed).map { $0 > Int(rule.payloadByteCountMax) } ?? true
                }
            if isUnusual { decision.trace[.caller].detail = .callerUnknown }
            return decision
        }
        let broken = proof.run(of: [peek.type]).refutations.map(\.statute.name)
        #expect(broken.contains("gates_mind_their_facts"), "\(broken)")
    }

    /// A revoked key and no key are one to gate 11 when they refuse; where something is sent all the same they are two.
    @Test func `what still lets a send out is told apart by its detail`() throws {
        let policy = try TestBundle.lawful.compile()
        let proof = BundleProof(of: policy, grain: .reasons) { facts, jurisdiction, rule in
            var facts = facts
            if facts.deviceKey == .revoked, case .inside = facts.quietHours { facts.quietHours = .outside }
            return decide(given: facts, in: jurisdiction, under: rule)
        }
        let broken = proof.run(of: [TestType.payment], on: Threads.all).refutations.map(\.statute.name)
        #expect(broken.contains("gates_mind_their_facts"), "\(broken)")
    }

    @Test(arguments: Gate.allCases.filter { $0 != .type })
    func `whichever gate looks at the params is found`(gate: Gate) throws {
        let policy = try TestBundle.lawful.compile()
        let proof = BundleProof(of: policy, grain: .effects) { facts, jurisdiction, rule in
            var decision = decide(given: facts, in: jurisdiction, under: rule)
            if facts.params == .invalid { decision.trace[gate].detail = .typeCap }
            return decision
        }
        let broken = proof.run(of: [TestType.sealedOnly]).refutations.map(\.statute.name)
        #expect(broken.contains("gates_mind_their_facts"), "\(broken)")
    }
}
