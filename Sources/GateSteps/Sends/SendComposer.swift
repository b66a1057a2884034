import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords
import SealedFormat
import SendPlanning
import WireProtocol

/// Facts, payload and decision for one send at each of its destinations.
///
/// Used when a send comes in, when a deferred one becomes due, and for a summary.
struct SendComposer {
    let step: StepContext
    let now: Instant
    let material: SendMaterial
    /// What the policy says about the send's request.
    let terms: RequestTerms
    let paramsCheck: ParamsCheck
    let fallback: FallbackFact
    let repetition: RepetitionFact
    /// What it tells, for a type that is told once.
    var eventTag: Tag?
    /// Whether the send was decided before and is looked at again.
    var isAgain = false
    var isShadow = false

    private var policy: CompiledPolicy { step.policy }
    private var loading: FactsLoading { FactsLoading(policy: step.policy, now: now) }

    private func common(expiry: Instant, due: Instant) -> FactsLoading.Common {
        FactsLoading.Common(
            type: material.request.type, channel: material.request.channel, rule: terms.rule,
            needs: terms.needs, expiry: expiry, due: due, params: paramsCheck.fact, fallback: fallback,
            repetition: repetition,
            decidedBefore: isAgain ? material.send : nil, isShadow: isShadow)
    }

    /// The recipient is unknown, or has no destination: one decision without a destination.
    func decide(
        without missing: DestinationFact, for person: RecipientSnapshot?
    ) throws -> DeliveryDraft {
        let facts = try loading.facts(
            common(expiry: material.expiresAt, due: now), person: person, destination: nil, orElse: missing,
            in: step.memory)
        let decision = CompliancePolicy.decide(given: facts, under: terms.rule, of: policy)
        return DeliveryDraft(
            destination: nil, facts: facts, decision: decision, plan: nil, message: nil, of: material,
            eventTag: nil, link: nil)
    }

    /// - Parameters:
    ///   - message: The id a deferred message already has; a new one is made when `nil`.
    ///   - due: When it wants to go out, later than ``now`` for a type with a time of its own; ``now`` when `nil`.
    func decide(
        for destination: Destination, of person: RecipientSnapshot, as message: MessageID? = nil,
        due: Instant? = nil
    ) throws -> DeliveryDraft {
        let due = due ?? now
        // A send that was decided before has had its own time: only hours that hold it again lengthen its life.
        var expiry = isAgain ? material.expiresAt : material.expiry(countedFrom: due)
        var facts = try loading.facts(
            common(expiry: expiry, due: due), person: person, destination: destination, in: step.memory)
        if material.ttlFromDueSeconds != nil, let departure = terms.rule.waitsUntil(given: facts) {
            expiry = max(expiry, material.expiry(countedFrom: departure))
            facts.expiry = expiry
        }
        // The life of most sends counts from now, and nothing of them is copied.
        guard expiry != material.expiresAt else {
            return try decide(material, given: facts, for: destination, of: person, as: message)
        }
        var material = material
        material.expiresAt = expiry
        return try decide(material, given: facts, for: destination, of: person, as: message)
    }

    private func decide(
        _ material: borrowing SendMaterial, given facts: consuming Facts, for destination: Destination,
        of person: RecipientSnapshot, as message: MessageID?
    ) throws -> DeliveryDraft {
        // By themselves: a closure below that named a property would take a copy of the whole composer.
        let (now, category, settings) = (now, terms.type?.category, step.settings)
        var key: SealingKey?
        if terms.needs?.deviceKey == true, case .device = destination,
            let record = person.state.sealingKey(of: destination.tag).record
        {
            key = SealingKey(
                id: record.key, suite: try record.sealingSuite, publicKey: record.publicKey,
                rotateBy: rotationTime(of: record))
        }
        // A send that its caller may not make is not composed, and a text that cannot be written has no size: the gate that
        // gives the reason comes before the size gate.
        let content = (terms.rule.admits(params: paramsCheck.fact) ? paramsCheck.params : nil)
            .flatMap { params in
                SendContent(
                    material, saying: params, under: terms, recipientLocale: person.record.locale,
                    utcOffsetSeconds: LocalTime.offsetSeconds(
                        at: now, zones: destination.timeZones(account: person.record.timeZone)),
                    of: policy)
            }
        let message = try message ?? step.identifiers.newMessageID()
        let channel = material.request.channel
        var link: UnsubscribeLink?
        let plan = ContentPlan(
            material, saying: content, to: destination, sealedTo: key, as: message,
            ownCollapse: person.subject.tag(.collapseKey, "message:" + message.uuidText),
            // The one-tap way out that S1 asks for inside every marketing and social push. A text message is answered with
            // a word instead.
            unsubscribeLink: { mayLeave in
                guard channel != .sms, let category else { return nil }
                guard mayLeave else { return settings.unsubscribe.placeholder }
                let made = UnsubscribeLink(
                    of: person.subject, category: category, channel: channel, destination: destination.tag,
                    mailbox: destination.address.map { settings.index.addressHash(AddressKey($0)) })
                link = made
                return CountedText(settings.unsubscribe.text(of: made))
            }, facts: &facts, under: terms, of: policy)
        let decision = plan.decision(given: facts, under: terms.rule, of: policy)
        return DeliveryDraft(
            destination: destination, facts: facts, decision: decision, plan: plan.delivery(for: decision),
            message: decision.outcome.isPromise ? message : nil, of: material, eventTag: eventTag,
            link: link)
    }

    /// When a key is to be replaced; `nil` while the app is not told yet.
    private func rotationTime(of key: DeviceKeyRecord) -> Instant? {
        guard let age = policy.bundle.channels.deviceKeyAge else { return nil }
        let end = key.createdAt.advanced(bySeconds: Int64(age.maxAgeDays) * 86_400)
        return now >= end.advanced(bySeconds: -Int64(age.toldBeforeDays) * 86_400) ? end : nil
    }
}
