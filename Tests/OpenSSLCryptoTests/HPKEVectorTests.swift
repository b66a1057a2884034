import Foundation
import OpenSSLCrypto
import Testing

/// One entry of `Tests/Fixtures/Vectors/HPKE/hpke-rfc9180-base.json`; its README names the source.
struct HPKEVector: Decodable, Sendable, CustomTestStringConvertible {
    struct Encryption: Decodable {
        let aad: String
        let ct: String
        let nonce: String
        let pt: String
    }

    let mode: Int
    let kemID: UInt16
    let kdfID: UInt16
    let aeadID: UInt16
    let info: String
    let skRm: String
    let skEm: String
    let pkRm: String
    let pkEm: String
    let enc: String
    let sharedSecret: String
    let key: String
    let baseNonce: String
    let encryptions: [Encryption]

    enum CodingKeys: String, CodingKey {
        case mode, info, skRm, skEm, pkRm, pkEm, enc, key, encryptions
        case kemID = "kem_id"
        case kdfID = "kdf_id"
        case aeadID = "aead_id"
        case sharedSecret = "shared_secret"
        case baseNonce = "base_nonce"
    }

    var testDescription: String { "KEM \(kemID), AEAD \(aeadID)" }

    var curve: AgreementCurve? { AgreementCurve.allCases.first { $0.kemID == kemID } }
    /// `nil` for AES-128-GCM, which no suite of ours uses.
    var aead: AEADAlgorithm? { AEADAlgorithm.allCases.first { $0.aeadID == aeadID } }

    static let all: [HPKEVector] = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fixtures/Vectors/HPKE/hpke-rfc9180-base.json")
        // A missing or changed file must stop the tests, not empty them.
        return try! JSONDecoder().decode([HPKEVector].self, from: Data(contentsOf: file))
    }()

    static let withOurAEADs = all.filter { $0.aead != nil }
}

@Suite struct HPKEVectorTests {
    @Test func `the file holds base mode for two KEMs and three AEADs`() {
        #expect(
            HPKEVector.all.map { [$0.kemID, $0.aeadID] } == [
                [32, 1], [32, 2], [32, 3], [16, 1], [16, 2], [16, 3],
            ])
        #expect(HPKEVector.all.allSatisfy { $0.mode == 0 && $0.kdfID == 1 && $0.encryptions.count == 4 })
        #expect(HPKEVector.withOurAEADs.count == 4)
    }

    /// The KEM does not depend on the AEAD, so this holds for all six.
    @Test(arguments: HPKEVector.all) func `the shared secret is RFC 9180's`(vector: HPKEVector) throws {
        #expect(try sharedSecret(vector) == hex(vector.sharedSecret))
    }

    @Test(arguments: HPKEVector.withOurAEADs) func `key and base nonce are RFC 9180's`(vector: HPKEVector)
        throws
    {
        let (key, baseNonce) = try schedule(vector)
        #expect(key == hex(vector.key))
        #expect(baseNonce == hex(vector.baseNonce))
    }

    @Test(arguments: HPKEVector.withOurAEADs)
    func `ciphertexts are RFC 9180's at sequence numbers 0, 1, 2 and 256`(vector: HPKEVector) throws {
        let (key, baseNonce) = try schedule(vector)
        var sealing = try AEADSealing(try #require(vector.aead))
        for (encryption, sequence) in zip(vector.encryptions, [0, 1, 2, 256]) {
            // RFC 9180 section 5.2: the nonce is baseNonce xor the big-endian sequence number.
            var nonce = baseNonce
            nonce[11] ^= UInt8(sequence & 0xFF)
            nonce[10] ^= UInt8(sequence >> 8)
            #expect(nonce == hex(encryption.nonce))
            let plaintext = hex(encryption.pt)
            var sealed = [UInt8](repeating: 0, count: plaintext.count + 16)
            try sealed.withUnsafeMutableBytes { sealed in
                try plaintext.withUnsafeBytes { plaintext in
                    try hex(encryption.aad).withUnsafeBytes { aad in
                        try key.withUnsafeBytes { key in
                            try nonce.withUnsafeBytes { nonce in
                                try sealing.seal(plaintext, aad: aad, key: key, nonce: nonce, into: sealed)
                            }
                        }
                    }
                }
            }
            #expect(sealed == hex(encryption.ct), "sequence number \(sequence)")
        }
    }

    private func hpke(_ vector: HPKEVector) throws -> HPKEBaseMode {
        HPKEBaseMode(HPKEAlgorithms(kem: try #require(vector.curve), aead: vector.aead ?? .aes256GCM))
    }

    /// Plays the sender with the vector's ephemeral key, which production cannot be given.
    private func sharedSecret(_ vector: HPKEVector) throws -> [UInt8] {
        let curve = try #require(vector.curve)
        let ephemeral = try AgreementPrivateKey(
            rawBytes: SecretBytes(copying: hex(vector.skEm)), publicKey: hex(vector.pkEm), curve: curve)
        let recipient = try AgreementPublicKey(validating: hex(vector.pkRm), curve: curve)
        let agreed = try ephemeral.sharedSecret(with: recipient)
        // The recipient's end agrees on the same.
        let device = try AgreementPrivateKey(
            rawBytes: SecretBytes(copying: hex(vector.skRm)), publicKey: hex(vector.pkRm), curve: curve)
        #expect(HMACKey.constantTimeEqual(agreed, try device.sharedSecret(with: ephemeral.publicKey)))

        var hpke = try hpke(vector)
        var secret = [UInt8](repeating: 0, count: 32)
        secret.withUnsafeMutableBytes { secret in
            hex(vector.enc).withUnsafeBytes { encapsulated in
                agreed.withUnsafeBytes { agreed in
                    hpke.deriveSharedSecret(
                        agreed: agreed, encapsulated: encapsulated, recipient: recipient.rawBytes,
                        into: secret)
                }
            }
        }
        return secret
    }

    private func schedule(_ vector: HPKEVector) throws -> (key: [UInt8], baseNonce: [UInt8]) {
        let secret = try sharedSecret(vector)
        var hpke = try hpke(vector)
        var key = [UInt8](repeating: 0, count: 32)
        var baseNonce = [UInt8](repeating: 0, count: 32)
        // Twice, as the working memory is used again for every message.
        for _ in 0..<2 {
            key.withUnsafeMutableBytes { key in
                baseNonce.withUnsafeMutableBytes { baseNonce in
                    secret.withUnsafeBytes { secret in
                        hpke.schedule(
                            sharedSecret: secret, info: hex(vector.info), key: key, baseNonce: baseNonce)
                    }
                }
            }
        }
        return (key, Array(baseNonce.prefix(12)))
    }
}
