import CanonicalJSON

extension TextRule {
    /// One file of the trail in the C2SP `tlog-tiles` layout, named by the part of its path after `tile/`: `<L>/<N>[.p/<W>]` or
    /// `entries/<N>[.p/<W>]`.
    ///
    /// One spelling each: no leading zero groups, no width of 256 (that is the full tile). Five groups of three digits address
    /// more entries than 64-bit milliseconds could number.
    static let tile = ascii(
        "a tile such as `0/x001/234`, `0/000.p/5` or `entries/000` (C2SP tlog-tiles)", lengths: 5...64,
        pattern: "^(?:entries|[0-9]|[1-5][0-9]|6[0-3])/"
            + "(?:x(?:[1-9][0-9]{2}|0[1-9][0-9]|00[1-9])/(?:x[0-9]{3}/){0,3})?"
            + #"[0-9]{3}(?:\.p/(?:[1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5]))?$"#
    ) { bytes in
        var text: [UInt8] = []
        for index in 0..<bytes.count { text.append(bytes[index]) }
        return isTile(text)
    }

    private static func isTile(_ text: [UInt8]) -> Bool {
        var parts = text.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let level = parts.removeFirst()
        guard level.elementsEqual("entries".utf8) || isNumber(level, in: 0...63) else { return false }
        if parts.count >= 2, parts[parts.count - 2].suffix(2).elementsEqual(".p".utf8) {
            guard isNumber(parts.removeLast(), in: 1...255) else { return false }
            parts[parts.count - 1].removeLast(2)
        }
        guard (1...5).contains(parts.count) else { return false }
        for position in parts.indices.dropLast() {
            guard parts[position].popFirst() == UInt8(ascii: "x") else { return false }
        }
        return parts.allSatisfy { $0.count == 3 && $0.allSatisfy { $0.isDigit } }
            && (parts.count == 1 || !parts[0].elementsEqual("000".utf8))
    }

    /// Whether it is a number in its one decimal spelling.
    private static func isNumber(_ digits: ArraySlice<UInt8>, in range: ClosedRange<Int>) -> Bool {
        guard (1...3).contains(digits.count), digits.allSatisfy({ $0.isDigit }),
            digits.count == 1 || digits.first != UInt8(ascii: "0")
        else { return false }
        return range.contains(digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) })
    }
}
