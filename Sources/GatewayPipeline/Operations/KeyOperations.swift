import AuditTrail
import GateSteps
import GateVocabulary
import KeyLifecycle
import GateRecords
import SealedFormat
import WireProtocol

/// A request to change one key: the gateway's own, or a device's.
struct KeyChangeOrder: Sendable {
    /// The id of a key of the gateway's own, or a device key's 32 hexadecimal digits.
    var key: String
    var event: KeyEvent
    var cause: KeyCause
    /// Answers with the result, and changes nothing.
    var isDryRun: Bool
}

extension Gateway {
    /// Makes a key and adds it to the keyring, where it waits to be promoted.
    ///
    /// The private half is durable first. A crash before the entry is durable leaves a file, which the next start
    /// adds.
    func addKey(
        _ body: KeyAddBody, for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void
    ) {
        let (keys, management) = (dependencies.keys, management)
        onReader(for: caller, lane: .security, answer: answer) { [self] in
            do {
                try keys.keyring.requireRoom(for: body.purpose, replacing: body.replaces)
                try management.privateKeys.requirePlace(for: body.purpose)
                guard !body.isDryRun else {
                    return answer(Answer(KeyChangedAnswer(wouldBe: .preActivation, of: nil)))
                }
                let key = try management.privateKeys.make(body.purpose, at: dependencies.clock.now())
                let finish: @Sendable (Answer) -> Void = { [self] recorded in
                    // Another of two requests at once was first, or nothing could be recorded: no file is left of this one.
                    if recorded.status >= 300 { discard(key, management.privateKeys) }
                    answer(recorded)
                }
                change(for: caller, answer: finish) { step, now in
                    try step.addGatewayKey(key, replacing: body.replaces, by: caller, at: now)
                }
            } catch let refusal as KeyringRefusal {
                throw Problem(.wrongState, detail: refusal.message)
            } catch {
                throw Problem(.unavailable, detail: "the key cannot be written: \(error)")
            }
        }
    }

    /// A file that cannot be removed is added by the next start, as a key that waits.
    private func discard(_ key: GatewayKey, _ privateKeys: any PrivateKeys) {
        do {
            try privateKeys.erase(key)
        } catch {
            dependencies.tell(.alarm("the file of the unused key `\(key.id)` cannot be removed: \(error)"))
        }
    }

    /// Changes the state of one key.
    func changeKey(
        _ order: KeyChangeOrder, for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void
    ) {
        guard let device = KeyID(hexadecimal: order.key) else {
            return changeGatewayKey(order, for: caller, answer: answer)
        }
        if order.isDryRun {
            return read(for: caller, answer: answer) {
                try $0.deviceKeyAfter(order.event, of: device, by: caller)
            }
        }
        changeDeviceKeys(for: caller, answer: answer) { step, now in
            let changed = try step.changeDeviceKey(
                device, order.event, because: order.cause, by: caller, at: now)
            return { places in
                let changed = changed(places)
                return Answer(status: changed.secondCallerBy == nil ? 200 : 202, changed)
            }
        }
    }

    private func changeDeviceKeys(
        for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void,
        _ edit: @escaping @Sendable (StepContext, Instant) throws -> Citing<Answer>
    ) {
        engine.submit(
            EditOperation(
                caller: caller, permission: CallerAct.changeKey.permission, lane: .security,
                order: .change(nil), edit: edit, reply: answer))
    }

    private func changeGatewayKey(
        _ order: KeyChangeOrder, for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void
    ) {
        let (privateKeys, keys) = (management.privateKeys, dependencies.keys)
        if order.isDryRun {
            return read(for: caller, answer: answer) {
                try $0.gatewayKeyAfter(order, in: keys.keyring, by: caller, privateKeys)
            }
        }
        change(for: caller, answer: answer) { step, now in
            try step.changeGatewayKey(
                order.key, order.event, because: order.cause, by: caller, at: now,
                isLoaded: privateKeys.isLoaded
            ) {
                try privateKeys.demandReady(for: order.event, of: $0)
            }
        }
    }

    /// Commits a change of the keyring and follows it before the answer, so that a caller with an answer can rely on it. Where
    /// files do not follow it, the answer is no success, although the change is recorded.
    private func change(
        for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void,
        _ step: @escaping @Sendable (StepContext, Instant) throws -> StepContext.GatewayKeyChange
    ) {
        let (privateKeys, tell) = (management.privateKeys, dependencies.tell)
        engine.submit(
            EditOperation(
                caller: caller, permission: CallerAct.changeKey.permission, lane: .security, order: .free,
                edit: { context, now in
                    let changed = try step(context, now)
                    let (keyring, key) = (changed.keyring, changed.key)
                    return { [trail = changed.trail] places in
                        do {
                            // Before the next batch begins: it already seals and signs with what is in use now.
                            try privateKeys.follow(keyring)
                        } catch {
                            tell(
                                .alarm(
                                    "the keyring is committed and not wholly followed; the next change tries again: \(error)"
                                ))
                            if !privateKeys.isFollowed(key) {
                                return Problem(
                                    .unavailable,
                                    detail:
                                        "`\(key.id)` is `\(key.state.rawValue)` and recorded so, and what it asks of files is not done: \(error); mend it, and the next change of a key or the next start does the rest"
                                ).answer
                            }
                        }
                        return Answer(
                            status: key.proposed == nil ? 200 : 202,
                            KeyChangedAnswer(key, trail: places[trail]))
                    }
                }, reply: answer))
    }
}

extension PrivateKeys {
    /// ``requireReady(for:of:)`` with the refusal that the caller is told.
    fileprivate func demandReady(for event: KeyEvent, of key: GatewayKey) throws(Problem) {
        do {
            try requireReady(for: event, of: key)
        } catch {
            let way =
                key.isFollowedByWriting(event)
                ? "make the key directory writable for the gateway (it exists, is the gateway's, on a file system that is mounted for writing and not full)"
                : "mend it"
            throw Problem(
                .unavailable, detail: "\(error); nothing was recorded; \(way), and ask again")
        }
    }
}

extension GatewayReading {
    /// What a change would make of a device's key.
    func deviceKeyAfter(_ event: KeyEvent, of key: KeyID, by caller: CallerName) throws -> Answer {
        guard let record = try store.deviceKey(key), let state = KeyState(rawValue: record.state) else {
            throw Problem(.notFound, detail: "no key of this id is known")
        }
        let next: KeyState
        do {
            next = try state.after(event)
        } catch {
            throw Problem(.wrongState, detail: error.message)
        }
        if event == .resume, let refusal = try store.refusal(toResume: record) { throw refusal }
        let isFirst =
            try event == .destroy && store.destructionCaller(of: record, besides: caller, at: now) == nil
        return Answer(
            KeyChangedAnswer(
                wouldBe: isFirst ? state : next, of: key.hexadecimal,
                secondCallerBy: isFirst
                    ? GatewayKey.Proposal(caller: caller, at: now).expiresAt : nil))
    }

    /// - Parameter found: With the keys that the next start of a stopped gateway takes in.
    func gatewayKeyAfter(
        _ order: KeyChangeOrder, in found: Keyring, by caller: CallerName, _ privateKeys: any PrivateKeys
    ) throws -> Answer {
        let stored = try store.keyring() ?? Keyring()
        var keyring = stored[order.key] == nil ? found : stored
        let isResealed = try store.resealedDataKey() == keyring.active(.data)?.id
        do {
            let changes = try keyring.apply(
                order.event, to: order.key, because: order.cause, by: caller, at: now,
                isNeeded: { _ in !isResealed }, isLoaded: privateKeys.isLoaded)
            if let key = keyring[order.key] {
                if let refusal = try store.refusal(toUse: key) { throw refusal }
                try privateKeys.demandReady(for: order.event, of: key)
            }
            let changed = changes.last?.key
            return Answer(
                KeyChangedAnswer(
                    wouldBe: changed?.state ?? .destroyed, of: order.key,
                    secondCallerBy: changed?.proposed?.proposal.expiresAt
                ))
        } catch let error as KeyringRefusal {
            if case .unknownKey = error { throw Problem(.notFound, detail: error.message) }
            throw Problem(.wrongState, detail: error.message)
        }
    }

    /// How many stored rows are not yet sealed under the active data key.
    func dataKeyLag(_ keys: GateKeys) throws -> Answer {
        guard let active = keys.keyring.active(.data) else {
            throw Problem(.unavailable, detail: "no data key is in use")
        }
        // Where no other was ever in use, nothing can be under it, also before the first pass has said so.
        let isFirst = !keys.keyring.keys.contains {
            $0.purpose == .data && $0.id != active.id && $0.state != .preActivation
        }
        let isDone = try isFirst || store.resealedDataKey() == active.id
        return Answer(
            KeyLagAnswer(
                key: active.id, rowCount: isDone ? 0 : try store.laggingRowCount(), isDone: isDone
            ))
    }
}

extension Gateway {
    /// Looks at one piece of all device keys, and revokes those that the selection includes in one step.
    func revokeDeviceKeys(
        _ body: DeviceKeysRevokeBody, for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void
    ) {
        let selection = DeviceKeySelection(body)
        onReader(for: caller, lane: .security, answer: answer) { [self] in
            guard selection.registeredBefore <= dependencies.clock.now() else {
                throw Problem(.eventInFuture, detail: "`registered_before` is in the future")
            }
            let piece = try store.read { store in
                guard let user = body.user else {
                    return try selection.piece(after: body.after, in: store)
                }
                return try selection.piece(of: user, device: body.device, in: store)
            }
            let (keys, meant) = (piece.examined, piece.meant)
            let isLast = body.user != nil || keys.count < DeviceKeySelection.pieceCount
            let next = isLast ? nil : keys.last
            @Sendable func report(_ revokedCount: Int) -> Answer {
                Answer(
                    DeviceKeysRevokedAnswer(
                        examinedCount: keys.count, revokedCount: revokedCount,
                        unreadableCount: piece.unreadableCount, next: next,
                        isDryRun: body.isDryRun
                    ))
            }
            guard !body.isDryRun, !meant.isEmpty else { return answer(report(meant.count)) }
            changeDeviceKeys(for: caller, answer: answer) { step, now in
                let count = try step.revokeDeviceKeys(meant, of: selection, by: caller, at: now)
                let answer = report(count)
                return { _ in answer }
            }
        }
    }
}

extension DeviceKeySelection {
    /// The next device keys, and those of them that the selection includes.
    fileprivate func piece(
        after key: KeyID?, in store: any StoreReading
    ) throws -> (examined: [KeyID], meant: [KeyID], unreadableCount: Int) {
        try piece(of: store.deviceKeys(after: key, limit: Self.pieceCount), in: store)
    }

    /// The keys of one person's devices, or of one device: none where there is no such person or device. They are few, so they
    /// are one piece.
    fileprivate func piece(
        of user: UserID, device: DestinationID?, in store: any StoreReading
    ) throws -> (examined: [KeyID], meant: [KeyID], unreadableCount: Int) {
        guard let subject = try store.subject(of: user) else { return ([], [], 0) }
        let devices = try store.devices(of: subject.id).filter { device == nil || $0.id == device }
        return try piece(
            of: devices.flatMap { try store.deviceKeys(of: subject.id, device: $0.tag).map(\.key) }, in: store
        )
    }

    private func piece(
        of examined: [KeyID], in store: any StoreReading
    ) throws -> (examined: [KeyID], meant: [KeyID], unreadableCount: Int) {
        var (meant, unreadableCount) = ([KeyID](), 0)
        for key in examined {
            do {
                if try includes(store.deviceKey(key), in: store) { meant.append(key) }
            } catch let error as StoreError where error.damage != nil {
                unreadableCount += 1
            }
        }
        return (examined, meant, unreadableCount)
    }

    init(_ body: DeviceKeysRevokeBody) {
        self.init(
            cause: KeyCause(body.cause), registeredBefore: body.registeredBefore, app: body.app,
            suite: body.suite?.rawValue)
    }
}

extension Gateway {
    /// Takes a list of genuine keys that the authority signed, and publishes it beside the checkpoint.
    func adoptKeyset(
        _ body: KeysetBody, for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void
    ) {
        let (library, tell) = (library, dependencies.tell)
        let trust = KeysetTrust(
            authorities: management.authorities, gateway: TrailName.gateway(of: library.origin))
        engine.submit(
            EditOperation(
                caller: caller, permission: CallerAct.putKeyset.permission, lane: .security, order: .free,
                edit: { step, now in
                    let changed = try step.adoptKeyset(body.note, trusting: trust, by: caller, at: now)
                    return { places in
                        do {
                            if changed.secondCallerBy == nil {
                                try library.publishKeyset(Array(body.note.utf8))
                            }
                        } catch {
                            tell(
                                .alarm("the keyset is in force and is published by the next start: \(error)"))
                        }
                        return Answer(
                            status: changed.secondCallerBy == nil ? 200 : 202,
                            KeysetChangedAnswer(
                                version: changed.keyset.version,
                                expiresAt: Instant(milliseconds: Int64(changed.keyset.expiresAt) * 1000),
                                secondCallerBy: changed.secondCallerBy,
                                trail: changed.trail.map { places[$0] }
                            ))
                    }
                }, reply: answer))
    }
}

extension GatewayReading {
    /// The signed note as it was brought by its callers.
    func keyset() throws -> Answer {
        guard let note = try store.keysetNote() else {
            throw Problem(
                .notFound,
                detail: "no keyset is in force; `PUT /v1/keyset` takes one that the authority signed")
        }
        return Answer(status: 200, contentType: MediaType.text, body: Array(note.utf8))
    }
}

extension KeyChangedAnswer {
    init(_ key: GatewayKey, trail: TrailReference) {
        self.init(
            key: key.id, state: key.state.rawValue, trail: trail,
            secondCallerBy: key.proposed?.proposal.expiresAt)
    }

    /// The answer to a dry run.
    ///
    /// - Parameter until: Set where the request would only be the first of the two that are needed.
    init(wouldBe state: KeyState, of key: String?, secondCallerBy until: Instant? = nil) {
        self.init(key: key, state: state.rawValue, trail: nil, isDryRun: true, secondCallerBy: until)
    }
}

extension KeyAnswer {
    init(_ key: GatewayKey) {
        self.init(
            key: key.id, purpose: key.purpose.rawValue, suite: key.purpose.suite, state: key.state.rawValue,
            createdAt: key.createdAt, changedAt: key.changedAt,
            publicKey: key.publicKey.map { Base64URL.encode($0) })
    }
}
