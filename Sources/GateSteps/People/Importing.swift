import BundleModel
package import CanonicalJSON
import CompliancePolicy
import GateRecords
package import GateVocabulary
import SendPlanning
package import WireProtocol

/// What a line of an import came to.
package struct ImportedPerson: Sendable {
    package internal(set) var recorded = ImportCounts()
    package internal(set) var unchanged = ImportCounts()
    package internal(set) var kept: [JSONPointer] = []
    package internal(set) var refused: [ImportRefusal]
    /// `nil` where nothing was recorded.
    package internal(set) var entry: EntryReference?

    /// Of a line that was only tried: no entry says so.
    package mutating func forgetEntry() { entry = nil }

    package func answer(_ places: EntryPlaces) -> ImportAnswer {
        ImportAnswer(
            recorded: recorded, unchanged: unchanged, kept: kept, refused: refused,
            trail: entry.map { places[$0] })
    }
}

/// The changes of a person that go into one entry, in their order.
struct ImportedChanges {
    let subject: SubjectID
    /// The entry's place, which it takes before the entries of others that the line makes; `nil` before the first change.
    var index: UInt64?
    var changes: [(change: PersonChange, caller: CallerName)] = []
}

/// A withdrawal or an off of a line was refused, and the line has consents, which may be recorded already. The step begins anew
/// without them.
package struct LostNo: Error, CustomStringConvertible {
    package var description: String {
        "a no of the line was refused, and its consents do not stand without it"
    }
}

/// Bringing people over from another system.
extension StepContext {
    /// Records one person with all that is known of them, in one entry (decision SG-0080).
    ///
    /// Each part is taken by the step that registers it alone, under the grants and rules of that. A part that is refused leaves
    /// nothing, and the others are recorded. What is recorded already is not recorded again, so a line may come twice. What is
    /// registered otherwise stays: an export is older than what an app has said since.
    ///
    /// - Parameter isLosingNo: Whether an earlier try of the line threw ``LostNo``.
    /// - Throws: ``Problem`` where nothing of the line can be recorded.
    package func importPerson(
        _ read: ImportLine.Read, isLosingNo: Bool = false, by caller: CallerName, at now: Instant
    ) throws -> ImportedPerson {
        let (line, rules) = (read.line, rules(at: now))
        try rules.require(.importPerson, of: caller)
        guard
            let subject = try memory.subject(of: line.user)
                ?? (line.recipient == nil ? nil : memory.makeSubject(for: line.user))
        else {
            throw Problem(
                .notFound, detail: "nobody of this name is registered, and the line has no `recipient`")
        }
        imported = ImportedChanges(subject: subject.id)
        defer { imported = nil }
        var result = ImportedPerson(
            refused: read.refused.map {
                ImportRefusal($0.pointer ?? .root, .invalidRequest, $0.message)
            })
        if let given = line.recipient {
            let isKnown = try memory.recipient(subject.id) != nil
            try take(\.recipients, JSONPointer(["recipient"]), in: &result, isNeeded: !isKnown) {
                try importRecipient(given, line, by: caller, at: now)
            }
        }
        for address in line.addresses {
            try take(\.addresses, JSONPointer(["addresses", address.name]), in: &result) {
                try importAddress(address, line, by: caller, at: now)
            }
        }
        for device in line.devices {
            try take(\.devices, JSONPointer(["devices", device.name]), in: &result) {
                try importDevice(device, line, by: caller, at: now)
            }
        }
        // A no that cannot be taken may end any of the line's consents, so none is taken.
        let losesNo = isLosingNo || read.refused.contains { Self.isNo($0.pointer) }
        let isKeepingNoes = !losesNo && !line.consents.isEmpty
        if losesNo {
            for consent in line.consents {
                result.refused.append(
                    ImportRefusal(
                        consent.pointer, .invalidRequest,
                        "a withdrawal or a choice of the line cannot be taken, and a yes does not stand without the no beside it"
                    ))
            }
        }
        for consent in line.consents where !losesNo {
            try take(\.consents, consent.pointer, in: &result) {
                try rules.require(.addConsent, of: caller)
                // One that the line withdraws may be of before a no to something else: it ends all the same.
                let isEnded = line.withdrawals.contains { $0.name == consent.body.id }
                return try addConsent(
                    consent.body, of: line.user, by: caller, at: now, isCiting: false, isEnded: isEnded
                ).isReplayed ? .unchanged : .recorded
            }
        }
        for withdrawal in line.withdrawals {
            let pointer = JSONPointer(["withdrawals", withdrawal.name])
            try take(\.withdrawals, pointer, in: &result, isNo: isKeepingNoes) {
                try importWithdrawal(withdrawal, of: line.user, by: caller, at: now)
            }
        }
        for choice in line.preferences {
            let isNo = choice.body.choice.choice.storedState != .userOn && isKeepingNoes
            try take(\.preferences, choice.pointer, in: &result, isNo: isNo) {
                try importChoice(choice.body, of: line.user, by: caller, at: now)
            }
        }
        result.entry = try recordImported(by: caller, at: now)
        return result
    }

    /// Whether a part of a line says no, as far as its place tells.
    private static func isNo(_ pointer: JSONPointer?) -> Bool {
        guard let text = pointer?.text else { return true }
        return text.hasPrefix("/withdrawals") || text.hasPrefix("/preferences")
    }

    private enum Outcome {
        case recorded
        case unchanged
        case kept
    }

    /// Takes one part of a line.
    ///
    /// - Parameters:
    ///   - isNeeded: Whether nothing else of the line can be recorded without it.
    ///   - isNo: Whether the consents of the line cannot be recorded without it.
    private func take(
        _ count: WritableKeyPath<ImportCounts, Int>, _ pointer: JSONPointer,
        in result: inout ImportedPerson, isNeeded: Bool = false, isNo: Bool = false,
        _ body: () throws -> Outcome
    ) throws {
        let before = writtenCount
        do {
            switch try body() {
            case .recorded: result.recorded[keyPath: count] += 1
            case .unchanged: result.unchanged[keyPath: count] += 1
            case .kept: result.kept.append(pointer)
            }
        } catch is Problem where isNo {
            throw LostNo()
        } catch let refusal as Problem {
            // What a refused part has written before it was refused goes only with the whole line.
            guard !isNeeded, writtenCount == before else {
                var refusal = refusal
                refusal.detail =
                    "`\(pointer.shortened())`: \(refusal.message); nothing of the line was recorded"
                throw refusal
            }
            for violation in refusal.violations {
                result.refused.append(
                    ImportRefusal(
                        pointer.appending(violation.pointer ?? .root), refusal.name, violation.message))
            }
            if refusal.violations.isEmpty {
                result.refused.append(ImportRefusal(pointer, refusal.name, refusal.message))
            }
        }
    }

    /// Grows with everything that a part may write.
    private var writtenCount: Int {
        let change = memory.change
        return change.entries.count + (imported?.changes.count ?? 0) + change.messages.count
            + change.consents.count + change.choices.count + change.settings.pairs.count
    }

    private static func unfinished() -> Problem {
        Problem(
            .wrongState,
            detail:
                "so many people have this number or mailbox that it is switched off for a part of them at a time; say this one alone"
        )
    }

    // MARK: Parts

    private func importRecipient(
        _ given: Given<RecipientRecord>, _ line: ImportLine, by caller: CallerName, at now: Instant
    ) throws -> Outcome {
        try rules(at: now).require(.putRecipient, of: caller)
        if let subject = try memory.subject(of: line.user), let known = try memory.recipient(subject.id) {
            var same = given.record
            (same.subject, same.registeredAt, same.updatedAt) = (
                known.subject, known.registeredAt, known.updatedAt
            )
            same.region = try observed(same.region, known: known.region, at: now)
            if same == known { return .unchanged }
            if !line.isReplacing { return .kept }
        }
        _ = try putRecipient(line.user, given, by: caller, at: now)
        return .recorded
    }

    private func importDevice(
        _ device: ImportLine.Named<Given<DeviceRecord>>, _ line: ImportLine, by caller: CallerName,
        at now: Instant
    ) throws -> Outcome {
        try rules(at: now).require(.putDevice, of: caller)
        let (id, person) = (DestinationID(device.name), try person(line.user))
        if let known = person.devices.first(where: { $0.id == id }) {
            var same = device.body.record
            (same.subject, same.tag, same.id, same.seenAt) = (known.subject, known.tag, id, known.seenAt)
            (same.isActive, same.subscriptions) = (known.isActive, known.subscriptions)
            same.region = try observed(same.region, known: known.region, at: now)
            if same == known { return .unchanged }
            if !line.isReplacing { return .kept }
        }
        let holder = try memory.device(withToken: device.body.record.tokenIdentity)
        if let holder, holder.subject != person.subject.id, !line.isReplacing {
            throw Problem(
                .wrongState,
                detail: "another person's device has this push token, and an export does not take it away")
        }
        _ = try putDevice(id, device.body, of: line.user, by: caller, at: now)
        return .recorded
    }

    private func importAddress(
        _ address: ImportLine.Named<Given<AddressRecord>>, _ line: ImportLine, by caller: CallerName,
        at now: Instant
    ) throws -> Outcome {
        try rules(at: now).require(.putAddress, of: caller)
        let (id, person) = (DestinationID(address.name), try person(line.user))
        if let known = person.addresses.first(where: { $0.id == id }) {
            let given = address.body.record
            let value = try? RegisteredAddress(given.channel, given.value).value
            if known.channel == given.channel, known.value == value, known.verifiedAt == given.verifiedAt {
                return .unchanged
            }
            if !line.isReplacing { return .kept }
        }
        _ = try putAddress(id, address.body, of: line.user, by: caller, at: now)
        return .recorded
    }

    /// A region of which the line does not say when it was observed: as it is known, where it is the same.
    private func observed(
        _ given: RegionObservation?, known: RegionObservation?, at now: Instant
    ) throws -> RegionObservation? {
        guard var given else { return nil }
        given.code = try rules(at: now).registered(given.code, at: "region")
        if given.observedAt == .unstated, let known { given.observedAt = known.observedAt }
        return given
    }

    private func importWithdrawal(
        _ withdrawal: ImportLine.Named<ConsentWithdrawBody>, of user: UserID, by caller: CallerName,
        at now: Instant
    ) throws -> Outcome {
        try rules(at: now).require(.withdrawConsent, of: caller)
        let body = withdrawal.body
        if let person = try RecipientWithLedger.load(user, from: memory) {
            let named = person.subject.tag(.consent, withdrawal.name)
            let undone = Set(person.consents.lazy.filter { $0.state == .undone }.compactMap(\.withdraws))
            let isRecorded = person.consents.contains {
                guard $0.state == .withdrawn, $0.withdraws == named, !undone.contains($0.idTag) else {
                    return false
                }
                if let method = body.method, method != $0.method { return false }
                guard let time = body.eventTime else {
                    return $0.source == caller && $0.eventTime == $0.receivedAt
                        && $0.receivedAt >= now.advanced(bySeconds: -Self.untimedSeconds)
                }
                return time == $0.statedTime ?? $0.eventTime
            }
            // One that says more than its consent is said again.
            if isRecorded, !body.isForEveryChannel, body.reply == nil { return .unchanged }
        }
        let recorded = try withdrawConsent(withdrawal.name, body, of: user, by: caller, at: now)
        guard !recorded.isUnfinished else { throw Self.unfinished() }
        return .recorded
    }

    private func importChoice(
        _ imported: ImportedChoice, of user: UserID, by caller: CallerName, at now: Instant
    ) throws -> Outcome {
        try rules(at: now).require(.putPreference, of: caller)
        let (scope, choice) = (imported.choice.scope, imported.choice.choice)
        let said = SaidTime(imported.eventTime ?? now, heardAt: now)
        guard said.stated == nil || choice.storedState.isOff else {
            throw Problem(.eventInFuture, detail: "`event_time` is in the future")
        }
        guard let person = try RecipientWithLedger.load(user, from: memory) else {
            throw Problem(.notFound, detail: "register the recipient first")
        }
        var saidAt = said.counts
        var isStanding = true
        for channel in choice.channel.map({ [$0] }) ?? Channel.allCases {
            let place = try choice.destination.map { id in
                guard let destination = person.person.destination(id, on: channel) else {
                    throw Problem(
                        .notFound, detail: "the recipient has no such destination on \(channel.rawValue)")
                }
                return destination.tag
            }
            let reported = PreferenceRecord(
                subject: person.subject.id, scope: scope, channel: channel, destination: place,
                state: choice.storedState, source: choice.source, at: said.counts, caller: caller)
            let known = try knownChoice(before: reported, of: person.person, at: now)
            let isBeforeReply = try isBeforeReply(reported, of: person.person)
            isStanding =
                isStanding
                && (isBeforeReply
                    || stands(known, before: reported, isTimed: imported.eventTime != nil, at: now))
                && endsNothing(
                    reported, isForEveryChannel: choice.channel == nil, isTimed: imported.eventTime != nil,
                    of: person, at: now)
            // An off that is recorded for what it ends does not make a newer one older.
            let newest = person.person.state.preferences.first { $0.isSameChoice(as: reported) }
            if let newest, newest.state.isOff, newest.source != .driftAudit {
                saidAt = max(saidAt, newest.at)
            }
        }
        if isStanding { return .unchanged }
        let recorded = try setPreference(
            choice, scope: scope, of: user, by: caller, saidAt: saidAt, at: now)
        guard !recorded.isUnfinished else { throw Self.unfinished() }
        return .recorded
    }

    /// For how long a word without a time is the same as one that the same importer said before. It counts from when it is imported, and
    /// nobody can say later that it is older than a yes of another file.
    private static let untimedSeconds: Int64 = 86_400

    /// Whether a yes at a number or mailbox was said before a reply that switched it off there: one that was repeated within minutes
    /// is in no choice.
    private func isBeforeReply(_ reported: PreferenceRecord, of person: RecipientSnapshot) throws -> Bool {
        guard reported.state == .userOn, let category = Category(rawValue: reported.scope),
            let address = person.addresses.first(where: { $0.tag == reported.destination }),
            person.state.isOffByReply(category, address.channel, at: address.tag, since: .longAgo),
            let replied = try history(of: AddressKey(address)).repliedAt
        else { return false }
        return reported.at <= replied
    }

    /// The newest choice at the place of one that is reported. Before anything but a yes it is the person's own: what an audit
    /// recorded, and what a link did that can still be taken back, is passed over.
    private func knownChoice(
        before reported: PreferenceRecord, of person: RecipientSnapshot, at now: Instant
    ) throws -> PreferenceRecord? {
        func isOwn(_ choice: PreferenceRecord) -> Bool {
            choice.source != .driftAudit && !choice.isUndoableMute(at: now)
        }
        let newest = person.state.preferences.first { $0.isSameChoice(as: reported) }
        guard let newest, reported.state != .userOn, !isOwn(newest) else { return newest }
        return try memory.preferenceHistory(of: person.subject.id).last {
            $0.isSameChoice(as: reported) && isOwn($0)
        }
    }

    /// Whether a choice that is known stands before one that is reported: it is newer, at one time the no, or the same.
    private func stands(
        _ known: PreferenceRecord?, before reported: PreferenceRecord, isTimed: Bool, at now: Instant
    ) -> Bool {
        guard let known else { return reported.state == .default }
        if reported.state != .userOn
            ? known.stands(againstNoSaidAt: reported.at)
            : known.at > reported.at || known.at == reported.at && known.state.isOff
        {
            return true
        }
        guard known.state == reported.state, known.source == reported.source else { return false }
        return isTimed
            ? known.at == reported.at
            : known.caller == reported.caller && known.at >= now.advanced(bySeconds: -Self.untimedSeconds)
    }

    /// Whether the withdrawals that follow from a choice are in the ledger, each said at its time or later. A newer choice does not stand
    /// for them: it may end no consent.
    private func endsNothing(
        _ reported: PreferenceRecord, isForEveryChannel: Bool, isTimed: Bool, of person: RecipientWithLedger,
        at now: Instant
    ) -> Bool {
        let act = PersonAct(reported, isForEveryChannel: isForEveryChannel)
        guard let category = Category(rawValue: reported.scope),
            act.effect(at: reported.level, on: category).consent == .withdrawn
        else { return true }
        let place = reported.level == .address ? reported.destination : nil
        let undone = Set(person.consents.lazy.filter { $0.state == .undone }.compactMap(\.withdraws))
        // Without what a link ended that can still be taken back.
        let consents = person.consents.filter {
            $0.state != .withdrawn || $0.source != .gateway
                || !UnsubscribeLink.isUndoable(from: $0.receivedAt, at: now)
        }
        let inForce = ConsentLedger.consentsInForce(in: consents)
        let since = now.advanced(bySeconds: -Self.untimedSeconds)
        return policy.purposes(endedWith: category).allSatisfy { purpose in
            // An off is a no without a consent before it. `default`, and a purpose asked for besides, only ends a consent that was given.
            if reported.state == .default || purpose.text != category.rawValue,
                !inForce.isGiven(purpose, on: reported.channel, at: place)
            {
                return true
            }
            // A newer yes of the same place is one whatever was agreed to there before.
            let scope = ConsentsInForce.Scope(purpose: purpose, channel: reported.channel, address: place)
            if reported.channel == .push || place != nil,
                let newest = inForce.byScope[scope], newest.state == .given,
                newest.moment > reported.at
            {
                return true
            }
            return consents.contains {
                guard $0.state == .withdrawn, $0.purpose == purpose, $0.channel == reported.channel,
                    $0.address == nil || $0.address == place, !undone.contains($0.idTag)
                else { return false }
                return isTimed
                    ? $0.eventTime >= reported.at
                    : $0.source == reported.caller && $0.eventTime == $0.receivedAt && $0.receivedAt >= since
            }
        }
    }

    // MARK: The entry

    /// Takes a change of the imported person in; its entry is written at the end, at the place that it has from now on.
    ///
    /// - Returns: `nil` of a change of anybody else, and where nobody is imported.
    func placed(
        _ change: PersonChange, of subject: SubjectID, by caller: CallerName, at now: Instant
    ) throws -> EntryReference? {
        guard var importing = imported, importing.subject == subject else { return nil }
        imported = nil
        let index =
            try importing.index ?? record(StoredEntry(index: upcomingIndex, time: now, bytes: [])).index
        importing.index = index
        importing.changes.append((change, caller))
        imported = importing
        return EntryReference(index: index, bytes: [])
    }

    /// The index of the entry that the next change of a person will be in.
    func upcomingIndex(ofChangeOf subject: SubjectID) -> UInt64 {
        imported?.subject == subject ? imported?.index ?? upcomingIndex : upcomingIndex
    }

    private func recordImported(by caller: CallerName, at now: Instant) throws -> EntryReference? {
        guard let importing = imported, let index = importing.index else { return nil }
        let entry = ImportEntry(importing.changes, of: importing.subject, by: caller, at: now)
        let bytes: [UInt8]
        do throws(TrailEntryError) {
            bytes = try entry.bytes(index: index, time: now)
        } catch {
            throw Problem(.invalidRequest, detail: "\(error.message); say the person in two lines")
        }
        memory.fill(StoredEntry(index: index, time: now, bytes: bytes))
        return EntryReference(index: index, bytes: bytes)
    }
}
