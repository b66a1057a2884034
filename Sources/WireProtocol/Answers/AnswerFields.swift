package import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// An object in an answer, whose fields are declared once, in ``show(_:to:)``: its bytes and its schema follow from there.
package protocol WireAnswer: AnswerValue, Sendable {
    /// In the OpenAPI document.
    static var name: String { get }
    /// One sentence for the document's reader.
    static var means: String { get }

    /// Shows all fields in canonical order, which is that of their names.
    ///
    /// - Parameter answer: Handed on with every field: a visitor that kept it would copy all its texts for every send.
    static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields)
}

extension ShownValue where Self: WireAnswer {
    package static var shownShape: Shape { shape }
    package func write(shown json: inout CanonicalWriter) { write(answer: &json) }
}

/// Is shown the fields of an answer, one by one.
package protocol AnswerFields<Object>: ~Copyable {
    associatedtype Object
    /// The object, or nothing where only its shape is asked for.
    associatedtype Source

    /// - Parameters:
    ///   - shape: Only made for the document.
    ///   - means: One or two sentences for the document's reader.
    mutating func required<Value: AnswerValue>(
        _ name: StaticString, as shape: @autoclosure () -> Shape, _ answer: borrowing Source,
        _ value: (Object) -> Value, _ means: @autoclosure () -> String)

    /// A field that is absent where there is no value.
    mutating func optional<Value: AnswerValue>(
        _ name: StaticString, as shape: @autoclosure () -> Shape, _ answer: borrowing Source,
        _ value: (Object) -> Value?, _ means: @autoclosure () -> String)
}

extension AnswerFields where Self: ~Copyable {
    mutating func required<Value: AnswerValue>(
        _ name: StaticString, _ answer: borrowing Source, _ value: (Object) -> Value,
        _ means: @autoclosure () -> String
    ) { required(name, as: Value.answerShape, answer, value, means()) }

    mutating func optional<Value: AnswerValue>(
        _ name: StaticString, _ answer: borrowing Source, _ value: (Object) -> Value?,
        _ means: @autoclosure () -> String
    ) { optional(name, as: Value.answerShape, answer, value, means()) }

    /// A field that is there only where it is true.
    mutating func flag(
        _ name: StaticString, _ answer: borrowing Source, _ value: (Object) -> Bool,
        _ means: @autoclosure () -> String
    ) { optional(name, as: .boolean, answer, { value($0) ? true : nil }, means()) }
}

extension WireAnswer {
    package static var shape: Shape {
        .named(name, .object(AnswerShapes<Self>.object(means) { show((), to: &$0) }))
    }
    package static var answerShape: Shape { shape }

    package var json: JSONObject { JSONObject(written: write(answer:)) }

    package var bytes: [UInt8] {
        var json = CanonicalWriter()
        write(answer: &json)
        return json.finish()
    }

    package func write(answer json: inout CanonicalWriter) {
        var fields = AnswerWriter<Self>(json)
        Self.show(self, to: &fields)
        json = fields.finish()
    }
}

/// The members of an object, as its schema lists them.
struct AnswerShapes<Object>: AnswerFields {
    private var members: [ObjectShape.Member] = []

    static func object(_ means: String, _ show: (inout Self) -> Void) -> ObjectShape {
        var shapes = Self()
        show(&shapes)
        return ObjectShape(means, shapes.members)
    }

    mutating func required<Value: AnswerValue>(
        _ name: StaticString, as shape: @autoclosure () -> Shape, _: borrowing Void, _: (Object) -> Value,
        _ means: @autoclosure () -> String
    ) { add(.required("\(name)", shape(), means())) }

    mutating func optional<Value: AnswerValue>(
        _ name: StaticString, as shape: @autoclosure () -> Shape, _: borrowing Void, _: (Object) -> Value?,
        _ means: @autoclosure () -> String
    ) { add(.optional("\(name)", shape(), means())) }

    private mutating func add(_ member: ObjectShape.Member) {
        // The writer gives the fields in the order they are shown.
        if let last = members.last {
            precondition(
                CodeUnits.precedes(last.name, member.name),
                "the field `\(member.name)` of an answer is shown after `\(last.name)`")
        }
        members.append(member)
    }
}

/// Writes the fields of one object.
struct AnswerWriter<Object>: AnswerFields, ~Copyable {
    private var json: CanonicalWriter

    /// Begins the object.
    init(_ json: consuming CanonicalWriter) {
        self.json = json
        self.json.byte(UInt8(ascii: "{"))
    }

    mutating func required<Value: AnswerValue>(
        _ name: StaticString, as _: @autoclosure () -> Shape, _ answer: borrowing Object,
        _ value: (Object) -> Value, _: @autoclosure () -> String
    ) {
        json.key(name)
        value(answer).write(answer: &json)
    }

    mutating func optional<Value: AnswerValue>(
        _ name: StaticString, as _: @autoclosure () -> Shape, _ answer: borrowing Object,
        _ value: (Object) -> Value?, _: @autoclosure () -> String
    ) {
        guard let value = value(answer) else { return }
        json.key(name)
        value.write(answer: &json)
    }

    /// Ends the object.
    consuming func finish() -> CanonicalWriter {
        json.byte(UInt8(ascii: "}"))
        return json
    }
}

// MARK: Values

/// What a member of an answer is made of.
package protocol AnswerValue {
    static var answerShape: Shape { get }

    func write(answer json: inout CanonicalWriter)
}

extension String: AnswerValue {
    package static var answerShape: Shape { .anyText }
    package func write(answer json: inout CanonicalWriter) { json.text(self) }
}

extension Bool: AnswerValue {
    package static var answerShape: Shape { .boolean }
    package func write(answer json: inout CanonicalWriter) { json.boolean(self) }
}

/// How many of something.
extension Int64: AnswerValue {
    package static var answerShape: Shape { .count }
    package func write(answer json: inout CanonicalWriter) { json.integer(self) }
}

extension Int: AnswerValue {
    package static var answerShape: Shape { .count }
    package func write(answer json: inout CanonicalWriter) { json.integer(Int64(self)) }
}

/// RFC 3339.
extension Instant: AnswerValue {
    package static var answerShape: Shape { .anyText }
    package func write(answer json: inout CanonicalWriter) { json.text(rfc3339) }
}

extension RandomIdentifier: AnswerValue {
    package static var answerShape: Shape { bodyShape }

    package func write(answer json: inout CanonicalWriter) {
        switch Kind.spelling {
        case .uuid: json.uuid(of: self)
        case .hexadecimal: json.hexadecimal(of: self)
        }
    }
}

extension AnswerValue where Self: TextIdentifier {
    package static var answerShape: Shape { .anyText }
    package func write(answer json: inout CanonicalWriter) { json.text(text) }
}

extension CallerName: AnswerValue {}
extension Purpose: AnswerValue {}
extension RequestID: AnswerValue {}
extension TypeID: AnswerValue {}
extension UserID: AnswerValue {}

extension PolicyDigest: AnswerValue {
    package static var answerShape: Shape { .sha256 }
}

/// An object that is described elsewhere.
extension JSONObject: AnswerValue {
    package static var answerShape: Shape { .foreign }
    package func write(answer json: inout CanonicalWriter) { json.value(self) }
}

extension Array: AnswerValue where Element: AnswerValue {
    package static var answerShape: Shape { .all(Element.answerShape) }
    package func write(answer json: inout CanonicalWriter) {
        json.array(self) { $1.write(answer: &$0) }
    }
}

/// A value or `null`.
struct Nullable<Value: AnswerValue>: AnswerValue {
    let value: Value?

    static var answerShape: Shape { .nullable(Value.answerShape) }

    func write(answer json: inout CanonicalWriter) {
        if let value { value.write(answer: &json) } else { json.null() }
    }
}

extension Outcome: AnswerValue {
    package static var answerShape: Shape { .choice(allCases.map(\.name)) }
    package func write(answer json: inout CanonicalWriter) { json.text(name) }
}

/// One of a closed list of names.
extension AnswerValue where Self: RawRepresentable<String> & CaseIterable {
    package static var answerShape: Shape { .choice(of: Self.self) }
    package func write(answer json: inout CanonicalWriter) { json.text(rawValue) }
}

extension AgeFact: AnswerValue {}
extension BodyForm: AnswerValue {}
extension Category: AnswerValue {}
extension Channel: AnswerValue {}
extension ConsentMethod: AnswerValue {}
extension Detail: AnswerValue {}
extension DischargeMeans: AnswerValue {}
extension DriftAction: AnswerValue {}
extension DriftKind: AnswerValue {}
extension Interruption: AnswerValue {}
extension OSPermission: AnswerValue {}
extension Platform: AnswerValue {}
extension PushProvider: AnswerValue {}
extension PreferenceState: AnswerValue {}
extension PrivacyLevel: AnswerValue {}
extension Reason: AnswerValue {}
extension RegionSource: AnswerValue {}
extension SendEventKind: AnswerValue {}
extension Sensitivity: AnswerValue {}
extension Tier: AnswerValue {}
extension WhoCanFix: AnswerValue {}
