import Foundation

/// A file that a command leaves behind, whole or not at all.
enum OutputFile {
    /// Makes a file that is not there yet, durably; one that is there is never overwritten.
    static func create(_ path: String, with bytes: [UInt8]) throws {
        try write(bytes, to: path) {
            errno == EEXIST
                ? CommandFailure("`\(path)` exists and is never overwritten", hint: "name another file")
                : failure(path)
        }
    }

    /// Writes beside and renames, so that a reader sees the old or the new and never half of one.
    static func replace(_ path: String, with bytes: [UInt8]) throws {
        let temporary = "\(path).new"
        try write(bytes, to: temporary) { failure(path) }
        guard rename(temporary, path) == 0 else {
            let failure = failure(path)
            unlink(temporary)
            throw failure
        }
    }

    private static func write(
        _ bytes: [UInt8], to path: String, orThrow failure: () -> CommandFailure
    ) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw failure() }
        defer { close(descriptor) }
        var left = bytes[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress!, $0.count) }
            guard count > 0 else {
                let failure = failure()
                unlink(path)
                throw failure
            }
            left = left.dropFirst(count)
        }
        guard fsync(descriptor) == 0 else {
            let failure = failure()
            unlink(path)
            throw failure
        }
    }

    private static func failure(_ path: String) -> CommandFailure {
        CommandFailure(
            "cannot write `\(path)`: \(String(cString: strerror(errno)))",
            hint: "check that its folder is there and is yours")
    }
}
