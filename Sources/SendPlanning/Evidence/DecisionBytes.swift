import CanonicalJSON
import GateVocabulary

/// Decisions as bytes without a tree in between; the spelling is that of `Decision.json`.
enum DecisionBytes {
    static func write(_ decision: borrowing Decision, to json: inout CanonicalWriter) {
        json.raw("{")
        json.member("detail", name: decision.detail)
        json.member("form", name: decision.form)
        json.member("interruption", name: decision.interruption)
        json.member("not_before", decision.notBefore)
        let notes = decision.notes
        json.member("notes") { json in
            json.array(DecisionNotes.names.lazy.filter { notes.contains($0.note) }) { $0.text($1.name) }
        }
        json.member("outcome", decision.outcome.name)
        json.member("reason", name: decision.reason)
        json.key("trace")
        json.raw("[")
        for position in decision.trace.positions {
            if position > 0 { json.raw(",") }
            write(decision.trace[position: position], to: &json)
        }
        json.raw("]}")
    }

    private static func write(_ result: GateResult, to json: inout CanonicalWriter) {
        switch result.verdict {
        case .pass: json.raw("\"pass\"")
        case .notApplicable: json.raw("\"not_applicable\"")
        case .fail:
            guard let reason = result.reason else { preconditionFailure("a gate failed without a reason") }
            json.quoted { json in
                json.characters(reason.rawValue)
                if let detail = result.detail {
                    json.raw(":")
                    json.characters(detail.rawValue)
                }
            }
        }
    }

    /// Reads exactly what ``write(_:to:)-(Decision,_)`` writes, of decisions that can be.
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
        // The reason decides the outcome, the details that it may have, and whether the send waits.
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

    /// Takes the results of more gates than this build has, too: whether it can decide by them is for the replay to say.
    private static func readTrace(_ cursor: inout EntryCursor) throws(EntryError) -> Trace {
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

    /// The bytes two decisions are compared by.
    static func bytes(of decision: Decision) -> [UInt8] {
        var json = CanonicalWriter()
        write(decision, to: &json)
        return json.finish()
    }
}
