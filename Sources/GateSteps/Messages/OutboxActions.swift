import CanonicalJSON
import GateVocabulary
import GateRecords

/// Carrying out what ``OutboxState/after(_:)`` answers.
extension StepContext {
    /// Takes one row of the outbox through an event.
    ///
    /// - Parameters:
    ///   - person: As they are now; for an event that may have the message decided again.
    ///   - status: What the hop answered.
    /// - Returns: What was done.
    @discardableResult
    func apply(
        _ event: OutboxEvent, to row: OutboxRecord, of person: RecipientSnapshot? = nil, status: Int? = nil,
        at now: Instant
    ) throws -> OutboxAction {
        let action = OutboxState(row).after(event)
        try carryOut(action, on: row, of: person, status: status, at: now)
        return action
    }

    /// - Parameter doubt: Why it is not known whether the hop has the message, where that is so from now on.
    func carryOut(
        _ action: OutboxAction, on row: OutboxRecord, of person: RecipientSnapshot? = nil,
        status: Int? = nil, doubt: String = "interrupted", at now: Instant
    ) throws {
        switch action {
        case .nothing: break
        case .keep(let phase):
            if phase == .inDoubt { try tellDoubt(doubt, of: row, at: now) }
            var row = row
            try keep(&row, in: phase)
        case .remember(let pending): try remember(pending, of: row, as: person)
        case .decide(let cause): try decideAgain(row, person: person, cause: cause, at: now)
        case .withdraw(let cause): try withdraw(row, because: cause, at: now)
        case .end(let result): try end(row, as: result, status: status, at: now)
        case .giveUp(let cause): try giveUp(row, because: .cause(cause), at: now)
        case .attempt(let phase):
            if phase == .inDoubt, !row.mayHaveArrived {
                try tellDoubt(doubt, of: row, at: now)
                var row = row
                row.move(to: phase)
                memory.updateOutbox(row)
            }
            memory.markAttempt(row.message, at: now)
        case .handOver, .compose, .summarise, .confirm, .postpone, .withdrawAsDecided, .giveUpAsDecided,
            .replace, .keepDigesting, .close:
            preconditionFailure("\(action) needs a decision: message \(row.message), \(OutboxState(row))")
        }
    }

    /// Tells once of a message that the hop may have, and that goes again. Nothing of it is in the trail, which has the end.
    private func tellDoubt(_ doubt: String, of row: OutboxRecord, at now: Instant) throws {
        if row.mayHaveArrived { return }
        memory.appendEvent(
            EventRecord(
                caller: row.request.caller, send: row.send, subject: row.subject, event: .inDoubt,
                destination: row.destination, at: now, reason: doubt))
    }

    /// Writes a row that goes on.
    func keep(_ row: inout OutboxRecord, in phase: OutboxState.Phase) throws {
        row.move(to: phase)
        try update(row)
    }

    /// Marks a message that is being handed over right now.
    ///
    /// - Parameter person: The recipient's present state. If the key that the message is sealed to is no longer
    ///   trusted, the row's facts keep that, because the device may have another key by then.
    private func remember(
        _ pending: OutboxState.Pending, of row: OutboxRecord, as person: RecipientSnapshot?
    ) throws {
        var row = row
        row.remember(pending)
        if pending == .decision, let key = row.key,
            DecidedAgain.keyFact(of: row, sealedTo: key, person) == .sealedToRevoked
        {
            var facts = try DecidedAgain.recordedFacts(of: row)
            facts["device_key"] = .string(DeviceKeyFact.sealedToRevoked.rawValue)
            row.facts = CanonicalJSON.write(.object(facts))
        }
        try update(row)
    }
}
