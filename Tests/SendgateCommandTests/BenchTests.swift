import CanonicalJSON
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import Glibc
import Synchronization
import Testing

@testable import GateBench
@testable import ThreadMetering
@testable import sendgate

/// What `sendgate bench` counts, and the floor that it compares the gateway with.
@Suite struct BenchTests {
    // MARK: Rotating

    @Test(arguments: [
        (202, 202, 0, 0, 0, true), (202, 201, 0, 0, 1, false), (202, 202, 1, 0, 0, false),
        (202, 202, 0, 1, 0, false),
        // The answer of one send was lost, and its message came.
        (202, 203, 1, 0, 0, false),
    ])
    func `a rotation is flawless when no send failed, every accepted one came and none is unreadable`(
        accepted: Int, handedOver: Int, failed: Int, unreadable: Int, lost: Int, isFlawless: Bool
    ) throws {
        let row = RotationReport.Row(
            purpose: .origin, rotationCount: 5, longestMilliseconds: 1, sendCount: accepted + failed,
            failedCount: failed, acceptedCount: accepted, handedOverCount: handedOver, during: .init([1]),
            openedCount: 1, unreadableCount: unreadable)
        let report = RotationReport(
            recipients: 1, offeredPerSecond: 1, without: .init([1]), rows: [row])
        #expect(row.lostCount == lost)
        #expect(report.isFlawless == isFlawless)
        let json = report.json["rotations"]?.arrayValue?.first
        #expect(json?["lost"]?.integerValue == Int64(lost))
    }

    // MARK: Counting

    /// A thread that works until it is told to end.
    private final class Worker: Sendable {
        private let mayEnd = Atomic(false)
        private let hasStarted = DispatchSemaphore(value: 0)
        private let hasEnded = DispatchSemaphore(value: 0)

        init(_ name: String) {
            let thread = Thread { [self] in
                hasStarted.signal()
                while !mayEnd.load(ordering: .relaxed) {}
                hasEnded.signal()
            }
            thread.start()
            thread.name = name
            hasStarted.wait()
        }

        func end() {
            mayEnd.store(true, ordering: .relaxed)
            hasEnded.wait()
        }
    }

    private func threadNanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    @Test func `a counter of the kernel says what each stage's threads did and divides by nothing`() throws {
        let worker = Worker("engine")
        let begin = Load.now()
        let counters = try ThreadCounters(.nanoseconds)
        let own = threadNanoseconds()
        while threadNanoseconds() - own < 40_000_000 {}
        let counts = try counters.read()
        counters.close()
        let elapsed = Load.now() - begin
        worker.end()
        // Both cores may be others' for a while, so the engine's share is not known, only that it has one.
        let engine = counts[GatewayStage.engine, default: 0]
        #expect(engine > 1_000_000 && engine <= elapsed, "\(counts), \(elapsed)")
        #expect(counts["other threads", default: 0] >= 39_000_000, "\(counts)")
    }

    @Test func `a counter that shared its place is scaled and one that had none is refused`() {
        #expect(ThreadCounters.scaled(100, enabled: 10, running: 10) == 100)
        #expect(ThreadCounters.scaled(100, enabled: 40, running: 10) == 400)
        // A thread that did not run was not counted and did nothing.
        #expect(ThreadCounters.scaled(0, enabled: 0, running: 0) == 0)
        #expect(ThreadCounters.scaled(0, enabled: 40, running: 0) == nil)
    }

    @Test(
        arguments: [
            (ENOENT, 2, "this machine has no hardware counter (ENOENT)"),
            (EOPNOTSUPP, 2, "this machine has no hardware counter (EOPNOTSUPP)"),
            (EACCES, 4, "perf_event_paranoid is 4, needs 2 or less (EACCES)"),
            (EPERM, 3, "perf_event_paranoid is 3, needs 2 or less (EPERM)"),
            (
                EPERM, 2,
                "the kernel forbids it, with perf_event_paranoid 2: a container's system call filter may (EPERM)"
            ),
            (
                EPERM, nil,
                "the kernel forbids it, with perf_event_paranoid unknown: a container's system call filter may (EPERM)"
            ),
            (ENOSYS, nil, "this kernel has no perf_event_open (ENOSYS)"),
            (EMFILE, 2, "perf_event_open: Too many open files"),
        ] as [(Int32, Int?, String)])
    func `a machine that counts no instructions is told with the reason`(
        number: Int32, paranoid: Int?, words: String
    ) {
        let refused = ThreadCounters.Refused(errno: number, paranoid: paranoid)
        #expect(refused.description == words)
        var costs = SendCosts()
        costs.add(["engine": 7_900, "sockets": 600], of: .allocations, "open", 500)
        costs.refused[.instructions] = refused
        #expect(costs.lines.contains("instructions: not counted: \(words)"))
        #expect(costs.lines.contains { $0.hasPrefix("open") && $0.hasSuffix("17") }, "\(costs.lines)")
        #expect(costs.json["instructions_not_counted"] == .string(words))
        let row = costs.json["per_send"]?.arrayValue?.first
        #expect(row?["instructions"] == .null && row?["engine_instructions"] == .null)
        #expect(row?["allocations"] == 17 && costs.json["allocations_not_counted"] == .null)
        costs.refused[.allocations] = .init("no")
        #expect(costs.lines == ["instructions: not counted: \(words)", "allocations: not counted: no"])
    }

    @Test func `probes of allocations are in the C library and a machine that sets none says what it takes`()
        throws
    {
        do {
            let places = try ThreadCounters.allocatorPlaces()
            #expect(places.count == 3 && Set(places.map(\.offset)).count == 3)
            for place in places { #expect(place.path.hasPrefix("/") && place.offset > 0, "\(place)") }
        } catch let refused as ThreadCounters.Refused {
            #expect("\(refused)" == "this kernel has no uprobes")
        }
        for number in [EACCES, EPERM] {
            let refused = ThreadCounters.Refused(errno: number, paranoid: 1, of: .allocations)
            #expect("\(refused)" == "a probe needs root or CAP_PERFMON")
        }
    }

    @Test func `a gateway answers over its standard input what it counted`() async throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        GatewayMeter.start(.nanoseconds, on: ends[1])
        let client = MeterClient(line: MeterLine(ends[0]))
        let counts = try await client.count {
            let own = threadNanoseconds()
            while threadNanoseconds() - own < 20_000_000 {}
        }
        #expect(try counts.get().values.reduce(0, +) >= 15_000_000)
        struct Failed: Error {}
        await #expect(throws: Failed.self) { _ = try await client.count { throw Failed() } }
        // And answers again, from nothing.
        let next = try await client.count {}.get().values.reduce(0, +)
        #expect(next < 15_000_000)
    }

    // MARK: The floor

    private static let rows: Result<SendRows, any Error> = Result {
        let entry: JSONObject = [
            "facts": ["text": .string(String(repeating: "f", count: 900))],
            "deliveries": .array([["facts": ["text": .string(String(repeating: "d", count: 300))]]]),
            "text": .string(String(repeating: "e", count: 500)),
        ]
        return try SendRows(
            entry: CanonicalJSON.write(entry), deliveryEntry: [UInt8](repeating: 0x20, count: 320),
            message: ["headers": ["a": "b"], "body": ["text": .string(String(repeating: "b", count: 400))]])
    }

    private func specimen(batch: Int, in folder: TemporaryFolder) throws -> FloorSpecimen {
        try FloorSpecimen(of: Self.rows.get(), batch: batch, refusedPercent: 10, in: folder.path("specimen"))
    }

    private func size(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
    }

    @Test(arguments: [1, 16, 100])
    func `the floor writes as much as the store for the same batches`(batch: Int) throws {
        let folder = try TemporaryFolder()
        let specimen = try specimen(batch: batch, in: folder)
        let floor = try BenchFloor(specimen, in: folder.path("floor"), people: 1)
        let log = folder.path("floor") + "/gate.db-wal"
        try floor.transaction()
        let before = try size(log)
        for _ in 0..<4 { try floor.transaction() }
        let written = (try size(log) - before) / 4
        // Pages split here and there, and everything else is the same.
        #expect(
            abs(written - specimen.logByteCount) <= specimen.logByteCount / 4 + 2 * 4_120,
            "\(written), \(specimen.logByteCount)")
        #expect(written / batch > 3_000 / batch)
        let database = try RawDatabase(path: folder.path("floor") + "/gate.db", isReadOnly: true)
        func count(_ table: String) throws -> RawValue? {
            try database.rows("SELECT count(*) FROM \(table)").first?.first
        }
        // Before the first there was one batch, of which nothing had ended.
        #expect(try count("send") == .integer(Int64(6 * batch)))
        #expect(try count("event") == .integer(Int64(5 * (batch - batch / 10))))
        let offered = specimen.contents.first { $0.table == "offered" }?.rows.count ?? -1
        #expect(try count("offered") == .integer(Int64(offered)))
        #expect(try database.texts("PRAGMA integrity_check") == ["ok"])
    }

    @Test func `the floor has the gateway's tables and writes all that a send changes`() async throws {
        let folder = try TemporaryFolder()
        let specimen = try specimen(batch: 4, in: folder)
        let floor = try BenchFloor(specimen, in: folder.path("floor"), people: 10)
        let gateway = try await GatewayFixture(in: folder.root)
        try await gateway.registerSomebody()
        let path = gateway.wiring.configuration.stateDirectory + "/gate.db"
        #expect(try shape(folder.path("floor") + "/gate.db") == shape(path))
        withExtendedLifetime(floor) {}

        let database = try RawDatabase(path: path, isReadOnly: true)
        func counts() throws -> [String: RawValue?] {
            let names = try database.texts("SELECT name FROM sqlite_schema WHERE type = 'table'")
            return Dictionary(
                uniqueKeysWithValues: try names.map {
                    ($0, try database.rows("SELECT count(*) FROM \($0)").first?.first)
                })
        }
        await gateway.wiring.gateway.setHopUsable(true)
        // Once it is known that nothing waits, messages go from memory.
        _ = try await gateway.wiring.gateway.claim(lane: .general, limit: 8)
        let before = try counts()
        let reply = try await gateway.send(
            "s1", "statement.available",
            ["statement_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a01", "period": "October 2026"])
        #expect(reply.status == 202, "\(reply.object)")
        let delivery = try #require(try await gateway.wiring.gateway.claim(lane: .general, limit: 8).first)
        try await gateway.wiring.gateway.report(delivery.message, .accepted(status: 202), retryAt: nil)
        let after = try counts()
        let changed = Set(after.filter { before[$0.key] != $0.value }.keys)
        // `word` has each name once.
        #expect(changed.subtracting(["word"]).isSubset(of: specimen.tableChanges.map(\.table)), "\(changed)")
        #expect(changed.isSuperset(of: ["send", "entry", "event"]), "\(changed)")
        try await gateway.stop()
    }

    /// Columns and indexes of a database.
    private func shape(_ path: String) throws -> [String] {
        let database = try RawDatabase(path: path, isReadOnly: true)
        let tables = try database.texts(
            """
            SELECT m.name || '.' || c.name || ' ' || c.type || ' ' || c."notnull" || ' ' || c.pk
            FROM sqlite_schema m, pragma_table_xinfo(m.name) c WHERE m.type = 'table' ORDER BY 1
            """)
        let indexes = try database.texts(
            """
            SELECT m.name || ' ' || i.name || ' ' || i."unique" || ' ' || i.partial || ' ' || c.seqno || ' '
                || ifnull(c.name, '-')
            FROM sqlite_schema m, pragma_index_list(m.name) i, pragma_index_info(i.name) c
            WHERE m.type = 'table' ORDER BY 1
            """)
        #expect(tables.count > 60 && indexes.count > 20)
        return tables + indexes
    }
}
