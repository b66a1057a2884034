package import CanonicalJSON
package import GateVocabulary

/// An entry of which the fields are declared in a list, most of them by the record that it is about.
///
/// The fields of that record are read as if they were the entry's own.
@dynamicMemberLookup
package protocol RecordEntry: EntryBody, Record {
    associatedtype About: Record

    /// The record without its private and secret fields, which no entry has.
    var record: About { get set }

    /// The members of an entry that tells nothing of its record but that it is gone; empty where no entry does.
    static var ending: Set<String> { get }

    /// Whether this is such an entry.
    var isEnding: Bool { get set }
}

extension RecordEntry {
    package subscript<Value>(dynamicMember path: KeyPath<About, Value>) -> Value { record[keyPath: path] }

    package static var ending: Set<String> { [] }

    package var isEnding: Bool {
        get { false }
        set { precondition(!newValue, "no entry of kind `\(Self.kind)` tells that its record is gone") }
    }

    package static var objectShape: ObjectShape { recordedObject(means: means, isLackedByEnding) }

    private static func isLackedByEnding(_ form: Field.RecordedForm) -> Bool {
        !ending.isEmpty && !ending.contains("\(form.name)")
    }

    /// Whether this entry, which tells that its record is gone, leaves the field out.
    func isLacking(_ form: Field.RecordedForm) -> Bool { isEnding && Self.isLackedByEnding(form) }

    package func bytes(index: UInt64, time: Instant) throws(TrailEntryError) -> [UInt8] {
        var envelope = EntryEnvelope(kind: Self.kind.text, index: index, time: time)
        let bytes = withUnsafePointer(to: self) { entry in
            CanonicalWriter.bytes(capacity: 512) { json in
                json.object { json in
                    for (offset, _, form) in Self.fields.recorded {
                        let place = UnsafeRawPointer(entry) + offset
                        guard form.isPresent(place), !isLacking(form) else { continue }
                        envelope.write(before: form.name, to: &json)
                        json.key(form.name)
                        form.write(place, &json)
                    }
                    envelope.write(before: nil, to: &json)
                }
            }
        }
        return try TrailEntry.checked(bytes)
    }

    package static func read(_ members: JSONObject, isPassingOver: Bool) throws(JSONShapeError) -> Self {
        var entry = blank
        let isEnding =
            !ending.isEmpty
            && fields.recorded.allSatisfy { !isLackedByEnding($0.form) || members["\($0.form.name)"] == nil }
        if isEnding { entry.isEnding = true }
        try entry.take(members, isPassingOver: isPassingOver) { isEnding && isLackedByEnding($0) }
        return entry
    }
}
