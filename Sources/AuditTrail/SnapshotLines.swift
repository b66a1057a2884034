import CanonicalJSON
import GateRecords
import GateVocabulary
import OpenSSLCrypto

/// The lines of a snapshot one after another, a segment at a time in memory.
struct SnapshotLines<Reader: TrailReader> {
    private let reader: Reader
    private let head: SnapshotHead
    private var segment: [UInt8] = []
    private var offset = 0
    /// The number of the segment in memory.
    private var number = -1
    private var lineOfSegment = 0
    private var hasher = SHA256.Hasher()
    private var byteCount: UInt64 = 0
    private(set) var lineCount: UInt64 = 0
    private var newest: UInt64?
    private var peeked: (index: UInt64, bytes: [UInt8], entry: TrailEntry)?

    init(_ reader: Reader, _ head: SnapshotHead) {
        self.reader = reader
        self.head = head
    }

    private var path: TrailPath { .segment(size: head.size, number: max(number, 0)) }

    /// The next line; `nil` behind the last. Stays the next one until ``pass()``.
    mutating func next() throws -> (index: UInt64, bytes: [UInt8], entry: TrailEntry)? {
        if let peeked { return peeked }
        guard lineCount < head.entry.lineCount else { return nil }
        if offset == segment.count { try readSegment() }
        lineOfSegment += 1
        guard let end = segment[offset...].firstIndex(of: 0x0A) else { throw damage }
        let bytes = Array(segment[offset..<end])
        offset = end + 1
        // Read whole and canonically, or it would not have the hash that its tile has.
        guard let entry = try? TrailEntry(reading: bytes), entry.index < head.size,
            newest.map({ $0 < entry.index }) ?? true
        else { throw damage }
        peeked = (entry.index, bytes, entry)
        return peeked
    }

    /// Goes on behind the line that ``next()`` gave.
    mutating func pass() {
        guard let peeked else { return }
        newest = peeked.index
        lineCount += 1
        self.peeked = nil
    }

    /// The error that names the line that was read last.
    var damage: TrailDamage { .snapshot(.line(lineOfSegment, in: path)) }

    private mutating func readSegment() throws {
        number += 1
        lineOfSegment = 0
        guard let count = try reader.read(path, into: &segment) else { throw TrailDamage.missing(path) }
        segment.removeLast(segment.count - count)
        offset = 0
        hasher.update(segment)
        byteCount += UInt64(count)
        guard count > 0, byteCount <= head.entry.byteCount else {
            throw TrailDamage.snapshot(.otherLines(path))
        }
    }

    /// Requires that all lines were passed, and that they are the ones that were signed.
    mutating func finish() throws {
        guard try next() == nil, offset == segment.count, byteCount == head.entry.byteCount,
            newest == head.size - 1, Hexadecimal.encode(hasher.finalize().bytes) == head.entry.digest
        else { throw TrailDamage.snapshot(.otherLines(path)) }
    }
}

/// Follows which of the entries before a snapshot are among its lines, where they are there still.
///
/// A verifier that has the bundles still holds the snapshot against them: an entry that should have stayed and is no line is of somebody
/// who was forgotten before the snapshot was made, or was left out.
struct SnapshotSelection {
    private let size: UInt64
    /// People some entry of whom was left out, with the first of these entries.
    private var leftOut: [SubjectID: UInt64] = [:]
    private var forgotten: Set<SubjectID> = []

    init(of head: SnapshotHead) { size = head.size }

    /// A line.
    mutating func keep(_ entry: TrailEntry) throws {
        if entry.kind == .erasure, let subject = Snapshot.person(in: entry) { forgotten.insert(subject) }
        guard entry.index != size - 1, !Snapshot.keeps(entry) else { return }
        throw TrailDamage.snapshot(.kept(index: entry.index))
    }

    /// An entry that is there and no line.
    mutating func leaveOut(_ entry: TrailEntry) throws {
        guard Snapshot.keeps(entry) || entry.index == size - 1 else { return }
        guard entry.index != size - 1, let subject = Snapshot.subject(of: entry) else {
            throw TrailDamage.snapshot(.leftOut(index: entry.index))
        }
        if leftOut[subject] == nil { leftOut[subject] = entry.index }
    }

    func finish() throws {
        let first = leftOut.filter { !forgotten.contains($0.key) }.map(\.value).min()
        if let first { throw TrailDamage.snapshot(.leftOut(index: first)) }
    }
}
