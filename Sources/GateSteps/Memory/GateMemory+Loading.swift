package import GateRecords
package import GateVocabulary

/// What the answers to asks are kept as.
extension GateMemory {
    /// Whether the answer to an ask is known. Looks for keys only, because reading a value would copy it.
    package func knows(_ ask: Ask) -> Bool {
        switch ask {
        case .user(let user): knows(user)
        case .subject(let subject): person(subject)?.subject != nil
        case .state(let subject): person(subject)?.state != nil
        case .token(let identity): tokens.index(forKey: identity) != nil
        case .key(let key): keys.index(forKey: key) != nil
        case .consents(let subject): person(subject)?.consents != nil
        case .choices(let subject): person(subject)?.choices != nil
        case .unsubscribeLink(let id): links.index(forKey: id) != nil
        case .holders(let address): holders.index(forKey: address) != nil
        case .mailboxHolders(let mailbox): mailboxHolders.index(forKey: mailbox) != nil
        case .reply(let key): replies.index(forKey: key) != nil
        case .confirmed(let address): confirmed.index(forKey: address) != nil
        case .forwards(let subject, let since): person(subject)?.knowsForwards(since: since) == true
        case .newSend(let key, let user, let seconds):
            requests.index(forKey: key) != nil && knows(user) && depth != nil && room != nil
                && knowsForwards(to: user, seconds: seconds)
        case .request(let key): requests.index(forKey: key) != nil
        case .send(let send): sends.index(forKey: send) != nil
        case .dedupe(let key): dedupe.index(forKey: key) != nil
        case .duty(let key): duties.index(forKey: key) != nil
        case .message(let message): messages.index(forKey: message) != nil
        case .messageHead(let message):
            messages.index(forKey: message) != nil || messageHeads.index(forKey: message) != nil
        case .messagesOfSend(let send): messagesOfSend.index(forKey: send) != nil
        case .messagesOfPerson(let subject): messagesOfPerson.index(forKey: subject) != nil
        case .messageCount(let subject, _): messageCounts.index(forKey: subject) != nil
        case .eventsOfSend(let send): eventsOfSend.index(forKey: send) != nil
        case .setting(let name): settings.index(forKey: name) != nil
        case .outboxDepth: depth != nil
        case .entry(let index): publishedEntries.index(forKey: index) != nil
        case .recall(let message): recalls.index(forKey: message) != nil
        case .newSubject(let user): newSubject(for: user) != nil
        case .challenge(let order): challenges.index(forKey: order) != nil
        case .headroom: room != nil
        case .identifiers: false
        }
    }

    /// Reserves capacity for what a batch asks for at its start, so that no dictionary is rehashed while it fills.
    package func reserve(_ asks: [Ask]) {
        var (people, sends, heads) = (0, 0, 0)
        for place in asks.indices {
            switch asks[place] {
            case .user: people += 1
            case .newSend: sends += 1
            case .messageHead: heads += 1
            default: break
            }
        }
        people += sends
        reserve(people, in: &users)
        reserve(people, in: &self.people)
        reserve(sends, in: &requests)
        reserve(sends, in: &self.sends)
        reserve(sends + heads, in: &messages)
        reserve(heads, in: &messageHeads)
    }

    /// By a new dictionary, because `reserveCapacity(_:)` is not compiled for the types of a dictionary's keys and values.
    @inline(__always)
    private func reserve<Key, Value>(_ count: Int, in dictionary: inout [Key: Value]) {
        if dictionary.isEmpty, count > 0 { dictionary = Dictionary(minimumCapacity: count) }
    }

    package func take(_ send: Known<SendRecord?>, of key: RequestKey) {
        requests[key] = send
        if case .success(let found?) = send, sends.index(forKey: found.id) == nil { sends[found.id] = send }
    }

    /// The pseudonym of a user, if it is known.
    package func known(_ user: UserID) -> KnownInline<Subject?>? {
        if let known = users[user] { return known }
        guard let subject = recentSubject(of: user) else { return nil }
        users[user] = .success(subject)
        return .success(subject)
    }

    /// Keeps what was found of a user.
    ///
    /// - Returns: The person as far as is known; `nil` for a user who has no pseudonym, and where that cannot be read.
    package func take(_ subject: KnownInline<Subject?>, of user: UserID) -> KnownPerson? {
        users[user] = subject
        guard case .success(let found?) = subject else { return nil }
        let person = person(adding: found.id)
        if person.subject == nil { person.subject = .success(found) }
        return person
    }

    /// Whether the person whom a user leads to is known, with their state.
    private func knows(_ user: UserID) -> Bool {
        guard let known = known(user) else { return false }
        guard case .success(let subject?) = known else { return true }
        return person(subject.id)?.state != nil
    }

    /// Since when forwards are looked for that count over so many seconds; `nil` in an empty trail.
    package func start(ofSeconds seconds: Int64?) -> Instant? {
        guard let seconds else { return nil }
        return totals.newestTime?.advanced(bySeconds: -seconds)
    }

    private func knowsForwards(to user: UserID, seconds: Int64?) -> Bool {
        guard let since = start(ofSeconds: seconds), case .success(let subject?) = known(user) else {
            return true
        }
        return person(subject.id)?.knowsForwards(since: since) == true
    }
}
