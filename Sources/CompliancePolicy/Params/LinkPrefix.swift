/// A place that links may lead to, with everything below it: `drop://send` covers `drop://send/7?step=2`.
///
/// A link is compared byte for byte, so it has one spelling only: ASCII letters, digits and `-._~/?&=#` after the
/// scheme. That leaves out what makes a link look like it led elsewhere: `%` (a second spelling), `@` (RFC 3986
/// section 3.2.1, user information), `\` (browsers read it as `/`), `:` (a port, or a link inside a link), empty
/// segments and `..` (RFC 3986 section 5.2.4).
package struct LinkPrefix: Hashable, Sendable {
    /// Without query and fragment.
    package let text: String

    /// Bytes of a link, as the wire has it.
    package static let byteCountMax = 512

    /// The schemes that a browser, a telephone or an operating system answers to.
    private static let foreignSchemes: Set<String> = [
        "http", "https", "javascript", "data", "file", "ftp", "intent", "content", "about", "blob", "tel",
        "sms", "mailto", "itms", "itms-apps", "market", "ws", "wss",
    ]

    /// A place in an app: a scheme of its own, and a path that may be empty.
    package init?(inApp text: String) {
        guard let rest = Self.rest(of: text), !Self.foreignSchemes.contains(String(text[..<rest.scheme]))
        else { return nil }
        self.text = Self.path(of: text)
    }

    /// A place on the web: `https` and a whole host in lower case.
    package init?(onWeb text: String) {
        guard let rest = Self.rest(of: text), text[..<rest.scheme] == "https" else { return nil }
        let host = text.utf8[rest.start...].prefix { !Self.ends.contains($0) }
        let isHost = host.allSatisfy { byte in
            Self.isDigit(byte) || Self.isSmall(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
        }
        guard isHost, host.contains(UInt8(ascii: ".")), host.first != UInt8(ascii: "."),
            host.last != UInt8(ascii: ".")
        else { return nil }
        self.text = Self.path(of: text)
    }

    /// Whether a link leads here or below. A name that only begins the same, `drop://sender`, does not.
    package func covers(_ link: String) -> Bool {
        guard Self.rest(of: link) != nil, link.utf8.starts(with: text.utf8) else { return false }
        guard let next = link.utf8.dropFirst(text.utf8.count).first else { return true }
        return text.utf8.last == UInt8(ascii: "/") || Self.ends.contains(next)
    }

    /// What ends a segment of a path.
    private static let ends = "/?#".utf8

    private static func path(of text: String) -> String {
        String(text.prefix { $0 != "?" && $0 != "#" })
    }

    /// - Returns: Where the scheme ends and what is after `://` starts; `nil` for what has two spellings, or is no link.
    private static func rest(of text: String) -> (scheme: String.Index, start: String.Index)? {
        guard text.utf8.count <= byteCountMax, let range = text.firstRange(of: "://") else { return nil }
        let scheme = text.utf8[..<range.lowerBound]
        guard let first = scheme.first, isSmall(first),
            scheme.allSatisfy({ isSmall($0) || isDigit($0) || "+-.".utf8.contains($0) })
        else { return nil }
        let rest = text.utf8[range.upperBound...]
        let isPlain = rest.allSatisfy { byte in
            isSmall(byte | 0x20) && byte < 0x80 || isDigit(byte) || "-._~/?&=#".utf8.contains(byte)
        }
        guard isPlain else { return nil }
        let segments = rest.prefix { !"?#".utf8.contains($0) }
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let dot = UInt8(ascii: ".")
        guard segments.dropLast().allSatisfy({ !$0.isEmpty }),
            !segments.contains(where: { $0.elementsEqual([dot]) }),
            !zip(rest, rest.dropFirst()).contains(where: { $0 == dot && $1 == dot })
        else { return nil }
        return (range.lowerBound, range.upperBound)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isSmall(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }
}
