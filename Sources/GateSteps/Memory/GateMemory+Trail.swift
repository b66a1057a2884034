import GateRecords
package import GateVocabulary

extension GateMemory {
    /// Number of entries so far, which is the index of the next.
    package var upcomingIndex: UInt64 { totals.entryCount }
    package func newestEntryTime() -> Instant? { totals.newestTime }
    package func newestEntryClock() -> ClockReading? { totals.newestClock }
    package func publishedSize() -> UInt64 { totals.publishedTreeSize }

    package func append(_ entry: StoredEntry) {
        totals.entryCount += 1
        totals.newestTime = entry.time
        totals.newestClock = nil
        Change.add(entry, to: &change.entries)
    }

    /// Gives an entry of the step its bytes, whose place was taken before.
    func fill(_ entry: StoredEntry) {
        guard let place = change.entries.firstIndex(where: { $0.index == entry.index }) else {
            preconditionFailure("entry \(entry.index) was written and has no place")
        }
        change.entries[place] = entry
    }

    /// Remembers what the clocks show, beside the newest entry.
    package func setNewestEntryClock(_ reading: ClockReading) {
        totals.newestClock = reading
        change.clock = reading
    }

    /// Records how far the tree is durable.
    package func setPublishedSize(_ size: UInt64) {
        totals.publishedTreeSize = size
        change.publishedSize = size
    }

    /// The bytes of an entry that was recorded before, by this step, one before it in the batch, or an earlier batch.
    func entry(_ index: UInt64) throws -> [UInt8] {
        if let tail, index >= tail.entryCount, index < totals.entryCount {
            for change in [change] + applied.reversed() {
                if let added = change.entries.first(where: { $0.index == index }) { return added.bytes }
            }
        }
        return try known(publishedEntries[index], .entry(index))
    }

    package func setting(_ name: String) throws -> String? { try known(settings[name], .setting(name)) }

    package func setSetting(_ name: String, to value: String?) {
        write(.success(value), at: name, in: \.settings)
        change.settings.set(name, to: value)
    }

    // MARK: What only the store does

    /// Deletes idempotency keys, events, counters and told events older than their retention; the receipt says how many
    /// rows went.
    package func prune(before: Instant) { change.prunedBefore = before }
    /// Has another data key seal from the end of the commit on.
    package func useDataKey(_ key: String) { change.dataKey = key }
    /// Seals rows anew that are not sealed under the current data key; the receipt says how far the pass has come.
    package func reseal(rowCountMax: Int) { change.resealedRowCountMax = rowCountMax }

    // MARK: What only the engine knows

    func affect(_ body: (inout StepEffects) -> Void) { body(&change.effects) }

    func challenge(_ order: ChallengeOrder) throws -> SealedChallenge {
        guard let challenge = challenges[order] else { throw MissingRows(.challenge(order)) }
        return challenge
    }

    package func headroom() throws -> Headroom {
        guard let room else { throw MissingRows(.headroom) }
        return room
    }
}
