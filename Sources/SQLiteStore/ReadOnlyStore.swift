package import GateSteps
import Glibc
package import GatewayPipeline
package import OpenSSLCrypto

/// The databases of a state directory that no process writes, for questions alone: no byte of them changes.
///
/// - Opened as they are: what the next start puts right, such as an erasure that was interrupted, is as it was left. Beside a
///   database SQLite may leave a `-shm` file and an empty `-wal`, which every connection to it makes.
/// - Everything but `read` and `load` throws `StoreError.unavailable`.
/// - Blocking, as ``SQLiteStore`` is.
package final class ReadOnlyStore: GateStore {
    private let directory: StateDirectory
    private let readers: ReaderPool
    private let mappings: SubjectMappings
    private let damageLog = DamageLog()

    /// - Parameter readingKeys: Called once the directory's lock is held, when no other process changes them.
    /// - Throws: ``StoreOpeningError``, also where there is nothing to read, else `StoreError`.
    package convenience init(
        directory path: String, limits: SQLiteStoreLimits = SQLiteStoreLimits(),
        readingKeys: () throws -> (cipher: RowCipher, index: HMACKey)
    ) throws {
        try self.init(directory: path, schemas: Schemas(), limits: limits, readingKeys: readingKeys)
    }

    /// - Parameter schemas: Of a build, which a test makes a later one.
    init(
        directory path: String, schemas: Schemas, limits: SQLiteStoreLimits = SQLiteStoreLimits(),
        readingKeys: () throws -> (cipher: RowCipher, index: HMACKey)
    ) throws {
        let directory = try StateDirectory(path: path, isReadOnly: true)
        self.directory = directory
        for schema in schemas.all { try StateDirectory.requireKnownVersion(of: schema, in: path) }
        let (cipher, index) = try readingKeys()
        try directory.requireDatabases()
        let damages = damageLog
        func open(_ schema: Schema) throws -> Connection {
            try directory.requireLayout(of: schema)
            let keys = PageKeys(index: index, file: schema.file)
            let mark = try LogMark(besides: "\(path)/\(schema.file)", keys: keys, isReadOnly: true)
            let logEnd = try mark.settle()
            let connection = try SQLiteStore.tellingOfWrongKey("\(path)/\(schema.file)", keys) {
                try Connection(
                    path: "\(path)/\(schema.file)", file: schema.file, role: .reader,
                    cacheByteCount: limits.readerCacheByteCount,
                    busyTimeoutMilliseconds: limits.busyTimeoutMilliseconds, damages: damages,
                    pages: try PageFile(keys, logEnd: logEnd))
            }
            try connection.exclusively { try schema.require(connection) }
            return connection
        }
        let gate = try open(schemas.gate)
        let resumed = try gate.exclusively { try DataKeys.resumed(cipher, in: gate) }
        mappings = SubjectMappings(cipher: resumed, index: index)
        readers = ReaderPool([Reader(gate: gate, subjects: try open(schemas.subjects))])
    }

    /// Closes the files, and lets processes that write into the directory again.
    package func close() {
        readers.close()
        directory.unlock()
    }

    package func read<Result>(_ body: (any StoreReading) throws -> Result) throws -> Result {
        try readers.lend { try $0.read(mappings, damageLog, body) }
    }

    package var dataKeyUse: DataKeyUse {
        DataKeyUse(key: mappings.cipher.currentKeyID, sealCount: mappings.cipher.sealCount)
    }

    package var damages: [StoredDamage] { damageLog.damages }
    package func note(_ damage: StoredDamage) { damageLog.note(damage) }

    private static let refusal = StoreError.unavailable("the store was opened to be read only")

    package func load(_ asks: [Ask], into memory: GateMemory) throws {
        try read {
            memory.begin(at: try $0.trailTail())
            try $0.answer(asks, into: memory)
        }
    }

    package func commit(_ changes: [Change]) throws -> CommitReceipt {
        throw Self.refusal
    }
    package func synchronize() throws { throw Self.refusal }
    package func finishErasures() throws { throw Self.refusal }
    package func checkPages(countMax: Int) throws -> Bool { throw Self.refusal }
    package var pageCheck: PageCheck { PageCheck() }
}
