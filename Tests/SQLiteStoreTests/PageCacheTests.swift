import CSQLite
import Foundation
import Testing

/// What SQLite asks of its cache of pages, counted between SQLite and the cache.
private enum PageCacheCalls {
    // nonisolated(unsafe) is sound because each test has a process of its own, with one connection on one thread.
    nonisolated(unsafe) private static var own = sqlite3_pcache_methods2()
    /// The numbers that pages were given in place of others.
    nonisolated(unsafe) static var numbers: Set<UInt32> = []
    nonisolated(unsafe) static var truncationCount = 0

    /// Before the process opens its first connection.
    static func count() throws {
        try #require(sendgate_get_page_cache(&own) == SQLITE_OK)
        var methods = own
        methods.xRekey = { cache, page, from, to in
            PageCacheCalls.numbers.insert(to)
            PageCacheCalls.own.xRekey(cache, page, from, to)
        }
        methods.xTruncate = { cache, firstNumber in
            PageCacheCalls.truncationCount += 1
            PageCacheCalls.own.xTruncate(cache, firstNumber)
        }
        try #require(sendgate_set_page_cache(&methods) == SQLITE_OK)
    }

    /// Fills an index in an order that splits its pages nearly everywhere, then commits ten rows one by one.
    ///
    /// - Returns: How often the cache was to drop pages for these ten.
    static func fillIndex() throws -> Int {
        let path = NSTemporaryDirectory() + "page-cache-\(UUID().uuidString)"
        defer { for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) } }
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        try #require(sqlite3_open(path, &database) == SQLITE_OK)
        func run(_ sql: String) throws {
            try #require(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
        }
        try run("PRAGMA page_size = \(SENDGATE_PAGE_BYTE_COUNT)")
        try run("PRAGMA journal_mode = wal")
        try run("CREATE TABLE entry (key INTEGER PRIMARY KEY, padding BLOB) WITHOUT ROWID")
        // The multiplier scatters the keys (Knuth, The Art of Computer Programming, volume 3, section 6.4).
        try run(
            """
            WITH RECURSIVE number (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM number WHERE value < 5000)
            INSERT INTO entry SELECT value * 2654435761 % 4294967296, zeroblob(16) FROM number
            """)
        let before = truncationCount
        for number in 1...10 { try run("INSERT INTO entry VALUES (-\(number), x'')") }
        return truncationCount - before
    }
}

/// SG-0062. SQLite can be configured in a process that has not used it yet, so each test has its own.
@Suite struct PageCacheTests {
    /// When this fails, SQLite does without the detour: `sendgate_page_cache_rekey` and SG-0062 can go.
    @Test func `SQLite by itself gives a page of its cache the number of the lock-byte page`() async {
        await #expect(processExitsWith: .success) {
            try PageCacheCalls.count()
            let truncationCount = try PageCacheCalls.fillIndex()
            #expect(PageCacheCalls.numbers.contains(SENDGATE_LOCK_BYTE_PAGE))
            // The cache compares that number with the end of the file at every commit.
            #expect(truncationCount >= 10)
        }
    }

    @Test func `no page of the configured cache gets the number of the lock-byte page`() async {
        await #expect(processExitsWith: .success) {
            try PageCacheCalls.count()
            try #require(sendgate_configure_process() == SQLITE_OK)
            _ = try PageCacheCalls.fillIndex()
            #expect(!PageCacheCalls.numbers.contains(SENDGATE_LOCK_BYTE_PAGE))
            #expect(PageCacheCalls.numbers.contains(0))
        }
    }
}
