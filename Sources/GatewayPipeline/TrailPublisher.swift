import Dispatch
import Foundation
package import GateSteps
import GateVocabulary
import OpenSSLCrypto
import Synchronization

/// Brings durable entries into the published tree, in the background.
///
///     store (durable, in the send's own commit) → tiles → signed checkpoint → mark in the store
///
/// A checkpoint follows an entry within a second; none is made when nothing happened. Crash points: after
/// tiles, before the checkpoint: a restart integrates the same entries again, finds them equal and
/// signs. After the checkpoint, before the mark: the same, with nothing left to write.
package final class TrailPublisher: Sendable {
    /// The least time between two checkpoints, in milliseconds, so that a busy gateway signs and synchronizes files twice a
    /// second and not after every commit. An entry waits for half of the second that it is promised in.
    package static let checkpointIntervalMilliseconds = 500
    /// How long after a failure the publisher tries again, in milliseconds.
    package static let retryMilliseconds = 1000
    /// Entries taken at once: sixteen full bundles of the tile layout.
    private static let chunkEntryCount = 4096

    private let store: any GateStore
    private let library: any TrailLibrary
    private let clock: any Clock
    private let mark: @Sendable (UInt64) -> Void
    private let tell: @Sendable (OperatorNotice) -> Void
    private let durabilityLost: @Sendable (String) -> Never
    private let intervalMilliseconds: Int
    private let retryMilliseconds: Int
    private let wake = DispatchSemaphore(value: 0)
    private let stopped = DispatchSemaphore(value: 0)
    /// Ends a pause early, when the publisher stops.
    private let pauseEnd = DispatchSemaphore(value: 0)
    private let state = Mutex(State())

    private struct State {
        var isWakePending = false
        var isStopping = false
        var lastFailure: String?
        /// Milliseconds since boot when the oldest entry came that is not in a checkpoint yet: a wall clock that is set makes no
        /// entry older.
        var oldestUnpublished: Int64?
        var publishedSize: UInt64 = 0
    }

    /// - Parameters:
    ///   - mark: Tells the engine how far the tree is durable.
    ///   - tell: Tells an operator that nothing can be published, once, and that it is over.
    ///   - durabilityLost: Ends the process.
    package init(
        store: any GateStore, library: any TrailLibrary, clock: any Clock,
        intervalMilliseconds: Int = TrailPublisher.checkpointIntervalMilliseconds,
        retryMilliseconds: Int = TrailPublisher.retryMilliseconds,
        mark: @escaping @Sendable (UInt64) -> Void,
        tell: @escaping @Sendable (OperatorNotice) -> Void = { _ in },
        durabilityLost: @escaping @Sendable (String) -> Never
    ) {
        self.intervalMilliseconds = intervalMilliseconds
        self.retryMilliseconds = retryMilliseconds
        self.store = store
        self.library = library
        self.clock = clock
        self.mark = mark
        self.tell = tell
        self.durabilityLost = durabilityLost
    }

    package func start() {
        BackgroundThread.start("publisher") { [self] in
            run()
            stopped.signal()
        }
        entriesWereCommitted()
    }

    /// Never blocks; many calls before the publisher wakes count as one.
    package func entriesWereCommitted() {
        let isFirst = state.withLock { state in
            let isFirst = !state.isWakePending
            state.isWakePending = true
            if state.oldestUnpublished == nil { state.oldestUnpublished = clock.reading().uptime }
            return isFirst
        }
        if isFirst { wake.signal() }
    }

    /// Publishes the entries that are left, then stops. Call it once, after the engine has drained.
    package func drain() {
        state.withLock { $0.isStopping = true }
        pauseEnd.signal()
        wake.signal()
        stopped.wait()
    }

    /// How long the oldest unpublished entry has waited, in milliseconds; 0 when nothing waits.
    package func lagMilliseconds() -> Int64 {
        guard let oldest = state.withLock({ $0.oldestUnpublished }) else { return 0 }
        return max(0, clock.reading().uptime - oldest)
    }

    /// Why the last attempt failed; `nil` when it did not.
    package var failure: String? { state.withLock { $0.lastFailure } }

    package var publishedSize: UInt64 { state.withLock { $0.publishedSize } }

    private func run() {
        while true {
            wake.wait()
            let isStopping = state.withLock { state in
                state.isWakePending = false
                return state.isStopping
            }
            let succeeded = publishEverything()
            if isStopping { return }
            // Holding the next checkpoint back is a bound on work, not a way to wait for anything: the
            // semaphore keeps what is committed meanwhile.
            let pause = succeeded ? intervalMilliseconds : retryMilliseconds
            _ = pauseEnd.wait(timeout: .now() + .milliseconds(pause))
            if !succeeded { entriesWereCommitted() }
        }
    }

    /// Brings entries into the tree, as many as there are or as one checkpoint's time allows.
    ///
    /// - Returns: The size of the tree; `nil` when there was nothing. And whether it was all there is.
    private func integrate(
        from index: UInt64, _ startedAt: Int64
    ) throws -> (size: UInt64?, isEverything: Bool) {
        var size: UInt64?
        let end = startedAt + Int64(intervalMilliseconds)
        repeat {
            let entries = try store.read {
                try $0.entries(from: size ?? index, limit: Self.chunkEntryCount)
            }
            if !entries.isEmpty { size = try library.integrate(entries) }
            if entries.count < Self.chunkEntryCount { return (size, true) }
        } while clock.reading().uptime < end
        return (size, false)
    }

    private func publishEverything() -> Bool {
        do {
            while true {
                // The mark in the store may trail the tree; integrating from the mark is idempotent.
                let known = state.withLock { $0.publishedSize }
                let from = known > 0 ? known : try store.read { try $0.publishedSize() }
                let startedAt = clock.reading().uptime
                let (size, isEverything) = try integrate(from: from, startedAt)
                if let size {
                    try library.publish()
                    let wasFailing = state.withLock { state in
                        defer { state.lastFailure = nil }
                        state.publishedSize = size
                        state.oldestUnpublished = startedAt
                        return state.lastFailure != nil
                    }
                    if wasFailing { tell(.over("the trail is published again")) }
                    mark(size)
                }
                if isEverything {
                    // Entries that were committed since have raised a wake of their own.
                    state.withLock { if !$0.isWakePending { $0.oldestUnpublished = nil } }
                    return true
                }
            }
        } catch TrailLibraryError.lostDurability(let what) {
            durabilityLost(what)
        } catch {
            let isFirst = state.withLock { state in
                defer { state.lastFailure = "\(error)" }
                return state.lastFailure == nil
            }
            if isFirst { tell(.alarm("the trail cannot be published; entries wait in the store: \(error)")) }
            return false
        }
    }
}
