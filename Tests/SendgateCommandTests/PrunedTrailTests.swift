import AuditTrail
import CanonicalJSON
import CommandTerminal
import Foundation
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import Logging
import SQLiteStore
import Synchronization
import Testing
import TrailDirectory
import WireProtocol

@testable import sendgate

/// A gateway lets go of what is older than it is to be kept, and everything that reads its trail goes on or says what is gone.
@Suite struct PrunedTrailTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var trail: String { folder.path("gate/trail") }

    /// Time that a test moves, and that goes on by itself in between.
    private final class MovedClock: GatewayPipeline.Clock {
        /// The time since boot is no negative one, however short this machine's is.
        private static let yearMilliseconds: Int64 = 366 * 86_400_000
        private let real = SystemClock()
        private let moved: Mutex<Int64>

        init(daysAgo: Int64) { moved = Mutex(-daysAgo * 86_400_000) }

        func now() -> Instant { reading().wall }

        func reading() -> ClockReading {
            let (now, moved) = (real.reading(), moved.withLock { $0 })
            return ClockReading(
                wall: now.wall.advanced(byMilliseconds: moved),
                uptime: now.uptime + moved + Self.yearMilliseconds,
                boot: now.boot)
        }

        func advance(days: Int64) { moved.withLock { $0 += days * 86_400_000 } }
    }

    private static let terms = TrailPruning.Terms(
        keepDays: 180, lookBackDays: 90, startSeconds: 0)

    /// A gateway's life, up to its orderly end; the next one may begin then.
    private func live(
        _ clock: MovedClock, external: String? = nil, prunes: Bool = true,
        _ body: (GatewayFixture) async throws -> Void
    ) async throws {
        let gate = try await GatewayFixture(in: folder.root, clock: clock) {
            $0.pruning = prunes ? Self.terms : nil
            $0.externalCheckpointPath = external
        }
        try await body(gate)
        try await gate.stop()
    }

    private func send(_ count: Int, _ name: String, _ gate: GatewayFixture) async throws {
        for number in 0..<count { _ = try await gate.send("\(name)\(number)", "promo.offer", [:]) }
    }

    private func published(_ gate: GatewayFixture, beyond index: UInt64) async throws {
        // The publisher holds its lag until it has looked once more: a clock moved before that makes it days.
        let isPublished = try await eventually {
            try gate.wiring.store.read { try $0.publishedSize() } > index
                && gate.wiring.core.publisher.lagMilliseconds() == 0
        }
        #expect(isPublished, "entry \(index) was never published")
    }

    private func run(_ arguments: String...) async throws -> CommandLineRun {
        try await CommandLineRun(
            ["audit", arguments[0], trail, "--key", "\(trail)/trail.pub"] + arguments.dropFirst())
    }

    private func bundles() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: "\(trail)/tile/entries")
            .filter { TrailPath(parsing: "tile/entries/\($0)") != nil }.sorted()
    }

    private func recorded(_ gate: GatewayFixture) throws -> SnapshotHead? {
        try gate.wiring.store.read { try $0.recordedSnapshot() }
    }

    @Test func `bundles go behind a snapshot that is signed and seen elsewhere, and every reader goes on`()
        async throws
    {
        let clock = MovedClock(daysAgo: 300)
        try await live(clock) {
            try await $0.registerSomebody()
            try await send(240, "old", $0)
        }
        try FileManager.default.copyItem(atPath: folder.path("gate/state"), toPath: folder.path("backup"))
        try await live(clock) { try await send(280, "older", $0) }
        let early = try folder.file(
            "early", try String(contentsOfFile: "\(trail)/checkpoint", encoding: .utf8))
        try FileManager.default.copyItem(atPath: trail, toPath: folder.path("kept"))

        // Two hundred days later the first two bundles are older than a hundred and eighty.
        var head: SnapshotHead?
        clock.advance(days: 200)
        try await live(clock, external: early) { gate in
            try await send(3, "later", gate)
            head = try await prune(gate, seenElsewhere: early)
        }
        // A start checks what is there, and goes on; what is behind the look-back is whole.
        try await live(clock) { gate in
            let count = try gate.wiring.store.read { try $0.entryCount() }
            try await published(gate, beyond: count - 1)
            clock.advance(days: 99)
            let sent = try await gate.send("new", "security.new_login", GatewayFixture.login)
            #expect(sent.status < 300)
            _ = try gate.wiring.pruning.advance()
        }
        try await expectReadersGoOn(try #require(head))
        try await expectWhatIsGoneIsNamed()
    }

    private func prune(_ gate: GatewayFixture, seenElsewhere early: String) async throws -> SnapshotHead {
        let pruning = gate.wiring.pruning
        #expect(try pruning.advance())
        let head = try #require(try recorded(gate))
        #expect(head.size == 512 && head.entry.keepDays == 180 && head.entry.lookBackDays == 90)
        try await published(gate, beyond: head.index)
        #expect(try pruning.advance())
        #expect(pruning.status.waitsFor?.contains("external_checkpoint") == true)
        #expect(try bundles().prefix(2) == ["000", "001"])
        func check() -> ReadinessAnswer.Check? {
            gate.wiring.healthChecks.checks().first { $0.name == "trail" }
        }
        #expect(check()?.detail?.contains("waits for `external_checkpoint`") == true)
        try FileManager.default.removeItem(atPath: early)
        try FileManager.default.copyItem(atPath: "\(trail)/checkpoint", toPath: early)
        // What was cut since is made again, from the entries that are still there.
        let segment = URL(filePath: "\(trail)/snapshot/512/00000000")
        try Data(try Data(contentsOf: segment).prefix(10)).write(to: segment)
        #expect(try pruning.advance())
        let left = try bundles()
        #expect(!left.isEmpty && !left.contains("000") && !left.contains("001"))
        #expect(pruning.status.head == head && pruning.status.waitsFor == nil)
        #expect(check()?.isPassed == true)
        #expect(check()?.detail?.contains("entries are kept from 512 on") == true)
        #expect(await gate.metrics()["sendgate_trail_first_kept_entry"] == "512")
        // Once a week at most.
        let count = try gate.wiring.store.read { try $0.entryCount() }
        #expect(try pruning.advance())
        #expect(try gate.wiring.store.read { try $0.entryCount() } == count)
        // The pass over the state reads what is left.
        let own = StatePass(
            gate.wiring.store, directory: folder.path("kept"),
            comparison: gate.wiring.healthChecks.statePass.comparison)
        let isLast = try own.advance { Issue.record("\($0)") }
        #expect(isLast)
        return head
    }

    private func expectReadersGoOn(_ head: SnapshotHead) async throws {
        let verified = try await run("verify")
        #expect(verified.status == 0, "\(verified.errors)")
        #expect(verified.output.contains("the entries before 512 were pruned"), "\(verified.output)")
        #expect(verified.output.contains("whole from entry "), "\(verified.output)")
        #expect(try await run("verify", "--since", "\(folder.path("kept"))/checkpoint").status == 0)
        let json = try await run("verify", "--json")
        #expect(json.output.contains("\"pruned_before\":512"), "\(json.output)")
        for arguments in [["--from-genesis"], [], ["--with", CommandLineRun.policies]] {
            let replayed = try await CommandLineRun(
                ["audit", "replay", trail, "--key", "\(trail)/trail.pub"] + arguments)
            #expect(replayed.status == 0, "\(replayed.output)\(replayed.errors)")
            #expect(replayed.output.contains("the entries before 512 were pruned"), "\(replayed.output)")
        }
        let state = try await CommandLineRun(
            "audit", "state", "--dev", folder.path("gate"), "--key", "\(trail)/trail.pub")
        #expect(state.status == 0 && state.output.isEmpty, "\(state.output)\(state.errors)")
        #expect(try await run("show", "\(head.index)").status == 0)
        let report = try await CommandLineRun("report", trail, "--key", "\(trail)/trail.pub")
        #expect(report.status == 0 && report.errors.contains("counted from entry "), "\(report.errors)")
    }

    private func expectWhatIsGoneIsNamed() async throws {
        let shown = try await run("show", "7")
        #expect(shown.status == 1, "\(shown.errors)")
        #expect(shown.errors.contains("entry 7 was pruned: the trail is kept from entry 512 on"))
        let report = try await CommandLineRun(
            "report", trail, "--key", "\(trail)/trail.pub", "--since", "2020-01-01")
        #expect(report.status == 1 && report.errors.contains("was pruned"), "\(report.errors)")
        // Whoever kept the bundles can put them beside it and hold the snapshot against them.
        let copy = folder.path("held")
        try FileManager.default.copyItem(atPath: trail, toPath: copy)
        for name in ["000", "001"] {
            try FileManager.default.copyItem(
                atPath: "\(folder.path("kept"))/tile/entries/\(name)", toPath: "\(copy)/tile/entries/\(name)")
        }
        #expect(
            try await CommandLineRun("audit", "verify", copy, "--key", "\(trail)/trail.pub").status == 0)
        // What a backup lacks is not in the trail any more.
        try FileManager.default.removeItem(atPath: folder.path("gate/state"))
        try FileManager.default.copyItem(atPath: folder.path("backup"), toPath: folder.path("gate/state"))
        let gateway = try DevelopmentGateway(
            directory: folder.path("gate"), policies: CommandLineRun.policies, hop: nil, otherUserIDs: [],
            logLevel: .critical
        ).configuration
        let work = try RestoreWork(gateway, trail: trail)
        defer { work.close() }
        let error = #expect(throws: CommandFailure.self) {
            try work.plan(isTailLost: false) { _, _ in }
        }
        #expect(error?.message.contains("the entries before 512 were pruned") == true, "\(error as Any)")
    }

    @Test func `nothing is pruned without the setting, nor before a bundle is old enough`() async throws {
        let clock = MovedClock(daysAgo: 179)
        try await live(clock) { gate in
            try await gate.registerSomebody()
            try await send(260, "p", gate)
            let count = try gate.wiring.store.read { try $0.entryCount() }
            try await published(gate, beyond: count - 1)
            clock.advance(days: 170)
            _ = try gate.wiring.pruning.advance()
            let head = try recorded(gate)
            #expect(head == nil)
            #expect(gate.wiring.pruning.status.next != nil)
        }
        clock.advance(days: 400)
        try await live(clock, prunes: false) { gate in
            _ = try gate.wiring.pruning.advance()
            let head = try recorded(gate)
            #expect(head == nil)
            #expect(gate.wiring.pruning.status.remark == nil)
        }
    }
}
