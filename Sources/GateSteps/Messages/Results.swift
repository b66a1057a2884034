import BundleModel
import CompliancePolicy
package import GateVocabulary
import GateRecords
import SendPlanning
import WireProtocol

/// How a try to hand over one message ended.
package enum MessageOutcome: Sendable {
    /// The hop's result, and when to try again; `nil` ends the message.
    case tried(HopResult, retryAt: Instant?)
    /// The message was offered, and the relay did not take it.
    case neverTaken

    /// Whether the message must not go again: the hop has it, or may have it and cannot tell a repeat.
    package var forbidsRepeat: Bool {
        switch self {
        case .tried(.accepted, _), .tried(.seenBefore, _), .tried(.ambiguous(_, mayRepeat: false), _): true
        case .tried, .neverTaken: false
        }
    }

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
    /// Keeps a message from going again until it expires, also in another process, where the hop has it and that cannot be recorded.
    package func holdBack(_ message: MessageID) throws {
        guard let row = try memory.outboxHead(message), row.notBefore != row.expiresAt else { return }
        memory.postponeOutbox(message, until: row.expiresAt)
    }

    /// Records how a try to hand over one message ended.
    package func record(_ outcome: MessageOutcome, of message: MessageID, at now: Instant) throws {
        // Erased or cancelled while it was under way: the entry of that says so already, and what is gone answers every
        // event with nothing.
        guard var row = try outcome.needsContent ? memory.outbox(message) : memory.outboxHead(message) else {
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
                if let receipt = result.receipt { try recordAnswer(receipt, of: row, at: now) }
                return
            }
            // The relay's alarm has to be set anew.
            announce()
            observe(.retried(obstacle, channel: row.request.channel, tier: row.tier))
            row.notBefore = retryAt
            try advance(row, by: .failed(obstacle, mayRetry: true), doubt: result.doubt, at: now)
        }
    }

    /// Records what the provider answered through the hop, with the end of the message in one commit.
    ///
    /// The time of the receipt is that of the answer: since when a token is gone may lie before the send.
    private func recordAnswer(_ receipt: HopResult.Receipt, of row: OutboxRecord, at now: Instant) throws {
        let kind = receipt.event.eventKind
        let trail = try record(
            ReceiptEntry(
                send: row.send, destination: row.destination, event: Code(receipt.event), at: now,
                caller: .gateway, subject: row.subject, channel: Code(row.request.channel),
                category: Code(row.category)), at: now)
        observe(.receipt(kind, category: row.category, channel: row.request.channel))
        memory.appendEvent(
            EventRecord(
                caller: row.request.caller, send: row.send, subject: row.subject, event: kind,
                destination: row.destination, at: now, reason: receipt.reason, entryIndex: trail.index))
        guard receipt.event == .tokenGone else { return }
        try deactivateDevice(
            row.destination, of: row.subject, seenBy: min(receipt.at ?? now, row.attemptedAt ?? now),
            by: .gateway, at: now)
    }

    /// Takes a message that may go again through an event. If the hop does not have it, it is in the store alone by then.
    private func advance(
        _ row: OutboxRecord, by event: OutboxEvent, doubt: String = "interrupted", at now: Instant
    ) throws {
        var row = row
        let action = OutboxState(row).after(event)
        switch action {
        case .decide(let cause):
            try keep(&row, in: .waiting)
            guard let subject = try memory.subject(row.subject),
                let person = try RecipientSnapshot.load(subject, from: memory)
            else {
                try apply(.recipientMissing, to: row, at: now)
                return
            }
            try decideAgain(row, person: person, cause: cause, at: now)
        case .withdraw:
            // The relay has finished with the message, so there is no offer to take back.
            row.move(to: .waiting)
            try carryOut(action, on: row, at: now)
        default: try carryOut(action, on: row, doubt: doubt, at: now)
        }
    }

    /// Ends a message that the hop may have. A message that is offered once more after a try in doubt is recalled, so that it
    /// does not go again.
    func giveUp(_ row: OutboxRecord, because why: MessageEnd.Why, at now: Instant) throws {
        _ = try memory.recall(row.message)
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
        memory.removeOutbox(row.message)
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
        memory.appendEvent(EventRecord(end, of: row, at: now))
        if !end.kind.mayHaveArrived { try cameToNothing(row, at: now) }
    }
}

extension HopResult {
    /// What it means for a message that is not tried again, with the status that the hop answered.
    fileprivate var ending: (event: OutboxEvent, status: Int?) {
        switch self {
        case .accepted(let status, _): (.taken, status)
        case .seenBefore: (.taken, 409)
        case .refused(let status, _), .tokenGone(let status, _, _): (.refused, status)
        case .busy(let status, _, _, _): (.failed(.busy, mayRetry: false), status)
        case .misconfigured(let status, _): (.failed(.misconfigured, mayRetry: false), status)
        case .notWritten: (.failed(.notWritten, mayRetry: false), nil)
        case .ambiguous(_, mayRepeat: true): (.failed(.ambiguous, mayRetry: false), nil)
        case .ambiguous(_, mayRepeat: false): (.unrepeatable, nil)
        }
    }

    /// Why it is not known whether the hop has the message.
    fileprivate var doubt: String {
        if case .ambiguous(let reason, _) = self { reason } else { "interrupted" }
    }

    /// What a receipt of the provider would say.
    fileprivate struct Receipt {
        var event: ReceiptBody.Event
        var reason: String?
        /// The provider's time.
        var at: Instant?
    }

    /// What the answer tells of the provider; `nil` where it tells of the hop alone.
    fileprivate var receipt: Receipt? {
        switch self {
        case .accepted(_, byProvider: true): Receipt(event: .acceptedByProvider)
        case .refused(_, let reason?): Receipt(event: .failed, reason: reason)
        case .tokenGone(_, let reason, let at): Receipt(event: .tokenGone, reason: reason, at: at)
        case .accepted, .seenBefore, .refused, .busy, .misconfigured, .notWritten, .ambiguous: nil
        }
    }
}
