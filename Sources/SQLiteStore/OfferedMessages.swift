import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline

/// Messages of the rows of `offered` that have neither ended nor moved: what this process gave to its relay from memory.
///
/// Whole, because the table is emptied when the store opens and changed by its one writer alone, which keeps this. An object, so
/// that looking at it copies none of it.
final class OfferedMessages {
    /// One row.
    struct Segment {
        let number: Int64
        /// Number of its last message.
        var last: Int64
        var liveCount = 0
        /// Every recipient it has a message of, ended or not.
        var subjects: [SubjectID] = []
    }

    /// What is undone should the transaction fail.
    private struct Write {
        let row: StoredMessage
        let isAdded: Bool
    }

    private var rows: [MessageID: StoredMessage] = [:]
    /// Oldest first, so that what is looked for is near an end.
    private(set) var segments: [Segment] = []
    private(set) var counters = OutboxCounters()
    /// What was there before the first change since the last commit.
    private var before: (segments: [Segment], counters: OutboxCounters)?
    /// The messages that were added and removed since. There may be thousands of others, so that no copy is kept of all.
    private var writes: [Write] = []

    subscript(_ message: MessageID) -> StoredMessage? { rows[message] }

    var all: [StoredMessage] { rows.values.sorted { $0.number < $1.number } }

    private func mark() {
        if before == nil { before = (segments, counters) }
    }

    func didCommit() {
        before = nil
        writes.removeAll(keepingCapacity: true)
    }

    /// Undoes every change since the last commit.
    func goBack() {
        guard let before else { return }
        for write in writes.reversed() {
            rows[write.row.head.message] = write.isAdded ? nil : write.row
        }
        (segments, counters) = before
        didCommit()
    }

    func insert(_ row: StoredMessage) {
        mark()
        writes.append(Write(row: row, isAdded: true))
        rows[row.head.message] = row
        counters.add(rank: row.rank, caller: row.caller, rows: 1, bytes: row.byteCount)
        if segments.last?.number != row.segment {
            segments.append(Segment(number: row.segment, last: row.number))
        }
        let place = segments.count - 1
        segments[place].last = row.number
        segments[place].liveCount += 1
        segments[place].subjects.append(row.head.subject)
    }

    /// - Returns: What was there.
    func remove(_ message: MessageID) -> StoredMessage? {
        guard let row = rows.removeValue(forKey: message) else { return nil }
        mark()
        writes.append(Write(row: row, isAdded: false))
        counters.add(rank: row.rank, caller: row.caller, rows: -1, bytes: -row.byteCount)
        if let place = place(of: row.segment) { segments[place].liveCount -= 1 }
        return row
    }

    private func place(of segment: Int64) -> Int? { segments.firstIndex { $0.number == segment } }

    /// Call when a row is written anew.
    func setSubjects(_ subjects: [SubjectID], ofSegment number: Int64) {
        mark()
        if let place = place(of: number) { segments[place].subjects = subjects }
    }

    /// Removes a row whose messages have all ended.
    ///
    /// - Returns: `nil` while one of them has not.
    func removeSegment(_ number: Int64) -> Segment? {
        guard let place = place(of: number), segments[place].liveCount == 0 else { return nil }
        mark()
        return segments.remove(at: place)
    }

    /// Call when sends are deleted: their numbers no longer identify a row.
    func forgetSendNumbers() {
        for row in rows.values { row.sendNumber = nil }
    }
}

/// A message as its row has it, without its sealed part.
final class StoredMessage {
    let row: OutboxRow
    /// The row of `offered` that it is in.
    let segment: Int64
    /// The number of its send, where that is known.
    var sendNumber: Int64?
    let rank: Int64

    var number: Int64 { row.number }
    var caller: Int64 { row.caller }
    var byteCount: Int64 { row.byteCount }
    var head: OutboxRecord { row.head }
    /// What its sealed part is bound to in `outbox`.
    var bound: [UInt8] { row.bound(rank: rank) }

    init(_ row: OutboxRow, segment: Int64 = 0, sendNumber: Int64? = nil) {
        (self.row, self.segment, self.sendNumber) = (row, segment, sendNumber)
        rank = Rank.of(row.head.category, row.head.tier)
    }
}

/// Numbers of messages.
extension RangeSet<Int64> {
    /// Of each range the first and the last number, ascending: (i64 first ‖ i64 last) …, big-endian.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for range in ranges {
            withUnsafeBytes(of: range.lowerBound.bigEndian) { bytes += $0 }
            withUnsafeBytes(of: (range.upperBound - 1).bigEndian) { bytes += $0 }
        }
        return bytes
    }

    /// - Returns: `nil` for what ``bytes`` never gives.
    init?(bytes: [UInt8]) {
        guard bytes.count.isMultiple(of: 16) else { return nil }
        let bounds = bytes.withUnsafeBytes { bytes in
            stride(from: 0, to: bytes.count, by: 8).map {
                Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: $0, as: Int64.self))
            }
        }
        self.init()
        for place in stride(from: 0, to: bounds.count, by: 2) {
            let (first, last) = (bounds[place], bounds[place + 1])
            guard first >= 0, first <= last, last <= StoredRow.countMax else { return nil }
            insert(contentsOf: first..<last + 1)
        }
        // Any other order, and ranges that touch.
        guard self.bytes == bytes else { return nil }
    }
}

/// The messages that one commit offers, as a row of `offered` will have them.
struct OfferedSegment: ~Copyable {
    /// Bounds the length of the bytes that the sealed part is bound to.
    static let countMax = 128
    static let layout: UInt8 = 1
    static let column = SealedColumn("offered", "sealed")

    /// Number of the first, and of the last.
    private(set) var number: Int64?
    private(set) var last: Int64 = 0
    private(set) var count = 0
    private(set) var heads: RowWriter
    private(set) var contents: RowWriter

    /// - Parameter expectedCount: The expected number of messages, to reserve memory for.
    init(expectedCount: Int) {
        let expectedCount = min(expectedCount, Self.countMax)
        heads = RowWriter(capacity: expectedCount * 200)
        contents = RowWriter(capacity: expectedCount * 2_500)
    }

    mutating func removeAll() {
        self = OfferedSegment(expectedCount: 1)
    }

    mutating func append(_ row: StoredMessage, _ content: OutboxRecord.Content) {
        if count == 0 {
            number = row.number
            heads.put(byte: Self.layout)
            contents.put(byte: Self.layout)
        }
        count += 1
        last = row.number
        row.row.write(row: &heads)
        contents.put(Int64(content.fieldByteCount))
        content.write(to: &contents)
    }

    /// What the sealed part is bound to: the whole rest of the row.
    static func bound(_ number: Int64, _ last: Int64, _ heads: [UInt8]) -> [UInt8] {
        var row: [UInt8] = []
        row.reserveCapacity(16 + heads.count)
        withUnsafeBytes(of: number.bigEndian) { row += $0 }
        withUnsafeBytes(of: last.bigEndian) { row += $0 }
        return row + heads
    }

    /// The sealed part of each, by its number.
    ///
    /// - Throws: `StoreError.damaged` where the bytes are not of so many messages.
    static func contents(_ bytes: [UInt8], of numbers: [Int64]) throws -> [Int64: OutboxRecord.Content] {
        try RowReader.read(bytes, layout: layout, of: "offered") { fields in
            var contents: [Int64: OutboxRecord.Content] = [:]
            for number in numbers {
                contents[number] = try OutboxRecord.Content(
                    sealedFields: try fields.bytes(count: try fields.integer()), table: "offered")
            }
            return contents
        }
    }
}

extension OfferedSegment {
    /// The sealed parts of a row, each in the layout of this build; `nil` where all are.
    static func relaid(_ bytes: [UInt8], from version: Int) throws -> [UInt8]? {
        var relaid = RowWriter(version: layout, capacity: bytes.count + 1_024)
        var isChanged = false
        do {
            var fields = try RowReader(bytes, layout: layout)
            while !fields.isAtEnd {
                let content = try fields.bytes(count: try fields.integer())
                let next = try OutboxRecord.Content.relaid(content, from: version)
                isChanged = isChanged || next != nil
                relaid.put(Int64((next ?? content).count))
                (next ?? content).withUnsafeBytes { relaid.put(raw: $0) }
            }
        } catch let damage as DamagedRow {
            throw StoreError.damaged(table: column.table, damage.what)
        }
        return isChanged ? relaid.bytes : nil
    }
}

extension GateReading {
    private static let everyHead = StatementText(
        "offered", "SELECT number, last, heads FROM offered ORDER BY number")
    private static let segment = StatementText(
        "offered",
        "SELECT last, heads, sealed FROM offered WHERE number = ?")

    /// Every row, oldest first.
    final func storedOffers() throws -> [(segment: Int64, rows: [StoredMessage])] {
        try gate.every(Self.everyHead) { row in
            let segment = row.integer()
            return (segment, try offers(in: segment, last: row.count(), heads: row.byteArray()))
        }
    }

    /// The messages of a row.
    private func offers(in segment: Int64, last: Int64, heads: [UInt8]) throws -> [StoredMessage] {
        try RowReader.read(heads, layout: OfferedSegment.layout, of: "offered") { fields in
            var rows: [StoredMessage] = []
            while !fields.isAtEnd {
                let row = try offer(from: &fields, in: segment)
                guard row.number >= segment, row.number > rows.last?.number ?? -1, row.number <= last else {
                    throw StoreError.damaged(table: "offered", "a message has a number of another row")
                }
                rows.append(row)
            }
            return rows
        }
    }

    private func offer(from fields: inout RowReader, in segment: Int64) throws -> StoredMessage {
        var row = try OutboxRow.read(row: &fields)
        try complete(&row)
        return StoredMessage(row, segment: segment)
    }

    /// The sealed part of a row, by the numbers of its messages; `nil` when there is no such row.
    final func openOffers(_ segment: Int64) throws -> [Int64: OutboxRecord.Content]? {
        if let opened = openedOffers[segment] { return opened }
        let opened = try gate.first(Self.segment, { $0.add(segment) }) { row in
            let (last, heads, sealed) = (row.integer(), row.byteArray(), row.byteArray())
            return try OfferedSegment.contents(
                open(sealed, in: OfferedSegment.column, row: OfferedSegment.bound(segment, last, heads)),
                of: offers(in: segment, last: last, heads: heads).map(\.number))
        }
        openedOffers[segment] = opened
        return opened
    }

    /// The sealed part of a message whose row is there.
    fileprivate final func content(of row: StoredMessage) throws -> OutboxRecord.Content {
        guard let content = try openOffers(row.segment)?[row.number] else {
            throw StoreError.damaged(table: "offered", row: "\(row.segment)", "it lacks a message")
        }
        return content
    }

    private func offered(_ isWanted: (OutboxRecord) -> Bool) throws -> [OutboxRecord] {
        try offeredRows().filter { isWanted($0.head) }.compactMap { row in
            // A row that this transaction will write is not there yet.
            guard let opened = try openOffers(row.segment), let content = opened[row.number] else {
                return nil
            }
            var record = row.head
            record.take(content)
            return record
        }
    }

    /// A message whose row is in `offered`. All rows are looked through, because few messages are offered at a time.
    final func offered(_ message: MessageID) throws -> OutboxRecord? {
        try offered { $0.message == message }.first
    }

    final func offeredHead(_ message: MessageID) throws -> OutboxRecord? {
        try offeredRows().first { $0.head.message == message }?.head
    }

    final func offered(of send: SendID) throws -> [OutboxRecord] { try offered { $0.send == send } }

    final func offered(of subject: SubjectID) throws -> [OutboxRecord] {
        try offered { $0.subject == subject }
    }

    final func offeredCount(of subject: SubjectID) throws -> Int {
        try offeredRows().count { $0.head.subject == subject }
    }
}

extension GateTransaction {
    private static let insertOffered = StatementText(
        "offered", "INSERT INTO offered (number, last, heads, sealed) VALUES (?, ?, ?, ?)")
    private static let updateOffered = StatementText(
        "offered", "UPDATE offered SET last = ?, heads = ?, sealed = ? WHERE number = ?")
    private static let deleteOffered = StatementText(
        "offered", "DELETE FROM offered WHERE number BETWEEN ? AND ?")
    private static let isQueued = StatementText("outbox", "SELECT number FROM outbox WHERE message = ?")

    /// Writes a new message that goes to the relay from memory: into one row with all others of its commit.
    func offer(_ record: OutboxRecord) throws {
        try requireNew(record.message)
        guard
            try counters.isEmpty
                || gate.first(Self.isQueued, { $0.add(record.message) }, read: { _ in true }) == nil
        else { throw Self.isThereAlready(record.message) }
        if newOffers.count == OfferedSegment.countMax { try writeOffered() }
        let number = sequences.outboxNumber + 1
        let content = OutboxRecord.Content(record)
        let row = try stored(record, content, number: number, segment: newOffers.number ?? number)
        newOffers.append(row, content)
        sequences.outboxNumber = number
        writer.offered.insert(row)
    }

    /// Requires that neither table has a message with this id.
    func requireNew(_ message: MessageID) throws {
        guard writer.offered[message] == nil else { throw Self.isThereAlready(message) }
    }

    private static func isThereAlready(_ message: MessageID) -> UnfitWrite {
        UnfitWrite(table: "offered", message: "there is a message \(message) already")
    }

    /// Writes the row of what was offered since the last one.
    func writeOffered() throws {
        guard let number = newOffers.number else { return }
        let heads = newOffers.heads.bytes
        let bound = OfferedSegment.bound(number, newOffers.last, heads)
        let sealed = try newOffers.contents.withUnsafeBytes {
            try seal($0, in: OfferedSegment.column, row: bound)
        }
        try sealed.withUnsafeBytes { sealed in
            _ = try gate.change(Self.insertOffered) {
                $0.add(number)
                $0.add(newOffers.last)
                $0.add(heads)
                $0.add(uncopied: sealed)
            }
        }
        newOffers.removeAll()
    }

    /// - Returns: Whether it was there, with the number of its row.
    func removeOffered(_ message: MessageID) throws -> Bool {
        guard let row = writer.offered.remove(message) else { return false }
        if let number = row.sendNumber { sendNumbers[row.head.send] = number }
        endedOffers.append((row.number, row.segment))
        return true
    }

    /// Deletes the rows whose messages have all ended, and notes which of the others have. Results come in the order of offers,
    /// so that rows end side by side.
    func deleteEndedOffers() throws {
        guard !endedOffers.isEmpty else { return }
        endedOffers.sort { $0.number < $1.number }
        var deleted: (first: Int64, segment: Int64, last: Int64)?
        func delete() throws {
            guard let deleted else { return }
            try gate.change(Self.deleteOffered) {
                $0.add(deleted.first)
                $0.add(deleted.segment)
            }
        }
        var lastOfNew: Int64 = 0
        for (number, segment) in endedOffers where number > max(deleted?.last ?? 0, lastOfNew) {
            guard let ended = writer.offered.removeSegment(segment) else {
                sequences.endedOffers.insert(contentsOf: number..<number + 1)
                continue
            }
            sequences.endedOffers.remove(contentsOf: segment..<ended.last + 1)
            if segment == newOffers.number {
                newOffers.removeAll()
                lastOfNew = ended.last
            } else if let before = deleted, before.last + 1 == segment {
                deleted = (before.first, segment, ended.last)
            } else {
                try delete()
                deleted = (segment, segment, ended.last)
            }
        }
        try delete()
        endedOffers = []
    }

    /// Removes an erased person's messages from the rows they share with others: each row is written anew without them.
    func removeOffered(of subject: SubjectID) throws {
        try writeOffered()
        for segment in writer.offered.segments where segment.subjects.contains(subject) {
            let rows = writer.offered.all.filter { $0.segment == segment.number }
            for row in rows where row.head.subject == subject { _ = try removeOffered(row.head.message) }
            let others = rows.filter { $0.head.subject != subject }
            if !others.isEmpty { try rewrite(segment.number, others) }
        }
    }

    /// Writes a row anew with some of its messages.
    private func rewrite(_ number: Int64, _ rows: [StoredMessage]) throws {
        var segment = OfferedSegment(expectedCount: rows.count)
        for row in rows { segment.append(row, try content(of: row)) }
        let heads = segment.heads.bytes
        let sealed = try seal(
            segment.contents.bytes, in: OfferedSegment.column,
            row: OfferedSegment.bound(number, segment.last, heads))
        try gate.change(Self.updateOffered) {
            $0.add(segment.last)
            $0.add(heads)
            $0.add(sealed)
            $0.add(number)
        }
        openedOffers[number] = nil
        writer.offered.setSubjects(rows.map(\.head.subject), ofSegment: number)
    }

    /// Moves a message that was offered to `outbox`, where it waits.
    func queueOffered(_ message: MessageID) throws {
        guard let row = writer.offered[message] else { return }
        if row.segment == newOffers.number { try writeOffered() }
        let content = try content(of: row)
        _ = try removeOffered(message)
        try queue(row, content)
    }

    private func queue(_ row: StoredMessage, _ content: OutboxRecord.Content) throws {
        try insert(row, sealed: try seal(content.sealedFields, in: SendColumns.outbox, row: row.bound))
    }

    /// Moves messages that an earlier process offered without a result to `outbox`, where they wait as tried ones.
    func queueOfferedOfEarlierProcess() throws {
        for (segment, rows) in try storedOffers() {
            for row in rows where !sequences.endedOffers.contains(row.number) {
                try queue(row, try content(of: row))
            }
            try gate.change(Self.deleteOffered) {
                $0.add(segment)
                $0.add(segment)
            }
        }
        sequences.endedOffers = RangeSet()
    }
}
