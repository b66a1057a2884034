import COpenSSL
import CSodium

/// An Ed25519 signing key (RFC 8032).
///
/// Signs with libsodium, which takes 20 µs and 256,000 instructions where OpenSSL 3.0 takes 42 and 617,000 (400 bytes, callgrind):
/// every push is signed. The signature is the same, and is verified by OpenSSL.
package final class Ed25519PrivateKey: Sendable {
    /// As libsodium has a private key: the seed, and the public key.
    private let key: SecretBytes

    package static let seedByteCount = 32
    package static let signatureByteCount = 64

    package let publicKey: Ed25519PublicKey

    /// Whether the library is set up, which has to be once before its first use; -1 says that it cannot.
    private static let isReady = sodium_init() >= 0

    /// - Parameter seed: Exactly 32 bytes (RFC 8032 calls it the private key).
    package init(seed: SecretBytes) throws {
        guard seed.count == Self.seedByteCount else {
            throw OpenSSLError.wrongByteCount(
                what: "an Ed25519 seed", expected: Self.seedByteCount, actual: seed.count)
        }
        guard Self.isReady else { throw Self.failure(to: "set libsodium up") }
        var raw = [UInt8](repeating: 0, count: Ed25519PublicKey.byteCount)
        key = try SecretBytes(byteCount: Self.seedByteCount + raw.count) { secret in
            let isDerived = seed.withUnsafeBytes { seed in
                guard let secret = secret.bytePointer, let seed = seed.bytePointer else { return false }
                return crypto_sign_ed25519_seed_keypair(&raw, secret, seed) == 0
            }
            guard isDerived else { throw Self.failure(to: "derive the Ed25519 public key") }
        }
        publicKey = try Ed25519PublicKey(rawBytes: raw)
    }

    package static func generate() throws -> Ed25519PrivateKey {
        try Ed25519PrivateKey(seed: .random(byteCount: seedByteCount))
    }

    private static func failure(to operation: String) -> OpenSSLError {
        .failed(operation: operation, reason: "no reason given by libsodium")
    }

    /// - Returns: 64 bytes. Equal messages give equal signatures; no randomness is used.
    package func sign(_ message: [UInt8]) throws -> [UInt8] {
        try message.withUnsafeBytes { message in
            try [UInt8](unsafeUninitializedCapacity: Self.signatureByteCount) { signature, count in
                try sign(
                    message,
                    into: UnsafeMutableRawBufferPointer(
                        start: signature.baseAddress, count: Self.signatureByteCount))
                count = Self.signatureByteCount
            }
        }
    }

    /// - Parameter signature: Room for exactly 64 bytes, outside `message`.
    package func sign(_ message: UnsafeRawBufferPointer, into signature: UnsafeMutableRawBufferPointer) throws
    {
        precondition(signature.count == Self.signatureByteCount)
        let isSigned = key.withUnsafeBytes { secret in
            guard let start = signature.bytePointer, let secret = secret.bytePointer else { return false }
            return crypto_sign_ed25519_detached(
                start, nil, message.bytePointer, UInt64(message.count), secret) == 0
        }
        guard isSigned else { throw Self.failure(to: "sign") }
    }

    /// The 32-byte seed, for writing a key file. The pointer is valid only inside `body`.
    package func withSeed<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
        try key.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<Self.seedByteCount])) }
    }
}

/// An Ed25519 public key (RFC 8032): its 32 bytes are its identity.
package struct Ed25519PublicKey: Sendable, Hashable {
    package static let byteCount = 32

    package let rawBytes: [UInt8]

    /// - Parameter rawBytes: Exactly 32. A value that is no point of the curve is accepted here, as RFC
    ///   8032 checks it only when verifying, and then validates no signature.
    package init(rawBytes: [UInt8]) throws {
        guard rawBytes.count == Self.byteCount else {
            throw OpenSSLError.wrongByteCount(
                what: "an Ed25519 public key", expected: Self.byteCount, actual: rawBytes.count)
        }
        self.rawBytes = rawBytes
    }

    /// `false` for every signature that does not verify, whatever the cause.
    package func isValid(signature: [UInt8], for message: [UInt8]) -> Bool {
        guard signature.count == Ed25519PrivateKey.signatureByteCount,
            let key = EVP_PKEY_new_raw_public_key_ex(nil, "ED25519", nil, rawBytes, rawBytes.count)
        else { return false }
        defer { EVP_PKEY_free(key) }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        let valid =
            EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
        // A refused signature leaves its reason on the thread's queue, where the next failure would find it.
        ERR_clear_error()
        return valid
    }
}
