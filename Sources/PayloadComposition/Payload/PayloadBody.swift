import CanonicalJSON
import SealedFormat

/// The bytes of a provider's body, with at most one place for an envelope.
///
/// The envelope is put in as a JSON string: FCM's `data` holds nothing else, and a string is the only
/// shape whose bytes survive a delivery layer that parses JSON and writes it again.
package struct PayloadBody: Hashable, Sendable {
    /// What a body has a place for.
    struct Envelope: Hashable, Sendable {
        /// Where in the body without it: inside of the quotation marks of a JSON string that is empty.
        var place: Int
        var byteCount: Int
        /// Bytes it takes in the body.
        var filledByteCount: Int { byteCount + SealedEnvelope.quotationMarkCount }
    }

    /// Everything but the envelope.
    private let bytes: [UInt8]
    private let envelope: Envelope?

    init(_ bytes: [UInt8], envelope: Envelope?) {
        self.bytes = bytes
        self.envelope = envelope
    }

    /// The length of the envelope that belongs here; `nil` when none does.
    package var envelopeByteCount: Int? { envelope?.byteCount }

    private var place: Int { envelope?.place ?? bytes.count }

    /// Everything, when there is no place for an envelope.
    package var beforeEnvelope: [UInt8] { Array(bytes[..<place]) }
    package var afterEnvelope: [UInt8] { Array(bytes[place...]) }

    /// Bytes of the body once it is filled.
    package var byteCount: Int { bytes.count + (envelope?.filledByteCount ?? 0) }

    /// The body as it goes to the provider.
    ///
    /// - Throws: ``CompositionError/envelopeLength(expected:actual:)`` when the envelope has not the length the
    ///   decision was made on: then the send fails instead of leaving with a size nobody decided about.
    package func filled(with envelope: [UInt8]?) throws(CompositionError) -> [UInt8] {
        guard let envelopeByteCount else {
            guard envelope == nil else { throw .envelopeNotExpected(hasPlace: false) }
            return bytes
        }
        guard let envelope else { throw .envelopeNotExpected(hasPlace: true) }
        guard envelope.count == envelopeByteCount else {
            throw .envelopeLength(expected: envelopeByteCount, actual: envelope.count)
        }
        var filled = CanonicalWriter(capacity: byteCount)
        filled.raw(bytes[..<place])
        filled.characters(String(decoding: envelope, as: UTF8.self))
        filled.raw(bytes[place...])
        guard filled.byteCount == byteCount else {
            throw .envelopeLength(expected: byteCount, actual: filled.byteCount)
        }
        return filled.finish()
    }
}

/// One payload, ready but for the seal.
package struct ComposedPayload: Hashable, Sendable {
    /// Provider headers by name, values are texts: canonical JSON.
    package var headers: [UInt8]
    package var body: PayloadBody
    /// What is to be sealed; set exactly when ``body`` has a place for an envelope.
    package var innerContent: [UInt8]?
    /// What gate 12 weighs: bytes of the filled body, and for SMS the characters of ``SMSEncoding``.
    package var byteCount: Int
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
