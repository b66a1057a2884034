import GateVocabulary

/// Where every problem of a bundle ends up, so that an author sees all of them at once.
final class ProblemList {
    private(set) var problems: [PolicyProblem] = []
    /// A page of an older build may have rules that are none any more.
    let takesUnknownNames: Bool

    init(takesUnknownNames: Bool = false) { self.takesUnknownNames = takesUnknownNames }

    func add(_ problem: PolicyProblem) { problems.append(problem) }
}

/// One value of a document, on its way to becoming part of the model.
///
/// Reading never stops: a value that does not fit is noted and a stand-in takes its place, so that the
/// next line is looked at too. The stand-ins are never seen by anyone, because a bundle with a problem
/// is not made.
struct NodeReader {
    let node: PolicyNode
    let file: String
    /// From the document's root to here, for messages.
    let path: [String]
    let list: ProblemList

    /// Bytes of a text in a document unless its reader says otherwise: a long paragraph.
    static let textByteCountMax = 4096

    init(_ node: PolicyNode, file: String, path: [String] = [], list: ProblemList) {
        self.node = node
        self.file = file
        self.path = path
        self.list = list
    }

    func child(_ node: PolicyNode, _ step: String) -> NodeReader {
        NodeReader(node, file: file, path: path + [step], list: list)
    }

    /// How messages name this place, e.g. "`channels.push.body`".
    var name: String { path.isEmpty ? "the document" : "`\(path.joined(separator: "."))`" }

    func problem(_ message: String, hint: String? = nil) {
        list.add(PolicyProblem(file: file, at: node.location, "\(name) \(message)", hint: hint))
    }

    func text(byteCountMax: Int = textByteCountMax) -> String {
        guard case .text(let text) = node.value else {
            problem("must be a text, and is \(node.shapeName)", hint: hintForPlainScalar)
            return ""
        }
        guard (1...byteCountMax).contains(text.utf8.count) else {
            problem("must be 1 to \(byteCountMax) bytes long, and is \(text.utf8.count)")
            return ""
        }
        if text.allSatisfy(\.isWhitespace) {
            problem("is blank", hint: "say something, or remove the line")
        }
        return text
    }

    private var hintForPlainScalar: String? {
        switch node.value {
        case .boolean, .integer, .null: "put it between double quotes if a text is meant"
        default: nil
        }
    }

    func boolean() -> Bool {
        guard case .boolean(let boolean) = node.value else {
            problem("must be `true` or `false`, and is \(node.shapeName)")
            return false
        }
        return boolean
    }

    /// - Parameter hint: What a number outside of the range was probably meant to do, and how to do it.
    func integer(_ range: ClosedRange<Int>, hint: String? = nil) -> Int {
        guard case .integer(let integer) = node.value else {
            problem(
                "must be a whole number, and is \(node.shapeName)", hint: "write plain digits without quotes")
            return range.lowerBound
        }
        guard let small = Int(exactly: integer), range.contains(small) else {
            problem("must be \(range.lowerBound) to \(range.upperBound), and is \(integer)", hint: hint)
            return range.lowerBound
        }
        return small
    }

    func name<Value: RawRepresentable<String> & CaseIterable>(_: Value.Type = Value.self) -> Value {
        let stand = Value.allCases.first!
        guard case .text(let text) = node.value else {
            problem("must be one of \(Self.names(Value.self)), and is \(node.shapeName)")
            return stand
        }
        guard let value = Value.allCases.first(where: { $0.rawValue == text }) else {
            let near = Value.allCases.map(\.rawValue).filter { MemberReader.isNear($0, text) }.min()
            problem(
                "must be one of \(Self.names(Value.self)), and is `\(text)`",
                hint: near.map { "did you mean `\($0)`?" } ?? "the list is closed; write one of them")
            return stand
        }
        return value
    }

    static func names<Value: RawRepresentable<String> & CaseIterable>(_: Value.Type) -> String {
        Value.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
    }

    func date() -> CalendarDate {
        guard case .text(let text) = node.value else {
            problem("must be a date such as \"2026-11-02\", and is \(node.shapeName)")
            return CalendarDate.first
        }
        guard let date = CalendarDate(text) else {
            problem("must be a date such as \"2026-11-02\", and is `\(text)`")
            return CalendarDate.first
        }
        return date
    }

    /// A time of day such as "08:00", in minutes after midnight.
    func timeOfDay() -> Int {
        guard case .text(let text) = node.value, let minutes = CalendarDate.minutes(ofDay: text) else {
            problem(
                "must be a time such as \"08:00\", and is \(node.shapeName)",
                hint: "write hours and minutes with two digits each, between double quotes")
            return 0
        }
        return minutes
    }

    func elements(countMax: Int = 10_000) -> [NodeReader] {
        guard case .list(let elements) = node.value else {
            problem("must be a list, and is \(node.shapeName)")
            return []
        }
        guard elements.count <= countMax else {
            problem("must have at most \(countMax) elements, and has \(elements.count)")
            return []
        }
        return elements.enumerated().map { child($0.element, String($0.offset)) }
    }

    /// Why a rule is so: a text of three words or more, for `x` is nobody's reason.
    func reason() -> String {
        let text = text()
        if !text.isEmpty, text.split(whereSeparator: \.isWhitespace).count < 3 {
            problem("is `\(text)`, which is no reason", hint: "say why in a sentence, or cite the place")
        }
        return text
    }

    /// A list of texts, or one text standing for a list of one.
    func texts() -> [String] {
        if case .text = node.value { return [text()] }
        return elements().map { $0.text() }
    }

    func members() -> MemberReader { MemberReader(self) }
}

/// Takes the members of a mapping by name, and at the end complains of those nobody took.
final class MemberReader {
    let reader: NodeReader
    private let members: [PolicyNode.Member]
    private var known: Set<String> = []
    private var isMapping = true

    init(_ reader: NodeReader) {
        self.reader = reader
        if case .mapping(let members) = reader.node.value {
            self.members = members
        } else {
            members = []
            isMapping = false
            reader.problem("must be a mapping, and is \(reader.node.shapeName)")
        }
    }

    func optional(_ key: String) -> NodeReader? {
        known.insert(key)
        guard let member = members.first(where: { $0.key == key }) else { return nil }
        var node = member.value
        if node.location == nil { node.location = member.keyLocation }
        return reader.child(node, key)
    }

    func required(_ key: String, hint: String? = nil) -> NodeReader? {
        if let found = optional(key) { return found }
        if isMapping { reader.problem("lacks `\(key)`", hint: hint) }
        return nil
    }

    /// Every member that has not been taken by name, as key and value.
    func others(countMax: Int = 20_000) -> [(key: String, value: NodeReader)] {
        let rest = members.filter { !known.contains($0.key) }
        known.formUnion(rest.map(\.key))
        guard rest.count <= countMax else {
            reader.problem("must have at most \(countMax) members, and has \(rest.count)")
            return []
        }
        return rest.map { member in
            var node = member.value
            if node.location == nil { node.location = member.keyLocation }
            return (member.key, reader.child(node, member.key))
        }
    }

    /// Call last. A name nobody knows is a problem: a misspelled rule would otherwise be no rule.
    func refuseOthers() {
        if reader.list.takesUnknownNames { return }
        for member in members where !known.contains(member.key) {
            let near = known.filter { Self.isNear($0, member.key) }.min()
            reader.list.add(
                PolicyProblem(
                    file: reader.file, at: member.keyLocation ?? member.value.location,
                    "\(reader.name) has `\(member.key)`, and nothing of this name is known here",
                    hint: near.map { "did you mean `\($0)`?" }
                        ?? "known here: \(known.sorted().map { "`\($0)`" }.joined(separator: ", "))"))
        }
    }

    /// Whether two names differ by one letter, or by `-` for `_`.
    static func isNear(_ left: String, _ right: String) -> Bool {
        let left = Array(left.utf8)
        let right = Array(right.utf8)
        guard abs(left.count - right.count) <= 1 else { return false }
        var shared = 0
        while shared < min(left.count, right.count), left[shared] == right[shared] { shared += 1 }
        var tail = 0
        while tail < min(left.count, right.count) - shared,
            left[left.count - 1 - tail] == right[right.count - 1 - tail]
        {
            tail += 1
        }
        return max(left.count, right.count) - shared - tail <= 2
    }

    // MARK: The common shapes

    func text(_ key: String, byteCountMax: Int = NodeReader.textByteCountMax) -> String {
        required(key)?.text(byteCountMax: byteCountMax) ?? ""
    }

    func optionalText(_ key: String, byteCountMax: Int = NodeReader.textByteCountMax) -> String? {
        optional(key)?.text(byteCountMax: byteCountMax)
    }

    func texts(_ key: String) -> [String] { required(key)?.texts() ?? [] }

    func boolean(_ key: String) -> Bool { required(key)?.boolean() ?? false }

    func boolean(_ key: String, default value: Bool) -> Bool { optional(key)?.boolean() ?? value }

    func integer(_ key: String, _ range: ClosedRange<Int>, hint: String? = nil) -> Int {
        required(key)?.integer(range, hint: hint) ?? range.lowerBound
    }

    func name<Value: RawRepresentable<String> & CaseIterable>(_ key: String) -> Value {
        required(key, hint: "one of \(NodeReader.names(Value.self))")?.name() ?? Value.allCases.first!
    }

    func optionalName<Value: RawRepresentable<String> & CaseIterable>(_ key: String) -> Value? {
        optional(key)?.name()
    }

    func names<Value: RawRepresentable<String> & CaseIterable>(_ key: String) -> [Value] {
        required(key)?.elements().map { $0.name() } ?? []
    }

    func date(_ key: String) -> CalendarDate { required(key)?.date() ?? CalendarDate.first }
}
