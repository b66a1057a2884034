import Foundation

/// A file that a command leaves behind, whole or not at all.
///
///     `<path>.sendgate-part` written and synchronized → linked or renamed as `path` → directory synchronized
///
/// A kill before the second step leaves the `.sendgate-part`, which the next command that writes `path` overwrites.
package enum OutputFile {
    package static let unfinishedSuffix = ".sendgate-part"

    /// Makes a file that is not there yet, durably; one that is there is never overwritten.
    package static func create(_ path: String, with bytes: [UInt8]) throws {
        let part = try write(bytes, beside: path)
        defer { unlink(part) }
        // A link never takes the place of a file that is there, unlike a rename. Media such as FAT have no links.
        if link(part, path) != 0 {
            let reason = errno
            guard reason != EEXIST, access(path, F_OK) != 0 else {
                throw CommandFailure(
                    "`\(path)` exists and is never overwritten", hint: "name another file")
            }
            guard reason == EPERM || reason == EOPNOTSUPP, rename(part, path) == 0 else {
                errno = reason
                throw failure(path)
            }
        }
        try synchronizeDirectory(of: path)
    }

    /// Writes beside and renames, so that a reader sees the old or the new and never half of one.
    package static func replace(_ path: String, with bytes: [UInt8]) throws {
        let part = try write(bytes, beside: path)
        guard rename(part, path) == 0 else {
            let failure = failure(path)
            unlink(part)
            throw failure
        }
        try synchronizeDirectory(of: path)
    }

    /// - Returns: The path of the unfinished file.
    private static func write(_ bytes: [UInt8], beside path: String) throws -> String {
        let part = path + unfinishedSuffix
        unlink(part)
        let descriptor = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        var left = bytes[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress!, $0.count) }
            guard count > 0 else {
                let failure = failure(path)
                unlink(part)
                throw failure
            }
            left = left.dropFirst(count)
        }
        guard fsync(descriptor) == 0 else {
            let failure = failure(path)
            unlink(part)
            throw failure
        }
        return part
    }

    private static func synchronizeDirectory(of path: String) throws {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        // EINVAL: the file system synchronizes no directories.
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw failure(path) }
    }

    private static func failure(_ path: String) -> CommandFailure {
        CommandFailure(
            "cannot write `\(path)`: \(String(cString: strerror(errno)))",
            hint: "check that its folder is there and is yours")
    }
}
