import CanonicalJSON
package import GateRecords
import GateVocabulary

/// The entries of a pruned trail that stand in for those that are gone (decision SG-0076).
///
/// A snapshot is the entries before ``SnapshotEntry/size`` that are still needed, as they are and in their order, one a line. Each
/// is proved by its tile, which stays, so a snapshot can leave something out and make nothing up; what it leaves out is bound by the
/// digest in its `snapshot` entry, which a signed checkpoint covers before the first bundle goes.
package enum Snapshot {
    /// Lines are cut into files behind the line that fills one.
    package static let segmentByteCount = 1 << 20
    /// A filled segment and one line more.
    package static let segmentByteCountMax = segmentByteCount + TrailEntry.byteCountMax + 1

    /// Entries that tell nothing any more once they are older than everything that an entry may rest on.
    ///
    /// All others stay: of people who were not forgotten, of bundles, keys, clocks and restores, and of kinds that this build does not
    /// know. A change of this list is a new ``SnapshotHead/format``.
    package static let passingKinds: Set<EntryKind> = [
        .send, .redecision, .delivery, .unsent, .cancel, .acknowledgement, .mandatoryUnreached, .receipt,
        .reply, .switchOff, .review, .policyRefused, .unknownPeer, .explain, .stop,
    ]

    /// Whether an entry stays if nobody is forgotten.
    static func keeps(_ entry: TrailEntry) -> Bool { !passingKinds.contains(entry.kind) }

    /// Whose entry it is; `nil` of one that stays whoever is forgotten.
    static func subject(of entry: TrailEntry) -> SubjectID? {
        entry.kind == .erasure ? nil : person(in: entry)
    }

    static func person(in entry: TrailEntry) -> SubjectID? {
        entry.members["subject"]?.stringValue.flatMap { SubjectID(hexadecimal: $0) }
    }
}

/// Which snapshot is in force: the file `snapshot/head`.
package struct SnapshotHead: Hashable, Sendable {
    /// The version of the lines and of the rule that chooses them.
    package static let format: Int64 = 1
    package static let byteCountMax = 4_096

    package var entry: SnapshotEntry
    /// The index of the `snapshot` entry that says the same.
    package var index: UInt64

    package init(_ entry: SnapshotEntry, recordedAs index: UInt64) {
        (self.entry, self.index) = (entry, index)
    }

    package var size: UInt64 { entry.size }
    package var lookBackMilliseconds: Int64 { Int64(entry.lookBackDays) * 86_400_000 }

    package var bytes: [UInt8] {
        // Sound: it holds numbers and digests, a few hundred bytes.
        let recorded = try? entry.bytes(index: index, time: Instant(milliseconds: 0))
        guard let recorded, var object = (try? TrailEntry(reading: recorded))?.members else {
            preconditionFailure("a snapshot of \(size) entries has no bytes")
        }
        object["entry"] = .integer(Int64(index))
        object["format"] = .integer(Self.format)
        return CanonicalJSON.write(object)
    }

    package init(parsing bytes: [UInt8]) throws(SnapshotDamage) {
        guard bytes.count <= Self.byteCountMax,
            let value = try? CanonicalJSON.readCanonical(bytes[...], limits: .entry),
            let object = value.objectValue, let format = object["format"]?.integerValue
        else { throw .malformedHead }
        guard format == Self.format else { throw .newerFormat(format) }
        guard let index = object["entry"]?.integerValue, index > 0,
            let entry = try? SnapshotEntry.read(
                JSONObject(object.filter { $0.key != "entry" && $0.key != "format" }), isPassingOver: false),
            entry.size > 0, entry.size % 256 == 0, entry.size <= UInt64(index), entry.lineCount > 0,
            (1...100_000).contains(entry.lookBackDays)
        else { throw .malformedHead }
        self.init(entry, recordedAs: UInt64(index))
    }
}

/// A snapshot that a verifier does not take in place of pruned entries.
package enum SnapshotDamage: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    case malformedHead
    case newerFormat(Int64)
    /// The checkpoint is older than the snapshot, which a checkpoint covered before it came into force.
    case beyondCheckpoint(index: UInt64, size: UInt64)
    /// The entry that ``SnapshotHead/index`` names does not say the same.
    case unsigned(index: UInt64)
    /// The root in the entry is not that of the tree before it.
    case otherTree(index: UInt64)
    /// The lines are not those whose digest was signed: cut, changed or of another snapshot.
    case otherLines(TrailPath)
    /// A line is no entry that the tree has at its place, or does not follow the one before it.
    case line(Int, in: TrailPath)
    /// An entry that is there still should have stayed, and is not among the lines.
    case leftOut(index: UInt64)
    /// A line is of an entry that should have gone.
    case kept(index: UInt64)

    package var message: String {
        switch self {
        case .malformedHead: "`\(TrailPath.snapshot)` is no head of a snapshot"
        case .newerFormat(let format):
            "`\(TrailPath.snapshot)` is of format \(format), and this build knows \(SnapshotHead.format)"
        case .beyondCheckpoint(let index, let size):
            "`\(TrailPath.snapshot)` was signed by entry \(index), and the checkpoint by \(size) entries: the checkpoint is older"
        case .unsigned(let index):
            "`\(TrailPath.snapshot)` is not what entry \(index) says of the snapshot: it was changed, or is of another trail"
        case .otherTree(let index): "the `snapshot` entry \(index) has the root of another tree"
        case .otherLines(let path):
            "the lines of the snapshot up to `\(path)` are not those that were signed: they were cut or changed"
        case .line(let number, let path):
            "line \(number) of `\(path)` is no entry that the signed tree has at its place"
        case .leftOut(let index):
            "entry \(index) has to stay, and the snapshot leaves it out: nobody who was forgotten is in it"
        case .kept(let index): "entry \(index) is in the snapshot, and had to go"
        }
    }

    var index: UInt64? {
        switch self {
        case .leftOut(let index), .kept(let index), .unsigned(let index), .otherTree(let index): index
        default: nil
        }
    }

    /// The next step, where there is one of its own.
    package var hint: String? {
        if case .newerFormat = self { return "use the build that wrote the trail, or a newer one" }
        return nil
    }
}
