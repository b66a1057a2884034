import GateRecords
package import GateVocabulary

extension GateMemory {
    package func send(caller: CallerName, idHash: [UInt8]) throws -> SendRecord? {
        let key = RequestKey(caller: caller, idHash: idHash)
        return try unlessErased(known(requests[key], .request(key)))
    }

    package func send(_ id: SendID) throws -> SendRecord? {
        try unlessErased(known(sends[id], .send(id)))
    }

    private func unlessErased(_ send: SendRecord?) -> SendRecord? {
        send.flatMap { send in send.subject.map(erased.contains) == true ? nil : send }
    }

    /// Whether a step of this batch added the send, so that the store has nothing of it yet.
    func isNew(_ send: SendID) -> Bool {
        guard let tail, let record = try? self.send(send) else { return false }
        return record.entryIndex >= tail.entryCount
    }

    package func insertSend(_ record: SendRecord) {
        let (id, key) = (record.id, RequestKey(caller: record.caller, idHash: record.idHash))
        let row = Known<SendRecord?>.success(record)
        log(.send(id, sends.updateValue(row, forKey: id), key, requests.updateValue(row, forKey: key)))
        Change.add(record, to: &change.sends)
    }

    // MARK: What caps count

    package func countedForwards(of subject: SubjectID, since: Instant, limit: Int) throws -> [ForwardRecord]
    {
        if erased.contains(subject) { return [] }
        let person = person(subject)
        guard let known = try person?.forwards?.get() else {
            // A person that this batch adds has none to load.
            guard try state(of: subject) == nil else { throw MissingRows(.forwards(subject, since: since)) }
            return Self.newest(person?.addedForwards.reversed() ?? [], since: since, limit: limit)
        }
        guard known.since <= since else { throw MissingRows(.forwards(subject, since: since)) }
        guard let person, !person.addedForwards.isEmpty else {
            // The store has each send once.
            return Self.newest(known.records, since: since, limit: limit)
        }
        // A send counts once, from its first forward: the last of its records here.
        var seen: Set<SendID> = []
        let records = (person.addedForwards.reversed() + known.records).reversed()
            .filter { $0.send.map { seen.insert($0).inserted } ?? true }
        return Self.newest(records.reversed(), since: since, limit: limit)
    }

    /// - Parameter records: Newest first.
    private static func newest(_ records: [ForwardRecord], since: Instant, limit: Int) -> [ForwardRecord] {
        let isWhole = records.count <= limit && records.last.map { $0.at >= since } != false
        return isWhole ? records : Array(records.lazy.filter { $0.at >= since }.prefix(limit))
    }

    /// A send counts once, at its first forward, however many destinations it has.
    package func countForward(
        of subject: SubjectID, type: TypeID, category: Category, at now: Instant, send: SendID,
        inShadow isShadow: Bool = false
    ) {
        let person = person(adding: subject)
        guard !person.addedForwards.contains(where: { $0.send == send }) else { return }
        let record = ForwardRecord(at: now, type: type, category: category, send: send, isShadow: isShadow)
        person.addedForwards.append(record)
        log(.forward(person, recounted: person.recountsForwards))
        if !isNew(send) { person.recountsForwards = true }
        change.forwards.append((subject, record))
    }

    // MARK: Told events and duties

    package func dedupeRecord(_ eventTag: Tag, to subject: SubjectID) throws -> DedupeRecord? {
        let key = SubjectTag(eventTag, of: subject)
        return try known(dedupe[key], .dedupe(key))
    }

    /// Replaces what was on record about the same event.
    package func putDedupe(_ record: DedupeRecord, to subject: SubjectID) {
        set(record, of: SubjectTag(record.eventTag, of: subject))
    }

    package func removeDedupe(_ eventTag: Tag, to subject: SubjectID) {
        set(nil, of: SubjectTag(eventTag, of: subject))
    }

    private func set(_ record: DedupeRecord?, of key: SubjectTag) {
        write(.success(record), at: key, in: \.dedupe)
        change.dedupe.set(key, to: record)
    }

    package func duty(_ duty: Tag, of subject: SubjectID) throws -> DutyRecord? {
        let key = SubjectTag(duty, of: subject)
        return try known(duties[key], .duty(key))
    }

    /// Replaces what was on record about the same duty.
    package func putDuty(_ record: DutyRecord) {
        write(.success(record), at: record.key, in: \.duties)
        change.duties.append(.put(record))
    }

    package func removeDuty(_ duty: Tag, of subject: SubjectID) {
        let key = SubjectTag(duty, of: subject)
        write(.success(nil), at: key, in: \.duties)
        change.duties.append(.remove(key))
    }

    /// Forgets the duties that stand on record by a send.
    package func removeDuties(of send: SendID, to subject: SubjectID) {
        write(endedDuties[subject, default: []].union([send]), at: subject, in: \.endedDuties)
        for (key, known) in duties where key.subject == subject {
            guard case .success(let record?) = known, record.send == send else { continue }
            write(.success(nil), at: key, in: \.duties)
        }
        change.duties.append(.removeOf(send, subject))
    }

    // MARK: Events

    package func events(of send: SendID) throws -> [EventRecord] {
        try known(eventsOfSend[send], .eventsOfSend(send)) + addedEvents.filter { $0.send == send }
    }

    package func appendEvent(_ event: EventRecord) {
        addedEvents.append(event)
        change.events.append(event)
    }
}
