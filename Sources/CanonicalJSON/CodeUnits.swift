/// Comparing texts by their code units.
///
/// Swift's `String` equality follows Unicode canonical equivalence, so it takes `é` (U+00E9) and
/// `e` followed by U+0301 for the same text. To JSON they are two different keys, and two parties that
/// disagree about that can be made to read two different documents out of the same bytes. Nothing in
/// this module, and nothing that compares what this module read, may use `==` on two texts.
@usableFromInline
package enum CodeUnits {
    /// Whether two texts have the same UTF-8 bytes.
    @inlinable
    package static func equal(_ left: String, _ right: String) -> Bool {
        withBytes(left, right) { equal($0, $1) }
    }

    @inlinable
    package static func equal(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Bool
    {
        guard left.count == right.count else { return false }
        var offset = 0
        while offset + 8 <= left.count {
            if word(left, offset) != word(right, offset) { return false }
            offset += 8
        }
        return rest(left, from: offset) == rest(right, from: offset)
    }

    /// Eight bytes as one number, in the machine's own order.
    ///
    /// - Parameter offset: At least eight before the end.
    @inlinable
    @inline(__always)
    package static func word(_ bytes: UnsafeBufferPointer<UInt8>, _ offset: Int) -> UInt64 {
        UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }

    /// The fewer than eight bytes after the last word, as one number.
    ///
    /// - Parameter start: The number of bytes, rounded down to a multiple of eight.
    @inlinable
    @inline(__always)
    package static func rest(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> UInt64 {
        // Four, two and one rather than the last eight: a short text is put on the stack as two words, and a load
        // across both waits until they are in the cache.
        let raw = UnsafeRawBufferPointer(bytes)
        var rest: UInt64 = 0
        var offset = start
        if bytes.count & 4 != 0 {
            rest = UInt64(raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
            offset += 4
        }
        if bytes.count & 2 != 0 {
            rest = rest << 16 | UInt64(raw.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
            offset += 2
        }
        if bytes.count & 1 != 0 { rest = rest << 8 | UInt64(raw[offset]) }
        return rest
    }

    /// Whether `left` stands before `right` when sorted by UTF-16 code units (RFC 8785 section 3.2.3).
    @inlinable
    package static func precedes(_ left: String, _ right: String) -> Bool {
        compare(left, right) < 0
    }

    /// Negative, zero or positive as `left` stands before, equals or follows `right` by UTF-16 code units.
    ///
    /// Works on UTF-8. The two orders agree except that UTF-16 spells U+10000 and above with surrogates,
    /// which sort below U+E000 to U+FFFF. In UTF-8 those ranges start with `F0…F4` and `EE…EF`; lifting the
    /// latter above the former gives the UTF-16 order. Bytes after the first are below `C0` and unaffected.
    @inlinable
    package static func compare(_ left: String, _ right: String) -> Int {
        withBytes(left, right) { compare($0, $1) }
    }

    @inlinable
    static func compare(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Int {
        let shared = min(left.count, right.count)
        for offset in 0..<shared where left[offset] != right[offset] {
            return rank(left[offset]) - rank(right[offset])
        }
        return left.count - right.count
    }

    @inlinable
    static func rank(_ byte: UInt8) -> Int {
        byte == 0xEE || byte == 0xEF ? Int(byte) + 0x10 : Int(byte)
    }

    @inlinable
    static func withBytes<Result>(
        _ left: String, _ right: String,
        _ body: (UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result {
        withBytes(left) { left in withBytes(right) { right in body(left, right) } }
    }

    /// Hands out the UTF-8 bytes of a text, where they are.
    @inlinable
    package static func withBytes<Result>(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result)
        -> Result
    {
        if let result = text.utf8.withContiguousStorageIfAvailable(body) { return result }
        // A text bridged from another language keeps no UTF-8 of its own; this copies it once.
        var copy = text
        return copy.withUTF8(body)
    }
}
