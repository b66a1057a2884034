/// Writes canonical JSON (RFC 8785) straight into one buffer: no tree, no sorting, no text per member.
///
/// The caller gives members in canonical order; tests hold that for every object written so. Commas are the writer's: a
/// member or an element that does not follow its opening bracket follows another one.
@usableFromInline
package struct CanonicalWriter: ~Copyable {
    // `start` has room for `capacity` bytes, of which the first `count` are initialised. The memory belongs to this value
    // alone: it cannot be copied, hands the pointer out nowhere, reserves before every write and frees the memory at its end.
    // Memory that is lent is the same, except that its owner keeps it until the writer is gone, and frees it.
    @usableFromInline var start: UnsafeMutablePointer<UInt8>
    @usableFromInline var capacity: Int
    @usableFromInline var count = 0
    @usableFromInline var isLent = false

    /// - Parameter capacity: Bytes that are likely needed; more are made room for as they come.
    @inlinable
    package init(capacity: Int = 512) {
        precondition(capacity > 0)
        start = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit { if !isLent { start.deallocate() } }

    /// What is written, which is written on the stack before its array is made: as much as the entry of a send with one
    /// destination has, and more on the heap. An array of memory that is not initialised would cost more than this copy,
    /// because the standard library makes it by code that is not compiled for bytes.
    @inlinable
    @inline(__always)
    package static func bytes(_ write: (inout CanonicalWriter) -> Void) -> [UInt8] {
        var memory = InlineArray<1_984, UInt8>(repeating: 0)
        return withUnsafeMutableBytes(of: &memory) { memory in
            var writer = CanonicalWriter(lent: memory.assumingMemoryBound(to: UInt8.self))
            write(&writer)
            return writer.finish()
        }
    }

    /// - Parameter memory: Not empty; there until this value is gone.
    @inlinable
    init(lent memory: UnsafeMutableBufferPointer<UInt8>) {
        start = memory.baseAddress!
        capacity = memory.count
        isLent = true
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
    /// Always inlined: of a key that is known when the caller is compiled, the copy is a few moves.
    ///
    /// - Parameter key: Without characters that need an escape.
    @inlinable
    @inline(__always)
    package mutating func key(_ key: StaticString) {
        precondition(count > 0, "a member was written outside of an object")
        let byteCount = key.utf8CodeUnitCount
        reserve(byteCount &+ 4)
        var place = start + count
        // No value ends in an opening bracket: a text ends in a quotation mark.
        if place[-1] != UInt8(ascii: "{") {
            place[0] = UInt8(ascii: ",")
            place += 1
        }
        place[0] = UInt8(ascii: "\"")
        // A static string's bytes live as long as the program, and its count is theirs.
        Self.copy(key.utf8Start, to: place + 1, count: byteCount)
        place[byteCount + 1] = UInt8(ascii: "\"")
        place[byteCount + 2] = UInt8(ascii: ":")
        count = place - start &+ byteCount &+ 3
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

    @usableFromInline
    package mutating func text(_ text: String) {
        CodeUnits.withBytes(text) { utf8 in
            reserve(utf8.count &+ 2)
            let place = start + count
            place[0] = UInt8(ascii: "\"")
            guard Self.copy(text: utf8, to: place + 1) else { return escaped(utf8) }
            place[utf8.count &+ 1] = UInt8(ascii: "\"")
            count &+= utf8.count &+ 2
        }
    }

    /// Hardly a text needs an escape.
    @inline(never)
    private mutating func escaped(_ utf8: UnsafeBufferPointer<UInt8>) {
        byte(UInt8(ascii: "\""))
        escapedCharacters(utf8)
        byte(UInt8(ascii: "\""))
    }

    /// One of a closed list of names, none of which needs an escape: ``Shape/choice(of:)`` holds them to it.
    @usableFromInline
    package mutating func name(_ name: String) {
        CodeUnits.withBytes(name) { utf8 in
            reserve(utf8.count &+ 2)
            let place = start + count
            place[0] = UInt8(ascii: "\"")
            if let first = utf8.baseAddress { Self.copy(first, to: place + 1, count: utf8.count) }
            place[utf8.count &+ 1] = UInt8(ascii: "\"")
            count &+= utf8.count &+ 2
        }
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
        if 0...9 ~= value { return byte(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value)) }
        if value < 0 { byte(UInt8(ascii: "-")) }
        // 16 digits at most, eight at once.
        let (first, last) = value.magnitude.quotientAndRemainder(dividingBy: 100_000_000)
        guard first > 0 else { return digits(of: last) }
        digits(of: first)
        characters(packed: DecimalDigits.of(last) | DecimalDigits.zeros, count: 8)
    }

    /// - Parameter number: From 1 to below 10⁸.
    @inline(__always)
    private mutating func digits(of number: UInt64) {
        let digits = DecimalDigits.of(number)
        let leadingZeroCount = digits.leadingZeroBitCount / 8
        characters(packed: digits | DecimalDigits.zeros, count: 8 - leadingZeroCount)
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
            reserve(utf8.count)
            guard Self.copy(text: utf8, to: start + count) else { return escapedCharacters(utf8) }
            count &+= utf8.count
        }
    }

    @inline(never)
    private mutating func escapedCharacters(_ utf8: UnsafeBufferPointer<UInt8>) {
        var runStart = 0
        var offset = Self.firstEscape(in: utf8, from: 0)
        while offset < utf8.count {
            raw(UnsafeBufferPointer(rebasing: utf8[runStart..<offset]))
            escape(utf8[offset])
            runStart = offset + 1
            offset = Self.firstEscape(in: utf8, from: runStart)
        }
        raw(UnsafeBufferPointer(rebasing: utf8[runStart...]))
    }

    /// Bytes that ``characters(_:)`` writes of a text.
    package static func byteCount(ofCharacters text: String) -> Int {
        CodeUnits.withBytes(text) { needsEscape(in: $0) ? byteCount(ofEscaped: $0) : $0.count }
    }

    @inline(never)
    private static func byteCount(ofEscaped utf8: UnsafeBufferPointer<UInt8>) -> Int {
        var byteCount = utf8.count
        for byte in utf8 where needsEscape(byte) {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x08, 0x09, 0x0A, 0x0C, 0x0D: byteCount += 1
            default: byteCount += 5
            }
        }
        return byteCount
    }

    /// Whether any byte of a text needs an escape.
    @inline(__always)
    private static func needsEscape(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        let (bytes, count) = (UnsafeRawBufferPointer(text), text.count)
        guard count >= 16 else {
            guard count >= 8 else { return text.contains { needsEscape($0) } }
            let first = bytes.loadUnaligned(as: UInt64.self)
            let last = bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
            return needsEscape(marks(unsafeBitCast(SIMD2(first, last), to: Bytes.self)))
        }
        // The last load ends with the last byte, and may begin among those that were looked at before.
        var found = Bytes()
        var offset = 0
        repeat {
            let start = min(offset, count &- 16)
            found |= marks(bytes.loadUnaligned(fromByteOffset: start, as: Bytes.self))
            offset &+= 16
        } while offset < count
        return needsEscape(found)
    }

    /// Where the next character stands that needs an escape; the end where none does.
    private static func firstEscape(in utf8: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        var offset = start
        while offset + 16 <= utf8.count {
            let bytes = UnsafeRawBufferPointer(utf8).loadUnaligned(fromByteOffset: offset, as: Bytes.self)
            if needsEscape(marks(bytes)) { break }
            offset += 16
        }
        while offset < utf8.count, !needsEscape(utf8[offset]) { offset += 1 }
        return offset
    }

    /// Copies bytes that do not overlap, and says whether none of them needs an escape.
    @inline(__always)
    private static func copy(text: UnsafeBufferPointer<UInt8>, to place: UnsafeMutablePointer<UInt8>) -> Bool
    {
        guard let first = text.baseAddress else { return true }
        let (from, to, count) = (UnsafeRawPointer(first), UnsafeMutableRawPointer(place), text.count)
        switch count {
        case 16...:
            // The last move ends with the last byte, and may begin among those that were moved before.
            var marks = Bytes()
            var offset = 0
            repeat {
                let start = min(offset, count &- 16)
                let bytes = from.loadUnaligned(fromByteOffset: start, as: Bytes.self)
                to.storeBytes(of: bytes, toByteOffset: start, as: Bytes.self)
                marks |= self.marks(bytes)
                offset &+= 16
            } while offset < count
            return !needsEscape(marks)
        case 8...15:
            let (first, last) = moveEnds(from, to, count, of: UInt64.self)
            return !needsEscape(marks(unsafeBitCast(SIMD2(first, last), to: Bytes.self)))
        case 4...7:
            let (first, last) = moveEnds(from, to, count, of: UInt32.self)
            return !needsEscape(marks(unsafeBitCast(SIMD4(first, last, first, last), to: Bytes.self)))
        default:
            for offset in 0..<count {
                if needsEscape(text[offset]) { return false }
                place[offset] = text[offset]
            }
            return true
        }
    }

    @inline(__always)
    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private typealias Bytes = SIMD16<UInt8>

    /// The highest bit of a byte is set where the byte needs an escape: below 0x20, a quotation mark or a backslash.
    @inline(__always)
    private static func marks(_ bytes: Bytes) -> Bytes {
        let quotation = bytes ^ UInt8(ascii: "\"")
        let backslash = bytes ^ UInt8(ascii: "\\")
        return (bytes &- 0x20) & ~bytes | (quotation &- 1) & ~quotation | (backslash &- 1) & ~backslash
    }

    @inline(__always)
    private static func needsEscape(_ marks: Bytes) -> Bool {
        let halves = unsafeBitCast(marks, to: SIMD2<UInt64>.self)
        return (halves[0] | halves[1]) & 0x8080_8080_8080_8080 != 0
    }

    private mutating func escape(_ byte: UInt8) {
        self.byte(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): self.byte(byte)
        case 0x08: self.byte(UInt8(ascii: "b"))
        case 0x09: self.byte(UInt8(ascii: "t"))
        case 0x0A: self.byte(UInt8(ascii: "n"))
        case 0x0C: self.byte(UInt8(ascii: "f"))
        case 0x0D: self.byte(UInt8(ascii: "r"))
        default:
            raw("u00")
            let digits = HexadecimalDigits.of(UInt32(byte))
            self.byte(UInt8(truncatingIfNeeded: digits >> 8))
            self.byte(UInt8(truncatingIfNeeded: digits))
        }
    }

    /// ASCII characters that need no escape, the last one in the lowest byte.
    ///
    /// - Parameter count: From 1 to 8.
    @inlinable
    @inline(__always)
    package mutating func characters(packed: UInt64, count characterCount: Int) {
        reserve(8)
        // All eight bytes are written, and those after the last character are written over by what follows.
        let bytes = (packed &<< UInt64(64 - 8 * characterCount)).bigEndian
        UnsafeMutableRawPointer(start + count).storeBytes(of: bytes, as: UInt64.self)
        count &+= characterCount
    }

    /// 32 lower-case hexadecimal digits, without quotation marks.
    @inlinable
    @inline(__always)
    package mutating func hexadecimal(high: UInt64, low: UInt64) {
        reserve(32)
        HexadecimalDigits.write(high, low, to: UnsafeMutableRawPointer(start + count))
        count &+= 32
    }

    /// `8-4-4-4-12` lower-case hexadecimal digits (RFC 9562 section 4), without quotation marks.
    @inlinable
    @inline(__always)
    package mutating func uuid(high: UInt64, low: UInt64) {
        reserve(36)
        HexadecimalDigits.writeUUID(high, low, to: UnsafeMutableRawPointer(start + count))
        count &+= 36
    }

    /// Two lower-case hexadecimal digits for every byte.
    package mutating func hexadecimal(_ bytes: [UInt8]) {
        reserve(2 * bytes.count)
        bytes.withUnsafeBytes { bytes in
            var offset = 0
            while offset + 4 <= bytes.count {
                let four = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
                HexadecimalDigits.put(HexadecimalDigits.of(four), at: UnsafeMutableRawPointer(start + count))
                count += 8
                offset += 4
            }
            for byte in bytes[offset...] {
                let digits = HexadecimalDigits.of(UInt32(byte))
                start[count] = UInt8(truncatingIfNeeded: digits >> 8)
                start[count + 1] = UInt8(truncatingIfNeeded: digits)
                count += 2
            }
        }
    }

    /// Bytes of JSON, as they are.
    @inlinable
    @inline(__always)
    package mutating func raw(_ literal: StaticString) {
        // A static string's bytes live as long as the program, and its count is theirs.
        raw(UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    package mutating func raw(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBufferPointer { raw($0) }
    }

    @inlinable
    @inline(__always)
    mutating func raw(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let first = bytes.baseAddress else { return }
        reserve(bytes.count)
        Self.copy(first, to: start + count, count: bytes.count)
        count &+= bytes.count
    }

    /// Copies bytes that do not overlap. Most are a key or a word, which two moves take rather than a call.
    @inlinable
    @inline(__always)
    static func copy(_ bytes: UnsafePointer<UInt8>, to place: UnsafeMutablePointer<UInt8>, count: Int) {
        let (from, to) = (UnsafeRawPointer(bytes), UnsafeMutableRawPointer(place))
        switch count {
        case 16...32: _ = moveEnds(from, to, count, of: SIMD2<UInt64>.self)
        case 8...15: _ = moveEnds(from, to, count, of: UInt64.self)
        case 4...7: _ = moveEnds(from, to, count, of: UInt32.self)
        default: place.initialize(from: bytes, count: count)
        }
    }

    /// Copies by two moves, the second of which begins so that it ends with the last byte.
    @inlinable
    @inline(__always)
    static func moveEnds<Part: BitwiseCopyable>(
        _ from: UnsafeRawPointer, _ to: UnsafeMutableRawPointer, _ count: Int, of _: Part.Type
    ) -> (first: Part, last: Part) {
        let end = count &- MemoryLayout<Part>.size
        let (first, last) = (
            from.loadUnaligned(as: Part.self), from.loadUnaligned(fromByteOffset: end, as: Part.self)
        )
        to.storeBytes(of: first, as: Part.self)
        to.storeBytes(of: last, toByteOffset: end, as: Part.self)
        return (first, last)
    }

    /// A byte of JSON, as it is.
    @inlinable
    @inline(__always)
    package mutating func byte(_ byte: UInt8) {
        reserve(1)
        start[count] = byte
        count &+= 1
    }

    /// Writes a byte of JSON in place of one.
    ///
    /// - Parameter place: The ``byteCount`` when that was written.
    @inlinable
    package mutating func replace(_ place: Int, with byte: UInt8) {
        precondition(0..<count ~= place, "a byte was to be replaced that is not written")
        start[place] = byte
    }

    @inlinable
    @inline(__always)
    mutating func reserve(_ moreCount: Int) {
        // `count` is never above `capacity`.
        if capacity &- count < moreCount { grow(by: moreCount) }
    }

    /// Out of line, so that what is always inlined stays a few instructions.
    @inline(never)
    @usableFromInline
    mutating func grow(by moreCount: Int) {
        capacity = max(2 * capacity, count + moreCount)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        larger.initialize(from: start, count: count)
        if !isLent { start.deallocate() }
        start = larger
        isLent = false
    }
}

extension JSONObject {
    /// What was written, as a tree: for the few who look into an object or put it into another one.
    ///
    /// - Parameter write: Writes exactly one object.
    package init(written write: (inout CanonicalWriter) -> Void) {
        var writer = CanonicalWriter()
        write(&writer)
        let bytes = writer.finish()
        let limits = JSONLimits(byteCountMax: .max, depthMax: 64, memberCountMax: .max, refusesNUL: false)
        guard case .object(let object)? = try? CanonicalJSON.readCanonical(bytes, limits: limits) else {
            preconditionFailure("not canonical: \(String(decoding: bytes, as: UTF8.self))")
        }
        self = object
    }
}

/// Decimal digits, eight at once.
private enum DecimalDigits {
    /// The character `0` in every byte.
    static let zeros: UInt64 = 0x3030_3030_3030_3030

    /// The eight digits of a number as numbers, the first one in the highest byte.
    ///
    /// - Parameter number: Below 10⁸.
    @inline(__always)
    static func of(_ number: UInt64) -> UInt64 {
        // Four digits to each half, two to each quarter, one to each byte. 5243 / 2¹⁹ and 103 / 2¹⁰ give the quotients by
        // 100 and by 10 of every number below 10,000 and below 100, and no product reaches into the next part.
        let halves = number &+ number / 10_000 &* ((1 << 32) - 10_000)
        let hundreds = (halves &* 5243) >> 19 & 0x0000_007F_0000_007F
        let quarters = halves &+ hundreds &* ((1 << 16) - 100)
        let tens = (quarters &* 103) >> 10 & 0x000F_000F_000F_000F
        return quarters &+ tens &* ((1 << 8) - 10)
    }
}

/// Lower-case hexadecimal digits, eight at once.
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
