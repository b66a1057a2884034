import AuditTrail
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
        // Erased or cancelled while it was under way: the entry of that says so already, and what is gone answers every
        // event with nothing.
        guard var row = try outcome.needsContent ? view.outbox(message) : view.outboxHead(message) else {
            return
        }
        switch outcome {
        case .neverTaken:
            row.attemptCount -= 1
            announce()
            try advance(row, by: .neverTaken, at: now)
        case .tried(let result, let retryAt):
            guard let obstacle = result.obstacle, let retryAt, retryAt < row.expiresAt else {
                let (event, status) = result.ending
                try apply(event, to: row, status: status, at: now)
                return
            }
            // The relay's alarm has to be set anew.
            announce()
            observe(.retried(obstacle, channel: row.request.channel, tier: row.tier))
            row.notBefore = retryAt
            try advance(row, by: .failed(obstacle, mayRetry: true), at: now)
        }
    }

    /// Takes a message that may go again through an event. If the hop does not have it, it is in the store alone by then.
    private func advance(_ row: OutboxRecord, by event: OutboxEvent, at now: Instant) throws {
        var row = row
        let action = OutboxState(row).after(event)
        switch action {
        case .decide(let cause):
            try keep(&row, in: .waiting)
            guard let subject = try view.subject(row.subject),
                let person = try RecipientSnapshot.load(subject, from: view)
            else {
                try apply(.recipientMissing, to: row, at: now)
                return
            }
            try decideAgain(row, person: person, cause: cause, at: now)
        case .withdraw:
            // The relay has finished with the message, so there is no offer to take back.
            row.move(to: .waiting)
            try carryOut(action, on: row, at: now)
        default: try carryOut(action, on: row, at: now)
        }
    }

    /// Ends a message that the hop may have. A message that is offered once more after a try in doubt is recalled, so that it
    /// does not go again.
    func giveUp(_ row: OutboxRecord, because why: MessageEnd.Why, at now: Instant) throws {
        _ = try view.recall(row.message)
        try end(row, as: .ambiguous, because: why, at: now)
    }

    /// Ends a message that was handed over, or may have been.
    ///
    /// - Parameter status: What the hop answered; `nil` where an earlier try may have got through, of which the last status
    ///   says nothing.
    func end(
        _ row: OutboxRecord, as result: HandOver, because why: MessageEnd.Why? = nil, status: Int? = nil,
        at now: Instant
    ) throws {
        try view.removeOutbox(row.message)
        try record(
            DeliveryEntry(
                send: row.send, message: row.message, subject: row.subject, destination: row.destination,
                result: Code(result), status: status, attempts: row.attemptCount,
                cause: why.map { Code($0.code) }), at: now)
        observe(
            .ended(
                result, channel: row.request.channel, category: row.category, tier: row.tier,
                waitedMilliseconds: result == .handedOver ? row.waitedMilliseconds(until: now) : nil))
        let end = MessageEnd.tried(result, why: why)
        try view.appendEvent(EventRecord(end, of: row, at: now))
        if !end.kind.mayHaveArrived { try cameToNothing(row, at: now) }
    }
}

extension HopResult {
    /// What it means for a message that is not tried again, with the status that the hop answered.
    fileprivate var ending: (event: OutboxEvent, status: Int?) {
        switch self {
        case .accepted(let status): (.taken, status)
        case .seenBefore: (.taken, 409)
        case .refused(let status): (.refused, status)
        case .busy(let status, _): (.failed(.busy, mayRetry: false), status)
        case .notWritten: (.failed(.notWritten, mayRetry: false), nil)
        case .ambiguous: (.failed(.ambiguous, mayRetry: false), nil)
        }
    }
}
