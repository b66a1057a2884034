import Foundation
package import GateSteps
import GatewayPipeline
import GateVocabulary
import Glibc
import Synchronization

/// The next hop of a forwarded message.
///
/// - Concurrency: `deliver` may be called many times at once.
/// - Retry: none inside; the relay decides from the result.
package protocol Hop: Sendable {
    /// Why no work should be claimed now, in words for the operator; `nil` when it should. A hop that is down should
    /// not make messages ambiguous.
    func obstacle() async -> String?
    func deliver(_ delivery: Delivery) async -> HopResult
}

/// Appends every message as one line of JSON to a file. For `serve --dev`: nothing leaves the machine.
package final class FileHop: Hop {
    private let path: String
    /// Serialises the appends; a line is written whole or not at all.
    private let isOpen = Mutex(())

    package init(path: String) { self.path = path }

    package func obstacle() async -> String? { nil }

    package func deliver(_ delivery: Delivery) async -> HopResult {
        do {
            let line = try DeliveryDocument.write(delivery) + [UInt8(ascii: "\n")]
            return isOpen.withLock { _ in append(line) }
        } catch {
            return .refused(status: 400, reason: nil)
        }
    }

    private func append(_ line: [UInt8]) -> HopResult {
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return .notWritten(String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return .notWritten(String(cString: strerror(errno))) }
        let count = line.withUnsafeBytes { write(descriptor, $0.baseAddress!, $0.count) }
        if count == line.count { return .accepted(status: 200, byProvider: false) }
        let reason = count < 0 ? String(cString: strerror(errno)) : "only \(count) bytes were written"
        // Half a line would swallow the next one.
        ftruncate(descriptor, status.st_size)
        return .notWritten(reason)
    }
}
