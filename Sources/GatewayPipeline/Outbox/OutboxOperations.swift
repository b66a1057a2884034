import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import SendPlanning
import Synchronization

/// Takes messages whose turn has come out of the queue, deciding again where that is due.
struct ClaimOperation: EngineOperation {
    let deliveryLane: DeliveryLane
    let limit: Int
    let inFlight: MessagesInFlight
    let reply: @Sendable (Result<[Delivery], EngineFailure>) -> Void

    var caller: CallerName? { nil }
    var lane: EngineLane { .security }

    /// It asks which messages are due.
    var scans: Bool { true }

    func perform(in batch: Batch) throws -> Completion {
        let now = try batch.step { try $0.now() }
        // What the relay cannot take at once is offered, so that a backlog is gone sooner than new ones make another.
        let due = try batch.dueMessages(
            of: deliveryLane, at: now, limit: limit + inFlight.room(in: deliveryLane))
        var deliveries: [Delivery] = []
        for message in due {
            guard deliveries.count < limit || batch.offerRoom(in: deliveryLane) > 0 else {
                // Messages composed before took the offers that were left: this one is claimed the next time.
                try batch.step { $0.waits(in: deliveryLane, until: now) }
                break
            }
            do {
                let offer = try batch.step(of: message) { try $0.handOver(message, at: now) }
                guard let offer else { continue }
                if deliveries.count < limit {
                    deliveries.append(offer.delivery)
                } else {
                    try batch.step { $0.offer(offer) }
                }
            } catch {
                // The store itself failing is not one message's matter.
                if let failure = error as? StoreError, failure.damage == nil { throw failure }
                // One message that cannot be handled must not hold up those behind it.
                try batch.step { try $0.putOff(message, in: deliveryLane, because: error, at: now) }
            }
        }
        return { [inFlight, reply, deliveries] _ in
            inFlight.insert(deliveries.map(\.message))
            reply(.success(deliveries))
        }
    }

    func refuse(_ failure: EngineFailure) { reply(.failure(failure)) }
}

/// What became of one message in flight, and whom to tell once that is recorded.
struct ReportedResult: Sendable {
    enum Outcome: Sendable {
        /// The hop's result, and when to try again; `nil` ends the message.
        case tried(HopResult, retryAt: Instant?)
        /// It was offered, and the relay did not take it.
        case neverTaken
    }
    let message: MessageID
    let outcome: Outcome
    /// Whether what is sealed of the message has a say in what becomes of it: not of one that the hop has.
    var needsContent: Bool {
        switch outcome {
        case .tried(.accepted, _), .tried(.seenBefore, _): false
        case .tried, .neverTaken: true
        }
    }
    let reply: @Sendable (EngineFailure?) -> Void
}

/// Results that came while others were being recorded, which are recorded together.
final class ResultGroups: Sendable {
    /// Results in one group. They share a transaction with everybody's sends.
    private static let countMax = 256

    private struct State {
        var waiting: [ReportedResult] = []
        var isRecording = false
    }
    private let state = Mutex(State())

    /// - Returns: What is to be recorded now; `nil` when it is to wait for the group before it.
    func add(_ result: ReportedResult) -> [ReportedResult]? {
        state.withLock { state in
            guard !state.isRecording else {
                state.waiting.append(result)
                return nil
            }
            state.isRecording = true
            return [result]
        }
    }

    /// - Returns: What came since the last group was begun; `nil` when nothing did.
    func next() -> [ReportedResult]? {
        state.withLock { state in
            let group = Array(state.waiting.prefix(Self.countMax))
            state.waiting.removeFirst(group.count)
            state.isRecording = !group.isEmpty
            return state.isRecording ? group : nil
        }
    }
}

/// Writes down what the next hop made of messages.
struct ReportOperation: EngineOperation {
    let results: [ReportedResult]
    let inFlight: MessagesInFlight
    /// Called at the end, whatever it was.
    let finished: @Sendable () -> Void

    var caller: CallerName? { nil }
    var lane: EngineLane { .security }

    var asks: [Ask] {
        results.map { $0.needsContent ? .message($0.message) : .messageHead($0.message) }
    }

    func perform(in batch: Batch) throws -> Completion {
        var failures = [EngineFailure?](repeating: nil, count: results.count)
        do {
            try batch.step { step in
                let now = try step.now()
                for result in results { try step.record(result, at: now) }
            }
        } catch  where results.count > 1 && !isOfTheStore(error) {
            // Each by itself: what one of them leads to must not keep the others from being recorded.
            for (index, result) in results.enumerated() {
                do {
                    try batch.step { try $0.record(result, at: $0.now()) }
                } catch  where !isOfTheStore(error) {
                    failures[index] = EngineFailure(error)
                }
            }
        }
        return { [failures, inFlight, results, finished] _ in
            inFlight.remove(zip(results, failures).filter { $1 == nil }.map(\.0.message))
            for (result, failure) in zip(results, failures) { result.reply(failure) }
            finished()
        }
    }

    /// Whether nothing else would fare better.
    private func isOfTheStore(_ error: any Error) -> Bool {
        (error as? StoreError).map { $0.damage == nil } ?? false
    }

    func refuse(_ failure: EngineFailure) {
        for result in results { result.reply(failure) }
        finished()
    }
}

extension StepContext {
    fileprivate func record(_ report: ReportedResult, at now: Instant) throws {
        let message = report.message
        // Erased or cancelled while it was under way: the entry of that says so already.
        guard var row = try report.needsContent ? view.outbox(message) : view.outboxHead(message) else {
            return
        }
        guard case .tried(let result, let retryAt) = report.outcome else { return try takeBack(row, at: now) }
        // A row that became unreadable meanwhile cannot go again; what is known of this try is its end.
        if let retryAt, retryAt < row.expiresAt, !row.isDamaged {
            // The relay's alarm has to be set anew.
            announce()
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
        try view.appendEvent(EventRecord(result.fate, of: row, at: now))
        if !result.fate.mayHaveArrived { try cameToNothing(row, at: now) }
    }

    /// Takes out a message at its turn. What may have been handed over is not said to be withdrawn.
    private func giveUp(_ row: OutboxRecord, because cause: WithdrawalCause, at now: Instant) throws {
        if row.attemptedAt == nil {
            try withdraw(row, because: cause, at: now)
        } else {
            try end(row, as: .ambiguous, at: now)
        }
    }

    /// A message that the relay never took waits as if it had not been offered.
    private func takeBack(_ row: OutboxRecord, at now: Instant) throws {
        announce()
        guard !row.isDamaged else { return waits(in: DeliveryLane(of: row.category), until: row.notBefore) }
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

/// How the hand-over of one message to the next hop ended: an event's name, and the `result` of its entry.
///
/// The hop is the company's own delivery layer. That it took a message says nothing about APNs, FCM or a carrier:
/// `accepted_by_provider` comes from a receipt only, and "delivered" does not exist, because receipts lie (S1).
package enum HandOver: String, CaseIterable, Sendable, Hashable {
    /// The hop has it: a 2xx, or a 409 because it had it already.
    case handedOver = "handed_over"
    /// The hop will never take it.
    case refusedByHop = "refused_by_hop"
    /// Its time was over before the hop took it.
    case expiredUnsent = "expired_unsent"
    /// The hop may have it: the connection broke after the request was written, and its time is over.
    case ambiguous

    var fate: SendFate {
        switch self {
        case .handedOver: .handedOver
        case .refusedByHop: .refusedByHop
        case .expiredUnsent: .expiredUnsent
        case .ambiguous: .ambiguous
        }
    }
}

extension StepContext {
    /// One message at its turn: expired, decided again, composed if it was held, and marked as tried.
    ///
    /// - Returns: `nil` when it does not go now.
    fileprivate func handOver(_ message: MessageID, at now: Instant) throws -> MessagesInFlight.Offer? {
        // Claimed with others, one of which may have taken it along into a summary or moved its time.
        guard var row = try view.outbox(message), row.notBefore <= now else { return nil }
        guard now <= row.expiresAt else {
            try giveUp(row, because: row.isDamaged ? .damaged : .expired, at: now)
            return nil
        }
        // Until it expires the key or the file that makes it readable may come back.
        guard !row.isDamaged else { throw row.damage }
        guard !row.isCancelled else {
            try giveUp(row, because: .cancelled, at: now)
            return nil
        }
        guard let subject = try view.subject(row.subject),
            let person = try RecipientSnapshot.load(subject, from: view)
        else {
            try withdraw(row, because: .erased, at: now)
            return nil
        }
        switch row.state {
        case .held:
            try composeHeld(row, person: person, at: now)
            return nil
        case .gathered:
            try summarise(row, person: person, at: now)
            return nil
        case .ready: break
        }
        // A row that was tried may be on its way already: deciding against it now could not call it back.
        let age = now.milliseconds - row.decidedAt.milliseconds
        if row.attemptedAt == nil, age > limits.decisionFreshMilliseconds {
            guard try decideAgain(row, person: person, cause: .old, at: now) else { return nil }
            row.decidedAt = now
        }
        // A device that lost its token has nothing to be handed over to, whatever became of an earlier try.
        guard let destination = person.destination(tagged: row.destination, on: row.request.channel),
            destination.fact != .inactive
        else {
            try giveUp(row, because: .destinationRemoved, at: now)
            return nil
        }
        if row.attemptedAt != nil, !row.mayHaveArrived {
            // Tried by a process that ended before it knew the result.
            row.mayHaveArrived = true
            try view.updateOutbox(row)
        }
        try view.markAttempt(row.message, at: now)
        return MessagesInFlight.Offer(
            delivery: try Self.delivery(row, to: destination, at: now),
            lane: DeliveryLane(of: row.category), tier: row.tier, caller: row.request.caller,
            // What was tried is not decided again, however long it waits.
            decidedAt: row.attemptedAt == nil ? row.decidedAt : now)
    }

    /// Looks again at one waiting row and does what the verdict says.
    ///
    /// - Returns: Whether it may go now.
    @discardableResult
    func decideAgain(
        _ row: OutboxRecord, person: RecipientSnapshot?, cause: WithdrawalCause, at now: Instant
    ) throws -> Bool {
        guard !row.isDamaged else {
            // It cannot be decided again, so it must not go under a decision that may not hold any more.
            try withdraw(row, because: .damaged, at: now)
            return false
        }
        let again = try DecidedAgain(row, person: person, batch: self, now: now)
        var row = row
        switch again.verdict {
        case .stands:
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
        case .falls:
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
    }

    /// Decides again everything that waits for a person, because something about them changed.
    ///
    /// - Parameter person: As they are after the change; `nil` once erased.
    func reconsider(
        _ subject: SubjectID, as person: RecipientSnapshot?, because cause: WithdrawalCause, at now: Instant
    ) throws {
        for row in try view.outbox(of: subject) {
            let row = try callBack(row)
            if row.attemptedAt == nil {
                try decideAgain(row, person: person, cause: cause, at: now)
            } else {
                try decideFirstThing(row)
            }
        }
    }

    /// A message that is being handed over right now: should the hop turn out not to have it, it is decided again
    /// before anything else happens to it.
    func decideFirstThing(_ row: OutboxRecord) throws {
        // One that cannot be read does not go again anyway.
        guard !row.isDamaged else { return }
        var row = row
        row.decidedAt = .longAgo
        try update(row)
    }

    /// A message whose hand-over failed before the hop had it, and whose person changed meanwhile.
    fileprivate func decideAfterFailedTry(_ row: OutboxRecord, at now: Instant) throws {
        guard let subject = try view.subject(row.subject),
            let person = try RecipientSnapshot.load(subject, from: view)
        else { return try withdraw(row, because: .erased, at: now) }
        try decideAgain(row, person: person, cause: .old, at: now)
    }

    /// Takes one row out for good, with an entry and an event.
    func withdraw(_ row: OutboxRecord, because cause: WithdrawalCause, at now: Instant) throws {
        try remove(row)
        try record(
            .unsent, at: now,
            [
                "send_id": .string(row.send.uuidText), "message_id": .string(row.message.uuidText),
                "subject": .string(row.subject.hexadecimal),
                "destination": .string(row.destination.hexadecimal), "cause": .string(cause.rawValue),
            ])
        try view.appendEvent(EventRecord(.withdrawn, of: row, at: now, reason: cause.rawValue))
        // Who erases or acknowledges has settled it; who cancels may ask again, and has nothing to be alarmed of.
        switch cause {
        case .erased, .acknowledged: break
        case .cancelled:
            if try forgetUntold(row) { try view.removeDuties(of: row.send, to: row.subject) }
        default: try cameToNothing(row, at: now)
        }
    }

    private static func delivery(
        _ row: OutboxRecord, to destination: Destination, at now: Instant
    ) throws -> Delivery {
        guard case .object(let headers) = try CanonicalJSON.read(row.headers) else {
            throw row.damaged("the headers are not an object")
        }
        guard case .object(let facts) = try CanonicalJSON.read(row.facts),
            let composedAt = try Facts(json: facts).now
        else { throw row.damaged("the recorded facts have no time") }
        return Delivery(row, to: destination, headers: headers, composedAt: composedAt, at: now)
    }
}

extension Delivery {
    /// A row of the outbox with what is known of its destination at the hand-over.
    init(
        _ row: OutboxRecord, to destination: Destination, headers: JSONObject, composedAt: Instant,
        at now: Instant
    ) {
        let token =
            switch destination {
            case .device(let device): device.token
            case .address(let address): address.value
            }
        self.init(
            message: row.message, send: row.send, destination: destination.id, channel: row.request.channel,
            platform: destination.device?.platform, app: destination.device?.app, token: token,
            headers: headers, body: row.body, expiresAt: row.expiresAt,
            statedExpiry: row.statedExpiry(composedAt: composedAt), attemptCount: row.attemptCount,
            handedOverAt: now)
    }
}

extension StepContext {
    /// How long a message that could not be handled waits before it is tried again, in seconds.
    private static let putOffSeconds: Int64 = 60
    /// The same for one that a damaged row stops: only a person can mend that, and has been told of the row.
    private static let quarantineSeconds: Int64 = 3600

    /// Lets a message wait a while, with an alarm: somebody has to look at why.
    fileprivate func putOff(
        _ message: MessageID, in lane: DeliveryLane, because error: any Error, at now: Instant
    ) throws {
        let damage = (error as? StoreError)?.damage
        // The store names the row it could not read; what it read and we cannot use is of another kind.
        let isOnDisk = damage?.row != nil
        try postpone(
            message, in: lane,
            until: timeOfNextTry(
                message, in: isOnDisk ? Self.quarantineSeconds : Self.putOffSeconds,
                because: "\(error)", at: now))
    }

    /// The same for one that is not in the store at the moment.
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

    /// What ``isDamaged`` says, as the error it is; the store has noted what exactly it found.
    fileprivate var damage: StoreError {
        .damaged(table: "outbox", row: message.hexadecimal, "the sealed content cannot be read")
    }

    /// What authenticates and cannot be used. Without a row: nothing is wrong with the file.
    func damaged(_ what: String) -> StoreError {
        .damaged(table: "outbox", "message \(message): \(what)")
    }
}

extension Instant {
    /// Before any decision: what was decided then is decided again at the first occasion.
    static let longAgo = Instant(milliseconds: 0)
}
