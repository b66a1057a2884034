import AuditTrail
import GateSteps
import GateVocabulary
import GatewayPipeline
import Synchronization
import TrailDirectory

/// The trail's directory as the pipeline publishes to it.
///
/// One writer behind a lock: the publisher and whoever archives a policy take turns. Reading needs no lock.
final class PublishedTrail: TrailLibrary {
    let origin: String
    private let signer: NoteSigner
    private let writer: Mutex<TrailDirectoryWriter>
    private let reader: TrailDirectoryReader

    /// Opens the directory, or makes it, checks what its last checkpoint signed, and writes `trail.pub`.
    ///
    /// - Parameters:
    ///   - signer: Signs checkpoints; its name is the trail's.
    ///   - olderKeys: Keys that signed earlier checkpoints.
    ///   - entryCount: How many entries the store has ever had.
    ///   - publishedSize: What the store remembers; a directory that ends before it is an old copy.
    init(
        at path: String, signer: NoteSigner, olderKeys: [NoteVerifierKey], publishedSize: UInt64,
        entryCount: UInt64
    ) throws {
        origin = signer.verifierKey.name
        self.signer = signer
        let keys = [signer.verifierKey] + olderKeys
        let writer = try TrailDirectoryWriter(
            openingAt: path, trusting: TrailTrust(origin: origin, keys: keys), publishedSize: publishedSize,
            entryCount: entryCount)
        try writer.writeVerifierKeys(keys)
        self.writer = Mutex(writer)
        reader = try TrailDirectoryReader(openingAt: path)
    }

    func integrate(_ entries: [StoredEntry]) throws -> UInt64 {
        try translating {
            try writer.withLock { writer in
                guard let first = entries.first else { return writer.size }
                return try writer.integrate(entries.map(\.bytes), startingAt: first.index)
            }
        }
    }

    func publish() throws {
        try translating {
            _ = try writer.withLock { writer in
                try writer.publishCheckpoint { try $0.signed(by: [signer]) }
            }
        }
    }

    func entry(_ index: UInt64) throws -> [UInt8]? { try translating { try reader.entry(index) } }

    func file(_ path: String) throws -> [UInt8]? { try translating { try reader.file(named: path)?.bytes } }

    func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws {
        try translating { try writer.withLock { try $0.archivePolicy(digest, canonical) } }
    }

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
