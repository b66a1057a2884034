import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Crypto
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import GateRecords
import SQLiteStore
import SendPlanning
import Testing

/// What a caller chose is in no entry but as a keyed tag, whatever the request and whatever became of it.
@Suite struct EntryContentTests {
    private static let canary = "kanarifugl"
    private static let uuid = "8a8a8a8a-8a8a-4a8a-8a8a-8a8a8a8a8a8a"

    private static func entries(_ gate: GatewayHarness) throws -> [[UInt8]] {
        try gate.store.read { try $0.entries(from: 0, limit: Int(try $0.entryCount())) }.map(\.bytes)
    }

    @Test(arguments: [true, false])
    func `a type nobody registered is a tag and a length`(isKnown: Bool) async throws {
        let gate = try GatewayHarness()
        if isKnown { try await gate.register("u_1") }
        var send = GatewayHarness.remittance("r1", to: "u_1")
        send["type"] = "kanarifugl: Ahmad Karimi owes NOK 500"
        let reply = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(reply.status == 403 && reply["reason"] == "unknown_type", "\(reply.json)")
        let bytes = try #require(try Self.entries(gate).last)
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(!text.contains(Self.canary) && !text.contains("Ahmad"), "\(text)")
        let request = try SendEntry.read(bytes).entry.request
        #expect(request.type == nil)
        #expect(request.typeByteCount == send["type"]?.stringValue?.utf8.count)
        #expect((request.typeTag != nil) == isKnown)
        #expect(replay(bytes, policies: { $0 == gate.policy.digest ? gate.policy : nil }) == .same)
        // The answer to a repeat is made from that entry.
        let again = try await gate.call("payments", "POST", "/v1/sends", send)
        #expect(again["reason"] == "unknown_type" && again.json["replayed"] == true, "\(again.json)")
    }

    @Test func `a tag is the code of its kind and text under the person's own key`() {
        let key = [UInt8](repeating: 7, count: 32)
        let subject = Subject(id: SubjectID(high: 1, low: 2), tagKey: SecretBytes(copying: key))
        let kinds: [(kind: TagKind, name: String)] = [
            (.request, "request"), (.device, "device"), (.address, "address"),
            (.collapseKey, "collapse_key"), (.deepLink, "deep_link"), (.consent, "consent"),
            (.event, "event"), (.type, "type"), (.unsubscribe, "unsubscribe"),
        ]
        // Written a second time with another library, as the handbook's page on the trail has it.
        for (kind, name) in kinds {
            let message = Array("sendgate/tag/v1".utf8) + [0] + Array(name.utf8) + [0] + Array("k".utf8)
            let code = HMAC<Crypto.SHA256>.authenticationCode(for: message, using: SymmetricKey(data: key))
            #expect(subject.tag(kind, "k").bytes == Array(code.prefix(16)))
        }
    }

    @Test func `every person's tags are under a key of their own, and of whoever comes back under a new one`()
        async throws
    {
        let gate = try GatewayHarness()
        func registered(_ user: String) async throws -> Subject {
            try await gate.register(user)
            return try #require(try gate.store.read { try $0.subject(of: UserID(user)) })
        }
        var people = [try await registered("u_1"), try await registered("u_2")]
        try #require(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        people.append(try await registered("u_1"))
        #expect(Set(people.map(\.id)).count == 3)
        #expect(Set(people.map { $0.tag(.device, "d_1") }).count == 3)
    }

    @Test func `nothing a caller chose is in an entry of any kind`() async throws {
        let gate = try GatewayHarness()
        let user = "\(Self.canary)-user"
        let device = "\(Self.canary)-device"
        try await gate.register(user, device: device)
        let address = "/v1/recipients/\(user)/addresses/\(Self.canary)-address"
        let phone: JSONObject = [
            "kind": "sms", "value": "+4790000000", "verified_at": "2026-11-01T12:00:00Z",
        ]
        #expect(try await gate.call("product", "PUT", address, phone).status == 200)
        _ = try await gate.addKey(user, device: device)
        #expect(try await gate.consent(user, id: "\(Self.canary)-consent").status == 200)
        #expect(
            try await gate.call(
                "product", "POST", "/v1/recipients/\(user)/consents/\(Self.canary)-consent/withdraw"
            ).status == 200)
        _ = try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/preferences/\(Self.canary)",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        _ = try await gate.call(
            "product", "POST", "/v1/recipients/\(user)/permission-prompts", ["device": .string(device)])

        func send(_ number: Int, _ change: (inout JSONObject) -> Void) async throws -> GatewayHarness.Reply {
            var body = GatewayHarness.remittance("\(Self.canary)-\(number)", to: user)
            body["collapse_key"] = .string("\(Self.canary)-key")
            body["deep_link"] = .string("drop://\(Self.canary)")
            body["locale"] = .string("nb-\(Self.canary.prefix(8))")
            change(&body)
            return try await gate.call("payments", "POST", "/v1/sends", body)
        }
        let sent = try await send(1) { _ in }
        #expect(sent.status == 202, "\(sent.json)")
        let refused: [(inout JSONObject) -> Void] = [
            { $0["type"] = .string(Self.canary) },
            { $0["deep_link"] = .string("https://\(Self.canary).example") },
            { $0["params"] = [Self.canary: 1, "amount": [Self.canary: 2]] },
            { $0["fallback_for"] = .string(Self.uuid) },
            { $0["recipient"] = ["user": .string(user), "device": .string("\(Self.canary)-other")] },
            { $0["recipient"] = ["user": .string("\(Self.canary)-nobody")] },
        ]
        for (number, change) in refused.enumerated() {
            #expect(try await send(number + 2, change).status == 403)
        }
        let id = try #require(sent["send_id"])
        let delivery = try #require(try await gate.claim().first)
        try await gate.gateway.report(
            delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        let receipt: JSONObject = [
            "send": .string(id), "destination": .string(device), "event": "user_observed",
            "action": .string(Self.canary), "at": .string(gate.clock.now().rfc3339),
        ]
        #expect(try await gate.call("product", "POST", "/v1/receipts", receipt).status == 200)
        _ = try await gate.call("payments", "POST", "/v1/sends/\(id)/cancel")
        _ = try await gate.call(
            "payments", "POST", "/v1/sends/acknowledge",
            [
                "type": .string(Self.canary), "recipient": ["user": .string(user)],
                "params": [Self.canary: .string(Self.canary)],
            ])
        _ = try await gate.call(Self.canary, "GET", "/v1/types")
        #expect(try await gate.call("product", "DELETE", "/v1/recipients/\(user)").status == 200)

        var kinds: Set<String> = []
        for bytes in try Self.entries(gate) {
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(!text.contains(Self.canary), "\(text)")
            #expect(!text.contains(Self.canary.prefix(8)), "\(text)")
            #expect(!text.contains(Self.uuid), "\(text)")
            #expect(EntrySchema.version1.violation(in: try TrailEntry(reading: bytes)) == nil)
            kinds.insert(try CanonicalJSON.read(bytes)["kind"]?.stringValue ?? "")
        }
        // The search sees what it should: what was done left its entries.
        #expect(
            kinds.isSuperset(of: [
                "recipient", "device", "address", "device_key", "consent", "permission_prompt", "send",
                "delivery",
                "receipt", "cancel", "unknown_peer", "erasure",
            ]), "\(kinds)")
    }

    // MARK: Every text of every kind of entry

    /// Where the values of a text come from that is no tag, key id, UUID or digest.
    private enum Origin {
        /// A closed list of this build's, or what the gateway made itself.
        case sendgate
        /// A name of the bundle's.
        case bundle(@Sendable (CompiledPolicy, String) -> Bool)
    }

    /// By the member's name.
    private static let origins: [String: Origin] = {
        var origins: [String: Origin] = [
            "caller": .bundle { $0.bundle.callers[CallerName($1)] != nil },
            "origin": .sendgate, "proposed_by": .bundle { $0.bundle.callers[CallerName($1)] != nil },
            "type": .bundle { $0.type(TypeID($1)) != nil },
            "scope": .bundle { $0.type(TypeID($1)) != nil || Category(rawValue: $1) != nil },
            "confirmation": .bundle { $0.bundle.channels.smsRevocation?.confirmations[$1] != nil },
            "locale": .bundle { $0.bundle.messages[$1] != nil },
            "code": .bundle { policy, text in
                RegionCode(text).map { $0 == .unknown || policy.bundle.regions.regions[$0] != nil } ?? false
            },
            "jurisdiction": .bundle { policy, text in
                RegionCode(text).map { policy.bundle.regions.regions[$0] != nil } ?? false
            },
            "id": .bundle { policy, text in policy.bundle.notices.keys.contains { $0.id == text } },
            "version": .bundle { policy, text in
                policy.bundle.notices.keys.contains { $0.version == text } || text == "test"
            },
            "language": .bundle { policy, text in policy.bundle.notices.keys.contains { $0.language == text }
            },
            "purpose": .bundle { policy, text in policy.purposes.contains { $0.text == text } },
            "params_verdict": .bundle { policy, text in
                let names = Set(policy.types.flatMap { Array($0.params.keys) })
                return text.split(separator: "/").allSatisfy {
                    names.contains(String($0)) || ["params", "deep_link", "minor", "currency"].contains($0)
                }
            },
            // Base64 of a policy key's signature over the bundle, which was in no person's hands.
            "signature": .bundle { policy, text in
                policy.approvals.contains { Data($0.signature).base64EncodedString() == text }
            },
            "time_zone": .bundle { _, text in LocalTime.isKnown(zone: text) },
            "number_prefix": .bundle { _, text in NumberPrefix.of(text + "0000") == text },
            "must_go_by": .bundle { policy, text in
                policy.types.contains { $0.mandatory?.ifUnreachable == text }
            },
            "within": .bundle { policy, text in
                policy.types.contains { $0.mandatory?.mustReachWithin == text }
            },
        ]
        for name in [
            "account_preference", "account_type_preference", "act", "action", "age", "answer", "cause",
            "channel",
            "destination",
            "destination_preference", "destination_type_preference", "detail", "device_key", "effect",
            "event",
            "fallback", "form",
            "interruption", "key", "kind", "method", "notes", "os_permission", "outcome", "owed", "params",
            "platform", "provider",
            "previous", "privacy", "proof", "reason", "recipient", "repetition", "result", "role", "source",
            "category", "finding", "means", "new", "old", "state",
            "suite", "trace", "tzdata", "why",
        ] { origins[name] = .sendgate }
        return origins
    }()

    @Test func `every text of an entry is a tag, a word of this build's or a name of the bundle's`() {
        let named = Set(
            EntrySchema.version1.texts.compactMap { path, isOpaque in isOpaque ? nil : path.last })
        #expect(named == Set(Self.origins.keys))
    }

    @Test func `whatever a caller or a recipient chooses, no entry has it in the clear`() async throws {
        let gate = try GatewayHarness()
        var random = SeededNumbers(seed: 4)
        var fed: [String] = []
        /// No three of these letters stand together in a word of ours, or in hexadecimal digits.
        func word(_ count: Int) -> String {
            let text = String((0..<count).map { _ in "jkqwxz".randomElement(using: &random)! })
            if count >= 3 { fed.append(text) }
            return text
        }
        func part() -> String { String(word(3).uppercased()) }
        func locale() -> String { "\(word(3))-\(word(4).capitalized)-\(word(2).uppercased())" }
        func put(_ target: String, _ body: JSONObject) async throws -> Int {
            try await gate.call("product", "PUT", target, body).status
        }
        for _ in 0..<12 {
            let (user, device) = (word(9), word(9))
            let person = "/v1/recipients/\(user)"
            let region: JSONValue = .string(["NO", "DE", "US"].randomElement(using: &random)! + "-" + part())
            #expect(
                try await put(person, ["region": region, "locale": .string(locale()), "age": "adult"]) == 200)
            #expect(
                try await put(
                    person,
                    ["region": .string("X" + ["J", "Q", "W", "X", "Z"].randomElement(using: &random)!)])
                    == 422)
            var phone: JSONObject = [
                "platform": "ios", "app": .string("no.\(word(6)).app"), "token": .string(apnsToken(word(20))),
                "region": region,
                "os_permission": "granted", "time_zone": "Europe/Oslo",
            ]
            #expect(try await put("\(person)/devices/\(device)", phone) == 200)
            phone["time_zone"] = .string("Europe/\(word(6))")
            #expect(try await put("\(person)/devices/\(device)", phone) == 422)
            #expect(
                try await put(
                    "\(person)/addresses/\(word(6))",
                    [
                        "kind": "email", "value": .string("\(word(6))@\(word(6)).example"),
                        "verified_at": "2026-11-01T12:00:00Z",
                    ]) == 200)
            let notice = try #require(gate.policy.bundle.notices.values.first { $0.key.id == "promo" })
            var consent: JSONObject = [
                "id": .string(word(6)), "purpose": "marketing", "channel": "push",
                "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                "jurisdiction": region,
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ]
            #expect(try await gate.call("product", "POST", "\(person)/consents", consent).status < 300)
            let id = try #require(consent["id"]?.stringValue)
            let changes: [(inout JSONObject) -> Void] = [
                { $0["purpose"] = .string(word(7)) }, { $0["jurisdiction"] = .string("QX") },
                {
                    $0["notice"] = [
                        "id": .string(word(6)), "version": "3", "language": "nb",
                        "sha256": .string(notice.sha256),
                    ]
                },
            ]
            for change in changes {
                consent["id"] = .string(word(6))
                var changed = consent
                change(&changed)
                #expect(try await gate.call("product", "POST", "\(person)/consents", changed).status == 422)
            }
            for reply in [word(8), "stop \(word(5))"] {
                _ = try await gate.call(
                    "product", "POST", "\(person)/consents/\(id)/withdraw", ["reply": .string(reply)])
            }
            _ = try await put(
                "\(person)/preferences/\(word(8))",
                ["state": "user_off", "source": "in_app_settings", "channel": "push"])
            _ = try await gate.call(
                "product", "POST", "\(person)/permission-prompts", ["device": .string(device)])
            let number = "+47\((0..<8).map { _ in "\("123456789".randomElement(using: &random)!)" }.joined())"
            // So many digits that hexadecimal ones never are the same by chance.
            fed.append(String(number.dropFirst()))
            #expect(
                try await put("\(person)/addresses/\(word(6))", ["kind": "sms", "value": .string(number)])
                    == 200)
            for text in [word(8), "stop \(word(5))"] {
                let replied = try await gate.call(
                    "replies", "POST", "/v1/replies",
                    [
                        "id": .string(word(9)), "channel": "sms", "from": .string(number),
                        "text": .string(text), "received_at": .string(gate.clock.now().rfc3339),
                    ])
                #expect(replied.status == 200, "\(replied.json)")
            }
            for kind in 0..<4 {
                var send = GatewayHarness.remittance(word(8), to: user)
                send["collapse_key"] = .string(word(8))
                send["locale"] = .string(locale())
                if kind == 1 { send["deep_link"] = .string("drop://\(word(8))") }
                if kind == 2 { send["type"] = .string(word(8)) }
                if kind == 3 { send["params"] = [word(8): .string(word(8))] }
                let reply = try await gate.call("payments", "POST", "/v1/sends", send)
                guard let id = reply["send_id"] else { continue }
                _ = try await gate.call(
                    "product", "POST", "/v1/receipts",
                    [
                        "send": .string(id), "destination": .string(device), "event": "user_observed",
                        "action": .string(word(8)), "at": .string(gate.clock.now().rfc3339),
                    ])
            }
            gate.clock.advance(seconds: 1)
        }
        let opaque = Dictionary(
            EntrySchema.version1.texts.map { ($0.path.joined(separator: "/"), $0.isOpaque) },
            uniquingKeysWith: { $1 })
        var seen: Set<String> = []
        func check(_ value: JSONValue, _ path: [String]) throws {
            switch value {
            case .object(let object): for (name, value) in object { try check(value, path + [name]) }
            case .array(let elements): for element in elements { try check(element, path) }
            case .string(let text):
                // The envelope's own.
                guard let isOpaque = opaque[path.joined(separator: "/")], let name = path.last else { return }
                seen.insert(name)
                if !isOpaque, case .bundle(let has) = try #require(Self.origins[name]) {
                    #expect(has(gate.policy, text), "`\(text)` at \(path)")
                }
            default: break
            }
        }
        for bytes in try Self.entries(gate) {
            let text = String(decoding: bytes, as: UTF8.self)
            for word in fed {
                #expect(
                    !text.contains(word) && !text.contains(word.uppercased())
                        && !text.contains(word.capitalized),
                    "`\(word)` in \(text)")
            }
            let entry = try CanonicalJSON.read(bytes)
            try check(entry, [try #require(entry["kind"]?.stringValue)])
        }
        #expect(
            seen.isSuperset(of: ["caller", "code", "jurisdiction", "type", "purpose", "id", "params_verdict"]
            ), "\(seen)")
    }
}
