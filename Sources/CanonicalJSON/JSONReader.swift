/// One pass over the bytes of one document. Recursive descent, bounded by ``JSONLimits/depthMax``.
///
/// Every read of `base` is behind a comparison with `end`, so the reader never looks beyond its input. It
/// lives only inside the call that owns the bytes and is never stored.
struct JSONReader {
    private let base: UnsafePointer<UInt8>
    private let end: Int
    private let limits: JSONLimits
    /// Whether only the canonical spelling is accepted (RFC 8785).
    private let canonicalOnly: Bool
    private var offset = 0
    private var depth = 0
    /// Where a text with escapes is put together; reused.
    private var scratch: [UInt8] = []

    init(_ bytes: UnsafeRawBufferPointer, limits: JSONLimits, canonicalOnly: Bool) {
        // An empty buffer may have no address; `end` is 0 then and the pointer is never read.
        base =
            bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            ?? UnsafePointer(bitPattern: 1).unsafelyUnwrapped
        end = bytes.count
        self.limits = limits
        self.canonicalOnly = canonicalOnly
    }

    mutating func readDocument() throws(JSONError) -> JSONValue {
        guard end <= limits.byteCountMax else {
            throw .tooLong(byteCount: end, byteCountMax: limits.byteCountMax)
        }
        try refuseByteOrderMark()
        try skipWhiteSpace()
        let value = try readValue()
        try skipWhiteSpace()
        guard offset == end else { throw .trailingBytes(at: here) }
        return value
    }

    private var here: JSONPlace { JSONPlace(offset: offset) }

    /// UTF-8's, UTF-16's and UTF-32's marks all start with one of these; no JSON document does.
    private func refuseByteOrderMark() throws(JSONError) {
        guard end >= 2 else { return }
        let isUTF8Mark = end >= 3 && base[0] == 0xEF && base[1] == 0xBB && base[2] == 0xBF
        let isUTF16Mark = (base[0] == 0xFF && base[1] == 0xFE) || (base[0] == 0xFE && base[1] == 0xFF)
        if isUTF8Mark || isUTF16Mark { throw .byteOrderMark }
    }

    @inline(__always)
    private mutating func skipWhiteSpace() throws(JSONError) {
        while offset < end {
            let byte = base[offset]
            guard byte <= 0x20 else { return }
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return }
            if canonicalOnly { throw .notCanonical(at: here) }
            offset += 1
        }
    }

    private mutating func readValue() throws(JSONError) -> JSONValue {
        guard offset < end else { throw .unexpectedEnd(at: here) }
        switch base[offset] {
        case UInt8(ascii: "\""):
            return .string(try readString())
        case UInt8(ascii: "{"):
            return .object(try readObject())
        case UInt8(ascii: "["):
            return .array(try readArray())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            guard limits.readsOtherNumbersAsTexts, let text = readOtherNumber() else {
                return .integer(try readInteger())
            }
            return .string(text)
        case UInt8(ascii: "t"):
            try readWord("true")
            return .boolean(true)
        case UInt8(ascii: "f"):
            try readWord("false")
            return .boolean(false)
        case UInt8(ascii: "n"):
            try readWord("null")
            return .null
        default:
            throw .malformed(at: here, expected: "a value")
        }
    }

    private mutating func readWord(_ word: StaticString) throws(JSONError) {
        for index in 0..<word.utf8CodeUnitCount {
            guard offset + index < end else {
                throw .unexpectedEnd(at: JSONPlace(offset: end))
            }
            guard base[offset + index] == word.utf8Start[index] else {
                throw .malformed(at: here, expected: "`\(word)`")
            }
        }
        offset += word.utf8CodeUnitCount
    }

    private mutating func readInteger() throws(JSONError) -> Int64 {
        let start = offset
        let isNegative = base[offset] == UInt8(ascii: "-")
        if isNegative { offset += 1 }
        let digitsStart = offset
        var magnitude: Int64 = 0
        var isOutOfRange = false
        while offset < end, base[offset].isDigit {
            // 2⁵³ × 10 + 9 is far below 2⁶³, so this cannot overflow before the range is noticed.
            if !isOutOfRange {
                magnitude = magnitude * 10 + Int64(base[offset] - UInt8(ascii: "0"))
                isOutOfRange = magnitude > CanonicalJSON.integerMax
            }
            offset += 1
        }
        let digitCount = offset - digitsStart
        guard digitCount > 0 else {
            guard offset < end else { throw .unexpectedEnd(at: here) }
            throw .malformed(at: here, expected: "a digit")
        }
        let place = JSONPlace(offset: start)
        if base[digitsStart] == UInt8(ascii: "0"), digitCount > 1 || isNegative {
            throw .notAnInteger(at: place)
        }
        if offset < end {
            let next = base[offset]
            if next == UInt8(ascii: ".") || next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
                throw .notAnInteger(at: place)
            }
        }
        if isOutOfRange { throw .integerOutOfRange(at: place) }
        return isNegative ? -magnitude : magnitude
    }

    /// Reads a number that is no integer which ``readInteger()`` takes.
    ///
    /// - Returns: Its text; `nil` where it is such an integer, or no number of RFC 8259 section 6. Nothing is read then.
    private mutating func readOtherNumber() -> String? {
        let start = offset
        func digits(_ place: inout Int) -> Bool {
            let first = place
            while place < end, base[place].isDigit {
                place += 1
            }
            return place > first
        }
        var place = start
        if base[place] == UInt8(ascii: "-") { place += 1 }
        let first = place
        guard digits(&place), place == first + 1 || base[first] != UInt8(ascii: "0") else { return nil }
        if place < end, base[place] == UInt8(ascii: ".") {
            place += 1
            guard digits(&place) else { return nil }
        }
        if place < end, base[place] == UInt8(ascii: "e") || base[place] == UInt8(ascii: "E") {
            place += 1
            if place < end, base[place] == UInt8(ascii: "+") || base[place] == UInt8(ascii: "-") {
                place += 1
            }
            guard digits(&place) else { return nil }
        }
        let text = String(
            decoding: UnsafeRawBufferPointer(start: base + start, count: place - start), as: UTF8.self)
        if let integer = Int64(text), text != "-0", integer.magnitude <= UInt64(CanonicalJSON.integerMax) {
            return nil
        }
        offset = place
        return text
    }

    private mutating func enter() throws(JSONError) {
        guard depth < limits.depthMax else { throw .tooDeep(at: here, depthMax: limits.depthMax) }
        depth += 1
        offset += 1
    }

    private mutating func readArray() throws(JSONError) -> [JSONValue] {
        try enter()
        try skipWhiteSpace()
        var elements: [JSONValue] = []
        if offset < end, base[offset] == UInt8(ascii: "]") {
            offset += 1
            depth -= 1
            return elements
        }
        while true {
            guard elements.count < limits.memberCountMax else {
                throw .tooManyMembers(at: here, memberCountMax: limits.memberCountMax)
            }
            do throws(JSONError) {
                elements.append(try readValue())
            } catch {
                throw error.inside(JSONPointer.root.appending(elements.count))
            }
            try skipWhiteSpace()
            guard offset < end else { throw .unexpectedEnd(at: here) }
            switch base[offset] {
            case UInt8(ascii: ","):
                offset += 1
                try skipWhiteSpace()
            case UInt8(ascii: "]"):
                offset += 1
                depth -= 1
                return elements
            default:
                throw .malformed(at: here, expected: "`,` or `]`")
            }
        }
    }

    private mutating func readObject() throws(JSONError) -> JSONObject {
        let start = offset
        try enter()
        try skipWhiteSpace()
        var members: [JSONObject.Member] = []
        if offset < end, base[offset] == UInt8(ascii: "}") {
            offset += 1
            depth -= 1
            return JSONObject()
        }
        members.reserveCapacity(8)
        // Members are put in order as they come while they are few; many wait for one sort at the end.
        var isSorted = true
        while true {
            guard members.count < limits.memberCountMax else {
                throw .tooManyMembers(at: here, memberCountMax: limits.memberCountMax)
            }
            let keyStart = offset
            let key = try readKey()
            var position = members.count
            if isSorted, position > 0 {
                let order = CodeUnits.compare(members[position - 1].key, key)
                if order >= 0 {
                    if order > 0, canonicalOnly { throw .notCanonical(at: JSONPlace(offset: keyStart)) }
                    if members.count <= Self.insertionCountMax {
                        position = JSONObject.lowerBound(of: key, in: members)
                        if CodeUnits.equal(members[position].key, key) {
                            throw .duplicateKey(
                                at: JSONPlace(offset: keyStart, pointer: JSONPointer.root.appending(key)))
                        }
                    } else {
                        isSorted = false
                    }
                }
            }
            let value: JSONValue
            do throws(JSONError) {
                value = try readValue()
            } catch {
                throw error.inside(JSONPointer.root.appending(key))
            }
            members.insert((key: key, value: value), at: position)
            try skipWhiteSpace()
            guard offset < end else { throw .unexpectedEnd(at: here) }
            switch base[offset] {
            case UInt8(ascii: ","):
                offset += 1
                try skipWhiteSpace()
            case UInt8(ascii: "}"):
                if !isSorted { try sort(&members, ofObjectAt: start) }
                offset += 1
                depth -= 1
                return JSONObject(canonical: members)
            default:
                throw .malformed(at: here, expected: "`,` or `}`")
            }
        }
    }

    /// Up to this number a member is inserted where it belongs; beyond it, a hostile document could make insertion's
    /// moves quadratic.
    private static let insertionCountMax = 32

    /// Reads a key and its colon, and stops at the value.
    private mutating func readKey() throws(JSONError) -> String {
        guard offset < end else { throw .unexpectedEnd(at: here) }
        guard base[offset] == UInt8(ascii: "\"") else {
            throw .malformed(at: here, expected: "a key in quotes")
        }
        let key = try readString()
        try skipWhiteSpace()
        guard offset < end else { throw .unexpectedEnd(at: here) }
        guard base[offset] == UInt8(ascii: ":") else { throw .malformed(at: here, expected: "`:`") }
        offset += 1
        try skipWhiteSpace()
        return key
    }

    /// Brings members into canonical order and refuses a key that occurs twice.
    private mutating func sort(
        _ members: inout [JSONObject.Member], ofObjectAt start: Int
    ) throws(JSONError) {
        members.sort { CodeUnits.precedes($0.key, $1.key) }
        for index in 1..<members.count
        where CodeUnits.equal(members[index - 1].key, members[index].key) {
            throw duplicate(of: members[index].key, inObjectAt: start)
        }
    }

    /// Finds the second occurrence of a key known to occur twice. Only on the way to an error, so reading
    /// the object once more is cheaper than remembering every key's place on every request.
    private mutating func duplicate(of key: String, inObjectAt start: Int) -> JSONError {
        let pointer = JSONPointer.root.appending(key)
        do throws(JSONError) {
            offset = start + 1
            try skipWhiteSpace()
            var seen = 0
            while true {
                let keyStart = offset
                if CodeUnits.equal(try readKey(), key) { seen += 1 }
                if seen == 2 { return .duplicateKey(at: JSONPlace(offset: keyStart, pointer: pointer)) }
                _ = try readValue()
                try skipWhiteSpace()
                offset += 1
                try skipWhiteSpace()
            }
        } catch {
            return .duplicateKey(at: JSONPlace(offset: start, pointer: pointer))
        }
    }

    /// Reads a text; `offset` is at its opening quote.
    private mutating func readString() throws(JSONError) -> String {
        let start = offset + 1
        var position = start
        while position < end {
            let byte = base[position]
            if byte == UInt8(ascii: "\"") {
                offset = position + 1
                return String(
                    decoding: UnsafeBufferPointer(start: base + start, count: position - start),
                    as: UTF8.self)
            }
            if byte == UInt8(ascii: "\\") {
                return try readEscapedString(from: start, plainUpTo: position)
            }
            guard byte >= 0x20 else { throw .controlCharacter(at: JSONPlace(offset: position), byte: byte) }
            position += byte < 0x80 ? 1 : try multibyteLength(at: position)
        }
        throw .unexpectedEnd(at: JSONPlace(offset: end))
    }

    /// The rest of a text from its first escape on.
    private mutating func readEscapedString(from start: Int, plainUpTo first: Int) throws(JSONError) -> String
    {
        scratch.removeAll(keepingCapacity: true)
        scratch.append(contentsOf: UnsafeBufferPointer(start: base + start, count: first - start))
        var position = first
        while position < end {
            let byte = base[position]
            switch byte {
            case UInt8(ascii: "\""):
                offset = position + 1
                return String(decoding: scratch, as: UTF8.self)
            case UInt8(ascii: "\\"):
                position = try readEscape(at: position)
            case 0x00..<0x20:
                throw .controlCharacter(at: JSONPlace(offset: position), byte: byte)
            case 0x20..<0x80:
                scratch.append(byte)
                position += 1
            default:
                let length = try multibyteLength(at: position)
                scratch.append(contentsOf: UnsafeBufferPointer(start: base + position, count: length))
                position += length
            }
        }
        throw .unexpectedEnd(at: JSONPlace(offset: end))
    }

    /// Reads the escape at `position` into `scratch`; returns the offset after it.
    private mutating func readEscape(at position: Int) throws(JSONError) -> Int {
        guard position + 1 < end else { throw .unexpectedEnd(at: JSONPlace(offset: end)) }
        let place = JSONPlace(offset: position)
        switch base[position + 1] {
        case UInt8(ascii: "\""): scratch.append(UInt8(ascii: "\""))
        case UInt8(ascii: "\\"): scratch.append(UInt8(ascii: "\\"))
        case UInt8(ascii: "b"): scratch.append(0x08)
        case UInt8(ascii: "f"): scratch.append(0x0C)
        case UInt8(ascii: "n"): scratch.append(0x0A)
        case UInt8(ascii: "r"): scratch.append(0x0D)
        case UInt8(ascii: "t"): scratch.append(0x09)
        case UInt8(ascii: "/"):
            if canonicalOnly { throw .notCanonical(at: place) }
            scratch.append(UInt8(ascii: "/"))
        case UInt8(ascii: "u"):
            return try readUnicodeEscape(at: position)
        default:
            throw .malformed(at: place, expected: "an escape of RFC 8259 section 7")
        }
        return position + 2
    }

    private mutating func readUnicodeEscape(at position: Int) throws(JSONError) -> Int {
        let place = JSONPlace(offset: position)
        let unit = try hexadecimalUnit(at: position + 2)
        var next = position + 6
        var scalar = UInt32(unit)
        if unit >= 0xDC00 && unit <= 0xDFFF { throw .loneSurrogate(at: place) }
        if unit >= 0xD800 && unit <= 0xDBFF {
            guard next + 1 < end, base[next] == UInt8(ascii: "\\"), base[next + 1] == UInt8(ascii: "u") else {
                throw .loneSurrogate(at: place)
            }
            let low = try hexadecimalUnit(at: next + 2)
            guard low >= 0xDC00 && low <= 0xDFFF else { throw .loneSurrogate(at: place) }
            scalar = 0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(low) - 0xDC00)
            next += 6
        }
        if scalar == 0, limits.refusesNUL { throw .nulCharacter(at: place) }
        if canonicalOnly {
            // Canonical text escapes a control character that has no short form, in lower-case digits.
            let hasShortForm =
                scalar == 0x08 || scalar == 0x09 || scalar == 0x0A || scalar == 0x0C || scalar == 0x0D
            let isLowerCase =
                !(base[position + 5] >= UInt8(ascii: "A") && base[position + 5] <= UInt8(ascii: "F"))
            guard scalar < 0x20, !hasShortForm, isLowerCase else { throw .notCanonical(at: place) }
        }
        // A scalar that is no surrogate and at most U+10FFFF always has a UTF-8 form.
        scratch.append(contentsOf: UTF8.encode(Unicode.Scalar(scalar).unsafelyUnwrapped).unsafelyUnwrapped)
        return next
    }

    private func hexadecimalUnit(at position: Int) throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for index in position..<(position + 4) {
            guard index < end else { throw .unexpectedEnd(at: JSONPlace(offset: end)) }
            guard let digit = base[index].hexadecimalDigit else {
                throw .malformed(at: JSONPlace(offset: index), expected: "four hexadecimal digits")
            }
            unit = unit << 4 | UInt16(digit)
        }
        return unit
    }

    /// The length of the UTF-8 sequence at `position`, which starts with a byte of 0x80 or above.
    ///
    /// Accepts exactly table 3-7 of the Unicode standard: no overlong form, no surrogate, nothing above
    /// U+10FFFF.
    private func multibyteLength(at position: Int) throws(JSONError) -> Int {
        let first = base[position]
        let length: Int
        var secondMin: UInt8 = 0x80
        var secondMax: UInt8 = 0xBF
        switch first {
        case 0xC2...0xDF: length = 2
        case 0xE0: (length, secondMin) = (3, 0xA0)
        case 0xED: (length, secondMax) = (3, 0x9F)
        case 0xE1...0xEF: length = 3
        case 0xF0: (length, secondMin) = (4, 0x90)
        case 0xF1...0xF3: length = 4
        case 0xF4: (length, secondMax) = (4, 0x8F)
        default: throw .notUTF8(at: JSONPlace(offset: position))
        }
        guard position + length <= end, base[position + 1] >= secondMin, base[position + 1] <= secondMax
        else {
            throw .notUTF8(at: JSONPlace(offset: position))
        }
        for index in 2..<max(2, length) where base[position + index] & 0xC0 != 0x80 {
            throw .notUTF8(at: JSONPlace(offset: position))
        }
        return length
    }
}
