package import CompliancePolicy
package import GateSteps
package import GateVocabulary
package import GateRecords

/// Brings the entries that a store lacks back into it, from a trail that was verified, while no engine runs.
///
///     backup has entries 0 … B−1, trail has 0 … M−1
///     1. entries B … M−1, ``entryCountPerCommit`` a commit, each with what it changes
///     2. the `restore` entry at M
///     3. what has no private values any more, and what may be lost with the tail, is ended by entries after M
///     4. the keys of people whose erasure came back are destroyed, and the setting `restoring` is removed
///
/// Crash points. A commit of step 1 leaves a store that is the backup of a later moment: its number of entries is where the next
/// run goes on, and the setting `restoring` keeps the gateway from starting on it. After the commit of step 2 the setting says that
/// the entry is recorded, so the next run begins with step 3, which looks at the messages and people that are still there and
/// writes nothing for those that were ended before. Every run reads the entries from B on once more to learn which messages
/// wait; reading writes nothing.
package struct TrailRestore {
    /// So many that the fsync of a commit is a small part of its time, and so few that a run that is killed loses little.
    package static let entryCountPerCommit: UInt64 = 500
    /// People looked at between two commits.
    private static let personCountPerCommit = 500
    /// The same where the tail is lost: a dozen entries are written of each.
    private static let withdrawnCountPerCommit = 40

    private let store: any GateStore
    private let entry: (UInt64) throws -> [UInt8]
    private let policies: (PolicyDigest) throws -> CompiledPolicy?
    private let purposes: () throws -> Set<Purpose>
    private let index: IndexKey

    /// - Parameters:
    ///   - entry: One of the verified trail.
    ///   - policies: The archived bundles.
    ///   - purposes: Where the tail is lost, what may have been withdrawn there; see
    ///     ``GateMemory/withdrawAll(_:of:since:at:)``. Asked once every entry is in the store, so that
    ///     they can be those of the bundle that is in force then.
    ///   - index: The gateway's index key, which marks compromised keys.
    package init(
        _ store: any GateStore, entry: @escaping (UInt64) throws -> [UInt8],
        policies: @escaping (PolicyDigest) throws -> CompiledPolicy?,
        withdrawing purposes: @escaping () throws -> Set<Purpose>, index: IndexKey
    ) {
        self.store = store
        self.entry = entry
        self.policies = policies
        self.purposes = purposes
        self.index = index
    }

    /// Runs to the end, from wherever an earlier run was ended.
    ///
    /// - Parameters:
    ///   - plan: What to restore; where a restore is under way, that one goes on.
    ///   - clock: What the clocks show; entries of its own have this time.
    ///   - progress: Told after each commit how many of the entries are there.
    /// - Returns: The `restore` entry.
    package func run(
        _ plan: RestoreUnderWay, clock: ClockReading, limits: EngineLimits,
        progress: (_ done: UInt64, _ total: UInt64) -> Void = { _, _ in }
    ) throws -> RestoreEntry {
        var (state, count) = try store.read { (try $0.restoreUnderWay() ?? plan, try $0.entryCount()) }
        let total = state.entry.previous.size
        var sends = try follow(from: state.entry.backupSize, to: count, of: total)
        while count < total {
            count = try bringBack(
                from: count, to: min(count + Self.entryCountPerCommit, total), &sends, &state)
            progress(count, total)
        }
        let withdrawn = try state.entry.isTailLost ? purposes() : []
        let now = try time(clock, limits)
        if !state.isRecorded {
            state = try committing { memory in
                var state = state
                try memory.recordRestore(&state, at: now, clock: clock)
                try memory.setRestoreUnderWay(state)
                return state
            }
        }
        try endMessages(&sends, of: state, at: now, clock)
        try lookAtPeople(withdrawing: withdrawn, at: now, clock)
        // Marked by the commits before; nothing of an erased person may outlive the restore.
        try store.finishErasures()
        try committing { try $0.setRestoreUnderWay(nil) }
        return state.entry
    }

    /// What would be brought back, and what could not be; nothing is written.
    package func preview(_ plan: RestoreUnderWay) throws -> RestoreEntry {
        var (state, count) = try store.read { (try $0.restoreUnderWay() ?? plan, try $0.entryCount()) }
        let total = state.entry.previous.size
        var sends = try follow(from: state.entry.backupSize, to: count, of: total)
        // One for all steps, so that each sees those before it as if they were written.
        let memory = GateMemory()
        try store.load([], into: memory)
        while count < total {
            state = try step(
                from: count, to: min(count + Self.entryCountPerCommit, total), &sends, state, over: memory)
            count = min(count + Self.entryCountPerCommit, total)
        }
        return state.entry
    }

    private func time(_ clock: ClockReading, _ limits: EngineLimits) throws -> Instant {
        var limits = limits
        // How long ago the loss was is no doubt about the clock.
        limits.clockGapMillisecondsMax = .max
        return try ClockGuard(limits: limits).time(
            clock, after: store.read { try $0.newestEntryTime() }, recordedAt: nil)
    }

    /// Follows the messages of entries that are in the store already.
    private func follow(from first: UInt64, to end: UInt64, of total: UInt64) throws -> RestoredSends {
        var sends = RestoredSends()
        for index in first..<max(first, end) {
            let bytes: [UInt8]
            if index < total {
                bytes = try entry(index)
            } else {
                guard let own = try store.read({ try $0.entry(index) }) else { continue }
                bytes = own.bytes
            }
            _ = try sends.effects(of: bytes, policies: policies)
        }
        return sends
    }

    // MARK: Entries

    private func bringBack(
        from first: UInt64, to end: UInt64, _ sends: inout RestoredSends, _ state: inout RestoreUnderWay
    ) throws -> UInt64 {
        let memory = GateMemory()
        try store.load([], into: memory)
        let next = try step(from: first, to: end, &sends, state, over: memory)
        try store.commitAlone(memory.applied)
        state = next
        return end
    }

    private func step(
        from first: UInt64, to end: UInt64, _ sends: inout RestoredSends, _ state: RestoreUnderWay,
        over memory: GateMemory
    ) throws -> RestoreUnderWay {
        var read: [(index: UInt64, time: Instant, bytes: [UInt8], effects: [RestoredEffect])] = []
        for index in first..<end {
            let bytes = try entry(index)
            do {
                read.append(
                    (
                        index, try TrailEntry(reading: bytes).time, bytes,
                        try sends.effects(of: bytes, policies: policies)
                    ))
            } catch {
                throw RestoreFailure.unreadableEntry(index: index, "\(error)")
            }
        }
        // Asked for at once: a step that begins anew for each would begin a thousand times.
        try store.load(
            Array(Set(read.flatMap { $0.effects.flatMap(\.asks) })).filter { !memory.knows($0) }, into: memory
        )
        return try store.step(
            { memory in
                var next = state
                for entry in read {
                    try memory.append(entry.bytes, restoredAs: entry.index, at: entry.time)
                    for effect in entry.effects { try memory.restore(effect, &next, under: index) }
                }
                memory.setPublishedSize(end)
                try memory.setRestoreUnderWay(next)
                return next
            }, over: memory)
    }

    @discardableResult
    private func committing<Result>(
        _ asks: [Ask] = [], _ body: (GateMemory) throws -> Result
    ) throws -> Result {
        let memory = GateMemory()
        try store.load(asks, into: memory)
        let result = try store.step(body, over: memory)
        if memory.applied.contains(where: { !$0.isEmpty }) { try store.commitAlone(memory.applied) }
        return result
    }

    // MARK: What is lost

    private func endMessages(
        _ sends: inout RestoredSends, of state: RestoreUnderWay, at now: Instant, _ clock: ClockReading
    ) throws {
        let lost = sends.waiting.sorted { $0.key < $1.key }
        for start in stride(from: 0, to: lost.count, by: Int(Self.entryCountPerCommit)) {
            let piece = lost[start..<min(start + Int(Self.entryCountPerCommit), lost.count)]
            let first = try store.read { try $0.entryCount() }
            var ended: [(index: UInt64, bytes: [UInt8], effects: [RestoredEffect])] = []
            for (message, waiting) in piece {
                let index = first + UInt64(ended.count)
                let bytes = try waiting.ending(message, index: index, at: now)
                ended.append((index, bytes, try sends.effects(of: bytes, policies: policies)))
            }
            try committing(Array(Set(ended.flatMap { $0.effects.flatMap(\.asks) }))) { memory in
                // Not counted: the entry of the restore is written, and says what came back.
                var ignored = state
                for entry in ended {
                    try memory.append(entry.bytes, restoredAs: entry.index, at: now)
                    for effect in entry.effects { try memory.restore(effect, &ignored, under: index) }
                }
                memory.setNewestEntryClock(clock)
            }
        }
    }

    /// - Parameter purposes: None where the tail is not lost.
    private func lookAtPeople(
        withdrawing purposes: Set<Purpose>, at now: Instant, _ clock: ClockReading
    ) throws {
        let restoredAt = try store.read { try $0.trailLineage()?.restoredAt } ?? now
        let limit = purposes.isEmpty ? Self.personCountPerCommit : Self.withdrawnCountPerCommit
        var last: SubjectID?
        while true {
            let people = try store.read { try $0.people(after: last, limit: limit) }
            guard let next = people.last else { return }
            last = next
            let asks = people.flatMap { subject -> [Ask] in
                [.subject(subject), .state(subject), .messagesOfPerson(subject)]
                    + (purposes.isEmpty ? [] : [.consents(subject)])
            }
            try committing(asks) { memory in
                for subject in people {
                    try memory.endUnreachable(subject, at: now)
                    try memory.withdrawAll(purposes, of: subject, since: restoredAt, at: now)
                    try memory.decideFirst(of: subject)
                }
                if !memory.change.entries.isEmpty { memory.setNewestEntryClock(clock) }
            }
        }
    }
}

/// Why a restore cannot go on. What was committed stays, and the store goes into service only once it is done.
package enum RestoreFailure: Error, Hashable, Sendable, CustomStringConvertible {
    case unreadableEntry(index: UInt64, String)

    package var description: String {
        switch self {
        case .unreadableEntry(let index, let why): "entry \(index) cannot be brought back: \(why)"
        }
    }
}
