import CompliancePolicy
package import GateVocabulary
import KeyLifecycle
import OpenSSLCrypto
package import GateRecords
import SealedFormat
import SendPlanning

// What `sendgate restore` does to a store, entry by entry.

extension RestoredEffect {
    /// What bringing it back certainly looks at.
    package var asks: [Ask] {
        switch self {
        case .person(let subject, let change):
            var asks: [Ask] = [.subject(subject), .state(subject)]
            if case .consent(let event) = change, event.withdraws != nil { asks.append(.consents(subject)) }
            if case .deviceKey(let key, _, _) = change { asks.append(.key(key.key)) }
            return asks
        case .erasure(let subject): return [.subject(subject), .state(subject), .messagesOfPerson(subject)]
        case .send(let entry, _, _, _):
            return entry.subject.map { [.subject($0), .state($0)] } ?? []
        case .forward(let subject, let record):
            return [.subject(subject)] + (record.send.map { [.send($0)] } ?? [])
        case .recordDedupe(_, let subject): return [.subject(subject)]
        case .removeDedupe(let event, let subject, _):
            return [.subject(subject), .dedupe(SubjectTag(event, of: subject))]
        case .ended(let ended), .reconsidered(let ended, _):
            return [.subject(ended.subject), .message(ended.message), .send(ended.send)]
        case .postponed(let message, _): return [.message(message)]
        case .gatewayKey, .policy, .lineage: return []
        }
    }
}

extension GateMemory {
    /// Writes one entry of the trail where it stands there.
    ///
    /// - Parameter index: The next one of the store.
    package func append(_ bytes: [UInt8], restoredAs index: UInt64, at time: Instant) throws {
        precondition(index == upcomingIndex, "entry \(index) was restored as \(upcomingIndex)")
        append(StoredEntry(index: index, time: time, bytes: bytes))
    }

    /// Brings one change back.
    ///
    /// - Parameters:
    ///   - progress: Counts what is brought back, and what cannot be.
    ///   - index: Marks public keys that are compromised.
    package func restore(
        _ effect: RestoredEffect, _ progress: inout RestoreUnderWay, under index: IndexKey
    ) throws {
        switch effect {
        case .person(let subject, let change):
            let isKnown = try self.subject(subject) != nil
            let change = isKnown ? try change.completed(from: state(of: subject)) : change
            // Also of a key that the backup does not have, and of a person whom it does not know.
            if case .deviceKey(let key, _, let transition) = change,
                let mark = try transition?.publicKeyMAC ?? key.compromisedMark(under: index)
            {
                try markCompromised(mark, at: key.changedAt)
            }
            guard isKnown else { return progress.skipped(change.item) }
            try apply(change, to: subject)
            progress.applied(change.item)
        case .erasure(let subject):
            guard try self.subject(subject) != nil else { return progress.skipped(.erasures) }
            for row in try outbox(of: subject) { removeOutbox(row.message) }
            eraseSubject(subject)
            progress.applied(.erasures)
        case .send(let entry, let category, let index, let time):
            try restore(entry, of: category, index: index, at: time, &progress)
        case .forward(let subject, let record):
            guard let send = record.send, try self.subject(subject) != nil, try self.send(send) != nil
            else { return }
            countForward(
                of: subject, type: record.type, category: record.category, at: record.at, send: send)
        case .recordDedupe(let record, let subject):
            if try self.subject(subject) != nil { putDedupe(record, to: subject) }
        case .removeDedupe(let event, let subject, let send):
            guard try self.subject(subject) != nil, try dedupeRecord(event, to: subject)?.send == send
            else { return }
            removeDedupe(event, to: subject)
        case .ended(let ended): try restore(ended, &progress)
        case .reconsidered(let ended, let decision):
            guard let row = try outbox(ended.message),
                !decision.keepsMessage(composedAs: row.state == .ready ? row.form : nil)
            else { return }
            try restore(ended, &progress)
        case .postponed(let message, let time):
            guard try outbox(message) != nil else { return }
            postponeOutbox(message, until: time)
        case .gatewayKey(let key):
            var keyring = try keyring() ?? Keyring()
            keyring.take(key)
            try setKeyring(keyring)
            progress.applied(.gatewayKeys)
        case .policy(let policy):
            let next = ActivatedPolicy(policy)
            // Notices of every bundle: a consent cites the text that was shown.
            try archiveNotices(of: policy)
            guard try activatedPolicy().map({ $0.version < next.version }) ?? true else { return }
            try setActivatedPolicy(next)
            progress.applied(.policies)
        case .lineage(let lineage): try setTrailLineage(lineage)
        }
    }

    private func restore(
        _ entry: SendEntry, of category: Category?, index: UInt64, at time: Instant,
        _ progress: inout RestoreUnderWay
    ) throws {
        guard let subject = entry.subject, try self.subject(subject) != nil else {
            return progress.skipped(.sends)
        }
        let state = try state(of: subject)
        let type = entry.request.type ?? TypeID("")
        let tags = Set(entry.deliveries.compactMap(\.destination))
        let names =
            (state?.devices.map { ($0.tag, $0.id.text) } ?? [])
            + (state?.addresses.map { ($0.tag, $0.id.text) } ?? [])
        insertSend(
            SendRecord(
                id: entry.send, caller: entry.caller,
                idHash: SendRecord.restoredIDHash(entry.send, inShadow: entry.isShadow),
                contentMAC: SendRecord.restoredContentMAC, subject: subject, type: type,
                category: category,
                channel: entry.request.channel, receivedAt: time, entryIndex: index, requestID: "",
                destinationNames: DestinationNames(
                    Dictionary(
                        names.filter { tags.contains($0.0) && !$0.1.isEmpty }, uniquingKeysWith: { $1 }))))
        // A refusal for the request's own shape binds no id. After a restore its repeat is decided once more.
        if let tag = entry.request.idTag, entry.overall.reason.bindsID {
            putDedupe(
                DedupeRecord(
                    eventTag: tag.ofRestoredSend(by: entry.caller), send: entry.send, at: time), to: subject)
        }
        progress.applied(.sends)
        guard entry.overall.outcome.isPromise else { return }
        if let event = entry.request.eventTags[entry.request.channel] {
            putDedupe(DedupeRecord(eventTag: event, send: entry.send, at: time), to: subject)
        }
        if entry.overall.outcome == .forward, let category {
            countForward(
                of: subject, type: type, category: category, at: time, send: entry.send,
                inShadow: entry.isShadow)
        }
    }

    private func restore(_ ended: EndedMessage, _ progress: inout RestoreUnderWay) throws {
        let row = try outbox(ended.message)
        if row != nil {
            removeOutbox(ended.message)
            progress.applied(.messages)
        }
        guard try subject(ended.subject) != nil, let caller = ended.caller ?? row?.request.caller else {
            return
        }
        appendEvent(
            EventRecord(
                caller: caller, send: ended.send, subject: ended.subject, event: ended.end.kind,
                destination: ended.destination, at: ended.at, reason: ended.end.reason))
        guard let row, let event = row.eventTag, !ended.end.settlesDedupe, !ended.end.kind.mayHaveArrived,
            try outbox(of: ended.send).isEmpty,
            try !events(of: ended.send).contains(where: \.event.mayHaveArrived),
            try dedupeRecord(event, to: ended.subject)?.send == ended.send
        else { return }
        removeDedupe(event, to: ended.subject)
    }
}

extension DeviceKeyRecord {
    /// What the entry does not say if an earlier build wrote it: by what a compromised key is refused.
    ///
    /// - Returns: `nil` of a key that is not compromised, and of one whose public half the backup does not have.
    fileprivate func compromisedMark(under index: IndexKey) throws -> [UInt8]? {
        guard KeyState(rawValue: state) == .compromised, !publicKey.isEmpty else { return nil }
        return index.fingerprint(ofKey: publicKey, try sealingSuite)
    }
}

extension PersonChange {
    /// What it is counted as.
    var item: RestoreEntry.Item {
        switch self {
        case .recipient: .recipients
        case .device, .deviceRemoved, .deviceDeactivated, .permissionPrompt, .subscriptions: .devices
        case .address, .addressRemoved, .addressContested: .addresses
        case .deviceKey, .deviceKeyForgotten: .deviceKeys
        case .consent(let event): event.state == .withdrawn ? .withdrawals : .consents
        case .preference: .preferences
        case .drift, .driftResolved: .others
        }
    }

    /// The change with the private values of the same thing, from the state that it is applied to. What the state does
    /// not have stays without any; see ``RecipientState/withoutPrivateValues``.
    func completed(from state: RecipientState?) -> PersonChange {
        switch self {
        case .recipient(let record, let action):
            return .recipient(state?.record.map { record.completed(by: $0) } ?? record, action: action)
        case .device(var device, let action, let isTokenChanged):
            if let known = state?.devices.first(where: { $0.tag == device.tag }) {
                device = device.completed(by: known)
                // A token that the device has given up may be another phone's by now.
                if isTokenChanged != false { device.token = "" }
            }
            return .device(device, action: action, isTokenChanged: isTokenChanged)
        case .address(var address, let action, let replaced):
            guard let known = state?.addresses.first(where: { $0.tag == address.tag }) else { return self }
            address = address.completed(by: known)
            // Nothing was verified after its entry, so a verification after that is newer than any before.
            if address.contestedAt != nil, known.contestedAt == nil {
                address.contestedAt = address.updatedAt
            }
            return .address(address, action: action, replaced: replaced)
        case .deviceKey(var key, let proof, let transition):
            if let known = state?.key(key.key) {
                key = key.completed(by: known)
                if known.state != key.state { key.challenge = nil }
            }
            return .deviceKey(key, proof: proof, by: transition)
        case .consent(var event):
            // The caller's own name for it is in no entry.
            event.id = event.idTag.hexadecimal
            return .consent(event)
        default: return self
        }
    }
}

extension RecipientState {
    /// What a restore could not give its private values back, and which must be gone before anything is sent: places
    /// that nothing can reach, and keys that nothing can be sealed to. A key that was revoked stays, so that it cannot
    /// be registered once more.
    package var withoutPrivateValues: [PersonChange] {
        let lost = Set(devices.filter { $0.id.text.isEmpty || ($0.isActive && $0.token.isEmpty) }.map(\.tag))
        var changes: [PersonChange] = []
        for key in keys where key.publicKey.isEmpty {
            switch KeyState(rawValue: key.state) {
            case .preActivation, .active, .suspended: changes.append(.deviceKeyForgotten(key))
            default: break
            }
        }
        changes += lost.sorted { $0.hexadecimal < $1.hexadecimal }.map { .deviceRemoved($0) }
        changes += addresses.filter { $0.value.isEmpty }.map { .addressRemoved($0.tag) }
        return changes
    }
}

extension SendRecord {
    /// In place of the hash of an id that is in no entry: the send's own id, which no hash is equal to but by a chance of
    /// 2⁻¹²⁸.
    static func restoredIDHash(_ send: SendID, inShadow isShadow: Bool) -> [UInt8] {
        isShadow ? shadowIDHash(Array(send.bytes)) : Array(send.bytes)
    }
    /// In place of the code of a content that is in no entry.
    static let restoredContentMAC = [UInt8](repeating: 0, count: 32)

    /// Whether it came back from the trail alone.
    var isRestored: Bool { contentMAC == Self.restoredContentMAC }
}

extension Tag {
    /// Under which a restored send lies among the told events, by its `id_tag`: ids are each caller's own.
    func ofRestoredSend(by caller: CallerName) -> Tag {
        let digest = SHA256.digest(
            Array("sendgate/restored-send/v1\0".utf8) + bytes + Array(caller.text.utf8))
        return digest.withUnsafeBytes { bytes in
            Tag(
                high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        }
    }
}
