import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords

/// What the writer of `gate.db` reads and changes, over what is kept in memory of it: look-ups for a batch, each by itself;
/// or one open transaction, of `gate.db` always and of `subjects.db` from the first new pseudonym on.
///
/// Order of commits: the mapping first, then everything that refers to it. A crash between the two leaves a
/// mapping that nothing refers to, which the next registration of the same user takes up.
final class GateTransaction: GateReading {
    let writer: GateWriter
    private let subjectsWriter: SubjectsWriter
    var sequences: Sequences
    var counters: OutboxCounters
    /// Of the sends of this transaction and of the offers that ended in it: the statements about them need these.
    var sendNumbers: [SendID: Int64] = [:]
    /// What the sealed part of the next send is made from.
    var sendFields = RowWriter(capacity: 512)
    let prunedRowCountMax: Int
    /// States as this transaction has them so far; their rows are written once, at its end.
    private var changed: [SubjectID: (person: StoredPerson, fields: [UInt8])] = [:]
    /// Rows that were read, for the cache, once it is known that the transaction was committed.
    private var read: [SubjectID: StoredPerson] = [:]
    private var readSubjects: [UserID: Subject] = [:]
    /// People without a row before this transaction, for the cache.
    private var newPeople: [SubjectID] = []
    private struct CountedSend {
        let subject: SubjectID
        let record: ForwardRecord
    }
    /// Sends that count from the moment they were received, for the cache.
    private var counted: [CountedSend] = []
    /// Whether the file may show forwards otherwise than the last commit left them.
    private var changesForwards = false
    /// Messages that are no longer offered, and the rows they are in.
    var endedOffers: [(number: Int64, segment: Int64)] = []
    /// Messages that no row has yet.
    var newOffers: OfferedSegment
    private var writesMappings = false
    /// Whether the first look-up in `subjects.db` begins a snapshot for all. Who sets this ends it.
    var beginsMappings = false
    private let dataKeys: DataKeys
    /// The data key that seals once this is committed, where it is another.
    private var nextDataKey: String?
    /// The result of a pass over the sealed rows.
    private(set) var resealing: Resealing?
    /// Entries that no row has yet.
    var segment: EntrySegment

    init(
        writer: GateWriter, subjectsWriter: SubjectsWriter, subjects: Connection, mappings: SubjectMappings,
        dataKeys: DataKeys, prunedRowCountMax: Int, changeCount: Int
    ) {
        segment = EntrySegment(expectedCount: changeCount)
        newOffers = OfferedSegment(expectedCount: changeCount)
        self.writer = writer
        self.dataKeys = dataKeys
        self.subjectsWriter = subjectsWriter
        sequences = writer.sequences
        counters = writer.counters
        self.prunedRowCountMax = prunedRowCountMax
        super.init(
            gate: writer.connection, subjects: subjects, strings: writer.strings, mappings: mappings)
    }

    // The rows behind these are written once per transaction, so until then they are true only here.
    override func currentSequences() throws -> Sequences { sequences }
    override func currentCounters() throws -> OutboxCounters { counters }

    func seal(_ plaintext: [UInt8], in column: SealedColumn, row: [UInt8]) throws -> [UInt8] {
        try cipher.seal(plaintext, in: column, row: row, on: contexts)
    }

    func seal(_ plaintext: UnsafeRawBufferPointer, in column: SealedColumn, row: [UInt8]) throws -> [UInt8] {
        try cipher.seal(plaintext, in: column, row: row, on: contexts)
    }

    /// - Parameter output: ``RowCipher/byteCount(of:)`` bytes.
    func seal(
        _ plaintext: UnsafeRawBufferPointer, in column: SealedColumn, row: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer
    ) throws {
        try cipher.seal(plaintext, in: column, row: row, on: contexts, into: output)
    }

    // MARK: People

    /// The person as this transaction or the cache has them, without reading the file.
    private func kept(_ subject: SubjectID) -> StoredPerson? {
        changed[subject]?.person ?? read[subject] ?? writer.cache.people[subject]
    }

    override func person(_ subject: SubjectID) throws -> Int64? {
        try kept(subject)?.number ?? super.person(subject)
    }

    override func state(of subject: SubjectID) throws -> RecipientState? {
        if let kept = kept(subject) { return kept.state }
        let stored = try storedPerson(subject)
        read[subject] = stored
        return stored?.state
    }

    override func subject(of user: UserID) throws -> Subject? {
        if let known = readSubjects[user] ?? writer.cache.subjects[user] { return known }
        let found = try super.subject(of: user)
        readSubjects[user] = found
        return found
    }

    override func forwards(of subject: SubjectID, since: Instant, limit: Int) throws -> [ForwardRecord] {
        guard !changesForwards else { return try super.forwards(of: subject, since: since, limit: limit) }
        if let known = writer.cache.forwards[subject]?.all(since: since), known.count <= limit {
            return known
        }
        let found = try super.forwards(of: subject, since: since, limit: limit)
        // Else there may be more.
        if found.count < limit {
            writer.cache.forwards[subject] = RecentForwards(since: since, records: found)
        }
        return found
    }

    /// Call for each person who had no row.
    func noteNewPerson(_ subject: SubjectID) { newPeople.append(subject) }

    /// Call for each send that counts from the moment it was received.
    func note(_ forward: ForwardRecord, to subject: SubjectID) {
        changesForwards = true
        counted.append(CountedSend(subject: subject, record: forward))
    }

    /// Call after every other change to what was forwarded to a person. At once, because a rollback loses nothing but a list
    /// that is read again.
    func forgetForwards(to subject: SubjectID) {
        changesForwards = true
        newPeople.removeAll { $0 == subject }
        counted.removeAll { $0.subject == subject }
        writer.cache.forwards[subject] = nil
    }

    func change(_ person: StoredPerson, fields: [UInt8]) {
        changed[person.state.subject] = (person, fields)
        read[person.state.subject] = nil
    }

    /// Removes an erased person from every cache. The cache of mappings is emptied, because it is keyed by user.
    func forget(_ subject: SubjectID) {
        changed[subject] = nil
        read[subject] = nil
        writer.cache.people[subject] = nil
        forgetForwards(to: subject)
        readSubjects = [:]
        writer.cache.subjects.removeAll()
    }

    // MARK: Pseudonyms

    override func isErased(_ subject: SubjectID) throws -> Bool {
        try writer.mayHaveErasures && super.isErased(subject)
    }

    override func withMappings<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        guard writesMappings else {
            if beginsMappings {
                beginsMappings = false
                try subjects.begin(writing: false)
            }
            return try super.withMappings(body)
        }
        return try subjectsWriter.connection.exclusively { try body(subjectsWriter.connection) }
    }

    /// Gives a user a pseudonym that they had not before; one that is marked for destruction is not taken up again.
    private func make(_ subject: Subject, for user: UserID) throws {
        try beginMappings()
        try withMappings { try mappings.put(subject, for: user, in: $0) }
        readSubjects[user] = subject
    }

    func beginMappings() throws {
        guard !writesMappings else { return }
        // From here on the mappings are read where they are written. The snapshot ends first: an erasure
        // that has the lock empties the log, and that waits for readers.
        subjects.rollBack()
        subjectsWriter.take()
        do {
            try subjectsWriter.connection.exclusively {
                try subjectsWriter.connection.begin(writing: true)
                try SubjectMappings.countChange(in: subjectsWriter.connection)
            }
        } catch {
            subjectsWriter.giveBack()
            throw error
        }
        writesMappings = true
    }

    // MARK: Writing

    /// Writes the change of one step.
    ///
    /// - Returns: How many rows were deleted because their retention had ended.
    func write(_ change: Change) throws -> Int {
        let (entries, clock, sends, forwards, messages, events) = change.writesOfSends
        // First: a step of the clock begins in front of the rows that come with its entry.
        for entry in entries { try append(entry) }
        if let clock { sequences.newestEntryClock = clock }
        let isOfSendsAlone = change.isOfSendsAlone
        if !isOfSendsAlone { try writePeople(change) }
        // What counts as a forward when it is received is written so at once.
        func counts(_ send: SendRecord, _ subject: SubjectID, _ forward: ForwardRecord) -> Bool {
            forward.send == send.id && forward.at == send.receivedAt && subject == send.subject
        }
        for send in sends {
            let forward = forwards.first { counts(send, $0.subject, $0.record) }
            try insertSend(send, counting: forward?.record)
        }
        for (subject, record) in forwards where !sends.contains(where: { counts($0, subject, record) }) {
            guard let send = record.send else {
                throw UnfitWrite(table: "send", message: "a forward counts for no send")
            }
            try countForward(of: subject, record, of: send)
        }
        if !isOfSendsAlone { try writeDuties(change) }
        // By their places, because a row of the outbox is large and each would be copied.
        for place in messages.indices {
            switch messages[place] {
            case .insert(let record): try insertOutbox(record)
            case .offer(let record): try offer(record)
            case .update(let record): try updateOutbox(record)
            case .attempt(let message, let moment): try markAttempt(message, at: moment)
            case .postpone(let message, let moment): try postponeOutbox(message, until: moment)
            case .remove(let message): try removeOutbox(message)
            }
        }
        for event in events { try appendEvent(event) }
        return isOfSendsAlone ? 0 : try writeOperations(change)
    }

    private func writePeople(_ change: Change) throws {
        for (user, subject) in change.newSubjects { try make(subject, for: user) }
        for (_, state) in change.states.pairs { try put(state) }
        for record in change.consents {
            try append(record.sealedFields, to: .consent, at: record.sequence, of: record.subject)
        }
        for (record, position) in change.choices {
            try append(record.sealedFields, to: .choice, at: position, of: record.subject)
        }
    }

    private func writeDuties(_ change: Change) throws {
        for (key, record) in change.dedupe.pairs {
            if let record { try putDedupe(record, to: key.subject) } else { try removeDedupe(key) }
        }
        for link in change.links { try putUnsubscribeLink(link) }
        for reply in change.replies { try insertReply(reply) }
        for write in change.duties {
            switch write {
            case .put(let record): try putDuty(record)
            case .remove(let key): try removeDuty(key.tag, of: key.subject)
            case .removeOf(let send, let subject): try removeDuties(of: send, to: subject)
            }
        }
    }

    /// - Returns: How many rows were deleted because their retention had ended.
    private func writeOperations(_ change: Change) throws -> Int {
        for (name, value) in change.settings.pairs { try setSetting(name, to: value) }
        for subject in change.erased { try eraseSubject(subject) }
        if let size = change.publishedSize { try setPublishedSize(size) }
        if let key = change.dataKey { try useDataKey(key) }
        if let count = change.resealedRowCountMax { resealing = try reseal(rowCountMax: count) }
        return try change.prunedBefore.map { try prune(before: $0) } ?? 0
    }

    /// Makes another data key seal from the end of this transaction on. Stored, so that a restart continues with it.
    private func useDataKey(_ id: String) throws {
        guard let next = dataKeys.cipher.promoting(id) else {
            throw StoreError.unavailable("the data key `\(id)` is not loaded")
        }
        if try setting(DataKeys.settingName) != id { try setSetting(DataKeys.settingName, to: id) }
        guard id != cipher.currentKeyID else { return }
        try SQLiteStore.checkDataKey(next, in: gate)
        nextDataKey = id
    }

    /// Keeps in memory what was looked up, and mappings that were written.
    func keepRead() {
        for (subject, person) in read { writer.cache.people[subject] = person }
        for (user, subject) in readSubjects { writer.cache.subjects[user] = subject }
    }

    // MARK: Messages

    override func knownOutboxHead(_ message: MessageID) -> OutboxRecord? { writer.offered[message]?.head }
    override func offeredRows() throws -> [StoredMessage] { writer.offered.all }
    override func offeredCounters() throws -> OutboxCounters { writer.offered.counters }

    /// Writes the pending changes and commits: subjects first, then the gate.
    ///
    /// Durable after the first commit: new mappings, which nothing refers to. Written after the second: everything. On an
    /// error the caller rolls back.
    ///
    /// - Parameter synchronizing: Whether everything is durable when this returns.
    func commit(synchronizing: Bool = true) throws {
        // Deletes come first: their pages are free for the writes.
        try deleteEndedOffers()
        try writeOffered()
        try writeSegment()
        try writeStates(changed.values.map { ($0.person, $0.fields) })
        let sealCount = try coverSeals()
        try counters.writeChanges(to: gate, since: writer.counters)
        if writesMappings {
            sequences.subjectsGeneration = try withMappings { mappings in
                try mappings.commit()
                return try SubjectMappings.generation(in: mappings)
            }
        }
        if sequences != writer.sequences { try sequences.write(to: gate) }
        try gate.commit(synchronizing: synchronizing)
        strings.commit()
        writer.sequences = sequences
        writer.counters = counters
        keepRead()
        writer.offered.didCommit()
        for (subject, change) in changed { writer.cache.people[subject] = change.person }
        for subject in newPeople {
            writer.cache.forwards[subject] = RecentForwards(since: Instant(milliseconds: 0), records: [])
        }
        for place in counted.indices {
            writer.cache.forwards[counted[place].subject]?.add(counted[place].record)
        }
        writer.coveredSealCount = sealCount
        if let nextDataKey {
            dataKeys.promote(nextDataKey)
            writer.coveredSealCount = dataKeys.cipher.sealCount
        }
    }

    /// Seals covered by one write of the count. A restart skips at most as many.
    private static let coveredSealCount: UInt64 = 1 << 16
    private static let putSealCount = StatementText(
        "key_check", "UPDATE key_check SET seal_count = ? WHERE id = ?")

    /// Writes how many rows the current key will have sealed some time ahead, once what was written is used up.
    ///
    /// - Returns: The count that is in the file when this transaction is.
    private func coverSeals() throws -> UInt64 {
        let count = cipher.sealCount
        guard count > writer.coveredSealCount else { return writer.coveredSealCount }
        let covered = count + Self.coveredSealCount
        try gate.change(Self.putSealCount) {
            $0.add(Int64(clamping: covered))
            $0.add(cipher.currentKeyID)
        }
        return covered
    }

    /// After ``commit()``: moves each log that has grown past `byteCount` into its database.
    ///
    /// What was committed stays so whatever happens here; SQLite synchronizes a log before it moves it.
    func moveLogs(largerThan byteCount: Int) throws {
        defer { if writesMappings { endMappings() } }
        if writesMappings { try withMappings { try $0.moveLog(largerThan: byteCount) } }
        try writer.mover.advance(gate, largerThan: byteCount)
    }

    func rollBack() {
        if writesMappings {
            subjectsWriter.connection.exclusively { subjectsWriter.connection.rollBack() }
            endMappings()
        }
        gate.rollBack()
        strings.rollBack()
        writer.offered.goBack()
    }

    private func endMappings() {
        writesMappings = false
        subjectsWriter.giveBack()
    }
}
