package import GateSteps

/// Where everything the gate must remember lives.
///
/// - Steps: a batch is told what it names by `load`, steps over that, and hands over everything its steps did with
///   `commit`, once. Nothing above knows how it is kept.
/// - Durability: when `commit` returns, everything survives the end of the process, and once `synchronize` has returned
///   a power cut too. When it throws, nothing of it happened. There is no other case; a store that cannot tell must stop
///   the process (`StoreError.lostDurability`).
/// - Ordering: commits come one after another, entries in the order of their changes, at the index that their step gave them.
/// - One writer: between a `load` and the `commit` of what was stepped over it, nobody else commits. So there is no conflict.
/// - Concurrency: `read` and `synchronize` may be called from any thread beside a running `commit`. `read` sees one
///   consistent snapshot, and returns only what is durable.
/// - Retry: none inside. A full or read-only disk throws `StoreError.unavailable`, and the next call
///   tries afresh, so that the gate recovers by itself when space returns.
package protocol GateStore: AnyObject, Sendable {
    /// Answers what steps ask for, and where the trail ends, into memory. Damage that an ask meets is the
    /// answer to that ask. It may answer with what is committed and not durable yet: nothing of that is told before
    /// ``synchronize()`` has returned.
    func load(_ asks: [Ask], into memory: GateMemory) throws

    /// Writes everything that steps did, or nothing.
    ///
    /// - Throws: ``RefusedChange`` when one step's writes cannot be written: the others can come again without it.
    ///   `StoreError.unavailable` also when an entry is not the next one of the trail.
    func commit(_ changes: [Change]) throws -> CommitReceipt

    /// Blocks until everything that was committed before the call is durable, the earliest first: of two commits the later
    /// never survives without the earlier.
    ///
    /// - Throws: `StoreError.lostDurability` when what is on disk cannot be known any more; anything else only after the store
    ///   was closed.
    func synchronize() throws

    func read<Result>(_ body: (any StoreReading) throws -> Result) throws -> Result

    /// Destroys the mapping of a person to their pseudonym, for every subject marked by
    /// ``GateMemory/eraseSubject(_:)``: the key and the mapping are removed, the file is rewritten and truncated.
    /// Durable when it returns. Idempotent; the store also does it when it opens, so a crash between the commit and
    /// this call leaves no person half erased.
    func finishErasures() throws

    /// What was found damaged since the store opened, in the order it was found; a bounded number.
    var damages: [StoredDamage] { get }

    /// Adds to ``damages`` what a step or a look-up found; each page that could not be read is there already.
    func note(_ damage: StoredDamage)

    /// Reads the next stored pages, so many at most, free ones too, and holds each against its code; damage is added to
    /// ``damages``. Runs beside reads and writes; blocks its thread. Another process goes on where one ended.
    ///
    /// - Returns: Whether a pass over all pages has ended.
    func checkPages(countMax: Int) throws -> Bool

    /// What ``checkPages(countMax:)`` has read.
    var pageCheck: PageCheck { get }

    /// How much the key that seals rows has been used.
    var dataKeyUse: DataKeyUse { get }
}

/// What was read of the stored pages since the store opened, to hold each against its code.
package struct PageCheck: Sendable, Hashable {
    package var checkedPageCount: Int64 = 0
    /// Passes over all pages that have ended.
    package var passCount: Int64 = 0

    package init() {}
}

/// How many rows a data key has sealed, over restarts; never less than it was.
package struct DataKeyUse: Sendable, Hashable {
    package var key: String
    package var sealCount: UInt64

    /// Random nonces of 96 bits allow 2³² seals under one key (NIST SP 800-38D section 8.3); half of it is when a
    /// new one is asked for.
    package static let sealCountToRotateAt: UInt64 = 1 << 31

    /// From here on nothing more is sealed under the key: the odds of a repeated nonce are no longer negligible.
    package static let sealCountMax: UInt64 = 1 << 32

    package init(key: String, sealCount: UInt64) {
        self.key = key
        self.sealCount = sealCount
    }

    package var mustRotate: Bool { sealCount >= Self.sealCountToRotateAt }
    package var isExhausted: Bool { sealCount >= Self.sealCountMax }
}

/// The writes of one step cannot be written, because of a damaged page or because they do not fit the stored rows. Nothing of the
/// commit happened; the other steps can begin again without it.
package struct RefusedChange: Error, CustomStringConvertible {
    /// Its position among the changes.
    package let change: Int
    package let error: any Error

    package init(change: Int, error: any Error) {
        self.change = change
        self.error = error
    }

    package var description: String { "change \(change) cannot be written: \(error)" }
}
