package import GateSteps
package import GateVocabulary

/// The published trail: tiles, checkpoint and the archive of policies, as monitors and auditors read it.
///
/// - Durability: when `integrate` or `publish` returns, what it wrote survives a power cut. A failed sync throws
///   ``TrailLibraryError/lostDurability(_:)`` and must end the process; there is no retry.
/// - Ordering: entries by index, none skipped. Integrating what is already there compares and skips it, so a restart
///   simply begins again at the last size the store knows.
/// - Concurrency: one publisher; reading from any thread.
package protocol TrailLibrary: Sendable {
    /// First line of every checkpoint.
    var origin: String { get }

    /// Takes entries with consecutive indices, starting at or below the current size.
    ///
    /// - Returns: The size of the tree whose tiles are durable now.
    func integrate(_ entries: [StoredEntry]) throws -> UInt64

    /// Signs and publishes a checkpoint over everything integrated. Nothing happens when it is there already.
    func publish() throws

    /// One entry of the durable tree; `nil` when the tree is not that large.
    func entry(_ index: UInt64) throws -> [UInt8]?

    /// A file by its path in the C2SP tile layout, e.g. `checkpoint` or `tile/0/x001/234`; `nil` when
    /// there is none of that name.
    func file(_ path: String) throws -> [UInt8]?

    /// Keeps a bundle's canonical form under its digest, for ever.
    func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws

    /// Puts the keyset in force, a signed note, beside the checkpoint. Nothing happens when it is there already.
    func publishKeyset(_ note: [UInt8]) throws
}

/// Why the trail directory did not take an entry or a checkpoint.
package enum TrailLibraryError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Disk full, read-only, I/O error: nothing was published, trying again later is right.
    case unavailable(String)
    /// An entry that is already published reads differently: the store or the directory was changed.
    case conflict(String)
    /// A sync failed. The process must stop; a restart re-reads what is durable.
    case lostDurability(String)

    package var description: String {
        switch self {
        case .unavailable(let what), .conflict(let what), .lostDurability(let what):
            "the published trail cannot be used: \(what)"
        }
    }
}
