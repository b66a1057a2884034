package import GateSteps
import GateVocabulary
package import GatewayPipeline
package import OpenSSLCrypto
import Synchronization

/// The store of a gateway: two SQLite files in one state directory.
///
/// - `gate.db`: everything, keyed by pseudonym; `subjects.db`: which user has which pseudonym. Both in WAL mode; the store
///   synchronizes the logs itself (``LogSynchronization``), so that the next batch is stepped while the last one is made
///   durable.
/// - Every page of both has a code, which is checked whenever it is read from the disk (``PageFile``), and beside each there is a
///   mark of what its log must hold after the process has ended (``LogMark``).
/// - One writer: `commit` runs one `BEGIN IMMEDIATE … COMMIT` at a time; `read` uses a small pool of
///   read-only connections beside it.
/// - A failed synchronization is remembered: from then on every call throws
///   `StoreError.lostDurability`, because nothing this process sees is known to be on disk. A restart reads
///   what is.
/// - Blocking: every call occupies its thread until SQLite is done. Keep them off event loops.
package final class SQLiteStore: GateStore {
    private let readers: ReaderPool
    private let subjectsForWriting: Connection
    let subjectsWriter: SubjectsWriter
    let writer: GateWriter
    let dataKeys: DataKeys
    private let indexKey: HMACKey
    /// The mapping of users to pseudonyms, read and written with the data keys as they are now.
    var mappings: SubjectMappings { SubjectMappings(cipher: dataKeys.cipher, index: indexKey) }
    private let limits: SQLiteStoreLimits
    /// Why no call is served any more: a lost synchronization, or the end.
    private let stopped = Mutex<StoreError?>(nil)
    private let directory: StateDirectory
    private let damageLog: DamageLog
    private let scrub: PageScrub

    /// Opens the store, makes it when it is new, and finishes erasures that a crash left half done.
    ///
    /// - Parameters:
    ///   - path: The state directory; made with mode 0700 when it does not exist (its parent must).
    ///   - cipher: Every data key. The one that the store was last told to seal with seals; else the current one.
    ///   - indexKey: What user ids are looked up under. It can never change for a directory.
    ///   - damageFound: Told once of each damaged page, on the thread that read it; must not block.
    /// - Throws: ``StoreOpeningError`` for what a person must put right, else `StoreError`.
    package convenience init(
        directory path: String, cipher: RowCipher, indexKey: HMACKey,
        limits: SQLiteStoreLimits = SQLiteStoreLimits(),
        damageFound: @escaping @Sendable (StoredDamage) -> Void = { _ in }
    ) throws {
        try self.init(directory: path, limits: limits, damageFound: damageFound) { (cipher, indexKey) }
    }

    /// The same with keys that are read once the directory's lock is held, when no other process changes them any more.
    ///
    /// - Parameter migrating: Told how far an older directory is brought up to date, some hundred times a second. May throw to end
    ///   it: the next start goes on.
    package convenience init(
        directory path: String, limits: SQLiteStoreLimits = SQLiteStoreLimits(),
        damageFound: @escaping @Sendable (StoredDamage) -> Void = { _ in },
        migrating: @escaping (MigrationProgress) throws -> Void = { _ in },
        readingKeys: () throws -> (cipher: RowCipher, index: HMACKey)
    ) throws {
        try self.init(
            directory: path, schemas: Schemas(), limits: limits, damageFound: damageFound,
            migrating: migrating,
            readingKeys: readingKeys)
    }

    /// - Parameter schemas: Of a build, which a test makes a later one.
    init(
        directory path: String, schemas: Schemas, limits: SQLiteStoreLimits = SQLiteStoreLimits(),
        damageFound: @escaping @Sendable (StoredDamage) -> Void = { _ in },
        migrating: @escaping (MigrationProgress) throws -> Void = { _ in },
        readingKeys: () throws -> (cipher: RowCipher, index: HMACKey)
    ) throws {
        let damages = DamageLog(isFound: damageFound)
        damageLog = damages
        let directory = try StateDirectory(path: path)
        // Of a newer build's directory nothing is touched, not even the end of a log that nobody was answered from.
        for schema in schemas.all { try StateDirectory.requireKnownVersion(of: schema, in: path) }
        var (cipher, indexKey) = try readingKeys()
        var isResumed = false
        try Self.requireSubjects(in: directory)
        let gatePath = try directory.prepareFile(Schema.gate.file)
        let subjectsPath = try directory.prepareFile(Schema.subjects.file)
        for schema in [Schema.subjects, Schema.gate] { try directory.requireLayout(of: schema) }
        let pageKeys = { (schema: Schema) in PageKeys(index: indexKey, file: schema.file) }
        let (subjectsKeys, gateKeys) = (pageKeys(.subjects), pageKeys(.gate))
        func open(
            _ path: String, _ keys: PageKeys, _ role: Connection.Role, cache: Int, mark: LogMark? = nil,
            logEnd: LogEnd = LogEnd()
        ) throws -> Connection {
            try Connection(
                path: path, file: keys.file, role: role, cacheByteCount: cache,
                busyTimeoutMilliseconds: limits.busyTimeoutMilliseconds, damages: damages,
                pages: try PageFile(keys, logEnd: logEnd), mark: mark)
        }
        // Both before either is opened: a log that is refused is left as it is.
        let subjectsMark = try LogMark(besides: subjectsPath, keys: subjectsKeys)
        let gateMark = try LogMark(besides: gatePath, keys: gateKeys)
        let (subjectsEnd, gateEnd) = (try subjectsMark.settle(), try gateMark.settle())
        try directory.synchronize()
        let mappings = SubjectMappings(cipher: cipher, index: indexKey)

        let subjects = try Self.tellingOfWrongKey(subjectsPath, subjectsKeys) {
            try open(
                subjectsPath, subjectsKeys, .writer(byteCountMax: nil), cache: limits.readerCacheByteCount,
                mark: subjectsMark, logEnd: subjectsEnd)
        }
        try subjects.exclusively {
            var migration = Migration(schemas.subjects)
            migration.progress = migrating
            try migration.run(on: subjects)
            try schemas.subjects.requireOwn(subjects)
            try mappings.checkIndexKey(in: subjects)
        }
        if directory.byteCount(of: Schema.gate.file) == 0,
            directory.byteCount(of: Schema.gate.file + "-wal") == 0,
            try subjects.exclusively({ try SubjectMappings.hasAny(in: subjects) })
        {
            throw StoreOpeningError.gateMissing(
                file: Schema.gate.file, besides: Schema.subjects.file, path: directory.path)
        }
        let gate = try open(
            gatePath, gateKeys, .writer(byteCountMax: limits.gateByteCountMax),
            cache: limits.writerCacheByteCount, mark: gateMark, logEnd: gateEnd)
        try gate.exclusively {
            var migration = Migration(schemas.gate)
            migration.progress = migrating
            migration.rows = {
                cipher = try Self.resumed(cipher, in: gate)
                isResumed = true
                return Migration.Rows(
                    reading: GateReading(
                        gate: gate, subjects: subjects, strings: StringTable(),
                        mappings: SubjectMappings(cipher: cipher, index: indexKey)),
                    cipher: cipher, damages: damages, rowCountMax: limits.migratedRowCountMax,
                    logByteCountBeforeCheckpoint: limits.logByteCountBeforeCheckpoint)
            }
            try migration.run(on: gate)
            try schemas.gate.requireOwn(gate)
        }
        let mover = LogMover(
            try open(gatePath, gateKeys, .writer(byteCountMax: nil), cache: limits.readerCacheByteCount),
            pinnedBy: try open(gatePath, gateKeys, .reader, cache: limits.readerCacheByteCount))
        let writer = GateWriter(gate, mover, personNumberCountMax: limits.personNumberCountMax)
        try gate.exclusively {
            if !isResumed { cipher = try Self.resumed(cipher, in: gate) }
            writer.sequences = try Sequences(from: gate)
            try writer.sequences.requireUnpublished(in: gate)
            guard
                try subjects.exclusively({ try SubjectMappings.generation(in: subjects) })
                    >= writer.sequences.subjectsGeneration
            else {
                throw StoreOpeningError.subjectsBehind(
                    file: Schema.subjects.file, besides: Schema.gate.file, path: directory.path)
            }
            writer.counters = try OutboxCounters(from: gate)
        }
        scrub = PageScrub(
            [
                .init(
                    writer: gate, mover: mover,
                    reader: try open(gatePath, gateKeys, .reader, cache: limits.readerCacheByteCount)),
                .init(
                    writer: subjects,
                    reader: try open(subjectsPath, subjectsKeys, .reader, cache: limits.readerCacheByteCount)),
            ], damages: damages, directory: directory.path)
        let readers = try (0..<limits.readerCount).map { _ in
            Reader(
                gate: try open(gatePath, gateKeys, .reader, cache: limits.readerCacheByteCount),
                subjects: try open(subjectsPath, subjectsKeys, .reader, cache: limits.readerCacheByteCount))
        }
        self.readers = ReaderPool(readers)
        subjectsForWriting = try open(subjectsPath, subjectsKeys, .reader, cache: limits.readerCacheByteCount)
        subjectsWriter = SubjectsWriter(subjects)
        self.writer = writer
        self.dataKeys = DataKeys(cipher)
        self.indexKey = indexKey
        self.limits = limits
        self.directory = directory
        // An earlier process may have ended between a commit and its synchronization.
        try subjects.synchronize()
        try gate.synchronize()
        try finishErasures()
        try queueOffered()
    }

    /// The keys with that which sealed last, checked, and with the count of its seals. Once for a start: the count is added.
    private static func resumed(_ cipher: RowCipher, in gate: Connection) throws -> RowCipher {
        let resumed = try DataKeys.resumed(cipher, in: gate)
        try gate.writing { try checkDataKey(resumed, in: gate) }
        return resumed
    }

    private static let anyOffered = StatementText("offered", "SELECT 1 FROM offered LIMIT 1")

    /// Messages that an earlier process offered without a result wait again.
    private func queueOffered() throws {
        try writer.connection.exclusively {
            guard try writer.connection.first(Self.anyOffered, read: { _ in true }) != nil else { return }
            try subjectsForWriting.exclusively {
                try writer.connection.begin(writing: true)
                let transaction = transaction()
                defer { transaction.close() }
                do {
                    try transaction.queueOfferedOfEarlierProcess()
                    try transaction.commit()
                } catch {
                    transaction.rollBack()
                    throw error
                }
            }
        }
    }

    /// `subjects.db` is made first and filled first, so a `gate.db` with anything in it has never been without it.
    /// Opened anew, it would know no user: every withdrawal and every "no" would be forgotten.
    private static func requireSubjects(in directory: StateDirectory) throws {
        let (gate, subjects) = (Schema.gate.file, Schema.subjects.file)
        guard directory.isDatabase(Schema.gate), directory.byteCount(of: subjects) == 0,
            directory.byteCount(of: subjects + "-wal") == 0
        else { return }
        throw StoreOpeningError.subjectsMissing(file: subjects, besides: gate, path: directory.path)
    }

    /// Opens a database. Under another index key its first page has another code; where that one is right, so is the key, and the
    /// damage lies elsewhere.
    static func tellingOfWrongKey(
        _ path: String, _ keys: PageKeys, _ body: () throws -> Connection
    ) throws -> Connection {
        do {
            return try body()
        } catch let error as StoreError {
            guard let damage = error.damage else { throw error }
            guard try PageInspection.isFirstPageRight(of: path, keys) else {
                throw StoreOpeningError.wrongIndexKey
            }
            throw StoreOpeningError.damaged(
                file: keys.file, table: damage.table, row: damage.row, what: damage.what)
        }
    }

    private static let keyCheck = SealedColumn("key_check", "sealed")
    private static let readKeyCheck = StatementText(
        "key_check", "SELECT sealed, seal_count FROM key_check WHERE id = ?")
    private static let keyCheckText = Array("sendgate".utf8)
    private static let writeKeyCheck = StatementText(
        "key_check", "INSERT INTO key_check (id, sealed) VALUES (?, ?)")

    /// Finds a wrong data key when the store opens, rather than as damage in every row.
    static func checkDataKey(_ cipher: RowCipher, in gate: Connection) throws {
        let id = cipher.currentKeyID
        let found = try gate.first(readKeyCheck, { $0.add(id) }) { row in
            (sealed: row.byteArray(), sealCount: try row.count())
        }
        if let found {
            cipher.resumeSealCount(at: UInt64(found.sealCount))
            guard cipher.isCurrent(found.sealed),
                found.sealed.count == cipher.byteCount(of: keyCheckText.count)
            else {
                throw StoreOpeningError.damaged(
                    file: Schema.gate.file, table: keyCheck.table, row: id,
                    what: "it holds nothing that was sealed under the data key")
            }
            do {
                _ = try cipher.open(found.sealed, in: keyCheck, row: Array(id.utf8))
            } catch StoreError.damaged {
                throw StoreOpeningError.wrongDataKey(id: id)
            }
        } else {
            let sealed = try cipher.seal(keyCheckText, in: keyCheck, row: Array(id.utf8))
            try gate.change(writeKeyCheck) {
                $0.add(id)
                $0.add(sealed)
            }
        }
    }

    deinit { close() }

    /// Waits for calls under way, closes the files and unlocks the directory. Every later call throws
    /// `StoreError.unavailable`. Not from inside a `read` or `commit`.
    package func close() {
        stopped.withLock { $0 = $0 ?? .unavailable("the store is closed") }
        // Connections that only read close first, so that the writing ones, closing last, can fold their logs
        // into the databases; the directory's lock goes when everything is closed.
        readers.close()
        scrub.close()
        subjectsForWriting.close()
        writer.mover.close()
        subjectsWriter.connection.close(movingLog: true)
        writer.connection.close(movingLog: true)
        directory.unlock()
    }

    // MARK: Reading and writing

    /// The number of asks from which a snapshot costs less than it saves.
    private static let askCountOfSnapshot = 4

    package func load(_ asks: [Ask], into memory: GateMemory) throws {
        try writer.connection.exclusively {
            try refuseWhenStopped()
            // No other connection changes `gate.db`, and an erasure, which changes `subjects.db`, waits for this connection. So one
            // snapshot of `gate.db` shows nothing that many would not; it only saves to begin and end each. So does one of
            // `subjects.db`: the mark of an erasure stays in `gate.db` until this is over, whichever mappings are seen.
            try subjectsForWriting.exclusively {
                let reading = transaction()
                defer { reading.close() }
                let isLong = asks.count >= Self.askCountOfSnapshot
                if isLong { try writer.connection.begin(writing: false) }
                reading.beginsMappings = isLong
                defer {
                    if isLong {
                        subjectsForWriting.rollBack()
                        writer.connection.rollBack()
                    }
                }
                memory.begin(at: try reading.trailTail())
                try reading.answer(asks, into: memory)
                reading.keepNumbers()
            }
        }
    }

    package func commit(_ changes: [Change]) throws -> CommitReceipt {
        try watchingDurability {
            try writer.connection.exclusively {
                try refuseWhenStopped()
                return try subjectsForWriting.exclusively { try write(changes) }
            }
        }
    }

    private func transaction(of changeCount: Int = 1) -> GateTransaction {
        GateTransaction(
            writer: writer, subjectsWriter: subjectsWriter, subjects: subjectsForWriting, mappings: mappings,
            dataKeys: dataKeys, prunedRowCountMax: limits.prunedRowCountMax,
            changeCount: changeCount)
    }

    private func write(_ changes: [Change]) throws -> CommitReceipt {
        var (prunedRowCount, position) = (0, 0)
        try writer.connection.begin(writing: true)
        let transaction = transaction(of: changes.count)
        defer { transaction.close() }
        do {
            while position < changes.count {
                prunedRowCount += try transaction.write(changes[position])
                position += 1
            }
        } catch {
            transaction.rollBack()
            guard StoreFailure.isOfOneChange(error) else { throw error }
            throw RefusedChange(change: position, error: error)
        }
        do {
            try transaction.commit(synchronizing: false)
        } catch {
            transaction.rollBack()
            throw error
        }
        do {
            try transaction.moveLogs(largerThan: limits.logByteCountBeforeCheckpoint)
        } catch let error as StoreError {
            // What is committed stays so. A log that could not be moved is moved after a later commit.
            if case .lostDurability = error { throw error }
            if let damage = error.damage { note(damage) }
        }
        return CommitReceipt(prunedRowCount: prunedRowCount, resealing: transaction.resealing)
    }

    package func synchronize() throws {
        try watchingDurability {
            try refuseWhenStopped()
            try writer.connection.synchronize()
        }
    }

    package func read<Result>(_ body: (any StoreReading) throws -> Result) throws -> Result {
        try refuseWhenStopped()
        // What `body` throws was found in the snapshot as well, which may show a commit that a power cut would take back.
        let result = Swift.Result { try readers.lend { try $0.read(mappings, damageLog, body) } }
        try synchronize()
        return try result.get()
    }

    package var dataKeyUse: DataKeyUse {
        let cipher = dataKeys.cipher
        return DataKeyUse(key: cipher.currentKeyID, sealCount: cipher.sealCount)
    }

    /// Adds a data key that was made while the store is open. It seals once a commit says so (``Change/dataKey``).
    package func add(_ key: RowCipher.Key) { dataKeys.add(key) }

    package var damages: [StoredDamage] { damageLog.damages }

    package func checkPages(countMax: Int) throws -> Bool {
        try refuseWhenStopped()
        return try watchingDurability { try scrub.advance(pageCountMax: countMax) }
    }

    package var pageCheck: PageCheck { scrub.state }

    package func note(_ damage: StoredDamage) { damageLog.note(damage) }

    func refuseWhenStopped() throws {
        if let error = stopped.withLock({ $0 }) { throw error }
    }

    /// Remembers a lost synchronization: the process must stop, and until it does no call is served.
    func watchingDurability<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as StoreError {
            if case .lostDurability = error { stopped.withLock { $0 = $0 ?? error } }
            throw error
        }
    }

    // MARK: Forgetting

    private static let marked = StatementText("erasure", "SELECT subject FROM erasure")
    private static let unmark = StatementText("erasure", "DELETE FROM erasure WHERE subject = ?")

    /// - Note: Rewrites `subjects.db` in memory first (about 230 bytes a person), because a temporary file
    ///   would leave wrapped keys of the living outside the state directory.
    package func finishErasures() throws {
        try refuseWhenStopped()
        try watchingDurability {
            let gate = writer.connection
            let subjects = try gate.exclusively {
                let subjects = try gate.every(Self.marked) { try $0.id(SubjectID.self) }
                if subjects.isEmpty { writer.mayHaveErasures = false }
                return subjects
            }
            guard !subjects.isEmpty else { return }
            // A mapping that is destroyed cannot come back, so the marks are durable first.
            try gate.synchronize()
            try destroyMappings(of: subjects)
            // Durable now: the mappings are gone. A crash here finds the marks again, and nothing to delete.
            try gate.exclusively {
                var sequences = writer.sequences
                sequences.subjectsGeneration = try subjectsWriter.connection.exclusively {
                    try SubjectMappings.generation(in: subjectsWriter.connection)
                }
                try gate.begin(writing: true)
                do {
                    for subject in subjects { try gate.change(Self.unmark) { $0.add(subject) } }
                    try sequences.write(to: gate)
                    try gate.commit()
                } catch {
                    gate.rollBack()
                    throw error
                }
                writer.sequences = sequences
                // Others may have been marked meanwhile.
                writer.mayHaveErasures = try gate.first(Self.marked) { _ in true } ?? false
                // The log still holds the pages as they were before the person was erased.
                try writer.mover.pausing { try gate.emptyLog() }
            }
        }
    }

    /// Deletes the mappings, rewrites the whole file, cuts the log to nothing, and checks that nothing is left.
    private func destroyMappings(of subjects: [SubjectID]) throws {
        subjectsWriter.take()
        defer { subjectsWriter.giveBack() }
        let connection = subjectsWriter.connection
        try connection.exclusively {
            let remnants = try connection.writing { try mappings.delete(subjects, in: connection) }
            // Deleting zeroes the rows (`secure_delete`), but copies of them may lie in pages that were split
            // earlier; only a rewrite is sure to leave none. In the log they end with the truncation.
            try connection.script("VACUUM")
            try connection.emptyLog()
            guard directory.byteCount(of: Schema.subjects.file + "-wal") == 0 else {
                throw StoreError.unavailable("`subjects.db-wal` was not emptied after an erasure")
            }
            var search = RemnantSearch(remnants)
            try connection.scanFile { piece in
                guard !search.finds(in: piece) else {
                    throw StoreError.damaged(table: "subject", "an erased mapping is still in `subjects.db`")
                }
            }
        }
    }
}
