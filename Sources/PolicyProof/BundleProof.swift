package import BundleModel
import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary
import PolicyStatutes
import Synchronization

/// Proves that no decision under a bundle breaks a statute, over every combination of facts.
///
/// All combinations are more than any machine can go through, so they are gone through in two steps, both with the
/// very ``decide(given:in:under:)`` that serves traffic.
///
/// 1. **Each group by itself.** Facts fall into groups that no gate mixes: permission and choices, time with hours
///    and caps, params, the two ends, the operating system, what leaves, and the critical flag. Every combination
///    of values inside a group is decided while the others are in favour. Two combinations are one *class* when the
///    gates that read the group answer alike and the statutes see the same in them.
/// 2. **All groups together.** One combination of each class with one of each other class, all of them, is decided
///    and held against the statutes.
///
/// Why that speaks for all: a gate answers from the facts of its own group, and from every fact alone follows what
/// the statutes see, so exchanging a combination for another of its class changes neither the gates' answers nor
/// the circumstances, and the decision is made of nothing but the answers. That gates do not look beyond their
/// group is not taken on trust: in every state of step 2 each gate must answer what it answered in step 1 to the
/// combination that stands for its class.
///
/// Inside the two large groups the same is done in stages: places before consents, consents before what else
/// permission hangs on, and so on; each stage is told apart under every answer the next stage can ask for.
package struct BundleProof: Sendable {
    /// What is proved: the real one, or a broken one in a test.
    package typealias Decide = @Sendable (Facts, Jurisdiction, CompiledRule) -> Decision
    /// Runs a body for every number below a count, on as many threads as it likes.
    package typealias Executor = (_ count: Int, _ body: @Sendable (Int) -> Void) -> Void

    /// How much is told apart.
    package enum Grain: Sendable, Hashable, CaseIterable {
        /// Answers of a gate are told apart by their reasons, and where they still let a send out by their details, too:
        /// some twenty-five million states. Which detail a refusal has no other gate can make less of a refusal.
        case reasons
        /// Only by what they do to the send and by what a statute may forbid of them. The same argument with
        /// larger classes, some hundred thousand states: for builds in which a decision takes microseconds.
        case effects
    }

    let policy: CompiledPolicy
    let book: StatuteBook
    let grain: Grain
    /// `nil` for the real one, which is then called directly: through a closure it takes a tenth longer.
    private let deciding: Decide?

    package init(
        of policy: CompiledPolicy, grain: Grain = .reasons,
        deciding: Decide? = nil
    ) {
        self.policy = policy
        self.grain = grain
        book = StatuteBook(policy.bundle)
        self.deciding = deciding
    }

    @inline(__always)
    func decide(_ facts: Facts, _ jurisdiction: Jurisdiction, _ rule: CompiledRule) -> Decision {
        guard let deciding else {
            return CompliancePolicy.decide(given: facts, in: jurisdiction, under: rule)
        }
        return deciding(facts, jurisdiction, rule)
    }

    /// - Parameters:
    ///   - types: Nothing but these; every type and an unregistered one when `nil`.
    ///   - executor: One after another unless given.
    ///   - progress: States done, of how many; called from any thread, one call at a time. The last call has all of them, unless
    ///     a statute is broken: that walk ends there.
    package func run(
        of types: Set<TypeID>? = nil,
        on executor: Executor = { count, body in for index in 0..<count { body(index) } },
        progress: @escaping @Sendable (_ done: UInt64, _ total: UInt64) -> Void = { _, _ in }
    ) -> ProofReport {
        var report = ProofReport(flaws: book.flaws() + caseFlaws())
        let sends = sends().filter { types?.contains($0.request.type) ?? true }
        report.sendCount = sends.count
        let factSpace = FactSpace(bundle: policy.bundle)
        let folded = Mutex<(states: UInt64, spaces: [FactGroups])>((0, []))
        let channels = Channel.allCases
        executor(channels.count) { index in
            let folding = EquivalenceClasses(self, factSpace)
            let spaces = sends.filter { $0.request.channel == channels[index] }.map { folding.space(of: $0) }
            folded.withLock { folded in
                folded.states += folding.decidedCount
                folded.spaces += spaces
            }
        }
        let (foldingStates, unsorted) = folded.withLock { $0 }
        // The longest first, so that no thread is left alone with it at the end.
        let spaces = unsorted.sorted { $0.stateCount > $1.stateCount }
        report.combinations = spaces.reduce(0) { $0 + $1.combinations }
        let total = spaces.reduce(foldingStates) { $0 + $1.stateCount }
        let walked = Mutex<(states: UInt64, findings: [Finding])>((foldingStates, []))
        executor(spaces.count) { index in
            var walk = StateEnumeration(self, spaces[index])
            walk.run()
            walked.withLock { walked in
                walked.states += walk.stateCount
                walked.findings += walk.findings
                progress(walked.states, total)
            }
        }
        let (states, findings) = walked.withLock { $0 }
        report.stateCount = states
        report.refutations = refutations(of: findings)
        return report
    }

    /// A way of asking that the gates and the statutes can tell from every other.
    struct Send: Sendable {
        var request: AttestedRequest
        var rule: CompiledRule
        var declared: SendAsDeclared
    }

    /// Every type of the registry and one that is not, by every caller and an unknown one, on every channel,
    /// with and without asking for critical delivery; each kind once, shown by its first.
    func sends() -> [Send] {
        struct Kind: Hashable {
            var rule: CompiledRule
            var declared: SendAsDeclared
        }
        var kinds: Set<Kind> = []
        var found: [Send] = []
        let bundle = policy.bundle
        let callers = bundle.callers.keys.sorted() + [.gateway, CallerName("nobody.known")]
        for type in policy.types.map(\.id) + [TypeID("no.such.type")] {
            for channel in Channel.allCases {
                let page = SendAsDeclared(of: type, on: channel, in: bundle)
                for caller in callers {
                    for critical in [false, true] {
                        let request = AttestedRequest(
                            caller: caller, type: type, channel: channel, critical: critical)
                        let kind = Kind(
                            rule: policy.rule(for: request),
                            declared: page.asked(request, in: bundle))
                        guard kinds.insert(kind).inserted else { continue }
                        found.append(
                            Send(request: request, rule: kind.rule, declared: kind.declared))
                    }
                }
            }
        }
        return found
    }

    /// A broken statute, as it was met.
    struct Finding: Sendable {
        var statute: Statute
        var send: Send
        var facts: Facts
    }

    func broken(_ send: Send, _ facts: Facts) -> [Statute] {
        let decision = decide(facts, policy.jurisdiction(of: facts, under: send.rule), send.rule)
        return book.broken(by: decision, of: send.declared, given: facts)
    }

    /// The smallest of each statute, the one with the fewest facts first.
    private func refutations(of findings: [Finding]) -> [Refutation] {
        let space = FactSpace(bundle: policy.bundle)
        var best: [String: Refutation] = [:]
        var tried: [String: Int] = [:]
        let inOrder = findings.sorted { left, right in
            (left.send.request.type, left.send.request.caller, left.send.request.channel.rawValue)
                < (right.send.request.type, right.send.request.caller, right.send.request.channel.rawValue)
        }
        for finding in inOrder {
            // Shrinking costs, and the fourth example of one statute is hardly smaller than the third.
            guard tried[finding.statute.name, default: 0] < 3 else { continue }
            tried[finding.statute.name, default: 0] += 1
            let shrunk = shrink(finding, towards: space.favourable)
            if let known = best[finding.statute.name], known.factCount <= shrunk.factCount { continue }
            best[finding.statute.name] = shrunk
        }
        return best.values.sorted { ($0.factCount, $0.statute.name) < ($1.factCount, $1.statute.name) }
    }

    /// Brings back to the usual every fact that need not be unusual, and forgets every fact that need not be known.
    private func shrink(_ finding: Finding, towards usual: Facts) -> Refutation {
        let statute = finding.statute.name
        func stillBreaks(_ facts: Facts) -> Bool {
            broken(finding.send, facts).contains { $0.name == statute }
        }
        var facts = finding.facts
        var isSmaller = true
        while isSmaller {
            isSmaller = false
            for name in Facts.names {
                guard let candidate = facts.taking(name, from: usual), candidate != facts,
                    stillBreaks(candidate)
                else { continue }
                facts = candidate
                isSmaller = true
            }
        }
        let unusual = Facts.names.filter { facts.taking($0, from: usual) != facts }
        for name in Facts.names where !unusual.contains(name) {
            guard let candidate = facts.removing(name), stillBreaks(candidate) else { continue }
            facts = candidate
        }
        let decision = decide(
            facts, policy.jurisdiction(of: facts, under: finding.send.rule), finding.send.rule)
        let place = book.place(of: facts, for: finding.send.declared)
        let (file, path) = book.page(behind: finding.statute, finding.send, facts, place)
        return Refutation(
            statute: finding.statute, request: finding.send.request, facts: facts, unusual: unusual,
            decision: decision, declared: finding.send.declared, place: place,
            isForWantOfFact: isForWantOfFact(finding, unusual, facts, usual), file: file,
            location: policy.bundle.location(file, path))
    }

    /// Whether one of the unusual facts is unknown, and what is in favour comes under the statute when it forgets that one.
    private func isForWantOfFact(
        _ finding: Finding, _ unusual: [String], _ facts: Facts, _ usual: Facts
    ) -> Bool {
        func isSpokenOf(_ facts: Facts) -> Bool {
            book.circumstances(of: finding.send.declared, given: facts).contains(finding.statute.when)
        }
        return !isSpokenOf(usual)
            && unusual.contains { name in
                facts.removing(name) == facts && usual.removing(name).map(isSpokenOf) == true
            }
    }
}

/// What a proof found.
package struct ProofReport: Sendable {
    /// Pages that contradict a law that is the same for every bundle.
    package var flaws: [PolicyDiagnostic]
    /// Broken statutes, each with its smallest counterexample; the one with the fewest facts first.
    package var refutations: [Refutation] = []
    /// Ways of asking that can be told apart.
    package var sendCount = 0
    /// States decided and held against the statutes.
    package var stateCount: UInt64 = 0
    /// Combinations of values they stand for.
    var combinations = 0.0

    init(flaws: [PolicyDiagnostic]) { self.flaws = flaws }

    package var holds: Bool { flaws.isEmpty && refutations.isEmpty }

    /// The power of ten of the combinations the states stand for, rounded down.
    package var combinationsPowerOfTen: Int {
        var power = 0
        var rest = combinations
        while rest >= 10 {
            rest /= 10
            power += 1
        }
        return power
    }
}
