import CanonicalJSON
package import CompliancePolicy
import Dispatch
package import GateSteps
package import GateVocabulary
import OpenSSLCrypto
import GateRecords
import SealedFormat
import SendPlanning

/// Steps that are committed together, each seeing what those before it did.
///
///     load what the operations name → step … step → seals are ready → one commit
///
/// Confined to the engine's thread for one try at one commit, and then to the thread that answers, which only reads it.
package final class Batch {
    package let policy: CompiledPolicy
    let dependencies: EngineDependencies
    /// As they are when the batch begins: a link key that is replaced meanwhile is known from the next batch on.
    private let settings: StepSettings
    let inFlight: MessagesInFlight
    private let store: any GateStore
    let memory: GateMemory
    /// The step of each of the memory's changes.
    private var steps: [StepNumber] = []
    /// Bodies that are being sealed or signed.
    private var tickets: [(step: StepNumber, pending: DeliveryPlan, ticket: SealerPool.Ticket)] = []
    private let completing = DispatchGroup()
    /// Offers of earlier batches that a step of this one asked for.
    private var recalled: [MessageID: MessageOffer] = [:]
    /// Steps that an earlier try ended with, and why.
    private let failures: [StepNumber: StepFailure]
    private let identifiers: IdentifierSupply
    /// Which operation steps, so that a failed seal refuses the right one.
    private var operation = -1
    private var stepCount = 0

    /// The step of an operation, the same in every try.
    struct StepNumber: Hashable {
        /// -1 for the opening, which is recorded before all operations.
        var operation: Int
        /// Counts the steps of the operation.
        var step = 0
        /// The message of the step, for an operation with a step for each of several messages.
        var message: MessageID?
    }

    /// Why a step failed after it had run.
    enum StepFailure {
        /// A body that it ordered could not be sealed or signed.
        case unsealed(String)
        /// The store could not write the step's change.
        case unwritten(any Error)
    }

    /// Ends a try; the next try begins with these failures known.
    struct FailedSteps: Error {
        var failures: [StepNumber: StepFailure]
    }

    init(
        store: any GateStore, policy: CompiledPolicy, dependencies: EngineDependencies,
        inFlight: MessagesInFlight, own: EngineMemory,
        failures: [StepNumber: StepFailure] = [:]
    ) {
        self.store = store
        self.policy = policy
        self.dependencies = dependencies
        settings = dependencies.settings
        self.inFlight = inFlight
        identifiers = own.identifiers
        memory = GateMemory(own.people)
        self.failures = failures
        memory.due = inFlight.due
        for lane in DeliveryLane.allCases { memory.offerRoom[lane] = inFlight.room(in: lane) }
    }

    /// Loads the answers to the operations' asks from the store, at once.
    func load(_ asks: [Ask]) throws {
        if asks.count > 1 { steps.reserveCapacity(asks.count) }
        try store.load(asks, into: memory)
        for ask in asks {
            switch ask {
            case .newSend, .headroom: loadHeadroom()
            case .entry, .recall, .newSubject, .challenge, .identifiers:
                if !memory.knows(ask) { try answer(ask) }
            default: break
            }
        }
    }

    /// Says that the steps to come are those of an operation.
    func begin(_ operation: Int) {
        self.operation = operation
        stepCount = 0
    }

    /// Runs one step on top of the changes of the steps before it.
    ///
    /// - Parameter message: What the step is about, where an operation has a step for each of several messages.
    /// - Throws: What the step throws; its change is dropped then.
    @discardableResult
    package func step<Result>(
        of message: MessageID? = nil, _ body: (StepContext) throws -> Result
    ) throws -> Result {
        var number = StepNumber(operation: operation, message: message)
        if message == nil {
            number.step = stepCount
            stepCount += 1
        }
        var sealingFailure: String?
        switch failures[number] {
        case .unwritten(let error): throw error
        case .unsealed(let reason): sealingFailure = reason
        case nil: break
        }
        let reading = dependencies.clock.reading()
        while true {
            let moment = Moment(
                reading, after: memory, sealingFailure: sealingFailure, limits: settings.limits)
            let takenCount = identifiers.pool.takenCount
            let context = StepContext(
                memory, moment: moment, policy: policy, settings: settings, identifiers: identifiers.pool)
            do {
                let result = try memory.step { try body(context) }
                keep(memory.applied[memory.applied.count - 1], of: number)
                return result
            } catch {
                // A step that fails has taken none.
                identifiers.pool.takenCount = takenCount
                guard let missing = error as? MissingRows else { throw error }
                try load(missing.asks)
            }
        }
    }

    private func keep(_ change: Change, of number: StepNumber) {
        for pending in change.pendingBodies {
            // Taken by another thread at once, while the steps go on.
            tickets.append((number, pending, dependencies.complete(pending, in: completing)))
        }
        steps.append(number)
    }

    // MARK: What no store answers

    private func loadHeadroom() {
        guard !memory.knows(.headroom) else { return }
        memory.room = Headroom(
            publishLag: dependencies.publishLagMilliseconds(),
            freeByteCount: Result { try dependencies.freeDiskByteCount() }.mapError { EngineFailure($0) })
    }

    private func answer(_ ask: Ask) throws {
        switch ask {
        case .entry(let index):
            do {
                memory.publishedEntries[index] = .success(try dependencies.entry(index, in: store))
            } catch let error as StoreError where error.damage != nil {
                memory.publishedEntries[index] = .failure(error)
            }
        case .recall(let message):
            let offer = inFlight.recall(message)
            if let offer { recalled[message] = offer }
            memory.recalls[message] = offer != nil
        case .newSubject(let user):
            let (high, low) = try identifiers.take()
            let subject = Subject(
                id: SubjectID(high: high, low: low),
                tagKey: try SecretBytes.random(byteCount: Subject.tagKeyByteCount))
            memory.newSubjects[user] = subject
            // Nothing can be stored of a pseudonym that was drawn just now.
            let person = memory.person(adding: subject.id)
            person.consents = .success([])
            person.choices = .success([])
            memory.messagesOfPerson[subject.id] = .success([])
        case .challenge(let order): memory.challenges[order] = try challenge(order)
        case .identifiers: try identifiers.draw()
        default: break
        }
    }

    /// A sealed nonce, and the one answer that proves it was opened. The nonce itself is forgotten here.
    private func challenge(_ order: ChallengeOrder) throws -> SealedChallenge {
        let nonce = try SecretBytes.random(byteCount: Possession.nonceByteCount)
        let origin = try dependencies.keys.origin()
        let envelope = try dependencies.sealers.submit(in: DispatchGroup()) { sealer in
            try sealer.challenge(
                nonce: nonce, to: try order.sealingKey, app: order.app, device: order.device,
                keyID: order.key, messageID: order.message, expiresAt: UInt64(order.expiresAt.seconds),
                origin: origin
            ).envelope
        }.wait()
        guard case .object(let object) = try CanonicalJSON.read(envelope) else {
            preconditionFailure("an envelope is not a JSON object")
        }
        return SealedChallenge(envelope: object, proof: Possession.proof(nonce: nonce, info: try order.info))
    }

    /// How many steps of the batch are kept so far.
    var keptCount: Int { steps.count }

    /// How many more messages of a lane may be offered.
    func offerRoom(in lane: DeliveryLane) -> Int { memory.offerRoom(in: lane) }

    // MARK: Scanning

    /// Messages of a lane whose time has come and that are not in flight. Call it before any step of the batch changed
    /// something.
    func dueMessages(of lane: DeliveryLane, at now: Instant, limit: Int) throws -> [MessageID] {
        precondition(memory.applied.allSatisfy(\.messages.isEmpty), "a scan after what it cannot see")
        let (others, asideUntil) = inFlight.unclaimable(at: now)
        let (due, next) = try store.read { reading in
            let due = try reading.dueOutbox(at: now, limit: limit, lane: lane, excluding: others)
            let next =
                due.count < limit
                ? try reading.nextOutboxDue(lane: lane, excluding: others.union(due)) : memory.due[lane]
            return (due, next)
        }
        // What the steps leave waiting lowers it again.
        memory.due[lane] = [next, asideUntil].compactMap(\.self).min()
        return due
    }

    /// Overdue duties of all people, the longest overdue first, at most `limit`.
    func overdueDuties(at now: Instant, limit: Int) throws -> [DutyRecord] {
        precondition(memory.applied.allSatisfy(\.duties.isEmpty), "a scan after what it cannot see")
        let overdue = try store.read { try $0.overdueDuties(at: now, limit: limit) }
        for record in overdue {
            memory.duties[record.key] = .success(record)
        }
        return overdue
    }

    /// Names of settings as they were before this batch, at most `limit`.
    func settingNames(in range: Range<String>, limit: Int) throws -> [String] {
        try store.read { try $0.settingNames(in: range, limit: limit) }
    }

    /// Pseudonyms of the next people, in their order, at most `limit`.
    func people(after subject: SubjectID?, limit: Int) throws -> [SubjectID] {
        precondition(
            memory.applied.allSatisfy { $0.newSubjects.isEmpty && $0.erased.isEmpty },
            "a scan after what it cannot see")
        return try store.read { try $0.people(after: subject, limit: limit) }
    }

    // MARK: The end

    var hasNews: Bool { memory.applied.contains { $0.effects.hasNews } }
    var provesCommits: Bool { memory.applied.contains { $0.effects.provesCommits } }
    var provesRoom: Bool { memory.applied.contains { $0.effects.provesRoom } }
    var notices: [OperatorNotice] { memory.applied.flatMap(\.effects.notices) }
    /// The observations of each kept step, in order.
    var observations: some Sequence<Observations> { memory.applied.lazy.map(\.effects.observations) }

    /// Waits for the envelopes and signatures and puts the bodies into their rows.
    ///
    /// - Throws: ``FailedSteps`` with all whose bodies could not be completed.
    private func fillBodies() throws {
        guard !tickets.isEmpty else { return }
        var bodies = [MessageID: [UInt8]](minimumCapacity: tickets.count)
        var failures: [StepNumber: StepFailure] = [:]
        for (step, pending, ticket) in tickets {
            do {
                bodies[pending.message] = try ticket.wait()
            } catch {
                failures[step] = .unsealed("\(error)")
            }
        }
        guard failures.isEmpty else { throw FailedSteps(failures: failures) }
        for change in memory.applied { change.fill(bodies) }
    }

    /// - Throws: ``FailedSteps`` when all other steps can be tried again; else what the store throws.
    func commit() throws -> CommitReceipt {
        guard memory.applied.contains(where: { !$0.isEmpty }) else { return CommitReceipt() }
        try fillBodies()
        do {
            return try store.commit(memory.applied)
        } catch let refused as RefusedChange {
            throw FailedSteps(failures: [steps[refused.change]: .unwritten(refused.error)])
        }
    }

    /// After the commit: hands on what the next batch's steps look at and no row says, which messages are in flight and when the
    /// next is due. The relay may take what this batch offers once it is durable.
    func carryOver(_ receipt: CommitReceipt) {
        memory.carryOver(prunedRowCount: receipt.prunedRowCount)
        inFlight.due = memory.due
        guard !recalled.isEmpty else { return inFlight.awaitDurability(of: memory.allOffers) }
        let used = memory.recalled
        inFlight.remove(recalled.keys.filter(used.contains))
        inFlight.awaitDurability(
            of: recalled.values.filter { !used.contains($0.delivery.message) } + memory.allOffers)
    }

    /// Called instead of the commit: nothing of this batch happened.
    func abandon() {
        memory.abandon()
        inFlight.add(Array(recalled.values))
        // The relay may have looked while they were called back.
        if !recalled.isEmpty { dependencies.committed() }
        recalled = [:]
        // Orders that no thread has taken yet hold plaintext.
        dependencies.sealers.wake()
    }
}

/// Ids drawn ahead, so that a step finds them without asking the random source each time.
final class IdentifierSupply {
    private let source: any IdentifierSource
    /// What steps take from.
    let pool = IdentifierPool()
    /// Sixteen bytes each; a send takes two.
    private static let drawnCount = 256

    init(_ source: any IdentifierSource) { self.source = source }

    func draw() throws { pool.add(try source.randomBytes16(count: Self.drawnCount)) }

    func take() throws -> (high: UInt64, low: UInt64) {
        if pool.isEmpty { try draw() }
        return try pool.randomBytes16()
    }
}
