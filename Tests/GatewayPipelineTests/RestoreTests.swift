@testable import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
@testable import GateRecords
import SealedFormat
import Testing

@testable import SQLiteStore

/// An old copy of the databases beside the newest trail, and what the trail gives it back.
@Suite struct RestoreTests {
    /// The entries a gateway has recorded, as its trail would have them.
    func entries(of gate: GatewayHarness) throws -> [[UInt8]] {
        try gate.store.read { reading in
            let count = try reading.entryCount()
            return try (0..<count).map { index in
                try #require(try reading.entry(index) ?? nil).bytes
            }
        }
    }

    private func plan(_ trail: [[UInt8]], after count: UInt64, isTailLost: Bool = false) -> RestoreUnderWay {
        var edge = TrailEdge()
        for entry in trail { _ = edge.append(entry, leafHash: TreeHash.leaf(entry)) }
        return RestoreUnderWay(
            RestoreEntry(
                origin: "gate.example/test/restored-20261121T120000Z",
                previous: TreeHead(origin: "gate.example/test", size: edge.size, root: edge.root),
                backupSize: count, isTailLost: isTailLost, user: 1))
    }

    @discardableResult
    func restore(
        _ gate: GatewayHarness, from trail: [[UInt8]], isTailLost: Bool = false,
        under more: [CompiledPolicy] = [], entry: ((UInt64) throws -> [UInt8])? = nil,
        withdrawing purposes: (() throws -> Set<Purpose>)? = nil
    ) throws -> RestoreEntry {
        let count = try gate.store.read { try $0.entryCount() }
        let policies = [gate.policy] + more
        return try TrailRestore(
            gate.store, entry: entry ?? { trail[Int($0)] },
            policies: { digest in policies.first { $0.digest == digest } },
            withdrawing: purposes ?? { [Purpose("marketing"), Purpose("social")] },
            index: IndexKey(HMACKey(gate.keys.index))
        ).run(
            plan(trail, after: count, isTailLost: isTailLost), clock: gate.clock.reading(),
            limits: EngineLimits())
    }

    /// A copy of a gateway's state directory, as a backup of this moment.
    func backup(_ gate: GatewayHarness) throws -> String {
        let copy = NSTemporaryDirectory() + "sendgate-backup-\(UUID().uuidString)"
        try FileManager.default.copyItem(atPath: gate.folder, toPath: copy)
        return copy
    }

    /// As a build recorded it that did not have the member.
    private static func entry(_ bytes: [UInt8], without member: String) throws -> [UInt8] {
        let entry = try TrailEntry(reading: bytes)
        var members = entry.members
        members[member] = nil
        return try TrailEntry(kind: entry.kind, index: entry.index, time: entry.time, members: members)
            .encoded().bytes
    }

    private struct Stopped: Error {}

    @Test func `a withdrawal and an erasure of after the backup hold again`() async throws {
        let gate = try GatewayHarness(keeping: .files())
        for user in ["u_1", "u_2"] {
            try await gate.register(user)
            try #require(try await gate.consent(user).status == 200)
        }
        let copy = try backup(gate)
        try #require(
            try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        try #require(
            try await gate.call("product", "POST", "/v1/recipients/u_2/consents/c1/withdraw").status == 200)
        let trail = try entries(of: gate)

        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        let entry = try restore(old, from: trail)
        #expect(entry.applied[.erasures] == 1 && entry.applied[.withdrawals] == 1, "\(entry)")
        #expect(try old.store.read { try $0.subject(of: UserID("u_1")) } == nil)
        let promo = try await old.call("marketing", "POST", "/v1/sends", try old.promo("p", to: "u_2"))
        #expect(promo["detail"] == "withdrawn", "\(promo.json)")
        // The tree goes on from the old one with the entry that cites it.
        let all = try old.store.read { try $0.entryCount() }
        #expect(all > UInt64(trail.count))
        let own = try #require(try old.store.read { try $0.entry(UInt64(trail.count)) })
        let recorded = try TrailEntry(reading: own.bytes)
        #expect(try recorded.kind == .restore && RestoreEntry(recorded.members) == entry)
        #expect(try old.store.read { try $0.restoreUnderWay() } == nil)
    }

    @Test func `what was imported after the backup is brought back, as far as its evidence goes`()
        async throws
    {
        let gate = try ImportTests.gate(keeping: .files())
        try await gate.register("u_1")
        let copy = try backup(gate)
        gate.clock.advance(seconds: 1)
        let line = try ImportTests.line(
            "u_1", in: gate, ["withdrawals": ["push-u_1": ["event_time": "2026-01-03T10:00:00Z"]]])
        try #require(try await ImportTests.take(line, into: gate).status == 200)
        let trail = try entries(of: gate)

        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        let entry = try restore(old, from: trail)
        #expect(entry.applied[.consents] == 2 && (entry.applied[.withdrawals] ?? 0) >= 1, "\(entry)")
        #expect(try StateAuditTests().differences(old, entries(of: old)).isEmpty)
        let promo = try await old.call("marketing", "POST", "/v1/sends", try old.promo("p", to: "u_1"))
        #expect(promo["detail"] == "withdrawn", "\(promo.json)")
    }

    @Test func `after a restore what is stored is what the trail tells, but of whom it cannot bring back`()
        async throws
    {
        let gate = try GatewayHarness(keeping: .files())
        for user in ["u_1", "u_2"] {
            try await gate.register(user)
            try #require(try await gate.consent(user).status == 200)
            try #require(try await gate.remit("a-\(user)", to: user).status == 202)
        }
        let copy = try backup(gate)
        try #require(
            try await gate.call("product", "POST", "/v1/recipients/u_2/consents/c1/withdraw").status == 200)
        try #require(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        // Of this one nothing but the trail is left.
        try await gate.register("u_3")
        try #require(try await gate.remit("b", to: "u_3").status == 202)
        try #require(try await gate.remit("b-2", to: "u_2").status == 202)
        let trail = try entries(of: gate)

        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        try restore(old, from: trail)
        let all = try entries(of: old)
        #expect(try StateAuditTests().differences(old, all).isEmpty)
        // Whoever was in the backup is missed.
        let connection = old.files.writer.connection
        try connection.exclusively { try connection.script("DELETE FROM person") }
        let found = try StateAuditTests().differences(old, all)
        #expect(found.contains { $0.what == "nothing is stored of this person" }, "\(found)")
    }

    @Test func `a restore that ends between two commits goes on, and comes to the same`() async throws {
        let gate = try GatewayHarness(keeping: .files())
        try await gate.register("u_1")
        try #require(try await gate.consent("u_1").status == 200)
        let copy = try backup(gate)
        for number in 0..<600 {
            let reply =
                number.isMultiple(of: 2)
                ? try await gate.call(
                    "product", "POST", "/v1/recipients/u_1/consents/c\(number + 1)/withdraw")
                : try await gate.consent("u_1", id: "c\(number + 2)")
            try #require(reply.status == 200)
            gate.clock.advance(milliseconds: 10)
        }
        let trail = try entries(of: gate)
        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        old.clock.advance(seconds: 60)
        let start = try old.store.read { try $0.entryCount() }
        // Ends once the first commit is durable.
        #expect(throws: Stopped.self) {
            try restore(old, from: trail) { index in
                guard index < start + 550 else { throw Stopped() }
                return trail[Int(index)]
            }
        }
        let middle = try old.store.read { try $0.entryCount() }
        #expect(middle == start + TrailRestore.entryCountPerCommit)
        #expect(try old.store.read { try $0.restoreUnderWay() } != nil)
        let entry = try restore(old, from: trail)
        #expect(entry.backupSize == start)
        #expect(entry.applied[.consents] == 300 && entry.applied[.withdrawals] == 300, "\(entry)")
        let subject = try #require(try old.store.read { try $0.subject(of: UserID("u_1")) }).id
        let restored = try old.store.read { try $0.state(of: subject) }
        #expect(try restored?.evidence == gate.store.read { try $0.state(of: subject) }?.evidence)
    }

    /// The entries do not say when the other person verified it, nor is their number in one.
    @Test func `a number that was contested after the backup is verified anew`()
        async throws
    {
        let gate = try GatewayHarness(keeping: .files())
        func put(_ user: String, at gate: GatewayHarness, verifiedAt: Instant) async throws {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/\(user)/addresses/n",
                ["kind": "sms", "value": "+4790000017", "verified_at": .string(verifiedAt.rfc3339)])
            try #require(reply.status == 200, "\(reply.json)")
        }
        try await gate.register("u_1")
        try await gate.register("u_2")
        let first = gate.clock.now()
        try await put("u_1", at: gate, verifiedAt: first)
        let copy = try backup(gate)
        gate.clock.advance(seconds: 600)
        try await put("u_2", at: gate, verifiedAt: first.advanced(bySeconds: 300))
        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        old.clock.advance(seconds: 660)
        try restore(old, from: entries(of: gate))
        func fact() throws -> Bool? {
            let subject = try #require(try old.store.read { try $0.subject(of: UserID("u_1")) }).id
            let state = try old.store.read { try $0.state(of: subject) }
            return state?.addresses.first.map { $0.contestedAt != nil }
        }
        #expect(try fact() == true)
        for moment in [first, first.advanced(bySeconds: 200), first.advanced(bySeconds: 600)] {
            try await put("u_1", at: old, verifiedAt: moment)
            #expect(try fact() == true, "\(moment)")
        }
        try await put("u_1", at: old, verifiedAt: old.clock.now())
        #expect(try fact() == false)
    }

    @Test(arguments: [true, false])
    func `a public key that was compromised after the backup is nobody's any more`(trailSaysSo: Bool)
        async throws
    {
        let gate = try GatewayHarness(keeping: .files())
        try await gate.register("u_1")
        try await gate.register("u_2")
        let (pair, id) = try await gate.addKey("u_1")
        let copy = try backup(gate)
        let revoked = try await gate.call(
            "keys-team", "POST", "/v1/keys/\(id)/revoke", ["cause": "compromised"])
        try #require(revoked.status == 200, "\(revoked.json)")
        // Entries of builds before they had the mark lead to it by the public key that the backup has.
        let trail = try entries(of: gate)
            .map { trailSaysSo ? $0 : try Self.entry($0, without: "public_key_mac") }

        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        let entry = try restore(old, from: trail)
        #expect(entry.applied[.deviceKeys] == 1, "\(entry)")
        for user in ["u_1", "u_2"] {
            let again = try await old.call(
                "product", "POST", "/v1/recipients/\(user)/devices/d_1/keys",
                [
                    "suite": "P256_SHA256_AES256GCM",
                    "public_key": .string(Base64URL.encode(pair.publicKey)),
                ])
            #expect(again.status == 409, "\(user): \(again.json)")
            #expect(again["detail"]?.contains("revoked as compromised") == true, "\(user): \(again.json)")
        }
    }

    @Test func `a public key that was registered and compromised after the backup is refused again`()
        async throws
    {
        let gate = try GatewayHarness(keeping: .files())
        for user in ["u_1", "u_2"] { try await gate.register(user) }
        let copy = try backup(gate)
        // The backup does not know the third person, and the second is erased after it.
        try await gate.register("u_3")
        var stolen: [DeviceKeyPair] = []
        for user in ["u_1", "u_2", "u_3"] {
            let (pair, id) = try await gate.addKey(user)
            stolen.append(pair)
            let revoked = try await gate.call(
                "keys-team", "POST", "/v1/keys/\(id)/revoke", ["cause": "compromised"])
            try #require(revoked.status == 200, "\(revoked.json)")
        }
        // One that ended otherwise is refused to no person, and its entry names no public key.
        let (lost, id) = try await gate.addKey("u_1")
        let ended = try await gate.call("keys-team", "POST", "/v1/keys/\(id)/revoke", ["cause": "lost"])
        try #require(ended.status == 200, "\(ended.json)")
        try #require(try await gate.call("product", "DELETE", "/v1/recipients/u_2").status == 200)
        let trail = try entries(of: gate)
        let keys = try trail.map { try TrailEntry(reading: $0).members }.filter { $0["key_id"] != nil }
        #expect(keys.contains { $0["state"] == "deactivated" })
        for key in keys {
            #expect((key["public_key_mac"] != nil) == (key["state"] == "compromised"), "\(key)")
        }

        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        try restore(old, from: trail)
        func register(_ pair: DeviceKeyPair) async throws -> GatewayHarness.Reply {
            try await old.call(
                "product", "POST", "/v1/recipients/u_4/devices/d_1/keys",
                [
                    "suite": "P256_SHA256_AES256GCM",
                    "public_key": .string(Base64URL.encode(pair.publicKey)),
                ])
        }
        try await old.register("u_4")
        for (number, pair) in stolen.enumerated() {
            let again = try await register(pair)
            #expect(again.status == 409, "\(number): \(again.json)")
            #expect(again["detail"]?.contains("revoked as compromised") == true, "\(number): \(again.json)")
        }
        #expect(try await register(lost).status == 201)
    }

    /// One part of a send's content that its entry tells, changed.
    private static let changes: [(name: String, change: @Sendable (inout JSONObject) -> Void)] = [
        ("the device", { $0["recipient"] = ["user": "u_1", "device": "d_2"] }),
        ("every device", { $0["recipient"] = ["user": "u_1"] }),
        ("a device that is not there", { $0["recipient"] = ["user": "u_1", "device": "d_3"] }),
        (
            "the event",
            {
                var params = $0["params"]?.objectValue ?? [:]
                params["transaction_id"] = "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a99"
                $0["params"] = .object(params)
            }
        ),
        ("what it replaces", { $0["fallback_for"] = nil }),
        (
            "what it replaces, by another",
            { $0["fallback_for"] = "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10" }
        ),
    ]

    @Test func `the id of a restored send is taken for the content that its entry tells`() async throws {
        let gate = try GatewayHarness(keeping: .files())
        try await gate.register("u_1")
        try await gate.register("u_1", device: "d_2")
        let copy = try backup(gate)
        let replaced = try await gate.call(
            "payments", "POST", "/v1/sends", GatewayHarness.remittance("before", to: "u_1"))
        var body = GatewayHarness.remittance("since", to: "u_1")
        body["type"] = "transfer.sent"
        body["recipient"] = ["user": "u_1", "device": "d_1"]
        body["fallback_for"] = .string(try #require(replaced["send_id"]))
        let first = try await gate.call("payments", "POST", "/v1/sends", body)
        try #require(first.status == 202, "\(first.json)")
        // Refused, because it names no send to replace; and one that names none.
        var stray = GatewayHarness.remittance("stray", to: "u_1")
        stray["fallback_for"] = "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10"
        let refused = try await gate.call("payments", "POST", "/v1/sends", stray)
        try #require(refused["detail"] == "fallback_mismatch", "\(refused.json)")
        // A refusal for its shape binds no id, after a restore as before it.
        var misspelled = GatewayHarness.remittance("misspelled", to: "u_1")
        misspelled["type"] = "transaction.remitance_sent"
        let wrong = try await gate.call("payments", "POST", "/v1/sends", misspelled)
        try #require(wrong["reason"] == "unknown_type", "\(wrong.json)")
        let trail = try entries(of: gate)

        let old = try GatewayHarness(
            environment: .init(hasRestoredSends: true), after: gate, keeping: .folder(copy))
        try restore(old, from: trail)
        let again = try await old.call("payments", "POST", "/v1/sends", body)
        #expect(again.status == 202 && again["send_id"] == first["send_id"], "\(again.json)")
        let wrongAgain = try await old.call("payments", "POST", "/v1/sends", misspelled)
        #expect(wrongAgain.status == 403 && wrongAgain["reason"] == "unknown_type", "\(wrongAgain.json)")
        let right = GatewayHarness.remittance("misspelled", to: "u_1")
        let corrected = try await old.call("payments", "POST", "/v1/sends", right)
        #expect(corrected.status == 202, "\(corrected.json)")
        let strayAgain = try await old.call("payments", "POST", "/v1/sends", stray)
        #expect(strayAgain["send_id"] == refused["send_id"], "\(strayAgain.json)")
        stray["fallback_for"] = nil
        #expect(try await old.call("payments", "POST", "/v1/sends", stray).status == 409)
        for (name, change) in Self.changes {
            var other = body
            change(&other)
            let reply = try await old.call("payments", "POST", "/v1/sends", other)
            #expect(reply.status == 409, "\(name): \(reply.json)")
        }
        var unlike = GatewayHarness.remittance("before", to: "u_1")
        unlike["fallback_for"] = .string(try #require(first["send_id"]))
        #expect(try await old.call("payments", "POST", "/v1/sends", unlike).status == 409)
    }

    @Test(arguments: [true, false])
    func `a push token of the backup is used only where the trail says that it did not change`(
        trailSaysSo: Bool
    ) async throws {
        let gate = try GatewayHarness(keeping: .files())
        func device(_ id: String, _ token: String) async throws {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/devices/\(id)",
                [
                    "platform": "ios", "app": "no.getdrop.app", "token": .string(token),
                    "os_permission": "granted",
                ])
            try #require(reply.status == 200, "\(reply.json)")
        }
        try await gate.register("u_1", device: nil)
        for id in ["d_1", "d_2", "d_3"] { try await device(id, "aa0\(id.last!)") }
        let copy = try backup(gate)
        // The second gets another token, the third registers the same one again.
        try await device("d_2", "bb02")
        try await device("d_3", "AA03")
        var trail = try entries(of: gate)
        if !trailSaysSo {
            // As builds recorded it that did not say whether a token changed.
            trail = try trail.map { try Self.entry($0, without: "token_changed") }
        }
        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        try restore(old, from: trail)
        let login = try await old.example("security.new_login", "s1", to: "u_1", as: "security")
        try #require(try await old.call("security", "POST", "/v1/sends", login).status == 202)
        let tokens = try await old.claim(.security).map(\.token).sorted()
        #expect(tokens == (trailSaysSo ? ["aa01", "aa03"] : ["aa01"]))
    }

    @Test func `with the tail lost a consent counts as withdrawn until it is given again`() async throws {
        let gate = try GatewayHarness(keeping: .files())
        try await gate.register("u_1")
        try #require(try await gate.consent("u_1").status == 200)
        let trail = try entries(of: gate)
        let copy = try backup(gate)
        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        old.clock.advance(seconds: 60)
        try restore(old, from: trail, isTailLost: true)
        let refused = try await old.call("marketing", "POST", "/v1/sends", try old.promo("p1", to: "u_1"))
        #expect(refused["reason"] == "no_gdpr_consent" && refused["detail"] == "withdrawn", "\(refused.json)")
        old.clock.advance(seconds: 60)
        try #require(try await old.consent("u_1", id: "again").status == 200)
        let allowed = try await old.call("marketing", "POST", "/v1/sends", try old.promo("p2", to: "u_1"))
        #expect(allowed.status == 202, "\(allowed.json)")
    }

    @Test func `with the tail lost nobody is written to on the strength of having objected to nothing`()
        async throws
    {
        let gate = try GatewayHarness(keeping: .files())
        try await gate.register("u_1", region: "US", zone: "America/New_York")
        func address(_ id: String, of gate: GatewayHarness) async throws {
            let reply = try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/addresses/\(id)",
                [
                    "kind": "email", "value": .string("\(id)@example.com"),
                    "verified_at": .string(gate.clock.now().rfc3339),
                ])
            try #require(reply.status == 200, "\(reply.json)")
        }
        func mail(_ id: String, to gate: GatewayHarness) async throws -> GatewayHarness.Reply {
            var body = try await gate.promo(id, to: "u_1")
            body["channel"] = "email"
            return try await gate.call("marketing", "POST", "/v1/sends", body)
        }
        func comment(_ id: String, to gate: GatewayHarness) async throws -> GatewayHarness.Reply {
            let body = try await gate.example("social.comment", id, to: "u_1", as: "social")
            return try await gate.call("social", "POST", "/v1/sends", body)
        }
        try await address("a", of: gate)
        // CAN-SPAM lets one write until the recipient objects, and social pushes are on by default.
        try #require(try await mail("m1", to: gate).status == 202)
        try #require(try await comment("s1", to: gate).status == 202)
        let trail = try entries(of: gate)
        let old = try GatewayHarness(after: gate, keeping: .folder(try backup(gate)))
        old.clock.advance(seconds: 60)
        try restore(old, from: trail, isTailLost: true)

        try await address("b", of: old)
        let refused = try await mail("m2", to: old)
        #expect(
            refused["reason"] == "no_marketing_opt_in" && refused["detail"] == "withdrawn", "\(refused.json)")
        let deliveries = refused.json["deliveries"]?.arrayValue?.compactMap(\.objectValue) ?? []
        #expect(
            deliveries.count == 2
                && deliveries.allSatisfy { $0["reason"]?.stringValue == "no_marketing_opt_in" },
            "\(refused.json)")
        let muted = try await comment("s2", to: old)
        #expect(muted["reason"] == "user_preference", "\(muted.json)")
        // Security notices go on.
        let login = try await old.example("security.new_login", "l1", to: "u_1", as: "security")
        #expect(try await old.call("security", "POST", "/v1/sends", login).status == 202)

        let chosen = try await old.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/social",
            ["channel": "push", "source": "in_app_settings", "state": "user_on"])
        try #require(chosen.status == 200, "\(chosen.json)")
        #expect(try await comment("s3", to: old).status == 202)
    }

    @Test
    func `a message that was being handed over at the backup is decided again before it is tried again`()
        async throws
    {
        let gate = try GatewayHarness(keeping: .files())
        for user in ["u_1", "u_2"] {
            try await gate.register(user)
            try #require(try await gate.consent(user).status == 200)
            let promo = try await gate.promo("p_\(user)", to: user)
            try #require(try await gate.call("marketing", "POST", "/v1/sends", promo).status == 202)
        }
        try #require(try await gate.claim().count == 2)
        let copy = try backup(gate)
        // No entry says so of the message: it may be with the hop already.
        try #require(
            try await gate.call("product", "POST", "/v1/recipients/u_1/consents/c1/withdraw").status == 200)
        let trail = try entries(of: gate)
        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        try restore(old, from: trail)
        #expect(try await old.claim().map(\.token) == [apnsToken("token-of-u_2-d_1")])
    }

    @Test func `what waits for a summary at the backup is told in one after the restore`() async throws {
        let gate = try GatewayHarness(caps: SummaryTests.twoAnHour, keeping: .files())
        try await gate.register("u_1")
        for number in 0..<4 {
            let sent = try await gate.call(
                "payments", "POST", "/v1/sends", SummaryTests().transfer(number))
            try #require(sent.status == 202, "\(sent.json)")
        }
        let gone = try await gate.claim()
        try #require(gone.count == 2)
        for delivery in gone {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        }
        let copy = try backup(gate)
        try #require(try await gate.consent("u_1").status == 200)
        let trail = try entries(of: gate)
        let old = try GatewayHarness(caps: SummaryTests.twoAnHour, after: gate, keeping: .folder(copy))
        try restore(old, from: trail)
        old.clock.advance(seconds: 3601)
        // The first claim makes the summary, the next hands it over.
        _ = try await old.claim()
        #expect(try await old.claim().count == 1)
        #expect(try old.entries("unsent").isEmpty)
        #expect(try old.entries("redecision").map { $0["cause"] } == ["summarised", "summarised"])
    }

    @Test func `a restore that goes on after it began to withdraw withdraws nothing twice`() async throws {
        let gate = try GatewayHarness(keeping: .files())
        try await gate.register("u_1")
        try #require(try await gate.consent("u_1").status == 200)
        let subject = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) }).id
        let restoredAt = gate.clock.now().advanced(bySeconds: 60)
        func withdraw(since moment: Instant, at now: Instant) throws -> Int {
            try gate.store.write { view in
                try view.withdrawAll(
                    [Purpose("marketing"), Purpose("social")], of: subject, since: moment, at: now)
                return view.change.entries.count
            }
        }
        // A consent and a preference of two categories on three channels.
        #expect(try withdraw(since: restoredAt, at: restoredAt) == 12)
        let later = restoredAt.advanced(bySeconds: 60)
        #expect(try withdraw(since: restoredAt, at: later) == 0)
        // In another restore the consents may have been given and withdrawn in between, and the categories switched on and off.
        #expect(try withdraw(since: later, at: later) == 12)
    }

    @Test func `what is withdrawn with the tail lost is asked of the bundle that the trail has in force`()
        async throws
    {
        let gate = try GatewayHarness(keeping: .files())
        try await gate.register("u_1")
        try #require(try await gate.consent("u_1").status == 200)
        let copy = try backup(gate)
        let next = try GatewayHarness.policy(
            caps: """
                categories: {}
                types:
                  transfer.received:
                    - {count: 2, window_hours: 1, source: a test, because: It is short., reviewed: "2026-11-02"}
                """)
        try await gate.activate(next)
        let trail = try entries(of: gate)
        let old = try GatewayHarness(after: gate, keeping: .folder(copy))
        old.clock.advance(seconds: 60)
        try restore(
            old, from: trail, isTailLost: true, under: [next],
            withdrawing: {
                let inForce = try old.store.read { try $0.activatedPolicy() }
                return inForce == ActivatedPolicy(next) ? [Purpose("marketing")] : []
            })
        let refused = try await old.call("marketing", "POST", "/v1/sends", try old.promo("p1", to: "u_1"))
        #expect(refused["detail"] == "withdrawn", "\(refused.json)")
    }
}
