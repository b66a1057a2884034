import AuditTrail
import CommandTerminal
import GateSteps
import SealedFormat
import TrailDirectory

/// A checkpoint that was copied to where the operator of this machine cannot set it back: what the store and the trail
/// must not be behind.
struct ExternalCheckpoint {
    private let path: String
    private let gateway: String
    private let bytes: [UInt8]

    /// - Parameter gateway: The configured origin.
    init(at path: String, of gateway: String) throws {
        self.path = path
        self.gateway = gateway
        bytes = try CommandInput.bytes(of: path, byteCountMax: SignedNote.byteCountMax)
    }

    /// What a start requires: nothing that was signed may be lacking, in the databases or in the trail.
    ///
    /// - Parameters:
    ///   - trust: The trail's own keys; a checkpoint from before a restore is signed by the same ones, under an earlier name.
    ///   - entryCount: How many entries the store has ever had.
    /// - Throws: `CommandFailure` when entries that were signed are not there, or are others.
    func demand(trusting trust: TrailTrust, in trail: TrailDirectoryReader, knownTo entryCount: UInt64) throws
    {
        let signed = try checkpoint(trusting: trust)
        guard signed.size <= entryCount else {
            throw CommandFailure(
                "the databases know \(entryCount) entries, and the checkpoint `\(path)` was signed over \(signed.size): an old copy of them was put in place",
                hint:
                    "bring the missing entries back with `sendgate restore`; where the trail lacks them too, with `--tail-lost`, and then replace this file by the trail's checkpoint"
            )
        }
        try demand(
            signed, in: trail, orElse: "an old copy of the trail was put in place; put the newest back")
    }

    /// What a restore requires of the trail that it takes for the newest one.
    ///
    /// - Parameter trust: See ``demand(trusting:in:knownTo:)``.
    /// - Throws: `CommandFailure` when the trail lacks entries that were signed, or has others.
    func demandNewest(_ trail: TrailDirectoryReader, trusting trust: TrailTrust) throws {
        try demand(
            checkpoint(trusting: trust), in: trail,
            orElse:
                "nothing was touched; put the newest copy of the trail there; only where every copy lacks them, run `sendgate restore` with `--tail-lost`, and then replace this file by the trail's checkpoint"
        )
    }

    /// How many entries it was signed over.
    func size(trusting trust: TrailTrust) throws -> UInt64 { try checkpoint(trusting: trust).size }

    private func checkpoint(trusting trust: TrailTrust) throws -> Checkpoint {
        do {
            let name = try Checkpoint(parsing: SignedNote(parsing: bytes).text).origin
            let isOwn = TrailName.isName(name, of: gateway)
            return try TrustedCheckpoint(opening: bytes, trusting: isOwn ? trust.renamed(name) : trust)
                .checkpoint
        } catch {
            throw CommandFailure(
                "the checkpoint `\(path)` cannot be used: \(error)",
                hint: "`external_checkpoint` is a copy of this trail's `checkpoint`, kept elsewhere")
        }
    }

    /// - Parameter hint: What to do about a trail that ends too early.
    private func demand(
        _ signed: Checkpoint, in trail: TrailDirectoryReader, orElse hint: String
    ) throws {
        let note: [UInt8] = try trail.read(.checkpoint) ?? []
        guard let published = try? Checkpoint(parsing: SignedNote(parsing: note).text),
            published.size >= signed.size
        else {
            throw CommandFailure(
                "the trail directory ends before the \(signed.size) entries that the checkpoint `\(path)` was signed over",
                hint: hint)
        }
        var hashes = TileHashes(trail, size: published.size)
        guard try hashes.root(ofFirst: signed.size) == signed.root else {
            throw CommandFailure(
                "the trail does not begin with what the checkpoint `\(path)` was signed over",
                hint:
                    "its history is another one; after `sendgate restore --tail-lost` replace this file by the trail's checkpoint"
            )
        }
    }
}

extension TrailLineage {
    /// The name in force.
    ///
    /// - Parameter lineage: `nil` for a trail that was never restored.
    static func origin(_ lineage: TrailLineage?, configured: String) throws -> String {
        guard let lineage else { return configured }
        guard TrailName.isName(lineage.origin, of: configured) else {
            throw TrailError.otherOrigin(
                expected: configured, found: TrailName.gateway(of: lineage.origin))
        }
        return lineage.origin
    }
}
