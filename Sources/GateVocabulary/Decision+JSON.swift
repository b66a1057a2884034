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
            guard let detail = Detail(rawValue: String(parts[1])), reason.details.contains(detail) else {
                return nil
            }
            self = .fail(reason, detail)
        }
    }
}

extension DecisionNotes {
    /// The names of the notes that are set, in the order of ``names``.
    package var namesSet: [String] { Self.names.filter { contains($0.note) }.map(\.name) }
}

/// A decision as the trail keeps it. The spelling is canonical: equal decisions give equal bytes, and
/// reading refuses whatever writing would not give.
extension Decision {
    package var json: JSONObject {
        var object: JSONObject = [
            "form": .string(form.rawValue),
            "interruption": .string(interruption.rawValue),
            "notes": .array(notes.namesSet.map { .string($0) }),
            "outcome": .string(outcome.name),
            "reason": .string(reason.rawValue),
            "trace": .array(trace.positions.map { .string(trace[position: $0].name) }),
        ]
        if let detail { object["detail"] = .string(detail.rawValue) }
        if let notBefore { object["not_before"] = .integer(notBefore.milliseconds) }
        return object
    }

    /// - Parameter pointer: Where `json` stands in its document, for the errors.
    package init(json: JSONObject, at pointer: JSONPointer = .root) throws(JSONShapeError) {
        var members = JSONMembers(json, at: pointer)
        let outcome = try members.required("outcome", Self.outcome)
        let reason: Reason = try members.required("reason", JSONShape.name)
        guard reason.outcome == outcome else {
            throw JSONShapeError(
                pointer.appending("outcome"),
                "the reason `\(reason.rawValue)` gives `\(reason.outcome.name)`")
        }
        let detail: Detail? = try members.optional("detail", JSONShape.name)
        if let detail, !reason.details.contains(detail) {
            throw JSONShapeError(
                pointer.appending("detail"),
                "the reason `\(reason.rawValue)` has no detail `\(detail.rawValue)`")
        }
        let notBefore = try members.optional("not_before", JSONShape.instant)
        guard (notBefore != nil) == (outcome == .defer) else {
            throw JSONShapeError(
                pointer.appending("not_before"),
                "a `defer`, and nothing else, says when the send may go on")
        }
        self.init(
            outcome: outcome, reason: reason, detail: detail, notBefore: notBefore,
            form: try members.required("form", JSONShape.name),
            interruption: try members.required("interruption", JSONShape.name),
            notes: try members.required("notes", Self.notes),
            trace: try members.required("trace", Self.trace))
        try members.refuseOthers()
    }

    private static func outcome(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> Outcome {
        guard let outcome = Outcome(name: try JSONShape.text(value, pointer)) else {
            let names = Outcome.allCases.map { "`\($0.name)`" }.joined(separator: ", ")
            throw JSONShapeError(pointer, "expected one of \(names)")
        }
        return outcome
    }

    private static func notes(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> DecisionNotes {
        guard case .array(let elements) = value else {
            throw JSONShapeError(
                pointer, "expected an array, found \(JSONMembers.article(value.shapeName))")
        }
        var notes: DecisionNotes = []
        for (index, element) in elements.enumerated() {
            let text = try JSONShape.text(element, pointer.appending(index))
            guard let known = DecisionNotes.names.first(where: { $0.name == text }) else {
                throw JSONShapeError(pointer.appending(index), "nothing of this name is known here")
            }
            notes.insert(known.note)
        }
        // The order is fixed and no note stands twice, so the names of the set are the array itself.
        guard notes.namesSet.map(JSONValue.string) == elements else {
            throw JSONShapeError(pointer, "expected each note once, in the order of the reference")
        }
        return notes
    }

    private static func trace(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> Trace {
        let (least, most) = (Int(GateRevision.first.gateCount), Trace.gateCountMax)
        guard case .array(let elements) = value, (least...most).contains(elements.count) else {
            throw JSONShapeError(pointer, "expected an array of \(least) to \(most) results, one per gate")
        }
        var trace = Trace(of: GateRevision(gateCount: UInt8(elements.count)))
        for index in elements.indices {
            let place = pointer.appending(index)
            guard let result = GateResult(name: try JSONShape.text(elements[index], place)) else {
                throw JSONShapeError(
                    place, "expected `pass`, `not_applicable`, a reason, or a reason with its detail")
            }
            trace[position: index] = result
        }
        return trace
    }
}

extension AttestedRequest: FieldObject {
    package static let means = "The part of the send a decision looks at."
    package static let shape = Shape.named("AttestedRequest", .object(objectShape))
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

    package init(_ cursor: inout EntryCursor) throws(EntryError) { self = try Self.read(field: &cursor) }
}
