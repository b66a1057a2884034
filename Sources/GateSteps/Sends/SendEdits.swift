import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import RecipientModel
package import WireProtocol

/// What can still be done about a send, and what was seen of it.
extension StepContext {
    /// Withdraws what of a send still waits. What was handed over is gone; what may have been is told as gone.
    package func cancel(_ id: SendID, by caller: CallerName, at now: Instant) throws -> Citing<CancelAnswer> {
        guard let send = try view.send(id), send.caller == caller else {
            throw StepRefusal(.notFound, detail: "no send of this id is yours")
        }
        var withdrawn: [String] = []
        for row in try view.outbox(of: id) {
            var row = try callBack(row)
            guard row.attemptedAt == nil else {
                // Gone, as far as can be told; should the hop not have it after all, it does not go again. One that
                // cannot be read does not either.
                row.isCancelled = true
                if !row.isDamaged { try update(row) }
                continue
            }
            try withdraw(row, because: .cancelled, at: now)
            withdrawn.append(send.name(of: row.destination))
        }
        // What is with the hop right now, and what it has or may have.
        let gone = Set(try view.outbox(of: id).map(\.destination))
            .union(try view.events(of: id).filter(\.event.mayHaveArrived).compactMap(\.destination))
            .map { send.name(of: $0) }
        let trail = try record(
            .cancel, at: now,
            [
                "send_id": .string(id.uuidText), "caller": .string(caller.text),
                "withdrawn": .integer(Int64(withdrawn.count)),
            ])
        return { [withdrawn] in
            CancelAnswer(sendID: id, withdrawn: withdrawn.sorted(), gone: gone.sorted(), trail: $0[trail])
        }
    }

    /// What the delivery layer or the app observed. There is no "delivered": receipts lie (S1).
    package func addReceipt(_ body: ReceiptBody, by caller: CallerName, at now: Instant) throws -> Recorded {
        guard let send = try view.send(body.send),
            let (tag, _) = send.destinationNames.first(where: { $0.value == body.destination.text })
        else { throw StepRefusal(.notFound, detail: "no send of this id went to this destination") }
        guard body.at <= now else { throw StepRefusal(.eventInFuture, detail: "`at` is in the future") }
        // Who writes whole seconds cuts off what makes it later.
        guard body.at.seconds >= send.receivedAt.seconds else {
            throw StepRefusal(
                .invalid,
                violations: [
                    Violation(.body(JSONPointer(["at"])), "expected a time at or after the send's own")
                ])
        }
        var members: JSONObject = [
            "send_id": .string(body.send.uuidText), "destination": .string(tag.hexadecimal),
            "event": .string(body.event.rawValue), "at": .integer(body.at.milliseconds),
            "caller": .string(caller.text),
        ]
        if let subject = send.subject { members["subject"] = .string(subject.hexadecimal) }
        let trail = try record(.receipt, at: now, members)
        try observe(body, of: send, at: tag)
        try view.appendEvent(
            EventRecord(
                caller: send.caller, send: send.id, subject: send.subject, event: body.event.fate,
                destination: tag, at: body.at, reason: body.event == .userObserved ? body.action : body.reason
            ))
        if body.event == .unregistered, let subject = send.subject {
            // The provider speaks of what it saw at its own time, and the report may be late: a token that the app has
            // registered since stays.
            let device = try view.devices(of: subject).first { $0.tag == tag }
            if let device, device.isActive, device.seenAt <= body.at {
                try deactivate(device, because: .unregistered, by: caller, at: now)
            }
        }
        if !body.event.fate.mayHaveArrived { try failedEverywhere(send, at: now) }
        return Recorded(trail)
    }

    /// A duty is not done by what a provider refused: once nothing of a mandatory send waits, and at no destination
    /// what is known last leaves hope, the alarm is raised, once.
    private func failedEverywhere(_ send: SendRecord, at now: Instant) throws {
        guard let type = policy.type(send.type), type.mandatory != nil, try view.outbox(of: send.id).isEmpty
        else { return }
        let events = try view.events(of: send.id)
        guard !events.contains(where: { $0.event == .mandatoryUnreached }) else { return }
        let refused = Set(
            events.filter { $0.event == .failed || $0.event == .unregistered }.map(\.destination))
        let isHopeLeft = events.contains { event in
            event.event == .userObserved || event.event.mayHaveArrived && !refused.contains(event.destination)
        }
        if !isHopeLeft {
            try raiseUnreached(type, of: send.id, by: send.caller, to: send.subject, at: now)
        }
    }
}
