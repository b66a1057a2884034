package import CanonicalJSON
package import GateVocabulary

// What the type of a field must have for each form.

/// A value that a record may have as a field.
package protocol RecordValue {
    /// Whether a record may lack a value of this type.
    static var mayBeAbsent: Bool { get }
    var isAbsent: Bool { get }
}

/// A value that lies in rows.
package protocol StoredValue: RecordValue, Sendable {
    func write(row: inout RowWriter)
    static func read(row: inout RowReader) throws(DamagedRow) -> Self

    /// The elements of a list, behind how many they are.
    static func write(_ elements: [Self], row: inout RowWriter)
    static func readElements(row: inout RowReader) throws(DamagedRow) -> [Self]

    // A record's list of fields has the type of each and calls these: a closure in its place would be counted at every call.

    /// Writes the value that lies at a place.
    static func write(at place: UnsafeRawPointer, row: inout RowWriter)
    /// Puts what is read at a place where a value lies.
    static func read(to place: UnsafeMutableRawPointer, row: inout RowReader) throws(DamagedRow)
}

extension StoredValue {
    package static func write(at place: UnsafeRawPointer, row: inout RowWriter) {
        place.assumingMemoryBound(to: Self.self).pointee.write(row: &row)
    }

    package static func read(to place: UnsafeMutableRawPointer, row: inout RowReader) throws(DamagedRow) {
        place.assumingMemoryBound(to: Self.self).pointee = try read(row: &row)
    }
}

/// A value that stands in entries.
package protocol RecordedValue: RecordValue, Sendable {
    static var recordedShape: Shape { get }

    /// - Precondition: It is not absent.
    func write(recorded json: inout CanonicalWriter)
    static func read(recorded json: JSONValue) throws(JSONShapeError) -> Self
}

/// A value that stands in answers.
package protocol ShownValue: RecordValue, Sendable {
    static var shownShape: Shape { get }

    /// - Precondition: It is not absent.
    func write(shown json: inout CanonicalWriter)
}

/// A value that a caller may give in a body, spelled as in an answer that has it.
package protocol GivenValue: RecordValue, Sendable {
    /// What the shape of a body lets through: all of it has to be a value, because the reader has no other answer.
    static var givenShape: Shape { get }

    /// Takes a field out of a body.
    ///
    /// - Returns: `nil` where the body does not have it, which keeps what a blank record has.
    static func read(_ name: String, givenIn body: JSONObject, _ giving: Giving) -> Self?

    /// - Returns: `nil` where the value's shape should not have let it through.
    static func read(given json: JSONValue) -> Self?
}

/// A value that has every form.
package typealias EvidentValue = StoredValue & RecordedValue & ShownValue & GivenValue

/// A value of which a body has several, in a list or under names.
package protocol GivenElement: Hashable, Sendable {
    /// - Parameter name: Of the member that has them.
    /// - Returns: `nil` where the member's shape should not have let them through.
    static func read(all json: JSONValue, of name: String) -> [Self]?
}

extension RecordValue {
    package static var mayBeAbsent: Bool { false }
    package var isAbsent: Bool { false }
}

extension GivenValue where Self: ShownValue {
    package static var givenShape: Shape { shownShape }
}

extension GivenValue {
    package static var givenShape: Shape {
        preconditionFailure("a body's field of the type \(Self.self) is declared with its shape")
    }

    package static func read(_ name: String, givenIn body: JSONObject, _: Giving) -> Self? {
        guard let json = body[name], !json.isNull else { return nil }
        guard let value = read(given: json) else {
            preconditionFailure(
                "a body's shape let the member `\(name)` through in a form its reader does not know")
        }
        return value
    }
}

// MARK: The forms of a field

extension Field.Hidden {
    static func hidden<Value: Sendable>(_: Value.Type) -> Self {
        let copy: @Sendable (UnsafeRawPointer, UnsafeMutableRawPointer) -> Void = { from, to in
            to.assumingMemoryBound(to: Value.self).pointee = from.assumingMemoryBound(to: Value.self).pointee
        }
        return Self(strip: copy, complete: copy)
    }

    /// Of a moment of which the trail has whether there is one.
    static let moment = Self(
        strip: { _, place in
            let moment = place.assumingMemoryBound(to: Instant?.self)
            if moment.pointee != nil { moment.pointee = .longAgo }
        },
        complete: { known, place in
            let moment = place.assumingMemoryBound(to: Instant?.self)
            if moment.pointee != nil, let known = known.assumingMemoryBound(to: Instant?.self).pointee {
                moment.pointee = known
            }
        })
}

extension Field.RecordedForm {
    /// - Parameter bound: In place of the type's own shape.
    static func recorded<Value: RecordedValue>(_ name: StaticString, _: Value.Type, _ bound: Shape?) -> Self {
        Self(
            name: name, shape: bound ?? Value.recordedShape, isOptional: Value.mayBeAbsent,
            write: { place, json in
                let value = place.assumingMemoryBound(to: Value.self)
                guard !value.pointee.isAbsent else { return }
                json.key(name)
                value.pointee.write(recorded: &json)
            },
            read: { json, place throws(JSONShapeError) in
                place.assumingMemoryBound(to: Value.self).pointee = try Value.read(recorded: json)
            })
    }

    /// Whether there is a moment.
    ///
    /// - Parameter isOptional: Whether the entry has the flag only where it is true.
    static func flag(_ name: StaticString, isOptional: Bool) -> Self {
        Self(
            name: name, shape: .boolean, isOptional: isOptional,
            write: { place, json in
                let isThere = place.assumingMemoryBound(to: Instant?.self).pointee != nil
                guard isThere || !isOptional else { return }
                json.key(name)
                json.boolean(isThere)
            },
            read: { json, place throws(JSONShapeError) in
                place.assumingMemoryBound(to: Instant?.self).pointee =
                    try Bool.read(field: json) ? .longAgo : nil
            })
    }
}

extension Field.ShownForm {
    /// - Parameter shape: In place of the type's own.
    static func shown<Value: ShownValue>(
        _ name: StaticString, _: Value.Type, _ shape: Shape? = nil
    ) -> Self {
        Self(shape: shape ?? Value.shownShape, isOptional: Value.mayBeAbsent) { place, json in
            place.assumingMemoryBound(to: Value.self).pointee.write(member: name, to: &json)
        }
    }

    /// The form of a field whose value follows from the object.
    static func shown<Object, Value: ShownValue>(
        _ name: StaticString, _ shape: Shape?, _ value: @escaping @Sendable (Object) -> Value
    ) -> Self {
        Self(shape: shape ?? Value.shownShape, isOptional: Value.mayBeAbsent) { place, json in
            value(place.assumingMemoryBound(to: Object.self).pointee).write(member: name, to: &json)
        }
    }

    /// Whether there is a moment.
    static func flag(_ name: StaticString) -> Self {
        shown(name, nil) { (moment: Instant?) in moment != nil }
    }
}

extension ShownValue {
    fileprivate func write(member name: StaticString, to json: inout CanonicalWriter) {
        guard !isAbsent else { return }
        json.key(name)
        write(shown: &json)
    }
}

extension Field.GivenForm {
    /// - Precondition: A text has a rule, which says how long it may be.
    static func given<Value: GivenValue>(_ name: String, _: Value.Type, _ giving: Giving) -> Self {
        let isRequired: Bool
        switch giving.role {
        case .plain, .required, .leftOut, .defaulted, .only:
            precondition(
                giving.shape != nil || (Value.self != String.self && Value.self != String?.self),
                "`\(name)` of a body is a text of any length")
            switch giving.role {
            case .plain: isRequired = !Value.mayBeAbsent
            case .required: isRequired = true
            default: isRequired = false
            }
        case .telling(_, let withoutKey): isRequired = withoutKey == nil
        case .perVariant: isRequired = true
        case .overriding, .members: isRequired = false
        }
        var shape: Shape {
            switch giving.role {
            case .telling, .overriding, .perVariant, .members: .null
            case .plain, .required, .leftOut, .defaulted, .only: Value.givenShape
            }
        }
        return Self(
            giving: giving, shape: giving.shape ?? shape,
            standard: {
                ($0.assumingMemoryBound(to: Value.self).pointee as? any ShownValue)?.write(shown: &$1)
            },
            read: { body, place in
                guard let value = Value.read(name, givenIn: body, giving) else {
                    precondition(!isRequired, "a body's shape let it through without `\(name)`")
                    return
                }
                place.assumingMemoryBound(to: Value.self).pointee = value
            })
    }
}

// MARK: A value or none

extension Optional: RecordValue {
    package static var mayBeAbsent: Bool { true }
    package var isAbsent: Bool { self == nil }

    fileprivate var present: Wrapped {
        guard let self else { preconditionFailure("a field that is absent was to be written") }
        return self
    }
}

extension Optional: StoredValue where Wrapped: StoredValue {
    /// A flag, then the value when there is one.
    package func write(row: inout RowWriter) {
        row.put(self != nil)
        self?.write(row: &row)
    }

    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        try row.flag() ? try Wrapped.read(row: &row) : nil
    }
}

extension Optional: RecordedValue where Wrapped: RecordedValue {
    package static var recordedShape: Shape { Wrapped.recordedShape }
    package func write(recorded json: inout CanonicalWriter) { present.write(recorded: &json) }
    package static func read(recorded json: JSONValue) throws(JSONShapeError) -> Self {
        try Wrapped.read(recorded: json)
    }
}

extension Optional: ShownValue where Wrapped: ShownValue {
    package static var shownShape: Shape { Wrapped.shownShape }
    package func write(shown json: inout CanonicalWriter) { present.write(shown: &json) }
}

extension Optional: GivenValue where Wrapped: GivenValue {
    package static var givenShape: Shape { Wrapped.givenShape }
    package static func read(given json: JSONValue) -> Self? { Wrapped.read(given: json).map { .some($0) } }

    package static func read(_ name: String, givenIn body: JSONObject, _ giving: Giving) -> Self? {
        Wrapped.read(name, givenIn: body, giving).map { .some($0) }
    }
}

// MARK: Values that entries and the socket spell alike

extension RecordedValue where Self: FieldValue {
    // A name that a newer build knows stays readable in the table of entries.
    package static var recordedShape: Shape { shape.open }
    package func write(recorded json: inout CanonicalWriter) { write(field: &json) }
    package static func read(recorded json: JSONValue) throws(JSONShapeError) -> Self {
        try read(field: json)
    }
}

extension ShownValue where Self: FieldValue {
    package static var shownShape: Shape { shape }
    package func write(shown json: inout CanonicalWriter) { write(field: &json) }
}

extension GivenValue where Self: FieldValue {
    package static func read(given json: JSONValue) -> Self? { try? read(field: json) }
}

extension GivenElement where Self: GivenRecord {
    package static func read(all json: JSONValue, of _: String) -> [Self]? {
        guard let elements = json.arrayValue else { return nil }
        let all = elements.compactMap { read(given: $0) }
        return all.count == elements.count ? all : nil
    }
}

extension Array: GivenValue where Element: GivenElement {
    package static func read(given json: JSONValue) -> Self? { Element.read(all: json, of: "") }

    package static func read(_ name: String, givenIn body: JSONObject, _: Giving) -> Self? {
        guard let json = body[name], !json.isNull else { return nil }
        guard let all = Element.read(all: json, of: name) else {
            preconditionFailure("a body's shape let the list `\(name)` through that its reader does not know")
        }
        return all
    }
}

/// An object that is described elsewhere.
extension JSONObject: ShownValue, GivenValue {
    package static var shownShape: Shape { .foreign }
    package func write(shown json: inout CanonicalWriter) { json.value(self) }
    package static func read(given json: JSONValue) -> JSONObject? { json.objectValue }
}

extension Bool: EvidentValue {
    package func write(row: inout RowWriter) { row.put(self) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> Bool { try row.flag() }
}

extension String: EvidentValue {
    package func write(row: inout RowWriter) { row.put(self) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> String { try row.text() }
}

/// Milliseconds in entries, RFC 3339 on the socket.
extension Instant: EvidentValue {
    package func write(row: inout RowWriter) { row.put(self) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> Instant { try row.instant() }

    package static var shownShape: Shape { .instant }
    package func write(shown json: inout CanonicalWriter) { json.text(rfc3339) }
    package static func read(given json: JSONValue) -> Instant? {
        json.stringValue.flatMap { Instant(rfc3339: $0) }
    }
}

extension RandomIdentifier: EvidentValue {
    package func write(row: inout RowWriter) { row.put(self) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> Self { try row.id() }

    package static var shownShape: Shape { Kind.spelling == .uuid ? .uuid : .keyID }
}

extension StoredValue where Self: TextIdentifier {
    package func write(row: inout RowWriter) { row.put(text) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> Self { Self(try row.text()) }
}

/// An id that a caller chose.
extension GivenValue where Self: TextIdentifier & ShownValue {
    package static var givenShape: Shape { .identifier }
}
extension CallerName: EvidentValue {}
extension DestinationID: EvidentValue, FieldValue {}
extension RequestID: ShownValue, GivenValue, FieldValue {}
extension TypeID: RecordedValue, ShownValue, GivenValue {}
extension UserID: ShownValue, GivenValue, FieldValue {}
extension Code: EvidentValue {}
extension Purpose: EvidentValue {
    package static var givenShape: Shape { .text(.purpose) }
}
extension RegionCode: ShownValue, GivenValue {
    package static var shownShape: Shape { .text(.region) }
}
extension PolicyDigest: RecordedValue, ShownValue, GivenValue {
    package static var shownShape: Shape { .sha256 }
    package static var givenShape: Shape { .sha256 }
}
extension Int: RecordedValue, ShownValue {}
extension Int64: RecordedValue, GivenValue {}
extension UInt32: RecordedValue {}
extension UInt64: RecordedValue {}

extension AgeFact: EvidentValue {}
extension BodyForm: ShownValue {}
extension Category: EvidentValue {}
extension Channel: EvidentValue {}
extension ConsentMethod: EvidentValue {}
extension Detail: ShownValue {}
extension DischargeMeans: ShownValue {}
extension DriftAction: EvidentValue {}
extension DriftKind: EvidentValue {}
extension Interruption: ShownValue {}
extension KeyPurpose: ShownValue, GivenValue {}
extension Nullable: RecordedValue, ShownValue {}
extension Outcome: ShownValue {}
extension OSPermission: EvidentValue {}
extension Platform: EvidentValue {}
extension PreferenceSource: EvidentValue {}
extension PreferenceState: EvidentValue {}
extension PrivacyLevel: EvidentValue {}
extension PushProvider: EvidentValue {}
extension Reason: ShownValue {}
extension RegionSource: EvidentValue {}
extension SendEventKind: ShownValue, FieldValue {}
extension Sensitivity: ShownValue, FieldValue {}
extension Tier: ShownValue, FieldValue {}
extension WhoCanFix: ShownValue, FieldValue {}

/// One member for each name of a closed list that has a value.
extension Dictionary: RecordValue {}

extension Dictionary: StoredValue where Key: StoredValue & CaseIterable, Value: StoredValue {
    package func write(row: inout RowWriter) {
        row.put(raw: UInt32(count))
        for key in Key.allCases {
            guard let value = self[key] else { continue }
            key.write(row: &row)
            value.write(row: &row)
        }
    }

    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        var values: Self = [:]
        for _ in 0..<(try row.count()) {
            let key = try Key.read(row: &row)
            values[key] = try Value.read(row: &row)
        }
        return values
    }
}

extension Dictionary: RecordedValue, ShownValue, GivenValue
where Key: FieldValue & RawRepresentable<String> & CaseIterable, Value: FieldValue {}
