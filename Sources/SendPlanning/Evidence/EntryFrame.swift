import AuditTrail
import CanonicalJSON
import GateVocabulary

/// What all kinds of entries have in common, and their bounds.
enum EntryFrame {
    /// A recipient has at most 20 devices and 20 addresses (DESIGN section 5); a send goes to one kind.
    static let deliveryCountMax = 20

    static func checked(_ bytes: [UInt8]) throws(EntryError) -> [UInt8] {
        guard bytes.count <= EntryBundle.entryByteCountMax else {
            throw .tooLarge(byteCount: bytes.count, byteCountMax: EntryBundle.entryByteCountMax)
        }
        return bytes
    }

    /// The members of any entry, and its kind.
    static func object(_ bytes: [UInt8]) throws(EntryError) -> (JSONObject, kind: String) {
        let value: JSONValue
        do throws(JSONError) {
            value = try CanonicalJSON.readCanonical(bytes, limits: .entry)
        } catch {
            throw .notCanonical(error)
        }
        guard case .object(let object) = value else {
            throw .shape(pointer: "", message: "expected an object, found \(value.shapeName)")
        }
        guard let kind = object["kind"]?.stringValue else {
            throw .shape(pointer: "/kind", message: "the member is missing, or no text")
        }
        return (object, kind)
    }

    /// `v`, `kind`, `index` and `time`.
    static func header(_ members: inout JSONMembers) throws(JSONShapeError) -> (index: UInt64, time: Instant)
    {
        guard try members.required("v", JSONShape.integer) == 1 else {
            throw JSONShapeError(members.pointer.appending("v"), "only version 1 is known")
        }
        _ = try members.required("kind", JSONShape.text)
        return (
            try members.required("index", EntryValue.unsigned),
            try members.required("time", JSONShape.instant)
        )
    }
}
