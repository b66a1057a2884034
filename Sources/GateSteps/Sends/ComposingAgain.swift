import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords
import SendPlanning
import WireProtocol

extension StepContext {
    /// A message that waited, decided and composed as if it had just come in.
    ///
    /// - Parameter due: When it wants to go out; later than `now` for one that is looked at before its time.
    /// - Returns: `nil` when its destination is gone.
    func composeAgain(
        _ row: OutboxRecord, person: RecipientSnapshot, due: Instant? = nil, at now: Instant
    ) throws -> DeliveryDraft? {
        guard case .object(let object) = try CanonicalJSON.read(row.body) else {
            throw row.damaged("a held message is not an object")
        }
        guard let destination = person.destination(tagged: row.destination, on: row.request.channel) else {
            return nil
        }
        var material = try SendMaterial(json: object)
        // A waiting message lives as long as its row: moved quiet hours and a summary move the row's end.
        material.expiresAt = row.expiresAt
        guard case .object(let recordedFacts) = try CanonicalJSON.read(row.facts) else {
            throw row.damaged("the recorded facts are not an object")
        }
        let composer = SendComposer(
            step: self, now: now, material: material, terms: policy.terms(of: row.request),
            paramsCheck: ParamsCheck(
                material.params, deepLink: material.deepLink, of: row.request.type, under: policy),
            fallback: try Facts(json: recordedFacts).fallback ?? .mismatch,
            repetition: try memory.repetition(of: row.eventTag, to: row.subject, besides: row.send),
            eventTag: row.eventTag, isAgain: true)
        return try composer.decide(for: destination, of: person, as: row.message, due: due)
    }

    /// A deferred message whose time has come.
    func composeDeferred(_ row: OutboxRecord, person: RecipientSnapshot, at now: Instant) throws {
        guard let draft = try composeAgain(row, person: person, at: now) else {
            try apply(.destinationMissing, to: row, at: now)
            return
        }
        try settle(row, as: draft, of: person, at: now)
    }

    /// Records what was decided about a waiting message whose time has come, and puts it in its place.
    func settle(
        _ row: OutboxRecord, as draft: DeliveryDraft, of person: RecipientSnapshot, at now: Instant
    ) throws {
        switch OutboxState(row).after(.composed(draft.decision.outcome)) {
        case .keepDigesting: try keepDigesting(row, under: draft.decision, at: now)
        case .withdrawAsDecided:
            try withdraw(row, under: draft.decision, on: draft.facts, cause: .due, at: now)
        case .replace:
            try remove(row)
            // A message that could not be sealed waits on, without an entry: nothing was decided about it.
            guard let type = policy.type(row.request.type),
                try release(
                    [draft], of: row.send, type, to: person, isForward: draft.decision.outcome == .forward,
                    insteadOf: row, at: now)
            else { return }
            try recordAgain(row, draft.facts, draft.decision, cause: .due, at: now)
        case let action:
            preconditionFailure("message \(row.message) was composed in state \(OutboxState(row)): \(action)")
        }
    }
}
