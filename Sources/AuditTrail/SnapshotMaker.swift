package import GateRecords
package import GateVocabulary
import OpenSSLCrypto

/// Makes the snapshot of the entries before a size, from the one in force and the entries since.
///
/// The same entries give the same bytes, whichever snapshots were made in between, so that one that was begun and lost is made
/// again, and whoever has the entries can make it themselves. Reads them twice and holds one segment, one bundle, and 40 bytes for each
/// person who was ever forgotten.
package struct SnapshotMaker<Reader: TrailReader> {
    private let reader: Reader
    private let treeSize: UInt64
    private let head: SnapshotHead?
    /// Called after each bundle and each segment read. May pause, and may throw to end it.
    private let step: () throws -> Void

    /// The entries that a snapshot of this size stands in for.
    package struct Plan: Sendable {
        /// The entries before it go but for those that the snapshot keeps.
        package let size: UInt64
        /// When the newest of these was recorded.
        package let newest: Instant
        fileprivate let forgotten: Set<SubjectID>
    }

    /// - Parameters:
    ///   - treeSize: Of a checkpoint whose tiles were verified.
    ///   - head: The snapshot in force.
    package init(
        _ reader: Reader, treeSize: UInt64, after head: SnapshotHead?, step: @escaping () throws -> Void = {}
    ) {
        (self.reader, self.treeSize, self.head, self.step) = (reader, treeSize, head, step)
    }

    /// - Parameters:
    ///   - cutoff: Entries from then on stay. Only whole bundles go.
    ///   - sizeMax: Entries from there on stay, too.
    /// - Returns: `nil` where nothing goes.
    package func plan(before cutoff: Instant, sizeMax: UInt64 = .max) throws -> Plan? {
        var forgotten: Set<SubjectID> = []
        func follow(_ entry: TrailEntry) {
            guard entry.kind == .erasure, let subject = Snapshot.person(in: entry) else { return }
            forgotten.insert(subject)
        }
        var size = head?.size ?? 0
        var newest: Instant?
        while size + 256 <= min(treeSize, sizeMax) {
            let entries = try bundle(size >> 8).map { try Self.read($0) }
            guard let last = entries.last, last.time < cutoff else { break }
            entries.forEach(follow)
            newest = last.time
            size += 256
            try step()
        }
        guard let newest else { return nil }
        try forEachLine(of: head) { entry, _ in follow(entry) }
        return Plan(size: size, newest: newest, forgotten: forgotten)
    }

    /// - Parameter segment: Given the segments in their order, the first with the number 0.
    /// - Returns: What its entry says.
    package func make(
        _ plan: Plan, keepDays: Int, lookBackDays: Int,
        segment: (_ number: Int, _ bytes: [UInt8]) throws -> Void
    ) throws -> SnapshotEntry {
        var (held, number, hasher): ([UInt8], Int, SHA256.Hasher) = ([], 0, SHA256.Hasher())
        var (lineCount, byteCount): (UInt64, UInt64) = (0, 0)
        func flush() throws {
            guard !held.isEmpty else { return }
            try segment(number, held)
            hasher.update(held)
            byteCount += UInt64(held.count)
            number += 1
            held.removeAll(keepingCapacity: true)
        }
        func add(_ entry: TrailEntry, _ bytes: [UInt8]) throws {
            let isForgotten = Snapshot.subject(of: entry).map(plan.forgotten.contains) ?? false
            // The first entry behind the snapshot is judged by the one before it, whatever that is.
            guard entry.index == plan.size - 1 || Snapshot.keeps(entry) && !isForgotten else { return }
            held += bytes + [0x0A]
            lineCount += 1
            if held.count >= Snapshot.segmentByteCount { try flush() }
        }
        try forEachLine(of: head, add)
        for index in (head?.size ?? 0) >> 8..<plan.size >> 8 {
            for bytes in try bundle(index) { try add(Self.read(bytes), bytes) }
            try step()
        }
        try flush()
        var hashes = TileHashes(reader, size: treeSize)
        return SnapshotEntry(
            size: plan.size, root: try hashes.root(ofFirst: plan.size),
            digest: Hexadecimal.encode(hasher.finalize().bytes), byteCount: byteCount, lineCount: lineCount,
            keepDays: keepDays, lookBackDays: lookBackDays)
    }

    /// Requires that the lines of a snapshot are there, and are the ones that its entry says.
    package func check(_ head: SnapshotHead) throws {
        try forEachLine(of: head) { _, _ in }
    }

    /// - Parameter head: `nil` has no lines.
    private func forEachLine(
        of head: SnapshotHead?, _ body: (TrailEntry, [UInt8]) throws -> Void
    ) throws {
        guard let head else { return }
        var lines = SnapshotLines(reader, head)
        while let line = try lines.next() {
            try body(line.entry, line.bytes)
            lines.pass()
            if lines.lineCount % 1_024 == 0 { try step() }
        }
        try lines.finish()
    }

    private static func read(_ bytes: [UInt8]) throws -> TrailEntry {
        do throws(TrailEntryError) {
            return try TrailEntry(reading: bytes)
        } catch {
            throw SnapshotFailure.unreadableEntry(error)
        }
    }

    /// The entries of a full bundle, each as its tile has it.
    private func bundle(_ index: UInt64) throws -> [[UInt8]] {
        let path = TrailPath.entries(index: index, width: TrailPath.fullWidth)
        guard let bytes = try reader.read(path) else { throw TrailDamage.missing(path) }
        let tile = try reader.readTile(.tile(level: 0, index: index, width: TrailPath.fullWidth))
        let ranges = EntryBundle.ranges(in: bytes)
        return try (0..<TrailPath.fullWidth).map { position in
            let entry = position < ranges.count ? Array(bytes[ranges[position]]) : []
            guard tile.withUnsafeBytes({ TreeHash.leaf(entry).lies(in: $0, at: 32 * position) }) else {
                throw TrailDamage.entry(index: index << 8 + UInt64(position), in: path)
            }
            return entry
        }
    }
}

/// Why no snapshot can be made. Nothing is pruned then.
package enum SnapshotFailure: Error, Hashable, Sendable, CustomStringConvertible {
    case unreadableEntry(TrailEntryError)

    package var description: String {
        switch self {
        case .unreadableEntry(let error): "an entry cannot be read: \(error.message)"
        }
    }
}
