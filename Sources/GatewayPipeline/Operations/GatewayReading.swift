import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateSteps
import GateVocabulary
import KeyLifecycle
import GateRecords
import SendPlanning
import WireProtocol

/// The look-ups of the routes, on one snapshot of the store.
struct GatewayReading {
    let store: any StoreReading
    let library: any TrailLibrary
    let policy: CompiledPolicy
    let now: Instant

    // MARK: Sends

    /// The entry of a decision, from the store while it is there, else from the published tree.
    func entry(_ index: UInt64) throws -> [UInt8] {
        if let stored = try store.entry(index) { return stored.bytes }
        guard let published = try library.entry(index) else {
            throw StoreError.damaged(
                table: "entry", row: "\(index)", "the entry is neither held nor published")
        }
        return published
    }

    func sendStatus(_ id: SendID, _ caller: CallerName, _ grants: GrantSet) throws -> Answer {
        guard let send = try store.send(id),
            send.caller == caller || grants.contains(.receiptsWrite) || grants.contains(.subjectsRead)
        else { throw Problem(.notFound, detail: "no send of this id is yours") }
        let answer = SendStatusAnswer(
            decision: try decision(on: send).answer,
            type: send.type, channel: send.channel, receivedAt: send.receivedAt,
            waiting: try store.outbox(of: send.id).map { send.name(of: $0.destination) },
            events: try events(of: send))
        return Answer(answer)
    }

    func events(of caller: CallerName, _ query: EventsQuery) throws -> Answer {
        var events: [SendEvent] = []
        var namesOfSend: [SendID: [Tag: String]] = [:]
        for event in try store.events(of: caller, after: query.after, limit: Int(query.limit)) {
            let names: [Tag: String]
            if let known = namesOfSend[event.send] {
                names = known
            } else {
                names = try store.send(event.send)?.destinationNames.byTag ?? [:]
                namesOfSend[event.send] = names
            }
            events.append(SendEvent(event, names: names))
        }
        return Answer(EventsAnswer(events: events, after: query.after))
    }

    func decisions(of user: UserID, _ query: DecisionsQuery) throws -> Answer {
        guard let subject = try store.subject(of: user) else {
            throw Problem(.notFound, detail: "nobody of this name is registered")
        }
        let person = try RecipientSnapshot.load(subject, from: store)
        return Answer(try decisions(of: subject.id, person, query))
    }

    /// - Parameter person: The person in whose time zone moments are told; `nil` for UTC.
    private func decisions(
        of subject: SubjectID, _ person: RecipientSnapshot?, _ query: DecisionsQuery
    ) throws -> DecisionsAnswer {
        let limit = Int(query.limit)
        let words = Explanation(policy.sentences(in: query.locale))
        // One send more than asked for shows whether there are older ones.
        let sends = try store.sends(of: subject, before: query.before, limit: limit + 1)
        let rows = try sends.prefix(limit).map { send in
            let (entry, answer) = try decision(on: send)
            let events = try events(of: send)
            let waiting = try store.outbox(of: send.id)
            return DecisionsAnswer.Row(
                send: send.id, caller: send.caller, type: send.type, channel: send.channel,
                at: send.receivedAt, outcome: answer.outcome, reason: answer.reason, detail: answer.detail,
                sentence: entry.isShadow && answer.outcome.isPromise
                    ? nil : sentence(entry, of: send, then: events, waiting, in: words, for: person),
                deliveries: answer.deliveries,
                waiting: waiting.map { send.name(of: $0.destination) }, events: events, trail: answer.trail,
                isShadow: entry.isShadow)
        }
        return DecisionsAnswer(rows: rows, next: sends.count > limit ? rows.last?.send : nil)
    }

    /// The decision, where it differs from the overall one, the results, and the messages that still wait.
    private func sentence(
        _ entry: SendEntry, of send: SendRecord, then events: [SendEvent], _ waiting: [OutboxRecord],
        in words: Explanation, for person: RecipientSnapshot?
    ) -> String {
        func local(_ destination: Tag?) -> Explanation { words.by(person?.clock(at: destination) ?? .utc) }
        let tags = Dictionary(
            send.destinationNames.list.map { ($0.text, $0.tag) }, uniquingKeysWith: { first, _ in first })
        let overall = entry.overall
        let alike = entry.deliveries.filter { $0.decision.reason == overall.reason }
        let notes = alike.reduce(into: DecisionNotes(rawValue: 0)) { $0.formUnion($1.decision.notes) }
        let others = entry.deliveries.filter { $0.decision.reason != overall.reason }.map { other in
            let text = words.text(
                other.decision.reason, other.decision.detail, notes: other.decision.notes,
                in: Explanation.Circumstance(other.decision, given: other.facts))
            return words.elsewhere(text, place: other.destination.map { send.name(of: $0) })
        }
        let decided = words.text(
            overall.reason, overall.detail, notes: notes, in: circumstance(of: overall, at: alike))
        // Of a message in doubt its end is told, or that it waits.
        let became = events.filter { $0.event != .inDoubt }.map {
            local($0.destination.flatMap { tags[$0] })
                .sentence($0.event, at: $0.at, place: $0.destination, reason: $0.reason)
        }
        // The present state: waiting messages may have been decided again since. A cancelled one waits for nothing.
        let waits = waiting.filter { $0.notBefore > now && !$0.isCancelled }.map {
            local($0.destination).waiting(until: $0.notBefore, place: send.name(of: $0.destination))
        }
        return ([decided] + others + became + waits).joined(separator: " ")
    }

    /// The circumstance of the destinations that were decided alike: `withheld` where it is so at one of them, and
    /// `cameInQuietHours` where it is so at each.
    private func circumstance(of overall: Decision, at alike: [SendEntry.DeliveryRecord])
        -> Explanation.Circumstance?
    {
        let found = alike.map { ($0.decision.detail, Explanation.Circumstance($0.decision, given: $0.facts)) }
        if found.contains(where: { $0.1 == .withheld }) { return .withheld }
        let exactly = found.filter { $0.0 == overall.detail }.map(\.1)
        return exactly.contains(nil) ? nil : exactly.first ?? nil
    }

    private func events(of send: SendRecord) throws -> [SendEvent] {
        let names = send.destinationNames.byTag
        return try store.events(of: send.id).map { SendEvent($0, names: names) }
    }

    /// The answer to a send, rebuilt from its entry.
    private func decision(on send: SendRecord) throws -> (entry: SendEntry, answer: SendAnswer) {
        let bytes = try entry(send.entryIndex)
        let trail = TrailReference(entry: bytes, index: send.entryIndex, origin: library.origin)
        let entry = try send.entry(in: bytes)
        return (entry, SendAnswer(entry, of: send, trail: trail, isReplayed: false))
    }

    // MARK: People

    func recipient(_ user: UserID, _ query: LocaleQuery) throws -> Answer {
        guard let ledgered = try RecipientWithLedger.load(user, from: store) else {
            throw Problem(.notFound, detail: "nobody of this name is registered")
        }
        let (person, consents) = (ledgered.person, ledgered.consents)
        let names = person.destinationNames
        let devices = try person.devices.map { device in
            HeldDevice(device, keys: try store.deviceKeys(of: device.subject, device: device.tag))
        }
        let answer = RecipientAnswer(
            user: user, record: person.record, devices: devices,
            addresses: person.addresses,
            consents: try consents.map {
                HeldConsent(
                    $0, names: names, among: consents, lawfulBasis: try lawfulBasis(of: $0))
            },
            preferences: try store.preferenceHistory(of: person.subject.id).map {
                HeldChoice($0, at: $0.destination.map { names[$0] ?? $0.hexadecimal })
            },
            prompts: try store.permissionPrompts(of: person.subject.id).map {
                HeldPrompt($0, at: names[$0.device] ?? $0.device.hexadecimal)
            },
            drifts: person.state.drifts.map { finding in
                HeldDrift(finding, at: finding.device.map { names[$0] ?? $0.hexadecimal })
            },
            decisions: try decisions(
                of: person.subject.id, person,
                DecisionsQuery(limit: WireLimits.decisionCountMax, locale: query.locale)))
        return Answer(answer)
    }

    func consents(of user: UserID, _ query: ConsentsQuery) throws -> Answer {
        guard let person = try RecipientWithLedger.load(user, from: store) else {
            throw Problem(.notFound, detail: "nobody of this name is registered")
        }
        let names = person.person.destinationNames
        let consents = person.consents.filter { consent in
            (query.asOf.map { ConsentLedger.moment(of: consent, in: person.consents) <= $0 } ?? true)
                && (query.knownAt.map { consent.receivedAt <= $0 } ?? true)
        }
        var standing: [ConsentsAnswer.Standing] = []
        for consent in consents {
            let isTold = standing.contains {
                $0.purpose == consent.purpose && $0.channel == consent.channel
                    && $0.address == consent.address.map { names[$0] ?? $0.hexadecimal }
            }
            if isTold { continue }
            let fact = ConsentLedger.fact(
                purpose: consent.purpose, channel: consent.channel, address: consent.address, in: consents)
            standing.append(
                ConsentsAnswer.Standing(
                    purpose: consent.purpose, channel: consent.channel,
                    address: consent.address.map { names[$0] ?? $0.hexadecimal }, consent: fact,
                    hasExpired: fact.hasExpired(at: query.asOf ?? now)))
        }
        let records = try consents.map { consent in
            HeldConsent(
                consent, names: names, among: person.consents, lawfulBasis: try lawfulBasis(of: consent),
                noticeText: try consent.notice.flatMap { try store.noticeText($0.sha256) })
        }
        return Answer(ConsentsAnswer(query: query, records: records, standing: standing))
    }

    /// The lawful basis that a consent gives a send: what the reviewed pages say of the text that was shown.
    private func lawfulBasis(of record: ConsentRecord) throws -> String? {
        guard record.state == .given else { return nil }
        guard let notice = record.notice else { return "consent" }
        let key = Notice.Key(id: notice.id, version: notice.version, language: notice.language)
        let scope = try store.scope(of: key, sha256: notice.sha256, under: policy)
        if record.method == .existingCustomer, scope?.methods != [.existingCustomer] {
            return "legitimate interest (Art. 6(1)(f) of the GDPR or UK GDPR), and no consent"
        }
        return scope?.basis ?? "consent"
    }

    /// Chosen, effective, why, and how to change it: never a misleading green toggle (S1).
    func preferences(of user: UserID, _ query: LocaleQuery) throws -> Answer {
        guard let person = try RecipientSnapshot.load(user, from: store) else {
            throw Problem(.notFound, detail: "nobody of this name is registered")
        }
        let words = Explanation(policy.sentences(in: query.locale))
        var rows: [PreferencesAnswer.Row] = []
        func add(_ scope: String, _ channel: Channel, _ destination: Destination?) {
            let record = person.state.choice(scope, channel, at: destination?.tag)
            let effect = PreferenceEffect(
                scope: scope, channel: channel, destination: destination, person: person,
                facts: FactsLoading(policy: policy, now: now))
            rows.append(
                PreferencesAnswer.Row(
                    scope: scope, channel: channel, destination: destination?.id.text,
                    chosen: record?.state ?? .default, isEffectivelyOn: effect.isOn, why: effect.why,
                    detail: effect.detail,
                    howToFix: effect.remedy.map { words.remedy($0, purpose: effect.purpose) },
                    source: record?.source.rawValue, at: record?.at))
        }
        for category in Category.allCases {
            for channel in Channel.allCases {
                add(category.rawValue, channel, nil)
                for destination in person.destinations(on: channel) {
                    add(category.rawValue, channel, destination)
                }
            }
        }
        for type in policy.typesMutableAlone {
            for channel in Channel.allCases where type.body[channel] != .never {
                add(type.id.text, channel, nil)
                for destination in person.destinations(on: channel)
                where person.state.choice(type.id.text, channel, at: destination.tag) != nil {
                    add(type.id.text, channel, destination)
                }
            }
        }
        let prompts = try store.permissionPrompts(of: person.subject.id)
        let devices = person.devices.filter(\.isActive).map { device in
            let shownAt = prompts.first { $0.device == device.tag }?.shownAt
            return PreferencesAnswer.Prompt(
                device: device.id.text, osPermission: device.osPermission, shownAt: shownAt,
                mayPrompt: shownAt == nil && device.osPermission == .notDetermined)
        }
        return Answer(PreferencesAnswer(rows: rows, prompts: devices))
    }
}

extension RecipientSnapshot {
    /// The owner's names for the destinations, by tag.
    var destinationNames: [Tag: String] {
        var names: [Tag: String] = [:]
        for device in devices { names[device.tag] = device.id.text }
        for address in addresses { names[address.tag] = address.id.text }
        return names
    }
}

extension SendEvent {
    init(_ event: EventRecord, names: [Tag: String]) {
        self.init(
            cursor: event.cursor, send: event.send, event: event.event,
            destination: event.destination.map { names[$0] ?? $0.hexadecimal }, at: event.at,
            reason: event.reason)
    }
}

extension HeldConsent {
    init(
        _ record: ConsentRecord, names: [Tag: String], among records: [ConsentRecord], lawfulBasis: String?,
        noticeText: String? = nil
    ) {
        self.init(
            record, address: record.address.map { names[$0] ?? $0.hexadecimal },
            withdraws: record.withdraws.flatMap { tag in records.first { $0.idTag == tag }?.id },
            lawfulBasis: lawfulBasis, noticeText: noticeText)
    }
}
