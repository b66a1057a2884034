import SealedFormat
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import KeyLifecycle
import GateRecords
import SendPlanning

/// Deciding once more about a message that waits (decision SG-0005).
///
/// Facts of the message itself (params, sizes, expiry, fallback) are as they were recorded; facts of the person, the
/// device and the time are read again.
struct DecidedAgain {
    /// What becomes of a row that was decided again.
    enum Disposition: Hashable {
        /// The message may go, or go on waiting, as it is.
        case keep
        /// The message may go later: quiet hours began while it waited.
        case waits(until: Instant)
        /// The message must not go any more.
        case withdraw
    }

    package var disposition: Disposition
    package var facts: Facts
    package var decision: Decision

    /// - Parameter person: As the open transaction sees them now; `nil` once erased.
    init(
        _ row: OutboxRecord, person: RecipientSnapshot?, step: StepContext, now: Instant
    ) throws {
        if row.state != .ready, let person,
            let draft = try step.composeAgain(row, person: person, due: max(now, row.notBefore), at: now)
        {
            // Not composed yet, so it may still take any form: a new key or another choice changes which.
            facts = draft.facts
            decision = draft.decision
        } else {
            facts = try Self.facts(of: row, person: person, step: step, now: now)
            decision = decide(row.request, given: facts, under: step.policy)
        }
        if !decision.keepsMessage(composedAs: row.state == .ready ? row.form : nil) {
            disposition = .withdraw
        } else if decision.outcome == .defer {
            disposition = .waits(until: decision.notBefore ?? now)
        } else {
            // Over a cap as well: it counts when something is forwarded, and what is ready was counted then.
            disposition = .keep
        }
    }

    /// A composed message keeps its sizes; all other facts are as they are now.
    private static func facts(
        of row: OutboxRecord, person: RecipientSnapshot?, step: StepContext, now: Instant
    ) throws -> Facts {
        let recorded = try Facts(json: Self.recordedFacts(of: row))
        let terms = step.policy.terms(of: row.request)
        let common = FactsLoading.Common(
            type: row.request.type, channel: row.request.channel, rule: terms.rule, needs: terms.needs,
            expiry: row.expiresAt, due: max(now, row.notBefore),
            params: recorded.params ?? .invalid, fallback: recorded.fallback ?? .mismatch,
            repetition: try step.memory.repetition(of: row.eventTag, to: row.subject, besides: row.send),
            decidedBefore: row.send)
        let loading = FactsLoading(policy: step.policy, now: now)
        let destination = person?.destination(tagged: row.destination, on: row.request.channel)
        var facts = try loading.facts(common, person: person, destination: destination, in: step.memory)
        facts.sizes = recorded.sizes
        if let key = row.key {
            facts.deviceKey =
                recorded.deviceKey == .sealedToRevoked
                ? .sealedToRevoked : keyFact(of: row, sealedTo: key, person)
        } else if row.request.channel == .push, let known = recorded.deviceKey {
            // The constant text was composed for want of a key, and one that came since does not seal it.
            facts.deviceKey = known
        }
        if let now = facts.privacy, let then = recorded.privacy, then.hidesMore(than: now) {
            // A text that was cut for the recipient's choice says nothing that a longer one does not: it goes as it is.
            facts.privacy = then
        }
        return facts
    }

    /// A sealed body opens with one key only, whatever newer ones there are. A replaced key still opens what was sealed to it;
    /// a revoked one leaves its device without an active key, and nothing sealed goes there.
    static func keyFact(
        of row: OutboxRecord, sealedTo key: KeyID, _ person: RecipientSnapshot?
    ) -> DeviceKeyFact {
        let state = (person?.state.key(key)?.state).flatMap { KeyState(rawValue: $0) }
        let device = person?.destination(tagged: row.destination, on: row.request.channel)?.device
        let isReplaced =
            state == .deactivated
            && device.map { person?.state.sealingKey(of: $0.tag).fact == .usable } == true
        return state == .active || isReplaced ? .usable : .sealedToRevoked
    }

    static func recordedFacts(of row: OutboxRecord) throws -> JSONObject {
        guard case .object(let object) = try CanonicalJSON.read(row.facts) else {
            throw row.damaged("the recorded facts are not an object")
        }
        return object
    }
}

extension Decision {
    /// Whether a message that was promised still goes, now or later.
    ///
    /// - Parameter form: Of a message that is composed, which goes in this form or not at all; `nil` for one that is not.
    func keepsMessage(composedAs form: BodyForm?) -> Bool {
        switch outcome {
        case .forward, .digest: form == nil || form == self.form
        case .defer: true
        case .suppress, .reject: false
        }
    }
}

extension PrivacyLevel {
    /// Whether a lock screen shows less at this level than at another.
    fileprivate func hidesMore(than other: PrivacyLevel) -> Bool {
        func rank(_ level: PrivacyLevel) -> Int {
            switch level {
            case .full: 0
            case .generic: 1
            case .hidden: 2
            }
        }
        return rank(self) > rank(other)
    }
}
