import GateSteps
import GateVocabulary
import GatewayPipeline

extension OutboxRecord {
    mutating func take(_ content: Content) {
        headers = content.headers
        body = content.body
        facts = content.facts
        eventTag = content.eventTag
        traceParent = content.traceParent
        mayHaveArrived = content.mayHaveArrived
        isCancelled = content.isCancelled
    }
}

extension GateReading {
    /// What ``boundOutboxHead(from:)`` reads.
    static let outboxHeadColumns =
        """
        number, message, send, subject, rank, caller, not_before, attempt_count, attempted_at, byte_count, rest
        """
    private static let columns = "\(outboxHeadColumns), sealed"
    private static let byMessage = StatementText("outbox", "SELECT \(columns) FROM outbox WHERE message = ?")
    private static let bySend = StatementText(
        "outbox", "SELECT \(columns) FROM outbox WHERE send = ? ORDER BY number")
    private static let countBySubject = StatementText(
        "outbox", "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE subject = ? LIMIT ?)")
    private static let bySubject = StatementText(
        "outbox", "SELECT \(columns) FROM outbox WHERE subject = ? ORDER BY number")

    final func outbox(_ message: MessageID) throws -> OutboxRecord? {
        try gate.first(Self.byMessage, { $0.add(message) }) { try outboxRecord(from: &$0) }
            ?? offered(message)
    }

    final func outboxHead(_ message: MessageID) throws -> OutboxRecord? {
        try knownOutboxHead(message)
            ?? gate.first(Self.byMessage, { $0.add(message) }) { try outboxHead(from: &$0) }
            ?? offeredHead(message)
    }

    final func outbox(of send: SendID) throws -> [OutboxRecord] {
        try gate.every(Self.bySend, { $0.add(send) }) { try outboxRecord(from: &$0) }
            + offered(of: send)
    }

    final func outbox(of subject: SubjectID) throws -> [OutboxRecord] {
        try gate.every(Self.bySubject, { $0.add(subject) }) { try outboxRecord(from: &$0) }
            + offered(of: subject)
    }

    final func outboxCount(of subject: SubjectID, limit: Int) throws -> Int {
        let count = try gate.first(
            Self.countBySubject,
            {
                $0.add(subject)
                $0.add(Int64(limit))
            }, read: { Int($0.integer()) })
        return try min((count ?? 0) + offeredCount(of: subject), limit)
    }

    private func outboxRecord(from row: inout StoredRow) throws -> OutboxRecord {
        var (record, bound) = try boundOutboxHead(from: &row)
        record.take(
            try OutboxRecord.Content(
                sealedFields: try open(row.byteArray(), in: SendColumns.outbox, row: bound)))
        return record
    }

    private func outboxHead(from row: inout StoredRow) throws -> OutboxRecord {
        try boundOutboxHead(from: &row).record
    }

    /// What stands in clear of a waiting message, and what its sealed part is bound to.
    final func boundOutboxHead(from stored: inout StoredRow) throws -> (record: OutboxRecord, row: [UInt8]) {
        var row = OutboxRow.blank
        row.number = stored.integer()
        row.head.message = try stored.id()
        row.head.send = try stored.id()
        row.head.subject = try stored.id()
        let rank = stored.integer()
        row.caller = stored.integer()
        row.head.notBefore = try stored.instant()
        row.head.attemptCount = Int(try stored.count())
        row.head.attemptedAt = try stored.optionalInstant()
        row.byteCount = try stored.count()
        try row.take(rest: stored.byteArray())
        try complete(&row)
        return (row.head, row.bound(rank: rank))
    }

    /// Fills in what the numbers of a row stand for.
    final func complete(_ row: inout OutboxRow) throws {
        row.head.request.caller = CallerName(try strings.text(of: row.caller, in: gate))
        row.head.request.type = TypeID(try strings.text(of: row.type, in: gate))
        row.head.mayHaveArrived = row.head.attemptCount > 0
    }

    // MARK: Whose turn it is

    private static let queued = StatementText(
        "outbox",
        """
        SELECT not_before, number, message FROM outbox INDEXED BY outbox_due
        WHERE rank = ? AND caller = ? AND (not_before, number) > (?, ?) AND not_before <= ?
        ORDER BY not_before, number
        """)
    /// One caller's due rows of one rank, oldest first, fetched in small pieces.
    private struct Queue {
        struct Head {
            var time: Int64
            var number: Int64
            var message: MessageID

            static func isDueEarlier(_ one: Head, _ other: Head) -> Bool {
                (one.time, one.number) < (other.time, other.number)
            }
        }

        let rank: Int64
        let caller: Int64
        private var lastTime = Int64.min
        private var lastNumber = Int64.min
        private var piece: [Head] = []
        private var position = 0
        private var isExhausted = false

        init(rank: Int64, caller: Int64) {
            self.rank = rank
            self.caller = caller
        }

        /// The oldest row not yet taken.
        mutating func peek(
            at now: Instant, excluding: Set<MessageID>, pieceCount: Int, in gate: Connection
        ) throws -> Head? {
            if position == piece.count, !isExhausted {
                piece = []
                position = 0
                // Rows that are in flight are stepped over here, on the index alone: at most as many as are in
                // flight, and nothing of them is fetched or opened.
                isExhausted = true
                try gate.scan(GateReading.queued) {
                    $0.add(rank)
                    $0.add(caller)
                    $0.add(lastTime)
                    $0.add(lastNumber)
                    $0.add(now)
                } read: { row in
                    lastTime = row.integer()
                    lastNumber = row.integer()
                    let message = try row.id(MessageID.self)
                    if !excluding.contains(message) {
                        piece.append(Head(time: lastTime, number: lastNumber, message: message))
                    }
                    isExhausted = piece.count < pieceCount
                    return isExhausted
                }
            }
            return position < piece.count ? piece[position] : nil
        }

        mutating func take() { position += 1 }
    }

    /// Rank by rank; inside a rank one row per caller in turn, the caller that waits longest first.
    final func dueOutbox(
        at now: Instant, limit: Int, lane: DeliveryLane, excluding: Set<MessageID>
    ) throws -> [MessageID] {
        let counters = try currentCounters()
        var messages: [MessageID] = []
        for rank in Rank.all(in: lane) {
            var queues = counters.callers(in: rank).map { Queue(rank: rank, caller: $0) }
            guard !queues.isEmpty else { continue }
            while messages.count < limit {
                let room = limit - messages.count
                let pieceCount = max(room / queues.count, 4)
                var round: [(head: Queue.Head, queue: Int)] = []
                for index in queues.indices {
                    let head = try queues[index].peek(
                        at: now, excluding: excluding, pieceCount: pieceCount, in: gate)
                    if let head { round.append((head, index)) }
                }
                guard !round.isEmpty else { break }
                round.sort { Queue.Head.isDueEarlier($0.head, $1.head) }
                for turn in round.prefix(room) {
                    messages.append(turn.head.message)
                    queues[turn.queue].take()
                }
            }
        }
        return messages
    }

    final func nextOutboxDue(lane: DeliveryLane, excluding: Set<MessageID>) throws -> Instant? {
        var earliest: Int64?
        let counters = try currentCounters()
        for rank in Rank.all(in: lane) {
            for caller in counters.callers(in: rank) {
                var queue = Queue(rank: rank, caller: caller)
                let head = try queue.peek(
                    at: Instant(milliseconds: .max), excluding: excluding, pieceCount: 1, in: gate)
                if let head { earliest = min(earliest ?? head.time, head.time) }
            }
        }
        return earliest.map {
            Instant(milliseconds: min(max($0, Instant.storable.lowerBound), Instant.storable.upperBound))
        }
    }

    final func outboxDepth() throws -> OutboxDepth {
        var depth = OutboxDepth(rowCount: 0, securityRowCount: 0, byteCount: 0, rowCountByCaller: [:])
        for count in try currentCounters().counts + offeredCounters().counts where count.rowCount > 0 {
            depth.rowCount += Int(count.rowCount)
            if Rank.all(in: .security).contains(count.rank) { depth.securityRowCount += Int(count.rowCount) }
            depth.byteCount += count.byteCount
            let caller = CallerName(try strings.text(of: count.caller, in: gate))
            depth.rowCountByCaller[caller, default: 0] += Int(count.rowCount)
        }
        return depth
    }
}
