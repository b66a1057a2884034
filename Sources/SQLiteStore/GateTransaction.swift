import Dispatch
import GateVocabulary
import GatewayPipeline

/// What the one writer of `gate.db` keeps between transactions: the newest committed state, so that
/// beginning a transaction reads nothing.
final class GateWriter: @unchecked Sendable {
    // @unchecked is sound because `words`, `tail`, `tally`, `cache` and `coveredSealCount` are touched only inside `connection`'s queue.
    let connection: Connection
    let words = Words()
    var tail = Tail()
    var tally = Tally()
    var cache: PeopleCache
    /// Seals of the current data key that the file counts already.
    var coveredSealCount: UInt64 = 0

    init(_ connection: Connection, cachedPersonCountMax: Int) {
        self.connection = connection
        cache = PeopleCache(countMax: cachedPersonCountMax)
    }
}

/// The writing connection of `subjects.db` and the lock that lets one transaction of it span several calls.
///
/// It is taken inside a transaction of `gate.db`, never the other way round, so the two cannot wait for
/// each other. Sends do not need it: destroying mappings holds up registrations only.
final class SubjectsWriter: Sendable {
    let connection: Connection
    private let lock = DispatchSemaphore(value: 1)

    init(_ connection: Connection) { self.connection = connection }

    func take() { lock.wait() }
    func giveBack() { lock.signal() }
}

/// One open transaction: `gate.db` always, `subjects.db` from the first new pseudonym on.
///
/// Order of commits: the mapping first, then everything that refers to it. A crash between the two leaves a
/// mapping that nothing refers to, which the next registration of the same user takes up.
final class GateTransaction: GateReading, StoreTransaction {
    let writer: GateWriter
    private let subjectsWriter: SubjectsWriter
    var tail: Tail
    var tally: Tally
    /// The send inserted last, whose number the statements about it need.
    var newestSend: (id: SendID, number: Int64)?
    let prunedRowCountMax: Int
    private var savepointDepth = 0
    /// States as this transaction has them so far; their rows are written once, at its end.
    private var changed: [SubjectID: (person: StoredPerson, fields: [UInt8])] = [:]
    /// What was read, for the cache, once it is known that it was committed.
    private var read: [SubjectID: StoredPerson] = [:]
    private var readSubjects: [UserID: Subject] = [:]
    private var writesMappings = false

    init(
        writer: GateWriter, subjectsWriter: SubjectsWriter, subjects: Connection, mappings: SubjectMappings,
        prunedRowCountMax: Int, damages: DamageLog
    ) {
        self.writer = writer
        self.subjectsWriter = subjectsWriter
        tail = writer.tail
        tally = writer.tally
        self.prunedRowCountMax = prunedRowCountMax
        super.init(
            gate: writer.connection, subjects: subjects, words: writer.words, mappings: mappings,
            damages: damages)
    }

    // The rows behind these are written once per transaction, so until then they are true only here.
    override func currentTail() throws -> Tail { tail }
    override func currentTally() throws -> Tally { tally }

    // MARK: People

    /// The person as this transaction has them already, without a look into the file.
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

    func change(_ person: StoredPerson, fields: [UInt8]) {
        changed[person.state.subject] = (person, fields)
        read[person.state.subject] = nil
    }

    /// Nothing of an erased person may be found where it was kept to be quick. What is kept of others is only that.
    func forget(_ subject: SubjectID) {
        changed[subject] = nil
        read[subject] = nil
        writer.cache.people[subject] = nil
        readSubjects = [:]
        writer.cache.subjects.removeAll()
    }

    // MARK: Pseudonyms

    override func withMappings<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        guard writesMappings else { return try super.withMappings(body) }
        return try subjectsWriter.connection.exclusively { try body(subjectsWriter.connection) }
    }

    func makeSubject(for user: UserID, subject: SubjectID) throws -> Subject {
        try beginMappings()
        return try withMappings { connection in
            // A pseudonym that is marked for destruction is not taken up again: erasing is final, and the
            // same user starts as somebody new.
            if let known = try known(mappings.find(user, in: connection)), try !isErased(known.id) {
                return known
            }
            return try mappings.make(subject, for: user, in: connection)
        }
    }

    private func beginMappings() throws {
        guard !writesMappings else { return }
        // From here on the mappings are read where they are written. The snapshot ends first: an erasure
        // that has the lock empties the log, and that waits for readers.
        subjects.rollBack()
        subjectsWriter.take()
        do {
            try subjectsWriter.connection.exclusively {
                try subjectsWriter.connection.begin(writing: true)
                do {
                    for _ in 0..<savepointDepth { try subjectsWriter.connection.setSavepoint() }
                } catch {
                    subjectsWriter.connection.rollBack()
                    throw error
                }
            }
        } catch {
            subjectsWriter.giveBack()
            throw error
        }
        writesMappings = true
    }

    // MARK: Undoing

    func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
        try gate.setSavepoint()
        if writesMappings { try withMappings { try $0.setSavepoint() } }
        savepointDepth += 1
        let before = (tail: tail, tally: tally, words: words.mark, changed: changed)
        let result: Result
        do {
            // Whoever runs the savepoint may go on after it.
            result = try damages.noting(body)
        } catch {
            savepointDepth -= 1
            (tail, tally) = (before.tail, before.tally)
            words.rollBack(to: before.words)
            newestSend = nil
            changed = before.changed
            // What was read since may have been made since.
            (read, readSubjects) = ([:], [:])
            forgetPerson()
            try gate.rollBackToSavepoint()
            if writesMappings { try withMappings { try $0.rollBackToSavepoint() } }
            throw error
        }
        savepointDepth -= 1
        try gate.releaseSavepoint()
        if writesMappings { try withMappings { try $0.releaseSavepoint() } }
        return result
    }

    /// Writes what was kept in memory and commits: subjects first, then the gate.
    ///
    /// Durable after the first commit: new mappings, which refer to nothing. After the second: everything.
    /// On an error the caller rolls back.
    func commit() throws {
        if tail != writer.tail { try tail.write(to: gate) }
        try writeStates(changed.values.map { ($0.person, $0.fields) })
        let sealCount = try coverSeals()
        try tally.writeChanges(to: gate)
        if writesMappings { try withMappings { try $0.commit() } }
        try gate.commit()
        words.commit()
        writer.tail = tail
        writer.tally = tally
        for (subject, person) in read { writer.cache.people[subject] = person }
        for (subject, change) in changed { writer.cache.people[subject] = change.person }
        for (user, subject) in readSubjects { writer.cache.subjects[user] = subject }
        writer.coveredSealCount = sealCount
    }

    /// Seals covered by one write of the count. A restart skips at most as many.
    private static let coveredSealCount: UInt64 = 1 << 16
    private static let putSealCount = StatementText(
        "key_check", "UPDATE key_check SET seal_count = ? WHERE id = ?", damage: .overwritten)

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
    /// What was committed is durable already and stays so whatever happens here.
    func moveLogs(largerThan byteCount: Int) throws {
        defer { if writesMappings { endMappings() } }
        if writesMappings { try withMappings { try $0.moveLog(largerThan: byteCount) } }
        try gate.moveLog(largerThan: byteCount)
    }

    func rollBack() {
        if writesMappings {
            subjectsWriter.connection.exclusively { subjectsWriter.connection.rollBack() }
            endMappings()
        }
        gate.rollBack()
        words.rollBack(to: 0)
    }

    private func endMappings() {
        writesMappings = false
        subjectsWriter.giveBack()
    }
}
