package import CanonicalJSON
package import GateRecords

/// What a caller gave of a record, in the body of a request: the fields that are declared as given.
package struct Given<Of: GivenRecord>: WireBody, GivenValue, Hashable {
    /// What the gateway keeps of it is blank: the step that was asked fills it in.
    package let record: Of

    package init(_ record: Of) { self.record = record }

    package init(given body: JSONObject) { record = Of.given(body) }

    package static func read(given json: JSONValue) -> Self? { json.objectValue.map { Self(given: $0) } }

    package static var givenShape: Shape { Of.givenShape }
    package static var shape: Shape { Of.givenShape }
    package static var example: JSONValue { Of.givenExample }
}

/// A body that is a record of its own.
extension WireBody where Self: GivenRecord {
    package static var shape: Shape { givenShape }
    package static var example: JSONValue { givenExample }
    package init(given body: JSONObject) { self = Self.given(body) }
}
