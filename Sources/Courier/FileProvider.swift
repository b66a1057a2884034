import CanonicalJSON
package import CourierModel
import UnixSockets

/// Writes every order as one line of JSON to a file. For `--dev`, in place of the providers that are not configured.
package final class FileProvider: DeliveryProvider {
    private let file: LineFile

    package init(path: String) { file = LineFile(path: path) }

    package func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome {
        if let failure = file.append(CanonicalJSON.write(order.json)) {
            return .later(reason: failure, seconds: nil, scope: .app)
        }
        return .accepted(providerID: nil)
    }

    package var descriptorCountMax: Int { 1 }
    package func check() async -> [ProviderFinding] { [ProviderFinding("file \(file.path)")] }
    package func run() async throws {}
    package func reloadCredentials() async throws {}
}
