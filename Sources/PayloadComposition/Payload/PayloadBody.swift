package import CanonicalJSON
import SealedFormat

/// The bytes of a provider's body, with at most one place for an envelope.
///
/// The envelope is put in as a JSON string: FCM's `data` holds nothing else, and a string is the only
/// shape whose bytes survive a delivery layer that parses JSON and writes it again.
package struct PayloadBody: Hashable, Sendable {
    /// Everything, when there is no place for an envelope.
    package let beforeEnvelope: [UInt8]
    package let afterEnvelope: [UInt8]
    /// The length of the envelope that belongs here; `nil` when none does.
    package let envelopeByteCount: Int?

    init(_ bytes: [UInt8]) {
        beforeEnvelope = bytes
        afterEnvelope = []
        envelopeByteCount = nil
    }

    init(before: [UInt8], after: [UInt8], envelopeByteCount: Int) {
        beforeEnvelope = before
        afterEnvelope = after
        self.envelopeByteCount = envelopeByteCount
    }

    /// Bytes of the body once it is filled.
    package var byteCount: Int {
        guard let envelopeByteCount else { return beforeEnvelope.count }
        return beforeEnvelope.count + envelopeByteCount + SealedEnvelope.quotationMarkCount
            + afterEnvelope.count
    }

    /// The body as it goes to the provider.
    ///
    /// - Throws: ``CompositionError/envelopeLength(expected:actual:)`` when the envelope has not the length the
    ///   decision was made on: then the send fails instead of leaving with a size nobody decided about.
    package func filled(with envelope: [UInt8]?) throws(CompositionError) -> [UInt8] {
        guard let envelopeByteCount else {
            guard envelope == nil else { throw .envelopeNotExpected(hasPlace: false) }
            return beforeEnvelope
        }
        guard let envelope else { throw .envelopeNotExpected(hasPlace: true) }
        guard envelope.count == envelopeByteCount else {
            throw .envelopeLength(expected: envelopeByteCount, actual: envelope.count)
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount)
        bytes.append(contentsOf: beforeEnvelope)
        for byte in envelope {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(contentsOf: afterEnvelope)
        guard bytes.count == byteCount else {
            throw .envelopeLength(expected: byteCount, actual: bytes.count)
        }
        return bytes
    }
}

/// One payload, ready but for the seal.
package struct ComposedPayload: Hashable, Sendable {
    /// Provider headers by name; values are strings.
    package var headers: JSONObject
    package var body: PayloadBody
    /// What is to be sealed; set exactly when ``body`` has a place for an envelope.
    package var innerContent: [UInt8]?
    /// What gate 12 weighs: bytes of the filled body, and for SMS the characters of ``SMSEncoding``.
    package var byteCount: Int

    init(headers: JSONObject = [:], body: PayloadBody, innerContent: [UInt8]? = nil, byteCount: Int? = nil) {
        self.headers = headers
        self.body = body
        self.innerContent = innerContent
        self.byteCount = byteCount ?? body.byteCount
    }
}

/// How long an envelope around some content will be, without sealing it.
enum EnvelopeLength {
    /// - Returns: For content that fits no bucket, what the next power of two would take: too long for every
    ///   channel, so that gate 12 says `payload_too_large` with an honest number.
    static func byteCount(contentByteCount: Int, suite: SealingSuite) -> Int {
        if let known = SealedEnvelope.byteCount(contentByteCount: contentByteCount, suite: suite) {
            return known
        }
        var bucket = SealedLimits.buckets[SealedLimits.buckets.count - 1]
        while bucket < contentByteCount + SealedLimits.plaintextHeaderByteCount { bucket *= 2 }
        return Base64URL.characterCount(
            byteCount: suite.publicKeyByteCount + bucket + SealedLimits.tagByteCount)
    }
}
