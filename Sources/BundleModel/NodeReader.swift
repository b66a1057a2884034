import CanonicalJSON
import GateVocabulary

/// Where every problem of a bundle ends up, so that an author sees all of them at once.
final class DiagnosticList {
    private(set) var diagnostics: [PolicyDiagnostic] = []
    /// A page of an older build may have rules that are none any more.
    let takesUnknownNames: Bool

    init(takesUnknownNames: Bool = false) { self.takesUnknownNames = takesUnknownNames }

    func add(_ diagnostic: PolicyDiagnostic) { diagnostics.append(diagnostic) }
}

/// One value of a document, on its way to becoming part of the model.
///
/// Reading never stops: a value that does not fit is noted and a stand-in takes its place, so that the
/// next line is looked at too. The stand-ins are never seen by anyone, because a bundle with a problem
/// is not made.
///
/// The same calls declare the page. A reader with a ``recorder`` reads no document: it notes what each call asks of the
/// value, and the JSON Schema of the page is printed from the notes (`PageSchemaTests`). A reader of a page therefore asks for
/// every member whatever the others are: `elements`, `others`, `oneOf` and ``nullable(_:)`` call it once for each shape a
/// value may have.
struct NodeReader {
    let node: PolicyNode
    let file: String
    /// From the document's root to here, for messages.
    let path: [String]
    let list: DiagnosticList
    /// Takes down what is asked of the value; `nil` where a document is read.
    let recorder: ShapeRecorder?

    /// Bytes of a text in a document unless its reader says otherwise: a long paragraph.
    static let textByteCountMax = 4096

    init(_ node: PolicyNode, file: String, path: [String] = [], list: DiagnosticList) {
        self.node = node
        self.file = file
        self.path = path
        self.list = list
        recorder = nil
    }

    /// Reads nothing, and notes in `recorder` what is asked.
    init(describingIn recorder: ShapeRecorder) {
        node = PolicyNode(.null)
        file = ""
        path = []
        // What is said of a stand-in is no problem of a page.
        list = DiagnosticList()
        self.recorder = recorder
    }

    func child(_ node: PolicyNode, _ step: String) -> NodeReader {
        NodeReader(node, file: file, path: path + [step], list: list)
    }

    /// How messages name this place, e.g. "`channels.push.body`".
    var name: String { PolicyDiagnostic.name(of: path) }

    func problem(_ message: String, hint: String? = nil) {
        list.add(PolicyDiagnostic(file: file, at: node.location, "\(name) \(message)", hint: hint))
    }

    func text(byteCountMax: Int = textByteCountMax) -> String {
        if let recorder {
            recorder.note(.text(.ofPage(byteCountMax: byteCountMax)))
            return ""
        }
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
        recorder?.note(.boolean)
        guard case .boolean(let boolean) = node.value else {
            problem("must be `true` or `false`, and is \(node.shapeName)")
            return false
        }
        return boolean
    }

    /// - Parameter hint: What a number outside of the range was probably meant to do, and how to do it.
    func integer(_ range: ClosedRange<Int>, hint: String? = nil) -> Int {
        recorder?.note(.integer(Int64(range.lowerBound)...Int64(range.upperBound)))
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

    /// - Parameter shown: For the schema, where the page's own check takes fewer.
    func name<Value: RawRepresentable<String> & CaseIterable>(
        _: Value.Type = Value.self, shown: [Value]? = nil
    ) -> Value {
        let stand = Value.allCases.first!
        recorder?.note(.choice((shown ?? Array(Value.allCases)).map(\.rawValue)))
        guard case .text(let text) = node.value else {
            problem("must be one of \(Self.names(Value.self)), and is \(node.shapeName)")
            return stand
        }
        guard let value = Value.allCases.first(where: { $0.rawValue == text }) else {
            let near = NearestName.to(text, among: Value.allCases.lazy.map(\.rawValue))
            problem(
                "must be one of \(Self.names(Value.self)), and is `\(text)`",
                hint: near.map { "did you mean `\($0)`?" } ?? "the list is closed; write one of them")
            return stand
        }
        return value
    }

    static func names<Value: RawRepresentable<String> & CaseIterable>(_: Value.Type) -> String {
        Value.allCases.quoted(\.rawValue)
    }

    func date() -> CalendarDate {
        recorder?.note(.dateOfPage)
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
        recorder?.note(.timeOfPage)
        guard case .text(let text) = node.value, let minutes = CalendarDate.minutes(ofDay: text) else {
            problem(
                "must be a time such as \"08:00\", and is \(node.shapeName)",
                hint: "write hours and minutes with two digits each, between double quotes")
            return 0
        }
        return minutes
    }

    /// - Parameters:
    ///   - countMin: For the schema; the page's own check says what is wrong with a list that is shorter.
    ///   - shownCountMax: For the schema, where the page's own check allows fewer than `countMax`.
    func elements(
        countMin: Int = 0, countMax: Int = 10_000, shownCountMax: Int? = nil
    ) -> [NodeReader] {
        if let recorder {
            let element = recorder.list(countMin: countMin, countMax: shownCountMax ?? countMax)
            return [NodeReader(describingIn: element)]
        }
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

    /// Why a rule is so: a text of three words or more, for `x` is no reason.
    func reason() -> String {
        let text = text()
        if !text.isEmpty, text.split(whereSeparator: \.isWhitespace).count < 3 {
            problem("is `\(text)`, which is no reason", hint: "say why in a sentence, or cite the place")
        }
        return text
    }

    /// A list of texts, or one text standing for a list of one.
    ///
    /// - Parameter rule: What each text is, for the schema, where a check of the page looks at it.
    func texts(countMin: Int = 0, rule: TextRule? = nil) -> [String] {
        oneOf(
            text: { [$0.text(rule: rule)] },
            else: { $0.elements(countMin: countMin).map { $0.text(rule: rule) } })
    }

    private func text(rule: TextRule?) -> String { (rule.map { shown(as: .text($0)) } ?? self).text() }

    /// A text, or a value of another shape.
    func oneOf<Value>(text: (NodeReader) -> Value, else other: (NodeReader) -> Value) -> Value {
        either(text, if: { if case .text = node.value { true } else { false } }, else: other)
    }

    /// A list, or a value of another shape.
    func oneOf<Value>(list: (NodeReader) -> Value, else other: (NodeReader) -> Value) -> Value {
        either(list, if: { if case .list = node.value { true } else { false } }, else: other)
    }

    /// A mapping, or a value of another shape.
    func oneOf<Value>(mapping: (NodeReader) -> Value, else other: (NodeReader) -> Value) -> Value {
        either(mapping, if: { if case .mapping = node.value { true } else { false } }, else: other)
    }

    private func either<Value>(
        _ first: (NodeReader) -> Value, if isFirst: () -> Bool, else second: (NodeReader) -> Value
    ) -> Value {
        if let recorder {
            _ = first(NodeReader(describingIn: recorder.choice()))
            return second(NodeReader(describingIn: recorder.choice()))
        }
        return isFirst() ? first(self) : second(self)
    }

    /// A mapping of one member, whose name says what it is, or a value of another shape.
    ///
    /// - Parameters:
    ///   - kinds: The first that is there is read, and no other member may stand beside it.
    ///   - other: Also for a mapping with none of them.
    func oneOf<Value>(
        _ kinds: [(key: String, means: String, read: (NodeReader) -> Value)],
        else other: (NodeReader) -> Value
    ) -> Value {
        if let recorder {
            for kind in kinds {
                let member = NodeReader(describingIn: recorder.choice()).members().required(
                    kind.key, kind.means)
                if let member { _ = kind.read(member) }
            }
            return other(NodeReader(describingIn: recorder.choice()))
        }
        guard case .mapping = node.value else { return other(self) }
        let members = members()
        for kind in kinds {
            guard let member = members.optional(kind.key) else { continue }
            let value = kind.read(member)
            members.refuseOthers()
            return value
        }
        return other(self)
    }

    /// `nil` for a `null`.
    func nullable<Value>(_ read: (NodeReader) -> Value) -> Value? {
        if let recorder { return read(NodeReader(describingIn: recorder.nullable())) }
        if case .null = node.value { return nil }
        return read(self)
    }

    /// The same value; the schema shows `shape`, where what is read of it is less than what the page's own check asks.
    func shown(as shape: @autoclosure () -> Shape) -> NodeReader {
        guard let recorder else { return self }
        recorder.note(shape())
        return NodeReader(describingIn: ShapeRecorder())
    }

    /// The same value; the schema shows its shape once, under a name.
    func named(_ name: String, _ means: String? = nil) -> NodeReader {
        recorder.map { NodeReader(describingIn: $0.named(name, means)) } ?? self
    }

    /// - Parameter means: What the mapping is, for the schema; the meaning of the member that has it is said instead.
    func members(_ means: String = "") -> MemberReader { MemberReader(self, means) }
}

/// Takes the members of a mapping by name, and at the end complains of those that were not taken.
final class MemberReader {
    let reader: NodeReader
    private let members: [PolicyNode.Member]
    private var known: Set<String> = []
    private var isMapping = true

    init(_ reader: NodeReader, _ means: String) {
        self.reader = reader
        reader.recorder?.object(means)
        if reader.recorder != nil {
            members = []
        } else if case .mapping(let members) = reader.node.value {
            self.members = members
        } else {
            members = []
            isMapping = false
            reader.problem("must be a mapping, and is \(reader.node.shapeName)")
        }
    }

    /// - Parameters:
    ///   - defaultValue: What the absent member means, where that is a value.
    ///   - isDemanded: For the schema; the page's own check says what is wrong where the member is absent.
    ///   - means: For the schema, one sentence or two.
    func optional(
        _ key: String, default defaultValue: JSONValue? = nil, isDemanded: Bool = false, _ means: String = ""
    ) -> NodeReader? {
        known.insert(key)
        if let recorder = reader.recorder {
            return NodeReader(
                describingIn: recorder.field(key, isRequired: isDemanded, default: defaultValue, means))
        }
        return member(key)
    }

    private func member(_ key: String) -> NodeReader? {
        known.insert(key)
        guard let member = members.first(where: { $0.key == key }) else { return nil }
        var node = member.value
        if node.location == nil { node.location = member.keyLocation }
        return reader.child(node, key)
    }

    func required(_ key: String, hint: String? = nil, _ means: String = "") -> NodeReader? {
        if let recorder = reader.recorder {
            return NodeReader(describingIn: recorder.field(key, isRequired: true, default: nil, means))
        }
        if let found = member(key) { return found }
        if isMapping { reader.problem("lacks `\(key)`", hint: hint) }
        return nil
    }

    /// A member that the page may not have and that an author may believe in: the caller complains of it, and the schema
    /// has none of the name.
    func refused(_ key: String) -> NodeReader? { reader.recorder == nil ? member(key) : nil }

    /// Every member that has not been taken by name, as key and value.
    ///
    /// - Parameters:
    ///   - keys: What the names are, for the schema; the caller checks them.
    ///   - shownCount: For the schema, where the caller checks how many there are.
    func others(
        _ keys: PageKeys = .any, countMax: Int = 20_000, shownCount: ClosedRange<Int>? = nil
    ) -> [(key: String, value: NodeReader)] {
        if let recorder = reader.recorder {
            let values = recorder.others(keys.rule, count: shownCount ?? 0...countMax)
            return [(keys.example, NodeReader(describingIn: values))]
        }
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

    /// Call last. An unknown name is a problem: a misspelled rule would otherwise be no rule.
    func refuseOthers() {
        if reader.list.takesUnknownNames { return }
        for member in members where !known.contains(member.key) {
            reader.list.add(
                PolicyDiagnostic(
                    file: reader.file, at: member.keyLocation ?? member.value.location,
                    "\(reader.name) has `\(member.key)`, and nothing of this name is known here",
                    hint: NearestName.to(member.key, among: known).map { "did you mean `\($0)`?" }
                        ?? "known here: \(known.sorted().quoted)"))
        }
    }

    // MARK: The common shapes

    func text(_ key: String, byteCountMax: Int = NodeReader.textByteCountMax, _ means: String = "") -> String
    {
        required(key, means)?.text(byteCountMax: byteCountMax) ?? ""
    }

    func optionalText(
        _ key: String, byteCountMax: Int = NodeReader.textByteCountMax, _ means: String = ""
    ) -> String? {
        optional(key, means)?.text(byteCountMax: byteCountMax)
    }

    func texts(
        _ key: String, countMin: Int = 0, rule: TextRule? = nil, _ means: String = ""
    ) -> [String] {
        required(key, means)?.texts(countMin: countMin, rule: rule) ?? []
    }

    func boolean(_ key: String, _ means: String = "") -> Bool { required(key, means)?.boolean() ?? false }

    func boolean(_ key: String, default value: Bool, _ means: String = "") -> Bool {
        optional(key, default: .boolean(value), means)?.boolean() ?? value
    }

    func integer(
        _ key: String, _ range: ClosedRange<Int>, hint: String? = nil, _ means: String = ""
    ) -> Int {
        required(key, means)?.integer(range, hint: hint) ?? range.lowerBound
    }

    func name<Value: RawRepresentable<String> & CaseIterable>(
        _ key: String, shown: [Value]? = nil, _ means: String = ""
    ) -> Value {
        required(key, hint: "one of \(NodeReader.names(Value.self))", means)?.name(shown: shown)
            ?? Value.allCases.first!
    }

    func optionalName<Value: RawRepresentable<String> & CaseIterable>(
        _ key: String, shown: [Value]? = nil, _ means: String = ""
    ) -> Value? {
        optional(key, means)?.name(shown: shown)
    }

    func names<Value: RawRepresentable<String> & CaseIterable>(
        _ key: String, countMin: Int = 0, shown: [Value]? = nil, _ means: String = ""
    ) -> [Value] {
        required(key, means)?.elements(countMin: countMin).map { $0.name(shown: shown) } ?? []
    }

    func date(_ key: String, _ means: String = "") -> CalendarDate {
        required(key, means)?.date() ?? CalendarDate.first
    }
}
