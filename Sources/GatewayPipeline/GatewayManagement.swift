import GateRecords
package import KeyLifecycle
import BundleModel
import CanonicalJSON
package import AuditTrail
package import CompliancePolicy
package import GateSteps
package import GateVocabulary
import SealedFormat
package import WireProtocol

/// The operators' routes: liveness, readiness, metrics and keys.
package struct GatewayManagement: Sendable {
    /// The private halves of the gateway's own keys.
    package var privateKeys: any PrivateKeys
    /// Readiness checks that only the outer layers can make: the trail's lag, the hop, the sockets.
    package var checks: @Sendable () -> [ReadinessAnswer.Check]
    /// Adds the metrics to `/metrics` that only the outer layers have.
    package var addMetrics: @Sendable (inout Exposition) -> Void
    package var policySource: PolicySource
    /// The authorities whose keysets are accepted; empty where none is pinned.
    package var authorities: [NoteVerifierKey]

    package init(
        privateKeys: any PrivateKeys, authorities: [NoteVerifierKey] = [],
        checks: @escaping @Sendable () -> [ReadinessAnswer.Check],
        addMetrics: @escaping @Sendable (inout Exposition) -> Void,
        policySource: PolicySource
    ) {
        self.privateKeys = privateKeys
        self.authorities = authorities
        self.checks = checks
        self.addMetrics = addMetrics
        self.policySource = policySource
    }

    /// - Parameter failure: Why a send would not be committed now; `nil` when it would.
    func readiness(given failure: EngineFailure?) -> ReadinessAnswer {
        return ReadinessAnswer(
            checks: [.init(name: "commit", isPassed: failure == nil, detail: failure.map { "\($0)" })]
                + checks())
    }

    /// The text of `/metrics`.
    func metrics(of gateway: Gateway) -> String {
        var page = Exposition()
        let engine = gateway.engine
        let mandatory = gateway.policy.current.bundle.types.values.filter { $0.mandatory != nil }
        engine.observed.write(to: &page, mandatory: mandatory.map(\.id).sorted())
        let load = engine.load
        page.add(.batches, [], load.batchCount)
        page.add(.operationCount, [], load.operationCount)
        page.add(.failedBatches, [], load.failedBatchCount)
        page.add(.queued, [], load.queuedCount)
        page.add(
            .publishLag, [], .milliseconds(max(0, gateway.dependencies.publishLagMilliseconds())))
        let (inFlight, now) = (engine.inFlight.all, gateway.dependencies.clock.now())
        // Counts that cannot be read are left out: a store that answers nothing fails readiness, which says why.
        let counted = try? gateway.store.read { store in
            var page = page
            let depth = try store.outboxDepth()
            page.add(.outboxRows, [], depth.rowCount)
            page.add(.outboxBytes, [], .integer(depth.byteCount))
            let offered = min(inFlight.count, depth.rowCount)
            page.add(.outboxStates, ["offered"], offered)
            page.add(.outboxStates, ["stored"], depth.rowCount - offered)
            for lane in DeliveryLane.allCases {
                let due = try store.nextOutboxDue(lane: lane, excluding: inFlight)
                let late = due.map { max(0, now.milliseconds - $0.milliseconds) } ?? 0
                page.add(.outboxDueAge, [lane.rawValue], .milliseconds(late))
            }
            page.add(.trailEntries, [], try store.entryCount())
            return page
        }
        page = counted ?? page
        addMetrics(&page)
        return page.text
    }
}

extension Gateway {
    /// Puts the configured bundle in force, when it is the one that was named and passes its checks.
    func activate(
        _ body: PolicyActivateBody, for caller: CallerName, answer: @escaping @Sendable (Answer) -> Void
    ) {
        onReader(for: caller, lane: .security, answer: answer) { [self] in
            loadPolicy(reviewedAs: body.digest, by: caller, answer: answer)
        }
    }

    /// Reads the configured bundle and swaps it in whole, between two batches, with an entry.
    ///
    /// A bundle that has a problem leaves the one in force where it is, and the trail says so: a bundle that cannot
    /// be read must never leave the gateway without one. Blocks while it reads.
    ///
    /// - Parameters:
    ///   - digest: What the caller reviewed; `nil` takes whatever is there and passes.
    ///   - caller: `nil` when the operator asked by signal. Finding the bundle in force there is then no news.
    package func loadPolicy(
        reviewedAs digest: PolicyDigest?, by caller: CallerName?, answer: @escaping @Sendable (Answer) -> Void
    ) {
        let next: CompiledPolicy
        do {
            let loaded = try management.policySource.load()
            next = loaded.policy
            if let digest, digest != next.digest, digest != loaded.reviewedDigest {
                return answer(
                    Problem(.policyMismatch, detail: "the configured bundle is `\(loaded.reviewedDigest)`")
                        .answer)
            }
        } catch {
            return refusePolicy(PolicySource.Refusal(error), by: caller, answer: answer)
        }
        if caller == nil, next.digest == policy.current.digest {
            management.policySource.accepted(next)
            return answer(Answer(json: ["policy": .string(next.digest.text)]))
        }
        replacePolicy(with: next, by: caller, answer: answer)
    }

    private func refusePolicy(
        _ refusal: PolicySource.Refusal, by caller: CallerName?, answer: @escaping @Sendable (Answer) -> Void
    ) {
        management.policySource.refused(refusal)
        let problem = Problem(.policyRefused, detail: refusal.detail)
        engine.submit(
            EditOperation(
                caller: caller, permission: CallerAct.activatePolicy.permission, lane: .security,
                order: .free,
                edit: { batch, now in
                    try batch.recordRefusedPolicy(refusal, by: caller, at: now)
                    return { _ in problem.answer }
                }, reply: answer))
    }

    private func replacePolicy(
        with next: CompiledPolicy, by caller: CallerName?, answer: @escaping @Sendable (Answer) -> Void
    ) {
        let source = management.policySource
        do {
            // Archived before it decides anything, or replay would miss it.
            try library.archivePolicy(next.digest, next.bundle.canonicalJSON)
        } catch TrailLibraryError.lostDurability(let what) {
            dependencies.durabilityLost(what)
        } catch {
            let problem = Problem(.unavailable, detail: "the bundle cannot be archived: \(error)")
            source.refused(PolicySource.Refusal(error))
            return answer(problem.answer)
        }
        let policy = policy
        engine.submit(
            EditOperation(
                caller: caller, permission: CallerAct.activatePolicy.permission, lane: .security,
                order: .free, changesPolicy: true,
                edit: { batch, now in
                    // Inside the transaction that would activate it: of two that race, the later sees the earlier.
                    var diagnostics = try batch.memory.editedNotices(of: next.bundle)
                    if source.versionsOnlyRise,
                        let diagnostic = try batch.memory.activatedPolicy()?.refusal(
                            of: ActivatedPolicy(next))
                    {
                        diagnostics.insert(diagnostic, at: 0)
                    }
                    if !diagnostics.isEmpty {
                        let refusal = PolicySource.Refusal(PolicyDiagnostics(diagnostics))
                        try batch.recordRefusedPolicy(refusal, next.digest, by: caller, at: now)
                        return { _ in
                            source.refused(refusal)
                            return Problem(.policyRefused, detail: refusal.detail).answer
                        }
                    }
                    let previous = batch.policy.digest
                    let trail = try batch.recordPolicy(next, by: caller, at: now)
                    return { places in
                        Answer(
                            PolicyActivatedAnswer(
                                policy: next.digest, previous: previous, trail: places[trail]
                            ))
                    }
                },
                reply: { reply in
                    if reply.status < 300 {
                        policy.replace(with: next)
                        source.accepted(next)
                    } else if reply.status != ProblemName.policyRefused.status {
                        source.refused(PolicySource.Refusal("its activation could not be recorded"))
                    }
                    answer(reply)
                }))
    }
}

extension PolicySource.Refusal {
    /// For the caller: the first problems, and how many there are.
    fileprivate var detail: String {
        let shown = diagnostics.prefix(10).map(\.description).joined(separator: "\n")
        return diagnostics.count > 10 ? "\(shown)\nand \(diagnostics.count - 10) more" : shown
    }
}

extension StepContext {
    /// The gateway starts, under this bundle.
    /// - Parameters:
    ///   - keys: The gateway's own keys, as their files say.
    ///   - pins: The public keys that the configuration pins.
    package func recordStart(
        _ policy: CompiledPolicy, version: String, keys: [GatewayKey], pins: [PinnedKey] = [], at now: Instant
    ) throws {
        try memory.setActivatedPolicy(ActivatedPolicy(policy))
        try memory.archiveNotices(of: policy)
        let found = try adoptKeys(keys, at: now)
        try record(
            StartEntry(
                policy: policy.digest, approvals: approvals(of: policy), tzdata: LocalTime.dataVersion,
                version: version, keys: found, pins: try adoptPins(pins)), at: now)
    }

    func recordPolicy(
        _ policy: CompiledPolicy, by caller: CallerName?, at now: Instant
    ) throws -> EntryReference {
        try memory.setActivatedPolicy(ActivatedPolicy(policy))
        try memory.archiveNotices(of: policy)
        return try record(
            PolicyEntry(
                policy: policy.digest, approvals: approvals(of: policy), version: policy.bundle.version,
                caller: caller), at: now)
    }

    /// The roles whose signatures the bundle came into force with; empty for an unsigned one.
    private func approvals(of policy: CompiledPolicy) -> [BundleApproval] {
        policy.approvals.map {
            BundleApproval(key: $0.key, role: Code($0.role), signature: Base64.encode($0.signature))
        }
    }

    /// - Parameter digest: Of the bundle that was refused, when it could be read at all.
    func recordRefusedPolicy(
        _ refusal: PolicySource.Refusal, _ digest: PolicyDigest? = nil, by caller: CallerName?,
        at now: Instant
    ) throws {
        try record(
            PolicyRefusedEntry(
                policy: policy.digest, problems: refusal.diagnostics.count, refused: digest, caller: caller),
            at: now)
    }
}
