import BundleModel
import CompliancePolicy
import Foundation
import PolicyFiles

/// A folder of files that is gone when the test is.
final class ScratchFolder {
    let path: String

    init(_ files: [String: String] = [:]) throws {
        path = NSTemporaryDirectory() + "sendgate-test-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for (name, text) in files { try write(name, Array(text.utf8)) }
    }

    // The two readers keep the folder alive until they are done, which `PolicyDirectory.read(at: folder.path)`
    // would not: its last use of `folder` is before the call.

    func read() throws(PolicyDiagnostics) -> [String: PolicyNode] {
        defer { withExtendedLifetime(self) {} }
        return try PolicyDirectory.read(at: path)
    }

    func readBundle() throws(PolicyDiagnostics) -> PolicyBundle {
        defer { withExtendedLifetime(self) {} }
        return try PolicyDirectory.readBundle(at: path)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ name: String, _ bytes: [UInt8]) throws {
        let file = "\(path)/\(name)"
        try FileManager.default.createDirectory(
            atPath: (file as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: file))
    }

    func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: "\(path)/\(name)", withDestinationPath: target)
    }
}
