import GateSteps
import GateVocabulary
import GatewayPipeline
import Glibc
import OpenSSLCrypto
import GateRecords

/// Reading and writing `subjects.db`: which user has which pseudonym.
///
/// The user id itself is stored nowhere: the row is found by HMAC-SHA256 under the index key, and K_s
/// is sealed to that row and its pseudonym.
struct SubjectMappings: Sendable {
    let cipher: RowCipher
    let index: HMACKey

    static let tagKey = SealedColumn("subject", "tag_key")

    private static let columns = "user, subject, tag_key"
    private static let byUser = StatementText("subject", "SELECT \(columns) FROM subject WHERE user = ?")
    private static let bySubject = StatementText(
        "subject", "SELECT \(columns) FROM subject WHERE subject = ?")
    private static let put = StatementText(
        "subject",
        """
        INSERT INTO subject (user, subject, tag_key) VALUES (?, ?, ?)
        ON CONFLICT (user) DO UPDATE SET subject = excluded.subject, tag_key = excluded.tag_key
        """)

    /// What the row of a user is found by. The label keeps these codes apart from every other use of the key.
    private func key(of user: UserID) -> [UInt8] {
        index.authenticate(Array("sendgate/user/v1\0".utf8) + Array(user.text.utf8))
    }

    /// What a device is found by through its push token, in `gate.db`.
    func code(ofToken identity: String) -> [UInt8] {
        index.authenticate(Array("sendgate/push-token/v1\0".utf8) + Array(identity.utf8))
    }

    /// By which a person with a registered number or mailbox is found in `gate.db`.
    func code(of address: AddressKey) -> [UInt8] { IndexKey(index).addressHash(address) }

    func find(_ user: UserID, in connection: Connection, on contexts: AES256GCMContexts) throws -> Subject? {
        let key = key(of: user)
        return try connection.first(Self.byUser, { $0.add(key) }) { try open(&$0, on: contexts) }
    }

    func find(_ subject: SubjectID, in connection: Connection, on contexts: AES256GCMContexts) throws
        -> Subject?
    {
        try connection.first(Self.bySubject, { $0.add(subject) }) { try open(&$0, on: contexts) }
    }

    private static let subjectsAfter = StatementText(
        "subject", "SELECT subject FROM subject WHERE subject > ? ORDER BY subject LIMIT ?")

    static func subjects(
        after subject: SubjectID?, limit: Int, in connection: Connection
    ) throws -> [SubjectID] {
        try connection.every(subjectsAfter) {
            $0.add(subject?.bytes ?? [])
            $0.add(Int64(limit))
        } read: {
            try $0.id(SubjectID.self)
        }
    }

    private func open(_ row: inout StoredRow, on contexts: AES256GCMContexts) throws -> Subject {
        let key = row.byteArray()
        let id = try row.id(SubjectID.self)
        var tagKey = try cipher.open(
            row.byteArray(), in: Self.tagKey, row: key + id.bytes, on: contexts)
        defer { tagKey.withUnsafeMutableBytes { Self.zero($0) } }
        guard tagKey.count == Subject.tagKeyByteCount else {
            throw StoreError.damaged(table: "subject", "a tag key has \(tagKey.count) bytes")
        }
        return Subject(id: id, tagKey: SecretBytes(copying: tagKey))
    }

    /// Gives `user` a pseudonym and a key, whatever the row held before.
    func put(_ subject: Subject, for user: UserID, in connection: Connection) throws {
        let key = key(of: user)
        var plain = subject.tagKey.withUnsafeBytes { Array($0) }
        defer { plain.withUnsafeMutableBytes { Self.zero($0) } }
        let sealed = try cipher.seal(plain, in: Self.tagKey, row: key + subject.id.bytes)
        try connection.change(Self.put) {
            $0.add(key)
            $0.add(subject.id)
            $0.add(sealed)
        }
    }

    /// The copy outside `SecretBytes` ends here; `explicit_bzero` is never optimised away.
    private static func zero(_ bytes: UnsafeMutableRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        explicit_bzero(start, bytes.count)
    }

    // MARK: Forgetting

    private static let doomed = StatementText(
        "subject", "SELECT user, tag_key FROM subject WHERE subject = ?")
    private static let delete = StatementText("subject", "DELETE FROM subject WHERE subject = ?")

    /// Deletes the mappings of `subjects`; gives the byte strings that must not be found in the file
    /// afterwards.
    func delete(_ subjects: [SubjectID], in connection: Connection) throws -> [[UInt8]] {
        var remnants: [[UInt8]] = []
        try Self.countChange(in: connection)
        for subject in subjects {
            try connection.scan(Self.doomed, { $0.add(subject) }) { row in
                remnants.append(row.byteArray())
                remnants.append(row.byteArray())
                return true
            }
            try connection.change(Self.delete) { $0.add(subject) }
        }
        return remnants
    }

    // MARK: The right key

    private static let readCheck = StatementText("index_check", "SELECT code FROM index_check")
    private static let anySubject = StatementText("subject", "SELECT number FROM subject LIMIT 1")
    private static let writeCheck = StatementText(
        "index_check", "INSERT INTO index_check VALUES (1, ?, 0)")

    /// Whether any user has a pseudonym.
    static func hasAny(in connection: Connection) throws -> Bool {
        try connection.first(anySubject) { _ in true } ?? false
    }

    private static let readGeneration = StatementText(
        "index_check", "SELECT generation FROM index_check")
    private static let raiseGeneration = StatementText(
        "index_check", "UPDATE index_check SET generation = generation + 1")

    /// Call in each transaction that changes mappings.
    static func countChange(in connection: Connection) throws { try connection.change(raiseGeneration) }

    /// How often `subjects.db` was changed, as the open transaction or the last commit has it. `gate.db` remembers the one it
    /// was committed after: a `subjects.db` of an earlier generation was put back.
    static func generation(in connection: Connection) throws -> Int64 {
        let found = try connection.first(readGeneration) { try $0.count() }
        guard let found else { throw StoreError.damaged(table: "index_check", "its only row is missing") }
        return found
    }

    /// Notices a wrong index key when the store opens, rather than as a million unknown recipients.
    func checkIndexKey(in connection: Connection) throws {
        let code = index.authenticate(Array("sendgate/index-check/v1".utf8))
        let found = try connection.first(Self.readCheck) { $0.byteArray() }
        if let found {
            guard found.count == code.count else {
                throw StoreOpeningError.damaged(
                    file: Schema.subjects.file, table: "index_check", row: "1",
                    what: "it has \(found.count) bytes, not \(code.count)")
            }
            guard HMACKey.constantTimeEqual(found, code) else { throw StoreOpeningError.wrongIndexKey }
        } else {
            guard try connection.first(Self.anySubject, read: { _ in true }) == nil else {
                throw StoreOpeningError.damaged(
                    file: Schema.subjects.file, table: "index_check", row: "1",
                    what: "its only row is missing")
            }
            try connection.change(Self.writeCheck) { $0.add(code) }
        }
    }
}

/// Looks for byte strings in a stream of bytes, in one pass however many there are.
struct RemnantSearch {
    private let needles: [[UInt8]]
    /// Needles by their first eight bytes, which is what the pass compares.
    private var byHead: [UInt64: [Int]] = [:]
    /// A bit per hash of a head, small enough for the first-level cache; most bytes end here.
    private var filter = [UInt64](repeating: 0, count: 1024)
    private var window: [UInt8] = []
    private let longest: Int

    /// - Parameter needles: Each at least 8 bytes.
    init(_ needles: [[UInt8]]) {
        self.needles = needles
        longest = needles.map(\.count).max() ?? 0
        for (index, needle) in needles.enumerated() {
            let head = needle.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            byHead[head, default: []].append(index)
            let slot = Self.slot(head)
            filter[slot >> 6] |= 1 << UInt64(slot & 63)
        }
    }

    private static func slot(_ head: UInt64) -> Int {
        Int(truncatingIfNeeded: (head &* 0x9E37_79B9_7F4A_7C15) >> 48)
    }

    /// Whether a needle ends in or before `piece`, pieces taken as one stream.
    mutating func finds(in piece: UnsafeRawBufferPointer) -> Bool {
        guard longest > 0 else { return false }
        let bytes = window + piece
        window = Array(bytes.suffix(longest - 1))
        var head: UInt64 = 0
        return bytes.withUnsafeBufferPointer { bytes in
            filter.withUnsafeBufferPointer { filter in
                for end in bytes.indices {
                    head = head << 8 | UInt64(bytes[end])
                    let slot = Self.slot(head)
                    guard filter[slot >> 6] >> UInt64(slot & 63) & 1 == 1, end >= 7,
                        let candidates = byHead[head]
                    else { continue }
                    for candidate in candidates {
                        let needle = needles[candidate]
                        let start = end - 7
                        if start + needle.count <= bytes.count,
                            bytes[start..<start + needle.count].elementsEqual(needle)
                        {
                            return true
                        }
                    }
                }
                return false
            }
        }
    }
}
