import CanonicalJSON
import SealedFormat
package import OpenSSLCrypto

/// How a key signs a note; the raw value is C2SP's signature type byte (signed-note, "Signature types").
package enum NoteAlgorithm: UInt8, Hashable, Sendable {
    /// Ed25519 over the note's text.
    case ed25519 = 0x01
    /// Ed25519 over the text and the time a witness saw it (tlog-cosignature, "Ed25519 signed message").
    case cosignature = 0x04
}

/// A public key that signs notes, under a name: what an auditor pins.
package struct NoteVerifierKey: Sendable {
    package let name: String
    package let algorithm: NoteAlgorithm
    package let publicKey: Ed25519PublicKey
    /// The first four bytes of SHA-256(name ‖ 0x0A ‖ algorithm ‖ public key), big-endian. An identifier, not
    /// a commitment: it is short enough to collide on purpose.
    package let keyID: UInt32

    /// - Returns: `nil` when `name` is no key name: empty, or with white space, a control character or `+`.
    package init?(name: String, algorithm: NoteAlgorithm = .ed25519, publicKey: Ed25519PublicKey) {
        guard SignedNote.isKeyName(name) else { return nil }
        self.name = name
        self.algorithm = algorithm
        self.publicKey = publicKey
        let digest = SHA256.digest(Array(name.utf8) + [0x0A, algorithm.rawValue] + publicKey.rawBytes)
        keyID = digest.bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// `<name>+<key id>+<base64(algorithm ‖ public key)>`, as `golang.org/x/mod/sumdb/note` spells it.
    package var text: String {
        "\(name)+\(Self.hexadecimal(keyID))+\(Base64.encode([algorithm.rawValue] + publicKey.rawBytes))"
    }

    /// - Parameter text: Exactly what ``text`` gives for some key, with the right key id.
    package init?(parsing text: String) {
        let parts = text.split(separator: "+", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = Base64.decode(parts[2]), bytes.count == 33,
            let algorithm = NoteAlgorithm(rawValue: bytes[0]),
            let publicKey = try? Ed25519PublicKey(rawBytes: Array(bytes[1...])),
            let key = NoteVerifierKey(name: String(parts[0]), algorithm: algorithm, publicKey: publicKey),
            CodeUnits.equal(key.text, text)
        else { return nil }
        self = key
    }

    static func hexadecimal(_ keyID: UInt32) -> String {
        let digits = String(keyID, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}

extension NoteVerifierKey: Hashable {
    package static func == (left: NoteVerifierKey, right: NoteVerifierKey) -> Bool {
        left.algorithm == right.algorithm && left.publicKey == right.publicKey
            && CodeUnits.equal(left.name, right.name)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(algorithm)
        hasher.combine(publicKey)
    }
}

extension NoteVerifierKey: CustomStringConvertible {
    package var description: String { text }
}

/// A private key that signs notes under a name.
package struct NoteSigner: Sendable {
    package let verifierKey: NoteVerifierKey
    private let key: Ed25519PrivateKey

    /// - Returns: `nil` when `name` is no key name.
    package init?(name: String, key: Ed25519PrivateKey) {
        guard let verifierKey = NoteVerifierKey(name: name, publicKey: key.publicKey) else { return nil }
        self.verifierKey = verifierKey
        self.key = key
    }

    /// - Parameter text: The note's text with its final newline.
    package func sign(_ text: [UInt8]) throws -> NoteSignature {
        NoteSignature(name: verifierKey.name, keyID: verifierKey.keyID, bytes: try key.sign(text))
    }
}

/// One signature line of a note.
package struct NoteSignature: Sendable {
    package var name: String
    package var keyID: UInt32
    /// What follows the key id: 64 bytes for ``NoteAlgorithm/ed25519``, 72 for
    /// ``NoteAlgorithm/cosignature``, anything for algorithms this build does not know.
    package var bytes: [UInt8]

    package init(name: String, keyID: UInt32, bytes: [UInt8]) {
        self.name = name
        self.keyID = keyID
        self.bytes = bytes
    }

    var line: String {
        let id = stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: keyID >> UInt32($0)) }
        return "— \(name) \(Base64.encode(id + bytes))\n"
    }
}

/// A signature that a known key made.
package struct NoteAttestation: Hashable, Sendable {
    package var key: NoteVerifierKey
    /// Unix seconds; only a cosignature carries a time.
    package var cosignedAtSeconds: UInt64?

    package init(key: NoteVerifierKey, cosignedAtSeconds: UInt64? = nil) {
        self.key = key
        self.cosignedAtSeconds = cosignedAtSeconds
    }
}

/// Why a note is not believed.
package enum NoteError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { message }

    /// Longer than ``SignedNote/byteCountMax``.
    case tooLong(byteCount: Int, byteCountMax: Int)
    /// Not a signed note; `line` counts from 1.
    case malformed(line: Int, why: String)
    /// A signature that names a known key does not verify.
    case badSignature(keyName: String)
    /// No signature is by a known key.
    case noKnownSignature

    package var message: String {
        switch self {
        case .tooLong(let byteCount, let byteCountMax):
            "the note is \(byteCount) bytes long; at most \(byteCountMax) are accepted"
        case .malformed(let line, let why): "the note is malformed in line \(line): \(why)"
        case .badSignature(let keyName): "the signature by `\(keyName)` does not verify"
        case .noKnownSignature: "no signature is by a key that is trusted here"
        }
    }
}

/// A text and who signed it (C2SP signed-note).
///
/// - Warning: The text means nothing until ``attestations(by:)`` has returned.
package struct SignedNote: Sendable {
    /// Enough for a checkpoint with 16 post-quantum signatures of 5 kB.
    package static let byteCountMax = 131_072
    /// More than the 16 that every verifier must accept.
    package static let signatureCountMax = 64

    /// Ends with a newline.
    package let text: [UInt8]
    package let signatures: [NoteSignature]

    /// - Precondition: `text` ends with a newline and has no control character but newlines.
    package init(text: [UInt8], signatures: [NoteSignature]) {
        precondition(
            text.last == 0x0A && text.allSatisfy { $0 >= 0x20 || $0 == 0x0A },
            "a note was to be made of a text that is no note's")
        self.text = text
        self.signatures = signatures
    }

    package var bytes: [UInt8] {
        signatures.reduce(into: text + [0x0A]) { $0 += Array($1.line.utf8) }
    }

    package init(parsing bytes: [UInt8]) throws(NoteError) {
        guard bytes.count <= Self.byteCountMax else {
            throw .tooLong(byteCount: bytes.count, byteCountMax: Self.byteCountMax)
        }
        var lineNumber = 1
        for byte in bytes {
            if byte == 0x0A { lineNumber += 1 }
            guard byte >= 0x20 || byte == 0x0A else {
                throw .malformed(line: lineNumber, why: "a control character")
            }
        }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw .malformed(line: 1, why: "it is not UTF-8")
        }
        guard bytes.last == 0x0A else {
            throw .malformed(line: lineNumber, why: "the last line has no newline")
        }
        // The last empty line is the only place where a newline follows a newline with signatures behind.
        guard
            let blank = bytes.indices.dropFirst().last(where: { bytes[$0] == 0x0A && bytes[$0 - 1] == 0x0A })
        else { throw .malformed(line: 1, why: "no empty line stands before the signatures") }
        text = Array(bytes[..<blank])
        var line = text.count { $0 == 0x0A } + 1
        var signatures: [NoteSignature] = []
        for signatureLine in bytes[(blank + 1)...].dropLast().split(
            separator: 0x0A, omittingEmptySubsequences: false)
        {
            line += 1
            guard signatures.count < Self.signatureCountMax else {
                throw .malformed(line: line, why: "more than \(Self.signatureCountMax) signatures")
            }
            guard let signature = Self.signature(String(decoding: signatureLine, as: UTF8.self)) else {
                throw .malformed(line: line, why: "it is no signature")
            }
            signatures.append(signature)
        }
        self.signatures = signatures
    }

    private static func signature(_ line: String) -> NoteSignature? {
        let parts = line.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, CodeUnits.equal(String(parts[0]), "—"), isKeyName(String(parts[1])),
            let bytes = Base64.decode(parts[2]), bytes.count > 4
        else { return nil }
        let keyID = bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) }
        return NoteSignature(name: String(parts[1]), keyID: keyID, bytes: Array(bytes[4...]))
    }

    static func isKeyName(_ name: String) -> Bool {
        !name.utf8.isEmpty
            && name.unicodeScalars.allSatisfy {
                $0.value > 0x20 && $0 != "+" && !$0.properties.isWhitespace
            }
    }

    /// Every signature by one of `keys`; others are ignored, so that keys can be rotated and witnesses added.
    ///
    /// A signature that names a known key and fails condemns the whole note (signed-note, "Signatures").
    package func attestations(by keys: [NoteVerifierKey]) throws(NoteError) -> [NoteAttestation] {
        var attestations: [NoteAttestation] = []
        for signature in signatures {
            // Name and id together identify a key; both may collide only on purpose, so all are tried.
            let named = keys.filter {
                $0.keyID == signature.keyID && CodeUnits.equal($0.name, signature.name)
            }
            guard !named.isEmpty else { continue }
            guard let attestation = named.lazy.compactMap({ attestation(of: signature, by: $0) }).first else {
                throw .badSignature(keyName: signature.name)
            }
            if !attestations.contains(attestation) { attestations.append(attestation) }
        }
        guard !attestations.isEmpty else { throw .noKnownSignature }
        return attestations
    }

    private func attestation(of signature: NoteSignature, by key: NoteVerifierKey) -> NoteAttestation? {
        switch key.algorithm {
        case .ed25519:
            return key.publicKey.isValid(signature: signature.bytes, for: text)
                ? NoteAttestation(key: key) : nil
        case .cosignature:
            guard signature.bytes.count == 72 else { return nil }
            let seconds = signature.bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
            guard seconds <= UInt64(Int64.max),
                key.publicKey.isValid(
                    signature: Array(signature.bytes[8...]), for: Self.cosigned(text, atSeconds: seconds))
            else { return nil }
            return NoteAttestation(key: key, cosignedAtSeconds: seconds)
        }
    }

    /// What a witness signs (tlog-cosignature, "Ed25519 signed message").
    package static func cosigned(_ text: [UInt8], atSeconds seconds: UInt64) -> [UInt8] {
        Array("cosignature/v1\ntime \(seconds)\n".utf8) + text
    }
}
