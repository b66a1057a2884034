import CanonicalJSON
package import OpenSSLCrypto
package import SealedFormat

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
        keyID = NoteKeyText.keyID(
            digest: SHA256.digest(
                NoteKeyText.hashed(name: name, algorithm: algorithm.rawValue, publicKey: publicKey.rawBytes)
            ).bytes)
    }

    package var text: String {
        NoteKeyText(
            name: name, keyID: keyID, algorithm: algorithm.rawValue, publicKey: publicKey.rawBytes
        ).text
    }

    /// - Parameter text: Exactly what ``text`` gives for some key, with the right key id.
    package init?(parsing text: String) {
        guard let parts = NoteKeyText(parsing: text),
            let algorithm = NoteAlgorithm(rawValue: parts.algorithm),
            let publicKey = try? Ed25519PublicKey(rawBytes: parts.publicKey),
            let key = NoteVerifierKey(name: parts.name, algorithm: algorithm, publicKey: publicKey),
            key.keyID == parts.keyID
        else { return nil }
        self = key
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

extension SignedNote {
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
