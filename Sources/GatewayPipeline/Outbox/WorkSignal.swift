import Synchronization

/// A counter that sleepers can wait on: commits raise it, the relay sleeps until it is above what it saw.
package final class WorkSignal: Sendable {
    private struct State {
        var version: UInt64 = 0
        var nextSleeper: UInt64 = 0
        var sleepers: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }
    private let state = Mutex(State())

    package init() {}

    package var version: UInt64 { state.withLock { $0.version } }

    /// Wakes every waiting task. Never blocks.
    package func raise() {
        let sleepers = state.withLock { state in
            state.version += 1
            defer { state.sleepers.removeAll() }
            return Array(state.sleepers.values)
        }
        for sleeper in sleepers { sleeper.resume() }
    }

    /// Returns when ``version`` is above `seen`, or the task is cancelled.
    package func wait(above seen: UInt64) async {
        let ticket = state.withLock { state in
            state.nextSleeper += 1
            return state.nextSleeper
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.version > seen || Task.isCancelled { return true }
                    state.sleepers[ticket] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: ticket) }?.resume()
        }
    }
}
