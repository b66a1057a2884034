import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import SQLiteStore
import SealedFormat
import SendPlanning
import Testing
import WireProtocol

/// What was decided and has not gone is decided again: when something about its person changes, and at its turn when
/// that comes more than a minute later. The tables say a second time, by hand, what each change does to each message.
@Suite struct DecidedAgainTests {
    /// One transfer an hour; the rest is gathered.
    static let oneAnHour = """
        categories: {}
        types:
          transfer.received:
            - {count: 1, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
        """

    static func transfer(_ number: Int, to user: String) -> JSONObject {
        [
            "id": .string("t\(number)"), "type": "transfer.received", "recipient": ["user": .string(user)],
            "params": [
                "amount": ["minor": 1400, "currency": "NOK"], "sender_name": "Ola",
                "transaction_id": .string("0d4f5a3e-5c1b-4e52-9a1f-\(String(100_000_000_000 + number))"),
            ],
        ]
    }

    // MARK: Changes of a person

    /// One message of `u_1`, and how it waits.
    enum Message: String, CaseIterable, Sendable {
        /// Marketing, agreed to.
        case offer
        /// Composed and sealed to the key of `d_1`.
        case sealed
        /// Composed for a device without a key.
        case generic
        /// Deferred until eight in the morning.
        case deferred
        /// Two of them, over a cap, until an hour after the first.
        case digesting
        /// Security, sealed.
        case alert
        /// A notice the law demands, sealed.
        case duty
    }

    /// What becomes of a message.
    enum Fate: Equatable, Sendable, ExpressibleByStringLiteral {
        case goes
        /// At the time it had, or at eight in the morning.
        case waits
        /// With the reason its event gives.
        case ends(String)
        init(stringLiteral value: String) { self = .ends(value) }
    }

    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var act: @Sendable (GatewayHarness) async throws -> Void
        var fates: [Message: Fate]

        /// - Parameter fates: Of the messages it ends or holds back; all others go.
        init(
            _ name: String, _ fates: [Message: Fate],
            _ act: @escaping @Sendable (GatewayHarness) async throws -> Void
        ) {
            testDescription = name
            self.fates = fates
            self.act = act
        }
    }

    private static let person = "/v1/recipients/u_1"

    /// Everybody is this, but for what a change says.
    private static func recipient(_ changes: JSONObject) -> @Sendable (GatewayHarness) async throws -> Void {
        { gate in
            var body: JSONObject = [
                "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                "age": "adult", "privacy": "generic", "push_enabled": true,
            ]
            // The deferred one waits for these.
            if gate.clock.now() >= .utc("2026-11-21T22:00:00Z") {
                body["quiet_hours"] = ["start": "21:00", "end": "08:00"]
            }
            for name in changes.keys { body[name] = changes[name] == .null ? nil : changes[name] }
            let reply = try await gate.call("product", "PUT", person, body)
            try #require(reply.status == 200, "\(reply.json)")
        }
    }

    private static func preference(
        _ scope: String, _ state: String, at device: String? = nil, by caller: String = "product",
        source: String = "in_app_settings"
    ) -> @Sendable (GatewayHarness) async throws -> Void {
        { gate in
            var body: JSONObject = ["state": .string(state), "source": .string(source), "channel": "push"]
            if let device { body["device"] = .string(device) }
            let reply = try await gate.call(caller, "PUT", "\(person)/preferences/\(scope)", body)
            try #require(reply.status == 200, "\(reply.json)")
        }
    }

    private static func key(_ verb: String, _ body: JSONObject?)
        -> @Sendable (GatewayHarness) async throws -> Void
    {
        { gate in
            let subject = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) })
            let keys = try gate.store.read { (store) throws in
                try store.deviceKeys(of: subject.id, device: subject.tag(.device, "d_1"))
            }
            for key in keys {
                let reply = try await gate.call(
                    "keys-team", "POST", "/v1/keys/\(key.key.hexadecimal)/\(verb)", body)
                try #require(reply.status == 200, "\(reply.json)")
            }
        }
    }

    private static let everything: [Message] = Message.allCases
    private static func all(_ fate: Fate, but others: [Message: Fate] = [:]) -> [Message: Fate] {
        Dictionary(uniqueKeysWithValues: everything.map { ($0, others[$0] ?? fate) })
    }

    static let changes: [Change] = [
        Change("nothing", [:]) { _ in },
        Change("consent withdrawn", [.offer: "no_gdpr_consent"]) { gate in
            let reply = try await gate.call("product", "POST", "\(person)/consents/c1/withdraw")
            try #require(reply.status == 200, "\(reply.json)")
        },
        Change("consent refused later", [.offer: "no_gdpr_consent"]) { gate in
            try #require(try await gate.consent("u_1", id: "c2", state: "refused").status == 200)
        },
        Change("marketing off", [.offer: "no_gdpr_consent"], preference("marketing", "user_off")),
        Change(
            "marketing set to its default", [.offer: "no_gdpr_consent"], preference("marketing", "default")),
        Change(
            "marketing off at the device", [.offer: "user_preference"],
            preference("marketing", "user_off", at: "d_1")),
        Change(
            "marketing off by the link", [.offer: "no_gdpr_consent"],
            preference("marketing", "user_off", source: "unsubscribe_link")),
        Change(
            "transactional off",
            [
                .sealed: "user_preference", .generic: "user_preference", .deferred: "user_preference",
                .digesting: "user_preference",
            ],
            preference("transactional", "user_off")),
        Change(
            "transactional off at the device",
            [
                .sealed: "user_preference", .generic: "user_preference", .deferred: "user_preference",
                .digesting: "user_preference",
            ],
            preference("transactional", "user_off", at: "d_1")),
        Change(
            "security off by step-up", [.alert: "user_preference"],
            preference("security", "user_off", by: "security", source: "in_app_step_up")),
        Change(
            "the master switch",
            [
                .offer: "push_disabled", .sealed: "push_disabled", .generic: "push_disabled",
                .deferred: "push_disabled", .digesting: "push_disabled",
            ], recipient(["push_enabled": false])),
        // What is composed has no size in another form, and what is sealed or constant has no other.
        Change("nothing on the screen", [.offer: "fact_missing"], recipient(["privacy": "hidden"])),
        Change("a minor", [.offer: "minor"], recipient(["age": "minor"])),
        Change("an age nobody knows", [.offer: "fact_missing"], recipient(["age": .null])),
        Change("a region where the consent was not given", [:], recipient(["region": "US"])),
        Change(
            "quiet hours now",
            [
                .offer: "quiet_hours_dropped", .sealed: .waits, .generic: .waits, .deferred: .waits,
                .digesting: .waits,
            ],
            recipient(["quiet_hours": ["start": "00:00", "end": "23:59"]])),
        Change("no quiet hours any more", [:], recipient(["quiet_hours": .null])),
        Change(
            "a zone where it is night",
            [
                .offer: "quiet_hours_dropped", .sealed: .waits, .generic: .waits, .deferred: .waits,
                .digesting: .waits,
            ]
        ) { gate in
            // Ten hours on, and the night there lasts as long as it takes.
            try await device(["time_zone": "Australia/Brisbane"])(gate)
            try await recipient([
                "time_zone": "Australia/Brisbane", "quiet_hours": ["start": "16:00", "end": "15:59"],
            ])(gate)
        },
        Change("the system says no", all("blocked_at_os_level"), device(["os_permission": "denied"])),
        Change("the system asked and told no", all("blocked_at_os_level")) { gate in
            let reply = try await gate.call(
                "product", "POST", "\(person)/permission-prompts", ["device": "d_1", "answer": "denied"])
            try #require(reply.status < 300, "\(reply.json)")
        },
        Change("the device removed", all("destination_removed")) { gate in
            let reply = try await gate.call("product", "DELETE", "\(person)/devices/d_1")
            try #require(reply.status == 200, "\(reply.json)")
        },
        Change("the token registered by somebody else", all("no_destination")) { gate in
            try await gate.register("u_2", device: nil)
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_2/devices/e_1",
                [
                    "platform": "ios", "app": "no.getdrop.app",
                    "token": .string(apnsToken("token-of-u_1-d_1")), "region": "DE",
                    "time_zone": "Europe/Berlin", "os_permission": "granted", "critical_alerts": true,
                ])
            try #require(reply.status == 200, "\(reply.json)")
        },
        // A body that is sealed already opens with that key alone, whatever the type allows without one; what is not composed
        // yet goes as the constant text.
        Change(
            "the key compromised",
            [.sealed: "no_device_key", .alert: "no_device_key", .duty: "no_device_key"],
            key("revoke", ["cause": "compromised"])),
        Change(
            "the key suspended", [.sealed: "no_device_key", .alert: "no_device_key", .duty: "no_device_key"],
            key("suspend", nil)),
        Change(
            "the key lost with the phone",
            [.sealed: "no_device_key", .alert: "no_device_key", .duty: "no_device_key"],
            key("revoke", ["cause": "lost"])),
        Change(
            "the key retired", [.sealed: "no_device_key", .alert: "no_device_key", .duty: "no_device_key"],
            key("revoke", ["cause": "retired"])),
        // What was sealed to the one before still opens.
        Change("a newer key", [:]) { gate in
            let added = try await gate.call(
                "product", "POST", "\(person)/devices/d_1/keys",
                [
                    "suite": "P256_SHA256_AES256GCM",
                    "public_key": .string(Base64URL.encode(DeviceKeyPair().publicKey)),
                ])
            let id = try #require(added["key_id"], "\(added.json)")
            let reply = try await gate.call("keys-team", "POST", "/v1/keys/\(id)/promote")
            try #require(reply.status == 200, "\(reply.json)")
        },
        Change("a programme joined", [.offer: "user_preference"]) { gate in
            let notice = try #require(
                gate.policy.bundle.notices.values.first {
                    $0.key.id == "programme" && $0.key.language == "bs"
                })
            let joined = try await gate.call(
                "product", "POST", "\(person)/consents",
                [
                    "id": "c_programme", "purpose": "programme", "channel": "push", "state": "given",
                    "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                    "jurisdiction": "DE",
                    "notice": [
                        "id": .string(notice.key.id), "version": .string(notice.key.version),
                        "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                    ],
                ])
            try #require(joined.status == 200, "\(joined.json)")
        },
    ]

    private static func device(_ changes: JSONObject) -> @Sendable (GatewayHarness) async throws -> Void {
        { gate in
            var body: JSONObject = [
                "platform": "ios", "app": "no.getdrop.app", "token": .string(apnsToken("token-of-u_1-d_1")),
                "region": "DE",
                "time_zone": "Europe/Berlin", "os_permission": "granted", "critical_alerts": true,
            ]
            for name in changes.keys { body[name] = changes[name] }
            let reply = try await gate.call("product", "PUT", "\(person)/devices/d_1", body)
            try #require(reply.status == 200, "\(reply.json)")
        }
    }

    /// A gateway with this message waiting, and who sent it.
    private func gate(with message: Message) async throws -> (gate: GatewayHarness, sends: [String]) {
        let isDeferred = message == .deferred
        let gate = try GatewayHarness(
            at: isDeferred ? "2026-11-21T22:00:00Z" : "2026-11-21T12:00:00Z",
            caps: message == .digesting ? Self.oneAnHour : nil)
        try await gate.register("u_1", quiet: isDeferred ? ["start": "21:00", "end": "08:00"] : nil)
        try await gate.consent("u_1")
        if message != .generic { _ = try await gate.addKey("u_1") }
        gate.clock.advance(seconds: 1)
        var bodies: [(caller: String, JSONObject)]
        switch message {
        case .offer: bodies = [("marketing", try await gate.promo("m", to: "u_1"))]
        case .sealed, .generic, .deferred: bodies = [("payments", GatewayHarness.remittance("m", to: "u_1"))]
        case .digesting: bodies = (0..<3).map { ("payments", Self.transfer($0, to: "u_1")) }
        case .alert:
            bodies = [
                ("security", try await gate.example("security.new_login", "m", to: "u_1", as: "security"))
            ]
        case .duty:
            bodies = [
                ("payments", try await gate.example("transaction.failed", "m", to: "u_1", as: "payments"))
            ]
        }
        var sends: [String] = []
        for (number, (caller, body)) in bodies.enumerated() {
            let reply = try await gate.call(caller, "POST", "/v1/sends", body)
            let outcome = isDeferred ? "defer" : message == .digesting && number > 0 ? "digest" : "forward"
            try #require(reply["outcome"] == outcome, "\(reply.json)")
            sends.append(try #require(reply["send_id"]))
        }
        guard message == .digesting else { return (gate, sends) }
        // The first of them has gone.
        let first = try #require(try await gate.claim().first)
        try await gate.gateway.report(first.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        return (gate, Array(sends.dropFirst()))
    }

    /// How many messages of the callers wait; the notice to a replaced key is the gateway's own.
    private func waiting(_ gate: GatewayHarness) throws -> Int {
        let depth = try gate.store.read { try $0.outboxDepth() }
        return depth.rowCount - depth.rowCountByCaller[.gateway, default: 0]
    }

    /// The sends of notices to a replaced key.
    private func notices(_ gate: GatewayHarness) throws -> Set<String> {
        Set(
            try gate.entries("send").filter {
                $0["caller"] == "gateway" && $0["request"]?["type"] == "security.device_key_replaced"
            }
            .compactMap { $0["send_id"]?.stringValue })
    }

    /// Lets the message's time come, and says what became of it.
    private func fate(of sends: [String], in gate: GatewayHarness, _ message: Message) async throws -> Fate {
        switch message {
        case .deferred: gate.clock.advance(seconds: 9 * 3600)
        case .digesting: gate.clock.advance(seconds: 3_601)
        default: gate.clock.advance(seconds: 1)
        }
        // The first claim composes what was deferred or digesting, the next hands it over.
        var delivered = 0
        for _ in 0..<2 {
            for lane in DeliveryLane.allCases {
                let others = try notices(gate)
                delivered += try await gate.claim(lane).count { !others.contains($0.send.uuidText) }
            }
        }
        if delivered > 0 {
            #expect(delivered == 1, "one message went as \(delivered)")
            return .goes
        }
        let reasons = try gate.store.read { (store) throws in
            try sends.flatMap { send in
                try store.events(of: try #require(SendID(uuidText: send)))
                    .filter { $0.event == .withdrawn || $0.event == .ambiguous }
                    .map { event in
                        // An end always says why.
                        #expect(MessageEnd.Why(code: event.reason ?? "") != nil, "\(event)")
                        return event.event == .ambiguous ? "ambiguous" : event.reason ?? ""
                    }
            }
        }
        guard !reasons.isEmpty else {
            #expect(try waiting(gate) == sends.count, "gone without a word")
            return .waits
        }
        #expect(reasons.count == sends.count && Set(reasons).count == 1, "\(reasons)")
        #expect(try waiting(gate) == 0)
        return .ends(reasons[0])
    }

    @Test(arguments: changes, Message.allCases)
    func `a change reaches what waits in its own transaction`(_ change: Change, _ message: Message)
        async throws
    {
        let (gate, sends) = try await gate(with: message)
        gate.clock.advance(seconds: 1)
        let count = try gate.entries().count
        let before = try waiting(gate)
        try #require(before == sends.count)
        try await change.act(gate)
        let expected = change.fates[message] ?? .goes
        // What ends does so with the change, and not when its turn comes.
        if case .ends(let reason) = expected {
            #expect(try waiting(gate) == 0)
            let entries = try gate.entries().dropFirst(count).map { try CanonicalJSON.read($0.bytes) }
            let ends = entries.filter { ["redecision", "unsent"].contains($0["kind"]?.stringValue) }
            #expect(ends.count == sends.count, "\(entries)")
            for end in ends where end["kind"]?.stringValue == "redecision" {
                #expect(end["decision"]?["reason"]?.stringValue == reason)
            }
        } else {
            #expect(try waiting(gate) == before)
        }
        #expect(try await fate(of: sends, in: gate, message) == expected)
    }

    /// The same with a hand-over under way: it cannot be called back, but what the hop did not take is decided again.
    @Test(arguments: changes)
    func `a change reaches what the hop turned away`(_ change: Change) async throws {
        for message in [Message.offer, .sealed] {
            let expected = change.fates[message] ?? .goes
            for result in [
                HopResult.busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
                .ambiguous("reset", mayRepeat: true),
            ] {
                let (gate, sends) = try await gate(with: message)
                let delivery = try #require(try await gate.claim().first)
                gate.clock.advance(seconds: 1)
                try await change.act(gate)
                #expect(try waiting(gate) == 1, "a message on its way cannot be called back")
                try await gate.gateway.report(
                    delivery.message, result, retryAt: gate.clock.now().advanced(byMilliseconds: 500))
                if case .ambiguous = result {
                    // The hop may have it: it does not go again after a change that refuses it, and nothing says
                    // then that it was withdrawn.
                    var inDoubt = Fate.goes
                    if case .ends = expected { inDoubt = "ambiguous" }
                    #expect(try await fate(of: sends, in: gate, message) == inDoubt, "\(message)")
                } else {
                    #expect(try await fate(of: sends, in: gate, message) == expected, "\(message) \(result)")
                }
            }
        }
    }

    @Test func `what the hop turned away is decided again without the device that was removed meanwhile`()
        async throws
    {
        let (gate, sends) = try await gate(with: .offer)
        let delivery = try #require(try await gate.claim().first)
        let count = try gate.entries().count
        try #require(try await gate.call("product", "DELETE", "\(Self.person)/devices/d_1").status == 200)
        // Its turn comes when what was decided is more than a minute old.
        try await gate.gateway.report(
            delivery.message, .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
            retryAt: gate.clock.now().advanced(bySeconds: 61))
        gate.clock.advance(seconds: 62)
        #expect(try await fate(of: sends, in: gate, .offer) == "no_destination")
        let again = try gate.entries().dropFirst(count).map { try CanonicalJSON.read($0.bytes) }
            .filter { $0["kind"]?.stringValue == "redecision" }
        #expect(again.map { $0["facts"]?["destination"]?.stringValue } == ["unknown"], "\(again)")
        #expect(again.map { $0["decision"]?["reason"]?.stringValue } == ["no_destination"])
    }

    @Test(arguments: Message.allCases)
    func `who is forgotten gets nothing of what waited, whatever the hop says of what is on its way`(
        _ message: Message
    ) async throws {
        let (gate, sends) = try await gate(with: message)
        let claimed = try await gate.claim() + gate.claim(.security)
        gate.clock.advance(seconds: 1)
        try #require(try await gate.call("product", "DELETE", Self.person).status == 200)
        #expect(try waiting(gate) == 0)
        for delivery in claimed {
            try await gate.gateway.report(
                delivery.message, .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
                retryAt: gate.clock.now().advanced(bySeconds: 1))
        }
        gate.clock.advance(seconds: 10 * 3600)
        for _ in 0..<2 {
            for lane in DeliveryLane.allCases { #expect(try await gate.claim(lane).isEmpty) }
        }
        // It was not known at the erasure that the hop would turn them away.
        let unsent = try gate.entries("unsent")
        let gone = try gate.entries("delivery").filter { $0["result"] == "ambiguous" }
        #expect(unsent.allSatisfy { $0["cause"] == "erased" })
        #expect(gone.count == claimed.count && unsent.count == sends.count - claimed.count)
    }

    @Test func `what is found waiting for somebody who was forgotten ends there and then`() async throws {
        let gate = try GatewayHarness()
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        try #require(try await gate.remit("a", to: "u_1").status == 202)
        let subject = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) })
        let row = try #require(try gate.store.read { try $0.outbox(of: subject.id) }.first)
        try #require(try await gate.call("product", "DELETE", Self.person).status == 200)
        #expect(try waiting(gate) == 0)
        // A row that no erasure took along.
        try gate.store.write { $0.insertOutbox(row) }
        try #require(try await gate.remit("b", to: "u_2").status == 202)
        #expect(try await gate.claim().map(\.token) == [apnsToken("token-of-u_2-d_1")])
        #expect(try gate.store.read { try $0.outbox(row.message) } == nil)
        #expect(try gate.entries("unsent").map { $0["cause"] } == ["erased", "erased"])
    }

    // MARK: A minute

    /// Nothing said so, and no transaction noticed: an hour began, a consent ended, a policy came into force.
    @Test(
        arguments: [(59_000, true), (59_999, true), (60_000, true), (60_001, false), (61_000, false)]
            as [(Int64, Bool)])
    func `a message is decided again at its turn when its decision is more than sixty seconds old`(
        _ age: Int64, _ isFresh: Bool
    ) async throws {
        // 20:59:30 in Berlin, quiet from 21:00.
        let gate = try GatewayHarness(at: "2026-11-21T19:59:30Z")
        for user in ["u_1", "u_2"] {
            try await gate.register(user, quiet: ["start": "21:00", "end": "08:00"])
        }
        try await gate.consent("u_2")
        let sent = try await gate.remit("r")
        let offer = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p", to: "u_2"))
        try #require(sent["outcome"] == "forward" && offer["outcome"] == "forward")
        let count = try gate.entries().count
        gate.clock.advance(milliseconds: age)
        let deliveries = try await gate.claim()
        let again = try gate.entries().dropFirst(count).map { try CanonicalJSON.read($0.bytes) }
        if isFresh {
            #expect(deliveries.count == 2 && again.isEmpty)
            return
        }
        #expect(deliveries.isEmpty)
        #expect(again.count == 2 && again.allSatisfy { $0["kind"] == "redecision" && $0["cause"] == "old" })
        // The notice waits for the morning, the offer is worth nothing by then.
        #expect(
            Set(again.compactMap { $0["decision"]?["reason"]?.stringValue })
                == ["quiet_hours_deferred", "quiet_hours_dropped"])
        #expect(try waiting(gate) == 1)
        let morning = Instant.utc("2026-11-22T07:00:00Z")
        gate.clock.advance(milliseconds: morning.milliseconds - gate.clock.now().milliseconds - 1)
        #expect(try await gate.claim().isEmpty)
        gate.clock.advance(milliseconds: 1)
        #expect(try await gate.claim().map(\.token) == [apnsToken("token-of-u_1-d_1")])
    }

    @Test func `a message that stands is fresh for another minute, with an entry that says so`() async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try #require(try await gate.remit("r").status == 202)
        var redecisions = 0
        for age in [60_000, 61_000, 60_000, 60_001] as [Int64] {
            gate.clock.advance(milliseconds: age)
            let delivery = try #require(try await gate.claim().first)
            if age > 60_000 { redecisions += 1 }
            #expect(try gate.entries("redecision").count == redecisions, "\(age)")
            // The hop did not take it: it is ours again, and as old as its last decision.
            try await gate.gateway.report(
                delivery.message, .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
                retryAt: gate.clock.now())
            if age == 60_000 {
                // One millisecond more.
                gate.clock.advance(milliseconds: 1)
                let older = try #require(try await gate.claim().first)
                redecisions += 1
                #expect(try gate.entries("redecision").count == redecisions)
                try await gate.gateway.report(
                    older.message, .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
                    retryAt: gate.clock.now())
            }
        }
        for entry in try gate.entries() {
            if case .differs(let what) = replay(
                entry.bytes, policies: { $0 == gate.policy.digest ? gate.policy : nil })
            {
                Issue.record("entry \(entry.index): \(what)")
            }
        }
    }

    @Test(arguments: [(89, true), (90, false), (91, false)] as [(Int64, Bool)])
    func `a consent that ends while its message waits ends the message`(_ seconds: Int64, _ goes: Bool)
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let notice = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        let given = try await gate.call(
            "product", "POST", "\(Self.person)/consents",
            [
                "id": "c1", "purpose": "marketing", "channel": "push", "method": "in_app_toggle",
                "event_time": .string(gate.clock.now().rfc3339), "jurisdiction": "DE",
                "expires_at": .string(gate.clock.now().advanced(bySeconds: 90).rfc3339),
                "notice": [
                    "id": .string(notice.key.id), "version": .string(notice.key.version),
                    "language": .string(notice.key.language), "sha256": .string(notice.sha256),
                ],
            ])
        try #require(given.status == 200, "\(given.json)")
        let sent = try await gate.call("marketing", "POST", "/v1/sends", gate.promo("p", to: "u_1"))
        try #require(sent.status == 202, "\(sent.json)")
        gate.clock.advance(seconds: seconds)
        #expect(try await gate.claim().count == (goes ? 1 : 0))
        if !goes {
            let again = try #require(try gate.entries("redecision").last)
            #expect(
                again["decision"]?["reason"] == "no_gdpr_consent"
                    && again["decision"]?["detail"] == "expired")
            #expect(try waiting(gate) == 0)
        }
    }

    // MARK: Policies

    private func policy(
        _ version: Int64, caps: String? = nil, _ path: String? = nil,
        _ change: @escaping (inout JSONObject) -> Void = { _ in }
    ) throws -> CompiledPolicy {
        try GatewayHarness.policy(caps: caps) { pages in
            func edit(_ path: String, _ change: (inout JSONObject) -> Void) {
                guard case .object(var page)? = pages[path]?.json else {
                    Issue.record("no page `\(path)`")
                    return
                }
                change(&page)
                pages[path] = PolicyNode(json: .object(page))
            }
            edit("bundle.yaml") { $0["version"] = .integer(version) }
            for page in pages.keys where page.hasPrefix("cases/") {
                pages[page] = PolicyNode(json: ["cases": []])
            }
            if let path { edit(path, change) }
        }
    }

    @Test func `a bundle that comes into force decides what waits longer than a minute, and says so`()
        async throws
    {
        let gate = try GatewayHarness()
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        try #require(try await gate.remit("early").status == 202)
        gate.clock.advance(seconds: 30)
        let next = try policy(2, "types/transaction.remittance_sent.yaml") { page in
            page["enabled"] = false
            page["disabled_hint"] = "use another"
        }
        try await gate.activate(next)
        // Decided under the old one less than a minute ago: it goes; the new one refuses from here on.
        let refused = try await gate.remit("late", to: "u_2")
        #expect(refused.status == 403 && refused["reason"] == "type_disabled", "\(refused.json)")
        gate.clock.advance(milliseconds: 30_001)
        #expect(try await gate.claim().isEmpty)
        let again = try #require(try gate.entries("redecision").last)
        #expect(again["decision"]?["reason"] == "type_disabled")
        #expect(again["policy"]?.stringValue == next.digest.text && next.digest != gate.policy.digest)
        #expect(try waiting(gate) == 0)
    }

    @Test func `what was decided less than a minute before a bundle came into force goes as decided`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try #require(try await gate.remit("early").status == 202)
        try await gate.activate(
            try policy(2, "types/transaction.remittance_sent.yaml") { page in
                page["enabled"] = false
                page["disabled_hint"] = "use another"
            })
        gate.clock.advance(seconds: 60)
        #expect(try await gate.claim().count == 1)
    }

    @Test func `a deferred message is decided by the bundle of its morning`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        try #require(try await gate.remit("r")["outcome"] == "defer")
        let next = try policy(2, "callers.yaml") { page in
            guard case .object(var callers)? = page["callers"],
                case .object(var payments)? = callers["payments"]
            else { return }
            guard case .object(var types)? = payments["types"], let except = types["except"]?.arrayValue
            else { return }
            types["except"] = .array(except + ["transaction.remittance_sent"])
            payments["types"] = .object(types)
            callers["payments"] = .object(payments)
            page["callers"] = .object(callers)
        }
        try await gate.activate(next)
        gate.clock.advance(seconds: 9 * 3600)
        for _ in 0..<2 { #expect(try await gate.claim().isEmpty) }
        let again = try #require(try gate.entries("redecision").last)
        #expect(again["decision"]?["reason"] == "caller_not_permitted" && again["cause"] == "due")
        #expect(again["policy"]?.stringValue == next.digest.text)
    }

    // MARK: Caps and events

    @Test func `what is ready was counted, and a cap that fills meanwhile does not stop it`() async throws {
        let gate = try GatewayHarness(caps: Self.oneAnHour.replacing("count: 1", with: "count: 2"))
        try await gate.register("u_1")
        for number in 0..<3 {
            let reply = try await gate.call("payments", "POST", "/v1/sends", Self.transfer(number, to: "u_1"))
            try #require(reply["outcome"] == (number < 2 ? "forward" : "digest"), "\(reply.json)")
        }
        // From here on it is one an hour.
        try await gate.activate(try policy(2, caps: Self.oneAnHour))
        gate.clock.advance(seconds: 61)
        #expect(try await gate.claim().count == 2)
        #expect(try gate.entries("redecision").count == 2)
        // Neither counted twice: the third finds room when the second leaves the hour.
        gate.clock.advance(seconds: 3_539)
        for _ in 0..<2 { #expect(try await gate.claim().isEmpty) }
        gate.clock.advance(seconds: 1)
        for _ in 0..<2 { _ = try await gate.claim() }
        #expect(try gate.entries("redecision").count == 3)
    }

    @Test func `a deferred message finds its cap as it is in the morning`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z", caps: Self.oneAnHour)
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        for number in 0..<3 {
            let reply = try await gate.call("payments", "POST", "/v1/sends", Self.transfer(number, to: "u_1"))
            try #require(reply["outcome"] == "defer", "\(reply.json)")
        }
        gate.clock.advance(seconds: 9 * 3600)
        for _ in 0..<3 { _ = try await gate.claim() }
        let outcomes = try gate.entries("redecision").map { $0["decision"]?["outcome"]?.stringValue ?? "" }
        #expect(outcomes.sorted() == ["digest", "digest", "forward"])
        // An hour later the other two go as one.
        gate.clock.advance(seconds: 3_601)
        _ = try await gate.claim()
        #expect(try await gate.claim().count == 1)
    }

    @Test func `an event that is acknowledged while its message waits or is on its way is not told`()
        async throws
    {
        let gate = try GatewayHarness()
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        func transfer(_ id: String, _ user: String) async throws -> GatewayHarness.Reply {
            var send = GatewayHarness.remittance(id, to: user)
            send["type"] = "transfer.large"
            return try await gate.call("payments", "POST", "/v1/sends", send)
        }
        func acknowledge(_ user: String) async throws {
            let reply = try await gate.call(
                "payments", "POST", "/v1/sends/acknowledge",
                [
                    "type": "transfer.large", "recipient": ["user": .string(user)],
                    "params": ["transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"],
                ])
            try #require(reply.status == 200, "\(reply.json)")
        }
        try #require(try await transfer("a", "u_1").status == 202)
        let underWay = try #require(try await gate.claim().first)
        try #require(try await transfer("b", "u_2").status == 202)
        for user in ["u_1", "u_2"] { try await acknowledge(user) }
        #expect(try waiting(gate) == 1)
        try await gate.gateway.report(
            underWay.message, .notWritten("refused"), retryAt: gate.clock.now().advanced(bySeconds: 1))
        #expect(try waiting(gate) == 0)
        let again = try #require(try gate.entries("redecision").last)
        #expect(again["decision"]?["reason"] == "repeated" && again["decision"]?["detail"] == "acknowledged")
    }

    private func agree(
        _ gate: GatewayHarness, to purpose: String, under notice: String, on channel: String,
        for address: String? = nil
    ) async throws {
        let shown = try #require(
            gate.policy.bundle.notices.values.first { $0.key.id == notice && $0.key.language == "en" })
        let reply = try await gate.call(
            "product", "POST", "/v1/recipients/u_1/consents",
            [
                "id": .string(purpose), "purpose": .string(purpose), "channel": .string(channel),
                "address": address.map { .string($0) } ?? .null, "state": "given",
                "event_time": .string(gate.clock.now().rfc3339), "method": "in_app_toggle",
                "jurisdiction": "DE",
                "notice": [
                    "id": .string(shown.key.id), "version": .string(shown.key.version),
                    "language": .string(shown.key.language), "sha256": .string(shown.sha256),
                ],
            ])
        try #require(reply.status == 200, "\(reply.json)")
    }

    @Test func `what takes the place of another message does so still when it is decided again`() async throws
    {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z")
        try await gate.register("u_1", quiet: ["start": "21:00", "end": "08:00"])
        let number = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/addresses/n",
            [
                "kind": "sms", "value": "+4790000000",
                "verified_at": .string(gate.clock.now().rfc3339),
            ])
        try #require(number.status == 200, "\(number.json)")
        try await agree(gate, to: "transactional", under: "sms_service", on: "sms", for: "n")
        let push = try await gate.remit("p")
        var text = try await gate.example("transaction.remittance_sent", "t", to: "u_1", as: "payments")
        text["channel"] = "sms"
        text["fallback_for"] = .string(try #require(push["send_id"]))
        let sent = try await gate.call("payments", "POST", "/v1/sends", text)
        try #require(sent["outcome"] == "defer", "\(sent.json)")
        gate.clock.advance(seconds: 9 * 3600)
        _ = try await gate.claim()
        let again = try gate.entries("redecision").map { $0["facts"]?["fallback"]?.stringValue ?? "" }
        #expect(again.sorted() == ["not_fallback", "replaces_own_send"])
    }

    @Test func `a message with a time of its own keeps it when its person changes at night`() async throws {
        let gate = try GatewayHarness(at: "2026-11-21T22:00:00Z")
        let hours: JSONObject = ["start": "21:00", "end": "06:00"]
        try await gate.register("u_1", quiet: hours)
        try await agree(gate, to: "programme", under: "programme", on: "push")
        let send = try await gate.example("briefing.daily", "b", to: "u_1", as: "help")
        let sent = try await gate.call("help", "POST", "/v1/sends", send)
        try #require(sent["outcome"] == "defer", "\(sent.json)")
        func due() throws -> [Instant] {
            let subject = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) })
            return try gate.store.read { try $0.outbox(of: subject.id) }.map(\.notBefore)
        }
        #expect(try due() == [.utc("2026-11-22T07:00:00Z")])
        gate.clock.advance(seconds: 60)
        try await gate.register("u_1", age: "adult", quiet: ["start": "21:00", "end": "06:30"], device: nil)
        #expect(try due() == [.utc("2026-11-22T07:00:00Z")])
    }

    @Test func `a message that is decided again does not find itself told`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        var send = GatewayHarness.remittance("a", to: "u_1")
        send["type"] = "transfer.large"
        try #require(try await gate.call("payments", "POST", "/v1/sends", send).status == 202)
        gate.clock.advance(seconds: 61)
        #expect(try await gate.claim().count == 1)
        #expect(try gate.entries("redecision").count == 1)
    }
}
