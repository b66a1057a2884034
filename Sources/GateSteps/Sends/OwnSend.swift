import AuditTrail
import BundleModel
import CompliancePolicy
import GateVocabulary
import RecipientModel
import SendPlanning

extension StepContext {
    /// Records a send that no caller asked for: a summary, or the notice to a replaced key. Its messages are not in the
    /// outbox yet.
    ///
    /// - Parameter requestID: What stands where a caller's id would.
    func recordOwnSend(
        _ send: SendID, of type: NotificationType, on channel: Channel, as drafts: [DeliveryDraft],
        to person: RecipientSnapshot, requestID: String, at now: Instant
    ) throws {
        let entry = SendEntry(
            send: send, subject: person.subject.id, caller: .gateway,
            peer: settings.process,
            request: SendEntry.RecordedRequest(type: type.id, channel: channel, critical: false),
            paramsVerdict: [], deliveries: drafts.map(\.record), policy: policy.digest,
            tzdata: LocalTime.dataVersion)
        let trail = try record(at: now) { index, time in
            try entry.encode(index: index, time: time, facts: drafts.map(\.encodedFacts))
        }
        try view.insertSend(
            SendRecord(
                id: send, caller: .gateway, idHash: send.bytes,
                contentMAC: [UInt8](repeating: 0, count: 32), subject: person.subject.id, type: type.id,
                category: type.category, channel: channel, receivedAt: now, entryIndex: trail.index,
                requestID: requestID,
                destinationNames: drafts.destinationNames))
        observe(
            .decided(
                reason: entry.overall.reason, type: TypeAxes(category: type.category, tier: type.tier),
                channel: channel, caller: .gateway))
    }
}
