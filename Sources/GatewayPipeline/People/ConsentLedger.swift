package import GateVocabulary

/// What a person's ledger says today. Pure: the ledger is append-only, and this is how it is read.
package enum ConsentLedger {
    /// The newest word on one purpose, channel and address.
    ///
    /// The latest ``moment(of:in:)`` wins, but for grants that ``newest(in:where:)`` keeps out: those reported after a
    /// withdrawal and given before it was received. When two events carry the same time the one that permits least counts.
    ///
    /// - Parameter address: The number's or address's tag for SMS and e-mail; `nil` for push, and for what was said of
    ///   every address of a channel.
    package static func fact(
        purpose: Purpose, channel: Channel, address: Tag?, in events: [ConsentEvent]
    ) -> ConsentFact {
        let newest = newest(in: events) { $0.purpose == purpose }
        let scope = Scope(purpose: purpose, channel: channel, address: address)
        guard let own = newest[scope] ?? newest[scope.ofWholeChannel] else {
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
        /// `nil` for push, and for a withdrawal of every address of a channel, later ones included.
        package var address: Tag?

        fileprivate var ofWholeChannel: Scope { Scope(purpose: purpose, channel: channel, address: nil) }
    }

    /// The event that counts in each scope where something was said.
    ///
    /// Events are folded in the order of their arrival: a withdrawal that counted when it was received keeps out every
    /// grant that is reported after it and was given up to ``end(of:in:)``.
    package static func newest(
        in events: [ConsentEvent], where isWanted: (ConsentEvent) -> Bool = { _ in true }
    ) -> [Scope: ConsentEvent] {
        var words: [Scope: Word] = [:]
        for event in events where event.state != .shown && isWanted(event) {
            let scope = Scope(purpose: event.purpose, channel: event.channel, address: event.address)
            var reached = [scope]
            if event.channel != .push, event.address == nil {
                reached += words.keys.filter { $0.ofWholeChannel == scope && $0 != scope }
            }
            let (moment, end) = (moment(of: event, in: events), end(of: event, in: events))
            for scope in reached {
                var word = words[scope] ?? words[scope.ofWholeChannel] ?? Word()
                word.hear(event, moment: moment, end: end)
                words[scope] = word
            }
        }
        return words.compactMapValues(\.counting?.event)
    }

    /// What was said in one scope, up to an event.
    private struct Word {
        var counting: (event: ConsentEvent, moment: Instant)?
        /// What was given up to then does not count, should it be reported now.
        var withdrawnUntil: Instant?

        mutating func hear(_ event: ConsentEvent, moment: Instant, end: Instant) {
            if event.state == .given, let withdrawnUntil, moment <= withdrawnUntil { return }
            if let counting {
                guard (counting.moment, weight(counting.event.state)) < (moment, weight(event.state)) else {
                    // Said once more, a no holds for as long as it is said.
                    if counting.event.state != .given { extend(by: event, until: end) }
                    return
                }
            }
            counting = (event, moment)
            extend(by: event, until: end)
        }

        private mutating func extend(by event: ConsentEvent, until end: Instant) {
            guard event.state == .withdrawn else { return }
            withdrawnUntil = max(withdrawnUntil ?? end, end)
        }
    }

    /// Until when grants are ended by a withdrawal that counts. Two reporters' clocks are no measure of which of two words
    /// of a day came first, and a time before the consent it names is wrong, so it is when the withdrawal was received; a
    /// record of long ago ends what was given up to its own time.
    private static func end(of event: ConsentEvent, in events: [ConsentEvent]) -> Instant {
        let moment = moment(of: event, in: events)
        let age = event.receivedAt.milliseconds - event.eventTime.milliseconds
        return moment == event.eventTime && age > ConsentEvent.freshMilliseconds
            ? moment : max(moment, event.receivedAt)
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
