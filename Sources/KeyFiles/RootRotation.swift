/// The change of the root key that wraps a directory's symmetric keys.
///
///     a new file of each wrapped key beside the old (durable, read back) → the old files go
///
/// At every moment every key can be opened with the old root key or with the new one. After a crash in the middle a second run
/// finishes the change.
package enum RootRotation {
    /// Has one root key, and no other, wrap all symmetric keys of a directory.
    ///
    /// Only files change. The secrets stay the same, so code that uses the keys goes on as before.
    ///
    /// - Parameter keys: Of the directory, as read. Keys that are wrapped so already, or by nothing, are left as they are.
    /// - Returns: The same keys, as they are on disk now.
    package static func wrap(
        _ keys: [PrivateKeyFile], by root: PrivateKeyFile, in directory: String
    ) throws -> [PrivateKeyFile] {
        let isMeant = { (key: PrivateKeyFile) in key.isWrapped && key.wrappers != [root.id] }
        for key in keys where isMeant(key) { try key.rewrap(in: directory, by: root) }
        // All of them can be opened by this root key alone.
        return try keys.map { isMeant($0) ? try $0.keepOnly(root, in: directory) : $0 }
    }
}
