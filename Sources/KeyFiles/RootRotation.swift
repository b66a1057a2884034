/// Keys wrapped by another root key than before.
///
///     a new file of each wrapped key beside the old (durable, read back) → the old files go
///
/// At every moment the old root key or the new one opens every key, and a crash leaves what running it again finishes.
package enum RootRotation {
    /// Has one root key, and no other, wrap all symmetric keys of a directory.
    ///
    /// Only files change: the secrets stay what they were, and whoever uses them notices nothing.
    ///
    /// - Parameter keys: Of the directory, as read. Those that are wrapped so already, or by nothing, are left as they are.
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
