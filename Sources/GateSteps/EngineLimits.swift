/// How much the engine takes on at once. Every figure is a bound, not a target.
package struct EngineLimits: Sendable, Hashable {
    /// Operations in one transaction. 256 is where the measured cost of a durable append stops falling
    /// (SQLite WAL, synchronous=FULL, 400 B rows: 450 k/s at 256 a transaction, 150 k/s at 64).
    package var batchOperationCountMax = 256
    /// People whom the engine keeps in memory from one batch to the next; see ``RecentPeople``.
    package var recentPersonCountMax = 24_576
    /// Operations waiting, all callers together.
    package var queuedOperationCountMax = 8192
    /// Operations of one caller waiting.
    package var queuedOperationCountPerCallerMax = 4096
    /// Part of the queue, the outbox and the disk headroom that only the `security` category may use, in percent.
    package var securitySharePercent = 10
    /// Messages waiting to be handed over, all callers together.
    package var outboxRowCountMax = 200_000
    /// Messages of one caller waiting.
    package var outboxRowCountPerCallerMax = 100_000
    /// Messages waiting for one person, the security category's share on top. When that person changes their mind,
    /// all of them are decided again in one transaction, so this bounds how long other operations wait for it.
    package var outboxRowCountPerPersonMax = 10_000
    /// Bytes of bodies waiting.
    package var outboxByteCountMax: Int64 = 1 << 30
    /// Free disk below which sends are refused with 503 before the disk is full; security may use its share of it.
    package var freeDiskByteCountMin: Int64 = 64 << 20
    /// How far the clock may step back before sends are refused, in milliseconds (entry time never decreases).
    package var clockStepBackMillisecondsMax: Int64 = 2000
    /// How far the clock may run ahead of the time since boot between two entries before sends are refused, in
    /// milliseconds: what an entry too early would cost in refusals once the clock is set right.
    package var clockStepForwardMillisecondsMax: Int64 = 60_000
    /// How long after the newest entry a machine that was booted since may go on without an operator's word, in
    /// milliseconds: seven days, a long holiday.
    package var clockGapMillisecondsMax: Int64 = 7 * 86_400_000
    /// How long after its decision an unsent message is decided again at its turn, in milliseconds.
    package var decisionFreshMilliseconds: Int64 = 60_000
    /// Idempotency keys, events and counters are kept this long, in milliseconds: 35 days, over the 31 promised.
    package var retentionMilliseconds: Int64 = 35 * 86_400_000
    /// Age of the oldest unpublished entry above which sends are refused, in milliseconds.
    package var publishLagMillisecondsMax: Int64 = 30_000

    package init() {}

    /// How much of a bound may be used: all of it for the security category, and for the others what its share leaves,
    /// rounded down, so that the share is never less than its percentage.
    package func part<Count: BinaryInteger>(of bound: Count, isSecurity: Bool) -> Count {
        isSecurity ? bound : bound * Count(100 - securitySharePercent) / 100
    }
}
