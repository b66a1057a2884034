import CanonicalJSON
import CompliancePolicy
import Foundation
import GateTestKit
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import GateRecords
import SealedFormat
import Testing
import WireProtocol

@testable import GateSteps
@testable import SQLiteStore

/// The state is what happened, or what is otherwise is named.
@Suite struct StateAuditTests {
    func differences(
        _ gate: GatewayHarness, _ entries: [[UInt8]]? = nil, shareCount: Int = 1
    ) throws -> [StateAudit.Difference] {
        let entries = try entries ?? gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map(\.bytes)
        return try (0..<shareCount).flatMap { index in
            let share = StateFold.Share(index: index, count: shareCount)
            var fold = StateFold(
                of: share, sendsSince: .longAgo,
                strays: try gate.store.read { try StateAudit.strays(in: share, of: $0) })
            // A share at a time holds no sends but those that are otherwise; one that holds all of them finds the same.
            var holding = fold
            for (number, entry) in entries.enumerated() {
                try fold.apply(entry)
                try holding.apply(entry)
                guard number % 3 == 0 || number == entries.count - 1 else { continue }
                _ = try gate.store.read { store in
                    try fold.settle { try StateAudit.isStored($0, $1, in: store) }
                }
            }
            return try gate.store.read { store in
                func differences(_ fold: StateFold) throws -> [StateAudit.Difference] {
                    let audit = StateAudit(fold, store, keptSince: .longAgo)
                    return try audit.items().flatMap { try audit.differences(of: $0) }
                }
                let found = try differences(fold)
                #expect(try differences(holding) == found)
                if found.isEmpty {
                    // What is left is of who is not stored, and need not be.
                    #expect(
                        fold.sent.values.allSatisfy {
                            fold.told.people[$0.subject] == nil || fold.lost.contains($0.subject)
                        })
                }
                return found
            }
        }
    }

    @Test func `what any acts leave behind is what the trail tells`() async throws {
        let gate = try GatewayHarness()
        var random = SeededNumbers(seed: Soak.seed("acts before an audit of the state"))
        try await EvidenceFoldTests().live(gate, acts: 200, &random)
        let found = try differences(gate)
        #expect(found.isEmpty, "\(found)")
    }

    @Test func `in every share only its own people are compared, and together they are all`() async throws {
        let gate = try await filled()
        for number in 3..<20 { try await gate.register("u_\(number)") }
        let connection = gate.files.writer.connection
        #expect(try differences(gate, shareCount: 7).isEmpty)
        try connection.exclusively { try connection.script("DELETE FROM person") }
        let found = try differences(gate, shareCount: 7)
        let people = found.filter { $0.what == "nothing is stored of this person" }.compactMap(\.subject)
        #expect(people.count == 19 && Set(people).count == 19 && people == people.sorted(), "\(found)")
    }

    @Test func `a share begins behind its bound`() {
        for count in [1, 2, 3, 7, 1_000, StateFold.Share.countMax] {
            for index in [0, 1, count / 2, count - 1] where index < count {
                let share = StateFold.Share(index: index, count: count)
                guard let bound: SubjectID = share.lowerBound() else {
                    #expect(index == 0)
                    continue
                }
                #expect(!share.contains(bound))
                #expect(share.contains(SubjectID(high: bound.high + 1, low: 0)))
            }
        }
    }

    @Test func `who is not stored as it happened gets no marketing, told once`() async throws {
        let gate = try await filled()
        let subject = try #require(try gate.store.read { try $0.people(after: nil, limit: 1) }.first)
        #expect(await close(subject, gate))
        let off = try gate.store.read { try $0.state(of: subject)?.preferences.filter(\.isClosing) }
        #expect(off?.map(\.channel) == Channel.allCases, "\(String(describing: off))")
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }
        // Once more says nothing new.
        #expect(await close(subject, gate))
        #expect(try gate.store.read { try $0.entryCount() } == UInt64(entries.count))
        #expect(try differences(gate).isEmpty)
        let (_, found) = try EvidenceFoldTests.fold(entries.map(\.bytes), gate.policy)
        #expect(found.isEmpty)
        var fold = EvidenceFold(under: gate.policy)
        for entry in entries {
            let objection = try fold.objection(to: entry.bytes) {
                $0 == gate.policy.digest ? gate.policy : nil
            }
            #expect(objection == nil, "\(String(decoding: entry.bytes, as: UTF8.self))")
            try fold.apply(entry.bytes) { $0 == gate.policy.digest ? gate.policy : nil }
        }
    }

    private func close(_ subject: SubjectID, _ gate: GatewayHarness) async -> Bool {
        await withCheckedContinuation { continuation in
            do {
                let ends = try gate.store.read { try $0.ledgerEnds(of: subject) }
                gate.engine.closeMarketing(of: subject, behind: ends) {
                    continuation.resume(returning: $0 == nil)
                }
            } catch {
                continuation.resume(returning: false)
            }
        }
    }

    /// Two people with everything, who both said yes and no.
    private func filled() async throws -> GatewayHarness {
        let gate = try GatewayHarness(keeping: .files(.uncached))
        for user in ["u_1", "u_2"] {
            try await gate.register(user)
            try await gate.consent(user)
            _ = try await gate.addKey(user)
            _ = try await gate.call(
                "product", "PUT", "/v1/recipients/\(user)/addresses/e_1",
                ["kind": "email", "value": "a@example.org", "verified_at": .string(gate.clock.now().rfc3339)])
            try #require(try await gate.remit("a-\(user)", to: user).status == 202)
        }
        return gate
    }

    /// What one does who has the key of the pages, and what is then said.
    private static let edits: [(sql: String, file: String, what: String)] = [
        ("DELETE FROM ledger WHERE person = 1", "gate.db", "`ledger`"),
        ("DELETE FROM person WHERE number = 1", "gate.db", "nothing is stored of this person"),
        ("DELETE FROM subject WHERE number = 1", "subjects.db", "no user leads to this person"),
        (
            """
            UPDATE subject SET user = zeroblob(32) WHERE number = 1;
            """, "subjects.db", "`subject`"
        ),
        (
            """
            UPDATE person SET number = 3 WHERE number = 1; UPDATE person SET number = 1 WHERE number = 2;
            UPDATE person SET number = 2 WHERE number = 3
            """, "gate.db", "`person`"
        ),
        ("DELETE FROM send WHERE number = 1", "gate.db", "is not stored"),
        ("UPDATE send SET id_hash = zeroblob(16) WHERE number = 1", "gate.db", "`send`"),
        ("DELETE FROM device_key WHERE person = 1", "gate.db", "does not lead to this person"),
        ("UPDATE device_key SET person = 2 WHERE person = 1", "gate.db", "`device_key`"),
        ("DELETE FROM push_token WHERE person = 1", "gate.db", "the token of device"),
        ("DELETE FROM address_code WHERE person = 1", "gate.db", "address"),
    ]

    @Test func `an edit by one who has the key of the pages is named`() async throws {
        for (sql, file, what) in Self.edits {
            let gate = try await filled()
            #expect(try differences(gate).isEmpty)
            let connection =
                file == "gate.db" ? gate.files.writer.connection : gate.files.subjectsWriter.connection
            try connection.exclusively { try connection.script(sql) }
            let found = try differences(gate)
            #expect(found.contains { $0.what.contains(what) }, "\(sql): \(found)")
        }
    }

    @Test func `an old row put back is named with what it lacks`() async throws {
        let gate = try await filled()
        let connection = gate.files.writer.connection
        func sealed() throws -> [UInt8]? {
            try connection.exclusively {
                try connection.first(StatementText("person", "SELECT sealed FROM person WHERE number = 1")) {
                    $0.byteArray()
                }
            }
        }
        let old = try #require(try sealed())
        let off = try await gate.call(
            "product", "PUT", "/v1/recipients/u_1/preferences/marketing",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        try #require(off.status == 200)
        #expect(try differences(gate).isEmpty)
        try connection.exclusively {
            try connection.script(
                "UPDATE person SET sealed = x'\(Hexadecimal.encode(old))' WHERE number = 1")
        }
        let found = try differences(gate)
        #expect(
            found.contains {
                $0.what
                    == "consents in force, preferences, number of consent records, number of choices: not what the trail tells"
            }, "\(found)")
        // The no that is written now comes behind those that the old row does not know of.
        let subject = try #require(found.first?.subject)
        let ends = try gate.store.read { try $0.ledgerEnds(of: subject) }
        #expect(await close(subject, gate))
        let (closed, history) = try gate.store.read {
            (
                try $0.state(of: subject)?.preferences.filter(\.isClosing),
                try $0.preferenceHistory(of: subject)
            )
        }
        #expect(closed?.count == Channel.allCases.count, "\(String(describing: closed))")
        #expect(history.count == Int(ends.choiceCount) + Channel.allCases.count)
    }

    @Test func `a mapping that is back after its erasure is named`() async throws {
        let gate = try await filled()
        let subjects = gate.files.subjectsWriter.connection
        let row = try #require(
            try subjects.exclusively {
                try subjects.first(
                    StatementText(
                        "subject", "SELECT number, user, subject, tag_key FROM subject WHERE number = 1")
                ) { row in
                    (number: row.integer(), columns: (0..<3).map { _ in Hexadecimal.encode(row.byteArray()) })
                }
            })
        try #require(try await gate.call("product", "DELETE", "/v1/recipients/u_1").status == 200)
        #expect(try differences(gate).isEmpty)
        try subjects.exclusively {
            let values = row.columns.map { "x'\($0)'" }.joined(separator: ", ")
            try subjects.script(
                "INSERT INTO subject (number, user, subject, tag_key) VALUES (\(row.number), \(values))")
        }
        let found = try differences(gate)
        #expect(found.map(\.what) == ["a user leads to this person, who was erased"], "\(found)")
    }

    @Test func `a gateway key that was put back into use, or that no entry tells of, is named`() async throws
    {
        let gate = try await GatewayKeyTests.started()
        let key = try await GatewayKeyTests.add("origin", to: gate)
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/promote").status == 200)
        let before = try #require(try gate.store.read { try $0.keyring() })
        #expect(await gate.ask("keys-team", "POST", "/v1/keys/\(key)/suspend").status == 200)
        #expect(try differences(gate).isEmpty)
        func whats() throws -> [String] { try differences(gate).map(\.what) }
        try gate.store.write { $0.setSetting("keyring", to: before.text) }
        #expect(try whats() == ["gateway key `\(key)` is `active`, and `suspended` by the trail"])
        try gate.store.write { $0.setSetting("keyring", to: nil) }
        #expect(try whats().allSatisfy { $0.contains("is unknown, and") } && !whats().isEmpty)
        var more = before
        _ = try more.add(
            GatewayKey(
                id: "origin-9", purpose: .origin, state: .preActivation, createdAt: .longAgo,
                changedAt: .longAgo, publicKey: nil))
        more.take(
            RecordedKey(id: key, purpose: .origin, state: .suspended, at: .longAgo, publicKey: nil))
        try gate.store.write { $0.setSetting("keyring", to: more.text) }
        #expect(try whats() == ["gateway key `origin-9` is `pre_activation`, and unknown by the trail"])
    }

    @Test func `a keyset that is gone, or an older one put back, is named`() async throws {
        let scene = try await KeysetRouteTests.Scene()
        try await scene.adopt(scene.keyset())
        let before = try #require(try scene.gate.store.read { try $0.keysetNote() })
        try await scene.adopt(scene.keyset(version: 2))
        #expect(try differences(scene.gate).isEmpty)
        for note in [before, nil] {
            try scene.gate.store.write { $0.setSetting("keyset", to: note) }
            let whats = try differences(scene.gate).map(\.what)
            #expect(
                whats.count == 1 && whats[0].hasPrefix("the keyset in force is not the one that was adopted"))
        }
    }

    @Test func `a consent, a person and a send that no entry tells of are named`() async throws {
        let gate = try await filled()
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map(\.bytes)
        try await gate.consent("u_1", id: "c2")
        try await gate.register("u_3")
        let found = try differences(gate, entries)
        #expect(
            found.contains { $0.what.contains("the consent ledger has 2 records, the trail 1") }, "\(found)")
        #expect(found.contains { $0.what == "nothing in the trail is about this person" }, "\(found)")
        // And the other way round: what the trail tells and nobody stored.
        let more = try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map(\.bytes)
        let fresh = try await filled()
        #expect(try !differences(fresh, more).isEmpty)
    }
}
