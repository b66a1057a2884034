import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateTestKit
import GateVocabulary
import SendPlanning
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline

/// What comes over a listener in shadow is decided and recorded, reaches nobody, and touches nothing that a real send looks at.
@Suite struct ShadowTests {
    /// The listeners of the harness: everything, all in shadow, transfers enforced, no sends, all of one caller enforced, and a
    /// security type enforced.
    private static let (real, shadow, mixed, manage, whole, secured) = (0, 1, 2, 3, 4, 5)
    private static let listeners: [ListenerMode] = [
        .enforce, .shadow(ListenerMode.Enforced()),
        .shadow(ListenerMode.Enforced(types: [TypeID("transfer.received")])), .manage,
        .shadow(ListenerMode.Enforced(callers: [CallerName("payments")])),
        .shadow(ListenerMode.Enforced(types: [TypeID("security.new_login")])),
    ]

    private func gate(
        caps: String? = nil, environment: EngineEnvironment = EngineEnvironment()
    ) async throws -> GatewayHarness {
        let gate = try GatewayHarness(caps: caps, environment: environment, listeners: Self.listeners)
        try await gate.register("u_1")
        return gate
    }

    private func transfer(
        _ number: Int, over listener: Int, id: String? = nil, _ gate: GatewayHarness, sent: Bool? = nil,
        misshapen isMisshapen: Bool = false
    ) async throws -> GatewayHarness.Reply {
        var body = DecidedAgainTests.transfer(number, to: "u_1")
        if let id { body["id"] = .string(id) }
        if let sent { body["sent"] = .boolean(sent) }
        if isMisshapen { body["params"] = [:] }
        return try await gate.call("payments", "POST", "/v1/sends", body, over: listener)
    }

    private func remit(
        _ id: String, over listener: Int, _ gate: GatewayHarness, sent: Bool? = nil
    ) async throws -> GatewayHarness.Reply {
        var body = GatewayHarness.remittance(id, to: "u_1")
        if let sent { body["sent"] = .boolean(sent) }
        return try await gate.call("payments", "POST", "/v1/sends", body, over: listener)
    }

    /// Every entry is what the ones before it tell, and the store is what they made of it.
    private func expectFollows(_ gate: GatewayHarness) throws {
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map(\.bytes)
        let differences = try EvidenceFoldTests.fold(entries, gate.policy).differences
        #expect(differences.isEmpty, "\(differences)")
        let stored = try StateAuditTests().differences(gate)
        #expect(stored.isEmpty, "\(stored)")
    }

    @Test func `a send in shadow is answered as decided, and nothing goes out of it`() async throws {
        let gate = try await gate()
        let allowed = try await remit("r1", over: Self.shadow, gate, sent: true)
        #expect(allowed.status == 202 && allowed["outcome"] == "forward", "\(allowed.json)")
        #expect(allowed.json["shadow"] == true)
        let delivery = try #require(allowed.json["deliveries"]?.arrayValue?.first)
        #expect(delivery["destination"] == "d_1" && delivery["message_id"] == nil, "\(delivery)")
        // A copy must not look like an error to the producer that sends by itself.
        let offer = try await gate.call(
            "marketing", "POST", "/v1/sends", try await gate.promo("p1", to: "u_1"), over: Self.shadow)
        #expect(offer.status == 202 && offer["outcome"] == "reject", "\(offer.json)")
        #expect(offer["reason"] == "no_gdpr_consent" && offer["type"] == nil && offer["title"] == nil)
        for lane in [DeliveryLane.general, .security] {
            #expect(try await gate.claim(lane).isEmpty)
        }
        #expect(try gate.store.read { try $0.outboxDepth() }.rowCount == 0)
        let entries = try gate.entries("send")
        #expect(entries.map { $0["shadow"] } == [true, true] && entries.map { $0["sent"] } == [true, nil])
        #expect(entries[0]["deliveries"]?.arrayValue?.first?["message_id"] == nil)
        let events = try await gate.call("payments", "GET", "/v1/events")
        #expect(events.json["events"]?.arrayValue?.isEmpty == true, "\(events.json)")
        // Who made it may look it up, and who answers for the person sees that it is none that went out.
        let id = try #require(allowed["send_id"])
        let status = try await gate.call("payments", "GET", "/v1/sends/\(id)", over: Self.shadow)
        #expect(status.json["shadow"] == true && status["outcome"] == "forward", "\(status.json)")
        let rows = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions")
        let told = try #require(rows.json["decisions"]?.arrayValue)
        #expect(told.map { $0["shadow"] } == [true, true], "\(rows.json)")
        // Of what was stopped it is said why, and of the other nothing: its sentence says that it went out.
        #expect(told.map { $0["outcome"] } == ["reject", "forward"])
        #expect(told.map { $0["explanation"] == nil } == [false, true], "\(rows.json)")
        try expectFollows(gate)
    }

    @Test func `caps count in shadow as they would, and neither counts the other's`() async throws {
        let gate = try await gate(caps: DecidedAgainTests.oneAnHour)
        let expected = ["forward", "digest"]
        for (number, outcome) in expected.enumerated() {
            let reply = try await transfer(number, over: Self.shadow, gate)
            #expect(reply["outcome"] == outcome, "\(reply.json)")
        }
        for (number, outcome) in expected.enumerated() {
            let reply = try await transfer(number + 10, over: Self.real, gate)
            #expect(reply["outcome"] == outcome && reply.json["shadow"] == nil, "\(reply.json)")
        }
        // Explained where it would be asked.
        var question = DecidedAgainTests.transfer(30, to: "u_1")
        question["id"] = nil
        gate.clock.advance(seconds: 3601)
        _ = try await transfer(31, over: Self.shadow, gate)
        for (listener, outcome) in [(Self.shadow, "digest"), (Self.mixed, "forward"), (Self.real, "forward")]
        {
            let explained = try await gate.call(
                "payments", "POST", "/v1/sends/explain", question, over: listener)
            #expect(explained["outcome"] == outcome, "\(explained.json)")
        }
        try expectFollows(gate)
    }

    @Test func `ids in shadow are its own, and a repeat there is answered again`() async throws {
        let gate = try await gate()
        let first = try await remit("r1", over: Self.shadow, gate)
        let again = try await remit("r1", over: Self.shadow, gate)
        #expect(again.status == 202 && again.json["replayed"] == true && again.json["shadow"] == true)
        #expect(again["send_id"] == first["send_id"])
        let real = try await remit("r1", over: Self.real, gate)
        #expect(real.status == 202 && real.json["replayed"] == nil && real["send_id"] != first["send_id"])
        #expect(try await gate.claim().count == 1)
        var other = GatewayHarness.remittance("r1", to: "u_1")
        other["ttl_seconds"] = 60
        let conflict = try await gate.call("payments", "POST", "/v1/sends", other, over: Self.shadow)
        #expect(conflict.status == 409, "\(conflict.json)")
        // What is refused for its shape binds no id there either.
        var misshapen = GatewayHarness.remittance("r2", to: "u_1")
        misshapen["params"] = [:]
        for replayed: JSONValue? in [nil, true] {
            let refused = try await gate.call("payments", "POST", "/v1/sends", misshapen, over: Self.shadow)
            #expect(refused.status == 202 && refused["reason"] == "invalid_params", "\(refused.json)")
            #expect(refused.json["violations"]?.arrayValue?.isEmpty == false)
            #expect(refused.json["replayed"] == replayed)
        }
        #expect(try await remit("r2", over: Self.shadow, gate)["outcome"] == "forward")
        try expectFollows(gate)
    }

    @Test func `what was told in shadow was told to nobody`() async throws {
        let gate = try await gate()
        func notice(_ id: String, over listener: Int) async throws -> GatewayHarness.Reply {
            try await gate.call(
                "payments", "POST", "/v1/sends",
                [
                    "id": .string(id), "type": "alert.payment_processing", "recipient": ["user": "u_1"],
                    "params": [
                        "alertId": "11111111-5c1b-4e52-9a1f-3f6f3d1f7a10",
                        "paymentId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
                    ],
                ], over: listener)
        }
        for listener in [Self.shadow, Self.real] {
            let first = try await notice("a", over: listener)
            #expect(first.status == 202 && first["outcome"] == "defer", "\(first.json)")
            let again = try await notice("b", over: listener)
            #expect(again["reason"] == "repeated", "\(again.json)")
        }
        try expectFollows(gate)
    }

    @Test func `in shadow a notice that the law demands leaves no duty, and discharges none`() async throws {
        let gate = try await gate()
        let address: JSONObject = [
            "kind": "email", "value": "a@example.org", "verified_at": .string(gate.clock.now().rfc3339),
        ]
        _ = try await gate.call("product", "PUT", "/v1/recipients/u_1/addresses/e_1", address)
        let later = gate.clock.now().advanced(bySeconds: 400 * 86_400)
        func owedCount() throws -> Int {
            try gate.store.read { try $0.overdueDuties(at: later, limit: 10) }.count { $0.state == .owed }
        }
        func breach(
            _ id: String, by channel: String, over listener: Int, to user: String = "u_1"
        ) async throws -> GatewayHarness.Reply {
            var body = try await gate.example("privacy.breach_notice", id, to: user, as: "security")
            body["channel"] = .string(channel)
            return try await gate.call("security", "POST", "/v1/sends", body, over: listener)
        }
        let told = try await breach("b1", by: "push", over: Self.shadow)
        #expect(told["outcome"] == "forward" && told.json["owed"] == nil, "\(told.json)")
        #expect(try owedCount() == 0)
        // A push leaves it owed, and a letter by e-mail discharges it: for real.
        let owing = try await breach("b2", by: "push", over: Self.real)
        #expect(owing.json["owed"] == ["email", "letter"], "\(owing.json)")
        #expect(try owedCount() == 1)
        let copied = try await breach("b3", by: "email", over: Self.shadow)
        #expect(copied["outcome"] == "forward", "\(copied.json)")
        #expect(try owedCount() == 1)
        let written = try await breach("b4", by: "email", over: Self.real)
        #expect(written["outcome"] == "forward", "\(written.json)")
        #expect(try owedCount() == 0)
        try await gate.register("u_2", device: nil)
        let missed = try await breach("b5", by: "push", over: Self.shadow, to: "u_2")
        #expect(missed["reason"] == "no_destination", "\(missed.json)")
        await gate.settle()
        #expect(gate.alarms.all.isEmpty)
        #expect(try gate.entries("mandatory_unreached").isEmpty)
    }

    @Test func `a push in shadow is replaced by no real text, and the other way round`() async throws {
        let gate = try await gate()
        let pushes = [
            try await remit("r1", over: Self.real, gate), try await remit("r2", over: Self.shadow, gate),
        ]
        for listener in [Self.real, Self.shadow] {
            for (place, push) in pushes.enumerated() {
                var text = GatewayHarness.remittance("t\(listener)\(place)", to: "u_1")
                text["channel"] = "email"
                text["fallback_for"] = push.json["send_id"]
                _ = try await gate.call("payments", "POST", "/v1/sends", text, over: listener)
                let entry = try #require(try gate.entries("send").last)
                let isOwn = (listener == Self.shadow) == (place == 1)
                #expect((entry["replaces"] != nil) == isOwn, "\(listener) \(place): \(entry)")
            }
        }
        try expectFollows(gate)
    }

    @Test func `a listener in shadow takes what changes people from nobody`() async throws {
        let gate = try await gate()
        let changes: [(caller: String, method: String, target: String, body: JSONObject?)] = [
            ("product", "PUT", "/v1/recipients/u_2", ["region": "DE", "region_source": "kyc"]),
            ("product", "DELETE", "/v1/recipients/u_1", nil),
            ("product", "POST", "/v1/recipients/u_1/consents", try gate.consentBody("c9")),
            ("payments", "POST", "/v1/receipts", nil), ("payments", "POST", "/v1/sends/acknowledge", nil),
            ("payments", "POST", "/v1/sends/0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10/cancel", nil),
            ("keys-team", "POST", "/v1/policy/activate", nil), ("security", "POST", "/v1/keys", nil),
        ]
        let count = try gate.store.read { try $0.entryCount() }
        for (caller, method, target, body) in changes {
            let reply = try await gate.call(caller, method, target, body, over: Self.shadow)
            #expect(reply.status == 403, "\(method) \(target): \(reply.json)")
            #expect(reply["type"]?.hasSuffix("other_listener") == true, "\(reply.json)")
        }
        let line = await gate.ask("product", "POST", "/v1/import", [:], kind: .streamLine, over: Self.shadow)
        #expect(line.status == 403)
        #expect(try gate.store.read { try $0.entryCount() } == count)
        for target in ["/v1/types", "/v1/events", "/healthz"] {
            #expect(
                try await gate.call("payments", "GET", target, over: Self.shadow).status == 200, "\(target)")
        }
    }

    @Test func `a listener that manages takes everything but sends`() async throws {
        let gate = try await gate()
        for kind in [WireRequest.Kind.single, .streamLine] {
            let target = kind == .single ? "/v1/sends" : "/v1/sends/stream"
            let reply = await gate.ask(
                "payments", "POST", target, GatewayHarness.remittance("r1", to: "u_1"), kind: kind,
                over: Self.manage)
            #expect(reply.status == 403)
        }
        #expect(try gate.entries("send").isEmpty)
        let put = try await gate.call(
            "product", "PUT", "/v1/recipients/u_2", ["region": "DE", "region_source": "kyc"],
            over: Self.manage)
        #expect(put.status == 200, "\(put.json)")
    }

    @Test func `what another sender sent is not carried out, and what it did not send is`() async throws {
        let gate = try await gate()
        for (number, listener) in [Self.real, Self.mixed].enumerated() {
            let refused = try await transfer(number, over: listener, gate, sent: true)
            #expect(refused.status == 422, "\(refused.json)")
            let violation = try #require(refused.json["violations"]?.arrayValue?.first)
            #expect(violation["pointer"] == "/sent", "\(violation)")
        }
        #expect(try gate.entries("send").isEmpty)
        for (number, listener) in [Self.real, Self.mixed].enumerated() {
            let taken = try await transfer(number, over: listener, gate, sent: false)
            #expect(taken.status == 202 && taken.json["shadow"] == nil, "\(taken.json)")
            #expect(taken.json["replayed"] == nil)
        }
        let said = try await remit("r1", over: Self.mixed, gate, sent: false)
        #expect(said.status == 202, "\(said.json)")
        #expect(try gate.entries("send").map { $0["sent"] } == [nil, nil, false])
    }

    @Test func `what another sender did is no part of what a send is, and its first word stays`() async throws
    {
        let gate = try await gate()
        let first = try await transfer(1, over: Self.shadow, gate)
        // The producer has learnt it by the second copy, and says it also on the day the type is enforced.
        for listener in [Self.shadow, Self.mixed, Self.whole] {
            for sent: Bool? in [true, false, nil] {
                let again = try await transfer(1, over: listener, gate, sent: sent)
                #expect(again.status == 202 && again.json["shadow"] == true, "\(again.json)")
                #expect(again.json["replayed"] == true && again["send_id"] == first["send_id"])
            }
        }
        #expect(try gate.entries("send").map { $0["sent"] } == [nil])
        #expect(try await gate.claim().isEmpty)
        try expectFollows(gate)
    }

    @Test func `what was refused for its shape in shadow stays there, and its id is free`() async throws {
        let gate = try await gate()
        let before = try await transfer(1, over: Self.shadow, gate, misshapen: true)
        #expect(before.status == 202 && before["reason"] == "invalid_params", "\(before.json)")
        for isCorrected in [false, true] {
            if isCorrected {
                let corrected = try await transfer(1, over: Self.mixed, gate)
                #expect(corrected.status == 202 && corrected.json["shadow"] == nil, "\(corrected.json)")
                #expect(corrected.json["replayed"] == nil)
            }
            // Its own sender sent it then, whatever the id was used for since.
            let again = try await transfer(1, over: Self.mixed, gate, misshapen: true)
            #expect(again.status == 202 && again.json["shadow"] == true, "\(again.json)")
            #expect(again["send_id"] == before["send_id"] && again.json["replayed"] == true)
        }
        #expect(try await gate.claim().count == 1)
        try expectFollows(gate)
    }

    @Test func `what the gate carried out is not sent a second time when its type is in shadow again`()
        async throws
    {
        let gate = try await gate()
        let real = try await transfer(1, over: Self.mixed, gate)
        #expect(real.status == 202 && real.json["shadow"] == nil, "\(real.json)")
        let refused = try await transfer(2, over: Self.mixed, gate, misshapen: true)
        #expect(refused.status == 403 && refused["reason"] == "invalid_params", "\(refused.json)")
        // The type is no longer enforced: the answers of then say that its own sender must not send them.
        for (number, first) in [real, refused].enumerated() {
            let again = try await transfer(number + 1, over: Self.shadow, gate, misshapen: number == 1)
            #expect(again.status == first.status && again.json["shadow"] == nil, "\(again.json)")
            #expect(again["send_id"] == first["send_id"] && again.json["replayed"] == true)
        }
        #expect(try gate.entries("send").count == 2)
        // A copy of its own, under an id that a real send has.
        let other = try await transfer(9, over: Self.shadow, id: "t1", gate)
        #expect(other.status == 202 && other.json["shadow"] == true, "\(other.json)")
        #expect(try await gate.claim().count == 1)
        try expectFollows(gate)
    }

    @Test func `a type that is enforced before the rest goes out, but for what was in shadow`() async throws {
        let gate = try await gate()
        // Asked before the type was enforced: the producer's own sender sent it.
        let before = try await transfer(1, over: Self.shadow, gate)
        #expect(before.json["shadow"] == true)
        let retried = try await transfer(1, over: Self.mixed, gate)
        #expect(retried.json["shadow"] == true && retried["send_id"] == before["send_id"], "\(retried.json)")
        #expect(try await gate.claim().isEmpty)
        // The id means one thing on one listener.
        let changed = try await transfer(9, over: Self.mixed, id: "t1", gate)
        #expect(changed.status == 409, "\(changed.json)")
        let other = try await transfer(2, over: Self.mixed, gate)
        #expect(other.status == 202 && other.json["shadow"] == nil, "\(other.json)")
        #expect(try await gate.claim().count == 1)
        let rest = try await remit("r1", over: Self.mixed, gate)
        #expect(rest.json["shadow"] == true, "\(rest.json)")
        // All of a caller enforced, and the mode left as it is: what was in shadow is still known.
        let enforced = try await transfer(1, over: Self.whole, gate)
        #expect(enforced.json["shadow"] == true && enforced["send_id"] == before["send_id"])
        #expect(try await transfer(2, over: Self.whole, gate)["send_id"] == other["send_id"])
        // Without the mode an id of a shadow is free. So it is taken away when no such id is kept any more.
        #expect(try await transfer(1, over: Self.real, gate).json["shadow"] == nil)
        let callers = ListenerMode.Enforced(callers: [CallerName("payments")])
        #expect(callers.includes(request(by: "payments")) && !callers.includes(request(by: "social")))
        try expectFollows(gate)
    }

    private func request(by caller: String) -> AttestedRequest {
        AttestedRequest(
            caller: CallerName(caller), type: TypeID("transfer.received"), channel: .push, critical: false)
    }

    @Test func `a flood in shadow takes nothing of what is kept for security`() async throws {
        var environment = EngineEnvironment()
        let free = EngineLimits().freeDiskByteCountMin / 2
        environment.freeDiskByteCount = { free }
        let gate = try await gate(environment: environment)
        let login = try await gate.example("security.new_login", "l1", to: "u_1", as: "security")
        let shadowed = try await gate.call("security", "POST", "/v1/sends", login, over: Self.shadow)
        #expect(shadowed.status == 503, "\(shadowed.json)")
        let real = try await gate.call("security", "POST", "/v1/sends", login, over: Self.real)
        #expect(real.status == 202, "\(real.json)")
        // The reserve is for connections over which a security notice can go out.
        let places = [
            (Self.real, true), (Self.shadow, false), (Self.mixed, false), (Self.manage, false),
            (Self.whole, false), (Self.secured, true),
        ]
        for (listener, isOpen) in places {
            let peer = Peer(
                credentials: PeerCredentials(
                    userID: try #require(gate.users["security"]), groupID: 100, processID: 1,
                    supplementaryGroups: []), boundCaller: nil, listener: listener)
            #expect(gate.gateway.mayUseReserve(peer) == isOpen, "\(listener)")
        }
        #expect(Self.listeners[Self.whole].forwards(sendsOf: CallerName("payments")) { _ in false })
    }

    @Test func `sends in shadow are counted apart, as the trail tells`() async throws {
        let gate = try await gate()
        _ = try await remit("r1", over: Self.shadow, gate)
        _ = try await remit("r2", over: Self.real, gate)
        let page = String(
            decoding: await gate.ask("auditor", "GET", "/metrics").body, as: UTF8.self)
        let lines = page.split(separator: "\n").filter {
            $0.contains("decisions_total{") && !$0.hasPrefix("#")
        }
        #expect(lines.count { $0.hasPrefix("sendgate_decisions_total{") } == 1, "\(lines)")
        #expect(lines.count { $0.hasPrefix("sendgate_shadow_decisions_total{") && $0.hasSuffix(" 1") } == 1)
        var fold = TrailObservations()
        let told = try gate.store.read { try $0.entries(from: 0, limit: 100) }.flatMap { entry in
            try fold.observe(entry.bytes) { _ in gate.policy }.observations
        }
        #expect(told.contains(.shadowed(reason: .genericOnly, category: .transactional, channel: .push)))
    }

    @Test func `who is forgotten is forgotten in shadow`() async throws {
        let gate = try await gate()
        let send = try await remit("r1", over: Self.shadow, gate)
        let erased = try await gate.call("product", "DELETE", "/v1/recipients/u_1")
        #expect(erased.status == 200, "\(erased.json)")
        let id = try #require(send["send_id"])
        #expect(try await gate.call("payments", "GET", "/v1/sends/\(id)").status == 404)
        // The id leads to nobody any more.
        #expect(try await remit("r1", over: Self.shadow, gate)["reason"] == "unknown_recipient")
        try expectFollows(gate)
    }

    @Test func `what was sent in shadow after the backup counts in shadow again`() async throws {
        let enforced = ListenerMode.Enforced(types: [TypeID("transfer.received")])
        let listeners: [ListenerMode] = [.enforce, .shadow(.init()), .shadow(enforced)]
        let restores = RestoreTests()
        let caps = DecidedAgainTests.oneAnHour
        let gate = try GatewayHarness(caps: caps, keeping: .files(), listeners: listeners)
        try await gate.register("u_1")
        let copy = try restores.backup(gate)
        func transfer(
            _ number: Int, to gate: GatewayHarness, over listener: Int
        ) async throws -> GatewayHarness.Reply {
            try await gate.call(
                "payments", "POST", "/v1/sends", DecidedAgainTests.transfer(number, to: "u_1"), over: listener
            )
        }
        let first = try await transfer(1, to: gate, over: 1)
        try #require(first["outcome"] == "forward" && first.json["shadow"] == true, "\(first.json)")
        let trail = try restores.entries(of: gate)
        let old = try GatewayHarness(
            caps: caps, environment: .init(hasRestoredSends: true), after: gate, keeping: .folder(copy),
            listeners: listeners)
        try restores.restore(old, from: trail)
        // Its own sender sent it then, also where it is enforced by now.
        for listener in [1, 2] {
            let again = try await transfer(1, to: old, over: listener)
            #expect(again["send_id"] == first["send_id"] && again.json["shadow"] == true, "\(again.json)")
        }
        #expect(try await transfer(2, to: old, over: 1)["outcome"] == "digest")
        // And a real send finds neither the id nor the cap taken.
        let real = try await transfer(1, to: old, over: 0)
        #expect(real["outcome"] == "forward" && real.json["shadow"] == nil, "\(real.json)")
        let found = try StateAuditTests().differences(old)
        #expect(found.isEmpty, "\(found)")
    }

    @Test func `an entry that says it was in shadow and has a message is none`() async throws {
        let gate = try await gate()
        _ = try await remit("r1", over: Self.real, gate)
        _ = try await remit("r2", over: Self.shadow, gate)
        let texts = try gate.store.read { try $0.entries(from: 0, limit: 100) }.map {
            String(decoding: $0.bytes, as: UTF8.self)
        }.filter { $0.contains("\"kind\":\"send\"") }
        let (real, shadow) = (texts[0], texts[1])
        let forged = [
            real.replacing("\"subject\":", with: "\"shadow\":true,\"subject\":"),
            real.replacing("\"subject\":", with: "\"sent\":true,\"subject\":"),
            shadow.replacing("\"shadow\":true", with: "\"shadow\":false"),
        ]
        for text in forged {
            #expect(text != real && text != shadow)
            #expect(throws: EntryError.self) { try SendEntry.read(Array(text.utf8)) }
        }
        #expect(throws: Never.self) { try SendEntry.read(Array(shadow.utf8)) }
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `histories with sends in shadow follow from the trail`(seed: UInt64) async throws {
        let gate = try GatewayHarness(listeners: Self.listeners)
        var random = SeededNumbers(seed: seed)
        try await EvidenceFoldTests().live(gate, acts: 200, sending: { $0.next() % 2 == 0 ? 0 : 1 }, &random)
        let shadowed = try gate.entries("send").filter { $0["shadow"] == true }
        #expect(shadowed.count > 5 && shadowed.contains { $0["outcome"] == "forward" })
        try expectFollows(gate)
    }
}
