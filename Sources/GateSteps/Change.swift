package import GateVocabulary
package import GateRecords
package import SendPlanning

/// The writes of one step, as a store is given them; steps read ``GateMemory`` instead.
///
/// Filled by the memory that its step writes to. Afterwards two things change it: ``fill(_:)`` adds the bodies of envelopes, and an
/// offer goes that a later step of the batch takes back. After its commit nothing does.
///
/// A store writes changes in their order; within one, each person's state is as the step left it.
package final class Change {
    package var entries: [StoredEntry] = []
    package var newSubjects: [(user: UserID, subject: Subject)] = []
    package var states = Written<SubjectID, StateWrite>()
    /// Appended to the ledgers, with their position.
    package var consents: [ConsentRecord] = []
    package var choices: [(record: PreferenceRecord, position: Int64)] = []
    package var sends: [SendRecord] = []
    /// The links in the step's messages; the store has most of them already.
    package var links: [UnsubscribeLink] = []
    /// Answers to replies, each once.
    package var replies: [ReplyRecord] = []
    /// Sends that count as forwarded from now on; each once.
    package var forwards: [(subject: SubjectID, record: ForwardRecord)] = []
    /// `nil` forgets.
    package var dedupe = Written<SubjectTag, DedupeRecord?>()
    package var duties: [DutyWrite] = []
    package var messages: [MessageWrite] = []
    package var events: [EventRecord] = []
    package var settings = Written<String, String?>()
    package var erased: [SubjectID] = []
    /// How far the tree is durable.
    package var publishedSize: UInt64?
    /// Deletes rows whose retention has ended at this moment, a bounded number of them.
    package var prunedBefore: Instant?
    /// The data key that seals every row from the end of this commit on.
    package var dataKey: String?
    /// How many of the stored rows to look at next; those that another key sealed are sealed anew under the data key.
    package var resealedRowCountMax: Int?
    /// What the clocks showed for the newest of ``entries``.
    package var clock: ClockReading?
    package var effects = StepEffects()
    package init() {}

    /// Adds to a list that stays a list of one in most steps, which its literal makes at a third less than a list that grows.
    @inline(__always)
    static func add<Element>(_ element: consuming Element, to list: inout [Element]) {
        if list.isEmpty { list = [element] } else { list.append(element) }
    }

    /// A person's state, with what it replaces: by the two a store knows which look-up keys come and go.
    package struct StateWrite {
        /// `nil` where nothing was stored.
        package let before: RecipientState?
        package let after: RecipientState
    }

    /// A write to one duty, or to all that a send left.
    package enum DutyWrite {
        case put(DutyRecord)
        case remove(SubjectTag)
        /// Duties that stand on record by a send.
        case removeOf(SendID, SubjectID)
    }

    /// A write to one row of the outbox. A whole row lies in a box of its own, so that a write is told apart, passed on and read
    /// without a copy of the row.
    package enum MessageWrite {
        indirect case insert(OutboxRecord)
        /// A new one that goes to the relay from memory. It is due only once it is written to again, or the store is opened
        /// anew.
        indirect case offer(OutboxRecord)
        /// All of the row, which could be read.
        indirect case update(OutboxRecord)
        /// A hand-over is about to be tried. Until its result is written, it is not known whether the hop has the
        /// message.
        case attempt(MessageID, at: Instant)
        /// Moves a row's time without opening it.
        case postpone(MessageID, until: Instant)
        case remove(MessageID)

        /// Which row it is about.
        package var message: MessageID {
            switch self {
            case .insert(let record), .offer(let record), .update(let record): record.message
            case .attempt(let message, _), .postpone(let message, _), .remove(let message): message
            }
        }

        /// Whether it writes a row whose body is not there yet.
        fileprivate var awaitsBody: Bool {
            switch self {
            case .insert(let record), .offer(let record), .update(let record): record.body.isEmpty
            case .attempt, .postpone, .remove: false
            }
        }

        fileprivate mutating func fill(_ body: [UInt8]) {
            switch consume self {
            case .insert(var record):
                record.body = body
                self = .insert(record)
            case .offer(var record):
                record.body = body
                self = .offer(record)
            case .update(var record):
                record.body = body
                self = .update(record)
            case let other: self = other
            }
        }
    }

    /// Puts bodies into rows and offers that were written before their envelopes were sealed: also where a later step of the batch
    /// wrote the row again, without the body that it had not seen.
    package func fill(_ bodies: [MessageID: [UInt8]]) {
        for index in messages.indices where messages[index].awaitsBody {
            if let body = bodies[messages[index].message] { messages[index].fill(body) }
        }
        for index in effects.offers.indices {
            if let body = bodies[effects.offers[index].delivery.message] {
                effects.offers[index].delivery.body = body
            }
        }
    }

    /// Whether its writes are all entries, sends, forwards, messages and events: what a send and its hand-over nearly always
    /// write.
    package var isOfSendsAlone: Bool {
        newSubjects.isEmpty && states.isEmpty && consents.isEmpty && choices.isEmpty && links.isEmpty
            && replies.isEmpty && dedupe.isEmpty && duties.isEmpty && settings.isEmpty && erased.isEmpty
            && publishedSize == nil && prunedBefore == nil && dataKey == nil && resealedRowCountMax == nil
    }

    /// The writes of sends and of their hand-over.
    package var writesOfSends:
        (
            entries: [StoredEntry], clock: ClockReading?, sends: [SendRecord],
            forwards: [(subject: SubjectID, record: ForwardRecord)], messages: [MessageWrite],
            events: [EventRecord]
        )
    { (entries, clock, sends, forwards, messages, events) }

    /// See ``StepEffects/pendingBodies``.
    package var pendingBodies: [DeliveryPlan] { effects.pendingBodies }

    /// Whether a commit would write nothing.
    package var isEmpty: Bool {
        entries.isEmpty && sends.isEmpty && forwards.isEmpty && messages.isEmpty && events.isEmpty
            && isOfSendsAlone
    }
}

/// What the engine has to do for a step besides writing its change.
package struct StepEffects {
    /// Pushes whose bodies the origin key has to seal or to sign before the commit.
    package internal(set) var pendingBodies: [DeliveryPlan] = []
    /// Messages that go to the relay from memory once everything is durable.
    package var offers: [MessageOffer] = []
    /// What an operator is told once everything is durable.
    package var notices: [OperatorNotice] = []
    /// What the metrics count once everything is durable.
    package var observations = Observations()
    /// Whether the publisher or the relay has something to do. A step that only reads, or only records the progress
    /// of one of them, must not wake them, or an idle gateway would never come to rest.
    package var hasNews = false
    /// Whether success of the commit shows that a send would be committed, too.
    package var provesCommits = false
    /// Whether there was room for a send of any category.
    package var provesRoom = false
}

/// Values by key, in the order they were first written. Most steps write one or two, so looking along them is quickest.
package struct Written<Key: Hashable, Value> {
    package private(set) var pairs: [(key: Key, value: Value)] = []
    /// Where each key is, once there are many.
    private var places: [Key: Int]?
    private static var searchedCountMax: Int { 16 }

    package init() {}

    package var isEmpty: Bool { pairs.isEmpty }

    package subscript(_ key: Key) -> Value? { place(of: key).map { pairs[$0].value } }

    package mutating func set(_ key: Key, to value: Value) {
        if let place = place(of: key) {
            pairs[place].value = value
            return
        }
        pairs.append((key, value))
        if places != nil {
            places?[key] = pairs.count - 1
        } else if pairs.count > Self.searchedCountMax {
            places = Dictionary(uniqueKeysWithValues: pairs.enumerated().map { ($1.key, $0) })
        }
    }

    private func place(of key: Key) -> Int? {
        guard let places else { return pairs.firstIndex { $0.key == key } }
        return places[key]
    }
}

/// What a commit did beside the writes it was given.
package struct CommitReceipt: Sendable {
    /// Rows that were deleted because their retention had ended.
    package var prunedRowCount: Int
    /// What was sealed anew; `nil` where nothing was to be.
    package var resealing: Resealing?

    package init(prunedRowCount: Int = 0, resealing: Resealing? = nil) {
        self.prunedRowCount = prunedRowCount
        self.resealing = resealing
    }
}

/// How far a pass over the stored rows has come that leaves each sealed under the current data key.
package struct Resealing: Sendable, Hashable {
    /// The key that seals now.
    package var key: String
    /// Rows of the pass that were looked at, over restarts.
    package var visitedRowCount: Int64
    package var isDone: Bool

    package init(key: String, visitedRowCount: Int64, isDone: Bool) {
        self.key = key
        self.visitedRowCount = visitedRowCount
        self.isDone = isDone
    }
}

/// An entry that an answer cites. Its leaf is hashed where the answer is written.
package struct EntryReference: Hashable, Sendable {
    package let index: UInt64
    package let bytes: [UInt8]
}
