package import GateSteps
import GateVocabulary
import GatewayPipeline
import RecipientModel

extension SQLiteStore {
    /// Tables that the store cannot work without: damage in them stops a start.
    static let requiredTables: Set<String> = ["word", "key_check"]
    /// Tables of a few rows each, which are compared with their sums at every start.
    static let smallTables: Set<String> = [
        "word", "key_check", "setting", "erasure", "offered", "outbox_counters", "damage",
    ]

    // MARK: At the start

    /// Requires that the row with the sums is unaltered, before the sums are used.
    static func checkAnchor(of schema: Schema, _ tables: [TableShape], in connection: Connection) throws {
        guard let table = tables.last else { return }
        var walk = TableWalk(table)
        let count = try walk.readSlice(from: connection, rowCountMax: 2)
        guard count == 1, walk.altered.isEmpty else {
            throw StoreOpeningError.damaged(
                file: schema.file, table: table.name, row: walk.altered.first?.name ?? "1",
                what: count == 0 ? "its only row is missing" : RowSums.wrongCode)
        }
    }

    /// - Throws: ``StoreOpeningError/damaged(file:table:row:what:)`` for a table that the store cannot work without.
    static func checkRequired(_ tables: [TableShape], in connection: Connection) throws {
        for table in tables where requiredTables.contains(table.name) {
            let walk = try IntegrityCheck.walked(table, on: connection)
            if let row = walk.altered.first {
                throw StoreOpeningError.damaged(
                    file: connection.file, table: table.name, row: row.name, what: RowSums.wrongCode)
            }
            if let missing = walk.missing {
                throw StoreOpeningError.damaged(
                    file: connection.file, table: table.name, row: nil, what: missing)
            }
        }
    }

    // MARK: What a walk found

    private static let allDamage = StatementText(
        "damage", key: 2,
        "SELECT origin, place, is_accepted AND NOT \(Schema.damage.isAltered) FROM damage")
    private static let repairDamage = StatementText(
        "damage", "UPDATE damage SET is_accepted = 0 WHERE \(Schema.damage.isAltered)", damage: .known
    )
    private static let putDamage = StatementText(
        "damage", "INSERT OR IGNORE INTO damage VALUES (?, ?, 0)", damage: .known)
    private static let removeDamage = StatementText(
        "damage", "DELETE FROM damage WHERE origin = ? AND place = ?")
    private static let acceptDamage = StatementText(
        "damage", "UPDATE damage SET is_accepted = 1", damage: .known)

    /// The findings of earlier checks, by table and place, and whether an operator has accepted them.
    static func knownDamage(in gate: Connection) throws -> [String: [String: Bool]] {
        var known: [String: [String: Bool]] = [:]
        try gate.scan(allDamage) { row in
            let (table, place) = (row.text(), row.text())
            known[table, default: [:]][place] = row.flag()
            return true
        }
        return known
    }

    /// One transaction of the store's own, of `gate.db` unless told.
    private func writing<Result>(to connection: Connection? = nil, _ body: (Connection) throws -> Result)
        throws -> Result
    {
        let connection = connection ?? writer.connection
        return try watchingDurability {
            try connection.exclusively { try connection.writing { try body(connection) } }
        }
    }

    /// Repairs what can be computed from elsewhere. Other damage is reported, remembered over restarts, and makes
    /// look-ups in the table refuse to answer that a row is not there.
    func settle(_ walk: TableWalk, of file: IntegrityCheck.File) throws {
        var walk = walk
        if !walk.isSound {
            try repair(&walk, of: file)
        }
        let table = walk.table.name
        var places = walk.altered.map(\.name)
        let missing = walk.missing
        if missing != nil { places.append("") }
        let known = integrity.known[table] ?? [:]
        if Set(places) != Set(known.keys) {
            integrity.known = try writing { gate in
                for place in places {
                    try gate.change(Self.putDamage) {
                        $0.add(table)
                        $0.add(place)
                    }
                }
                for place in known.keys where !places.contains(place) {
                    try gate.change(Self.removeDamage) {
                        $0.add(table)
                        $0.add(place)
                    }
                }
                return try Self.knownDamage(in: gate)
            }
        }
        for place in places {
            damages.note(
                StoredDamage(
                    table: table, row: place.isEmpty ? nil : place,
                    what: place.isEmpty ? missing ?? "" : RowSums.wrongCode))
        }
        damages.setClosed(table, (integrity.known[table] ?? [:]).values.contains(false))
    }

    /// Repairs altered rows, removes them from `walk`, and reports them.
    private func repair(_ walk: inout TableWalk, of file: IntegrityCheck.File) throws {
        let table = walk.table
        let repaired: Bool
        switch table.name {
        case "outbox_counters": repaired = try recountOutbox()
        case Schema.damage.name:
            repaired = try writing { gate in
                try gate.change(Self.repairDamage)
                try rebase(Schema.damage.name, in: gate)
                return true
            }
        case let name where Lookup.all.contains { $0.table == name }:
            repaired = try writing { gate in
                try Lookup.all.reduce(false) { try $1.table == name ? remake($1, in: gate) : $0 }
            }
        case Schema.send.name:
            do {
                repaired = try repairSends(walk.altered.map(\.key))
            } catch is StoreConflict {
                // In the way of another that cannot be put right.
                return
            }
        case Schema.outbox.name:
            repaired = try walk.altered.reduce(false) { try repairOutbox($1.key) || $0 }
        default: return
        }
        guard repaired else { return }
        let before = walk
        walk = try file.writer.exclusively { try IntegrityCheck.walked(table, on: file.writer) }
        let left = Set(walk.altered.map(\.name))
        for row in before.altered where !left.contains(row.name) {
            damages.note(
                StoredDamage(
                    table: table.name, row: row.name, what: "it was not as written, and was put right"))
        }
        if let missing = before.missing, walk.missing == nil {
            damages.note(
                StoredDamage(table: table.name, row: nil, what: "\(missing); the table was put right"))
        }
    }

    /// Takes the present rows of a table for all that were written.
    private func rebase(_ name: String, in gate: Connection) throws {
        guard let sums = gate.sums, let position = sums.position(of: name) else { return }
        sums.rebase(position, to: try IntegrityCheck.walked(sums.tables[position], on: gate).found)
    }

    // MARK: What can be put right

    private static let removeCounters = StatementText("outbox_counters", "DELETE FROM outbox_counters")

    private func recountOutbox() throws -> Bool {
        try writing { gate in
            try gate.change(Self.removeCounters)
            // What it says is known to be wrong.
            var counters = try OutboxCounters(recountedIn: gate, DamageLog())
            try counters.writeChanges(to: gate)
            try rebase("outbox_counters", in: gate)
            writer.counters = counters
            return true
        }
    }

    /// A table that finds a person by a value that is sealed in their state.
    private struct Lookup {
        let table: String
        /// Its rows: the person, the look-up key, and the other columns.
        let all: StatementText
        let remove: StatementText
        let put: StatementText
        let rows: @Sendable (RecipientState, SubjectMappings) -> [(code: [UInt8], rest: [UInt8])]

        init(
            _ table: String, code: String, rest: String? = nil,
            rows: @escaping @Sendable (RecipientState, SubjectMappings) -> [(code: [UInt8], rest: [UInt8])]
        ) {
            self.table = table
            self.rows = rows
            all = StatementText(table, "SELECT \(code), person FROM \(table)")
            remove = StatementText(table, "DELETE FROM \(table) WHERE \(code) = ? AND person = ?")
            // A key has nothing else, and its second value is not bound to anything.
            let (names, marks) = (rest.map { ", \($0)" } ?? "", rest == nil ? "" : ", ?3")
            put = StatementText(
                table, "INSERT OR REPLACE INTO \(table) (\(code), person\(names)) VALUES (?1, ?2\(marks))")
            hasRest = rest != nil
        }

        let hasRest: Bool

        static let all = [
            Lookup("device_key", code: "key") { state, _ in state.keys.map { ($0.key.bytes, []) } },
            Lookup("push_token", code: "code", rest: "device") { state, mappings in
                state.devices.filter { $0.isActive && !$0.token.isEmpty }.map {
                    (mappings.code(ofToken: $0.tokenIdentity), $0.tag.bytes)
                }
            },
            Lookup("address_code", code: "code") { state, mappings in
                state.addresses.map { (mappings.code(of: AddressKey($0)), []) }
            },
        ]
    }

    private static let allPeople = StatementText("person", "SELECT number, subject, sealed FROM person")

    /// Makes a look-up table agree with the sealed states. Reads all of `person`: only when the table is damaged.
    private func remake(_ lookup: Lookup, in gate: Connection) throws -> Bool {
        var wanted: [(person: Int64, code: [UInt8], rest: [UInt8])] = []
        var unreadable: Set<Int64> = []
        try gate.scan(Self.allPeople) { row in
            let number = row.integer()
            let state = try damages.readable(RecipientState.table, row: "\(number)") {
                let subject = try row.id(SubjectID.self)
                let fields = try mappings.cipher.open(
                    row.byteArray(), in: GateReading.stateColumn, row: GateReading.stateRow(subject, number))
                return try RecipientState(sealedFields: fields, subject: subject)
            }
            if let state {
                wanted += lookup.rows(state, mappings).map { (person: number, code: $0.code, rest: $0.rest) }
            } else {
                unreadable.insert(number)
            }
            return true
        }
        let found = try gate.every(lookup.all) { row in (code: row.byteArray(), person: row.integer()) }
        for row in found where !unreadable.contains(row.person) {
            try gate.change(lookup.remove) {
                $0.add(row.code)
                $0.add(row.person)
            }
        }
        for row in wanted {
            try gate.change(lookup.put) {
                $0.add(row.code)
                $0.add(row.person)
                if lookup.hasRest { $0.add(row.rest) }
            }
        }
        // What cannot be read may be what is missing.
        if unreadable.isEmpty { try rebase(lookup.table, in: gate) }
        return true
    }

    private static let callerOfSend = StatementText(
        Schema.send.name,
        """
        SELECT send.number, word.id FROM send JOIN word
            ON send.mac IS \(Schema.send.code(["id": "send.id", "caller": "word.id"]))
        WHERE send.number = ? AND send.caller IS NOT word.id
        """)
    private static let sealedSend = StatementText(
        Schema.send.name,
        """
        SELECT number, id, caller, content_mac, subject, category, channel, received_at, sealed FROM send
        WHERE number = ?
        """)
    private static let hashFits = StatementText(
        Schema.send.name,
        "SELECT number FROM send WHERE number = ?1 AND mac IS \(Schema.send.code(["id_hash": "?2"]))")
    private static let clearHash = StatementText(
        Schema.send.name, "UPDATE send SET id_hash = randomblob(16) WHERE number = ?", damage: .known)
    private static let putCaller = StatementText(
        Schema.send.name, "UPDATE send SET caller = ?2 WHERE number = ?1", damage: .known)
    private static let putHash = StatementText(
        Schema.send.name, "UPDATE send SET id_hash = ?2 WHERE number = ?1", damage: .known)
    private static let hashOfSend = StatementText(
        Schema.send.name, "SELECT number, id_hash FROM send WHERE number = ?")

    /// Repairs the look-up keys of sends: the caller is the one with which the code is right, and the hash of an id
    /// is computed from the id that is sealed.
    private func repairSends(_ keys: [[StoredCell]]) throws -> Bool {
        try writing { gate in
            var callers: [(number: StoredCell, caller: Int64)] = []
            var hashes: [(number: StoredCell, hash: [UInt8])] = []
            for key in keys {
                guard let number = key.first else { continue }
                let caller = try gate.first(Self.callerOfSend, { $0.add(number) }) { row in
                    _ = row.integer()
                    return row.integer()
                }
                if let caller {
                    callers.append((number, caller))
                    let hash = try gate.first(Self.hashOfSend, { $0.add(number) }) { row in
                        _ = row.integer()
                        return row.byteArray()
                    }
                    if let hash { hashes.append((number, hash)) }
                } else if let hash = try damages.readable(
                    Schema.send.name, row: key.name, { try idHash(ofSend: number, in: gate) }) ?? nil
                {
                    hashes.append((number, hash))
                }
            }
            // Two that were exchanged are in each other's way.
            for row in hashes { try gate.change(Self.clearHash) { $0.add(row.number) } }
            for row in callers {
                try gate.change(Self.putCaller) {
                    $0.add(row.number)
                    $0.add(row.caller)
                }
            }
            for row in hashes {
                try gate.change(Self.putHash) {
                    $0.add(row.number)
                    $0.add(row.hash)
                }
            }
            return !hashes.isEmpty
        }
    }

    /// The hash by which a send is found, if its code is right with it: of its id, or of its id with its content.
    private func idHash(ofSend number: StoredCell, in gate: Connection) throws -> [UInt8]? {
        let hashes = try gate.first(Self.sealedSend, { $0.add(number) }) { row in
            _ = row.integer()
            let id = try row.id(SendID.self)
            let callerNumber = row.integer()
            let caller = CallerName(try writer.strings.text(of: callerNumber, in: gate))
            let record = SendRecord(
                id: id, caller: caller, idHash: [], contentMAC: row.byteArray(),
                subject: try row.optionalID(), type: TypeID(""), category: try row.optionalCode(),
                channel: try row.code(), receivedAt: try row.instant(), entryIndex: 0, requestID: "",
                destinationNames: [:])
            let details = try SendRecord.Details(
                sealedFields: try mappings.cipher.open(
                    row.byteArray(), in: SendColumns.send,
                    row: SendColumns.sendRow(record, caller: callerNumber)))
            let hash = IndexKey.idHash(details.requestID, of: caller, under: mappings.index)
            return [
                hash,
                IndexKey.misshapenHash(hash, content: record.contentMAC, under: mappings.index),
            ]
        }
        return try (hashes ?? []).first { hash in
            try gate.first(Self.hashFits) {
                $0.add(number)
                $0.add(hash)
            } read: { _ in
                true
            } != nil
        }
    }

    private static let rank = "(CASE category WHEN 1 THEN 0 ELSE 4 END + tier)"
    private static let repairRank = StatementText(
        Schema.outbox.name,
        """
        UPDATE outbox SET rank = \(rank)
        WHERE number = ? AND rank IS NOT \(rank) AND mac IS \(Schema.outbox.code(["rank": rank]))
        """, damage: .known)

    /// Repairs the rank of a message: it follows from its category and tier.
    private func repairOutbox(_ key: [StoredCell]) throws -> Bool {
        guard let number = key.first else { return false }
        let count = try writing { gate in try gate.change(Self.repairRank) { $0.add(number) } }
        return try count > 0 && recountOutbox()
    }

    // MARK: For the gateway

    /// Checks the next rows of both databases, so many at most. Blocks its thread; runs beside reads and writes.
    ///
    /// - Returns: Whether a pass over all rows has ended.
    package func checkRows(countMax: Int) throws -> Bool {
        try refuseWhenStopped()
        return try integrity.exclusively { try advance(rowCountMax: countMax) }
    }

    private func advance(rowCountMax: Int) throws -> Bool {
        for damage in try integrity.damagedAnchors() { damages.note(damage) }
        return try integrity.advance(
            rowCountMax: rowCountMax, isWalked: { file, walk in try settle(walk, of: file) },
            isUnreadable: { damages.note($0) })
    }

    /// Accepts the damage for good: from here on, a row that is not found counts as not there. Damaged rows stay so.
    ///
    /// - Returns: The damage that it accepted.
    package func acceptDamage() throws -> [StoredDamage] {
        try refuseWhenStopped()
        return try integrity.exclusively {
            // A pass may be half done; the next is whole.
            for _ in 0..<2 { while try !advance(rowCountMax: 1_000_000) {} }
            let open = integrity.known.flatMap { table, places in
                places.filter { !$0.value }.map { (table: table, place: $0.key) }
            }.sorted { ($0.table, $0.place) < ($1.table, $1.place) }
            guard !open.isEmpty else { return [] }
            let tables = Set(open.map(\.table))
            subjectsWriter.take()
            defer { subjectsWriter.giveBack() }
            for file in integrity.files {
                try writing(to: file.writer) { connection in
                    for table in file.tables where tables.contains(table.name) {
                        try rebase(table.name, in: connection)
                    }
                }
            }
            integrity.known = try writing { gate in
                try gate.change(Self.acceptDamage)
                return try Self.knownDamage(in: gate)
            }
            for table in tables { damages.setClosed(table, false) }
            return open.map {
                StoredDamage(table: $0.table, row: $0.place.isEmpty ? nil : $0.place, what: "it is accepted")
            }
        }
    }
}

extension DamageLog {
    /// Takes over what earlier checks found, as ``SQLiteStore/knownDamage(in:)`` read it.
    func note(known: [String: [String: Bool]]) {
        for (table, places) in known {
            setClosed(table, places.values.contains(false))
            for place in places.keys {
                note(
                    StoredDamage(
                        table: table, row: place.isEmpty ? nil : place,
                        what: "an earlier check found that it is not as it was written"))
            }
        }
    }
}
