/// A text that is written into many documents, or weighed in several forms, with its length in them.
package struct CountedText: Hashable, Sendable {
    package let text: String
    /// Bytes that ``CanonicalWriter/characters(_:)`` writes of it.
    package let byteCount: Int

    package init(_ text: String) {
        self.text = text
        byteCount = CanonicalWriter.byteCount(ofCharacters: text)
    }

    package static func == (left: CountedText, right: CountedText) -> Bool {
        CodeUnits.equal(left.text, right.text)
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(codeUnitsOf: text) }
}
