import BundleModel
import CompliancePolicy
import GateRecords
import GateVocabulary
import SendPlanning
import WireProtocol

/// Consents and choices are edited together: what changes one changes the other in the same edit (SG-0007).
extension PersonEdit {
    /// Appends a consent, a refusal, a withdrawal, or the showing of a notice, and what follows from it.
    mutating func apply(_ record: ConsentRecord) {
        append(record)
        // A notice that was only shown is no will.
        if record.state == .shown { return }
        syncPreference(with: record)
        if record.state == .given, record.channel == .push,
            let category = Category(rawValue: record.purpose.text)
        {
            endSuppressions(of: category)
        }
        endWhatElseIsAsked(with: record)
    }

    /// The answer's `no_effect`, once the record is applied: why the edit changed no consent in force and no choice; `nil` where
    /// it did.
    ///
    /// - Parameter isForEveryChannel: Whether the record is the first of a withdrawal on every channel.
    func noEffect(of record: ConsentRecord, isForEveryChannel: Bool) -> NoEffect? {
        if record.state == .shown { return .shownOnly }
        if record.state == .given, fact(inScopeOf: record).state != .given { return .newerWord }
        guard !changesConsentsOrChoices else { return nil }
        let isGiven =
            isForEveryChannel
            ? Channel.allCases.contains { !given(record.purpose, on: $0).isEmpty }
            : fact(inScopeOf: record).state == .given
        return isGiven == (record.state == .given) ? .alreadySo : .newerWord
    }

    /// Extends the withdrawal of one consent, which is applied, to every channel.
    mutating func endEverywhere(_ withdrawal: ConsentRecord, of given: ConsentRecord) {
        let category = Category(rawValue: given.purpose.text)
        for channel in Channel.allCases {
            for purpose in category.map(policy.purposes(endedWith:)) ?? [given.purpose] {
                end(
                    purpose, on: channel, saidAt: withdrawal.eventTime, method: withdrawal.method,
                    by: withdrawal.source)
            }
            // What only a step-up switches off is not switched off by an objection.
            guard let category, policy.category(category).switchOff == .anyone else { continue }
            appendObjection(
                PreferenceRecord(
                    subject: subject.id, scope: category.rawValue, channel: channel, destination: nil,
                    state: .userOff, source: withdrawal.method.preferenceSource, at: withdrawal.eventTime,
                    caller: withdrawal.source))
        }
    }

    /// Appends one choice on each of some channels, and the withdrawals that follow from it.
    mutating func choose(
        _ choice: PreferenceRecord, on channels: [Channel], isForEveryChannel: Bool = false
    ) {
        let category = Category(rawValue: choice.scope)
        for channel in channels {
            var choice = choice
            choice.channel = channel
            append(choice)
            let act = PersonAct(choice, isForEveryChannel: isForEveryChannel)
            guard let category, act.effect(at: choice.level, on: category).consent == .withdrawn else {
                continue
            }
            for purpose in policy.purposes(endedWith: category) {
                end(
                    purpose, on: channel, at: choice.level == .address ? choice.destination : nil,
                    saidAt: choice.at, method: choice.source.consentMethod(on: channel), by: choice.caller)
            }
        }
        if let category, choice.state == .userOn, channels.contains(.push) {
            endSuppressions(of: category)
        }
    }

    /// Carries noes over to the address that replaces an old one under the same id, except where the new address has a newer yes.
    /// Consents are not carried over.
    ///
    /// - Returns: Whether a withdrawal was among them.
    mutating func carryNoes(from old: Tag, to new: Tag, on channel: Channel, by caller: CallerName) -> Bool {
        let inForce = state.consentsInForce.byScope
        let ended = inForce.filter {
            $0.key.channel == channel && $0.key.address == old && $0.value.state != .given
        }
        var carriesWithdrawal = false
        for (scope, no) in ended.sorted(by: { $0.key.purpose.text < $1.key.purpose.text }) {
            let there = inForce[.init(purpose: scope.purpose, channel: channel, address: new)]
            guard
                there.map({ $0.moment < no.moment || $0.moment == no.moment && $0.state != .withdrawn })
                    ?? true
            else { continue }
            apply(
                withdrawal(
                    to: scope.purpose, on: channel, at: new, saidAt: now, method: no.method, by: caller))
            carriesWithdrawal = true
        }
        let choices = state.preferences.filter { $0.channel == channel }
        for no in choices where no.destination == old && no.state.isOff && no.source != .driftAudit {
            let there = choices.first { $0.destination == new && $0.scope == no.scope }
            if let there, there.stands(againstNoSaidAt: no.at) { continue }
            var here = no
            here.destination = new
            append(here)
        }
        return carriesWithdrawal
    }

    // MARK: What follows

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
    private mutating func end(
        _ purpose: Purpose, on channel: Channel, at address: Tag? = nil, saidAt moment: Instant,
        method: ConsentMethod, by caller: CallerName
    ) {
        for given in given(purpose, on: channel)
        where given.eventTime <= moment && (address == nil || given.address == address) {
            append(withdrawal(of: given, saidAt: moment, method: method, by: caller))
        }
        let isRecorded = consents.contains {
            $0.state == .withdrawn && $0.purpose == purpose && $0.channel == channel && $0.address == address
                && $0.receivedAt == now && $0.eventTime == moment
        }
        if isRecorded { return }
        append(withdrawal(to: purpose, on: channel, at: address, saidAt: moment, method: method, by: caller))
    }

    /// Whether a consent to what only marketing asks for was given before a no to marketing at its place. The no would have ended it,
    /// had it been known (GDPR Art. 21(3)).
    func isBeforeNoToMarketing(_ given: ConsentRecord) -> Bool {
        guard given.purpose != .marketing, policy.purposes(endedWith: .marketing).contains(given.purpose)
        else {
            return false
        }
        let counted = state.consentsInForce.withdrawnUntil(.marketing, on: given.channel, at: given.address)
        if let counted, given.eventTime <= counted { return true }
        return consents.contains {
            $0.state == .refused && $0.purpose == .marketing && $0.channel == given.channel
                && ($0.address == nil || $0.address == given.address) && given.eventTime <= $0.eventTime
        }
    }

    /// A no to marketing also ends the consents that only marketing asks for and that were given at the same place up to then,
    /// whatever was said of marketing since.
    private mutating func endWhatElseIsAsked(with record: ConsentRecord) {
        guard record.state != .given, let category = Category(rawValue: record.purpose.text) else { return }
        let moment = ConsentLedger.moment(of: record, in: consents)
        for purpose in policy.purposes(endedWith: category) where purpose != record.purpose {
            let isGiven = given(purpose, on: record.channel).contains {
                $0.eventTime <= moment && (record.address == nil || $0.address == record.address)
            }
            guard isGiven else { continue }
            end(
                purpose, on: record.channel, at: record.address, saidAt: moment, method: record.method,
                by: record.source)
        }
    }

    /// Appends the preference that goes with a consent record. The record may be older than the newest one in the
    /// ledger, and older than a choice made since. The newest counts, and at equal times the refusal.
    private mutating func syncPreference(with record: ConsentRecord) {
        let level: PersonAct.Level = record.address == nil ? .account : .address
        guard let category = Category(rawValue: record.purpose.text),
            let chosen = PersonAct(record)?.effect(at: level, on: category).preference,
            (fact(inScopeOf: record).state == .given) == (record.state == .given),
            // What only a step-up switches off is not switched off by the end of a consent.
            !chosen.isOff || policy.category(category).switchOff == .anyone
        else { return }
        let moment = ConsentLedger.moment(of: record, in: consents)
        let scope = category.rawValue
        var places = [record.address]
        // A yes to texts at one number overrides an older off for the whole channel.
        if record.address != nil, chosen == .userOn, state.preference(scope, record.channel, at: nil).isOff {
            places.append(nil)
        }
        let choices = choices(of: scope, on: record.channel)
        for place in places {
            let choice = choices.first { $0.destination == place }
            if chosen.isOff {
                if choice?.stands(againstNoSaidAt: moment) == true { continue }
            } else if state.preference(scope, record.channel, at: place) == chosen {
                continue
            } else if let choice,
                choice.at > moment || choice.at == moment && choice.state != .userOn
            {
                continue
            }
            if let choice, place == nil, let address = record.address {
                // The off that is overridden covered every other address too, and stays recorded for those.
                appendObjection(choice, besides: [address])
            }
            append(
                PreferenceRecord(
                    subject: subject.id, scope: scope, channel: record.channel, destination: place,
                    state: chosen, source: record.method.preferenceSource, at: moment, caller: record.source))
        }
    }

    /// Appends an objection to a whole channel, as far as nothing newer stands: for the account; or, where a newer yes
    /// was said at some of its destinations, at each of the others.
    private mutating func appendObjection(_ objection: PreferenceRecord) {
        let choices = choices(of: objection.scope, on: objection.channel)
        if let own = choices.first(where: { $0.destination == nil }),
            own.stands(againstNoSaidAt: objection.at)
        {
            return
        }
        let wanted = choices.filter {
            $0.state == .userOn && $0.stands(againstNoSaidAt: objection.at)
        }.compactMap(\.destination)
        if wanted.isEmpty { append(objection) } else { appendObjection(objection, besides: wanted) }
    }

    /// Appends an objection at each destination of its channel but some, where nothing newer was said.
    private mutating func appendObjection(_ objection: PreferenceRecord, besides wanted: [Tag]) {
        let choices = choices(of: objection.scope, on: objection.channel)
        for destination in person.destinations(on: objection.channel).map(\.tag)
        where !wanted.contains(destination) {
            let own = choices.first { $0.destination == destination }
            if let own, own.stands(againstNoSaidAt: objection.at) { continue }
            var here = objection
            here.destination = destination
            append(here)
        }
    }

    // MARK: The gateway's own acts

    /// Appends what takes back a mute by a link.
    mutating func takeBack(_ mute: LinkMute.Undoable) {
        append(mute.choiceBefore)
        for withdrawal in mute.withdrawals {
            append(
                consent(
                    .undone, named: "\(withdrawal.id)/undone", of: withdrawal.purpose,
                    on: withdrawal.channel, at: withdrawal.address, saidAt: now, method: withdrawal.method,
                    by: .gateway, withdraws: withdrawal.idTag))
        }
    }

    /// Switches marketing off on a channel, because the stored state contradicts the trail and a no may be missing. It stays off
    /// until the person switches it on.
    mutating func closeMarketing(on channel: Channel) {
        let choice = PreferenceRecord(
            subject: subject.id, scope: Category.marketing.rawValue, channel: channel, destination: nil,
            state: .userOff, source: .stateAudit, at: now, caller: .gateway)
        guard !state.preferences.contains(where: { $0.isClosing && $0.isSameChoice(as: choice) }) else {
            return
        }
        append(choice)
    }

    /// Ends an audit's suppressions of a category, because a choice of the person's is newer than the provider's state.
    mutating func endSuppressions(of category: Category) {
        for suppression in state.suppressions(of: category) {
            setSuppression(of: category, at: suppression.device, to: suppression.before)
        }
    }

    /// Appends what an audit makes of a category at a device: off, or the choice that was there before the suppression.
    mutating func setSuppression(of category: Category, at device: Tag, to chosen: PreferenceState) {
        append(
            PreferenceRecord(
                subject: subject.id, scope: category.rawValue, channel: .push, destination: device,
                state: chosen, source: .driftAudit, at: now, caller: .gateway))
    }

    // MARK: Records

    /// The withdrawal of a recorded consent, by its name.
    func withdrawal(
        of given: ConsentRecord, saidAt moment: Instant, method: ConsentMethod, by caller: CallerName
    ) -> ConsentRecord {
        var record = withdrawal(
            to: given.purpose, on: given.channel, at: given.address, named: given.id, saidAt: moment,
            method: method, by: caller)
        record.jurisdiction = given.jurisdiction
        record.withdraws = given.idTag
        return record
    }

    /// A withdrawal that names no record.
    func withdrawal(
        to purpose: Purpose, on channel: Channel, at address: Tag?, named name: String? = nil,
        saidAt moment: Instant, method: ConsentMethod, by caller: CallerName
    ) -> ConsentRecord {
        consent(
            .withdrawn,
            named: "\(name ?? "\(purpose)/\(channel.rawValue)")/withdrawn/\(consents.count + 1)", of: purpose,
            on: channel, at: address, saidAt: moment, method: method, by: caller)
    }

    /// The record that comes next in the ledger, chained to the last.
    func consent(
        _ state: ConsentRecord.State, named id: String, of purpose: Purpose, on channel: Channel,
        at address: Tag?, saidAt moment: Instant, method: ConsentMethod, by caller: CallerName,
        withdraws: Tag? = nil
    ) -> ConsentRecord {
        ConsentRecord(
            subject: subject.id, id: id, idTag: subject.tag(.consent, id), purpose: purpose,
            channel: channel, address: address, state: state, eventTime: moment, receivedAt: now,
            method: method, source: caller, jurisdiction: nil, notice: nil, expiresAt: nil,
            withdraws: withdraws, previousHash: consents.last.map(\.chainHash) ?? "")
    }
}

extension PreferenceRecord {
    /// Whether a no of some moment changes nothing where this was said: it is newer, or as old and a no itself.
    ///
    /// A record of the drift audit never stands: it is no word of the person's. Neither does the `default` that
    /// ``before(in:of:at:)`` gives where nothing was chosen before a mute.
    func stands(againstNoSaidAt moment: Instant) -> Bool {
        let isNeverChosen = state == .default && caller == .gateway && source.isOfLink
        guard source != .driftAudit, !isNeverChosen else { return false }
        return at > moment || at == moment && state.isOff
    }
}
