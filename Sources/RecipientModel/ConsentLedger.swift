package import GateVocabulary

/// What a person's ledger says today. Pure: the ledger is append-only, and this is how it is read.
package enum ConsentLedger {
    /// The newest word on one purpose, channel and address; see ``ConsentWords/fact(purpose:channel:address:)``.
    package static func fact(
        purpose: Purpose, channel: Channel, address: Tag?, in records: [ConsentRecord]
    ) -> ConsentFact {
        words(in: records).fact(purpose: purpose, channel: channel, address: address)
    }

    /// What a ledger comes to. Its records count from their ``moment(of:in:)``; a withdrawal that was taken back
    /// counts as if it had never been said.
    package static func words(in records: [ConsentRecord]) -> ConsentWords {
        var words = ConsentWords()
        let undone = Set(records.lazy.filter { $0.state == .undone }.compactMap(\.withdraws))
        for (index, record) in records.enumerated()
        where record.state != .withdrawn || !undone.contains(record.idTag) {
            words.add(record, at: Int64(index + 1), moment: moment(of: record, in: records))
        }
        return words
    }

    /// The record that counts in each scope where something was said.
    package static func newest(in records: [ConsentRecord]) -> [ConsentWords.Scope: ConsentRecord] {
        words(in: records).words.mapValues { records[Int($0.position) - 1] }
    }

    /// From when an record counts: its own time, and for a withdrawal never before the consent that it names was given.
    /// A consent is not taken back before it is given, so an earlier time is a clock that was wrong.
    package static func moment(of record: ConsentRecord, in records: [ConsentRecord]) -> Instant {
        guard let named = record.withdraws, let given = records.last(where: { $0.idTag == named }) else {
            return record.eventTime
        }
        return max(record.eventTime, given.eventTime)
    }

    /// The consents to a purpose that count now, one for each address of a channel: what a withdrawal of the purpose
    /// ends.
    package static func givenScopes(
        of purpose: Purpose, channel: Channel, in records: [ConsentRecord]
    ) -> [ConsentRecord] {
        newest(in: records).filter { $0.key.purpose == purpose && $0.key.channel == channel }.values
            .filter { $0.state == .given }.sorted { $0.sequence < $1.sequence }
    }
}
