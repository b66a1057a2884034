import CanonicalJSON
package import GateVocabulary

/// One named example of a bundle: what is asked, what is known, and what must come out (`cases/*.yaml`).
///
/// `sendgate policy test` and the test suite run the same cases through the same ``decide`` that serves
/// traffic, so a compliance officer's examples are the product's tests.
package struct PolicyCase: Hashable, Sendable {
    package var name: String
    package var because: String?
    package var file: String
    package var line: Int?
    package var request: AttestedRequest
    package var facts: Facts
    package var expected: Expectation
    /// What must come out when what waits is looked at again, in order of time.
    package var later: [Later]

    /// A message that waits is decided again when its time comes, and whenever the person changes something.
    package struct Later: Hashable, Sendable {
        package var line: Int?
        package var facts: Facts
        package var expected: Expectation
    }

    /// What must come out. Whatever is `nil` is not looked at.
    package struct Expectation: Hashable, Sendable {
        package var outcome: Outcome
        package var reason: Reason
        package var detail: Detail?
        package var notBefore: Instant?
        package var form: BodyForm?
        package var interruption: Interruption?
        package var notes: DecisionNotes?
        package var gates: [Gate: GateResult.Verdict]
    }
}

extension Outcome {
    /// Whether something is kept that will be decided again.
    package var isWaiting: Bool { self == .defer || self == .digest }
}

extension GateResult.Verdict {
    /// The verdicts by their ``name``, as cases spell them.
    static let named = Dictionary(
        uniqueKeysWithValues: [Self.pass, .fail, .notApplicable].map { ($0.name, $0) })

    fileprivate static let shape = Shape.choice(named.keys.sorted())
}

// MARK: - Reading

extension PolicyCase {
    /// The facts that are filled in where a case says nothing of them, so that it has to say of one that it is unknown.
    package static let filledIn: [String] = {
        var facts = Facts()
        facts.now = Instant(milliseconds: 0)
        facts.fillIn(of: nil)
        return Facts.names.filter { facts.removing($0) != facts }
    }()

    /// Whether a member of facts is a moment, which a case may write as text.
    package static func isMoment(_ name: String) -> Bool { CaseFacts.moments[name] != nil }

    /// The cases of one file. Its `bases` are named sets of facts for its own cases to start from.
    static func read(_ reader: NodeReader, types: [TypeID: NotificationType]) -> [PolicyCase] {
        let page = reader.members()
        var bases: [String: JSONObject] = [:]
        let named = page.optional(
            "bases", "Facts under names of the page's own, for its cases to start from.")
        for (name, value) in named?.members().others(.names) ?? [] {
            let facts = CaseFacts.object(value)
            bases[name] = facts
            _ = CaseFacts.read(facts, value)
        }
        let cases =
            page.required("cases", "Each is a send, what is known, and what must come out.")?.elements()
            ?? []
        page.refuseOthers()
        return cases.map { PolicyCase($0, bases: bases, types: types) }
    }

    private init(_ reader: NodeReader, bases: [String: JSONObject], types: [TypeID: NotificationType]) {
        let members = reader.members()
        name = members.text("name", byteCountMax: 256, "A sentence: what becomes of which send.")
        because = members.optionalText("because", "Why it must, or which document asks for it.")
        file = reader.file
        line = reader.node.location?.line
        let given = members.required("given", "What is asked, and what is known.")?.members()
        request = AttestedRequest(
            caller: CallerName(given?.text("caller", byteCountMax: 128, "Who asks.") ?? ""),
            type: given?.required("type", "For what.")?.typeID() ?? TypeID(""),
            channel: given?.optionalName("channel", "On which channel; push when unsaid.") ?? .push,
            critical: given?.boolean(
                "critical", default: false, "Whether it is to break through Do Not Disturb.") ?? false)
        facts = Facts()
        later = []
        var known: CaseFacts?
        if let given {
            known = CaseFacts(given, bases: bases)
            facts = known?.facts(of: types[request.type]) ?? facts
            given.refuseOthers()
        }
        expected = Expectation(members.required("then", "What must come out."))
        let steps =
            members.optional(
                "later",
                "What must come out when what waits is decided again, in order of time. `facts` says what has changed since."
            )?.elements() ?? []
        if !steps.isEmpty, !expected.outcome.isWaiting {
            members.reader.problem(
                "says what happens `later` of a send that does not wait",
                hint: "only `defer` and `digest` are decided again")
        }
        var time = facts.now
        for step in steps {
            let members = step.members()
            guard var next = known else { continue }
            next.change(members)
            let facts = next.facts(expiry: self.facts.expiry)
            let expectation = Expectation(members.required("then", "What must come out then."))
            members.refuseOthers()
            if let now = facts.now, let before = time, now < before {
                step.problem(
                    "is at a time before the one it follows", hint: "write the steps in order of time")
            }
            time = facts.now
            known = next
            later.append(Later(line: step.node.location?.line, facts: facts, expected: expectation))
        }
        members.refuseOthers()
    }
}

extension PolicyCase.Expectation {
    fileprivate init(_ reader: NodeReader?) {
        self.init(
            outcome: .reject, reason: .factMissing, detail: nil, notBefore: nil, form: nil,
            interruption: nil, notes: nil, gates: [:])
        guard let members = reader?.named("then").members() else { return }
        if let value = members.required("outcome", "What becomes of the send.") {
            let name = value.shown(as: .choice(Outcome.allCases.map(\.name))).text()
            if let found = Outcome(name: name) {
                outcome = found
            } else {
                value.problem(
                    "is no outcome", hint: "one of forward, defer, digest, suppress, reject")
            }
        }
        reason = members.name("reason", "Why; a reason goes with one outcome.")
        if reason.outcome != outcome {
            members.reader.problem(
                "expects `\(outcome.name)`, and the reason `\(reason.rawValue)` gives `\(reason.outcome.name)`"
            )
        }
        if let value = members.optional("detail", "What exactly, where the reason has details.") {
            let found: Detail = value.name()
            if !reason.mayCarry(found) {
                value.problem("is `\(found.rawValue)`, which the reason `\(reason.rawValue)` cannot have")
            }
            detail = found
        }
        if let value = members.optional("not_before", "The earliest time at which it may go on.") {
            notBefore = CaseFacts.instant(value)
        }
        form = members.optionalName("form", "What the message says on its channel.")
        interruption = members.optionalName("interruption", "How much it interrupts.")
        if let value = members.optional("notes", "What else the decision did: these, and no others.") {
            var set: DecisionNotes = []
            for element in value.elements() {
                let text = element.shown(as: .choice(DecisionNotes.names.map(\.name))).text()
                if let known = DecisionNotes.names.first(where: { $0.name == text }) {
                    set.insert(known.note)
                } else {
                    element.problem(
                        "is no note", hint: DecisionNotes.names.map(\.name).joined(separator: ", "))
                }
            }
            notes = set
        }
        let rows = members.optional(
            "gates", "What each gate answers; one that is not named may answer anything.")?
            .members()
        for gate in Gate.allCases {
            guard let value = rows?.optional(gate.name, "What the gate answers.") else { continue }
            if let verdict = GateResult.Verdict.named[value.shown(as: GateResult.Verdict.shape).text()] {
                gates[gate] = verdict
            } else {
                value.problem("must be one of `pass`, `fail`, `not_applicable`")
            }
        }
        rows?.refuseOthers()
        members.refuseOthers()
    }
}

/// The facts of one case: a base, what differs, and what is taken away.
private struct CaseFacts {
    var object: JSONObject
    package var place: NodeReader
    var without: [NodeReader]
    var now: Instant?

    /// Facts that are moments, with what they mean; in a case they may be written as RFC 3339 text.
    static let moments = [
        "now": "The only clock a rule sees.", "expiry": "After this the notification is worth nothing.",
        "due": "When the send itself wants to go out.", "observed_at": "When it became known.",
        "expires_at": "When it runs out.", "ends_at": "When the window ends.",
    ]

    private static let moment = Shape.named(
        "moment", .either([.text(.momentOfPage), .anyInteger]),
        means: "RFC 3339 between double quotes, e.g. \"2026-11-10T12:00:00Z\", or Unix milliseconds.")

    /// As a case writes them: `now` stands beside them.
    private static let shape = Shape.named(
        "facts",
        .object(
            ObjectShape(
                "What is known. A fact that is not named is one nobody knows.",
                Facts.objectShape.members.filter { $0.name != "now" })
        ).replacing { member in moments[member.name].map { (moment, $0) } })

    private static let meansWithout = "Facts that are unknown, whatever is said of them elsewhere."

    init(_ given: MemberReader, bases: [String: JSONObject]) {
        place = given.reader
        object = JSONObject()
        if let base = given.optional("facts_of", "The name in `bases` from which the facts start.") {
            let name = base.text()
            if let facts = bases[name] {
                object = facts
            } else {
                base.problem("is `\(name)`, and `bases` of this file has none of that name")
            }
        }
        if let value = given.optional("facts", "What is known besides, or otherwise than there.") {
            place = value
            for (key, fact) in Self.object(value) { object[key] = fact }
        }
        without = given.optional("without", Self.meansWithout)?.elements() ?? []
        setNow(given)
    }

    /// What is different when the same message is looked at again.
    mutating func change(_ members: MemberReader) {
        // The message may go from now on: whatever it waited for has come.
        object["due"] = nil
        if let value = members.optional("facts", "What has changed.") {
            place = value
            for (key, fact) in Self.object(value) { object[key] = fact }
        }
        without += members.optional("without", Self.meansWithout)?.elements() ?? []
        setNow(members)
    }

    private mutating func setNow(_ members: MemberReader) {
        guard let value = members.required("now", "The moment of the decision.") else { return }
        now = Self.instant(value)
        if let now { object["now"] = .integer(now.milliseconds) }
    }

    /// When it stops being of use was settled when it came in.
    func facts(expiry: Instant?) -> Facts {
        var later = self
        if let expiry, object["expiry"] == nil { later.object["expiry"] = .integer(expiry.milliseconds) }
        return later.facts(of: nil)
    }

    func facts(of type: NotificationType?) -> Facts {
        var facts = Self.read(object, place)
        facts.fillIn(of: type)
        for element in without {
            let name = element.shown(as: .choice(Facts.names)).text()
            if let rest = facts.removing(name) {
                facts = rest
            } else {
                element.problem("is no fact", hint: Self.knownFacts)
            }
        }
        return facts
    }

    private static var knownFacts: String { "known facts: \(Facts.names.joined(separator: ", "))" }

    /// The facts, or none of them and a problem.
    static func read(_ object: JSONObject, _ reader: NodeReader) -> Facts {
        do throws(JSONShapeError) {
            return try Facts(json: object)
        } catch {
            reader.problem("do not read as facts: \(error)", hint: knownFacts)
            return Facts()
        }
    }

    static func instant(_ reader: NodeReader) -> Instant? {
        reader.recorder?.note(moment)
        switch reader.node.value {
        case .integer(let milliseconds): return Instant(milliseconds: milliseconds)
        case .text(let text):
            if let instant = Instant(rfc3339: text) { return instant }
        default: break
        }
        reader.problem("must be a moment such as \"2026-11-10T12:00:00Z\"")
        return nil
    }

    /// The mapping as JSON, its moments as milliseconds.
    static func object(_ reader: NodeReader) -> JSONObject {
        let facts = reader.shown(as: shape).members().others()
        return JSONObject(facts.map { ($0.key, value($0.value.node, key: $0.key, reader)) })
    }

    private static func value(_ node: PolicyNode, key: String, _ reader: NodeReader) -> JSONValue {
        switch node.value {
        case .text where moments[key] != nil:
            instant(reader.child(node, key)).map { .integer($0.milliseconds) } ?? .integer(0)
        case .mapping(let members):
            .object(JSONObject(members.map { ($0.key, value($0.value, key: $0.key, reader)) }))
        case .list(let elements):
            .array(elements.map { value($0, key: key, reader) })
        default: node.json
        }
    }
}

extension Facts {
    /// What a case leaves unsaid is the usual: wanted at once, told for the first time, and living as long as its
    /// type.
    fileprivate mutating func fillIn(of type: NotificationType?) {
        if due == nil { due = now }
        if repetition == nil { repetition = .first }
        if withheld == nil { withheld = false }
        if expiry == nil {
            var start = now
            if type?.ttlCountsFrom == .due { start = quietHours?.endsAt ?? due }
            expiry = start?.advanced(bySeconds: type?.ttlSeconds ?? 86_400)
        }
    }
}
