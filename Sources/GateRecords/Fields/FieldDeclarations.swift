package import CanonicalJSON
package import GateVocabulary

/// Declares the fields of a record, by a method for each class of fields and each set of forms.
package struct FieldDeclarations<Object> {
    var all: [Field] = []
    /// The version of the ``since(_:_:)`` whose declarations run; 0 outside of one.
    private var version = 0

    init() {}

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

    /// A field that follows from the trail's entries, kept so that nobody has to add them up.
    package mutating func kept<Value: StoredValue>(
        _ name: StaticString, _ path: WritableKeyPath<Object, Value>, _ means: String
    ) { add(name, path, means, .evidence, Value.self) }

    /// The caller's name of a thing: an answer has the name, which is private, and an entry its tag.
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

extension FieldDeclarations where Object: Record {
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
        let inner = Fields<Object>(declare)
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
