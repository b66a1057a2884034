import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import DeliveryRelay
import Foundation
import GateRecords
import GateSteps
import GateTestKit
import GateVocabulary
import KeyFiles
import OpenSSLCrypto
import Synchronization
import Testing
import TrailDirectory

@testable import GatewayPipeline
@testable import SQLiteStore
@testable import sendgate

/// A clock that stands where a test sets it, with the boot of the day that it pretends to be.
private final class StandingClock: Clock {
    private let shown: Mutex<ClockReading>

    init(_ wall: Instant, boot: String) {
        shown = Mutex(ClockReading(wall: wall, uptime: 1_000_000, boot: boot))
    }

    func now() -> Instant { reading().wall }
    func reading() -> ClockReading { shown.withLock { $0 } }
    func advance(seconds: Int64) {
        shown.withLock {
            $0.wall = $0.wall.advanced(bySeconds: seconds)
            $0.uptime += seconds * 1_000
        }
    }
}

/// State directories of each version of the layout, kept in the repository: this build opens each of them, brings it up to date, and
/// goes on with it (SG-0083).
///
/// `SENDGATE_RECORD_STATE=1` records one of this version, unless there is one; `Tests/Fixtures/README.md` says when.
@Suite struct KeptStateTests {
    private static let fixtures = CommandLineRun.repository.appending(path: "Tests/Fixtures/States").path
    private static let recordedAt = Instant(rfc3339: "2026-11-29T10:00:00Z")!
    private static let isRecording = ProcessInfo.processInfo.environment["SENDGATE_RECORD_STATE"] == "1"

    private static let newest = "\(fixtures)/schema-\(Schema.gate.version)"

    private static let versions = try! FileManager.default.contentsOfDirectory(atPath: fixtures).sorted()

    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func tar(_ arguments: String...) throws {
        let tar = Process()
        tar.executableURL = URL(filePath: "/usr/bin/env")
        tar.arguments = ["tar"] + arguments
        try tar.run()
        tar.waitUntilExit()
        try #require(tar.terminationStatus == 0, "tar \(arguments)")
    }

    /// The directory of a kept gateway, as its process left it.
    private func unpack(_ version: String) throws -> String {
        try tar("-xmzf", "\(Self.fixtures)/\(version)/gate.tar.gz", "-C", folder.root)
        return folder.path("gate")
    }

    /// The kept gateway under this build, so many seconds after it was recorded.
    private func open(_ version: String, secondsLater: Int64) async throws -> GatewayFixture {
        _ = try unpack(version)
        return try await GatewayFixture(
            in: folder.root,
            clock: StandingClock(Self.recordedAt.advanced(bySeconds: secondsLater), boot: "second"))
    }

    @Test func `this version has a kept state directory`() async throws {
        if Self.isRecording {
            try await record()
            Issue.record("recorded; run again without SENDGATE_RECORD_STATE")
        }
        #expect(
            FileManager.default.fileExists(atPath: "\(Self.newest)/gate.tar.gz"),
            "each version of the layout keeps one: Tests/Fixtures/README.md")
    }

    // MARK: What is in it

    /// What an earlier build would refuse or misread, by the version of the directory: kinds of entries with their members.
    @Test func `whatever is added to the trail or to a stored list raises the version`() throws {
        let schema = EntrySchema.version1
        let kinds = schema.kindNames.map { kind in
            "\(kind.text): \(schema.members(of: kind)?.members.map { "\($0.name)" }.sorted() ?? [])"
        }
        let digest = SHA256.digest(Array(kinds.joined(separator: "\n").utf8)).bytes.prefix(8)
        let known = [3: "b80b35a3acb3ca4b", 4: "0bdda1be9ad4b5b7"]
        #expect(
            known[Schema.gate.version] == Hexadecimal.encode(digest),
            "a step of `Schema.gate`, if only `.script(\"\")`, and a line here: an earlier build must not go on with that trail (SG-0083)"
        )
    }

    @Test(arguments: versions)
    func `a kept state directory has a row of every table`(version: String) throws {
        let state = "\(try unpack(version))/state"
        for (schema, tables) in [(Schema.gate, 18), (Schema.subjects, 2)] {
            let connection = try Connection(
                path: "\(state)/\(schema.file)", file: schema.file, role: .reader, cacheByteCount: 1 << 20,
                busyTimeoutMilliseconds: 0)
            defer { connection.close() }
            try connection.exclusively {
                let names = try connection.every(
                    StatementText("sqlite_schema", "SELECT name FROM sqlite_schema WHERE type = 'table'")
                ) { $0.text() }
                #expect(names.count >= tables, "\(names)")
                for name in names {
                    let count = try connection.pragma("SELECT count(*) FROM \(name)")
                    #expect(count != "0", "`\(name)` of \(version) is empty")
                }
            }
        }
    }

    @Test(arguments: versions)
    func `nothing in a kept state directory is a key that production takes`(version: String) throws {
        let keys = "\(try unpack(version))/keys"
        #expect(throws: KeyFileError.self) { try PrivateKeyDirectory(at: keys, acceptsThrowaway: false) }
        let read = try PrivateKeyDirectory(at: keys, acceptsThrowaway: true)
        #expect(read.keys.values.joined().allSatisfy { $0.id.hasPrefix("dev-") })
        #expect(read.keys[.data]?.count == 2)
    }

    // MARK: Under this build

    @Test(arguments: versions)
    func `a kept state directory opens, agrees with its trail, decides, and hands over what waited`(
        version: String
    ) async throws {
        let gate = try await open(version, secondsLater: 4 * 3600)
        let store = gate.wiring.store
        while try !store.checkPages(countMax: 1_000) {}
        #expect(store.damages.isEmpty, "\(store.damages)")
        // As recorded: one message in flight and one that waits.
        #expect(try store.read { try $0.outboxDepth().rowCount } >= 2)
        let pass = StatePass(
            store, directory: folder.root, comparison: gate.wiring.healthChecks.statePass.comparison)
        #expect(try pass.advance { Issue.record("\($0)") })
        #expect(pass.differences.isEmpty && pass.counts.compared >= 2, "\(pass.differences)")

        // What was said before is still known.
        let shown = try await gate.ask("GET", "/v1/recipients/u_42")
        #expect(shown.status == 200)
        let again = try await gate.send("kept-1", "security.new_login", GatewayFixture.login)
        #expect(again.object["replayed"] == true, "\(again.object)")
        let sent = try await gate.send("after", "security.new_login", GatewayFixture.login)
        #expect(sent.status == 202, "\(sent.object)")
        let events = try await gate.ask("GET", "/v1/events")
        #expect(events.status == 200 && !(events.object["events"]?.arrayValue ?? []).isEmpty)

        // Every sealed value opens: each is sealed anew under another key.
        let key = try await gate.ask("POST", "/v1/keys", ["purpose": "data"])
        let id = try #require(key.object["key"]?.stringValue, "\(key.object)")
        #expect(try await gate.ask("POST", "/v1/keys/\(id)/promote", [:]).status == 200)
        #expect(try await isSealed(gate, under: id))

        // What waited goes to the hop, under the id that it had.
        let relay = Task { try await gate.wiring.relay.run() }
        let isEmpty = try await eventually { try store.read { try $0.outboxDepth().rowCount } == 0 }
        #expect(isEmpty)
        relay.cancel()
        try await relay.value
        let onward = try String(contentsOfFile: folder.path("gate/onward.ndjson"), encoding: .utf8)
        let kept = try String(contentsOfFile: "\(Self.fixtures)/\(version)/waiting", encoding: .utf8)
        for message in kept.split(separator: "\n") {
            #expect(onward.contains(message), "`\(message)` was not handed over")
        }
        #expect(store.damages.isEmpty, "\(store.damages)")
        try await gate.stop()
        try await verify(folder.path("gate/trail"))
    }

    /// A build that comes after this one: a table more, and every row written again.
    private static let later: Schemas = {
        var schemas = Schemas()
        let tables = [SealedTable.person, .ledger, .send, .outbox, .offered].map { table in
            var table = table
            table.relaying = { fields, _, _ in fields }
            return table
        }
        schemas.gate.steps += [.script("CREATE TABLE later (a)"), .rows(tables)]
        return schemas
    }()

    @Test(arguments: versions)
    func `a later build brings a kept state directory up to date, killed between any two transactions`(
        version: String
    ) throws {
        let gate = try unpack(version)
        let keys = try PrivateKeyDirectory(at: "\(gate)/keys", acceptsThrowaway: true)
        let index = HMACKey(try keys.current(.index).secret)
        let dataKeys = try (keys.keys[.data] ?? []).map { try RowCipher.Key($0) }
        func open(
            _ state: String, migrating: @escaping (MigrationProgress) throws -> Void = { _ in }
        ) throws -> SQLiteStore {
            try SQLiteStore(
                directory: state, schemas: Self.later,
                limits: SQLiteStoreLimits(readerCount: 1, migratedRowCountMax: 3), migrating: migrating
            ) { (RowCipher(current: dataKeys[0], older: Array(dataKeys.dropFirst())), index) }
        }
        var killed: [String] = []
        try open("\(gate)/state") { _ in
            let copy = folder.path("killed-\(killed.count)")
            try FileManager.default.copyItem(atPath: "\(gate)/state", toPath: copy)
            killed.append(copy)
        }.close()
        #expect(killed.count > 5)

        let key = try #require(
            NoteVerifierKey(
                parsing: try String(contentsOfFile: "\(gate)/trail/trail.pub", encoding: .utf8)
                    .trimmingCharacters(in: .newlines)))
        for state in ["\(gate)/state"] + Soak.part(of: killed, 4, "kept directories that are killed") {
            let store = try open(state)
            defer { store.close() }
            #expect(try store.read { try $0.outboxDepth().rowCount } == 2)
            var compared = 0
            var comparison = StateComparison(
                store: store, trail: try TrailDirectoryReader(openingAt: "\(gate)/trail"),
                trust: TrailTrust(origin: key.name, keys: [key]),
                clock: StandingClock(Self.recordedAt.advanced(bySeconds: 7_200), boot: "second"))
            comparison.progress = { if case .comparing(_, let total) = $0 { compared = total } }
            try comparison.compare(StateFold.Share(index: 0, count: 1)) { Issue.record("\(state): \($0)") }
            #expect(compared >= 2 && store.damages.isEmpty)
        }
    }

    @Test(arguments: versions)
    func `the trail of a kept gateway verifies and replays`(version: String) async throws {
        try await verify("\(try unpack(version))/trail")
    }

    private func verify(_ trail: String) async throws {
        for step in [["verify"], ["replay"], ["replay", "--from-genesis"]] {
            let run = try await CommandLineRun(
                ["audit"] + step + [trail, "--key", "\(trail)/trail.pub", "--json"])
            #expect(run.status == 0, "\(step): \(run.output)\(run.errors)")
        }
    }

    private func isSealed(_ gate: GatewayFixture, under key: String) async throws -> Bool {
        try await eventually {
            try gate.wiring.store.read { try $0.resealedDataKey() == key && $0.laggingRowCount() == 0 }
        }
    }

    // MARK: Recording

    /// Has a gateway of this version do a little of everything, and keeps its directory as it is when the process has ended with one
    /// message at the hop.
    private func record() async throws {
        let target = Self.newest
        try #require(
            !FileManager.default.fileExists(atPath: "\(target)/gate.tar.gz"),
            "what a version wrote is never recorded anew")
        let manager = FileManager.default
        try manager.createDirectory(
            atPath: folder.path("gate"), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        try PrivateKeyDirectory.initialize(
            at: folder.path("gate/keys"), prefix: "dev-test-", now: Self.recordedAt)
        let clock = StandingClock(Self.recordedAt, boot: "first")
        let gate = try await GatewayFixture(in: folder.root, clock: clock)
        let person = "/v1/recipients/u_42"
        @discardableResult
        func ask(_ status: Int, _ method: String, _ target: String, _ body: JSONObject? = nil) async throws
            -> JSONObject
        {
            let answer = try await gate.ask(method, target, body)
            #expect(answer.status == status, "\(method) \(target): \(answer.object)")
            return answer.object
        }
        /// Sends the example of a type's own page.
        @discardableResult
        func send(_ id: String, _ type: String, _ more: JSONObject = [:]) async throws -> JSONObject {
            var body = try #require(try await ask(200, "GET", "/v1/types/\(type)")["example"]?.objectValue)
            body["id"] = .string(id)
            body["recipient"] = ["user": "u_42"]
            for (name, value) in more { body[name] = value }
            return try await gate.ask("POST", "/v1/sends", body).object
        }

        try await gate.registerSomebody()
        _ = try await ask(
            200, "PUT", "\(person)/addresses/a_1",
            ["kind": "sms", "value": "+4790000000", "verified_at": "2026-11-02T00:00:00Z"])
        _ = try await ask(
            200, "PUT", "\(person)/addresses/a_2",
            ["kind": "email", "value": "somebody@example.com", "verified_at": "2026-11-02T00:00:00Z"])
        _ = try await ask(
            200, "POST", "\(person)/permission-prompts", ["device": "d_1", "answer": "granted"])
        _ = try await ask(
            201, "POST", "\(person)/devices/d_1/keys",
            [
                "suite": "X25519_SHA256_CHACHA20POLY1305",
                "public_key": "3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08",
            ])
        let notice = try #require(
            try Repository.policy().bundle.notices.values.first {
                $0.key.id == "promo" && $0.key.language == "en"
            })
        for (id, channel, address) in [("c_1", "push", nil), ("c_2", "email", "a_2"), ("c_3", "sms", "a_1")]
            as [(String, String, String?)]
        {
            var body: JSONObject = [
                "id": .string(id), "purpose": "marketing", "channel": .string(channel),
                "event_time": .string(Self.recordedAt.rfc3339),
                "method": "in_app_toggle", "jurisdiction": "DE",
                "notice": [
                    "id": "promo", "version": .string(notice.key.version), "language": "en",
                    "sha256": .string(notice.sha256),
                ],
            ]
            body["address"] = address.map { .string($0) }
            _ = try await ask(200, "POST", "\(person)/consents", body)
        }
        _ = try await ask(200, "POST", "\(person)/consents/c_1/withdraw", [:])
        _ = try await ask(
            200, "PUT", "\(person)/preferences/social",
            ["state": "user_off", "source": "in_app_settings", "channel": "push"])
        try await send("kept-0", "promo.offer", ["channel": "email"])
        let told = try #require(
            try await ask(200, "GET", "/v1/types/transfer.sent")["example"]?.objectValue?["params"])
        _ = try await ask(
            200, "POST", "/v1/sends/acknowledge",
            ["type": "transfer.sent", "recipient": ["user": "u_42"], "params": told])
        try await send("kept-2", "privacy.breach_notice")
        _ = try await ask(
            200, "POST", "/v1/replies",
            [
                "id": "SM1", "channel": "sms", "from": "+4790000000", "text": "STOP",
                "received_at": .string(Self.recordedAt.rfc3339),
            ])
        #expect(
            try await gate.ask("PUT", "/v1/recipients/u_gone", ["region": "DE", "region_source": "kyc"])
                .status < 300)
        let erased = try #require(
            try gate.wiring.store.read { try $0.subject(of: UserID("u_gone"))?.id })
        _ = try await ask(200, "DELETE", "/v1/recipients/u_gone")
        let cancelled = try await send("kept-3", "order.shipped")
        _ = try await gate.ask("POST", "/v1/sends/\(cancelled["send_id"]?.stringValue ?? "")/cancel", [:])

        // Handed over and seen.
        let first = try await gate.send("kept-1", "security.new_login", GatewayFixture.login)
        #expect(first.status == 202, "\(first.object)")
        // One that waited first counts from when it went.
        func sleep(from start: String, to end: String) async throws {
            _ = try await ask(
                200, "PUT", person,
                [
                    "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                    "age": "adult", "quiet_hours": ["start": .string(start), "end": .string(end)],
                ])
        }
        try await sleep(from: "10:00", to: "11:30")
        let waited = try await send("kept-6", "order.shipped")
        #expect(waited["outcome"]?.stringValue == "defer", "\(waited)")
        clock.advance(seconds: 3_600)
        let relay = Task { try await gate.wiring.relay.run() }
        let isGone = try await eventually {
            try gate.wiring.store.read { try $0.outboxDepth().rowCount } == 0
        }
        #expect(isGone)
        relay.cancel()
        try await relay.value
        _ = try await ask(
            200, "POST", "/v1/receipts",
            [
                "send": first.object["send_id"] ?? "", "destination": "d_1", "event": "user_observed",
                "action": "opened", "at": .string(Self.recordedAt.rfc3339),
            ])

        // A second data key, under which all is.
        let key = try await ask(200, "POST", "/v1/keys", ["purpose": "data"])
        let id = try #require(key["key"]?.stringValue)
        _ = try await ask(200, "POST", "/v1/keys/\(id)/promote", [:])
        #expect(try await isSealed(gate, under: id))

        // One message waits for the end of quiet hours, and one is at the hop when the process ends.
        try await sleep(from: "11:00", to: "14:00")
        let deferred = try await send("kept-4", "order.shipped")
        #expect(deferred["outcome"]?.stringValue == "defer", "\(deferred)")
        await gate.wiring.gateway.setHopUsable(true)
        _ = try await gate.send("kept-5", "security.new_login", GatewayFixture.login)
        let claimed = try await gate.wiring.gateway.claim(lane: .security, limit: 1)
        #expect(claimed.count == 1)
        let store = gate.wiring.store
        let waiting = try store.writer.connection.exclusively {
            try store.writer.connection.every(StatementText("outbox", "SELECT message FROM outbox")) {
                try $0.id(MessageID.self)
            }
        }
        #expect(waiting.count == 1)
        try await gate.stop(closesStore: false)
        // As a kill leaves it between the two commits of an erasure.
        let connection = store.writer.connection
        try connection.exclusively {
            try connection.writing {
                _ = try connection.change(
                    StatementText("erasure", "INSERT INTO erasure (subject) VALUES (?)")
                ) { $0.add(erased) }
            }
        }
        store.close()
        try manager.createDirectory(atPath: target, withIntermediateDirectories: true)
        try (waiting + claimed.map(\.message)).map { $0.uuidText + "\n" }.joined().write(
            toFile: "\(target)/waiting", atomically: true, encoding: .utf8)
        try tar(
            "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@1795946400",
            "--exclude=*.sock", "--exclude=*-mark", "--exclude=*-shm", "--exclude=*.lock",
            "--exclude=onward.ndjson", "-C", folder.root, "-czf", "\(target)/gate.tar.gz", "gate")
    }
}
