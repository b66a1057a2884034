package import CanonicalJSON
package import GateRecords

/// What a caller gave of a record, in the body of a request: the fields that are declared as given.
package struct Given<Of: GivenRecord>: WireBody, Hashable {
    /// What the gateway keeps of it is blank: the step that was asked fills it in.
    package let record: Of

    package init(_ record: Of) { self.record = record }

    package init(from fields: BodyFields) { record = Of.given(fields.object) }

    package static var shape: Shape { Of.givenShape }
    package static var example: JSONValue { Of.givenExample }
}
