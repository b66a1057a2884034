import GateVocabulary
import GatewayPipeline

/// One consistent snapshot of both databases, for the length of one `read` or `write`.
///
/// Methods are grouped by what they are about in the files `GateReading+….swift`.
class GateReading: StoreReading {
    private let openGate: Connection
    let words: Words
    let mappings: SubjectMappings
    private let subjects: Connection
    private(set) var isOpen = true

    init(gate: Connection, subjects: Connection, words: Words, mappings: SubjectMappings) {
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
        guard let subject = try withMappings({ try mappings.find(user, in: $0) }),
            // Marked but not yet destroyed: gone already, as far as anybody can tell.
            try !isErased(subject.id)
        else { return nil }
        return subject
    }
}
