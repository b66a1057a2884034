import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords
import SendPlanning

extension StepContext {
    /// Writes a send that no caller asked for: a summary, or one of the gateway's notices.
    ///
    /// - Parameters:
    ///   - requestID: What stands where a caller's id would.
    ///   - isHeldBack: Whether the messages are put in the outbox later in this step.
    func commitOwn(
        _ send: SendID, of type: NotificationType, on channel: Channel, as drafts: [DeliveryDraft],
        to person: RecipientSnapshot, requestID: String, isHeldBack: Bool = false, at now: Instant
    ) throws {
        let entry = SendEntry(
            send: send, subject: person.subject.id, caller: .gateway,
            peer: settings.process,
            request: SendEntry.RecordedRequest(type: type.id, channel: channel, critical: false),
            paramsVerdict: [], deliveries: drafts.records, policy: policy.digest,
            tzdata: LocalTime.dataVersion)
        let record = SendRecord(
            id: send, caller: .gateway, idHash: send.bytes, contentMAC: [UInt8](repeating: 0, count: 32),
            subject: person.subject.id, type: type.id, category: type.category, channel: channel,
            receivedAt: now, entryIndex: upcomingIndex, requestID: requestID,
            destinationNames: drafts.destinationNames)
        _ = try commit(
            entry, overall: entry.overall, as: record, drafts, of: type, to: person, isHeldBack: isHeldBack,
            at: now)
    }

    /// What decides a notice of the gateway's own, a push without params, at each destination.
    func ownNotice(
        of type: NotificationType, at now: Instant
    ) throws -> (send: SendID, composer: SendComposer) {
        let request = AttestedRequest(caller: .gateway, type: type.id, channel: .push, critical: false)
        let material = SendMaterial(
            send: try identifiers.newSendID(at: now), request: request, of: type, sentAt: now)
        let composer = SendComposer(
            step: self, now: now, material: material, terms: policy.terms(of: request),
            paramsCheck: ParamsCheck(material.params, of: type.id, under: policy), fallback: .notFallback,
            repetition: .first)
        return (material.send, composer)
    }
}
