import GateRecords
package import GateVocabulary

/// A message that the batch adds, kept when it is taken out again.
struct AddedMessage {
    let message: MessageID
    let send: SendID
    let subject: SubjectID
}

/// What steps add to an ``OutboxDepth``.
struct AddedDepth {
    private(set) var rowCount = 0
    private(set) var byteCount: Int64 = 0
    private var rowCounts: [CallerName: Int] = [:]

    func rowCount(of caller: CallerName) -> Int { rowCounts[caller, default: 0] }

    /// Counts one row more, or one less.
    ///
    /// - Parameter step: 1 or -1.
    mutating func count(_ step: Int, _ record: OutboxRecord) {
        rowCount += step
        byteCount += Int64(step * (record.headers.count + record.body.count + record.facts.count))
        rowCounts[record.request.caller, default: 0] += step
    }
}

extension GateMemory {
    package func outbox(_ message: MessageID) throws -> OutboxRecord? {
        try known(messages[message], .message(message))
    }

    /// The same without what is sealed of it (``OutboxRecord/headers``, ``OutboxRecord/body``, ``OutboxRecord/facts``,
    /// ``OutboxRecord/event``), which is not opened: for one that is done.
    package func outboxHead(_ message: MessageID) throws -> OutboxRecord? {
        try known(messages[message] ?? messageHeads[message], .messageHead(message))
    }

    /// Rows of this send that wait.
    package func outbox(of send: SendID) throws -> [OutboxRecord] {
        // A send of this very batch has nothing in the store.
        let stored = isNew(send) ? [] : try known(messagesOfSend[send], .messagesOfSend(send))
        return try outbox(stored) { $0.send == send }
    }

    /// Rows of this person that wait.
    package func outbox(of subject: SubjectID) throws -> [OutboxRecord] {
        try outbox(known(messagesOfPerson[subject], .messagesOfPerson(subject))) { $0.subject == subject }
    }

    private func outbox(
        _ stored: [MessageID], and isAdded: (AddedMessage) -> Bool
    ) throws -> [OutboxRecord] {
        var seen: Set<MessageID> = []
        return try (stored + addedMessages.lazy.filter(isAdded).map(\.message)).compactMap { message in
            seen.insert(message).inserted ? try outbox(message) : nil
        }
    }

    /// How many rows of this person wait, counted no further than `limit`; those that this batch takes out still count.
    package func outboxCount(of subject: SubjectID, limit: Int) throws -> Int {
        try known(messageCounts[subject], .messageCount(subject, limit: limit))
            + addedMessages.count { $0.subject == subject }
    }

    /// The number of waiting messages in all, and of one caller; those that this batch takes out still count.
    package func outboxDepth(
        of caller: CallerName
    ) throws -> (rowCount: Int, byteCount: Int64, rowCountOfCaller: Int) {
        guard let depth else { throw MissingRows(.outboxDepth) }
        return (
            depth.rowCount + addedDepth.rowCount, depth.byteCount + addedDepth.byteCount,
            depth.rowCountByCaller[caller, default: 0] + addedDepth.rowCount(of: caller)
        )
    }

    // MARK: Writing

    package func insertOutbox(_ record: OutboxRecord) {
        add(record)
        change.messages.append(.insert(record))
    }

    /// Adds a row that goes to the relay from memory.
    package func offerOutbox(_ record: OutboxRecord) {
        add(record)
        change.messages.append(.offer(record))
    }

    private func add(_ record: OutboxRecord) {
        let message = record.message
        addedMessages.append(
            AddedMessage(message: message, send: record.send, subject: record.subject))
        addedDepth.count(1, record)
        log(.addedMessage(message, messages.updateValue(.success(record), forKey: message)))
    }

    /// Replaces the row with the same message id.
    package func updateOutbox(_ record: OutboxRecord) {
        put(.success(record), at: record.message)
        change.messages.append(.update(record))
    }

    /// Marks that a hand-over is about to be tried. Until its result is written, it is not known whether the hop has
    /// the message.
    package func markAttempt(_ message: MessageID, at now: Instant) {
        changeRow(message) { row in
            row.attemptCount += 1
            row.attemptedAt = now
        }
        change.messages.append(.attempt(message, at: now))
    }

    /// Moves a row's time without opening it.
    package func postponeOutbox(_ message: MessageID, until: Instant) {
        changeRow(message) { $0.notBefore = until }
        change.messages.append(.postpone(message, until: until))
    }

    package func removeOutbox(_ message: MessageID) {
        put(noMessage, at: message)
        change.messages.append(.remove(message))
    }

    private func put(_ row: Known<OutboxRecord?>, at message: MessageID) {
        log(.message(message, messages.updateValue(row, forKey: message)))
    }

    /// Changes what is known of a row that need not be known.
    private func changeRow(_ message: MessageID, _ body: (inout OutboxRecord) -> Void) {
        if case .success(var row?) = messages[message] {
            body(&row)
            put(.success(row), at: message)
        } else if messages.index(forKey: message) == nil, case .success(var row?) = messageHeads[message] {
            body(&row)
            write(.success(row), at: message, in: \.messageHeads)
        }
    }

    // MARK: Offers to the relay

    /// When the next row of a lane is due, at the latest; `nil` when none waits.
    package func due(in lane: DeliveryLane) -> Instant? { totals.due[lane] }

    /// At or before the time of the next row to claim in each lane; `nil` where there is none.
    package var due: LaneValues<Instant?> {
        get { totals.due }
        set { totals.due = newValue }
    }

    package func noteDue(in lane: DeliveryLane, at moment: Instant) {
        guard totals.due[lane].map({ moment < $0 }) ?? true else { return }
        totals.due[lane] = moment
    }

    /// How many more messages of a lane may be offered.
    package func offerRoom(in lane: DeliveryLane) -> Int { offerRoom[lane] - totals.offeredCounts[lane] }

    /// Gives a message to the relay once the batch is durable.
    package func offer(_ offer: MessageOffer) {
        totals.offeredCounts[offer.lane] += 1
        change.effects.offers.append(offer)
    }

    /// What the batch's steps offer to the relay, in their order.
    package var allOffers: [MessageOffer] {
        var offers: [MessageOffer] = []
        offers.reserveCapacity(DeliveryLane.allCases.reduce(0) { $0 + totals.offeredCounts[$1] })
        for change in applied where !change.effects.offers.isEmpty { offers += change.effects.offers }
        return offers
    }

    /// Takes back a message that was offered to the relay.
    ///
    /// - Returns: Whether the relay has not taken it yet: then it never gets it from memory any more.
    func recall(_ message: MessageID) throws -> Bool {
        let isOffered = takeBackOffer(of: message)
        if !isOffered {
            if recalled.contains(message) { return false }
            guard let isRecalled = recalls[message] else { throw MissingRows(.recall(message)) }
            guard isRecalled else { return false }
        }
        if recalled.insert(message).inserted { onUndo { $0.recalled.remove(message) } }
        return true
    }

    /// Takes back what a step of this batch offers. None offers a message while another one's offer of it stands. Looked along,
    /// because ``offerRoom`` bounds what all steps of a batch offer.
    private func takeBackOffer(of message: MessageID) -> Bool {
        for change in applied + [change] {
            guard
                let place = change.effects.offers.firstIndex(where: { $0.delivery.message == message })
            else { continue }
            let offer = change.effects.offers.remove(at: place)
            totals.offeredCounts[offer.lane] -= 1
            onUndo { _ in change.effects.offers.insert(offer, at: place) }
            return true
        }
        return false
    }
}
