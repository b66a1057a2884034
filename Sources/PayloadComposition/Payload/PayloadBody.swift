import CanonicalJSON
import SealedFormat

/// The bytes of a provider's body, with at most one place for what the origin key makes: a push is sealed or signed
/// after it was decided.
///
/// The insertion is a JSON string: FCM's `data` holds nothing else, and a string is the only shape whose bytes survive a
/// delivery layer that parses JSON and writes it again.
package struct PayloadBody: Hashable, Sendable {
    /// What a body has a place for.
    struct Insertion: Hashable, Sendable {
        /// Where in the body without it: inside of the quotation marks of a JSON string that is empty.
        var place: Int
        var byteCount: Int
        /// Characters that JSON escapes with one byte each.
        var quotationMarkCount: Int
        /// Bytes it takes in the body.
        var filledByteCount: Int { byteCount + quotationMarkCount }

        static func envelope(at place: Int, byteCount: Int) -> Insertion {
            Insertion(
                place: place, byteCount: byteCount, quotationMarkCount: SealedEnvelope.quotationMarkCount)
        }

        static func mark(at place: Int) -> Insertion {
            Insertion(place: place, byteCount: OriginMark.characterCount, quotationMarkCount: 0)
        }
    }

    /// Everything but the insertion.
    private let bytes: [UInt8]
    private let insertion: Insertion?

    init(_ bytes: [UInt8], insertion: Insertion?) {
        self.bytes = bytes
        self.insertion = insertion
    }

    /// The length of what belongs here; `nil` when nothing does.
    package var insertionByteCount: Int? { insertion?.byteCount }

    private var place: Int { insertion?.place ?? bytes.count }

    /// Everything, when there is no place for an insertion.
    package var beforeInsertion: [UInt8] { Array(bytes[..<place]) }
    package var afterInsertion: [UInt8] { Array(bytes[place...]) }

    /// Bytes of the body once it is filled.
    package var byteCount: Int { bytes.count + (insertion?.filledByteCount ?? 0) }

    /// The body as it goes to the provider.
    ///
    /// - Throws: ``CompositionError/insertionLength(expected:actual:)`` when the envelope or the mark has not the length
    ///   that the decision was made on: the send then fails, because no decision covers another size.
    package func filled(with inserted: [UInt8]?) throws(CompositionError) -> [UInt8] {
        guard let insertionByteCount else {
            guard inserted == nil else { throw .insertionNotExpected(hasPlace: false) }
            return bytes
        }
        guard let inserted else { throw .insertionNotExpected(hasPlace: true) }
        guard inserted.count == insertionByteCount else {
            throw .insertionLength(expected: insertionByteCount, actual: inserted.count)
        }
        if insertion?.quotationMarkCount == 0, Self.isWrittenAsItIs(inserted) {
            var filled: [UInt8] = []
            filled.reserveCapacity(byteCount)
            filled += bytes[..<place]
            filled += inserted
            filled += bytes[place...]
            return filled
        }
        var filled = CanonicalWriter(capacity: byteCount)
        filled.raw(bytes[..<place])
        filled.characters(String(decoding: inserted, as: UTF8.self))
        filled.raw(bytes[place...])
        guard filled.byteCount == byteCount else {
            throw .insertionLength(expected: byteCount, actual: filled.byteCount)
        }
        return filled.finish()
    }

    /// Whether JSON escapes nothing of it, which is so of a mark.
    private static func isWrittenAsItIs(_ inserted: [UInt8]) -> Bool {
        var worst: UInt8 = 0
        // Without a branch in it, so that the compiler takes many bytes at once.
        for byte in inserted {
            worst |= (byte < 0x20 ? 1 : 0) | (byte > 0x7E ? 1 : 0)
            worst |= (byte == UInt8(ascii: "\"") ? 1 : 0) | (byte == UInt8(ascii: "\\") ? 1 : 0)
        }
        return worst == 0
    }
}

/// What the origin key vouches for in a body, and so what is put into it.
package enum OriginContent: Sendable {
    /// The content of a seal; the envelope goes in.
    case sealed([UInt8])
    /// What is shown and linked to in the clear; the signature over it goes in, as an ``OriginMark``.
    case open(OpenPush)
}

/// One payload, ready but for the seal or the signature.
package struct ComposedPayload: Sendable {
    /// Provider headers by name, values are texts: canonical JSON.
    package var headers: [UInt8]
    package var body: PayloadBody
    /// Set for every push: exactly when ``body`` has a place for an insertion.
    package var content: OriginContent?
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
