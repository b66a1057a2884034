package import GateVocabulary
package import GateRecords

/// The rows of the store that a batch has loaded, with the changes that its steps have made so far.
///
/// The store fills it with what steps ask for, and ``apply(_:)`` adds what a step did. A row that cannot be read is
/// kept as its error, which is thrown to a step that reads the row and to no other. Confined to the thread that has its
/// batch: the engine's until the commit, and then the one that answers, which reads and frees it.
package final class BatchState {
    /// A row that was looked up, or why it cannot be read. The row lies in a box of its own, so that keeping, passing on and
    /// forgetting it counts one reference, however many the row itself has.
    package indirect enum Known<Value> {
        case success(Value)
        case failure(StoreError)

        package func get() throws(StoreError) -> Value {
            switch self {
            case .success(let value): return value
            case .failure(let error): throw error
            }
        }

        package func map<Other>(_ change: (Value) -> Other) -> Known<Other> {
            switch self {
            case .success(let value): .success(change(value))
            case .failure(let error): .failure(error)
            }
        }
    }

    /// The same of a value that is little more than a reference itself, without a box.
    package enum Unboxed<Value> {
        case success(Value)
        indirect case failure(StoreError)

        package func get() throws(StoreError) -> Value {
            switch self {
            case .success(let value): return value
            case .failure(let error): throw error
            }
        }
    }

    /// The end of the trail when the batch began; `nil` before anything was loaded.
    package var tail: TrailTail?

    // As stored, or as changed.
    package private(set) var users: [UserID: Unboxed<Subject?>] = [:]
    package private(set) var people: [SubjectID: LoadedPerson] = [:]
    /// The one that was looked for last, because a send asks for several things of one person.
    private var newestPerson: LoadedPerson?
    package var dedupe: [SubjectTag: Known<DedupeRecord?>] = [:]
    package var duties: [SubjectTag: Known<DutyRecord?>] = [:]
    package var settings: [String: Known<String?>] = [:]
    package var links: [Tag: Known<UnsubscribeLink?>] = [:]
    package var messages: [MessageID: Known<OutboxRecord?>] = [:]
    package var messageHeads: [MessageID: Known<OutboxRecord?>] = [:]

    // As stored; what the batch has added is beside it.
    private var requests: [RequestKey: Known<SendRecord?>] = [:]
    /// Requests that no send has, as nearly every one is.
    private var newRequests: [RequestKey] = []
    /// Where that one is that was found last, from which on they are looked along: steps ask in the order of what was loaded.
    private var newestRequest = 0
    package var sends: [SendID: Known<SendRecord?>] = [:]
    package var tokens: [String: Known<SubjectID?>] = [:]
    package var keys: [KeyID: Known<SubjectID?>] = [:]
    package var holders: [AddressKey: Known<[SubjectID]>] = [:]
    package var mailboxHolders: [[UInt8]: Known<[SubjectID]>] = [:]
    package var replies: [RequestKey: Known<ReplyRecord?>] = [:]
    package var confirmed: [[UInt8]: Known<Instant?>] = [:]
    package var consents: [SubjectID: Known<[ConsentRecord]>] = [:]
    package var choices: [SubjectID: Known<[PreferenceRecord]>] = [:]
    package var messagesOfSend: [SendID: Known<[MessageID]>] = [:]
    package var messagesOfPerson: [SubjectID: Known<[MessageID]>] = [:]
    package var messageCounts: [SubjectID: Known<Int>] = [:]
    package var eventsOfSend: [SendID: Known<[EventRecord]>] = [:]
    package var depth: OutboxDepth?

    // What the engine answered.
    package var recalls: [MessageID: Bool] = [:]
    package var newSubjects: [UserID: Subject] = [:]
    package var challenges: [ChallengeOrder: SealedChallenge] = [:]
    package var publishedEntries: [UInt64: Known<[UInt8]>] = [:]
    package var headroom: Headroom?

    // What the batch has added.
    private(set) var addedTokens: [String: SubjectID] = [:]
    private(set) var addedKeys: [KeyID: SubjectID] = [:]
    private(set) var addedHolders: [AddressKey: [SubjectID]] = [:]
    private(set) var addedConsents: [SubjectID: [ConsentRecord]] = [:]
    private(set) var addedChoices: [SubjectID: [PreferenceRecord]] = [:]
    private(set) var addedDepth = AddedDepth()
    /// The changes of the batch's steps so far. Looked along for messages, events and offers, because few steps ask for these.
    package private(set) var applied: [Change] = []
    /// Where the rows are that ``applied`` adds: of its first changes, as many as ``listedChangeCount``. The others are looked
    /// along, together with their writes no more than ``searchedCountMax``.
    private var addedPlaces: [MessageID: (change: Int, write: Int)] = [:]
    private var listedChangeCount = 0
    private var unlistedCount = 0
    private static let searchedCountMax = 128
    /// One box for all messages that are gone.
    private let noMessage = Known<OutboxRecord?>.success(nil)
    /// The sends that ``applied`` adds, looked along newest first: by request by the steps of a batch, of which there are some
    /// hundred; by id no more than ``searchedCountMax`` of them, because a restore goes through the sends of a whole trail.
    private var addedSends: [AddedSend] = []
    /// Of their ``RequestKey``s, because nearly every request is looked for along them and is not there.
    private var addedStarts: [UInt64] = []
    /// Where in ``addedSends`` those are that are not looked along by id: its first, so many as ``listedSendCount``.
    private var sendPlaces: [SendID: Int] = [:]
    private var listedSendCount = 0

    /// Where a send is among the changes.
    private struct AddedSend {
        let id: SendID
        let change: Int
        let place: Int
    }

    /// One box for all sends that there are not, as nearly every new one is looked for first.
    private let noSend = Known<SendRecord?>.success(nil)
    package private(set) var endedDuties: [SubjectID: Set<SendID>] = [:]
    private(set) var erased: Set<SubjectID> = []
    private(set) var entryCount: UInt64 = 0
    package private(set) var newestTime: Instant?
    package private(set) var newestClock: ClockReading?
    private(set) var publishedSize: UInt64 = 0
    /// Offered messages that a step has recalled from the relay.
    package private(set) var recalled: Set<MessageID> = []
    private var offeredCounts = LaneValues(repeating: 0)
    /// At or before the time of the next row to claim in each lane; `nil` where there is none.
    package var due = LaneValues<Instant?>(repeating: nil)
    /// How many messages of each lane might be offered when the batch began.
    package var offerRoom = LaneValues(repeating: 0)

    package init() {}

    /// Reserves capacity for what a batch asks for at its start, so that no dictionary is rehashed while it fills.
    package func reserve(_ asks: [Ask]) {
        var (people, sends, heads) = (0, 0, 0)
        for place in asks.indices {
            switch asks[place] {
            case .user: people += 1
            case .newSend: sends += 1
            case .messageHead: heads += 1
            default: break
            }
        }
        people += sends
        reserve(people, in: &users)
        reserve(people, in: &self.people)
        newRequests.reserveCapacity(sends)
        reserve(heads, in: &messages)
        reserve(heads, in: &messageHeads)
        addedSends.reserveCapacity(sends)
        addedStarts.reserveCapacity(sends)
        applied.reserveCapacity(asks.count)
    }

    /// By a new dictionary, because `reserveCapacity(_:)` is not compiled for the types of a dictionary's keys and values.
    @inline(__always)
    private func reserve<Key, Value>(_ count: Int, in dictionary: inout [Key: Value]) {
        if dictionary.isEmpty, count > 0 { dictionary = Dictionary(minimumCapacity: count) }
    }

    /// Where the trail ends in the store.
    package func begin(at tail: TrailTail) {
        guard self.tail == nil else { return }
        self.tail = tail
        entryCount = tail.entryCount
        newestTime = tail.newestTime
        newestClock = tail.newestClock
        publishedSize = tail.publishedSize
    }

    /// Adds what a step did, so that later steps see it.
    package func apply(_ change: Change) {
        if !change.isOfSendsAlone { applyRecords(of: change) }
        // By their places, here and below, because a record is large.
        for place in change.sends.indices {
            addedSends.append(AddedSend(id: change.sends[place].id, change: applied.count, place: place))
            addedStarts.append(RequestKey.start(of: change.sends[place].idHash))
        }
        for (subject, record) in change.forwards { person(adding: subject).addedForwards.append(record) }
        if !change.effects.recalled.isEmpty {
            for message in change.effects.recalled {
                recalled.insert(message)
                takeBackOffer(of: message)
            }
        }
        // From here on its own offers and new messages are found.
        applied.append(change)
        unlistedCount += 1 + change.messages.count
        for place in change.messages.indices {
            let isAdded = change.messages[place].isAdded(to: &addedDepth)
            // A message that is composed again takes the place of a row that was removed.
            if !isAdded || messages.index(forKey: change.messages[place].message) != nil {
                apply(change.messages[place])
            }
        }
        for subject in change.erased { erase(subject) }
        entryCount += UInt64(change.entries.count)
        if !change.entries.isEmpty {
            newestTime = change.entries[change.entries.count - 1].time
            newestClock = change.clock
        }
        for place in change.effects.offers.indices {
            offeredCounts[change.effects.offers[place].lane] += 1
        }
        for lane in DeliveryLane.allCases {
            if let moment = change.effects.due[lane] { due[lane] = min(due[lane] ?? moment, moment) }
        }
    }

    /// Adds the records that few changes write.
    private func applyRecords(of change: Change) {
        for (user, subject) in change.newSubjects {
            users[user] = .success(subject)
            person(adding: subject.id).subject = .success(subject)
        }
        for (subject, state) in change.states.pairs {
            let person = person(adding: subject)
            let old = try? person.state?.get()
            for device in state.devices where device.isActive && old?.devices.contains(device) != true {
                addedTokens[device.tokenIdentity] = subject
            }
            for key in state.keys where old?.key(key.key) == nil { addedKeys[key.key] = subject }
            if !state.addresses.isEmpty, state.addresses != old?.addresses {
                for address in state.addresses {
                    addedHolders[AddressKey(address), default: []].append(subject)
                }
            }
            person.state = .success(state)
        }
        for record in change.consents { addedConsents[record.subject, default: []].append(record) }
        for (record, _) in change.choices { addedChoices[record.subject, default: []].append(record) }
        for link in change.links { links[link.id] = .success(link) }
        for reply in change.replies {
            replies[reply.key] = .success(reply)
            if let confirmation = reply.confirmation {
                confirmed[confirmation.addressHash] = .success(reply.at)
            }
        }
        for (key, record) in change.dedupe.pairs { dedupe[key] = .success(record) }
        for write in change.duties { apply(write) }
        for (name, value) in change.settings.pairs { settings[name] = .success(value) }
        if let size = change.publishedSize { publishedSize = size }
    }

    /// Whether a step of this batch added the send, so that the store has nothing of it yet.
    func isNew(_ send: SendID) -> Bool {
        guard let tail, case .success(let record?) = self.send(send) else { return false }
        return record.entryIndex >= tail.entryCount
    }

    /// An entry that a step of the batch added.
    func addedEntry(_ index: UInt64) -> StoredEntry? {
        guard index >= tail?.entryCount ?? 0, index < entryCount else { return nil }
        let change = applied.last { $0.entries.first.map { $0.index <= index } ?? false }
        return change?.entries.first { $0.index == index }
    }

    /// A send as it was loaded, or as a step of the batch added it; `nil` where neither is known.
    func send(_ id: SendID) -> Known<SendRecord?>? {
        added(id).map { known(applied[$0.change].sends[$0.place]) } ?? sends[id]
    }

    private func added(_ id: SendID) -> AddedSend? {
        if addedSends.count - listedSendCount > Self.searchedCountMax {
            for place in listedSendCount..<addedSends.count { sendPlaces[addedSends[place].id] = place }
            listedSendCount = addedSends.count
        }
        if let newest = addedSends[listedSendCount...].last(where: { $0.id == id }) { return newest }
        return listedSendCount > 0 ? sendPlaces[id].map { addedSends[$0] } : nil
    }

    /// The same, by the caller's id for it.
    func send(_ key: RequestKey) -> Known<SendRecord?>? {
        added(key) ?? (hasNoSend(key) ? noSend : requests[key])
    }

    /// Whether the store was found to have no send of the request.
    private func hasNoSend(_ key: RequestKey) -> Bool {
        let count = newRequests.count
        for step in 0..<count {
            let next = newestRequest + step
            let place = next < count ? next : next - count
            guard newRequests[place].start == key.start, newRequests[place] == key else { continue }
            newestRequest = place
            return true
        }
        return false
    }

    private func added(_ key: RequestKey) -> Known<SendRecord?>? {
        for index in addedStarts.indices.reversed() where addedStarts[index] == key.start {
            let send = applied[addedSends[index].change].sends[addedSends[index].place]
            if send.idHash == key.idHash, send.caller == key.caller { return known(send) }
        }
        return nil
    }

    /// A send that the batch added, unless its person was erased since.
    private func known(_ send: SendRecord) -> Known<SendRecord?> {
        send.subject.map(erased.contains) == true ? noSend : .success(send)
    }

    /// How many more messages of a lane may be offered.
    func offerRoomLeft(in lane: DeliveryLane) -> Int {
        offerRoom[lane] - offeredCounts[lane]
    }

    /// What the batch's steps offer to the relay, in their order.
    package var allOffers: [MessageOffer] {
        var offers: [MessageOffer] = []
        offers.reserveCapacity(DeliveryLane.allCases.reduce(0) { $0 + offeredCounts[$1] })
        for change in applied where !change.effects.offers.isEmpty { offers += change.effects.offers }
        return offers
    }

    /// Whether a step of this batch offers the message to the relay.
    func offers(_ message: MessageID) -> Bool {
        offer(of: message) != nil
    }

    private func takeBackOffer(of message: MessageID) {
        guard let (change, place) = offer(of: message) else { return }
        offeredCounts[change.effects.offers.remove(at: place).lane] -= 1
    }

    /// Where a step of this batch offers the message, which none offers while another one's offer stands. Looked along,
    /// because ``offerRoom`` bounds what all steps of a batch offer.
    private func offer(of message: MessageID) -> (change: Change, place: Int)? {
        for change in applied {
            if let place = change.effects.offers.firstIndex(where: { $0.delivery.message == message }) {
                return (change, place)
            }
        }
        return nil
    }

    /// A message as it was loaded, or as the batch's steps left it; `nil` where that is not known.
    func message(_ id: MessageID) -> Known<OutboxRecord?>? { messages[id] ?? added(id) }

    /// The same, where what is not sealed of it is enough.
    func messageHead(_ id: MessageID) -> Known<OutboxRecord?>? {
        messages[id] ?? messageHeads[id] ?? added(id)
    }

    /// A message as the step that added it left it.
    ///
    /// Each write is listed once, and a look-up passes ``searchedCountMax`` of them at most: n look-ups among m writes take
    /// n + m steps. A batch with few writes lists none, nor does one without look-ups.
    private func added(_ id: MessageID) -> Known<OutboxRecord?>? {
        if unlistedCount > Self.searchedCountMax { listAdded() }
        if let place = addedPlaces[id] {
            return .success(applied[place.change].messages[place.write].added)
        }
        for change in applied[listedChangeCount...] {
            if let write = change.messages.first(where: { $0.message == id }), let record = write.added {
                return .success(record)
            }
        }
        return nil
    }

    private func listAdded() {
        for change in applied.indices[listedChangeCount...] {
            let writes = applied[change].messages
            for write in writes.indices where writes[write].isAdded {
                addedPlaces[writes[write].message] = (change, write)
            }
        }
        listedChangeCount = applied.count
        unlistedCount = 0
    }

    /// Messages that the batch's steps have added, those that were taken out since among them.
    func addedMessages(where isWanted: (OutboxRecord) -> Bool) -> [MessageID] {
        applied.flatMap { $0.messages.compactMap(\.added).filter(isWanted).map(\.message) }
    }

    /// Events of a send that the batch's steps have added.
    func addedEvents(of send: SendID) -> [EventRecord] {
        applied.flatMap { $0.events.filter { $0.send == send } }
    }

    private func apply(_ write: Change.DutyWrite) {
        switch write {
        case .put(let record): duties[record.key] = .success(record)
        case .remove(let key): duties[key] = .success(nil)
        case .removeOf(let send, let subject):
            endedDuties[subject, default: []].insert(send)
            for (key, known) in duties where key.subject == subject {
                if case .success(let record?) = known, record.send == send { duties[key] = .success(nil) }
            }
        }
    }

    private func apply(_ write: consuming Change.MessageWrite) {
        switch consume write {
        case .insert(let record), .offer(let record), .update(let record):
            messages[record.message] = .success(record)
        case .attempt(let message, let moment):
            guard case .success(var record?) = self.message(message) else { return }
            record.attemptCount += 1
            record.attemptedAt = moment
            messages[message] = .success(record)
        case .postpone(let message, let moment):
            guard case .success(var record?) = self.message(message) else { return }
            record.notBefore = moment
            messages[message] = .success(record)
        case .remove(let message): messages[message] = noMessage
        }
    }

    private func erase(_ subject: SubjectID) {
        erased.insert(subject)
        // A person who comes back gets a new pseudonym.
        newSubjects = newSubjects.filter { $0.value.id != subject }
        let person = person(adding: subject)
        person.state = .success(nil)
        person.subject = .success(nil)
        for (user, known) in users {
            if case .success(let found?) = known, found.id == subject { users[user] = .success(nil) }
        }
        for (id, known) in sends {
            guard case .success(let send?) = known, send.subject == subject else { continue }
            sends[id] = noSend
        }
        for (id, known) in links {
            if case .success(let link?) = known, link.subject == subject { links[id] = .success(nil) }
        }
        for (key, known) in requests {
            if case .success(let send?) = known, send.subject == subject { requests[key] = noSend }
        }
    }
}

/// Where the trail ends, and when.
package struct TrailTail: Hashable, Sendable {
    package var entryCount: UInt64
    /// Size of the tree that the publisher has made durable.
    package var publishedSize: UInt64
    package var newestTime: Instant?
    /// What the clocks showed for the newest entry; `nil` when that is not known.
    package var newestClock: ClockReading?

    package init(
        entryCount: UInt64, publishedSize: UInt64, newestTime: Instant?, newestClock: ClockReading?
    ) {
        self.entryCount = entryCount
        self.publishedSize = publishedSize
        self.newestTime = newestTime
        self.newestClock = newestClock
    }
}

/// What a send depends on besides the bounds on its own category and caller: the trail's lag and the free disk.
package struct Headroom {
    /// How far the published trail is behind, in milliseconds.
    var publishLag: Int64
    /// Bytes left on the disk; an error where it cannot be asked.
    var freeByteCount: Result<Int64, EngineFailure>

    package init(publishLag: Int64, freeByteCount: Result<Int64, EngineFailure>) {
        self.publishLag = publishLag
        self.freeByteCount = freeByteCount
    }
}

/// What steps add to an ``OutboxDepth``.
struct AddedDepth {
    private(set) var rowCount = 0
    private(set) var byteCount: Int64 = 0
    private var rowCounts: [CallerName: Int] = [:]

    func rowCount(of caller: CallerName) -> Int { rowCounts[caller, default: 0] }

    /// Counts one row more.
    mutating func count(_ record: OutboxRecord) {
        rowCount += 1
        byteCount += Int64(record.headers.count + record.body.count + record.facts.count)
        rowCounts[record.request.caller, default: 0] += 1
    }
}

extension BatchState {
    /// Whether the answer to an ask is loaded. Looks for keys only, because reading a value would copy it.
    package func knows(_ ask: Ask) -> Bool {
        switch ask {
        case .user(let user): users.index(forKey: user) != nil
        case .subject(let subject): person(subject)?.subject != nil
        case .state(let subject): person(subject)?.state != nil
        case .token(let identity): tokens.index(forKey: identity) != nil
        case .key(let key): keys.index(forKey: key) != nil
        case .consents(let subject): consents.index(forKey: subject) != nil
        case .choices(let subject): choices.index(forKey: subject) != nil
        case .unsubscribeLink(let id): links.index(forKey: id) != nil
        case .holders(let address): holders.index(forKey: address) != nil
        case .mailboxHolders(let mailbox): mailboxHolders.index(forKey: mailbox) != nil
        case .reply(let key): replies.index(forKey: key) != nil
        case .confirmed(let address): confirmed.index(forKey: address) != nil
        case .forwards(let subject, let since): person(subject)?.knowsForwards(since: since) == true
        case .newSend(let key, let user, let seconds):
            knows(key) && users.index(forKey: user) != nil && depth != nil && headroom != nil
                && knowsForwards(to: user, seconds: seconds)
        case .request(let key): knows(key)
        case .send(let send): sends.index(forKey: send) != nil || self.send(send) != nil
        case .dedupe(let key): dedupe.index(forKey: key) != nil
        case .duty(let key): duties.index(forKey: key) != nil
        case .message(let message): self.message(message) != nil
        case .messageHead(let message): messageHead(message) != nil
        case .messagesOfSend(let send): messagesOfSend.index(forKey: send) != nil
        case .messagesOfPerson(let subject): messagesOfPerson.index(forKey: subject) != nil
        case .messageCount(let subject, _): messageCounts.index(forKey: subject) != nil
        case .eventsOfSend(let send): eventsOfSend.index(forKey: send) != nil
        case .setting(let name): settings.index(forKey: name) != nil
        case .outboxDepth: knowsDepth
        case .entry(let index): publishedEntries.index(forKey: index) != nil
        case .recall(let message): recalls.index(forKey: message) != nil
        case .newSubject(let user): newSubjects.index(forKey: user) != nil
        case .challenge(let order): challenges.index(forKey: order) != nil
        case .headroom: knowsHeadroom
        case .identifiers: false
        }
    }
}

/// Loading what a send reads.
extension BatchState {
    package func knows(_ key: RequestKey) -> Bool {
        requests.index(forKey: key) != nil || added(key) != nil || hasNoSend(key)
    }

    /// Whether no request was looked for yet, nor added.
    package var knowsNoRequest: Bool { requests.isEmpty && newRequests.isEmpty && addedSends.isEmpty }

    package func takeNoSend(of key: RequestKey) { newRequests.append(key) }

    package func take(_ send: Known<SendRecord?>, of key: RequestKey) {
        requests[key] = send
        if case .success(let found?) = send, sends.index(forKey: found.id) == nil { sends[found.id] = send }
    }

    /// Keeps what was found of a user, unless the user is known already: one look-up, where to ask first and then to add takes
    /// two, and few users are in a batch twice.
    ///
    /// - Returns: The person as far as the batch knows; `nil` for a user who has no pseudonym, and where that cannot be read.
    package func take(_ subject: Unboxed<Subject?>, of user: UserID) -> LoadedPerson? {
        let known = users.updateValue(subject, forKey: user)
        if let known { users[user] = known }
        guard case .success(let found?) = known ?? subject else { return nil }
        let person = person(adding: found.id)
        if person.subject == nil { person.subject = .success(found) }
        return person
    }

    /// `nil` for one of whom nothing was loaded or written.
    package func person(_ subject: SubjectID) -> LoadedPerson? {
        if let newestPerson, newestPerson.id == subject { return newestPerson }
        guard let person = people[subject] else { return nil }
        newestPerson = person
        return person
    }

    /// The same, with a new one where there is none.
    package func person(adding subject: SubjectID) -> LoadedPerson {
        if let person = person(subject) { return person }
        let person = LoadedPerson(subject)
        people[subject] = person
        newestPerson = person
        return person
    }

    package var knowsDepth: Bool { depth != nil }

    package var knowsHeadroom: Bool { headroom != nil }

    /// Since when forwards are looked for that count over so many seconds; `nil` in an empty trail.
    package func start(ofSeconds seconds: Int64?) -> Instant? {
        guard let seconds else { return nil }
        return newestTime?.advanced(bySeconds: -seconds)
    }

    private func knowsForwards(to user: UserID, seconds: Int64?) -> Bool {
        guard let since = start(ofSeconds: seconds), case .success(let subject?) = users[user] else {
            return true
        }
        return person(subject.id)?.knowsForwards(since: since) == true
    }
}

extension BatchState {
    /// Runs a step until everything that it looks at is loaded.
    ///
    /// - Parameter load: Answers what it can of what a step asks for.
    /// - Throws: What `body` or `load` does; ``MissingRows`` for what `load` cannot answer.
    package func run<Result>(
        loading load: ([Ask]) throws -> Void, _ body: () throws -> Result
    ) throws -> Result {
        while true {
            do {
                return try body()
            } catch let missing as MissingRows {
                try load(missing.asks)
                guard missing.asks.allSatisfy(knows) else { throw missing }
            }
        }
    }
}
