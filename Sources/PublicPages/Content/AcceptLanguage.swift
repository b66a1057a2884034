/// The languages of an `Accept-Language` header, the most wanted first (RFC 9110 section 12.5.4).
enum AcceptLanguage {
    /// Languages that are looked at; browsers name a handful.
    static let countMax = 16

    /// - Returns: Tags as they came. A tag with a weight of 0, or with a malformed one, is left out.
    static func read(_ header: String?) -> [String] {
        guard let header else { return [] }
        var found: [(tag: String, weight: Int)] = []
        for part in header.split(separator: ",").prefix(countMax) {
            let pieces = part.split(separator: ";").map { $0.trimming(while: { $0 == " " || $0 == "\t" }) }
            guard let tag = pieces.first, !tag.isEmpty, tag != "*" else { continue }
            var weight = 1000
            if let parameter = pieces.dropFirst().first {
                guard parameter.hasPrefix("q="), let read = Self.weight(parameter.dropFirst(2)) else {
                    continue
                }
                weight = read
            }
            if weight > 0 { found.append((tag, weight)) }
        }
        return found.enumerated().sorted { ($1.element.weight, $0.offset) < ($0.element.weight, $1.offset) }
            .map(\.element.tag)
    }

    /// `0.8` in thousandths.
    private static func weight(_ text: Substring) -> Int? {
        let pieces = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = pieces.first, whole == "0" || whole == "1" else { return nil }
        let digits = pieces.count > 1 ? pieces[1] : ""
        guard digits.utf8.count <= 3, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        let thousandths =
            digits.isEmpty ? 0 : Int(digits + String(repeating: "0", count: 3 - digits.utf8.count))
        guard let thousandths, whole == "0" || thousandths == 0 else { return nil }
        return whole == "1" ? 1000 : thousandths
    }
}

extension StringProtocol {
    /// Without the characters at either end that a condition holds for.
    func trimming(while isTrimmed: (Character) -> Bool) -> String {
        var rest = self[...]
        while let first = rest.first, isTrimmed(first) { rest = rest.dropFirst() }
        while let last = rest.last, isTrimmed(last) { rest = rest.dropLast() }
        return String(rest)
    }
}
