package import SealedFormat

/// Whether a device holds the private half of the key it registers.
///
/// A key that agrees cannot sign, so the device opens a sealed nonce and answers with
/// HMAC-SHA256(nonce, ``PossessionStatement``). The gateway keeps the nonce for five minutes and forgets it
/// after the first answer, right or wrong.
package enum Possession {
    package static let nonceByteCount = SealedLimits.nonceByteCount

    /// The answer of the holder of the private half.
    package static func proof(nonce: SecretBytes, info: SealedInfo) -> [UInt8] {
        HMACKey(nonce).authenticate(PossessionStatement.bytes(info: info.bytes))
    }

    /// - Parameters:
    ///   - proof: As it came from the device; every wrong length is simply no proof.
    ///   - nonce: The challenge's, 32 bytes.
    ///   - info: The challenge's, rebuilt from the gateway's own record.
    /// - Returns: In a time that does not depend on where the proof is wrong.
    package static func isProved(by proof: [UInt8], nonce: SecretBytes, info: SealedInfo) -> Bool {
        nonce.count == nonceByteCount && info.purpose == .challenge
            && HMACKey.constantTimeEqual(proof, Self.proof(nonce: nonce, info: info))
    }
}
