import GateVocabulary

/// How a browser or a phone would read some text where a host may stand (RFC 3986 section 3.2.2; WHATWG URL,
/// "host parsing", which takes more spellings of an IPv4 address).
enum HostReading: Equatable {
    case none
    /// A registered name, in any case of its letters.
    ///
    /// - Parameter isCertain: Whether its last label is a known ending. Another one may be a new ending, the end of a
    ///   file's name, or a name after a shortened one.
    case name(isCertain: Bool)
    /// An IP address in any spelling, or this very machine.
    case address
    /// A number that is an address only in front of a port or a path: 3232235521 is 192.168.0.1.
    case number

    /// - Parameter host: Folded (``TextFolding``), in its own case, without port and user information.
    init(_ host: some Collection<Unicode.Scalar>) {
        var labels = host.split(separator: ".", omittingEmptySubsequences: false).map { Array($0) }
        // The full stop that ends a sentence, or the root of a name; and what was left out before it.
        while labels.last?.isEmpty == true { labels.removeLast() }
        while labels.first?.isEmpty == true { labels.removeFirst() }
        let texts = labels.map { String(String.UnicodeScalarView($0)).lowercased() }
        if texts == ["localhost"] {
            self = .address
        } else if labels.count == 1 {
            self = Self.isAddress(texts[0]) ? .number : .none
        } else if labels.count == 4,
            labels.allSatisfy(Self.isOctet)
                || (2...4).contains(labels.count) && texts.contains(where: Self.isHexadecimal)
                    && labels.allSatisfy({ $0.first.map(Self.isDigit) ?? false })
        {
            self = .address
        } else if labels.count >= 2, labels.suffix(2).allSatisfy({ !$0.isEmpty }) {
            self = Self.name(endingIn: labels[labels.count - 1])
        } else {
            self = .none
        }
    }

    /// Whether text with colons is an IPv6 address (RFC 4291 section 2.2).
    static func isIPv6(_ text: String) -> Bool {
        let text = text.drop { $0 == "." }
        let end = text.lastIndex { $0 != "." }.map(text.index(after:)) ?? text.startIndex
        let groups = text[..<end].split(separator: ":", omittingEmptySubsequences: false)
        guard groups.count >= 3, groups.contains(where: { !$0.isEmpty }),
            groups.allSatisfy({ $0.utf8.count <= 4 && $0.allSatisfy(\.isHexDigit) || isDotted($0) })
        else { return false }
        return text.contains("::") || groups.count == 8
    }

    private static func isDotted(_ text: Substring) -> Bool {
        text.contains(".") && HostReading(text.unicodeScalars) == .address
    }

    private static func name(endingIn last: [Unicode.Scalar]) -> HostReading {
        guard last.count >= 2, last.allSatisfy({ $0.properties.isAlphabetic }) else { return .none }
        return .name(isCertain: DomainEndings.contains(String(String.UnicodeScalarView(last))))
    }

    private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

    /// `1.234.567.890` is an amount, `0300.0250.0.1` an address in octal.
    private static func isOctet(_ label: [Unicode.Scalar]) -> Bool {
        guard (1...4).contains(label.count), label.allSatisfy(isDigit),
            let value = Int(String(String.UnicodeScalarView(label)))
        else { return false }
        return label.count < 4 ? value <= 255 : label[0] == "0"
    }

    private static func isHexadecimal(_ text: String) -> Bool {
        text.hasPrefix("0x") && (3...10).contains(text.utf8.count)
            && text.dropFirst(2).allSatisfy(\.isHexDigit)
    }

    /// 1.0.0.0 and up; a smaller number is a number.
    private static func isAddress(_ text: String) -> Bool {
        isHexadecimal(text) || (UInt64(text).map { (0x100_0000...0xFFFF_FFFF).contains($0) } ?? false)
    }
}
