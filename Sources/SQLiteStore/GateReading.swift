import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords

/// One consistent snapshot of both databases, for the length of one `read` or `write`.
///
/// Methods are grouped by what they are about in the files `GateReading+….swift`.
class GateReading: StoreReading {
    private let openGate: Connection
    let strings: StringTable
    let mappings: SubjectMappings
    /// A connection to `subjects.db` with a snapshot open, for the length of the body.
    let subjects: Connection
    private(set) var isOpen = true

    init(gate: Connection, subjects: Connection, strings: StringTable, mappings: SubjectMappings) {
        openGate = gate
        self.subjects = subjects
        self.strings = strings
        self.mappings = mappings
    }

    /// The connection to `gate.db`.
    ///
    /// - Precondition: The body this was handed to has not returned.
    var gate: Connection {
        precondition(isOpen, "a store transaction was used after its body returned")
        return openGate
    }

    var cipher: RowCipher { mappings.cipher }
    private(set) lazy var contexts = cipher.contexts()

    final func open(_ stored: [UInt8], in column: SealedColumn, row: [UInt8]) throws -> [UInt8] {
        try cipher.open(stored, in: column, row: row, on: contexts)
    }

    func close() { isOpen = false }

    // What a transaction keeps in memory while it is open, a reader takes from its snapshot.

    func currentSequences() throws -> Sequences { try Sequences(from: gate) }
    func knownOutboxHead(_ message: MessageID) -> OutboxRecord? { nil }
    func currentCounters() throws -> OutboxCounters { try OutboxCounters(from: gate) }
    func offeredRows() throws -> [StoredMessage] {
        let ended = try currentSequences().endedOffers
        return try storedOffers().flatMap(\.rows).filter { !ended.contains($0.number) }
    }
    func offeredCounters() throws -> OutboxCounters {
        try offeredRows().reduce(into: OutboxCounters()) { counters, row in
            counters.add(rank: row.rank, caller: row.caller, rows: 1, bytes: row.byteCount)
        }
    }
    /// The opened rows of `offered`, each with the contents of its messages by their numbers.
    final var openedOffers: [Int64: [Int64: OutboxRecord.Content]] = [:]

    // MARK: The mapping

    private static let isErased = StatementText("erasure", "SELECT 1 FROM erasure WHERE subject = ?")

    func isErased(_ subject: SubjectID) throws -> Bool {
        try gate.first(Self.isErased, { $0.add(subject) }, read: { _ in true }) ?? false
    }

    /// Runs `body` on the connection that shows the mappings as this body must see them.
    func withMappings<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        try body(subjects)
    }

    func subject(of user: UserID) throws -> Subject? {
        try unlessErased(try withMappings { try mappings.find(user, in: $0, on: contexts) })
    }

    final func subject(_ id: SubjectID) throws -> Subject? {
        try unlessErased(try withMappings { try mappings.find(id, in: $0, on: contexts) })
    }

    final func mappedSubjects(after subject: SubjectID?, limit: Int) throws -> [SubjectID] {
        try withMappings { try SubjectMappings.subjects(after: subject, limit: limit, in: $0) }
    }

    /// A mapping that is marked for destruction and not yet destroyed counts as destroyed.
    private func unlessErased(_ subject: Subject?) throws -> Subject? {
        guard let subject, try !isErased(subject.id) else { return nil }
        return subject
    }

    // MARK: What is held of a person

    private var newestPerson: (subject: SubjectID, number: Int64)?
    private var newestState: RecipientState?

    private static let personNumber = StatementText("person", "SELECT number FROM person WHERE subject = ?")
    private static let personState = StatementText(
        "person", "SELECT number, sealed FROM person WHERE subject = ?")
    static let stateColumn = SealedColumn(RecipientState.table, "sealed")

    /// Highest number that a person is given, far from any overflow.
    static let personMax = Int64(1) << 39 - 1

    /// The number of a pseudonym in this snapshot; `nil` when nothing was ever stored about it.
    func person(_ subject: SubjectID) throws -> Int64? {
        if let newestPerson, newestPerson.subject == subject { return newestPerson.number }
        let number = try gate.first(Self.personNumber, { $0.add(subject) }) {
            try Self.personNumber(from: &$0)
        }
        if let number { newestPerson = (subject, number) }
        return number
    }

    private static func personNumber(from row: inout StoredRow) throws -> Int64 {
        let number = row.integer()
        guard (0...personMax).contains(number) else {
            throw StoreError.damaged(table: "person", "a person has a number that none is given")
        }
        return number
    }

    func state(of subject: SubjectID) throws -> RecipientState? {
        if let newestState, newestState.subject == subject { return newestState }
        let stored = try storedPerson(subject)
        if let stored {
            newestPerson = (subject, stored.number)
            newestState = stored.state
        }
        return stored?.state
    }

    /// The person as their row says.
    final func storedPerson(_ subject: SubjectID) throws -> (number: Int64, state: RecipientState)? {
        try gate.first(Self.personState, { $0.add(subject) }) { row in
            let number = try Self.personNumber(from: &row)
            let fields = try open(
                row.byteArray(), in: Self.stateColumn, row: Self.stateRow(subject, number))
            return (number, try RecipientState(sealedFields: fields, subject: subject))
        }
    }

    func countedForwards(of subject: SubjectID, since: Instant, limit: Int) throws -> [ForwardRecord] {
        try storedForwards(of: subject, since: since, limit: limit)
    }

    /// The bytes that the sealing of a state is bound to.
    static func stateRow(_ subject: SubjectID, _ number: Int64) -> [UInt8] {
        var row = subject.bytes
        withUnsafeBytes(of: number.bigEndian) { row.append(contentsOf: $0) }
        return row
    }

    /// Call after every change to `person`, and after undoing one.
    final func forgetPerson() {
        newestPerson = nil
        newestState = nil
    }
}
