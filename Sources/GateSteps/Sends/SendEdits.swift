import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import GateRecords
package import WireProtocol

/// Cancelling a send, and what was observed of it.
extension StepContext {
    /// Withdraws the messages of a send that still wait. A message that was handed over cannot be withdrawn. One that may have
    /// been is reported with those, and one that the hop is being given now is reported apart: its next event says whether the
    /// hop took it.
    package func cancel(_ id: SendID, by caller: CallerName, at now: Instant) throws -> Citing<CancelAnswer> {
        guard let send = try memory.send(id), send.caller == caller else {
            throw Problem(.notFound, detail: "no send of this id is yours")
        }
        var withdrawn: [String] = []
        for row in try memory.outbox(of: id) {
            // Should the hop turn out not to have one of the others, that one does not go again.
            guard case .withdraw = try apply(.cancelled, to: recall(row), at: now) else { continue }
            withdrawn.append(send.name(of: row.destination))
        }
        let left = try memory.outbox(of: id)
        func names(_ rows: [OutboxRecord]) -> [String] { rows.map { send.name(of: $0.destination) } }
        let underWay = names(left.filter { OutboxState($0).phase == .underWay })
        let mayHaveGone = names(left.filter { OutboxState($0).phase != .underWay })
        let gone = Set(mayHaveGone).union(
            try memory.events(of: id).filter(\.event.mayHaveArrived).compactMap(\.destination)
                .map { send.name(of: $0) })
        let trail = try record(
            CancelEntry(send: id, caller: caller, withdrawn: withdrawn.count), at: now)
        return { [withdrawn] in
            CancelAnswer(
                sendID: id, withdrawn: withdrawn.sorted(), underWay: underWay.sorted(), gone: gone.sorted(),
                trail: $0[trail])
        }
    }

    /// Records what the delivery layer or the app observed. There is no "delivered": receipts lie (S1).
    ///
    /// Receipts come late, twice and in any order, so each stands for itself; a repeated one is answered with the
    /// entry of the first.
    ///
    /// - Throws: ``Problem`` `notFound` for a destination that the send did not go to, `eventInFuture`, `invalidRequest`
    ///   for a time before the send's, and `wrongState` where the message never left, or has ``receiptCountMax``
    ///   receipts and one of this event among them.
    package func addReceipt(_ body: ReceiptBody, by caller: CallerName, at now: Instant) throws -> Recorded {
        guard let send = try memory.send(body.send),
            let tag = send.destinationNames.list.first(where: { $0.text == body.destination.text })?.tag
        else { throw Problem(.notFound, detail: "no send of this id went to this destination") }
        try rules(at: now).requireTime(body.at, ofReceiptFor: send.receivedAt)
        let word = body.event == .userObserved ? body.action : body.reason
        let known = try memory.events(of: send.id).filter { $0.destination == tag }
        let receipts = known.filter { $0.entryIndex != nil }
        if let same = receipts.first(where: {
            $0.event == body.event.eventKind && $0.at == body.at && $0.reason == word
        }), let index = same.entryIndex {
            return Recorded(entry: try reference(toEntry: index), isReplayed: true)
        }
        try refuseReceipt(of: send, at: tag, known: known)
        // However much an app reports of its user, a provider's receipt is still accepted.
        let isOfPerson = body.event == .userObserved
        // The first receipt of its kind is always accepted: a token that is gone is removed however many failures came first.
        let isFirstOfKind = !receipts.contains { $0.event == body.event.eventKind }
        guard
            isFirstOfKind
                || receipts.count(where: { ($0.event == .userObserved) == isOfPerson }) < Self.receiptCountMax
        else {
            throw Problem(
                .wrongState,
                detail:
                    "this destination of the send has \(Self.receiptCountMax) receipts; report what changes, not every look"
            )
        }
        let observed = Observed(body, of: send, among: known)
        let trail = try record(
            ReceiptEntry(
                send: body.send, destination: tag, event: Code(body.event), at: body.at, caller: caller,
                subject: send.subject, channel: Code(observed.channel),
                category: observed.category.map { Code($0) }, act: observed.act.map { Code($0) },
                openedAfterMilliseconds: observed.openedAfterMilliseconds,
                isFirstTap: observed.isFirstTap ? true : nil), at: now)
        for observation in observed.observations { observe(observation) }
        memory.appendEvent(
            EventRecord(
                caller: send.caller, send: send.id, subject: send.subject, event: body.event.eventKind,
                destination: tag, at: body.at, reason: word, entryIndex: trail.index))
        if body.event == .tokenGone, let subject = send.subject {
            // The provider speaks of the token that the message went to, and of what it saw at its own time; the report may
            // be late. A token that the app has registered since then stays.
            let leftAt = known.first { $0.event == .handedOver || $0.event == .ambiguous }?.at
            try deactivateDevice(
                tag, of: subject, seenBy: min(body.at, leftAt ?? send.receivedAt), by: caller, at: now)
        }
        if !body.event.eventKind.mayHaveArrived { try failedEverywhere(send, at: now) }
        return Recorded(entry: trail)
    }

    /// Refuses a receipt for a message that never left: one that was refused or suppressed, waits here untried, went into a
    /// summary, or was recalled.
    private func refuseReceipt(of send: SendRecord, at tag: Tag, known: [EventRecord]) throws {
        if let end = known.first(where: { $0.event == .withdrawn || $0.event == .summarised }) {
            throw Problem(
                .wrongState,
                detail: end.event == .withdrawn
                    ? "this message was taken back before it left, so nothing was observed of it; look for the `send_id` of another"
                    : "this message went into a summary; report on the summary's `send_id`, which `GET /v1/sends/{id}` names"
            )
        }
        let row = try memory.outbox(of: send.id).first { $0.destination == tag }
        if let row, OutboxState(row).phase == .waiting {
            throw Problem(
                .wrongState,
                detail:
                    "this message still waits here, so nothing was observed of it; look for the `send_id` of another"
            )
        }
        // What became of a message that left is an event; a decision against it is none.
        if row == nil, known.isEmpty {
            throw Problem(
                .wrongState,
                detail:
                    "this send was not let through to this destination, so nothing was observed of it; look for the `send_id` of another"
            )
        }
    }

    /// Raises the alarm, once, for a mandatory send of which nothing waits any more and whose last known result at
    /// every destination is a failure: a refusal by a provider does not discharge a duty.
    private func failedEverywhere(_ send: SendRecord, at now: Instant) throws {
        guard let type = policy.type(send.type), type.mandatory != nil, try memory.outbox(of: send.id).isEmpty
        else { return }
        let events = try memory.events(of: send.id)
        guard !events.contains(where: { $0.event == .mandatoryUnreached }) else { return }
        let refused = Set(
            events.filter { [.failed, .tokenGone, .expired].contains($0.event) }.map(\.destination))
        let isHopeLeft = events.contains { event in
            event.event == .userObserved
                ? Observed.isLook(ObservedAct(action: event.reason))
                : event.event.mayHaveArrived && !refused.contains(event.destination)
        }
        if !isHopeLeft {
            try raiseUnreached(type, of: send.id, by: send.caller, to: send.subject, at: now)
        }
    }
}
