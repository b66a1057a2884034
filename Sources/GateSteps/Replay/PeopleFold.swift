package import GateVocabulary
package import GateRecords

/// What the trail alone tells of people.
package struct PeopleFold {
    /// By pseudonym, without erased people.
    package private(set) var people: [SubjectID: RecipientState] = [:]
    /// Oldest first.
    package private(set) var ledgers: [SubjectID: [ConsentRecord]] = [:]
    /// Every choice, oldest first.
    package private(set) var choices: [SubjectID: [PreferenceRecord]] = [:]

    mutating func apply(_ change: PersonChange, to subject: SubjectID) {
        var state = people[subject] ?? RecipientState(subject)
        if case .consent(let record) = change {
            let placed = state.apply(record, after: ledgers[subject, default: []])
            ledgers[subject, default: []].append(placed)
        } else {
            state.apply(change)
            if case .preference(let choice) = change { choices[subject, default: []].append(choice) }
        }
        people[subject] = state
    }

    /// What the trail tells of one of them.
    func alone(_ subject: SubjectID) -> PeopleFold {
        var fold = PeopleFold()
        fold.people[subject] = people[subject]
        fold.ledgers[subject] = ledgers[subject]
        fold.choices[subject] = choices[subject]
        return fold
    }

    mutating func forget(_ subject: SubjectID) {
        people[subject] = nil
        ledgers[subject] = nil
        choices[subject] = nil
    }
}
