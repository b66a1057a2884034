package import BundleModel
import CanonicalJSON

/// The diagnostics of a configuration that is being read.
package final class ConfigurationProblems {
    package private(set) var diagnostics: [ConfigurationDiagnostic] = []

    package init() {}

    package func add(_ message: String, at place: String?, hint: String? = nil) {
        diagnostics.append(ConfigurationDiagnostic(message, at: place, hint: hint))
    }
}

/// One mapping of a configuration, read key by key. A value that does not fit is noted and a stand-in takes its place, so
/// that the next line is looked at too.
package final class MappingReader {
    /// Bytes of one text: the longest path Linux takes (`PATH_MAX`).
    package static let textByteCountMax = 4_096
    package static let listCountMax = 1_000

    /// A text as written, and where.
    package struct Word: Hashable, Sendable {
        package var text: String
        package var place: String

        package init(text: String, place: String) {
            self.text = text
            self.place = place
        }
    }

    package let problems: ConfigurationProblems
    /// `file:line:column` of the mapping, or of its name where the operator chose that.
    package let place: String
    private let name: String
    private let members: [PolicyNode.Member]
    private var known: Set<String> = []

    /// The whole document.
    package convenience init(_ root: PolicyNode, file: String, problems: ConfigurationProblems) {
        self.init(root, name: "", place: root.location.map { "\($0)" } ?? file, problems: problems)
    }

    private init(_ node: PolicyNode, name: String, place: String, problems: ConfigurationProblems) {
        self.name = name
        self.problems = problems
        self.place = place
        if case .mapping(let members) = node.value {
            self.members = members
        } else {
            members = []
            let what = name.isEmpty ? "the configuration" : "`\(name)`"
            problems.add("\(what) must be a mapping, and is \(node.shapeName)", at: place)
        }
    }

    private func full(_ key: String) -> String { name.isEmpty ? key : "\(name).\(key)" }

    private func value(_ key: String) -> PolicyNode? {
        known.insert(key)
        return members.first { $0.key == key }?.value
    }

    /// The place of a key in the file; that of its mapping where the key is missing.
    package func place(of key: String) -> String {
        members.first { $0.key == key }.flatMap(place(of:)) ?? place
    }

    private func place(of member: PolicyNode.Member) -> String? {
        (member.keyLocation ?? member.value.location).map { "\($0)" }
    }

    package func has(_ key: String) -> Bool { members.contains { $0.key == key } }

    package func refuse(
        _ key: String, _ message: String, at place: String? = nil, hint: String? = nil
    ) {
        problems.add("`\(full(key))` \(message)", at: place ?? self.place(of: key), hint: hint)
    }

    /// A text or a number, as it is written; `nil` when the key is absent.
    package func text(_ key: String) -> String? { word(key)?.text }

    package func word(_ key: String) -> Word? {
        value(key).flatMap { word(key, $0, at: place(of: key)) }
    }

    private func word(_ key: String, _ node: PolicyNode, at place: String) -> Word? {
        switch node.value {
        case .text(let text) where (1...Self.textByteCountMax).contains(text.utf8.count):
            return Word(text: text, place: place)
        case .integer(let integer): return Word(text: String(integer), place: place)
        case .text(let text):
            refuse(
                key, "must be 1 to \(Self.textByteCountMax) bytes long, and has \(text.utf8.count)", at: place
            )
        default: refuse(key, "must be a text or a number, and is \(node.shapeName)", at: place)
        }
        return nil
    }

    package func required(_ key: String, hint: String) -> String {
        if let text = text(key) { return text }
        if !has(key) { refuse(key, "is not set", hint: hint) }
        return ""
    }

    /// An absolute path; `nil` when the key is absent or its value is none.
    package func path(_ key: String) -> String? {
        guard let path = text(key) else { return nil }
        if path.hasPrefix("/"), !path.utf8.contains(0) { return path }
        refuse(key, "is `\(path)`, which is no absolute path", hint: "write the path from the root")
        return nil
    }

    package func number(_ key: String, _ range: ClosedRange<Int>, standard: Int) -> Int {
        guard let node = value(key) else { return standard }
        guard case .integer(let integer) = node.value, let number = Int(exactly: integer) else {
            refuse(
                key, "must be a whole number, and is \(node.shapeName)",
                hint: "write plain digits without quotes")
            return standard
        }
        guard range.contains(number) else {
            refuse(key, "is \(number), and must be \(range.lowerBound) to \(range.upperBound)")
            return standard
        }
        return number
    }

    /// A mode in octal digits between quotes.
    package func mode(_ key: String, standard: UInt32) -> UInt32 {
        guard let text = text(key) else { return standard }
        if text.utf8.count == 4, let mode = UInt32(text, radix: 8), mode & 0o7000 == 0 { return mode }
        refuse(
            key, "is `\(text)`, which is no mode",
            hint: "write four octal digits between quotes, such as \"0660\"")
        return standard
    }

    package func choice<Value: RawRepresentable<String> & CaseIterable>(
        _ key: String, _: Value.Type = Value.self, standard: Value? = nil
    ) -> Value {
        let names = Value.allCases.map(\.rawValue)
        let stand = standard ?? Value.allCases.first!
        guard let text = text(key) else {
            if standard == nil, !has(key) {
                refuse(key, "is not set", hint: "one of \(names.joined(separator: ", "))")
            }
            return stand
        }
        if let value = Value(rawValue: text) { return value }
        refuse(
            key, "is `\(text)`",
            hint: NearestName.to(text, among: names).map { "did you mean `\($0)`?" }
                ?? "one of \(names.joined(separator: ", "))")
        return stand
    }

    /// Texts, or one text in place of a list.
    package func list(_ key: String) -> [String] {
        guard let node = value(key) else { return [] }
        guard case .list = node.value else { return text(key).map { [$0] } ?? [] }
        return words(key).map(\.text)
    }

    /// A list of texts.
    package func words(_ key: String) -> [Word] {
        guard let node = value(key) else { return [] }
        return elements(of: node, key, countMax: Self.listCountMax)
            .compactMap { word(key, $0, at: $0.location.map { "\($0)" } ?? place(of: key)) }
    }

    private func elements(of node: PolicyNode, _ key: String, countMax: Int) -> [PolicyNode] {
        guard case .list(let elements) = node.value else {
            refuse(key, "must be a list, and is \(node.shapeName)")
            return []
        }
        guard elements.count <= countMax else {
            refuse(key, "has \(elements.count) elements, \(countMax) are accepted")
            return []
        }
        return elements
    }

    /// A list of mappings.
    package func mappings(_ key: String, countMax: Int) -> [MappingReader] {
        guard let node = value(key) else { return [] }
        return elements(of: node, key, countMax: countMax).compactMap { element in
            guard case .mapping = element.value else {
                refuse(
                    key, "must be a list of mappings, and has \(element.shapeName) in it",
                    at: element.location.map { "\($0)" })
                return nil
            }
            return reader(element, full(key), at: place(of: key))
        }
    }

    private func reader(_ node: PolicyNode, _ name: String, at place: String) -> MappingReader {
        MappingReader(
            node, name: name, place: node.location.map { "\($0)" } ?? place, problems: problems)
    }

    /// A value of any shape, as JSON.
    package func node(_ key: String) -> PolicyNode? { value(key) }

    /// A mapping inside; `nil` when the key is absent.
    package func mapping(_ key: String) -> MappingReader? {
        value(key).map { reader($0, full(key), at: place) }
    }

    /// A mapping inside whose keys are names of the operator's choice.
    package func named(_ key: String, countMax: Int) -> [(name: String, reader: MappingReader)] {
        guard let node = value(key) else { return [] }
        guard case .mapping(let members) = node.value, members.count <= countMax else {
            refuse(key, "must be a mapping of at most \(countMax) names")
            return []
        }
        return members.map { member in
            (
                member.key,
                MappingReader(
                    member.value, name: "\(full(key)).\(member.key)", place: place(of: member) ?? place,
                    problems: problems)
            )
        }
    }

    /// Refuses every key that was not asked for.
    package func end() {
        for member in members where !known.contains(member.key) {
            problems.add(
                "`\(full(member.key))` is not a setting", at: place(of: member.key),
                hint: NearestName.to(member.key, among: known).map { "did you mean `\($0)`?" }
                    ?? "known here: \(known.sorted().map { "`\($0)`" }.joined(separator: ", "))")
        }
    }
}
