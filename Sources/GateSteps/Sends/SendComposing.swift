import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import PayloadSealing
package import RecipientModel
import SealedFormat
import SendPlanning
import WireProtocol

/// Facts, payload and decision for one send at each of its destinations.
///
/// Used when a send comes in, when a deferred one becomes due, and for a summary.
struct SendComposer {
    let loading: FactsLoading
    let policy: CompiledPolicy
    let identifiers: any IdentifierDrawing
    package let person: RecipientSnapshot?
    let material: SendMaterial
    package let paramsCheck: ParamsCheck
    let fallback: FallbackFact
    let repetition: RepetitionFact
    /// When it wants to go out: later than ``now`` for a type with a time of its own.
    package var due: Instant
    /// What it tells, for a type that is told once.
    var eventTag: Tag?
    let now: Instant
    let unsubscribe: UnsubscribeAddress
    /// Whether the send was decided before and is looked at again.
    var isAgain = false

    init(
        _ context: DecidingContext, person: RecipientSnapshot?, material: SendMaterial,
        paramsCheck: ParamsCheck, fallback: FallbackFact, repetition: RepetitionFact, due: Instant
    ) {
        loading = FactsLoading(store: context.store, policy: context.policy, now: context.now)
        policy = context.policy
        identifiers = context.identifiers
        unsubscribe = context.unsubscribe
        now = context.now
        self.person = person
        self.material = material
        self.paramsCheck = paramsCheck
        self.fallback = fallback
        self.repetition = repetition
        self.due = due
    }

    private func common(_ material: SendMaterial) -> FactsLoading.Common {
        FactsLoading.Common(
            request: material.request, expiry: material.expiresAt, due: due, params: paramsCheck.fact,
            fallback: fallback, repetition: repetition, decidedBefore: isAgain ? material.send : nil)
    }

    /// The recipient is unknown, or has no destination: one decision without a destination.
    func decide(without missing: DestinationFact) throws -> DeliveryDraft {
        let facts = try loading.facts(common(material), person: person, without: missing)
        let decision = CompliancePolicy.decide(material.request, given: facts, under: policy)
        return DeliveryDraft(
            destination: nil, facts: facts, decision: decision, plan: nil, message: nil, material: material,
            key: nil, eventTag: nil, link: nil)
    }

    /// - Parameter message: The id a deferred message already has; a new one is made when `nil`.
    func decide(for destination: Destination, as message: MessageID? = nil) throws -> DeliveryDraft {
        guard let person else { preconditionFailure("a destination without a person") }
        var material = material
        // A send that was decided before has had its own time: only hours that hold it again lengthen its life.
        if !isAgain { material.countLife(from: due) }
        var facts = try loading.facts(common(material), person: person, destination: destination)
        if let departure = policy.waitsUntil(material.request, given: facts) {
            material.countLife(from: departure)
            facts.expiry = material.expiresAt
        }
        var key: DeviceKeyRecord?
        if let device = destination.device, policy.needs(for: material.request)?.deviceKey == true {
            key = person.state.sealingKey(of: device.tag).record
        }
        // A text that cannot be composed has no size, and a send that its caller may not make is not composed: the gate that
        // gives the reason comes before the size gate.
        let content =
            policy.admits(material.request, params: paramsCheck.fact)
            ? try? SendContent(
                material, recipientLocale: person.record.locale,
                utcOffsetSeconds: LocalTime.offsetSeconds(
                    at: now, zones: destination.timeZones(account: person.record.timeZone)),
                under: policy) : nil
        let message = try message ?? identifiers.newMessageID()
        var link: UnsubscribeLink?
        let plan = ContentPlan(
            material, saying: content ?? nil, to: try profile(of: destination, key: key), as: message,
            ownCollapse: person.subject.tag(.collapseKey, "message:" + message.uuidText),
            // The one-tap way out that S1 asks for inside every marketing and social push.
            unsubscribeLink: { mayLeave in
                guard let category = categoryWithLink else { return nil }
                guard mayLeave else { return unsubscribe.placeholder }
                let made = UnsubscribeLink(
                    of: person.subject, category: category, channel: material.request.channel,
                    destination: destination.tag)
                link = made
                return unsubscribe.text(of: made)
            }, facts: &facts, under: policy)
        let decision = CompliancePolicy.decide(material.request, given: facts, under: policy)
        return DeliveryDraft(
            destination: destination, facts: facts, decision: decision, plan: plan.delivery(for: decision),
            message: decision.outcome.isPromise ? message : nil, material: material, key: key,
            eventTag: eventTag,
            link: link)
    }

    private func profile(of destination: Destination, key: DeviceKeyRecord?) throws -> DestinationProfile {
        try destination.profile(key: key, rotatedBy: key.flatMap(rotationTime))
    }

    /// When a key is to be replaced; `nil` while the app is not told yet.
    private func rotationTime(of key: DeviceKeyRecord) -> Instant? {
        guard let age = policy.bundle.channels.deviceKeyAge else { return nil }
        let end = key.createdAt.advanced(bySeconds: Int64(age.maxAgeDays) * 86_400)
        return now >= end.advanced(bySeconds: -Int64(age.toldBeforeDays) * 86_400) ? end : nil
    }

    /// The category that a link of this send would switch off; `nil` for a send that has no one-tap unsubscribe. A
    /// text message is answered with a word instead.
    private var categoryWithLink: GateVocabulary.Category? {
        guard material.request.channel != .sms, let category = policy.type(material.request.type)?.category,
            policy.category(category).hasUnsubscribeLink
        else { return nil }
        return category
    }
}

/// One destination of a send, decided and composed, not yet written anywhere.
///
/// An object, because it is large and looked at in many places, and nothing of it changes.
package final class DeliveryDraft {
    package let destination: Destination?
    package let facts: Facts
    let encodedFacts: EncodedFacts
    package let decision: Decision
    /// Set exactly when it goes now.
    let plan: DeliveryPlan?
    /// Set when it goes now or later.
    package let message: MessageID?
    let material: SendMaterial
    package let key: DeviceKeyRecord?
    /// What it tells, for a type that is told once.
    let eventTag: Tag?
    /// The unsubscribe link that it carries.
    let link: UnsubscribeLink?

    init(
        destination: Destination?, facts: Facts, decision: Decision, plan: DeliveryPlan?,
        message: MessageID?, material: SendMaterial, key: DeviceKeyRecord?, eventTag: Tag?,
        link: UnsubscribeLink?
    ) {
        self.destination = destination
        self.facts = facts
        encodedFacts = EncodedFacts(facts)
        self.decision = decision
        self.plan = plan
        self.message = message
        self.material = material
        self.key = key
        self.eventTag = eventTag
        self.link = link
    }

    var record: SendEntry.DeliveryRecord {
        SendEntry.DeliveryRecord(
            destination: destination?.tag, message: message, facts: facts, encoded: encodedFacts,
            decision: decision, key: plan?.key, byteCount: plan?.byteCount)
    }
}

extension [DeliveryDraft] {
    /// The caller's names for the destinations of a send; entries and events know their tags only.
    var destinationNames: [Tag: String] {
        reduce(into: [:]) { names, draft in
            if let destination = draft.destination { names[destination.tag] = destination.id.text }
        }
    }
}

extension StepContext {
    /// Writes one promised message into the outbox: ready now, sealed or signed by the time of the commit, or
    /// deferred.
    ///
    /// - Parameter waiting: The row it replaces. Its bytes do not count twice, and it is restored if sealing or signing
    ///   fails.
    /// - Returns: Whether it is there; else ``waiting`` is, for a later try.
    @discardableResult
    func enqueue(
        _ draft: DeliveryDraft, of person: RecipientSnapshot, insteadOf waiting: OutboxRecord? = nil,
        at now: Instant
    ) throws -> Bool {
        guard let message = draft.message, let destination = draft.destination,
            let type = policy.type(draft.material.request.type)
        else { return false }
        var row = OutboxRecord(
            message: message, send: draft.material.send, subject: person.subject.id,
            destination: destination.tag, request: draft.material.request, category: type.category,
            tier: type.tier, state: .ready, form: draft.decision.form,
            interruption: draft.decision.interruption, key: nil, headers: Array("{}".utf8), body: [],
            facts: draft.encodedFacts.bytes, eventTag: draft.eventTag, decidedAt: now,
            notBefore: now, expiresAt: draft.material.expiresAt)
        guard let plan = draft.plan else {
            // Deferred: what it says is kept, sealed at rest, and composed when it is due, under the
            // policy, the key and the words of that day.
            row.body = draft.material.bytes
            if draft.decision.outcome == .digest {
                row.state = .digesting
                row.notBefore = try roomReturns(for: type, of: person.subject.id, at: now)
                // The message lives on in the summary, whose own time begins when that is due.
                row.expiresAt = max(row.expiresAt, row.notBefore.advanced(bySeconds: type.ttlSeconds))
                if let waiting { row.decidedAt = waiting.decidedAt }
            } else {
                row.state = .deferred
                row.notBefore = draft.decision.notBefore ?? now
            }
            return try enqueue(row, delivery: nil, awaiting: nil)
        }
        if let link = draft.link { view.putUnsubscribeLink(link) }
        row.headers = plan.headers
        row.key = plan.key
        let delivery = Delivery(
            row, to: destination, composedAt: draft.facts.now ?? now, at: now)
        guard let order = plan.order else {
            row.body = try plan.filled(with: nil)
            return try enqueue(row, delivery: delivery, awaiting: nil)
        }
        let pending = PendingBody(plan: plan, order: try pendingOrder(order, to: draft.key))
        return try enqueue(row, delivery: delivery, awaiting: pending, insteadOf: waiting)
    }

    private func pendingOrder(_ order: OriginOrder, to key: DeviceKeyRecord?) throws -> PendingBody.Order {
        switch order {
        case .sign(let order): return .sign(order)
        case .seal(let order):
            guard let key else { preconditionFailure("a body was planned as sealed to no key") }
            return .seal(
                order, to: DevicePublicKey(validatedBefore: key.publicKey, suite: try key.sealingSuite))
        }
    }

    /// A message that waited, decided and composed as if it had just come in.
    ///
    /// - Parameter due: When it wants to go out; later than `now` for one that is looked at before its time.
    /// - Returns: `nil` when its destination is gone.
    func composeAgain(
        _ row: OutboxRecord, person: RecipientSnapshot, due: Instant? = nil, at now: Instant
    ) throws -> DeliveryDraft? {
        guard case .object(let object) = try CanonicalJSON.read(row.body) else {
            throw row.damaged("a held message is not an object")
        }
        guard let destination = person.destination(tagged: row.destination, on: row.request.channel) else {
            return nil
        }
        var material = try SendMaterial(json: object)
        // A waiting message lives as long as its row: moved quiet hours and a summary move the row's end.
        material.expiresAt = row.expiresAt
        guard case .object(let recordedFacts) = try CanonicalJSON.read(row.facts) else {
            throw row.damaged("the recorded facts are not an object")
        }
        var composer = SendComposer(
            deciding(at: now), person: person, material: material,
            paramsCheck: ParamsCheck(
                material.params, deepLink: material.deepLink, of: row.request.type, under: policy),
            fallback: try Facts(json: recordedFacts).fallback ?? .mismatch,
            repetition: try view.repetition(of: row.eventTag, to: row.subject, besides: row.send),
            due: due ?? now)
        composer.isAgain = true
        composer.eventTag = row.eventTag
        return try composer.decide(for: destination, as: row.message)
    }

    /// A deferred message whose time has come.
    func composeDeferred(_ row: OutboxRecord, person: RecipientSnapshot, at now: Instant) throws {
        guard let draft = try composeAgain(row, person: person, at: now) else {
            try apply(.destinationMissing, to: row, at: now)
            return
        }
        try settle(row, as: draft, of: person, at: now)
    }

    /// Records what was decided about a waiting message whose time has come, and puts it in its place.
    func settle(
        _ row: OutboxRecord, as draft: DeliveryDraft, of person: RecipientSnapshot, at now: Instant
    ) throws {
        switch OutboxState(row).after(.composed(draft.decision.outcome)) {
        case .keepDigesting: try keepDigesting(row, under: draft.decision, at: now)
        case .withdrawAsDecided:
            try withdraw(row, under: draft.decision, on: draft.facts, cause: .due, at: now)
        case .replace:
            try remove(row)
            // A message that could not be sealed waits on, without an entry: nothing was decided about it.
            guard let type = policy.type(row.request.type),
                try release(
                    [draft], of: row.send, type, to: person, isForward: draft.decision.outcome == .forward,
                    insteadOf: row, at: now)
            else { return }
            try recordAgain(row, draft.facts, draft.decision, cause: .due, at: now)
        case let action:
            preconditionFailure("message \(row.message) was composed in state \(OutboxState(row)): \(action)")
        }
    }

    // MARK: Room

    /// Refuses a send before it is decided when the trail or the outbox cannot take its entry and messages.
    package func requireRoom(isSecurity: Bool) throws {
        let headroom = try view.headroom()
        guard headroom.publishLag <= limits.publishLagMillisecondsMax else {
            throw EngineFailure.trailBehind(milliseconds: headroom.publishLag)
        }
        let needed = limits.freeDiskByteCountMin
        let floor = isSecurity ? needed * Int64(limits.securitySharePercent) / 100 : needed
        guard try headroom.freeByteCount.get() >= floor else {
            throw EngineFailure.unavailable("less than \(floor) bytes of disk are left")
        }
    }

    /// The last share of the outbox is open to the security category only.
    func requireOutboxRoom(
        for caller: CallerName, to subject: SubjectID, isSecurity: Bool
    ) throws {
        let depth = try view.outboxDepth(of: caller)
        guard depth.rowCount < limits.part(of: limits.outboxRowCountMax, isSecurity: isSecurity),
            depth.byteCount < limits.part(of: limits.outboxByteCountMax, isSecurity: isSecurity),
            isSecurity
                || depth.rowCountOfCaller < limits.outboxRowCountPerCallerMax
        else { throw EngineFailure.outboxFull }
        // Rounded up: of what may wait for one person in all, the share is not less than its percentage.
        let rest = 100 - limits.securitySharePercent
        let personMax = (limits.outboxRowCountPerPersonMax * 100 + rest - 1) / rest
        let personShare = isSecurity ? personMax : limits.outboxRowCountPerPersonMax
        // Loaded once for all steps of a batch, so up to the bound that security has; and only where so many wait at all.
        guard
            try depth.rowCount < personShare || view.outboxCount(of: subject, limit: personMax) < personShare
        else { throw EngineFailure.outboxFullForRecipient }
    }
}

extension Destination {
    /// The destination as far as composing and sealing need to know it.
    func profile(key: DeviceKeyRecord?, rotatedBy rotateBy: Instant?) throws -> DestinationProfile {
        switch self {
        case .address(let address):
            return DestinationProfile(tag: address.tag, kind: address.channel == .sms ? .phone : .mailbox)
        case .device(let device):
            let sealing = try key.map {
                DestinationProfile.SealingKey(
                    id: $0.key, suite: try $0.sealingSuite, rotateBy: rotateBy)
            }
            return DestinationProfile(
                tag: device.tag,
                kind: .device(device.id, platform: device.platform, app: device.app, key: sealing))
        }
    }
}
