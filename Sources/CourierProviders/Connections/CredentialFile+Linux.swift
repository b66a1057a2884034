package import CourierModel
import Glibc

/// Why a credential cannot be used, with what to do. Never a byte of it.
package struct CredentialError: Error, Hashable, CustomStringConvertible {
    package var path: String
    /// Lower-case, without a full stop.
    package var why: String
    package var hint: String

    package init(path: String, why: String, hint: String) {
        self.path = path
        self.why = why
        self.hint = hint
    }

    package var description: String { "the credential `\(path)` \(why)" }
}

extension CredentialFile {
    /// Bytes of a credential. A service account's file has some 2,400.
    package static let byteCountMax = 65_536

    /// Reads the file, whole.
    ///
    /// Only its owner may read it: the courier's user, or root. What systemd lays out is root's, and readable for a group of
    /// its own besides (mode 0440).
    package func read() throws(CredentialError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            throw refusal(
                errno == ENOENT ? "is missing" : "cannot be read: \(String(cString: strerror(errno)))",
                isSystemd
                    ? "add `LoadCredential=` to the unit"
                    : "check the path and that the courier's user may read it")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw refusal("is not a file", "name the file itself")
        }
        let open = status.st_mode & (isSystemd && status.st_uid == 0 ? 0o037 : 0o077)
        guard open == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw refusal("is open to others (mode \(mode))", "run `chmod 0400 \(path)`")
        }
        guard [geteuid(), 0].contains(status.st_uid) else {
            throw refusal(
                "belongs to uid \(status.st_uid), and the courier runs as \(geteuid())",
                "run `chown \(geteuid()) \(path)`")
        }
        guard (1...Self.byteCountMax).contains(Int(status.st_size)) else {
            throw refusal(
                "has \(status.st_size) bytes, and 1 to \(Self.byteCountMax) are accepted",
                "check that this is the right file")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress! + filled, $0.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw refusal("ended early", "try again") }
            filled += count
        }
        return bytes
    }

    private func refusal(_ why: String, _ hint: String) -> CredentialError {
        CredentialError(path: path, why: why, hint: hint)
    }
}
