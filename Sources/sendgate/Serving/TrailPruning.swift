import AuditTrail
import BundleModel
import CommandTerminal
import Foundation
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import SealedFormat
import Synchronization
import TrailDirectory

/// Lets go of entries that are older than they are to be kept, behind a signed snapshot of what is still needed (decision SG-0076).
///
///     segments durable → `snapshot` entry → a checkpoint covers it → head in force → bundles go → older segments go
///
/// Crash points, each followed by a pass that looks at what is there. After the segments: nobody reads them, and the next pass makes
/// them anew, from the same entries with the same bytes. After the entry, which the store remembers in the same commit: the pass waits
/// for the checkpoint, reads the segments once more and brings them into force. After the head: whichever bundles and older segments
/// are left go then.
final class TrailPruning: Sendable {
    /// How old entries may become, and how far back one may rest on others.
    struct Terms: Hashable, Sendable {
        var keepDays: Int
        var lookBackDays: Int
        /// A snapshot is written whole, so not every bundle makes one.
        var intervalMilliseconds: Int64 = 7 * 86_400_000
        /// How long after a start none is made: what waited while the gateway was down may be of any age, and ends first.
        var startSeconds = 3_600.0

        /// Ids, sends and counters are kept for the retention and no shorter than the longest duty; what was sent at its end may
        /// wait as long as a message lives, and two days more are for a clock and a round that are late.
        static func lookBackDays(retentionDays: Int) -> Int {
            max(retentionDays, MandatoryRule.dischargeHoursMax / 24)
                + Int(NotificationType.ttlSecondsMax / 86_400) + 2
        }

        /// The least that `trail_keep_days` may be: as much again as what may rest on what is gone.
        static func keepDaysMin(retentionDays: Int) -> Int { 2 * lookBackDays(retentionDays: retentionDays) }
    }

    /// What is gone, and what is done about the rest.
    struct Status: Sendable {
        var head: SnapshotHead?
        /// Of the first entry that is kept whatever its kind.
        var keptSince: Instant?
        var snapshotAt: Instant?
        /// What a recorded snapshot waits for.
        var waitsFor: String?
        /// `nil` where nothing is pruned any more.
        var next: Instant?
    }

    /// What the pass needs of the gateway.
    struct Surroundings: Sendable {
        var store: any GateStore
        var library: PublishedTrail
        var reader: TrailDirectoryReader
        /// The size that a checkpoint kept elsewhere was signed over; `nil` where none is configured.
        var externalSize: @Sendable () throws -> UInt64?
        /// The time that entries are given, so that no clock that runs ahead makes them older than they are.
        var now: @Sendable () throws -> Instant
        /// Records the entry, and remembers it in the same commit.
        var record: @Sendable (SnapshotEntry) throws -> Void
    }

    private let terms: Terms?
    private let around: Surroundings
    private let state = Mutex(Status())
    private let isStopped = Atomic(false)
    private let startedAt = ContinuousClock.now
    /// Held by the one who advances.
    private let turn = NSLock()
    /// Whether what an earlier process left to be removed is gone.
    private let isTidy = Atomic(false)

    /// - Parameter terms: `nil` prunes nothing; what was pruned before is told all the same.
    init(_ terms: Terms?, around: Surroundings) throws {
        (self.terms, self.around) = (terms, around)
        try tell()
    }

    var status: Status { state.withLock { $0 } }

    /// Ends ``advance()`` soon, and every later one at once.
    func stop() { isStopped.store(true, ordering: .relaxed) }

    /// Does what can be done now: brings a recorded snapshot into force, lets go of what it stands in for, or makes the next one.
    ///
    /// - Returns: `true`: there is nothing more to do for a while.
    func advance() throws -> Bool {
        guard let terms else { return true }
        return try turn.withLock { try advance(terms) }
    }

    private func advance(_ terms: Terms) throws -> Bool {
        if isStopped.load(ordering: .relaxed) { throw CancellationError() }
        let head = try around.reader.snapshotHead()
        let recorded = try around.store.read { try $0.recordedSnapshot() }
        let pending = recorded.flatMap { $0.size > head?.size ?? 0 ? $0 : nil }
        if let pending {
            guard try mayGo(pending, terms) else { return true }
            try requireLines(of: pending, after: head)
            try around.library.adopt(pending)
            isTidy.store(false, ordering: .relaxed)
            try tell()
        }
        if !isTidy.load(ordering: .relaxed) {
            let size = pending?.size ?? head?.size
            try around.library.prune(keepingSnapshots: Set([size].compactMap(\.self)))
            isTidy.store(true, ordering: .relaxed)
        }
        try makeNext(after: pending ?? head, terms)
        return true
    }

    /// Whether what a snapshot stands in for may go: its entry cannot be taken back any more, and the time is what it was.
    private func mayGo(_ pending: SnapshotHead, _ terms: Terms) throws -> Bool {
        var waitsFor: String?
        if try publishedSize() <= pending.index {
            waitsFor = "the next checkpoint"
        } else if let size = try around.externalSize(), size <= pending.index {
            waitsFor =
                "`external_checkpoint`, which is of \(size) entries and has to be of more than \(pending.index)"
        } else if let newest = try time(of: pending.size - 1),
            try around.now() < newest.advanced(bySeconds: Int64(terms.keepDays) * 86_400)
        {
            waitsFor = "`trail_keep_days`, which was raised since"
        }
        state.withLock { $0.waitsFor = waitsFor }
        return waitsFor == nil
    }

    /// Requires that what the entry signed is there, before anything goes that it stands in for.
    private func requireLines(of pending: SnapshotHead, after head: SnapshotHead?) throws {
        let maker = SnapshotMaker(around.reader, treeSize: try publishedSize(), after: head, step: step())
        do {
            return try maker.check(pending)
        } catch is TrailDamage {}
        // Cut or changed since: the entries are still there, and give the same lines.
        guard let plan = try maker.plan(before: .farAhead, sizeMax: pending.size), plan.size == pending.size,
            try write(plan, with: maker, pending.entry.keepDays, pending.entry.lookBackDays) == pending.entry
        else {
            throw CommandFailure(
                "the entries before \(pending.size) do not give the snapshot that entry \(pending.index) signed",
                hint: "nothing was pruned; run `sendgate audit verify` on this trail",
                status: .foundDifference)
        }
    }

    private func write(
        _ plan: SnapshotMaker<TrailDirectoryReader>.Plan, with maker: SnapshotMaker<TrailDirectoryReader>,
        _ keepDays: Int, _ lookBackDays: Int
    ) throws -> SnapshotEntry {
        try maker.make(plan, keepDays: keepDays, lookBackDays: lookBackDays) {
            try around.library.writeSegment(of: plan.size, $0, $1)
        }
    }

    private func publishedSize() throws -> UInt64 { try around.store.read { try $0.publishedSize() } }

    private func makeNext(after head: SnapshotHead?, _ terms: Terms) throws {
        let now = try around.now()
        let last = try head.flatMap { try time(of: $0.index) }
        let next = last?.advanced(byMilliseconds: terms.intervalMilliseconds)
        state.withLock { $0.next = next ?? now }
        if let next, now < next { return }
        guard (ContinuousClock.now - startedAt) / .seconds(1) >= terms.startSeconds else { return }
        let maker = SnapshotMaker(
            around.reader, treeSize: try publishedSize(), after: head, step: step())
        guard
            let plan = try maker.plan(
                before: now.advanced(bySeconds: -Int64(terms.keepDays) * 86_400))
        else { return }
        // What was begun and never recorded may be of fewer entries.
        try around.library.removeSnapshots(besides: Set([head?.size].compactMap(\.self)))
        do {
            try around.record(write(plan, with: maker, terms.keepDays, terms.lookBackDays))
        } catch {
            // A disk that it filled is given back at once: sends need the room.
            try? around.library.removeSnapshots(besides: Set([head?.size].compactMap(\.self)))
            throw error
        }
        state.withLock { $0.waitsFor = "the next checkpoint" }
    }

    private func tell() throws {
        guard let head = try around.reader.snapshotHead() else { return }
        let (keptSince, snapshotAt) = (try time(of: head.size), try time(of: head.index))
        state.withLock { ($0.head, $0.keptSince, $0.snapshotAt) = (head, keptSince, snapshotAt) }
    }

    private func time(of index: UInt64) throws -> Instant? {
        let bytes =
            try around.store.read { try $0.entry(index)?.bytes } ?? around.reader.entry(index)
        return try bytes.map { try TrailEntry(reading: $0).time }
    }

    /// Called after each piece of work: pauses, so that a fifth of the time is worked.
    private func step() -> () throws -> Void {
        let pace = Pace()
        return { [self] in
            if isStopped.load(ordering: .relaxed) { throw CancellationError() }
            pace.pause()
        }
    }
}

/// Of one pass, on its thread.
private final class Pace {
    private var newest = ContinuousClock.now

    /// Pauses that work is followed by, as in ``StatePass``.
    private static let pausesPerWork = 4.0
    private static let pauseSecondsMax = 0.2

    func pause() {
        let worked = (ContinuousClock.now - newest) / .seconds(1)
        Thread.sleep(forTimeInterval: min(worked * Self.pausesPerWork, Self.pauseSecondsMax))
        newest = .now
    }
}

extension Instant {
    /// Later than every entry.
    fileprivate static let farAhead = Instant(milliseconds: .max)
}

extension TrailPruning.Status {
    /// What `status` says of it; `nil` where all entries are kept.
    var remark: String? {
        var parts: [String] = []
        if let head {
            parts.append(
                "entries are kept from \(head.size) on\(keptSince.map { ", \($0.rfc3339)" } ?? ""), and of those before it the \(head.entry.lineCount) of snapshot \(head.entry.digest.prefix(16)), recorded as entry \(head.index)\(snapshotAt.map { " at \($0.rfc3339)" } ?? "")"
            )
        }
        if let waitsFor {
            parts.append("the next snapshot is recorded and waits for \(waitsFor)")
        } else if let next {
            parts.append("the next snapshot is made from \(next.rfc3339) on, when a bundle is old enough")
        }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }
}
