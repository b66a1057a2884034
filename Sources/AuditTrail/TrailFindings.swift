package import CanonicalJSON
package import GateRecords
package import GateVocabulary
package import OpenSSLCrypto
import SealedFormat

/// A statement that a verification has established, on its own and no more than that.
package enum TrailFact: Hashable, Sendable {
    /// The checkpoint carries valid signatures by these keys of the trail.
    case signed(keyNames: [String])
    /// Every entry and every tile was hashed again and leads to the signed root. Says nothing about what the
    /// holder of the signing key may have replaced as a whole.
    case consistent(size: UInt64)
    /// The same of the entries from `first` on. Those before it are gone but for `kept`, and the tiles over all of them lead to the
    /// signed root.
    case consistentFrom(first: UInt64, kept: UInt64, size: UInt64)
    /// From this entry on none rests on one that is gone.
    case wholeFrom(UInt64, Instant)
    /// Every entry is canonical, with a dense index and time, and names no policy but the one in force; `withSchema`: and has its kind's members only.
    case wellFormed(withSchema: Bool)
    /// The trail still begins with all that a checkpoint kept elsewhere had signed.
    case appendOnly(since: UInt64)
    /// An entry of the kind `restore` cites the tree before it, and that is what it cites.
    case continues(origin: String, size: UInt64)
    /// A witness saw this very checkpoint, at Unix seconds.
    case witnessed(by: String, atSeconds: UInt64)

    package var message: String {
        switch self {
        case .signed(let names): "signed by " + names.map { "`\($0)`" }.joined(separator: ", ")
        case .consistent(let size): "consistent: \(size) entries were rehashed and give the signed root"
        case .consistentFrom(let first, let kept, let size):
            "consistent: the entries before \(first) were pruned, but for \(kept) that a signed snapshot keeps; these and the \(size - first) from there on were rehashed and, with the hashes of the others, give the signed root"
        case .wholeFrom(let index, let time):
            "whole from entry \(index), \(time.rfc3339), on: what an entry may rest on is there"
        case .wellFormed(let withSchema):
            "well-formed: canonical entries, dense index, time never decreasing but where an operator accepted it, every policy named where it was in force"
                + (withSchema ? ", only the members of each kind" : "")
        case .appendOnly(let size): "append-only since the external checkpoint of \(size) entries"
        case .continues(let origin, let size):
            "restored: it continues the \(size) entries of `\(origin)`, as its `restore` entry cites them"
        case .witnessed(let name, let seconds):
            "witnessed by `\(name)` at \(Self.text(ofSeconds: seconds))"
        }
    }
}

extension TrailFact {
    private static func text(ofSeconds seconds: UInt64) -> String {
        // A witness may sign any time up to 2⁶³−1 seconds; RFC 3339 ends with the year 9999.
        guard let signed = Int64(exactly: seconds), signed <= Instant.rfc3339Max.seconds else {
            return "\(seconds) Unix seconds"
        }
        return Instant(seconds: signed).rfc3339
    }
}

/// The first thing found wrong, named as closely as the hashes allow.
package enum TrailDamage: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    case missing(TrailPath)
    /// Both counts are bytes.
    case wrongLength(TrailPath, byteCount: Int, expected: Int)
    /// The checkpoint is not this trail's, or not signed.
    case checkpoint(CheckpointError)
    /// The tile does not give the hash its parent, or the signed root, has for it. `hash` is the first in it
    /// that what lies below does not confirm, counted from 0.
    case tile(TrailPath, hash: Int?)
    /// The entry's bytes, or its length, are not what the tree has; `nil` in `expected` when the bundle ends
    /// before it.
    case entry(index: UInt64, in: TrailPath)
    /// Bytes follow the last entry of a bundle.
    case trailingBytes(in: TrailPath, byteCount: Int)
    /// The entry is in the tree, and is no entry: its writer signed it.
    case malformedEntry(index: UInt64, in: TrailPath, TrailEntryError)
    /// The entry says it is another.
    case wrongIndex(index: UInt64, in: TrailPath, found: UInt64)
    /// The entry says it is older than the one before.
    case timeDecreased(index: UInt64, in: TrailPath)
    case schema(index: UInt64, in: TrailPath, Violation)
    /// The process that wrote the entry asked other gates shortly before.
    case gates(index: UInt64, in: TrailPath, GateRuns.Break)
    /// The entry names a bundle that was not in force.
    case policy(in: TrailPath, BundlesInForce.Break)
    /// The entry has an id that one before it has.
    case issued(in: TrailPath, IssuedIDs.Break)
    /// A `restore` entry cites another tree than the one before it.
    case falseCitation(index: UInt64)
    /// All files agree with one another, and not with the signed root: the history was exchanged as a whole.
    case otherTree(signed: SHA256Digest, found: SHA256Digest)
    /// The external checkpoint is not this trail's, or not signed.
    case externalCheckpoint(CheckpointError)
    /// The trail is shorter than a checkpoint kept elsewhere: entries are gone.
    case rolledBack(size: UInt64, externalSize: UInt64)
    /// The trail does not begin with what a checkpoint kept elsewhere signed: history was rewritten.
    case rewritten(since: UInt64)
    /// The snapshot that stands in for pruned entries.
    case snapshot(SnapshotDamage)

    /// The first entry that is certain to be affected, when there is one.
    package var firstEntry: UInt64? {
        switch self {
        case .missing(let path), .wrongLength(let path, _, _), .trailingBytes(let path, _):
            path.entryRange.isEmpty ? nil : path.entryRange.lowerBound
        case .snapshot(let damage): damage.index
        case .tile(let path, let hash):
            path.entryRange.lowerBound + (UInt64(hash ?? 0) << (8 * path.level))
        case .entry(let index, _), .malformedEntry(let index, _, _), .wrongIndex(let index, _, _),
            .timeDecreased(let index, _), .schema(let index, _, _), .gates(let index, _, _):
            index
        case .policy(_, let found): found.index
        case .issued(_, let found): found.index
        case .rolledBack(let size, _): size
        case .falseCitation(let index): index
        case .checkpoint, .otherTree, .externalCheckpoint, .rewritten: nil
        }
    }

    /// The next step, where this damage has one of its own.
    package var hint: String? {
        switch self {
        case .policy: BundlesInForce.Break.hint
        case .issued: IssuedIDs.Break.hint
        case .snapshot(let damage): damage.hint
        default: nil
        }
    }

    package var message: String {
        switch self {
        case .missing(let path): "`\(path)` is missing"
        case .wrongLength(let path, let byteCount, let expected):
            "`\(path)` has \(byteCount) bytes instead of \(expected)"
        case .checkpoint(let error): "`\(TrailPath.checkpoint)` is damaged: \(error.message)"
        case .tile(let path, let hash):
            "`\(path)` is damaged" + (hash.map { " at hash \($0)" } ?? "")
                + ": it does not lead to the signed root"
        case .entry(let index, let path): "entry \(index) in `\(path)` is not the entry that was signed"
        case .trailingBytes(let path, let byteCount):
            "`\(path)` is damaged: \(byteCount) bytes follow its last entry"
        case .malformedEntry(let index, let path, let error):
            "entry \(index) in `\(path)` was signed but is no valid entry: \(error.message)"
        case .wrongIndex(let index, let path, let found): "entry \(index) in `\(path)` calls itself \(found)"
        case .timeDecreased(let index, let path):
            "entry \(index) in `\(path)` is dated before the entry it follows"
        case .schema(let index, let path, let violation):
            "entry \(index) in `\(path)` has what its kind may not have: \(violation)"
        case .gates(let index, let path, let found):
            "entry \(index) in `\(path)` was decided by \(found.gateCount) gates, and entry \(found.earlierIndex) by \(found.earlierGateCount), under the same version of sendgate"
        case .policy(let path, let found): "\(found.message); it is in `\(path)`"
        case .issued(let path, let found): "\(found.message); it is in `\(path)`"
        case .falseCitation(let index):
            "the `restore` entry \(index) cites a tree that this one does not begin with"
        case .otherTree(let signed, let found):
            "every file agrees with the others, but they give the root \(found), and \(signed) was signed"
        case .externalCheckpoint(let error): "the external checkpoint cannot be used: \(error.message)"
        case .rolledBack(let size, let externalSize):
            "the trail has \(size) entries, but a checkpoint kept elsewhere signed \(externalSize): entries are gone"
        case .snapshot(let damage): damage.message
        case .rewritten(let size):
            "the trail does not begin with the \(size) entries that a checkpoint kept elsewhere signed: it was rewritten"
        }
    }
}
