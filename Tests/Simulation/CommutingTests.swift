import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import InMemoryStore
import GateRecords
import Testing

@testable import GateSteps
@testable import GatewayPipeline

/// Steps of two persons come to the same in any order: what threads that step persons side by side would lean on.
@Suite struct CommutingTests {
    private struct Command {
        var user: String
        var caller: String
        var method: String
        var target: String
        var body: JSONObject?
    }

    /// What commands come to, but for ids that are drawn and places in the trail.
    private struct Outcome {
        var answers: [String]
        var states: [SubjectID: RecipientState]
        var entries: [SubjectID: [[UInt8]]]
        var waiting: [SubjectID: [String]]
    }

    private let policy: CompiledPolicy
    private let parts: SimulatedGateway.Parts
    /// At one moment, because a state says when it was changed.
    private let now: Instant

    init() throws {
        policy = try Repository.policy()
        parts = try SimulatedGateway.Parts()
        now = SimulatedEnvironment(seed: 4).now()
    }

    /// - Parameter seed: Of the ids that are drawn; another one than that of what the store has already.
    private func gate(
        _ contents: StoreContents = StoreContents(), seed: UInt64 = 4
    ) throws -> SimulatedGateway {
        let store = InMemoryStore(contents)
        try store.write { try $0.archiveNotices(of: policy) }
        let gate = try SimulatedGateway(
            over: store, environment: SimulatedEnvironment(seed: seed), policy: policy, parts: parts)
        gate.setHopUsable(true)
        return gate
    }

    // MARK: What two persons do

    private func put(_ user: String, _ path: String, _ body: JSONObject) -> Command {
        Command(
            user: user, caller: "product", method: "PUT", target: "/v1/recipients/\(user)\(path)", body: body)
    }

    private func device(_ user: String, token: String, permission: String) -> Command {
        put(
            user, "/devices/d_1",
            [
                "platform": "ios", "app": "no.getdrop.app",
                "token": .string(apnsToken("\(token)-of-\(user)")),
                "os_permission": .string(permission), "critical_alerts": false,
            ])
    }

    private func agree(
        _ user: String, _ id: String, to purpose: String, under name: String, on channel: String,
        at address: String? = nil
    ) throws -> Command {
        let notice = try #require(
            policy.bundle.notices.values.first { $0.key.id == name && $0.key.language == "en" })
        var body: JSONObject = [
            "id": .string(id), "purpose": .string(purpose), "channel": .string(channel), "state": "given",
            "event_time": .string(now.rfc3339), "method": "in_app_toggle", "jurisdiction": "DE",
            "notice": [
                "id": .string(notice.key.id), "version": .string(notice.key.version),
                "language": .string(notice.key.language), "sha256": .string(notice.sha256),
            ],
        ]
        body["address"] = address.map { .string($0) }
        return Command(
            user: user, caller: "product", method: "POST", target: "/v1/recipients/\(user)/consents",
            body: body)
    }

    private func send(
        _ user: String, _ id: String, _ type: String, by caller: String, on channel: String,
        at gate: SimulatedGateway
    ) throws -> Command {
        var body = try #require(
            gate.call(caller, "GET", "/v1/types/\(type)").json["example"]?.objectValue)
        body["id"] = .string("\(id)-\(user)")
        body["recipient"] = ["user": .string(user)]
        body["channel"] = .string(channel)
        return Command(user: user, caller: caller, method: "POST", target: "/v1/sends", body: body)
    }

    private func receipt(
        _ user: String, _ send: String, _ event: String, action: String? = nil
    ) -> Command {
        var body: JSONObject = [
            "send": .string(send), "destination": "d_1", "event": .string(event),
            "at": .string(now.rfc3339),
        ]
        body["action"] = action.map { .string($0) }
        return Command(user: user, caller: "product", method: "POST", target: "/v1/receipts", body: body)
    }

    private func register(_ user: String, _ number: String, at gate: SimulatedGateway) throws -> String {
        let recipient: JSONObject = [
            "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
            "age": "adult", "privacy": "generic", "push_enabled": true,
        ]
        let sent = try send(user, "b", "transaction.remittance_sent", by: "payments", on: "push", at: gate)
        let begun = [
            put(user, "", recipient), device(user, token: "first", permission: "granted"),
            put(
                user, "/addresses/n",
                ["kind": "sms", "value": .string(number), "verified_at": .string(now.rfc3339)]), sent,
        ]
        let replies = begun.map { gate.call($0.caller, $0.method, $0.target, $0.body) }
        try #require(replies.map(\.status) == [200, 200, 200, 202], "\(replies.map(\.json))")
        for delivery in gate.claim(.general) {
            try #require(
                gate.report(delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil))
        }
        return try #require(replies.last?["send_id"])
    }

    /// - Parameter first: A send of theirs that was handed over.
    private func commands(
        of user: String, _ number: String, after first: String, at gate: SimulatedGateway
    ) throws -> [Command] {
        func send(_ id: String, _ type: String, by caller: String, on channel: String) throws -> Command {
            try self.send(user, id, type, by: caller, on: channel, at: gate)
        }
        return [
            try agree(user, "c1", to: "marketing", under: "promo", on: "push"),
            try send("p", "promo.offer", by: "marketing", on: "push"),
            try agree(user, "c2", to: "marketing", under: "promo", on: "sms", at: "n"),
            try agree(user, "c3", to: "transactional", under: "sms_service", on: "sms", at: "n"),
            try send("o", "promo.offer", by: "marketing", on: "push"),
            try send("q", "promo.offer", by: "marketing", on: "sms"),
            try send("r", "transaction.remittance_sent", by: "payments", on: "sms"),
            receipt(user, first, "user_observed", action: "opened"),
            receipt(user, first, "user_observed", action: "opened"), receipt(user, first, "failed"),
            device(user, token: "second", permission: "denied"),
            try send("l", "security.new_login", by: "security", on: "push"),
            Command(
                user: user, caller: "replies", method: "POST", target: "/v1/replies",
                body: [
                    "id": .string("m-\(user)"), "channel": "sms", "from": .string(number), "text": "STOP",
                    "received_at": .string(now.rfc3339),
                ]),
            try send("t", "transaction.remittance_sent", by: "payments", on: "sms"),
            device(user, token: "third", permission: "granted"),
            put(
                user, "/devices/d_1/subscriptions", ["categories": ["marketing": false, "social": true]]),
            put(
                user, "/preferences/marketing",
                ["state": "user_off", "source": "in_app_settings", "channel": "push"]),
            receipt(user, first, "token_gone"),
            try send("m", "security.new_login", by: "security", on: "push"),
            Command(
                user: user, caller: "product", method: "DELETE",
                target: "/v1/recipients/\(user)/addresses/n", body: nil),
        ]
    }

    // MARK: What it comes to

    /// - Parameter groups: Commands that come into one batch.
    private func outcome(of groups: [[Command]], over contents: StoreContents) throws -> Outcome {
        let gate = try gate(contents, seed: 5)
        var answers: [String] = []
        for group in groups {
            let replies = gate.callTogether(group.map { ($0.caller, $0.method, $0.target, $0.body) })
            for (command, reply) in zip(group, replies) {
                let said = ["outcome", "reason", "detail", "effect", "why"].map { reply[$0] ?? "" }
                let isReplayed = reply.json["replayed"] == true
                answers.append("\(command.user) \(reply.status) \(said) \(isReplayed)")
            }
        }
        let committed = gate.store.committed
        var outcome = Outcome(
            answers: answers.sorted(), states: committed.states, entries: [:], waiting: [:])
        for entry in committed.entries[contents.entries.count...] {
            let (subject, bytes) = try Self.told(entry.bytes)
            outcome.entries[subject, default: []].append(bytes)
        }
        outcome.waiting = Dictionary(grouping: committed.outbox.values, by: \.subject).mapValues {
            $0.map { "\($0.request) \($0.destination) \($0.state) \($0.attemptedAt as Any)" }.sorted()
        }
        return outcome
    }

    /// Whom an entry is about, and what it says without its place and the ids that were drawn for it.
    private static func told(_ bytes: [UInt8]) throws -> (SubjectID, [UInt8]) {
        var members = try #require(try CanonicalJSON.read(bytes).objectValue)
        let subject = members["subject"] ?? members["subjects"]?.arrayValue?.first
        for member in ["index", "send_id", "message_id"] { members[member] = nil }
        if let deliveries = members["deliveries"]?.arrayValue {
            members["deliveries"] = .array(
                deliveries.map { delivery in
                    guard case .object(var members) = delivery else { return delivery }
                    members["message_id"] = nil
                    return .object(members)
                })
        }
        let id = try #require(subject?.stringValue.flatMap(SubjectID.init(hexadecimal:)), "\(members)")
        return (id, CanonicalJSON.write(.object(members)))
    }

    @Test func `what two persons do and are sent comes to the same in any order, in one batch or in many`()
        throws
    {
        let base = try gate()
        let numbers = ["u_1": "+4790000021", "u_2": "+4790000022"]
        let begun = try ["u_1", "u_2"].map { user in
            let number = try #require(numbers[user])
            return (user, number, try register(user, number, at: base))
        }
        let contents = base.store.committed
        let lists = try begun.map { try commands(of: $0.0, $0.1, after: $0.2, at: base) }
        let (one, two) = (lists[0], lists[1])
        var orders = [
            (one + two).map { [$0] }, (two + one).map { [$0] }, zip(one, two).map { [$0, $1] },
            zip(two, one).map { [$0, $1] },
        ]
        var dice = SeededNumbers(seed: 11)
        for _ in 0..<40 {
            var (left, right) = (one[...], two[...])
            var order: [[Command]] = []
            while !left.isEmpty || !right.isEmpty {
                let isLeft = right.isEmpty || !left.isEmpty && dice.onceIn(2)
                let command = isLeft ? left.removeFirst() : right.removeFirst()
                // Two of one person in a batch go in the order of their lanes.
                if let last = order.last, last.count == 1, last[0].user != command.user, dice.onceIn(2) {
                    order[order.count - 1].append(command)
                } else {
                    order.append([command])
                }
            }
            orders.append(order)
        }
        let outcomes = try orders.map { try outcome(of: $0, over: contents) }
        let first = outcomes[0]
        for (number, outcome) in outcomes.enumerated() {
            #expect(outcome.answers == first.answers, "order \(number)")
            #expect(outcome.states == first.states, "order \(number)")
            #expect(outcome.entries == first.entries, "order \(number)")
            #expect(outcome.waiting == first.waiting, "order \(number)")
        }
        // Each of them was let through, refused, capped, repeated and stopped.
        #expect(first.answers.count == 2 * one.count && first.states.count == 2)
        for (user, _, _) in begun {
            let own = first.answers.filter { $0.hasPrefix(user) }
            for said in ["\(user) 202 [\"forward\"", "frequency_cap", "withdrawn"] {
                #expect(own.contains { $0.contains(said) }, "\(said): \(own)")
            }
            // Over a cap, a text outside of its hours, denied by the phone, after a no, and to a token that is gone.
            #expect(own.count { $0.contains(" 403 ") } == 5, "\(own)")
            #expect(own.count { $0.hasSuffix("true") } == 1, "\(own)")
            #expect(own.allSatisfy { $0.contains(" 200 ") || $0.contains(" 202 ") || $0.contains(" 403 ") })
        }
    }
}
