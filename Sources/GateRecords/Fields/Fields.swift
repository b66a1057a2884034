package import CanonicalJSON
package import GateVocabulary

/// A thing whose fields are declared in one list, which everything else follows from.
package protocol Declared: Hashable, Sendable {
    static var fields: Fields<Self> { get }
}

/// A thing that is read as well as written.
package protocol Record: Declared {
    /// What a reader fills in. Fields that a caller may leave out have the value that their absence means.
    static var blank: Self { get }
}

/// The fields of a record, in the order in which its row has them.
///
///     package static let fields = Fields<Self> { fields in
///         fields.evidence("critical_alerts", \.criticalAlerts, "Whether the app may sound critical alerts.", given: .defaulted)
///         fields.private("token", \.token, "The push token.", given: .text(.fcmToken))
///     }
///
/// A line is the name, the property, the meaning and, where a caller gives the field, how. The method says who learns of it. The type of
/// the property gives the forms; one that has no form of an entry, as a secret has none, does not compile as evidence.
package struct Fields<Object>: Sendable {
    package private(set) var all: [Field] = []
    // One list for each form, with the closures of that form alone: rows, bodies, entries and answers are on the path of every send.

    private(set) var stored: [(offset: Int, type: any StoredValue.Type)] = []
    /// Those of ``stored`` that rows have had since a later version than the first, by their places there.
    private(set) var storedSince: [(place: Int, version: Int)] = []
    /// The fields of an entry in canonical order; `recording` and `showing` are in that order, too.
    private(set) var recorded: [(offset: Int, form: Field.RecordedForm)] = []
    private(set) var recording: [(offset: Int, name: StaticString, write: Field.Write)] = []
    private(set) var showing: [(offset: Int, write: Field.Write)] = []
    private(set) var reading: [(offset: Int, read: Field.GivenForm.Read)] = []
    /// Of the fields that are being declared.
    private var version = 0

    /// - Precondition: No two fields have one name in one form.
    package init(_ declare: (inout Self) -> Void) {
        declare(&self)
        stored = all.compactMap { field in field.stored.map { (field.offset, $0) } }
        storedSince = all.filter { $0.stored != nil }.enumerated().filter { $1.since > 0 }.map {
            ($0, $1.since)
        }
        recorded = Self.sorted(all.compactMap { field in field.recorded.map { (field.offset, $0) } }) {
            "\($0.form.name)"
        }
        recording = recorded.map { ($0.offset, $0.form.name, $0.form.write) }
        let shown = Self.sorted(all.filter { $0.shown != nil }) { "\($0.name)" }
        showing = shown.compactMap { field in field.shown.map { (field.offset, $0.write) } }
        reading = all.compactMap { field in field.given.map { (field.offset, $0.read) } }
    }

    private static func sorted<Form>(_ forms: [Form], _ name: (Form) -> String) -> [Form] {
        let names = forms.map(name)
        precondition(Set(names).count == names.count, "fields of \(Object.self) have one name: \(names)")
        return forms.sorted { CodeUnits.precedes(name($0), name($1)) }
    }

    // MARK: Declarations

    /// Fields that rows have had since a version of the schema (``Schema`` of SQLiteStore). What reads a row of an earlier one leaves
    /// them as in a blank record.
    ///
    ///     fields.since(4) { $0.kept("seen_count", \.seenCount, "How often it was seen.") }
    package mutating func since(_ version: Int, _ declare: (inout Self) -> Void) {
        precondition(version > 0 && self.version == 0, "fields since a version within others")
        self.version = version
        declare(&self)
        self.version = 0
    }

    /// A field that the trail has, and that the gateway keeps.
    ///
    /// - Parameters:
    ///   - recordedAs: The name in an entry, where it is another.
    ///   - bound: The shape in an entry, where it is not that of the type.
    ///   - shape: The shape in an answer, where it is not that of the type.
    ///   - isShown: `false` of what an answer says by where the record stands in it.
    package mutating func evidence<Value: StoredValue & RecordedValue & ShownValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String,
        recordedAs: StaticString? = nil, bound: Shape? = nil, shape: Shape? = nil, isShown: Bool = true
    ) {
        add(
            name, path, means, .evidence, Value.self,
            .recorded(recordedAs ?? name, Value.self, bound),
            isShown ? .shown(name, Value.self, shape) : nil)
    }

    /// A field that the trail has, and that a caller gives.
    ///
    /// - Parameter given: How a body has it.
    package mutating func evidence<Value: EvidentValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String,
        recordedAs: StaticString? = nil, bound: Shape? = nil, shape: Shape? = nil, given: Giving
    ) {
        add(
            name, path, means, .evidence, Value.self,
            .recorded(recordedAs ?? name, Value.self, bound),
            .shown(name, Value.self, shape), .given("\(name)", Value.self, given))
    }

    /// Evidence that is no member of the record's entry, because the entry's kind or time says it, or other entries do.
    package mutating func implied<Value: StoredValue & ShownValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String, isShown: Bool = true
    ) {
        add(name, path, means, .evidence, Value.self, nil, isShown ? .shown(name, Value.self) : nil)
    }

    package mutating func `private`<Value: StoredValue & ShownValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String
    ) { add(name, path, means, .private, Value.self, nil, .shown(name, Value.self)) }

    package mutating func `private`<Value: StoredValue & ShownValue & GivenValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String, given: Giving
    ) {
        add(
            name, path, means, .private, Value.self, nil, .shown(name, Value.self),
            .given("\(name)", Value.self, given))
    }

    package mutating func secret<Value: StoredValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String
    ) { add(name, path, means, .secret, Value.self) }

    /// What the trail's entries come to, kept so that nobody has to add them up.
    package mutating func kept<Value: StoredValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String
    ) { add(name, path, means, .evidence, Value.self) }

    /// What a caller calls a thing: an answer has the name, which is private, and an entry its tag.
    package mutating func name<Name: StoredValue & ShownValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Name>, tag: WritableKeyPath<Object, Tag>,
        recordedAs: StaticString? = nil, _ means: String
    ) {
        evidence(name, tag, "\(means) As a keyed tag.", recordedAs: recordedAs, isShown: false)
        `private`(name, path, means)
    }

    /// A moment of which the trail has whether there is one; who reads the trail has ``GateVocabulary/Instant/longAgo`` for it.
    ///
    /// - Parameters:
    ///   - isAlwaysRecorded: Whether an entry says `false`, too.
    ///   - moment: The name of the moment in answers and bodies; `nil` where an answer has the flag.
    package mutating func whether(
        _ flag: StaticString, _ path: WritableKeyPath<Object, Instant?>, _ means: String,
        isAlwaysRecorded: Bool,
        moment: StaticString? = nil, given: Giving? = nil
    ) {
        add(
            moment ?? flag, path, means, .evidence, Instant?.self,
            .flag(flag, isOptional: !isAlwaysRecorded),
            moment.map { .shown($0, Instant?.self) } ?? .flag(flag),
            given.map { .given("\(moment ?? flag)", Instant?.self, $0) }, hidden: .moment)
    }

    /// A field that only the entry has.
    package mutating func entry<Value: RecordedValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String, bound: Shape? = nil
    ) { add(name, path, means, .evidence, nil, .recorded(name, Value.self, bound)) }

    /// A field that only the answer has.
    ///
    /// - Parameter shape: In place of that of the type.
    package mutating func joined<Value: ShownValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String, shape: Shape? = nil
    ) { add(name, path, means, .private, nil, nil, .shown(name, Value.self, shape)) }

    /// A field of the answer alone that follows from the others.
    package mutating func joined<Value: ShownValue>(
        _ name: StaticString, _ means: String, shape: Shape? = nil,
        _ value: @escaping @Sendable (Object) -> Value
    ) { add(name, means, shown: .shown(name, shape, value), isOptional: Value.mayBeAbsent) }

    /// A field of the answer alone that is there only where it is true.
    package mutating func flag(
        _ name: StaticString, _ means: String, _ value: @escaping @Sendable (Object) -> Bool
    ) { joined(name, means) { value($0) ? true : nil } }

    /// A field that only the body has.
    package mutating func given<Value: GivenValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String,
        _ giving: Giving = .plain
    ) { add(name, path, means, .private, nil, nil, nil, .given("\(name)", Value.self, giving)) }

    /// The fields of a record that is a part of this one.
    package mutating func all<Part: Declared>(of path: WritableKeyPath<Object, Part>) {
        some(Part.fields, of: path)
    }

    /// Some fields of a part of this one.
    package mutating func some<Part>(_ fields: Fields<Part>, of path: WritableKeyPath<Object, Part>) {
        let place = Self.offset(path)
        all += fields.all.map { field in
            var field = field
            field.offset += place
            return field
        }
    }

    /// The same without some of the fields.
    package func without(_ names: Set<String>) -> Self {
        Self { fields in fields.all = all.filter { !names.contains("\($0.name)") } }
    }

    /// A field that is no property.
    private mutating func add(
        _ name: StaticString, _ means: String, shown: Field.ShownForm? = nil, given: Field.GivenForm? = nil,
        isOptional: Bool
    ) {
        all.append(
            Field(
                name: name, means: means, secrecy: .private, isOptional: isOptional, offset: 0, stored: nil,
                since: 0, hidden: nil, recorded: nil, shown: shown, given: given))
    }

    private mutating func add<Value: RecordValue & Sendable>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String, _ secrecy: FieldClass,
        _ stored: (any StoredValue.Type)?, _ recorded: Field.RecordedForm? = nil,
        _ shown: Field.ShownForm? = nil,
        _ given: Field.GivenForm? = nil, hidden: Field.Hidden? = nil
    ) {
        all.append(
            Field(
                name: name, means: means, secrecy: secrecy, isOptional: Value.mayBeAbsent,
                offset: Self.offset(path), stored: stored, since: stored == nil ? 0 : version,
                hidden: hidden ?? (secrecy == .evidence ? nil : .hidden(Value.self)), recorded: recorded,
                shown: shown, given: given))
    }

    private static func offset<Value>(_ path: WritableKeyPath<Object, Value>) -> Int {
        guard let offset = MemoryLayout<Object>.offset(of: path) else {
            preconditionFailure("\(path) is no stored property: a field is stored or computed, not both")
        }
        return offset
    }
}

extension Fields where Object: Record {
    /// An object in a body whose members are fields of this record.
    ///
    /// - Parameters:
    ///   - isOptional: Whether a body may lack it.
    ///   - object: In the OpenAPI document; `nil` of an object that is shown where it stands.
    ///   - objectMeans: One sentence for the document's reader.
    package mutating func given(
        _ name: StaticString, _ means: String, isOptional: Bool = false, object: String? = nil,
        _ objectMeans: String, rules: [ObjectShape.Rule] = [], _ declare: (inout Self) -> Void
    ) {
        let inner = Self(declare)
        let member = "\(name)"
        let form = Field.GivenForm(
            giving: isOptional ? .leftOut : .plain,
            shape: inner.givenShape(as: object, objectMeans, rules: rules), standard: nil
        ) { body, place in
            guard let object = body[member]?.objectValue else { return }
            for (offset, read) in inner.reading { read(object, place + offset) }
        }
        add(name, means, given: form, isOptional: isOptional)
    }
}
