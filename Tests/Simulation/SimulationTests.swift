import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Crypto
import Foundation
import GateTestKit
import GateVocabulary
import InMemoryStore
import PolicyFiles
import PolicyPages
import SendPlanning
import Synchronization
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline
@testable import GateRecords

// Random commands of a few people, on a store in memory, from a seed: what the law and the answers promise holds over every
// sequence, with hops that fail, clocks that step, crashes before and after a commit, and policies that change. Eight
// whole histories make a million commands; their suites are processes of their own.

@Suite struct FirstHistory {
    @Test func `no sequence of commands breaks a promise`() throws { try Simulation.run(1) }
}

@Suite struct SecondHistory {
    @Test func `no sequence of commands breaks a promise`() throws { try Simulation.run(2) }
}

@Suite struct ThirdHistory {
    @Test func `no sequence of commands breaks a promise`() throws { try Simulation.run(3) }
}

@Suite struct FourthHistory {
    @Test func `no sequence of commands breaks a promise`() throws { try Simulation.run(4) }
}

@Suite struct FifthHistory {
    @Test func `no sequence of commands breaks a promise`() throws { try Simulation.run(5) }
}

@Suite struct SixthHistory {
    @Test func `no sequence of commands breaks a promise`() throws { try Simulation.run(6) }
}

@Suite struct SeventhHistory {
    @Test func `no sequence of commands breaks a promise`() throws { try Simulation.run(7) }
}

@Suite struct EighthHistory {
    @Test func `no sequence of commands breaks a promise`() throws { try Simulation.run(8) }
}

extension Simulation {
    static let commandCount = Soak.count(125_000, short: 5_000)

    private static let parts = Result { try SimulatedGateway.Parts() }

    /// - Parameter number: Of the history, from 1: each has a seed of its own on every day.
    static func run(_ number: UInt64) throws {
        let seed = Soak.seed("history \(number)") &* 8 &+ number
        var simulation = try Simulation(seed: seed, parts: parts.get())
        for number in 0..<commandCount {
            simulation.step()
            guard simulation.broken.isEmpty else {
                Issue.record("seed \(seed), command \(number): \(simulation.broken.joined(separator: "\n"))")
                return
            }
        }
        try simulation.checkTrail()
        #expect(simulation.broken == [], "seed \(seed)")
        // What did not happen was not tried.
        for what in Soak.isWhole ? kinds : frequentKinds {
            let count = simulation.counts[what, default: 0]
            #expect(count >= max(commandCount / 25_000, 1), "\(what) happened \(count) times, seed \(seed)")
        }
    }
}

/// The world around one gateway, and what it must have done by now.
struct Simulation {
    /// What has to happen in a whole run.
    static let kinds: Set<String> = [
        "forward", "refusal", "repeat", "consent", "withdrawal", "handed over", "turned away", "in doubt",
        "cancel", "lost commit",
        "erasure", "policy", "crash", "lost answer", "full disk", "refused change", "capped", "told before",
        "together", "key registered", "key proved", "key replaced", "proof wrong", "proof too late",
        "key changed", "key revoked", "key compromised", "compromised key refused", "sealed", "constant text",
        "opened", "explained", "number added", "number confirmed", "number replaced", "number removed",
        "number contested", "agreed to texts", "text", "offer by text", "text goes", "stop", "stop heard",
        "other reply",
        "reply again", "receipt", "receipt again", "receipt of nothing", "token gone", "audit",
        "audit counted", "audit left off", "audit found", "gateway key added", "gateway key proposed",
        "gateway key in use", "gateway key changed", "gateway key refused",
    ]

    /// What has to happen in a short run too: each is a hundredth of the commands, or nearly.
    static let frequentKinds: Set<String> = [
        "forward", "refusal", "repeat", "consent", "withdrawal", "handed over", "turned away", "cancel",
        "full disk", "refused change", "together", "explained",
    ]

    let environment: SimulatedEnvironment
    let parts: SimulatedGateway.Parts
    private let trouble: Trouble
    private let policies: [CompiledPolicy]
    var dice: SeededNumbers
    private(set) var policy: CompiledPolicy
    private(set) var gate: SimulatedGateway
    private(set) var broken: [String] = []
    private(set) var counts: [String: Int] = [:]

    struct Person {
        var user: String
        var phone = SimulatedPhone()
        var line = SimulatedLine()
        var consentCount = 0
        /// The consent in force, as answers have it.
        var consent: String?
        var commandCount = 0
        /// Forwards of marketing, newest last.
        var offers: [Instant] = []
    }
    var people: [Person] = []
    /// Who verified which number when, the first first.
    var verifications: [(number: String, user: String, at: Instant)] = []
    /// Numbers that ever said no.
    var stoppedNumbers: Set<String> = []
    /// They belong to no device any more, whatever registers them.
    var compromisedPairs: [P256.KeyAgreement.PrivateKey] = []
    /// What must not be read on the way: values of confidential types.
    private(set) var secrets: Set<String> = []
    private var userCount = 0

    struct Sent {
        var caller: String
        var body: JSONObject
        var reply: SimulatedGateway.Reply
        var person: Int
        var user: String
    }
    /// The newest sends, for repeats and cancellations.
    private(set) var sent: [Sent] = []
    var idCount = 0
    /// What a send is, and whose.
    private struct Promised {
        var user: String
        var type: String
        var isMarketing: Bool
        var event: String?
    }
    private var sends: [SendID: Promised] = [:]
    private var delivered: [SendID: MessageID] = [:]
    private var eventsTold: [String: SendID] = [:]
    private var cancelled: Set<SendID> = []
    /// Cancelled while they waited: the hop never had them.
    private(set) var takenBack: Set<SendID> = []
    /// What was handed over last, and what was reported of it.
    var handedOver: [HandedOver] = []
    var receipts: [Receipt] = []
    /// Whether the audit that is under way only counts; `nil` where none is.
    var auditUnderWay: Bool?
    var gatewayKeys: [String: SimulatedGatewayKey] = [:]
    /// What the trail alone tells, as far as it was read.
    private var fold: EvidenceFold
    private var foldedCount = 0
    var recordedReceipts = RecordedReceipts()
    /// By id: the state that the newest entry about a key of the gateway's own gives it.
    var keysTold: [String: String] = [:]

    /// What goes wrong with the next commits.
    private final class Trouble: Sendable {
        let next = Mutex<InMemoryStore.Disturbance?>(nil)
    }

    init(seed: UInt64, parts: SimulatedGateway.Parts) throws {
        dice = SeededNumbers(seed: seed)
        environment = SimulatedEnvironment(seed: seed &* 77)
        self.parts = parts
        let trouble = Trouble()
        self.trouble = trouble
        let first = try Repository.policy()
        policies = [first, try Self.policy(offersADay: 2)]
        policy = first
        fold = EvidenceFold(under: first)
        let store = InMemoryStore { _ in trouble.next.withLock { $0.take() } }
        try store.write { try $0.archiveNotices(of: first) }
        gate = try SimulatedGateway(over: store, environment: environment, policy: first, parts: parts)
        gate.setHopUsable(true)
        for _ in 0..<4 { people.append(newPerson()) }
    }

    /// The repository's rules, but for how many offers a day they let through.
    private static func policy(offersADay count: Int) throws -> CompiledPolicy {
        var pages = try Repository.pages()
        let path = Repository.policies + "/limits.yaml"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let changed = text.replacing("marketing:\n    - count: 1", with: "marketing:\n    - count: \(count)")
        try #require(changed != text)
        pages["limits.yaml"] = try PolicyPage.read(Array(changed.utf8), file: "limits.yaml")
        // What the repository says about its own caps is not about these.
        for page in pages.keys where page.hasPrefix("cases/") {
            pages[page] = try PolicyPage.read(Array("cases: []".utf8), file: page)
        }
        return CompiledPolicy(try PolicyBundle.read(documents: pages).get())
    }

    mutating func count(_ what: String) { counts[what, default: 0] += 1 }
    mutating func require(_ holds: Bool, _ what: @autoclosure () -> String) {
        if !holds { broken.append(what()) }
    }

    // MARK: Asking

    /// Asks until it is answered, as a producer does: what a crash or a full disk ate is asked again.
    ///
    /// - Parameter losesAnswers: Not for a command without an id of its own, which is another one when it is asked again.
    mutating func call(
        losesAnswers: Bool = true, _ caller: String, _ method: String, _ target: String,
        _ body: JSONObject? = nil
    ) -> SimulatedGateway.Reply {
        while true {
            let trouble: InMemoryStore.Disturbance? =
                switch dice.below(400) {
                case 0...4: .unavailable
                case 7...9: .refused
                case 5 where dice.onceIn(10) && losesAnswers: .lostAnswer
                case 6 where dice.onceIn(10): .lostCommit
                default: nil
                }
            self.trouble.next.withLock { $0 = trouble }
            let reply = gate.call(caller, method, target, body)
            self.trouble.next.withLock { $0 = nil }
            switch trouble {
            case .lostAnswer:
                // The process is gone, and with it what it would have answered.
                count("lost answer")
                crash()
                continue
            case .lostCommit:
                // Where nothing was committed it was answered all the same.
                guard reply.status == 503 else { return reply }
                count("lost commit")
                crash()
                continue
            case .unavailable: count("full disk")
            case .refused: count("refused change")
            case nil: break
            }
            if reply.status == 503 { continue }
            return reply
        }
    }

    /// The process ends; another one goes on with what was committed.
    private mutating func crash() {
        count("crash")
        let trouble = trouble
        let store = InMemoryStore(gate.store.committed) { _ in trouble.next.withLock { $0.take() } }
        do {
            gate = try SimulatedGateway(over: store, environment: environment, policy: policy, parts: parts)
            gate.setHopUsable(true)
        } catch {
            broken.append("no gateway after a crash: \(error)")
        }
    }

    private mutating func newPerson() -> Person {
        userCount += 1
        let user = "u_\(userCount)"
        let recipient = call(
            "product", "PUT", "/v1/recipients/\(user)",
            [
                "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                "age": "adult", "privacy": "generic", "push_enabled": true,
            ])
        let device = call(
            "product", "PUT", "/v1/recipients/\(user)/devices/d_1",
            [
                "platform": "ios", "app": "no.getdrop.app", "token": .string(apnsToken("token-of-\(user)")),
                "region": "DE", "time_zone": "Europe/Berlin", "os_permission": "granted",
                "critical_alerts": false,
            ])
        require(recipient.status == 200 && device.status == 200, "\(user) cannot be registered")
        return Person(user: user)
    }

    // MARK: One command

    mutating func step() {
        guard broken.isEmpty else { return }
        act()
        foldTrail()
    }

    /// Each fact that a decision claims follows from the entries before it, and the evidence that is stored is what the
    /// trail comes to.
    private mutating func foldTrail() {
        let (committed, policies) = (gate.store.committed, policies)
        func policy(_ digest: PolicyDigest) -> CompiledPolicy? { policies.first { $0.digest == digest } }
        var touched: Set<SubjectID> = []
        var hasKeyChanges = false
        do {
            for entry in committed.entries[foldedCount...] {
                let different = try fold.differences(in: entry.bytes, policies: policy)
                require(different.isEmpty, "entry \(entry.index) claims what does not follow: \(different)")
                let objection = try fold.objection(to: entry.bytes, policies: policy)
                require(
                    objection == nil, "entry \(entry.index) is what the gate refuses: \(objection as Any)")
                try fold.apply(entry.bytes, policies: policy)
                let members = try CanonicalJSON.read(entry.bytes)
                if members["kind"] == "receipt" {
                    let twice = recordedReceipts.add(members)
                    require(twice == nil, "entry \(entry.index) tells a second time \(twice ?? "")")
                }
                if members["kind"] == "gateway_key" {
                    hasKeyChanges = true
                    keysTold[members["key"]?.stringValue ?? ""] = members["state"]?.stringValue
                }
                if let subject = members["subject"]?.stringValue.flatMap(SubjectID.init(hexadecimal:)) {
                    touched.insert(subject)
                }
            }
            foldedCount = committed.entries.count
            if hasKeyChanges { try requireKeyring() }
            for subject in touched {
                let stored = try gate.store.read { try $0.state(of: subject) }?.evidence
                let told = fold.people[subject]
                require(stored == told, "stored is \(stored as Any), the trail tells \(told as Any)")
            }
        } catch {
            require(false, "the trail cannot be folded: \(error)")
        }
    }

    private mutating func act() {
        environment.advance(milliseconds: Int64(dice.below(dice.onceIn(200) ? 40_000_000 : 20_000)))
        let index = dice.below(people.count)
        people[index].commandCount += 1
        switch dice.below(100) {
        case 0..<44: send(to: index)
        case 44..<48: sendTogether()
        case 48..<51: send(to: index, isExplained: true)
        case 51..<54: key(of: index)
        case 54..<59: repeatSend()
        case 59..<62: consent(of: index)
        case 62..<65: withdraw(of: index)
        case 65..<68: cancel()
        case 68..<84: relay()
        case 84..<88: report()
        case 88: update(index)
        case 89: clock()
        case 90..<93: line(of: index)
        case 93: hearReply()
        case 94..<96: receipt()
        case 96: operate()
        case 97 where people[index].commandCount > 60: forget(index)
        default: hop()
        }
    }

    /// What happens to the gateway as a whole.
    private mutating func operate() {
        switch dice.below(100) {
        case 0..<25: swapPolicy()
        case 25..<30: crash()
        case 30..<31: gate.prune()
        case 31..<56: audit()
        case 56..<66: changeGatewayKeys()
        default: hop()
        }
    }

    /// Sends that come into one batch, some of them twice: each as if it had come by itself.
    private mutating func sendTogether() {
        var drafts: [(index: Int, caller: String, body: JSONObject, event: String?)] = []
        for _ in 0..<(2 + dice.below(5)) {
            if let earlier = drafts.last, dice.onceIn(4) {
                drafts.append(earlier)
            } else {
                let index = dice.below(people.count)
                let (caller, body, event) = draft(to: index)
                drafts.append((index, caller, body, event))
            }
        }
        let replies = gate.callTogether(drafts.map { ($0.caller, "POST", "/v1/sends", $0.body) })
        count("together")
        var first: [String: SimulatedGateway.Reply] = [:]
        for (draft, reply) in zip(drafts, replies) {
            let id = draft.body["id"]?.stringValue ?? ""
            if let earlier = first[id] {
                require(
                    reply.json["replayed"] == true && reply["send_id"] == earlier["send_id"],
                    "one id twice in a batch: \(earlier.json) and \(reply.json)")
            } else {
                first[id] = reply
                judge(reply, of: draft.caller, draft.body, to: draft.index, event: draft.event)
            }
        }
    }

    /// - Parameter isExplained: Whether what becomes of it is asked first, at the same moment.
    private mutating func send(to index: Int, isExplained: Bool = false) {
        let (caller, body, event) = draft(to: index)
        let user = people[index].user
        let explained = isExplained ? explain(body, by: caller) : nil
        let reply = call(caller, "POST", "/v1/sends", body)
        judge(reply, of: caller, body, to: index, event: event)
        if let explained {
            require(
                explained.decisions == reply.decisions,
                "a send is explained as \(explained.json), and decided as \(reply.json)")
        }
        sent.append(Sent(caller: caller, body: body, reply: reply, person: index, user: user))
        if sent.count > 64 { sent.removeFirst() }
    }

    /// The answer to what would become of a send: nothing but the count of such answers is written.
    private mutating func explain(_ body: JSONObject, by caller: String) -> SimulatedGateway.Reply {
        var question = body
        question["id"] = nil
        question["caller"] = .string(caller)
        let (people, before) = (states(), gate.store.committed.counts)
        let reply = gate.explain(question)
        count("explained")
        require(reply.status == 200, "to explain is answered \(reply.status): \(reply.json)")
        var after = gate.store.committed.counts
        if after.entries == before.entries + 1, let newest = gate.store.committed.entries.last {
            let isCount = String(decoding: newest.bytes, as: UTF8.self).contains(#""kind":"explain""#)
            require(isCount, "to explain is recorded: \(String(decoding: newest.bytes, as: UTF8.self))")
            after.entries -= 1
        }
        require(after == before, "to explain changes what is stored: \(before), then \(after)")
        require(states() == people, "to explain changes a person")
        return reply
    }

    private mutating func draft(to index: Int) -> (caller: String, body: JSONObject, event: String?) {
        let user = people[index].user
        idCount += 1
        let id: JSONValue = .string("s\(idCount)")
        var (caller, event): (String, String?) = ("payments", nil)
        var body: JSONObject
        let mayBeText = people[index].line.number != nil || dice.onceIn(8)
        switch dice.below(10) {
        case 0..<4:
            caller = "marketing"
            body = example("promo.offer", id, to: user, as: caller)
            if mayBeText, dice.onceIn(3) { body["channel"] = "sms" }
        case 4..<6:
            caller = "security"
            body = example(
                dice.onceIn(4) ? Self.onlySealedType : "security.new_login", id, to: user, as: caller)
        case 6..<8:
            var once = example("transfer.sent", id, to: user, as: caller)
            let value = "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a\(10 + dice.below(12))"
            event = "\(user) \(value)"
            once["params"] = .object(
                once["params"]!.objectValue!.setting("transaction_id", to: .string(value)))
            body = once
        default:
            body = example("transaction.remittance_sent", id, to: user, as: caller)
            if mayBeText, dice.onceIn(2) { body["channel"] = "sms" }
        }
        return (caller, body, event)
    }

    private static let examples = Mutex<[String: JSONObject]>([:])

    private mutating func example(
        _ type: String, _ id: JSONValue, to user: String, as caller: String
    ) -> JSONObject {
        let known = Self.examples.withLock { $0[type] }
        var body = known ?? gate.call(caller, "GET", "/v1/types/\(type)").json["example"]?.objectValue ?? [:]
        Self.examples.withLock { $0[type] = body }
        for name in ["device_name", "recipient_name"] {
            if let value = body["params"]?[name]?.stringValue { secrets.insert(value) }
        }
        body["id"] = id
        body["recipient"] = ["user": .string(user)]
        return body
    }

    /// What an answer may say, given all that was answered before.
    private mutating func judge(
        _ reply: SimulatedGateway.Reply, of caller: String, _ body: JSONObject, to index: Int, event: String?
    ) {
        let type = body["type"]?.stringValue ?? ""
        let person = people[index]
        guard reply.status == 202 || reply.status == 403 else {
            return require(false, "a send is answered \(reply.status): \(reply.json)")
        }
        requireEntry(of: reply)
        let now = environment.now()
        if reply.status == 403 {
            count("refusal")
            if reply["reason"] == "frequency_cap" { count("capped") }
            if reply["reason"] == "repeated" { count("told before") }
            if reply["detail"] == "address_contested" {
                count("number contested")
                require(
                    caller != "marketing" && !isUncontested(person),
                    "\(person.user) is told of another person at \(person.line): \(reply.json)")
            }
            return
        }
        guard let send = reply["send_id"].flatMap(SendID.init(uuidText:)) else {
            return require(false, "an answer without a send: \(reply.json)")
        }
        let isMarketing = caller == "marketing"
        let isText = body["channel"] == "sms"
        let promised = Promised(user: person.user, type: type, isMarketing: isMarketing, event: event)
        if reply.json["replayed"] == nil || reply.json["replayed"] == false {
            sends[send] = promised
            if !isText { requireSealed(reply, type, to: index) }
        } else if sends[send] == nil {
            // The answer to the first asking was lost.
            sends[send] = promised
        }
        guard reply["outcome"] == "forward" else { return }
        count("forward")
        if isText {
            count(isMarketing ? "offer by text" : "text")
            require(
                person.line.mayReceive(isMarketing: isMarketing, at: person.line.number),
                "a text of \(type) to \(person.user), whose line is \(person.line): \(reply.json)")
            require(
                isMarketing || !isTakenOver(person),
                "a text of \(type) to \(person.user), who does not hold \(person.line) any more: \(reply.json)"
            )
        }
        if isMarketing {
            require(
                isText || person.consent != nil,
                "an offer to \(person.user) without a consent: \(reply.json)")
            let cap = policy.bundle.limits.categories[.marketing]
            let since = now.advanced(bySeconds: -(cap?.windowSeconds ?? 0))
            people[index].offers.append(now)
            let counted = people[index].offers.count { $0 > since }
            // A policy that let more through may have been in force a moment ago.
            require(counted <= 2, "\(counted) offers a day to \(person.user)")
            if people[index].offers.count > 8 { people[index].offers.removeFirst() }
        }
    }

    /// Whatever is answered is in the trail, where the answer says.
    mutating func requireEntry(of reply: SimulatedGateway.Reply) {
        guard let trail = reply.json["trail"]?.objectValue, let index = trail["index"]?.integerValue,
            let leaf = trail["leaf"]?.stringValue
        else { return require(false, "an answer without its entry: \(reply.json)") }
        let entries = gate.store.committed.entries
        require(
            entries.indices.contains(Int(index)) && Hexadecimal.encode(entries[Int(index)].leaf) == leaf,
            "entry \(index) is not the one that was answered")
    }

    private mutating func repeatSend() {
        guard !sent.isEmpty else { return }
        let earlier = dice.one(of: sent)
        guard people[earlier.person].user == earlier.user else { return }
        let again = call(earlier.caller, "POST", "/v1/sends", earlier.body)
        count("repeat")
        require(
            again.status == earlier.reply.status && again.json["replayed"] == true
                && again["send_id"] == earlier.reply["send_id"] && again["reason"] == earlier.reply["reason"],
            "a repeat of \(earlier.reply.json) is answered \(again.json)")
    }

    private mutating func consent(of index: Int) {
        guard let (id, _) = agree(index, to: "marketing", under: "promo", on: "push") else { return }
        count("consent")
        people[index].consent = id
    }

    /// A person says yes to what a notice asks.
    ///
    /// - Returns: The record's id, and the answer.
    mutating func agree(
        _ index: Int, to purpose: String, under name: String, on channel: String, at address: String? = nil
    ) -> (id: String, reply: SimulatedGateway.Reply)? {
        let notices = policy.bundle.notices.values
        guard let notice = notices.first(where: { $0.key.id == name && $0.key.language == "en" }) else {
            require(false, "there is no notice \(name)")
            return nil
        }
        people[index].consentCount += 1
        let id = "c\(people[index].consentCount)"
        var body: JSONObject = [
            "id": .string(id), "purpose": .string(purpose), "channel": .string(channel), "state": "given",
            "event_time": .string(environment.now().rfc3339), "method": "in_app_toggle",
            "jurisdiction": "DE",
            "notice": [
                "id": .string(notice.key.id), "version": .string(notice.key.version),
                "language": .string(notice.key.language), "sha256": .string(notice.sha256),
            ],
        ]
        body["address"] = address.map { .string($0) }
        let reply = call("product", "POST", "/v1/recipients/\(people[index].user)/consents", body)
        require(reply.status == 200, "a consent is answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
        return (id, reply)
    }

    private mutating func withdraw(of index: Int) {
        let user = people[index].user
        let reply: SimulatedGateway.Reply
        if let consent = people[index].consent, dice.onceIn(2) {
            reply = call("product", "POST", "/v1/recipients/\(user)/consents/\(consent)/withdraw")
        } else {
            reply = call(
                "product", "PUT", "/v1/recipients/\(user)/preferences/marketing",
                ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        }
        require(reply.status == 200, "a withdrawal is answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
        count("withdrawal")
        people[index].consent = nil
    }

    private mutating func cancel() {
        guard let send = sent.last(where: { $0.reply.status == 202 }), let id = send.reply["send_id"],
            people[send.person].user == send.user
        else { return }
        let reply = call(send.caller, "POST", "/v1/sends/\(id)/cancel")
        require(reply.status == 200, "a cancellation is answered \(reply.status): \(reply.json)")
        count("cancel")
        guard let send = SendID(uuidText: id), reply.json["gone"] == [], reply.json["under_way"] == [] else {
            return
        }
        cancelled.insert(send)
        if reply.json["withdrawn"] != [] { takenBack.insert(send) }
    }

    private mutating func relay() {
        for lane in DeliveryLane.allCases {
            for delivery in gate.claim(lane) { take(delivery) }
        }
    }

    /// What the relay is given may go.
    private mutating func take(_ delivery: Delivery) {
        guard let send = sends[delivery.send] else { return }
        let person = people.first { $0.user == send.user }
        require(person != nil, "a message to \(send.user), who is forgotten")
        require(!cancelled.contains(delivery.send), "send \(delivery.send) goes after it was cancelled")
        if let person, delivery.channel == .sms {
            requireText(delivery, send.type, isMarketing: send.isMarketing, to: person)
        } else if let person {
            require(
                !send.isMarketing || person.consent != nil,
                "an offer to \(send.user) goes after its consent was withdrawn")
            requireConfidential(delivery, send.type, to: person)
        }
        let first = delivered[delivery.send] ?? delivery.message
        require(first == delivery.message, "send \(delivery.send) has two messages for one device")
        delivered[delivery.send] = first
    }

    private mutating func report() {
        guard !gate.taken.isEmpty else { return }
        let delivery = gate.taken.remove(at: dice.below(gate.taken.count))
        let later = environment.now().advanced(byMilliseconds: Int64(dice.below(20_000)))
        switch dice.below(10) {
        case 0..<6:
            guard gate.report(delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
            else { return }
            count("handed over")
            guard let send = sends[delivery.send] else { return }
            handedOver.append(
                HandedOver(send: delivery.send, destination: delivery.destination.text, user: send.user))
            if handedOver.count > 24 { handedOver.removeFirst() }
            guard let event = send.event else { return }
            let other = eventsTold[event]
            require(other == nil || other == delivery.send, "\(event) is told twice")
            eventsTold[event] = delivery.send
        case 6..<8:
            count("turned away")
            _ = gate.report(
                delivery.message,
                dice.onceIn(2)
                    ? .notWritten("down") : .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
                retryAt: later)
        case 8:
            count("in doubt")
            _ = gate.report(delivery.message, .ambiguous("reset", mayRepeat: true), retryAt: later)
        default: _ = gate.report(delivery.message, .refused(status: 410, reason: nil), retryAt: nil)
        }
    }

    private mutating func update(_ index: Int) {
        let reply = call(
            "product", "PUT", "/v1/recipients/\(people[index].user)/devices/d_1",
            [
                "platform": "ios", "app": "no.getdrop.app",
                "token": .string(apnsToken("token-of-\(people[index].user)-\(dice.below(3))")),
                "region": "DE", "time_zone": "Europe/Berlin",
                "os_permission": dice.onceIn(3) ? "denied" : "granted", "critical_alerts": false,
            ])
        require(reply.status == 200, "a device is answered \(reply.status): \(reply.json)")
    }

    /// A clock that is set back further than it may be stops everything until it is right.
    private mutating func clock() {
        environment.step(milliseconds: -5_000)
        let count = gate.store.committed.entries.count
        let reply = gate.call(
            "payments", "POST", "/v1/sends",
            example("transaction.remittance_sent", "clock-\(idCount)", to: people[0].user, as: "payments"))
        if reply.status != 503 { require(reply.status == 202 || reply.status == 403, "\(reply.json)") }
        require(
            reply.status != 503 || gate.store.committed.entries.count == count,
            "something is recorded under a clock that is refused")
        environment.step(milliseconds: 5_000)
    }

    private mutating func swapPolicy() {
        count("policy")
        policy = dice.one(of: policies)
        gate.replacePolicy(with: policy)
    }

    private mutating func hop() { gate.setHopUsable(!dice.onceIn(3)) }

    /// A person is forgotten, and a new person takes their place.
    private mutating func forget(_ index: Int) {
        let reply = call("product", "DELETE", "/v1/recipients/\(people[index].user)")
        require(reply.status == 200 || reply.status == 404, "an erasure is answered \(reply.status)")
        count("erasure")
        gate.taken.removeAll { sends[$0.send]?.user == people[index].user }
        people[index] = newPerson()
    }

    // MARK: At the end

    /// The trail is dense, its times rise, each entry says its own place, and every decision comes out again.
    mutating func checkTrail() throws {
        let entries = gate.store.committed.entries
        var newest = Instant(milliseconds: 0)
        let byDigest = Dictionary(uniqueKeysWithValues: policies.map { ($0.digest, $0) })
        var decisionCount = 0
        for (index, entry) in entries.enumerated() {
            require(entry.index == UInt64(index) && entry.time >= newest, "entry \(index) is out of order")
            newest = entry.time
            let json = try CanonicalJSON.read(entry.bytes)
            require(json["index"]?.integerValue == Int64(index), "entry \(index) calls itself another")
            switch replay(entry.bytes, policies: { byDigest[$0] }) {
            case .same: decisionCount += 1
            case .differs(let differences):
                require(false, "entry \(index) is decided otherwise: \(differences)")
            case .notReplayable: break
            }
            if !broken.isEmpty { return }
        }
        require(decisionCount > entries.count / 3, "only \(decisionCount) decisions were replayed")
    }
}

extension JSONObject {
    fileprivate func setting(_ member: String, to value: JSONValue) -> JSONObject {
        var object = self
        object[member] = value
        return object
    }
}
