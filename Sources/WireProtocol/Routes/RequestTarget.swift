import CanonicalJSON
import GateVocabulary

/// A request target taken apart: segments and query still encoded, for the route to decode what it names.
package struct RequestTarget {
    struct Malformed: Error, Hashable {
        var message: String
    }

    /// Without the leading `/`; an empty path has one empty segment.
    var segments: [Substring]
    /// `nil` without a `?`.
    var query: Substring?

    /// A target as path and query, where it came in absolute form: a server must accept that (RFC 9112 section 3.2.2), and
    /// here no authority differs.
    ///
    /// - Returns: `nil` for every other form.
    package static func originForm(of target: String) -> String? {
        if target.utf8.first == UInt8(ascii: "/") { return target }
        let scheme = "http://"
        guard target.utf8.count > scheme.utf8.count, target.prefix(scheme.count).lowercased() == scheme else {
            return nil
        }
        let rest = target.utf8.dropFirst(scheme.utf8.count)
        let authority = rest.prefix { !$0.isOneOf("/?#") }
        guard !authority.isEmpty else { return nil }
        let path = String(Substring(rest[authority.endIndex...]))
        // An empty path is sent as `/` (section 3.2.1).
        return path.utf8.first == UInt8(ascii: "/") ? path : "/" + path
    }

    static func read(_ target: String) -> Result<RequestTarget, Malformed> {
        guard target.utf8.count <= WireLimits.targetByteCountMax else {
            return .failure(
                Malformed(message: "the request target is longer than \(WireLimits.targetByteCountMax) bytes")
            )
        }
        for byte in target.utf8 where !isAllowed(byte) {
            return .failure(
                Malformed(
                    message:
                        "the request target holds a byte that must be percent-encoded (RFC 3986): 0x\(hexadecimal(byte))"
                ))
        }
        guard let target = originForm(of: target) else {
            return .failure(Malformed(message: "the request target does not start with `/`"))
        }
        // On bytes throughout: every one of them is ASCII by now, and Swift's characters cost a look-up each.
        var rest = target.utf8[...]
        var query: Substring?
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            query = Substring(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        let segments = rest.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { Substring($0) }
        return .success(RequestTarget(segments: segments, query: query))
    }

    /// `pchar`, `/` and `?` of RFC 3986, whose percent-encoding is looked at later.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        byte.isAlphanumeric || byte.isOneOf("-._~!$&'()*+,;=:@%/?")
    }

    private static func hexadecimal(_ byte: UInt8) -> String { Hexadecimal.encode([byte]) }
}
