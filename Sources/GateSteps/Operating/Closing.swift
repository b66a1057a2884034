import BundleModel
package import GateVocabulary
package import GateRecords

extension StepContext {
    /// Switches marketing off on a channel for a person of whom is stored what did not happen: a no may be missing. It stays off
    /// until the person switches it on. A person who is not registered, or not any more, stays as they are.
    ///
    /// One channel a step, so that each entry is an act of its own, whichever of them were recorded before.
    ///
    /// - Parameter ends: How long the ledgers are. An old state that was put back counts fewer events, and what is appended after it
    ///   would collide with those that are there: its counts are raised first.
    package func closeMarketing(
        _ channel: Channel, of subject: SubjectID, behind ends: LedgerEnds, at now: Instant
    ) throws {
        guard let subject = try memory.subject(subject), var state = try memory.state(of: subject.id),
            let record = state.record
        else { return }
        if state.count(upTo: ends) { try memory.put(state) }
        var edit = PersonEdit(
            besidesConsentsOf: RecipientSnapshot(subject: subject, record: record, state: state),
            policy: policy, at: now)
        edit.closeMarketing(on: channel)
        guard try write(edit) != nil else { return }
        try reconsider(subject.id, as: edit.person, because: .recipientChanged, at: now)
    }
}
