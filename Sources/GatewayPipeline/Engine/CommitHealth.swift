package import GateSteps
import GateVocabulary
import Synchronization

/// Whether a send would be committed now: the last commit worked a moment ago, or a probe of the same way does.
package final class CommitHealth: Sendable {
    /// How long a commit that worked speaks for the next one, in milliseconds. A check after a longer silence
    /// tries a commit, so an idle gateway that is watched commits once in this time.
    static let freshMilliseconds: Int64 = 60_000

    private struct State {
        /// Time since boot of the last commit that left an entry or a probe; `nil` after a failure.
        var workedAt: Int64?
        /// Failures so far. A commit that was written before the newest proves nothing about what came after it.
        var mark = Mark()
        /// What an alarm was raised about that is not over.
        var told: Outage?
        var waiting: [@Sendable (EngineFailure?) -> Void] = []
    }
    private let state = Mutex(State())

    /// What keeps sends from being recorded until an operator has looked after it.
    enum Outage: Hashable, Sendable {
        /// The clock cannot be believed, or the store takes nothing.
        case everything
        /// There is no room for sends. Other things may still be recorded, and say nothing about it.
        case room

        fileprivate init?(_ failure: EngineFailure, isOfStore: Bool) {
            if failure.isOfRoom {
                self = .room
            } else if isOfStore || failure.isOfClock {
                self = .everything
            } else {
                return nil
            }
        }
    }

    /// How many failures, and outages among them, there were when a commit was written.
    struct Mark: Hashable, Sendable {
        fileprivate var failureCount = 0
        fileprivate var outageCount = 0
    }

    var mark: Mark { state.withLock { $0.mark } }

    /// - Parameters:
    ///   - mark: Of when the commit was written.
    ///   - provesRoom: Whether there was room for a send.
    /// - Returns: Whether to say that what an alarm was raised about is over.
    func committed(at uptime: Int64, after mark: Mark, provesRoom: Bool) -> Bool {
        state.withLock { state in
            if state.mark.failureCount == mark.failureCount { state.workedAt = uptime }
            guard let told = state.told, state.mark.outageCount == mark.outageCount,
                told == .everything || provesRoom
            else { return false }
            state.told = nil
            return true
        }
    }

    /// - Parameter isOfStore: Whether the store failed, for everything that is asked.
    /// - Returns: What to raise an alarm about: the first outage since the last was over.
    func failed(_ failure: EngineFailure, isOfStore: Bool = false) -> Outage? {
        state.withLock { state in
            state.workedAt = nil
            state.mark.failureCount += 1
            guard let outage = Outage(failure, isOfStore: isOfStore) else { return nil }
            state.mark.outageCount += 1
            guard state.told == nil else { return nil }
            state.told = outage
            return outage
        }
    }

    /// Answers at once when the last commit worked, else when the probe that is under way has.
    ///
    /// - Returns: Whether the caller has to submit that probe; callers that ask at once share one.
    func ask(at uptime: Int64, _ answer: @escaping @Sendable (EngineFailure?) -> Void) -> Bool {
        let (isFresh, isFirst) = state.withLock { state in
            if let workedAt = state.workedAt, (0..<Self.freshMilliseconds).contains(uptime - workedAt) {
                return (true, false)
            }
            state.waiting.append(answer)
            return (false, state.waiting.count == 1)
        }
        if isFresh { answer(nil) }
        return isFirst
    }

    func probed(_ failure: EngineFailure?) {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for answer in waiting { answer(failure) }
    }
}

extension Engine {
    /// Whether a send would be committed now; `nil` when it would. Never blocks; `answer` may be called later, on
    /// another thread.
    package func askCommit(_ answer: @escaping @Sendable (EngineFailure?) -> Void) {
        if health.ask(at: dependencies.clock.reading().uptime, answer) { probe() }
    }

    /// Takes the path of a send of the general lane, without a send: the clock, the bounds, and one row that is
    /// committed.
    private func probe() {
        submit(in: .security, finished: health.probed) { batch in
            try batch.step { step in
                let now = try step.now()
                try step.requireRoom(isSecurity: false)
                step.memory.setSetting("probe", to: "\(now.milliseconds)")
                step.noteProvedCommit()
            }
        }
    }
}
