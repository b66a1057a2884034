package import GateSteps
package import GateVocabulary
import GatewayPipeline
package import OpenSSLCrypto
package import GateRecords

/// Everything that a store holds, as one value: a copy is a snapshot.
package struct StoreContents: Sendable {
    var subjectOfUser: [UserID: Subject] = [:]
    var subjects: [SubjectID: Subject] = [:]
    /// Marked, and their mappings not destroyed yet.
    var erased: Set<SubjectID> = []
    package internal(set) var states: [SubjectID: RecipientState] = [:]
    var consents: [SubjectID: [ConsentRecord]] = [:]
    var choices: [SubjectID: [PreferenceRecord]] = [:]
    package internal(set) var sends: [SendID: SendRecord] = [:]
    var sendNumbers: [SendID: Int] = [:]
    var requests: [RequestKey: SendID] = [:]
    var forwards: [SubjectID: [ForwardRecord]] = [:]
    var dedupe: [SubjectTag: DedupeRecord] = [:]
    var duties: [SubjectTag: DutyRecord] = [:]
    var links: [Tag: UnsubscribeLink] = [:]
    var replies: [RequestKey: ReplyRecord] = [:]
    package internal(set) var outbox: [MessageID: OutboxRecord] = [:]
    var outboxNumbers: [MessageID: Int] = [:]
    /// Those that this process gave to its relay, and that wait for nothing else.
    var offered: Set<MessageID> = []
    var eventRecords: [EventRecord] = []
    private var deviceOfToken: [String: (subject: SubjectID, tag: Tag)] = [:]
    private var eventsOfSend: [SendID: [EventRecord]] = [:]
    package internal(set) var entries: [StoredEntry] = []
    /// Entries before this index are published, and held no longer.
    var heldFrom = 0
    var publishedCount: UInt64 = 0
    var clock: ClockReading?
    var settings: [String: String] = [:]
    var dataKey = "none"
    private var newestNumber = 0
    private var newestCursor: Int64 = 0

    private let index: HMACKey

    /// - Parameter index: The gate's, under which links name their mailboxes.
    package init(index: HMACKey = sampleIndex) { self.index = index }

    package static let sampleIndex = HMACKey(SecretBytes(copying: [UInt8](repeating: 9, count: 32)))

    mutating func forgetMapping(of subject: SubjectID) {
        subjects[subject] = nil
        subjectOfUser = subjectOfUser.filter { $0.value.id != subject }
    }

    private mutating func nextNumber() -> Int {
        newestNumber += 1
        return newestNumber
    }

    // MARK: Writing

    /// - Returns: How many rows went because their time was over.
    mutating func write(_ change: Change) throws -> Int {
        entries += change.entries
        if let clock = change.clock { self.clock = clock }
        for (user, subject) in change.newSubjects {
            subjectOfUser[user] = subject
            subjects[subject.id] = subject
        }
        for (subject, write) in change.states.pairs {
            let state = write.after
            indexTokens(of: state, insteadOf: states[subject]?.devices ?? [])
            states[subject] = state
        }
        for record in change.consents {
            consents[record.subject, default: []].append(record)
        }
        for (record, _) in change.choices { choices[record.subject, default: []].append(record) }
        for send in change.sends {
            let key = RequestKey(caller: send.caller, idHash: send.idHash)
            sends[send.id] = send
            requests[key] = send.id
            sendNumbers[send.id] = nextNumber()
            if let subject = send.subject, states[subject] == nil {
                states[subject] = RecipientState(subject)
            }
        }
        for (subject, forward) in change.forwards
        where forwards[subject]?.contains(where: { $0.send == forward.send }) != true {
            forwards[subject, default: []].append(forward)
        }
        for (key, record) in change.dedupe.pairs { dedupe[key] = record }
        for link in change.links where links[link.id] == nil { links[link.id] = link }
        for reply in change.replies { replies[reply.key] = reply }
        for write in change.duties { self.write(write) }
        for write in change.messages { self.write(write) }
        for var event in change.events {
            newestCursor += 1
            event.cursor = newestCursor
            eventRecords.append(event)
            eventsOfSend[event.send, default: []].append(event)
        }
        for (name, value) in change.settings.pairs { settings[name] = value }
        for subject in change.erased { erase(subject) }
        if let size = change.publishedSize {
            publishedCount = size
            heldFrom = Int(size) / 256 * 256
        }
        if let key = change.dataKey { dataKey = key }
        return change.prunedBefore.map { prune(before: $0) } ?? 0
    }

    /// A token leads to the device that was put with it last.
    private mutating func indexTokens(of state: RecipientState, insteadOf old: [DeviceRecord]) {
        for device in old where device.isActive && !state.devices.contains(device) {
            if deviceOfToken[device.tokenIdentity]?.tag == device.tag {
                deviceOfToken[device.tokenIdentity] = nil
            }
        }
        for device in state.devices where device.isActive && !old.contains(device) {
            deviceOfToken[device.tokenIdentity] = (state.subject, device.tag)
        }
    }

    private mutating func write(_ write: Change.DutyWrite) {
        switch write {
        case .put(let record): duties[record.key] = record
        case .remove(let key): duties[key] = nil
        case .removeOf(let send, let subject):
            duties = duties.filter { $0.key.subject != subject || $0.value.send != send }
        }
    }

    private mutating func write(_ write: Change.MessageWrite) {
        offered.remove(write.message)
        switch write {
        case .insert(let record), .offer(let record):
            if case .offer = write { offered.insert(record.message) }
            outbox[record.message] = record
            outboxNumbers[record.message] = nextNumber()
        case .update(let record): outbox[record.message] = record
        case .attempt(let message, let moment):
            outbox[message]?.attemptCount += 1
            outbox[message]?.attemptedAt = moment
        case .postpone(let message, let moment): outbox[message]?.notBefore = moment
        case .remove(let message):
            outbox[message] = nil
            outboxNumbers[message] = nil
        }
    }

    private mutating func erase(_ subject: SubjectID) {
        erased.insert(subject)
        states[subject] = nil
        consents[subject] = nil
        choices[subject] = nil
        forwards[subject] = nil
        for (id, send) in sends where send.subject == subject { remove(send, id) }
        dedupe = dedupe.filter { $0.key.subject != subject }
        duties = duties.filter { $0.key.subject != subject }
        links = links.filter { $0.value.subject != subject }
        for (message, record) in outbox where record.subject == subject {
            outbox[message] = nil
            outboxNumbers[message] = nil
        }
        setEvents(eventRecords.filter { $0.subject != subject })
    }

    private mutating func setEvents(_ records: [EventRecord]) {
        eventRecords = records
        eventsOfSend = Dictionary(grouping: records, by: \.send)
    }

    private mutating func remove(_ send: SendRecord, _ id: SendID) {
        sends[id] = nil
        sendNumbers[id] = nil
        requests[RequestKey(caller: send.caller, idHash: send.idHash)] = nil
    }

    private mutating func prune(before moment: Instant) -> Int {
        var count = 0
        let counted = Set(forwards.values.joined().filter { $0.at >= moment }.compactMap(\.send))
        for (id, send) in sends where send.receivedAt < moment && !counted.contains(id) {
            remove(send, id)
            count += 1
        }
        func kept<Value>(_ values: [Value], _ at: (Value) -> Instant) -> [Value] {
            let left = values.filter { at($0) >= moment }
            count += values.count - left.count
            return left
        }
        setEvents(kept(eventRecords, \.at))
        for (subject, records) in forwards { forwards[subject] = kept(records, \.at) }
        let oldRecords = dedupe.filter { $0.value.at < moment }
        for key in oldRecords.keys { dedupe[key] = nil }
        let oldReplies = replies.filter { $0.value.at < moment }
        for key in oldReplies.keys { replies[key] = nil }
        return count + oldRecords.count + oldReplies.count
    }
}

extension StoreContents: StoreReading {
    private func unlessErased(_ subject: Subject?) -> Subject? {
        subject.flatMap { erased.contains($0.id) ? nil : $0 }
    }

    package func subject(of user: UserID) throws -> Subject? { unlessErased(subjectOfUser[user]) }
    package func subject(_ id: SubjectID) throws -> Subject? { unlessErased(subjects[id]) }
    package func state(of subject: SubjectID) throws -> RecipientState? { states[subject] }
    package func consentRecords(of subject: SubjectID) throws -> [ConsentRecord] { consents[subject] ?? [] }
    package func people(after subject: SubjectID?, limit: Int) throws -> [SubjectID] {
        Array(states.keys.filter { subject == nil || $0 > subject! }.sorted().prefix(limit))
    }
    package func mappedSubjects(after subject: SubjectID?, limit: Int) throws -> [SubjectID] {
        Array(subjects.keys.filter { subject == nil || $0 > subject! }.sorted().prefix(limit))
    }
    package func ledgerEnds(of subject: SubjectID) throws -> LedgerEnds {
        LedgerEnds(
            consentCount: Int64(consents[subject]?.count ?? 0),
            choiceCount: Int64(choices[subject]?.count ?? 0))
    }
    package func preferenceHistory(of subject: SubjectID) throws -> [PreferenceRecord] {
        choices[subject] ?? []
    }

    package func unsubscribeLink(_ id: Tag) throws -> UnsubscribeLink? { links[id] }

    package func device(withToken identity: String) throws -> DeviceRecord? {
        guard let (subject, tag) = deviceOfToken[identity] else { return nil }
        return states[subject]?.devices.first { $0.tag == tag }
    }

    package func holders(of address: AddressKey) throws -> [SubjectID] {
        states.values.filter { $0.addresses.contains { AddressKey($0) == address } }.map(\.subject)
    }

    package func mailboxHolders(of hash: [UInt8]) throws -> [SubjectID] {
        states.values.filter {
            $0.addresses.contains { IndexKey(index).addressHash(AddressKey($0)) == hash }
        }.map(\.subject)
    }

    package func reply(_ key: RequestKey) throws -> ReplyRecord? { replies[key] }

    package func confirmed(_ addressHash: [UInt8]) throws -> Instant? {
        replies.values.filter { $0.confirmation?.addressHash == addressHash }.map(\.at).max()
    }

    package func deviceKeys(after key: KeyID?, limit: Int) throws -> [KeyID] {
        let keys = states.values.flatMap { state in state.devices.flatMap { state.keys(of: $0.tag) } }
        return Array(
            keys.map(\.key).filter { $0.hexadecimal > key?.hexadecimal ?? "" }
                .sorted { $0.hexadecimal < $1.hexadecimal }.prefix(limit))
    }

    package func deviceKey(_ key: KeyID) throws -> DeviceKeyRecord? {
        states.values.lazy.compactMap { $0.key(key) }.first
    }

    package func send(_ id: SendID) throws -> SendRecord? { sends[id] }
    package func send(caller: CallerName, idHash: [UInt8]) throws -> SendRecord? {
        requests[RequestKey(caller: caller, idHash: idHash)].flatMap { sends[$0] }
    }

    package func sends(of subject: SubjectID, before: SendID?, limit: Int) throws -> [SendRecord] {
        let all = sends.values.filter { $0.subject == subject }
            .sorted { ($0.receivedAt, number($0)) > ($1.receivedAt, number($1)) }
        guard let before else { return Array(all.prefix(limit)) }
        guard let position = all.firstIndex(where: { $0.id == before }) else { return [] }
        return Array(all[(position + 1)...].prefix(limit))
    }

    private func number(_ send: SendRecord) -> Int { sendNumbers[send.id] ?? 0 }

    package func countedForwards(of subject: SubjectID, since: Instant, limit: Int) throws -> [ForwardRecord]
    {
        let newest = (forwards[subject] ?? []).enumerated().filter { $0.element.at >= since }
            .sorted { ($0.element.at, $0.offset) > ($1.element.at, $1.offset) }
        return newest.prefix(limit).map(\.element)
    }

    package func dedupeRecord(_ eventTag: Tag, to subject: SubjectID) throws -> DedupeRecord? {
        dedupe[SubjectTag(eventTag, of: subject)]
    }
    package func duty(_ duty: Tag, of subject: SubjectID) throws -> DutyRecord? {
        duties[SubjectTag(duty, of: subject)]
    }
    package func overdueDuties(at now: Instant, limit: Int) throws -> [DutyRecord] {
        Array(duties.values.filter { $0.dueAt <= now }.sorted { $0.dueAt < $1.dueAt }.prefix(limit))
    }

    // MARK: Messages

    private func rows(_ isWanted: (OutboxRecord) -> Bool) -> [OutboxRecord] {
        outbox.values.filter(isWanted).sorted { age($0) < age($1) }
    }
    private func age(_ row: OutboxRecord) -> Int { outboxNumbers[row.message] ?? 0 }

    package func outbox(of send: SendID) throws -> [OutboxRecord] { rows { $0.send == send } }
    package func outbox(of subject: SubjectID) throws -> [OutboxRecord] { rows { $0.subject == subject } }
    package func outbox(_ message: MessageID) throws -> OutboxRecord? { outbox[message] }
    package func outboxHead(_ message: MessageID) throws -> OutboxRecord? { outbox[message] }
    package func outboxCount(of subject: SubjectID, limit: Int) throws -> Int {
        min(outbox.values.count { $0.subject == subject }, limit)
    }

    private func isIn(_ lane: DeliveryLane, _ row: OutboxRecord) -> Bool {
        (row.category == .security) == (lane == .security)
    }

    /// Tier by tier; inside a tier one row per caller in turn, the caller that waits longest first.
    package func dueOutbox(
        at now: Instant, limit: Int, lane: DeliveryLane, excluding: Set<MessageID>
    ) throws -> [MessageID] {
        var due: [MessageID] = []
        for tier in Tier.allCases {
            let rows = outbox.values.filter {
                isIn(lane, $0) && $0.tier == tier && $0.notBefore <= now && !excluding.contains($0.message)
                    && !offered.contains($0.message)
            }
            var queues = Dictionary(grouping: rows, by: \.request.caller).mapValues { rows in
                rows.sorted { ($0.notBefore, age($0)) < ($1.notBefore, age($1)) }[...]
            }
            while !queues.isEmpty {
                let round = queues.values.compactMap(\.first)
                    .sorted { ($0.notBefore, age($0)) < ($1.notBefore, age($1)) }
                for row in round {
                    due.append(row.message)
                    queues[row.request.caller]?.removeFirst()
                }
                queues = queues.filter { !$0.value.isEmpty }
            }
        }
        return Array(due.prefix(limit))
    }

    package func nextOutboxDue(lane: DeliveryLane, excluding: Set<MessageID>) throws -> Instant? {
        outbox.values.filter {
            isIn(lane, $0) && !excluding.contains($0.message) && !offered.contains($0.message)
        }.map(\.notBefore).min()
    }

    package func outboxDepth() throws -> OutboxDepth {
        var depth = OutboxDepth(rowCount: 0, securityRowCount: 0, byteCount: 0, rowCountByCaller: [:])
        for row in outbox.values {
            depth.rowCount += 1
            if row.category == .security { depth.securityRowCount += 1 }
            depth.byteCount += Int64(row.headers.count + row.body.count + row.facts.count)
            depth.rowCountByCaller[row.request.caller, default: 0] += 1
        }
        return depth
    }

    // MARK: Events and trail

    package func events(of caller: CallerName, after cursor: Int64, limit: Int) throws -> [EventRecord] {
        Array(eventRecords.lazy.filter { $0.caller == caller && $0.cursor > cursor }.prefix(limit))
    }
    package func events(of send: SendID) throws -> [EventRecord] { eventsOfSend[send] ?? [] }

    package func entryCount() throws -> UInt64 { UInt64(entries.count) }
    package func entries(from index: UInt64, limit: Int) throws -> [StoredEntry] {
        guard let index = Int(exactly: index), index < entries.count else { return [] }
        return Array(entries[max(index, heldFrom)...].prefix(limit))
    }
    package func entry(_ index: UInt64) throws -> StoredEntry? {
        guard let index = Int(exactly: index), entries.indices.contains(index), index >= heldFrom else {
            return nil
        }
        return entries[index]
    }
    package func publishedSize() throws -> UInt64 { publishedCount }
    package func laggingRowCount() throws -> Int64 { 0 }
    package func hasSealed(under key: String) throws -> Bool { key == dataKey }
    package func hasValues(under _: String) throws -> Bool { false }
    package func missingDataKeys() throws -> [String] { [] }
    package func newestEntryTime() throws -> Instant? { entries.last?.time }
    package func newestEntryClock() throws -> ClockReading? { clock }
    package func settingNames(in range: Range<String>, limit: Int) throws -> [String] {
        Array(settings.keys.filter(range.contains).sorted().prefix(limit))
    }
    package func setting(_ name: String) throws -> String? { settings[name] }
}
