import BundleModel
import CompliancePolicy
import GateVocabulary
import OpenSSLCrypto
import GateRecords
import SealedFormat
import SendPlanning

extension StepContext {
    /// Writes one promised message into the outbox: ready now, sealed or signed by the time of the commit, or
    /// deferred.
    ///
    /// - Parameters:
    ///   - traceParent: Of the request that asks for it; of one that waited its row has it.
    ///   - waiting: The row it replaces. Its bytes do not count twice, and it is restored if sealing or signing
    ///     fails.
    /// - Returns: Whether it is there; else ``waiting`` is, for a later try.
    @discardableResult
    func enqueue(
        _ draft: DeliveryDraft, of person: RecipientSnapshot, tracedTo traceParent: TraceParent? = nil,
        insteadOf waiting: OutboxRecord? = nil, at now: Instant
    ) throws -> Bool {
        guard let message = draft.message, let destination = draft.destination,
            let type = policy.type(draft.request.type)
        else { return false }
        var row = OutboxRecord(
            message: message, send: draft.send, subject: person.subject.id,
            destination: destination.tag, request: draft.request, category: type.category,
            tier: type.tier, state: .ready, form: draft.decision.form,
            interruption: draft.decision.interruption, key: draft.plan?.key,
            headers: draft.plan?.headers ?? Array("{}".utf8), body: [],
            facts: draft.decidedFacts.encode().bytes, eventTag: draft.eventTag,
            traceParent: traceParent ?? waiting?.traceParent, decidedAt: now, notBefore: now,
            expiresAt: draft.expiresAt)
        guard let plan = draft.plan else {
            // Deferred: what it says is kept, sealed at rest, and composed when it is due, under the
            // policy, the key and the words of that day.
            row.body = draft.waitingContent
            if draft.decision.outcome == .digest {
                row.state = .digesting
                row.notBefore = try roomReturns(for: type, of: person.subject.id, at: now)
                // The message lives on in the summary, whose own time begins when that is due.
                row.expiresAt = max(row.expiresAt, row.notBefore.advanced(bySeconds: type.ttlSeconds))
                if let waiting { row.decidedAt = waiting.decidedAt }
            } else {
                row.state = .deferred
                row.notBefore = draft.decision.notBefore ?? now
            }
            return try enqueue(row, to: nil, composedAt: now, awaiting: nil)
        }
        if let link = draft.link { memory.putUnsubscribeLink(link) }
        let composedAt = draft.decidedFacts.facts.now ?? now
        guard plan.order != nil else {
            row.body = try plan.filled(with: nil)
            return try enqueue(row, to: destination, composedAt: composedAt, awaiting: nil)
        }
        return try enqueue(
            row, to: destination, composedAt: composedAt, awaiting: plan, insteadOf: waiting)
    }
}
