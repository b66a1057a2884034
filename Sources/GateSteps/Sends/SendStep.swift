import BundleModel
package import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary
import OpenSSLCrypto
import GateRecords
import SendPlanning
package import WireProtocol

/// Whether what a send comes to is carried out (decision SG-0082).
package enum SendMode: Hashable, Sendable {
    case enforced
    /// Decided and recorded only.
    case shadow
    /// Enforced on a listener where others are in shadow, as this one may have been before: its own sender sent it then, so that
    /// the answer of that time is given again.
    case enforcedAfterShadow

    /// Under what the id would have been kept had the send come before its type or its caller was enforced here, or before it no
    /// longer was; `nil` where it never changed.
    fileprivate func otherHash(of idHash: [UInt8]) -> [UInt8]? {
        switch self {
        case .enforced: nil
        case .shadow: idHash
        case .enforcedAfterShadow: SendRecord.shadowIDHash(idHash)
        }
    }
}

/// One send, from an attested request to a recorded decision and, where it may, messages on their way.
package struct SendStep: Sendable {
    package let request: SendRequest
    package let attested: AttestedRequest
    package let peer: SendEntry.PeerEvidence
    package let mode: SendMode
    /// Of the request.
    package let traceParent: TraceParent?
    /// See ``IndexKey``; 16 bytes, and in shadow ``SendRecord/shadowIDHash(_:)``.
    package let idHash: [UInt8]
    /// The caller's id alone, whatever the mode is.
    private let realIDHash: [UInt8]
    /// MAC of the canonical content; 32 bytes.
    package let contentMAC: [UInt8]
    /// Whether the last share of room is open to it.
    package let isSecurity: Bool
    /// The one in force when the send came in. What it says of the send is found before the send waits for its turn, and counts
    /// if it is in force then.
    private let policy: CompiledPolicy
    private let terms: RequestTerms
    private let paramsCheck: ParamsCheck
    /// What it is certain to read, with the seconds for which caps count under the policy of the moment the send came in.
    package let asks: [Ask]

    /// - Parameters:
    ///   - policy: The one in force now. Should another one be in force when the send's turn comes, that one counts.
    ///   - idHash: ``IndexKey/idHash(_:of:)``, whatever the mode is.
    package init(
        request: SendRequest, attested: AttestedRequest, peer: SendEntry.PeerEvidence, idHash: [UInt8],
        contentMAC: [UInt8], isSecurity: Bool, mode: SendMode = .enforced,
        tracedTo traceParent: TraceParent? = nil,
        under policy: CompiledPolicy
    ) {
        self.request = request
        self.attested = attested
        self.peer = peer
        self.mode = mode
        self.traceParent = traceParent
        realIDHash = idHash
        let otherHash = mode.otherHash(of: idHash)
        let ownHash = mode == .shadow ? SendRecord.shadowIDHash(idHash) : idHash
        self.idHash = ownHash
        self.contentMAC = contentMAC
        self.isSecurity = isSecurity
        paramsCheck = ParamsCheck(
            request.params, deepLink: request.deepLink, of: request.type, under: policy)
        self.policy = policy
        terms = policy.terms(of: attested)
        let caller = attested.caller
        var asks: [Ask] = [
            .newSend(
                RequestKey(caller: caller, idHash: ownHash), to: request.user,
                countedSeconds: terms.needs?.longestWindowSeconds)
        ]
        if let otherHash { asks.append(.request(RequestKey(caller: caller, idHash: otherHash))) }
        self.asks = asks
    }

    /// What the step came to: a new decision, or the one that this id had before.
    package enum Resolution {
        case decided(Decided)
        /// The same id with the same content was decided before: nothing is sent twice.
        ///
        /// - `isIDTaken`: Whether the id was bound to other content since.
        case decidedBefore(SendRecord, isIDTaken: Bool = false)
    }

    package func run(in step: StepContext) throws -> Resolution {
        if let earlier = try step.memory.send(caller: attested.caller, idHash: idHash) {
            if HMACKey.constantTimeEqual(earlier.contentMAC, contentMAC) { return .decidedBefore(earlier) }
            // This content was refused for its shape, and the id was bound to the corrected one afterwards.
            if let misshapen = try refusedForShape(in: step) {
                return .decidedBefore(misshapen, isIDTaken: true)
            }
            if mode != .enforced, let misshapen = try refusedForShape(in: step, inShadow: !isShadow) {
                return .decidedBefore(misshapen, isIDTaken: true)
            }
            throw Problem(idOf: earlier)
        }
        if let restored = try step.restoredSend(request, as: attested, inShadow: isShadow) {
            return .decidedBefore(restored)
        }
        if let earlier = try decidedBeforeTheChange(in: step) { return earlier }
        if !isShadow, request.sent == true {
            throw Problem(
                wrong: "sent",
                "is for sends that a listener in shadow only records; this one is carried out here, so its own sender must not have sent it"
            )
        }
        // Only of what would be refused for its shape again, so that no other send is looked up twice. A bundle that knows the
        // type by now decides the send.
        if !hasShape(under: step.policy), let misshapen = try refusedForShape(in: step) {
            return .decidedBefore(misshapen)
        }
        try step.requireRoom(isSecurity: isSecurity)
        return .decided(try decide(in: step, requiringRoom: true))
    }

    package var isShadow: Bool { mode == .shadow }

    /// The answer of before its type or its caller was enforced here, or no longer was. Who did the sending then is known by it:
    /// in shadow its own sender, and for real the gate. Told the contrary, a retry would have it sent twice or by nobody.
    private func decidedBeforeTheChange(in step: StepContext) throws -> Resolution? {
        guard let otherHash = mode.otherHash(of: realIDHash) else { return nil }
        let earlier = try step.memory.send(caller: attested.caller, idHash: otherHash)
        if let earlier, HMACKey.constantTimeEqual(earlier.contentMAC, contentMAC) {
            return .decidedBefore(earlier)
        }
        // Whatever its shape is by now, so that it is answered once, on one side.
        if let misshapen = try refusedForShape(in: step, inShadow: !isShadow) {
            return .decidedBefore(misshapen, isIDTaken: earlier != nil)
        }
        // A copy in shadow has its id to itself: other content under the id of a real send is another send.
        if let earlier {
            if isShadow { return nil }
            throw Problem(idOf: earlier)
        }
        do {
            guard let restored = try step.restoredSend(request, as: attested, inShadow: !isShadow) else {
                return nil
            }
            return .decidedBefore(restored)
        } catch is Problem where isShadow {
            return nil
        }
    }

    /// Whether the type is registered and the params fit it.
    private func hasShape(under policy: CompiledPolicy) -> Bool {
        policy === self.policy
            ? paramsCheck.params != nil && terms.type != nil
            : policy.type(request.type) != nil
                && ParamsCheck(request.params, deepLink: request.deepLink, of: request.type, under: policy)
                    .violations.isEmpty
    }

    /// The send of this id and this content that was refused for its shape.
    private func refusedForShape(in step: StepContext) throws -> SendRecord? {
        try refusedForShape(in: step, inShadow: isShadow)
    }

    private func refusedForShape(in step: StepContext, inShadow isShadow: Bool) throws -> SendRecord? {
        try step.memory.send(
            caller: attested.caller, idHash: misshapenHash(in: step, inShadow: isShadow))
    }

    private func misshapenHash(in step: StepContext, inShadow isShadow: Bool) -> [UInt8] {
        let hash = step.settings.index.misshapenHash(realIDHash, content: contentMAC)
        return isShadow ? SendRecord.shadowIDHash(hash) : hash
    }

    /// The decision on a send, and everything that follows from it.
    package struct Decided: Sendable {
        package let considered: ConsideredSend
        /// The outcome of the send as a whole.
        package let outcome: Outcome
        package let answer: Citing<SendAnswer>
    }

    /// Decides and carries the decision out: the whole step of a send that is no repeat. Explaining a send runs this
    /// and drops its change.
    ///
    /// - Parameter requiringRoom: Whether there has to be room for what it leads to.
    package func decide(in step: StepContext, requiringRoom: Bool) throws -> Decided {
        // As an argument they are read where they lie; a variable for both would be a copy.
        step.policy === policy
            ? try decide(in: step, under: terms, requiringRoom: requiringRoom)
            : try decide(in: step, under: step.policy.terms(of: attested), requiringRoom: requiringRoom)
    }

    private func decide(
        in step: StepContext, under terms: RequestTerms, requiringRoom: Bool
    ) throws -> Decided {
        let now = try step.now()
        let policy = step.policy
        let isSamePolicy = policy === self.policy
        let snapshot = try RecipientSnapshot.load(request.user, from: step.memory)
        if !isSamePolicy { try step.requireForwards(to: snapshot, under: terms.needs, at: now) }
        let paramsCheck =
            isSamePolicy
            ? self.paramsCheck
            : ParamsCheck(request.params, deepLink: request.deepLink, of: request.type, under: policy)
        let considered = try ConsideredSend(
            request, as: attested, under: terms, to: snapshot, paramsCheck: paramsCheck,
            inShadow: isShadow, in: step, at: now)
        let (person, send, drafts) = (considered.person, considered.send, considered.drafts)
        let type = terms.type

        // Asked of a type that owes something: of another, nothing follows from them. What is in shadow reaches nobody: it discharges
        // no duty, and leaves none.
        var (duty, isUnreached, owed): (Tag?, Bool, [DischargeMeans]) = (nil, false, [])
        if !isShadow, let type, type.isMandatory {
            duty = person?.duty(type, paramsCheck.params?.json ?? request.params)
            isUnreached = self.isUnreached(drafts)
            owed = try step.owed(
                after: drafts, of: type, duty: duty, to: person?.subject.id,
                isInOrder: isUnreached || drafts.contains { $0.decision.outcome.isPromise })
        }
        let entry = SendEntry(
            send: send, subject: person?.subject.id, caller: attested.caller, peer: peer,
            request: recordedRequest(considered, isRegistered: type != nil, under: policy),
            paramsVerdict: considered.paramsCheck.recorded(for: request.type, under: policy),
            deliveries: isShadow ? drafts.recordsInShadow : drafts.records, policy: policy.digest,
            tzdata: LocalTime.dataVersion, replaces: considered.replaced, owed: owed, isShadow: isShadow,
            sent: isShadow ? request.sent : nil)
        let overall = entry.overall
        let (id, names) = (request.id, drafts.destinationNames)
        let record = SendRecord(
            id: send, caller: attested.caller,
            idHash: overall.reason.bindsID ? idHash : misshapenHash(in: step, inShadow: isShadow),
            contentMAC: contentMAC,
            subject: person?.subject.id, type: request.type, category: type?.category,
            channel: request.channel, receivedAt: now, entryIndex: step.upcomingIndex,
            requestID: id.text, destinationNames: names)
        if let type, let duty, let person, overall.outcome.isPromise {
            try step.settleDuty(
                duty, of: type, towards: person.subject.id, owing: !owed.isEmpty, send: send,
                caller: attested.caller, at: now)
        }
        let trail = try step.commit(
            entry, overall: overall, as: record, drafts, of: type, to: person,
            telling: considered.eventTags[request.channel], tracedTo: traceParent,
            requiringRoom: requiringRoom, at: now)
        if let type, !overall.outcome.isPromise, isUnreached, !owed.isEmpty {
            try step.raiseUnreached(
                type, of: send, by: attested.caller, to: person?.subject.id, at: now)
        }
        let violations = considered.paramsCheck.answered
        let hint = overall.reason == .typeDisabled ? type?.disabledHint : nil
        return Decided(considered: considered, outcome: overall.outcome) { places in
            SendAnswer(
                entry, as: id, to: names, trail: places[trail], isReplayed: false, violations: violations,
                hint: hint)
        }
    }

    /// Rebuilds the first answer.
    ///
    /// - Parameters:
    ///   - bytes: Of the entry that records it.
    ///   - trail: Where that is.
    ///   - isIDTaken: See ``Resolution``.
    package func answerAgain(
        _ earlier: SendRecord, entry bytes: [UInt8], at trail: TrailReference, isIDTaken: Bool,
        under policy: CompiledPolicy
    ) throws -> SendAnswer {
        let entry = try earlier.entry(in: bytes)
        var answer = SendAnswer(
            entry, of: earlier, trail: trail, isReplayed: true,
            violations: violations(in: entry, under: policy),
            hint: entry.overall.reason == .typeDisabled ? policy.type(request.type)?.disabledHint : nil)
        answer.isIDTaken = isIDTaken
        return answer
    }

    /// What was wrong with the params, in the words of the first answer as long as the same bundle is in
    /// force; after that the entry still says where, and not what it should have been.
    private func violations(in entry: SendEntry, under policy: CompiledPolicy) -> [Violation] {
        guard entry.overall.reason == .invalidParams else { return [] }
        guard entry.policy == policy.digest else {
            return entry.paramsVerdict.map {
                Violation(.body($0), "did not fit the type at the time")
            }
        }
        return ParamsCheck(
            request.params, deepLink: request.deepLink, of: request.type, under: policy
        ).answered
    }

    /// Whether the send is valid and reaches its recipient by no channel, so that only a way to them is missing.
    private func isUnreached(_ drafts: [DeliveryDraft]) -> Bool {
        drafts.allSatisfy { draft in
            draft.decision.reason == .expiresBeforeDue
                || (draft.decision.decidingGate ?? .expiry) >= .destination
        }
    }

    /// The request as the entry has it: only names that a registry or the gateway made are written as they are.
    private func recordedRequest(
        _ considered: ConsideredSend, isRegistered: Bool, under policy: CompiledPolicy
    ) -> SendEntry.RecordedRequest {
        let person = considered.person
        func tag(_ kind: TagKind, _ text: String?) -> Tag? {
            text.flatMap { text in person?.subject.tag(kind, text) }
        }
        return SendEntry.RecordedRequest(
            type: isRegistered ? request.type : nil,
            typeTag: isRegistered ? nil : tag(.type, request.type.text),
            typeByteCount: isRegistered ? nil : request.type.text.utf8.count,
            channel: request.channel, critical: request.critical,
            idTag: person?.subject.requestTag(request.id, inShadow: isShadow),
            destinationTag: request.destination.flatMap { id in
                person?.destination(id, on: request.channel)?.tag ?? tag(.device, id.text)
            },
            eventTags: considered.eventTags,
            fallbackFor: considered.replaced == nil ? nil : request.fallbackFor,
            ttlSeconds: request.ttlSeconds,
            collapseTag: tag(.collapseKey, request.collapseKey),
            deepLinkTag: tag(.deepLink, request.deepLink),
            locale: policy.registeredLocale(for: request.locale))
    }
}

extension StepContext {
    /// For a policy that came meanwhile: where the forwards that its caps count are not loaded yet, the step begins again here
    /// and not after all is composed.
    fileprivate func requireForwards(
        to person: RecipientSnapshot?, under needs: FactNeeds?, at now: Instant
    ) throws {
        guard let person, let window = needs?.longestWindowSeconds else { return }
        try memory.require(.forwards(person.subject.id, since: now.advanced(bySeconds: -window)))
    }
}

extension SendAnswer {
    /// The answer to a send, the same the first time and every time after.
    ///
    /// - Parameter violations: Of the params; listed when they are what the send was refused for.
    package init(
        _ entry: SendEntry, of send: SendRecord, trail: TrailReference, isReplayed: Bool,
        violations: [Violation] = [], hint: String? = nil
    ) {
        self.init(
            entry, as: RequestID(send.requestID), to: send.destinationNames, trail: trail,
            isReplayed: isReplayed, violations: violations, hint: hint)
    }

    /// - Parameters:
    ///   - id: The caller's.
    ///   - names: Of the destinations.
    fileprivate init(
        _ entry: SendEntry, as id: RequestID, to names: DestinationNames, trail: TrailReference,
        isReplayed: Bool, violations: [Violation], hint: String?
    ) {
        let hides = entry.deliveries.contains { SendAnswer.refusedBeforeRecipient($0.decision.trace) }
        self.init(
            id: id, sendID: entry.send, policy: entry.policy,
            deliveries: entry.deliveries.map { record in
                Delivery(
                    destination: record.destination.map { names.name(of: $0) },
                    decision: record.decision, messageID: record.message, keyID: record.key)
            }, hidesRecipient: hides, trail: trail, isReplayed: isReplayed,
            violations: entry.overall.reason == .invalidParams ? violations : [], hint: hint,
            owed: entry.owed, isShadow: entry.isShadow)
    }
}

extension ParamsCheck {
    /// The violations as the producer sees them, in the body of the send.
    fileprivate var answered: [Violation] {
        violations.map { Violation(.body($0.pointer), $0.message) }
    }
}
