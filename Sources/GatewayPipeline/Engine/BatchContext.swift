import OpenSSLCrypto
import AuditTrail
import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary
package import WireProtocol

/// What an operation works with: the open transaction, the policy in force, the time, and a place for
/// what it wants recorded and sent.
///
/// Confined to the engine's thread; it lives exactly as long as one batch.
package final class BatchContext {
    package let store: any StoreTransaction
    package let policy: CompiledPolicy
    package let surroundings: EngineSurroundings
    /// Messages whose body is being sealed; inserted before the commit.
    private(set) var staged: [StagedMessage] = []
    private let inFlight: MessagesInFlight
    /// Messages of this batch that go to the relay from memory once it is durable.
    private(set) var offers: [MessagesInFlight.Offer] = []
    /// Offers of earlier batches that this one took back.
    private var calledBack: [MessagesInFlight.Offer] = []
    /// At or before the time of the next row to claim in each lane; a lane that is missing has none.
    var due: [DeliveryLane: Instant]
    /// Which operation staged what, so that a failed seal refuses the right one.
    var currentOperation = 0
    private var nextIndex: UInt64
    private var knownFreeByteCount: Int64?
    private var newestTime: Instant?
    private let newestClock: ClockReading?
    /// What the clocks showed for the newest entry of this batch.
    private var newReading: ClockReading?

    init(
        store: any StoreTransaction, policy: CompiledPolicy, surroundings: EngineSurroundings,
        inFlight: MessagesInFlight
    ) throws {
        self.store = store
        self.inFlight = inFlight
        due = inFlight.due
        self.policy = policy
        self.surroundings = surroundings
        self.nextIndex = try store.entryCount()
        self.newestTime = try store.newestEntryTime()
        self.newestClock = try store.newestEntryClock()
    }

    /// The time for one operation's facts. Never before the newest entry.
    ///
    /// - Throws: What ``ClockGuard/time(_:after:recordedAt:)`` throws.
    package func now() throws -> Instant {
        let reading = surroundings.clock.reading()
        let time = try ClockGuard(limits: surroundings.limits).time(
            reading, after: newestTime, recordedAt: newReading ?? newestClock)
        lastReading = reading
        return time
    }
    private var lastReading: ClockReading?

    /// The index the next recorded entry will have.
    package var upcomingIndex: UInt64 { nextIndex }

    /// Whether somebody waits for what this batch did: the publisher for entries, the relay for work. A batch
    /// that only looked, or only marked how far others are, must wake nobody, or an idle gateway would turn
    /// round and round.
    private(set) var hasNews = false
    /// Whether the commit of this batch shows that a send could be committed.
    private(set) var provesTheWay = false

    /// What somebody must look at; told once the batch is durable.
    var alarms: [String] = []

    /// Says that there is something for the publisher or the relay to do.
    func announce() { hasNews = true }

    func provedTheWay() { provesTheWay = true }

    /// Bytes left on the disk; asked once per batch.
    func freeByteCount() throws -> Int64 {
        if let known = knownFreeByteCount { return known }
        let free = try surroundings.freeDiskByteCount()
        knownFreeByteCount = free
        return free
    }

    /// Writes one entry; its index is final as soon as the batch commits.
    ///
    /// - Parameter encode: Gives the canonical bytes for an index and a time.
    @discardableResult
    package func record(
        at time: Instant, _ encode: (_ index: UInt64, _ time: Instant) throws -> [UInt8]
    ) throws -> TrailReference {
        let bytes = try encode(nextIndex, time)
        let leaf = TreeHash.leaf(bytes)
        try store.appendEntry(StoredEntry(index: nextIndex, time: time, bytes: bytes, leaf: leaf.bytes))
        let reference = TrailReference(origin: surroundings.trailOrigin, index: nextIndex, leaf: leaf.bytes)
        nextIndex += 1
        hasNews = true
        provesTheWay = true
        newestTime = time
        newReading = lastReading
        return reference
    }

    /// Puts a message in the outbox, whose row is written, with its body, before the commit.
    ///
    /// - Parameters:
    ///   - delivery: What the relay would be given, without the body; `nil` for one that cannot go now.
    ///   - order: The envelope that another thread seals meanwhile, and how it becomes the body.
    ///   - waiting: The row it takes the place of.
    func enqueue(
        _ record: OutboxRecord, delivery: Delivery?,
        sealing order: (ticket: SealerPool.Ticket, fill: BodyFilling)?,
        insteadOf waiting: OutboxRecord? = nil
    ) throws {
        guard let order else { return try insert(record, offering: delivery) }
        staged.append(
            StagedMessage(
                operation: currentOperation, record: record, delivery: delivery, ticket: order.ticket,
                fill: order.fill, waiting: waiting))
    }

    /// Writes a new row. What can go at once, and is not behind others, goes to the relay from memory: its row is born
    /// as one that was tried.
    func insert(_ record: OutboxRecord, offering delivery: Delivery?) throws {
        let lane = DeliveryLane(of: record.category)
        // None goes past one that waits its turn.
        let isNext = due[lane].map { $0 > record.decidedAt } ?? true
        guard var delivery, isNext, inFlight.room(in: lane) > offers.count(where: { $0.lane == lane }) else {
            waits(in: lane, until: record.notBefore)
            return try store.insertOutbox(record)
        }
        var record = record
        record.attemptCount = 1
        record.attemptedAt = record.decidedAt
        try store.insertOutbox(record)
        delivery.body = record.body
        offers.append(
            MessagesInFlight.Offer(
                delivery: delivery, lane: lane, tier: record.tier, caller: record.request.caller,
                decidedAt: record.decidedAt))
    }

    /// Offers claimed messages that the relay has no room for yet.
    func offer(_ claimed: some Sequence<MessagesInFlight.Offer>) { offers.append(contentsOf: claimed) }

    /// Replaces a row that goes on waiting.
    func update(_ row: OutboxRecord) throws {
        try store.updateOutbox(row)
        waits(in: DeliveryLane(of: row.category), until: row.notBefore)
    }

    /// Moves a row's time without reading it.
    func postpone(_ message: MessageID, in lane: DeliveryLane, until: Instant) throws {
        try store.postponeOutbox(message, until: until)
        waits(in: lane, until: until)
    }

    func waits(in lane: DeliveryLane, until: Instant) { due[lane] = min(due[lane] ?? until, until) }

    /// A waiting row as it may be decided about: one that was offered, and that the relay has not taken yet, waits in the
    /// store again.
    func callBack(_ row: OutboxRecord) throws -> OutboxRecord {
        guard row.attemptedAt != nil, !row.mayHaveArrived, takeBackOffer(of: row.message) else { return row }
        var row = row
        row.attemptedAt = nil
        row.attemptCount = 0
        // One that cannot be read can only be withdrawn, which needs no more than its id.
        if !row.isDamaged { try update(row) }
        return row
    }

    /// - Returns: Whether it was offered. Whatever was, and is not taken yet, never goes from memory any more.
    private func takeBackOffer(of message: MessageID) -> Bool {
        if let index = offers.firstIndex(where: { $0.delivery.message == message }) {
            offers.remove(at: index)
            return true
        }
        guard let offer = inFlight.callBack(message) else { return false }
        calledBack.append(offer)
        return true
    }

    /// Takes a row out for good. One that is offered does not go either.
    func remove(_ message: MessageID) throws {
        _ = takeBackOffer(of: message)
        try store.removeOutbox(message)
    }

    /// After the commit: the relay may take what this batch offers.
    func release() {
        inFlight.remove(calledBack.map(\.delivery.message))
        inFlight.due = due
        inFlight.add(offers)
    }

    /// Instead of the commit: nothing of this batch happened.
    func abandon() {
        inFlight.add(calledBack)
        calledBack = []
    }

    /// Puts beside the newest entry what the clocks showed for it. Call once, when the batch is complete.
    func finish() throws {
        if let newReading { try store.setNewestEntryClock(newReading) }
    }

    /// What has been staged and is not in the store yet; the caller puts it there.
    func takeStaged() -> [StagedMessage] {
        defer { staged.removeAll(keepingCapacity: true) }
        return staged
    }

    /// Waits for the seals of what was staged after the first `count` messages and puts it into the store.
    ///
    /// - Throws: What the seal of one of them failed with. Call it inside ``isolating(_:)``, which undoes what led to it.
    func insertStaged(after count: Int) throws {
        let own = staged[count...]
        staged.removeSubrange(count...)
        for message in own {
            var record = message.record
            record.body = try message.fill(message.ticket.wait())
            try insert(record, offering: message.delivery)
        }
    }

    /// Runs one operation so that a throw undoes its rows, its entries and its staged messages, and nothing else.
    func isolating<Result>(_ body: () throws -> Result) throws -> Result {
        let (index, time, reading, count) = (nextIndex, newestTime, newReading, staged.count)
        let (told, news, proves) = (alarms, hasNews, provesTheWay)
        let (offered, taken, dueBefore) = (offers, calledBack.count, due)
        do {
            return try store.savepoint(body)
        } catch {
            nextIndex = index
            (newestTime, newReading) = (time, reading)
            staged.removeSubrange(count...)
            (alarms, hasNews, provesTheWay) = (told, news, proves)
            offers = offered
            inFlight.add(Array(calledBack[taken...]))
            calledBack.removeSubrange(taken...)
            due = dueBefore
            throw error
        }
    }
}

/// Puts the envelope into the provider's body; asserts the predicted length.
package typealias BodyFilling = (_ envelope: [UInt8]) throws -> [UInt8]

/// A message that waits for its envelope.
struct StagedMessage {
    var operation: Int
    var record: OutboxRecord
    /// What the relay would be given, without the body.
    var delivery: Delivery?
    var ticket: SealerPool.Ticket
    var fill: BodyFilling
    /// Comes back when sealing fails: it was promised already and is not the caller's to ask for again.
    var waiting: OutboxRecord?
}
