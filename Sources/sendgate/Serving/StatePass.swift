import AuditTrail
import CommandTerminal
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Synchronization
import TrailDirectory

/// A store and the trail that it wrote, held against each other (``StateAudit``), a share of the people at a time.
struct StateComparison {
    let store: any GateStore
    let trail: TrailDirectoryReader
    let trust: TrailTrust
    let clock: any Clock
    /// Called after each piece of work, with what it was. May pause, and may throw to end it.
    var progress: (Progress) throws -> Void = { _ in }

    enum Progress {
        /// So many entries were applied, and the sends in them compared.
        case reading(UInt64, sends: Int)
        case comparing(Int, of: Int)
    }

    /// What is compared on one snapshot, and how many entries are applied, between two calls of ``progress``: a millisecond or
    /// two. The gateway's threads have higher rank, and yet pieces of 200 and 256, 40 ms each, made the slowest of 1,000 sends wait
    /// five times as long (SG-0070).
    private static let pieceCount = 16

    /// Sends are kept this long whatever is configured. With a retention that was raised, older ones are gone and no loss.
    private var keptSince: Instant { clock.now().advanced(bySeconds: -Retention.daysMin * 86_400) }

    /// - Parameter found: Told of each piece that has differences.
    /// - Throws: `CommandFailure` for a trail that is damaged or shorter than what was published.
    func compare(
        _ share: StateFold.Share, found: ([StateAudit.Difference]) throws -> Void
    ) throws {
        var fold = try published(share)
        while try !store.read({ try follow(&fold, $0) }) { try settle(&fold) }
        try settle(&fold)
        let items = try store.read { reading in
            let count = try reading.entryCount()
            guard fold.next <= count else {
                try found([
                    StateAudit.Difference(
                        what:
                            "the databases end at entry \(count), and the trail has \(fold.next): an old copy was put back"
                    )
                ])
                return [StateAudit.Item]()
            }
            return try StateAudit(fold, reading, keptSince: keptSince).items()
        }
        var done = 0
        // A damaged page is met again and again, and named once.
        var shared: Set<StateAudit.Difference> = []
        while done < items.count {
            let piece = items[done..<min(done + Self.pieceCount, items.count)]
            let differences = try store.read { reading in
                while try !follow(&fold, reading) {}
                try fold.settle { try StateAudit.isStored($0, $1, in: reading) }
                let audit = StateAudit(fold, reading, keptSince: keptSince)
                return try piece.flatMap { try audit.differences(of: $0) }
            }.filter { $0.subject != nil || shared.insert($0).inserted }
            if !differences.isEmpty { try found(differences) }
            done = piece.endIndex
            try progress(.comparing(done, of: items.count))
        }
    }

    /// What the published trail tells, all of it verified.
    private func published(_ share: StateFold.Share) throws -> StateFold {
        let strays = try store.read { try StateAudit.strays(in: share, of: $0) }
        // Before its first checkpoint a gateway still holds every entry.
        guard try trail.byteCount(of: .checkpoint) != nil else {
            return StateFold(of: share, sendsSince: keptSince, strays: strays)
        }
        while true {
            let snapshot = try trail.snapshotHead()
            var fold = StateFold(of: share, sendsSince: keptSince, strays: strays)
            let report = try TrailVerifier(trail, trusting: trust, examining: .hashing).verify(
                visit: { entry in
                    try Self.apply(Array(entry.bytes), at: entry.index, to: &fold)
                    if entry.index % UInt64(Self.pieceCount) == 0 { try settle(&fold) }
                })
            guard let damage = report.damage else { return fold }
            // What was to be read next went meanwhile, behind another snapshot, which there is once in some days.
            if try trail.snapshotHead() != snapshot { continue }
            throw CommandFailure(
                damage.message, hint: damage.hint ?? "run `sendgate audit verify` on this trail first",
                status: .foundDifference)
        }
    }

    /// Compares the sends that came since the last time, so that memory never holds those of a month.
    private func settle(_ fold: inout StateFold) throws {
        repeat {
            let count =
                fold.hasUnsettled
                ? try store.read { reading in
                    try fold.settle(Self.pieceCount) { try StateAudit.isStored($0, $1, in: reading) }
                } : 0
            try progress(.reading(fold.next, sends: count))
        } while fold.hasUnsettled
    }

    /// Applies what the store has written since.
    ///
    /// - Returns: Whether that was all of it; else there is more than one snapshot should last for.
    private func follow(_ fold: inout StateFold, _ reading: any StoreReading) throws -> Bool {
        let count = try reading.entryCount()
        let end = min(fold.next + 10_000, count)
        while fold.next < end {
            let held = try reading.entries(from: fold.next, limit: 1_000)
            if let first = held.first, first.index == fold.next {
                for entry in held { try Self.apply(entry.bytes, at: entry.index, to: &fold) }
            } else if let published = try trail.entry(fold.next) {
                // The store has let go of it.
                try Self.apply(published, at: fold.next, to: &fold)
            } else {
                throw CommandFailure(
                    "the trail has \(fold.next) entries, and the databases published \(try reading.publishedSize())",
                    hint: "name the newest trail there is with `--trail`", status: .foundDifference)
            }
        }
        return fold.next >= count
    }

    /// How many shares everybody in the store is.
    static func shareCount(in store: any GateStore) throws -> Int {
        var (count, last) = (0, SubjectID?.none)
        while true {
            let page = try store.read { try $0.people(after: last, limit: 10_000) }
            count += page.count
            guard let newest = page.last else { return StateFold.Share.count(ofPeople: count) }
            last = newest
        }
    }

    private static func apply(_ bytes: [UInt8], at index: UInt64, to fold: inout StateFold) throws {
        do {
            try fold.apply(bytes)
        } catch {
            throw CommandFailure(
                "entry \(index) cannot be applied: \(error)",
                hint: "run `sendgate audit verify` on this trail", status: .foundDifference)
        }
    }
}

/// The pass of the running gateway over everything that is stored, share after share, again and again.
///
/// It works a fifth of its time. A gateway that is started again goes on with the share that it was in.
final class StatePass: Sendable {
    private struct Found {
        var comparedCount: Int64 = 0
        var passCount: Int64 = 0
        /// By the index of the share that they were found in.
        var differences: [Int: [StateAudit.Difference]] = [:]
    }
    private let found = Mutex(Found())
    private let isStopped = Atomic(false)
    private let store: any GateStore
    let comparison: @Sendable () throws -> StateComparison
    private let place: PassPlace

    /// Differences kept of a share; all of them are in the log.
    private static let differenceCountMax = 100
    /// Pauses a second of work is followed by.
    private static let pausesPerWork = 4
    /// A stop is noticed after so long.
    private static let pauseSecondsMax = 0.2

    /// - Parameters:
    ///   - directory: Keeps how far the pass is, for the next process.
    ///   - comparison: With the keys that the trail is signed with now.
    init(
        _ store: any GateStore, directory: String,
        comparison: @escaping @Sendable () throws -> StateComparison
    ) {
        self.store = store
        self.comparison = comparison
        place = PassPlace(in: directory, "audit-place")
    }

    /// What was found and is not settled, a bounded number of it.
    var differences: [StateAudit.Difference] {
        found.withLock { found in
            found.differences.sorted { $0.key < $1.key }.flatMap(\.value)
        }
    }

    /// Things that were compared, and passes over all of them, since the start.
    var counts: (compared: Int64, passes: Int64) { found.withLock { ($0.comparedCount, $0.passCount) } }

    /// Ends ``advance(found:)`` soon, and every later one at once.
    func stop() { isStopped.store(true, ordering: .relaxed) }

    /// Compares the next share. Blocks its thread, for hours where people and entries are many.
    ///
    /// - Parameter differ: Told of each piece that has differences.
    /// - Returns: Whether that was the last share.
    func advance(found differ: ([StateAudit.Difference]) -> Void) throws -> Bool {
        if isStopped.load(ordering: .relaxed) { throw CancellationError() }
        let share = try next()
        place.write(Int64(share.index), Int64(share.count))
        var comparison = try comparison()
        var newest = ContinuousClock.now
        var compared = 0
        comparison.progress = { [self] progress in
            switch progress {
            case .reading(_, let sendCount): found.withLock { $0.comparedCount += Int64(sendCount) }
            case .comparing(let count, _):
                found.withLock { $0.comparedCount += Int64(count - compared) }
                compared = count
            }
            let end = ContinuousClock.now + (ContinuousClock.now - newest) * Self.pausesPerWork
            repeat {
                if isStopped.load(ordering: .relaxed) { throw CancellationError() }
                Thread.sleep(forTimeInterval: max(min((end - .now) / .seconds(1), Self.pauseSecondsMax), 0))
            } while .now < end
            newest = .now
        }
        var differences: [StateAudit.Difference] = []
        try comparison.compare(share) { piece in
            differences += piece.prefix(Self.differenceCountMax - differences.count)
            // At once: what is found is told before the share has ended.
            found.withLock { $0.differences[share.index] = differences }
            differ(piece)
        }
        let isLast = share.index == share.count - 1
        found.withLock { found in
            found.differences[share.index] = differences.isEmpty ? nil : differences
            if isLast {
                found.passCount += 1
                found.differences = found.differences.filter { $0.key < share.count }
            }
        }
        place.write(isLast ? 0 : Int64(share.index + 1), isLast ? 0 : Int64(share.count))
        return isLast
    }

    private func next() throws -> StateFold.Share {
        if let (index, count) = place.read(), count > 0, count <= Int64(StateFold.Share.countMax),
            index < count
        {
            return StateFold.Share(index: Int(index), count: Int(count))
        }
        return StateFold.Share(index: 0, count: try StateComparison.shareCount(in: store))
    }
}
