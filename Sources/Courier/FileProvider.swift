import CanonicalJSON
package import CourierModel
import Glibc
import Synchronization

/// Writes every order as one line of JSON to a file, for `--dev`: what would have gone, where there is no provider.
package final class FileProvider: DeliveryProvider {
    private let path: String
    /// Serialises the appends; a line is written whole or not at all.
    private let appending = Mutex(())

    package init(path: String) { self.path = path }

    package func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome {
        let line = CanonicalJSON.write(order.json) + [UInt8(ascii: "\n")]
        let failure = appending.withLock { _ in append(line) }
        if let failure { return .later(reason: failure, seconds: nil, scope: .app) }
        return .accepted(providerID: nil)
    }

    /// - Returns: What went wrong.
    private func append(_ line: [UInt8]) -> String? {
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return String(cString: strerror(errno)) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return String(cString: strerror(errno)) }
        let count = line.withUnsafeBytes { write(descriptor, $0.baseAddress!, $0.count) }
        if count == line.count { return nil }
        // Half a line would swallow the next one.
        ftruncate(descriptor, status.st_size)
        return "the line was not written whole"
    }

    package func check() async -> [ProviderFinding] { [ProviderFinding("file \(path)")] }
    package func run() async throws {}
    package func reloadCredentials() async throws {}
}
