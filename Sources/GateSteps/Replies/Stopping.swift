import BundleModel
import CompliancePolicy
import GateRecords
import GateVocabulary

// What a reply ends at a number or mailbox, and what is asked before it is taken: the questions must agree with the edit.

extension PersonEdit {
    /// Ends what the person agreed to at a number or mailbox, because its owner replied so: every consent that counts
    /// there, whatever it is to, and marketing, whether consented to or not. Who says so again within ``repeatSeconds`` changes
    /// nothing; later it is a word of its own, newer than a yes of between the two that is reported after it.
    ///
    /// A category that only a step-up switches off (security notices) goes on wherever the law asks no consent for
    /// it.
    ///
    /// - Returns: Whether this ended anything: a consent that counted, or what let messages of a category go there without one.
    mutating func stop(_ address: AddressRecord, by caller: CallerName) -> Bool {
        let (channel, place, earlier) = (address.channel, address.tag, self)
        let method = ConsentMethod.reply(on: channel)
        let ofMarketing = policy.purposes(endedWith: .marketing)
        var ended = Set([Category.marketing])
        var endsConsent = false
        let since = now.advanced(bySeconds: -Self.repeatSeconds)
        for purpose in Set(consents.map(\.purpose)).union(ofMarketing).sorted(by: { $0.text < $1.text }) {
            // A consent to the whole channel is one to this address.
            let given = given(purpose, on: channel).filter { $0.address == nil || $0.address == place }
            for consent in given {
                if consent.expiresAt.map({ now < $0 }) ?? true { endsConsent = true }
                append(withdrawal(of: consent, saidAt: now, method: method, by: caller))
            }
            if !given.isEmpty, let category = Category(rawValue: purpose.text) { ended.insert(category) }
            let here = ConsentsInForce.Scope(purpose: purpose, channel: channel, address: place)
            guard ofMarketing.contains(purpose) || !given.isEmpty,
                !state.consentsInForce.isEndedByReply(here, since: since)
            else { continue }
            append(withdrawal(to: purpose, on: channel, at: place, saidAt: now, method: method, by: caller))
        }
        // A mute by a link could be taken back as long as nothing else was said: this is something else.
        let muted = state.undoableMutes(on: channel, at: place, now: now)
        let everyText = policy.endsEveryText(on: channel, at: now)
        for category in Category.allCases
        where
            (everyText || ended.contains(category) || muted.contains(category)
            || state.isOffByReply(category, channel, at: place, since: .longAgo))
            && policy.category(category).switchOff == .anyone
        {
            guard muted.contains(category) || !state.isOffByReply(category, channel, at: place, since: since)
            else {
                continue
            }
            append(
                PreferenceRecord(
                    subject: subject.id, scope: category.rawValue, channel: channel, destination: place,
                    state: .userOff, source: .reply, at: now, caller: caller))
        }
        // Nothing goes to an address that nobody verified, whatever is on.
        return endsConsent
            || address.verifiedAt != nil
                && Category.allCases.contains {
                    earlier.isOn($0.rawValue, at: place, on: channel)
                        && !isOn($0.rawValue, at: place, on: channel)
                }
    }

    /// For how long a reply that says the same again is the same word: what is ended for so many people that it takes several steps goes
    /// on by the same reply.
    static let repeatSeconds: Int64 = 600

    /// Whether the edited state lets messages of a category go there.
    private func isOn(_ scope: String, at place: Tag, on channel: Channel) -> Bool {
        person.isOn(scope, on: channel, at: place, facts: FactsLoading(policy: policy, now: now))
    }
}

extension StepContext {
    /// Ends what one person agreed to at a number or mailbox; see ``PersonEdit/stop(_:by:)``. What the person said is recorded also
    /// where it ends nothing.
    ///
    /// - Returns: The edit, and whether it ended anything; `nil` for a person who has the address no more.
    func stop(
        _ address: AddressKey, of subject: SubjectID, by caller: CallerName, at now: Instant
    ) throws -> (edit: PersonEdit, place: Tag, hasEnded: Bool)? {
        guard var edit = try beginEdit(of: subject, at: now), let place = edit.person.addresses[address]
        else {
            return nil
        }
        let hasEnded = edit.stop(place, by: caller)
        try write(edit)
        if edit.changesConsentsOrChoices {
            try reconsider(edit.subject.id, as: edit.person, because: .consentChanged, at: now)
        }
        return (edit, place.tag, hasEnded)
    }

    /// Whether ``PersonEdit/stop(_:by:)`` would change nothing, told from the state alone.
    func isStopped(
        _ address: AddressKey, of subject: SubjectID, everyText: Bool, at now: Instant
    ) throws -> Bool {
        guard let state = try memory.state(of: subject),
            let place = state.addresses[address]?.tag
        else { return true }
        guard state.undoableMutes(on: address.channel, at: place, now: now).isEmpty else { return false }
        let inForce = state.consentsInForce
        guard inForce.given(on: address.channel, at: place).isEmpty else { return false }
        let since = now.advanced(bySeconds: -PersonEdit.repeatSeconds)
        for purpose in policy.purposes(endedWith: .marketing) {
            let here = ConsentsInForce.Scope(purpose: purpose, channel: address.channel, address: place)
            guard inForce.isEndedByReply(here, since: since) else { return false }
        }
        // A repeated reply also renews the choices that an earlier reply made.
        let endedBefore = Category.allCases.filter {
            state.isOffByReply($0, address.channel, at: place, since: .longAgo)
        }
        return (categories(endedWith: everyText) + endedBefore).allSatisfy {
            state.isOffByReply($0, address.channel, at: place, since: since)
        }
    }

    /// The categories that a withdrawal at a number or mailbox switches off whether they were consented to or not.
    func categories(endedWith everyText: Bool) -> [GateVocabulary.Category] {
        Category.allCases.filter {
            (everyText || $0 == .marketing) && policy.category($0).switchOff == .anyone
        }
    }

    /// Whether a withdrawal would end something that could be sent to a person at a number or mailbox: a consent, or a category
    /// that is on.
    func canEnd(
        at address: AddressKey, of subject: SubjectID, everyText: Bool, at now: Instant
    ) throws -> Bool {
        guard let subject = try memory.subject(subject),
            let person = try RecipientSnapshot.load(subject, from: memory),
            let place = person.addresses[address]
        else { return false }
        return person.state.consentsInForce.given(on: address.channel, at: place.tag).contains {
            $0.expiresAt.map { now < $0 } ?? true
        }
            || place.verifiedAt != nil
                && categories(endedWith: everyText).contains {
                    isOn($0.rawValue, on: address.channel, at: place.tag, of: person, at: now)
                }
    }
}

extension CompiledPolicy {
    /// Whether a withdrawal on a channel ends every category there that the recipient may switch off.
    func endsEveryText(on channel: Channel, at now: Instant) -> Bool {
        channel == .sms && bundle.channels.smsRevocation?.endsAllTextsFrom.map { $0.instant <= now } == true
    }
}

extension ConsentsInForce {
    /// Whether a withdrawal by a reply counts there that ends what was given up to a moment.
    fileprivate func isEndedByReply(_ scope: Scope, since moment: Instant) -> Bool {
        guard let consent = byScope[scope], consent.state == .withdrawn, consent.method.isReply,
            let end = consent.withdrawnUntil
        else { return false }
        return end >= moment
    }
}

extension RecipientState {
    /// Whether a reply switched a category off at a place, at a moment or later.
    func isOffByReply(
        _ category: GateVocabulary.Category, _ channel: Channel, at place: Tag, since moment: Instant
    ) -> Bool {
        preferences.contains {
            $0.scope == category.rawValue && $0.channel == channel && $0.destination == place
                && $0.state.isOff && $0.source == .reply && $0.stands(againstNoSaidAt: moment)
        }
    }
}
