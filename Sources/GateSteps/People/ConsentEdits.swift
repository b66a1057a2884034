import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import GateRecords
import SendPlanning
package import WireProtocol

/// What is reported of a person's consents.
extension StepContext {
    /// Records that a person gave, refused or withdrew consent.
    ///
    /// - Parameters:
    ///   - isCiting: Whether the answer to a record that is there already names its entry, which is looked up for it.
    ///   - isEnded: Whether the same request withdraws it.
    package func addConsent(
        _ body: ConsentBody, of user: UserID, by caller: CallerName, at now: Instant, isCiting: Bool = true,
        isEnded: Bool = false
    ) throws -> Recorded {
        guard var edit = try beginEdit(of: user, at: now) else {
            throw Problem(.notFound, detail: "register the recipient first")
        }
        let rules = rules(at: now)
        try rules.requireMethod(body.method, by: caller)
        let address = try body.address.map { id in
            guard let address = edit.person.destination(id, on: body.channel) else {
                throw Problem(
                    .notFound, detail: "the recipient has no \(body.channel.rawValue) address of this name")
            }
            return address.tag
        }
        let said = SaidTime(body.eventTime, heardAt: now)
        // A no from a clock that is ahead is a no all the same, and counts from now; a yes is never of a later day.
        var record = edit.consent(
            body.state.ledgerState, named: body.id, of: body.purpose, on: body.channel, at: address,
            saidAt: said.counts, method: body.method, by: caller)
        record.statedTime = said.stated
        record.notice = body.notice
        record.expiresAt = try rules.end(
            of: body.purpose, as: record.state, from: body.eventTime, asked: body.expiresAt)
        record.jurisdiction = try rules.registered(body.jurisdiction, at: "jurisdiction").description
        if let earlier = edit.consents.first(where: { $0.idTag == record.idTag }) {
            // The same record again, after a lost answer, is no new event.
            guard earlier.purpose == record.purpose, earlier.channel == record.channel,
                earlier.address == address, earlier.statedTime ?? earlier.eventTime == body.eventTime,
                earlier.state == record.state, earlier.method == record.method,
                earlier.jurisdiction == record.jurisdiction, earlier.expiresAt == record.expiresAt,
                earlier.notice == record.notice
            else {
                throw Problem(
                    .idConflict,
                    detail: "this consent id was used for a record of other content; use a new id")
            }
            let entry =
                isCiting
                ? try reference(toEntry: earlier.entryIndex)
                : EntryReference(index: earlier.entryIndex, bytes: [])
            return Recorded(entry: entry, isReplayed: true, noEffect: .recordedBefore)
        }
        try rules.requireTrue(record, of: edit.before)
        edit.apply(record)
        // Only now is it known whether the yes counts. A step that throws leaves nothing.
        if !isEnded { try requireNoLaterNo(than: record, in: edit) }
        return try finish(edit, applying: record, isForEveryChannel: false)
    }

    /// Refuses a consent that counts although a later no, to something else, would have ended it, had it been known: a no to marketing,
    /// where only marketing asks for what is consented to; and a reply, which ends every consent at its number or mailbox.
    private func requireNoLaterNo(than given: ConsentRecord, in edit: PersonEdit) throws {
        guard edit.given(given.purpose, on: given.channel).contains(where: { $0.idTag == given.idTag }) else {
            return
        }
        if edit.isBeforeNoToMarketing(given) {
            throw Problem(
                .wrongState,
                detail:
                    "a no to marketing on this channel was said after `event_time`, or was received after it, and ends consent to `\(given.purpose)`, too; ask again"
            )
        }
        let address = edit.person.addresses.first { $0.tag == given.address }
        if let address, let replied = try history(of: AddressKey(address)).repliedAt,
            given.eventTime <= replied
        {
            throw Problem(
                .wrongState,
                detail:
                    "a reply from this number or mailbox was received after `event_time` and ended every consent there; ask again"
            )
        }
    }

    /// Withdraws one recorded consent, whatever the clocks say (``ConsentLedger/moment(of:in:)``). As easy as giving it
    /// (GDPR Art. 7(3)): no notice, no proof.
    package func withdrawConsent(
        _ id: String, _ body: ConsentWithdrawBody, of user: UserID, by caller: CallerName, at now: Instant
    ) throws -> Recorded {
        guard var edit = try beginEdit(of: user, at: now),
            let given = edit.consents.first(where: { $0.idTag == edit.subject.tag(.consent, id) }),
            given.method != .sharedAddress
        else { throw Problem(.notFound, detail: "no consent of this id is recorded") }
        if let reply = body.reply, policy.bundle.channels.smsRevocation?.contains(reply) != true {
            let words = policy.bundle.channels.smsRevocation?.words[LanguageTag.last.description] ?? []
            throw Problem(
                wrong: "reply",
                "expected one of the words of `channels.yaml` (\(words.joined(separator: ", ")), and others), so nothing was withdrawn; if another word meant it, withdraw without `reply`"
            )
        }
        let said = SaidTime(body.eventTime ?? now, heardAt: now)
        let method = body.method ?? (body.reply == nil ? given.method : .reply(on: given.channel))
        var withdrawal = edit.withdrawal(of: given, saidAt: said.counts, method: method, by: caller)
        withdrawal.statedTime = said.stated
        // An objection, and a reply, are about the number or mailbox as well, whoever has it (SG-0045).
        if let category = Category(rawValue: given.purpose.text) {
            let places =
                body.isForEveryChannel
                ? edit.person.addresses.filter { $0.verifiedAt != nil }
                : method.isReply ? edit.person.addresses.filter { $0.tag == given.address } : []
            let last = try shareNo(
                category, at: places, besides: edit.subject.id, by: caller, saidAt: said.counts, at: now)
            if let last { return Recorded(entry: last, isUnfinished: true) }
        }
        edit.apply(withdrawal)
        if body.isForEveryChannel { edit.endEverywhere(withdrawal, of: given) }
        return try finish(edit, applying: withdrawal, isForEveryChannel: body.isForEveryChannel)
    }

    /// Writes what was said of a consent, decides again what waits for the person, and says what became of it.
    private func finish(
        _ edit: PersonEdit, applying record: ConsentRecord, isForEveryChannel: Bool
    ) throws -> Recorded {
        guard let entry = try write(edit) else {
            preconditionFailure("a record was applied and is no change")
        }
        var recorded = Recorded(
            entry: entry, noEffect: edit.noEffect(of: record, isForEveryChannel: isForEveryChannel))
        if record.state == .shown { return recorded }
        let person = edit.person
        try reconsider(edit.subject.id, as: person, because: .consentChanged, at: edit.now)
        guard let category = Category(rawValue: record.purpose.text), record.state != .given else {
            return recorded
        }
        try recordDisabling(
            by: .preference, of: category.rawValue,
            on: isForEveryChannel ? Channel.allCases : [record.channel], at: record.address,
            from: edit.before.person, to: person, at: edit.now)
        guard isNotOptional(category, where: record, of: person, at: edit.now),
            recorded.noEffect != .newerWord
        else { return recorded }
        recorded.noEffect = .notOptional
        recorded.notOptional = NotOptional(
            law: policy.category(category).rationale.law, because: policy.category(category).rationale.because
        )
        return recorded
    }

    /// Whether a consent that ended was to what goes on without one: a category that only a step-up switches off (security), at a
    /// place where no law asks for a consent to it.
    private func isNotOptional(
        _ category: GateVocabulary.Category, where record: ConsentRecord, of person: RecipientSnapshot,
        at now: Instant
    ) -> Bool {
        policy.category(category).switchOff == .stepUp
            && isOn(category.rawValue, on: record.channel, at: record.address, of: person, at: now)
    }
}

extension ConsentBody.State {
    /// Its name is the same.
    var ledgerState: ConsentRecord.State { ConsentRecord.State(rawValue: rawValue)! }
}

/// When something was said: from when it counts, and what was stated where that is a later time. A phone's clock may be
/// hours ahead; a no counts from the earlier of the two, and the stated time stays as evidence.
struct SaidTime {
    let counts: Instant
    /// `nil` where it is the time that counts.
    let stated: Instant?

    init(_ stated: Instant, heardAt now: Instant) {
        counts = min(stated, now)
        self.stated = stated > now ? stated : nil
    }
}
