import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords
import SendPlanning

// A duty to tell is owed until a message that discharges it was promised: on a channel of its type's `discharged_by`,
// in the form its page gives that channel. A duty that is owed past its time raises `mandatory_unreached`.

extension RecipientSnapshot {
    /// The tag of a duty towards this person, whichever channel it is told on: made from the event's own param where
    /// the type has one.
    func duty(_ type: NotificationType, _ params: JSONObject) -> Tag {
        let value = type.dutyParam.flatMap { params[$0] }
        let text =
            switch value {
            case .string(let text)?: text
            case .integer(let integer)?: String(integer)
            default: ""
            }
        return subject.tag(.event, "duty\0\(type.id.text)\0\(text)")
    }
}

extension StepContext {
    /// The duty that a mandatory send leaves owed; empty when it, or an earlier send of the same event, discharges
    /// it.
    ///
    /// - Parameter isInOrder: Whether, if nothing was promised, only a way to the recipient was missing. A send that
    ///   is invalid itself leaves no duty.
    func owed(
        after drafts: [DeliveryDraft], of type: NotificationType, duty: Tag?, to subject: SubjectID?,
        isInOrder: Bool
    ) throws -> [DischargeMeans] {
        guard let rule = type.mandatory, isInOrder else { return [] }
        let isDischarged = drafts.contains { draft in
            draft.decision.outcome.isPromise
                && type.isDischarged(by: draft.decision.form, on: draft.request.channel)
        }
        if isDischarged { return [] }
        if let subject, let duty, try memory.duty(duty, of: subject)?.state == .discharged { return [] }
        return rule.dischargedBy
    }

    /// Records the duty that a promised send leaves owed, from the first send that left it so; a send that discharges
    /// it ends it.
    func settleDuty(
        _ duty: Tag, of type: NotificationType, towards subject: SubjectID, owing: Bool, send: SendID,
        caller: CallerName, at now: Instant
    ) throws {
        guard let rule = type.mandatory else { return }
        let earlier = try memory.duty(duty, of: subject)
        if owing, earlier != nil { return }
        if !owing, earlier?.state == .discharged { return }
        memory.putDuty(
            DutyRecord(
                duty: duty, subject: subject, state: owing ? .owed : .discharged, send: send, caller: caller,
                type: type.id, mustGoBy: rule.ifUnreachable, within: rule.mustReachWithin,
                dueAt: now.advanced(bySeconds: Int64(rule.dischargeWithinHours) * 3600)))
    }
}
