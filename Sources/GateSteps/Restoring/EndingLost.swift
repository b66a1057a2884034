import BundleModel
package import GateVocabulary
import GateRecords

// What `sendgate restore` records itself, after the entries that a store lacked.

extension GateMemory {
    /// Writes the `restore` entry; the trail has its new name from here on.
    package func recordRestore(
        _ progress: inout RestoreUnderWay, at now: Instant, clock: ClockReading
    ) throws {
        precondition(
            progress.entry.previous.size == upcomingIndex, "a restore is recorded where the old tree ends")
        try record(progress.entry, at: now)
        setNewestEntryClock(clock)
        try setTrailLineage(
            TrailLineage(
                origin: progress.entry.origin, previous: progress.entry.previous.origin, restoredAt: now))
        progress.isRecorded = true
    }

    /// Removes with entries what no private values could be found for.
    package func endUnreachable(_ subject: SubjectID, at now: Instant) throws {
        guard let state = try state(of: subject), try self.subject(subject) != nil else { return }
        for change in state.withoutPrivateValues {
            try apply(change, to: subject)
            try record(change.entry(of: subject, by: .gateway, at: now), at: now)
        }
    }

    /// Has every composed message of a person decided again before anything else happens to it. What changed about the
    /// person in the restored entries decided messages that waited, and told one that was being handed over nothing.
    package func decideFirst(of subject: SubjectID) throws {
        for var row in try outbox(of: subject) where row.decidedAt != .longAgo {
            guard case .remember(let pending) = OutboxState(row).after(.restored) else { continue }
            row.remember(pending)
            updateOutbox(row)
        }
    }

    /// Withdraws what a person may have withdrawn or objected to in entries that are lost. The person may give it
    /// again, and a consent that is given after the restore counts.
    ///
    /// Of a purpose that is a category's, everything is withdrawn that an objection ends: the consent on every channel, whether
    /// one was given or not, because a law may ask for none until the person objects; and the preference of the account. Of
    /// another purpose the consents that count are.
    ///
    /// - Parameters:
    ///   - purposes: Others stay as they are.
    ///   - restoredAt: When the restore began to record: what was withdrawn since then is not withdrawn twice.
    package func withdrawAll(
        _ purposes: Set<Purpose>, of subject: SubjectID, since restoredAt: Instant, at now: Instant
    ) throws {
        guard let person = try self.subject(subject) else { return }
        for purpose in purposes.sorted(by: { $0.text < $1.text }) {
            guard let category = Category(rawValue: purpose.text) else { continue }
            for channel in Channel.allCases {
                let scope = ConsentsInForce.Scope(purpose: purpose, channel: channel, address: nil)
                guard let state = try state(of: subject) else { return }
                if !state.consentsInForce.isWithdrawn(scope, since: restoredAt) {
                    try withdraw(scope, of: person, at: now)
                }
                let choice = state.choice(category.rawValue, channel, at: nil)
                if choice.map({ $0.state.isOff && $0.stands(againstNoSaidAt: restoredAt) }) != true {
                    try switchOff(category, on: channel, of: subject, at: now)
                }
            }
        }
        let given = try state(of: subject)?.consentsInForce.byScope
            .filter { purposes.contains($0.key.purpose) && $0.value.state == .given }
        for scope in (given ?? [:]).keys.sorted(by: { $0.path < $1.path }) {
            try withdraw(scope, of: person, at: now)
        }
    }

    private func withdraw(_ scope: ConsentsInForce.Scope, of person: Subject, at now: Instant) throws {
        let ledger = try consentRecords(of: person.id)
        let id = "restore/\(scope.path)/\(ledger.count + 1)"
        let method = try state(of: person.id)?.consentsInForce.byScope[scope]?.method
        let change = PersonChange.consent(
            ConsentRecord(
                subject: person.id, id: id, idTag: person.tag(.consent, id), purpose: scope.purpose,
                channel: scope.channel, address: scope.address, state: .withdrawn, eventTime: now,
                receivedAt: now, method: method ?? PreferenceSource.restore.consentMethod(on: scope.channel),
                source: .gateway, jurisdiction: nil, notice: nil, expiresAt: nil, withdraws: nil,
                previousHash: ledger.last.map(\.chainHash) ?? "", entryIndex: upcomingIndex))
        try apply(change, to: person.id)
        try record(change.entry(of: person.id, by: .gateway, at: now), at: now)
    }

    private func switchOff(
        _ category: Category, on channel: Channel, of subject: SubjectID, at now: Instant
    ) throws {
        let change = PersonChange.preference(
            PreferenceRecord(
                subject: subject, scope: category.rawValue, channel: channel, destination: nil,
                state: .userOff, source: .restore, at: now, caller: .gateway))
        try apply(change, to: subject)
        try record(change.entry(of: subject, by: .gateway, at: now), at: now)
    }

    private func record(_ body: some EntryBody, at now: Instant) throws {
        let index = upcomingIndex
        let bytes = try body.bytes(index: index, time: now)
        append(StoredEntry(index: index, time: now, bytes: bytes))
    }
}

extension ConsentsInForce {
    /// Whether grants of a scope, and of every address in it, are ended up to a moment, and none was said after it.
    fileprivate func isWithdrawn(_ scope: Scope, since moment: Instant) -> Bool {
        guard let consent = byScope[scope], let end = consent.withdrawnUntil else { return false }
        return consent.state == .withdrawn && end >= moment
    }
}

extension ConsentsInForce.Scope {
    fileprivate var path: String { "\(purpose)/\(channel.rawValue)/\(address?.hexadecimal ?? "")" }
}

extension RestoredSends.Message {
    /// The entry that ends it: its body was in the lost databases alone.
    package func ending(_ message: MessageID, index: UInt64, at now: Instant) throws -> [UInt8] {
        let entry: any EntryBody =
            mayHaveGone
            ? DeliveryEntry(
                send: send, message: message, subject: subject, destination: destination,
                result: Code(HandOver.ambiguous), attempts: 1, cause: Code(WithdrawalCause.damaged))
            : UnsentEntry(
                send: send, message: message, subject: subject, destination: destination,
                cause: Code(WithdrawalCause.damaged))
        return try entry.bytes(index: index, time: now)
    }
}
