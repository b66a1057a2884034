import SealedFormat
package import OpenSSLCrypto

/// Everything a producer needs to show, years later and offline, that one entry was in the trail
/// (C2SP tlog-proof).
package struct TrailProof: Sendable {
    package let inclusion: InclusionProof
    /// The signed checkpoint, verbatim.
    package let checkpoint: [UInt8]

    /// - Precondition: `checkpoint` is of a tree of `inclusion.size` entries.
    package init(inclusion: InclusionProof, checkpoint: TrustedCheckpoint) {
        precondition(
            checkpoint.checkpoint.size == inclusion.size, "a proof was paired with another tree's head")
        self.inclusion = inclusion
        self.checkpoint = checkpoint.bytes
    }

    private static let header = "c2sp.org/tlog-proof@v1"

    package var bytes: [UInt8] {
        let hashes = inclusion.hashes.map { Base64.encode($0.bytes) + "\n" }.joined()
        return Array("\(Self.header)\nindex \(inclusion.index)\n\(hashes)\n".utf8) + checkpoint
    }

    /// Reads a proof and checks it against the entry it is about.
    ///
    /// - Returns: The checkpoint that vouches for the entry.
    package static func verify(
        _ bytes: [UInt8], of leafHash: SHA256Digest, trusting trust: TrailTrust
    ) throws(TrailProofError) -> (index: UInt64, checkpoint: TrustedCheckpoint) {
        // 64 hashes of 44 characters and two lines come before the checkpoint.
        guard bytes.count <= SignedNote.byteCountMax + 4_096,
            let blank = bytes.indices.dropFirst().first(where: { bytes[$0] == 0x0A && bytes[$0 - 1] == 0x0A })
        else { throw .malformed }
        var lines = String(decoding: bytes[..<(blank - 1)], as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)[...]
        guard lines.popFirst() == Substring(header) else { throw .malformed }
        // Extra data is opaque and authenticates nothing, so it is passed over.
        if let extra = lines.first, extra.hasPrefix("extra ") { lines.removeFirst() }
        guard let indexLine = lines.popFirst(), indexLine.hasPrefix("index "),
            let index = UInt64(indexLine.dropFirst(6)), String(index) == indexLine.dropFirst(6),
            lines.count <= 64
        else { throw .malformed }
        var hashes: [SHA256Digest] = []
        for line in lines {
            guard let bytes = Base64.decode(line), let hash = SHA256Digest(bytes: bytes) else {
                throw .malformed
            }
            hashes.append(hash)
        }
        let trusted: TrustedCheckpoint
        do throws(CheckpointError) {
            trusted = try TrustedCheckpoint(opening: Array(bytes[(blank + 1)...]), trusting: trust)
        } catch {
            throw .checkpoint(error)
        }
        let proof = InclusionProof(index: index, size: trusted.checkpoint.size, hashes: hashes)
        guard proof.proves(leafHash, under: trusted.checkpoint.root) else { throw .notIncluded(index: index) }
        return (index, trusted)
    }
}

/// Why a proof proves nothing.
package enum TrailProofError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    case malformed
    case checkpoint(CheckpointError)
    /// The hashes do not lead from this entry to the checkpoint's root.
    case notIncluded(index: UInt64)

    package var message: String {
        switch self {
        case .malformed: "the proof is not in the format `c2sp.org/tlog-proof@v1`"
        case .checkpoint(let error): error.message
        case .notIncluded(let index): "the entry is not entry \(index) of the signed tree"
        }
    }
}
