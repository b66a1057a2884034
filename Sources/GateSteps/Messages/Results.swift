import AuditTrail
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import RecipientModel
import SendPlanning

/// How a try to hand over one message ended.
package enum MessageOutcome: Sendable {
    /// The hop's result, and when to try again; `nil` ends the message.
    case tried(HopResult, retryAt: Instant?)
    /// The message was offered, and the relay did not take it.
    case neverTaken

    /// Whether the sealed content of the message is needed to decide what happens to it: not when the hop has the
    /// message.
    fileprivate var needsContent: Bool {
        switch self {
        case .tried(.accepted, _), .tried(.seenBefore, _): false
        case .tried, .neverTaken: true
        }
    }

    /// The ask for what the step that records it reads.
    package func ask(for message: MessageID) -> Ask {
        needsContent ? .message(message) : .messageHead(message)
    }
}

extension StepContext {
    /// Records how a try to hand over one message ended.
    package func record(_ outcome: MessageOutcome, of message: MessageID, at now: Instant) throws {
        // Erased or cancelled while it was under way: the entry of that says so already.
        guard var row = try outcome.needsContent ? view.outbox(message) : view.outboxHead(message) else {
            return
        }
        guard case .tried(let result, let retryAt) = outcome else { return try takeBack(row, at: now) }
        // A row that became unreadable meanwhile cannot go again; what is known of this try is its end.
        if let retryAt, retryAt < row.expiresAt, !row.isDamaged {
            // The relay's alarm has to be set anew.
            announce()
            if let obstacle = result.obstacle {
                observe(.retried(obstacle, channel: row.request.channel, tier: row.tier))
            }
            row.notBefore = retryAt
            switch result {
            case .notWritten where row.mayHaveArrived, .busy where row.mayHaveArrived:
                try row.isCancelled ? end(row, as: .ambiguous, at: now) : update(row)
            case .notWritten, .busy:
                // The hop does not have it: it is ours alone again, and can be called back again.
                row.attemptedAt = nil
                try waitAgain(row, at: now)
            case .ambiguous, .accepted, .seenBefore, .refused:
                row.mayHaveArrived = true
                try row.isCancelled ? end(row, as: .ambiguous, at: now) : update(row)
            }
            return
        }
        let (event, status) = result.outcome(of: row)
        if row.isCancelled, event == .expiredUnsent { return try withdraw(row, because: .cancelled, at: now) }
        try end(row, as: event, status: status, at: now)
    }

    /// A message that the hop does not have waits on, unless what happened meanwhile ends it.
    private func waitAgain(_ row: OutboxRecord, at now: Instant) throws {
        if row.isCancelled { return try withdraw(row, because: .cancelled, at: now) }
        try update(row)
        if row.decidedAt == .longAgo { try decideAfterFailedTry(row, at: now) }
    }

    /// Ends a message that was handed over, or may have been.
    private func end(
        _ row: OutboxRecord, as result: HandOver, status: Int? = nil, at now: Instant
    ) throws {
        try view.removeOutbox(row.message)
        // Straight into bytes: every message has one.
        try record(at: now) { index, time in
            var entry = CanonicalWriter(capacity: 512)
            entry.object { json in
                json.member("attempts", Int64(row.attemptCount))
                json.member("destination", hexadecimal: row.destination)
                json.member("index", Int64(index))
                json.member("kind", EntryKind.delivery.text)
                json.member("message_id", uuid: row.message)
                json.member("result", name: result)
                json.member("send_id", uuid: row.send)
                json.member("status", status.map { Int64($0) })
                json.member("subject", hexadecimal: row.subject)
                json.member("time", time)
                json.member("v", TrailEntry.version)
            }
            return entry.finish()
        }
        observe(
            .ended(
                result, channel: row.request.channel, category: row.category, tier: row.tier,
                waitedMilliseconds: result == .handedOver ? row.waitedMilliseconds(until: now) : nil))
        try view.appendEvent(EventRecord(result.fate, of: row, at: now))
        if !result.fate.mayHaveArrived { try cameToNothing(row, at: now) }
    }

    /// Takes a message out of the outbox. One that may have been handed over is not recorded as withdrawn.
    func giveUp(_ row: OutboxRecord, because cause: WithdrawalCause, at now: Instant) throws {
        if row.attemptedAt == nil {
            try withdraw(row, because: cause, at: now)
        } else {
            // What is offered once more, after a try in doubt, does not go again.
            _ = try view.recall(row.message)
            try end(row, as: .ambiguous, at: now)
        }
    }

    /// A message that the relay never took waits as if it had not been offered.
    private func takeBack(_ row: OutboxRecord, at now: Instant) throws {
        announce()
        guard !row.isDamaged else { return noteDue(in: DeliveryLane(of: row.category), at: row.notBefore) }
        var row = row
        // What an earlier try may have got through cannot be called back.
        if !row.mayHaveArrived { row.attemptedAt = nil }
        row.attemptCount -= 1
        if row.mayHaveArrived { try update(row) } else { try waitAgain(row, at: now) }
    }
}

extension HopResult {
    /// How a message ended, with the status that the hop answered.
    fileprivate func outcome(of row: OutboxRecord) -> (event: HandOver, status: Int?) {
        switch self {
        // An earlier try may have got through, whatever the last one says.
        case .busy where row.mayHaveArrived, .notWritten where row.mayHaveArrived: (.ambiguous, nil)
        case .accepted(let status): (.handedOver, status)
        case .seenBefore: (.handedOver, 409)
        case .refused(let status): (.refusedByHop, status)
        case .busy(let status, _): (.expiredUnsent, status)
        case .notWritten: (.expiredUnsent, nil)
        case .ambiguous: (.ambiguous, nil)
        }
    }
}
