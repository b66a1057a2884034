package import CanonicalJSON
import GateRecords
import GateVocabulary

/// `POST …/devices/{device}/keys`: a public key whose private half never leaves the device.
package struct DeviceKeyBody: WireBody, Hashable {
    /// The HPKE suite that the key is for (RFC 9180).
    package enum Suite: String, CaseIterable, Sendable, Hashable, ShapedBodyValue {
        case p256 = "P256_SHA256_AES256GCM"
        case x25519 = "X25519_SHA256_CHACHA20POLY1305"
    }

    package var suite: Suite
    /// 65 bytes for P-256 (an uncompressed point, not yet proved to lie on the curve), 32 for X25519.
    package var publicKey: [UInt8]

    package static let shape = declared("DeviceKey")

    package static let example: JSONValue = [
        "suite": "P256_SHA256_AES256GCM",
        "public_key":
            "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
    ]

    package init(from fields: BodyFields) {
        suite = fields.variant(
            "suite", "The HPKE suite (RFC 9180).",
            [
                ([.p256], "A P-256 key, which Secure Enclave and Android Keystore can hold."),
                ([.x25519], "An X25519 key."),
            ])
        publicKey = fields.required(
            "public_key",
            oneOf: [
                (
                    fields.only(Suite.p256), .text(.base64urlP256Point),
                    "The uncompressed point, 65 bytes in base64url without padding."
                ),
                (
                    fields.only(Suite.x25519), .text(.base64urlX25519Key),
                    "The public key, 32 bytes in base64url without padding."
                ),
            ])
    }
}

/// `POST …/keys/{key_id}/confirm`: the device shows that it opened the challenge, without showing the nonce.
package struct KeyConfirmBody: WireBody, Hashable {
    /// HMAC-SHA256(nonce, "sendgate/possession/v1\0" ‖ info), 32 bytes.
    package var proof: [UInt8]
    /// The same from the device's earlier active key, when it has one.
    package var oldKeyProof: [UInt8]?

    package static let shape = declared(
        "KeyConfirmation",
        "Proof that the device holds the private key: HMAC-SHA256 under the challenge's nonce, never the nonce itself."
    )

    package static let example: JSONValue = ["proof": "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"]

    package init(from fields: BodyFields) {
        proof = fields.required("proof", as: .text(.base64url32), "From the new key's challenge.")
        oldKeyProof = fields.optional(
            "old_key_proof", as: .text(.base64url32),
            "From the old key's challenge, when the device already has an active key.")
    }
}
