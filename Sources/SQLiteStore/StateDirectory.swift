import Glibc
import Synchronization

/// The folder that holds the databases, owned by exactly one process while this value lives.
///
/// The lock is `flock` on `state.lock`: the kernel drops it when the process ends, however it ends, so
/// there is never a stale one to remove. The file keeps the owner's process id for the error message of
/// the second process; nothing is decided by it.
final class StateDirectory: Sendable {
    let path: String
    private let lock: Mutex<Int32?>

    /// - Parameter isReadOnly: Makes and writes nothing. The lock keeps a process that writes away, and no other that reads.
    /// - Throws: ``StoreOpeningError``.
    init(path: String, isReadOnly: Bool = false) throws {
        self.path = path
        if !isReadOnly, mkdir(path, 0o700) != 0, errno != EEXIST {
            throw StoreOpeningError.system(operation: "make the directory", path: path, code: errno)
        }
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw StoreOpeningError.system(operation: "look at", path: path, code: errno)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw StoreOpeningError.notADirectory(path: path) }
        guard status.st_uid == geteuid() else {
            throw StoreOpeningError.foreignOwner(path: path, owner: status.st_uid)
        }
        guard status.st_mode & 0o077 == 0 else {
            throw StoreOpeningError.directoryTooOpen(path: path, mode: status.st_mode & 0o7777)
        }
        lock = Mutex(try isReadOnly ? Self.takeSharedLock(in: path) : Self.takeLock(in: path))
    }

    deinit { unlock() }

    /// Unlocks the directory for another process.
    func unlock() {
        lock.withLock { file in
            if let file { close(file) }
            file = nil
        }
    }

    /// Throws ``StoreOpeningError/directoryInUse(path:processID:)`` while a process that writes owns the directory. Makes and
    /// writes nothing.
    static func requireUnused(at path: String) throws {
        let file = open(path + "/state.lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        // A lock file that is not there, or cannot be read, is a matter of the opening.
        guard file >= 0 else { return }
        try lock(file, LOCK_SH, in: path)
        close(file)
    }

    private static func takeLock(in directory: String) throws -> Int32 {
        let path = directory + "/state.lock"
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw StoreOpeningError.system(operation: "open", path: path, code: errno) }
        try lock(file, LOCK_EX, in: directory)
        let line = Array("\(getpid())\n".utf8)
        guard ftruncate(file, 0) == 0, pwrite(file, line, line.count, 0) == line.count else {
            let code = errno
            close(file)
            throw StoreOpeningError.system(operation: "write", path: path, code: code)
        }
        return file
    }

    /// - Returns: `nil` where no process has ever had the lock, as in a copy without it.
    private static func takeSharedLock(in directory: String) throws -> Int32? {
        let path = directory + "/state.lock"
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else {
            guard errno == ENOENT else {
                throw StoreOpeningError.system(operation: "open", path: path, code: errno)
            }
            return nil
        }
        try lock(file, LOCK_SH, in: directory)
        return file
    }

    /// Closes the file where another process has the lock.
    private static func lock(_ file: Int32, _ kind: Int32, in directory: String) throws {
        guard flock(file, kind | LOCK_NB) == 0 else {
            let code = errno
            var digits = [UInt8](repeating: 0, count: 16)
            let count = max(pread(file, &digits, digits.count, 0), 0)
            close(file)
            guard code == EWOULDBLOCK else {
                throw StoreOpeningError.system(
                    operation: "lock", path: directory + "/state.lock", code: code)
            }
            let text = String(decoding: digits[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
            throw StoreOpeningError.directoryInUse(path: directory, processID: Int32(text))
        }
    }

    /// Makes sure that `name` is a regular file of ours with mode 0600, before SQLite opens it; the
    /// `-wal` and `-shm` files take its mode.
    ///
    /// - Warning: Call only while no connection to the file is open: closing any descriptor of it would
    ///   drop SQLite's POSIX locks (sqlite.org/howtocorrupt.html, section 2.2).
    func prepareFile(_ name: String) throws -> String {
        let path = self.path + "/" + name
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            if errno == ELOOP { throw StoreOpeningError.notARegularFile(path: path) }
            throw StoreOpeningError.system(operation: "open", path: path, code: errno)
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else {
            throw StoreOpeningError.system(operation: "look at", path: path, code: errno)
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw StoreOpeningError.notARegularFile(path: path) }
        guard status.st_uid == geteuid() else {
            throw StoreOpeningError.foreignOwner(path: path, owner: status.st_uid)
        }
        guard status.st_mode & 0o7777 == 0o600 || fchmod(file, 0o600) == 0 else {
            throw StoreOpeningError.system(operation: "set the mode of", path: path, code: errno)
        }
        return path
    }

    /// Makes new names in the directory survive a power cut.
    func synchronize() throws {
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else {
            throw StoreOpeningError.system(operation: "open", path: path, code: errno)
        }
        defer { close(directory) }
        guard fsync(directory) == 0 else {
            throw StoreOpeningError.system(operation: "synchronize", path: path, code: errno)
        }
    }

    /// Whether there is a database of ours with something in it. Its application id stands at byte 68 of the
    /// header (sqlite.org/fileformat, section 1.3), or still in the log beside it.
    ///
    /// - Warning: As for ``prepareFile(_:)``.
    func isDatabase(_ schema: Schema) -> Bool {
        if byteCount(of: schema.file + "-wal") > 0 { return true }
        let file = open(path + "/" + schema.file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return false }
        defer { close(file) }
        var id: Int32 = 0
        return pread(file, &id, 4, 68) == 4 && Int32(bigEndian: id) == schema.applicationID
    }

    /// Requires that both databases are there and begin as databases of this program.
    ///
    /// - Warning: As for ``prepareFile(_:)``.
    func requireDatabases() throws {
        let schemas = [Schema.gate, .subjects]
        guard schemas.contains(where: { access("\(path)/\($0.file)", F_OK) == 0 }) else {
            throw StoreOpeningError.noDatabases(path: path)
        }
        for schema in schemas where !isDatabase(schema) {
            throw StoreOpeningError.damaged(
                file: schema.file, table: "page 1", row: nil,
                what: "the file is missing or empty, or does not begin as a database")
        }
    }

    /// Requires that a newer build did not write a database. Its version stands in clear at byte 60 of the first page
    /// (sqlite.org/fileformat, section 1.3), in the file or in a newer copy of the page in the log, so that no key and no layout
    /// of pages is needed to read it. Opens no database and changes nothing; what cannot be read is for the opening to say.
    ///
    /// - Warning: As for ``prepareFile(_:)``.
    static func requireKnownVersion(of schema: Schema, in path: String) throws {
        func opened(_ name: String) -> Int32 {
            open("\(path)/\(name)", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        }
        func require(_ header: UnsafeRawBufferPointer) throws {
            let id = Int32(bigEndian: header.loadUnaligned(fromByteOffset: 68, as: Int32.self))
            let version = Int32(bigEndian: header.loadUnaligned(fromByteOffset: 60, as: Int32.self))
            if id == schema.applicationID { try schema.requireKnown(Int(version)) }
        }
        let file = opened(schema.file)
        guard file >= 0 else { return }
        defer { close(file) }
        var header = [UInt8](repeating: 0, count: PageFile.headerByteCount)
        if pread(file, &header, header.count, 0) == header.count { try header.withUnsafeBytes(require) }
        let log = opened(schema.file + "-wal")
        guard log >= 0 else { return }
        defer { close(log) }
        guard let page = WriteAheadLog.content(of: log, markedFrameCount: 0)?.firstPage else { return }
        header = [UInt8](repeating: 0, count: PageFile.headerByteCount)
        let offset = WriteAheadLog.offset(ofFrame: page) + Int64(WriteAheadLog.frameHeadByteCount)
        if pread(log, &header, header.count, Int(offset)) == header.count {
            try header.withUnsafeBytes(require)
        }
    }

    /// Requires that a database with anything in it is of this program, and has pages with room for their codes.
    ///
    /// - Warning: As for ``prepareFile(_:)``.
    func requireLayout(of schema: Schema) throws {
        let file = open(path + "/" + schema.file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { return }
        defer { close(file) }
        var header = [UInt8](repeating: 0, count: PageFile.headerByteCount)
        let magic = Array("SQLite format 3\0".utf8)
        // What begins otherwise is damaged, and SQLite says so.
        guard pread(file, &header, header.count, 0) == header.count, header.starts(with: magic) else {
            return
        }
        try header.withUnsafeBytes { header in
            let id = Int32(bigEndian: header.loadUnaligned(fromByteOffset: 68, as: Int32.self))
            guard PageFile.hasLayout(header.baseAddress!) else {
                throw id == schema.applicationID
                    ? StoreOpeningError.otherLayout(file: schema.file)
                    : .notOurs(file: schema.file, applicationID: id)
            }
        }
    }

    /// Size of one file in bytes; 0 when it does not exist. Asks by name: see the warning above.
    func byteCount(of name: String) -> Int64 { Self.byteCount(at: path + "/" + name) }

    /// 0 where there is no such file.
    static func byteCount(at path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }
}
