import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateVocabulary
import SendPlanning
import Synchronization

/// Takes messages whose turn has come out of the queue, deciding again where that is due.
struct ClaimOperation: EngineOperation {
    /// Messages that one claim looks at, each of which takes some 100 µs to be decided again: every send waits for all of them.
    static let countMax = 128

    let deliveryLane: DeliveryLane
    let limit: Int
    let inFlight: MessagesInFlight
    let reply: @Sendable (Result<[Delivery], EngineFailure>) -> Void

    var caller: CallerName? { nil }
    var lane: EngineLane { .security }

    /// A claim asks the store which messages are due.
    var scans: Bool { true }

    func perform(in batch: Batch) throws -> Completion {
        let now = try batch.step { try $0.now() }
        // Due messages beyond the limit are offered, so that a backlog shrinks faster than new messages add to it.
        let due = try batch.dueMessages(
            of: deliveryLane, at: now, limit: min(limit + inFlight.room(in: deliveryLane), Self.countMax))
        var deliveries: [Delivery] = []
        for message in due {
            guard deliveries.count < limit || batch.offerRoom(in: deliveryLane) > 0 else {
                // Messages composed before took the offers that were left: this one is claimed the next time.
                try batch.step { $0.noteDue(in: deliveryLane, at: now) }
                break
            }
            do {
                let offer = try batch.step(of: message) { try $0.handOver(message, at: now) }
                guard let offer else { continue }
                if deliveries.count < limit {
                    deliveries.append(offer.delivery)
                } else {
                    try batch.step { $0.offer(offer) }
                }
            } catch let error as StoreError where error.damage?.row == nil {
                // A failure of the store as a whole concerns every message, so the operation ends with it.
                guard let damage = error.damage else { throw error }
                try batch.step { step in
                    let moment = step.setAside(message, because: damage, at: now)
                    inFlight.setAside(message, until: moment)
                    step.noteDue(in: deliveryLane, at: moment)
                }
            } catch {
                // One message that cannot be handled must not hold up those behind it.
                try batch.step { try $0.putOff(message, in: deliveryLane, because: error, at: now) }
            }
        }
        return { [inFlight, reply, deliveries] _ in
            inFlight.insert(deliveries.map(\.message))
            reply(.success(deliveries))
        }
    }

    func refuse(_ failure: EngineFailure) { reply(.failure(failure)) }
}

/// The hop's result for one message in flight, and a function to call once it is recorded.
package struct ReportedResult: Sendable {
    let message: MessageID
    let outcome: MessageOutcome
    let reply: @Sendable (EngineFailure?) -> Void
}

/// Results that came while others were being recorded, which are recorded together.
final class ResultGroups: Sendable {
    /// Results in one group. They share a transaction with sends.
    private static let countMax = 256

    private struct State {
        var waiting: [ReportedResult] = []
        var isRecording = false
    }
    private let state = Mutex(State())

    /// - Returns: The results to record now; `nil` when they are to wait for the group before it.
    func add(_ result: ReportedResult) -> [ReportedResult]? {
        state.withLock { state in
            guard !state.isRecording else {
                state.waiting.append(result)
                return nil
            }
            state.isRecording = true
            return [result]
        }
    }

    /// - Returns: What came since the last group was begun; `nil` when nothing did.
    func next() -> [ReportedResult]? {
        state.withLock { state in
            let group = Array(state.waiting.prefix(Self.countMax))
            state.waiting.removeFirst(group.count)
            state.isRecording = !group.isEmpty
            return state.isRecording ? group : nil
        }
    }
}

/// Writes down what the next hop made of messages.
struct ReportOperation: EngineOperation {
    let results: [ReportedResult]
    let inFlight: MessagesInFlight
    /// Called at the end, whether it succeeded or not.
    let finished: @Sendable () -> Void
    /// Made with the operation, so not by the engine's thread.
    let asks: [Ask]

    init(results: [ReportedResult], inFlight: MessagesInFlight, finished: @escaping @Sendable () -> Void) {
        self.results = results
        self.inFlight = inFlight
        self.finished = finished
        asks = results.map { $0.outcome.ask(for: $0.message) }
    }

    var caller: CallerName? { nil }
    var lane: EngineLane { .security }
    var isPipelined: Bool { true }

    func perform(in batch: Batch) throws -> Completion {
        /// By the place of their result.
        var failures: [Int: EngineFailure] = [:]
        var damaged: [ReportedResult] = []
        do {
            try batch.step { step in
                let now = try step.now()
                for result in results { try step.record(result.outcome, of: result.message, at: now) }
            }
        } catch  where !isOfTheStore(error) && (results.count > 1 || isDamage(error)) {
            // Each by itself: what one of them leads to must not keep the others from being recorded.
            for (index, result) in results.enumerated() {
                do {
                    try batch.step { try $0.record(result.outcome, of: result.message, at: $0.now()) }
                } catch  where !isOfTheStore(error) {
                    failures[index] = EngineFailure(error)
                    if isDamage(error) { damaged.append(result) }
                }
            }
            // The relay reports these again and again. A process after this one knows of them only what is written here.
            for result in damaged where result.outcome.forbidsRepeat {
                do {
                    try batch.step(of: result.message) { try $0.holdBack(result.message) }
                } catch  where !isOfTheStore(error) {
                    // Its own row cannot be written either: the next process may hand it over again, under the same id.
                    continue
                }
            }
        }
        return { [failures, inFlight, results, finished] _ in
            let recorded = results.indices.lazy.filter { failures[$0] == nil }.map { results[$0].message }
            inFlight.remove(recorded)
            for (place, result) in results.enumerated() { result.reply(failures[place]) }
            finished()
        }
    }

    private func isDamage(_ error: any Error) -> Bool { (error as? StoreError)?.damage != nil }

    /// Whether every other message would fail in the same way.
    private func isOfTheStore(_ error: any Error) -> Bool {
        (error as? StoreError).map { $0.damage == nil } ?? false
    }

    func refuse(_ failure: EngineFailure) {
        for result in results { result.reply(failure) }
        finished()
    }
}
