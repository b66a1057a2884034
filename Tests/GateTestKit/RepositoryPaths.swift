/// Where the repository lies that these tests were built from.
package enum Repository {
    /// Without a slash at its end.
    package static let root: String = {
        // …/Tests/GateTestKit/RepositoryPaths.swift
        let parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        return parts.dropLast(3).joined(separator: "/")
    }()

    /// The product's own rule book.
    package static var policies: String { root + "/Policies" }
}
