import CompliancePolicy
import GateSteps
import GateVocabulary
import WireProtocol

/// A send in its batch, and its answer.
struct SendOperation: EngineOperation {
    let send: SendStep
    let lane: EngineLane
    let isStreamLine: Bool
    let readers: ReaderThreads
    /// The bytes of an entry, from the store or the published tree.
    let entryBytes: @Sendable (UInt64) throws -> [UInt8]
    /// Called with damage that is found outside of a transaction; a transaction notes its own.
    let noteDamage: @Sendable (StoredDamage) -> Void
    let reply: @Sendable (Answer) -> Void

    var caller: CallerName? { send.attested.caller }
    var order: CallerOrder { .send(send.request.user) }
    var asks: [Ask] { send.asks }

    func perform(in batch: Batch) throws -> Completion {
        do {
            switch try batch.step({ try send.run(in: $0) }) {
            case .decided(let decided):
                let (outcome, answer) = (decided.outcome, decided.answer)
                return { [isStreamLine, reply] places in
                    reply(
                        Answer(
                            status: SendAnswer.status(of: outcome),
                            contentType: SendAnswer.contentType(of: outcome),
                            making: { answer(places).bytes(isStreamLine: isStreamLine) }))
                }
            case .decidedBefore(let earlier): return answerAgain(earlier, under: batch.policy)
            }
        } catch let refusal as StepRefusal {
            return { [reply] _ in reply(Problem(refusal).answer) }
        }
    }

    func refuse(_ failure: EngineFailure) {
        reply(Problem(failure).answer)
    }

    /// Answers a repeated send. The writer only finds out that it is a repeat: reading the entry and rebuilding the
    /// answer happen on a reader's thread, so that a caller that repeats a whole campaign does not delay other sends.
    private func answerAgain(_ earlier: SendRecord, under policy: CompiledPolicy) -> Completion {
        { [self] places in
            // The index that the store gave the entry, should the first send be of the same batch.
            let index = places.index(earlier.entryIndex)
            let isTaken = readers.submit(for: send.attested.caller, lane: lane) { [self] in
                do {
                    let bytes = try entryBytes(index)
                    let answer = try send.answerAgain(
                        earlier, entry: bytes,
                        at: TrailReference(entry: bytes, index: index, origin: places.origin), under: policy)
                    reply(answer.answer(isStreamLine: isStreamLine))
                } catch {
                    if let damage = (error as? StoreError)?.damage { noteDamage(damage) }
                    refuse(EngineFailure(error))
                }
            }
            if !isTaken { refuse(.overloaded) }
        }
    }
}
