import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import OpenSSLCrypto
import GateRecords
package import WireProtocol

/// Consent and preference are one will: whatever changes one changes the other in the same transaction.
extension StepContext {
    /// Records that a person gave, refused or withdrew consent.
    ///
    /// - Parameter isCiting: Whether the answer to a record that is there already names its entry, which is looked up for it.
    package func addConsent(
        _ body: ConsentBody, of user: UserID, by caller: CallerName, at now: Instant, isCiting: Bool = true
    ) throws -> Recorded {
        guard let person = try RecipientWithLedger.load(user, from: memory) else {
            throw StepRefusal(.notFound, detail: "register the recipient first")
        }
        let rules = rules(at: now)
        try rules.requireMethod(body.method, by: caller)
        let address = try body.address.map { id in
            guard let address = person.person.destination(id, on: body.channel) else {
                throw StepRefusal(
                    .notFound, detail: "the recipient has no \(body.channel.rawValue) address of this name")
            }
            return address.tag
        }
        let shown = ConsentRecord.NoticeReference(
            id: body.notice.id, version: body.notice.version, sha256: body.notice.sha256,
            language: body.notice.language)
        let idTag = person.subject.tag(.consent, body.id)
        let state = body.state.ledgerState
        let ends = try rules.end(of: body.purpose, as: state, from: body.eventTime, asked: body.expiresAt)
        let jurisdiction = try rules.registered(body.jurisdiction, at: "jurisdiction").description
        if let earlier = person.consents.first(where: { $0.idTag == idTag }) {
            // The same record again, after a lost answer, is no new event.
            guard earlier.purpose == body.purpose, earlier.channel == body.channel,
                earlier.address == address, earlier.statedTime ?? earlier.eventTime == body.eventTime,
                earlier.state == state, earlier.method == body.method,
                earlier.jurisdiction == jurisdiction, earlier.expiresAt == ends,
                earlier.notice == shown
            else {
                throw StepRefusal(
                    .idConflict,
                    detail: "this consent id was used for a record of other content; use a new id")
            }
            let entry =
                isCiting
                ? try reference(toEntry: earlier.entryIndex)
                : EntryReference(index: earlier.entryIndex, bytes: [])
            return Recorded(entry, isReplayed: true, noEffect: .recordedBefore)
        }
        // A no from a clock that is ahead is a no all the same, and counts from now; a yes is never of a later day.
        let said = SaidTime(body.eventTime, heardAt: now)
        let record = ConsentRecord(
            subject: person.subject.id, id: body.id, idTag: idTag, purpose: body.purpose,
            channel: body.channel, address: address, state: state, eventTime: said.counts,
            statedTime: said.stated, receivedAt: now, method: body.method, source: caller,
            jurisdiction: jurisdiction, notice: shown, expiresAt: ends, withdraws: nil,
            previousHash: person.consents.last.map(Self.hash) ?? ""
        )
        try rules.requireTrue(record, of: person)
        let recorded = try append(record, of: person, by: caller, at: now)
        try recordDisabling(record, on: [record.channel], before: person.person, at: now)
        return record.state == .refused ? try notOptional(recorded, record, at: now) : recorded
    }

    /// Withdraws one recorded consent, whatever the clocks say (``ConsentLedger/moment(of:in:)``). As easy as giving it
    /// (GDPR Art. 7(3)): no notice, no proof.
    package func withdrawConsent(
        _ id: String, _ body: ConsentWithdrawBody, of user: UserID, by caller: CallerName, at now: Instant
    ) throws -> Recorded {
        guard let person = try RecipientWithLedger.load(user, from: memory),
            let given = person.consents.first(where: { $0.idTag == person.subject.tag(.consent, id) }),
            given.method != .sharedAddress
        else { throw StepRefusal(.notFound, detail: "no consent of this id is recorded") }
        if let reply = body.reply, policy.bundle.channels.smsRevocation?.contains(reply) != true {
            let words = policy.bundle.channels.smsRevocation?.words[LanguageTag.last.description] ?? []
            throw StepRefusal(
                .invalid,
                violations: [
                    Violation(
                        .body(JSONPointer(["reply"])),
                        "expected one of the words of `channels.yaml` (\(words.joined(separator: ", ")), and others), so nothing was withdrawn; if another word meant it, withdraw without `reply`"
                    )
                ])
        }
        let said = SaidTime(body.eventTime ?? now, heardAt: now)
        let eventTime = said.counts
        let method = body.method ?? (body.reply == nil ? given.method : .reply(on: given.channel))
        let category = Category(rawValue: given.purpose.text)
        var withdrawal = self.withdrawal(
            of: given, at: eventTime, method: method, by: caller, person: person, receivedAt: now)
        withdrawal.statedTime = said.stated
        // An objection, and a reply, are about the number or mailbox as well, whoever has it (SG-0045).
        if let category {
            let places =
                body.isForEveryChannel
                ? person.person.addresses.filter { $0.verifiedAt != nil }
                : method.isReply
                    ? person.person.addresses.filter { $0.tag == given.address } : []
            if let last = try shareNo(category, at: places, besides: person.subject.id, by: caller, at: now) {
                return Recorded(last, isUnfinished: true)
            }
        }
        let recorded = try append(withdrawal, of: person, by: caller, at: now)
        guard body.isForEveryChannel else {
            try recordDisabling(withdrawal, on: [withdrawal.channel], before: person.person, at: now)
            return try notOptional(recorded, given, at: now)
        }
        let effect = try endEverywhere(withdrawal, of: given, person, at: now)
        try recordDisabling(withdrawal, on: Channel.allCases, before: person.person, at: now)
        return try notOptional(Recorded(recorded.entry, noEffect: effect), given, at: now)
    }

    /// Ends on every channel what a withdrawal of one consent, which is recorded, ended on its own.
    ///
    /// - Parameter person: As they were before the withdrawal.
    /// - Returns: Why both changed nothing; `nil` where they did.
    func endEverywhere(
        _ withdrawal: ConsentRecord, of given: ConsentRecord, _ person: RecipientWithLedger, at now: Instant
    ) throws -> NoEffect? {
        let (category, eventTime) = (Category(rawValue: given.purpose.text), withdrawal.eventTime)
        let (method, caller) = (withdrawal.method, withdrawal.source)
        var after = try reloaded(person)
        for channel in Channel.allCases {
            for purpose in category.map(policy.purposes(endedWith:)) ?? [given.purpose] {
                after = try withdrawConsents(
                    to: purpose, on: channel, of: after, at: eventTime, method: method, by: caller,
                    receivedAt: now)
            }
            // What only a step-up switches off is not switched off by an objection.
            guard let category, policy.category(category).switchOff == .anyone else { continue }
            let objection = PreferenceRecord(
                subject: person.subject.id, scope: category.rawValue, channel: channel, destination: nil,
                state: .userOff, source: method.preferenceSource, at: eventTime, caller: caller)
            try recordObjection(objection, of: after, at: now)
        }
        after = try reloaded(person)
        try reconsider(person.subject.id, as: after.person, because: .consentChanged, at: now)
        let isStillGiven = Channel.allCases.contains {
            !ConsentLedger.givenScopes(of: given.purpose, channel: $0, in: after.consents).isEmpty
        }
        return ConsentsAndChoices(after) == ConsentsAndChoices(person)
            ? isStillGiven ? .newerWord : .alreadySo : nil
    }

    /// The answer to a consent that ended, where what it was to goes on without one: a category that only a step-up switches
    /// off (security), at a place where no law asks for a consent to it.
    private func notOptional(
        _ recorded: Recorded, _ record: ConsentRecord, at now: Instant
    ) throws -> Recorded {
        guard let category = Category(rawValue: record.purpose.text),
            policy.category(category).switchOff == .stepUp, recorded.noEffect != .newerWord,
            let subject = try memory.subject(record.subject),
            let person = try RecipientSnapshot.load(subject, from: memory)
        else { return recorded }
        let place = record.address.flatMap { person.destination(tagged: $0, on: record.channel) }
        let standing = PreferenceEffect(
            scope: category.rawValue, channel: record.channel, destination: place, person: person,
            facts: FactsLoading(policy: policy, now: now))
        guard standing.isOn else { return recorded }
        var answer = recorded
        answer.noEffect = .notOptional
        answer.notOptional = NotOptional(
            law: policy.category(category).rationale.law, because: policy.category(category).rationale.because
        )
        return answer
    }

    /// Ends consent to a purpose on one channel up to a moment.
    ///
    /// Each consent that counts is withdrawn by name. Where none was given the withdrawal is a record all the same: a
    /// law that asks for no consent asks for one after an objection, which a choice made later does not undo
    /// (15 U.S.C. 7704(a)(4)).
    ///
    /// - Parameters:
    ///   - address: The only one whose consent ends; `nil` for every one of the channel, those registered later
    ///     included.
    ///   - method: How it was said.
    /// - Returns: The person as the ledger knows them now.
    private func withdrawConsents(
        to purpose: Purpose, on channel: Channel, for address: Tag? = nil, of person: RecipientWithLedger,
        at eventTime: Instant, method: ConsentMethod, by caller: CallerName, receivedAt now: Instant
    ) throws -> RecipientWithLedger {
        var person = person
        for given in ConsentLedger.givenScopes(of: purpose, channel: channel, in: person.consents)
        where given.eventTime <= eventTime && (address == nil || given.address == address) {
            let record = withdrawal(
                of: given, at: eventTime, method: method, by: caller, person: person, receivedAt: now)
            try appendLedger(record, at: now)
            person = try reloaded(person)
        }
        let isRecorded = person.consents.contains {
            $0.state == .withdrawn && $0.purpose == purpose && $0.channel == channel && $0.address == address
                && $0.receivedAt == now && $0.eventTime == eventTime
        }
        if isRecorded { return person }
        try appendLedger(
            withdrawal(
                to: purpose, on: channel, for: address, at: eventTime, method: method, by: caller,
                person: person, receivedAt: now), at: now)
        return try reloaded(person)
    }

    /// Carries noes over to the address that replaces an old one under the same id, but for those that a newer yes was given after
    /// at the new one. Consents are not carried over.
    func carryNoes(
        from old: Tag, to new: Tag, on channel: Channel, of subject: Subject, by caller: CallerName,
        at now: Instant
    ) throws {
        guard var person = try RecipientWithLedger.load(subject, from: memory) else { return }
        let inForce = person.person.state.consentsInForce.byScope
        let ended = inForce.filter {
            $0.key.channel == channel && $0.key.address == old && $0.value.state != .given
        }
        for (scope, no) in ended.sorted(by: { $0.key.purpose.text < $1.key.purpose.text }) {
            let there = inForce[.init(purpose: scope.purpose, channel: channel, address: new)]
            guard there.map({ $0.state == .given && $0.moment <= no.moment }) ?? true else { continue }
            let withdrawal = withdrawal(
                to: scope.purpose, on: channel, for: new, at: now, method: no.method, by: caller,
                person: person, receivedAt: now)
            _ = try append(withdrawal, of: person, by: caller, at: now)
            person = try reloaded(person)
        }
        let choices = person.person.state.preferences.filter { $0.channel == channel }
        for no in choices where no.destination == old && no.state.isOff && no.source != .driftAudit {
            let there = choices.first { $0.destination == new && $0.scope == no.scope }
            guard there.map({ !$0.state.isOff && $0.at <= no.at }) ?? true else { continue }
            var here = no
            here.destination = new
            try appendPreference(here, receivedAt: now)
        }
    }

    /// Records several choices in one transaction, each judged as alone.
    ///
    /// The step throws at the first that is refused, and a step that throws leaves nothing. A choice is judged after those
    /// before it, so that its entry says what it changed.
    ///
    /// - Throws: ``StepRefusal`` of ``setPreference(_:scope:of:by:saidAt:at:)``, with the place of the refused choice in front.
    package func setPreferences(
        _ body: PreferencesBody, of user: UserID, by caller: CallerName, at now: Instant
    ) throws -> Citing<PreferencesRecordedAnswer> {
        let recorded = try body.choices.enumerated().map { position, choice in
            do {
                let recorded = try setPreference(
                    choice.choice, scope: choice.scope, of: user, by: caller, at: now)
                guard !recorded.isUnfinished else {
                    throw StepRefusal(
                        .unavailable,
                        detail:
                            "so many people have this number or mailbox that it is switched off for a part of them at a time; put this choice alone"
                    )
                }
                return (choice, recorded.entry, recorded.noEffect)
            } catch var refusal as StepRefusal {
                refusal.detail = "`/preferences/\(position)`: \(refusal.description); nothing was recorded"
                throw refusal
            }
        }
        return { places in
            PreferencesRecordedAnswer(
                choices: recorded.map { choice, entry, noEffect in
                    PreferencesRecordedAnswer.Choice(
                        scope: choice.scope, channel: choice.choice.channel,
                        destination: choice.choice.destination?.text,
                        recorded: RecordedAnswer(trail: places[entry], noEffect: noEffect))
                })
        }
    }

    /// Records a choice, and the consent that follows from it.
    ///
    /// - Parameter saidAt: When it was chosen, of one that is imported; `nil` for now.
    package func setPreference(
        _ body: PreferenceBody, scope: String, of user: UserID, by caller: CallerName,
        saidAt: Instant? = nil, at now: Instant
    ) throws -> Recorded {
        guard let person = try RecipientWithLedger.load(user, from: memory) else {
            throw StepRefusal(.notFound, detail: "register the recipient first")
        }
        let source = body.source
        var choice = PreferenceRecord(
            subject: person.subject.id, scope: scope, channel: body.channel ?? .push, destination: nil,
            state: body.storedState, source: source, at: saidAt ?? now, caller: caller)
        try rules(at: now).requireTrue(choice)
        let destination = try body.destination.flatMap { id in
            try body.channel.flatMap { channel -> Tag? in
                if let destination = person.person.destination(id, on: channel) { return destination.tag }
                // A link lives on in an inbox after its address or device is gone. Which number or mailbox that was is
                // not known any more, so the no holds for the whole channel.
                if source == .unsubscribeLink, body.storedState.isOff { return nil }
                throw StepRefusal(
                    .notFound, detail: "the recipient has no such destination on \(channel.rawValue)")
            }
        }
        choice.destination = destination
        // An objection, and a link in a message, are about the number or mailbox as well, whoever has it (SG-0045). A link
        // that is reported without its mailbox was in one of the person's.
        if let category = Category(rawValue: scope), choice.state.isOff {
            let verified = person.person.addresses.filter { $0.verifiedAt != nil }
            let places =
                body.channel == nil
                ? verified
                : source != .unsubscribeLink
                    ? []
                    : body.destination == nil
                        ? verified.filter { $0.channel == body.channel }
                        : person.person.addresses.filter { $0.tag == destination }
            if let last = try shareNo(category, at: places, besides: person.subject.id, by: caller, at: now) {
                return Recorded(last, isUnfinished: true)
            }
        }
        // An objection names no channel and holds for all of them, in this one transaction.
        return try choose(
            choice, on: body.channel.map { [$0] } ?? Channel.allCases,
            isForEveryChannel: body.channel == nil, of: person, heardAt: now)
    }

    /// Shares a no that cannot be taken back with everybody else who registered some numbers or mailboxes, and with who registers them
    /// later.
    ///
    /// - Returns: An entry where it does not hold for all of them yet; see ``shareNo(_:with:besides:by:at:)``.
    private func shareNo(
        _ category: GateVocabulary.Category, at places: [AddressRecord], besides own: SubjectID,
        by caller: CallerName, at now: Instant
    ) throws -> EntryReference? {
        guard policy.category(category).switchOff == .anyone else { return nil }
        let addresses = places.filter { $0.channel != .push }.map(AddressKey.init)
        let holders = try addresses.flatMap { address in
            try memory.holders(of: address).map { ($0, address) }
        }
        if let last = try shareNo(category, with: holders, besides: own, by: caller, at: now).unfinished {
            return last
        }
        for address in addresses { try remember(at: address) { $0.add(category, by: nil, at: now) } }
        return nil
    }

    /// Switches a category off for everybody else who registered some numbers or mailboxes, as a link in their own message would:
    /// a no that came by an address, or an objection of somebody who has it, is about the address (SG-0045). At most
    /// ``replyHolderCountMax`` people in one step.
    ///
    /// - Returns: The choices that were recorded, and where it does not hold for all of them yet the last entry: an alarm was
    ///   raised, and the same act goes on with the others.
    func shareNo(
        _ category: GateVocabulary.Category,
        with holders: [(SubjectID, AddressKey)],
        besides own: SubjectID, by caller: CallerName, at now: Instant
    ) throws -> (choices: [PreferenceRecord], unfinished: EntryReference?) {
        var choices: [PreferenceRecord] = []
        var last: EntryReference?
        for (holder, address) in holders where holder != own {
            guard let no = try sharedNo(to: category, at: address, of: holder, by: caller, at: now) else {
                continue
            }
            guard choices.count < Self.replyHolderCountMax else {
                alarm(
                    "a no came by a number or mailbox of more than \(Self.replyHolderCountMax) people, and counts for so many of them at a time. Find out why so many have one address"
                )
                return (choices, last)
            }
            last = try choose(no.choice, on: [no.choice.channel], of: no.person).entry
            choices.append(no.choice)
        }
        return (choices, nil)
    }

    /// The choice that switches a category off for a person because of another's no at the same number or mailbox; `nil` where it
    /// would change nothing.
    func sharedNo(
        to category: GateVocabulary.Category, at address: AddressKey, of holder: SubjectID,
        by caller: CallerName, at now: Instant
    ) throws -> (choice: PreferenceRecord, person: RecipientWithLedger)? {
        guard policy.category(category).switchOff == .anyone, let subject = try memory.subject(holder),
            let person = try RecipientWithLedger.load(subject, from: memory),
            let place = person.person.addresses[address]?.tag
        else { return nil }
        let link = UnsubscribeLink(
            of: subject, category: category, channel: address.channel, destination: place)
        guard try !LinkTarget.load(link, from: memory).isMuted(under: policy, byAnybody: true) else {
            return nil
        }
        let choice = PreferenceRecord(
            subject: holder, scope: category.rawValue, channel: address.channel, destination: place,
            state: .userOff, source: .sharedAddress, at: now, caller: caller)
        return (choice, person)
    }

    /// Records one choice on each of some channels, and the consent that follows from it.
    ///
    /// - Parameter heardAt: When it was reported, of one that was made before; `nil` for the moment when it was made.
    @discardableResult
    func choose(
        _ choice: PreferenceRecord, on channels: [Channel], isForEveryChannel: Bool = false,
        of recipient: RecipientWithLedger, heardAt: Instant? = nil
    ) throws -> Recorded {
        let (now, category) = (heardAt ?? choice.at, Category(rawValue: choice.scope))
        var (choice, person) = (choice, recipient)
        let before = ConsentsAndChoices(person)
        var trail: EntryReference?
        for channel in channels {
            choice.channel = channel
            let recorded = try appendPreference(choice, receivedAt: now)
            trail = trail ?? recorded
            let act = PersonAct(choice, isForEveryChannel: isForEveryChannel)
            guard let category, act.effect(at: choice.level, on: category).consent == .withdrawn else {
                continue
            }
            for purpose in policy.purposes(endedWith: category) {
                person = try withdrawConsents(
                    to: purpose, on: channel, for: choice.level == .address ? choice.destination : nil,
                    of: person, at: choice.at, method: choice.source.consentMethod(on: channel),
                    by: choice.caller, receivedAt: now)
            }
        }
        guard let trail else { preconditionFailure("a preference was set on no channel") }
        person = try reloaded(person)
        if let category, choice.state == .userOn, channels.contains(.push) {
            try endSuppressions(of: category, of: person.person.state, at: now)
            person = try reloaded(person)
        }
        try reconsider(person.subject.id, as: person.person, because: .preferenceChanged, at: now)
        let isNews = ConsentsAndChoices(person) != before
        // What was switched off elsewhere before says nothing of what was sent here.
        if isNews, choice.state.isOff, choice.at == now {
            try recordDisabling(
                by: .preference, of: choice.scope, on: channels, at: choice.destination,
                before: recipient.person, at: now)
        }
        return Recorded(trail, noEffect: isNews ? nil : .alreadySo)
    }

    /// Ends what one person agreed to at a number or mailbox, because its owner replied so: every consent that counts
    /// there, whatever it is to, and marketing, whether consented to or not. A person who had already said so changes
    /// and records nothing by repeating it.
    ///
    /// A category that only a step-up switches off (security notices) goes on wherever the law asks no consent for
    /// it.
    ///
    /// - Returns: Whether this ended anything: a consent that counted, or what let messages of a category go there without one.
    ///   What the person said is recorded also where it did not.
    func stop(
        _ address: AddressKey, of subject: SubjectID, by caller: CallerName, at now: Instant
    ) throws -> Bool {
        guard let subject = try memory.subject(subject),
            let person = try RecipientWithLedger.load(subject, from: memory),
            let place = person.person.addresses[address]
        else { return false }
        return try stop(place, of: person, by: caller, at: now)
    }

    func stop(
        _ address: AddressRecord, of recipient: RecipientWithLedger, by caller: CallerName, at now: Instant
    ) throws -> Bool {
        var person = recipient
        let before = person
        let (channel, place) = (address.channel, address.tag)
        let everyText = endsEveryText(on: channel, at: now)
        let method = ConsentMethod.reply(on: channel)
        let ofMarketing = policy.purposes(endedWith: .marketing)
        let purposes = Set(person.consents.map(\.purpose)).union(ofMarketing)
        var ended = Set([Category.marketing])
        var endsConsent = false
        for purpose in purposes.sorted(by: { $0.text < $1.text }) {
            // A consent to the whole channel is one to this address.
            let given = ConsentLedger.givenScopes(of: purpose, channel: channel, in: person.consents)
                .filter { $0.address == nil || $0.address == place }
            for consent in given {
                if consent.expiresAt.map({ now < $0 }) ?? true { endsConsent = true }
                try appendLedger(
                    withdrawal(
                        of: consent, at: now, method: method, by: caller, person: person, receivedAt: now),
                    at: now)
                person = try reloaded(person)
            }
            if !given.isEmpty, let category = Category(rawValue: purpose.text) { ended.insert(category) }
            let here = ConsentsInForce.Scope(purpose: purpose, channel: channel, address: place)
            guard ofMarketing.contains(purpose) || !given.isEmpty,
                ConsentLedger.newest(in: person.consents)[here]?.state != .withdrawn
            else { continue }
            try appendLedger(
                withdrawal(
                    to: purpose, on: channel, for: place, at: now, method: method, by: caller, person: person,
                    receivedAt: now), at: now)
            person = try reloaded(person)
        }
        // A mute by a link could be taken back as long as nothing else was said: this is something else.
        let muted = person.person.state.undoableMutes(on: channel, at: place, now: now)
        for category in Category.allCases
        where (everyText || ended.contains(category) || muted.contains(category))
            && policy.category(category).switchOff == .anyone
        {
            let isOff = person.person.preference(category.rawValue, channel, at: place).isOff
            guard !isOff || muted.contains(category) else { continue }
            try appendPreference(
                PreferenceRecord(
                    subject: person.subject.id, scope: category.rawValue, channel: channel,
                    destination: place, state: .userOff, source: .reply, at: now, caller: caller),
                receivedAt: now)
        }
        person = try reloaded(person)
        guard ConsentsAndChoices(person) != ConsentsAndChoices(before) else { return false }
        try reconsider(person.subject.id, as: person.person, because: .consentChanged, at: now)
        // Nothing goes to an address that nobody verified, whatever is on.
        return endsConsent
            || address.verifiedAt != nil
                && Category.allCases.contains { category in
                    isOn(category.rawValue, on: channel, at: place, of: before.person, at: now)
                        && !isOn(category.rawValue, on: channel, at: place, of: person.person, at: now)
                }
    }

    /// Whether ``stop(_:of:by:at:)`` would change nothing, told from the state alone.
    func isStopped(
        _ address: AddressKey, of subject: SubjectID, everyText: Bool, at now: Instant
    ) throws -> Bool {
        guard let state = try memory.state(of: subject),
            let place = state.addresses[address]?.tag
        else { return true }
        guard state.undoableMutes(on: address.channel, at: place, now: now).isEmpty else { return false }
        let inForce = state.consentsInForce
        guard inForce.given(on: address.channel, at: place).isEmpty else { return false }
        for purpose in policy.purposes(endedWith: .marketing) {
            let here = ConsentsInForce.Scope(purpose: purpose, channel: address.channel, address: place)
            guard inForce.byScope[here]?.state == .withdrawn else { return false }
        }
        return categories(endedWith: everyText).allSatisfy {
            state.preference($0.rawValue, address.channel, at: place).isOff
        }
    }

    /// The categories that a withdrawal at a number or mailbox switches off whether they were consented to or not.
    func categories(endedWith everyText: Bool) -> [GateVocabulary.Category] {
        Category.allCases.filter {
            (everyText || $0 == .marketing) && policy.category($0).switchOff == .anyone
        }
    }

    func append(
        _ record: ConsentRecord, of person: RecipientWithLedger, by caller: CallerName, at now: Instant
    ) throws -> Recorded {
        let trail = try appendLedger(record, at: now)
        // A notice that was only shown is no will.
        if record.state == .shown { return Recorded(trail, noEffect: .shownOnly) }
        try syncPreference(record, of: try reloaded(person), by: caller, at: now)
        if record.state == .given, record.channel == .push,
            let category = Category(rawValue: record.purpose.text)
        {
            try endSuppressions(of: category, of: try reloaded(person).person.state, at: now)
        }
        try endWhatElseIsAsked(with: record, of: try reloaded(person), by: caller, at: now)
        let after = try reloaded(person)
        try reconsider(person.subject.id, as: after.person, because: .consentChanged, at: now)
        guard ConsentsAndChoices(after) == ConsentsAndChoices(person) else { return Recorded(trail) }
        let fact = ConsentLedger.fact(
            purpose: record.purpose, channel: record.channel, address: record.address, in: after.consents)
        let isSo = (fact.state == .given) == (record.state == .given)
        return Recorded(trail, noEffect: isSo ? .alreadySo : .newerWord)
    }

    /// A refusal of marketing that holds also ends the consents that only marketing asks for and that were given at
    /// the same place up to then.
    private func endWhatElseIsAsked(
        with record: ConsentRecord, of person: RecipientWithLedger, by caller: CallerName, at now: Instant
    ) throws {
        guard record.state != .given, let category = Category(rawValue: record.purpose.text) else { return }
        let fact = ConsentLedger.fact(
            purpose: record.purpose, channel: record.channel, address: record.address, in: person.consents)
        guard fact.state != .given else { return }
        let moment = ConsentLedger.moment(of: record, in: person.consents)
        var person = person
        for purpose in policy.purposes(endedWith: category) where purpose != record.purpose {
            let given = ConsentLedger.givenScopes(of: purpose, channel: record.channel, in: person.consents)
                .contains {
                    $0.eventTime <= moment && (record.address == nil || $0.address == record.address)
                }
            guard given else { continue }
            person = try withdrawConsents(
                to: purpose, on: record.channel, for: record.address, of: person, at: moment,
                method: record.method, by: caller, receivedAt: now)
        }
    }

    /// Records the preference that goes with a consent record. The record may be older than the newest one in the
    /// ledger, and older than a choice made since. The newest counts, and at equal times the refusal.
    private func syncPreference(
        _ record: ConsentRecord, of person: RecipientWithLedger, by caller: CallerName, at now: Instant
    ) throws {
        let fact = ConsentLedger.fact(
            purpose: record.purpose, channel: record.channel, address: record.address, in: person.consents)
        let level: PersonAct.Level = record.address == nil ? .account : .address
        guard let category = Category(rawValue: record.purpose.text),
            let state = PersonAct(record)?.effect(at: level, on: category).preference,
            (fact.state == .given) == (record.state == .given),
            // What only a step-up switches off is not switched off by the end of a consent.
            !state.isOff || policy.category(category).switchOff == .anyone
        else { return }
        let moment = ConsentLedger.moment(of: record, in: person.consents)
        var places = [record.address]
        // A yes to texts at one number overrides an older off for the whole channel.
        if record.address != nil, state == .userOn,
            person.person.preference(category.rawValue, record.channel, at: nil).isOff
        {
            places.append(nil)
        }
        let choices = try choices(of: category.rawValue, on: record.channel, by: person)
        for place in places
        where person.person.preference(category.rawValue, record.channel, at: place) != state {
            let choice = choices.first { $0.destination == place }
            if let choice,
                choice.at > moment || choice.at == moment && state == .userOn && choice.state != .userOn
            {
                continue
            }
            if let choice, place == nil, let address = record.address {
                // The off that is overridden covered every other address too, and stays recorded for those.
                try recordObjection(choice, besides: [address], of: person, at: now)
            }
            try appendPreference(
                PreferenceRecord(
                    subject: person.subject.id, scope: category.rawValue, channel: record.channel,
                    destination: place, state: state, source: record.method.preferenceSource,
                    at: moment, caller: caller),
                receivedAt: now)
        }
    }

    /// The newest choice at each place of a channel where one was ever made.
    private func choices(
        of scope: String, on channel: Channel, by person: RecipientWithLedger
    ) throws -> [PreferenceRecord] {
        try memory.preferences(of: person.subject.id).filter { $0.scope == scope && $0.channel == channel }
    }

    /// Records an objection to a whole channel, as far as nothing newer stands: for the account; or, where a newer yes
    /// was said at some of its destinations, at each of the others.
    private func recordObjection(
        _ objection: PreferenceRecord, of person: RecipientWithLedger, at now: Instant
    ) throws {
        let choices = try choices(of: objection.scope, on: objection.channel, by: person)
        if let own = choices.first(where: { $0.destination == nil }),
            own.state.isOff || own.at > objection.at
        {
            return
        }
        let wanted = choices.filter { $0.state == .userOn && $0.at > objection.at }.compactMap(\.destination)
        guard wanted.isEmpty else {
            return try recordObjection(objection, besides: wanted, of: person, at: now)
        }
        try appendPreference(objection, receivedAt: now)
    }

    /// Records an objection at each destination of its channel but some, where nothing newer was said.
    private func recordObjection(
        _ objection: PreferenceRecord, besides wanted: [Tag], of person: RecipientWithLedger, at now: Instant
    ) throws {
        let choices = try choices(of: objection.scope, on: objection.channel, by: person)
        for destination in person.person.destinations(on: objection.channel).map(\.tag)
        where !wanted.contains(destination) {
            let own = choices.first { $0.destination == destination }
            if let own, own.state.isOff || own.at > objection.at { continue }
            var here = objection
            here.destination = destination
            try appendPreference(here, receivedAt: now)
        }
    }

    @discardableResult
    func appendLedger(_ record: ConsentRecord, at now: Instant) throws -> EntryReference {
        // The entry's own index is the ledger's way back to the trail.
        var record = record
        record.entryIndex = upcomingIndex(ofChangeOf: record.subject)
        return try self.record(.consent(record), of: record.subject, by: record.source, at: now)
    }

    @discardableResult
    func appendPreference(
        _ choice: PreferenceRecord, receivedAt now: Instant
    ) throws -> EntryReference {
        try record(.preference(choice), of: choice.subject, by: choice.caller, at: now)
    }

    private func withdrawal(
        of given: ConsentRecord, at eventTime: Instant, method: ConsentMethod, by caller: CallerName,
        person: RecipientWithLedger, receivedAt now: Instant
    ) -> ConsentRecord {
        var record = withdrawal(
            to: given.purpose, on: given.channel, for: given.address, named: given.id, at: eventTime,
            method: method, by: caller, person: person, receivedAt: now)
        record.jurisdiction = given.jurisdiction
        record.withdraws = given.idTag
        return record
    }

    /// A withdrawal that names no record.
    private func withdrawal(
        to purpose: Purpose, on channel: Channel, for address: Tag?, named name: String? = nil,
        at eventTime: Instant, method: ConsentMethod, by caller: CallerName, person: RecipientWithLedger,
        receivedAt now: Instant
    ) -> ConsentRecord {
        let position = person.consents.count + 1
        let id = "\(name ?? "\(purpose)/\(channel.rawValue)")/withdrawn/\(position)"
        return ConsentRecord(
            subject: person.subject.id, id: id, idTag: person.subject.tag(.consent, id), purpose: purpose,
            channel: channel, address: address, state: .withdrawn, eventTime: eventTime, receivedAt: now,
            method: method, source: caller, jurisdiction: nil, notice: nil, expiresAt: nil, withdraws: nil,
            previousHash: person.consents.last.map(Self.hash) ?? "")
    }

    func reloaded(_ person: RecipientWithLedger) throws -> RecipientWithLedger {
        guard let again = try RecipientWithLedger.load(person.subject, from: memory) else {
            preconditionFailure("a person vanished inside the transaction that changed them")
        }
        return again
    }

    /// Chains the ledger: SHA-256 over the canonical form of one record, lower-case hexadecimal. Everything that
    /// proves a consent is under it: what was shown, under whose law, until when.
    static func hash(_ record: ConsentRecord) -> String {
        var object: JSONObject = [
            "sequence": .integer(record.sequence), "consent": .string(record.idTag.hexadecimal),
            "purpose": .string(record.purpose.text), "channel": .string(record.channel.rawValue),
            "state": .string(record.state.rawValue), "event_time": .integer(record.eventTime.milliseconds),
            "received_at": .integer(record.receivedAt.milliseconds),
            "method": .string(record.method.rawValue), "source": .string(record.source.text),
            "previous": .string(record.previousHash),
        ]
        if let address = record.address { object["address"] = .string(address.hexadecimal) }
        if let jurisdiction = record.jurisdiction { object["jurisdiction"] = .string(jurisdiction) }
        if let stated = record.statedTime { object["stated_time"] = .integer(stated.milliseconds) }
        if let expiry = record.expiresAt { object["expires_at"] = .integer(expiry.milliseconds) }
        if let withdraws = record.withdraws { object["withdraws"] = .string(withdraws.hexadecimal) }
        if let notice = record.notice {
            object["notice"] = [
                "id": .string(notice.id), "version": .string(notice.version),
                "sha256": .string(notice.sha256), "language": .string(notice.language),
            ]
        }
        return Hexadecimal.encode(SHA256.digest(CanonicalJSON.write(.object(object))).bytes)
    }
}

/// The consents and preferences of a person, compared before and after an act to tell whether it had an effect.
private struct ConsentsAndChoices: Equatable {
    /// Of each scope where something was said, the record that gives; `nil` where the answer is no.
    private let consents: [ConsentsInForce.Scope: Tag?]
    private let preferences: Set<Choice>

    private struct Choice: Hashable {
        var scope: String
        var channel: Channel
        var destination: Tag?
        var state: PreferenceState
    }

    init(_ person: RecipientWithLedger) {
        consents = ConsentLedger.newest(in: person.consents).mapValues { $0.state == .given ? $0.idTag : nil }
        preferences = Set(
            person.person.state.preferences.filter { $0.state != .default }.map {
                Choice(scope: $0.scope, channel: $0.channel, destination: $0.destination, state: $0.state)
            })
    }
}

extension ConsentBody.State {
    fileprivate var ledgerState: ConsentRecord.State {
        switch self {
        case .given: .given
        case .refused: .refused
        case .shown: .shown
        }
    }
}

extension ConsentMethod {
    /// Where the choice was made, when consent and preference are recorded in one step.
    var preferenceSource: PreferenceSource {
        switch self {
        case .inAppToggle: .inAppSettings
        case .smsKeyword, .emailReply: .reply
        case .sharedAddress: .sharedAddress
        case .webForm, .doubleOptIn, .paperForm, .phoneCall, .existingCustomer, .expressConsent,
            .writtenConsent:
            .consent
        }
    }
}

extension PreferenceSource {
    /// The same the other way round, for the withdrawal that a choice makes.
    func consentMethod(on channel: Channel) -> ConsentMethod {
        switch self {
        case .inAppSettings, .osSettingsSync, .inAppStepUp: .inAppToggle
        case .unsubscribeLink, .consent: .webForm
        case .reply: .reply(on: channel)
        case .sharedAddress: .sharedAddress
        case .adminOverride, .restore: .phoneCall
        // An audit's record is no choice of the person.
        case .driftAudit, .stateAudit: preconditionFailure("what an audit suppresses withdraws no consent")
        }
    }
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
