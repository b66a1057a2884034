import GateRecords
import GateVocabulary

/// What of the entries before it an entry may be held against.
package enum EntryStanding: Hashable, Sendable {
    /// It is one of those that stayed of the pruned ones: it was held against what was there when it was recorded, and now tells
    /// only what those after it need.
    case kept
    /// It is among the first after the pruned ones, and may rest on a send that is gone.
    case afterPruned
    /// Everything that it may rest on is there.
    case whole
}

extension TrailVerifier {
    /// What of the trail is gone, and what stands in for it; `nil` of one that has all entries.
    func openSnapshot(_ walk: inout TrailWalk<Reader>, under checkpoint: Checkpoint) throws {
        guard let bytes = try reader.read(.snapshot) else { return }
        do throws(SnapshotDamage) {
            let head = try SnapshotHead(parsing: bytes)
            guard head.index < checkpoint.size else {
                throw .beyondCheckpoint(index: head.index, size: checkpoint.size)
            }
            walk.report.snapshot = head
        } catch {
            throw TrailDamage.snapshot(error)
        }
    }
}

// What stands in for pruned entries: the lines of the snapshot pass where the entries would.

extension TrailWalk {
    /// An entry rests on none that is gone once the gateway has run for the look-back since the newest of these. What it was down for
    /// does not count: a message that waited then ends, and is told of, after it.
    mutating func standing(of entry: TrailEntry, as standing: EntryStanding) -> EntryStanding {
        guard standing == .whole, let head = report.snapshot, report.firstWhole == nil else {
            return standing
        }
        let before = newestBefore ?? entry.time
        newestBefore = entry.time
        // A gateway that was down for long is started again, or first accepts what the clock shows, or restores.
        if ![.start, .clock, .restore].contains(entry.kind) {
            ranMilliseconds += max(0, entry.time.milliseconds - before.milliseconds)
        }
        guard ranMilliseconds > head.lookBackMilliseconds else { return .afterPruned }
        report.firstWhole = (entry.index, entry.time)
        return .whole
    }

    func requireSigned(_ head: SnapshotHead, by bytes: ArraySlice<UInt8>) throws {
        guard let entry = try? TrailEntry(reading: bytes), entry.kind == .snapshot,
            (try? entry.body(SnapshotEntry.self)) == head.entry
        else { throw TrailDamage.snapshot(.unsigned(index: head.index)) }
    }

    /// Holds the lines of the snapshot that are of one bundle, and the bundle if it is there still, against the tile.
    ///
    /// - Parameter tile: At level 0, already authenticated, of 256 entries.
    mutating func checkPruned(_ index: UInt64, against tile: [UInt8]) throws {
        let path = TrailPath.entries(index: index, width: TrailPath.fullWidth)
        let found = try reader.read(path, into: &bundle)
        var offset = 0
        for position in 0..<UInt64(TrailPath.fullWidth) {
            let entryIndex = index << 8 + position
            let line = try lines?.next().flatMap { $0.index == entryIndex ? $0 : nil }
            if let line {
                let leafHash = TreeHash.leaf(line.bytes)
                guard tile.withUnsafeBytes({ leafHash.lies(in: $0, at: 32 * Int(position)) }) else {
                    throw lines?.damage ?? TrailDamage.entry(index: entryIndex, in: path)
                }
                try selection?.keep(line.entry)
                newestBefore = line.entry.time
                try examine(
                    line.bytes[...], leafHash: leafHash, index: entryIndex, in: path, as: .kept)
                lines?.pass()
            }
            guard let found else { continue }
            let range = bundle.withUnsafeBytes {
                EntryBundle.next(in: UnsafeRawBufferPointer(rebasing: $0[..<found]), at: &offset)
            }
            guard let range,
                tile.withUnsafeBytes({ tile in
                    TreeHash.leaf(Array(bundle[range])).lies(in: tile, at: 32 * Int(position))
                })
            else { throw TrailDamage.entry(index: entryIndex, in: path) }
            guard line == nil, let entry = try? TrailEntry(reading: bundle[range]) else { continue }
            try selection?.leaveOut(entry)
        }
        if let found, offset != found {
            throw TrailDamage.trailingBytes(in: path, byteCount: found - offset)
        }
        progress?(report.entryCount, size)
    }

    mutating func finishLines() throws {
        guard lines != nil else { return }
        try lines?.finish()
        try selection?.finish()
        (lines, selection) = (nil, nil)
    }
}
