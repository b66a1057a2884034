import CanonicalJSON
package import GateRecords
package import SealedFormat
package import OpenSSLCrypto

/// The head of the tree at one size (C2SP tlog-checkpoint): what is signed, and what an auditor keeps.
package struct Checkpoint: Sendable {
    /// Which trail this is; never changes over a trail's life.
    package let origin: String
    /// Entries in the tree.
    package let size: UInt64
    package let root: SHA256Digest
    /// Opaque lines after the root; sendgate writes none.
    package let extensionLines: [String]

    /// - Precondition: `origin` is a line: not empty, no control character.
    package init(origin: String, size: UInt64, root: SHA256Digest) {
        precondition(TreeHead.isLine(origin), "a checkpoint was to be made for the origin `\(origin)`")
        self.origin = origin
        self.size = size
        self.root = root
        extensionLines = []
    }

    /// The part of the checkpoint that a `restore` entry cites.
    package var head: TreeHead { TreeHead(origin: origin, size: size, root: root) }

    /// The note's text: origin, size and base64 of the root, a line each.
    package var noteText: [UInt8] {
        let lines = [origin, String(size), Base64.encode(root.bytes)] + extensionLines
        return lines.reduce(into: []) { $0 += Array($1.utf8) + [0x0A] }
    }

    /// - Parameter noteText: Exactly what ``noteText`` gives for some checkpoint.
    package init(parsing noteText: [UInt8]) throws(CheckpointError) {
        var lines = String(decoding: noteText, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init)
        guard lines.popLast()?.isEmpty == true, lines.count >= 3, lines.allSatisfy(TreeHead.isLine) else {
            throw .malformed(why: "it needs three lines: origin, size and root")
        }
        guard let size = UInt64(lines[1]), CodeUnits.equal(String(size), lines[1]) else {
            throw .malformed(why: "its second line is no tree size")
        }
        guard size <= UInt64(CanonicalJSON.integerMax) else {
            throw .malformed(why: "its tree is larger than 2⁵³−1 entries")
        }
        guard let bytes = Base64.decode(lines[2]), let root = SHA256Digest(bytes: bytes) else {
            throw .malformed(why: "its third line is no root hash in base64")
        }
        guard size > 0 || root == TreeHash.empty else {
            throw .malformed(why: "an empty tree has another root")
        }
        origin = lines[0]
        self.size = size
        self.root = root
        extensionLines = Array(lines[3...])
    }

    /// The checkpoint with the signatures of `signers`, ready to publish.
    package func signed(by signers: [NoteSigner]) throws -> [UInt8] {
        let text = noteText
        return SignedNote(text: text, signatures: try signers.map { try $0.sign(text) }).bytes
    }
}

extension Checkpoint: Hashable {
    package static func == (left: Checkpoint, right: Checkpoint) -> Bool {
        left.size == right.size && left.root == right.root && CodeUnits.equal(left.origin, right.origin)
            && left.extensionLines.elementsEqual(right.extensionLines, by: CodeUnits.equal)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(size)
        hasher.combine(root)
    }
}

/// Why bytes are not accepted as a checkpoint of this trail.
package enum CheckpointError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    case note(NoteError)
    case malformed(why: String)
    case otherOrigin(expected: String, found: String)
    /// Signed by witnesses alone; the trail's own key has to stand behind it.
    case notSignedByTrail

    package var message: String {
        switch self {
        case .note(let error): error.message
        case .malformed(let why): "the checkpoint is malformed: \(why)"
        case .otherOrigin(let expected, let found):
            "the checkpoint is of the trail `\(found)`, not of `\(expected)`"
        case .notSignedByTrail: "the checkpoint is signed by witnesses, but not by the trail's own key"
        }
    }
}

/// Whom an auditor believes about one trail.
package struct TrailTrust: Sendable {
    package var origin: String
    /// Keys of the trail, past and present, and of witnesses (``NoteAlgorithm/cosignature``).
    package var keys: [NoteVerifierKey]

    package init(origin: String, keys: [NoteVerifierKey]) {
        self.origin = origin
        self.keys = keys
    }
}

/// A checkpoint whose signatures were checked; there is no other way to get one.
package struct TrustedCheckpoint: Hashable, Sendable {
    package let checkpoint: Checkpoint
    /// By the trail's own keys first; at least one.
    package let attestations: [NoteAttestation]
    /// As it was read.
    package let bytes: [UInt8]

    package init(opening bytes: [UInt8], trusting trust: TrailTrust) throws(CheckpointError) {
        let note: SignedNote
        let attestations: [NoteAttestation]
        do throws(NoteError) {
            note = try SignedNote(parsing: bytes)
            attestations = try note.attestations(by: trust.keys)
        } catch {
            throw .note(error)
        }
        let checkpoint = try Checkpoint(parsing: note.text)
        guard CodeUnits.equal(checkpoint.origin, trust.origin) else {
            throw .otherOrigin(expected: trust.origin, found: checkpoint.origin)
        }
        let byTrail = attestations.filter { $0.key.algorithm == .ed25519 }
        guard !byTrail.isEmpty else { throw .notSignedByTrail }
        self.checkpoint = checkpoint
        self.attestations = byTrail + attestations.filter { $0.key.algorithm == .cosignature }
        self.bytes = bytes
    }
}
