import CSQLite
import Foundation
import GateSteps
import GatewayPipeline
import OpenSSLCrypto

/// The write-ahead log.
extension Connection {
    /// Moves the log into the database when it has grown past `byteCount`.
    ///
    /// Everything in the log is committed and durable before this starts, and stays so if it stops halfway:
    /// the log is used again only after the database itself was synchronized.
    ///
    /// - Throws: `StoreError.lostDurability` when that synchronization failed.
    func moveLog(largerThan byteCount: Int) throws {
        guard logByteCount >= byteCount else { return }
        do {
            let code = try checkpoint(SQLITE_CHECKPOINT_PASSIVE).code
            // Otherwise a reader of an old snapshot is in the way; the next commit tries again.
            if code == SQLITE_OK { logState.pointee.pageCount = 0 }
        } catch StoreError.unavailable {
            // A full disk leaves the log as it is: nothing is lost, and the next commit tries again.
        }
    }

    /// How long the log was after the newest commit of this connection that wrote to it.
    var logByteCount: Int { Int(logState.pointee.pageCount) * pageByteCount }

    /// Moves what another connection committed, as far as all readers see it, and makes the database durable so far: else the
    /// checkpoint that moves the rest would have all of it to write.
    ///
    /// - Returns: How many frames are left; `nil` when nothing was moved, because another connection moves the log.
    func moveLogBesideWriter() throws -> Int? {
        let result = try checkpoint(SQLITE_CHECKPOINT_PASSIVE)
        guard result.code == SQLITE_OK else { return nil }
        let file = try openFile().file
        let code = file.pointee.pMethods.pointee.xSync(file, SQLITE_SYNC_NORMAL)
        guard code == SQLITE_OK else {
            throw StoreError.lostDurability("`\(self.file)` could not be synchronized (\(code))")
        }
        return result.leftCount
    }

    static let anyRow = StatementText("schema", "SELECT 1 FROM sqlite_schema LIMIT 1")

    /// Begins to read what is committed now.
    func beginSnapshot() throws {
        try begin(writing: false)
        // A transaction sees what is there at its first read.
        _ = try first(Self.anyRow) { _ in true }
    }

    /// Calls nothing durable any more. On any thread, inside `exclusively` or not.
    func lose(_ error: StoreError) { log?.lose(error) }

    /// Runs `body` while this connection commits nothing. On any thread, inside `exclusively` or not.
    func betweenCommits<Result>(_ body: () throws -> Result) rethrows -> Result {
        try log?.betweenCommits(body) ?? body()
    }

    /// Moves what can be moved without waiting for a reader.
    ///
    /// - Returns: Whether all of the log is in the database.
    func moveWholeLog() throws -> Bool { try checkpoint(SQLITE_CHECKPOINT_PASSIVE).isWhole }

    /// Moves the log, while nothing else synchronizes it.
    ///
    /// - Returns: `SQLITE_OK`, `SQLITE_BUSY` or `SQLITE_LOCKED`, with extended codes, and whether all of it is in the database.
    func checkpoint(_ mode: Int32) throws -> (code: Int32, isWhole: Bool, leftCount: Int) {
        func run() throws -> (result: (code: Int32, isWhole: Bool, leftCount: Int), isWhole: Bool) {
            var (frameCount, movedCount): (Int32, Int32) = (-1, -1)
            let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, &frameCount, &movedCount)
            switch code & 0xFF {
            case SQLITE_OK, SQLITE_BUSY, SQLITE_LOCKED:
                let isWhole = code == SQLITE_OK && frameCount == movedCount
                return ((code, isWhole, Int(frameCount - movedCount)), isWhole)
            default:
                // What was answered is in that frame and nowhere else.
                if let what = pages?.takeDamage() { throw StoreError.lostDurability(what) }
                throw StoreFailure.error(
                    code: sqlite3_extended_errcode(handle), message: String(cString: sqlite3_errmsg(handle)),
                    file: file, table: "log")
            }
        }
        return try log?.moving(run) ?? run().result
    }

    /// Moves the whole log into the database and cuts the file to nothing. Waits for readers of older
    /// snapshots up to the busy timeout.
    func emptyLog() throws {
        // The mark says that the log is moved before it is cut.
        for mode in [SQLITE_CHECKPOINT_FULL, SQLITE_CHECKPOINT_TRUNCATE] {
            guard try checkpoint(mode).code == SQLITE_OK else {
                throw StoreFailure.error(
                    code: sqlite3_extended_errcode(handle), message: String(cString: sqlite3_errmsg(handle)),
                    file: file, table: "log")
            }
        }
        logState.pointee.pageCount = 0
    }

    /// The open database file, to be read past SQLite's cache through its own descriptor: closing another one would drop its
    /// locks (sqlite.org/howtocorrupt.html, section 2.2).
    func openFile() throws -> (file: UnsafeMutablePointer<sqlite3_file>, byteCount: Int64) {
        guard !isClosed else { throw StoreError.unavailable("`\(file)` is closed") }
        var pointer: UnsafeMutablePointer<sqlite3_file>?
        var byteCount: Int64 = 0
        guard sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &pointer) == SQLITE_OK,
            let opened = pointer, let methods = opened.pointee.pMethods?.pointee,
            methods.xFileSize?(opened, &byteCount) == SQLITE_OK
        else { throw StoreError.unavailable("`\(file)` cannot be read back") }
        return (opened, byteCount)
    }

    /// Gives the pages of the database file, one after the other, as they are on disk.
    func scanFile(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let (opened, byteCount) = try openFile()
        try withUnsafeTemporaryAllocation(byteCount: PageCode.pageByteCount, alignment: 16) { page in
            for number in 0..<byteCount / Int64(page.count) {
                let code = opened.pointee.pMethods.pointee.xRead(
                    opened, page.baseAddress, Int32(page.count), number * Int64(page.count))
                if let damage = damage(of: "schema") { throw damage }
                guard code == SQLITE_OK else {
                    throw StoreError.unavailable("`\(file)` cannot be read back (\(code))")
                }
                try body(UnsafeRawBufferPointer(page))
            }
        }
    }

    /// How many pages the database has, in its file or in the log.
    func databasePageCount() throws -> Int64 { Int64(try pragma("PRAGMA page_count")) ?? 0 }

    /// How many pages the database file has now, one that is cut off counted as one. Some may be in the log only.
    func pageCountOnDisk() throws -> Int64 {
        let size = Int64(PageCode.pageByteCount)
        return (try openFile().byteCount + size - 1) / size
    }

    /// Holds pages of the file, as they are on disk, against their codes.
    ///
    /// - Returns: Those that are not as they were written, and what is wrong with each. Until the log was moved that proves nothing:
    ///   one may lie in the log only, or be half written.
    func wrongPages(_ numbers: Range<Int64>) throws -> [(number: Int64, what: String)] {
        let (opened, _) = try openFile()
        return withUnsafeTemporaryAllocation(byteCount: PageCode.pageByteCount, alignment: 16) { page in
            var wrong: [(number: Int64, what: String)] = []
            for number in numbers where number != PageCode.lockBytePage {
                let code = opened.pointee.pMethods.pointee.xRead(
                    opened, page.baseAddress, Int32(page.count), (number - 1) * Int64(page.count))
                if let what = pages?.takeDamage() {
                    wrong.append((number, what))
                } else if code != SQLITE_OK {
                    wrong.append(
                        (number, "it cannot be read: look at the disk and the kernel's log (\(code))"))
                }
            }
            return wrong
        }
    }
}
