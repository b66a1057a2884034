import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import SQLiteStore
import Testing
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline

/// What the gateway counts is what it recorded.
@Suite struct MetricCountTests {
    /// The samples of `/metrics`.
    private func samples(_ gate: GatewayHarness) async -> [String: String] {
        let page = await gate.ask("auditor", "GET", "/metrics")
        var samples: [String: String] = [:]
        for line in String(decoding: page.body, as: UTF8.self).split(separator: "\n")
        where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            samples[parts.dropLast().joined(separator: " ")] = parts.last.map(String.init)
        }
        return samples
    }

    private func decisions(_ samples: [String: String]) -> [String: String] {
        samples.filter { $0.key.hasPrefix("sendgate_decisions_total") }
    }

    private static func decision(
        _ outcome: String, _ reason: String, _ category: String, _ tier: String, _ caller: String,
        channel: String = "push"
    ) -> String {
        "sendgate_decisions_total{outcome=\"\(outcome)\",reason=\"\(reason)\",category=\"\(category)\",tier=\"\(tier)\",channel=\"\(channel)\",caller=\"\(caller)\"}"
    }

    @Test func `sends are counted by what their entries say, repeats and explanations not at all`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        #expect(decisions(await samples(gate)).isEmpty)
        for id in ["r1", "r2", "r2"] {
            let reply = try await gate.call(
                "payments", "POST", "/v1/sends", GatewayHarness.remittance(id, to: "u_1"))
            #expect(reply.status == 202)
        }
        _ = try await gate.call("marketing", "POST", "/v1/sends", try await gate.promo("p1", to: "u_1"))
        _ = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r3", to: "u_nobody"))
        var unknown = GatewayHarness.remittance("r4", to: "u_1")
        unknown["type"] = "transaction.of_no_bundle"
        _ = try await gate.call("payments", "POST", "/v1/sends", unknown)
        var explained = GatewayHarness.remittance("r5", to: "u_1")
        explained["caller"] = "payments"
        _ = try await gate.call("auditor", "POST", "/v1/sends/explain", explained)
        var expected: [String: Int] = [:]
        for entry in try gate.store.read({ try $0.entries(from: 0, limit: 1_000) }) {
            let entry = try CanonicalJSON.read(entry.bytes)
            guard entry["kind"]?.stringValue == "send", let reason = entry["reason"]?.stringValue,
                let caller = entry["caller"]?.stringValue
            else { continue }
            let type = entry["request"]?["type"]?.stringValue.flatMap { gate.policy.type(TypeID($0)) }
            expected[
                Self.decision(
                    entry["outcome"]?.stringValue ?? "?", reason,
                    type?.category.rawValue ?? "unregistered", type?.tier.rawValue ?? "unregistered", caller),
                default: 0] += 1
        }
        #expect(expected.values.reduce(0, +) == 5)
        #expect(decisions(await samples(gate)) == expected.mapValues { "\($0)" })
    }

    @Test func `what was deferred, gathered and summarised is counted as it was recorded`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", quiet: ["start": "00:00", "end": "23:59"])
        _ = try await gate.addKey("u_1")
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        #expect(reply["outcome"] == "defer", "\(reply.json)")
        let key = Self.decision("defer", "quiet_hours_deferred", "transactional", "important", "payments")
        #expect(decisions(await samples(gate)) == [key: "1"])
    }

    @Test func `a step that fails, and a batch that is not committed, count nothing`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let before = await samples(gate)
        // No field of that name: refused before the engine. Another content under a known id: refused by its step.
        _ = try await gate.call("payments", "POST", "/v1/sends", ["id": "x"])
        _ = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        let once = decisions(await samples(gate))
        var other = GatewayHarness.remittance("r1", to: "u_1")
        other["ttl_seconds"] = 77
        #expect(
            try await gate.call("payments", "POST", "/v1/sends", other).status == 409)
        #expect(decisions(await samples(gate)) == once && once.count == 1)
        #expect(decisions(before).isEmpty)
    }

    @Test func `hand-overs, receipts and how long they took`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        let send = try #require(reply["send_id"])
        gate.clock.advance(milliseconds: 1_500)
        let delivery = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            delivery.message, .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
            retryAt: gate.clock.now().advanced(bySeconds: 3))
        gate.clock.advance(milliseconds: 4_000)
        let again = try #require(try await gate.claim().first)
        try await gate.gateway.report(again.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        gate.clock.advance(seconds: 40)
        for (event, action) in [
            ("accepted_by_provider", nil), ("user_observed", nil), ("user_observed", "opened"),
            ("user_observed", "opened"),
        ] as [(String, String?)] {
            var body: JSONObject = [
                "send": .string(send), "destination": "d_1", "event": .string(event),
                "at": .string(gate.clock.now().rfc3339),
            ]
            if let action { body["action"] = .string(action) }
            #expect(try await gate.call("product", "POST", "/v1/receipts", body).status == 200)
            gate.clock.advance(seconds: 1)
        }
        let found = await samples(gate)
        #expect(
            found["sendgate_hand_over_retries_total{obstacle=\"busy\",channel=\"push\",tier=\"important\"}"]
                == "1")
        #expect(
            found[
                "sendgate_hand_overs_total{result=\"handed_over\",channel=\"push\",category=\"transactional\",tier=\"important\"}"
            ]
                == "1")
        #expect(
            found[
                "sendgate_hand_overs_total{result=\"refused_by_hop\",channel=\"push\",category=\"transactional\",tier=\"important\"}"
            ]
                == "0")
        // Tried twice, so it counts from its send.
        #expect(found["sendgate_time_to_accept_seconds_sum{tier=\"important\"}"] == "5.5")
        #expect(found["sendgate_time_to_accept_seconds_bucket{tier=\"important\",le=\"5\"}"] == "0")
        #expect(found["sendgate_time_to_accept_seconds_bucket{tier=\"important\",le=\"10\"}"] == "1")
        func receipts(_ event: String) -> String? {
            found[
                "sendgate_receipts_total{event=\"\(event)\",category=\"transactional\",channel=\"push\"}"]
        }
        #expect(receipts("accepted_by_provider") == "1" && receipts("user_observed") == "3")
        #expect(found["sendgate_taps_total{category=\"transactional\",channel=\"push\"}"] == "1")
        #expect(found["sendgate_time_to_open_seconds_count{category=\"transactional\"}"] == "1")
        #expect(found["sendgate_time_to_open_seconds_sum{category=\"transactional\"}"] == "41")
    }

    @Test func `who switches off within a day of a send is told from who does so without one`() async throws {
        let gate = try GatewayHarness()
        for user in ["u_1", "u_2", "u_3"] {
            try await gate.register(user)
            _ = try await gate.addKey(user)
            try await gate.consent(user)
        }
        _ = try await gate.call("marketing", "POST", "/v1/sends", try await gate.promo("p1", to: "u_1"))
        _ = try await gate.call("marketing", "POST", "/v1/sends", try await gate.promo("p3", to: "u_3"))
        gate.clock.advance(seconds: 3_600)
        for user in ["u_1", "u_2"] {
            for _ in 0..<2 {
                let reply = try await gate.call(
                    "product", "PUT", "/v1/recipients/\(user)/preferences/marketing",
                    ["state": "user_off", "source": "in_app_settings", "channel": "push"])
                #expect(reply.status == 200, "\(reply.json)")
            }
        }
        let found = await samples(gate)
        #expect(found["sendgate_disables_total{means=\"preference\",category=\"marketing\"}"] == "2")
        #expect(
            found["sendgate_disables_after_send_total{means=\"preference\",category=\"marketing\"}"] == "1")
        #expect(
            found["sendgate_disables_after_send_total{means=\"os_permission\",category=\"marketing\"}"]
                == "0")
        // All push, by the phone: what they were sent lately has a part in it, unless it was off already.
        for user in ["u_1", "u_2", "u_3"] { try await gate.register(user, osPermission: "denied") }
        let after = await samples(gate)
        #expect(
            after["sendgate_disables_after_send_total{means=\"os_permission\",category=\"marketing\"}"]
                == "1")
        #expect(after["sendgate_disables_total{means=\"os_permission\",category=\"none\"}"] == "2")
    }

    @Test(arguments: [true, false])
    func `a link and the app's switch say one will, in either order`(linkIsFirst: Bool) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.addKey("u_1")
        try await gate.consent("u_1")
        _ = try await gate.call("marketing", "POST", "/v1/sends", try await gate.promo("p1", to: "u_1"))
        let atTheDevice: JSONObject = [
            "state": "user_off", "source": "unsubscribe_link", "channel": "push", "device": "d_1",
        ]
        let forAll: JSONObject = ["state": "user_off", "source": "in_app_settings", "channel": "push"]
        for body in linkIsFirst ? [atTheDevice, forAll] : [forAll, atTheDevice] {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/preferences/marketing", body)
            #expect(reply.status == 200, "\(reply.json)")
        }
        let found = await samples(gate)
        for family in ["disables_total", "disables_after_send_total"] {
            #expect(
                found["sendgate_\(family){means=\"preference\",category=\"marketing\"}"] == "1", "\(family)")
        }
    }

    @Test func `recipients are counted piece by piece, with what they would get`() async throws {
        let gate = try GatewayHarness()
        for number in 1...5 { try await gate.register("u_\(number)") }
        try await gate.register("u_6", device: nil)
        try await gate.consent("u_1")
        try await gate.consent("u_2")
        _ = try await gate.call(
            "product", "PUT", "/v1/recipients/u_2/preferences/marketing",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        try await gate.register("u_3", osPermission: "denied")
        let count = PersonCount(store: gate.store, policy: gate.inForce, clock: gate.clock)
        func samples() -> [String: String] {
            var page = Exposition()
            count.write(to: &page)
            let lines = page.text.split(separator: "\n").filter { !$0.hasPrefix("#") }
            return Dictionary(
                uniqueKeysWithValues: lines.map { line in
                    let parts = line.split(separator: " ")
                    return (String(parts[0]), String(parts[1]))
                })
        }
        #expect(try count.advance(countMax: 2) == false)
        #expect(samples().isEmpty)
        var pieces = 1
        while try !count.advance(countMax: 2) { pieces += 1 }
        #expect(pieces == 3)
        gate.clock.advance(seconds: 90)
        let found = samples()
        #expect(found["sendgate_persons"] == "6")
        #expect(found["sendgate_reachable_persons{channel=\"push\"}"] == "5")
        func optedIn(_ category: String) -> String? {
            found["sendgate_opted_in_persons{category=\"\(category)\",channel=\"push\"}"]
        }
        #expect(optedIn("marketing") == "1" && optedIn("transactional") == "4")
        #expect(found["sendgate_opted_in_persons{category=\"marketing\",channel=\"sms\"}"] == "0")
        #expect(found["sendgate_persons_count_age_seconds"] == "90")
    }

    @Test func `series are bounded whatever callers and types there are`() {
        let counters = GatewayCounters()
        func told(_ observation: Observation) -> Observations {
            var observations = Observations()
            observations.append(observation)
            return observations
        }
        for number in 0..<2_000 {
            counters.count([
                told(
                    .decided(
                        reason: .allowed, type: nil, channel: .push, caller: CallerName("caller-\(number)"))),
                told(.unreached(TypeID("type.\(number)"))),
            ])
        }
        var page = Exposition()
        counters.write(to: &page)
        let lines = page.text.split(separator: "\n")
        let callers = lines.filter { $0.hasPrefix("sendgate_decisions_total") }
        let types = lines.filter { $0.hasPrefix("sendgate_mandatory_unreached_total") }
        #expect(callers.count == MetricLabel.callerCountMax + 1)
        #expect(types.count == MetricLabel.typeCountMax + 1)
        #expect(callers.last?.hasSuffix("caller=\"other\"} \(2_000 - MetricLabel.callerCountMax)") == true)
        #expect(types.last?.hasSuffix("type=\"other\"} \(2_000 - MetricLabel.typeCountMax)") == true)
        #expect(lines.count < 400)
    }

    @Test func `a table gives back each count under the places it was added at`() {
        var table = CountTable([2, 3, 4, 5])
        var expected: [[Int]: UInt64] = [:]
        for places in [[0, 0, 0, 0], [1, 2, 3, 4], [1, 0, 2, 3], [0, 2, 0, 4], [1, 0, 2, 3]] {
            table.add(places[0], places[1], places[2], places[3])
            expected[places, default: 0] += 1
        }
        var found: [[Int]: UInt64] = [:]
        table.forEach { found[$0] = $1 }
        #expect(found == expected)
        var zeros = 0
        table.forEach(withZeros: true) { _, _ in zeros += 1 }
        #expect(zeros == 120)
    }

    @Test func `a mandatory type counts from nothing, and each caller's bundle names its own`() async throws {
        let gate = try GatewayHarness()
        let found = await samples(gate).filter { $0.key.hasPrefix("sendgate_mandatory_unreached_total") }
        let mandatory = gate.policy.bundle.types.values.filter { $0.mandatory != nil }
        #expect(!mandatory.isEmpty && found.count == mandatory.count)
        #expect(found.values.allSatisfy { $0 == "0" })
    }
}
