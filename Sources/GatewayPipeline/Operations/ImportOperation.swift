import CompliancePolicy
import GateRecords
import GateSteps
import GateVocabulary
import WireProtocol

/// One line of an import: one step, one entry, and its answer.
struct ImportOperation: EngineOperation {
    private let line: ImportLine.Read
    private let importer: CallerName
    private let reply: @Sendable (Answer) -> Void

    init(
        _ line: ImportLine.Read, by importer: CallerName, reply: @escaping @Sendable (Answer) -> Void
    ) {
        (self.line, self.importer, self.reply) = (line, importer, reply)
    }

    var caller: CallerName? { importer }
    /// Behind everything that protects people.
    var lane: EngineLane { .general }
    var order: CallerOrder { .change(line.line.user) }
    var isPipelined: Bool { true }

    var asks: [Ask] {
        let line = line.line
        return [.user(line.user), .newSubject(line.user)]
            + line.devices.map { .token($0.body.record.tokenIdentity) }
    }

    /// Thrown to drop what a line that is only tried has written.
    private struct Tried: Error { var person: ImportedPerson }

    func perform(in batch: Batch) throws -> Completion {
        func attempt(isLosingNo: Bool) throws -> ImportedPerson {
            try batch.step { step in
                let person = try step.importPerson(
                    line, isLosingNo: isLosingNo, by: importer, at: step.now())
                if line.line.isDryRun { throw Tried(person: person) }
                return person
            }
        }
        let person: ImportedPerson
        do {
            do {
                person = try attempt(isLosingNo: false)
            } catch is LostNo {
                person = try attempt(isLosingNo: true)
            }
        } catch let refusal as Problem {
            return { [reply] _ in reply(refusal.answer) }
        } catch var tried as Tried {
            tried.person.forgetEntry()
            return { [reply, tried] in reply(Answer(tried.person.answer($0))) }
        }
        return { [reply] in reply(Answer(person.answer($0))) }
    }

    func refuse(_ failure: EngineFailure) { reply(Problem(failure).answer) }
}
