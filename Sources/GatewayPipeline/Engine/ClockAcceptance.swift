import GateRecords
package import GateSteps
package import GateVocabulary

extension ClockGuard {
    /// The result of an operator's accepting the clock.
    package enum Acceptance: Sendable, Hashable {
        /// The clock can be believed, and nothing was written.
        case unnecessary
        /// The entry at this index says from which time to which one the trail steps.
        case recorded(index: UInt64, from: Instant, to: Instant)
    }

    /// Accepts the clock as it is, with an entry: times go on from it, forwards or backwards. The one entry whose time
    /// may lie before that of the entry in front of it.
    ///
    /// - Parameter user: The Unix user who asked.
    package func accept(
        _ reading: ClockReading, by user: UInt32, in store: any GateStore
    ) throws -> Acceptance {
        let tail = try store.read { try $0.trailTail() }
        guard let newest = tail.newestTime else { return .unnecessary }
        let last = tail.newestClock
        do throws(EngineFailure) {
            _ = try time(reading, after: newest, recordedAt: last)
            return .unnecessary
        } catch {
            guard error.isOfClock else { throw error }
        }
        try store.write { memory in
            let index = memory.upcomingIndex
            let bytes = try ClockEntry(previous: newest, user: user).bytes(index: index, time: reading.wall)
            memory.append(StoredEntry(index: index, time: reading.wall, bytes: bytes))
            memory.setNewestEntryClock(reading)
        }
        return .recorded(index: tail.entryCount, from: newest, to: reading.wall)
    }
}
