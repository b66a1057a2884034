import CSQLite
import GateSteps
import Synchronization

/// Makes the commits of one connection durable, on any thread, beside its next transaction.
///
/// SQLite leaves that to it (`synchronous=NORMAL`, sqlite.org/pragma.html#pragma_synchronous): a commit writes its pages to the
/// write-ahead log and returns. The log is checked from its start, so a later commit never survives a power cut without an
/// earlier one. SQLite itself still synchronizes a log before it moves it into the database.
///
///     commit 1 written ── synchronized ── answered
///                   commit 2 written ──── synchronized ── answered
final class LogSynchronization: @unchecked Sendable {
    // @unchecked is sound because `file` is set once and used inside `progress` only, until `close`. SQLite frees it with its
    // connection, which is closed later. Its functions for a file have no state but the descriptor, which `xSync` only reads.
    private let file: UnsafeMutablePointer<sqlite3_file>
    private let name: String

    /// Commits that were written; held while one is, so that no reader can see more than is counted.
    private let written = Mutex<UInt64>(0)

    private struct Progress {
        var durable: UInt64 = 0
        /// Why nothing more can be made durable.
        var end: StoreError?
    }
    /// Held while the log is synchronized: who comes meanwhile finds its commit durable most often.
    private let progress = Mutex(Progress())

    /// - Parameters:
    ///   - handle: A database in WAL mode that was read, so that its log is open.
    ///   - name: The database's file name, for errors.
    init(of handle: OpaquePointer, name: String) throws {
        var file: UnsafeMutablePointer<sqlite3_file>?
        guard sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK,
            let file,
            file.pointee.pMethods?.pointee.xSync != nil
        else { throw StoreError.unavailable("the log of `\(name)` is not open") }
        self.file = file
        self.name = name
    }

    /// Runs a commit.
    func writing(_ commit: () throws -> Void) rethrows {
        try written.withLock { count in
            try commit()
            count += 1
        }
    }

    /// Blocks until all commits are durable that were written before the call, or were being written.
    func synchronize() throws {
        let wanted = written.withLock { $0 }
        try progress.withLock { progress in
            guard progress.durable < wanted else { return }
            if let end = progress.end { throw end }
            let code = file.pointee.pMethods.pointee.xSync(file, SQLITE_SYNC_NORMAL)
            guard code == SQLITE_OK else {
                // The kernel tells a failed write-back once (fsync(2)): a second try could succeed without the pages.
                let end = StoreError.lostDurability(
                    "the log of `\(name)` could not be synchronized (\(code))")
                progress.end = end
                throw end
            }
            progress.durable = wanted
        }
    }

    /// Waits for a synchronization under way. Call before the connection closes.
    func close() {
        progress.withLock { $0.end = $0.end ?? .unavailable("`\(name)` is closed") }
    }
}
