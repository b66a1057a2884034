package import CanonicalJSON
package import GateVocabulary

/// An entry of which the fields are declared in a list.
package protocol DeclaredEntry: EntryBody, Record {
    /// The members of an entry that tells nothing of its record but that it is gone; empty where no entry does.
    static var ending: Set<String> { get }

    /// Whether this is such an entry.
    var isEnding: Bool { get set }
}

/// An entry whose fields are, most of them, those of the record that it is about.
///
/// The fields of that record are read as if they were the entry's own.
@dynamicMemberLookup
package protocol RecordEntry: DeclaredEntry {
    associatedtype About: Record

    /// The record without its private and secret fields, which no entry has.
    var record: About { get set }
}

extension RecordEntry {
    package subscript<Value>(dynamicMember path: KeyPath<About, Value>) -> Value { record[keyPath: path] }
}

extension DeclaredEntry {
    package static var ending: Set<String> { [] }

    package var isEnding: Bool {
        get { false }
        set { precondition(!newValue, "no entry of kind `\(Self.kind)` tells that its record is gone") }
    }

    /// The members of the kind.
    package var json: JSONObject { JSONObject(written: write(recorded:)) }

    package static var objectShape: ObjectShape { recordedObject(means: means, isLackedByEnding) }

    private static func isLackedByEnding(_ name: String) -> Bool { !ending.isEmpty && !ending.contains(name) }

    /// Whether this entry, which tells that its record is gone, leaves the field out.
    func isLacking(_ name: String) -> Bool { isEnding && Self.isLackedByEnding(name) }

    package func bytes(index: UInt64, time: Instant) throws(TrailEntryError) -> [UInt8] {
        var envelope = EntryEnvelope(kind: Self.kind.text, index: index, time: time)
        let isEnding = isEnding
        let bytes = withUnsafePointer(to: self) { entry in
            CanonicalWriter.bytes(capacity: 512) { json in
                json.object { json in
                    for (offset, name, write) in Self.fields.recording {
                        if isEnding, isLacking("\(name)") { continue }
                        envelope.write(before: name, to: &json)
                        write(UnsafeRawPointer(entry) + offset, &json)
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
            && fields.recording.allSatisfy { !isLackedByEnding("\($0.name)") || members["\($0.name)"] == nil }
        if isEnding { entry.isEnding = true }
        try entry.take(members, isPassingOver: isPassingOver) { isEnding && isLackedByEnding($0) }
        return entry
    }
}
