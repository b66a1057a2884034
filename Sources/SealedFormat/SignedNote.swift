/// A text and who signed it (C2SP signed-note).
///
/// - Warning: The text is not authenticated until a signature was verified.
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
        guard parts.count == 3, parts[0].utf8.elementsEqual("—".utf8), isKeyName(String(parts[1])),
            let bytes = Base64.decode(parts[2]), bytes.count > 4
        else { return nil }
        let keyID = bytes[..<4].reduce(0) { $0 << 8 | UInt32($1) }
        return NoteSignature(name: String(parts[1]), keyID: keyID, bytes: Array(bytes[4...]))
    }

    package static func isKeyName(_ name: String) -> Bool {
        !name.utf8.isEmpty
            && name.unicodeScalars.allSatisfy {
                $0.value > 0x20 && $0 != "+" && !$0.properties.isWhitespace
            }
    }
}

/// A public key that signs notes, as `golang.org/x/mod/sumdb/note` spells it:
/// `<name>+<key id>+<base64(algorithm ‖ public key)>`.
///
/// Checks only the spelling. This module has no hash function, so the caller checks that the key id belongs to the rest.
package struct NoteKeyText: Hashable, Sendable {
    package let name: String
    /// The first four bytes of SHA-256 over ``hashed``, big-endian.
    package let keyID: UInt32
    /// C2SP's signature type byte (signed-note, "Signature types").
    package let algorithm: UInt8
    /// 32 bytes.
    package let publicKey: [UInt8]

    package static let publicKeyByteCount = 32

    package init(name: String, keyID: UInt32, algorithm: UInt8, publicKey: [UInt8]) {
        self.name = name
        self.keyID = keyID
        self.algorithm = algorithm
        self.publicKey = publicKey
    }

    /// What the key id is made of.
    package static func hashed(name: String, algorithm: UInt8, publicKey: [UInt8]) -> [UInt8] {
        Array(name.utf8) + [0x0A, algorithm] + publicKey
    }

    package static func keyID(digest: [UInt8]) -> UInt32 { digest[..<4].reduce(0) { $0 << 8 | UInt32($1) } }

    package var text: String {
        var id: [UInt8] = []
        id.append(bigEndian: keyID)
        return "\(name)+\(IdentifierText.hexadecimal(id))+\(Base64.encode([algorithm] + publicKey))"
    }

    /// - Parameter text: Exactly what ``text`` gives for some key; whether the key id is right is left to the caller.
    package init?(parsing text: String) {
        let parts = text.split(separator: "+", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = Base64.decode(parts[2]),
            bytes.count == 1 + Self.publicKeyByteCount, parts[1].utf8.count == 8,
            let keyID = UInt32(parts[1], radix: 16), SignedNote.isKeyName(String(parts[0]))
        else { return nil }
        self.init(
            name: String(parts[0]), keyID: keyID, algorithm: bytes[0], publicKey: Array(bytes[1...]))
        guard self.text.utf8.elementsEqual(text.utf8) else { return nil }
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

/// Why a note is refused.
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
