package import CanonicalJSON

/// What the texts in an entry may be. Every text and every list has a bound, so that nothing a caller chose can hide in
/// an entry.
extension Shape {
    /// A name sendgate's own configuration gives, or one of its closed lists, of which a newer build may know more.
    package static let name = Shape.text(.entryName)
    /// A pseudonym, a key id or a keyed tag.
    package static let tag = Shape.text(.pseudonym)

    /// For what sendgate itself chose; a caller's texts enter the trail only as tags.
    package static func text(byteCountMax: Int) -> Shape { .text(.bytes(atMost: byteCountMax)) }
}

extension TextRule {
    static let entryName = TextRule.ascii(
        "a name: 1 to 128 of `a-z`, `A-Z`, `0-9` and `_-.:/`", lengths: 1...128,
        pattern: "^[A-Za-z0-9_.:/-]{1,128}$"
    ) { $0.all { $0.isAlphanumeric || $0.isOneOf("_-.:/") } }

    /// JSON Schema counts characters, of which there are never more than bytes.
    static func bytes(atMost countMax: Int) -> TextRule {
        TextRule("a text of at most \(countMax) bytes", lengths: 0...countMax) { $0.count <= countMax }
    }
}
