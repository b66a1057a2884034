import BundleModel
package import CompliancePolicy
package import GateVocabulary
package import KeyLifecycle
package import GateRecords
import SendPlanning
import SealedFormat
import WireProtocol

/// What one entry that the store lacks changes there.
package enum RestoredEffect {
    case person(SubjectID, PersonChange)
    case erasure(SubjectID)
    /// - category: What its type was in under the bundle that decided.
    case send(SendEntry, of: Category?, index: UInt64, at: Instant)
    /// A send that waited counts from here on: a transfer's notice of Sunday night, deferred by quiet hours, goes out on
    /// Monday at eight, and frequency caps count it from then.
    case forward(SubjectID, ForwardRecord)
    /// An event was acknowledged, so that no send tells it any more: the person opened the payment in the app, and the notice
    /// of it that comes afterwards is refused as `repeated`.
    case recordDedupe(DedupeRecord, SubjectID)
    /// Nothing is left of the send that told an event, and nothing of it arrived, so that another send may tell it: the hop
    /// refused the notice of a payment at the person's only device, and the caller sends it once more under a new id.
    case removeDedupe(Tag, SubjectID, by: SendID)
    case ended(EndedMessage)
    /// The message ended so, unless the decision lets it go on in the form that the backup has it in. Its entry is the same for
    /// both: a key is revoked, and the decision is to send the constant text. A message that waits sealed ends; one that waits
    /// with the constant text, which only the backup's row tells, goes on.
    case reconsidered(EndedMessage, Decision)
    case postponed(MessageID, until: Instant)
    case gatewayKey(RecordedKey)
    case policy(CompiledPolicy)
    /// The trail was restored before, from an older backup.
    case lineage(TrailLineage)
}

/// A message that left the outbox, by an entry.
package struct EndedMessage {
    package var message: MessageID
    package var send: SendID
    package var subject: SubjectID
    package var destination: Tag
    package var end: MessageEnd
    package var at: Instant
    /// The caller that sent it; `nil` of a send that the backup has.
    package var caller: CallerName?
}

/// Reads entries for a store that lacks them, and follows the messages of the sends among them, as ``SendFold`` does.
///
/// Entries are given in their order from the first that the store lacks. It knows no store: what it gives depends on the
/// entries alone, so a second run over the same ones gives the same.
package struct RestoredSends {
    /// A message of a send that the backup does not have: its body is lost.
    package struct Message {
        package var send: SendID
        package var subject: SubjectID
        package var destination: Tag
        package var caller: CallerName
        var stage: SendFold.Stage

        /// Whether it may be with the next hop, though no entry says so.
        package var mayHaveGone: Bool { if case .composed = stage { true } else { false } }
    }

    private struct Sent {
        var subject: SubjectID
        var event: Tag?
        var openCount: Int
        var mayHaveArrived = false
        var isSettled = false
    }

    /// Messages that no entry ends.
    package private(set) var waiting: [MessageID: Message] = [:]
    private var sends: [SendID: Sent] = [:]

    package init() {}

    /// - Parameter policies: The archived bundles.
    /// - Throws: What is wrong with an entry that cannot be read, or ``ReplayObstacle`` for a bundle that is not archived.
    package mutating func effects(
        of bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> [RestoredEffect] {
        let entry = try TrailEntry(reading: bytes)
        switch entry.kind {
        case .send:
            let (index, time, send) = try SendEntry.read(bytes)
            guard let policy = try policies(send.policy) else {
                throw ReplayObstacle.policyUnknown(send.policy)
            }
            begin(send)
            let category = send.request.type.flatMap { policy.type($0)?.category }
            return [.send(send, of: category, index: index, at: time)]
        case .redecision: return try decideAgain(RedecisionEntry.read(bytes).entry, at: entry.time, policies)
        case .delivery:
            let delivery: DeliveryEntry = try entry.knownBody()
            return end(
                EndedMessage(
                    message: delivery.message, send: delivery.send, subject: delivery.subject,
                    destination: delivery.destination,
                    end: try MessageEnd(delivery), at: entry.time,
                    caller: waiting[delivery.message]?.caller))
        case .unsent:
            let unsent: UnsentEntry = try entry.knownBody()
            return end(
                EndedMessage(
                    message: unsent.message, send: unsent.send, subject: unsent.subject,
                    destination: unsent.destination, end: try MessageEnd(unsent), at: entry.time,
                    caller: waiting[unsent.message]?.caller))
        case .receipt:
            let receipt: ReceiptEntry = try entry.knownBody()
            if try receipt.event.name(ReceiptBody.Event.self).eventKind.mayHaveArrived {
                sends[receipt.send]?.mayHaveArrived = true
            }
            return []
        case .acknowledgement:
            let told: AcknowledgementEntry = try entry.knownBody()
            return Channel.allCases.compactMap { told.eventTags[$0] }.map {
                .recordDedupe(DedupeRecord(eventTag: $0, send: nil, at: entry.time), told.subject)
            }
        case .erasure:
            let subject = try entry.knownBody(ErasureEntry.self).subject
            waiting = waiting.filter { $0.value.subject != subject }
            return [.erasure(subject)]
        case .gatewayKey: return try RecordedKey.changed(by: entry).map { .gatewayKey($0) }
        case .start:
            return try RecordedKey.changed(by: entry).map { .gatewayKey($0) }
                + inForce(entry.knownBody(StartEntry.self).policy, policies)
        case .policy: return try inForce(entry.knownBody(PolicyEntry.self).policy, policies)
        case .restore:
            let restore = try RestoreEntry(entry.members)
            return [
                .lineage(
                    TrailLineage(
                        origin: restore.origin, previous: restore.previous.origin, restoredAt: entry.time))
            ]
        default:
            return try entry.parts().compactMap { part in
                guard let (subject, change) = try PersonChange.read(part) else { return nil }
                guard case .addressContested(let address, _) = change else { return .person(subject, change) }
                // No entry says when the other person verified it. It was not after the entry, so a verification after the entry
                // is newer.
                return .person(subject, .addressContested(address, since: entry.time))
            }
        }
    }

    private func inForce(
        _ digest: PolicyDigest, _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> [RestoredEffect] {
        guard let policy = try policies(digest) else { throw ReplayObstacle.policyUnknown(digest) }
        return [.policy(policy)]
    }

    private mutating func begin(_ entry: SendEntry) {
        guard let subject = entry.subject else { return }
        var sent = Sent(
            subject: subject, event: entry.request.eventTags[entry.request.channel], openCount: 0)
        for delivery in entry.deliveries {
            guard let message = delivery.message, let destination = delivery.destination else { continue }
            sent.openCount += 1
            waiting[message] = Message(
                send: entry.send, subject: subject, destination: destination, caller: entry.caller,
                stage: SendFold.Stage(delivery.decision))
        }
        if sent.openCount > 0 { sends[entry.send] = sent }
    }

    private mutating func decideAgain(
        _ entry: RedecisionEntry, at now: Instant, _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> [RestoredEffect] {
        let cause = WithdrawalCause(rawValue: entry.cause)
        let decision = entry.decision
        var effects: [RestoredEffect] = []
        // A send counts once, at its first forward; the store sees to that.
        if cause == .due, decision.outcome == .forward {
            guard let policy = try policies(entry.policy) else {
                throw ReplayObstacle.policyUnknown(entry.policy)
            }
            if let category = policy.type(entry.request.type)?.category {
                effects.append(
                    .forward(
                        entry.subject,
                        ForwardRecord(
                            at: now, type: entry.request.type, category: category, send: entry.send)))
            }
        }
        let ending: MessageEnd?
        switch cause {
        case .summarised: ending = .summarised(into: nil)
        case .due where decision.outcome.isPromise:
            waiting[entry.message]?.stage = SendFold.Stage(decision)
            ending = nil
        case .due: ending = .unsent(.decision(decision.reason))
        default:
            let withdrawn = MessageEnd.unsent(.decision(decision.reason))
            guard let known = waiting[entry.message] else {
                let ended = EndedMessage(
                    message: entry.message, send: entry.send, subject: entry.subject,
                    destination: entry.destination, end: withdrawn, at: now, caller: nil)
                return [.reconsidered(ended, decision)]
            }
            ending = decision.keepsMessage(composedAs: known.stage.form) ? nil : withdrawn
        }
        guard let ending else {
            if waiting[entry.message] == nil, decision.outcome != .forward, let time = decision.notBefore {
                effects.append(.postponed(entry.message, until: time))
            }
            return effects
        }
        let ended = EndedMessage(
            message: entry.message, send: entry.send, subject: entry.subject,
            destination: entry.destination, end: ending, at: now, caller: waiting[entry.message]?.caller)
        return effects + end(ended)
    }

    private mutating func end(_ ended: EndedMessage) -> [RestoredEffect] {
        var effects: [RestoredEffect] = [.ended(ended)]
        guard waiting.removeValue(forKey: ended.message) != nil, var sent = sends[ended.send] else {
            return effects
        }
        sent.openCount -= 1
        if ended.end.kind.mayHaveArrived { sent.mayHaveArrived = true }
        if ended.end.settlesDedupe { sent.isSettled = true }
        sends[ended.send] = sent
        if sent.openCount == 0, !sent.mayHaveArrived, !sent.isSettled, let event = sent.event {
            effects.append(.removeDedupe(event, sent.subject, by: ended.send))
        }
        return effects
    }
}

extension RecordedKey {
    /// The gateway's own keys that one entry brings into another state, in its order.
    package static func changed(by entry: TrailEntry) throws -> [RecordedKey] {
        let changes: [RecordedKeyChange] =
            switch entry.kind {
            case .gatewayKey: [try entry.knownBody(GatewayKeyEntry.self).change]
            case .start: try entry.knownBody(StartEntry.self).keys ?? []
            default: []
            }
        return try changes.compactMap { try RecordedKey($0, at: entry.time) }
    }

    /// - Returns: `nil` of a proposal, which changes no state.
    fileprivate init?(_ change: RecordedKeyChange, at time: Instant) throws {
        let event: KeyTransition.Event = try change.event.name()
        let (purpose, state): (KeyPurpose, KeyState) = (try change.purpose.name(), try change.state.name())
        guard event != .proposePromotion, event != .proposeDestruction else { return nil }
        self.init(
            id: change.key, purpose: purpose, state: state, at: time,
            publicKey: change.publicKey.flatMap(Hexadecimal.decode))
    }
}
