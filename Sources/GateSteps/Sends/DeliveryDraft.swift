package import GateVocabulary
import GateRecords
package import SendPlanning

/// One destination of a send, decided and composed, not yet written anywhere.
///
/// An object, because it is large and looked at in many places, and nothing of it changes.
package final class DeliveryDraft: Sendable {
    package let destination: Destination?
    let decidedFacts: DecidedFacts
    package var facts: Facts { decidedFacts.facts }
    package let decision: Decision
    /// Set exactly when it goes now.
    let plan: DeliveryPlan?
    /// Set when it goes now or later.
    package let message: MessageID?
    let send: SendID
    let request: AttestedRequest
    let expiresAt: Instant
    /// ``SendMaterial/bytes`` of one that goes later; empty for every other.
    let waitingContent: [UInt8]
    /// What it tells, for a type that is told once.
    let eventTag: Tag?
    /// The unsubscribe link that it carries.
    let link: UnsubscribeLink?

    init(
        destination: Destination?, facts: Facts, decision: Decision, plan: DeliveryPlan?,
        message: MessageID?, of material: borrowing SendMaterial, eventTag: Tag?,
        link: UnsubscribeLink?
    ) {
        self.destination = destination
        // The row of a message has them, too.
        decidedFacts = DecidedFacts(facts, isEncoded: message != nil)
        self.decision = decision
        self.plan = plan
        self.message = message
        send = material.send
        request = material.request
        expiresAt = material.expiresAt
        waitingContent =
            switch decision.outcome {
            case .defer, .digest: material.bytes
            case .forward, .suppress, .reject: []
            }
        self.eventTag = eventTag
        self.link = link
    }

    fileprivate var destinationName: DestinationNames.Name? {
        destination.map { DestinationNames.Name(tag: $0.tag, text: $0.id.text) }
    }

    var record: SendEntry.DeliveryRecord {
        SendEntry.DeliveryRecord(
            destination: destination?.tag, message: message, facts: decidedFacts, decision: decision,
            key: plan?.key, byteCount: plan?.byteCount)
    }
}

extension [DeliveryDraft] {
    // Nearly every send has one. A list of one by its literal costs half of what the general function takes.
    var records: [SendEntry.DeliveryRecord] { count == 1 ? [self[0].record] : map(\.record) }

    /// The same in shadow, where no message is made.
    var recordsInShadow: [SendEntry.DeliveryRecord] {
        var records = records
        for place in records.indices { records[place].message = nil }
        return records
    }

    /// The caller's names for the destinations of a send; entries and events know their tags only.
    var destinationNames: DestinationNames {
        guard count == 1 else { return DestinationNames(compactMap(\.destinationName)) }
        return DestinationNames(self[0].destinationName.map { [$0] } ?? [])
    }
}
