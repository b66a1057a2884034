/// How a browser or a phone would read some text where a host may stand (RFC 3986 section 3.2.2; WHATWG URL,
/// "host parsing", which takes more spellings of an IPv4 address).
package enum HostReading: Equatable {
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
    package init(_ host: some Collection<Unicode.Scalar>) {
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
        } else {
            self = Self.name(of: labels)
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

    /// A phone looks for a known ending and links what stands before it, whatever follows but a letter or a digit: of
    /// `evil.com-`, `evil.com-a` and `evil.com.7` it makes a link to `evil.com`.
    private static func name(of labels: [[Unicode.Scalar]]) -> HostReading {
        for (label, before) in zip(labels.dropFirst(), labels) where !before.isEmpty {
            let word = label.prefix { !Self.isDash($0) }
            if isWord(word), DomainEndings.contains(String(String.UnicodeScalarView(word))) {
                return .name(isCertain: true)
            }
        }
        guard labels.count >= 2, labels.suffix(2).allSatisfy({ !$0.isEmpty }) else { return .none }
        var last = labels[labels.count - 1][...]
        while let dash = last.last, isDash(dash) { last.removeLast() }
        return isWord(last) ? .name(isCertain: false) : .none
    }

    private static func isWord(_ label: ArraySlice<Unicode.Scalar>) -> Bool {
        label.count >= 2 && label.allSatisfy { $0.properties.isAlphabetic }
    }

    private static func isDash(_ scalar: Unicode.Scalar) -> Bool { scalar == "-" || scalar == "_" }

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
