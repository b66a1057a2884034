/// A sentence with places for values: ``It waits[ for `{place}`] until {moment}.``
///
/// A part in brackets is said where all its values are known; of the alternatives in it, divided by `|`, the first of which
/// that is so.
package struct SentenceTemplate: Hashable, Sendable {
    /// What a place in a sentence is filled with.
    package enum Value: String, CaseIterable, Sendable, Hashable {
        /// What the owner calls a device or address.
        case place
        case moment
        /// Another sentence's part: why something was taken back.
        case why
        /// Another whole sentence.
        case text
        case channel
        /// A provider's or app's own word.
        case code
        case purpose
        // Of a moment.
        case day, month, year, hour, minute, zone
    }

    /// Why a text is no template. Completes "`reasons.expired.sentence` …".
    package enum Fault: Error, Equatable, CustomStringConvertible {
        case strayBrace
        case strayBracket
        case unknownValue(String)

        package var description: String { message }

        package var message: String {
            switch self {
            case .strayBrace: "has a brace that does not belong to a value"
            case .strayBracket: "has a bracket without its partner, or one inside another"
            case .unknownValue(let name): "names {\(name)}, which is no value of a sentence"
            }
        }
    }

    private enum Piece: Hashable {
        case text(String)
        case value(Value)
    }

    private enum Part: Hashable {
        case always([Piece])
        case first(of: [[Piece]])
    }

    private var parts: [Part] = []

    /// Values without which there is no such sentence.
    package var required: Set<Value> {
        parts.reduce(into: []) { if case .always(let pieces) = $1 { $0.formUnion(Self.values(of: pieces)) } }
    }

    /// Values that are said where they are known.
    package var optional: Set<Value> {
        parts.reduce(into: []) { found, part in
            guard case .first(let choices) = part else { return }
            for pieces in choices { found.formUnion(Self.values(of: pieces)) }
        }
    }

    package init(_ text: String) throws(Fault) {
        var rest = text[...]
        while let open = rest.firstIndex(where: { $0 == "[" || $0 == "]" }) {
            guard rest[open] == "[", let close = rest[open...].firstIndex(of: "]") else {
                throw .strayBracket
            }
            let inside = rest[rest.index(after: open)..<close]
            guard !inside.contains("[") else { throw .strayBracket }
            parts.append(.always(try Self.pieces(of: rest[..<open])))
            var choices: [[Piece]] = []
            for choice in inside.split(separator: "|", omittingEmptySubsequences: false) {
                choices.append(try Self.pieces(of: choice))
            }
            parts.append(.first(of: choices))
            rest = rest[rest.index(after: close)...]
        }
        parts.append(.always(try Self.pieces(of: rest)))
    }

    private static func pieces(of text: Substring) throws(Fault) -> [Piece] {
        var pieces: [Piece] = []
        var rest = text
        while let open = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) {
            guard rest[open] == "{", let close = rest[open...].firstIndex(of: "}") else { throw .strayBrace }
            let name = String(rest[rest.index(after: open)..<close])
            guard let value = Value(rawValue: name) else { throw .unknownValue(name) }
            pieces += [.text(String(rest[..<open])), .value(value)]
            rest = rest[rest.index(after: close)...]
        }
        return pieces + [.text(String(rest))]
    }

    private static func values(of pieces: [Piece]) -> Set<Value> {
        Set(pieces.compactMap { if case .value(let value) = $0 { value } else { nil } })
    }

    /// - Parameter values: At least the ``required`` ones.
    package func filled(with values: [Value: String]) -> String {
        func fill(_ pieces: [Piece]) -> String {
            pieces.map { piece in
                switch piece {
                case .text(let text): text
                case .value(let value): values[value] ?? ""
                }
            }.joined()
        }
        return parts.map { part in
            switch part {
            case .always(let pieces): fill(pieces)
            case .first(let choices):
                choices.first { Self.values(of: $0).allSatisfy { values[$0] != nil } }.map(fill) ?? ""
            }
        }.joined()
    }
}
