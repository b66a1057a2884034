import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords
import SendPlanning

extension StepContext {
    /// Decides one row again and carries out the result.
    ///
    /// - Returns: Whether it may go now.
    @discardableResult
    func decideAgain(
        _ row: OutboxRecord, person: RecipientSnapshot?, cause: WithdrawalCause, at now: Instant
    ) throws -> Bool {
        let again = try DecidedAgain(row, person: person, step: self, now: now)
        var row = row
        let action = OutboxState(row).after(.decidedAgain(again.disposition))
        switch action {
        case .handOver: return true
        case .confirm:
            if cause == .old {
                row.decidedAt = now
                try update(row)
                try recordAgain(row, again.facts, again.decision, cause: cause, at: now)
            }
            return true
        case .postpone(let until):
            row.decidedAt = now
            row.notBefore = until
            row.expiresAt = again.facts.expiry ?? row.expiresAt
            try update(row)
            try recordAgain(row, again.facts, again.decision, cause: cause, at: now)
            return false
        case .withdrawAsDecided:
            try withdraw(row, under: again.decision, on: again.facts, cause: cause, at: now)
            return false
        case .giveUpAsDecided:
            try giveUp(row, because: .decision(again.decision.reason), at: now)
            return false
        default:
            try carryOut(action, on: row, at: now)
            return false
        }
    }

    /// Takes out a message that the decision made again refuses.
    func withdraw(
        _ row: OutboxRecord, under decision: Decision, on facts: Facts, cause: WithdrawalCause,
        at now: Instant
    ) throws {
        try remove(row)
        try recordAgain(row, facts, decision, cause: cause, at: now)
        memory.appendEvent(EventRecord(.unsent(.decision(decision.reason)), of: row, at: now))
        try cameToNothing(row, at: now)
    }

    func recordAgain(
        _ row: OutboxRecord, _ facts: Facts, _ decision: Decision, cause: WithdrawalCause, at now: Instant
    ) throws {
        let entry = RedecisionEntry(
            send: row.send, message: row.message, destination: row.destination, subject: row.subject,
            request: row.request, facts: facts, decision: decision, policy: policy.digest,
            cause: cause.rawValue)
        try record(entry, at: now)
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
        for row in try memory.outbox(of: subject) {
            try apply(.recipientChanged(cause), to: recall(row), of: person, at: now)
        }
    }

    /// Takes one row out of the outbox, with an entry and an event.
    func withdraw(_ row: OutboxRecord, because cause: WithdrawalCause, at now: Instant) throws {
        try remove(row)
        try record(
            UnsentEntry(
                send: row.send, message: row.message, subject: row.subject, destination: row.destination,
                cause: Code(cause)), at: now)
        observe(.withdrawn(cause, category: row.category))
        memory.appendEvent(EventRecord(.unsent(.cause(cause)), of: row, at: now))
        if cause.settlesDedupe { return }
        // A caller that cancels may send again, so the person counts as not told, and no duty is unmet.
        guard cause == .cancelled else { return try cameToNothing(row, at: now) }
        if try forgetUntold(row) { memory.removeDuties(of: row.send, to: row.subject) }
    }
}
