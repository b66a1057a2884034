import CanonicalJSON
import GateVocabulary
package import SealedFormat

/// A push that was weighed and not written yet. A class, because a payload, its body and the order to its sealer share it.
package final class WeighedPush: Sendable {
    private let notification: NotificationContent
    private let target: PayloadTarget
    private let platform: Platform
    private let form: BodyForm
    /// Those of the body, where it has them as they are signed.
    private let texts: OpenPushTexts?
    fileprivate let insertion: PayloadBody.Insertion
    /// Of the filled body.
    let byteCount: Int

    init(
        _ notification: NotificationContent, for target: PayloadTarget, on platform: Platform,
        as form: BodyForm
    ) throws(CompositionError) {
        let (written, insertion) = try weigh(notification, for: target, as: form)
        guard let insertion else { preconditionFailure("a push has no place for a seal or a mark") }
        self.notification = notification
        self.target = target
        self.platform = platform
        self.form = form
        texts = written.texts
        self.insertion = insertion
        byteCount = written.byteCount + insertion.filledByteCount
        // An open body has each of its texts, so none of a shorter one is too long to sign.
        if form != .sealed, byteCount > OpenPushContent.textByteCountMax { _ = try signedContent() }
    }

    /// What goes inside the seal: canonical JSON.
    package var sealedContent: [UInt8] { notification.sealedContent(for: platform) }

    /// What the origin key signs of a push that is not sealed.
    package func signedContent() throws(CompositionError) -> OpenPushContent {
        try (texts ?? notification.openPushTexts(for: platform, as: form)).content()
    }

    /// The body but for the insertion.
    ///
    /// - Throws: When it is not as long as it was weighed.
    fileprivate func written() throws(CompositionError) -> [UInt8] {
        var body = CanonicalWriter(capacity: byteCount)
        _ = try write(notification, for: target, as: form, to: &body)
        let filledByteCount = body.byteCount + insertion.filledByteCount
        guard filledByteCount == byteCount else {
            throw .insertionLength(expected: byteCount, actual: filledByteCount)
        }
        return body.finish()
    }
}

/// A provider's body, with at most one place for what the origin key makes: a push is sealed or signed after it was
/// decided, and is written then.
///
/// The insertion is a JSON string: FCM's `data` holds nothing else, and a string is the only shape whose bytes survive a
/// delivery layer that parses JSON and writes it again.
package struct PayloadBody: Sendable {
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

    private enum Source: Sendable {
        case written([UInt8])
        case push(WeighedPush)
    }

    private let source: Source

    init(_ bytes: [UInt8]) { source = .written(bytes) }

    init(_ push: WeighedPush) { source = .push(push) }

    /// The length of what belongs here; `nil` when nothing does.
    package var insertionByteCount: Int? {
        if case .push(let push) = source { push.insertion.byteCount } else { nil }
    }

    /// What stands before and after the insertion; everything and nothing, when there is no place for one.
    package func parts() throws(CompositionError) -> (before: ArraySlice<UInt8>, after: ArraySlice<UInt8>) {
        switch source {
        case .written(let bytes): return (bytes[...], [])
        case .push(let push):
            let bytes = try push.written()
            return (bytes[..<push.insertion.place], bytes[push.insertion.place...])
        }
    }

    /// Bytes of the body once it is filled.
    package var byteCount: Int {
        switch source {
        case .written(let bytes): bytes.count
        case .push(let push): push.byteCount
        }
    }

    /// The body as it goes to the provider.
    ///
    /// - Throws: ``CompositionError/insertionLength(expected:actual:)`` when the envelope or the mark has not the length
    ///   that the decision was made on: the send then fails, because no decision covers another size.
    package func filled(with inserted: [UInt8]?) throws(CompositionError) -> [UInt8] {
        let push: WeighedPush
        switch source {
        case .written(let bytes):
            guard inserted == nil else { throw .insertionNotExpected(hasPlace: false) }
            return bytes
        case .push(let weighed): push = weighed
        }
        guard let inserted else { throw .insertionNotExpected(hasPlace: true) }
        guard inserted.count == push.insertion.byteCount else {
            throw .insertionLength(expected: push.insertion.byteCount, actual: inserted.count)
        }
        let (before, after) = try parts()
        if push.insertion.quotationMarkCount == 0, Self.isWrittenAsItIs(inserted) {
            var filled: [UInt8] = []
            filled.reserveCapacity(byteCount)
            filled += before
            filled += inserted
            filled += after
            return filled
        }
        var filled = CanonicalWriter(capacity: byteCount)
        filled.raw(before)
        filled.characters(String(decoding: inserted, as: UTF8.self))
        filled.raw(after)
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
    case sealed(WeighedPush)
    /// What is shown and linked to in the clear; the signature over it goes in, as an ``OriginMark``.
    case open(WeighedPush)
}

/// One payload, ready but for the seal or the signature. A class, because a plan keeps it and few sends have one.
package final class ComposedPayload: Sendable {
    /// Provider headers by name, values are texts: canonical JSON.
    package let headers: [UInt8]
    package let body: PayloadBody
    /// Set for every push: exactly when ``body`` has a place for an insertion.
    package let content: OriginContent?
    /// What gate 12 weighs: bytes of the filled body with what a service adds to it, and for SMS the characters of
    /// ``SMSEncoding``.
    package let byteCount: Int

    init(headers: [UInt8], body: PayloadBody, content: OriginContent?, byteCount: Int) {
        self.headers = headers
        self.body = body
        self.content = content
        self.byteCount = byteCount
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
