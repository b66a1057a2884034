import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateTransaction {
    private static let insertSend = StatementText(
        "send", "INSERT INTO send VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    private static let insertHistory = StatementText(
        "history", "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)")
    private static let setForwarded = StatementText(
        "send", "UPDATE send SET forwarded_at = ? WHERE number = ? AND forwarded_at IS NULL")

    /// - Parameter forward: The forward that it counts as from the moment it was received.
    func insertSend(_ send: SendRecord, counting forward: ForwardRecord?) throws {
        let number = sequences.sendNumber + 1
        let caller = try strings.makeNumber(of: send.caller.text, in: gate)
        let person = try send.subject.map { try makePerson($0) }
        let type = try forward.map(typeNumber)
        let forwardedAt = forward?.at
        try gate.change(Self.insertSend) {
            $0.add(number)
            $0.add(send.id)
            $0.add(caller)
            $0.add(send.idHash)
            $0.add(send.contentMAC)
            $0.add(send.subject)
            $0.add(person)
            $0.add(type)
            $0.add(send.category)
            $0.add(send.channel)
            $0.add(send.receivedAt)
            $0.add(Int64(bitPattern: send.entryIndex))
            $0.add(forwardedAt)
            try addSealed(
                send, .init(number: number, caller: caller, person: person, type: type), to: &$0)
        }
        sequences.sendNumber = number
        sendNumbers[send.id] = number
    }

    /// Seals what is private of a send into the memory that its statement reads.
    private func addSealed(
        _ send: SendRecord, _ numbers: SendColumns.SendNumbers, to binder: inout Binder
    ) throws {
        sendFields.removeAll()
        SendColumns.writeSendRow(send, numbers, to: &sendFields)
        let rowByteCount = sendFields.count
        SendRecord.Details(
            type: send.type, requestID: send.requestID, destinationNames: send.destinationNames
        ).write(to: &sendFields)
        try sendFields.withUnsafeBytes { fields in
            let row = UnsafeRawBufferPointer(rebasing: fields[..<rowByteCount])
            let details = UnsafeRawBufferPointer(rebasing: fields[rowByteCount...])
            try binder.add(byteCount: cipher.byteCount(of: details.count)) {
                try seal(details, in: SendColumns.send, row: row, into: $0)
            }
        }
    }

    /// Adds a row to a person's history.
    private func note(
        _ kind: Int64, of subject: SubjectID, at: Instant, number: Int64, type: Int64? = nil,
        category: Category? = nil
    ) throws {
        let person = try makePerson(subject)
        try gate.change(Self.insertHistory) {
            $0.add(person)
            $0.add(kind)
            $0.add(at)
            $0.add(number)
            $0.add(type)
            $0.add(category)
        }
    }

    private func knownNumber(of send: SendID) throws -> Int64? {
        try sendNumbers[send] ?? number(of: send)
    }

    private func requiredNumber(of send: SendID) throws -> Int64 {
        guard let number = try knownNumber(of: send) else {
            throw UnfitWrite(table: "send", message: "there is no send \(send)")
        }
        return number
    }

    /// A send counts once, at its first forward, however many destinations it has.
    func countForward(of subject: SubjectID, _ forward: ForwardRecord, of send: SendID) throws {
        let number = try requiredNumber(of: send)
        let isFirst = try gate.change(Self.setForwarded) {
            $0.add(forward.at)
            $0.add(number)
        }
        guard isFirst > 0 else { return }
        try note(
            HistoryKind.forward, of: subject, at: forward.at, number: number, type: typeNumber(of: forward),
            category: forward.category)
    }

    /// The number of a type that counts, negative in shadow: the index that caps are counted from has it, and needs no other
    /// column.
    private func typeNumber(of forward: ForwardRecord) throws -> Int64 {
        let number = try strings.makeNumber(of: forward.type.text, in: gate)
        return forward.isShadow ? -number : number
    }

    private static let replaceDedupe = StatementText(
        "dedupe", "INSERT OR REPLACE INTO dedupe VALUES (?, ?, ?, ?)")
    private static let deleteDedupe = StatementText(
        "dedupe", "DELETE FROM dedupe WHERE person = ? AND event = ?")

    func putDedupe(_ record: DedupeRecord, to subject: SubjectID) throws {
        let person = try makePerson(subject)
        try gate.change(Self.replaceDedupe) {
            $0.add(person)
            $0.add(record.eventTag)
            $0.add(record.send)
            $0.add(record.at)
        }
    }

    func removeDedupe(_ key: SubjectTag) throws {
        guard let person = try person(key.subject) else { return }
        try gate.change(Self.deleteDedupe) {
            $0.add(person)
            $0.add(key.tag)
        }
    }

    // MARK: Events

    private static let insertEvent = StatementText(
        "event", "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")

    func appendEvent(_ record: EventRecord) throws {
        let cursor = sequences.eventCursor + 1
        let caller = try strings.makeNumber(of: record.caller.text, in: gate)
        let sendNumber = try knownNumber(of: record.send)
        // A provider's reason may quote a token, so it is sealed although most are plain codes.
        var placed = record
        placed.cursor = cursor
        let reason = try record.reason.map {
            try seal(
                Array($0.utf8), in: SendColumns.event,
                row: SendColumns.eventRow(placed, caller: caller, sendNumber: sendNumber))
        }
        try gate.change(Self.insertEvent) {
            $0.add(cursor)
            $0.add(caller)
            $0.add(record.send)
            $0.add(sendNumber)
            $0.add(record.subject)
            $0.add(record.event)
            $0.add(record.destination)
            $0.add(record.at)
            $0.add(record.entryIndex.map { Int64(bitPattern: $0) })
            $0.add(reason)
        }
        sequences.eventCursor = cursor
        // The events of a send that is known are found through it.
        if let subject = record.subject, sendNumber == nil {
            try note(HistoryKind.event, of: subject, at: record.at, number: cursor)
        }
    }

    // MARK: Pruning

    private static let oldestSends = StatementText(
        "send",
        """
        SELECT number, subject, received_at, forwarded_at FROM send WHERE number BETWEEN ? AND ? ORDER BY number
        """)
    private static let deleteSend = StatementText("send", "DELETE FROM send WHERE number = ?")
    private static let oldestEvents = StatementText(
        "event", "SELECT cursor, subject, at FROM event WHERE cursor BETWEEN ? AND ? ORDER BY cursor")
    private static let eventsOfSend = StatementText(
        "event", "SELECT cursor, at FROM event WHERE send_number = ? ORDER BY cursor")
    private static let deleteEvent = StatementText("event", "DELETE FROM event WHERE cursor = ?")
    private static let deleteHistory = StatementText(
        "history", "DELETE FROM history WHERE person = ? AND kind = ? AND at = ? AND number = ?")

    private static let deleteOldDedupe = StatementText(
        "dedupe",
        """
        DELETE FROM dedupe WHERE (person, event) IN
            (SELECT person, event FROM dedupe WHERE at < ? ORDER BY at LIMIT ?)
        """)

    private static let deleteOldReplies = StatementText(
        "reply",
        """
        DELETE FROM reply WHERE (caller, id_hash) IN
            (SELECT caller, id_hash FROM reply WHERE at < ? ORDER BY at LIMIT ?)
        """)

    /// Deletes at most ``SQLiteStoreLimits/prunedRowCountMax`` sends, as many events and as many told events,
    /// oldest first, with their counters; a caller with more to delete calls again until this returns 0.
    ///
    /// Both tables are in the order of arrival, and time goes back only at a ``TimeStep``; so the walk ends, for the rows
    /// between two of them, at the first that is young enough. A send that was forwarded later than it came (it had to wait)
    /// is kept until its counter is old enough too.
    func prune(before: Instant) throws -> Int {
        let steps = try timeSteps()
        var count = try pruneSends(before: before, steps)
        count += try pruneEvents(before: before, steps)
        count += try gate.change(Self.deleteOldDedupe) {
            $0.add(before)
            $0.add(Int64(prunedRowCountMax))
        }
        count += try gate.change(Self.deleteOldReplies) {
            $0.add(before)
            $0.add(Int64(prunedRowCountMax))
        }
        // Numbers that are kept may be those of sends that are gone.
        sendNumbers.removeAll()
        writer.offered.forgetSendNumbers()
        return count
    }

    /// A row whose time may be over.
    private struct OldRow {
        var number: Int64
        var subject: SubjectID?
        var at: Instant
        var forwardedAt: Instant?
    }

    private func pruneSends(before: Instant, _ steps: [TimeStep]) throws -> Int {
        var count = 0
        var sends: [OldRow] = []
        for numbers in TimeStep.ranges(steps.map(\.send)) where sends.count < prunedRowCountMax {
            try gate.scan(Self.oldestSends) {
                $0.add(numbers.lowerBound)
                $0.add(numbers.upperBound)
            } read: { row in
                let old = OldRow(
                    number: row.integer(), subject: try row.optionalID(), at: try row.instant(),
                    forwardedAt: try row.optionalInstant())
                guard old.at < before else { return false }
                if (old.forwardedAt ?? old.at) < before { sends.append(old) }
                return sends.count < prunedRowCountMax
            }
        }
        for send in sends {
            count += try gate.change(Self.deleteSend) { $0.add(send.number) }
            guard let subject = send.subject else { continue }
            if let forwardedAt = send.forwardedAt {
                // Only of one that counted later than it was received.
                count += try forget(HistoryKind.forward, of: subject, at: forwardedAt, number: send.number)
            }
            // Its younger events are found through it no longer.
            let events = try gate.every(Self.eventsOfSend, { $0.add(send.number) }) { row in
                (cursor: row.integer(), at: try row.instant())
            }
            for event in events {
                try note(HistoryKind.event, of: subject, at: event.at, number: event.cursor)
            }
        }
        return count
    }

    private func pruneEvents(before: Instant, _ steps: [TimeStep]) throws -> Int {
        var count = 0
        var events: [OldRow] = []
        for cursors in TimeStep.ranges(steps.map(\.event)) where events.count < prunedRowCountMax {
            try gate.scan(Self.oldestEvents) {
                $0.add(cursors.lowerBound)
                $0.add(cursors.upperBound)
            } read: { row in
                let old = OldRow(
                    number: row.integer(), subject: try row.optionalID(), at: try row.instant())
                guard old.at < before else { return false }
                events.append(old)
                return events.count < prunedRowCountMax
            }
        }
        for event in events {
            count += try gate.change(Self.deleteEvent) { $0.add(event.number) }
            guard let subject = event.subject else { continue }
            try forget(HistoryKind.event, of: subject, at: event.at, number: event.number)
        }
        return count
    }

    /// - Returns: How many rows there were.
    @discardableResult
    private func forget(_ kind: Int64, of subject: SubjectID, at: Instant, number: Int64) throws -> Int {
        guard let person = try person(subject) else { return 0 }
        return try gate.change(Self.deleteHistory) {
            $0.add(person)
            $0.add(kind)
            $0.add(at)
            $0.add(number)
        }
    }
}
