package import GateVocabulary
import Glibc
import OpenSSLCrypto

/// A new root key, and every key that the old one wraps wrapped by it.
///
///     new root (durable) → a new file of each wrapped key beside the old → the old files go
///
/// At every moment each key can be opened by one of the two roots, and what was not finished is finished by running it
/// again: a file that a known root opens is enough, and files that the old root wraps go last. Only files change, so a
/// running gateway notices nothing; it records the root key when it starts the next time.
package struct RootRotation {
    private let directory: String
    private let newRootPath: String?
    private let keys: PrivateKeyDirectory
    /// A new root key that an earlier run made.
    private let begun: PrivateKeyFile?

    /// Ids of the keys that a root key wraps.
    package let wrapped: [String]

    /// - Parameters:
    ///   - rootPath: The present root key where it is not in the directory.
    ///   - newRootPath: Where the new one goes; in the directory when `nil`.
    package init(directory: String, rootPath: String?, newRootPath: String?) throws {
        self.directory = directory
        self.newRootPath = newRootPath
        if let newRootPath, access(newRootPath, F_OK) == 0 {
            begun = try PrivateKeyFile.read(newRootPath, roots: [:])
        } else {
            begun = nil
        }
        let keys = try PrivateKeyDirectory(
            at: directory, rootPaths: [rootPath, begun == nil ? nil : newRootPath].compactMap { $0 },
            acceptsThrowaway: true)
        self.keys = keys
        wrapped = KeyPurpose.allCases.filter { !$0.isAsymmetric && $0 != .root }
            .flatMap { keys.keys[$0] ?? [] }.map(\.id).sorted()
    }

    /// - Returns: The new root key's id, and the file it is in.
    package func run(at now: Instant) throws -> (root: String, path: String) {
        let old = try keys.current(.root)
        let prefix = old.isThrowaway && old.id.hasPrefix("dev-") ? "dev-" : ""
        let root: PrivateKeyFile
        let path: String
        if let begun {
            (root, path) = (begun, newRootPath ?? "")
        } else {
            root = try PrivateKeyFile.generate(.root, prefix: prefix, at: now)
            path =
                try newRootPath.map { try root.create(at: $0) } ?? root.create(in: directory, wrappedBy: nil)
        }
        for key in keys.keys.values.joined() where wrapped.contains(key.id) {
            try key.rewrap(in: directory, by: root)
        }
        // All of them can be opened by the new root key alone.
        for id in wrapped { try PrivateKeyFile.keepOnly(id, wrappedBy: root.id, in: directory) }
        return (root.id, path)
    }
}
