import GRDB
import GRDBSQLite
import GatewayPipeline

/// One connection to one database file, with its compiled statements.
final class Connection: @unchecked Sendable {
    // @unchecked is sound because everything mutable is touched only inside `queue`, which runs one closure
    // at a time: `exclusively` is the way in, and every method but `close` requires that the caller is there.

    enum Role {
        case writer(byteCountMax: Int64?)
        case reader
    }

    /// The file's name in error messages, without its folder.
    let file: String
    private let queue: DatabaseQueue
    private let database: Database
    private let handle: SQLiteConnection
    private var prepared: [ObjectIdentifier: Statement] = [:]
    private var isClosed = false
    private var isInTransaction = false
    /// SQLite rolled a transaction back by itself (it may on a full disk or an I/O error). What is left of
    /// the body would then be written without a transaction, so every further statement is refused.
    private var lostTransaction = false
    /// Pages in the write-ahead log after the newest commit; written by SQLite's hook.
    private let logPageCount: UnsafeMutablePointer<Int32>
    let pageByteCount: Int

    /// - Throws: `StoreError` or ``StoreOpeningError``.
    init(path: String, file: String, role: Role, cacheByteCount: Int, busyTimeoutMilliseconds: Int) throws {
        self.file = file
        var configuration = Configuration()
        if case .reader = role { configuration.readonly = true }
        // Erasure has its own order (see `GateTransaction.eraseSubject`), so no table relies on cascades.
        configuration.foreignKeysEnabled = false
        configuration.busyMode = .timeout(Double(busyTimeoutMilliseconds) / 1000)
        // Transactions of `subjects.db` span several calls; the store closes each before it returns.
        configuration.allowsUnsafeTransactions = true
        configuration.label = "sendgate.\(file)"
        let queue = try StoreFailure.translating(file: file) {
            try DatabaseQueue(path: path, configuration: configuration)
        }
        self.queue = queue
        let (database, handle, pageByteCount) = try queue.inDatabase { database in
            try Self.configure(database, file: file, role: role, cacheByteCount: cacheByteCount)
            let pageByteCount = try Self.read("page_size", of: database, file: file)
            return (database, database.sqliteConnection!, Int(pageByteCount) ?? 4096)
        }
        self.database = database
        self.handle = handle
        self.pageByteCount = pageByteCount
        logPageCount = .allocate(capacity: 1)
        logPageCount.initialize(to: 0)
        if case .writer = role {
            // Replaces SQLite's own checkpointing, which ignores its errors: a failed fsync of the database
            // must be seen (see `moveLog`).
            sqlite3_wal_hook(
                handle,
                { context, _, _, pageCount in
                    context?.assumingMemoryBound(to: Int32.self).pointee = pageCount
                    return SQLITE_OK
                }, logPageCount)
        }
    }

    deinit {
        close()
        logPageCount.deallocate()
    }

    /// Waits for what is under way and closes the file; using the connection afterwards throws.
    func close() {
        queue.inDatabase { _ in
            guard !isClosed else { return }
            isClosed = true
            prepared = [:]
            _ = sqlite3_wal_hook(handle, nil, nil)
        }
        // A failure leaves a descriptor open that nobody uses; there is nothing to do about it at the end.
        try? queue.close()
    }

    /// Sets what must hold on this connection, and reads it back.
    private static func configure(
        _ database: Database, file: String, role: Role, cacheByteCount: Int
    ) throws {
        func set(_ setting: String, _ value: String, expecting expected: String? = nil) throws {
            try StoreFailure.translating(file: file) {
                try database.execute(sql: "PRAGMA \(setting) = \(value)")
            }
            let found = try read(setting, of: database, file: file)
            guard found == expected ?? value else {
                throw StoreOpeningError.settingRefused(
                    file: file, setting: setting, wanted: expected ?? value, found: found)
            }
        }
        // A schema from outside may not run functions with side effects (sqlite.org/pragma.html#pragma_trusted_schema).
        try set("trusted_schema", "0")
        // Sorting and statement journals hold rows; they must not reach a temporary folder.
        try set("temp_store", "2")
        try set("cache_size", "-\(max(cacheByteCount / 1024, 1))")
        guard case .writer(let byteCountMax) = role else { return }
        try set("journal_mode", "wal")
        // After the journal mode, because libraries change it along with that; 2 is FULL: every commit is
        // synchronized before it returns.
        try set("synchronous", "2")
        try set("secure_delete", "1")
        // Gives the disk back after a burst once the log has been moved.
        try set("journal_size_limit", "67108864")
        if let byteCountMax {
            let pageByteCount = Int64(try read("page_size", of: database, file: file)) ?? 4096
            // SQLite keeps at least the pages the file already has, so the answer may be larger.
            try StoreFailure.translating(file: file) {
                try database.execute(sql: "PRAGMA max_page_count = \(max(byteCountMax / pageByteCount, 1))")
            }
        }
    }

    private static func read(_ setting: String, of database: Database, file: String) throws -> String {
        try StoreFailure.translating(file: file) {
            try String.fetchOne(database, sql: "PRAGMA \(setting)") ?? ""
        }
    }

    // MARK: Access

    /// Runs `body` while nobody else uses this connection. Not reentrant.
    func exclusively<Result>(_ body: () throws -> Result) rethrows -> Result {
        try queue.inDatabase { _ in try body() }
    }

    /// One value of a pragma, or of a statement with one column.
    func pragma(_ text: String) throws -> String {
        guard !isClosed else { throw StoreError.unavailable("`\(file)` is closed") }
        return try StoreFailure.translating(file: file) { try String.fetchOne(database, sql: text) ?? "" }
    }

    /// Statements that run once, such as the schema's.
    func script(_ sql: String) throws {
        try StoreFailure.translating(file: file) { try database.execute(sql: sql) }
    }

    // MARK: Transactions

    private static let beginReading = StatementText("transaction", "BEGIN DEFERRED")
    private static let beginWriting = StatementText("transaction", "BEGIN IMMEDIATE")
    private static let commitText = StatementText("transaction", "COMMIT")
    private static let rollbackText = StatementText("transaction", "ROLLBACK")
    private static let savepointText = StatementText("transaction", "SAVEPOINT item")
    private static let releaseText = StatementText("transaction", "RELEASE item")
    private static let rollbackToText = StatementText("transaction", "ROLLBACK TO item")

    func begin(writing: Bool) throws {
        lostTransaction = false
        try change(writing ? Self.beginWriting : Self.beginReading)
        isInTransaction = true
    }

    /// When this throws `StoreError.unavailable`, nothing was committed and the transaction is over.
    func commit() throws {
        do {
            try change(Self.commitText)
            isInTransaction = false
        } catch {
            rollBack()
            throw error
        }
    }

    func rollBack() {
        isInTransaction = false
        lostTransaction = false
        // Nothing to do when SQLite has rolled back by itself. A rollback in memory cannot fail in another
        // way that would leave a transaction open, and the next `begin` would say so.
        if !isClosed, sqlite3_get_autocommit(handle) == 0 { _ = try? change(Self.rollbackText) }
    }

    func setSavepoint() throws { try change(Self.savepointText) }
    func releaseSavepoint() throws { try change(Self.releaseText) }
    func rollBackToSavepoint() throws {
        try change(Self.rollbackToText)
        try change(Self.releaseText)
    }

    // MARK: Statements

    /// Runs a statement that returns no rows; gives how many rows it changed.
    @discardableResult
    func change(_ text: StatementText, _ bind: (inout Binder) -> Void = { _ in }) throws -> Int {
        let statement = try bound(text, bind)
        defer { sqlite3_reset(statement) }
        let code = sqlite3_step(statement)
        guard code == SQLITE_DONE || code == SQLITE_ROW else { throw failure(code, text) }
        return Int(sqlite3_changes(handle))
    }

    /// Reads the first row, if there is one.
    func first<Value>(
        _ text: StatementText, _ bind: (inout Binder) -> Void = { _ in },
        read: (inout StoredRow) throws -> Value
    ) throws -> Value? {
        var value: Value?
        try scan(text, bind) { row in
            value = try read(&row)
            return false
        }
        return value
    }

    /// Reads every row.
    func every<Value>(
        _ text: StatementText, _ bind: (inout Binder) -> Void = { _ in },
        read: (inout StoredRow) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        try scan(text, bind) { row in
            values.append(try read(&row))
            return true
        }
        return values
    }

    /// Reads rows until `read` says `false`. `read` may run other statements, not this one.
    func scan(
        _ text: StatementText, _ bind: (inout Binder) -> Void = { _ in },
        read: (inout StoredRow) throws -> Bool
    ) throws {
        let statement = try bound(text, bind)
        defer { sqlite3_reset(statement) }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                var row = StoredRow(statement, table: text.table)
                guard try read(&row) else { return }
            case SQLITE_DONE: return
            case let code: throw failure(code, text)
            }
        }
    }

    private func bound(_ text: StatementText, _ bind: (inout Binder) -> Void) throws -> SQLiteStatement {
        guard !isClosed else { throw StoreError.unavailable("`\(file)` is closed") }
        guard !lostTransaction else {
            throw StoreError.unavailable(
                "`\(file)`: SQLite rolled the transaction back after an earlier error")
        }
        let key = ObjectIdentifier(text)
        let statement: Statement
        if let known = prepared[key] {
            statement = known
        } else {
            statement = try StoreFailure.translating(file: file, table: text.table) {
                try database.cachedStatement(sql: text.sql)
            }
            prepared[key] = statement
        }
        var binder = Binder(statement.sqliteStatement)
        bind(&binder)
        guard binder.result == SQLITE_OK else { throw failure(binder.result, text) }
        return statement.sqliteStatement
    }

    private func failure(_ code: Int32, _ text: StatementText) -> any Error {
        if isInTransaction && sqlite3_get_autocommit(handle) != 0 { lostTransaction = true }
        let message = String(cString: sqlite3_errmsg(handle))
        return StoreFailure.error(
            code: sqlite3_extended_errcode(handle) & 0xFF == code & 0xFF
                ? sqlite3_extended_errcode(handle) : code,
            message: message, file: file, table: text.table)
    }

    // MARK: The write-ahead log

    /// Moves the log into the database when it has grown past `byteCount`.
    ///
    /// Everything in the log is committed and durable before this starts, and stays so if it stops halfway:
    /// the log is used again only after the database itself was synchronized.
    ///
    /// - Throws: `StoreError.lostDurability` when that synchronization failed.
    func moveLog(largerThan byteCount: Int) throws {
        guard Int(logPageCount.pointee) * pageByteCount >= byteCount else { return }
        let code = sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        switch code & 0xFF {
        case SQLITE_OK: logPageCount.pointee = 0
        case SQLITE_BUSY, SQLITE_LOCKED: return  // A reader of an old snapshot; the next commit tries again.
        default:
            let error = StoreFailure.error(
                code: sqlite3_extended_errcode(handle), message: String(cString: sqlite3_errmsg(handle)),
                file: file, table: "log")
            // A full disk leaves the log as it is: nothing is lost, and the next commit tries again.
            if case StoreError.unavailable = error { return }
            throw error
        }
    }

    /// Moves the whole log into the database and cuts the file to nothing. Waits for readers of older
    /// snapshots up to the busy timeout.
    func emptyLog() throws {
        let code = sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        guard code == SQLITE_OK else {
            throw StoreFailure.error(
                code: sqlite3_extended_errcode(handle), message: String(cString: sqlite3_errmsg(handle)),
                file: file, table: "log")
        }
        logPageCount.pointee = 0
    }

    /// Gives the raw bytes of the database file, piece by piece, as they are on disk, through SQLite's own
    /// descriptor: closing another one would drop its locks (sqlite.org/howtocorrupt.html, section 2.2).
    func scanFile(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var pointer: UnsafeMutablePointer<sqlite3_file>?
        guard sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &pointer) == SQLITE_OK,
            let opened = pointer, let methods = opened.pointee.pMethods?.pointee,
            let fileSize = methods.xFileSize, let read = methods.xRead
        else { throw StoreError.unavailable("`\(file)` cannot be read back") }
        var byteCount: Int64 = 0
        guard fileSize(opened, &byteCount) == SQLITE_OK else {
            throw StoreError.unavailable("`\(file)` cannot be measured")
        }
        var piece = [UInt8](repeating: 0, count: 1 << 20)
        var offset: Int64 = 0
        while offset < byteCount {
            let count = Int(min(Int64(piece.count), byteCount - offset))
            let code = piece.withUnsafeMutableBytes { read(opened, $0.baseAddress, Int32(count), offset) }
            guard code == SQLITE_OK else {
                throw StoreError.unavailable("`\(file)` cannot be read back (\(code))")
            }
            try piece.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            offset += Int64(count)
        }
    }
}
