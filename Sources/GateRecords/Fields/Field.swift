package import CanonicalJSON
import GateVocabulary

/// Who learns a field of a record.
package enum FieldClass: String, CaseIterable, Sendable {
    /// Enters the trail, which knows a person by a pseudonym, and may be shown.
    case evidence
    /// Lies sealed in the store, never enters the trail, and may be shown to a caller with the grant.
    case `private`
    /// Lies sealed in the store; enters neither the trail nor an answer.
    case secret
}

/// One field of a record, and what follows from its declaration: how it is stored, recorded, shown and given.
///
/// The forms work on the place of the value in a record's memory (`offset`), not through its key path: a key path that is not known when
/// a function is compiled is walked at run time, some 200 instructions a field: for a person with three devices, a tenth of a send. Only ``FieldDeclarations`` makes fields,
/// from the key path of a stored property, so that a place always holds a value of the type that the forms were made for.
package struct Field: Sendable {
    package let name: StaticString
    /// One or two sentences for a reader of the handbook and of the reference.
    package let means: String
    package let secrecy: FieldClass
    /// Whether a record may lack it.
    package let isOptional: Bool
    /// Bytes from the beginning of the record.
    var offset: Int
    /// As what it lies in a row; `nil` of a field that only entries or only answers have.
    let stored: (any StoredValue.Type)?
    /// The version of the schema from which on rows have it; 0 of a field that every row has.
    let since: Int
    /// `nil` of evidence.
    let hidden: Hidden?
    /// `nil` of what never enters the trail, and of evidence that other entries tell.
    let recorded: RecordedForm?
    /// `nil` of what is never shown.
    let shown: ShownForm?
    /// `nil` of what the gateway itself keeps.
    package let given: GivenForm?

    /// Writes a member, name and value, unless there is no value.
    typealias Write = @Sendable (UnsafeRawPointer, inout CanonicalWriter) -> Void

    /// What the trail does not have of a field.
    struct Hidden: Sendable {
        /// Leaves what the trail has; the first place is that of a blank record.
        let strip: @Sendable (UnsafeRawPointer, UnsafeMutableRawPointer) -> Void
        /// Takes from an earlier record of the same thing what the trail does not have.
        let complete: @Sendable (UnsafeRawPointer, UnsafeMutableRawPointer) -> Void
    }

    /// How a field stands in an entry.
    struct RecordedForm: Sendable {
        let name: StaticString
        let shape: Shape
        let isOptional: Bool
        let write: Write
        let read: @Sendable (JSONValue, UnsafeMutableRawPointer) throws(JSONShapeError) -> Void
    }

    /// How a field stands in an answer.
    struct ShownForm: Sendable {
        let shape: Shape
        let isOptional: Bool
        let write: Write
    }

    /// How a caller gives a field in the body of a request.
    package struct GivenForm: Sendable {
        package let giving: Giving
        package let shape: Shape
        /// The value as an answer has it; `nil` of one that no answer has.
        let standard: (@Sendable (UnsafeRawPointer, inout CanonicalWriter) -> Void)?
        /// Takes the field out of a body that its shape let through.
        let read: Read

        typealias Read = @Sendable (JSONObject, UnsafeMutableRawPointer) -> Void
    }
}

/// How a body has a field that a caller gives.
package struct Giving: Sendable {
    package enum Role: Sendable {
        case plain
        /// A body has it, though a record may lack it.
        case required
        /// Its absence means what a blank record has.
        case defaulted
        /// A body may lack it, which leaves what a blank record has; what that means is said in words.
        case leftOut
        /// Its value tells the variants of the body apart, each of which has a sentence.
        case telling([(names: [String], means: String)], withoutKey: String?)
        /// Its presence makes a variant of its own, which its values name.
        case overriding([String], object: String)
        /// Each variant requires it in a form of its own.
        case perVariant([(names: [String], shape: Shape, means: String)])
        /// Only these variants have it. Without names, a body that lacks the telling field.
        case only([String], isRequired: Bool)
        /// The body spells it in several members.
        case members([ObjectShape.Member])
    }

    package let role: Role
    /// In place of the shape of the field's type.
    package let shape: Shape?

    /// Required where the record cannot lack it.
    package static let plain = Self(role: .plain, shape: nil)
    package static let required = Self(role: .required, shape: nil)
    package static let defaulted = Self(role: .defaulted, shape: nil)
    package static let leftOut = Self(role: .leftOut, shape: nil)

    package static func text(_ rule: TextRule) -> Self { .shape(.text(rule)) }
    package static func shape(_ shape: Shape) -> Self { Self(role: .plain, shape: shape) }

    package static func leftOut(_ shape: Shape) -> Self { Self(role: .leftOut, shape: shape) }
    package static func defaulted(_ shape: Shape) -> Self { Self(role: .defaulted, shape: shape) }

    /// - Parameter withoutKey: What a body means that lacks the field; `nil` where none may.
    package static func telling(
        _ variants: [(names: [String], means: String)], withoutKey: String? = nil
    ) -> Self { Self(role: .telling(variants, withoutKey: withoutKey), shape: nil) }

    /// - Parameter shape: In place of that of the field's type.
    package static func only(_ names: [String], _ shape: Shape? = nil) -> Self {
        Self(role: .only(names, isRequired: false), shape: shape)
    }

    package static func required(in names: [String], _ shape: Shape? = nil) -> Self {
        Self(role: .only(names, isRequired: true), shape: shape)
    }

    package static func overriding(_ names: [String], object: String) -> Self {
        Self(role: .overriding(names, object: object), shape: nil)
    }

    package static func perVariant(_ forms: [(names: [String], shape: Shape, means: String)]) -> Self {
        Self(role: .perVariant(forms), shape: nil)
    }
}
