import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import InMemoryStore
import OpenSSLCrypto
import GateRecords
import Testing

@testable import GateSteps
@testable import GatewayPipeline
@testable import WireProtocol

/// One history with a clock, ids and keys that are the same each time: what is answered, and what stands in the trail.
@Suite struct GoldenHistoryTests {
    @Test func `the answers and the trail of one history are what their golden files say`() throws {
        let history = try GoldenHistory()
        try history.run()
        let entries = history.gate.store.committed.entries
        // An answer that cites an entry has its leaf.
        var citedCount = 0
        for answer in history.answers {
            guard let trail = answer["answer"]?["trail"], let index = trail["index"]?.integerValue else {
                continue
            }
            #expect(trail["leaf"]?.stringValue == Hexadecimal.encode(entries[Int(index)].leaf))
            citedCount += 1
        }
        #expect(citedCount > 20)
        try GoldenFile("answers.ndjson").expect(history.answers)
        try GoldenFile("trail.ndjson").expect(try entries.map { try CanonicalJSON.read($0.bytes) })
    }
}

/// Callers, people and what they ask, in one order.
private final class GoldenHistory {
    let gate: SimulatedGateway
    private(set) var answers: [JSONValue] = []
    private let environment = SimulatedEnvironment(seed: 38)
    private let policy: CompiledPolicy

    private static func caller(_ grants: [JSONValue]) -> JSONValue {
        [
            "means": "A caller of the history.", "grants": .array(grants), "types": ["categories": []],
            "may_assert": [
                "sources": ["in_app_settings", "os_settings_sync"],
                "methods": ["in_app_toggle", "sms_keyword"],
            ],
            "because": "So that a test can tell.", "law": "none", "reviewed": "2026-01-01",
        ]
    }

    init() throws {
        // A bundle in code: what the repository's rules become does not matter here.
        policy = try TestBundle.minimal
            .setting(
                "callers.yaml", "callers", "product",
                to: Self.caller([
                    "recipients.write", "consents.write", "preferences.write", "devices.write",
                    "receipts.write", "drift.run", "subjects.read", "subjects.erase",
                ])
            )
            .setting("callers.yaml", "callers", "keys-team", to: Self.caller(["keys.rotate"]))
            .setting("callers.yaml", "callers", "auditor", to: Self.caller(["subjects.read", "trail.read"]))
            .setting("callers.yaml", "callers", "replies", to: Self.caller(["replies.write"]))
            .compile()
        let (store, policy) = (InMemoryStore(), policy)
        try store.write { view in
            try view.archiveNotices(of: policy)
            // Who comes first time is given a key for tags that is drawn; these are given theirs here.
            for number in 1...3 {
                view.add(
                    Subject(
                        id: SubjectID(high: 1, low: UInt64(number)),
                        tagKey: SecretBytes(
                            copying: [UInt8](repeating: UInt8(number), count: Subject.tagKeyByteCount))),
                    for: UserID("u_\(number)"))
            }
        }
        let seed = SecretBytes(copying: [UInt8](repeating: 5, count: Ed25519PrivateKey.seedByteCount))
        gate = try SimulatedGateway(
            over: store, environment: environment, policy: policy,
            parts: SimulatedGateway.Parts(origin: Ed25519PrivateKey(seed: seed)))
        gate.setHopUsable(true)
    }

    // MARK: Asking

    @discardableResult
    private func ask(
        _ caller: String, _ method: String, _ target: String, _ body: JSONObject? = nil
    ) -> SimulatedGateway.Reply {
        environment.advance(milliseconds: 1_000)
        return note("\(caller) \(method) \(target)", gate.call(caller, method, target, body))
    }

    @discardableResult
    private func note(_ ask: String, _ reply: SimulatedGateway.Reply) -> SimulatedGateway.Reply {
        var json = reply.json
        // Drawn anew each time.
        for member in ["challenge", "old_key_challenge"] where json[member] != nil { json[member] = "drawn" }
        answers.append([
            "ask": .string(ask), "status": .integer(Int64(reply.status)), "answer": .object(json),
        ])
        return reply
    }

    private func send(
        _ caller: String, _ type: String, _ id: String, to user: String = "u_1", _ more: JSONObject = [:]
    ) throws -> (body: JSONObject, reply: SimulatedGateway.Reply) {
        let example = gate.call(caller, "GET", "/v1/types/\(type)").json["example"]?.objectValue
        var body = try #require(example, "\(type) has no example")
        body["id"] = .string(id)
        body["recipient"] = ["user": .string(user)]
        for (name, value) in more { body[name] = value }
        return (body, ask(caller, "POST", "/v1/sends", body))
    }

    private func handOver(_ result: HopResult, retryAfter: Int64? = nil) throws {
        for lane in DeliveryLane.allCases {
            for delivery in gate.claim(lane) {
                let retryAt = retryAfter.map { environment.now().advanced(bySeconds: $0) }
                try #require(gate.report(delivery.message, result, retryAt: retryAt))
            }
        }
    }

    private func consent(
        _ id: String, _ notice: String, to purpose: String, on channel: String, at address: String? = nil
    ) throws -> JSONObject {
        let text = try #require(
            policy.bundle.notices.values.first { $0.key.id == notice && $0.key.language == "en" })
        return [
            "id": .string(id), "purpose": .string(purpose), "channel": .string(channel),
            "address": address.map { .string($0) } ?? .null, "state": "given",
            "event_time": .string(environment.now().rfc3339), "method": "in_app_toggle",
            "jurisdiction": "DE",
            "notice": [
                "id": .string(notice), "version": .string(text.key.version), "language": "en",
                "sha256": .string(text.sha256),
            ],
            "expires_at": .string(environment.now().advanced(bySeconds: 31_536_000).rfc3339),
        ]
    }

    // MARK: The history

    func run() throws {
        try register()
        try choose()
        try send()
        try observe()
        try end()
        read()
        operate()
        forget()
    }

    private func register() throws {
        let person: JSONObject = [
            "region": "DE", "region_source": "kyc", "region_at": "2026-11-01T12:00:00Z", "locale": "en",
            "time_zone": "Europe/Berlin", "age": "adult", "privacy": "generic", "push_enabled": true,
            "quiet_hours": ["start": "23:00", "end": "07:30"],
        ]
        for user in ["u_1", "u_2"] {
            ask("product", "PUT", "/v1/recipients/\(user)", person)
            ask(
                "product", "PUT", "/v1/recipients/\(user)/addresses/a_1",
                ["kind": "sms", "value": "+47 900 00 000", "verified_at": "2026-11-01T12:00:00Z"])
        }
        ask("product", "PUT", "/v1/recipients/u_3", [:])
        let one = "/v1/recipients/u_1"
        ask(
            "product", "PUT", "\(one)/addresses/a_2",
            ["kind": "email", "value": "a@example.org", "verified_at": nil])
        ask(
            "product", "PUT", "\(one)/devices/d_1",
            [
                "platform": "ios", "app": "no.getdrop.app", "token": .string(apnsToken("one")),
                "region": "DE",
                "region_at": "2026-11-20T09:30:00Z", "time_zone": "Europe/Berlin", "os_permission": "granted",
                "critical_alerts": true,
            ])
        ask(
            "product", "PUT", "\(one)/devices/d_2",
            [
                "platform": "android", "app": "no.getdrop.app", "token": "c1:APA91b-_Z",
                "os_permission": "granted",
            ])
        ask(
            "product", "PUT", "\(one)/devices/d_1/subscriptions",
            ["categories": ["marketing": true, "social": false], "observed_at": "2026-11-20T09:30:00Z"])
        ask("product", "POST", "\(one)/devices/d_1/keys", DeviceKeyBody.example.objectValue)
        ask(
            "product", "POST", "\(one)/permission-prompts",
            ["device": "d_1", "shown_at": "2026-11-20T09:30:00Z", "answer": "granted"])
    }

    private func choose() throws {
        let consents = "/v1/recipients/u_1/consents"
        let first = try consent("c_1", "promo", to: "marketing", on: "push")
        ask("product", "POST", consents, first)
        ask("product", "POST", consents, first)
        ask("product", "POST", consents, try consent("c_2", "promo", to: "marketing", on: "sms", at: "a_1"))
        ask("product", "POST", consents, try consent("c_3", "help", to: "help", on: "email", at: "a_2"))
        var refused = try consent("c_4", "help", to: "help", on: "push")
        (refused["state"], refused["expires_at"]) = ("refused", nil)
        ask("product", "POST", consents, refused)
        ask(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["state": "user_on", "source": "in_app_settings", "channel": "push"])
        ask(
            "product", "PUT", "/v1/recipients/u_1/preferences/social",
            ["state": "user_off", "source": "in_app_settings", "channel": "push", "device": "d_2"])
        ask(
            "product", "PUT", "/v1/recipients/u_1/preferences",
            [
                "preferences": [
                    ["scope": "social", "state": "user_on", "source": "in_app_settings", "channel": "push"],
                    [
                        "scope": "comment", "state": "user_off", "source": "in_app_settings",
                        "channel": "email", "address": "a_2",
                    ],
                ]
            ])
    }

    private func send() throws {
        let first = try send("payments", "payment", "s_1")
        ask("payments", "POST", "/v1/sends", first.body)
        var other = first.body
        other["channel"] = "sms"
        ask("payments", "POST", "/v1/sends", other)
        _ = try send("payments", "payment", "s_2", ["channel": "sms"])
        _ = try send("payments", "statement", "s_3")
        _ = try send("marketing", "promo", "s_4")
        _ = try send("marketing", "comment", "s_6")
        _ = try send("security", "login", "s_7", ["critical": true])
        _ = try send("payments", "duty", "s_8", to: "u_3")
        let waiting = try send("payments", "briefing", "s_9")
        try handOver(.accepted(status: 202, byProvider: false))
        ask("payments", "POST", "/v1/sends/\(waiting.reply["send_id"] ?? "")/cancel")
        ask("payments", "GET", "/v1/sends/\(first.reply["send_id"] ?? "")")
        var unknown = first.body
        (unknown["id"], unknown["type"]) = ("s_10", "no_such_type")
        ask("payments", "POST", "/v1/sends", unknown)
        environment.advance(milliseconds: 1_000)
        var question = first.body
        question["id"] = nil
        question["caller"] = "payments"
        note("auditor POST /v1/sends/explain", gate.explain(question))
        // One that waits is decided again when its time comes.
        _ = try send("payments", "briefing", "s_11")
        environment.advance(milliseconds: 20 * 3_600_000)
        try handOver(.accepted(status: 202, byProvider: true))
        ask(
            "product", "POST", "/v1/receipts",
            [
                "send": .string(first.reply["send_id"] ?? ""), "destination": "d_1", "event": "user_observed",
                "action": "opened", "at": .string(environment.now().rfc3339),
            ])
        ask(
            "product", "POST", "/v1/receipts",
            [
                "send": .string(first.reply["send_id"] ?? ""), "destination": "d_2", "event": "token_gone",
                "reason": "UNREGISTERED", "at": .string(environment.now().rfc3339),
            ])
        ask("payments", "GET", "/v1/events?after=0")
    }

    private func observe() throws {
        ask("product", "POST", "/v1/drift", ["dry_run": false])
        environment.advance(milliseconds: 1_000)
        _ = gate.audit(personCountMax: 100)
        ask("product", "GET", "/v1/recipients/u_1")
        ask("product", "GET", "/v1/drift")
        ask("product", "GET", "/v1/drift/findings")
        ask(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["state": "user_off", "source": "in_app_settings"])
    }

    private func end() throws {
        let consents = "/v1/recipients/u_1/consents"
        ask("product", "POST", consents, try consent("c_5", "promo", to: "marketing", on: "sms", at: "a_1"))
        ask(
            "replies", "POST", "/v1/replies",
            [
                "id": "m_1", "channel": "sms", "from": "+4790000000", "text": "Stop",
                "received_at": .string(environment.now().rfc3339),
            ])
        ask("product", "POST", consents, try consent("c_6", "promo", to: "marketing", on: "push"))
        ask("product", "POST", consents, try consent("c_7", "promo", to: "marketing", on: "email", at: "a_2"))
        ask(
            "product", "POST", "\(consents)/c_6/withdraw", ["every_channel": true, "method": "in_app_toggle"])
        ask("product", "POST", "\(consents)/c_6/withdraw")
    }

    private func read() {
        ask("product", "GET", "/v1/recipients/u_1/consents")
        ask("product", "GET", "/v1/recipients/u_1/preferences")
        ask("product", "GET", "/v1/recipients/u_1/decisions?limit=3")
        ask("payments", "GET", "/v1/types/payment")
        ask("payments", "GET", "/v1/sends/7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11")
    }

    private func operate() {
        ask("keys-team", "GET", "/v1/keys")
        ask("keys-team", "GET", "/v1/keys/lagging")
        ask("keys-team", "GET", "/v1/keyset")
        ask("keys-team", "POST", "/v1/device-keys/revoke", KeyRevokeBody.example.objectValue)
        ask("auditor", "GET", "/v1/trail/checkpoint")
        ask("payments", "GET", "/v1/keys")
        ask("nobody", "GET", "/v1/types")
        ask("payments", "GET", "/v1/no-such-route")
        ask("payments", "DELETE", "/v1/sends")
    }

    private func forget() {
        ask("product", "DELETE", "/v1/recipients/u_1/addresses/a_2")
        ask("product", "DELETE", "/v1/recipients/u_1/devices/d_1")
        ask("product", "DELETE", "/v1/recipients/u_1")
        ask("product", "GET", "/v1/recipients/u_1")
    }
}
