package import AuditTrail
import Glibc

/// What the file system was asked to do when it failed.
package enum FileSystemCall: String, Hashable, Sendable {
    case open, read, write, rename, makeDirectory, remove, list, lock
}

/// Why a trail directory cannot be used, or could not be written.
package enum TrailError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    /// The file system refused; nothing that was published is affected, and trying again later is right.
    /// `path` is relative to the trail's directory, `code` is `errno`.
    case failed(FileSystemCall, path: String, code: Int32)
    /// What was written may or may not be on the disk, and asking again would not tell: the kernel drops the
    /// pages it could not write and calls the next sync a success. The process has to stop; a restart reads
    /// what is really there.
    case syncFailed(path: String, code: Int32)
    /// Another process has the directory open for writing.
    case inUse
    /// A file is longer than any of its name can be, or no regular file.
    case notTrailFile(path: String)
    /// The directory holds another trail than the one that is to be written.
    case otherOrigin(expected: String, found: String)
    /// What the last checkpoint signed is not all there. Appending would build on it, so nothing starts.
    case damaged(TrailDamage)
    /// The directory ends before what was published from it once: it is an old copy.
    case rolledBack(size: UInt64, publishedSize: UInt64)
    /// The directory has entries that the store does not know: the store is an old copy.
    case aheadOfStore(size: UInt64, entryCount: UInt64)
    /// The entry is one of those that were let go of.
    case pruned(index: UInt64, below: UInt64)
    /// Entries were handed over that do not follow the last one.
    case gap(expected: UInt64, found: UInt64)
    /// An entry that is already in the tree was handed over with other bytes.
    case conflict(index: UInt64)
    /// An entry of no or more than 65,535 bytes.
    case unacceptableEntry(index: UInt64, byteCount: Int)
    /// What the signer returned is not the checkpoint it was given, signed by a key of this trail.
    case signerMismatch(CheckpointError?)
    /// What was just written does not lead from the last checkpoint to this one. Nothing was signed.
    case inconsistent(size: UInt64)
    /// A policy's bytes do not have the digest they are filed under.
    case wrongPolicyDigest(digest: String)
    /// Line `line` of the key file, counted from 1, is no verifier key.
    case malformedVerifierKey(line: Int)

    package var message: String {
        switch self {
        case .failed(let operation, let path, let code):
            "cannot \(Self.verb(operation)) `\(path)`: \(Self.reason(code))"
        case .syncFailed(let path, let code):
            "cannot make `\(path)` durable: \(Self.reason(code)); the process has to stop, and its restart reads what is on the disk"
        case .inUse: "another process is writing to the trail directory"
        case .notTrailFile(let path): "`\(path)` is not a file of this trail: too long, or no regular file"
        case .otherOrigin(let expected, let found):
            "the directory holds the trail `\(found)`, and `origin` says `\(expected)`; an origin names one trail for ever: set it back, or give the new one an empty state and trail directory"
        case .damaged(.snapshot(.newerFormat(let format))):
            "\(SnapshotDamage.newerFormat(format).message): use the build that wrote the trail, or a newer one"
        case .damaged(let damage):
            "the trail is damaged: \(damage.message); restore the directory from a copy and check it with `sendgate audit verify`"
        case .rolledBack(let size, let publishedSize):
            "the trail directory holds \(size) entries, but \(publishedSize) were published from it; an old copy was put in its place"
        case .aheadOfStore(let size, let entryCount):
            "the trail directory holds \(size) entries, and the databases know \(entryCount): an old copy of them was put in place; put the newer `gate.db` and `subjects.db` back, with their `-wal` files, or, where they are lost, bring the missing entries back with `sendgate restore`"
        case .pruned(let index, let size):
            "entry \(index) was pruned: the trail is kept from entry \(size) on"
        case .gap(let expected, let found): "entry \(found) was to be published before entry \(expected)"
        case .conflict(let index):
            "entry \(index) is published with other bytes than the databases have: one of the two was changed, or they are of two copies of a gateway that both went on; put `gate.db` and `subjects.db` back that belong to this trail, or restore them from it with `sendgate restore`"
        case .unacceptableEntry(let index, let byteCount):
            "entry \(index) has \(byteCount) bytes; 1 to 65,535 can be published"
        case .signerMismatch(let error):
            "the signed checkpoint is not the one to be published"
                + (error.map { ": \($0.message)" } ?? "; the signer changed it")
        case .inconsistent(let size):
            "the files for \(size) entries do not continue the last checkpoint; nothing was signed"
        case .wrongPolicyDigest(let digest): "the policy bundle filed as `\(digest)` has another digest"
        case .malformedVerifierKey(let line): "line \(line) of the key file is no verifier key"
        }
    }

    /// Whether the process has to stop.
    package var isFatal: Bool {
        if case .syncFailed = self { true } else { false }
    }

    /// Whether something in the directory is not what a trail has there; otherwise it could not be looked at.
    package var isDifference: Bool {
        switch self {
        case .notTrailFile, .damaged, .wrongPolicyDigest: true
        // A symbolic link and a socket, each in a file's place.
        case .failed(.open, _, ELOOP), .failed(.open, _, ENXIO): true
        case .failed, .syncFailed, .inUse, .otherOrigin, .rolledBack, .aheadOfStore, .pruned, .gap,
            .conflict, .unacceptableEntry, .signerMismatch, .inconsistent, .malformedVerifierKey:
            false
        }
    }

    private static func verb(_ operation: FileSystemCall) -> String {
        operation == .makeDirectory ? "make the directory" : operation.rawValue
    }

    private static func reason(_ code: Int32) -> String { POSIXFiles.text(ofError: code) }
}
