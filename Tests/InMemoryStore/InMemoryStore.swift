package import GateSteps
import GateVocabulary
package import GatewayPipeline
import Synchronization

/// A store that forgets with its process, for tests.
///
/// It fails as a test tells it to: before a commit, after it, and before it is durable.
package final class InMemoryStore: GateStore {
    /// What came between a load and its commit.
    package enum Disturbance: Sendable {
        /// The disk is full: nothing is written.
        case unavailable
        /// The newest step's change cannot be written; the others of its batch can come again.
        case refused
        /// The process ends after the commit, before it is told.
        case lostAnswer
        /// The power goes after the commit, before it is durable. The store is as it was before it, and takes nothing more.
        case lostCommit
    }

    private let contents: Mutex<StoreContents>
    private let disturb: @Sendable (_ commitNumber: Int) -> Disturbance?
    private let commitNumber = Mutex(0)
    /// What is durable, once the power is to go.
    private let durable = Mutex<StoreContents?>(nil)
    private let hasEnded = Mutex(false)

    /// - Parameter disturb: Asked before each commit what goes wrong with it; `nil` for nothing.
    package init(
        _ contents: StoreContents = StoreContents(),
        disturb: @escaping @Sendable (_ commitNumber: Int) -> Disturbance? = { _ in nil }
    ) {
        self.contents = Mutex(contents)
        self.disturb = disturb
        reopen()
    }

    /// As a new process finds it.
    package func reopen() { contents.withLock { $0.offered = [] } }

    /// What is committed; a store opened over it goes on from there.
    package var committed: StoreContents { contents.withLock { $0 } }

    private static let end = StoreError.unavailable("the test ended the process")

    private func refuseAtEnd() throws {
        if hasEnded.withLock({ $0 }) { throw Self.end }
    }

    package func load(_ asks: [Ask], into memory: GateMemory) throws {
        try refuseAtEnd()
        let contents = committed
        memory.begin(at: try contents.trailTail())
        try contents.answer(asks, into: memory)
    }

    package func commit(_ changes: [Change]) throws -> CommitReceipt {
        try refuseAtEnd()
        let number = commitNumber.withLock { number in
            number += 1
            return number
        }
        let disturbance = disturb(number)
        return try contents.withLock { contents in
            switch disturbance {
            case .unavailable: throw StoreError.unavailable("the test's disk is full")
            case .refused:
                throw RefusedChange(
                    change: changes.count - 1, error: StoreError.unavailable("the test refuses a change"))
            case .lostCommit:
                let before = contents
                durable.withLock { $0 = $0 ?? before }
            case .lostAnswer, nil: break
            }
            var receipt = CommitReceipt()
            // All are looked at before any is written, so that nothing has to be undone.
            try ChangeCheck.check(changes, over: contents)
            for change in changes {
                receipt.prunedRowCount += try contents.write(change)
                // Nothing here is sealed.
                if change.resealedRowCountMax != nil {
                    receipt.resealing = Resealing(
                        key: contents.dataKey, visitedRowCount: 0, isDone: true)
                }
            }
            if case .lostAnswer = disturbance { throw Self.end }
            return receipt
        }
    }

    package func synchronize() throws {
        guard let left = durable.withLock({ $0 }) else { return }
        contents.withLock { $0 = left }
        hasEnded.withLock { $0 = true }
        throw Self.end
    }

    package func read<Result>(_ body: (any StoreReading) throws -> Result) throws -> Result {
        let result = Swift.Result { try body(committed) }
        try synchronize()
        return try result.get()
    }

    package func finishErasures() throws {
        contents.withLock { contents in
            for subject in contents.erased { contents.forgetMapping(of: subject) }
            contents.erased = []
        }
    }

    package var damages: [StoredDamage] { [] }
    package func note(_ damage: StoredDamage) {}
    package func checkPages(countMax: Int) throws -> Bool { true }
    package var pageCheck: PageCheck { PageCheck() }
    package var dataKeyUse: DataKeyUse { DataKeyUse(key: "none", sealCount: 0) }
}
