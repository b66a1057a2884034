import CanonicalJSON
import CompliancePolicy
import Foundation
import GateSteps
import GateRecords
import GateTestKit
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import SQLiteStore
import SealedPush
import SendPlanning
import Testing
import WireProtocol

@Suite struct SendTests {
    @Test func `a promo to Germany without consent is refused, recorded and never queued`() async throws {
        // Given a user in Germany with no prior marketing opt-in.
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        // When the marketing service attempts to send a promo push.
        let reply = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p1", to: "u_1"))
        // Then it is rejected at the compose layer, and nothing goes to APNs or FCM.
        #expect(reply.status == 403)
        #expect(reply["reason"] == "no_gdpr_consent")
        #expect(reply["detail"] == "never_asked")
        #expect(reply["type"] == "urn:sendgate:reason:no_gdpr_consent")
        #expect(reply.json["trail"]?.objectValue?["index"] != nil)
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `consent opens the way and its withdrawal stops what still waits`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try #require(try await gate.consent("u_1").status == 200)
        let accepted = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p1", to: "u_1"))
        #expect(accepted.status == 202, "\(accepted.json)")
        #expect(accepted["outcome"] == "forward")
        gate.clock.advance(seconds: 5)
        // The delivery layer is down: no relay claims. The person withdraws.
        let withdrawn = try await gate.call("product", "POST", "/v1/recipients/u_1/consents/c1/withdraw")
        #expect(withdrawn.status == 200, "\(withdrawn.json)")
        #expect(try await gate.claim().isEmpty)
        let sendID = try #require(accepted["send_id"])
        let status = try await gate.call("marketing", "GET", "/v1/sends/\(sendID)")
        #expect(status.json["waiting"] == [])
        let events = try #require(status.json["events"]?.arrayValue).compactMap { $0.objectValue }
        #expect(events.map { $0["event"]?.stringValue } == ["withdrawn"])
        #expect(events.first?["reason"]?.stringValue == "no_gdpr_consent")
        // One will: the preference says so too.
        let preferences = try await gate.call("product", "GET", "/v1/recipients/u_1/preferences")
        let marketing = try #require(preferences.json["preferences"]?.arrayValue).compactMap {
            $0.objectValue
        }
        .first { $0["scope"] == "marketing" && $0["channel"] == "push" && $0["destination"] == nil }
        #expect(marketing?["chosen"] == "user_off")
    }

    @Test func `a repeated id gives the first answer and sends nothing twice`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        let send = GatewayHarness.remittance("r1", to: "u_1")
        let first = try await gate.call("payments", "POST", "/v1/sends", send)
        try #require(first.status == 202, "\(first.json)")
        let second = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(second.status == 202)
        #expect(second.json["replayed"] == true)
        #expect(second["send_id"] == first["send_id"])
        #expect(second.json["trail"] == first.json["trail"])
        #expect(second.json["deliveries"] == first.json["deliveries"])
        #expect(try await gate.claim().count == 1)
        var other = send
        other["ttl_seconds"] = 60
        let conflict = try await gate.call("payments", "POST", "/v1/sends", other)
        #expect(conflict.status == 409)
        // Another caller's ids are its own.
        let elsewhere = try await gate.call("marketing", "POST", "/v1/sends", send)
        #expect(elsewhere.status == 403 && elsewhere["reason"] == "caller_not_permitted")
    }

    @Test func `equal ids side by side behave as if one had come after the other`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.consent("u_1")
        let send = try await gate.promo("same", to: "u_1")
        let replies = try await withThrowingTaskGroup(of: GatewayHarness.Reply.self) { group in
            for _ in 0..<32 { group.addTask { try await gate.call("marketing", "POST", "/v1/sends", send) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(replies.allSatisfy { $0.status == 202 })
        #expect(Set(replies.compactMap { $0["send_id"] }).count == 1)
        #expect(replies.count { $0.json["replayed"] == true } == 31)
        #expect(try await gate.claim().count == 1)
    }

    @Test func `a remittance leaves sealed and only the phone reads it`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let (pair, keyID) = try await gate.addKey("u_1")
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        try #require(reply.status == 202, "\(reply.json)")
        let delivery = try #require(try await gate.claim().first)
        let body = try #require(try CanonicalJSON.read(delivery.body).objectValue)
        let envelope = try #require(body["sendgate"]?.stringValue)
        // Random hexadecimal and base64 hold any three letters now and then, so what is random is read as bytes.
        var outside = String(decoding: delivery.body, as: UTF8.self)
        let members = try CanonicalJSON.read(Array(envelope.utf8))
        for random in ["kid", "mid", "ct"] {
            let text = try #require(members[random]?.stringValue)
            try #require(outside.contains(text))
            outside = outside.replacingOccurrences(of: text, with: "")
        }
        let ciphertext = try #require(members["ct"]?.stringValue)
            .replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        let padding = String(repeating: "=", count: (4 - ciphertext.utf8.count % 4) % 4)
        let sealed = try #require(Data(base64Encoded: ciphertext + padding))
        for secret in ["Ahmad", "500", "NOK", "remittance", "0d4f5a3e", "drop://"] {
            #expect(!outside.contains(secret), "the outside tells `\(secret)`")
            #expect(sealed.range(of: Data(secret.utf8)) == nil, "the seal shows `\(secret)`")
        }
        let opener = try pair.opener(
            keyID: keyID, app: "no.getdrop.app", device: "d_1", origin: gate.origin.publicKey.rawBytes)
        let opened = try opener.open(envelope, now: UInt64(gate.clock.now().seconds))
        let inside = String(decoding: opened.message.content, as: UTF8.self)
        #expect(inside.contains("Ahmad Karimi"))
        #expect(inside.contains("transaction.remittance_sent"))
    }

    @Test func `without a key a sealed type says only that there is something`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        #expect(reply.status == 202)
        #expect(reply["reason"] == "generic_only")
        let delivery = try #require(try await gate.claim().first)
        #expect(!String(decoding: delivery.body, as: UTF8.self).contains("Ahmad"))
    }

    @Test func `only security on the allow-list goes critical`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        var send = try await gate.example("suspicious_login", "a1", to: "u_1", as: "security")
        send["critical"] = true
        let critical = try await gate.call("security", "POST", "/v1/sends", send)
        #expect(critical.status == 202, "\(critical.json)")
        let delivery = try #require(try await gate.claim(.security).first)
        #expect(String(decoding: delivery.body, as: UTF8.self).contains("critical"))
        var promo = try await gate.promo("p1", to: "u_1")
        promo["critical"] = true
        let refused = try await gate.call("marketing", "POST", "/v1/sends", promo)
        #expect(refused.status == 403 && refused["reason"] == "critical_not_permitted")
        #expect(refused.json["deliveries"] == [])
    }

    @Test func `a payment notice in quiet hours waits for morning and is decided again`() async throws {
        // 23:00 in Berlin.
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        #expect(reply.status == 202 && reply["outcome"] == "defer", "\(reply.json)")
        #expect(try await gate.claim().isEmpty)
        gate.clock.advance(seconds: 9 * 3600)
        // The first claim composes it, the next hands it over.
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 1)
    }

    @Test func `a security notice passes quiet hours and a social one is dropped`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        let comment = try await gate.example("social.comment", "s1", to: "u_1", as: "social")
        let dropped = try await gate.call("social", "POST", "/v1/sends", comment)
        #expect(dropped.status == 403 && dropped["reason"] == "quiet_hours_dropped", "\(dropped.json)")
        let notice = try await gate.example("security.new_login", "n1", to: "u_1", as: "security")
        let passed = try await gate.call("security", "POST", "/v1/sends", notice)
        #expect(passed.status == 202, "\(passed.json)")
    }

    @Test func `every recorded decision replays byte for byte`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try await gate.register("u_2", region: "US", zone: "America/New_York", osPermission: "denied")
        _ = try await gate.addKey("u_1")
        for (number, user) in ["u_1", "u_2", "u_nobody"].enumerated() {
            _ = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p\(number)", to: user))
            _ = try await gate.call(
                "payments", "POST", "/v1/sends", GatewayHarness.remittance("r\(number)", to: user))
        }
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1000) }
        var replayed = 0
        for entry in entries {
            switch replay(entry.bytes, policies: { $0 == gate.policy.digest ? gate.policy : nil }) {
            case .same: replayed += 1
            case .differs(let what): Issue.record("entry \(entry.index): \(what)")
            case .notReplayable: break
            }
        }
        #expect(replayed == 6)
        #expect(entries.enumerated().allSatisfy { UInt64($0.offset) == $0.element.index })
    }

    @Test func `an erased person is simply unknown and nothing of theirs waits`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let sent = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        try #require(sent.status == 202)
        let erased = try await gate.call("product", "DELETE", "/v1/recipients/u_1")
        #expect(erased.status == 200, "\(erased.json)")
        #expect(try await gate.claim().isEmpty)
        let again = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r2", to: "u_1"))
        #expect(again.status == 403 && again["reason"] == "unknown_recipient")
        #expect(try await gate.call("product", "GET", "/v1/recipients/u_1").status == 404)
    }

    @Test func `a stranger is told nothing and leaves one entry a minute`() async throws {
        let gate = try GatewayHarness()
        for _ in 0..<10 {
            #expect(try await gate.call("nobody", "GET", "/v1/types").status == 401)
            #expect(try await gate.call("nobody", "GET", "/v1/nothing").status == 401)
        }
        gate.clock.advance(seconds: 61)
        #expect(try await gate.call("nobody", "GET", "/v1/types").status == 401)
        // The next edit is behind both entries in the queue.
        try await gate.register("u_1", device: nil)
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 10) }
        let recorded = entries.map { String(decoding: $0.bytes, as: UTF8.self) }.filter {
            $0.contains("unknown_peer")
        }
        #expect(recorded.count == 2)
        #expect(recorded.last?.contains("\"count\":20") == true)
    }

    @Test func `a message that cannot be handled is put off and holds up none behind it`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        var messages: [MessageID] = []
        for id in ["r1", "r2"] {
            let sent = try await gate.call(
                "payments", "POST", "/v1/sends", GatewayHarness.remittance(id, to: "u_1"))
            let delivery = try #require(
                sent.json["deliveries"]?.arrayValue?.first?.objectValue, "\(sent.json)")
            messages.append(try #require(MessageID(uuidText: delivery["message_id"]?.stringValue ?? "")))
        }
        func rewrite(_ change: (inout OutboxRecord) -> Void) throws {
            var row = try #require(try gate.store.read { try $0.outbox(messages[0]) })
            change(&row)
            try gate.store.write { $0.updateOutbox(row) }
        }
        var sound: [UInt8] = []
        try rewrite {
            sound = $0.headers
            $0.headers = Array("[]".utf8)
        }
        #expect(try await gate.claim().map(\.message) == [messages[1]])
        #expect(try await gate.claim().isEmpty)
        await gate.settle()
        let alarms = gate.alarms.all
        #expect(alarms.count == 1 && alarms[0].contains("\(messages[0]) is put off"), "\(alarms)")
        try rewrite { $0.headers = sound }
        gate.clock.advance(seconds: 60)
        #expect(try await gate.claim().map(\.message) == [messages[0]])
    }

    @Test func `more than may wait for one person is refused, with a share kept for security`() async throws {
        var limits = EngineLimits()
        limits.outboxRowCountPerPersonMax = 10
        let gate = try GatewayHarness(limits: limits)
        try await gate.register("u_1")
        try await gate.register("u_2")
        func send(_ caller: String, _ send: JSONObject) async throws -> GatewayHarness.Reply {
            try await gate.call(caller, "POST", "/v1/sends", send)
        }
        for number in 0..<10 {
            let sent = try await send("payments", GatewayHarness.remittance("r\(number)", to: "u_1"))
            #expect(sent.status == 202, "\(sent.json)")
        }
        let full = try await send("payments", GatewayHarness.remittance("r10", to: "u_1"))
        #expect(full.status == 429 && full["type"] == "urn:sendgate:problem:outbox_full", "\(full.json)")
        #expect(try await send("payments", GatewayHarness.remittance("r11", to: "u_2")).status == 202)
        let login = try await gate.example("security.new_login", "l1", to: "u_1", as: "security")
        #expect(try await send("security", login).status == 202)
        // Handed over, there is room again, and the same id is decided then.
        while case let claimed = try await gate.claim(), !claimed.isEmpty {
            for delivery in claimed {
                try await gate.gateway.report(
                    delivery.message, .accepted(status: 200, byProvider: false), retryAt: nil)
            }
        }
        #expect(try await send("payments", GatewayHarness.remittance("r10", to: "u_1")).status == 202)
    }
}
