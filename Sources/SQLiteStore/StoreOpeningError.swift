import GateSteps
import GatewayPipeline
import Glibc

/// Why a state directory cannot be opened. An operator has to resolve each case before the gateway starts; a
/// condition that passes by itself (a full disk) is a `StoreError.unavailable` instead.
package enum StoreOpeningError: Error, Equatable, Sendable {
    /// Another process holds `state.lock`; `processID` is what it wrote there, `nil` when it wrote nothing.
    case directoryInUse(path: String, processID: Int32?)
    /// The path exists and is no directory.
    case notADirectory(path: String)
    /// Another user owns the directory or one of its files.
    case foreignOwner(path: String, owner: UInt32)
    /// Others may enter the directory; `mode` is its permission bits.
    case directoryTooOpen(path: String, mode: UInt32)
    /// A symbolic link or a device stands where a database should be.
    case notARegularFile(path: String)
    /// The file is a SQLite database of another program.
    case notOurs(file: String, applicationID: Int32)
    /// A newer build wrote this file; both are schema versions.
    case newerSchema(file: String, found: Int, newestKnown: Int)
    /// An older build wrote this file, and it is opened to be read only; both are schema versions.
    case olderSchema(file: String, found: Int, newestKnown: Int)
    /// A build from before the first release wrote this file, whose rows are laid out otherwise; both are schema versions.
    case earlierLayout(file: String, found: Int, oldestKnown: Int)
    /// Neither database is there.
    case noDatabases(path: String)
    /// There is a `gate.db` and no `subjects.db`.
    case subjectsMissing(file: String, besides: String, path: String)
    /// There are people in `subjects.db` and nothing in `gate.db`.
    case gateMissing(file: String, besides: String, path: String)
    /// `subjects.db` is older than `gate.db`: people registered since would be unknown.
    case subjectsBehind(file: String, besides: String, path: String)
    /// The index key is not the one the mappings were made with: every user would look unregistered.
    case wrongIndexKey
    /// The data key of this id is not the one the rows were sealed with.
    case wrongDataKey(id: String)
    /// The data key that sealed last is not among those that are loaded.
    case missingDataKey(id: String)
    /// A row that everything else hangs on is not what was written; `row` is `nil` where rows are missing.
    case damaged(file: String, table: String, row: String?, what: String)
    /// The log of a database ends before what an earlier process of this boot made durable; both are counts of frames.
    case logDamaged(file: String, frameCount: Int64, markedFrameCount: Int64)
    /// A database whose pages have no room for codes.
    case otherLayout(file: String)
    /// A database with another table or index of this name than this build makes.
    case otherSchema(file: String, name: String)
    /// A setting SQLite must confirm reads back differently.
    case settingRefused(file: String, setting: String, wanted: String, found: String)
    /// The operating system refused `operation`; `code` is `errno`.
    case system(operation: String, path: String, code: Int32)
}

extension StoreOpeningError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .directoryInUse(let path, let processID?):
            "a gateway runs here already: the state directory `\(path)` is in use by process \(processID)"
        case .directoryInUse(let path, nil):
            "a gateway runs here already: the state directory `\(path)` is in use by another process"
        case .notADirectory(let path): "`\(path)` is not a directory"
        case .foreignOwner(let path, let owner): "`\(path)` belongs to uid \(owner), not to this process"
        case .directoryTooOpen(let path, let mode):
            "the state directory `\(path)` is open to others (mode \(String(mode, radix: 8)))"
        case .notARegularFile(let path): "`\(path)` is not a regular file"
        case .notOurs(let file, let applicationID):
            "`\(file)` is a database of another program (application id \(applicationID))"
        case .newerSchema(let file, let found, let newestKnown):
            "`\(file)` was written by a newer sendgate: it has schema version \(found), and this build knows versions up to \(newestKnown)"
        case .olderSchema(let file, let found, let newestKnown):
            "`\(file)` was written by an earlier sendgate, or was not brought up to date to its end: it has schema version \(found), and \(newestKnown) is what this build reads"
        case .earlierLayout(let file, let found, let oldestKnown):
            "`\(file)` has schema version \(found), whose rows an earlier build laid out; this build reads versions from \(oldestKnown) on"
        case .noDatabases(let path): "there are no databases in `\(path)`"
        case .subjectsMissing(let file, let gate, let path):
            "`\(path)` has `\(gate)` but no `\(file)`: who everybody in it is would be lost"
        case .gateMissing(let file, let subjects, let path):
            "`\(path)` has people in `\(subjects)` and nothing in `\(file)`: what each of them wanted would be lost"
        case .subjectsBehind(let file, let gate, let path):
            "`\(file)` in `\(path)` is older than `\(gate)`: who was registered or forgotten since would not be known"
        case .wrongIndexKey:
            "the index key is not the one this state directory was made with: `index_check` row 1 of `subjects.db` is of another key, or was altered, or the first page of a database is damaged"
        case .wrongDataKey(let id):
            "the data key `\(id)` is not the one this state directory was sealed with: `key_check` row \(id) of `gate.db` does not open under it, or was altered"
        case .missingDataKey(let id):
            "the data key `\(id)`, which seals what this state directory takes in, is missing"
        case .damaged(let file, let table, let row, let what):
            "in `\(file)`, \(StoredDamage(table: table, row: row, what: what))"
        case .logDamaged(let file, let frameCount, let markedFrameCount):
            "`\(file)` is damaged: \(frameCount) frames of it can be read, and \(markedFrameCount) were made durable; what was answered since would be forgotten"
        case .otherLayout(let file):
            "`\(file)` has no room for page codes: another build made it, or its first page is damaged"
        case .otherSchema(let file, let name):
            "in `\(file)`, `\(name)` is not what this build makes: another build or another program made it"
        case .settingRefused(let file, let setting, let wanted, let found):
            "SQLite keeps \(setting) at `\(found)` for `\(file)`, but it must be `\(wanted)`"
        case .system(let operation, let path, let code):
            "cannot \(operation) `\(path)`: \(String(cString: strerror(code)))"
        }
    }

    /// The next step, for its own line.
    package var hint: String {
        switch self {
        case .directoryInUse:
            "stop it, or give this one a state directory of its own; a command asks a running gateway by `--socket`"
        case .notADirectory, .notARegularFile, .notOurs: "move it away, or choose another state directory"
        case .foreignOwner: "run the gateway as that user, or `chown` the whole directory"
        case .directoryTooOpen(let path, _): "run `chmod 700 \(path)`"
        case .newerSchema:
            "install the version that wrote it, or a later one: a state directory only goes forward. To go back, restore the backup that was made before the upgrade"
        case .olderSchema: "start the gateway once with this build, which brings it up to date"
        case .earlierLayout:
            "start with an empty state directory, or go on with the build that wrote this one"
        case .noDatabases:
            "name the state directory of a gateway that has run, or restore both databases into it"
        case .subjectsMissing(let file, let gate, _), .subjectsBehind(let file, let gate, _),
            .gateMissing(let file, let gate, _):
            "restore `\(file)` and `\(gate)` together from one backup, or start with an empty state directory"
        case .wrongIndexKey:
            "configure the index key that belongs to this state directory; if it does, restore both databases from one backup"
        case .wrongDataKey:
            "configure the data key that belongs to this state directory under this id; if it does, restore both databases from one backup"
        case .missingDataKey(let id):
            "put `\(id).key` back into the key directory: without it devices, addresses and waiting messages cannot be read"
        case .damaged: "restore both databases from one backup; nothing was changed"
        case .logDamaged:
            "put both databases of one backup into an empty state directory, and restore what is missing from the trail (`sendgate restore`); nothing was changed"
        case .otherLayout, .otherSchema:
            "start with an empty state directory, or restore both databases from one backup of this build"
        case .settingRefused(_, "page_size", _, _):
            "another build made it: start with an empty state directory, or restore one from the trail"
        case .settingRefused: "use a SQLite built with write-ahead logging and default durability"
        case .system:
            "check that the path exists, that its file system is writable and that this process may use it"
        }
    }
}
