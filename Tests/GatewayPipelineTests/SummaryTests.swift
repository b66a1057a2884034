import BundleModel
import CanonicalJSON
import CompliancePolicy
import Dispatch
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import GateRecords
import SQLiteStore
import SealedPush
import SendPlanning
import Testing
import WireProtocol

/// What goes over a cap is told once, together, when there is room again.
@Suite struct SummaryTests {
    /// Two transfers an hour; the rest is gathered.
    static let twoAnHour = """
        categories: {}
        types:
          transfer.received:
            - {count: 2, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
        """

    func transfer(
        _ number: Int, to user: String = "u_1", minor: Int64 = 1400, currency: String = "NOK"
    ) -> JSONObject {
        [
            "id": .string("t\(number)"), "type": "transfer.received", "recipient": ["user": .string(user)],
            "params": [
                "amount": ["minor": .integer(minor), "currency": .string(currency)], "sender_name": "Ola",
                "transaction_id": .string("0d4f5a3e-5c1b-4e52-9a1f-\(String(format: "%012d", number))"),
            ],
        ]
    }

    private func open(
        _ delivery: Delivery, with pair: DeviceKeyPair, _ keyID: String, _ gate: GatewayHarness
    ) throws -> String {
        let body = try #require(try CanonicalJSON.read(delivery.body).objectValue)
        let opener = try pair.opener(
            keyID: keyID, app: "no.getdrop.app", device: "d_1", origin: gate.origin.publicKey.rawBytes)
        let opened = try opener.open(
            #require(body["sendgate"]?.stringValue), now: UInt64(gate.clock.now().seconds))
        return String(decoding: opened.message.content, as: UTF8.self)
    }

    @Test func `thirty transfers in an hour are two messages and one summary with totals`() async throws {
        let gate = try GatewayHarness(caps: Self.twoAnHour)
        try await gate.register("u_1")
        let (pair, keyID) = try await gate.addKey("u_1")
        var outcomes: [String] = []
        for number in 0..<30 {
            let currency = number % 10 == 9 ? "EUR" : "NOK"
            let reply = try await gate.call(
                "payments", "POST", "/v1/sends", transfer(number, currency: currency))
            #expect(reply.status == 202, "\(reply.json)")
            outcomes.append(reply["outcome"] ?? "")
        }
        #expect(outcomes.prefix(2).allSatisfy { $0 == "forward" })
        #expect(outcomes.dropFirst(2).allSatisfy { $0 == "digest" })
        #expect(try await gate.claim().count == 2)
        gate.clock.advance(seconds: 3599)
        #expect(try await gate.claim().isEmpty)
        gate.clock.advance(seconds: 2)
        // The first claim makes the summary, the next hands it over.
        _ = try await gate.claim()
        let deliveries = try await gate.claim()
        try #require(deliveries.count == 1)
        let inside = try open(deliveries[0], with: pair, keyID, gate)
        #expect(inside.contains("28 new transactions"))
        // 25 of 14 kroner, three of 14 euro: per currency, never added up across.
        #expect(inside.contains("350.00") && inside.contains("42.00"), "\(inside)")
        let outside = String(decoding: deliveries[0].body, as: UTF8.self)
        #expect(!outside.contains("28 new") && !outside.contains("350.00"))
        // It counts once: one more may go, the next is gathered again.
        #expect(
            try await gate.call("payments", "POST", "/v1/sends", transfer(100))["outcome"] == "forward")
    }

    @Test func `a summary is a send of the gateway's own, and every decision of it replays`() async throws {
        let gate = try GatewayHarness(caps: Self.twoAnHour)
        try await gate.register("u_1")
        for number in 0..<5 {
            _ = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
        }
        gate.clock.advance(seconds: 3601)
        _ = try await gate.claim()
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1000) }
        let kinds = try entries.map { try CanonicalJSON.read($0.bytes) }
        let own = kinds.filter { $0["kind"] == "send" && $0["caller"] == "gateway" }
        #expect(own.count == 1)
        #expect(own.first?["request"]?["type"] == "digest.transactions")
        #expect(kinds.filter { $0["cause"] == "summarised" }.count == 3)
        for entry in entries {
            if case .differs(let what) = replay(
                entry.bytes, policies: { $0 == gate.policy.digest ? gate.policy : nil })
            {
                Issue.record("entry \(entry.index): \(what)")
            }
        }
        // What was gathered was decided on what was before the summary, and does not count it.
        #expect(try EvidenceFoldTests.fold(entries.map(\.bytes), gate.policy).differences.isEmpty)
    }

    @Test func `a summary is made though the outbox has no room left`() async throws {
        var limits = EngineLimits()
        limits.outboxRowCountMax = 20
        let gate = try GatewayHarness(limits: limits, caps: Self.twoAnHour)
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        for number in 0..<4 {
            _ = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
        }
        for number in 0..<14 { #expect(try await gate.remit("r\(number)", to: "u_2").status == 202) }
        #expect(try await gate.remit("full", to: "u_2").status == 429)
        for number in 0..<2 { #expect(try await gate.login(number, to: "u_2").status == 202) }
        gate.clock.advance(seconds: 3601)
        _ = try await gate.claim()
        let entries = try gate.entries()
        #expect(entries.contains { String(decoding: $0.bytes, as: UTF8.self).contains("digest.trans") })
    }

    @Test func `one left alone goes as itself`() async throws {
        let gate = try GatewayHarness(caps: Self.twoAnHour)
        try await gate.register("u_1")
        for number in 0..<3 {
            _ = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
        }
        _ = try await gate.claim()
        gate.clock.advance(seconds: 3601)
        _ = try await gate.claim()
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1000) }
        #expect(!entries.contains { String(decoding: $0.bytes, as: UTF8.self).contains("digest.trans") })
        #expect(try await gate.claim().count == 1)
    }

    @Test func `what is gathered falls with the switch, and a summary is not made of it`() async throws {
        let gate = try GatewayHarness(caps: Self.twoAnHour)
        try await gate.register("u_1")
        for number in 0..<6 {
            _ = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
        }
        #expect(try await gate.claim().count == 2)
        let off = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/transactional",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        #expect(off.status == 200, "\(off.json)")
        gate.clock.advance(seconds: 3601)
        _ = try await gate.claim()
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `two devices get one summary each and it counts once`() async throws {
        let gate = try GatewayHarness(caps: Self.twoAnHour)
        try await gate.register("u_1")
        try await gate.register("u_1", device: "d_2")
        for number in 0..<4 {
            _ = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
        }
        #expect(try await gate.claim().count == 4)
        gate.clock.advance(seconds: 3601)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 2)
        let person = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) })
        let forwards = try gate.store.read {
            try $0.forwards(of: person.id, since: gate.clock.now().advanced(bySeconds: -60), limit: 9)
        }
        #expect(forwards.map(\.type.text) == ["digest.transactions"])
    }

    @Test func `two sends at the cap minus one in one batch: one goes, one is gathered`() async throws {
        let gate = try GatewayHarness(caps: Self.twoAnHour)
        try await gate.register("u_1")
        _ = try await gate.call("payments", "POST", "/v1/sends", transfer(0))
        let hold = HoldOperation()
        gate.engine.submit(hold)
        hold.entered.wait()
        let bodies = [transfer(1), transfer(2)]
        let outcomes = try await withThrowingTaskGroup(of: String?.self) { group in
            for body in bodies {
                group.addTask { try await gate.call("payments", "POST", "/v1/sends", body)["outcome"] }
            }
            while gate.engine.load.queuedCount < 2 { await Task.yield() }
            hold.release.signal()
            return try await group.reduce(into: []) { $0.append($1 ?? "") }
        }
        #expect(outcomes.sorted() == ["digest", "forward"])
    }

    /// Consent to what a balance update is about.
    private func informed(_ gate: GatewayHarness) async throws {
        let notice = try #require(
            gate.policy.bundle.notices.values.first {
                $0.key.id == "account_information" && $0.key.language == "en"
            })
        let consent = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            [
                "id": "c1", "purpose": "account_information", "channel": "push", "state": "given",
                "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                "jurisdiction": "DE",
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        try #require(consent.status == 200, "\(consent.json)")
    }

    @Test func `what is gathered for longer than it would have lived is told all the same`() async throws {
        let caps = """
            categories: {}
            types:
              account.balance_update:
                - {count: 1, window_hours: 24, source: a test, because: It is short., reviewed: "2026-11-02"}
            """
        let gate = try GatewayHarness(caps: caps)
        try await gate.register("u_1")
        try await informed(gate)
        var outcomes: [String] = []
        for number in 0..<3 {
            let send = try await gate.example(
                "account.balance_update", "b\(number)", to: "u_1", as: "payments")
            outcomes.append(try await gate.call("payments", "POST", "/v1/sends", send)["outcome"] ?? "")
        }
        #expect(outcomes == ["forward", "digest", "digest"])
        #expect(try await gate.claim().count == 1)
        // A balance lives six hours; the cap has room after twenty-four.
        gate.clock.advance(seconds: 24 * 3600 + 1)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 1)
    }

    @Test func `a device that gets its key while a message is gathered or held still gets the message`()
        async throws
    {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        try #require(reply["outcome"] == "defer", "\(reply.json)")
        _ = try await gate.addKey("u_1")
        gate.clock.advance(seconds: 9 * 3600)
        _ = try await gate.claim()
        let deliveries = try await gate.claim()
        #expect(deliveries.count == 1)
        #expect(
            deliveries.first.map { String(decoding: $0.body, as: UTF8.self).contains("sendgate") } == true)
    }

    @Test func `two messages for two devices with room for one: the second waits on`() async throws {
        let gate = try GatewayHarness(caps: Self.twoAnHour)
        try await gate.register("u_1")
        try await gate.register("u_1", device: "d_2")
        for number in 0..<4 {
            var send = transfer(number)
            send["recipient"] = ["user": "u_1", "device": number % 2 == 0 ? "d_1" : "d_2"]
            _ = try await gate.call("payments", "POST", "/v1/sends", send)
            gate.clock.advance(seconds: 60)
        }
        #expect(try await gate.claim().count == 2)
        // The first forward leaves the window, the second is still in it.
        gate.clock.advance(seconds: 3600 - 4 * 60 + 2)
        // Which of the two goes first is not said; the one that does may go at once or at the next turn.
        #expect(try await gate.claim().count + gate.claim().count == 1)
        gate.clock.advance(seconds: 3600)
        #expect(try await gate.claim().count + gate.claim().count == 1)
    }

    @Test func `a held send with two devices does not count against itself`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z", caps: Self.twoAnHour)
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"], device: "d_2")
        for number in 0..<2 {
            let reply = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
            try #require(reply["outcome"] == "defer")
        }
        gate.clock.advance(seconds: 9 * 3600)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 4)
    }

    /// What the gateway has sent of its own, by type.
    private func summaries(_ gate: GatewayHarness) throws -> [String] {
        try gate.entries("send").filter { $0["caller"]?.stringValue == "gateway" }
            .compactMap { $0["request"]?["type"]?.stringValue }.sorted()
    }

    @Test func `a cap has room again with the millisecond after its window`() async throws {
        let gate = try GatewayHarness(caps: Self.twoAnHour)
        try await gate.register("u_1")
        for number in 0..<4 {
            _ = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
        }
        #expect(try await gate.claim().count == 2)
        gate.clock.advance(seconds: 3600)
        #expect(try await gate.claim().isEmpty)
        #expect(try await gate.claim().isEmpty && summaries(gate).isEmpty)
        gate.clock.advance(milliseconds: 1)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 1)
        #expect(try summaries(gate) == ["digest.transactions"])
    }

    @Test func `each category is summarised by itself`() async throws {
        let one =
            "- {count: 1, window_hours: 1, source: a test, because: It is short., reviewed: \"2026-11-02\"}"
        let caps =
            "categories: {}\ntypes:\n  transfer.received:\n    \(one)\n  message.received:\n    \(one)\n"
        let gate = try GatewayHarness(caps: caps)
        try await gate.register("u_1")
        for number in 0..<3 {
            let first = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
            var message = try await gate.example("message.received", "m\(number)", to: "u_1", as: "social")
            guard case .object(var params)? = message["params"] else {
                Issue.record("\(message)")
                return
            }
            params["message_id"] = .string("0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a1\(number)")
            message["params"] = .object(params)
            let second = try await gate.call("social", "POST", "/v1/sends", message)
            let outcome = number == 0 ? "forward" : "digest"
            #expect(
                first["outcome"] == outcome && second["outcome"] == outcome, "\(first.json) \(second.json)")
        }
        #expect(try await gate.claim().count == 2)
        gate.clock.advance(seconds: 3601)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 2)
        #expect(try summaries(gate) == ["digest.social", "digest.transactions"])
    }

    @Test func `what was gathered and is held back by the night lives until the morning`() async throws {
        let caps = """
            categories: {}
            types:
              account.balance_update:
                - {count: 1, window_hours: 25, source: a test, because: It is short., reviewed: "2026-11-02"}
            """
        let gate = try GatewayHarness(at: "2026-11-21T19:30:00Z", caps: caps)
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        try await informed(gate)
        for number in 0..<3 {
            let send = try await gate.example(
                "account.balance_update", "b\(number)", to: "u_1", as: "payments")
            let reply = try await gate.call("payments", "POST", "/v1/sends", send)
            try #require(reply["outcome"] == (number == 0 ? "forward" : "digest"), "\(reply.json)")
        }
        #expect(try await gate.claim().count == 1)
        // There is room at half past nine in the evening; a balance lives six hours.
        gate.clock.advance(seconds: 25 * 3600 + 1)
        _ = try await gate.claim()
        #expect(try await gate.claim().isEmpty)
        gate.clock.advance(seconds: 10 * 3600 + 1800)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 1)
        #expect(try gate.entries("unsent").isEmpty)
    }

    @Test func `what waits for the morning is not summarised with what was gathered`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T19:30:00Z", caps: Self.twoAnHour)
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        for number in 0..<3 {
            _ = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
        }
        #expect(try await gate.claim().count == 2)
        gate.clock.advance(seconds: 40 * 60)
        #expect(try await gate.remit("r")["outcome"] == "defer")
        gate.clock.advance(seconds: 11 * 3600)
        _ = try await gate.claim()
        // Neither stands for the other: one transfer, one remittance.
        #expect(try await gate.claim().count == 2)
        #expect(try summaries(gate).isEmpty)
    }

    @Test(arguments: [(335, true), (336, false)])
    func `what was gathered for more than fourteen days is given up`(_ hours: Int, _ goes: Bool) async throws
    {
        let gate = try GatewayHarness(
            caps: Self.twoAnHour.replacingOccurrences(of: "window_hours: 1", with: "window_hours: \(hours)"))
        try await gate.register("u_1")
        for number in 0..<3 {
            _ = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
        }
        #expect(try await gate.claim().count == 2)
        gate.clock.advance(seconds: Int64(hours) * 3600)
        gate.clock.advance(milliseconds: 1)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == (goes ? 1 : 0))
        #expect(try gate.entries("unsent").map { $0["cause"]?.stringValue } == (goes ? [] : ["expired"]))
        #expect(try gate.store.read { try $0.outboxDepth().rowCount } == (goes ? 3 : 2))
    }

    @Test(arguments: [(336, true), (337, false)])
    func `what was held before it was gathered has waited since then`(_ hours: Int, _ goes: Bool) async throws
    {
        let caps = Self.twoAnHour.replacingOccurrences(of: "window_hours: 1", with: "window_hours: \(hours)")
        let gate = try GatewayHarness(at: "2026-11-21T19:30:00Z", caps: caps)
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        for number in 0..<2 {
            _ = try await gate.call("payments", "POST", "/v1/sends", transfer(number))
        }
        #expect(try await gate.claim().count == 2)
        gate.clock.advance(seconds: 40 * 60)
        #expect(try await gate.call("payments", "POST", "/v1/sends", transfer(2))["outcome"] == "defer")
        // In the morning the cap is full; when it has room, fourteen days have passed since the evening or have not.
        gate.clock.advance(seconds: 11 * 3600)
        #expect(try await gate.claim().count + gate.claim().count == 0)
        gate.clock.advance(seconds: Int64(hours) * 3600 - 40 * 60 - 11 * 3600 + 1)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == (goes ? 1 : 0))
        #expect(try gate.entries("unsent").map { $0["cause"]?.stringValue } == (goes ? [] : ["expired"]))
    }
}
