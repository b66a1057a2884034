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
    var changedStates: [SubjectID: (number: Int64, fields: [UInt8])] = [:]
    /// Numbers of people that were read or given, for the writer, once it is known that the transaction was committed.
    private var numbers: [SubjectID: Int64] = [:]
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

    override func person(_ subject: SubjectID) throws -> Int64? {
        if let known = numbers[subject] ?? writer.personNumbers[subject] { return known }
        let number = try super.person(subject)
        numbers[subject] = number
        return number
    }

    override func state(of subject: SubjectID) throws -> RecipientState? {
        let stored = try storedPerson(subject)
        numbers[subject] = stored?.number
        return stored?.state
    }

    /// Call for each person who is given a number.
    func note(_ number: Int64, of subject: SubjectID) { numbers[subject] = number }

    func forget(_ subject: SubjectID) {
        changedStates[subject] = nil
        numbers[subject] = nil
        writer.personNumbers[subject] = nil
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
        for (_, write) in change.states.pairs { try put(write.after, insteadOf: write.before) }
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

    /// Keeps the numbers of people that were read, or given by what is committed now.
    func keepNumbers() {
        for (subject, number) in numbers { writer.personNumbers[subject] = number }
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
        for (subject, state) in changedStates { try writeState(state.fields, of: subject, state.number) }
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
        keepNumbers()
        writer.offered.didCommit()
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
        try Self.coverSeals(of: cipher, coveredBefore: writer.coveredSealCount, in: gate)
    }

    static func coverSeals(
        of cipher: RowCipher, coveredBefore: UInt64, in gate: Connection
    ) throws -> UInt64 {
        let count = cipher.sealCount
        guard count > coveredBefore else { return coveredBefore }
        let covered = count + coveredSealCount
        try gate.change(putSealCount) {
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
