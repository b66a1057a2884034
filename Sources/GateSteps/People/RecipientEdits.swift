import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
package import GateRecords
package import WireProtocol

/// Registering people, their devices and addresses.
extension StepContext {
    package func putRecipient(
        _ user: UserID, _ given: Given<RecipientRecord>, by caller: CallerName, at now: Instant
    ) throws -> Recorded {
        try rules(at: now).requireKnown(zone: given.record.timeZone)
        var recipient = given.record
        recipient.region = try recipient.region.map { try observation($0, now: now) }
        let subject =
            try memory.subject(of: user)
            ?? memory.makeSubject(for: user)
        let before = try RecipientSnapshot.load(subject, from: memory)
        let earlier = before?.record
        (recipient.subject, recipient.updatedAt) = (subject.id, now)
        recipient.registeredAt = earlier?.registeredAt ?? now
        let trail = try record(
            .recipient(recipient, action: earlier == nil ? .registered : .updated), of: subject.id,
            by: caller,
            at: now)
        guard let before else { return Recorded(entry: trail) }
        let after = try person(user)
        try reconsider(subject.id, as: after, because: .recipientChanged, at: now)
        if before.record.pushEnabled, !recipient.pushEnabled {
            try recordDisabling(by: .pushSwitch, on: [.push], at: nil, from: before, to: after, at: now)
        }
        return Recorded(entry: trail)
    }

    /// Erases a person: removes everything stored about them and takes their waiting messages out. The trail keeps a
    /// pseudonym that leads to nothing any more (GDPR Art. 17).
    package func erase(_ user: UserID, by caller: CallerName, at now: Instant) throws -> Recorded {
        guard let subject = try memory.subject(of: user), try memory.recipient(subject.id) != nil else {
            throw Problem(.notFound, detail: "nobody of this name is registered")
        }
        for row in try memory.outbox(of: subject.id) { try apply(.erased, to: recall(row), at: now) }
        memory.eraseSubject(subject.id)
        return Recorded(entry: try record(ErasureEntry(subject: subject.id, caller: caller), at: now))
    }

    package func putDevice(
        _ id: DestinationID, _ given: Given<DeviceRecord>, of user: UserID, by caller: CallerName,
        at now: Instant
    ) throws -> Recorded {
        let person = try person(user)
        try rules(at: now).requireKnown(zone: given.record.timeZone)
        let tag = person.subject.tag(.device, id.text)
        let earlier = person.devices.first { $0.tag == tag }
        if earlier == nil { try rules(at: now).requireRoom(besides: person.devices.count, "devices") }
        var device = given.record
        (device.subject, device.tag, device.id, device.seenAt) = (person.subject.id, tag, id, now)
        device.region = try device.region.map { try observation($0, now: now) }
        // A token is one app on one phone. A record with it in another account is out of date.
        let other = try memory.device(withToken: device.tokenIdentity)
        let replaced = other.flatMap { ($0.subject, $0.tag) == (device.subject, device.tag) ? nil : $0 }
        if let replaced { try deactivate(replaced, because: .tokenTaken, by: caller, at: now) }
        // What is composed for one push service means nothing to another, and a seal is bound to its app.
        if let earlier, !earlier.isPushedTo(like: device) {
            try withdrawWaiting(for: tag, of: person, at: now) { OutboxState($0).content == .ready }
        }
        let trail = try record(
            .device(
                device, action: earlier == nil ? .registered : .updated,
                isTokenChanged: earlier.map { $0.tokenIdentity != device.tokenIdentity }),
            of: person.subject.id, by: caller, at: now)
        // The same phone under another id: what was switched off at it is off at it still.
        if let replaced, replaced.subject == device.subject {
            var edit = PersonEdit(besidesConsentsOf: try self.person(user), policy: policy, at: now)
            _ = edit.carryNoes(from: replaced.tag, to: tag, on: .push, by: caller)
            try write(edit)
        }
        let after = try self.person(user)
        try reconsider(person.subject.id, as: after, because: .recipientChanged, at: now)
        if earlier?.osPermission == .granted, device.osPermission == .denied {
            try recordDisabling(by: .osPermission, on: [.push], at: tag, from: person, to: after, at: now)
        }
        return Recorded(entry: trail)
    }

    package func removeDevice(
        _ id: DestinationID, of user: UserID, by caller: CallerName, at now: Instant
    ) throws -> Recorded {
        let person = try person(user)
        let tag = person.subject.tag(.device, id.text)
        guard person.devices.contains(where: { $0.tag == tag }) else {
            throw Problem(.notFound, detail: "the recipient has no device of this name")
        }
        try withdrawWaiting(for: tag, of: person, at: now)
        return Recorded(entry: try record(.deviceRemoved(tag), of: person.subject.id, by: caller, at: now))
    }

    package func putAddress(
        _ id: DestinationID, _ given: Given<AddressRecord>, of user: UserID, by caller: CallerName,
        at now: Instant
    ) throws -> Recorded {
        let person = try person(user)
        var address = given.record
        if let verifiedAt = address.verifiedAt, verifiedAt > now {
            throw Problem(.eventInFuture, detail: "`verified_at` is in the future")
        }
        let checked = try registered(address)
        let tag = person.subject.addressTag(checked.key)
        if let other = person.addresses.first(where: { $0.tag == tag && $0.id != id }) {
            throw Problem(
                .wrongState, detail: "this address is registered as `\(other.id)`; remove that one first")
        }
        let earlier = person.addresses.first { $0.id == id }
        if earlier == nil { try rules(at: now).requireRoom(besides: person.addresses.count, "addresses") }
        // Another value is another address, under the same name: what was agreed for the one is not for the other.
        let replaced = earlier?.tag == tag ? nil : earlier?.tag
        if let earlier, replaced != nil { try leave(earlier, of: person, at: now) }
        let contest = try contest(
            of: checked.key, verifiedAt: address.verifiedAt, by: person.subject.id,
            before: replaced == nil ? earlier : nil)
        (address.subject, address.tag, address.id) = (person.subject.id, tag, id)
        (address.contestedAt, address.updatedAt) = (contest.since, now)
        address.settle(as: checked)
        let trail = try record(
            .address(address, action: earlier == nil ? .registered : .updated, replaced: replaced),
            of: person.subject.id, by: caller, at: now)
        if let replaced, var edit = try beginEdit(of: user, at: now) {
            let carriesWithdrawal = edit.carryNoes(
                from: replaced, to: tag, on: address.channel, by: caller)
            try write(edit)
            if carriesWithdrawal {
                try reconsider(person.subject.id, as: edit.person, because: .consentChanged, at: now)
            }
        }
        if earlier == nil || replaced != nil {
            try applyNoes(saidAt: checked.key, to: person.subject.id, by: caller, at: now)
        }
        try reconsider(person.subject, because: .recipientChanged, at: now)
        try contest.older.forEach { try self.contest($0, by: caller, at: now) }
        return Recorded(entry: trail)
    }

    package func removeAddress(
        _ id: DestinationID, of user: UserID, by caller: CallerName, at now: Instant
    ) throws -> Recorded {
        let person = try person(user)
        guard let address = person.addresses.first(where: { $0.id == id }) else {
            throw Problem(.notFound, detail: "the recipient has no address of this name")
        }
        try leave(address, of: person, at: now)
        return Recorded(
            entry: try record(.addressRemoved(address.tag), of: person.subject.id, by: caller, at: now))
    }

    /// Takes out the messages that wait for an address which is a person's no more, and remembers how newly it was verified: an older
    /// verification, registered later, does not count again (SG-0044).
    private func leave(_ address: AddressRecord, of person: RecipientSnapshot, at now: Instant) throws {
        try withdrawWaiting(for: address.tag, of: person, at: now)
        if address.verifiedAt != nil {
            try remember(at: AddressKey(address)) { $0.addVerification(of: address) }
        }
    }

    /// Withdraws the messages that wait for a removed destination. A message that is being handed over right now cannot
    /// be recalled.
    ///
    /// - Parameter isMeant: Which of them.
    private func withdrawWaiting(
        for destination: Tag, of person: RecipientSnapshot, at now: Instant,
        where isMeant: (OutboxRecord) -> Bool = { _ in true }
    ) throws {
        for row in try memory.outbox(of: person.subject.id)
        where row.destination == destination && isMeant(row) {
            try apply(.destinationRemoved, to: recall(row), at: now)
        }
    }

    /// The OS prompt was shown: never again on this device (S1, "never prompt twice"). What the person answered may
    /// be reported with it or later, once; it is the device's permission from then on.
    package func addPermissionPrompt(
        _ body: PermissionPromptBody, of user: UserID, by caller: CallerName, at now: Instant
    ) throws -> Recorded {
        let person = try person(user)
        let tag = person.subject.tag(.device, body.device.text)
        guard person.devices.contains(where: { $0.tag == tag }) else {
            throw Problem(.notFound, detail: "the recipient has no device of this name")
        }
        // A no from a phone whose clock is ahead is a no all the same.
        let shownAt = body.answer == .denied ? min(body.shownAt ?? now, now) : body.shownAt ?? now
        let earlier = try memory.permissionPrompts(of: person.subject.id).first { $0.device == tag }
        try rules(at: now).requireFirst(
            promptShownAt: shownAt, isAnswered: body.answer != nil, after: earlier)
        let prompt = PermissionPrompt(
            subject: person.subject.id, device: tag, shownAt: earlier?.shownAt ?? shownAt,
            answer: body.answer.map { $0 == .granted ? .granted : .denied })
        let trail = try record(
            .permissionPrompt(prompt, action: earlier == nil ? .prompted : .answered), of: person.subject.id,
            by: caller, at: now)
        if body.answer != nil { try reconsider(person.subject, because: .recipientChanged, at: now) }
        return Recorded(entry: trail)
    }

    // MARK: What the edits share

    /// Takes the token of a device out of use that a provider does not know any more.
    ///
    /// - Parameter moment: A token that was registered later is another one, and stays.
    func deactivateDevice(
        _ tag: Tag, of subject: SubjectID, seenBy moment: Instant, by caller: CallerName, at now: Instant
    ) throws {
        let device = try memory.devices(of: subject).first { $0.tag == tag }
        guard let device, device.isActive, device.seenAt <= moment else { return }
        try deactivate(device, because: .tokenGone, by: caller, at: now)
    }

    /// Forgets the token of a device that it does not belong to any more, with an entry; nothing is sent there until the
    /// app registers again.
    func deactivate(
        _ device: DeviceRecord, because why: PersonChange.Deactivation, by caller: CallerName,
        at now: Instant
    ) throws {
        guard let subject = try memory.subject(device.subject) else { return }
        try record(.deviceDeactivated(device.tag, because: why), of: subject.id, by: caller, at: now)
        try reconsider(subject, because: .recipientChanged, at: now)
    }

    package func person(_ user: UserID) throws -> RecipientSnapshot {
        guard let person = try RecipientSnapshot.load(user, from: memory) else {
            throw Problem(.notFound, detail: "register the recipient first")
        }
        return person
    }

    func reconsider(_ subject: Subject, because cause: WithdrawalCause, at now: Instant) throws {
        try reconsider(
            subject.id, as: try RecipientSnapshot.load(subject, from: memory), because: cause, at: now)
    }

    /// What was given of a region, as it counts from now on.
    private func observation(_ given: RegionObservation, now: Instant) throws -> RegionObservation {
        let rules = rules(at: now)
        var observation = given
        if given.observedAt == .unstated { observation.observedAt = now }
        try rules.requirePast(observation)
        observation.code = try rules.registered(given.code, at: "region")
        return observation
    }

    /// The number or mailbox that a caller named, in its canonical form.
    private func registered(_ address: AddressRecord) throws -> RegisteredAddress {
        do {
            return try RegisteredAddress(address.channel, address.value)
        } catch {
            throw Problem(wrong: "value", error.description)
        }
    }
}
