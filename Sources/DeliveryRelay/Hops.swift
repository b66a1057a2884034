package import GateSteps
import GatewayPipeline
import UnixSockets

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
    private let file: LineFile

    package init(path: String) { file = LineFile(path: path) }

    package func obstacle() async -> String? { nil }

    package func deliver(_ delivery: Delivery) async -> HopResult {
        do {
            let failure = file.append(try DeliveryDocument.write(delivery))
            return failure.map(HopResult.notWritten) ?? .accepted(status: 200, byProvider: false)
        } catch {
            return .refused(status: 400, reason: nil)
        }
    }
}
