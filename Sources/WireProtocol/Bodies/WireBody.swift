package import CanonicalJSON
import GateVocabulary
import SealedFormat

/// A request body: a shape, and the value made from what has that shape.
package protocol WireBody: Sendable {
    /// Everything a body must be. Its name is its name in the OpenAPI document.
    static var shape: Shape { get }
    /// A body the shape accepts, as the reference shows it.
    static var example: JSONValue { get }

    /// - Parameter members: Of a body that ``shape`` accepted.
    init(checked members: CheckedMembers) throws(BodyError)
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

    /// The same, with the content that identifies the request.
    package static func readWithContent(_ bytes: [UInt8]) -> Result<ReadBody<Self>, BodyError> {
        guard !bytes.isEmpty else { return .failure(.empty) }
        let content: JSONValue
        do throws(JSONError) {
            content = try CanonicalJSON.read(bytes, limits: .request)
        } catch .tooLong(let byteCount, let byteCountMax) {
            return .failure(.tooLarge(byteCount: byteCount, byteCountMax: byteCountMax))
        } catch {
            return .failure(.malformed(error))
        }
        let violations = shape.violations(of: content)
        guard violations.isEmpty, case .object(let object) = content else {
            return .failure(.invalid(violations))
        }
        do throws(BodyError) {
            return .success(ReadBody(body: try Self(checked: CheckedMembers(object)), content: content))
        } catch {
            return .failure(error)
        }
    }
}

/// The members of an object whose shape has been checked, so that looking one up cannot fail halfway.
package struct CheckedMembers {
    package let object: JSONObject

    package init(_ object: JSONObject) { self.object = object }

    /// `null` counts as absent: only shapes that say so let one through.
    private func value(_ key: String) -> JSONValue? {
        guard let value = object[key], !value.isNull else { return nil }
        return value
    }

    func text(_ key: String) -> String? { value(key)?.stringValue }
    func integer(_ key: String) -> Int64? { value(key)?.integerValue }
    func flag(_ key: String) -> Bool? { value(key)?.booleanValue }
    func members(_ key: String) -> CheckedMembers? { value(key)?.objectValue.map(CheckedMembers.init) }

    func instant(_ key: String) -> Instant? {
        text(key).map { text in
            guard let instant = Instant(rfc3339: text) else { broken(key) }
            return instant
        }
    }

    func region(_ key: String) -> RegionCode? {
        text(key).map { text in
            guard let region = RegionCode(text) else { broken(key) }
            return region
        }
    }

    func name<Name: RawRepresentable<String>>(_ key: String) -> Name? {
        text(key).map { text in
            guard let name = Name(rawValue: text) else { broken(key) }
            return name
        }
    }

    /// The bytes of a text in base64url without padding.
    func base64url(_ key: String) -> [UInt8]? {
        text(key).map { text in
            guard let bytes = Base64URL.decode(text) else { broken(key) }
            return bytes
        }
    }

    /// What the shape required.
    func required<Value>(_ value: Value?, _ key: String) -> Value {
        guard let value else { broken(key) }
        return value
    }

    func requiredText(_ key: String) -> String { required(text(key), key) }

    private func broken(_ key: String) -> Never {
        preconditionFailure(
            "a body's shape let the member `\(key)` through in a form its reader does not know")
    }
}
