import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import OpenSSLCrypto
import PolicyPages
import SQLiteStore
import Testing
import WireProtocol

@testable import GateRecords
@testable import GateSteps
@testable import GatewayPipeline

/// A line of an import is one person in one entry, taken by the rules of the routes that register one thing at a time.
@Suite struct ImportTests {
    /// A gate with a caller for a migration, and two that lack some of its grants.
    static func gate(keeping: StateKeeping = .memory) throws -> GatewayHarness {
        try GatewayHarness(
            keeping: keeping,
            edit: { pages in
                guard case .object(var page)? = pages["callers.yaml"]?.json,
                    var callers = page["callers"]?.objectValue
                else { return }
                func add(_ name: String, _ grants: [String]) {
                    callers[name] = [
                        "means": "A test.", "grants": .array(grants.map { .string($0) }),
                        "types": ["categories": []],
                        "may_assert": [
                            "sources": ["in_app_settings", "unsubscribe_link"],
                            "methods": ["in_app_toggle", "web_form"],
                        ],
                        "consents_because": "It records what was said to the system before.",
                        "because": "So that a test can tell.", "reviewed": "2026-11-02",
                    ]
                }
                let all = ["recipients.write", "devices.write", "consents.write", "preferences.write"]
                add("migration", all + ["consents.import"])
                add("writer", all)
                add("narrow", ["recipients.write", "consents.write", "consents.import"])
                page["callers"] = .object(callers)
                pages["callers.yaml"] = PolicyNode(json: .object(page))
            })
    }

    /// A person in Germany with an iPhone, a number and two consents of a year ago.
    static func line(_ user: String, in gate: GatewayHarness, _ change: JSONObject = [:]) throws -> JSONObject
    {
        var push = try gate.consentBody("push-\(user)", at: "2025-11-03T10:00:00Z")
        push["jurisdiction"] = "DE"
        var email = try gate.consentBody("mail-\(user)", at: "2025-11-03T10:00:05Z")
        email["channel"] = "email"
        email["address"] = "a_1"
        var line: JSONObject = [
            "user": .string(user),
            "recipient": [
                "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                "age": "adult",
            ],
            "devices": [
                "d_1": [
                    "platform": "ios", "app": "no.getdrop.app", "token": .string(apnsToken(user)),
                    "os_permission": "granted",
                ]
            ],
            "addresses": [
                "a_1": [
                    "kind": "email", "value": .string("\(user)@example.org"),
                    "verified_at": "2025-01-01T00:00:00Z",
                ]
            ],
            "consents": [.object(push), .object(email)],
        ]
        for member in change.members {
            line[member.key] = member.value.isNull ? JSONValue?.none : member.value
        }
        return line
    }

    @discardableResult
    static func take(_ line: JSONObject, into gate: GatewayHarness, by caller: String = "migration")
        async throws -> GatewayHarness.Reply
    {
        let answer = await gate.ask(caller, "POST", Route.importTarget, line, kind: .streamLine)
        let json = try #require(try CanonicalJSON.read(answer.body).objectValue)
        return GatewayHarness.Reply(status: answer.status, json: json)
    }

    private static func entries(of gate: GatewayHarness) throws -> [[UInt8]] {
        try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map(\.bytes)
    }

    private static func count(_ reply: GatewayHarness.Reply, _ what: String, of part: String) -> Int64? {
        reply.json[what]?.objectValue?[part]?.integerValue
    }

    private static func refused(_ reply: GatewayHarness.Reply) -> [[String]] {
        (reply.json["refused"]?.arrayValue ?? []).map {
            [$0["pointer"]?.stringValue ?? "", $0["reason"]?.stringValue ?? ""]
        }
    }

    /// What an auditor makes of the trail: nothing to object to, every entry of its kind's shape, and the people as they are stored.
    private static func audit(_ gate: GatewayHarness) throws {
        let entries = try entries(of: gate)
        let objections = try EvidenceFoldTests.objections(to: entries, under: gate.policy)
        #expect(objections.isEmpty, "\(objections)")
        let (fold, differences) = try EvidenceFoldTests.fold(entries, gate.policy)
        #expect(differences.isEmpty, "\(differences)")
        var state = StateFold(sendsSince: .longAgo)
        for entry in entries {
            #expect(try EntrySchema.version1.violation(in: TrailEntry(reading: entry)) == nil)
            try state.apply(entry)
        }
        for (subject, person) in fold.people {
            #expect(try gate.store.read { try $0.state(of: subject) }?.evidence == person)
            #expect(state.told.people[subject] == person)
        }
    }

    @Test(arguments: [false, true])
    func `a person comes over in one entry, and is who the routes would have made of them`(inFiles: Bool)
        async throws
    {
        let gate = try Self.gate(keeping: inFiles ? .files() : .memory)
        let reply = try await Self.take(Self.line("u_1", in: gate), into: gate)
        #expect(reply.status == 200 && reply.json["status"] == 200, "\(reply.json)")
        for (part, count) in [("recipients", 1), ("devices", 1), ("addresses", 1), ("consents", 2)] {
            #expect(Self.count(reply, "recorded", of: part) == Int64(count), "\(part)")
        }
        let entries = try Self.entries(of: gate)
        #expect(try entries.map { try TrailEntry(reading: $0).kind } == [.imported])
        let leaf = reply.json["trail"]?.objectValue
        #expect(leaf?["index"] == 0)
        #expect(leaf?["leaf"] == .string(Hexadecimal.encode(TreeHash.leaf(entries[0]).bytes)))
        // The parts read back to the same bytes.
        let entry = try TrailEntry(reading: entries[0])
        let read: ImportEntry = try entry.body()
        #expect(try read.bytes(index: 0, time: entry.time) == entries[0])
        #expect(
            try entry.parts().map(\.kind) == [
                .recipient, .address, .device, .consent, .preference, .consent, .preference,
            ])
        try Self.audit(gate)
        // A year-old yes lets an offer through, with its own time.
        gate.clock.advance(seconds: 5)
        let offer = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p_1", to: "u_1"))
        #expect(offer["outcome"] == "forward", "\(offer.json)")
        let ledger = try await gate.call("product", "GET", "/v1/recipients/u_1/consents")
        let record = ledger.json["records"]?.arrayValue?.first
        #expect(record?["event_time"] == "2025-11-03T10:00:00Z")
        #expect(record?["received_at"] != record?["event_time"])
        try Self.audit(gate)

        // The same person by the routes, one thing at a time.
        let other = try Self.gate()
        let line = try Self.line("u_1", in: other)
        func put(_ method: String, _ target: String, _ body: JSONValue?) async throws {
            let reply = try await other.call(
                "migration", method, "/v1/recipients/u_1\(target)", #require(body?.objectValue))
            try #require(reply.status == 200, "\(reply.json)")
        }
        try await put("PUT", "", line["recipient"])
        try await put("PUT", "/addresses/a_1", line["addresses"]?["a_1"])
        try await put("PUT", "/devices/d_1", line["devices"]?["d_1"])
        for consent in line["consents"]?.arrayValue ?? [] { try await put("POST", "/consents", consent) }
        let one = try await gate.call("auditor", "GET", "/v1/recipients/u_1/consents")
        let byRoutes = try await other.call("auditor", "GET", "/v1/recipients/u_1/consents")
        #expect(one.json["standing"] == byRoutes.json["standing"])
        for what in ["devices", "addresses", "preferences"] {
            func held(_ gate: GatewayHarness) async throws -> JSONValue? {
                try await gate.call("auditor", "GET", "/v1/recipients/u_1").json[what]
            }
            let (imported, registered) = (try await held(gate), try await held(other))
            #expect(imported == registered, "\(what)")
        }
    }

    @Test func `the same line twice records nothing the second time`() async throws {
        let gate = try Self.gate()
        let line = try Self.line(
            "u_1", in: gate,
            [
                "withdrawals": ["mail-u_1": ["event_time": "2026-01-03T10:00:00Z"]],
                "preferences": [
                    [
                        "scope": "social", "channel": "push", "source": "in_app_settings",
                        "state": "user_off", "event_time": "2025-12-01T08:00:00Z",
                    ]
                ],
            ])
        let first = try await Self.take(line, into: gate)
        #expect(Self.refused(first).isEmpty, "\(first.json)")
        let entries = try Self.entries(of: gate)
        gate.clock.advance(seconds: 3_600)
        let again = try await Self.take(line, into: gate)
        #expect(again.status == 200)
        #expect(again.json["recorded"]?.objectValue?.members.allSatisfy { $0.value == 0 } == true)
        #expect(again.json["unchanged"] == first.json["recorded"], "\(again.json)")
        #expect(again.json["trail"] == nil)
        #expect(try Self.entries(of: gate) == entries)
        try Self.audit(gate)
    }

    @Test func `what is refused is named with its place, and the rest of the person comes over`() async throws
    {
        let gate = try Self.gate()
        let line = try Self.line("u_1", in: gate)
        var consents = try #require(line["consents"]?.arrayValue)
        func consent(_ id: String, _ change: JSONObject) throws -> JSONValue {
            var consent = try gate.consentBody(id, at: "2025-11-03T10:00:00Z")
            for member in change.members {
                consent[member.key] = member.value.isNull ? JSONValue?.none : member.value
            }
            return .object(consent)
        }
        consents += [
            try consent("no-notice", ["notice": .null]),
            try consent("no-time", ["event_time": .null]),
            try consent("later", ["event_time": "2027-01-01T00:00:00Z"]),
            try consent("by-phone", ["method": "phone_call"]),
            try consent("mail", ["channel": "email", "address": "a_9"]),
            try consent("purpose", ["purpose": "intervention"]),
            try consent("expired", ["expires_at": "2025-01-01T00:00:00Z"]),
        ]
        var notice = try #require(consents[0]["notice"]?.objectValue)
        notice["sha256"] = .string(String(repeating: "0", count: 64))
        consents.append(try consent("words", ["notice": .object(notice)]))
        let reply = try await Self.take(
            Self.line(
                "u_1", in: gate,
                [
                    "consents": .array(consents),
                    "devices": [
                        "d_1": line["devices"]?["d_1"] ?? .null,
                        "d_2": ["platform": "ios", "app": "no.getdrop.app", "token": "no hexadecimal"],
                        "d_3": [
                            "platform": "android", "app": "no.getdrop.app", "token": "abc",
                            "time_zone": "Mars/Olympus", "os_permission": "granted",
                        ],
                    ],
                    "addresses": [
                        "a_1": line["addresses"]?["a_1"] ?? .null,
                        "a_2": ["kind": "sms", "value": "+0479000000"],
                        "a_3": ["kind": "sms", "value": "0047 900"],
                    ],
                ]), into: gate)
        #expect(reply.status == 200, "\(reply.json)")
        #expect(Self.count(reply, "recorded", of: "consents") == 2)
        #expect(Self.count(reply, "recorded", of: "devices") == 1)
        let refused = Set(Self.refused(reply))
        for row in [
            ["/consents/2/notice", "invalid_request"], ["/consents/3/event_time", "invalid_request"],
            ["/consents/4", "event_in_future"], ["/consents/5", "assertion_not_permitted"],
            ["/consents/6", "not_found"], ["/consents/7", "other_purpose"],
            ["/consents/8/expires_at", "invalid_request"], ["/consents/9", "unknown_notice"],
            ["/devices/d_3", "unknown_time_zone"],
        ] { #expect(refused.contains(row), "\(row) in \(refused)") }
        for part in ["/devices/d_2", "/addresses/a_2", "/addresses/a_3"] {
            #expect(refused.contains { $0[0].hasPrefix(part) }, "\(part) in \(refused)")
        }
        var unfit = Self.unfitNoes
        unfit["consents"] = .null
        let noes = try await Self.take(Self.line("u_2", in: gate, unfit), into: gate)
        #expect(noes.status == 200 && Self.count(noes, "recorded", of: "devices") == 1, "\(noes.json)")
        #expect(
            Set(Self.refused(noes)) == [
                ["/withdrawals/unknown", "not_found"], ["/preferences/0", "unknown_scope"],
                ["/preferences/1", "assertion_not_permitted"], ["/preferences/2", "event_in_future"],
            ])
        try Self.audit(gate)
    }

    private static let unfitNoes: JSONObject = [
        "withdrawals": ["unknown": [:]],
        "preferences": [
            ["scope": "no_scope", "channel": "push", "source": "in_app_settings", "state": "user_off"],
            ["scope": "social", "channel": "push", "source": "admin_override", "state": "user_off"],
            [
                "scope": "social", "channel": "push", "source": "in_app_settings", "state": "user_on",
                "event_time": "2027-01-01T00:00:00Z",
            ],
        ],
    ]

    @Test func `a yes does not stand without a no of its line that is refused`() async throws {
        let gate = try Self.gate()
        for (user, part) in [
            ("u_1", ["withdrawals": ["unknown": [:]]]),
            (
                "u_2",
                [
                    "preferences": [
                        [
                            "scope": "no_scope", "channel": "push", "source": "in_app_settings",
                            "state": "user_off",
                        ]
                    ]
                ]
            ),
            (
                "u_4",
                [
                    "preferences": [
                        [
                            "scope": "marketing", "channel": "push", "source": "admin_override",
                            "state": "user_off", "event_time": "2026-05-01T00:00:00Z",
                        ]
                    ]
                ]
            ),
        ] as [(String, JSONObject)] {
            let reply = try await Self.take(Self.line(user, in: gate, part), into: gate)
            #expect(
                reply.status == 200 && Self.count(reply, "recorded", of: "consents") == 0, "\(reply.json)")
            #expect(Self.count(reply, "recorded", of: "devices") == 1, "\(reply.json)")
            let refused = Self.refused(reply).map { $0[0] }
            #expect(refused.prefix(2) == ["/consents/0", "/consents/1"], "\(refused)")
            #expect(refused.count == 3 && refused[2].hasPrefix("/\(part.members[0].key)/"), "\(refused)")
        }
        // What cannot be read may end any of them.
        let unread = try await Self.take(
            Self.line("u_3", in: gate, ["withdrawals": ["push-u_3": ["event_time": "03.01.2026"]]]),
            into: gate)
        #expect(unread.status == 200, "\(unread.json)")
        #expect(Self.count(unread, "recorded", of: "consents") == 0)
        #expect(Self.count(unread, "recorded", of: "devices") == 1)
        #expect(Self.refused(unread).contains(["/consents/0", "invalid_request"]), "\(unread.json)")
        try Self.audit(gate)
    }

    /// A word of a person, as a member of a line.
    private enum Word: String, CaseIterable {
        case yes, mayOff, julyOff, offWithoutTime

        func line(_ user: String, on channel: String?, in gate: GatewayHarness) throws -> JSONObject {
            func off(_ time: String?) -> JSONObject {
                var choice: JSONObject = [
                    "scope": "marketing", "source": "in_app_settings", "state": "user_off",
                ]
                choice["channel"] = channel.map { .string($0) }
                choice["event_time"] = time.map { .string($0) }
                return ["preferences": [.object(choice)]]
            }
            switch self {
            case .mayOff: return off("2026-05-01T00:00:00Z")
            case .julyOff: return off("2026-07-01T00:00:00Z")
            case .offWithoutTime: return off(nil)
            case .yes:
                var consent = try gate.consentBody("c-\(user)", at: "2026-06-01T00:00:00Z")
                if channel != "push" { (consent["channel"], consent["address"]) = ("email", "a_1") }
                return ["consents": [.object(consent)]]
            }
        }

        /// What counts of words, in whatever order they come.
        static func isYes(_ words: [Word]) -> Bool {
            words.contains(.yes) && !words.contains(.julyOff) && !words.contains(.offWithoutTime)
        }
    }

    private static func orders(_ words: [Word]) -> [[Word]] {
        if words.isEmpty { return [[]] }
        return words.indices.flatMap { index in
            var rest = words
            let word = rest.remove(at: index)
            return orders(rest).map { [word] + $0 }
        }
    }

    /// On a channel whose consent is of an address too, and on every channel at once.
    @Test(arguments: ["push", "email", nil])
    func `the latest word counts, in whatever order a person's words come over`(channel: String?) async throws
    {
        let gate = try Self.gate()
        let sets: [[Word]] = [
            [.yes, .mayOff], [.yes, .julyOff], [.yes, .mayOff, .julyOff], [.yes, .mayOff, .offWithoutTime],
        ]
        for (number, words) in sets.flatMap(Self.orders).enumerated() {
            let user = "u_\(number)"
            try await Self.take(Self.line(user, in: gate, ["consents": .null]), into: gate)
            for word in words {
                let line = try word.line(user, on: channel, in: gate)
                let reply = try await Self.take(
                    JSONObject([("user", .string(user))] + line.members.map { ($0.key, $0.value) }),
                    into: gate)
                #expect(reply.status == 200 && Self.refused(reply).isEmpty, "\(reply.json)")
            }
            gate.clock.advance(seconds: 5)
            var send = try await gate.promo("p-\(number)", to: user)
            if channel != "push" { send["channel"] = "email" }
            let sent = try await gate.call("marketing", "POST", "/v1/sends", send)
            // An off of a whole channel that is imported after a newer consent for an address of it holds there, too.
            let isStricter = channel != "push" && words.contains(.mayOff) && sent.status == 403
            #expect((sent.status == 202) == Word.isYes(words) || isStricter, "\(words): \(sent.json)")
        }
        try Self.audit(gate)
    }

    /// A choice that is newer than an imported off does not stand for the consents that the off ends.
    @Test func `an older off ends what was agreed to before it, whatever was chosen since`() async throws {
        let gate = try Self.gate()
        func choice(_ state: String, _ time: String, _ channel: String) -> JSONObject {
            [
                "scope": "marketing", "source": "in_app_settings", "state": .string(state),
                "channel": .string(channel), "event_time": .string(time),
            ]
        }
        for (number, (channel, later, off)) in [
            ("push", "user_on", "user_off"), ("push", "user_on", "default"), ("email", "user_on", "user_off"),
            ("email", "user_on", "default"),
        ].enumerated() {
            let user = "u_\(number)"
            try await Self.take(Self.line(user, in: gate), into: gate)
            for word in [
                choice(later, "2026-07-01T00:00:00Z", channel), choice(off, "2026-05-01T00:00:00Z", channel),
            ] {
                for count in [1, 0] as [Int64] {
                    let reply = try await Self.take(
                        ["user": .string(user), "preferences": [.object(word)]], into: gate)
                    #expect(
                        Self.count(reply, "recorded", of: "preferences") == count, "\(word): \(reply.json)")
                }
            }
            gate.clock.advance(seconds: 5)
            var send = try await gate.promo("p-\(number)", to: user)
            send["channel"] = .string(channel)
            let sent = try await gate.call("marketing", "POST", "/v1/sends", send)
            #expect(sent.status == 403, "\(channel) \(off): \(sent.json)")
        }
        try Self.audit(gate)
    }

    @Test func `an off without a time counts again where it may be newer than what is known`() async throws {
        let gate = try Self.gate()
        try await Self.take(Self.line("u_1", in: gate, ["consents": .null]), into: gate)
        func off(_ word: Word) async throws -> Int64? {
            let line = try word.line("u_1", on: "push", in: gate)
            return try await Self.count(
                Self.take(
                    JSONObject([("user", "u_1")] + line.members.map { ($0.key, $0.value) }), into: gate),
                "recorded", of: "preferences")
        }
        #expect(try await off(.julyOff) == 1)
        #expect(try await off(.julyOff) == 0)
        #expect(try await off(.mayOff) == 0)
        #expect(try await off(.offWithoutTime) == 1)
        #expect(try await off(.offWithoutTime) == 0)
        gate.clock.advance(seconds: 2 * 86_400)
        #expect(try await off(.offWithoutTime) == 1)
        try Self.audit(gate)
    }

    /// The notice that people were shown is the file's word: the bundle knows when there was one.
    @Test func `a yes to a text that nobody was shown yet is refused`() async throws {
        let gate = try GatewayHarness(
            at: "2026-11-21T08:00:00Z",
            edit: { pages in
                guard case .object(var page)? = pages["notices.yaml"]?.json,
                    case .object(var notices)? = page["notices"], case .object(var notice)? = notices["promo"]
                else {
                    Issue.record("there is no such notice")
                    return
                }
                notice["first_shown"] = ["3": "2026-11-21"]
                notices["promo"] = .object(notice)
                page["notices"] = .object(notices)
                pages["notices.yaml"] = PolicyNode(json: .object(page))
            })
        try await gate.register("u_1")
        for (id, time, isTaken) in [
            // Where the day begins first it is fourteen hours ahead.
            ("c_1", "2026-11-20T09:59:59Z", false), ("c_2", "2026-11-20T10:00:00Z", true),
        ] {
            let reply = try await gate.call(
                "product", "POST", "/v1/recipients/u_1/consents", gate.consentBody(id, at: time))
            #expect((reply.status == 200) == isTaken, "\(reply.json)")
            if !isTaken { #expect("\(reply.json)".contains("2026-11-21 or later"), "\(reply.json)") }
        }
    }

    @Test func `what follows from an import keeps its own caller in the entry`() throws {
        let (subject, now) = (SubjectID(high: 1, low: 2), Instant(seconds: 1_795_000_000))
        func choice(by caller: CallerName) -> (change: PersonChange, caller: CallerName) {
            let record = PreferenceRecord(
                subject: subject, scope: "marketing", channel: .push, destination: nil, state: .userOff,
                source: .inAppSettings, at: now, caller: caller)
            return (.preference(record), caller)
        }
        let entry = ImportEntry(
            [choice(by: CallerName("migration")), choice(by: .gateway)], of: subject,
            by: CallerName("migration"), at: now)
        let read = try TrailEntry(reading: entry.bytes(index: 0, time: now))
        #expect(EntrySchema.version1.violation(in: read) == nil)
        #expect(
            try read.parts().map { $0.members["caller"]?.stringValue } == [
                "migration", CallerName.gateway.text,
            ])
    }

    @Test func `an opt-out is a withdrawal of its own time, and an opt-in is no consent`() async throws {
        let gate = try Self.gate()
        func flag(_ state: String, _ time: String) -> JSONObject {
            [
                "preferences": [
                    [
                        "scope": "marketing", "channel": "push", "source": "in_app_settings",
                        "state": .string(state), "event_time": .string(time),
                    ]
                ]
            ]
        }
        func decided(_ user: String) async throws -> String? {
            gate.clock.advance(seconds: 5)
            return try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p-\(user)", to: user))[
                "reason"]
        }
        // After the consent, before it, and in the clock's future.
        for (user, time, reason) in [
            ("u_after", "2026-01-01T00:00:00Z", "no_gdpr_consent"),
            ("u_before", "2024-01-01T00:00:00Z", "allowed"),
            ("u_ahead", "2027-01-01T00:00:00Z", "no_gdpr_consent"),
        ] {
            let reply = try await Self.take(Self.line(user, in: gate, flag("user_off", time)), into: gate)
            #expect(Self.refused(reply).isEmpty, "\(reply.json)")
            #expect(try await decided(user) == reason, "\(user)")
        }
        var optIn = flag("user_on", "2026-01-01T00:00:00Z")
        optIn["consents"] = .null
        let reply = try await Self.take(Self.line("u_flag", in: gate, optIn), into: gate)
        #expect(Self.refused(reply).isEmpty, "\(reply.json)")
        #expect(try await decided("u_flag") == "no_gdpr_consent")
        let ledger = try await gate.call("auditor", "GET", "/v1/recipients/u_after/consents")
        let last = ledger.json["records"]?.arrayValue?.last
        #expect(
            last?["state"] == "withdrawn" && last?["event_time"] == "2026-01-01T00:00:00Z", "\(ledger.json)")
        try Self.audit(gate)
    }

    @Test func `an import has a grant of its own, and each part needs its own besides`() async throws {
        let gate = try Self.gate()
        let line = try Self.line("u_1", in: gate)
        for caller in ["writer", "product", "marketing"] {
            let reply = try await Self.take(line, into: gate, by: caller)
            #expect(reply.status == 403, "\(caller): \(reply.json)")
        }
        #expect(await gate.ask("nobody", "POST", Route.importTarget, line, kind: .streamLine).status == 401)
        #expect(
            try Self.entries(of: gate).count { String(decoding: $0, as: UTF8.self).contains("import") } == 0)
        let narrow = try await Self.take(line, into: gate, by: "narrow")
        #expect(Self.refused(narrow) == [["/devices/d_1", "grant_missing"]], "\(narrow.json)")
        #expect(Self.count(narrow, "recorded", of: "recipients") == 1)
        try Self.audit(gate)
    }

    @Test func `what is registered otherwise stays, unless the line replaces it`() async throws {
        let gate = try Self.gate()
        try await gate.register("u_1", region: "NO")
        gate.clock.advance(seconds: 1)
        let kept = try await Self.take(Self.line("u_1", in: gate), into: gate)
        #expect(kept.json["kept"] == ["/recipient", "/devices/d_1"], "\(kept.json)")
        #expect(Self.count(kept, "recorded", of: "consents") == 2)
        #expect(
            try await gate.call("auditor", "GET", "/v1/recipients/u_1").json["recipient"]?["region"]?["code"]
                != "DE")
        let replaced = try await Self.take(Self.line("u_1", in: gate, ["replace": true]), into: gate)
        #expect(replaced.json["kept"] == [] && Self.count(replaced, "recorded", of: "devices") == 1)
        // A token that another person's phone has now is not taken away by an old list.
        let token = try Self.line("u_1", in: gate)["devices"] ?? .null
        let other = try await Self.take(Self.line("u_2", in: gate, ["devices": token]), into: gate)
        #expect(Self.refused(other) == [["/devices/d_1", "wrong_state"]], "\(other.json)")
        try Self.audit(gate)
    }

    @Test func `a line that is only tried is answered alike and leaves nothing`() async throws {
        let gate = try Self.gate()
        let tried = try await Self.take(Self.line("u_1", in: gate, ["dry_run": true]), into: gate)
        #expect(try Self.entries(of: gate).isEmpty)
        #expect(try await gate.call("auditor", "GET", "/v1/recipients/u_1").status == 404)
        let done = try await Self.take(Self.line("u_1", in: gate), into: gate)
        #expect(tried.json["recorded"] == done.json["recorded"] && tried.json["trail"] == nil)
    }

    @Test func `a line of nobody, of no shape and of too much is refused as a whole`() async throws {
        let gate = try Self.gate()
        let line = try Self.line("u_1", in: gate)
        for (change, status): (JSONObject, Int) in [
            (["recipient": .null], 404), (["user": ""], 422), (["more": 1], 422),
            (["recipient": ["time_zone": "Mars/Olympus"]], 422),
            (["recipient": ["region": "ZZ", "region_source": "kyc"]], 422),
            (["consents": .array(Array(repeating: line["consents"]!.arrayValue![0], count: 65))], 422),
        ] {
            var changed = line
            for member in change.members {
                changed[member.key] = member.value.isNull ? JSONValue?.none : member.value
            }
            let reply = try await Self.take(changed, into: gate)
            #expect(reply.status == status, "\(change): \(reply.json)")
        }
        #expect(try Self.entries(of: gate).isEmpty)
        #expect(try await gate.call("auditor", "GET", "/v1/recipients/u_1").status == 404)
    }

    @Test func `an import of a caller without the grant, and one with a change taken out, is named`()
        async throws
    {
        let gate = try Self.gate()
        try await Self.take(Self.line("u_1", in: gate), into: gate)
        try await Self.take(Self.line("u_2", in: gate), into: gate)
        let entries = try Self.entries(of: gate)
        func changed(_ change: (inout JSONObject) -> Void) throws -> [UInt64: ActObjection] {
            var entry = try TrailEntry(reading: entries[0])
            change(&entry.members)
            return try EvidenceFoldTests.objections(
                to: [entry.encoded().bytes, entries[1]], under: gate.policy)
        }
        #expect(try changed { _ in }.isEmpty)
        #expect(try changed { $0["caller"] = "writer" }[0]?.reason == "grant_missing")
        // Nothing depends on the address and the device, and a choice may also have been made by itself (``TornActTests``).
        for position in 0..<7 where ![1, 2, 5].contains(position) {
            let objections = try changed { members in
                var changes = members["changes"]?.arrayValue ?? []
                changes.remove(at: position)
                members["changes"] = .array(changes)
            }
            #expect(!objections.isEmpty, "without change \(position)")
        }
    }
}
