package import CanonicalJSON
import GateRecords
package import GateVocabulary
import SealedFormat

/// The fields of a body, as ``WireBody/init(from:)`` asks for them.
///
/// A body was checked against its shape before it is read, so asking cannot fail halfway. While a shape is made, the
/// example is read and every question is noted: name, shape and meaning stand where the value is taken, and nowhere else.
/// A reader therefore asks for all of its fields, whichever are there; a question after `??` would be forgotten.
package struct BodyFields {
    let object: JSONObject
    /// Where questions are noted; `nil` while a body is read, which then makes no shape and no text.
    private let notes: BodyNotes?

    init(_ object: JSONObject, notes: BodyNotes? = nil) { (self.object, self.notes) = (object, notes) }

    // MARK: Fields

    func required<Value: ShapedBodyValue>(_ name: String, _ means: @autoclosure () -> String) -> Value {
        required(name, as: Value.bodyShape, means())
    }

    func required<Value: BodyValue>(
        _ name: String, as shape: @autoclosure () -> Shape, _ means: @autoclosure () -> String
    ) -> Value {
        notes?.note(.required(name, shape(), means()))
        return held(name)
    }

    func optional<Value: ShapedBodyValue>(_ name: String, _ means: @autoclosure () -> String) -> Value? {
        optional(name, as: Value.bodyShape, means())
    }

    func optional<Value: BodyValue>(
        _ name: String, as shape: @autoclosure () -> Shape, _ means: @autoclosure () -> String
    ) -> Value? {
        notes?.note(.optional(name, shape(), means()))
        return value(name)
    }

    /// A field whose absence means a value, which the document says.
    func optional<Value: ShapedBodyValue & RawRepresentable<String>>(
        _ name: String, default standard: Value, _ means: @autoclosure () -> String
    ) -> Value {
        optional(name, as: Value.bodyShape, default: standard, means())
    }

    func optional<Value: BodyValue & RawRepresentable<String>>(
        _ name: String, as shape: @autoclosure () -> Shape, default standard: Value,
        _ means: @autoclosure () -> String
    ) -> Value {
        notes?.note(.optional(name, shape(), default: .string(standard.rawValue), means()))
        return value(name) ?? standard
    }

    func optional(_ name: String, default standard: Bool, _ means: @autoclosure () -> String) -> Bool {
        notes?.note(.optional(name, .boolean, default: .boolean(standard), means()))
        return value(name) ?? standard
    }

    func optional(
        _ name: String, as shape: @autoclosure () -> Shape, default standard: JSONObject,
        _ means: @autoclosure () -> String
    ) -> JSONObject {
        notes?.note(.optional(name, shape(), default: .object(standard), means()))
        return value(name) ?? standard
    }

    // MARK: Fields of some variants

    /// The field by whose value the body's variants are told apart.
    func variant<Name: BodyValue & RawRepresentable<String>>(
        _ key: String, _ means: @autoclosure () -> String,
        _ variants: @autoclosure () -> [(names: [Name], means: String)]
    ) -> Name {
        notes?.tell(key, means(), variants().map { ($0.names.map(\.rawValue), $0.means) }, withoutKey: nil)
        return held(key)
    }

    /// The same where a body may do without the field.
    func variant<Name: BodyValue & RawRepresentable<String>>(
        _ key: String, _ means: @autoclosure () -> String,
        _ variants: @autoclosure () -> [(names: [Name], means: String)],
        withoutKey: @autoclosure () -> String
    ) -> Name? {
        notes?.tell(
            key, means(), variants().map { ($0.names.map(\.rawValue), $0.means) }, withoutKey: withoutKey())
        return value(key)
    }

    /// A field whose presence makes a variant of its own, whatever the field says that tells the others apart.
    ///
    /// - Parameter names: The values it may have; they also name the variant.
    func override<Name: BodyValue & RawRepresentable<String>>(
        _ key: String, _ means: @autoclosure () -> String, _ names: [Name], object: @autoclosure () -> String
    ) -> Name? {
        notes?.override(key, means(), names.map(\.rawValue), object: object())
        return value(key)
    }

    /// The fields that only bodies of these variants have.
    func only<Name: RawRepresentable<String>>(_ names: Name...) -> VariantFields {
        VariantFields(fields: self, names: notes == nil ? [] : names.map(\.rawValue))
    }

    /// The fields of a body without the telling one.
    var withoutKey: VariantFields { VariantFields(fields: self, names: []) }

    /// A field that every variant requires, each in its own form.
    func required<Value: BodyValue>(
        _ name: String,
        oneOf forms: @autoclosure () -> [(variant: VariantFields, shape: Shape, means: String)]
    ) -> Value {
        if let notes {
            for form in forms() {
                notes.note(.required(name, form.shape, form.means), only: form.variant.names)
            }
        }
        return held(name)
    }

    fileprivate func note(_ member: @autoclosure () -> ObjectShape.Member, only names: [String]) {
        notes?.note(member(), only: names)
    }

    // MARK: Values

    /// `null` counts as absent: only shapes that say so let one through.
    fileprivate func value<Value: BodyValue>(_ name: String) -> Value? {
        guard let value = object[name], !value.isNull else { return nil }
        guard let read = Value.read(body: value) else { broken(name) }
        return read
    }

    /// What the shape required.
    private func held<Value: BodyValue>(_ name: String) -> Value {
        guard let value: Value = value(name) else { broken(name) }
        return value
    }

    private func broken(_ name: String) -> Never {
        preconditionFailure(
            "a body's shape let the member `\(name)` through in a form its reader does not know")
    }
}

/// Fields that only bodies of some variants have: no value in the others.
struct VariantFields {
    fileprivate let fields: BodyFields
    /// The variants that have them; empty for a body without the field that names its variant.
    fileprivate let names: [String]

    func required<Value: ShapedBodyValue>(_ name: String, _ means: @autoclosure () -> String) -> Value? {
        fields.note(.required(name, Value.bodyShape, means()), only: names)
        return fields.value(name)
    }

    func optional<Value: ShapedBodyValue>(_ name: String, _ means: @autoclosure () -> String) -> Value? {
        optional(name, as: Value.bodyShape, means())
    }

    func optional<Value: BodyValue>(
        _ name: String, as shape: @autoclosure () -> Shape, _ means: @autoclosure () -> String
    ) -> Value? {
        fields.note(.optional(name, shape(), means()), only: names)
        return fields.value(name)
    }
}

// MARK: Values

/// What a member of a body becomes.
package protocol BodyValue {
    /// - Returns: `nil` where the value's shape should not have let it through.
    static func read(body json: JSONValue) -> Self?
}

/// A value that has one form in every body.
package protocol ShapedBodyValue: BodyValue {
    static var bodyShape: Shape { get }
}

extension String: BodyValue {
    package static func read(body json: JSONValue) -> String? { json.stringValue }
}

extension Int64: BodyValue {
    package static func read(body json: JSONValue) -> Int64? { json.integerValue }
}

extension JSONObject: BodyValue {
    package static func read(body json: JSONValue) -> JSONObject? { json.objectValue }
}

extension Bool: ShapedBodyValue {
    package static var bodyShape: Shape { .boolean }
    package static func read(body json: JSONValue) -> Bool? { json.booleanValue }
}

/// Bytes in base64url without padding.
extension [UInt8]: BodyValue {
    package static func read(body json: JSONValue) -> [UInt8]? {
        json.stringValue.flatMap { Base64URL.decode($0) }
    }
}

/// RFC 3339.
extension Instant: ShapedBodyValue {
    package static var bodyShape: Shape { .instant }
    package static func read(body json: JSONValue) -> Instant? {
        json.stringValue.flatMap { Instant(rfc3339: $0) }
    }
}

extension RegionCode: ShapedBodyValue {
    package static var bodyShape: Shape { .text(.region) }
    package static func read(body json: JSONValue) -> RegionCode? {
        json.stringValue.flatMap { RegionCode($0) }
    }
}

extension RandomIdentifier: BodyValue, ShapedBodyValue {
    package static var bodyShape: Shape {
        switch Kind.spelling {
        case .uuid: .uuid
        case .hexadecimal: .keyID
        }
    }

    package static func read(body json: JSONValue) -> RandomIdentifier? {
        guard let text = json.stringValue else { return nil }
        return switch Kind.spelling {
        case .uuid: RandomIdentifier(uuidText: text)
        case .hexadecimal: RandomIdentifier(hexadecimal: text)
        }
    }
}

/// An id that a caller chose.
extension ShapedBodyValue where Self: TextIdentifier {
    package static var bodyShape: Shape { .identifier }
    package static func read(body json: JSONValue) -> Self? { json.stringValue.map { Self($0) } }
}

extension CallerName: ShapedBodyValue {}
extension DestinationID: ShapedBodyValue {}
extension RequestID: ShapedBodyValue {}
extension TypeID: ShapedBodyValue {}
extension UserID: ShapedBodyValue {}

extension PolicyDigest: ShapedBodyValue {
    package static var bodyShape: Shape { .sha256 }
}

extension Purpose: ShapedBodyValue {
    package static var bodyShape: Shape { .text(.purpose) }
}

/// One of a closed list of names.
extension ShapedBodyValue where Self: RawRepresentable<String> & CaseIterable {
    package static var bodyShape: Shape { .choice(of: Self.self) }
    package static func read(body json: JSONValue) -> Self? {
        json.stringValue.flatMap { Self(rawValue: $0) }
    }
}

extension AgeFact: ShapedBodyValue {}
extension Channel: ShapedBodyValue {}
extension ConsentMethod: ShapedBodyValue {}
extension KeyPurpose: ShapedBodyValue {}
extension OSPermission: ShapedBodyValue {}
extension Platform: ShapedBodyValue {}
extension PushProvider: ShapedBodyValue {}
extension PreferenceSource: ShapedBodyValue {}
extension PrivacyLevel: ShapedBodyValue {}
extension RegionSource: ShapedBodyValue {}
