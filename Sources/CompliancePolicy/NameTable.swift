import GateVocabulary

/// The names a bundle knows, each with its position.
///
/// Compared by their bytes: to Swift's `String` two spellings of `é` are one text.
struct NameTable: Sendable {
    private struct Name: TextIdentifier {
        let text: String
        init(_ text: String) { self.text = text }
    }

    private let positions: [Name: Int]

    /// - Parameter names: A name's position is its index, the first one's where two are equal. An archived bundle may
    ///   have an empty one; no request can have it.
    init(_ names: [String]) {
        positions = Dictionary(
            names.enumerated().lazy.filter { !$0.element.isEmpty }.map { (Name($0.element), $0.offset) },
            uniquingKeysWith: { first, _ in first })
    }

    /// - Returns: `nil` for a name that is not in the table.
    func position(of name: String) -> Int? { positions[Name(name)] }
}
