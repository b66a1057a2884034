public import CanonicalJSON

/// A name that a person or a producer chose; compared by its exact UTF-8 bytes.
///
/// Bounds are checked where the text enters (`WireProtocol`, `PolicyFiles`), so a value of one of
/// these types is always within them.
@usableFromInline
package protocol TextIdentifier: Hashable, Comparable, Sendable, CustomStringConvertible {
    var text: String { get }
    init(_ text: String)
}

extension TextIdentifier {
    @inlinable
    package var description: String { text }

    // Swift's own `==` on texts takes `é` and `e` followed by U+0301 for the same text. Two people's
    // ids may differ in exactly that, so bytes are compared; the extension replaces the synthesized one.
    @inlinable
    package static func == (left: Self, right: Self) -> Bool { CodeUnits.equal(left.text, right.text) }

    @inlinable
    package static func < (left: Self, right: Self) -> Bool { CodeUnits.precedes(left.text, right.text) }

    @inlinable
    package func hash(into hasher: inout Hasher) {
        CodeUnits.withBytes(text) { bytes in
            hasher.combine(bytes.count)
            hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
        }
    }

    /// Where a name is a key by itself. A requirement of `Hashable` that is called in the place of `hash(into:)`.
    @inlinable
    package func _rawHashValue(seed: Int) -> Int {
        CodeUnits.withBytes(text) { KeyedHash.of($0, seed: seed) }
    }
}

/// A hash of bytes under keys that no client knows, so that names and ids cannot be chosen to collide.
///
/// Multiply and fold, a word at a time, as Go's maps hash where the processor has no instruction for it (`memhashFallback` in
/// runtime/hash64.go). Swift's SipHash takes some four times as many instructions, and a send looks up ten names and ids.
@usableFromInline
package enum KeyedHash {
    @inlinable
    package static func of(_ bytes: UnsafeBufferPointer<UInt8>, seed: Int) -> Int {
        let (first, second) = identifierHashKeys
        var hash = first ^ UInt64(bitPattern: Int64(seed)) ^ UInt64(bytes.count)
        var offset = 0
        while offset &+ 8 <= bytes.count {
            hash = fold(hash ^ CodeUnits.word(bytes, offset), second)
            offset &+= 8
        }
        return Int(truncatingIfNeeded: fold(hash ^ CodeUnits.rest(bytes, from: offset), second))
    }

    /// Of two words.
    @inlinable
    package static func of(_ high: UInt64, _ low: UInt64, seed: Int) -> Int {
        let (first, second) = identifierHashKeys
        return Int(
            truncatingIfNeeded: fold(low ^ first ^ UInt64(bitPattern: Int64(seed)), high ^ second))
    }

    @inlinable
    @inline(__always)
    static func fold(_ one: UInt64, _ other: UInt64) -> UInt64 {
        let product = one.multipliedFullWidth(by: other)
        return product.high ^ product.low
    }
}

/// A notification type from the registry, e.g. `transaction.remittance_sent`. The string is its identity.
@usableFromInline
package struct TypeID: TextIdentifier {
    @usableFromInline package let text: String
    @inlinable
    package init(_ text: String) { self.text = text }
}

/// The name configuration gives to a process on the socket, e.g. `marketing`.
@usableFromInline
package struct CallerName: TextIdentifier {
    @usableFromInline package let text: String
    @inlinable
    package init(_ text: String) { self.text = text }
}

/// The caller's own id for one send: its idempotency key, at most 128 bytes.
@usableFromInline
package struct RequestID: TextIdentifier {
    @usableFromInline package let text: String
    @inlinable
    package init(_ text: String) { self.text = text }
}

/// The producer's id for a person. Never leaves the store in clear: see ``SubjectID``.
@usableFromInline
package struct UserID: TextIdentifier {
    @usableFromInline package let text: String
    @inlinable
    package init(_ text: String) { self.text = text }
}

/// One device, one phone number or one e-mail address of a recipient, as its owner calls it.
@usableFromInline
package struct DestinationID: TextIdentifier {
    @usableFromInline package let text: String
    @inlinable
    package init(_ text: String) { self.text = text }
}

/// What consent is asked for: a category's name, or a special purpose such as `intervention`.
@usableFromInline
package struct Purpose: TextIdentifier {
    @usableFromInline package let text: String
    @inlinable
    package init(_ text: String) { self.text = text }

    package static let marketing = Purpose("marketing")
}

/// What a ``RandomIdentifier`` identifies. Never made: it only keeps the id of one thing from standing for another's.
@usableFromInline
package protocol IdentifierKind {
    static var spelling: IdentifierSpelling { get }
}

/// How an identifier is printed.
@usableFromInline
package enum IdentifierSpelling: Sendable {
    /// 32 lower-case hexadecimal digits.
    case hexadecimal
    /// `8-4-4-4-12` lower-case hexadecimal digits (RFC 9562 section 4).
    case uuid
}

/// Sixteen random bytes, written as lower-case hexadecimal or as an RFC 9562 UUID.
@frozen @usableFromInline
package struct RandomIdentifier<Kind: IdentifierKind>: Hashable, Comparable, Sendable, CustomStringConvertible
{
    @usableFromInline package let high: UInt64
    @usableFromInline package let low: UInt64

    @inlinable
    package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    @inlinable
    package var description: String {
        switch Kind.spelling {
        case .hexadecimal: hexadecimal
        case .uuid: uuidText
        }
    }
}

/// What ids are hashed with where they are a key by themselves, so that ids that clients send cannot be chosen to collide. No
/// client chooses the ids that are part of a larger key.
@usableFromInline let identifierHashKeys = (
    UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max)
)

extension RandomIdentifier {
    /// One multiplication instead of SipHash, which nearly every look-up of a send would spend its time in: the ids
    /// are random already. A requirement of `Hashable` that has an underscore and is called in the place of `hash(into:)`.
    @inlinable
    package func _rawHashValue(seed: Int) -> Int { KeyedHash.of(high, low, seed: seed) }

    /// - Parameter bytes: Exactly 16, big-endian.
    @inlinable
    package init?(bytes: [UInt8]) { self.init(bytes: bytes[...]) }

    /// - Parameter bytes: Exactly 16, big-endian.
    @inlinable
    package init?(bytes: ArraySlice<UInt8>) {
        guard bytes.count == 16 else { return nil }
        let (high, low) = bytes.withUnsafeBytes {
            ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
        self.init(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
    }

    /// The 16 bytes, big-endian.
    @inlinable
    package var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
            bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            count = 16
        }
    }

    @inlinable
    package static func == (left: Self, right: Self) -> Bool {
        left.low == right.low && left.high == right.high
    }

    @inlinable
    package static func < (left: Self, right: Self) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    // Half of the bytes are as random as all of them.
    @inlinable
    package func hash(into hasher: inout Hasher) { hasher.combine(low) }

    /// 32 lower-case hexadecimal digits.
    @inlinable
    package var hexadecimal: String {
        var json = CanonicalWriter(capacity: 32)
        json.hexadecimal(high: high, low: low)
        return String(decoding: json.finish(), as: UTF8.self)
    }

    /// - Parameter hexadecimal: 32 lower-case digits; any other spelling is refused.
    package init?(hexadecimal: String) {
        guard let bytes = Hexadecimal.decode(hexadecimal) else { return nil }
        self.init(bytes: bytes)
    }

    /// `8-4-4-4-12` lower-case hexadecimal digits (RFC 9562 section 4).
    @inlinable
    package var uuidText: String {
        var json = CanonicalWriter(capacity: 36)
        json.uuid(high: high, low: low)
        return String(decoding: json.finish(), as: UTF8.self)
    }

    /// - Parameter uuidText: Lower-case UUID text; any other spelling is refused.
    package init?(uuidText: String) {
        guard UUIDText.isCanonical(uuidText.utf8.span) else { return nil }
        self.init(hexadecimal: uuidText.filter { $0 != "-" })
    }
}

extension RandomIdentifier {
    /// A version 4 UUID (RFC 9562 section 5.4) of 122 random bits.
    package init(version4 bits: (high: UInt64, low: UInt64)) {
        self.init(high: bits.high & ~0xF000 | 0x4000, low: bits.low & (1 << 62 - 1) | 1 << 63)
    }

    /// A version 7 UUID (RFC 9562 section 5.7): the millisecond, and 74 random bits.
    package init(version7 bits: (high: UInt64, low: UInt64), at moment: Instant) {
        self.init(
            high: UInt64(truncatingIfNeeded: moment.milliseconds) << 16 | bits.high & 0xFFF | 0x7000,
            low: bits.low & (1 << 62 - 1) | 1 << 63)
    }
}

/// The gateway's own id for one send, a version 7 UUID. Paths and references use it.
package typealias SendID = RandomIdentifier<SendIdentity>

@usableFromInline
package enum SendIdentity: IdentifierKind {
    @inlinable package static var spelling: IdentifierSpelling { .uuid }
}

/// One message to one destination; stable over every retry (`apns-id`, the envelope's `mid`).
package typealias MessageID = RandomIdentifier<MessageIdentity>

@usableFromInline
package enum MessageIdentity: IdentifierKind {
    @inlinable package static var spelling: IdentifierSpelling { .uuid }
}

/// A device key: random, globally unique, never reused.
package typealias KeyID = RandomIdentifier<KeyIdentity>

@usableFromInline
package enum KeyIdentity: IdentifierKind {
    @inlinable package static var spelling: IdentifierSpelling { .hexadecimal }
}

/// A recipient's random pseudonym in the trail. Erasing the mapping forgets the person.
package typealias SubjectID = RandomIdentifier<SubjectIdentity>

@usableFromInline
package enum SubjectIdentity: IdentifierKind {
    @inlinable package static var spelling: IdentifierSpelling { .hexadecimal }
}

/// The trail's stand-in for a text that a person or a producer chose: 16 bytes of a keyed hash under the subject's key.
package typealias Tag = RandomIdentifier<TagIdentity>

@usableFromInline
package enum TagIdentity: IdentifierKind {
    @inlinable package static var spelling: IdentifierSpelling { .hexadecimal }
}

/// SHA-256 over the canonical form of a policy bundle, as 64 lower-case hexadecimal digits.
@usableFromInline
package struct PolicyDigest: TextIdentifier {
    @usableFromInline package let text: String
    @inlinable
    package init(_ text: String) { self.text = text }
}

/// Lower-case hexadecimal, the only spelling accepted.
package enum Hexadecimal {
    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        var digits: [UInt8] = []
        digits.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            let pair = HexadecimalDigits.of(UInt32(byte))
            digits.append(UInt8(truncatingIfNeeded: pair >> 8))
            digits.append(UInt8(truncatingIfNeeded: pair))
        }
        return String(decoding: digits, as: UTF8.self)
    }

    /// - Returns: `nil` for an odd length or a character outside `0-9a-f`.
    package static func decode(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2), digits.span.all({ $0.isLowercaseHexadecimal }) else {
            return nil
        }
        return stride(from: 0, to: digits.count, by: 2).map {
            PercentEncoding.byte(digits[$0], digits[$0 + 1])!
        }
    }
}
