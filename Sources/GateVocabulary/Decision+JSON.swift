package import CanonicalJSON

/// How a gate's result is spelled: `pass`, `not_applicable`, a reason, or `reason:detail`.
extension GateResult {
    package var name: String {
        switch (verdict, reason, detail) {
        case (.pass, _, _): "pass"
        case (.notApplicable, _, _): "not_applicable"
        case (.fail, .some(let reason), .some(let detail)): "\(reason.rawValue):\(detail.rawValue)"
        case (.fail, .some(let reason), .none): reason.rawValue
        case (.fail, .none, _): preconditionFailure("a gate failed without a reason")
        }
    }

    /// - Parameter name: As ``name`` spells it; a detail the reason cannot carry is refused.
    package init?(name: String) {
        switch name {
        case "pass": self = .pass
        case "not_applicable": self = .notApplicable
        default:
            let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let reason = Reason(rawValue: String(parts[0])), reason != .allowed else { return nil }
            guard parts.count == 2 else {
                self = .fail(reason)
                return
            }
            guard let detail = Detail(rawValue: String(parts[1])), reason.mayCarry(detail) else {
                return nil
            }
            self = .fail(reason, detail)
        }
    }
}

extension GateResult {
    /// Bytes of the longest name, which the table of entries bounds it by.
    package static let nameByteCountMax = 64
}

/// One result for each gate that was asked.
extension Trace: FieldValue {
    package static var shape: Shape {
        .list(
            of: .text(byteCountMax: GateResult.nameByteCountMax), countMax: Int(GateRevision.newest.gateCount)
        )
    }

    package func write(field json: inout CanonicalWriter) {
        json.array(positions) { $0.name(self[position: $1].name) }
    }

    /// Takes the results of more gates than this build has, too: whether it can decide by them is for the replay to say.
    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Trace {
        var trace = Trace(of: GateRevision(gateCount: 0))
        try cursor.array(countMax: Trace.gateCountMax) { cursor, index throws(EntryError) in
            if cursor.skip("\"pass\"") {
                trace.append(.pass)
            } else if cursor.skip("\"not_applicable\"") {
                trace.append(.notApplicable)
            } else {
                let name = String(decoding: cursor.bytes[try cursor.plain()], as: UTF8.self)
                guard let result = GateResult(name: name) else {
                    throw cursor.failure("the result of gate \(index) before it")
                }
                trace.append(result)
            }
        }
        guard trace.revision >= .first else {
            throw cursor.failure("the results of \(GateRevision.first.gateCount) gates or more before it")
        }
        return trace
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Trace {
        let (least, most) = (Int(GateRevision.first.gateCount), Trace.gateCountMax)
        guard case .array(let elements) = json, (least...most).contains(elements.count) else {
            throw JSONShapeError(.root, "expected an array of \(least) to \(most) results, one per gate")
        }
        var trace = Trace(of: GateRevision(gateCount: UInt8(elements.count)))
        for index in elements.indices {
            let place = JSONPointer.root.appending(index)
            guard let result = GateResult(name: try JSONShape.text(elements[index], place)) else {
                throw JSONShapeError(
                    place, "expected `pass`, `not_applicable`, a reason, or a reason with its detail")
            }
            trace[position: index] = result
        }
        return trace
    }
}

extension DecisionNotes {
    /// The names of the notes that are set, in the order of ``names``.
    package var namesSet: [String] { Self.names.filter { contains($0.note) }.map(\.name) }
}

extension DecisionNotes: FieldValue {
    package static var shape: Shape { .list(of: .name, countMax: 8) }

    package func write(field json: inout CanonicalWriter) {
        json.array(namesSet) { $0.name($1) }
    }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> DecisionNotes {
        if cursor.skip("[]") { return [] }
        var notes: DecisionNotes = []
        var next = 0
        try cursor.array(countMax: names.count) { cursor, _ throws(EntryError) in
            let name = try cursor.plain()
            // In the order of the reference, each once.
            guard
                let index = names[next...].firstIndex(where: {
                    $0.name.utf8.elementsEqual(cursor.bytes[name])
                })
            else { throw cursor.failure("notes in the order of the reference") }
            notes.insert(names[index].note)
            next = index + 1
        }
        return notes
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> DecisionNotes {
        guard case .array(let elements) = json else {
            throw JSONShapeError(.root, "expected an array, found \(json.article)")
        }
        var notes: DecisionNotes = []
        for (index, element) in elements.enumerated() {
            let text = try JSONShape.text(element, JSONPointer.root.appending(index))
            guard let known = names.first(where: { $0.name == text }) else {
                throw JSONShapeError(JSONPointer.root.appending(index), "nothing of this name is known here")
            }
            notes.insert(known.note)
        }
        // The order is fixed and no note stands twice, so the names of the set are the array itself.
        guard notes.namesSet.map(JSONValue.string) == elements else {
            throw JSONShapeError(.root, "expected each note once, in the order of the reference")
        }
        return notes
    }
}

extension Outcome: FieldValue {
    package static var shape: Shape { .choice(allCases.map(\.name)) }

    private static let quoted = QuotedNames(\Self.name)

    package func write(field json: inout CanonicalWriter) { json.name(Self.quoted[self]) }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> Outcome {
        let name = try cursor.plain()
        guard let outcome = allCases.first(where: { $0.name.utf8.elementsEqual(cursor.bytes[name]) }) else {
            throw cursor.failure("an outcome before it")
        }
        return outcome
    }

    package static func read(field json: JSONValue) throws(JSONShapeError) -> Outcome {
        guard let outcome = Outcome(name: try JSONShape.text(json, .root)) else {
            throw JSONShapeError(.root, "expected \(Shape.list(allCases.map(\.name)))")
        }
        return outcome
    }
}

/// A decision as the trail keeps it. The spelling is canonical: equal decisions give equal bytes, and
/// reading refuses whatever writing would not give. The table of entries takes names that a newer build may know.
extension Decision: FieldObject {
    package static let means = ""
    package static var blank: Decision {
        Decision(
            outcome: .reject, reason: .factMissing, detail: nil, notBefore: nil, form: .never,
            interruption: .passive, notes: [], trace: Trace())
    }

    @inline(__always)
    package static func show<Visitor: FieldVisitor & ~Copyable>(
        to fields: inout Visitor
    ) throws(Visitor.Failure) where Visitor.Object == Decision {
        try fields.optional("detail", \.detail, as: .name)
        try fields.required("form", \.form, as: .name)
        try fields.required("interruption", \.interruption, as: .name)
        try fields.optional("not_before", \.notBefore, "")
        try fields.required("notes", \.notes, "")
        try fields.required("outcome", \.outcome, as: .name)
        try fields.required("reason", \.reason, as: .name)
        try fields.required("trace", \.trace, "")
    }

    /// The reason decides the outcome, the details that it may have, and whether the send waits.
    package mutating func complete() throws(FieldContradiction) {
        guard outcome == reason.outcome else {
            throw FieldContradiction(
                "outcome", "the reason `\(reason.rawValue)` gives `\(reason.outcome.name)`")
        }
        if let detail, !reason.mayCarry(detail) {
            throw FieldContradiction(
                "detail", "the reason `\(reason.rawValue)` has no detail `\(detail.rawValue)`")
        }
        guard (notBefore != nil) == (outcome == .defer) else {
            throw FieldContradiction(
                "not_before", "a `defer`, and nothing else, says when the send may go on")
        }
    }

    package func write(to json: inout CanonicalWriter) { write(field: &json) }
}

extension AttestedRequest: FieldObject {
    package static let means = "The part of the send a decision looks at."
    package static let shape = Shape.named("AttestedRequest", .object(objectShape))
    /// As an entry has it, which records no text that a caller chose: each is a name.
    static var recordedShape: Shape {
        .object(
            ObjectShape(
                "",
                objectShape.members.map { member in
                    if case .boolean = member.shape { return member }
                    return .required(member.name, .name, "")
                }))
    }

    package static var blank: AttestedRequest {
        AttestedRequest(caller: CallerName(""), type: TypeID(""), channel: .push, critical: false)
    }

    @inline(__always)
    package static func show<Visitor: FieldVisitor & ~Copyable>(
        to fields: inout Visitor
    ) throws(Visitor.Failure) where Visitor.Object == AttestedRequest {
        try fields.required("caller", \.caller, "Who would send it.")
        try fields.required("channel", \.channel, "The channel.")
        try fields.required("critical", \.critical, "Whether critical delivery is asked for.")
        try fields.required("type", \.type, "The type.")
    }

    package func write(to json: inout CanonicalWriter) { write(field: &json) }

    /// - Parameter pointer: Where `json` stands in its document, for the errors.
    package init(json: JSONObject, at pointer: JSONPointer = .root) throws(JSONShapeError) {
        self = try Self.read(field: .object(json), at: pointer)
    }
}

extension Decision {
    /// The same decision in the words of the build that recorded another one, so that both compare byte for byte; see
    /// ``Reason/mayCarry(_:)``.
    package func inWords(of recorded: Decision) -> Decision {
        let (former, present) = (
            GateResult.fail(.quietHoursDeferred, .sendTime), GateResult.fail(.scheduled, .sendTime)
        )
        guard recorded.trace[.quietHours] == former, trace[.quietHours] == present else { return self }
        var decision = self
        decision.trace[.quietHours] = former
        if decision.reason == .scheduled { decision.reason = .quietHoursDeferred }
        return decision
    }
}
