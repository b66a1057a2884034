package import GateVocabulary

/// What a person's ledger says today. Pure: the ledger is append-only, and this is how it is read.
package enum ConsentLedger {
    /// What counts for one purpose, channel and address; see ``ConsentsInForce/fact(purpose:channel:address:)``.
    package static func fact(
        purpose: Purpose, channel: Channel, address: Tag?, in records: [ConsentRecord]
    ) -> ConsentFact {
        consentsInForce(in: records).fact(purpose: purpose, channel: channel, address: address)
    }

    /// What a ledger comes to. Its records count from their ``moment(of:in:)``; a withdrawal that was taken back
    /// counts as if it had never been said.
    package static func consentsInForce(in records: [ConsentRecord]) -> ConsentsInForce {
        var inForce = ConsentsInForce()
        let undone = Set(records.lazy.filter { $0.state == .undone }.compactMap(\.withdraws))
        for (index, record) in records.enumerated()
        where record.state != .withdrawn || !undone.contains(record.idTag) {
            inForce.add(record, at: Int64(index + 1), moment: moment(of: record, in: records))
        }
        return inForce
    }

    /// From when a record counts: its own time, and for a withdrawal never before the consent that it names was given.
    /// A consent is not taken back before it is given, so an earlier time is a clock that was wrong.
    package static func moment(of record: ConsentRecord, in records: [ConsentRecord]) -> Instant {
        guard let named = record.withdraws, let given = records.last(where: { $0.idTag == named }) else {
            return record.eventTime
        }
        return max(record.eventTime, given.eventTime)
    }
}
