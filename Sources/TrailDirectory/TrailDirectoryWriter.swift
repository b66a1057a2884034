import SealedFormat
package import AuditTrail
package import GateVocabulary
import OpenSSLCrypto

/// Writes one trail into a directory in the C2SP tlog-tiles layout.
///
/// - Durability: ``integrate(_:startingAt:)`` returns when the tiles and bundles are on the disk,
///   ``publishCheckpoint(signing:)`` when the checkpoint is. A checkpoint only ever covers what is.
/// - Ordering: entries by index, none skipped; checkpoints never smaller and never inconsistent.
/// - Retry: after any error but ``TrailError/syncFailed(path:code:)`` the same call may be made again; after
///   that one every call throws it again, and the process has to stop.
/// - Concurrency: one writer for a directory, held by a lock; one call at a time. Readers need no lock: a
///   file they find is whole.
package final class TrailDirectoryWriter {
    let files: any DurableFiles
    private var trust: TrailTrust
    private let lock: FileLock?
    private var batch: DurableBatch
    private var edge: TrailEdge
    private var fatal: TrailError?
    /// Directories of partial tiles that may be cleared once a checkpoint covers the full one.
    private var partials: [(full: TrailPath, directory: String)] = []
    /// The last durable checkpoint; `nil` before the first.
    package private(set) var checkpoint: Checkpoint?

    static let lockPath = ".lock"

    /// Bundles whose entries are rehashed when a directory is opened: the newest 262,144 entries, about 400 MB.
    /// Older ones are looked at by `sendgate audit verify`, which takes as long as it takes.
    package static let rehashedBundleCount: UInt64 = 1_024

    /// Opens a directory, making it when it is not there, and checks what the last checkpoint signed: every
    /// tile up to the root, the entries of the newest ``rehashedBundleCount`` bundles, and that older bundles
    /// are there.
    ///
    /// - Parameters:
    ///   - path: The trail's directory; its parent exists.
    ///   - trust: The origin and the keys; the last checkpoint must be signed by one of them.
    ///   - predecessor: The name before a restore, under which the last checkpoint may be signed still.
    ///   - publishedSize: What the store remembers of the last published checkpoint. A directory that ends
    ///     before it is an old copy, and refused.
    ///   - entryCount: How many entries the store has ever had. A directory with more means that the store is the
    ///     old copy: its next entries would be a second history.
    ///   - lock: The directory's, where it was taken before.
    package convenience init(
        openingAt path: String, trusting trust: TrailTrust, after predecessor: String? = nil,
        publishedSize: UInt64 = 0, entryCount: UInt64 = .max, holding lock: FileLock? = nil
    ) throws {
        try POSIXFiles.makeRoot(path)
        let files = try POSIXFiles(path)
        try self.init(
            files, trusting: trust, after: predecessor, publishedSize: publishedSize,
            lock: try lock ?? files.lock(Self.lockPath))
        guard edge.size <= entryCount else {
            throw TrailError.aheadOfStore(size: edge.size, entryCount: entryCount)
        }
    }

    init(
        _ files: any DurableFiles, trusting trust: TrailTrust, after predecessor: String? = nil,
        publishedSize: UInt64 = 0, lock: FileLock? = nil
    ) throws {
        self.files = files
        self.trust = trust
        self.lock = lock
        batch = DurableBatch(files)
        edge = TrailEdge()
        for name in try files.list(DurableBatch.temporaryDirectory) {
            try files.remove("\(DurableBatch.temporaryDirectory)/\(name)")
        }
        let reader = FilesReader(files: files)
        if let bytes = try reader.read(.checkpoint) {
            // Looked at before the signature, whose key is named after the origin: a changed name is no damage.
            let found = try? Checkpoint(parsing: SignedNote(parsing: bytes).text).origin
            // Between the commit of a restore and the first checkpoint after it the old name stands.
            let isOfPredecessor = predecessor != nil && found == predecessor
            if let found, found != trust.origin, !isOfPredecessor {
                throw TrailError.otherOrigin(expected: trust.origin, found: found)
            }
            let report = try TrailVerifier(
                reader, trusting: isOfPredecessor ? trust.renamed(found ?? trust.origin) : trust
            )
            .checkTiles(andNewest: Self.rehashedBundleCount)
            if let damage = report.damage { throw TrailError.damaged(damage) }
            checkpoint = report.checkpoint?.checkpoint
        }
        // Without a checkpoint nothing was ever promised: tiles that are there come from a first attempt that
        // did not get that far, and are written again.
        let size = checkpoint?.size ?? 0
        guard size >= publishedSize else {
            throw TrailError.rolledBack(size: size, publishedSize: publishedSize)
        }
        do {
            edge = try TrailEdge(reading: reader, size: size)
        } catch let damage as TrailDamage {
            throw TrailError.damaged(damage)
        }
        rememberPartials()
    }

    /// Keeps writers out of an existing directory: for what reads it first and writes to it then.
    ///
    /// - Returns: The lock, held until it is let go; a writer takes it over.
    /// - Throws: ``TrailError/inUse`` while there is a writer.
    package static func lock(_ path: String) throws(TrailError) -> FileLock {
        try POSIXFiles(path).lock(lockPath)
    }

    /// Keeps writers out, and no other reader, and writes nothing; `nil` where no writer has ever been, as in a copy without the
    /// lock's file.
    package static func sharedLock(_ path: String) throws(TrailError) -> FileLock? {
        try POSIXFiles(path).sharedLock(lockPath)
    }

    /// Entries in the tree whose files are durable; a checkpoint may not cover all of them yet.
    package var size: UInt64 { edge.size }

    /// Adds entries to the tree.
    ///
    /// Entries that are already there are compared and skipped, so that a caller who does not know how far an
    /// earlier attempt came starts again where it knows.
    ///
    /// - Parameter first: The first entry's index; at most ``size``.
    /// - Returns: The size of the tree whose files are durable.
    @discardableResult
    package func integrate(_ entries: [[UInt8]], startingAt first: UInt64) throws -> UInt64 {
        try refuseAfterFatal()
        guard first <= edge.size else { throw TrailError.gap(expected: edge.size, found: first) }
        for (offset, entry) in entries.enumerated()
        where entry.isEmpty || entry.count > EntryBundle.entryByteCountMax {
            throw TrailError.unacceptableEntry(index: first + UInt64(offset), byteCount: entry.count)
        }
        let knownCount = Int(min(edge.size - first, UInt64(entries.count)))
        try compare(entries[..<knownCount], startingAt: first)
        guard knownCount < entries.count else { return edge.size }

        var grown = edge
        var contents: [(path: String, bytes: [UInt8])] = []
        for entry in entries[knownCount...] {
            for file in grown.append(entry, leafHash: TreeHash.leaf(entry)) {
                contents.append((file.path.text, file.bytes))
            }
        }
        // Only the last size gets partial tiles: no checkpoint will ever be signed over those in between.
        contents += grown.partials.map { ($0.path.text, $0.bytes) }
        try replace(contents)
        edge = grown
        rememberPartials()
        return edge.size
    }

    /// Publishes a checkpoint over everything integrated; nothing happens when it is there already.
    ///
    /// - Parameter signing: Returns the signed note of the checkpoint it is given.
    /// - Returns: The checkpoint that is durable now.
    @discardableResult
    package func publishCheckpoint(signing: (Checkpoint) throws -> [UInt8]) throws -> Checkpoint {
        try refuseAfterFatal()
        if let checkpoint, checkpoint.size == edge.size { return checkpoint }
        let next = Checkpoint(origin: trust.origin, size: edge.size, root: edge.root)
        // Checked from the files, not from what this process believes it wrote: they are what is signed.
        var hashes = TileHashes(FilesReader(files: files), size: next.size)
        let old = (size: checkpoint?.size ?? 0, root: checkpoint?.root ?? TreeHash.empty)
        do {
            guard try hashes.consistencyProof(from: old.size).proves(from: old.root, to: next.root),
                try hashes.root(ofFirst: next.size) == next.root
            else { throw TrailError.inconsistent(size: next.size) }
        } catch let damage as TrailDamage {
            throw TrailError.damaged(damage)
        }
        let bytes = try signing(next)
        let trusted: TrustedCheckpoint
        do throws(CheckpointError) {
            trusted = try TrustedCheckpoint(opening: bytes, trusting: trust)
        } catch {
            throw TrailError.signerMismatch(error)
        }
        guard trusted.checkpoint == next else { throw TrailError.signerMismatch(nil) }
        try replace([(path: TrailPath.checkpoint.text, bytes: bytes)])
        checkpoint = next
        clearPartials()
        return next
    }

    /// Files a policy bundle's canonical form under its digest; nothing happens when it is there already.
    package func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws {
        try refuseAfterFatal()
        guard canonical.count <= PolicyArchive.byteCountMax, PolicyArchive.isDigest(digest, of: canonical)
        else {
            throw TrailError.wrongPolicyDigest(digest: digest.text)
        }
        let path = PolicyArchive.path(of: digest)
        // A file that was damaged meanwhile is put right.
        if let archived = try files.read(path, byteCountMax: PolicyArchive.byteCountMax),
            archived == canonical
        {
            return
        }
        try replace([(path: path, bytes: canonical)])
    }

    /// Puts the keyset in force, a signed note, beside the checkpoint; nothing happens when it is there already.
    package func writeKeyset(_ note: [UInt8]) throws {
        try refuseAfterFatal()
        let published = try files.read(KeysetFile.name, byteCountMax: SignedNote.byteCountMax)
        if published == note { return }
        try replace([(path: KeysetFile.name, bytes: note)])
    }

    /// Writes the keys an auditor needs, one a line, as ``VerifierKeyFile`` reads them.
    ///
    /// - Parameter keys: Trusted from now on beside those the directory was opened with: the next checkpoint may be
    ///   signed by one of them.
    package func writeVerifierKeys(_ keys: [NoteVerifierKey]) throws {
        try refuseAfterFatal()
        trust.keys += keys.filter { !trust.keys.contains($0) }
        let bytes = VerifierKeyFile.bytes(of: keys)
        if try verifierKeys() == bytes { return }
        try writeVerifierKeys(bytes)
    }

    /// Writes the same keys once more: what fails here fails for others too.
    package func rewriteVerifierKeys() throws {
        try refuseAfterFatal()
        if let bytes = try verifierKeys() { try writeVerifierKeys(bytes) }
    }

    private func verifierKeys() throws -> [UInt8]? {
        try files.read(VerifierKeyFile.name, byteCountMax: VerifierKeyFile.byteCountMax)
    }

    private func writeVerifierKeys(_ bytes: [UInt8]) throws {
        try replace([(path: VerifierKeyFile.name, bytes: bytes)])
    }

    // MARK: Inside

    func replace(_ contents: [(path: String, bytes: [UInt8])]) throws {
        try syncing { () throws(TrailError) in try batch.replace(contents) }
    }

    func syncing(_ body: () throws(TrailError) -> Void) throws {
        try refuseAfterFatal()
        do throws(TrailError) {
            try body()
        } catch {
            if error.isFatal { fatal = error }
            throw error
        }
    }

    /// A directory that was removed is made again when it is needed again.
    func forgetDirectory(_ directory: String) { batch.forget(directory) }

    private func refuseAfterFatal() throws {
        if let fatal { throw fatal }
    }

    /// Holds entries against those of the tree.
    ///
    /// - Parameter first: The first entry's index; all of them are in the tree.
    /// - Throws: ``TrailError/conflict(index:)`` for the first that differs.
    package func compare(_ entries: ArraySlice<[UInt8]>, startingAt first: UInt64) throws {
        var hashes = TileHashes(FilesReader(files: files), size: edge.size)
        for (offset, entry) in entries.enumerated() {
            let index = first + UInt64(offset)
            let known: SHA256Digest
            do {
                known = try hashes.hash(of: TreeNode(height: 0, index: index))
            } catch let damage as TrailDamage {
                throw TrailError.damaged(damage)
            }
            guard known == TreeHash.leaf(entry) else { throw TrailError.conflict(index: index) }
        }
    }

    private func rememberPartials() {
        for partial in edge.partials {
            let full = partial.path.full
            if !partials.contains(where: { $0.full == full }) { partials.append((full, full.text + ".p")) }
        }
    }

    /// Removes partial tiles that the checkpoint just published has in full (C2SP tlog-tiles, "Partial
    /// Tiles"). What cannot be removed stays: it is allowed to be there, and takes room only.
    private func clearPartials() {
        guard let size = checkpoint?.size else { return }
        partials.removeAll { partial in
            guard partial.full.entryRange.upperBound <= size else { return false }
            do throws(TrailError) {
                for name in try files.list(partial.directory) {
                    try files.remove("\(partial.directory)/\(name)")
                }
                try files.removeDirectory(partial.directory)
            } catch {
                return true
            }
            batch.forget(partial.directory)
            return true
        }
    }
}
