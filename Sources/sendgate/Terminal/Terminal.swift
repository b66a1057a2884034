import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateSteps
import GatewayPipeline
import KeyFiles
import PolicyFiles
import SQLiteStore
import TrailDirectory
import UnixHTTPClient
import UnixSocketEndpoint

/// Where a command's words go: data to standard output, everything else to standard error of its ``Console``.
enum Terminal {
    /// One line of data.
    static func print(_ line: String) {
        Console.current.writeOutput(Array(line.utf8) + [UInt8(ascii: "\n")])
    }

    /// One JSON value as a line of data.
    static func print(_ object: JSONObject) {
        Console.current.writeOutput(CanonicalJSON.write(object) + [UInt8(ascii: "\n")])
    }

    static func print(_ bytes: [UInt8]) {
        Console.current.writeOutput(bytes)
    }

    /// One line that is not data.
    static func note(_ line: String) {
        Console.current.writeErrors(Array((line + "\n").utf8))
    }

    static func error(_ message: String, hint: String? = nil) {
        note("sendgate: error: \(printable(message))")
        if let hint { note("sendgate: hint: \(printable(hint))") }
    }

    static func warning(_ message: String) {
        note("sendgate: warning: \(printable(message))")
    }

    /// Prints why a command failed.
    static func report(_ error: any Error) -> ExitStatus {
        switch error {
        case let failure as CommandFailure:
            self.error(failure.message, hint: failure.hint)
            return failure.status
        case let problems as ConfigurationProblems:
            for problem in problems.problems { self.error(problem.description, hint: problem.hint) }
        case let problems as PolicyProblems:
            for problem in problems.problems { self.error(problem.placed, hint: problem.hint) }
        case let error as StoreOpeningError: self.error("\(error)", hint: error.hint)
        case let error as EndpointError: self.error("\(error)", hint: error.hint)
        case let error as KeyFileError: self.error(error.message, hint: error.hint)
        case let error as UnixHTTPError: self.error("\(error)", hint: error.hint)
        case let error as PeerAttestation.Problem: self.error(error.message)
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

    /// Text that came from elsewhere, without what would move the cursor or change the colours.
    static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return String(
            String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) ? "\u{FFFD}" : $0 }))
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar != "\n" && (scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value))
    }
}

extension PolicyProblem {
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
