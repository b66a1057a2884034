import CanonicalJSON
import GateVocabulary

/// Decisions as bytes without a tree in between; the spelling is that of `Decision.json`.
enum DecisionBytes {
    static func append(_ decision: borrowing Decision, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "{"))
        if let detail = decision.detail {
            bytes.append(contentsOf: "\"detail\":".utf8)
            bytes.appendPlain(detail.rawValue)
            bytes.append(UInt8(ascii: ","))
        }
        bytes.append(contentsOf: "\"form\":".utf8)
        bytes.appendPlain(decision.form.rawValue)
        bytes.append(contentsOf: ",\"interruption\":".utf8)
        bytes.appendPlain(decision.interruption.rawValue)
        if let notBefore = decision.notBefore {
            bytes.append(contentsOf: ",\"not_before\":".utf8)
            CanonicalJSON.append(notBefore.milliseconds, to: &bytes)
        }
        bytes.append(contentsOf: ",\"notes\":[".utf8)
        var isFirst = true
        for (note, name) in DecisionNotes.names where decision.notes.contains(note) {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            bytes.appendPlain(name)
        }
        bytes.append(contentsOf: "],\"outcome\":".utf8)
        bytes.appendPlain(decision.outcome.name)
        bytes.append(contentsOf: ",\"reason\":".utf8)
        bytes.appendPlain(decision.reason.rawValue)
        bytes.append(contentsOf: ",\"trace\":[".utf8)
        for index in UInt8(0)..<UInt8(13) {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            append(decision.trace[Gate(rawValue: index)!], to: &bytes)
        }
        bytes.append(contentsOf: "]}".utf8)
    }

    private static func append(_ result: GateResult, to bytes: inout [UInt8]) {
        switch result.verdict {
        case .pass: bytes.append(contentsOf: "\"pass\"".utf8)
        case .notApplicable: bytes.append(contentsOf: "\"not_applicable\"".utf8)
        case .fail:
            guard let reason = result.reason else { preconditionFailure("a gate failed without a reason") }
            bytes.append(UInt8(ascii: "\""))
            bytes.append(contentsOf: reason.rawValue.utf8)
            if let detail = result.detail {
                bytes.append(UInt8(ascii: ":"))
                bytes.append(contentsOf: detail.rawValue.utf8)
            }
            bytes.append(UInt8(ascii: "\""))
        }
    }

    /// Reads exactly what ``append(_:to:)-(Decision,_)`` writes, of decisions that can be.
    static func read(_ cursor: inout EntryCursor) throws(EntryError) -> Decision {
        var members = try MemberCursor(&cursor)
        let detail: Detail? = members.has("\"detail\":", &cursor) ? try cursor.name() : nil
        try members.expect("\"form\":", &cursor)
        let form: BodyForm = try cursor.name()
        try members.expect("\"interruption\":", &cursor)
        let interruption: Interruption = try cursor.name()
        let notBefore = members.has("\"not_before\":", &cursor) ? try cursor.instant() : nil
        try members.expect("\"notes\":", &cursor)
        let notes = try readNotes(&cursor)
        try members.expect("\"outcome\":", &cursor)
        let outcome = try cursor.plain()
        try members.expect("\"reason\":", &cursor)
        let reason: Reason = try cursor.name()
        // What a reason is called decides the outcome, which details it has, and whether anything waits.
        guard cursor.bytes[outcome].elementsEqual(reason.outcome.name.utf8) else {
            throw cursor.failure("the outcome of `\(reason.rawValue)` before it")
        }
        guard detail.map(reason.details.contains) != false, (notBefore != nil) == (reason.outcome == .defer)
        else {
            throw cursor.failure("`detail` and `not_before` as `\(reason.rawValue)` has them, before it")
        }
        try members.expect("\"trace\":", &cursor)
        let trace = try readTrace(&cursor)
        try members.end(&cursor)
        return Decision(
            outcome: reason.outcome, reason: reason, detail: detail, notBefore: notBefore, form: form,
            interruption: interruption, notes: notes, trace: trace)
    }

    private static func readNotes(_ cursor: inout EntryCursor) throws(EntryError) -> DecisionNotes {
        if cursor.skip("[]") { return [] }
        var notes: DecisionNotes = []
        var next = 0
        try cursor.array(countMax: DecisionNotes.names.count) { cursor, _ throws(EntryError) in
            let name = try cursor.plain()
            // In the order of the reference, each once.
            guard
                let index = DecisionNotes.names[next...].firstIndex(where: {
                    $0.name.utf8.elementsEqual(cursor.bytes[name])
                })
            else { throw cursor.failure("notes in the order of the reference") }
            notes.insert(DecisionNotes.names[index].note)
            next = index + 1
        }
        return notes
    }

    private static func readTrace(_ cursor: inout EntryCursor) throws(EntryError) -> Trace {
        var trace = Trace()
        try cursor.expect("[")
        for index in UInt8(0)..<UInt8(13) {
            if index > 0 { try cursor.expect(",") }
            let gate = Gate(rawValue: index)!
            if cursor.skip("\"pass\"") {
                trace[gate] = .pass
            } else if cursor.skip("\"not_applicable\"") {
                trace[gate] = .notApplicable
            } else {
                let name = String(decoding: cursor.bytes[try cursor.plain()], as: UTF8.self)
                guard let result = GateResult(name: name) else {
                    throw cursor.failure("the result of gate \(index) before it")
                }
                trace[gate] = result
            }
        }
        try cursor.expect("]")
        return trace
    }

    /// The bytes two decisions are compared by.
    static func bytes(of decision: Decision) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(384)
        append(decision, to: &bytes)
        return bytes
    }
}
