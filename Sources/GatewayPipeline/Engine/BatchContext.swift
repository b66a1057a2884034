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
    /// Which operation staged what, so that a failed seal refuses the right one.
    var currentOperation = 0
    private var nextIndex: UInt64
    private var knownFreeByteCount: Int64?
    private var newestTime: Instant?
    private let newestClock: ClockReading?
    /// What the clocks showed for the newest entry of this batch.
    private var newReading: ClockReading?

    init(store: any StoreTransaction, policy: CompiledPolicy, surroundings: EngineSurroundings) throws {
        self.store = store
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

    /// Puts a message in the outbox. When it must be sealed, sealing starts now on another thread and the
    /// row is written, with its body, before the commit.
    ///
    /// - Parameter waiting: The row it takes the place of.
    package func enqueue(
        _ record: OutboxRecord, sealing order: SealerPool.Ticket?, insteadOf waiting: OutboxRecord? = nil,
        fill: BodyFilling?
    ) throws {
        guard let order, let fill else {
            try store.insertOutbox(record)
            return
        }
        staged.append(
            StagedMessage(
                operation: currentOperation, record: record, ticket: order, fill: fill, waiting: waiting))
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
            try store.insertOutbox(record)
        }
    }

    /// Runs one operation so that a throw undoes its rows, its entries and its staged messages, and nothing else.
    func isolating<Result>(_ body: () throws -> Result) throws -> Result {
        let (index, time, reading, count) = (nextIndex, newestTime, newReading, staged.count)
        let (told, news, proves) = (alarms, hasNews, provesTheWay)
        do {
            return try store.savepoint(body)
        } catch {
            nextIndex = index
            (newestTime, newReading) = (time, reading)
            staged.removeSubrange(count...)
            (alarms, hasNews, provesTheWay) = (told, news, proves)
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
    var ticket: SealerPool.Ticket
    var fill: BodyFilling
    /// Comes back when sealing fails: it was promised already and is not the caller's to ask for again.
    var waiting: OutboxRecord?
}
