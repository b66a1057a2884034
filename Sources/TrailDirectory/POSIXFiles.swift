import Glibc

/// A directory on a POSIX file system.
///
/// Every path is resolved from a descriptor of the directory, so that moving or replacing the directory's
/// own path cannot redirect a write, and no last component may be a symbolic link.
final class POSIXFiles: DurableFiles, Sendable {
    private let root: Int32

    /// Files are readable by the owner and the group (auditors), directories likewise; the umask may take
    /// more away.
    private static let fileMode: mode_t = 0o640
    private static let directoryMode: mode_t = 0o750

    /// - Parameter path: An existing directory.
    init(_ path: String) throws(TrailError) {
        root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard root >= 0 else { throw .failed(.open, path: path, code: errno) }
    }

    deinit { close(root) }

    /// Makes the trail's own directory when it is not there, and its name durable.
    static func makeRoot(_ path: String) throws(TrailError) {
        if mkdir(path, directoryMode) == 0 {
            let parent = path.split(separator: "/", omittingEmptySubsequences: true).dropLast()
                .joined(separator: "/")
            let prefix = path.hasPrefix("/") ? "/" : "./"
            try POSIXFiles(prefix + parent).syncDirectory("")
        } else if errno != EEXIST {
            throw .failed(.makeDirectory, path: path, code: errno)
        }
    }

    /// Takes the lock that keeps a second writer out; it is held until the returned value is let go.
    func lock(_ path: String) throws(TrailError) -> FileLock {
        let descriptor = openat(root, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, Self.fileMode)
        return try Self.locked(descriptor, LOCK_EX, path)
    }

    /// The same lock, shared with others that only read. The file is not made: `nil` where there is none.
    func sharedLock(_ path: String) throws(TrailError) -> FileLock? {
        let descriptor = openat(root, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        if descriptor < 0, errno == ENOENT { return nil }
        return try Self.locked(descriptor, LOCK_SH, path)
    }

    private static func locked(
        _ descriptor: Int32, _ kind: Int32, _ path: String
    ) throws(TrailError) -> FileLock {
        guard descriptor >= 0 else { throw .failed(.lock, path: path, code: errno) }
        guard flock(descriptor, kind | LOCK_NB) == 0 else {
            let code = errno
            close(descriptor)
            throw code == EWOULDBLOCK ? .inUse : .failed(.lock, path: path, code: code)
        }
        return FileLock(descriptor: descriptor)
    }

    func write(_ path: String, _ bytes: [UInt8]) throws(TrailError) {
        let descriptor = openat(
            root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, Self.fileMode)
        guard descriptor >= 0 else { throw .failed(.write, path: path, code: errno) }
        // A failing close is not looked at: everything was synced by then, or failed for a better reason.
        defer { close(descriptor) }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress.unsafelyUnwrapped + written, $0.count - written)
            }
            if count < 0 {
                if errno == EINTR { continue }
                throw .failed(.write, path: path, code: errno)
            }
            written += count
        }
        // The same descriptor that wrote: an error of its pages is reported here and nowhere else.
        guard fsync(descriptor) == 0 else { throw .syncFailed(path: path, code: errno) }
    }

    func rename(_ path: String, to newPath: String) throws(TrailError) {
        guard renameat(root, path, root, newPath) == 0 else {
            throw .failed(.rename, path: newPath, code: errno)
        }
    }

    func syncDirectory(_ path: String) throws(TrailError) {
        let descriptor = openat(
            root, path.isEmpty ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw .syncFailed(path: path, code: errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .syncFailed(path: path, code: errno) }
    }

    func makeDirectory(_ path: String) throws(TrailError) {
        guard mkdirat(root, path, Self.directoryMode) == 0 || errno == EEXIST else {
            throw .failed(.makeDirectory, path: path, code: errno)
        }
    }

    func remove(_ path: String) throws(TrailError) {
        guard unlinkat(root, path, 0) == 0 || errno == ENOENT else {
            throw .failed(.remove, path: path, code: errno)
        }
    }

    func removeDirectory(_ path: String) throws(TrailError) {
        guard unlinkat(root, path, AT_REMOVEDIR) == 0 || errno == ENOENT else {
            throw .failed(.remove, path: path, code: errno)
        }
    }

    func list(_ path: String) throws(TrailError) -> [String] {
        let descriptor = openat(
            root, path.isEmpty ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return [] }
            throw .failed(.list, path: path, code: errno)
        }
        guard let stream = fdopendir(descriptor) else {
            let code = errno
            close(descriptor)
            throw .failed(.list, path: path, code: code)
        }
        // The stream owns the descriptor from here on.
        defer { closedir(stream) }
        var names: [String] = []
        errno = 0
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw .failed(.list, path: path, code: errno) }
        return names
    }

    func read(_ path: String, into buffer: inout [UInt8], byteCountMax: Int) throws(TrailError) -> Int? {
        // O_NONBLOCK keeps a named pipe put in a file's place from holding the reader.
        let descriptor = openat(root, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .failed(.open, path: path, code: errno)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .failed(.read, path: path, code: errno) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= byteCountMax else {
            throw .notTrailFile(path: path)
        }
        let byteCount = Int(status.st_size)
        var done = 0
        var failure: Int32?
        func fill(_ bytes: UnsafeMutableRawBufferPointer) {
            while done < byteCount {
                let count = Glibc.read(
                    descriptor, bytes.baseAddress.unsafelyUnwrapped + done, byteCount - done)
                if count < 0 {
                    if errno == EINTR { continue }
                    failure = errno
                    return
                }
                // Cut while it was read: what is there is what it has.
                if count == 0 { return }
                done += count
            }
        }
        if buffer.count < byteCount {
            // A buffer filled with zeros first would be written twice. Only what `read` has written counts as
            // initialised, so nothing unwritten can be seen.
            buffer = [UInt8](unsafeUninitializedCapacity: byteCount) { bytes, count in
                fill(UnsafeMutableRawBufferPointer(bytes))
                count = done
            }
        } else {
            buffer.withUnsafeMutableBytes(fill)
        }
        if let failure { throw .failed(.read, path: path, code: failure) }
        return done
    }

    func byteCount(_ path: String) throws(TrailError) -> Int? {
        var status = stat()
        guard fstatat(root, path, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .failed(.read, path: path, code: errno)
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notTrailFile(path: path) }
        return Int(status.st_size)
    }

    /// The C library's text for an error number, in lower case at its start.
    static func text(ofError code: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        let message = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return message.prefix(1).lowercased() + message.dropFirst()
    }
}

/// A lock on a file, given back when the value is let go, or by the kernel when the process ends.
package final class FileLock: Sendable {
    private let descriptor: Int32

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
