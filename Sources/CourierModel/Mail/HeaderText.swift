import SealedFormat

/// Text in the fields of a header (RFC 5322 section 2.2.3, RFC 2047).
enum HeaderText {
    /// Longest line of a message without its CRLF, in bytes (RFC 5322 section 2.1.1).
    static let lineBytesMax = 998
    /// Where lines are folded, in characters: RFC 2047 section 2 allows a line with an encoded word no more.
    private static let lineCountMax = 76

    static func hasControl(_ text: String) -> Bool {
        text.unicodeScalars.contains {
            $0.value < 0x20 || (0x7F...0x9F).contains($0.value) || $0.value == 0x2028 || $0.value == 0x2029
        }
    }

    /// A subject. Reading it back gives the same text: where folding and blanks could change it, it is written as encoded words.
    ///
    /// - Parameter column: Characters before it on its line.
    static func unstructured(_ text: String, after column: Int) -> String {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        let isPlain =
            !text.isEmpty && text.utf8.allSatisfy { (0x20..<0x7F).contains($0) } && !text.contains("=?")
            && words.allSatisfy { !$0.isEmpty && $0.utf8.count < lineCountMax - column }
        return isPlain ? folded(text, after: column) : encodedWords(text)
    }

    static func mailbox(_ address: String, name: String?) -> String {
        guard let name, !name.isEmpty else { return "<\(address)>" }
        let isPrintable = name.utf8.allSatisfy { (0x20..<0x7F).contains($0) } && !name.contains("=?")
        guard isPrintable, name.utf8.count <= 64 else { return "\(encodedWords(name))\r\n <\(address)>" }
        let quoted = name.map { "\"\\".contains($0) ? "\\\($0)" : String($0) }.joined()
        return "\"\(quoted)\"\r\n <\(address)>"
    }

    /// Breaks lines at single blanks, and a line without one stays whole.
    static func folded(_ text: String, after column: Int = 20) -> String {
        var (folded, column): (String, Int) = ("", column)
        for (index, word) in text.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
            let count = word.utf8.count + 1
            if index > 0 {
                let isTooLong = column + count > lineCountMax
                folded += isTooLong ? "\r\n " : " "
                column = isTooLong ? 0 : column
            }
            folded += word
            column += count
        }
        return folded
    }

    /// Base64 words of whole characters (RFC 2047 section 5), each on a line of its own but the first. Blanks between two are
    /// not part of the text (section 6.2).
    private static func encodedWords(_ text: String) -> String {
        var (words, word): ([String], [UInt8]) = ([], [])
        func finish() { words.append("=?utf-8?B?\(Base64.encode(word))?=") }
        for scalar in text.unicodeScalars {
            let bytes = Array(String(scalar).utf8)
            if word.count + bytes.count > encodedBytesMax {
                finish()
                word = []
            }
            word += bytes
        }
        if !word.isEmpty || words.isEmpty { finish() }
        return words.joined(separator: "\r\n ")
    }

    /// Bytes of one encoded word: 52 characters of base64 and 12 around them leave room for `Subject: ` in 76.
    private static let encodedBytesMax = 39
}
