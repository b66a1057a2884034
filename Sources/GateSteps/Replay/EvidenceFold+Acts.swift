import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import KeyLifecycle
import GateRecords
import SealedFormat
import SendPlanning
import WireProtocol

// What is asked of the entries of each kind. The rules themselves are ``ActRules``, which the steps ask too; here they are given
// what an entry holds.

extension EvidenceFold {
    func judge(_ entry: TrailEntry, by rules: ActRules) throws {
        switch entry.kind {
        case .policyRefused:
            try judgeActivation(by: entry.knownBody(PolicyRefusedEntry.self).caller, rules)
        case .erasure:
            let erasure: ErasureEntry = try entry.knownBody()
            try rules.require(.deleteRecipient, of: erasure.caller)
            try requireRegistered(erasure.subject)
        case .receipt: try judge(try entry.knownBody(ReceiptEntry.self), rules)
        case .reply: try rules.require(.addReply, of: entry.knownBody(ReplyEntry.self).caller)
        case .cancel: try judge(try entry.knownBody(CancelEntry.self), rules)
        case .acknowledgement:
            let acknowledged: AcknowledgementEntry = try entry.knownBody()
            try rules.require(.acknowledgeEvent, of: acknowledged.caller)
            _ = try rules.acknowledged(acknowledged.type, by: acknowledged.caller)
            try requireRegistered(acknowledged.subject)
        case .mandatoryUnreached:
            let unreached: MandatoryUnreachedEntry = try entry.knownBody()
            guard sends.caller(of: unreached.send) != nil,
                sends.sends[unreached.send].map({ $0.subject == unreached.subject.value }) ?? true
            else { throw Problem(.notFound, detail: "no send of this id went to this recipient") }
        case .delivery:
            let ended: DeliveryEntry = try entry.knownBody()
            try requireWaiting(ended.message, of: ended.send)
        case .unsent:
            let ended: UnsentEntry = try entry.knownBody()
            try requireWaiting(ended.message, of: ended.send)
        case .redecision:
            let again = try RedecisionEntry.read(entry.encoded().bytes).entry
            try requireWaiting(again.message, of: again.send)
        case .gatewayKey: try judge(try entry.knownBody(GatewayKeyEntry.self), rules)
        case .keyset: try judge(try entry.knownBody(KeysetEntry.self), rules)
        case .deviceKey: try judge(try entry.knownBody(DeviceKeyEntry.self), rules)
        default:
            guard let (subject, change) = try PersonChange.read(entry) else { return }
            let caller = CallerName(entry.members["caller"]?.stringValue ?? "")
            try judge(change, of: subject, by: caller, rules)
        }
    }

    private func judge(
        _ change: PersonChange, of subject: SubjectID, by caller: CallerName, _ rules: ActRules
    ) throws {
        if case .recipient(let record, let action) = change {
            try rules.require(.putRecipient, of: caller)
            try judge(record.region, record.timeZone, rules)
            return try require((people[subject]?.record == nil) == (action == .registered), "registered")
        }
        let person = try requireRegistered(subject)
        switch change {
        case .device(let device, let action, _):
            try rules.require(.putDevice, of: caller)
            try judge(device.region, device.timeZone, rules)
            let isNew = !person.devices.contains { $0.tag == device.tag }
            try require(isNew == (action == .registered), "registered")
            if isNew { try rules.requireRoom(besides: person.devices.count, "devices") }
        case .deviceRemoved(let tag):
            try judgeRemoval(.deleteDevice, by: caller, rules)
            try requireDevice(tag, of: person)
        case .deviceDeactivated(let tag, let why):
            if try caller != .gateway || acts.answered() != .tokenGone(subject, tag) {
                try rules.require(why == .tokenTaken ? .putDevice : .addReceipt, of: caller)
            }
            try requireDevice(tag, of: person)
        case .address(let address, let action, let replaced):
            try rules.require(.putAddress, of: caller)
            func isKnown(_ tag: Tag) -> Bool { person.addresses.contains { $0.tag == tag } }
            if let replaced, !isKnown(replaced) {
                throw Problem(.notFound, detail: "the recipient has no address that it replaces")
            }
            try require(
                (action == .updated) == (replaced != nil || isKnown(address.tag)), "registered")
            if action == .registered {
                try rules.requireRoom(besides: person.addresses.count, "addresses")
            }
        case .addressRemoved(let tag):
            try judgeRemoval(.deleteAddress, by: caller, rules)
            try requireAddress(tag, of: person)
        case .addressContested(let tag, _):
            // By the registration of another person, whose verification is in no entry.
            try rules.require(.putAddress, of: caller)
            try requireAddress(tag, of: person)
        case .permissionPrompt(let prompt, let action):
            try rules.require(.addPermissionPrompt, of: caller)
            try requireDevice(prompt.device, of: person)
            let earlier = person.state.prompts.first { $0.device == prompt.device }
            try rules.requireFirst(
                promptShownAt: prompt.shownAt, isAnswered: prompt.answer != nil, after: earlier)
            try require((earlier == nil) == (action == .prompted), "prompted")
        case .subscriptions(let tag, let subscriptions):
            try rules.require(.putSubscriptions, of: caller)
            try rules.requireNewest(subscriptions.observedAt, of: requireDevice(tag, of: person))
        case .consent(let record): try judge(record, of: person, rules)
        case .preference(let choice): try judge(choice, of: person, rules)
        case .drift, .driftResolved:
            guard acts.driftCallers.contains(caller) else {
                throw Problem(
                    .grantMissing, detail: "no bundle that was in force grants caller `\(caller)` `drift.run`"
                )
            }
        case .recipient, .deviceKey, .deviceKeyForgotten: break
        }
    }

    // MARK: What is registered

    @discardableResult
    private func requireRegistered(_ subject: SubjectID) throws -> RecipientSnapshot {
        guard let person = snapshot(of: subject) else {
            throw Problem(.notFound, detail: "nobody of this pseudonym is registered")
        }
        return person
    }

    @discardableResult
    private func requireDevice(_ tag: Tag, of person: RecipientSnapshot) throws -> DeviceRecord {
        guard let device = person.devices.first(where: { $0.tag == tag }) else {
            throw Problem(.notFound, detail: "the recipient has no such device")
        }
        return device
    }

    private func requireAddress(_ tag: Tag, of person: RecipientSnapshot) throws {
        guard person.addresses.contains(where: { $0.tag == tag }) else {
            throw Problem(.notFound, detail: "the recipient has no such address")
        }
    }

    /// - Parameter word: An `action` that is only that of the first such entry.
    private func require(_ isTrue: Bool, _ word: String) throws {
        guard isTrue else {
            throw Problem(
                .wrongState,
                detail: "`\(word)` is of the first, and only of that: the entries before it say otherwise")
        }
    }

    private func judge(_ region: RegionObservation?, _ zone: String?, _ rules: ActRules) throws {
        // Which zones there are depends on the zone data of the machine.
        if tzdata == LocalTime.dataVersion { try rules.requireKnown(zone: zone) }
        try rules.requirePast(region)
        guard let region else { return }
        try requireSpelled(region.code, rules, at: "region")
    }

    /// A region is recorded as the bundle spells it.
    private func requireSpelled(_ code: RegionCode, _ rules: ActRules, at member: String) throws {
        guard try rules.registered(code, at: member) == code else {
            throw Problem(.invalidRequest, detail: "the bundle has no rule of its own for `\(code)`")
        }
    }

    private func judgeRemoval(_ act: CallerAct, by caller: CallerName, _ rules: ActRules) throws {
        // The gateway removes what it has no private values of after a restore.
        if caller == .gateway, acts.isRestoring { return }
        try rules.require(act, of: caller)
    }

    // MARK: Consents

    private func judge(_ record: ConsentRecord, of person: RecipientSnapshot, _ rules: ActRules) throws {
        let ledger = ledgers[person.subject.id, default: []]
        guard record.previousHash == ledger.last.map(\.chainHash) ?? "" else {
            throw Problem(
                .wrongState, detail: "`previous` is not the digest of the consent record before it")
        }
        guard !ledger.contains(where: { $0.idTag == record.idTag }) else {
            throw Problem(.idConflict, detail: "this consent id was used for a record before")
        }
        switch record.state {
        case .given, .refused, .shown:
            let caller = record.source
            try rules.require(.addConsent, of: caller)
            try rules.requireMethod(record.method, by: caller)
            if record.channel == .push {
                guard record.address == nil else {
                    throw Problem(.invalidRequest, detail: "a consent to push names no address")
                }
            } else {
                guard let address = record.address,
                    person.addresses.contains(where: { $0.tag == address && $0.channel == record.channel })
                else {
                    throw Problem(
                        .notFound, detail: "the recipient has no such \(record.channel.rawValue) address")
                }
            }
            guard let jurisdiction = record.jurisdiction.flatMap({ RegionCode($0) }) else {
                throw Problem(.invalidRequest, detail: "it names no jurisdiction")
            }
            try requireSpelled(jurisdiction, rules, at: "jurisdiction")
            let end = try rules.end(
                of: record.purpose, as: record.state, from: record.eventTime, asked: record.expiresAt)
            guard end == record.expiresAt else {
                throw Problem(
                    .invalidRequest,
                    detail: "a consent to `\(record.purpose)` ends, and the record does not say when")
            }
            guard record.withdraws == nil else {
                throw Problem(.invalidRequest, detail: "only a withdrawal names a record that it withdraws")
            }
            try rules.requireTrue(
                record, of: RecipientWithLedger(person: person, consents: ledger))
        case .withdrawn:
            try judgeRefusal(by: record.source, rules)
            guard record.method != .sharedAddress || followsFromSharedNo(record) else {
                throw Problem(
                    .wrongState, detail: "nobody else with the number or mailbox has said no before it")
            }
            guard let named = record.withdraws else { return }
            let isThere = ledger.contains {
                $0.idTag == named && $0.purpose == record.purpose && $0.channel == record.channel
                    && $0.address == record.address
            }
            guard isThere else {
                throw Problem(.notFound, detail: "no consent that it withdraws is recorded")
            }
        case .undone:
            guard record.source == .gateway,
                let named = ledger.first(where: { $0.idTag == record.withdraws }),
                named.state == .withdrawn, named.source == .gateway,
                !ledger.contains(where: { $0.state == .undone && $0.withdraws == record.withdraws }),
                UnsubscribeLink.isUndoable(from: named.receivedAt, at: record.receivedAt)
            else {
                throw Problem(
                    .wrongState,
                    detail:
                        "only a withdrawal by a link is taken back, by the gateway, within \(UnsubscribeLink.undoSeconds) s"
                )
            }
        }
    }

    /// Whether a withdrawal is recorded with the choice of somebody else's no, or goes on from one that was, to the address that
    /// replaced it or after a restore.
    private func followsFromSharedNo(_ record: ConsentRecord) -> Bool {
        choices[record.subject, default: []].contains {
            $0.source == .sharedAddress && $0.channel == record.channel && $0.at == record.receivedAt
        }
            || ledgers[record.subject, default: []].contains {
                $0.method == .sharedAddress && $0.channel == record.channel && $0.purpose == record.purpose
            }
    }

    /// A no may come by every way that a person has to say it, so its caller needs the grant of one of them.
    private func judgeRefusal(by caller: CallerName, _ rules: ActRules) throws {
        // Said to the gateway itself, by a link; or not known any more after a restore.
        if caller == .gateway { return }
        try rules.require(
            oneOf: [.withdrawConsent, .addConsent, .putPreference, .addReply, .putAddress], of: caller)
    }

    // MARK: Choices

    private func judge(_ choice: PreferenceRecord, of person: RecipientSnapshot, _ rules: ActRules) throws {
        if !choice.state.isOff, choice.at > rules.now {
            throw Problem(.eventInFuture, detail: "`event_time` is in the future")
        }
        // An audit's suppression ends also at a device that is not registered any more.
        if choice.caller == .gateway { return try judgeOwn(choice, of: person, rules) }
        if !choice.state.isOff, let place = choice.destination,
            person.destination(tagged: place, on: choice.channel) == nil
        {
            throw Problem(
                .notFound, detail: "the recipient has no such destination on \(choice.channel.rawValue)")
        }
        if follows(choice, fromConsentAt: rules.now) || isCopy(choice, of: person) { return }
        do {
            try rules.require(.putPreference, of: choice.caller)
            try rules.requireTrue(choice)
            guard
                (choice.state == .userOffStepUp) == (choice.state.isOff && choice.source == .inAppStepUp)
            else {
                throw Problem(.invalidRequest, detail: "`user_off_step_up` is said behind a step-up only")
            }
        } catch let refusal as Problem {
            // What somebody wrote from a number or mailbox is reported with a source that its caller need not be believed of. It
            // ends what anyone may switch off, and at that place.
            guard choice.state == .userOff, choice.source != .adminOverride, choice.level == .address,
                Category(rawValue: choice.scope).map({ rules.policy.category($0).switchOff }) == .anyone,
                (try? rules.require(
                    oneOf: choice.source == .sharedAddress
                        ? [.putPreference, .withdrawConsent] : [.addReply, .putAddress], of: choice.caller))
                    != nil
            else { throw refusal }
        }
    }

    /// Whether the choice is what a consent record of the same step brings with it.
    private func follows(_ choice: PreferenceRecord, fromConsentAt now: Instant) -> Bool {
        guard let category = Category(rawValue: choice.scope) else { return false }
        let same = ledgers[choice.subject, default: []].reversed().prefix { $0.receivedAt == now }
        return same.contains { record in
            let level: PersonAct.Level = record.address == nil ? .account : .address
            return record.source == choice.caller && record.channel == choice.channel
                && record.purpose.text == category.rawValue
                && record.method.preferenceSource == choice.source
                && PersonAct(record)?.effect(at: level, on: category).preference == choice.state
                && (choice.destination == nil || record.address == nil
                    || choice.destination == record.address)
        }
    }

    /// Whether the choice is one for the whole channel that a newer yes at one place leaves standing at the others, or one of an
    /// address that was replaced.
    private func isCopy(_ choice: PreferenceRecord, of person: RecipientSnapshot) -> Bool {
        guard choice.state.isOff, choice.destination != nil else { return false }
        return person.state.preferences.contains {
            $0.scope == choice.scope && $0.channel == choice.channel
                && $0.destination != choice.destination && $0.state == choice.state
                && $0.source == choice.source && $0.at == choice.at
                && $0.caller == choice.caller
        }
    }

    /// A choice that the gateway records by itself: by a link, by taking a link's mute back, by an audit, after a restore.
    private func judgeOwn(
        _ choice: PreferenceRecord, of person: RecipientSnapshot, _ rules: ActRules
    ) throws {
        guard choice.source != .driftAudit else {
            let category = Category(rawValue: choice.scope)
            let isFound = person.state.drifts.contains {
                $0.action == .suppressed && $0.device == choice.destination && $0.category == category
            }
            let isEnding = category.map(person.state.suppressions)?.contains {
                $0.device == choice.destination && $0.before == choice.state
            }
            guard choice.state.isOff && isFound || isEnding == true || endsResolved(choice, of: person) else {
                throw Problem(.wrongState, detail: "no finding of an audit asks for it")
            }
            return
        }
        let isOfRestore = choice.source == .restore || choice.source == .adminOverride
        if choice.state.isOff, !isOfRestore || acts.isRestoring { return }
        try rules.requireUndo(choice, after: choices[choice.subject, default: []], of: person.state)
    }

    /// Whether a choice ends an audit's suppression whose finding an entry before it has resolved: what the person chose there before is
    /// then in the history alone.
    private func endsResolved(_ choice: PreferenceRecord, of person: RecipientSnapshot) -> Bool {
        let isSuppressed = person.state.preferences.contains {
            $0.isSameChoice(as: choice) && $0.isSuppression
        }
        let before = choices[choice.subject, default: []].last {
            // An audit suppresses only what is on, so an off among these is a mute that was taken back.
            $0.isSameChoice(as: choice) && $0.source != .driftAudit && !$0.state.isOff
        }
        return isSuppressed && choice.state == before?.state ?? .default
    }

    // MARK: Keys of devices

    private func judge(_ entry: DeviceKeyEntry, _ rules: ActRules) throws {
        let person = try requireRegistered(entry.subject)
        let known = person.state.key(entry.key)
        if entry.isForgotten == true {
            try judgeRemoval(.addDeviceKey, by: entry.caller, rules)
            guard known != nil else { throw Self.noKey }
            return
        }
        let event: PersonChange.KeyTransition.Event? = try entry.event?.name()
        guard let known, let state = KeyState(rawValue: known.state) else {
            guard event == .add || event == nil, entry.state == KeyState.preActivation.rawValue,
                entry.proof == nil
            else { throw Self.noKey }
            return try rules.require(.addDeviceKey, of: entry.caller)
        }
        guard known.device == entry.device, known.suite == entry.suite else { throw Self.noKey }
        let proof: PersonChange.Proof? = try entry.proof?.name()
        let cause: PersonChange.KeyTransition.Cause? = try entry.cause?.name()
        switch event {
        case .add: throw Problem(.idConflict, detail: "the key was registered before")
        case .proposeDestruction:
            try rules.require(.changeKey, of: entry.caller)
            _ = try rules.state(of: state, after: .destroy)
            try requireState(entry, known.state)
        case .promote, .suspend, .resume, .deactivate, .revoke, .destroy:
            guard let change = event.flatMap({ KeyEvent(rawValue: $0.rawValue) }) else { throw Self.noKey }
            // A device that proves a new key ends the one before it.
            let isOfDevice = proof == .right || change == .deactivate && cause == .rotation
            try rules.require(
                oneOf: isOfDevice ? [.confirmDeviceKey, .changeKey] : [.changeKey], of: entry.caller)
            try requireState(entry, rules.state(of: state, after: change).rawValue)
            if change == .promote || change == .resume {
                let others = person.state.keys(of: entry.device)
                guard
                    !others.contains(where: {
                        $0.key != entry.key && KeyState(rawValue: $0.state) == .active
                    })
                else {
                    throw Problem(.wrongState, detail: "another key of the device is `active`")
                }
            }
            guard change == .destroy else { return }
            let proposal = acts.deviceKeyProposals[entry.key]
            try rules.requireSecondCaller(
                entry.caller, after: proposal?.state == known.state ? proposal?.by : nil)
            try require(entry.proposedBy, is: proposal?.by.caller)
        case nil where proof == .wrong:
            try rules.require(.confirmDeviceKey, of: entry.caller)
            try requireState(entry, known.state)
        case nil:
            // An entry of a build that did not say what happened.
            try rules.require(oneOf: [.confirmDeviceKey, .changeKey], of: entry.caller)
        }
    }

    private static var noKey: Problem {
        Problem(.notFound, detail: "the device has no key of this id")
    }

    private func requireState(_ entry: DeviceKeyEntry, _ state: String) throws {
        guard entry.state == state else {
            throw Problem(.wrongState, detail: "the key is `\(state)` after it, not `\(entry.state)`")
        }
    }

    private func require(_ named: CallerName?, is first: CallerName?) throws {
        guard named == first else {
            throw Problem(.wrongState, detail: "`proposed_by` is not who proposed it")
        }
    }

    // MARK: Sends

    private func judge(_ entry: ReceiptEntry, _ rules: ActRules) throws {
        if entry.caller == .gateway {
            let result: HandOver =
                try entry.event.name() == ReceiptBody.Event.acceptedByProvider
                ? .handedOver : .refusedByHop
            guard entry.act == nil, try acts.answered() == .ended(entry.send, entry.destination, result)
            else {
                throw Problem(
                    .wrongState,
                    detail: "the gateway tells what a provider answered where a message ends only")
            }
        } else {
            try rules.require(.addReceipt, of: entry.caller)
        }
        guard let send = sends.sends[entry.send], send.destinations.contains(entry.destination),
            entry.subject == nil || entry.subject == send.subject
        else { throw Problem(.notFound, detail: "no send of this id went to this destination") }
        try rules.requireTime(entry.at, ofReceiptFor: send.receivedAt)
    }

    /// A message is promised once, and ends once.
    private func requireWaiting(_ message: MessageID, of send: SendID) throws {
        guard sends.waits(message, of: send) else {
            throw Problem(
                .notFound, detail: "no message of this id waits: it ended before, or was never promised")
        }
    }

    private func judge(_ entry: CancelEntry, _ rules: ActRules) throws {
        try rules.require(.cancelSend, of: entry.caller)
        guard sends.caller(of: entry.send) == entry.caller else {
            throw Problem(.notFound, detail: "no send of this id is the caller's")
        }
    }

    // MARK: What operators do

    private func judgeActivation(by caller: CallerName?, _ rules: ActRules) throws {
        // Without a caller the operator asked by a signal.
        if let caller { try rules.require(.activatePolicy, of: caller) }
    }

    func judgeStart(
        _ entry: StartEntry, at now: Instant, _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        try judge(entry.policy, isSigned: !entry.approvals.isEmpty, policies)
    }

    func judge(
        _ entry: PolicyEntry, at now: Instant, _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        if let caller = entry.caller, !acts.isPolicyUnknown {
            guard let policy = acts.policy else { throw ActObjection.noPolicy }
            try judgeActivation(by: caller, ActRules(policy: policy, known: self, now: now))
        }
        let next = try judge(entry.policy, isSigned: !entry.approvals.isEmpty, policies)
        guard entry.version == nil || entry.version == next.bundle.version else {
            throw Problem(
                .invalidRequest,
                detail: "the bundle is version \(next.bundle.version), and the entry says another")
        }
    }

    /// Whether a bundle may follow the one in force.
    ///
    /// - Parameter isSigned: Where a bundle needs signatures, versions only rise.
    @discardableResult
    private func judge(
        _ digest: PolicyDigest, isSigned: Bool, _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> CompiledPolicy {
        guard let next = try policies(digest) else { throw ActObjection(unknown: digest) }
        var problems = try editedNotices(of: next.bundle)
        if isSigned, let before = acts.policy,
            let refusal = ActivatedPolicy(before).refusal(of: ActivatedPolicy(next))
        {
            problems.insert(refusal, at: 0)
        }
        if let first = problems.first { throw Problem(.invalidRequest, detail: first.description) }
        return next
    }

    private func judge(_ entry: GatewayKeyEntry, _ rules: ActRules) throws {
        guard let caller = entry.caller else {
            throw Problem(.grantMissing, detail: "it names no caller")
        }
        try rules.require(.changeKey, of: caller)
        let event: KeyTransition.Event = try entry.change.event.name()
        let purpose: KeyPurpose = try entry.change.purpose.name()
        guard event == .destroy || event == .promote && purpose == .root else { return }
        let proposal = acts.gatewayKeyProposals[entry.change.key]
        try rules.requireSecondCaller(
            caller, after: proposal?.event == event.rawValue ? proposal?.by : nil)
        try require(entry.proposedBy, is: proposal?.by.caller)
    }

    private func judge(_ entry: KeysetEntry, _ rules: ActRules) throws {
        try rules.require(.putKeyset, of: entry.caller)
        guard rules.now < entry.expiresAt else {
            throw Problem(.wrongState, detail: "the keyset had expired")
        }
        guard entry.version > acts.keysetVersion else {
            throw Problem(
                .wrongState, detail: "version \(acts.keysetVersion) was in force, and versions only rise")
        }
        guard entry.event.text != "propose" else { return }
        let proposal = acts.keysetProposal
        try rules.requireSecondCaller(
            entry.caller, after: proposal?.digest == entry.digest ? proposal?.by : nil)
        try require(entry.proposedBy, is: proposal?.by.caller)
    }
}
