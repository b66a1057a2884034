import GateVocabulary
import GatewayPipeline

/// One row of `held`: something that is known of a person, sealed.
struct Held {
    /// What a row is about. The values are stored: append only, and mind ``lastOfSend``.
    enum Kind: Int64, CaseIterable, Comparable {
        case recipient = 0
        case device = 1
        case address = 2
        case deviceKey = 3
        /// Every choice in force, as one row.
        case preferences = 4
        case consent = 5
        case preferenceHistory = 6
        case permissionPrompt = 7

        /// What a send looks at comes first, ledgers that only people read come after.
        static let lastOfSend = Kind.consent

        static func < (left: Kind, right: Kind) -> Bool { left.rawValue < right.rawValue }

        /// The name that the sealing is bound to.
        var column: SealedColumn { Self.columns[Int(rawValue)] }

        private static let columns = [
            "recipient", "device", "address", "device_key", "preference", "consent", "preference_history",
            "permission_prompt",
        ].map { SealedColumn($0, "sealed") }
    }

    let id: Int64
    /// The destination's tag, for a device, an address or a device key.
    let tag: Tag?
    let sealed: [UInt8]

    var kind: Kind? { Kind(rawValue: id >> Self.slotBitCount & 0xF) }

    static let table = "held"

    /// Position within the kind.
    var slot: Int64 { id & Self.slotMax }

    /// Whose row it is.
    static func person(of id: Int64) -> Int64 { id >> Self.personShift }

    // 39 bits of person, 4 of kind, 20 of slot: half a million million people, a million rows of each kind.
    private static let slotBitCount = Int64(20)
    private static let personShift = Int64(24)
    static let slotMax = Int64(1) << slotBitCount - 1
    static let personMax = Int64(1) << 39 - 1

    static func id(_ person: Int64, _ kind: Kind, slot: Int64) -> Int64 {
        precondition((0...personMax).contains(person) && (0...slotMax).contains(slot))
        return person << personShift | kind.rawValue << slotBitCount | slot
    }

    /// The ids that rows of these kinds can have.
    static func ids(of person: Int64, _ kinds: ClosedRange<Kind>) -> ClosedRange<Int64> {
        id(person, kinds.lowerBound, slot: 0)...id(person, kinds.upperBound, slot: slotMax)
    }

    /// What the sealing is bound to besides the kind: the pseudonym, the row, and the tag it is found by.
    private static func row(_ subject: SubjectID, _ id: Int64, _ tag: Tag?) -> [UInt8] {
        var row = subject.bytes
        withUnsafeBytes(of: id.bigEndian) { row.append(contentsOf: $0) }
        if let tag { row.append(contentsOf: tag.bytes) }
        return row
    }

    /// The row's plain fields.
    func open(of subject: SubjectID, with cipher: RowCipher) throws -> [UInt8] {
        guard let kind else { throw StoreError.damaged(table: Self.table, "the row is of no known kind") }
        return try cipher.open(sealed, in: kind.column, row: Self.row(subject, id, tag))
    }

    static func seal(
        _ fields: [UInt8], as kind: Kind, id: Int64, tag: Tag?, of subject: SubjectID, with cipher: RowCipher
    ) throws -> [UInt8] {
        try cipher.seal(fields, in: kind.column, row: row(subject, id, tag))
    }
}
