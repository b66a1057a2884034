import CSQLite
import GateSteps
import Synchronization

/// Makes the commits of one connection durable, on any thread, beside its next transaction.
///
/// SQLite leaves that to it (`synchronous=NORMAL`, sqlite.org/pragma.html#pragma_synchronous): a commit writes its pages to the
/// write-ahead log and returns. The log is checked from its start, so a later commit never survives a power cut without an
/// earlier one. SQLite itself still synchronizes a log before it moves it into the database.
///
///     commit 1 written ── synchronized ── marked ── answered
///                   commit 2 written ──── synchronized ── marked ── answered
final class LogSynchronization: @unchecked Sendable {
    // @unchecked is sound because `file` is set once. SQLite frees it with its connection, which is closed after `close`. Beside
    // SQLite's own calls, only `xSync` is called, inside `progress`: it reads the descriptor, and where a file is new it
    // synchronizes its folder and takes down a flag, which opening the store has done on one thread.
    private let file: UnsafeMutablePointer<sqlite3_file>
    private let name: String

    private struct Written {
        /// Commits, the first for what an earlier process left.
        var count: UInt64
        /// Where the log ends behind the last of them.
        var end: LogEnd
    }
    /// The lock is held during a commit: a reader that sees it already waits here until it is counted.
    private let written: Mutex<Written>

    /// The pages of the connection, which know where its log ends; `nil` where no mark is kept.
    private let pages: PageFile?
    private let mark: LogMark?

    /// Commits that are durable. Set inside `progress`.
    private let durableCount = Atomic<UInt64>(0)

    private struct Progress {
        /// Why nothing more can be made durable.
        var failure: StoreError?

        mutating func fail(_ error: StoreError) -> StoreError {
            failure = error
            return error
        }
    }
    /// Held while the log is synchronized, by the store or by SQLite: the kernel reports a failed write-back to one of two that
    /// share a descriptor (fsync(2)). A caller that waits for this lock usually finds its commit durable when it gets it.
    /// Not held while a commit synchronizes the header of a log that begins anew: by then all its frames are durable in the
    /// database, so a report that is lost there is about no earlier commit.
    private let progress = Mutex(Progress())

    /// - Parameters:
    ///   - handle: A database in WAL mode that was read, so that its log is open.
    ///   - name: The database's file name, for errors.
    ///   - isEmpty: Whether there was no log before.
    ///   - mark: Told what is durable, before `synchronize` returns.
    init(of handle: OpaquePointer, name: String, isEmpty: Bool, pages: PageFile?, mark: LogMark?) throws {
        var file: UnsafeMutablePointer<sqlite3_file>?
        guard sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK,
            let file,
            file.pointee.pMethods?.pointee.xSync != nil
        else { throw StoreError.unavailable("the log of `\(name)` is not open") }
        self.file = file
        self.name = name
        self.pages = pages
        self.mark = mark
        written = Mutex(Written(count: isEmpty ? 0 : 1, end: pages?.logEnd ?? LogEnd()))
    }

    /// Runs a commit.
    ///
    /// - Parameter commit: Gives whether it wrote anything.
    func writing(_ commit: () throws -> Bool) rethrows {
        try written.withLock { written in
            guard try commit() else { return }
            written.count += 1
            if let pages { written.end = pages.logEnd }
        }
    }

    /// Runs `body` while nothing is committed.
    func betweenCommits<Result>(_ body: () throws -> Result) rethrows -> Result {
        try written.withLock { _ in try body() }
    }

    /// Blocks until all commits are durable that were written before the call, or were being written.
    func synchronize() throws {
        let target = written.withLock { $0 }
        // Without waiting for a checkpoint under way, which may wait for a reader.
        if durableCount.load(ordering: .acquiring) >= target.count { return }
        try progress.withLock { progress in
            if let failure = progress.failure { throw failure }
            try makeDurable(target, &progress)
        }
    }

    private func makeDurable(_ target: Written, _ progress: inout Progress) throws {
        guard durableCount.load(ordering: .relaxed) < target.count else { return }
        let code = file.pointee.pMethods.pointee.xSync(file, SQLITE_SYNC_NORMAL)
        guard code == SQLITE_OK else {
            // A second try could succeed without the pages.
            throw progress.fail(
                .lostDurability("the log of `\(name)` could not be synchronized (\(code))"))
        }
        do { try mark?.write(target.end) } catch let error as StoreError { throw progress.fail(error) }
        durableCount.store(target.count, ordering: .releasing)
    }

    /// Runs what moves the log into the database, for which SQLite synchronizes both. Call where no commit can come between.
    ///
    /// - Parameter checkpoint: Gives, beside its result, whether all of the log is in the database.
    func moving<Result>(_ checkpoint: () throws -> (Result, isWhole: Bool)) throws -> Result {
        try progress.withLock { progress in
            if let failure = progress.failure { throw failure }
            // A start cuts what is behind the mark: none of that may be in the database already should the process end meanwhile.
            try makeDurable(written.withLock { $0 }, &progress)
            do {
                let (result, isWhole) = try checkpoint()
                if isWhole {
                    // Before the log can begin anew, or be cut: else the mark would ask for frames that are nowhere any more.
                    try mark?.write(LogEnd())
                    durableCount.store(written.withLock { $0.count }, ordering: .releasing)
                }
                return result
            } catch let error as StoreError {
                guard case .lostDurability = error else { throw error }
                throw progress.fail(error)
            }
        }
    }

    /// Makes every later synchronization fail.
    func lose(_ error: StoreError) {
        progress.withLock { $0.failure = $0.failure ?? error }
    }

    /// Waits for a synchronization under way. Call before the connection closes.
    func close() {
        progress.withLock { $0.failure = $0.failure ?? .unavailable("`\(name)` is closed") }
        mark?.close()
    }
}
