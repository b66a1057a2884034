import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateReading {
    private static let dutyColumns = """
        d.duty, p.subject, d.state, d.send, d.caller, d.type, d.must_go_by, d.within, d.due_at
        FROM duty AS d JOIN person AS p ON p.number = d.person
        """
    private static let dutyOfPerson = StatementText(
        "duty", "SELECT \(dutyColumns) WHERE d.person = ? AND d.duty = ?")
    private static let overdue = StatementText(
        "duty", "SELECT \(dutyColumns) WHERE d.due_at <= ? ORDER BY d.due_at LIMIT ?")

    final func duty(_ duty: Tag, of subject: SubjectID) throws -> DutyRecord? {
        guard let person = try person(subject) else { return nil }
        return try gate.first(Self.dutyOfPerson) {
            $0.add(person)
            $0.add(duty)
        } read: { row in
            try self.duty(&row)
        }
    }

    final func overdueDuties(at now: Instant, limit: Int) throws -> [DutyRecord] {
        try gate.every(Self.overdue) {
            $0.add(now)
            $0.add(Int64(max(limit, 0)))
        } read: { row in
            try self.duty(&row)
        }
    }

    private func duty(_ row: inout StoredRow) throws -> DutyRecord {
        let duty: Tag = try row.id()
        let subject: SubjectID = try row.id()
        let state: DutyRecord.State =
            switch row.integer() {
            case 0: .owed
            case 1: .discharged
            case let other: throw StoreError.damaged(table: "duty", "a duty has the state \(other)")
            }
        let send: SendID = try row.id()
        let caller = CallerName(try strings.text(of: row.integer(), in: gate))
        let type = TypeID(try strings.text(of: row.integer(), in: gate))
        return DutyRecord(
            duty: duty, subject: subject, state: state, send: send, caller: caller, type: type,
            mustGoBy: row.text(), within: row.text(), dueAt: try row.instant())
    }
}

extension GateTransaction {
    private static let replaceDuty = StatementText(
        "duty", "INSERT OR REPLACE INTO duty VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
    private static let deleteDuty = StatementText("duty", "DELETE FROM duty WHERE person = ? AND duty = ?")
    private static let dutiesOfSend = StatementText("duty", "DELETE FROM duty WHERE person = ? AND send = ?")

    func putDuty(_ record: DutyRecord) throws {
        let person = try makePerson(record.subject)
        let caller = try strings.makeNumber(of: record.caller.text, in: gate)
        let type = try strings.makeNumber(of: record.type.text, in: gate)
        try gate.change(Self.replaceDuty) {
            $0.add(person)
            $0.add(record.duty)
            $0.add(Int64(record.state == .owed ? 0 : 1))
            $0.add(record.send)
            $0.add(caller)
            $0.add(type)
            $0.add(record.mustGoBy)
            $0.add(record.within)
            $0.add(record.dueAt)
        }
    }

    func removeDuty(_ duty: Tag, of subject: SubjectID) throws {
        guard let person = try person(subject) else { return }
        try gate.change(Self.deleteDuty) {
            $0.add(person)
            $0.add(duty)
        }
    }

    func removeDuties(of send: SendID, to subject: SubjectID) throws {
        guard let person = try person(subject) else { return }
        try gate.change(Self.dutiesOfSend) {
            $0.add(person)
            $0.add(send)
        }
    }
}
