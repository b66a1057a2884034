import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline

/// The sealed columns of sends and of waiting messages.
enum SendColumns {
    static let send = SealedColumn("send", "sealed")
    static let outbox = SealedColumn("outbox", "sealed")
    static let event = SealedColumn("event", "sealed")

    /// Numbers that stand in a send's row for what its record says by name.
    struct SendNumbers {
        var number: Int64
        var caller: Int64
        var person: Int64?
        var type: Int64?
    }

    /// The columns that the sealed part of a send is bound to: every column in clear that never changes.
    static func sendRow(_ record: SendRecord, _ numbers: SendNumbers) -> [UInt8] {
        var fields = RowWriter(capacity: 128)
        writeSendRow(record, numbers, to: &fields)
        return fields.bytes
    }

    /// Writes ``sendRow(_:_:)``.
    static func writeSendRow(_ record: SendRecord, _ numbers: SendNumbers, to fields: inout RowWriter) {
        fields.put(byte: 1)
        fields.put(numbers.number)
        fields.put(record.id)
        fields.put(numbers.caller)
        fields.put(record.idHash)
        fields.put(record.contentMAC)
        fields.put(record.subject) { $0.put($1) }
        fields.put(numbers.person) { $0.put($1) }
        fields.put(numbers.type) { $0.put($1) }
        fields.put(optional: record.category)
        fields.put(record.channel)
        fields.put(record.receivedAt)
        fields.put(Int64(bitPattern: record.entryIndex))
    }

    /// The columns that the sealed part of an event is bound to: all others.
    static func eventRow(_ record: EventRecord, caller: Int64, sendNumber: Int64?) -> [UInt8] {
        var fields = RowWriter(version: 1)
        fields.put(record.cursor)
        fields.put(caller)
        fields.put(record.send)
        fields.put(sendNumber) { $0.put($1) }
        fields.put(record.subject) { $0.put($1) }
        fields.put(record.event)
        fields.put(record.destination) { $0.put($1) }
        fields.put(record.at)
        fields.put(record.entryIndex) { $0.put(Int64(bitPattern: $1)) }
        return fields.bytes
    }
}

/// The kinds of rows in `history`; see ``Schema/gate``.
enum HistoryKind {
    static let forward: Int64 = 0
    static let event: Int64 = 1
}

extension GateReading {
    // MARK: Decided sends

    /// What ``sendHead(from:)`` reads.
    static let sendHeadColumns =
        "number, id, caller, id_hash, content_mac, subject, person, type, category, channel, received_at, entry_index"
    private static let sendColumns = "\(sendHeadColumns), sealed"
    // Reads the index alone: nearly every request's id is new.
    private static let numberByHash = StatementText(
        "send", "SELECT number FROM send INDEXED BY send_by_hash WHERE id_hash = ? AND caller = ?")
    private static let sendByID = StatementText("send", "SELECT \(sendColumns) FROM send WHERE id = ?")
    private static let sendByNumber = StatementText(
        "send", "SELECT \(sendColumns) FROM send WHERE number = ?")
    private static let newestSends = StatementText(
        "send",
        "SELECT number FROM send WHERE person = ?1 ORDER BY received_at DESC, number DESC LIMIT ?4")
    private static let olderSends = StatementText(
        "send",
        """
        SELECT number FROM send WHERE person = ?1 AND (received_at, number) <
            (SELECT received_at, number FROM send WHERE id = ?2 AND subject = ?3)
        ORDER BY received_at DESC, number DESC LIMIT ?4
        """)

    final func send(caller: CallerName, idHash: [UInt8]) throws -> SendRecord? {
        guard let callerNumber = try strings.number(of: caller.text, in: gate) else { return nil }
        let number = try idHash.withUnsafeBytes { idHash in
            try gate.first(Self.numberByHash) {
                $0.add(uncopied: idHash)
                $0.add(callerNumber)
            } read: { row in
                row.integer()
            }
        }
        guard let number else { return nil }
        return try gate.first(Self.sendByNumber, { $0.add(number) }) { try send(from: &$0) }
    }

    /// How many requests are looked for by one statement, and from how many on that costs less than one by one.
    private static let groupCount = 16
    private static let groupCountMin = 3
    // The same index. The rows of values are read in front of it, one by one, while its cursor stays open.
    private static let knownRequests = StatementText(
        "send",
        """
        WITH wanted (place, id_hash, caller) AS (
            VALUES \((0..<groupCount).map { "(\($0), ?, ?)" }.joined(separator: ", ")))
        SELECT wanted.place FROM wanted CROSS JOIN send INDEXED BY send_by_hash
            ON send.id_hash = wanted.id_hash AND send.caller = wanted.caller
        """)
    private static let idHashByteCount = 16

    final func newRequests(in asks: [Ask]) throws -> [Bool] {
        var isNew = Array(repeating: false, count: asks.count)
        let places = asks.indices.filter { if case .newSend = asks[$0] { true } else { false } }
        do {
            for start in stride(from: 0, to: places.count, by: Self.groupCount) {
                let group = places[start..<min(start + Self.groupCount, places.count)]
                if group.count >= Self.groupCountMin { try findNew(group, of: asks, in: &isNew) }
            }
        } catch let error as StoreError where error.damage != nil {
            // Each is then looked for by itself, and those alone are refused that cannot be found out.
            return Array(repeating: false, count: asks.count)
        }
        return isNew
    }

    /// Marks those of ``groupCount`` sends, or fewer, whose requests are new.
    private func findNew(_ group: ArraySlice<Int>, of asks: [Ask], in isNew: inout [Bool]) throws {
        try withUnsafeTemporaryAllocation(
            byteCount: Self.groupCount * Self.idHashByteCount, alignment: 1
        ) { hashes in
            try gate.scan(Self.knownRequests) { wanted in
                var hash = hashes[...]
                for place in group {
                    guard case .newSend(let key, _, _) = asks[place], key.idHash.count == Self.idHashByteCount
                    else {
                        wanted.addNull()
                        wanted.addNull()
                        continue
                    }
                    isNew[place] = true
                    let bytes = UnsafeMutableRawBufferPointer(rebasing: hash.prefix(Self.idHashByteCount))
                    hash = hash.dropFirst(Self.idHashByteCount)
                    key.idHash.withUnsafeBytes { bytes.copyMemory(from: $0) }
                    wanted.add(uncopied: UnsafeRawBufferPointer(bytes))
                    wanted.add(try strings.number(of: key.caller.text, in: gate))
                }
                for _ in group.count..<Self.groupCount {
                    wanted.addNull()
                    wanted.addNull()
                }
            } read: { row in
                isNew[group[group.startIndex + Int(row.integer())]] = false
                return true
            }
        }
    }

    final func send(_ id: SendID) throws -> SendRecord? {
        try gate.first(Self.sendByID, { $0.add(id) }) { try send(from: &$0) }
    }

    final func sends(of subject: SubjectID, before: SendID?, limit: Int) throws -> [SendRecord] {
        guard let person = try person(subject) else { return [] }
        let numbers = try gate.every(before == nil ? Self.newestSends : Self.olderSends) {
            $0.add(person)
            $0.add(before)
            $0.add(subject)
            $0.add(Int64(max(limit, 0)))
        } read: { row in
            row.integer()
        }
        return try numbers.compactMap { number in
            try gate.first(Self.sendByNumber, { $0.add(number) }) { try send(from: &$0) }
        }
    }

    /// What stands in clear of a send, and what its sealed part is bound to.
    final func sendHead(from row: inout StoredRow) throws -> (record: SendRecord, row: [UInt8]) {
        let number = row.integer()
        let id = try row.id(SendID.self)
        let callerNumber = row.integer()
        let caller = CallerName(try strings.text(of: callerNumber, in: gate))
        let idHash = row.byteArray()
        let contentMAC = row.byteArray()
        let subject = try row.optionalID(SubjectID.self)
        let numbers = SendColumns.SendNumbers(
            number: number, caller: callerNumber, person: row.optionalInteger(), type: row.optionalInteger())
        let category = try row.optionalCode(Category.self)
        let channel = try row.code(Channel.self)
        let receivedAt = try row.instant()
        let entryIndex = UInt64(try row.count())
        let record = SendRecord(
            id: id, caller: caller, idHash: idHash, contentMAC: contentMAC, subject: subject,
            type: TypeID(""), category: category, channel: channel, receivedAt: receivedAt,
            entryIndex: entryIndex, requestID: "", destinationNames: [:])
        return (record, SendColumns.sendRow(record, numbers))
    }

    private func send(from row: inout StoredRow) throws -> SendRecord {
        var (record, bound) = try sendHead(from: &row)
        let details = try SendRecord.Details(
            sealedFields: try open(row.byteArray(), in: SendColumns.send, row: bound))
        record.type = details.type
        record.requestID = details.requestID
        record.destinationNames = details.destinationNames
        return record
    }

    // MARK: Counters

    // Two questions and not a union of both: each is answered in the order of its index, and nothing is sorted but what was found.
    private static let countedSends = StatementText(
        "send",
        """
        SELECT number, received_at, type, category, id FROM send INDEXED BY send_by_person
        WHERE person = ? AND received_at >= ? AND type IS NOT NULL ORDER BY received_at DESC LIMIT ?
        """)
    private static let laterForwards = StatementText(
        "history",
        """
        SELECT h.number, h.at, h.type, h.category, s.id FROM history AS h LEFT JOIN send AS s ON s.number = h.number
        WHERE h.person = ? AND h.kind = 0 AND h.at >= ? ORDER BY h.at DESC, h.number DESC LIMIT ?
        """)

    /// The number of a type, which stands negative in the row of a send in shadow. A damaged row may have any, also the one of
    /// which there is no positive.
    private func wordNumber(ofType type: Int64) -> Int64 { type < 0 ? 0 &- type : type }

    /// The forwards as their rows say.
    final func storedForwards(of subject: SubjectID, since: Instant, limit: Int) throws -> [ForwardRecord] {
        guard let person = try person(subject) else { return [] }
        var found: [(number: Int64, record: ForwardRecord)] = []
        for statement in [Self.countedSends, Self.laterForwards] {
            found += try gate.every(statement) {
                $0.add(person)
                $0.add(since)
                $0.add(Int64(max(limit, 0)))
            } read: { row in
                let (number, at, type) = (row.integer(), try row.instant(), row.integer())
                return (
                    number,
                    ForwardRecord(
                        at: at, type: TypeID(try strings.text(of: wordNumber(ofType: type), in: gate)),
                        category: try row.code(Category.self), send: try row.optionalID(),
                        isShadow: type < 0)
                )
            }
        }
        found.sort { ($0.record.at, $0.number) > ($1.record.at, $1.number) }
        return found.prefix(max(limit, 0)).map(\.record)
    }

    private static let toldEvent = StatementText(
        "dedupe", "SELECT event, send, at FROM dedupe WHERE person = ? AND event = ?")

    final func dedupeRecord(_ eventTag: Tag, to subject: SubjectID) throws -> DedupeRecord? {
        guard let person = try person(subject) else { return nil }
        return try gate.first(Self.toldEvent) {
            $0.add(person)
            $0.add(eventTag)
        } read: { row in
            DedupeRecord(eventTag: try row.id(), send: try row.optionalID(), at: try row.instant())
        }
    }

    // MARK: Events

    /// What ``eventHead(from:)`` reads.
    static let eventHeadColumns =
        "cursor, caller, send, send_number, subject, event, destination, at, entry"
    private static let eventColumns =
        "\(eventHeadColumns), sealed"
    private static let eventsAfter = StatementText(
        "event", "SELECT \(eventColumns) FROM event WHERE caller = ? AND cursor > ? ORDER BY cursor LIMIT ?")
    private static let eventsOfSend = StatementText(
        "event", "SELECT \(eventColumns) FROM event WHERE send_number = ? ORDER BY cursor")
    private static let eventsOfStraySend = StatementText(
        "event", "SELECT \(eventColumns) FROM event WHERE send_number IS NULL AND send = ? ORDER BY cursor")
    private static let sendNumber = StatementText("send", "SELECT number FROM send WHERE id = ?")

    final func events(of caller: CallerName, after cursor: Int64, limit: Int) throws -> [EventRecord] {
        guard let callerNumber = try strings.number(of: caller.text, in: gate) else { return [] }
        return try gate.every(Self.eventsAfter) {
            $0.add(callerNumber)
            $0.add(cursor)
            $0.add(Int64(max(limit, 0)))
        } read: {
            try event(from: &$0)
        }
    }

    final func events(of send: SendID) throws -> [EventRecord] {
        var events = try gate.every(Self.eventsOfStraySend, { $0.add(send) }) {
            try event(from: &$0)
        }
        if let number = try number(of: send) {
            events += try gate.every(Self.eventsOfSend, { $0.add(number) }) { try event(from: &$0) }
        }
        return events
    }

    final func number(of send: SendID) throws -> Int64? {
        try gate.first(Self.sendNumber, { $0.add(send) }, read: { $0.integer() })
    }

    /// What stands in clear of an event, and what its sealed part is bound to.
    final func eventHead(from row: inout StoredRow) throws -> (record: EventRecord, row: [UInt8]) {
        let cursor = try row.count()
        let caller = row.integer()
        let send = try row.id(SendID.self)
        let sendNumber = row.optionalInteger()
        let record = EventRecord(
            cursor: cursor, caller: CallerName(try strings.text(of: caller, in: gate)), send: send,
            subject: try row.optionalID(), event: try row.code(), destination: try row.optionalID(),
            at: try row.instant(), reason: nil,
            entryIndex: row.optionalInteger().map(UInt64.init(bitPattern:)))
        return (record, SendColumns.eventRow(record, caller: caller, sendNumber: sendNumber))
    }

    private func event(from row: inout StoredRow) throws -> EventRecord {
        var (record, bound) = try eventHead(from: &row)
        if let sealed = row.optionalByteArray() {
            let plain = try open(sealed, in: SendColumns.event, row: bound)
            record.reason = String(decoding: plain, as: UTF8.self)
        }
        return record
    }
}
