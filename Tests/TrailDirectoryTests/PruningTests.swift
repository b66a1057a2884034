import AuditTrail
import CanonicalJSON

import GateTestKit
import GateVocabulary
import OpenSSLCrypto
import Testing

@testable import GateRecords
@testable import TrailDirectory

/// Bundles go behind a snapshot that is in force, and whatever a crash leaves is a trail that verifies.
@Suite struct PruningTests {
    /// Entries that stay and entries that pass, and two snapshots behind them.
    private static let history = History()

    private struct History {
        var entries: [[UInt8]]
        var heads: [SnapshotHead] = []
        var segments: [[[UInt8]]] = []

        init() {
            entries = (0..<700).map { Self.entry(index: $0) }
            for size in [256, 512] {
                let disk = SimulatedDisk()
                let writer = try! TrailDirectoryWriter(disk, trusting: TestTrail.trust)
                try! writer.integrate(entries, startingAt: 0)
                let maker = SnapshotMaker(
                    FilesReader(files: disk), treeSize: UInt64(entries.count), after: nil)
                let plan = try! maker.plan(before: Instant(milliseconds: .max), sizeMax: UInt64(size))!
                var written: [[UInt8]] = []
                let entry = try! maker.make(plan, keepDays: 400, lookBackDays: 90) { written.append($1) }
                heads.append(SnapshotHead(entry, recordedAs: UInt64(entries.count)))
                // In two files, as a large one is.
                let lines = written.joined().split(separator: 0x0A).map { Array($0) + [0x0A] }
                segments.append([Array(lines.prefix(3).joined()), Array(lines.dropFirst(3).joined())])
                entries.append(
                    try! entry.bytes(
                        index: UInt64(entries.count),
                        time: Instant(milliseconds: Int64(entries.count) * 1_000)))
            }
        }

        private static func entry(index: Int) -> [UInt8] {
            let entry = TrailEntry(
                kind: index % 60 == 0 ? .gatewayKey : .explain, index: UInt64(index),
                time: Instant(milliseconds: Int64(index) * 1_000), members: ["n": .integer(Int64(index))])
            return try! entry.encoded().bytes
        }

        /// A disk with everything published, and nothing pruned.
        func disk() throws -> SimulatedDisk {
            let disk = SimulatedDisk()
            let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
            try writer.integrate(entries, startingAt: 0)
            try writer.publishCheckpoint(signing: TestTrail.sign)
            return SimulatedDisk(files: disk.contents)
        }

        /// All that the gateway does of one snapshot after the other, from wherever it was ended.
        func prune(_ disk: SimulatedDisk) throws {
            let writer = try TrailDirectoryWriter(
                disk, trusting: TestTrail.trust, publishedSize: UInt64(entries.count))
            for (head, segments) in zip(heads, segments) {
                let inForce = try writer.snapshotHead()?.size ?? 0
                if inForce < head.size {
                    for (number, bytes) in segments.enumerated() {
                        try writer.writeSegment(of: head.size, number, bytes)
                    }
                    try SnapshotMaker(
                        FilesReader(files: disk), treeSize: UInt64(entries.count), after: nil
                    ).check(head)
                    try writer.adopt(head)
                }
                guard inForce <= head.size else { continue }
                while try writer.prune(countMax: 1) > 0 {}
                while try writer.removeSnapshots(besides: [head.size], countMax: 1) > 0 {}
            }
        }
    }

    private static let done: Set<String> = [
        "snapshot/head", "snapshot/512/00000000", "snapshot/512/00000001", "tile/entries/002.p/190",
    ]

    private func names(_ disk: SimulatedDisk) -> Set<String> {
        Set(disk.names.keys.filter { $0.hasPrefix("snapshot/") || $0.hasPrefix("tile/entries/") })
    }

    @Test func `what a snapshot in force stands in for goes, and tiles and policies stay`() throws {
        let disk = try Self.history.disk()
        let before = disk.names.keys.filter { $0.hasPrefix("tile/0/") || $0.hasPrefix("tile/1/") }
        try Self.history.prune(disk)
        #expect(names(disk) == Self.done)
        #expect(before.allSatisfy { disk.names[$0] != nil })
        #expect(!disk.directories.contains("snapshot/256"))
        let report = try TestTrail.report(FilesReader(files: disk))
        #expect(report.damage == nil && report.entryCount == 190, "\(String(describing: report.damage))")
        // Another writer goes on.
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        let entry = TestTrail.entry(702)
        #expect(try writer.integrate([entry], startingAt: 702) == 703)
        #expect(
            try writer.integrate([Self.history.entries[5], Self.history.entries[6]], startingAt: 5) == 703)
        #expect(throws: TrailError.conflict(index: 5)) { try writer.integrate([entry], startingAt: 5) }
    }

    @Test func `a folder goes with its last bundle, and what lies behind the size stays`() throws {
        let disk = try Self.history.disk()
        for name in ["x001/000", "x001/999", "x002/x345/000", "001.p/3", "003.p/7"] {
            let parts = name.split(separator: "/").dropLast()
            var directory = "tile/entries"
            for part in parts {
                directory += "/\(part)"
                try disk.makeDirectory(directory)
            }
            try disk.write("tile/entries/\(name)", [1])
        }
        let writer = try TrailDirectoryWriter(disk, trusting: TestTrail.trust)
        #expect(try writer.prune(countMax: 100) == 0)
        try writer.adopt(Self.history.heads[1])
        #expect(try writer.prune(countMax: 100) == 3)
        #expect(disk.names["tile/entries/001.p/3"] == nil && disk.names["tile/entries/000"] == nil)
        #expect(!disk.directories.contains("tile/entries/001.p"))
        for name in ["x001/000", "x001/999", "x002/x345/000", "003.p/7", "002.p/190"] {
            #expect(disk.names["tile/entries/\(name)"] != nil, "\(name)")
        }
    }

    @Test func `after a crash at any operation the trail verifies, and pruning goes on`() throws {
        let base = try Self.history.disk()
        let whole = SimulatedDisk(files: base.contents)
        try Self.history.prune(whole)
        let count = whole.operationCount
        #expect(count > 40)
        for faultAt in 0..<count {
            for seed in 0..<2 as Range<UInt64> {
                var numbers = SeededNumbers(state: seed << 32 | UInt64(faultAt))
                let disk = SimulatedDisk(files: base.contents)
                disk.faultAt = faultAt
                #expect(throws: (any Error).self) { try Self.history.prune(disk) }
                let restarted = disk.afterCrash(&numbers)
                let report = try TestTrail.report(FilesReader(files: restarted))
                #expect(report.damage == nil, "operation \(faultAt), seed \(seed)")
                try Self.history.prune(restarted)
                #expect(names(restarted) == Self.done, "operation \(faultAt), seed \(seed)")
            }
        }
    }

    @Test func `after a full disk the next attempt goes on, and nothing went before its snapshot`() throws {
        let base = try Self.history.disk()
        let whole = SimulatedDisk(files: base.contents)
        try Self.history.prune(whole)
        var failedCount = 0
        for faultAt in 0..<whole.operationCount {
            let disk = SimulatedDisk(files: base.contents)
            (disk.fault, disk.faultAt) = (.error, faultAt)
            // What a writer tidies up when it is opened may stay.
            let result = Result { try Self.history.prune(disk) }
            if case .failure = result { failedCount += 1 }
            #expect(try TestTrail.report(FilesReader(files: disk)).damage == nil, "operation \(faultAt)")
            try Self.history.prune(disk)
            #expect(names(disk) == Self.done, "operation \(faultAt)")
        }
        #expect(failedCount > 40)
    }

    @Test func `an entry that was pruned is called that, and a gateway without its bundle starts`() throws {
        try TestTrail.withDirectory { path in
            let history = Self.history
            let writer = try TrailDirectoryWriter(openingAt: path, trusting: TestTrail.trust)
            try writer.integrate(history.entries, startingAt: 0)
            try writer.publishCheckpoint(signing: TestTrail.sign)
            let reader = try TrailDirectoryReader(openingAt: path)
            for (number, bytes) in history.segments[1].enumerated() {
                try writer.writeSegment(of: 512, number, bytes)
            }
            try writer.adopt(history.heads[1])
            #expect(try writer.prune(countMax: 100) == 2)
            #expect(throws: TrailError.pruned(index: 511, below: 512)) { try reader.entry(511) }
            #expect(try reader.entry(512) == history.entries[512] && reader.entry(900) == nil)
            #expect(try reader.file(named: "snapshot/head")?.isImmutable == false)
            #expect(try reader.file(named: "snapshot/512/00000000")?.bytes == history.segments[1][0])
            #expect(try reader.snapshotHead() == history.heads[1])
            try writer.prune()
        }
    }
}

extension TrailDirectoryWriter {
    fileprivate func prune() throws { while try prune(countMax: 2) > 0 {} }
}
