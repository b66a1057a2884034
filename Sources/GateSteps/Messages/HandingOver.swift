import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import GateRecords
import SendPlanning

extension StepContext {
    /// Handles one message at its turn: ends it when it has expired, decides it again where that is due, composes it
    /// if it was deferred, and marks it as tried.
    ///
    /// - Returns: `nil` when it does not go now.
    package func handOver(_ message: MessageID, at now: Instant) throws -> MessageOffer? {
        // Claimed with others, one of which may have taken it along into a summary or moved its time.
        guard let row = try memory.outbox(message), row.notBefore <= now else { return nil }
        let age = now.milliseconds - row.decidedAt.milliseconds
        let action = OutboxState(row).after(
            now <= row.expiresAt ? .turn(isFresh: age <= limits.decisionFreshMilliseconds) : .expired)
        guard action.needsRecipient else {
            try carryOut(action, on: row, at: now)
            return nil
        }
        guard let subject = try memory.subject(row.subject),
            let person = try RecipientSnapshot.load(subject, from: memory)
        else {
            try apply(.recipientMissing, to: row, at: now)
            return nil
        }
        var decidedAt = row.attemptedAt == nil ? row.decidedAt : now
        switch action {
        case .compose:
            try composeDeferred(row, person: person, at: now)
            return nil
        case .summarise:
            try summarise(row, person: person, at: now)
            return nil
        case .decide(let cause):
            guard try decideAgain(row, person: person, cause: cause, at: now) else { return nil }
            decidedAt = now
        default: break
        }
        // A device that lost its token has nothing to be handed over to, whatever became of an earlier try.
        guard let destination = person.destination(tagged: row.destination, on: row.request.channel),
            destination.fact != .inactive
        else {
            try apply(.destinationMissing, to: row, at: now)
            return nil
        }
        try apply(.given, to: row, at: now)
        return MessageOffer(
            delivery: try Self.delivery(row, to: destination, at: now),
            lane: DeliveryLane(of: row.category), tier: row.tier, caller: row.request.caller,
            // A message that was tried is not decided again for its age, however long it waits.
            decidedAt: decidedAt)
    }

    private static func delivery(
        _ row: OutboxRecord, to destination: Destination, at now: Instant
    ) throws -> Delivery {
        guard case .object = try CanonicalJSON.read(row.headers) else {
            throw row.damaged("the headers are not an object")
        }
        guard case .object(let facts) = try CanonicalJSON.read(row.facts),
            let composedAt = try Facts(json: facts).now
        else { throw row.damaged("the recorded facts have no time") }
        return Delivery(row, to: destination, composedAt: composedAt, at: now)
    }
}

extension Delivery {
    /// A row of the outbox with what is known of its destination at the hand-over.
    init(_ row: borrowing OutboxRecord, to destination: Destination, composedAt: Instant, at now: Instant) {
        let platform: Platform?
        let provider: PushProvider?
        let app: String?
        let token: String
        switch destination {
        case .device(let devices, let place):
            (platform, provider) = (devices[place].platform, devices[place].provider)
            (app, token) = (devices[place].app, devices[place].token)
        case .address(let addresses, let place):
            (platform, provider, app, token) = (nil, nil, nil, addresses[place].value)
        }
        self.init(
            message: row.message, send: row.send, destination: destination.id, channel: row.request.channel,
            platform: platform, provider: provider, app: app, token: token,
            headers: row.headers, body: row.body, expiresAt: row.expiresAt,
            statedExpiry: row.statedExpiry(composedAt: composedAt), attemptCount: row.attemptCount,
            handedOverAt: now, traceParent: row.traceParent)
    }
}

extension StepContext {
    /// How long a message that could not be handled waits before it is tried again, in seconds.
    private static let putOffSeconds: Int64 = 60
    /// The same for a message that damage stops: only an operator can repair it, and the alarm has named it.
    private static let setAsideSeconds: Int64 = 3600

    /// Moves the next try of a message, and raises an alarm with the reason.
    package func putOff(
        _ message: MessageID, in lane: DeliveryLane, because error: any Error, at now: Instant
    ) throws {
        try postpone(
            message, in: lane,
            until: timeOfNextTry(message, in: Self.putOffSeconds, because: "\(error)", at: now))
    }

    /// Raises the alarm for a message that damage stops. Nothing of the message is written: its row is what may be damaged.
    ///
    /// - Returns: When it may be tried again.
    package func setAside(_ message: MessageID, because damage: StoredDamage, at now: Instant) -> Instant {
        timeOfNextTry(message, in: Self.setAsideSeconds, because: "\(damage)", at: now)
    }

    /// The same for a row that is not in the store at the moment.
    func puttingOff(_ row: OutboxRecord, because reason: String) throws -> OutboxRecord {
        var row = row
        row.notBefore = timeOfNextTry(
            row.message, in: Self.putOffSeconds, because: reason, at: try now())
        return row
    }

    private func timeOfNextTry(
        _ message: MessageID, in seconds: Int64, because reason: String, at now: Instant
    ) -> Instant {
        alarm("message \(message) is put off for \(seconds) s: \(reason)")
        return now.advanced(bySeconds: seconds)
    }
}

extension OutboxRecord {
    /// When a message ends, as the hop is told. Counted from when the message was composed, so that every hand-over of
    /// one message says the same.
    fileprivate func statedExpiry(composedAt: Instant) -> Instant {
        guard form != .full else { return expiresAt }
        return composedAt.advanced(
            bySeconds: ExpiryClass.seconds(until: expiresAt, from: composedAt, tier: tier))
    }

    /// The error for content that authenticates and cannot be used. Names its row, which can be read and written.
    func damaged(_ what: String) -> StoreError {
        .damaged(table: "outbox", row: message.hexadecimal, what)
    }
}

/// How the hand-over of one message to the next hop ended: an event's name, and the `result` of its entry.
///
/// The hop is the courier or the company's own delivery layer. That it took a message says nothing about APNs, FCM or a carrier:
/// what a provider said is a receipt, and "delivered" does not exist, because receipts lie (S1).
package enum HandOver: String, CaseIterable, Sendable, Hashable {
    /// The hop has it, or had it already.
    case handedOver = "handed_over"
    /// The hop will never take it.
    case refusedByHop = "refused_by_hop"
    /// The hop did not take it, and no time was left for another try.
    case expiredUnsent = "expired_unsent"
    /// The hop may have it: the connection broke after the request was written. It is not tried again; the entry's `cause`
    /// says why.
    case ambiguous
}
