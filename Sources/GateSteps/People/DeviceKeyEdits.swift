import CanonicalJSON
package import GateVocabulary
package import KeyLifecycle
import OpenSSLCrypto
package import GateRecords
import SealedFormat
package import WireProtocol

/// A device's keys: registered, proved, used, revoked.
extension StepContext {
    /// How long a challenge waits for its answer: 5 minutes, in seconds.
    static let challengeSeconds: Int64 = 300
    /// Keys of one device that wait to be proved. A further key replaces the oldest: the newest registration is the phone's,
    /// and a client that never answers must not grow a person's state.
    static let unprovedKeyCountMax = 4
    /// Registrations of one device within ``registrationWindowSeconds``. Each validates a point, seals one or two
    /// challenges, and adds an entry. No more than ``unprovedKeyCountMax``, because the state has only so many of the
    /// newest.
    static let registrationCountMax = 4
    static let registrationWindowSeconds: Int64 = 60

    /// Adds a device's public key and challenges its owner. Nothing is sealed to it until possession is proved.
    package func addDeviceKey(
        _ body: DeviceKeyBody, to deviceID: DestinationID, of user: UserID, by caller: CallerName,
        at now: Instant
    ) throws -> Citing<KeyChallengeAnswer> {
        let person = try person(user)
        let device = try self.device(deviceID, of: person)
        let known = try memory.deviceKeys(of: person.subject.id, device: device.tag)
        try requireRoomForRegistration(after: known, at: now)
        guard let suite = SealingSuite(rawValue: body.suite.rawValue) else {
            throw Problem(
                .invalidPublicKey, detail: "nothing is sealed for the suite `\(body.suite.rawValue)`")
        }
        let publicKey: DevicePublicKey
        let sealingKey: DeviceSealingKey
        do {
            publicKey = try DevicePublicKey(validating: body.publicKey, suite: suite)
            sealingKey = try DeviceSealingKey(publicKey)
        } catch {
            throw Problem(.invalidPublicKey, detail: "the bytes are no public key of \(suite.rawValue)")
        }
        try requireUncompromised(body.publicKey, suite)
        let unproved = known.filter { KeyState(rawValue: $0.state) == .preActivation }
        var surplus = unproved.dropFirst(Self.unprovedKeyCountMax - 1).map(\.forgotten)
        // Here alone the number of keys grows.
        surplus += try memory.state(of: person.subject.id)?.surplusKeys() ?? []
        for key in surplus {
            try record(.deviceKeyForgotten(key), of: person.subject.id, by: caller, at: now)
        }
        let key = try identifiers.newKeyID()
        let expiry = now.advanced(bySeconds: Self.challengeSeconds)
        let fresh = try memory.challenge(
            ChallengeOrder(
                key: key, suite: suite, publicKey: sealingKey.publicKey.rawBytes, app: device.app,
                device: device.id, message: try identifiers.newMessageID(), expiresAt: expiry))
        // A stolen session alone must not suffice to replace the key: the old key has to answer too.
        let active = known.first { KeyState(rawValue: $0.state) == .active }
        let old = try active.map { active in
            try memory.challenge(
                ChallengeOrder(
                    key: active.key, suite: try active.sealingSuite, publicKey: active.publicKey,
                    app: device.app, device: device.id, message: try identifiers.newMessageID(),
                    expiresAt: expiry))
        }
        let registered = DeviceKeyRecord(
            key: key, subject: person.subject.id, device: device.tag, suite: suite.rawValue,
            publicKey: body.publicKey, state: KeyState.preActivation.rawValue,
            challenge: .init(
                expectedProof: fresh.proof, expectedOldKeyProof: old?.proof, oldKey: active?.key,
                expiresAt: expiry), createdAt: now, changedAt: now)
        let trail = try record(
            .deviceKey(registered, proof: nil, by: .init(event: .add)), of: person.subject.id, by: caller,
            at: now)
        return {
            KeyChallengeAnswer(
                key: key, challenge: fresh.envelope, oldKeyChallenge: old?.envelope, expiresAt: expiry,
                trail: $0[trail])
        }
    }

    /// Checks the proof and puts the key to use; the device's earlier key stops sealing in the same step.
    package func confirmDeviceKey(
        _ key: KeyID, _ body: KeyConfirmBody, of deviceID: DestinationID, user: UserID, by caller: CallerName,
        at now: Instant
    ) throws -> KeyConfirmation {
        let person = try person(user)
        let device = try self.device(deviceID, of: person)
        guard var record = try memory.deviceKey(key), record.subject == person.subject.id,
            record.device == device.tag
        else { throw Problem(.notFound, detail: "the device has no key of this id") }
        guard KeyState(rawValue: record.state) == .preActivation, let challenge = record.challenge else {
            throw Problem(
                .wrongState,
                detail: "the key is `\(record.state)`, with no challenge open; register the key again")
        }
        guard record.isOpen(challenge, at: now) else {
            throw Problem(
                .challengeExpired,
                detail: "a challenge waits \(Self.challengeSeconds) s; register the key again")
        }
        try requireUncompromised(record.publicKey, record.sealingSuite)
        try requireUnchanged(since: challenge, of: record)
        let isProved = HMACKey.constantTimeEqual(body.proof, challenge.expectedProof)
        let isOldProved =
            challenge.expectedOldKeyProof.map { expected in
                body.oldKeyProof.map { HMACKey.constantTimeEqual($0, expected) } ?? false
            } ?? true
        record.challenge = nil
        record.changedAt = now
        guard isProved, isOldProved else {
            let triesLeft = challenge.triesLeft - 1
            if triesLeft > 0 {
                record.challenge = challenge
                record.challenge?.triesLeft = triesLeft
            }
            try self.record(
                .deviceKey(record, proof: .wrong), of: person.subject.id, by: caller, at: now)
            return .wrong(
                Problem(
                    .proofWrong,
                    detail: (isProved
                        ? "the proof of the key before this one is wrong or missing" : "the proof is wrong")
                        + (triesLeft > 0
                            ? "; \(triesLeft) more tries before the challenge expires"
                            : "; register the key again for a new challenge")))
        }
        record.state = KeyState.active.rawValue
        let notices = try deactivateOthers(than: record, of: person, by: caller, at: now)
        let trail = try self.record(
            .deviceKey(record, proof: .right, by: .init(event: .promote)), of: person.subject.id, by: caller,
            at: now)
        try reconsider(person.subject, because: .keyChanged, at: now)
        for notice in notices { try enqueue(notice, of: person, at: now) }
        return .right { [state = record.state] in
            KeyChangedAnswer(key: key.hexadecimal, state: state, trail: $0[trail])
        }
    }

    /// Changes the state of one device key, at the security team's request.
    package func changeDeviceKey(
        _ key: KeyID, _ event: KeyEvent, because cause: KeyCause, by caller: CallerName, at now: Instant
    ) throws -> Citing<KeyChangedAnswer> {
        guard let record = try memory.deviceKey(key), let state = KeyState(rawValue: record.state),
            let subject = try memory.subject(record.subject),
            let person = try RecipientSnapshot.load(subject, from: memory)
        else { throw Problem(.notFound, detail: "no key of this id is known") }
        let next = try rules(at: now).state(of: state, after: event)
        if event == .resume, let refusal = try memory.refusal(toResume: record) { throw refusal }
        var transition = PersonChange.KeyTransition(event, because: cause)
        if event == .destroy {
            guard let first = try memory.destructionCaller(of: record, besides: caller, at: now) else {
                return try proposeDestruction(of: record, by: caller, at: now)
            }
            transition.proposedBy = first
            memory.setDestructionProposal(nil, of: key)
        }
        if next == .compromised, !record.publicKey.isEmpty {
            let mark = settings.index.fingerprint(ofKey: record.publicKey, try record.sealingSuite)
            try memory.markCompromised(mark, at: now)
            transition.publicKeyMAC = mark
            try revokeOthers(with: mark, than: key, of: person, by: caller, at: now)
        }
        var notices: [DeliveryDraft] = []
        if next == .active {
            try requireUncompromised(record.publicKey, record.sealingSuite)
            notices = try deactivateOthers(than: record, of: person, by: caller, at: now)
        }
        let trail = try change(record, to: next, for: transition, by: caller, at: now)
        try reconsider(person.subject, because: .keyChanged, at: now)
        for notice in notices { try enqueue(notice, of: person, at: now) }
        return { KeyChangedAnswer(key: key.hexadecimal, state: next.rawValue, trail: $0[trail]) }
    }

    /// Records the first of the two callers who must ask for a key's destruction.
    private func proposeDestruction(
        of key: DeviceKeyRecord, by caller: CallerName, at now: Instant
    ) throws -> Citing<KeyChangedAnswer> {
        var key = key
        key.changedAt = now
        let proposal = GatewayKey.Proposal(caller: caller, at: now)
        memory.setDestructionProposal(StoredProposal(content: key.state, by: proposal), of: key.key)
        let trail = try record(
            .deviceKey(key, proof: nil, by: .init(event: .proposeDestruction)), of: key.subject, by: caller,
            at: now)
        return { [state = key.state, id = key.key.hexadecimal] in
            KeyChangedAnswer(
                key: id, state: state, trail: $0[trail], secondCallerBy: proposal.expiresAt)
        }
    }

    /// Changes the state of those of many keys that the selection still includes, each with an entry of its own.
    ///
    /// - Returns: How many changed their state.
    package func revokeDeviceKeys(
        _ keys: [KeyID], of selection: DeviceKeySelection, by caller: CallerName, at now: Instant
    ) throws -> Int {
        var count = 0
        // A key with the same public half as another of the person's ends with that one.
        for key in keys where try selection.includes(memory.deviceKey(key), in: memory) {
            _ = try changeDeviceKey(
                key, selection.event, because: selection.cause, by: caller, at: now)
            count += 1
        }
        return count
    }

    /// Revokes the same public key under the person's other key ids.
    private func revokeOthers(
        with mark: [UInt8], than key: KeyID, of person: RecipientSnapshot, by caller: CallerName,
        at now: Instant
    ) throws {
        for device in person.devices {
            for other in try memory.deviceKeys(of: person.subject.id, device: device.tag)
            where other.key != key && !other.publicKey.isEmpty {
                guard let state = KeyState(rawValue: other.state), let next = try? state.after(.revoke),
                    settings.index.fingerprint(ofKey: other.publicKey, try other.sealingSuite) == mark
                else { continue }
                var transition = PersonChange.KeyTransition(.revoke, because: .compromised)
                transition.publicKeyMAC = mark
                try change(other, to: next, for: transition, by: caller, at: now)
            }
        }
    }

    /// Refuses a key that was ever revoked as compromised: on every device, of every person, in every encoding, also
    /// after the person it was taken from was erased. The store keeps a MAC under the index key and the moment, which
    /// identify no person.
    private func requireUncompromised(_ publicKey: [UInt8], _ suite: SealingSuite) throws {
        let mark = settings.index.fingerprint(ofKey: publicKey, suite)
        guard try memory.setting(GateMemory.compromisedSetting(mark)) == nil else {
            throw Problem(
                .wrongState,
                detail: "this public key was revoked as compromised; make a new key pair on the device")
        }
    }

    /// Refuses a proof that does not answer the present challenge. A key that came into use since then has answered
    /// nothing, so the proof does not replace it; and while a key is suspended, only the security team decides which
    /// key is used.
    private func requireUnchanged(
        since challenge: DeviceKeyRecord.PendingChallenge, of record: DeviceKeyRecord
    ) throws {
        let others = try memory.deviceKeys(of: record.subject, device: record.device)
            .filter { $0.key != record.key }
        guard !others.contains(where: { KeyState(rawValue: $0.state) == .suspended }) else {
            throw Problem(
                .wrongState,
                detail:
                    "a key of this device is suspended; the security team promotes this one, or revokes that one first"
            )
        }
        guard others.first(where: { KeyState(rawValue: $0.state) == .active })?.key == challenge.oldKey else {
            throw Problem(
                .wrongState,
                detail: "the device's active key changed after the challenge; register the key again")
        }
    }

    /// Limits the registrations of a device. The keys of a device outlive its removal, so that removing it and putting it
    /// back does not start the count anew.
    private func requireRoomForRegistration(after known: [DeviceKeyRecord], at now: Instant) throws {
        let registrations = known.map { $0.createdAt.advanced(bySeconds: Self.registrationWindowSeconds) }
            .filter { $0 > now }.sorted()
        guard registrations.count >= Self.registrationCountMax else { return }
        let next = registrations[registrations.count - Self.registrationCountMax]
        throw Problem(
            .rateLimited,
            detail:
                "a device registers \(Self.registrationCountMax) keys in \(Self.registrationWindowSeconds) s at most; answer a challenge that is open, or register again later",
            retryAfterSeconds: Int((next.milliseconds - now.milliseconds + 999) / 1_000))
    }

    // MARK: What the edits share

    private func device(_ id: DestinationID, of person: RecipientSnapshot) throws -> DeviceRecord {
        guard let device = person.devices.first(where: { $0.id == id }) else {
            throw Problem(.notFound, detail: "the recipient has no device of this name")
        }
        return device
    }

    /// One device has one active key.
    ///
    /// - Returns: What the holders of the others are told.
    private func deactivateOthers(
        than key: DeviceKeyRecord, of person: RecipientSnapshot, by caller: CallerName, at now: Instant
    ) throws -> [DeliveryDraft] {
        var notices: [DeliveryDraft] = []
        for other in try memory.deviceKeys(of: key.subject, device: key.device)
        where other.key != key.key && KeyState(rawValue: other.state) == .active {
            if let notice = try announceReplacement(of: other, of: person, at: now) { notices.append(notice) }
            try change(
                other, to: .deactivated, for: .init(.deactivate, because: .rotation), by: caller, at: now)
        }
        return notices
    }

    /// Records that a key is in another state, in which no challenge of before is open.
    @discardableResult
    private func change(
        _ key: DeviceKeyRecord, to state: KeyState, for transition: PersonChange.KeyTransition,
        by caller: CallerName, at now: Instant
    ) throws -> EntryReference {
        var key = key
        key.state = state.rawValue
        key.challenge = nil
        key.changedAt = now
        if state == .destroyed { key.publicKey = [] }
        return try record(.deviceKey(key, proof: nil, by: transition), of: key.subject, by: caller, at: now)
    }
}

extension RecordReading {
    /// Why a suspended key of a device may not come back into use: another took its place. `nil` when it may.
    package func refusal(toResume key: DeviceKeyRecord) throws -> Problem? {
        let active = try deviceKeys(of: key.subject, device: key.device)
            .first { $0.key != key.key && KeyState(rawValue: $0.state) == .active }
        return active.map {
            Problem(
                .wrongState,
                detail:
                    "`\($0.key.hexadecimal)` of the device is `active` already; suspend or revoke that one first"
            )
        }
    }
}

extension DeviceKeyRecord {
    var sealingSuite: SealingSuite {
        get throws {
            guard let suite = SealingSuite(rawValue: suite) else {
                throw StoreError.damaged(table: "held", "device_key \(key): the suite `\(suite)` is unknown")
            }
            return suite
        }
    }
}

extension PersonChange.KeyTransition {
    init(_ event: KeyEvent, because cause: KeyCause) {
        // Their names are the same. A cause without one is no more than that a caller asked.
        self.init(event: Event(rawValue: event.rawValue)!, cause: Cause(rawValue: cause.rawValue))
    }
}

/// The result of a proof. A wrong one is refused, and recorded all the same.
package enum KeyConfirmation {
    case right(Citing<KeyChangedAnswer>)
    case wrong(Problem)
}

/// Which device keys, of all people, a change is for, and the change.
package struct DeviceKeySelection: Sendable {
    package var event: KeyEvent
    package var cause: KeyCause
    package var registeredBefore: Instant
    package var app: String?
    package var suite: String?

    /// Keys looked at in one step, so that a step does not hold up others for long.
    package static let pieceCount = 64

    package init(cause: KeyCause, registeredBefore: Instant, app: String?, suite: String?) {
        event = cause.ending
        self.cause = cause
        self.registeredBefore = registeredBefore
        self.app = app
        self.suite = suite
    }

    /// Whether a key is meant, and in a state in which the event can happen to it.
    package func includes(_ record: DeviceKeyRecord?, in people: any RecordReading) throws -> Bool {
        guard let record, record.createdAt < registeredBefore, suite == nil || record.suite == suite,
            let state = KeyState(rawValue: record.state), (try? state.after(event)) != nil
        else { return false }
        guard let app else { return true }
        return try people.devices(of: record.subject).contains { $0.tag == record.device && $0.app == app }
    }
}

extension GateMemory {
    /// Keeps that a public key is compromised, whatever becomes of the person it belonged to.
    ///
    /// - Parameter mark: What every encoding of the key shares (``IndexKey/fingerprint(ofKey:_:)``).
    func markCompromised(_ mark: [UInt8], at now: Instant) throws {
        setSetting(Self.compromisedSetting(mark), to: now.rfc3339)
    }

    fileprivate static func compromisedSetting(_ mark: [UInt8]) -> String {
        "compromised key \(Hexadecimal.encode(mark))"
    }
}
