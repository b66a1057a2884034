import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import PolicyStatutes

/// Step 2 of the proof: decides one way of asking on every combination of classes, and holds each decision against
/// the statutes.
struct StateEnumeration {
    private let proof: BundleProof
    private let space: FactGroups
    private let rule: CompiledRule
    private let unlawful = Statute.unlawful
    private let adverse = Conditions.adverse.rawValue
    private var jurisdiction: Jurisdiction
    private var facts: Facts
    private var expected: Trace

    private(set) var stateCount: UInt64 = 0
    /// The first state that breaks each statute; once there is one, the walk ends soon.
    private(set) var findings: [BundleProof.Finding] = []

    init(_ proof: BundleProof, _ space: FactGroups) {
        self.proof = proof
        self.space = space
        rule = space.send.rule
        facts = space.favourable
        jurisdiction = proof.policy.jurisdiction(of: facts, under: rule)
        // Gates 2 and 3 read no fact; the others are filled in on the way.
        expected = proof.decide(facts, jurisdiction, rule).trace
    }

    mutating func run() {
        let groups = space.all
        // One thing at a time first: what breaks alone is the smallest example.
        for index in groups.indices {
            for unusual in groups[index].classes.indices {
                facts = space.favourable
                var circumstances = space.send.declared.standing
                for (position, group) in groups.enumerated() {
                    let chosen = group.classes[position == index ? unusual : 0]
                    enter(chosen, of: group)
                    circumstances.formUnion(chosen.circumstances)
                }
                jurisdiction = proof.policy.jurisdiction(of: facts, under: rule)
                judge(facts, circumstances.rawValue)
                judgeWithoutClock()
            }
        }
        guard findings.isEmpty else { return }
        facts = space.favourable
        walk()
    }

    private mutating func walk() {
        let (permission, course) = (space.permission, space.course)
        let around = particulars(of: space.around)
        let within = space.contents.classes.map { Contents($0, of: space.contents, in: space.favourable) }
        let standing = space.send.declared.standing.rawValue
        for permitted in permission.classes {
            enter(permitted, of: permission)
            jurisdiction = proof.policy.jurisdiction(of: facts, under: rule)
            for timed in course.classes {
                enter(timed, of: course)
                let circumstances = standing | permitted.circumstances.rawValue | timed.circumstances.rawValue
                // A local copy: a property of `self` would be copied for every call.
                var facts = facts
                for one in around {
                    one.enter(&facts, &expected)
                    for what in within {
                        what.enter(&facts, &expected)
                        judge(facts, circumstances | one.circumstances | what.circumstances)
                    }
                }
                if !findings.isEmpty { return }
            }
        }
    }

    /// Every combination of the classes of groups on which neither time nor place bears, laid out beforehand.
    private func particulars(of groups: [FactGroup]) -> [Particulars] {
        var found = [Particulars(space.favourable, expected, in: 0, of: space.favourable)]
        for group in groups {
            found = found.flatMap { before in
                group.classes.map { chosen in
                    var facts = space.favourable
                    var expected = expected
                    before.enter(&facts, &expected)
                    chosen.setting(&facts)
                    for (gate, answer) in zip(group.gates, chosen.answers) { expected[gate] = answer }
                    return Particulars(
                        facts, expected, in: before.circumstances | chosen.circumstances.rawValue,
                        of: space.favourable)
                }
            }
        }
        return found
    }

    /// Without a clock the first gate refuses before anything else is asked, so it is enough to see, of each class
    /// alone, that nothing brings the send back.
    private mutating func judgeWithoutClock() {
        let now = facts.now
        facts.now = nil
        jurisdiction = proof.policy.jurisdiction(of: facts, under: rule)
        let decision = proof.decide(facts, jurisdiction, rule)
        stateCount += 1
        let circumstances = space.send.declared.standing.union(Conditions(.timeUnknown))
        hold(DecisionEffects(of: decision, expiry: facts.expiry), of: facts, circumstances.rawValue)
        facts.now = now
    }

    private mutating func enter(_ chosen: FactClass, of group: FactGroup) {
        chosen.setting(&facts)
        for (gate, answer) in zip(group.gates, chosen.answers) { expected[gate] = answer }
    }

    @inline(__always)
    private mutating func judge(_ facts: Facts, _ circumstances: UInt64) {
        let decision = proof.decide(facts, jurisdiction, rule)
        stateCount += 1
        var effects = DecisionEffects(of: decision, expiry: facts.expiry)
        if !decision.trace.isSame(as: expected) { effects.formUnion(.looksElsewhere) }
        hold(effects, of: facts, circumstances)
    }

    /// Holds what was done against the statutes.
    private mutating func hold(_ effects: DecisionEffects, of facts: Facts, _ circumstances: UInt64) {
        var bits = effects.rawValue
        var isBroken =
            circumstances & adverse == 0 && bits & DecisionEffects.withholds.rawValue != 0
        while bits != 0 {
            isBroken = isBroken || unlawful[bits.trailingZeroBitCount] & circumstances != 0
            bits &= bits - 1
        }
        guard isBroken else { return }
        let broken = StatuteBook.broken(by: effects, in: Conditions(rawValue: circumstances))
        for statute in broken where !findings.contains(where: { $0.statute.name == statute.name }) {
            findings.append(BundleProof.Finding(statute: statute, send: space.send, facts: facts))
        }
    }
}

// The facts of the small groups as plain values: put in place some twenty-five million times, they must cost no call and
// count no reference. The properties of `Facts` and `Trace` below list these facts and gates.

/// The request, the two ends and what the device allows, with the answers of the gates that read them.
private struct Particulars {
    private let facts: Facts.Surroundings
    private let answers: Trace.Surroundings
    /// The raw value of ``Conditions``.
    let circumstances: UInt64

    /// - Parameter facts: In favour but for these.
    init(_ facts: Facts, _ expected: Trace, in circumstances: UInt64, of favourable: Facts) {
        self.facts = facts.surroundings
        answers = expected.surroundings
        self.circumstances = circumstances
        var again = favourable
        var expected = expected
        enter(&again, &expected)
        precondition(again == facts, "a group around a send sets a fact that is not one of these")
    }

    @inline(__always)
    func enter(_ facts: inout Facts, _ expected: inout Trace) {
        facts.surroundings = self.facts
        expected.surroundings = answers
    }
}

/// What leaves, with the answers of the gates that read it.
private struct Contents {
    private let facts: Facts.Contents
    private let answers: Trace.Contents
    /// The raw value of ``Conditions``.
    let circumstances: UInt64

    init(_ chosen: FactClass, of group: FactGroup, in favourable: Facts) {
        var facts = favourable
        chosen.setting(&facts)
        self.facts = facts.contents
        var expected = Trace()
        for (gate, answer) in zip(group.gates, chosen.answers) { expected[gate] = answer }
        answers = expected.contents
        circumstances = chosen.circumstances.rawValue
        var again = favourable
        var entered = Trace()
        enter(&again, &entered)
        precondition(again == facts, "what leaves hangs on a fact that is not one of these")
        precondition(entered == expected, "what leaves is asked about by a gate that is not one of these")
    }

    @inline(__always)
    func enter(_ facts: inout Facts, _ expected: inout Trace) {
        facts.contents = self.facts
        expected.contents = answers
    }
}

extension Facts {
    fileprivate typealias Surroundings = (ParamsFact?, OSPermission?, Bool?, RecipientFact?, DestinationFact?)
    fileprivate var surroundings: Surroundings {
        @inline(__always) get { (params, osPermission, criticalAlerts, recipient, destination) }
        @inline(__always) set { (params, osPermission, criticalAlerts, recipient, destination) = newValue }
    }

    fileprivate typealias Contents = (PrivacyLevel?, DeviceKeyFact?, PayloadSizes?)
    fileprivate var contents: Contents {
        @inline(__always) get { (privacy, deviceKey, sizes) }
        @inline(__always) set { (privacy, deviceKey, sizes) = newValue }
    }
}

extension Trace {
    fileprivate typealias Surroundings = (GateResult, GateResult, GateResult)
    fileprivate var surroundings: Surroundings {
        @inline(__always) get { (self[.type], self[.osPermission], self[.destination]) }
        @inline(__always) set { (self[.type], self[.osPermission], self[.destination]) = newValue }
    }

    fileprivate typealias Contents = (GateResult, GateResult)
    fileprivate var contents: Contents {
        @inline(__always) get { (self[.deviceKey], self[.size]) }
        @inline(__always) set { (self[.deviceKey], self[.size]) = newValue }
    }
}

extension Trace {
    /// Whether every gate says the same, compared as the bytes they are.
    fileprivate func isSame(as other: Trace) -> Bool {
        // A gate's result is three one-byte enums in a row: no padding, no two spellings of one value, no
        // reference, so equal bytes are equal results. Comparing the enums one by one would cost more than
        // deciding did.
        withUnsafeBytes(of: self) { mine in
            withUnsafeBytes(of: other) { theirs in
                CodeUnits.equal(
                    mine.assumingMemoryBound(to: UInt8.self), theirs.assumingMemoryBound(to: UInt8.self))
            }
        }
    }
}
