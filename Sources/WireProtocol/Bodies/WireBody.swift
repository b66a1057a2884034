package import CanonicalJSON

/// A request body: a record of its own, or what is given of one that is kept (``Given``).
package protocol WireBody: Sendable {
    /// Everything a body must be.
    static var shape: Shape { get }
    /// A body as the reference shows it.
    static var example: JSONValue { get }

    /// - Parameter body: That ``shape`` let through.
    init(given body: JSONObject)

    /// What is wrong with a body that is of its shape.
    var contradictions: [Violation] { get }
}

extension WireBody {
    package var contradictions: [Violation] { [] }
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
            let body = Self(given: object)
            let contradictions = body.contradictions
            guard contradictions.isEmpty else { throw .invalid(contradictions) }
            return .success(ReadBody(body: body, content: content))
        } catch {
            return .failure(error)
        }
    }
}
