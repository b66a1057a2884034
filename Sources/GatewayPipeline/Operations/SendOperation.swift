import CompliancePolicy
import GateSteps
import GateVocabulary
import WireProtocol

/// A send in its batch, and its answer. A class, so that queue and batch pass it on without a copy.
final class SendOperation: EngineOperation {
    private let send: SendStep
    let lane: EngineLane
    private let isStreamLine: Bool
    private let gateway: Gateway
    private let reply: @Sendable (Answer) -> Void
    /// Whose part of a bound it takes. What a caller copies into shadow takes a part of its own, as another caller would: no caller
    /// has a name with this in it.
    let caller: CallerName?
    /// What the step came to when it ran last. Kept here, so that the completion has the operation alone and needs no memory of
    /// its own, and the thread that writes the answer frees both.
    // nonisolated(unsafe) is sound because only the engine's thread writes it, before it hands the batch to the thread that
    // answers, which only reads it: the hand-over orders the two.
    private nonisolated(unsafe) var decided: SendStep.Decided?

    init(
        _ send: SendStep, in lane: EngineLane, isStreamLine: Bool, gateway: Gateway,
        reply: @escaping @Sendable (Answer) -> Void
    ) {
        self.send = send
        self.lane = lane
        self.isStreamLine = isStreamLine
        self.gateway = gateway
        self.reply = reply
        caller = send.isShadow ? CallerName("\(send.attested.caller.text)\0shadow") : send.attested.caller
    }

    var order: CallerOrder { .send(send.request.user) }
    var asks: [Ask] { send.asks }
    var isPipelined: Bool { true }

    func perform(in batch: Batch) throws -> Completion {
        do {
            switch try batch.step({ try send.run(in: $0) }) {
            case .decided(let decided):
                self.decided = decided
                return { [self] places in answer(places) }
            case .decidedBefore(let earlier, let isIDTaken):
                return answerAgain(earlier, isIDTaken: isIDTaken, under: batch.policy)
            }
        } catch let refusal as Problem {
            return { [reply] _ in reply(refusal.answer) }
        }
    }

    func refuse(_ failure: EngineFailure) {
        reply(Problem(failure).answer)
    }

    private func answer(_ places: EntryPlaces) {
        guard let decided else { preconditionFailure("a send was to be answered before it was decided") }
        reply(
            Answer(
                status: SendAnswer.status(of: decided.outcome, inShadow: send.isShadow),
                contentType: SendAnswer.contentType(of: decided.outcome, inShadow: send.isShadow),
                making: { [self] in decided.answer(places).bytes(isStreamLine: isStreamLine) }))
        gateway.dependencies.traces.tell(
            "decided", of: send.traceParent, decided.answer(places).logged(as: send.attested))
    }

    /// Answers a repeated send. The writer only finds out that it is a repeat: reading the entry and rebuilding the
    /// answer happen on a reader's thread, so that a caller that repeats a whole campaign does not delay other sends.
    private func answerAgain(
        _ earlier: SendRecord, isIDTaken: Bool, under policy: CompiledPolicy
    ) -> Completion {
        { [self] places in
            let index = earlier.entryIndex
            let isTaken = gateway.readers.submit(for: caller ?? send.attested.caller, lane: lane) { [self] in
                do {
                    let bytes = try gateway.dependencies.entry(index, in: gateway.store)
                    let answer = try send.answerAgain(
                        earlier, entry: bytes,
                        at: TrailReference(entry: bytes, index: index, origin: places.origin),
                        isIDTaken: isIDTaken, under: policy)
                    reply(answer.answer(isStreamLine: isStreamLine))
                } catch {
                    if let damage = (error as? StoreError)?.damage { gateway.store.note(damage) }
                    refuse(EngineFailure(error))
                }
            }
            if !isTaken { refuse(.overloaded) }
        }
    }
}

extension SendAnswer {
    /// What a line of the log says of it.
    fileprivate func logged(as request: AttestedRequest) -> [String: String] {
        [
            "send_id": sendID.uuidText, "caller": request.caller.text, "channel": request.channel.rawValue,
            "outcome": outcome.name, "reason": reason.rawValue,
        ]
    }
}
