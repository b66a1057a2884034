import CanonicalJSON
import GateVocabulary

/// A request target taken apart: segments and query still encoded, for the route to decode what it names.
struct RequestTarget {
    struct Malformed: Error, Hashable {
        var message: String
    }

    /// Without the leading `/`; an empty path has one empty segment.
    var segments: [Substring]
    /// `nil` without a `?`.
    var query: Substring?

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
        // On bytes throughout: every one of them is ASCII by now, and Swift's characters cost a look-up each.
        var rest = target.utf8[...]
        if rest.first != UInt8(ascii: "/") {
            // Absolute form (RFC 9112 section 3.2.2): a server must accept it, and here no authority differs.
            guard rest.starts(with: "http://".utf8) else {
                return .failure(Malformed(message: "the request target does not start with `/`"))
            }
            rest = rest.dropFirst(7)
            guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else {
                return .failure(Malformed(message: "the request target has no path"))
            }
            rest = rest[slash...]
        }
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
