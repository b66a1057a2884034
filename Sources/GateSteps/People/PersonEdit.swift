import CompliancePolicy
import GateRecords
import GateVocabulary

/// One person while a step changes them: a value that the step asks and changes, and that ``StepContext/record(_:)`` writes once.
///
/// Pure over the person, the bundle and the moment. An auditor's replay makes the same edits from what the trail tells
/// (``OwedEntries``).
struct PersonEdit {
    let policy: CompiledPolicy
    /// When the gateway heard of what is edited.
    let now: Instant
    /// The person before the first change.
    let before: RecipientWithLedger
    /// The state after the changes so far.
    private(set) var state: RecipientState
    /// The ledger with the records that were appended, oldest first.
    private(set) var consents: [ConsentRecord]
    /// The changes in their order, each with the caller in whose name it is recorded.
    private(set) var changes: [(change: PersonChange, caller: CallerName)] = []

    init(_ person: RecipientWithLedger, policy: CompiledPolicy, at now: Instant) {
        (self.policy, self.now, before) = (policy, now, person)
        (state, consents) = (person.person.state, person.consents)
    }

    /// An edit of anything but consents, for which the ledger is not read.
    init(besidesConsentsOf person: RecipientSnapshot, policy: CompiledPolicy, at now: Instant) {
        self.init(RecipientWithLedger(person: person, consents: []), policy: policy, at: now)
    }

    var subject: Subject { before.subject }

    /// The person after the changes so far.
    var person: RecipientSnapshot {
        RecipientSnapshot(subject: subject, record: state.record ?? before.person.record, state: state)
    }

    mutating func append(_ record: ConsentRecord) {
        let placed = state.apply(record, after: consents)
        consents.append(placed)
        changes.append((.consent(placed), record.source))
    }

    mutating func append(_ choice: PreferenceRecord) { append(.preference(choice), by: choice.caller) }

    /// - Parameter change: Any but a record of the ledger of consents.
    mutating func append(_ change: PersonChange, by caller: CallerName) {
        state.apply(change)
        changes.append((change, caller))
    }

    // MARK: Asking

    /// What counts now in the scope of a record.
    func fact(inScopeOf record: ConsentRecord) -> ConsentFact {
        state.consentsInForce.fact(
            purpose: record.purpose, channel: record.channel, address: record.address)
    }

    /// The consents to a purpose that count on a channel, one for each address, oldest first.
    func given(_ purpose: Purpose, on channel: Channel) -> [ConsentRecord] {
        state.consentsInForce.given(purpose, on: channel).compactMap { given in
            consents.last { $0.sequence == given.position }
        }
    }

    /// The newest choice at each place of a channel where one was ever made.
    func choices(of scope: String, on channel: Channel) -> [PreferenceRecord] {
        state.preferences.filter { $0.scope == scope && $0.channel == channel }
    }

    /// Whether a consent or a choice is another one than before the edit.
    var hasNews: Bool { ConsentsAndChoices(state) != ConsentsAndChoices(before.person.state) }

    /// What the person gets told apart by: whether they consented, and what they chose.
    private struct ConsentsAndChoices: Equatable {
        /// Of each scope where something was said, the position of the record that gives; `nil` where the answer is no.
        private let consents: [ConsentsInForce.Scope: Int64?]
        private let choices: Set<Choice>

        private struct Choice: Hashable {
            var scope: String
            var channel: Channel
            var destination: Tag?
            var state: PreferenceState
        }

        init(_ state: RecipientState) {
            consents = state.consentsInForce.byScope.mapValues { $0.state == .given ? $0.position : nil }
            choices = Set(
                state.preferences.filter { $0.state != .default }.map {
                    Choice(
                        scope: $0.scope, channel: $0.channel, destination: $0.destination, state: $0.state)
                })
        }
    }
}

extension StepContext {
    func edit(_ person: RecipientWithLedger, at now: Instant) -> PersonEdit {
        PersonEdit(person, policy: policy, at: now)
    }

    /// `nil` for a person who is not registered.
    func edit(_ user: UserID, at now: Instant) throws -> PersonEdit? {
        try RecipientWithLedger.load(user, from: memory).map { edit($0, at: now) }
    }

    /// `nil` for a person who is not registered any more.
    func edit(_ subject: SubjectID, at now: Instant) throws -> PersonEdit? {
        guard let subject = try memory.subject(subject) else { return nil }
        return try RecipientWithLedger.load(subject, from: memory).map { edit($0, at: now) }
    }

    /// Writes the person whom an edit has changed, once, and an entry for each of its changes, in their order.
    ///
    /// - Returns: The first entry; `nil` where nothing was changed.
    @discardableResult
    func record(_ edit: PersonEdit) throws -> EntryReference? {
        guard !edit.changes.isEmpty else { return nil }
        let subject = edit.subject.id
        assert(
            try! memory.state(of: subject) == edit.before.person.state,
            "the person was changed beside the edit")
        var first: EntryReference?
        var choiceCount = edit.before.person.state.choiceCount
        for (change, caller) in edit.changes {
            switch change {
            case .consent(var record):
                // The index of its entry is the ledger's way back to the trail.
                record.entryIndex = upcomingIndex(ofChangeOf: subject)
                memory.append(record)
            case .preference(let choice):
                choiceCount += 1
                memory.append(choice, at: choiceCount)
            default: break
            }
            let entry = try recordEntry(of: change, of: subject, by: caller, at: edit.now)
            first = first ?? entry
        }
        try memory.put(edit.state)
        return first
    }
}
