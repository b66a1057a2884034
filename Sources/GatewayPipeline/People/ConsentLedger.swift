package import GateVocabulary

/// What a person's ledger says today. Pure: the ledger is append-only, and this is how it is read.
package enum ConsentLedger {
    /// The newest word on one purpose, channel and address.
    ///
    /// The latest `event_time` wins, whenever it arrived, so a grant that arrives late never resurrects a
    /// consent withdrawn after it. When two events carry the same time the one that permits least counts.
    ///
    /// - Parameter address: The number's or address's tag for SMS and e-mail, `nil` for push.
    package static func fact(
        purpose: Purpose, channel: Channel, address: Tag?, in events: [ConsentEvent]
    ) -> ConsentFact {
        var newest: [Scope: ConsentEvent] = [:]
        for event in events where event.purpose == purpose && event.state != .shown {
            let scope = Scope(channel: event.channel, address: event.address)
            if newest[scope].map({ supersedes(event, $0) }) ?? true { newest[scope] = event }
        }
        guard let own = newest[Scope(channel: channel, address: address)] else {
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
    private struct Scope: Hashable {
        var channel: Channel
        var address: Tag?
    }

    /// Whether `event` counts instead of `other`.
    private static func supersedes(_ event: ConsentEvent, _ other: ConsentEvent) -> Bool {
        if event.eventTime != other.eventTime { return event.eventTime > other.eventTime }
        return weight(event.state) > weight(other.state)
    }

    /// At equal times the stronger "no" counts.
    private static func weight(_ state: ConsentEvent.State) -> Int {
        switch state {
        case .shown, .given: 0
        case .refused: 1
        case .withdrawn: 2
        }
    }

    /// Every (channel, address) for which a purpose is given now: what a withdrawal of the purpose ends.
    package static func givenScopes(
        of purpose: Purpose, channel: Channel, in events: [ConsentEvent]
    ) -> [ConsentEvent] {
        var scopes: [Tag?] = []
        for event in events where event.purpose == purpose && event.channel == channel {
            if !scopes.contains(event.address) { scopes.append(event.address) }
        }
        return scopes.compactMap { address in
            guard fact(purpose: purpose, channel: channel, address: address, in: events).state == .given
            else { return nil }
            return events.last {
                $0.purpose == purpose && $0.channel == channel && $0.address == address && $0.state == .given
            }
        }
    }
}
