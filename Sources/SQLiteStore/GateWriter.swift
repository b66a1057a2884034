import Dispatch
import GateSteps
import GateVocabulary

/// What the one writer of `gate.db` keeps in memory between transactions: the newest committed state, so that
/// beginning a transaction reads nothing.
final class GateWriter: @unchecked Sendable {
    // @unchecked is sound because `strings`, `sequences`, `counters`, `personNumbers`, `offered`, `coveredSealCount` and `mayHaveErasures` are touched only inside `connection`'s queue.
    let connection: Connection
    let mover: LogMover
    let strings = StringTable()
    var sequences = Sequences()
    var counters = OutboxCounters()
    /// Numbers of the people of recent batches, which name them in every row of theirs.
    var personNumbers: RecentValues<SubjectID, Int64>
    let offered = OfferedMessages()
    /// Seals of the current data key that the file counts already.
    var coveredSealCount: UInt64 = 0
    /// `false` only where no mapping is marked for destruction, so that nearly no look-up asks.
    var mayHaveErasures = true

    init(_ connection: Connection, _ mover: LogMover, personNumberCountMax: Int) {
        self.connection = connection
        self.mover = mover
        personNumbers = RecentValues(countMax: personNumberCountMax)
    }
}

/// The writing connection of `subjects.db` and the lock that lets one transaction of it span several calls.
///
/// The lock is taken inside a transaction of `gate.db`, never the other way round, so the two cannot wait for
/// each other. Sends do not need it: destroying mappings holds up registrations only.
final class SubjectsWriter: Sendable {
    let connection: Connection
    private let lock = DispatchSemaphore(value: 1)

    init(_ connection: Connection) { self.connection = connection }

    func take() { lock.wait() }
    func giveBack() { lock.signal() }
}
