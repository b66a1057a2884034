package import BundleModel
package import CompliancePolicy
import PolicyFiles

/// Where the repository lies that these tests were built from.
package enum Repository {
    /// Without a slash at its end.
    package static let root: String = {
        // …/Tests/GateTestKit/RepositoryPaths.swift
        let parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        return parts.dropLast(3).joined(separator: "/")
    }()

    /// The product's own bundle.
    package static var policies: String { root + "/Policies" }
}

/// The repository's bundle, read and compiled once for all suites of a process.
extension Repository {
    private static let read: Result<[String: PolicyNode], PolicyDiagnostics> = Result {
        () throws(PolicyDiagnostics) in
        try PolicyDirectory.read(at: policies)
    }
    private static let compiled: Result<CompiledPolicy, PolicyDiagnostics> = read.flatMap { pages in
        PolicyBundle.read(documents: pages).map { CompiledPolicy($0) }
    }

    /// Every page by its path in the folder.
    package static func pages() throws -> [String: PolicyNode] { try read.get() }

    package static func policy() throws -> CompiledPolicy { try compiled.get() }
}
