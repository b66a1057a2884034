import AuditTrail
import BundleModel
import CommandTerminal
import CompliancePolicy
import ConfigurationPages
import GateSteps
import GatewayPipeline
import KeyFiles
import PolicyFiles
import SQLiteStore
import TrailDirectory
import UnixHTTPClient
import UnixSocketEndpoint
import UnixSockets

extension Terminal {
    /// Prints why a command failed.
    static func report(_ error: any Error) -> ExitStatus {
        switch error {
        case let failure as CommandFailure:
            self.error(failure.message, hint: failure.hint)
            return failure.status
        case let diagnostics as ConfigurationDiagnostics:
            for diagnostic in diagnostics.diagnostics {
                self.error(diagnostic.description, hint: diagnostic.hint)
            }
        case let diagnostics as PolicyDiagnostics:
            for diagnostic in diagnostics.diagnostics { self.error(diagnostic.placed, hint: diagnostic.hint) }
        case let error as StoreOpeningError: self.error("\(error)", hint: error.hint)
        case let error as EndpointError: self.error("\(error)", hint: error.hint)
        case let error as KeyFileError: self.error(error.message, hint: error.hint)
        case let error as UnixHTTPError: self.error("\(error)", hint: error.hint)
        case let error as PeerAttestation.TableError: self.error(error.message)
        case let error as TrailError: self.error(error.message)
        case let error as StoreError:
            self.error(
                error.damage.map { "in the store, \($0)" } ?? "\(error)",
                hint: error.damage == nil
                    ? "check the disk's space and its health"
                    : "restore both databases from one backup; the trail says what they must hold")
        default: self.error("\(error)")
        }
        return .failed
    }
}

extension PolicyDiagnostic {
    /// The problem behind its place, without the hint.
    var placed: String {
        var place = file
        if let line { place += ":\(line)" }
        if line != nil, let column { place += ":\(column)" }
        return "\(place): \(message)"
    }

    /// The same with the folder's path before the file's; a problem of the folder itself has that place already.
    func placed(in folder: String) -> String { file == folder ? placed : "\(folder)/\(placed)" }
}
