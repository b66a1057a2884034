/// Writes canonical JSON (RFC 8785) straight into bytes: no tree, no sorting, no text per member.
///
/// The caller gives members in canonical order; tests hold that for every object written so. Commas are the writer's: a
/// member or an element that does not follow its opening bracket follows another one.
@usableFromInline
package struct CanonicalWriter: ~Copyable {
    @usableFromInline var bytes: [UInt8] = []

    /// - Parameter capacity: Bytes that are likely needed; more are made room for as they come.
    @inlinable
    package init(capacity: Int = 512) { bytes.reserveCapacity(capacity) }

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
    package var byteCount: Int { bytes.count }

    /// Everything written.
    @inlinable
    package consuming func finish() -> [UInt8] { bytes }

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
    /// - Parameter key: Without characters that need an escape.
    @inlinable
    package mutating func key(_ key: StaticString) {
        separate(after: UInt8(ascii: "{"))
        byte(UInt8(ascii: "\""))
        raw(key)
        byte(UInt8(ascii: "\""))
        byte(UInt8(ascii: ":"))
    }

    @inlinable
    package mutating func member(_ key: StaticString, _ value: (inout CanonicalWriter) -> Void) {
        self.key(key)
        value(&self)
    }

    /// A member that is absent where `value` is `nil`, like all that follow.
    @inlinable
    package mutating func member(_ key: StaticString, _ value: String?) {
        guard let value else { return }
        self.key(key)
        text(value)
    }

    @inlinable
    package mutating func member(_ key: StaticString, _ value: Int64?) {
        guard let value else { return }
        self.key(key)
        integer(value)
    }

    @inlinable
    package mutating func member(_ key: StaticString, _ value: Bool?) {
        guard let value else { return }
        self.key(key)
        boolean(value)
    }

    /// One of a closed list of names.
    @inlinable
    package mutating func member(_ key: StaticString, name value: (some RawRepresentable<String>)?) {
        member(key, value?.rawValue)
    }

    /// The comma before a member or an element, unless it is the first.
    @inlinable
    package mutating func separate(after opening: UInt8) {
        guard let last = bytes.last else { preconditionFailure("a member was written outside of an object") }
        // No value ends in an opening bracket: a text ends in a quotation mark.
        if last != opening { byte(UInt8(ascii: ",")) }
    }

    // MARK: Values

    @inlinable
    package mutating func text(_ text: String) {
        byte(UInt8(ascii: "\""))
        characters(text)
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
        bytes.append(contentsOf: String(value).utf8)
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
            var start = 0
            for offset in 0..<utf8.count where Self.needsEscape(utf8[offset]) {
                bytes.append(contentsOf: utf8[start..<offset])
                escape(utf8[offset])
                start = offset + 1
            }
            bytes.append(contentsOf: utf8[start...])
        }
    }

    /// Bytes that ``characters(_:)`` writes of a text.
    package static func byteCount(ofCharacters text: String) -> Int {
        text.utf8.reduce(0) { $0 + byteCount(of: $1) }
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
        hexadecimal(high, digitCount: 16)
        hexadecimal(low, digitCount: 16)
    }

    /// `8-4-4-4-12` lower-case hexadecimal digits (RFC 9562 section 4), without quotation marks.
    @inlinable
    package mutating func uuid(high: UInt64, low: UInt64) {
        hexadecimal(high >> 32, digitCount: 8)
        byte(UInt8(ascii: "-"))
        hexadecimal(high >> 16, digitCount: 4)
        byte(UInt8(ascii: "-"))
        hexadecimal(high, digitCount: 4)
        byte(UInt8(ascii: "-"))
        hexadecimal(low >> 48, digitCount: 4)
        byte(UInt8(ascii: "-"))
        hexadecimal(low, digitCount: 12)
    }

    /// The last digits of a number.
    @usableFromInline
    mutating func hexadecimal(_ number: UInt64, digitCount: Int) {
        for place in (0..<digitCount).reversed() { byte(HexadecimalDigit.character(number >> (4 * place))) }
    }

    /// Two lower-case hexadecimal digits for every byte.
    package mutating func hexadecimal(_ bytes: [UInt8]) {
        for byte in bytes { hexadecimal(byte) }
    }

    private mutating func hexadecimal(_ byte: UInt8) { hexadecimal(UInt64(byte), digitCount: 2) }

    /// Bytes of JSON, as they are.
    @inlinable
    package mutating func raw(_ literal: StaticString) {
        // A static string's bytes live as long as the program, and its count is theirs.
        bytes.append(
            contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    @inlinable
    package mutating func raw(_ json: ArraySlice<UInt8>) { bytes.append(contentsOf: json) }

    /// A byte of JSON, as it is.
    @inlinable
    package mutating func byte(_ byte: UInt8) { bytes.append(byte) }
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

/// Lower-case hexadecimal digits.
@usableFromInline
package enum HexadecimalDigit {
    /// The ASCII character of the lowest four bits of a number.
    @inlinable
    package static func character(_ number: some BinaryInteger) -> UInt8 {
        let digit = UInt8(truncatingIfNeeded: number) & 0xF
        return digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }
}
