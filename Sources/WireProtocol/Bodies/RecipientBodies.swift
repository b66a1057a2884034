package import CanonicalJSON
package import GateRecords
import GateVocabulary
import SealedFormat

/// Bytes in base64url without padding.
extension UInt8: GivenElement {
    package static func read(all json: JSONValue, of _: String) -> [UInt8]? {
        json.stringValue.flatMap { Base64URL.decode($0) }
    }
}

/// `POST …/devices/{device}/keys`: a public key whose private half never leaves the device.
package struct DeviceKeyBody: WireBody, GivenRecord {
    /// The HPKE suite that the key is for (RFC 9180).
    package enum Suite: String, CaseIterable, Sendable, Hashable, FieldValue, ShownValue, GivenValue {
        case p256 = "P256_SHA256_AES256GCM"
        case x25519 = "X25519_SHA256_CHACHA20POLY1305"
    }

    package var suite = Suite.p256
    /// 65 bytes for P-256 (an uncompressed point, not yet proved to lie on the curve), 32 for X25519.
    package var publicKey: [UInt8] = []

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given(
            "suite", \.suite, "The HPKE suite (RFC 9180).",
            .telling([
                (
                    [Suite.p256.rawValue],
                    "A P-256 key, which Secure Enclave and Android Keystore can hold."
                ),
                ([Suite.x25519.rawValue], "An X25519 key."),
            ]))
        fields.given(
            "public_key", \.publicKey, "The public key.",
            .perVariant([
                (
                    [Suite.p256.rawValue], .text(.base64urlP256Point),
                    "The uncompressed point, 65 bytes in base64url without padding."
                ),
                (
                    [Suite.x25519.rawValue], .text(.base64urlX25519Key),
                    "The public key, 32 bytes in base64url without padding."
                ),
            ]))
    }

    package static let givenShape = given(as: "DeviceKey")
    package static let givenExample: JSONValue = [
        "suite": "P256_SHA256_AES256GCM",
        "public_key":
            "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
    ]
}

/// `POST …/keys/{key_id}/confirm`: the device shows that it opened the challenge, without showing the nonce.
package struct KeyConfirmBody: WireBody, GivenRecord {
    /// HMAC-SHA256(nonce, "sendgate/possession/v1\0" ‖ info), 32 bytes.
    package var proof: [UInt8] = []
    /// The same from the device's earlier active key, when it has one.
    package var oldKeyProof: [UInt8]?

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given("proof", \.proof, "From the new key's challenge.", .text(.base64url32))
        fields.given(
            "old_key_proof", \.oldKeyProof,
            "From the old key's challenge, when the device already has an active key.", .text(.base64url32))
    }

    package static let givenShape = given(
        as: "KeyConfirmation",
        "Proof that the device holds the private key: HMAC-SHA256 under the challenge's nonce, never the nonce itself."
    )
    package static let givenExample: JSONValue = ["proof": "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"]
}
