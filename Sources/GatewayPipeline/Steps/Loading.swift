import GateVocabulary

extension BatchState {
    /// Whether what an ask is about is known. By the places of keys, because a value would be copied to be looked at.
    func knows(_ ask: Ask) -> Bool {
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

extension StoreReading {
    /// Answers what can be answered by looking things up, one by one. What is known already, as loaded or as changed,
    /// stays.
    ///
    /// - Throws: What stops every look-up; a row that cannot be read is an answer.
    package func answer(_ asks: [Ask], into state: BatchState) throws {
        for ask in asks where !state.knows(ask) { try answer(ask, into: state) }
    }

    private func answer(_ ask: Ask, into state: BatchState) throws {
        switch ask {
        case .user(let user):
            let subject = try outcome { try self.subject(of: user) }
            state.users[user] = subject
            guard case .success(let found?) = subject else { return }
            if state.subjects[found.id] == nil { state.subjects[found.id] = .success(found) }
            try answer([.state(found.id)], into: state)
        case .subject(let subject): state.subjects[subject] = try outcome { try self.subject(subject) }
        case .state(let subject): state.states[subject] = try outcome { try self.state(of: subject) }
        case .token(let identity):
            let holder = try outcome { try device(withToken: identity)?.subject }
            state.tokens[identity] = holder
            if case .success(let subject?) = holder { try answer([.state(subject)], into: state) }
        case .key(let key):
            let holder = try outcome { try deviceKey(key)?.subject }
            state.keys[key] = holder
            if case .success(let subject?) = holder { try answer([.state(subject)], into: state) }
        case .consents(let subject): state.consents[subject] = try outcome { try consentEvents(of: subject) }
        case .forwards(let subject, let since):
            state.forwards[subject] = try outcome {
                LoadedForwards(
                    since: since,
                    records: try forwards(of: subject, since: since, limit: LoadedForwards.countMax))
            }
        case .request(let key):
            let found = try outcome { try send(caller: key.caller, idHash: key.idHash) }
            state.requests[key] = found
            if case .success(let send?) = found, state.sends[send.id] == nil { state.sends[send.id] = found }
        case .send(let send): state.sends[send] = try outcome { try self.send(send) }
        case .told(let key): state.told[key] = try outcome { try told(key.event, to: key.subject) }
        case .duty(let key):
            state.duties[key] = try outcome { try duty(key.event, of: key.subject) }
                .map { $0.flatMap { state.endedDuties[key.subject]?.contains($0.send) == true ? nil : $0 } }
        case .message(let message): state.messages[message] = try outcome { try outbox(message) }
        case .messageHead(let message):
            state.messageHeads[message] = try outcome { try outboxHead(message) }
        case .messagesOfSend(let send):
            state.messagesOfSend[send] = try messages(try outcome { try outbox(of: send) }, into: state)
        case .messagesOfPerson(let subject):
            state.messagesOfPerson[subject] = try messages(
                try outcome { try outbox(of: subject) }, into: state)
        case .messageCount(let subject, let limit):
            state.messageCounts[subject] = try outcome { try outboxCount(of: subject, limit: limit) }
        case .eventsOfSend(let send): state.eventsOfSend[send] = try outcome { try events(of: send) }
        case .setting(let name): state.settings[name] = try outcome { try setting(name) }
        case .outboxDepth: state.depth = try outboxDepth()
        case .entry, .recall, .newSubject, .challenge, .identifiers, .headroom: break
        }
    }

    private func messages(
        _ rows: BatchState.Known<[OutboxRecord]>, into state: BatchState
    ) throws -> BatchState.Known<[MessageID]> {
        rows.map { rows in
            for row in rows where state.messages[row.message] == nil {
                state.messages[row.message] = .success(row)
            }
            return rows.map(\.message)
        }
    }

    private func outcome<Value>(_ look: () throws -> Value) throws -> BatchState.Known<Value> {
        do {
            return .success(try look())
        } catch let error as StoreError where error.damage != nil {
            return .failure(error)
        }
    }

    /// Where the trail ends.
    package func trailTail() throws -> TrailTail {
        TrailTail(
            entryCount: try entryCount(), publishedSize: try publishedSize(),
            newestTime: try newestEntryTime(), newestClock: try newestEntryClock())
    }
}

extension LoadedForwards {
    /// Forwards of one person that are looked at: one more than the highest cap there may be.
    static let countMax = 1_000_001
}
