import CSQLite
import Foundation
import GateSteps
import GatewayPipeline
import OpenSSLCrypto

/// One connection to one database file, with its compiled statements.
final class Connection: @unchecked Sendable {
    // @unchecked is sound because everything mutable is touched only while `lock` is held: `exclusively` is the
    // way in, and every method but `close` requires that its caller is inside it.

    enum Role {
        case writer(byteCountMax: Int64?)
        case reader
        /// A database in memory, for this connection alone.
        case scratch
    }

    /// The file's name in error messages, without its folder.
    let file: String
    let lock = NSLock()
    let handle: OpaquePointer
    /// Compiled statements at the places of their texts; finalized when the connection closes.
    var prepared: [OpaquePointer?] = []
    /// What the parameters of the change that runs point to.
    let boundMemory: UnsafeMutableRawBufferPointer
    let damages: DamageLog
    var isClosed = false
    var isInTransaction = false
    /// SQLite rolled a transaction back by itself (it may on a full disk or an I/O error). What is left of
    /// the body would then be written without a transaction, so every further statement is refused.
    var lostTransaction = false
    /// Written by SQLite's hook.
    let logState: UnsafeMutablePointer<LogState>
    /// Where the connection writes to a file.
    let log: LogSynchronization?
    let pageByteCount: Int
    /// Between the connection and its files; `nil` for one in memory, and where no page is held against its code.
    let pages: PageFile?

    /// - Parameters:
    ///   - pages: Holds every page against its code. Without, pages are read as they are, and written without one.
    ///   - mark: Of a connection that writes: told what of its log is durable.
    /// - Throws: `StoreError` or ``StoreOpeningError``.
    init(
        path: String, file: String, role: Role, cacheByteCount: Int, busyTimeoutMilliseconds: Int,
        damages: DamageLog = DamageLog(), pages: PageFile? = nil, mark: LogMark? = nil
    ) throws {
        _ = Self.isConfigured
        self.pages = pages
        self.file = file
        self.damages = damages
        let isLogEmpty = StateDirectory.byteCount(at: path + "-wal") == 0
        let handle = try Self.open(path: path, file: file, role: role, isPaged: pages != nil)
        do {
            if let pages {
                try Self.check(PageFiles.attach(pages, to: handle), handle, file: file)
                try Self.check(sendgate_keep_log_at_close(handle, 1), handle, file: file)
            }
            try Self.check(sqlite3_busy_timeout(handle, Int32(busyTimeoutMilliseconds)), handle, file: file)
            try Self.configure(handle, file: file, role: role, cacheByteCount: cacheByteCount)
            if pages != nil { try Self.run("PRAGMA cache_spill = 0", on: handle, file: file) }
            pageByteCount =
                Int(try Self.value(of: "PRAGMA page_size", on: handle, file: file))
                ?? Int(SENDGATE_PAGE_BYTE_COUNT)
            if case .writer = role {
                // Reads the first page, which opens the log.
                _ = try Self.value(of: "PRAGMA schema_version", on: handle, file: file)
                log = try LogSynchronization(
                    of: handle, name: file, isEmpty: isLogEmpty, pages: pages, mark: mark)
            } else {
                log = nil
            }
        } catch {
            sqlite3_close_v2(handle)
            guard let what = pages?.takeDamage() else { throw error }
            throw StoreError.damaged(table: "schema", what)
        }
        self.handle = handle
        boundMemory = .allocate(byteCount: 16_384, alignment: 8)
        logState = .allocate(capacity: 1)
        logState.initialize(to: LogState())
        if case .writer = role {
            // Replaces SQLite's own checkpointing, which ignores its errors: a failed fsync of the database
            // must be seen (see `moveLog`).
            sqlite3_wal_hook(
                handle,
                { context, _, _, pageCount in
                    context?.assumingMemoryBound(to: LogState.self).pointee = LogState(
                        pageCount: pageCount, wasWritten: true)
                    return SQLITE_OK
                }, logState)
        }
    }

    deinit {
        close()
        logState.deallocate()
        boundMemory.deallocate()
    }

    /// Set once, before the first connection; where SQLite is in use already it stays as it is.
    static let isConfigured = sendgate_configure_process() == SQLITE_OK

    /// Opens the file without a mutex of SQLite's own: ``lock`` admits one thread at a time
    /// (sqlite.org/threadsafe.html, multi-thread mode).
    static func open(path: String, file: String, role: Role, isPaged: Bool) throws -> OpaquePointer {
        if isPaged, !PageFiles.isRegistered {
            throw StoreError.unavailable("SQLite takes no layer between itself and `\(file)`")
        }
        let access =
            switch role {
            case .reader: SQLITE_OPEN_READONLY
            case .writer, .scratch: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(
            path, &opened, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
            isPaged ? PageFiles.name : nil)
        guard let handle = opened else {
            throw StoreFailure.error(code: code, message: "no memory", file: file, table: "schema")
        }
        guard code == SQLITE_OK else {
            let error = failure(code, on: handle, file: file, table: "schema")
            sqlite3_close_v2(handle)
            throw error
        }
        return handle
    }

    /// Waits for what is under way and closes the file; using the connection afterwards throws.
    ///
    /// - Parameter movingLog: Whether the log is moved into the database first, and deleted: by the last connection to it, and
    ///   only where the database was found to be what it should.
    func close(movingLog: Bool = false) {
        lock.withLock {
            guard !isClosed else { return }
            // What cannot be moved now, after a failed synchronization above all, is in the log for the next start.
            if movingLog, (try? emptyLog()) != nil { sendgate_keep_log_at_close(handle, 0) }
            isClosed = true
            log?.close()
            for statement in prepared { sqlite3_finalize(statement) }
            prepared = []
            _ = sqlite3_wal_hook(handle, nil, nil)
            // A failure leaves an unused descriptor open; there is nothing to do about it at the end.
            sqlite3_close_v2(handle)
        }
    }

    /// The write-ahead log after the newest commit that wrote to it.
    struct LogState {
        var pageCount: Int32 = 0
        /// Set by each commit that writes.
        var wasWritten = false
    }

    /// Who synchronizes the write-ahead log after a commit.
    enum Synchronous: String {
        /// ``LogSynchronization``.
        case normal = "1"
        /// SQLite, before the commit returns.
        case full = "2"
    }

    /// Sets what must hold on this connection, and reads it back.
    static func configure(
        _ handle: OpaquePointer, file: String, role: Role, cacheByteCount: Int,
        synchronous: Synchronous = .normal
    ) throws {
        try check(sendgate_refuse_double_quoted_strings(handle), handle, file: file)
        func set(_ setting: String, _ value: String) throws {
            try run("PRAGMA \(setting) = \(value)", on: handle, file: file)
            let found = try Self.value(of: "PRAGMA \(setting)", on: handle, file: file)
            guard found == value else {
                throw StoreOpeningError.settingRefused(
                    file: file, setting: setting, wanted: value, found: found)
            }
        }
        // Erasure has its own order (see `GateTransaction.eraseSubject`), so no table relies on cascades.
        try set("foreign_keys", "0")
        // A schema from outside may not run functions with side effects (sqlite.org/pragma.html#pragma_trusted_schema).
        try set("trusted_schema", "0")
        // Sorting and statement journals hold rows; they must not reach a temporary folder.
        try set("temp_store", "2")
        try set("cache_size", "-\(max(cacheByteCount / 1024, 1))")
        guard case .writer(let byteCountMax) = role else { return }
        // Takes effect where the file is made; a file with other pages is refused, because `sendgate_configure_process` counts on
        // these. SG-0015 says what a page of 4 KiB costs.
        try set("page_size", "\(SENDGATE_PAGE_BYTE_COUNT)")
        try set("journal_mode", "wal")
        // After the journal mode, because libraries change it along with that.
        try set("synchronous", synchronous.rawValue)
        try set("secure_delete", "1")
        // Gives the disk back after a burst once the log has been moved.
        try set("journal_size_limit", "67108864")
        if let byteCountMax {
            // SQLite keeps at least the pages the file already has, so the answer may be larger.
            let pageCountMax = max(byteCountMax / Int64(SENDGATE_PAGE_BYTE_COUNT), 1)
            try run("PRAGMA max_page_count = \(pageCountMax)", on: handle, file: file)
        }
    }

    /// Runs every statement of a text and drops the rows they return.
    static func run(_ sql: String, on handle: OpaquePointer, file: String) throws {
        try check(sqlite3_exec(handle, sql, nil, nil, nil), handle, file: file)
    }

    /// The first column of a statement's first row; empty when there is no row.
    static func value(of sql: String, on handle: OpaquePointer, file: String) throws -> String {
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v2(handle, sql, -1, &statement, nil), handle, file: file)
        defer { sqlite3_finalize(statement) }
        switch sqlite3_step(statement) {
        case SQLITE_ROW: return sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? ""
        case SQLITE_DONE: return ""
        case let code: throw failure(code, on: handle, file: file, table: "schema")
        }
    }

    static func check(_ code: Int32, _ handle: OpaquePointer, file: String) throws {
        guard code == SQLITE_OK else { throw failure(code, on: handle, file: file, table: "schema") }
    }

    static func failure(
        _ code: Int32, on handle: OpaquePointer, file: String, table: String
    ) -> any Error {
        let extended = sqlite3_extended_errcode(handle)
        return StoreFailure.error(
            code: extended & 0xFF == code & 0xFF ? extended : code,
            message: String(cString: sqlite3_errmsg(handle)), file: file, table: table)
    }

    // MARK: Access

    /// Runs `body` while no other thread uses this connection. Not reentrant.
    func exclusively<Result>(_ body: () throws -> Result) rethrows -> Result {
        try lock.withLock(body)
    }

    /// One value of a pragma, or of a statement with one column.
    func pragma(_ text: String) throws -> String {
        guard !isClosed else { throw StoreError.unavailable("`\(file)` is closed") }
        return try namingPages { try Self.value(of: text, on: handle, file: file) }
    }

    /// Runs a statement of no text of its own; gives damage that it meets the page's name.
    func namingPages<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch {
            throw damage(of: "schema") ?? error
        }
    }

    /// The page that was refused last, with the table that needed it, once; noted.
    func damage(of table: String) -> StoreError? {
        guard let what = pages?.takeDamage() else { return nil }
        damages.note(StoredDamage(table: table, row: nil, what: what))
        return StoreError.damaged(table: table, what)
    }

    /// Statements that run once, such as the schema's.
    func script(_ sql: String) throws {
        try namingPages { try Self.run(sql, on: handle, file: file) }
    }

    /// Calls `tick` now and then while `body` runs statements, however long one of them takes.
    func ticking<Result>(_ tick: () -> Void, during body: () throws -> Result) rethrows -> Result {
        try withoutActuallyEscaping(tick) { tick in
            var tick = tick
            return try withUnsafeMutablePointer(to: &tick) { tick in
                sqlite3_progress_handler(
                    handle, Self.operationCountOfTick,
                    { context in
                        context?.assumingMemoryBound(to: (() -> Void).self).pointee()
                        return 0
                    }, tick)
                defer { sqlite3_progress_handler(handle, 0, nil, nil) }
                return try body()
            }
        }
    }

    /// Of SQLite's virtual machine, which does some ten million a second.
    private static let operationCountOfTick: Int32 = 1_000_000

    // MARK: Transactions

    static let beginReading = StatementText("transaction", "BEGIN DEFERRED")
    static let beginWriting = StatementText("transaction", "BEGIN IMMEDIATE")
    static let commitText = StatementText("transaction", "COMMIT")
    static let rollbackText = StatementText("transaction", "ROLLBACK")

    func begin(writing: Bool) throws {
        lostTransaction = false
        try change(writing ? Self.beginWriting : Self.beginReading)
        isInTransaction = true
    }

    /// When this throws `StoreError.unavailable`, nothing was committed and the transaction is over.
    ///
    /// - Parameter synchronizing: Whether everything is durable when this returns; else once ``synchronize()`` has returned.
    /// - Throws: Also `StoreError.lostDurability`, when the commit is written and may not be on disk.
    func commit(synchronizing: Bool = true) throws {
        do {
            if let log {
                try log.writing {
                    logState.pointee.wasWritten = false
                    try change(Self.commitText)
                    return logState.pointee.wasWritten
                }
            } else {
                try change(Self.commitText)
            }
            isInTransaction = false
        } catch {
            rollBack()
            throw error
        }
        if synchronizing { try synchronize() }
    }

    /// Blocks until everything that was committed before the call is durable. On any thread, inside `exclusively` or not.
    func synchronize() throws { try log?.synchronize() }

    func rollBack() {
        isInTransaction = false
        lostTransaction = false
        // Nothing to do when SQLite has rolled back by itself. A rollback in memory cannot fail in another
        // way that would leave a transaction open, and the next `begin` would say so.
        if !isClosed, sqlite3_get_autocommit(handle) == 0 { _ = try? change(Self.rollbackText) }
    }

    /// Runs `body` in a transaction of its own. Call inside.
    func writing<Result>(_ body: () throws -> Result) throws -> Result {
        try begin(writing: true)
        do {
            let result = try body()
            try commit()
            return result
        } catch {
            rollBack()
            throw error
        }
    }

    // MARK: Statements

    /// Runs a statement that returns no rows; gives how many rows it changed.
    @discardableResult
    func change(_ text: StatementText, _ bind: (inout Binder) throws -> Void = { _ in }) throws -> Int {
        // One change has run to its end before the next is bound: what SQLite calls back meanwhile runs no statement.
        let statement = try bound(text, bind, memory: boundMemory)
        defer { sqlite3_reset(statement) }
        let code = sqlite3_step(statement)
        guard code == SQLITE_DONE || code == SQLITE_ROW else { throw failure(code, text, isChange: true) }
        return Int(sqlite3_changes(handle))
    }

    /// The same for a change that deletes rows and leaves their bytes in the pages it frees, until these are used again:
    /// written over, each of those pages would go through the log. Pages that stay in use lose them as ever.
    ///
    /// SQLite sets this while it compiles the pragma, so that no compiled one is kept (sqlite.org/pragma.html#pragma_secure_delete).
    ///
    /// - Warning: For rows alone that may stay readable for ever. Everything else is deleted by ``change(_:_:)``.
    func changeKeepingFreedPages(_ text: StatementText, _ bind: (inout Binder) throws -> Void) throws {
        let result = Result {
            _ = try pragma("PRAGMA secure_delete = FAST")
            try change(text, bind)
        }
        // Fails only for want of memory. The store then serves nothing more, so that what is deleted next is not left behind.
        guard (try? pragma("PRAGMA secure_delete = 1")) == "1" else {
            throw StoreError.lostDurability("`\(file)` no longer overwrites what it deletes")
        }
        try result.get()
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
        _ text: StatementText, _ bind: (inout Binder) throws -> Void = { _ in },
        read: (inout StoredRow) throws -> Bool
    ) throws {
        let statement = try bound(text, bind, memory: nil)
        defer { sqlite3_reset(statement) }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                var row = StoredRow(statement, of: text)
                guard try read(&row) else { return }
            case SQLITE_DONE: return
            case let code: throw failure(code, text)
            }
        }
    }

    func bound(
        _ text: StatementText, _ bind: (inout Binder) throws -> Void, memory: UnsafeMutableRawBufferPointer?
    ) throws -> OpaquePointer {
        guard !isClosed else { throw StoreError.unavailable("`\(file)` is closed") }
        guard !lostTransaction else {
            throw StoreError.unavailable(
                "`\(file)`: SQLite rolled the transaction back after an earlier error")
        }
        let known = text.place < prepared.count ? prepared[text.place] : nil
        let statement = try known ?? prepare(text)
        var binder = Binder(statement, memory: memory)
        try bind(&binder)
        guard binder.result == SQLITE_OK else { throw failure(binder.result, text) }
        return statement
    }

    func prepare(_ text: StatementText) throws -> OpaquePointer {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(
            handle, text.sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw failure(code, text) }
        if text.place >= prepared.count {
            prepared += Array(repeating: nil, count: text.place + 1 - prepared.count)
        }
        prepared[text.place] = statement
        return statement
    }

    func failure(_ code: Int32, _ text: StatementText, isChange: Bool = false) -> any Error {
        if isInTransaction && sqlite3_get_autocommit(handle) != 0 { lostTransaction = true }
        if code & 0xFF == SQLITE_CORRUPT, let damage = damage(of: text.table) {
            // SQLite undoes no change of a single row: it may have written the row and not what an index says of it.
            if isChange, isInTransaction { lostTransaction = true }
            return damage
        }
        return Self.failure(code, on: handle, file: file, table: text.table)
    }
}

extension SQLiteStore {
    /// Gives a new connection of the caller's own the settings of the one that writes `gate.db`, but that each commit is durable
    /// when it returns: what a benchmark compares with.
    package static func configureWriter(_ handle: OpaquePointer, limits: SQLiteStoreLimits) throws {
        try Connection.configure(
            handle, file: Schema.gate.file, role: .writer(byteCountMax: limits.gateByteCountMax),
            cacheByteCount: limits.writerCacheByteCount, synchronous: .full)
    }
}
