/// Strict reading and canonical writing of JSON.
///
/// Reading accepts one document of RFC 8259 as RFC 7493 (I-JSON) narrows it, and narrows further: UTF-8
/// without a byte order mark, no key twice, integers only. It recurses at most
/// ``JSONLimits/depthMax`` levels and never looks beyond the given bytes. Writing follows RFC 8785 (JCS), so
/// that equal values give equal bytes on every machine and a digest over them means something.
package enum CanonicalJSON {
    /// −(2⁵³−1), the smallest integer every JSON implementation carries exactly (RFC 7493 section 2.2).
    package static let integerMin: Int64 = -9_007_199_254_740_991
    /// 2⁵³−1, the largest.
    package static let integerMax: Int64 = 9_007_199_254_740_991

    /// Reads exactly one document; white space around it is allowed.
    package static func read(
        _ bytes: [UInt8], limits: JSONLimits = .request
    ) throws(JSONError) -> JSONValue {
        try read(bytes[...], limits: limits)
    }

    package static func read(
        _ bytes: ArraySlice<UInt8>, limits: JSONLimits = .request
    ) throws(JSONError) -> JSONValue {
        try withBytes(of: bytes) { buffer throws(JSONError) in try read(buffer, limits: limits) }
    }

    package static func read(
        _ bytes: UnsafeRawBufferPointer, limits: JSONLimits = .request
    ) throws(JSONError) -> JSONValue {
        var reader = JSONReader(bytes, limits: limits, canonicalOnly: false)
        return try reader.readDocument()
    }

    /// Reads one document that must already be in its one canonical spelling; any other is
    /// ``JSONError/notCanonical(at:)``, with the byte where it departs.
    package static func readCanonical(
        _ bytes: [UInt8], limits: JSONLimits = .entry
    ) throws(JSONError) -> JSONValue {
        try readCanonical(bytes[...], limits: limits)
    }

    package static func readCanonical(
        _ bytes: ArraySlice<UInt8>, limits: JSONLimits = .entry
    ) throws(JSONError) -> JSONValue {
        try withBytes(of: bytes) { buffer throws(JSONError) in
            try readCanonical(buffer, limits: limits)
        }
    }

    package static func readCanonical(
        _ bytes: UnsafeRawBufferPointer, limits: JSONLimits = .entry
    ) throws(JSONError) -> JSONValue {
        var reader = JSONReader(bytes, limits: limits, canonicalOnly: true)
        return try reader.readDocument()
    }

    /// Whether `bytes` are exactly what ``write(_:)`` gives for the value they spell.
    package static func isCanonical(_ bytes: [UInt8]) -> Bool {
        let limits = JSONLimits(
            byteCountMax: .max, depthMax: JSONLimits.document.depthMax, memberCountMax: .max,
            refusesNUL: false)
        return (try? readCanonical(bytes, limits: limits)) != nil
    }

    /// A typed-throws bridge over `withUnsafeBytes`, which rethrows untyped.
    private static func withBytes(
        of slice: ArraySlice<UInt8>, _ body: (UnsafeRawBufferPointer) throws(JSONError) -> JSONValue
    ) throws(JSONError) -> JSONValue {
        let result: Result<JSONValue, JSONError> = slice.withUnsafeBytes { buffer in
            do throws(JSONError) {
                return .success(try body(buffer))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// The canonical bytes of `value` (RFC 8785).
    ///
    /// - Precondition: Every integer is within ``integerMin`` and ``integerMax``.
    package static func write(_ value: JSONValue) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(512)
        append(value, to: &bytes)
        return bytes
    }

    package static func write(_ object: JSONObject) -> [UInt8] {
        write(.object(object))
    }

    /// Appends the canonical bytes of `value`.
    package static func append(_ value: JSONValue, to bytes: inout [UInt8]) {
        switch value {
        case .null: bytes.append(contentsOf: StaticTexts.null)
        case .boolean(true): bytes.append(contentsOf: StaticTexts.true)
        case .boolean(false): bytes.append(contentsOf: StaticTexts.false)
        case .integer(let integer): append(integer, to: &bytes)
        case .string(let text): append(text, to: &bytes)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            var first = true
            for element in elements {
                if !first { bytes.append(UInt8(ascii: ",")) }
                first = false
                append(element, to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object):
            bytes.append(UInt8(ascii: "{"))
            var first = true
            for member in object.members {
                if !first { bytes.append(UInt8(ascii: ",")) }
                first = false
                append(member.key, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                append(member.value, to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private enum StaticTexts {
        static let null = Array("null".utf8)
        static let `true` = Array("true".utf8)
        static let `false` = Array("false".utf8)
    }

    /// Appends an integer in decimal. For writers that stream members without building a value first.
    package static func append(_ integer: Int64, to bytes: inout [UInt8]) {
        precondition(
            integer >= integerMin && integer <= integerMax,
            "\(integer) was to be written as JSON, outside ±(2⁵³−1)")
        if integer < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = integer.magnitude
        // 2⁵³−1 has 16 digits; they come out backwards, packed four bits each.
        var digits: UInt64 = 0
        var count = 0
        repeat {
            digits = digits << 4 | rest % 10
            rest /= 10
            count += 1
        } while rest > 0
        for _ in 0..<count {
            bytes.append(UInt8(ascii: "0") + UInt8(digits & 15))
            digits >>= 4
        }
    }

    /// Appends a quoted text with the escapes of RFC 8785 section 3.2.2.2 and no others.
    package static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        CodeUnits.withBytes(text) { utf8 in
            var runStart = 0
            for offset in 0..<utf8.count {
                let byte = utf8[offset]
                if byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\") { continue }
                bytes.append(contentsOf: utf8[runStart..<offset])
                runStart = offset + 1
                appendEscape(byte, to: &bytes)
            }
            bytes.append(contentsOf: utf8[runStart...])
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func appendEscape(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        default:
            bytes.append(contentsOf: [UInt8(ascii: "u"), UInt8(ascii: "0"), UInt8(ascii: "0")])
            bytes.append(UInt8(ascii: "0") + (byte >> 4))
            let low = byte & 15
            bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        }
    }
}
