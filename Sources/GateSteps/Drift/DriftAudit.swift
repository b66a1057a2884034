import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
package import GateRecords
package import WireProtocol

/// What an audit found of one person, and what of it was not on record so far.
package struct AuditedPerson: Hashable, Sendable {
    package var findings: [DriftFinding] = []
    /// The ``findings`` that are new, or not what they were.
    package var changed: [DriftFinding] = []
    /// Earlier ones that are no more.
    package var resolved: [DriftFinding] = []
}

/// Looking for drift, person by person.
extension StepContext {
    // MARK: Runs

    /// Begins a run.
    ///
    /// - Returns: The one that is under way where there is one of the same kind.
    /// - Throws: ``Problem`` while one of the other kind is under way.
    package func startDriftRun(by caller: CallerName, isDryRun: Bool, at now: Instant) throws -> DriftRun {
        let newest = try memory.driftRun()
        if let run = newest, run.isUnderWay {
            guard run.isDryRun == isDryRun else {
                throw Problem(
                    .wrongState,
                    detail:
                        "a run that \(run.isDryRun ? "only counts" : "records what it finds") has been under way since \(run.startedAt.rfc3339); ask again when `GET /v1/drift` says that it has finished"
                )
            }
            return run
        }
        let run = DriftRun(startedAt: now, startedBy: caller, isDryRun: isDryRun, after: newest)
        memory.setSetting(DriftRun.settingName, to: run.json.description)
        return run
    }

    /// Remembers how far a run has come.
    package func keep(_ run: DriftRun) throws {
        memory.setSetting(DriftRun.settingName, to: run.json.description)
    }

    // MARK: One person

    /// Audits one person, and records what is new.
    ///
    /// Findings are compared with those in the person's state, so that auditing again writes nothing.
    ///
    /// - Parameter isDryRun: Whether nothing is recorded.
    /// - Returns: `nil` for a person who is not registered, or not any more.
    package func auditDrift(
        of id: SubjectID, by caller: CallerName, isDryRun: Bool, at now: Instant
    ) throws -> AuditedPerson? {
        guard let subject = try memory.subject(id),
            let person = try RecipientSnapshot.load(subject, from: memory)
        else { return nil }
        let rules = DriftRules(policy: policy, settings: settings.drift, now: now)
        let chosen = RecipientSnapshot(
            subject: subject, record: person.record, state: person.state.withoutSuppressions)
        var audited = AuditedPerson()
        audited.findings = rules.findings(
            in: chosen, facts: FactsLoading(policy: policy, now: now),
            receipts: try receipts(of: person, since: now))
        let known = person.state.drifts
        audited.changed = audited.findings.filter { !known.contains($0) }
        audited.resolved = known.filter { old in !audited.findings.contains { $0.isSameDrift(as: old) } }
        guard !isDryRun else { return audited }
        try record(audited, of: person, by: caller, at: now)
        return audited
    }

    private func record(
        _ audited: AuditedPerson, of person: RecipientSnapshot, by caller: CallerName, at now: Instant
    ) throws {
        var edit = PersonEdit(besidesConsentsOf: person, policy: policy, at: now)
        for finding in audited.changed {
            edit.append(.drift(finding), by: caller)
            observe(.drift(finding.kind, finding.action))
        }
        for finding in audited.resolved {
            edit.append(.driftResolved(finding), by: caller)
            observe(.drift(finding.kind, .resolved))
        }
        var hasChanged = audited.changed.contains { $0.kind == .notEntitled }
        for category in Category.allCases {
            let wanted = audited.findings.filter { $0.action == .suppressed && $0.category == category }
                .compactMap(\.device)
            let standing = person.state.suppressions(of: category)
            for device in wanted where !standing.contains(where: { $0.device == device }) {
                edit.setSuppression(of: category, at: device, to: .userOff)
                hasChanged = true
            }
            for suppression in standing where !wanted.contains(suppression.device) {
                edit.setSuppression(of: category, at: suppression.device, to: suppression.before)
                hasChanged = true
            }
        }
        try write(edit)
        if hasChanged {
            try reconsider(person.subject.id, as: edit.person, because: .recipientChanged, at: now)
        }
    }

    // MARK: What was heard of devices

    /// How far back receipts are looked at, and of how many sends.
    private static let receiptSeconds: Int64 = 30 * 86_400
    private static let sendCountMax = 8

    /// What was reported of each device's newest pushes.
    private func receipts(
        of person: RecipientSnapshot, since now: Instant
    ) throws -> [Tag: DeviceReceipts] {
        guard !person.devices.isEmpty else { return [:] }
        var receipts: [Tag: DeviceReceipts] = [:]
        let forwards = try memory.forwards(
            of: person.subject.id, since: now.advanced(bySeconds: -Self.receiptSeconds),
            limit: KnownForwards.countMax)
        for send in forwards.lazy.compactMap(\.send).prefix(Self.sendCountMax) {
            for event in try memory.events(of: send) {
                guard let destination = event.destination else { continue }
                receipts[destination, default: DeviceReceipts()].add(event)
            }
        }
        return receipts
    }

    // MARK: The provider's state

    /// Records what the provider has a device subscribed to, as a caller that asked the provider reports it.
    package func putSubscriptions(
        _ given: Given<ProviderSubscriptions>, at device: DestinationID, of user: UserID,
        by caller: CallerName,
        at now: Instant
    ) throws -> Recorded {
        let person = try person(user)
        guard let known = person.devices.first(where: { $0.id == device }) else {
            throw Problem(.notFound, detail: "the recipient has no device of this name")
        }
        var subscriptions = given.record
        let stated = subscriptions.observedAt == .unstated ? now : subscriptions.observedAt
        // A report that something is off there is a no, which a clock that is ahead does not lose.
        subscriptions.observedAt = subscriptions.states.values.contains(false) ? min(stated, now) : stated
        try rules(at: now).requireNewest(subscriptions.observedAt, of: known)
        return Recorded(
            entry: try record(
                .subscriptions(known.tag, subscriptions), of: person.subject.id, by: caller, at: now))
    }
}
