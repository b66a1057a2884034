package import BundleModel
import Yams

/// Reads one page of a bundle, strictly: one YAML 1.2 document of mappings, lists, texts, whole numbers,
/// `true`, `false` and `null`, in which every word means the same to every reader.
///
/// Anchors, aliases, tags, merge keys, directives, a second document, a key that occurs twice, and words
/// that readers type differently are refused with the place and what to do. libyaml (through Yams)
/// recognises the syntax; the typing is ours.
package enum PolicyPage {
    /// - Parameters:
    ///   - bytes: The whole file.
    ///   - file: Its path relative to the bundle, for locations.
    /// - Throws: Every problem that could be told without the others being solved first.
    package static func read(_ bytes: [UInt8], file: String) throws(PolicyDiagnostics) -> PolicyNode {
        let source = try SourceText(bytes, file: file, allowsTab: false)
        var reader = PageReader(source)
        return try reader.read()
    }

    /// Reads a page that is text and nothing else, such as a consent notice.
    package static func readText(_ bytes: [UInt8], file: String) throws(PolicyDiagnostics) -> PolicyNode {
        let source = try SourceText(bytes, file: file, allowsTab: true)
        guard !source.isEmpty else {
            throw PolicyDiagnostics([
                PolicyDiagnostic(file: file, message: "is empty", hint: "a notice is the text that was shown")
            ])
        }
        return PolicyNode(.text(source.text), at: SourceLocation(file: file, line: 1, column: 1))
    }
}

/// One page on its way from text to tree.
private struct PageReader {
    let source: SourceText
    var diagnostics: [PolicyDiagnostic] = []

    init(_ source: SourceText) {
        self.source = source
    }

    mutating func read() throws(PolicyDiagnostics) -> PolicyNode {
        try refuseDirectives()
        try refuseAliasStorm()
        guard let root = try compose() else {
            throw PolicyDiagnostics([
                PolicyDiagnostic(file: source.file, message: "is empty", hint: "a page holds one document")
            ])
        }
        let node = tree(root, depth: 0)
        guard diagnostics.isEmpty else { throw PolicyDiagnostics(diagnostics) }
        return node
    }

    // MARK: Before libyaml sees it

    /// `%YAML 1.1` would change what words mean, `%TAG` what tags do.
    private func refuseDirectives() throws(PolicyDiagnostics) {
        for number in 1...source.lineCount {
            guard let line = source.line(number) else { return }
            if line.first == UInt8(ascii: "%") {
                throw PolicyDiagnostics([
                    PolicyDiagnostic(
                        file: source.file,
                        at: SourceLocation(file: source.file, line: number, column: 1),
                        "has a directive, and a page means the same without one", hint: "remove the line")
                ])
            }
            guard line.allSatisfy({ $0 == UInt8(ascii: " ") }) || line.first == UInt8(ascii: "#") else {
                return
            }
        }
    }

    /// Refuses a page that could make composing it take forever.
    ///
    /// Yams hashes the keys of a mapping, aliases in keys resolved, so a few dozen aliases of aliases would
    /// keep it busy for years ("billion laughs"). Whether `*x` is an alias only a parser can tell, so this
    /// counts what may be one. Up to eight cost nothing and get their precise refusal later; more than
    /// that beside something that may be an anchor is no page written by accident.
    private func refuseAliasStorm() throws(PolicyDiagnostics) {
        var anchor: Int?
        var aliasCount = 0
        var previous = UInt8(ascii: "\n")
        let bytes = source.bytes
        for offset in bytes.indices {
            let byte = bytes[offset]
            defer { previous = byte }
            guard byte == UInt8(ascii: "&") || byte == UInt8(ascii: "*") else { continue }
            let mayStart =
                switch previous {
                case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "["), UInt8(ascii: "{"),
                    UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "?"), UInt8(ascii: "-"):
                    true
                default: false
                }
            guard mayStart, offset + 1 < bytes.count, bytes[offset + 1] > UInt8(ascii: " ") else { continue }
            if byte == UInt8(ascii: "&") { anchor = anchor ?? offset } else { aliasCount += 1 }
        }
        guard let anchor, aliasCount > 8 else { return }
        throw PolicyDiagnostics([
            PolicyDiagnostic(
                file: source.file, at: source.location(ofByte: anchor), Self.anchorMessage,
                hint: Self.anchorHint)
        ])
    }

    // MARK: libyaml

    private func compose() throws(PolicyDiagnostics) -> Node? {
        do {
            // The encoding is named because Yams would otherwise ask the environment for it; the resolver
            // without rules because its rules are not ours, and are regular expressions.
            return try Yams.compose(yaml: source.text, .basic, .default, .utf8)
        } catch let error as YamlError {
            throw PolicyDiagnostics([problem(of: error)])
        } catch {
            throw PolicyDiagnostics([PolicyDiagnostic(file: source.file, message: "cannot be read: \(error)")]
            )
        }
    }

    private func problem(of error: YamlError) -> PolicyDiagnostic {
        switch error {
        case .scanner(let context, let text, let mark, _), .parser(let context, let text, let mark, _):
            let context = context.map { ", \($0.text) that began in line \($0.mark.line)" } ?? ""
            return PolicyDiagnostic(
                file: source.file, at: location(mark), "is no YAML here: \(text)\(context)",
                hint: "check the indentation and the quotes around this place")
        case .composer(_, let text, let mark, _):
            if text.hasPrefix("found undefined alias") {
                return PolicyDiagnostic(
                    file: source.file, at: location(mark), Self.aliasMessage, hint: Self.anchorHint)
            }
            return PolicyDiagnostic(
                file: source.file, at: location(mark), "holds a second document",
                hint: "one document per file; remove everything from here on, or quote the `---`")
        case .duplicatedKeysInMapping(let names, let context):
            let name = names.first ?? ""
            let second = secondPlace(of: name, after: context.mark)
            return PolicyDiagnostic(
                file: source.file, at: second ?? location(context.mark),
                "has the key `\(name)` twice, first in line \(context.mark.line)",
                hint: "keep one; readers of YAML disagree about which one counts")
        case .reader(let text, _, _, _):
            return PolicyDiagnostic(file: source.file, message: "is no YAML: \(text)")
        default:
            return PolicyDiagnostic(file: source.file, message: "cannot be read: \(error)")
        }
    }

    /// Where a key of a block mapping stands again. Keys of one block mapping share a column; for a flow
    /// mapping, whose keys share nothing, there is no answer and the first place must do.
    private func secondPlace(of name: String, after first: Mark) -> SourceLocation? {
        let key = Array(name.utf8)
        let quote = source.byte(line: first.line, column: first.column)
        let isQuoted = quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
        guard first.line < source.lineCount else { return nil }
        for number in (first.line + 1)...source.lineCount {
            guard let line = source.line(number) else { return nil }
            let text = line.drop { $0 == UInt8(ascii: " ") }
            guard text.count > key.count, text.startIndex - line.startIndex == first.column - 1 else {
                continue
            }
            var rest = text[...]
            if isQuoted || rest.first == UInt8(ascii: "\"") { rest = rest.dropFirst() }
            guard rest.starts(with: key) else { continue }
            let after = rest.dropFirst(key.count).drop {
                $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") || $0 == UInt8(ascii: " ")
            }
            if after.first == UInt8(ascii: ":") {
                return SourceLocation(file: source.file, line: number, column: first.column)
            }
        }
        return nil
    }

    private func location(_ mark: Mark?) -> SourceLocation? {
        mark.map { SourceLocation(file: source.file, line: $0.line, column: $0.column) }
    }

    // MARK: The tree

    private static let anchorMessage = "has an anchor, and a page says everything where it stands"
    private static let aliasMessage = "has an alias, and a page says everything where it stands"
    private static let anchorHint =
        "write the value out, or put it between double quotes if `&` or `*` is meant"

    private mutating func note(_ place: SourceLocation?, _ message: String, hint: String) {
        guard diagnostics.count < PolicyFileLimits.diagnosticCountMax else { return }
        diagnostics.append(PolicyDiagnostic(file: source.file, at: place, message, hint: hint))
    }

    /// - Parameter depth: How many lists and mappings this one is inside of.
    private mutating func tree(_ node: Node, depth: Int) -> PolicyNode {
        let place = location(node.mark)
        guard refuseProperties(node, place) else { return PolicyNode(.null, at: place) }
        switch node {
        case .scalar(let scalar):
            return PolicyNode(value(of: scalar, place), at: place)
        case .alias:
            note(place, Self.aliasMessage, hint: Self.anchorHint)
            return PolicyNode(.null, at: place)
        case .sequence(let sequence):
            guard isShallow(depth, place) else { return PolicyNode(.null, at: place) }
            var elements: [PolicyNode] = []
            elements.reserveCapacity(sequence.count)
            for element in sequence { elements.append(tree(element, depth: depth + 1)) }
            return PolicyNode(.list(elements), at: place)
        case .mapping(let mapping):
            guard isShallow(depth, place) else { return PolicyNode(.null, at: place) }
            var members: [PolicyNode.Member] = []
            members.reserveCapacity(mapping.count)
            for (key, value) in mapping {
                let keyPlace = location(key.mark)
                guard let name = name(of: key, keyPlace) else { continue }
                members.append(
                    PolicyNode.Member(
                        key: name, keyLocation: keyPlace, value: tree(value, depth: depth + 1)))
            }
            return PolicyNode(.mapping(members), at: place)
        }
    }

    private mutating func isShallow(_ depth: Int, _ place: SourceLocation?) -> Bool {
        guard depth < PolicyFileLimits.depthMax else {
            note(
                place, "is nested deeper than \(PolicyFileLimits.depthMax) levels",
                hint: "nothing in a bundle needs that")
            return false
        }
        return true
    }

    /// Anchors and tags stand before their node, and libyaml's place of a node with either is theirs. So the
    /// byte there tells, where the tag that Yams hands out cannot: it looks the same when it was implied.
    private mutating func refuseProperties(_ node: Node, _ place: SourceLocation?) -> Bool {
        guard let place else { return true }
        if case .scalar(let scalar) = node, scalar.style == .plain, scalar.string.isEmpty { return true }
        switch source.byte(line: place.line, column: place.column) {
        case UInt8(ascii: "&"):
            note(place, Self.anchorMessage, hint: Self.anchorHint)
        case UInt8(ascii: "*"):
            note(place, Self.aliasMessage, hint: Self.anchorHint)
        case UInt8(ascii: "!"):
            note(
                place, "has a tag, and the schema alone says what a value is",
                hint: "remove it, or put the value between double quotes if `!` is meant")
        default:
            return true
        }
        return false
    }

    private mutating func value(of scalar: Node.Scalar, _ place: SourceLocation?) -> PolicyNode.Value {
        guard scalar.style == .plain else { return text(scalar.string, place) }
        switch PlainScalar(scalar.string) {
        case .null: return .null
        case .boolean(let boolean): return .boolean(boolean)
        case .integer(let integer): return .integer(integer)
        case .text: return text(scalar.string, place)
        case .refused(let refusal):
            note(place, refusal.message(scalar.string), hint: refusal.hint(scalar.string))
            return .null
        }
    }

    /// An escape such as `"\0"` can name what the file itself may not hold.
    private mutating func text(_ text: String, _ place: SourceLocation?) -> PolicyNode.Value {
        for scalar in text.unicodeScalars where scalar.value < 0x20 || scalar.value >= 0x7F {
            if let fault = SourceText.fault(of: scalar) {
                note(place, "has \(fault) in a text", hint: "remove it")
                break
            }
        }
        return .text(text)
    }

    private mutating func name(of key: Node, _ place: SourceLocation?) -> String? {
        guard refuseProperties(key, place) else { return nil }
        guard case .scalar(let scalar) = key else {
            note(place, "has a list or a mapping as a key", hint: "a key is a name")
            return nil
        }
        guard scalar.style == .plain else {
            _ = text(scalar.string, place)
            return scalar.string
        }
        switch PlainScalar(scalar.string) {
        case .text:
            return scalar.string
        case .refused(let refusal):
            note(place, "the key \(refusal.message(scalar.string))", hint: refusal.hint(scalar.string))
        case .null, .boolean, .integer:
            note(
                place, "the key `\(scalar.string)` is not a text",
                hint: "put it between double quotes, \"\(scalar.string)\"")
        }
        return nil
    }
}
