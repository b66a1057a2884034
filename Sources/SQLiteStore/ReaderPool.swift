import Dispatch
import GatewayPipeline
import Synchronization

/// One pair of read-only connections with its cache of names.
final class Reader: @unchecked Sendable {
    // @unchecked is sound because the pool hands a reader to one thread at a time, and `strings` is touched
    // by no other thread.
    let gate: Connection
    let subjects: Connection
    let strings = StringTable()

    init(gate: Connection, subjects: Connection) {
        self.gate = gate
        self.subjects = subjects
    }

    /// Runs `body` over one snapshot of both databases.
    func read<Result>(
        _ mappings: SubjectMappings, _ damages: DamageLog, _ body: (any StoreReading) throws -> Result
    ) throws -> Result {
        try gate.exclusively {
            try subjects.exclusively {
                defer {
                    subjects.rollBack()
                    gate.rollBack()
                }
                // The gate's snapshot is fixed before that of the subjects. An erasure marks in the gate,
                // destroys the mapping, and then takes the mark away: a reader that sees the mapping in this
                // order sees the mark too.
                try gate.begin(writing: false)
                _ = try Sequences(from: gate)
                try subjects.begin(writing: false)
                let reading = GateReading(
                    gate: gate, subjects: subjects, strings: strings, mappings: mappings)
                defer { reading.close() }
                return try damages.noting { try body(reading) }
            }
        }
    }
}

/// A fixed number of readers, each lent to one `read` at a time.
final class ReaderPool: Sendable {
    private let idle: Mutex<[Reader]>
    private let available: DispatchSemaphore
    private let count: Int

    init(_ readers: [Reader]) {
        idle = Mutex(readers)
        count = readers.count
        available = DispatchSemaphore(value: readers.count)
    }

    /// Runs `body` with a reader; blocks the thread until one is free.
    func lend<Result>(_ body: (Reader) throws -> Result) rethrows -> Result {
        available.wait()
        defer { available.signal() }
        guard let reader = idle.withLock({ $0.popLast() }) else {
            preconditionFailure("the reader pool counted a reader it does not have")
        }
        defer { idle.withLock { $0.append(reader) } }
        return try body(reader)
    }

    /// Waits for every reader to come back, then closes them all.
    func close() {
        for _ in 0..<count { available.wait() }
        for reader in idle.withLock({ $0 }) {
            reader.gate.close()
            reader.subjects.close()
        }
        for _ in 0..<count { available.signal() }
    }
}
