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
        guard let person = try memory.subject(subject),
            var state = try memory.state(of: subject), state.record != nil
        else { return }
        if state.count(upTo: ends) { try memory.put(state) }
        let choice = PreferenceRecord(
            subject: subject, scope: Category.marketing.rawValue, channel: channel, destination: nil,
            state: .userOff, source: .stateAudit, at: now, caller: .gateway)
        guard !state.preferences.contains(where: { $0.isClosing && $0.isSameChoice(as: choice) }) else {
            return
        }
        try appendPreference(choice, receivedAt: now)
        try reconsider(person, because: .recipientChanged, at: now)
    }
}
