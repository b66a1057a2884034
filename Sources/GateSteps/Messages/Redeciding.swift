import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import RecipientModel
import SendPlanning

extension StepContext {
    /// Decides one waiting row again and carries out the result.
    ///
    /// - Returns: Whether it may go now.
    @discardableResult
    func decideAgain(
        _ row: OutboxRecord, person: RecipientSnapshot?, cause: WithdrawalCause, at now: Instant
    ) throws -> Bool {
        guard !row.isDamaged else {
            // A damaged row cannot be decided again, so its message must not go under a decision that may not hold any more.
            try withdraw(row, because: .damaged, at: now)
            return false
        }
        let again = try DecidedAgain(row, person: person, step: self, now: now)
        var row = row
        switch again.disposition {
        case .keep:
            if cause == .old {
                row.decidedAt = now
                try update(row)
                try recordAgain(row, again.facts, again.decision, cause: cause, at: now)
            }
            return true
        case .waits(let until):
            row.decidedAt = now
            row.notBefore = until
            row.expiresAt = again.facts.expiry ?? row.expiresAt
            try update(row)
            try recordAgain(row, again.facts, again.decision, cause: cause, at: now)
            return false
        case .withdraw:
            try remove(row)
            try recordAgain(row, again.facts, again.decision, cause: cause, at: now)
            try view.appendEvent(
                EventRecord(.withdrawn, of: row, at: now, reason: again.decision.reason.rawValue))
            try cameToNothing(row, at: now)
            return false
        }
    }

    func recordAgain(
        _ row: OutboxRecord, _ facts: Facts, _ decision: Decision, cause: WithdrawalCause, at now: Instant
    ) throws {
        let entry = RedecisionEntry(
            send: row.send, message: row.message, destination: row.destination, subject: row.subject,
            request: row.request, facts: facts, decision: decision, policy: policy.digest,
            cause: cause.rawValue)
        try record(at: now) { index, time in try entry.encode(index: index, time: time) }
        observe(
            .decidedAgain(
                reason: decision.reason, category: row.category, tier: row.tier, cause: cause))
    }

    /// Decides again everything that waits for a person, because something about them changed.
    ///
    /// - Parameter person: As they are after the change; `nil` once erased.
    func reconsider(
        _ subject: SubjectID, as person: RecipientSnapshot?, because cause: WithdrawalCause, at now: Instant
    ) throws {
        for row in try view.outbox(of: subject) {
            let row = try recall(row)
            if row.attemptedAt == nil {
                try decideAgain(row, person: person, cause: cause, at: now)
            } else {
                try decideFirstThing(row, as: person)
            }
        }
    }

    /// Marks a message that is being handed over right now: if the hop turns out not to have it, it is decided again
    /// before anything else happens to it.
    ///
    /// - Parameter person: The recipient's present state. If the key that the message is sealed to is no longer
    ///   trusted, the row's facts keep that, because the device may have another key by then.
    func decideFirstThing(_ row: OutboxRecord, as person: RecipientSnapshot?) throws {
        // One that cannot be read does not go again anyway.
        guard !row.isDamaged else { return }
        var row = row
        row.decidedAt = .longAgo
        if let key = row.key, DecidedAgain.keyFact(of: row, sealedTo: key, person) == .sealedToRevoked {
            var facts = try DecidedAgain.recordedFacts(of: row)
            facts["device_key"] = .string(DeviceKeyFact.sealedToRevoked.rawValue)
            row.facts = CanonicalJSON.write(.object(facts))
        }
        try update(row)
    }

    /// A message whose hand-over failed before the hop had it, and whose person changed meanwhile.
    func decideAfterFailedTry(_ row: OutboxRecord, at now: Instant) throws {
        guard let subject = try view.subject(row.subject),
            let person = try RecipientSnapshot.load(subject, from: view)
        else { return try withdraw(row, because: .erased, at: now) }
        try decideAgain(row, person: person, cause: .old, at: now)
    }

    /// Takes one row out of the outbox, with an entry and an event.
    func withdraw(_ row: OutboxRecord, because cause: WithdrawalCause, at now: Instant) throws {
        try remove(row)
        try record(
            .unsent, at: now,
            [
                "send_id": .string(row.send.uuidText), "message_id": .string(row.message.uuidText),
                "subject": .string(row.subject.hexadecimal),
                "destination": .string(row.destination.hexadecimal), "cause": .string(cause.rawValue),
            ])
        observe(.withdrawn(cause, category: row.category))
        try view.appendEvent(EventRecord(.withdrawn, of: row, at: now, reason: cause.rawValue))
        if cause.settlesDedupe { return }
        // Who cancels may ask again, and has nothing to be alarmed of.
        guard cause == .cancelled else { return try cameToNothing(row, at: now) }
        if try forgetUntold(row) { try view.removeDuties(of: row.send, to: row.subject) }
    }
}
