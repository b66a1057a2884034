import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import SQLiteStore
import SendPlanning
import Testing

@testable import GateSteps
@testable import GatewayPipeline
@testable import GateRecords

/// The trail alone tells what every decision was made from.
@Suite struct EvidenceFoldTests {
    private static let people = ["u_1", "u_2", "u_3"]

    /// Registers, changes, sends and forgets at random, in every way that changes what is known of a person.
    ///
    /// - Parameter listener: Over which the next send comes.
    func live(
        _ gate: GatewayHarness, acts: Int, sending listener: (inout SeededNumbers) -> Int = { _ in 0 },
        _ random: inout SeededNumbers
    ) async throws {
        var keys: [String] = []
        for number in 0..<acts {
            gate.clock.advance(seconds: Int64.random(in: 1...4_000, using: &random))
            let user = Self.people.randomElement(using: &random)!
            let person = "/v1/recipients/\(user)"
            let device = ["d_1", "d_2"].randomElement(using: &random)!
            switch Int.random(in: 0..<17, using: &random) {
            case 0: try await register(user, in: gate, &random)
            case 1: try await put(device, of: user, in: gate, &random)
            case 2: _ = try await gate.call("product", "DELETE", "\(person)/devices/\(device)")
            case 3:
                let value = ["+12025550100", "+4790000000", "+77012345678"].randomElement(using: &random)!
                var address: JSONObject = ["kind": "sms", "value": .string(value)]
                if Bool.random(using: &random) { address["verified_at"] = .string(gate.clock.now().rfc3339) }
                _ = try await gate.call("product", "PUT", "\(person)/addresses/a_1", address)
            case 4: _ = try await gate.call("product", "DELETE", "\(person)/addresses/a_1")
            case 5:
                var prompt: JSONObject = ["device": .string(device)]
                if Bool.random(using: &random) {
                    prompt["answer"] = .string(["granted", "denied"].randomElement(using: &random)!)
                }
                _ = try await gate.call("product", "POST", "\(person)/permission-prompts", prompt)
            case 6: if let key = try await gate.offerKey(user, device: device)?.keyID { keys.append(key) }
            case 7:
                guard let key = keys.randomElement(using: &random) else { continue }
                let verb = ["suspend", "promote", "destroy"].randomElement(using: &random)!
                _ = try await gate.call("security", "POST", "/v1/keys/\(key)/\(verb)")
            case 8:
                try await gate.consent(
                    user, id: "c\(number)", state: random.next() % 4 == 0 ? "refused" : "given")
            case 9:
                _ = try await gate.call(
                    "product", "POST",
                    "\(person)/consents/c\(Int.random(in: 0..<acts, using: &random))/withdraw")
            case 10:
                let scope = ["marketing", "transactional", "social"].randomElement(using: &random)!
                _ = try await gate.call(
                    "product", "PUT", "\(person)/preferences/\(scope)",
                    [
                        "channel": "push", "source": "in_app_settings",
                        "state": .string(["user_on", "user_off"].randomElement(using: &random)!),
                    ])
            case 15:
                _ = try await gate.call(
                    "product", "PUT", "\(person)/devices/\(device)/subscriptions",
                    [
                        "categories": [
                            "marketing": .boolean(Bool.random(using: &random)),
                            "social": .boolean(Bool.random(using: &random)),
                        ]
                    ])
            case 16: try await gate.audit(personCountMax: 2)
            case 11 where random.next() % 8 == 0: _ = try await gate.call("product", "DELETE", person)
            case 12:
                _ = try await gate.call(
                    "marketing", "POST", "/v1/sends", try await gate.promo("p\(number)", to: user),
                    over: listener(&random))
            case 13:
                let login = try await gate.example(
                    "security.new_login", "l\(number)", to: user, as: "security")
                _ = try await gate.call(
                    "security", "POST", "/v1/sends", login, over: listener(&random))
            default:
                _ = try await gate.call(
                    "payments", "POST", "/v1/sends", GatewayHarness.remittance("r\(number)", to: user),
                    over: listener(&random))
            }
            // What became due is decided again.
            if number % 5 == 0 { _ = try await gate.claim() }
        }
    }

    private func register(_ user: String, in gate: GatewayHarness, _ random: inout SeededNumbers)
        async throws
    {
        var body: JSONObject = [
            "region": .string(["DE", "US", "NO"].randomElement(using: &random)!), "region_source": "kyc",
            "locale": "en", "age": .string(["adult", "minor"].randomElement(using: &random)!),
            "privacy": .string(["full", "generic", "hidden"].randomElement(using: &random)!),
            "push_enabled": .boolean(random.next() % 4 != 0),
        ]
        if Bool.random(using: &random) {
            body["time_zone"] = .string(["Europe/Berlin", "America/New_York"].randomElement(using: &random)!)
        }
        if Bool.random(using: &random) { body["quiet_hours"] = ["start": "21:00", "end": "08:00"] }
        _ = try await gate.call("product", "PUT", "/v1/recipients/\(user)", body)
    }

    private func put(
        _ device: String, of user: String, in gate: GatewayHarness, _ random: inout SeededNumbers
    ) async throws {
        var body: JSONObject = [
            "platform": .string(["ios", "android"].randomElement(using: &random)!), "app": "no.getdrop.app",
            "token": .string(apnsToken(["aa", "bb"].randomElement(using: &random)! + "\(device)")),
            "region": .string(["DE", "US"].randomElement(using: &random)!), "region_source": "device",
            "os_permission": .string(["granted", "provisional", "denied"].randomElement(using: &random)!),
            "critical_alerts": .boolean(Bool.random(using: &random)),
        ]
        // One of its two tokens is Expo's, so that a device changes its service on the way.
        if body["token"] == .string(apnsToken("bb\(device)")) {
            body["provider"] = "expo"
            body["token"] = .string("ExponentPushToken[bb\(device)]")
        }
        if Bool.random(using: &random) { body["time_zone"] = "Europe/Oslo" }
        _ = try await gate.call("product", "PUT", "/v1/recipients/\(user)/devices/\(device)", body)
    }

    static func fold(
        _ entries: [[UInt8]], _ policy: CompiledPolicy
    ) throws -> (fold: EvidenceFold, differences: [ReplayDifference]) {
        var fold = EvidenceFold()
        var differences: [ReplayDifference] = []
        for entry in entries {
            differences += try fold.differences(in: entry) { $0 == policy.digest ? policy : nil }
            try fold.apply(entry) { $0 == policy.digest ? policy : nil }
        }
        return (fold, differences)
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `the trail alone gives what is stored of everybody, and every fact that was decided on`(
        seed: UInt64
    ) async throws {
        let gate = try GatewayHarness()
        var random = SeededNumbers(seed: seed)
        try await live(gate, acts: 300, &random)
        // The last word of a provider, which nothing replaces.
        try await gate.register("u_4")
        _ = try await gate.call(
            "product", "PUT", "/v1/recipients/u_4/devices/d_1/subscriptions",
            ["categories": ["social": true]])
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map(\.bytes)
        let (fold, differences) = try Self.fold(entries, gate.policy)
        #expect(differences.isEmpty, "\(differences)")
        let objections = try Self.objections(to: entries, under: gate.policy)
        #expect(objections.isEmpty, "\(objections)")
        let named = try entries.compactMap {
            try CanonicalJSON.read($0)["subject"]?.stringValue.flatMap(SubjectID.init(hexadecimal:))
        }
        for subject in Set(named) {
            let stored = try gate.store.read { try $0.state(of: subject) }
            #expect(stored?.evidence == fold.people[subject])
        }
        let parsed = try entries.map { try #require(try CanonicalJSON.read($0).objectValue) }
        let kinds = Set(parsed.compactMap { $0["kind"]?.stringValue })
        #expect(
            kinds.isSuperset(of: [
                "recipient", "device", "address", "permission_prompt", "device_key", "consent", "preference",
                "send", "subscription", "drift",
            ]), "\(kinds)")
        #expect(parsed.count { $0["kind"] == "send" } > 30)

        // Without any one entry that changes a person, what is left tells something else.
        let changing: Set<String> = [
            "recipient", "device", "address", "permission_prompt", "device_key", "consent", "preference",
            "subscription", "drift",
        ]
        var noticed: Set<String> = []
        for (index, entry) in parsed.enumerated() where changing.contains(entry["kind"]?.stringValue ?? "") {
            var rest = entries
            rest.remove(at: index)
            let (other, differences) = try Self.fold(rest, gate.policy)
            if other.people != fold.people || !differences.isEmpty {
                noticed.insert(entry["kind"]?.stringValue ?? "")
            }
        }
        #expect(noticed == changing)
    }

    @Test func `what was deferred counts in the trail from when it was due`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z", caps: DecidedAgainTests.oneAnHour)
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        for (number, outcome) in ["defer", "digest"].enumerated() {
            let reply = try await gate.call(
                "payments", "POST", "/v1/sends", DecidedAgainTests.transfer(number, to: "u_1"))
            #expect(reply["outcome"] == outcome, "\(reply.json)")
            guard number == 0 else { break }
            gate.clock.advance(seconds: 9 * 3600)
            _ = try await gate.claim()
        }
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 100) }.map(\.bytes)
        let differences = try Self.fold(entries, gate.policy).differences
        #expect(differences.isEmpty, "\(differences)")
    }

    @Test func `a claim that does not follow is named by its place`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        #expect(reply.status == 202)
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 100) }.map(\.bytes)
        let claims: [(fact: String, claimed: String)] = [
            ("age", "\"adult\""), ("push_enabled", "true"), ("os_permission", "\"granted\""),
            ("destination", "\"active\""), ("privacy", "\"generic\""), ("account_preference", "\"default\""),
            ("platform", "\"ios\""),
        ]
        for (fact, claimed) in claims {
            let other = [
                "true": "false", "\"adult\"": "\"minor\"", "\"granted\"": "\"denied\"",
                "\"generic\"": "\"full\"", "\"active\"": "\"inactive\"", "\"default\"": "\"user_on\"",
                "\"ios\"": "\"android\"",
            ][claimed]!
            let changed = entries.map { entry in
                let text = String(decoding: entry, as: UTF8.self)
                guard text.contains("\"kind\":\"send\"") else { return entry }
                return Array(text.replacing("\"\(fact)\":\(claimed)", with: "\"\(fact)\":\(other)").utf8)
            }
            #expect(changed != entries, "\(fact) is in no entry")
            let differences = try Self.fold(changed, gate.policy).differences
            #expect(differences.map(\.pointer.text) == ["/deliveries/0/facts/\(fact)"], "\(differences)")
        }
    }

    @Test func `a send that left out a device, or says there is none, is named`() async throws {
        let gate = try GatewayHarness()
        for device in ["d_1", "d_2"] { try await gate.register("u_1", device: device) }
        let reply = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        #expect(reply.status == 202)
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 100) }.map(\.bytes)
        #expect(try Self.fold(entries, gate.policy).differences.isEmpty)
        let last = try #require(entries.last)
        let entry = try SendEntry.read(last)
        for isEmpty in [false, true] {
            var changed = entry.entry
            changed.deliveries = [changed.deliveries[0]]
            if isEmpty {
                changed.deliveries[0].destination = nil
                changed.deliveries[0].message = nil
                changed.deliveries[0].facts.destination = .noneRegistered
            }
            let bytes = try changed.bytes(index: entry.index, time: entry.time)
            let differences = try Self.fold(entries.dropLast() + [bytes], gate.policy).differences
            #expect(differences.contains { $0.pointer.text == "/deliveries" }, "\(differences)")
        }
    }

    @Test func `a forward under a policy that is not archived ends the fold`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        _ = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        var fold = EvidenceFold()
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 100) }.map(\.bytes)
        for entry in entries.dropLast() { try fold.apply(entry) { _ in nil } }
        let last = try #require(entries.last)
        #expect(throws: ReplayObstacle.policyUnknown(gate.policy.digest)) {
            try fold.apply(last) { _ in nil }
        }
    }

    // MARK: What was told

    /// Tells, replaces, hands over, loses, acknowledges and cancels at random what may be told only once.
    private func tell(_ gate: GatewayHarness, acts: Int, _ random: inout SeededNumbers) async throws {
        var sends: [(id: String, messages: [String])] = []
        for number in 0..<acts {
            gate.clock.advance(seconds: Int64.random(in: 1...(number % 9 == 0 ? 9_000 : 60), using: &random))
            let user = ["u_1", "u_2"].randomElement(using: &random)!
            let event = "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a1\(Int.random(in: 0..<4, using: &random))"
            switch Int.random(in: 0..<10, using: &random) {
            case 0...4:
                let type = [
                    "transfer.sent", "transfer.large", "alert.payment_processing", "transaction.failed",
                ]
                .randomElement(using: &random)!
                var body = try await gate.example(type, "s\(number)", to: user, as: "payments")
                let param = type == "alert.payment_processing" ? "paymentId" : "transaction_id"
                var params = body["params"]?.objectValue ?? [:]
                params[param] = .string(event)
                body["params"] = .object(params)
                if type.hasPrefix("transfer"), Bool.random(using: &random) {
                    body["channel"] = .string(["email", "sms"].randomElement(using: &random)!)
                }
                if random.next() % 4 == 0, let earlier = sends.randomElement(using: &random) {
                    body["fallback_for"] = .string(earlier.id)
                }
                let reply = try await gate.call("payments", "POST", "/v1/sends", body)
                if let id = reply["send_id"] { sends.append((id, [])) }
            case 5, 6:
                for lane in DeliveryLane.allCases {
                    for delivery in try await gate.claim(lane) {
                        let result: HopResult =
                            [
                                .accepted(status: 202, byProvider: false), .refused(status: 400, reason: nil),
                                .ambiguous("no answer", mayRepeat: true),
                                .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
                            ].randomElement(using: &random)!
                        let retryAt =
                            Bool.random(using: &random) ? gate.clock.now().advanced(bySeconds: 30) : nil
                        try await gate.gateway.report(delivery.message, result, retryAt: retryAt)
                    }
                }
            case 7:
                _ = try await gate.call(
                    "payments", "POST", "/v1/sends/acknowledge",
                    [
                        "type": "alert.payment_processing", "recipient": ["user": .string(user)],
                        "params": ["paymentId": .string(event)],
                    ])
            case 8:
                guard let send = sends.randomElement(using: &random) else { continue }
                _ = try await gate.call("payments", "POST", "/v1/sends/\(send.id)/cancel")
            default:
                _ = try await gate.call(
                    "product", "PUT", "/v1/recipients/\(user)/preferences/transactional",
                    [
                        "channel": "push", "source": "in_app_settings",
                        "state": .string(["user_on", "user_off"].randomElement(using: &random)!),
                    ])
            }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `whether something was told before, and what replaces what, follows from the trail alone`(
        seed: UInt64
    ) async throws {
        let gate = try GatewayHarness()
        var random = SeededNumbers(seed: seed)
        for user in ["u_1", "u_2"] {
            try await gate.register(user)
            for (kind, value) in [("sms", "+4790000000"), ("email", "ahmad@example.no")] {
                _ = try await gate.call(
                    "product", "PUT", "/v1/recipients/\(user)/addresses/\(kind)",
                    [
                        "kind": .string(kind), "value": .string(value),
                        "verified_at": .string(gate.clock.now().rfc3339),
                    ])
            }
        }
        try await tell(gate, acts: 220, &random)
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map(\.bytes)
        let (_, differences) = try Self.fold(entries, gate.policy)
        #expect(differences.isEmpty, "\(differences)")
        let objections = try Self.objections(to: entries, under: gate.policy)
        #expect(objections.isEmpty, "\(objections)")

        // Each claim, turned round, is named where it stands.
        var claimCount: [String: Int] = [:]
        let claims = [
            ("\"repetition\":\"already_sent\"", "\"repetition\":\"first\"", "repetition"),
            ("\"repetition\":\"acknowledged\"", "\"repetition\":\"first\"", "repetition"),
            ("\"repetition\":\"first\"", "\"repetition\":\"already_sent\"", "repetition"),
            ("\"fallback\":\"replaces_own_send\"", "\"fallback\":\"not_fallback\"", "fallback"),
            ("\"fallback\":\"not_fallback\"", "\"fallback\":\"replaces_own_send\"", "fallback"),
        ]
        var fold = EvidenceFold()
        for entry in entries {
            let text = String(decoding: entry, as: UTF8.self)
            for (claim, other, fact) in claims
            where text.contains("\"kind\":\"send\"") && text.contains(claim) {
                let changed = Array(text.replacing(claim, with: other).utf8)
                let named = try fold.differences(in: changed) { _ in gate.policy }
                #expect(
                    !named.isEmpty && named.allSatisfy { $0.pointer.text.hasSuffix("/facts/\(fact)") },
                    "\(claim) in \(text): \(named)")
                claimCount[claim, default: 0] += 1
            }
            try fold.apply(entry) { _ in gate.policy }
        }
        #expect(claimCount.count == claims.count, "\(claimCount)")
    }

    @Test func `what was told longer ago than a gateway must remember may be told again`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        for (number, days) in [("1", 0), ("2", 30), ("3", 2)] as [(String, Int64)] {
            gate.clock.advance(seconds: days * 86_400)
            let body = try await gate.example("transfer.sent", number, to: "u_1", as: "payments")
            _ = try await gate.call("payments", "POST", "/v1/sends", body)
        }
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 100) }.map(\.bytes)
        #expect(try Self.fold(entries, gate.policy).differences.isEmpty)
        let sends = entries.filter { String(decoding: $0, as: UTF8.self).contains("\"kind\":\"send\"") }
        let told = "\"repetition\":\"already_sent\""
        #expect(sends.map { String(decoding: $0, as: UTF8.self).contains(told) } == [false, true, true])
        // The second is 30 days after the first, the third 32.
        let forgotten = entries.map { entry in
            Array(
                String(decoding: entry, as: UTF8.self)
                    .replacing(told, with: "\"repetition\":\"first\"").utf8)
        }
        let differences = try Self.fold(forgotten, gate.policy).differences
        #expect(differences.map(\.pointer.text) == ["/deliveries/0/facts/repetition"], "\(differences)")
    }
}
