import Glibc

/// What one name in a folder turned out to be.
enum FolderEntry: Equatable {
    case file(path: String)
    case folder(path: String)
    /// A symbolic link, a socket, a device: nothing a bundle may hold.
    case other(path: String, what: String)
}

/// The world refused: a system call, what it was asked about, and why.
struct FolderError: Error {
    let path: String
    let reason: String

    init(_ path: String, errno code: Int32) {
        self.path = path
        reason = String(cString: strerror(code))
    }
}

/// A bundle's folder, held open.
///
/// Every name below it is opened relative to the held descriptor and never through a symbolic link, so
/// nothing outside can be read through it, and exchanging a folder while it is read cannot lead out. The
/// folder itself may be reached through links, because `current -> 2026-11-09` is how bundles are switched.
final class BundleFolder {
    private let descriptor: Int32

    init(at path: String) throws(FolderError) {
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FolderError(path, errno: errno) }
    }

    deinit { close(descriptor) }

    /// The names in a folder, sorted by their bytes, each with its kind.
    ///
    /// - Parameters:
    ///   - relative: The folder's path below the bundle; empty for the bundle itself.
    ///   - countMax: Names after which reading stops; one more is returned so that the caller can tell.
    func entries(of relative: String, countMax: Int) throws(FolderError) -> [FolderEntry] {
        let folder = openat(
            descriptor, relative.isEmpty ? "." : relative, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { throw FolderError(relative, errno: errno) }
        guard let stream = fdopendir(folder) else {
            let code = errno
            close(folder)
            throw FolderError(relative, errno: code)
        }
        // Closes `folder` too.
        defer { closedir(stream) }
        let nameOffset = MemoryLayout<dirent>.offset(of: \dirent.d_name)!
        var entries: [(name: [UInt8], entry: FolderEntry)] = []
        while entries.count <= countMax {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw FolderError(relative, errno: errno) }
                break
            }
            // A record ends with its name's NUL, which may be long before the 256 bytes of `d_name`'s type
            // (readdir(3)), so the name is read in place up to there and the record is never copied whole.
            let name = UnsafeRawPointer(entry).advanced(by: nameOffset).assumingMemoryBound(to: UInt8.self)
            let bytes = Array(UnsafeBufferPointer(start: name, count: strlen(name)))
            if bytes == [UInt8(ascii: ".")] || bytes == Array("..".utf8) { continue }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                let shown = String(decoding: bytes, as: UTF8.self)
                entries.append((bytes, .other(path: join(relative, shown), what: "a name that is not UTF-8")))
                continue
            }
            entries.append((bytes, try kind(of: join(relative, text))))
        }
        return entries.sorted { $0.name.lexicographicallyPrecedes($1.name) }.map(\.entry)
    }

    private func join(_ folder: String, _ name: String) -> String {
        folder.isEmpty ? name : "\(folder)/\(name)"
    }

    private func kind(of path: String) throws(FolderError) -> FolderEntry {
        var status = stat()
        guard fstatat(descriptor, path, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            throw FolderError(path, errno: errno)
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return .file(path: path)
        case S_IFDIR: return .folder(path: path)
        case S_IFLNK: return .other(path: path, what: "a symbolic link")
        default: return .other(path: path, what: "neither a file nor a folder")
        }
    }

    /// The bytes of a regular file.
    ///
    /// - Parameter byteCountMax: Where reading stops; one byte more is returned so that the caller can tell.
    func contents(of path: String, byteCountMax: Int) throws(FolderError) -> [UInt8] {
        // O_NONBLOCK: should the file have become a pipe meanwhile, opening must not wait for a writer.
        let file = openat(descriptor, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { throw FolderError(path, errno: errno) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw FolderError(path, errno: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw FolderError(path, errno: EINVAL) }
        // The size is only a guess that spares copies: the file may grow while it is read.
        var bytes: [UInt8] = []
        let guess = min(max(Int(status.st_size), 0), byteCountMax) + 1
        while bytes.count <= byteCountMax {
            let wanted = bytes.isEmpty ? guess : min(65_536, byteCountMax + 1 - bytes.count)
            var failure: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
                let got = read(file, buffer.baseAddress, wanted)
                if got < 0 { failure = errno }
                count = max(got, 0)
            }
            if failure == EINTR { continue }
            if failure != 0 { throw FolderError(path, errno: failure) }
            if chunk.isEmpty { break }
            if bytes.isEmpty { bytes = chunk } else { bytes += chunk }
        }
        return bytes
    }
}
