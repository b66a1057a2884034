import GateVocabulary

extension BatchState {
    /// Whether what an ask is about is known. By the places of keys, because a value would be copied to be looked at.
    package func knows(_ ask: Ask) -> Bool {
        switch ask {
        case .user(let user): users.index(forKey: user) != nil
        case .subject(let subject): subjects.index(forKey: subject) != nil
        case .state(let subject): states.index(forKey: subject) != nil
        case .token(let identity): tokens.index(forKey: identity) != nil
        case .key(let key): keys.index(forKey: key) != nil
        case .consents(let subject): consents.index(forKey: subject) != nil
        case .forwards(let subject, let since):
            switch forwards[subject] {
            case .success(let loaded): loaded.since <= since
            case .failure: true
            case nil: false
            }
        case .request(let key): requests.index(forKey: key) != nil
        case .send(let send): sends.index(forKey: send) != nil
        case .told(let key): told.index(forKey: key) != nil
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
        case .newSubject(let user): newSubjects.index(forKey: user) != nil
        case .challenge(let order): challenges.index(forKey: order) != nil
        case .headroom: headroom != nil
        case .identifiers: false
        }
    }
}

extension LoadedForwards {
    /// Forwards of one person that are looked at: one more than the highest cap there may be.
    package static let countMax = 1_000_001
}
