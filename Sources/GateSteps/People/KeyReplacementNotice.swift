import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords
import SendPlanning

// A session is stolen more easily than a key. When another key takes the place of the one in use, the old key's holder
// hears of it by a message that only the old key opens. It is a send of the gateway's own, of the type that
// `channels.yaml` names, decided like any other.

extension StepContext {
    /// Decides the notice to a key that is about to be replaced. It is recorded while the key is still in use, so that the
    /// entry's facts are those of its place in the trail.
    ///
    /// A key that was revoked or suspended is not in use, so it is told nothing: its holder may be a thief.
    ///
    /// - Returns: What is enqueued once everything that waited was decided again: a replaced key still opens it. `nil` where the
    ///   policy names no type for it, and where the device is gone or must get nothing.
    func announceReplacement(
        of key: DeviceKeyRecord, of person: RecipientSnapshot, at now: Instant
    ) throws -> DeliveryDraft? {
        guard let name = policy.bundle.channels.deviceKeyAge?.replacementNotice,
            let type = policy.type(name),
            let destination = person.destination(tagged: key.device, on: .push)
        else { return nil }
        let notice = try ownNotice(of: type, at: now)
        let draft = try notice.composer.decide(for: destination, of: person)
        try commitOwn(
            notice.send, of: type, on: .push, as: [draft], to: person,
            requestID: "key-replaced-\(notice.send.uuidText)", isHeldBack: true, at: now)
        switch draft.decision.outcome {
        case .forward: return draft
        case .reject, .suppress: return nil
        case .defer, .digest:
            // One that waited would be sealed when it is due, and then to the key that replaced this one. `BundleChecker`
            // wants a security type without a time, quiet hours that security passes, and no cap on it.
            preconditionFailure("the notice to a replaced key was put off: \(draft.decision.reason)")
        }
    }
}
