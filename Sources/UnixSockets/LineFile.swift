import Glibc
import Synchronization

/// A file that lines are appended to, readable by its owner alone. A line is written whole or not at all.
///
/// - Concurrency: Calls at once are serialised; the file has one writing process.
/// - Durability: none; it is for `--dev`.
package final class LineFile: Sendable {
    package let path: String
    private let appending = Mutex(())

    /// The file is made with the first line.
    package init(path: String) { self.path = path }

    /// - Parameter line: Without its line break.
    /// - Returns: Why the line is not in the file; `nil` when it is.
    package func append(_ line: [UInt8]) -> String? {
        appending.withLock { _ in write(line + [UInt8(ascii: "\n")]) }
    }

    private func write(_ bytes: [UInt8]) -> String? {
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return String(cString: strerror(errno)) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return String(cString: strerror(errno)) }
        let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress!, $0.count) }
        if count == bytes.count { return nil }
        let reason = count < 0 ? String(cString: strerror(errno)) : "only \(count) bytes were written"
        // Half a line would swallow the next one.
        ftruncate(descriptor, status.st_size)
        return reason
    }
}
