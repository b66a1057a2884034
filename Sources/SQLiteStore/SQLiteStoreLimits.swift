/// The bounds of one store. Counts of bytes are plain bytes.
package struct SQLiteStoreLimits: Hashable, Sendable {
    /// Connections that serve `read` at once; a further caller waits for one to come free.
    package var readerCount: Int
    /// What `gate.db` may grow to; beyond it a write is refused as on a full disk.
    package var gateByteCountMax: Int64
    /// SQLite's own page cache of the writing connection. Everything else is left to the kernel's cache.
    package var writerCacheByteCount: Int
    /// The same for each connection that serves `read`, and for each to `subjects.db`.
    package var readerCacheByteCount: Int
    /// Size of the write-ahead log at which a commit also moves it into the database.
    ///
    /// Measured with 1 M people: a page is written many times to the log before it moves once, so a longer
    /// log costs less in all and makes the single checkpoint longer.
    package var logByteCountBeforeCheckpoint: Int
    /// How long a checkpoint waits for readers of an older snapshot, in milliseconds.
    package var busyTimeoutMilliseconds: Int
    /// People whose number the writer keeps, 48 bytes each; 0 keeps none.
    package var personNumberCountMax: Int
    /// Rows that one transaction rewrites at most when an older directory is brought up to date.
    package var migratedRowCountMax: Int
    /// Rows that one call of `prune` deletes at most; call again until it returns 0.
    package var prunedRowCountMax: Int

    package init(
        readerCount: Int = 4, gateByteCountMax: Int64 = 1 << 40, writerCacheByteCount: Int = 64 << 20,
        readerCacheByteCount: Int = 8 << 20, logByteCountBeforeCheckpoint: Int = 32 << 20,
        busyTimeoutMilliseconds: Int = 5_000, personNumberCountMax: Int = 24_576,
        migratedRowCountMax: Int = 2_000, prunedRowCountMax: Int = 10_000
    ) {
        precondition(readerCount >= 1 && personNumberCountMax >= 0 && prunedRowCountMax >= 1)
        precondition(migratedRowCountMax >= 1)
        self.migratedRowCountMax = migratedRowCountMax
        self.readerCount = readerCount
        self.gateByteCountMax = gateByteCountMax
        self.writerCacheByteCount = writerCacheByteCount
        self.readerCacheByteCount = readerCacheByteCount
        self.logByteCountBeforeCheckpoint = logByteCountBeforeCheckpoint
        self.busyTimeoutMilliseconds = busyTimeoutMilliseconds
        self.personNumberCountMax = personNumberCountMax
        self.prunedRowCountMax = prunedRowCountMax
    }
}
