import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import SQLiteStore
import Testing

/// Of all people who registered a number or mailbox, the one who verified it last gets what opens an account.
@Suite struct ContestedAddressTests {
    private static let number = "+4790000017"
    private static let mailbox = "anna@example.org"
    private let gate: GatewayHarness

    init() throws { gate = try GatewayHarness() }

    // MARK: Doing

    @discardableResult
    private func put(
        _ user: String, verifiedAt: Instant?, channel: String = "sms", value: String? = nil, id: String = "n"
    ) async throws -> GatewayHarness.Reply {
        let usual = channel == "sms" ? Self.number : Self.mailbox
        let reply = try await gate.call(
            "product", "PUT", "/v1/recipients/\(user)/addresses/\(id)",
            [
                "kind": .string(channel), "value": .string(value ?? usual),
                "verified_at": verifiedAt.map { .string($0.rfc3339) } ?? .null,
            ])
        try #require(reply.status == 200, "\(reply.json)")
        return reply
    }

    /// A person registers and verifies the address a minute after whatever was before.
    @discardableResult
    private func verify(_ user: String, channel: String = "sms", isNew: Bool = true) async throws -> Instant {
        gate.clock.advance(seconds: 60)
        if isNew { try await gate.register(user) }
        let moment = gate.clock.now()
        try await put(user, verifiedAt: moment, channel: channel)
        return moment
    }

    private func send(
        _ type: String, to user: String, by channel: String = "sms", at id: String? = nil,
        name: String? = nil
    ) async throws -> GatewayHarness.Reply {
        let caller =
            try #require(gate.policy.type(TypeID(type))).category == .security ? "security" : "payments"
        let id = name ?? "s-\(type)-\(user)-\(channel)-\(gate.clock.now().milliseconds)"
        var body = try await gate.example(type, id, to: user, as: caller)
        body["channel"] = .string(channel)
        gate.clock.advance(milliseconds: 1)
        return try await gate.call(caller, "POST", "/v1/sends", body)
    }

    /// Whether a warning goes to the person's address; a refusal must be for the contest.
    private func isWarned(_ user: String, by channel: String = "sms") async throws -> Bool {
        let reply = try await send("security.new_login", to: user, by: channel)
        guard reply.status != 202 else { return true }
        #expect(
            reply["reason"] == "no_destination" && reply["detail"] == "address_contested"
                && reply["who_can_fix"] == "recipient", "\(reply.json)")
        return false
    }

    private func entries() throws -> [JSONValue] {
        let stored = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }
        return try stored.map { try CanonicalJSON.read($0.bytes) }
    }

    private func contests() throws -> [JSONValue] {
        try entries().filter { $0["kind"] == "address" && $0["action"] == "contested" }
    }

    private func notices() throws -> [JSONValue] {
        try entries().filter {
            $0["kind"] == "send" && $0["request"]?["type"] == "security.address_contested"
        }
    }

    /// The trail alone tells every fact that was decided on, and the evidence that is stored.
    private func expectReplay(of users: String...) throws {
        let stored = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }
        let (fold, differences) = try EvidenceFoldTests.fold(stored.map(\.bytes), gate.policy)
        #expect(differences.isEmpty, "\(differences)")
        for user in users {
            let subject = try #require(try gate.store.read { try $0.subject(of: UserID(user)) }).id
            #expect(fold.people[subject] == (try gate.store.read { try $0.state(of: subject) })?.evidence)
        }
    }

    // MARK: Taking over, and taking back

    @Test(arguments: ["sms", "email"])
    func `what is confidential goes to whoever verified the number or mailbox last, and to nobody else`(
        channel: String
    ) async throws {
        try await verify("u_1", channel: channel)
        #expect(try await isWarned("u_1", by: channel))
        try await verify("u_2", channel: channel)
        #expect(try await !isWarned("u_1", by: channel))
        #expect(try await isWarned("u_2", by: channel))
        // Of high sensitivity, and of no security type.
        #expect(
            try await send("transaction.remittance_sent", to: "u_1", by: channel)["detail"]
                == "address_contested")
        #expect(try await send("transaction.remittance_sent", to: "u_2", by: channel).status == 202)
        // A push is no address.
        #expect(try await send("security.new_login", to: "u_1", by: "push").status == 202)
        // Both are told, and neither reads who the other is.
        let decisions = try await gate.call("product", "GET", "/v1/recipients/u_1/decisions?limit=3")
        let sentences = decisions.json["decisions"]?.arrayValue?.compactMap {
            $0["explanation"]?.stringValue
        }
        #expect(
            sentences?.contains { $0.contains("was verified elsewhere too, and no earlier") } == true,
            "\(decisions.json)")
        for (user, isContested) in [("u_1", true), ("u_2", false)] {
            let export = try await gate.call("product", "GET", "/v1/recipients/\(user)")
            #expect(
                export.json["addresses"]?.arrayValue?.map { $0["contested"] } == [.boolean(isContested)])
        }
        let contest = try #require(try contests().first?.objectValue)
        #expect(
            Set(contest.keys) == ["action", "address", "caller", "index", "kind", "subject", "time", "v"],
            "\(contest)")
        try expectReplay(of: "u_1", "u_2")
    }

    @Test func `who verifies the number again takes it back, and loses it to the next`() async throws {
        try await verify("u_1")
        try await verify("u_2")
        try await verify("u_1", isNew: false)
        #expect(try await isWarned("u_1"))
        #expect(try await !isWarned("u_2"))
        try await verify("u_3")
        for user in ["u_1", "u_2"] { #expect(try await !isWarned(user), "\(user)") }
        #expect(try await isWarned("u_3"))
        try await verify("u_2", isNew: false)
        for user in ["u_1", "u_3"] { #expect(try await !isWarned(user), "\(user)") }
        #expect(try await isWarned("u_2"))
        try expectReplay(of: "u_1", "u_2", "u_3")
    }

    /// A time that is stated counts, and not the order in which requests come.
    @Test func `a verification that comes late contests whoever states it`() async throws {
        let first = try await verify("u_1")
        try await gate.register("u_2")
        try await put("u_2", verifiedAt: first.advanced(bySeconds: -30))
        #expect(try await isWarned("u_1"))
        #expect(try await !isWarned("u_2"))
        #expect(try contests().isEmpty && notices().isEmpty)
        let registered = try #require(try entries().last { $0["kind"] == "address" })
        #expect(registered["contested"] == true && registered["verified"] == true, "\(registered)")
        // Between the two is not enough either; after both is.
        try await put("u_2", verifiedAt: first.advanced(bySeconds: -10))
        #expect(try await !isWarned("u_2"))
        gate.clock.advance(seconds: 5)
        try await put("u_2", verifiedAt: first.advanced(bySeconds: 1))
        #expect(try await isWarned("u_2"))
        #expect(try await !isWarned("u_1"))
        try expectReplay(of: "u_1", "u_2")
    }

    @Test func `of two who verified it at one moment nobody counts until one does anew`() async throws {
        let moment = try await verify("u_1")
        try await gate.register("u_2")
        try await put("u_2", verifiedAt: moment)
        for user in ["u_1", "u_2"] { #expect(try await !isWarned(user), "\(user)") }
        // Both are told the same, and neither that the other came later.
        for user in ["u_1", "u_2"] {
            let decisions = try await gate.call("product", "GET", "/v1/recipients/\(user)/decisions?limit=3")
            let sentences = decisions.json["decisions"]?.arrayValue?.compactMap {
                $0["explanation"]?.stringValue
            }
            #expect(
                sentences?.contains { $0.contains("was verified elsewhere too, and no earlier") } == true,
                "\(user): \(decisions.json)")
        }
        // Nor does it settle anything that one of them leaves, or registers it anew.
        let left = try await gate.call("product", "DELETE", "/v1/recipients/u_2/addresses/n")
        try #require(left.status == 200)
        let removed = try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/n")
        try #require(removed.status == 200)
        try await put("u_1", verifiedAt: moment)
        #expect(try await !isWarned("u_1"))
        try await put("u_2", verifiedAt: moment)
        #expect(try await !isWarned("u_2"))
        // The same word again settles nothing.
        try await put("u_1", verifiedAt: moment)
        #expect(try await !isWarned("u_1"))
        try await verify("u_1", isNew: false)
        #expect(try await isWarned("u_1"))
        #expect(try await !isWarned("u_2"))
        try expectReplay(of: "u_1", "u_2")
    }

    @Test func `a number that nobody proved takes nothing away`() async throws {
        try await verify("u_1")
        try await gate.register("u_2")
        try await put("u_2", verifiedAt: nil)
        #expect(try await isWarned("u_1"))
        #expect(try await send("security.new_login", to: "u_2")["detail"] == "address_unverified")
        #expect(try contests().isEmpty)
    }

    // MARK: What gives nothing back

    enum Leaving: String, CaseIterable {
        case removed, erased, unverified, replaced
    }

    @Test(arguments: Leaving.allCases)
    func `whoever got the number gives it back to the old account by nothing they do`(leaving: Leaving)
        async throws
    {
        let first = try await verify("u_1")
        let second = try await verify("u_2")
        let last = second.advanced(bySeconds: 10)
        gate.clock.advance(seconds: 60)
        // Verified twice, so that the newer of the two is what counts.
        try await put("u_2", verifiedAt: last)
        switch leaving {
        case .removed:
            let reply = try await gate.call("product", "DELETE", "/v1/recipients/u_2/addresses/n")
            try #require(reply.status == 200)
        case .erased:
            let reply = try await gate.call("product", "DELETE", "/v1/recipients/u_2")
            try #require(reply.status == 200)
        case .unverified: try await put("u_2", verifiedAt: nil)
        case .replaced: try await put("u_2", verifiedAt: last, value: "+4790000018")
        }
        #expect(try await !isWarned("u_1"))
        // Nor does a third person count who verified it before that.
        try await gate.register("u_3")
        try await put("u_3", verifiedAt: second.advanced(bySeconds: 5))
        #expect(try await !isWarned("u_3"))
        // Nor is what was known before a new verification.
        for moment in [first, second, last.advanced(bySeconds: -1), last] {
            try await put("u_1", verifiedAt: moment)
            #expect(try await !isWarned("u_1"), "\(moment)")
        }
        for moment in [first, second, last.advanced(bySeconds: -1)] {
            let removed = try await gate.call("product", "DELETE", "/v1/recipients/u_1/addresses/n")
            try #require(removed.status == 200)
            try await put("u_1", verifiedAt: moment)
            #expect(try await !isWarned("u_1"), "\(moment), registered anew")
            try await put("u_1", verifiedAt: moment, value: "+4790000019")
            try await put("u_1", verifiedAt: moment)
            #expect(try await !isWarned("u_1"), "\(moment), replaced and back")
        }
        try await put("u_1", verifiedAt: last.advanced(bySeconds: 1))
        #expect(try await isWarned("u_1"))
        try expectReplay(of: "u_1")
    }

    @Test func `who holds the number keeps it under another name, and when it is registered again`()
        async throws
    {
        try await verify("u_1")
        let newest = try await verify("u_2")
        let reply = try await gate.call("product", "DELETE", "/v1/recipients/u_2/addresses/n")
        try #require(reply.status == 200)
        try await put("u_2", verifiedAt: newest, id: "m")
        #expect(try await isWarned("u_2"))
        try await put("u_2", verifiedAt: newest, id: "m")
        #expect(try await isWarned("u_2"))
        #expect(try await !isWarned("u_1"))
    }

    // MARK: Families

    @Test func `what is not confidential goes to all who share a number, with a note`()
        async throws
    {
        try await verify("u_1")
        try await verify("u_2")
        let older = try await send("statement.available", to: "u_1", name: "one")
        #expect(older.status == 202, "\(older.json)")
        let delivery = try #require(older.json["deliveries"]?.arrayValue?.first)
        #expect(delivery["notes"] == ["address_contested"], "\(delivery)")
        let again = try await send("statement.available", to: "u_1", name: "one")
        #expect(
            again.json["replayed"] == true && again.json["deliveries"] == older.json["deliveries"],
            "\(again.json)")
        let newer = try await send("statement.available", to: "u_2")
        #expect(newer.status == 202)
        #expect(newer.json["deliveries"]?.arrayValue?.first?["notes"] == nil, "\(newer.json)")
        #expect(try await gate.claim().map(\.token) == [Self.number, Self.number])
        let recorded = try entries().filter { $0["kind"] == "send" }.suffix(2).compactMap {
            $0["deliveries"]?.arrayValue?.first?["decision"]?["notes"]
        }
        #expect(recorded == [["address_contested"], []])
        try expectReplay(of: "u_1", "u_2")
    }

    // MARK: What waits

    @Test func `what waits for the number is decided again with the registration of the other`() async throws
    {
        try await verify("u_1")
        let warned = try await send("security.new_login", to: "u_1", name: "w")
        let told = try await send("statement.available", to: "u_1", name: "t")
        try #require(warned.status == 202 && told.status == 202)
        try await verify("u_2")
        #expect(try await gate.claim(.security).filter { $0.channel == .sms }.isEmpty)
        #expect(try await gate.claim().map(\.token) == [Self.number])
        let redecided = try #require(try entries().last { $0["kind"] == "redecision" })
        #expect(
            redecided["decision"]?["reason"] == "no_destination"
                && redecided["decision"]?["detail"] == "address_contested", "\(redecided)")
        let status = try await gate.call("security", "GET", "/v1/sends/\(warned["send_id"] ?? "")")
        #expect(
            status.json["events"]?.arrayValue?.contains {
                $0["event"] == "withdrawn" && $0["reason"] == "no_destination"
            } == true, "\(status.json)")
        try expectReplay(of: "u_1", "u_2")
    }

    @Test func `a duty that reaches nobody for it raises the alarm`() async throws {
        try await verify("u_1")
        try #require(try await send("security.account_locked", to: "u_1").status == 202)
        #expect(gate.alarms.all.isEmpty)
        try await verify("u_2")
        await gate.settle()
        #expect(gate.alarms.all.count == 1, "\(gate.alarms.all)")
        let refused = try await send("security.account_locked", to: "u_1")
        #expect(refused.status == 403 && refused["detail"] == "address_contested", "\(refused.json)")
        await gate.settle()
        #expect(try entries().count { $0["kind"] == "mandatory_unreached" } == 2)
    }

    // MARK: The notice

    @Test func `the older holder's devices are told once per contest, and not of whom or which number`()
        async throws
    {
        try await gate.register("u_1", device: "d_1")
        try await gate.register("u_1", device: "d_2")
        _ = try await gate.addKey("u_1", device: "d_1")
        try await verify("u_1", isNew: false)
        _ = try await gate.claim(.security)
        try await verify("u_2")
        let told = try await gate.claim(.security)
        #expect(told.map(\.destination.text).sorted() == ["d_1", "d_2"])
        for delivery in told {
            let body = String(decoding: delivery.body, as: UTF8.self)
            // A sealed body may have any three characters.
            #expect(!body.contains("90000017") && !body.contains(#""u_2""#), "\(body)")
        }
        // The same person again, and a third one, are the same contest.
        try await verify("u_2", isNew: false)
        #expect(try await gate.claim(.security).isEmpty)
        try await verify("u_3")
        #expect(try await gate.claim(.security).map(\.token) == [apnsToken("token-of-u_2-d_1")])
        #expect(try notices().count == 2)
        // One that was won back and lost is another.
        try await verify("u_1", isNew: false)
        #expect(try await gate.claim(.security).map(\.token) == [apnsToken("token-of-u_3-d_1")])
        try await verify("u_2", isNew: false)
        #expect(try await gate.claim(.security).count == 2)
        #expect(try notices().count == 4)
        try expectReplay(of: "u_1", "u_2", "u_3")
    }

    @Test func `who has no device is contested all the same`() async throws {
        try await gate.register("u_1", device: nil)
        try await verify("u_1", isNew: false)
        try await verify("u_2")
        #expect(try await !isWarned("u_1"))
        #expect(try notices().isEmpty)
    }

    // MARK: Bounds

    @Test func `of a crowd at one number one at most is warned, and one registration writes few entries`()
        async throws
    {
        let count = 105
        for number in 0..<count { try await verify("u_\(number)") }
        for user in ["u_0", "u_50", "u_\(count - 2)"] { #expect(try await !isWarned(user), "\(user)") }
        #expect(try await isWarned("u_\(count - 1)"))
        let before = try entries().count
        try await verify("u_0", isNew: false)
        let own = try entries()[before...].filter { $0["kind"] == "address" }
        #expect(own.count == 101, "the registration, and \(own.count - 1) others")
        #expect(try await isWarned("u_0"))
        #expect(try await !isWarned("u_\(count - 1)"))
    }
}
