import CanonicalJSON
import GateTestKit
import GateVocabulary
import InMemoryStore
import KeyLifecycle
import GateRecords
import SealedFormat

@testable import GateSteps

/// One key of the gateway's own, as answers have it.
struct SimulatedGatewayKey {
    let purpose: KeyPurpose
    var state = SimulatedPhone.State.waiting
    /// What one caller asked for, and waits for a second one.
    var proposal: (verb: SimulatedPhone.Verb, caller: String, until: Instant)?
}

/// Audits of drift, and keys of the gateway's own.
extension Simulation {
    // MARK: Audits

    /// A drift audit begins or goes on, to its end or for one person.
    mutating func audit() {
        if !dice.onceIn(3) { reportSubscriptions(of: dice.below(people.count)) }
        let isDryRun = dice.onceIn(3)
        let isFirstPiece = auditUnderWay == nil
        guard askForAudit(isDryRun) else { return }
        let isWhole = !dice.onceIn(3)
        let run = audit(isDryRun, personCountMax: isWhole ? 100 : 1)
        guard isFirstPiece, isWhole else { return count("audit left off") }
        count(isDryRun ? "audit counted" : "audit")
        require(run?.examinedCount == Int64(people.count), "an audit did not see everybody: \(run as Any)")
        if !isDryRun, let run, run.recordedCount > 0 { count("audit found") }
        // At the same moment there is nothing new to be found.
        guard !isDryRun, askForAudit(false) else { return }
        let again = audit(false, personCountMax: 100)
        require(again?.recordedCount == 0, "an audit finds anew what it found: \(again as Any)")
    }

    private mutating func reportSubscriptions(of index: Int) {
        let reply = call(
            "product", "PUT",
            "/v1/recipients/\(people[index].user)/devices/\(SimulatedPhone.device)/subscriptions",
            ["categories": ["marketing": .boolean(!dice.onceIn(3)), "social": .boolean(dice.onceIn(2))]])
        require(reply.status == 200, "subscriptions are answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
    }

    /// - Returns: Whether an audit of this kind is under way now.
    private mutating func askForAudit(_ isDryRun: Bool) -> Bool {
        let reply = call("product", "POST", "/v1/drift", ["dry_run": .boolean(isDryRun)])
        if let underWay = auditUnderWay, underWay != isDryRun {
            require(reply.status == 409, "a second audit is answered \(reply.status): \(reply.json)")
            return false
        }
        require(reply.status == 202, "an audit is answered \(reply.status): \(reply.json)")
        auditUnderWay = isDryRun
        return true
    }

    /// An audit that only counts writes no entry, and none says anything in a person's place.
    private mutating func audit(_ isDryRun: Bool, personCountMax: Int) -> DriftRun? {
        let (before, consents) = (gate.store.committed.counts, states().map { $0?.consentsInForce })
        guard let run = gate.audit(personCountMax: personCountMax) else {
            require(false, "nothing is known of the audit under way")
            return nil
        }
        require(run.isDryRun == isDryRun, "another audit was under way: \(run)")
        let after = gate.store.committed.counts
        require(!isDryRun || after == before, "an audit that only counts writes: \(before), then \(after)")
        require(states().map { $0?.consentsInForce } == consents, "an audit changes what people said")
        if !run.isUnderWay { auditUnderWay = nil }
        return run
    }

    // MARK: The gateway's own keys

    /// Keys are made, promoted and ended by two callers, with time in between.
    mutating func changeGatewayKeys() {
        for _ in 0..<(2 + dice.below(5)) where broken.isEmpty {
            if dice.onceIn(6) { environment.advance(milliseconds: Int64(dice.below(5_000_000))) }
            let purpose = dice.one(of: [KeyPurpose.root, .origin])
            let own = gatewayKeys.filter { $0.value.purpose == purpose && $0.value.state != .destroyed }
            if own.isEmpty || dice.onceIn(5) {
                addGatewayKey(for: purpose, beside: Array(own.values))
            } else {
                changeGatewayKey(dice.one(of: own.keys.sorted()))
            }
        }
    }

    private mutating func addGatewayKey(for purpose: KeyPurpose, beside own: [SimulatedGatewayKey]) {
        let digits = String(dice.next(), radix: 16)
        let id = "\(purpose.rawValue)-\(String(repeating: "0", count: 16 - digits.count))\(digits)"
        let now = environment.now()
        let reply = gate.add(
            GatewayKey(
                id: id, purpose: purpose, state: .preActivation, createdAt: now, changedAt: now,
                publicKey: nil), by: CallerName("keys-team"))
        guard own.allSatisfy({ $0.state != .waiting }), own.count < Keyring.keyCountMax else {
            count("gateway key refused")
            return require(
                reply.status == 409, "a key beside one that waits is answered \(reply.status): \(reply.json)")
        }
        require(reply.status == 200, "a key of the gateway's is answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
        count("gateway key added")
        gatewayKeys[id] = SimulatedGatewayKey(purpose: purpose)
    }

    private mutating func changeGatewayKey(_ id: String) {
        guard var key = gatewayKeys[id] else { return }
        // A key that waits comes into use often enough to be tried in every history.
        let verb =
            key.state == .waiting && dice.onceIn(2) ? .promote : dice.one(of: SimulatedPhone.Verb.allCases)
        let caller = dice.one(of: ["keys-team", "keys-witness"])
        let purpose = key.purpose
        let inUse = gatewayKeys.first { $0.value.purpose == purpose && $0.value.state == .active }?.key
        let now = environment.now()
        let needsTwo = verb == .destroy || verb == .promote && purpose == .root
        let first = key.proposal.flatMap { $0.verb == verb && now <= $0.until ? $0.caller : nil }
        let reply = call(losesAnswers: false, caller, "POST", "/v1/keys/\(id)/\(verb.path)", verb.body)
        let told = "\(verb) of \(id) by \(caller), \(key), is answered \(reply.status): \(reply.json)"
        // A purpose but `origin` always has a key in use, and a second caller is another one.
        guard let next = verb.next(after: key.state), key.state != .active || purpose == .origin,
            verb != .resume || inUse == nil, !needsTwo || first != caller
        else {
            count("gateway key refused")
            return require(reply.status == 409, told)
        }
        requireEntry(of: reply)
        if needsTwo, first == nil {
            count("gateway key proposed")
            require(reply.status == 202 && reply["state"] == key.state.rawValue, told)
            key.proposal = (verb, caller, now.advanced(bySeconds: 3_600))
        } else {
            count(next == .active ? "gateway key in use" : "gateway key changed")
            require(reply.status == 200 && reply["state"] == next.rawValue, told)
            if next == .active, let inUse { gatewayKeys[inUse]?.state = .deactivated }
            key.state = next
            key.proposal = nil
        }
        gatewayKeys[id] = key
    }

    /// The keyring is what the answers and the entries come to, and uses one key of a purpose at most.
    mutating func requireKeyring() throws {
        let keys = try gate.store.read { try $0.keyring() }?.keys ?? []
        let stored = Dictionary(uniqueKeysWithValues: keys.map { ($0.id, $0.state.rawValue) })
        let (answered, told) = (gatewayKeys.mapValues(\.state.rawValue), keysTold)
        require(stored == answered, "the keyring is \(stored), and was answered as \(answered)")
        require(stored == told, "the keyring is \(stored), and the trail tells \(told)")
        let inUse = keys.filter { $0.state == .active }.map(\.purpose)
        require(Set(inUse).count == inUse.count, "two keys of a purpose are in use: \(stored)")
    }
}
