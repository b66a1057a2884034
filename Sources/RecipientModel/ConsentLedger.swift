package import GateVocabulary

/// What a person's ledger says today. Pure: the ledger is append-only, and this is how it is read.
package enum ConsentLedger {
    /// The newest word on one purpose, channel and address; see ``ConsentWords/fact(purpose:channel:address:)``.
    package static func fact(
        purpose: Purpose, channel: Channel, address: Tag?, in events: [ConsentRecord]
    ) -> ConsentFact {
        words(in: events).fact(purpose: purpose, channel: channel, address: address)
    }

    /// What a ledger comes to. Its events count from their ``moment(of:in:)``; a withdrawal that was taken back
    /// counts as if it had never been said.
    package static func words(in events: [ConsentRecord]) -> ConsentWords {
        var words = ConsentWords()
        let undone = Set(events.lazy.filter { $0.state == .undone }.compactMap(\.withdraws))
        for (index, event) in events.enumerated()
        where event.state != .withdrawn || !undone.contains(event.idTag) {
            words.add(event, at: Int64(index + 1), moment: moment(of: event, in: events))
        }
        return words
    }

    /// The event that counts in each scope where something was said.
    package static func newest(in events: [ConsentRecord]) -> [ConsentWords.Scope: ConsentRecord] {
        words(in: events).words.mapValues { events[Int($0.position) - 1] }
    }

    /// From when an event counts: its own time, and for a withdrawal never before the consent that it names was given.
    /// A consent is not taken back before it is given, so an earlier time is a clock that was wrong.
    package static func moment(of event: ConsentRecord, in events: [ConsentRecord]) -> Instant {
        guard let named = event.withdraws, let given = events.last(where: { $0.idTag == named }) else {
            return event.eventTime
        }
        return max(event.eventTime, given.eventTime)
    }

    /// The consents to a purpose that count now, one for each address of a channel: what a withdrawal of the purpose
    /// ends.
    package static func givenScopes(
        of purpose: Purpose, channel: Channel, in events: [ConsentRecord]
    ) -> [ConsentRecord] {
        newest(in: events).filter { $0.key.purpose == purpose && $0.key.channel == channel }.values
            .filter { $0.state == .given }.sorted { $0.sequence < $1.sequence }
    }
}
