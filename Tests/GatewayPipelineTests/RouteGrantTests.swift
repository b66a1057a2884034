import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import PolicyFiles
import SQLiteStore
import SealedFormat
import Testing

@testable import GatewayPipeline
@testable import WireProtocol

/// Which grant opens which route, stated a second time by hand and tried by callers that hold one grant each.
@Suite struct RouteGrantTests {
    /// One way of asking one route.
    struct Row: Sendable, CustomTestStringConvertible {
        var method: String
        /// As the reference writes it.
        var path: String
        /// A caller needs one of these; `nil` lets every known caller in.
        var grants: Set<String>?
        /// Whether a peer that no configuration binds is answered, too.
        var isOpen = false
        var target: String
        var body: JSONObject?
        var mediaType: String?
        /// What who holds the grant is answered.
        var status: Int

        init(
            _ method: String, _ path: String, _ grants: String..., target: String? = nil,
            body: JSONObject? = nil, mediaType: String? = nil, status: Int = 200
        ) {
            self.method = method
            self.path = path
            self.grants = Set(grants)
            self.target = target ?? Self.filled(path)
            self.body = body
            self.mediaType = mediaType
            self.status = status
        }

        static func anyCaller(
            _ method: String, _ path: String, target: String? = nil, body: JSONObject? = nil,
            status: Int = 200
        ) -> Row {
            var row = Row(method, path, target: target, body: body, status: status)
            row.grants = nil
            return row
        }

        static func anybody(_ method: String, _ path: String) -> Row {
            var row = anyCaller(method, path)
            row.isOpen = true
            return row
        }

        var testDescription: String { "\(method) \(path)" }

        private static func filled(_ path: String) -> String {
            let parts = [
                "{user}": "u_1", "{device}": "d_1", "{address}": "a_1", "{consent}": "c1",
                "{scope}": "marketing", "{type}": "promo.offer", "{tile}": "entries/000",
                "{key}": RouteGrantTests.unknownKey, "{key_id}": RouteGrantTests.unknownKey,
            ]
            return parts.reduce(path) { $0.replacing($1.key, with: $1.value) }
        }
    }

    private static let unknownKey = "5b1d9f0477aa4c318c02f3d190be6a55"
    private static let proof = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"
    /// Where a target or a body means a send that the caller `only-send` made.
    private static let send = "SEND"

    /// A send that every caller that may send at all may send, any number of times.
    private static func login(_ id: String, as caller: String? = nil) -> JSONObject {
        var send: JSONObject = [
            "id": .string(id), "type": "security.new_login", "recipient": ["user": "u_1"],
            "params": [
                "login_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10", "device_name": "a laptop",
                "at": "2026-11-21T05:00:00Z",
            ],
        ]
        if let caller { send["caller"] = .string(caller) }
        return send
    }

    /// A list of one choice.
    private static func choices(_ choice: JSONObject, of scope: String) -> JSONObject {
        var choice = choice
        choice["scope"] = .string(scope)
        return ["preferences": [.object(choice)]]
    }

    private static let preference: JSONObject = [
        "state": "user_off", "source": "in_app_settings", "channel": "push",
    ]
    private static let stepUp: JSONObject = [
        "state": "user_off", "source": "in_app_step_up", "channel": "push",
    ]

    /// The table. A route that stands in several rows is asked in several ways.
    static let table: [Row] = [
        Row("POST", "/v1/sends", "send", body: login("asked"), status: 202),
        // The endpoint frames a stream's lines; the route itself is left with no line to read.
        Row("POST", "/v1/sends/stream", "send", mediaType: "application/x-ndjson", status: 400),
        Row("POST", "/v1/import", "consents.import", mediaType: "application/x-ndjson", status: 400),
        .anyCaller(
            "POST", "/v1/sends/explain", body: ["type": "transaction.remittance_sent", "facts": [:]]),
        Row("POST", "/v1/sends/explain", "send", "subjects.read", body: login("explained")),
        Row(
            "POST", "/v1/sends/explain", "subjects.read",
            body: login("explained", as: "security")),
        Row(
            "POST", "/v1/sends/acknowledge", "send",
            body: [
                "type": "alert.payment_processing", "recipient": ["user": "u_1"],
                "params": ["paymentId": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"],
            ]),
        Row(
            "GET", "/v1/sends/{send_id}", "send", "receipts.write", "subjects.read",
            target: "/v1/sends/\(send)"),
        Row("POST", "/v1/sends/{send_id}/cancel", "send", target: "/v1/sends/\(send)/cancel"),
        .anyCaller("GET", "/v1/types"),
        .anyCaller("GET", "/v1/types/{type}"),
        Row("GET", "/v1/events", "send", target: "/v1/events?after=0"),
        Row(
            "PUT", "/v1/recipients/{user}", "recipients.write", body: ["region": "US", "age": "adult"]),
        Row("GET", "/v1/recipients/{user}", "subjects.read"),
        Row("DELETE", "/v1/recipients/{user}", "subjects.erase", target: "/v1/recipients/u_erased"),
        Row(
            "PUT", "/v1/recipients/{user}/devices/{device}", "devices.write",
            body: [
                "platform": "ios", "app": "no.getdrop.app", "token": .string(apnsToken("token-of-u_1-d_1")),
                "region": "DE",
                "os_permission": "granted",
            ]),
        Row(
            "DELETE", "/v1/recipients/{user}/devices/{device}", "devices.write",
            target: "/v1/recipients/u_1/devices/d_removed"),
        Row(
            "PUT", "/v1/recipients/{user}/addresses/{address}", "recipients.write",
            body: ["kind": "email", "value": "a@example.org"]),
        Row(
            "DELETE", "/v1/recipients/{user}/addresses/{address}", "recipients.write",
            target: "/v1/recipients/u_1/addresses/a_removed"),
        Row(
            "POST", "/v1/recipients/{user}/devices/{device}/keys", "devices.write",
            body: [
                "suite": "P256_SHA256_AES256GCM",
                "public_key": .string(Base64URL.encode(DeviceKeyPair().publicKey)),
            ], status: 201),
        Row(
            "POST", "/v1/recipients/{user}/devices/{device}/keys/{key_id}/confirm", "devices.write",
            body: ["proof": .string(proof)], status: 404),
        Row(
            "POST", "/v1/recipients/{user}/consents", "consents.write",
            // A notice that was never shown: past the grant, refused for what it says.
            body: [
                "id": "c2", "purpose": "marketing", "channel": "push", "state": "given",
                "event_time": "2026-11-21T12:00:00Z", "method": "in_app_toggle", "jurisdiction": "DE",
                "notice": [
                    "id": "promo", "version": "3", "language": "en",
                    "sha256": .string(String(repeating: "0", count: 64)),
                ],
            ], status: 422),
        Row("GET", "/v1/recipients/{user}/consents", "consents.write", "subjects.read"),
        Row("POST", "/v1/recipients/{user}/consents/{consent}/withdraw", "consents.write"),
        Row(
            "PUT", "/v1/recipients/{user}/preferences/{scope}", "preferences.write", body: preference),
        Row(
            "PUT", "/v1/recipients/{user}/preferences/{scope}", "preferences.step_up",
            target: "/v1/recipients/u_1/preferences/security", body: stepUp),
        Row(
            "PUT", "/v1/recipients/{user}/preferences", "preferences.write",
            body: choices(preference, of: "marketing")),
        Row(
            "PUT", "/v1/recipients/{user}/preferences", "preferences.step_up",
            body: choices(stepUp, of: "security")),
        Row("GET", "/v1/recipients/{user}/preferences", "preferences.write", "subjects.read"),
        Row(
            "POST", "/v1/recipients/{user}/permission-prompts", "preferences.write",
            body: ["device": "d_1"]),
        Row("GET", "/v1/recipients/{user}/decisions", "subjects.read"),
        Row(
            "POST", "/v1/receipts", "receipts.write",
            body: [
                "send": .string(send), "destination": "d_1", "event": "user_observed",
                "at": "2026-11-21T12:00:00Z",
            ]),
        Row(
            "PUT", "/v1/recipients/{user}/devices/{device}/subscriptions", "devices.write",
            body: ["categories": ["marketing": false]]),
        Row("POST", "/v1/drift", "drift.run", body: [:], status: 202),
        Row("GET", "/v1/drift", "drift.run", "metrics.read"),
        Row("GET", "/v1/drift/findings", "subjects.read"),
        Row(
            "POST", "/v1/replies", "replies.write",
            body: [
                "id": "r-1", "channel": "sms", "from": "+4790000000", "text": "STOP",
                "received_at": "2026-11-21T12:00:00Z",
            ]),
        Row("GET", "/v1/keys", "keys.rotate", "trail.read"),
        Row("GET", "/v1/keys/lagging", "keys.rotate", "trail.read", status: 503),
        Row("POST", "/v1/keys", "keys.rotate", body: ["purpose": "index"], status: 409),
        Row("POST", "/v1/keys/{key}/promote", "keys.rotate", status: 404),
        Row("POST", "/v1/keys/{key}/resume", "keys.rotate", status: 404),
        Row("POST", "/v1/keys/{key}/suspend", "keys.rotate", status: 404),
        Row("POST", "/v1/keys/{key}/revoke", "keys.rotate", body: ["cause": "compromised"], status: 404),
        Row("POST", "/v1/keys/{key}/destroy", "keys.rotate", status: 404),
        Row(
            "POST", "/v1/device-keys/revoke", "keys.rotate",
            body: ["cause": "lost", "registered_before": "2026-11-21T12:00:00Z", "app": "nobody.uses.it"]),
        // Nothing is in force, and this is not signed.
        .anyCaller("GET", "/v1/keyset", status: 404),
        Row("PUT", "/v1/keyset", "keys.rotate", body: ["note": "nothing\n"], status: 409),
        // Not what was reviewed: past the grant, refused for what it names.
        Row(
            "POST", "/v1/policy/activate", "policy.activate",
            body: ["digest": .string(String(repeating: "0", count: 64))], status: 409),
        // Nothing is published in memory.
        Row("GET", "/v1/trail/checkpoint", "trail.read", status: 404),
        Row("GET", "/v1/trail/tile/{tile}", "trail.read", status: 404),
        Row("GET", "/metrics", "metrics.read"),
        .anybody("GET", "/healthz"),
        .anybody("GET", "/readyz"),
        .anybody("GET", "/openapi.json"),
    ]

    /// Grants that open no route by themselves and add to what another one opens.
    static let additional: Set<String> = ["send.critical"]

    /// The caller that holds nothing but one grant.
    private static func only(_ grant: String) -> String { "only-\(grant)" }
    private static let everyGrant = Grant.allCases.map(\.rawValue)
    private static let none = "only-nothing"
    private static let both = "send-and-critical"
    private static let importer = "write-and-import"
    private static let stranger = "a peer that nobody configured"

    /// Callers with one grant each, and one with none. What else a caller's page can hold back, types, sources and
    /// methods, all of them have: whatever they are refused they are refused for the grant.
    private static func gate() async throws -> GatewayHarness {
        let gate = try GatewayHarness(
            edit: { pages in
                guard case .object(var page)? = pages["callers.yaml"]?.json,
                    var callers = page["callers"]?.objectValue
                else { return }
                func add(_ name: String, _ grants: [String]) {
                    callers[name] = [
                        "means": "A test.", "grants": .array(grants.map { .string($0) }),
                        "types": ["categories": ["transactional", "security"]],
                        "may_assert": [
                            "sources": .array(PreferenceSource.allCases.map { .string($0.rawValue) }),
                            "methods": .array(ConsentMethod.allCases.map { .string($0.rawValue) }),
                        ], "because": "So that a test can tell.", "reviewed": "2026-11-02",
                    ]
                }
                for grant in everyGrant { add(only(grant), [grant]) }
                add(none, [])
                add(both, ["send", "send.critical"])
                add(importer, ["consents.write", "consents.import"])
                page["callers"] = .object(callers)
                pages["callers.yaml"] = PolicyNode(json: .object(page))
            }, isChecked: false)
        for user in ["u_1", "u_erased"] { try await gate.register(user) }
        try await gate.register("u_1", device: "d_removed")
        for address in ["a_1", "a_removed"] {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/addresses/\(address)",
                ["kind": "email", "value": .string("\(address)@example.org")])
            try #require(reply.status == 200, "\(reply.json)")
        }
        try #require(try await gate.consent("u_1").status == 200)
        return gate
    }

    private static func problem(_ reply: Answer) -> String? {
        let type = try? CanonicalJSON.read(reply.body, limits: .document)["type"]?.stringValue
        return type.flatMap { $0.split(separator: ":").last.map(String.init) }
    }

    // MARK: The whole table

    @Test func `every route is opened by the grants of its row and by no other`() async throws {
        let gate = try await Self.gate()
        let made = try await gate.call(
            Self.only("send"), "POST", "/v1/sends", Self.login("own"))
        let own = try #require(made["send_id"], "\(made.json)")
        // With the relay, so that there is something to report of it.
        try #require(try await !gate.claim(.security).isEmpty)
        var (opened, refused) = (0, 0)
        for (number, row) in Self.table.enumerated() {
            for caller in Self.everyGrant.map(Self.only) + [Self.none, Self.stranger] {
                var body = row.body
                if body?["id"] != nil { body?["id"] = .string("\(number)-\(caller)") }
                if body?["send"] != nil { body?["send"] = .string(own) }
                let reply = await gate.ask(
                    caller, row.method, row.target.replacing(Self.send, with: own), body,
                    headers: row.mediaType.map { [("content-type", $0)] } ?? [])
                let problem = Self.problem(reply)
                let told = "\(row.method) \(row.target) by \(caller): \(reply.status) \(problem ?? "")"
                if caller == Self.stranger, !row.isOpen {
                    #expect(reply.status == 401 && problem == "unknown_peer", "\(told)")
                    refused += 1
                } else if row.grants?.contains(where: { Self.only($0) == caller }) ?? true {
                    #expect(reply.status == row.status, "\(told)")
                    #expect(problem != "grant_missing", "\(told)")
                    opened += 1
                } else {
                    // A send by who may not send is a decision, with its entry.
                    let expected = row.path == "/v1/sends" ? "caller_not_permitted" : "grant_missing"
                    #expect(reply.status == 403 && problem == expected, "\(told)")
                    refused += 1
                }
            }
        }
        #expect(opened > 100 && refused > 500, "\(opened) opened, \(refused) refused")
    }

    @Test func `the table has every route, and every grant opens something`() {
        let routes = Route.all.map { "\($0.description.method.rawValue) \($0.description.path)" }
        #expect(Set(Self.table.map(\.testDescription)) == Set(routes))
        #expect(Set(routes).count == 51)
        let used = Self.table.reduce(into: Self.additional) { $0.formUnion($1.grants ?? []) }
        #expect(used == Set(Self.everyGrant))
        #expect(used.count == 17)
    }

    @Test func `the reference that the gateway serves says what the table says`() async throws {
        let gate = try GatewayHarness()
        let reply = await gate.ask(Self.stranger, "GET", "/openapi.json")
        let document = try CanonicalJSON.read(reply.body, limits: .document)
        var described = 0
        for (path, operations) in try #require(document["paths"]?.objectValue) {
            for (method, operation) in try #require(operations.objectValue) {
                let rows = Self.table.filter { $0.path == path && $0.method.lowercased() == method }
                // A row that every caller passes makes the route every caller's.
                let isEveryCallers = rows.contains { $0.grants == nil }
                let grants = rows.reduce(into: Set<String>()) { $0.formUnion($1.grants ?? []) }
                let listed = try #require(operation["x-sendgate-grant"]?.arrayValue)
                let named = Set(listed.compactMap(\.stringValue))
                #expect(named == (isEveryCallers ? [] : grants), "\(method) \(path)")
                let isOpen = rows.contains(where: \.isOpen)
                #expect(
                    operation["x-sendgate-caller"]?.stringValue == (isOpen ? "anybody" : "known"),
                    "\(method) \(path)")
                described += 1
            }
        }
        #expect(described == 51)
    }

    @Test func `HEAD asks for the grant that GET asks for, and is as long`() async throws {
        let gate = try await Self.gate()
        for row in Self.table where row.method == "GET" && !row.isOpen && row.grants != nil {
            let target = row.target.replacing(Self.send, with: "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11")
            let without = await gate.ask(Self.none, "HEAD", target)
            #expect(without.status == 403, "\(row.path): \(without.status)")
            let holder = Self.only(try #require(row.grants?.min()))
            let with = await gate.ask(holder, "HEAD", target)
            #expect(with.status != 403, "\(row.path): \(with.status)")
            // The endpoint writes the length and leaves the body out. What tells of the moment is of another length.
            guard row.path != "/metrics" else { continue }
            let got = await gate.ask(holder, "GET", target)
            #expect(with.status == got.status && with.body.count == got.body.count, "\(row.path)")
        }
    }

    @Test func `who is not known learns of no path and of no method`() async throws {
        let gate = try GatewayHarness()
        for (method, target) in [("GET", "/v1/no-such"), ("PATCH", "/v1/sends"), ("GET", "/v1/keys/x/y")] {
            #expect(await gate.ask(Self.stranger, method, target).status == 401, "\(method) \(target)")
            #expect([404, 405].contains(await gate.ask("auditor", method, target).status), "\(target)")
        }
    }

    // MARK: What a request needs besides

    @Test func `a line of a stream needs the grant that a send needs`() async throws {
        let gate = try await Self.gate()
        for grant in Self.everyGrant {
            let reply = await gate.ask(
                Self.only(grant), "POST", "/v1/sends/stream",
                Self.login("line-\(grant)"), kind: .streamLine)
            #expect(reply.status == (grant == "send" ? 202 : 403), "\(grant): \(reply.status)")
            if grant != "send" { #expect(Self.problem(reply) == "caller_not_permitted", "\(grant)") }
        }
        let unknown = await gate.ask(
            Self.stranger, "POST", "/v1/sends/stream", Self.login("line"), kind: .streamLine)
        #expect(unknown.status == 401)
    }

    @Test
    func `another caller's send is shown to who reads people or reports receipts, and cancelled by none`()
        async throws
    {
        let gate = try await Self.gate()
        let made = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("theirs", to: "u_1"))
        let id = try #require(made["send_id"])
        for (grant, status) in [("send", 404), ("receipts.write", 200), ("subjects.read", 200)] {
            #expect(await gate.ask(Self.only(grant), "GET", "/v1/sends/\(id)").status == status, "\(grant)")
        }
        #expect(await gate.ask(Self.only("send"), "POST", "/v1/sends/\(id)/cancel").status == 404)
        #expect(await gate.ask("payments", "POST", "/v1/sends/\(id)/cancel").status == 200)
    }

    @Test func `an old consent needs the grant to import besides the grant to write`() async throws {
        let gate = try await Self.gate()
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        /// - Parameter hours: How long ago the yes was said.
        func status(_ caller: String, hours: Int64) async throws -> Int {
            let moment = gate.clock.now().advanced(bySeconds: -hours * 3600 - (hours == 24 ? 0 : 1))
            return try await gate.call(
                caller, "POST", "/v1/recipients/u_1/consents",
                [
                    "id": .string("\(caller)-\(hours)"), "purpose": "marketing", "channel": "push",
                    "state": "given", "event_time": .string(moment.rfc3339), "method": "in_app_toggle",
                    "jurisdiction": "DE",
                    "notice": [
                        "id": .string(notice.key.id), "version": .string(notice.key.version),
                        "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                    ],
                ]
            ).status
        }
        let writer = Self.only("consents.write")
        #expect(try await status(writer, hours: 24) == 200)
        #expect(try await status(writer, hours: 25) == 403)
        #expect(try await status(Self.importer, hours: 25) == 200)
        #expect(try await status(Self.only("consents.import"), hours: 24) == 403)
    }

    @Test func `critical delivery needs its own grant besides the grant to send and the line of the list`()
        async throws
    {
        let gate = try await Self.gate()
        func ask(_ caller: String) async throws -> GatewayHarness.Reply {
            var send = try await gate.example("suspicious_login", "by-\(caller)", to: "u_1", as: caller)
            send["critical"] = true
            return try await gate.call(caller, "POST", "/v1/sends", send)
        }
        #expect(try await ask("security").status == 202)
        for caller in [Self.only("send"), Self.both] {
            let refused = try await ask(caller)
            #expect(
                refused.status == 403 && refused["reason"] == "critical_not_permitted",
                "\(caller): \(refused.json)")
        }
        #expect(try await ask(Self.only("send.critical"))["reason"] == "caller_not_permitted")
    }

    @Test func `a source is asked of the grant it belongs to`() async throws {
        let gate = try await Self.gate()
        for source in PreferenceSource.allCases {
            let isStepUp = source.rawValue == "in_app_step_up"
            for grant in ["preferences.write", "preferences.step_up"] {
                let reply = try await gate.call(
                    Self.only(grant), "PUT", "/v1/recipients/u_1/preferences/security",
                    ["state": "user_on", "source": .string(source.rawValue), "channel": "push"])
                let mayAsk = isStepUp == (grant == "preferences.step_up")
                let isRefused = reply["type"] == "urn:sendgate:problem:grant_missing"
                #expect(isRefused == !mayAsk, "\(source) by \(grant): \(reply.json)")
            }
        }
    }

    // MARK: In force at every request

    @Test func `a grant that the bundle in force takes away is gone at the next request`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        #expect(await gate.ask("auditor", "GET", "/v1/recipients/u_1").status == 200)
        let less = try GatewayHarness(edit: { pages in
            guard case .object(var page)? = pages["callers.yaml"]?.json,
                var callers = page["callers"]?.objectValue, var auditor = callers["auditor"]?.objectValue
            else { return }
            auditor["grants"] = ["trail.read"]
            callers["auditor"] = .object(auditor)
            page["callers"] = .object(callers)
            pages["callers.yaml"] = PolicyNode(json: .object(page))
        })
        gate.inForce.replace(with: less.policy)
        #expect(await gate.ask("auditor", "GET", "/v1/recipients/u_1").status == 403)
        #expect(await gate.ask("auditor", "GET", "/v1/keys").status == 200)
    }

    /// What the starter's senders of marketing and social notifications could make of a person, tried one by one.
    @Test(arguments: ["marketing", "social"])
    func `who sells can neither move a person, nor make them adult, nor say yes for them`(caller: String)
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1", age: "minor")
        func held() async throws -> JSONObject {
            try await gate.call("auditor", "GET", "/v1/recipients/u_1").json
        }
        let before = try await held()
        let entryCount = try gate.store.read { try $0.entryCount() }
        var tried = 0
        for row in Self.table where row.method != "GET" && row.grants?.contains("send") == false {
            let reply = await gate.ask(caller, row.method, row.target, row.body)
            #expect(reply.status == 403, "\(row.method) \(row.target): \(reply.status)")
            #expect(Self.problem(reply) == "grant_missing", "\(row.method) \(row.target)")
            tried += 1
        }
        #expect(tried == 30)
        #expect(try await held() == before)
        #expect(try gate.store.read { try $0.entryCount() } == entryCount)
    }
}
