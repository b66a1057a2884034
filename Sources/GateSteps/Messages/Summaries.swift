import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords
import SendPlanning
import WireProtocol

// A digesting message went over a cap and waits until the count is below the cap again. Then all digesting messages of the
// person on that channel with the same summary type are decided again, and those that still may go become one message: a
// send of the gateway's own, of the type that its page or its category names as its summary, decided and recorded like any
// other. It counts once.

extension StepContext {
    /// Members of one summary; more than that go into the next. Each is composed and recorded again, so this bounds
    /// the work of one transaction.
    private static let memberCountMax = 256
    /// How long a message may wait for a summary before it is given up, in seconds: 14 days, well inside the time for
    /// which its send is remembered.
    private static let digestingSecondsMax: Int64 = 14 * 86_400

    /// Summarises one digesting message whose time has come, with all others that wait for the same summary.
    func summarise(_ first: OutboxRecord, person: RecipientSnapshot, at now: Instant) throws {
        let summary = summary(of: first)
        let together = try memory.outbox(of: first.subject).filter {
            $0.state == .digesting && $0.category == first.category
                && $0.request.channel == first.request.channel && self.summary(of: $0) == summary
        }
        var members: [Tag: [Member]] = [:]
        for row in together.prefix(Self.memberCountMax) {
            guard now <= row.decidedAt.advanced(bySeconds: Self.digestingSecondsMax) else {
                try apply(.expired, to: row, at: now)
                continue
            }
            guard let draft = try composeAgain(row, person: person, at: now) else {
                try apply(.destinationMissing, to: row, at: now)
                continue
            }
            if draft.decision.outcome == .forward {
                members[row.destination, default: []].append(Member(row: row, draft: draft))
            } else {
                try settle(row, as: draft, of: person, at: now)
            }
        }
        let type = summary.flatMap { policy.type($0) }
        var alone: [OutboxRecord] = []
        // A single message needs no summary, and a policy that came into force meanwhile may know none.
        for (destination, group) in members where group.count == 1 || type == nil {
            alone += group.map(\.row)
            members[destination] = nil
        }
        if let type, !members.isEmpty {
            alone += try sendSummary(type, of: members, on: first.request.channel, to: person, at: now)
        }
        // In order, because each counts towards the caps that the next is held against.
        for row in alone {
            guard let draft = try composeAgain(row, person: person, at: now) else { continue }
            try settle(row, as: draft, of: person, at: now)
        }
    }

    /// The type of the summary that tells a digesting message. A newer policy may no longer have the message's type,
    /// or no longer summarise it: it is then decided again with the others of its category.
    private func summary(of row: OutboxRecord) -> TypeID? {
        policy.type(row.request.type).flatMap { policy.bundle.summary(of: $0) }
            ?? policy.category(row.category).summary
    }

    private struct Member {
        var row: OutboxRecord
        var draft: DeliveryDraft
    }

    /// Has one digesting message go on waiting for a summary.
    func keepDigesting(_ row: OutboxRecord, under decision: Decision, at now: Instant) throws {
        guard decision.outcome == .digest else {
            return try keepWaiting([row], until: decision.notBefore ?? now)
        }
        // Other sends have reached the cap meanwhile.
        guard let type = policy.type(row.request.type) else { return }
        try keepWaiting([row], until: roomReturns(for: type, of: row.subject, at: now))
    }

    /// - Returns: Messages that no summary could take: where the summary itself is refused, each goes alone.
    private func sendSummary(
        _ type: NotificationType, of members: [Tag: [Member]], on channel: Channel,
        to person: RecipientSnapshot, at now: Instant
    ) throws -> [OutboxRecord] {
        let request = AttestedRequest(caller: .gateway, type: type.id, channel: channel, critical: false)
        let send = try identifiers.newSendID(at: now)
        var drafts: [DeliveryDraft] = []
        var summarised: [Member] = []
        var alone: [OutboxRecord] = []
        for (tag, group) in members.sorted(by: { $0.key < $1.key }) {
            let rows = group.map(\.row)
            guard let destination = person.destination(tagged: tag, on: channel) else { continue }
            let material = SendMaterial(
                send: send, request: request, params: Self.params(of: rows, for: type), of: type, sentAt: now)
            let composer = SendComposer(
                step: self, now: now, material: material, terms: policy.terms(of: request),
                paramsCheck: ParamsCheck(material.params, of: type.id, under: policy), fallback: .notFallback,
                repetition: .first)
            let draft = try composer.decide(for: destination, of: person)
            switch draft.decision.outcome {
            case .forward:
                drafts.append(draft)
                summarised += group
            case .defer, .digest:
                // Quiet hours that began, or a category's cap that is reached, defer a summary like any send.
                let until =
                    try draft.decision.notBefore ?? roomReturns(for: type, of: person.subject.id, at: now)
                try keepWaiting(rows, until: until)
            case .suppress, .reject: alone += rows
            }
        }
        guard !drafts.isEmpty else { return alone }
        // Before the summary counts: they were decided on what was before it.
        for member in summarised { try close(member, into: send, at: now) }
        // Many messages end in this one, so none of them comes back should its seal fail: its step throws, and the turn
        // of the first is put off.
        try commitOwn(
            send, of: type, on: channel, as: drafts, to: person, requestID: "summary-\(send.uuidText)",
            at: now)
        return alone
    }

    /// Closes a member of a summary. The summary's own entry says what became of it.
    private func close(_ member: Member, into summary: SendID, at now: Instant) throws {
        let row = member.row
        guard case .close = OutboxState(row).after(.summarised) else {
            preconditionFailure("message \(row.message) is summarised and waits for no summary")
        }
        try recordAgain(row, member.draft.facts, member.draft.decision, cause: .summarised, at: now)
        try remove(row)
        memory.appendEvent(EventRecord(.summarised(into: summary), of: row, at: now))
    }

    private func keepWaiting(_ rows: [OutboxRecord], until: Instant) throws {
        for var row in rows {
            row.notBefore = until
            let type = policy.type(row.request.type)
            row.expiresAt = max(row.expiresAt, until.advanced(bySeconds: type?.ttlSeconds ?? 60))
            try update(row)
        }
    }

    /// "28 new transactions", and what they come to in each currency when all of them name an amount. A summary whose
    /// page declares one of the two gets that one.
    private static func params(of rows: [OutboxRecord], for type: NotificationType) -> JSONObject {
        var params: JSONObject = [:]
        if type.params["count"] != nil { params["count"] = .integer(Int64(rows.count)) }
        guard type.params["totals"] != nil else { return params }
        var totals: [String: Int64] = [:]
        for row in rows {
            guard let material = try? CanonicalJSON.read(row.body),
                let amount = material["params"]?["amount"],
                let minor = amount["minor"]?.integerValue, let currency = amount["currency"]?.stringValue
            else { return params }
            let (sum, overflows) = totals[currency, default: 0].addingReportingOverflow(minor)
            guard !overflows, sum.magnitude < 1 << 53 else { return params }
            totals[currency] = sum
        }
        guard totals.count <= ParamSchema.totalCountMax else { return params }
        params["totals"] = .array(
            totals.sorted { $0.key < $1.key }.map { currency, minor in
                ["currency": .string(currency), "minor": .integer(minor)]
            })
        return params
    }

    /// The moment from which every cap of a type allows one more.
    func roomReturns(for type: NotificationType, of subject: SubjectID, at now: Instant) throws -> Instant {
        let caps = [
            policy.bundle.typeCap(of: type), policy.bundle.categoryCap(of: type),
            policy.bundle.everythingCap(of: type),
        ]
        guard let longest = caps.compactMap({ $0?.windowSeconds }).max() else { return now }
        let forwards = try memory.forwards(
            of: subject, since: now.advanced(bySeconds: -longest), limit: KnownForwards.countMax)
        let uncounted = policy.bundle.uncountedTypes
        func room(_ cap: Cap?, _ counts: (ForwardRecord) -> Bool) -> Instant {
            guard let cap else { return now }
            let counted = forwards.filter(counts)
            guard counted.count >= cap.count else { return now }
            // A forward counts while it is no older than the window, to the millisecond.
            let leaves = counted[cap.count - 1].at.advanced(bySeconds: cap.windowSeconds)
            return Instant(milliseconds: leaves.milliseconds + 1)
        }
        let moments = [
            room(caps[0]) { $0.type == type.id }, room(caps[1]) { $0.category == type.category },
            room(caps[2]) { $0.category != .security && !uncounted.contains($0.type) },
        ]
        return max(moments.max() ?? now, now.advanced(bySeconds: 1))
    }
}
