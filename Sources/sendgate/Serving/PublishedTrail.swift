import AuditTrail
import GateSteps
import GateVocabulary
import GatewayPipeline
import Synchronization
import TrailDirectory

/// The trail's directory as the pipeline publishes to it.
///
/// One writer behind a lock: the publisher and the code that archives a policy take turns. Reading needs no lock.
final class PublishedTrail: TrailLibrary {
    let origin: String
    private let state: Mutex<State>
    private let reader: TrailDirectoryReader

    private struct State {
        var writer: TrailDirectoryWriter
        /// Signs checkpoints.
        var signer: NoteSigner
    }

    /// Opens the directory, or makes it, checks what its last checkpoint signed, and writes `trail.pub`.
    ///
    /// - Parameters:
    ///   - signer: Signs checkpoints; its name is the trail's.
    ///   - olderKeys: Keys that signed earlier checkpoints and are trusted still; auditors are given them too.
    ///   - formerKeys: Keys that are trusted no more, one of which may have signed the newest checkpoint there is.
    ///   - predecessor: The trail's name before its newest restore.
    ///   - store: Whose entries are published here. What it remembers says whether one of the two is an old copy, or of a copy of the
    ///     gateway that went on by itself.
    ///   - lock: The directory's, where it was taken before.
    init(
        at path: String, signer: NoteSigner, olderKeys: [NoteVerifierKey], formerKeys: [NoteVerifierKey] = [],
        after predecessor: String? = nil, of store: any GateStore, holding lock: FileLock? = nil
    ) throws {
        let (publishedSize, entryCount) = try store.read { (try $0.publishedSize(), try $0.entryCount()) }
        origin = signer.verifierKey.name
        let keys = [signer.verifierKey] + olderKeys
        let writer = try TrailDirectoryWriter(
            openingAt: path, trusting: TrailTrust(origin: origin, keys: keys + formerKeys),
            after: predecessor, publishedSize: publishedSize, entryCount: entryCount,
            holding: lock)
        try Self.requireSameHistory(in: writer, as: store)
        // Refused above, the directory keeps the keys of its own gateway.
        try writer.writeVerifierKeys(keys)
        state = Mutex(State(writer: writer, signer: signer))
        reader = try TrailDirectoryReader(openingAt: path)
    }

    /// Requires that the entries which the store still has, and the directory has as well, are the same: of two copies of a gateway
    /// that both went on, the databases of one are no state of the other's trail.
    ///
    /// - Throws: `TrailError.conflict`.
    private static func requireSameHistory(in writer: TrailDirectoryWriter, as store: any GateStore) throws {
        let entries = try store.read { reading in
            // The newest published one stays in the store.
            try reading.entries(from: max(reading.publishedSize(), 1) - 1, limit: comparedEntryCountMax)
        }
        guard let first = entries.first?.index else { return }
        let count = Int(min(max(writer.size, first) - first, UInt64(entries.count)))
        try writer.compare(entries.prefix(count).map(\.bytes)[...], startingAt: first)
    }

    /// Histories stay different once they differ, so the first entries say it.
    private static let comparedEntryCountMax = 256

    func integrate(_ entries: [StoredEntry]) throws -> UInt64 {
        try translating {
            try state.withLock { state in
                guard let first = entries.first else { return state.writer.size }
                return try state.writer.integrate(entries.map(\.bytes), startingAt: first.index)
            }
        }
    }

    func publish() throws {
        try translating {
            _ = try state.withLock { state in
                let signer = state.signer
                return try state.writer.publishCheckpoint { try $0.signed(by: [signer]) }
            }
        }
    }

    /// Signs the next checkpoint with another key; auditors are given its public half first.
    ///
    /// - Parameter olderKeys: Keys that signed earlier checkpoints and are trusted still.
    func sign(with signer: NoteSigner, olderKeys: [NoteVerifierKey]) throws {
        try translating {
            try state.withLock { state in
                guard state.signer.verifierKey != signer.verifierKey else { return }
                try state.writer.writeVerifierKeys([signer.verifierKey] + olderKeys)
                state.signer = signer
            }
        }
    }

    /// What the next checkpoint is verified with.
    var signingKey: NoteVerifierKey { state.withLock { $0.signer.verifierKey } }

    /// Throws unless the file that tells auditors of a trail key can be written, which is tried with the bytes that it has.
    func requireVerifierKeysWritable() throws {
        try translating { try state.withLock { try $0.writer.rewriteVerifierKeys() } }
    }

    func entry(_ index: UInt64) throws -> [UInt8]? { try translating { try reader.entry(index) } }

    func file(_ path: String) throws -> [UInt8]? { try translating { try reader.file(named: path)?.bytes } }

    func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws {
        try translating { try state.withLock { try $0.writer.archivePolicy(digest, canonical) } }
    }

    func publishKeyset(_ note: [UInt8]) throws {
        try translating { try state.withLock { try $0.writer.writeKeyset(note) } }
    }

    // MARK: Pruning

    func writeSegment(of size: UInt64, _ number: Int, _ bytes: [UInt8]) throws {
        try state.withLock { try $0.writer.writeSegment(of: size, number, bytes) }
    }

    /// Brings a snapshot into force that the newest checkpoint covers.
    func adopt(_ head: SnapshotHead) throws { try state.withLock { try $0.writer.adopt(head) } }

    /// Removes what the snapshot in force stands in for. The publisher's turn comes in between.
    func prune(keepingSnapshots sizes: Set<UInt64>) throws {
        while try state.withLock({ try $0.writer.prune(countMax: Self.prunedCountMax) }) > 0 {}
        try removeSnapshots(besides: sizes)
    }

    func removeSnapshots(besides sizes: Set<UInt64>) throws {
        while try state.withLock({
            try $0.writer.removeSnapshots(besides: sizes, countMax: Self.prunedCountMax)
        }) > 0 {}
    }

    /// Files removed in one turn, some 20 ms.
    private static let prunedCountMax = 500

    /// The directory's errors in the port's words.
    private func translating<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as TrailError {
            switch error {
            case .syncFailed: throw TrailLibraryError.lostDurability(error.message)
            case .conflict: throw TrailLibraryError.conflict(error.message)
            default: throw TrailLibraryError.unavailable(error.message)
            }
        }
    }
}
