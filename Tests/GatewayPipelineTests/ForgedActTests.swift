@testable import AuditTrail
import BundleModel
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

extension EvidenceFoldTests {
    /// The entries that record what the gate would have refused, by index.
    ///
    /// - Parameter policies: Those beside the one in force at the beginning.
    static func objections(
        to entries: [[UInt8]], under policy: CompiledPolicy?, _ policies: [CompiledPolicy] = []
    ) throws -> [UInt64: ActObjection] {
        var fold = EvidenceFold(under: policy)
        let archive = Dictionary(
            (policies + [policy].compactMap { $0 }).map { ($0.digest, $0) }, uniquingKeysWith: { $1 })
        var found: [UInt64: ActObjection] = [:]
        for entry in entries {
            let index = try TrailEntry(reading: entry).index
            found[index] = try fold.objection(to: entry) { archive[$0] }
            try fold.apply(entry) { archive[$0] }
        }
        return found
    }
}

/// An entry that the gate would never have written is named by a replay from the first entry.
@Suite struct ForgedActTests {
    /// One forged entry: an honest one of its kind, changed.
    struct Forgery: CustomTestStringConvertible, Sendable {
        var what: String
        var kind: String
        /// Of the newest honest entry of the kind; members of an entry that has none are all here.
        var changed: JSONObject
        var without: [String] = []
        var reason: String

        var testDescription: String { what }
    }

    /// In milliseconds after the last honest entry.
    private static let laterMilliseconds: Int64 = 60_000
    private static let hour: Int64 = 3_600_000
    private static let tag = JSONValue.string(String(repeating: "5a", count: 16))
    private static let unknownID = JSONValue.string("01a20bd3-f140-70bc-9384-ca8495bf38b6")
    /// Stands for a time so many milliseconds after that of the forged entry.
    private static func time(_ after: Int64) -> JSONValue { ["after": .integer(after)] }

    private typealias Row = (what: String, changed: JSONObject, without: [String], reason: String)

    private static let consents: [Row] = [
        ("by a sender of transactions", ["caller": "payments"], [], "grant_missing"),
        ("by a sender of marketing", ["caller": "marketing"], [], "grant_missing"),
        ("by a caller that no bundle knows", ["caller": "nobody"], [], "grant_missing"),
        ("to a notice that never was", ["notice": notice("never")], [], "unknown_notice"),
        ("to other words of a notice", ["notice": notice("promo", sha256: "ab")], [], "unknown_notice"),
        ("to a version that never was", ["notice": notice("promo", version: "77")], [], "unknown_notice"),
        ("without a notice", [:], ["notice"], "unknown_notice"),
        ("to a purpose that its notice does not ask about", ["purpose": "social"], [], "other_purpose"),
        ("to a purpose that there is not", ["purpose": "lottery"], [], "unknown_purpose"),
        ("of the future", ["event_time": time(1)], [], "event_in_future"),
        (
            "by a method that its caller may not assert", ["method": "phone_call"], [],
            "assertion_not_permitted"
        ),
        (
            "in a way in which no yes to the notice is given", ["method": "written_consent"], [],
            "invalid_request"
        ),
        (
            "of last week, by a caller that imports none", ["event_time": time(-170 * hour)], [],
            "grant_missing"
        ),
        ("that ends before it was given", ["expires_at": time(-2 * hour)], [], "invalid_request"),
        ("by e-mail at no address", ["channel": "email"], [], "not_found"),
        ("by e-mail at an unknown address", ["channel": "email", "address": tag], [], "not_found"),
        ("to push at an address", ["address": tag], [], "invalid_request"),
        ("without a jurisdiction", [:], ["jurisdiction"], "invalid_request"),
        ("in a country that there is not", ["jurisdiction": "XX"], [], "invalid_request"),
        ("that does not follow the ledger", ["previous": ""], [], "wrong_state"),
        ("of somebody who is not registered", ["subject": tag, "previous": ""], [], "not_found"),
        ("that withdraws another", ["withdraws": tag], [], "invalid_request"),
        (
            "that a purchase gave after a no",
            ["method": "existing_customer"], [], "invalid_request"
        ),
        ("withdrawn by a sender", ["state": "withdrawn", "caller": "payments"], [], "grant_missing"),
        ("withdrawn that never was given", ["state": "withdrawn", "withdraws": tag], [], "not_found"),
        (
            "withdrawn because of a no that nobody else said",
            ["state": "withdrawn", "method": "shared_address"], [], "wrong_state"
        ),
        ("whose withdrawal a caller took back", ["state": "undone"], [], "wrong_state"),
        (
            "whose withdrawal was taken back a day later", ["state": "undone", "caller": "gateway"], [],
            "wrong_state"
        ),
    ]

    private static func notice(_ id: String, version: String = "3", sha256: String = "5a") -> JSONValue {
        [
            "id": .string(id), "version": .string(version), "language": "en",
            "sha256": .string(String(repeating: sha256, count: 32)),
        ]
    }

    /// By kind.
    private static let others: [Row] = [
        // Choices.
        ("preference", ["source": "admin_override"], [], "assertion_not_permitted"),
        ("preference", ["source": "in_app_step_up"], [], "assertion_not_permitted"),
        ("preference", ["caller": "payments"], [], "grant_missing"),
        ("preference", ["caller": "security", "source": "in_app_settings"], [], "assertion_not_permitted"),
        ("preference", ["scope": "lottery"], [], "unknown_scope"),
        ("preference", ["event_time": time(hour)], [], "event_in_future"),
        ("preference", ["event_time": time(-hour)], [], "invalid_request"),
        ("preference", ["destination": tag], [], "not_found"),
        ("preference", ["caller": "gateway"], [], "wrong_state"),
        (
            "preference", ["caller": "gateway", "source": "drift_audit", "state": "user_off"], [],
            "wrong_state"
        ),
        (
            "preference", ["caller": "gateway", "source": "admin_override", "state": "user_off"], [],
            "wrong_state"
        ),
        ("preference", ["scope": "security", "state": "user_off"], [], "assertion_not_permitted"),
        // People and their places.
        ("recipient", ["caller": "marketing"], [], "grant_missing"),
        ("recipient", ["action": "registered"], [], "wrong_state"),
        ("recipient", ["subject": tag], [], "wrong_state"),
        (
            "recipient", ["region": ["code": "US", "source": "kyc", "observed_at": time(hour)]], [],
            "event_in_future"
        ),
        (
            "recipient", ["region": ["code": "XX", "source": "kyc", "observed_at": time(0)]], [],
            "invalid_request"
        ),
        ("device", ["caller": "security"], [], "grant_missing"),
        ("device", ["action": "registered"], [], "wrong_state"),
        (
            "device", ["region": ["code": "US", "source": "device", "observed_at": time(1)]], [],
            "event_in_future"
        ),
        ("address", ["caller": "payments"], [], "grant_missing"),
        ("address", ["action": "updated", "address": tag], [], "wrong_state"),
        ("address", ["action": "updated", "address": tag, "replaced": tag], [], "not_found"),
        (
            "address", ["action": "removed"], ["channel", "verified", "number_prefix", "address"],
            "not_found"
        ),
        ("permission_prompt", ["answer": "granted"], [], "already_prompted"),
        ("permission_prompt", ["shown_at": time(hour)], [], "event_in_future"),
        ("permission_prompt", ["caller": "payments"], [], "grant_missing"),
        ("subscription", ["observed_at": time(hour)], [], "event_in_future"),
        ("subscription", ["observed_at": time(-hour)], [], "wrong_state"),
        ("subscription", ["caller": "marketing"], [], "grant_missing"),
        ("subscription", ["device": tag], [], "not_found"),
        ("drift", ["caller": "payments"], [], "grant_missing"),
        ("erasure", ["caller": "payments"], [], "grant_missing"),
        ("erasure", ["subject": tag], [], "not_found"),
        // Keys of devices: the newest entry has the key `active`, as the security team left it.
        (
            "device_key",
            ["caller": "product", "event": "revoke", "state": "compromised", "cause": "compromised"], [],
            "grant_missing"
        ),
        ("device_key", ["event": "suspend", "state": "active"], [], "wrong_state"),
        ("device_key", ["event": "promote", "state": "active"], [], "wrong_state"),
        ("device_key", ["event": "destroy", "state": "destroyed"], [], "wrong_state"),
        ("device_key", ["event": "add", "state": "pre_activation"], [], "id_conflict"),
        ("device_key", ["key_id": tag], [], "not_found"),
        ("device_key", ["caller": "security", "proof": "wrong"], ["event"], "grant_missing"),
        // Sends.
        ("receipt", ["caller": "payments"], [], "grant_missing"),
        ("receipt", ["send_id": unknownID], [], "not_found"),
        ("receipt", ["destination": tag], [], "not_found"),
        ("receipt", ["at": time(hour)], [], "event_in_future"),
        ("receipt", ["at": time(-200 * hour)], [], "invalid_request"),
        ("cancel", ["caller": "security"], [], "not_found"),
        ("cancel", ["caller": "keys-team"], [], "grant_missing"),
        ("cancel", ["send_id": unknownID], [], "not_found"),
        ("acknowledgement", ["caller": "marketing"], [], "grant_missing"),
        ("acknowledgement", ["type": "lottery.won"], [], "not_found"),
        ("reply", ["caller": "product"], [], "grant_missing"),
        (
            "mandatory_unreached",
            ["send_id": unknownID, "type": "transaction.failed", "must_go_by": "email", "within": "a day"],
            [], "not_found"
        ),
        // Operators.
        ("policy", ["caller": "payments", "approvals": []], [], "grant_missing"),
        ("policy_refused", ["caller": "marketing", "problems": 1], [], "grant_missing"),
        (
            "gateway_key", ["caller": "product", "event": "suspend", "state": "suspended"], [],
            "grant_missing"
        ),
        (
            "gateway_key", ["caller": "keys-team", "event": "destroy", "state": "destroyed"], [],
            "wrong_state"
        ),
        (
            "gateway_key",
            [
                "caller": "keys-team", "event": "destroy", "state": "destroyed",
                "proposed_by": "keys-witness",
            ], [], "wrong_state"
        ),
        ("gateway_key", ["event": "suspend", "state": "suspended"], [], "grant_missing"),
        ("keyset", ["event": "adopt"], [], "wrong_state"),
        ("keyset", ["event": "propose", "expires_at": time(-hour)], [], "wrong_state"),
        ("keyset", ["event": "propose", "caller": "product"], [], "grant_missing"),
    ]

    private static var forgeries: [Forgery] {
        consents.map {
            Forgery(
                what: "a consent \($0.what)", kind: "consent", changed: $0.changed, without: $0.without,
                reason: $0.reason)
        }
            + others.map {
                Forgery(
                    what: "\($0.what) with \($0.changed)", kind: $0.what, changed: $0.changed,
                    without: $0.without, reason: $0.reason)
            }
    }

    /// What of an entry is not made by a caller in ``honest()``.
    private static let bases: [String: JSONObject] = [
        "gateway_key": [
            "cause": "request", "key": "origin-0123456789abcdef", "purpose": "origin",
        ],
        "keyset": [
            "caller": "keys-team", "digest": .string(String(repeating: "5a", count: 32)), "version": 1,
            "expires_at": time(hour),
        ],
        "drift": ["finding": "zone_missing", "action": "marked", "old": "none"],
        "erasure": ["caller": "product"],
        "reply": [
            "channel": "sms", "id_tag": .string(String(repeating: "5a", count: 16)), "at": time(0),
            "effect": "none", "subjects": [],
        ],
    ]

    /// A trail with an entry of nearly every kind, all by callers who may.
    private func honest() async throws -> (gate: GatewayHarness, entries: [[UInt8]]) {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let person = "/v1/recipients/u_1"
        func ask(_ caller: String, _ method: String, _ target: String, _ body: JSONObject) async throws {
            let reply = try await gate.call(caller, method, target, body)
            try #require(reply.status < 300, "\(target): \(reply.json)")
        }
        try await gate.register("u_1")
        try await ask(
            "product", "PUT", "\(person)/addresses/a_1",
            ["kind": "sms", "value": "+4790000000", "verified_at": .string(gate.clock.now().rfc3339)])
        try await ask(
            "product", "POST", "\(person)/permission-prompts", ["device": "d_1", "answer": "granted"])
        try await ask(
            "product", "PUT", "\(person)/devices/d_1/subscriptions", ["categories": ["social": true]])
        let key = try #require(try await gate.offerKey("u_1", device: "d_1")?.keyID)
        for verb in ["suspend", "resume"] {
            try await ask("keys-team", "POST", "/v1/keys/\(key)/\(verb)", [:])
        }
        try await gate.consent("u_1")
        gate.clock.advance(seconds: 1)
        try await ask(
            "product", "PUT", "\(person)/preferences/social",
            ["channel": "push", "source": "in_app_settings", "state": "user_on"])
        let sent = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("r1", to: "u_1"))
        let id = try #require(sent["send_id"], "\(sent.json)")
        for delivery in try await gate.claim() {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        }
        gate.clock.advance(seconds: 1)
        try await ask(
            "product", "POST", "/v1/receipts",
            [
                "send": .string(id), "destination": "d_1", "event": "user_observed", "action": "opened",
                "at": .string(gate.clock.now().rfc3339),
            ])
        try await ask("payments", "POST", "/v1/sends/\(id)/cancel", [:])
        try await ask(
            "payments", "POST", "/v1/sends/acknowledge",
            [
                "type": "transfer.sent", "recipient": ["user": "u_1"],
                "params": ["transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"],
            ])
        return (gate, try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map(\.bytes))
    }

    /// Every time in a value that ``time(_:)`` stands for.
    private static func resolved(_ value: JSONValue, at now: Instant) -> JSONValue {
        if let after = value["after"]?.integerValue { return .integer(now.milliseconds + after) }
        guard let object = value.objectValue else { return value }
        return .object(JSONObject(object.map { ($0.key, resolved($0.value, at: now)) }))
    }

    private func forged(
        _ forgery: Forgery, after entries: [[UInt8]], under policy: CompiledPolicy
    ) throws -> [UInt8] {
        let read = try entries.map { try TrailEntry(reading: $0) }
        let last = try #require(read.last)
        let now = last.time.advanced(byMilliseconds: Self.laterMilliseconds)
        let subject = try #require(read.first { $0.kind == .recipient }?.members["subject"])
        var members =
            read.last { $0.kind.text == forgery.kind }?.members ?? Self.bases[forgery.kind] ?? JSONObject()
        switch forgery.kind {
        case "consent":
            var fold = EvidenceFold(under: policy)
            for entry in entries { try fold.apply(entry) { _ in policy } }
            let ledger = try #require(fold.ledgers.values.first)
            members["previous"] = .string(try #require(ledger.last).chainHash)
            members["consent"] = .string(String(repeating: "c3", count: 16))
            members["event_time"] = .integer(now.milliseconds - 1_000)
        case "preference": members["event_time"] = nil
        case "policy", "policy_refused": members["policy"] = .string(policy.digest.text)
        case "mandatory_unreached":
            members["policy"] = .string(policy.digest.text)
            members["subject"] = subject
        case "drift", "erasure": members["subject"] = subject
        default: break
        }
        for (name, value) in forgery.changed { members[name] = value }
        for name in forgery.without { members[name] = nil }
        if forgery.kind == "address", forgery.changed["action"] == "removed" { members["address"] = Self.tag }
        for (name, value) in members { members[name] = Self.resolved(value, at: now) }
        return try TrailEntry(
            kind: EntryKind(forgery.kind), index: last.index + 1, time: now, members: members
        ).encoded().bytes
    }

    @Test func `each entry that the gate would have refused is named with its reason, and no honest one`()
        async throws
    {
        let (gate, entries) = try await honest()
        let policy = gate.policy
        #expect(try EvidenceFoldTests.objections(to: entries, under: policy).isEmpty)
        for forgery in Self.forgeries {
            let entry = try forged(forgery, after: entries, under: policy)
            let read = try TrailEntry(reading: entry)
            let found = try EvidenceFoldTests.objections(to: entries + [entry], under: policy)
            #expect(found.keys.map { $0 } == [read.index], "\(forgery.what): \(found)")
            #expect(found[read.index]?.reason == forgery.reason, "\(forgery.what): \(found)")
            #expect(found[read.index]?.hint.isEmpty == false)
        }
    }

    @Test func `an act before the first bundle is in force is one that nobody was granted`() async throws {
        let (gate, entries) = try await honest()
        let found = try EvidenceFoldTests.objections(to: entries, under: nil, [gate.policy])
        #expect(found[0]?.reason == "grant_missing", "\(found)")
        #expect(found[0]?.detail.contains("no `start` or `policy` entry") == true, "\(found)")
    }

    @Test func `an act is judged by the bundle of its day, and a notice of an earlier one stays valid`()
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        // The caller loses the grant, and the notice its place in the bundle.
        let next = try GatewayHarness.policy(isChecked: false) { pages in
            Self.edit(&pages["callers.yaml"]!, ["callers", "product", "grants"]) { grants in
                guard case .list(let list) = grants.value else { return }
                grants.value = .list(list.filter { $0.json != "recipients.write" })
            }
            Self.edit(&pages["bundle.yaml"]!, ["files"]) { files in
                guard case .list(let list) = files.value else { return }
                files.value = .list(list.filter { $0.json.stringValue?.hasPrefix("notices/promo.") != true })
            }
            for page in pages.keys where page.hasPrefix("notices/promo.") { pages[page] = nil }
        }
        try await gate.activate(next)
        try #require(next.notice(Notice.Key(id: "promo", version: "3", language: "en")) == nil)
        #expect(try await gate.consent("u_1").status == 200)
        let refused = try await gate.call("product", "PUT", "/v1/recipients/u_2", ["privacy": "full"])
        #expect(refused["type"] == "urn:sendgate:problem:grant_missing", "\(refused.json)")
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 100) }.map(\.bytes)
        #expect(try EvidenceFoldTests.objections(to: entries, under: gate.policy, [next]).isEmpty)
        // The registration of before, written once more: under the bundle of now nobody may.
        var again = try TrailEntry(reading: entries[0])
        again.index = UInt64(entries.count)
        again.time = try TrailEntry(reading: #require(entries.last)).time
        again.members["action"] = "updated"
        let found = try EvidenceFoldTests.objections(
            to: entries + [again.encoded().bytes], under: gate.policy, [next])
        #expect(found.values.map(\.reason) == ["grant_missing"], "\(found)")
    }

    private static func edit(
        _ node: inout PolicyNode, _ path: [String], _ change: (inout PolicyNode) -> Void
    ) {
        guard let name = path.first else { return change(&node) }
        guard case .mapping(var members) = node.value,
            let place = members.firstIndex(where: { $0.key == name })
        else {
            Issue.record("no \(path)")
            return
        }
        edit(&members[place].value, Array(path.dropFirst()), change)
        node.value = .mapping(members)
    }

    @Test func `a link's mute and its undo are the gateway's own to record`() async throws {
        let (gate, entries) = try await honest()
        let read = try entries.map { try TrailEntry(reading: $0) }
        let choice = try #require(read.last { $0.kind == .preference })
        func own(_ state: String, _ source: String, after: Int64, eventTime: Instant? = nil, at place: Int)
            throws -> [UInt8]
        {
            var entry = choice
            entry.members["caller"] = "gateway"
            entry.members["state"] = .string(state)
            entry.members["source"] = .string(source)
            entry.members["event_time"] = eventTime.map { .integer($0.milliseconds) }
            entry.index = UInt64(entries.count + place)
            entry.time = try #require(read.last).time.advanced(bySeconds: after)
            return try entry.encoded().bytes
        }
        let mute = try own("user_off", "unsubscribe_link", after: 10, at: 0)
        // What the mute ends besides.
        var fold = EvidenceFold(under: gate.policy)
        for entry in entries { try fold.apply(entry) { _ in gate.policy } }
        var withdrawal = try #require(read.last { $0.kind == .consent })
        (withdrawal.index, withdrawal.time) = (UInt64(entries.count + 1), try TrailEntry(reading: mute).time)
        for name in ["notice", "jurisdiction", "expires_at"] { withdrawal.members[name] = nil }
        withdrawal.members["caller"] = "gateway"
        withdrawal.members["purpose"] = choice.members["scope"]
        withdrawal.members["state"] = "withdrawn"
        withdrawal.members["method"] = "web_form"
        withdrawal.members["event_time"] = .integer(withdrawal.time.milliseconds)
        withdrawal.members["consent"] = Self.tag
        withdrawal.members["previous"] = .string(
            try #require(fold.ledgers.values.first?.last.map(\.chainHash)))
        let muted = [mute, try withdrawal.encoded().bytes]
        for (state, seconds, isRight) in [
            ("user_on", 20, true), ("user_on", 10 + UnsubscribeLink.undoSeconds, false),
            ("default", 20, false),
        ] as [(String, Int64, Bool)] {
            let undo = try own(state, "in_app_settings", after: seconds, eventTime: choice.time, at: 2)
            let found = try EvidenceFoldTests.objections(to: entries + muted + [undo], under: gate.policy)
            #expect(found.isEmpty == isRight, "\(state) after \(seconds) s: \(found)")
        }
    }
}
