package import BundleModel
import CanonicalJSON

/// The diagnostics of a configuration that is being read, and the keys that its readers asked for.
package final class ConfigurationProblems {
    package private(set) var diagnostics: [ConfigurationDiagnostic] = []
    /// Every key that was asked for, as `apps.*.apns.key_id`: `*` stands for a name that the operator chooses.
    package private(set) var keys: Set<String> = []

    package init() {}

    package func add(_ message: String, at place: String?, hint: String? = nil) {
        diagnostics.append(ConfigurationDiagnostic(message, at: place, hint: hint))
    }

    fileprivate func asked(for key: String) { keys.insert(key) }
}

/// One mapping of a configuration, read key by key. A value that does not fit is noted and a stand-in takes its place, so
/// that the next line is looked at too.
package final class MappingReader {
    /// Bytes of one text: the longest path Linux takes (`PATH_MAX`).
    package static let textByteCountMax = 4_096
    package static let listCountMax = 1_000

    package let problems: ConfigurationProblems
    /// `file:line:column` of the mapping.
    package let place: String
    private let name: String
    private let pattern: String
    private let members: [PolicyNode.Member]
    private var known: Set<String> = []
    /// Whether there is a document at all: without one the reader only notes which keys are asked for.
    private let isDescribing: Bool

    /// The whole document.
    package convenience init(_ root: PolicyNode, file: String, problems: ConfigurationProblems) {
        self.init(root, name: "", pattern: "", place: file, problems: problems)
    }

    /// Reads nothing, and notes in `problems` what is asked for.
    package convenience init(describingIn problems: ConfigurationProblems) {
        self.init(nil, name: "", pattern: "", place: "", problems: problems)
    }

    private init(
        _ node: PolicyNode?, name: String, pattern: String, place: String, problems: ConfigurationProblems
    ) {
        self.name = name
        self.pattern = pattern
        self.problems = problems
        self.place = node?.location.map { "\($0)" } ?? place
        isDescribing = node == nil
        if case .mapping(let members)? = node?.value {
            self.members = members
        } else {
            members = []
            if let node {
                let what = name.isEmpty ? "the configuration" : "`\(name)`"
                problems.add("\(what) must be a mapping, and is \(node.shapeName)", at: self.place)
            }
        }
    }

    private func full(_ key: String) -> String { name.isEmpty ? key : "\(name).\(key)" }

    private func value(_ key: String) -> PolicyNode? {
        known.insert(key)
        problems.asked(for: pattern.isEmpty ? key : "\(pattern).\(key)")
        return members.first { $0.key == key }?.value
    }

    /// The place of a key in the file; that of its mapping where the key is missing.
    package func place(of key: String) -> String {
        guard let member = members.first(where: { $0.key == key }) else { return place }
        return (member.keyLocation ?? member.value.location).map { "\($0)" } ?? place
    }

    package func has(_ key: String) -> Bool { members.contains { $0.key == key } }

    package func refuse(_ key: String, _ message: String, hint: String? = nil) {
        guard !isDescribing else { return }
        problems.add("`\(full(key))` \(message)", at: place(of: key), hint: hint)
    }

    /// A text or a number, as it is written; `nil` when the key is absent.
    package func text(_ key: String) -> String? {
        guard let node = value(key) else { return nil }
        return word(key, node)
    }

    private func word(_ key: String, _ node: PolicyNode) -> String? {
        switch node.value {
        case .text(let text) where (1...Self.textByteCountMax).contains(text.utf8.count): return text
        case .integer(let integer): return String(integer)
        case .text(let text):
            refuse(key, "must be 1 to \(Self.textByteCountMax) bytes long, and has \(text.utf8.count)")
        default: refuse(key, "must be a text or a number, and is \(node.shapeName)")
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
        guard case .list(let elements) = node.value else { return word(key, node).map { [$0] } ?? [] }
        guard elements.count <= Self.listCountMax else {
            refuse(key, "has \(elements.count) elements, \(Self.listCountMax) are accepted")
            return []
        }
        return elements.compactMap { word(key, $0) }
    }

    /// A value of any shape, as JSON.
    package func node(_ key: String) -> PolicyNode? { value(key) }

    /// A mapping inside; `nil` when the key is absent.
    package func mapping(_ key: String) -> MappingReader? {
        let node = value(key)
        guard node != nil || isDescribing else { return nil }
        return MappingReader(
            node, name: full(key), pattern: pattern.isEmpty ? key : "\(pattern).\(key)", place: place,
            problems: problems)
    }

    /// A mapping inside whose keys are names of the operator's choice.
    package func named(_ key: String, countMax: Int) -> [(name: String, reader: MappingReader)] {
        let node = value(key)
        let pattern = (pattern.isEmpty ? key : "\(pattern).\(key)") + ".*"
        guard let node else {
            guard isDescribing else { return [] }
            return [("", MappingReader(nil, name: "", pattern: pattern, place: "", problems: problems))]
        }
        guard case .mapping(let members) = node.value, members.count <= countMax else {
            refuse(key, "must be a mapping of at most \(countMax) names")
            return []
        }
        return members.map { member in
            (
                member.key,
                MappingReader(
                    member.value, name: "\(full(key)).\(member.key)", pattern: pattern, place: place,
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
