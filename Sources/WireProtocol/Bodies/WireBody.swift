package import CanonicalJSON
import GateRecords

/// A request body, whose fields are declared where they are read.
package protocol WireBody: Sendable {
    /// Everything a body must be: ``declared(_:_:rules:)``, kept because every request is checked against it.
    static var shape: Shape { get }
    /// A body as the reference shows it. The shape is made of what is asked of it.
    static var example: JSONValue { get }

    /// - Parameter fields: Of a body that ``shape`` accepted; all are asked for, whichever are there.
    init(from fields: BodyFields) throws(BodyError)
}

/// An object within a body.
package protocol BodyObject: ShapedBodyValue, Sendable {
    /// ``declared(_:_:rules:)``.
    static var shape: Shape { get }
    static var example: JSONValue { get }

    init(from fields: BodyFields)
}

extension WireBody {
    /// The shape made of what ``init(from:)`` asks for.
    ///
    /// - Parameters:
    ///   - name: In the OpenAPI document.
    ///   - means: One sentence for its reader; `nil` of a body in variants, each of which has its own.
    static func declared(_ name: String, _ means: String? = nil, rules: [ObjectShape.Rule] = []) -> Shape {
        let notes = BodyNotes()
        do throws(BodyError) {
            _ = try Self(from: BodyFields(example.objectValue ?? [:], notes: notes))
        } catch {
            preconditionFailure("the example of `\(name)` is no such body: \(error)")
        }
        return .named(name, notes.shape(means, rules: rules))
    }
}

extension BodyObject {
    package static var bodyShape: Shape { shape }

    package static func read(body json: JSONValue) -> Self? {
        json.objectValue.map { Self(from: BodyFields($0)) }
    }

    /// The shape of an object in variants, each of which has its own sentence.
    static func declaredInVariants(_ name: String) -> Shape {
        let notes = BodyNotes()
        _ = Self(from: BodyFields(example.objectValue ?? [:], notes: notes))
        return .named(name, notes.shape(nil, rules: []))
    }

    /// - Parameter name: In the OpenAPI document; `nil` of an object that is shown where it stands.
    static func declared(_ name: String?, _ means: String, rules: [ObjectShape.Rule] = []) -> Shape {
        let notes = BodyNotes()
        _ = Self(from: BodyFields(example.objectValue ?? [:], notes: notes))
        let shape = notes.shape(means, rules: rules)
        return name.map { .named($0, shape) } ?? shape
    }
}

/// A body that was read, beside what was sent.
package struct ReadBody<Body: Sendable>: Sendable {
    package var body: Body
    /// As sent, order and spacing aside. Two requests have the same content exactly when these are equal.
    package var content: JSONValue

    /// What idempotency compares, under a MAC: RFC 8785, so that order and spacing make no difference.
    package var canonicalContent: [UInt8] { CanonicalJSON.write(content) }
}

/// Why a body was not understood.
package enum BodyError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { "\(Problem(self))" }

    /// 413.
    case tooLarge(byteCount: Int, byteCountMax: Int)
    /// 400: nothing was sent where an object was due.
    case empty
    /// 400: not the JSON this gateway reads; says at which byte.
    case malformed(JSONError)
    /// 422: JSON, but not this body; every violation.
    case invalid([Violation])
}

extension WireBody {
    /// Reads one body strictly: UTF-8, no key twice, no unknown member, integers only.
    package static func read(_ bytes: [UInt8]) -> Result<Self, BodyError> {
        // A closure, because a key path into a generic type is looked up by name at run time, on every send.
        readWithContent(bytes).map { $0.body }
    }

    /// Reads the JSON of a body, whatever its shape.
    static func content(of bytes: [UInt8]) throws(BodyError) -> JSONValue {
        guard !bytes.isEmpty else { throw .empty }
        do throws(JSONError) {
            return try CanonicalJSON.read(bytes, limits: .request)
        } catch .tooLong(let byteCount, let byteCountMax) {
            throw .tooLarge(byteCount: byteCount, byteCountMax: byteCountMax)
        } catch {
            throw .malformed(error)
        }
    }

    /// The same as ``read(_:)``, with the content that identifies the request.
    package static func readWithContent(_ bytes: [UInt8]) -> Result<ReadBody<Self>, BodyError> {
        do throws(BodyError) {
            let content = try content(of: bytes)
            let violations = shape.violations(of: content)
            guard violations.isEmpty, case .object(let object) = content else { throw .invalid(violations) }
            return .success(ReadBody(body: try Self(from: BodyFields(object)), content: content))
        } catch {
            return .failure(error)
        }
    }
}
