import GateVocabulary
import GatewayPipeline

/// One consistent snapshot of both databases, for the length of one `read` or `write`.
///
/// Methods are grouped by what they are about in the files `GateReading+….swift`.
class GateReading: StoreReading {
    private let openGate: Connection
    let words: Words
    let mappings: SubjectMappings
    /// A connection to `subjects.db` with a snapshot open, for the length of the body.
    let subjects: Connection
    let damages: DamageLog
    private(set) var isOpen = true

    init(
        gate: Connection, subjects: Connection, words: Words, mappings: SubjectMappings, damages: DamageLog
    ) {
        self.damages = damages
        openGate = gate
        self.subjects = subjects
        self.words = words
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

    func close() { isOpen = false }

    // What a transaction keeps in memory while it is open, a reader takes from its snapshot.

    func currentTail() throws -> Tail { try Tail(from: gate) }
    func currentTally() throws -> Tally { try Tally(from: gate) }

    // MARK: Who is who

    private static let isErased = StatementText("erasure", "SELECT 1 FROM erasure WHERE subject = ?")

    func isErased(_ subject: SubjectID) throws -> Bool {
        try gate.first(Self.isErased, { $0.add(subject) }, read: { _ in true }) ?? false
    }

    /// Runs `body` on the connection that shows the mappings as this body must see them.
    func withMappings<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        try body(subjects)
    }

    final func subject(of user: UserID) throws -> Subject? {
        try unlessErased(try withMappings { try mappings.find(user, in: $0) })
    }

    final func subject(_ id: SubjectID) throws -> Subject? {
        try unlessErased(try withMappings { try mappings.find(id, in: $0) })
    }

    /// Marked but not yet destroyed: gone already, as far as anybody can tell.
    private func unlessErased(_ subject: Subject?) throws -> Subject? {
        guard let subject, try !isErased(subject.id) else { return nil }
        return subject
    }

    // MARK: What is held of a person

    private var newestPerson: (subject: SubjectID, number: Int64)?
    private var newestRows: (person: Int64, rows: [Held])?

    private static let personNumber = StatementText("person", "SELECT number FROM person WHERE subject = ?")
    private static let heldBetween = StatementText(
        "held", "SELECT id, tag, sealed FROM held WHERE id BETWEEN ? AND ? ORDER BY id")

    /// The number of a pseudonym in this snapshot; `nil` when nothing was ever held of it.
    final func person(_ subject: SubjectID) throws -> Int64? {
        if let newestPerson, newestPerson.subject == subject { return newestPerson.number }
        let number = try gate.first(Self.personNumber, { $0.add(subject) }) { row in
            let number = row.integer()
            guard (0...Held.personMax).contains(number) else {
                throw StoreError.damaged(table: "person", "a person has a number that none is given")
            }
            return number
        }
        if let number { newestPerson = (subject, number) }
        return number
    }

    /// The person's rows of one kind, in the order of their slots.
    ///
    /// The kinds a send asks for lie side by side, so the first question reads them all and the others find
    /// them here, still sealed.
    final func held(_ kind: Held.Kind, of subject: SubjectID) throws -> [Held] {
        guard let person = try person(subject) else { return [] }
        guard kind <= Held.Kind.lastOfSend else {
            return try rows(Held.ids(of: person, kind...kind))
        }
        if let newestRows, newestRows.person == person { return newestRows.rows.filter { $0.kind == kind } }
        let rows = try rows(Held.ids(of: person, Held.Kind.recipient...Held.Kind.lastOfSend))
        newestRows = (person, rows)
        return rows.filter { $0.kind == kind }
    }

    private func rows(_ ids: ClosedRange<Int64>) throws -> [Held] {
        try gate.every(Self.heldBetween) {
            $0.add(ids.lowerBound)
            $0.add(ids.upperBound)
        } read: { row in
            Held(id: row.integer(), tag: try row.optionalID(), sealed: row.byteArray())
        }
    }

    /// Opens one row and reads its fields; what is damaged is named after the row and noted.
    final func opened<Record>(
        _ row: Held, of subject: SubjectID, _ read: (_ fields: [UInt8]) throws -> Record
    ) throws -> Record {
        try damages.noting(Held.table, row: "\(row.id)") {
            do {
                return try read(row.open(of: subject, with: cipher))
            } catch let error as StoreError {
                // Sealed content is bound to the name of what it is; the file knows it by another.
                guard let damage = error.damage, let name = row.kind?.column.table, damage.table == name
                else {
                    throw error
                }
                throw StoreError.damaged(table: Held.table, "\(name): \(damage.what)")
            }
        }
    }

    /// Call after every change to `held` or `person`, and after undoing one.
    final func forgetHeld() {
        newestPerson = nil
        newestRows = nil
    }
}
