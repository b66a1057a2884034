import GateVocabulary

/// Step 2 of the proof: decides one way of asking on every combination of classes, and holds each decision against
/// the statutes.
struct FactWalk {
    private let proof: BundleProof
    private let space: FactGroups
    private let behaviour: Behaviour
    private let unlawful = Statute.unlawful
    private let adverse = Circumstances.adverse.rawValue
    private var territory: Territory
    private var facts: Facts
    private var expected: Trace

    private(set) var stateCount: UInt64 = 0
    /// From the first state that breaks a statute; the walk ends there.
    private(set) var findings: [BundleProof.Finding] = []

    init(_ proof: BundleProof, _ space: FactGroups) {
        self.proof = proof
        self.space = space
        behaviour = space.send.behaviour
        facts = space.favourable
        territory = proof.policy.territory(of: facts, under: behaviour)
        // Gates 2 and 3 read no fact; the others are filled in on the way.
        expected = proof.decide(facts, territory, behaviour).trace
    }

    mutating func run() {
        // One thing at a time first: what breaks alone is the smallest example.
        for index in space.groups.indices {
            for unusual in space.groups[index].classes.indices {
                facts = space.favourable
                var circumstances = space.send.declared.standing
                for (position, group) in space.groups.enumerated() {
                    let chosen = group.classes[position == index ? unusual : 0]
                    enter(chosen, of: group)
                    circumstances.formUnion(chosen.circumstances)
                }
                territory = proof.policy.territory(of: facts, under: behaviour)
                judge(circumstances.rawValue)
                judgeWithoutClock()
            }
        }
        guard findings.isEmpty else { return }
        facts = space.favourable
        descend(0, space.send.declared.standing.rawValue)
    }

    /// Without a clock the first gate refuses before anything else is asked, so it is enough to see, of each class
    /// alone, that nothing brings the send back.
    private mutating func judgeWithoutClock() {
        let now = facts.now
        facts.now = nil
        territory = proof.policy.territory(of: facts, under: behaviour)
        let decision = proof.decide(facts, territory, behaviour)
        stateCount += 1
        let circumstances = space.send.declared.standing.union(Circumstances(.timeUnknown))
        hold(Conduct(of: decision, expiry: facts.expiry), circumstances.rawValue)
        facts.now = now
    }

    private mutating func enter(_ chosen: FactClass, of group: FactGroup) {
        chosen.setting(&facts)
        for (gate, answer) in zip(group.gates, chosen.answers) { expected[gate] = answer }
    }

    private mutating func descend(_ depth: Int, _ circumstances: UInt64) {
        guard depth < space.groups.count else {
            judge(circumstances)
            return
        }
        let group = space.groups[depth]
        for chosen in group.classes {
            enter(chosen, of: group)
            if depth == 0 { territory = proof.policy.territory(of: facts, under: behaviour) }
            descend(depth + 1, circumstances | chosen.circumstances.rawValue)
            if !findings.isEmpty { return }
        }
    }

    private mutating func judge(_ circumstances: UInt64) {
        let decision = proof.decide(facts, territory, behaviour)
        stateCount += 1
        var conduct = Conduct(of: decision, expiry: facts.expiry)
        if !decision.trace.isSame(as: expected) { conduct.formUnion(.looksElsewhere) }
        hold(conduct, circumstances)
    }

    /// Holds what was done against the statutes.
    private mutating func hold(_ conduct: Conduct, _ circumstances: UInt64) {
        var bits = conduct.rawValue
        var isBroken =
            circumstances & adverse == 0 && bits & Conduct.withholds.rawValue != 0
        while bits != 0 {
            isBroken = isBroken || unlawful[bits.trailingZeroBitCount] & circumstances != 0
            bits &= bits - 1
        }
        guard isBroken else { return }
        let broken = StatuteBook.broken(by: conduct, in: Circumstances(rawValue: circumstances))
        for statute in broken where !findings.contains(where: { $0.statute.name == statute.name }) {
            findings.append(BundleProof.Finding(statute: statute, send: space.send, facts: facts))
        }
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
                var offset = 0
                while offset + 8 <= mine.count {
                    if mine.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                        != theirs.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                    {
                        return false
                    }
                    offset += 8
                }
                while offset < mine.count {
                    if mine[offset] != theirs[offset] { return false }
                    offset += 1
                }
                return true
            }
        }
    }
}
