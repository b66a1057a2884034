package import CanonicalJSON
package import GateVocabulary

/// A person came over from another system: everything that one line of an import changed of them.
///
/// The entry stands for its changes, in their order: each is what an entry of its own kind would say, without the person, and without the
/// caller where that is the importer. What follows from an import is the gateway's, such as a no that was said at a mailbox before. ``TrailEntry/parts()`` gives them back as such entries, so nothing else reads this kind by itself.
package struct ImportEntry: EntryBody {
    package static let kind = EntryKind.imported
    /// What a change may be.
    static let kinds: [any RecordEntry.Type] = [
        AddressEntry.self, ConsentEntry.self, DeviceEntry.self, DriftEntry.self, PreferenceEntry.self,
        RecipientEntry.self,
    ]
    /// What a line may ask for comes to half as many; see `ImportBody`.
    static let changeCountMax = 1_024

    package var subject: SubjectID
    package var caller: CallerName
    /// Each as canonical JSON.
    private var changes: [[UInt8]]

    /// - Precondition: Each change is one that an import makes.
    package init(
        _ changes: [(change: PersonChange, caller: CallerName)], of subject: SubjectID, by caller: CallerName,
        at now: Instant
    ) {
        (self.subject, self.caller) = (subject, caller)
        self.changes = changes.map { change, author in
            guard let entry = change.entry(of: subject, by: author, at: now) as? any RecordEntry else {
                preconditionFailure("no entry of an import says \(change)")
            }
            return CanonicalWriter.bytes { entry.write(part: &$0, namingCaller: author != caller) }
        }
    }

    private init(_ changes: [[UInt8]], subject: SubjectID, caller: CallerName) {
        (self.changes, self.subject, self.caller) = (changes, subject, caller)
    }

    package static var objectShape: ObjectShape {
        ObjectShape(
            means,
            [
                .required("caller", .name, "Who said so."),
                .required(
                    "changes", .list(of: changeShape, countMin: 1, countMax: changeCountMax),
                    "What changed, in its order, each as an entry of its kind says it."),
                .required("subject", SubjectID.recordedShape, "Who it is."),
            ])
    }

    private static var changeShape: Shape {
        .variants(
            VariantShape(
                "kind", "What an entry of this kind says.",
                kinds.map { entry in
                    let members = entry.objectShape.members.filter { !shared.contains($0.name) }
                    let caller = ObjectShape.Member.optional(
                        "caller", .name, "Who said so, where it is another than the entry's.")
                    return (names: [entry.kind.text], shape: ObjectShape("", members + [caller]))
                }))
    }

    /// The members that the changes have in common, but for a caller that is another.
    fileprivate static let shared = ["caller", "subject"]

    package func bytes(index: UInt64, time: Instant) throws(TrailEntryError) -> [UInt8] {
        var envelope = EntryEnvelope(kind: Self.kind.text, index: index, time: time)
        let capacity = changes.reduce(256) { $0 + $1.count + 1 }
        let bytes = CanonicalWriter.bytes(capacity: capacity) { json in
            json.object { json in
                json.key("caller")
                caller.write(recorded: &json)
                json.key("changes")
                json.array(self.changes) { json, change in json.raw(change[...]) }
                envelope.write(before: "subject", to: &json)
                json.key("subject")
                subject.write(recorded: &json)
                envelope.write(before: nil, to: &json)
            }
        }
        return try TrailEntry.checked(bytes)
    }

    package static func read(_ members: JSONObject, isPassingOver: Bool) throws(JSONShapeError) -> Self {
        guard let text = members["subject"]?.stringValue, let subject = SubjectID(hexadecimal: text) else {
            throw JSONShapeError(JSONPointer(["subject"]), "expected 32 hexadecimal digits")
        }
        guard let caller = members["caller"]?.stringValue else {
            throw JSONShapeError(JSONPointer(["caller"]), "expected a string")
        }
        let known = ["caller", "changes", "subject"]
        if let unknown = members.members.first(where: { !known.contains($0.key) }), !isPassingOver {
            throw JSONShapeError(JSONPointer([unknown.key]), "nothing of this name is known here")
        }
        var changes: [[UInt8]] = []
        for change in try Self.changes(in: members) { changes.append(CanonicalJSON.write(.object(change))) }
        return Self(changes, subject: subject, caller: CallerName(caller))
    }

    fileprivate static func changes(in members: JSONObject) throws(JSONShapeError) -> [JSONObject] {
        guard let list = members["changes"]?.arrayValue, !list.isEmpty, list.count <= changeCountMax else {
            throw JSONShapeError(JSONPointer(["changes"]), "expected 1 to \(changeCountMax) changes")
        }
        var changes: [JSONObject] = []
        for (position, value) in list.enumerated() {
            guard let change = value.objectValue, let kind = change["kind"]?.stringValue,
                kinds.contains(where: { $0.kind.text == kind }),
                change["subject"] == nil, change["caller"].map({ $0.stringValue != nil }) ?? true
            else {
                throw JSONShapeError(
                    JSONPointer(["changes", String(position)]), "expected a change that an import makes")
            }
            changes.append(change)
        }
        return changes
    }
}

extension RecordEntry {
    /// The entry as a change of an import, which says for all of them who it is and who said so.
    fileprivate func write(part json: inout CanonicalWriter, namingCaller: Bool) {
        var isKindWritten = false
        withUnsafePointer(to: self) { entry in
            json.object { json in
                for (offset, member, write) in Self.fields.recording {
                    let name = "\(member)"
                    let isShared = ImportEntry.shared.contains(name) && !(namingCaller && name == "caller")
                    guard !isShared, !isLacking(name) else { continue }
                    if !isKindWritten, CodeUnits.precedes("kind", name) {
                        json.member("kind", Self.kind.text)
                        isKindWritten = true
                    }
                    write(UnsafeRawPointer(entry) + offset, &json)
                }
                if !isKindWritten { json.member("kind", Self.kind.text) }
            }
        }
    }
}

extension TrailEntry {
    /// The entries that this one stands for: of an import each of its changes, as if it had been recorded alone at this place; of any
    /// other kind the entry itself.
    package func parts() throws(JSONShapeError) -> [TrailEntry] {
        guard kind == .imported else { return [self] }
        var parts: [TrailEntry] = []
        for change in try ImportEntry.changes(in: members) {
            var part = change
            part["kind"] = nil
            part["caller"] = change["caller"] ?? members["caller"]
            part["subject"] = members["subject"]
            parts.append(
                TrailEntry(
                    kind: EntryKind(change["kind"]?.stringValue ?? ""), index: index, time: time,
                    members: part))
        }
        return parts
    }
}
