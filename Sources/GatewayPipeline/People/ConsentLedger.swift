package import GateVocabulary

/// What a person's ledger says today. Pure: the ledger is append-only, and this is how it is read.
package enum ConsentLedger {
    /// The newest word on one purpose, channel and address.
    ///
    /// The latest ``moment(of:in:)`` wins, whenever it arrived, so a grant that arrives late never resurrects a
    /// consent withdrawn after it. When two events carry the same time the one that permits least counts.
    ///
    /// - Parameter address: The number's or address's tag for SMS and e-mail, `nil` for push.
    package static func fact(
        purpose: Purpose, channel: Channel, address: Tag?, in events: [ConsentEvent]
    ) -> ConsentFact {
        let newest = newest(in: events) { $0.purpose == purpose }
        guard let own = newest[Scope(purpose: purpose, channel: channel, address: address)] else {
            // Who bought something was told of an objection, and was asked for nothing.
            let given = newest.filter { $0.value.state == .given && $0.value.method != .existingCustomer }
                .keys
            if given.contains(where: { $0.channel == channel }) { return ConsentFact(state: .otherAddress) }
            return ConsentFact(state: given.isEmpty ? .neverAsked : .otherChannel)
        }
        switch own.state {
        case .given: return ConsentFact(state: .given, method: own.method, expiresAt: own.expiresAt)
        case .refused: return ConsentFact(state: .refused)
        case .withdrawn: return ConsentFact(state: .withdrawn)
        case .shown: return ConsentFact(state: .neverAsked)
        }
    }

    /// What one consent reaches.
    package struct Scope: Hashable {
        package var purpose: Purpose
        package var channel: Channel
        package var address: Tag?
    }

    /// The event that counts in each scope where something was said.
    package static func newest(
        in events: [ConsentEvent], where isWanted: (ConsentEvent) -> Bool = { _ in true }
    ) -> [Scope: ConsentEvent] {
        var newest: [Scope: (event: ConsentEvent, moment: Instant)] = [:]
        for event in events where event.state != .shown && isWanted(event) {
            let scope = Scope(purpose: event.purpose, channel: event.channel, address: event.address)
            let moment = moment(of: event, in: events)
            if let other = newest[scope],
                (other.moment, weight(other.event.state)) >= (moment, weight(event.state))
            {
                continue
            }
            newest[scope] = (event, moment)
        }
        return newest.mapValues(\.event)
    }

    /// From when an event counts: its own time, and for a withdrawal never before the consent that it names was given.
    /// Nobody takes back what they have not given, so an earlier time is a clock that was wrong.
    package static func moment(of event: ConsentEvent, in events: [ConsentEvent]) -> Instant {
        guard let named = event.withdraws, let given = events.last(where: { $0.idTag == named }) else {
            return event.eventTime
        }
        return max(event.eventTime, given.eventTime)
    }

    /// At equal times the stronger "no" counts.
    private static func weight(_ state: ConsentEvent.State) -> Int {
        switch state {
        case .shown, .given: 0
        case .refused: 1
        case .withdrawn: 2
        }
    }

    /// The consents to a purpose that count now, one for each address of a channel: what a withdrawal of the purpose
    /// ends.
    package static func givenScopes(
        of purpose: Purpose, channel: Channel, in events: [ConsentEvent]
    ) -> [ConsentEvent] {
        newest(in: events) { $0.purpose == purpose && $0.channel == channel }.values
            .filter { $0.state == .given }.sorted { $0.sequence < $1.sequence }
    }
}
