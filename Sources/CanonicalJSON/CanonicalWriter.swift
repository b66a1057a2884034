/// Writes canonical JSON (RFC 8785) straight into bytes: no tree, no sorting, no text per member.
///
/// The caller gives members in canonical order; tests hold that for every object written so. Commas are the writer's: a
/// member or an element that does not follow its opening bracket follows another one.
@usableFromInline
package struct CanonicalWriter: ~Copyable {
    // `start` has room for `capacity` bytes, of which the first `count` are initialised. The memory belongs to this value
    // alone: it cannot be copied, hands the pointer out nowhere, reserves before every write and frees the memory at its end.
    // An array asks at every append whether it is shared: over one, and digit by digit, an open send took some 40 % more
    // instructions (`Tests/Benchmarks/instructions.py`).
    @usableFromInline var start: UnsafeMutablePointer<UInt8>
    @usableFromInline var capacity: Int
    @usableFromInline var count = 0

    /// - Parameter capacity: Bytes that are likely needed; more are made room for as they come.
    @inlinable
    package init(capacity: Int = 512) {
        precondition(capacity > 0)
        start = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit { start.deallocate() }

    /// Everything that a closure writes.
    ///
    /// - Parameter capacity: Bytes that are likely needed.
    @inlinable
    package static func bytes(
        capacity: Int = 512, _ write: (inout CanonicalWriter) -> Void
    ) -> [UInt8] {
        var writer = CanonicalWriter(capacity: capacity)
        write(&writer)
        return writer.finish()
    }

    /// Bytes written so far.
    @inlinable
    package var byteCount: Int { count }

    /// Everything written.
    @usableFromInline
    package consuming func finish() -> [UInt8] { [UInt8](UnsafeBufferPointer(start: start, count: count)) }

    // MARK: Objects and arrays

    @inlinable
    package mutating func object<Failure: Error>(
        _ members: (inout CanonicalWriter) throws(Failure) -> Void
    ) throws(Failure) {
        byte(UInt8(ascii: "{"))
        try members(&self)
        byte(UInt8(ascii: "}"))
    }

    @inlinable
    package mutating func array<Elements: Sequence>(
        _ elements: Elements, _ write: (inout CanonicalWriter, Elements.Element) -> Void
    ) {
        byte(UInt8(ascii: "["))
        for element in elements {
            separate(after: UInt8(ascii: "["))
            write(&self, element)
        }
        byte(UInt8(ascii: "]"))
    }

    /// The key of the next member; its value has to follow.
    ///
    /// Always inlined, so that the copy of a key is a few moves: as a call, keys cost 2 % more instructions in an open send.
    ///
    /// - Parameter key: Without characters that need an escape.
    @inlinable
    @inline(__always)
    package mutating func key(_ key: StaticString) {
        separate(after: UInt8(ascii: "{"))
        let byteCount = key.utf8CodeUnitCount
        reserve(byteCount + 3)
        let place = start + count
        place[0] = UInt8(ascii: "\"")
        // A static string's bytes live as long as the program, and its count is theirs.
        (place + 1).initialize(from: key.utf8Start, count: byteCount)
        place[byteCount + 1] = UInt8(ascii: "\"")
        place[byteCount + 2] = UInt8(ascii: ":")
        count += byteCount + 3
    }

    @inlinable
    package mutating func member(_ key: StaticString, _ value: (inout CanonicalWriter) -> Void) {
        self.key(key)
        value(&self)
    }

    /// A member that is absent where `value` is `nil`, like all that follow.
    @inlinable
    @inline(__always)
    package mutating func member(_ key: StaticString, _ value: String?) {
        guard let value else { return }
        self.key(key)
        text(value)
    }

    @inlinable
    @inline(__always)
    package mutating func member(_ key: StaticString, _ value: Int64?) {
        guard let value else { return }
        self.key(key)
        integer(value)
    }

    @inlinable
    @inline(__always)
    package mutating func member(_ key: StaticString, _ value: Bool?) {
        guard let value else { return }
        self.key(key)
        boolean(value)
    }

    /// One of a closed list of names, as ``name(_:)`` takes it.
    @inlinable
    package mutating func member(_ key: StaticString, name value: (some RawRepresentable<String>)?) {
        guard let value else { return }
        self.key(key)
        name(value.rawValue)
    }

    /// The comma before a member or an element, unless it is the first.
    @inlinable
    @inline(__always)
    package mutating func separate(after opening: UInt8) {
        precondition(count > 0, "a member was written outside of an object")
        // No value ends in an opening bracket: a text ends in a quotation mark.
        if start[count - 1] != opening { byte(UInt8(ascii: ",")) }
    }

    // MARK: Values

    @inlinable
    package mutating func text(_ text: String) {
        byte(UInt8(ascii: "\""))
        characters(text)
        byte(UInt8(ascii: "\""))
    }

    /// One of a closed list of names, none of which needs an escape: ``Shape/choice(of:)`` holds them to it.
    @usableFromInline
    package mutating func name(_ name: String) {
        byte(UInt8(ascii: "\""))
        CodeUnits.withBytes(name) { raw($0) }
        byte(UInt8(ascii: "\""))
    }

    /// A text of several parts, without joining them first.
    @inlinable
    package mutating func quoted(_ parts: (inout CanonicalWriter) -> Void) {
        byte(UInt8(ascii: "\""))
        parts(&self)
        byte(UInt8(ascii: "\""))
    }

    @inlinable
    package mutating func boolean(_ value: Bool) {
        if value { raw("true") } else { raw("false") }
    }

    @inlinable
    package mutating func null() { raw("null") }

    /// In decimal; inside of ``quoted(_:)`` its digits.
    ///
    /// - Precondition: Within ±(2⁵³−1).
    @usableFromInline
    package mutating func integer(_ value: Int64) {
        precondition(
            value >= CanonicalJSON.integerMin && value <= CanonicalJSON.integerMax,
            "\(value) was to be written as JSON, outside ±(2⁵³−1)")
        CodeUnits.withBytes(String(value)) { raw($0) }
    }

    /// A whole value, its texts escaped and its members in the order they have.
    package mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .boolean(let value): boolean(value)
        case .integer(let value): integer(value)
        case .string(let value): text(value)
        case .array(let elements): array(elements) { $0.value($1) }
        case .object(let object): self.value(object)
        }
    }

    package mutating func value(_ object: JSONObject) {
        self.object { json in
            for (key, value) in object {
                json.separate(after: UInt8(ascii: "{"))
                json.text(key)
                json.byte(UInt8(ascii: ":"))
                json.value(value)
            }
        }
    }

    /// The members of an object that have one of some names; absent where it has none of them.
    ///
    /// - Parameter names: In canonical order.
    package mutating func member(_ key: StaticString, _ object: JSONObject, only names: [String]) {
        var isAbsent = true
        for name in names {
            guard let value = object[name] else { continue }
            if isAbsent { self.key(key) }
            byte(isAbsent ? UInt8(ascii: "{") : UInt8(ascii: ","))
            isAbsent = false
            text(name)
            byte(UInt8(ascii: ":"))
            self.value(value)
        }
        if !isAbsent { byte(UInt8(ascii: "}")) }
    }

    // MARK: Parts of values

    /// A text without its quotation marks, with the escapes of RFC 8785 section 3.2.2.2 and no others.
    @usableFromInline
    package mutating func characters(_ text: String) {
        CodeUnits.withBytes(text) { utf8 in
            guard Self.needsEscape(utf8) else { return raw(utf8) }
            for byte in utf8 {
                if Self.needsEscape(byte) { escape(byte) } else { self.byte(byte) }
            }
        }
    }

    /// Bytes that ``characters(_:)`` writes of a text.
    package static func byteCount(ofCharacters text: String) -> Int {
        CodeUnits.withBytes(text) { utf8 in
            needsEscape(utf8) ? utf8.reduce(0) { $0 + byteCount(of: $1) } : utf8.count
        }
    }

    /// Whether any byte of a text needs an escape.
    ///
    /// Sixteen bytes at once: one after the other costs 3 % more instructions in an open send, whose texts are weighed in several
    /// forms.
    private static func needsEscape(_ utf8: UnsafeBufferPointer<UInt8>) -> Bool {
        guard utf8.count >= 16 else { return utf8.contains { needsEscape($0) } }
        let bytes = UnsafeRawBufferPointer(utf8)
        var found = SIMD16<UInt8>()
        for offset in stride(from: 0, to: bytes.count, by: 16) {
            // The last load ends with the last byte, and may begin among those that were looked at before.
            let start = min(offset, bytes.count - 16)
            found |= marks(bytes.loadUnaligned(fromByteOffset: start, as: SIMD16<UInt8>.self))
        }
        return unsafeBitCast(found, to: UInt128.self) & 0x8080_8080_8080_8080_8080_8080_8080_8080 != 0
    }

    /// The highest bit of a byte is set where the byte needs an escape: below 0x20, a quotation mark or a backslash.
    private static func marks(_ bytes: SIMD16<UInt8>) -> SIMD16<UInt8> {
        let quotation = bytes ^ UInt8(ascii: "\"")
        let backslash = bytes ^ UInt8(ascii: "\\")
        return (bytes &- 0x20) & ~bytes | (quotation &- 1) & ~quotation | (backslash &- 1) & ~backslash
    }

    /// Whether RFC 8785 spells a byte of a text in another way than as itself.
    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    /// The escapes of two characters, each as the second one. All other control characters are written as `\u00xx`.
    private static func shortEscape(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): byte
        case 0x08: UInt8(ascii: "b")
        case 0x09: UInt8(ascii: "t")
        case 0x0A: UInt8(ascii: "n")
        case 0x0C: UInt8(ascii: "f")
        case 0x0D: UInt8(ascii: "r")
        default: nil
        }
    }

    private static func byteCount(of byte: UInt8) -> Int {
        guard needsEscape(byte) else { return 1 }
        return shortEscape(byte) == nil ? 6 : 2
    }

    private mutating func escape(_ byte: UInt8) {
        self.byte(UInt8(ascii: "\\"))
        if let character = Self.shortEscape(byte) { return self.byte(character) }
        raw("u00")
        hexadecimal(byte)
    }

    /// 32 lower-case hexadecimal digits, without quotation marks.
    @inlinable
    package mutating func hexadecimal(high: UInt64, low: UInt64) {
        reserve(32)
        HexadecimalDigits.write(high, low, to: UnsafeMutableRawPointer(start + count))
        count += 32
    }

    /// `8-4-4-4-12` lower-case hexadecimal digits (RFC 9562 section 4), without quotation marks.
    @inlinable
    package mutating func uuid(high: UInt64, low: UInt64) {
        reserve(36)
        HexadecimalDigits.writeUUID(high, low, to: UnsafeMutableRawPointer(start + count))
        count += 36
    }

    /// Two lower-case hexadecimal digits for every byte.
    package mutating func hexadecimal(_ bytes: [UInt8]) {
        for byte in bytes { hexadecimal(byte) }
    }

    private mutating func hexadecimal(_ byte: UInt8) {
        let digits = HexadecimalDigits.of(UInt32(byte))
        self.byte(UInt8(truncatingIfNeeded: digits >> 8))
        self.byte(UInt8(truncatingIfNeeded: digits))
    }

    /// Bytes of JSON, as they are.
    @inlinable
    @inline(__always)
    package mutating func raw(_ literal: StaticString) {
        // A static string's bytes live as long as the program, and its count is theirs.
        raw(UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    @inlinable
    package mutating func raw(_ json: ArraySlice<UInt8>) {
        json.withUnsafeBufferPointer { raw($0) }
    }

    @inlinable
    @inline(__always)
    mutating func raw(_ json: UnsafeBufferPointer<UInt8>) {
        guard let first = json.baseAddress else { return }
        reserve(json.count)
        (start + count).initialize(from: first, count: json.count)
        count += json.count
    }

    /// A byte of JSON, as it is.
    @inlinable
    @inline(__always)
    package mutating func byte(_ byte: UInt8) {
        reserve(1)
        start[count] = byte
        count += 1
    }

    @inlinable
    mutating func reserve(_ moreCount: Int) {
        if capacity - count < moreCount { grow(by: moreCount) }
    }

    @usableFromInline
    mutating func grow(by moreCount: Int) {
        capacity = max(2 * capacity, count + moreCount)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        larger.initialize(from: start, count: count)
        start.deallocate()
        start = larger
    }
}

extension JSONObject {
    /// What was written, as a tree: for the few who look into an object or put it into another one.
    ///
    /// - Parameter write: Writes exactly one object.
    package init(written write: (inout CanonicalWriter) -> Void) {
        let bytes = CanonicalWriter.bytes(write)
        let limits = JSONLimits(byteCountMax: .max, depthMax: 64, memberCountMax: .max, refusesNUL: false)
        guard case .object(let object)? = try? CanonicalJSON.readCanonical(bytes, limits: limits) else {
            preconditionFailure("not canonical: \(String(decoding: bytes, as: UTF8.self))")
        }
        self = object
    }
}

/// Lower-case hexadecimal digits, eight at once: one after the other costs 3 % more instructions in an open send, which writes ten
/// identifiers.
@usableFromInline
package enum HexadecimalDigits {
    /// The eight digits of a number as ASCII, the first one in the highest byte.
    @inlinable
    package static func of(_ number: UInt32) -> UInt64 {
        // One digit to a byte: halves, quarters and eighths move apart.
        var digits = UInt64(number)
        digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
        digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
        digits = (digits | digits << 4) & 0x0F0F_0F0F_0F0F_0F0F
        // From ten on a letter: `a` lies 39 after where the next digit would.
        let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return digits &+ 0x3030_3030_3030_3030 &+ letters &* 39
    }

    /// - Parameter text: Room for 32 bytes.
    @inlinable
    package static func write(_ high: UInt64, _ low: UInt64, to text: UnsafeMutableRawPointer) {
        put(of(UInt32(high >> 32)), at: text)
        put(of(UInt32(truncatingIfNeeded: high)), at: text + 8)
        put(of(UInt32(low >> 32)), at: text + 16)
        put(of(UInt32(truncatingIfNeeded: low)), at: text + 24)
    }

    /// - Parameter text: Room for 36 bytes.
    @inlinable
    package static func writeUUID(_ high: UInt64, _ low: UInt64, to text: UnsafeMutableRawPointer) {
        put(of(UInt32(high >> 32)), at: text)
        let middle = of(UInt32(truncatingIfNeeded: high))
        put(UInt32(middle >> 32), at: text + 9)
        put(UInt32(truncatingIfNeeded: middle), at: text + 14)
        let end = of(UInt32(low >> 32))
        put(UInt32(end >> 32), at: text + 19)
        put(UInt32(truncatingIfNeeded: end), at: text + 24)
        put(of(UInt32(truncatingIfNeeded: low)), at: text + 28)
        put(UInt8(ascii: "-"), at: text + 8)
        put(UInt8(ascii: "-"), at: text + 13)
        put(UInt8(ascii: "-"), at: text + 18)
        put(UInt8(ascii: "-"), at: text + 23)
    }

    @inlinable
    static func put<Digits: FixedWidthInteger & BitwiseCopyable>(
        _ digits: Digits, at text: UnsafeMutableRawPointer
    ) {
        text.storeBytes(of: digits.bigEndian, as: Digits.self)
    }
}
