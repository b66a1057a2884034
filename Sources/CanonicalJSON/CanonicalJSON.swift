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
        try read(bytes, limits: limits, canonicalOnly: false)
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
        try read(bytes, limits: limits, canonicalOnly: true)
    }

    private static func read(
        _ bytes: ArraySlice<UInt8>, limits: JSONLimits, canonicalOnly: Bool
    ) throws(JSONError) -> JSONValue {
        // A result, because `withUnsafeBytes` rethrows errors without their type.
        let result: Result<JSONValue, JSONError> = bytes.withUnsafeBytes { buffer in
            do throws(JSONError) {
                var reader = JSONReader(buffer, limits: limits, canonicalOnly: canonicalOnly)
                return .success(try reader.readDocument())
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Whether `bytes` are exactly what ``write(_:)`` gives for the value they spell.
    package static func isCanonical(_ bytes: [UInt8]) -> Bool {
        let limits = JSONLimits(
            byteCountMax: .max, depthMax: JSONLimits.document.depthMax, memberCountMax: .max,
            refusesNUL: false)
        return (try? readCanonical(bytes, limits: limits)) != nil
    }

    /// The canonical bytes of `value` (RFC 8785).
    ///
    /// - Precondition: Every integer is within ``integerMin`` and ``integerMax``.
    package static func write(_ value: JSONValue) -> [UInt8] {
        var writer = CanonicalWriter()
        writer.value(value)
        return writer.finish()
    }

    package static func write(_ object: JSONObject) -> [UInt8] {
        write(.object(object))
    }
}
