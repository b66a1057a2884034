import SealedFormat
package import AuditTrail
package import GateVocabulary

/// A file of the trail as HTTP serves it (C2SP tlog-tiles, "APIs").
package struct TrailFile: Hashable, Sendable {
    package var bytes: [UInt8]
    package var contentType: String
    /// Whether it will never change; only the checkpoint and the head of the snapshot do.
    package var isImmutable: Bool
}

/// Reads a trail directory: for verification, for replay, for serving. Needs no lock and never writes.
package struct TrailDirectoryReader: TrailReader, Sendable {
    private let files: POSIXFiles
    private let bundles = BundleCache()

    /// - Parameter path: An existing directory.
    package init(openingAt path: String) throws {
        files = try POSIXFiles(path)
    }

    package func read(_ path: TrailPath, into buffer: inout [UInt8]) throws -> Int? {
        try files.read(path.text, into: &buffer, byteCountMax: path.byteCountMax)
    }

    package func byteCount(of path: TrailPath) throws -> Int? {
        try files.byteCount(path.text)
    }

    /// The file a caller asks for by name, e.g. `tile/0/x001/234`; `nil` unless it is one the checkpoint
    /// covers. Tiles beyond it are not promised yet and may still be written anew.
    package func file(named name: String) throws -> TrailFile? {
        guard let path = TrailPath(parsing: name) else { return nil }
        if path != .checkpoint {
            guard let size = try signedSize(), path.entryRange.upperBound <= size else { return nil }
        }
        guard let bytes = try read(path) else { return nil }
        return TrailFile(
            bytes: bytes,
            contentType: path == .checkpoint ? "text/plain; charset=utf-8" : "application/octet-stream",
            isImmutable: path != .checkpoint && path != .snapshot)
    }

    /// One entry the checkpoint covers; `nil` when the tree is not that large.
    ///
    /// - Throws: ``TrailError/damaged(_:)`` when the entry is not what its tile says. The tile itself is not
    ///   authenticated here; ``TrailVerifier`` does that. ``TrailError/pruned(index:below:)`` when it is gone.
    package func entry(_ index: UInt64) throws -> [UInt8]? {
        do {
            if let held = bundles.bundle(index >> 8) { return try held.entry(index) }
            guard let size = try signedSize(), index < size else { return nil }
            let bundle = try HeldBundle(of: index, in: self, size: size)
            bundles.hold(bundle)
            return try bundle.entry(index)
        } catch let damage as TrailDamage {
            if case .missing = damage, let size = try snapshotHead()?.size, index < size {
                throw TrailError.pruned(index: index, below: size)
            }
            throw TrailError.damaged(damage)
        }
    }

    /// A policy bundle's canonical form; `nil` when none is filed under the digest.
    package func policy(_ digest: PolicyDigest) throws -> [UInt8]? {
        guard PolicyArchive.isDigest(digest),
            let canonical = try files.read(
                PolicyArchive.path(of: digest), byteCountMax: PolicyArchive.byteCountMax)
        else { return nil }
        guard PolicyArchive.isDigest(digest, of: canonical) else {
            throw TrailError.wrongPolicyDigest(digest: digest.text)
        }
        return canonical
    }

    /// The digests of all archived policies, sorted.
    package func policyDigests() throws -> [PolicyDigest] {
        try files.list(PolicyArchive.directory)
            .filter { $0.hasSuffix(".json") }
            .map { PolicyDigest(String($0.dropLast(5))) }
            .filter { PolicyArchive.isDigest($0) }
            .sorted()
    }

    /// Whether a writer makes a file of this name beside the tiles. One that is being written has only a number.
    package static func isOtherFileName(_ name: String) -> Bool {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        switch (parts.first, parts.count) {
        case (_, 1):
            return [
                TrailPath.checkpoint.text, VerifierKeyFile.name, KeysetFile.name,
                TrailDirectoryWriter.lockPath,
            ].contains(name)
        case (DurableBatch.temporaryDirectory[...], 2):
            return !parts[1].isEmpty && parts[1].utf8.allSatisfy { (0x30...0x39).contains($0) }
        case (PolicyArchive.directory[...], 2):
            return parts[1].hasSuffix(".json")
                && PolicyArchive.isDigest(PolicyDigest(String(parts[1].dropLast(5))))
        default: return false
        }
    }

    /// Whether a writer makes a directory of this name: the beginning of a tile's path (C2SP tlog-tiles, "Tiles").
    package static func isFolderName(_ name: String) -> Bool {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        if parts.count == 1 {
            return [
                "tile", PolicyArchive.directory, DurableBatch.temporaryDirectory, TrailPath.snapshots,
            ].contains(name)
        }
        if parts[0] == TrailPath.snapshots[...] {
            return parts.count == 2 && TrailPath(parsing: "\(name)/00000000") != nil
        }
        // Some file in it has a tile's name: the first of a group, or the narrowest partial one.
        return parts[0] == "tile" && ["000", "1"].contains { TrailPath(parsing: "\(name)/\($0)") != nil }
    }

    /// The keys beside the trail. An auditor compares them with the ones pinned elsewhere: a process that can change
    /// the trail can change this file.
    package func verifierKeys() throws -> [NoteVerifierKey] {
        let bytes = try files.read(VerifierKeyFile.name, byteCountMax: VerifierKeyFile.byteCountMax)
        return try VerifierKeyFile.keys(in: bytes ?? [])
    }

    /// The signed note of the keyset beside the trail; `nil` when there is none.
    package func keysetNote() throws -> [UInt8]? {
        try files.read(KeysetFile.name, byteCountMax: SignedNote.byteCountMax)
    }

    /// The size the checkpoint names, without checking who signed it: enough to tell which files it covers.
    private func signedSize() throws -> UInt64? {
        guard let bytes = try read(.checkpoint) else { return nil }
        do {
            return try Checkpoint(parsing: SignedNote(parsing: bytes).text).size
        } catch let error as CheckpointError {
            throw TrailError.damaged(.checkpoint(error))
        } catch let error as NoteError {
            throw TrailError.damaged(.checkpoint(.note(error)))
        }
    }
}
