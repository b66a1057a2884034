package import GateVocabulary
import Glibc

/// A key file that cannot be written or must not be used.
package enum KeyFileError: Error, Equatable, Sendable, CustomStringConvertible {
    package var description: String { message }

    case cannotRead(path: String, reason: String)
    case cannotWrite(path: String, reason: String)
    /// Generation never overwrites. A new key is a file of its own beside the old one's.
    case exists(path: String)
    /// Other users than the owner can read it, or a user can write it. `mode` is the permission bits.
    case tooOpen(path: String, mode: UInt32)
    /// Other users than the owner may enter, list or write in the directory of the keys. `mode` is the permission bits.
    case directoryTooOpen(path: String, mode: UInt32)
    /// The directory of the keys belongs to a user that is neither root nor the gateway's.
    case foreignDirectory(path: String, owner: UInt32)
    /// A symbolic link, a directory, a pipe, or longer than 4 KiB.
    case notAPlainFile(path: String)
    case malformed(path: String, reason: String)
    /// The file of the key `id` has another name, under which a destruction of the key would not find it.
    case misnamed(path: String, id: String)
    /// No root key that was given opens it.
    case wrongRoot(path: String)
    /// A throwaway key (`dev-` or `test-` in its id) outside `--dev`.
    case throwawayKey(path: String, id: String)
    /// A key that is in use, by the gateway's own record, has no file.
    case missingKey(id: String, purpose: KeyPurpose, directory: String)
    /// A data key that is not in use any more has no file, and stored values are still sealed under it.
    case missingEarlierKey(id: String, directory: String)
    /// A key that signs bundles or keysets lies where the gateway can read it. A process that took the gateway over could then
    /// approve its own policies, or list its own keys as genuine.
    case offlineKeyPresent(id: String, purpose: KeyPurpose, directory: String)
    /// More key files than a gateway can have keys.
    case tooManyFiles(directory: String)
    /// No active key of a purpose the gateway cannot run without; of a root key, also where the others are wrapped by one.
    case missing(purpose: KeyPurpose, directory: String)

    package var message: String {
        switch self {
        case .cannotRead(let path, let reason): "cannot read key file `\(path)`: \(reason)"
        case .cannotWrite(let path, let reason): "cannot write key file `\(path)`: \(reason)"
        case .exists(let path): "key file `\(path)` already exists and is never overwritten"
        case .tooOpen(let path, let mode):
            "key file `\(path)` has mode \(String(mode, radix: 8)); only its owner may read it, and no user write it"
        case .directoryTooOpen(let path, let mode):
            "the key directory `\(path)` has mode \(String(mode, radix: 8)); only its owner may enter it"
        case .foreignDirectory(let path, let owner):
            "the key directory `\(path)` belongs to uid \(owner), and not to the gateway's user or root"
        case .notAPlainFile(let path): "`\(path)` is not a plain file of at most 4 KiB"
        case .malformed(let path, let reason): "key file `\(path)` is malformed: \(reason)"
        case .misnamed(let path, let id): "key file `\(path)` holds the key `\(id)`"
        case .wrongRoot(let path): "the root key does not open key file `\(path)`"
        case .throwawayKey(let path, let id):
            "key `\(id)` in `\(path)` is a throwaway key and is accepted with --dev only"
        case .missingKey(let id, let purpose, let directory):
            "the \(purpose.rawValue) key `\(id)`, which is in use, is not in `\(directory)`; \(purpose.use)"
        case .missingEarlierKey(let id, let directory):
            "the data key `\(id)`, which stored values are still sealed under, is not in `\(directory)`; \(KeyPurpose.data.use)"
        case .offlineKeyPresent(let id, let purpose, let directory):
            "the \(purpose.rawValue) key `\(id)` lies in the gateway's key directory `\(directory)`"
        case .tooManyFiles(let directory):
            "`\(directory)` has more than \(PrivateKeyDirectory.fileCountMax) key files"
        case .missing(let purpose, let directory):
            "there is no \(purpose.rawValue) key in `\(directory)`; \(purpose.use)"
        }
    }

    package var hint: String {
        switch self {
        case .cannotRead, .cannotWrite: "check that the directory exists and belongs to the gateway's user"
        case .exists:
            "it may be in use, so keep it; to rotate, run `sendgate keys rotate`; only where `keys init` was killed half-way, in a directory that neither a gateway nor a signature has used, move its files away and run it again"
        case .tooOpen(let path, _): "run `chmod 0400 \(path)`, and ask who could read it before"
        case .directoryTooOpen(let path, _):
            "run `chmod 0700 \(path)`, and make sure that every key in it is yours"
        case .foreignDirectory(let path, _):
            "run `chown \(geteuid()) \(path)` as root, and make sure that every key in it is yours"
        case .notAPlainFile: "put the file itself there, and no link, directory or pipe in its place"
        case .malformed: "restore it from the backup made at the key ceremony"
        case .misnamed(_, let id): "rename it to `\(id).key`"
        case .wrongRoot: "give the root key this file was wrapped with"
        case .missingKey(let id, _, _):
            "put `\(id).key` back from the backup made at the key ceremony; to go on without it, start with its successor promoted before"
        case .missingEarlierKey(let id, _):
            "put `\(id).key` back from a copy of the key directory; values are sealed anew while the gateway runs, and `sendgate keys lagging` says when the file is needed no more"
        case .offlineKeyPresent(let id, _, _):
            "move `\(id).key` to the medium of those who sign with it; the gateway needs only its public half, in its configuration"
        case .tooManyFiles: "keep only the keys of this gateway there, and move the others away"
        case .missing(.root, _):
            "where a gateway has run with it, put its file back from the backup made at the key ceremony, or name it as `root_key` where it is kept elsewhere; \(Self.newGateway)"
        case .missing:
            "where a gateway has run with it, put its file back from the backup made at the key ceremony; \(Self.newGateway)"
        case .throwawayKey: "run `sendgate keys init` and keep the result outside the repository"
        }
    }

    private static let newGateway =
        "only for a new gateway, run `sendgate keys init` and keep the result outside the repository"
}
