import CanonicalJSON
import AuditTrail
package import CompliancePolicy
package import GateVocabulary
package import WireProtocol

/// What operators ask: is it alive, is it ready, what does it count, which keys does it hold.
package struct GatewayOperations: Sendable {
    /// The gateway's own keys, for `GET /v1/keys`.
    package var gateKeys: @Sendable () -> [KeyAnswer]
    /// Things only the outer layers know: lag, hop, sockets.
    package var checks: @Sendable () -> [ReadinessAnswer.Check]
    /// More lines for `/metrics`, in the Prometheus text format.
    package var moreMetrics: @Sendable () -> String
    /// Reads the configured bundle again and hands it over, or says what is wrong with it.
    package var loadConfiguredPolicy: @Sendable () throws -> CompiledPolicy

    package init(
        gateKeys: @escaping @Sendable () -> [KeyAnswer],
        checks: @escaping @Sendable () -> [ReadinessAnswer.Check],
        moreMetrics: @escaping @Sendable () -> String,
        loadConfiguredPolicy: @escaping @Sendable () throws -> CompiledPolicy
    ) {
        self.gateKeys = gateKeys
        self.checks = checks
        self.moreMetrics = moreMetrics
        self.loadConfiguredPolicy = loadConfiguredPolicy
    }

    func answer(to route: Route, from gateway: Gateway) -> Answer {
        switch route {
        case .getReadiness: return ReadinessAnswer(checks: checks()).answer
        case .getMetrics:
            return Answer(
                status: 200, contentType: MediaType.text, body: Array((metrics(of: gateway)).utf8))
        case .getOpenAPI: return Answer(status: 200, contentType: MediaType.json, body: OpenAPIDocument.bytes)
        default: return Answer(json: HealthAnswer().json)
        }
    }

    private func metrics(of gateway: Gateway) -> String {
        let load = gateway.engine.load
        var text = ""
        func add(_ name: String, _ kind: String, _ help: String, _ value: some BinaryInteger) {
            text +=
                "# HELP sendgate_\(name) \(help)\n# TYPE sendgate_\(name) \(kind)\nsendgate_\(name) \(value)\n"
        }
        add("batches_total", "counter", "Transactions committed.", load.batchCount)
        add("operations_total", "counter", "Operations committed, sends among them.", load.operationCount)
        add(
            "failed_batches_total", "counter", "Transactions that could not be committed.",
            load.failedBatchCount)
        add("queued_operations", "gauge", "Operations waiting for the engine.", load.queuedCount)
        add(
            "publish_lag_milliseconds", "gauge", "Age of the oldest unpublished entry.",
            gateway.surroundings.publishLagMilliseconds())
        if let depth = try? gateway.store.read({ try $0.outboxDepth() }) {
            add("outbox_rows", "gauge", "Messages waiting to be handed over.", depth.rowCount)
            add("outbox_bytes", "gauge", "Bytes of bodies waiting.", depth.byteCount)
        }
        if let count = try? gateway.store.read({ try $0.entryCount() }) {
            add("trail_entries", "gauge", "Entries of the trail.", count)
        }
        return text + moreMetrics()
    }
}

extension Gateway {
    /// Puts the configured bundle in force, when it is the one that was named and passes its checks.
    func activate(_ body: PolicyActivateBody, _ context: RouteContext) {
        let isTaken = readers.submit { [self] in
            do {
                let next = try operations.loadConfiguredPolicy()
                guard next.digest == body.digest else {
                    return context.answer(
                        Problem(.policyMismatch, detail: "the configured bundle is `\(next.digest)`").answer)
                }
                replacePolicy(with: next, by: context.caller, answer: context.answer)
            } catch {
                context.answer(Problem(.policyRefused, detail: "\(error)").answer)
            }
        }
        if !isTaken { context.answer(Problem(.tooManyInFlight).answer) }
    }

    /// Swaps the bundle whole, between two batches, with an entry.
    ///
    /// - Parameter caller: `nil` when the operator asked by signal.
    package func replacePolicy(
        with next: CompiledPolicy, by caller: CallerName?, answer: @escaping @Sendable (Answer) -> Void
    ) {
        do {
            // Archived before it decides anything, or replay would miss it.
            try library.archivePolicy(next.digest, next.bundle.canonicalJSON)
        } catch {
            return answer(Problem(.unavailable, detail: "the bundle cannot be archived: \(error)").answer)
        }
        let policy = policy
        engine.submit(
            EditOperation(
                caller: caller, lane: .security,
                edit: { batch, now in
                    let previous = batch.policy.digest
                    let trail = try batch.recordPolicy(next.digest, by: caller, at: now)
                    return Answer(
                        json: PolicyActivatedAnswer(policy: next.digest, previous: previous, trail: trail)
                            .json)
                },
                reply: { reply in
                    if reply.status < 300 { policy.replace(with: next) }
                    answer(reply)
                }))
    }
}

extension BatchContext {
    func recordPolicy(
        _ digest: PolicyDigest, by caller: CallerName?, at now: Instant
    ) throws -> TrailReference {
        var members: [String: String] = ["policy": digest.text]
        if let caller { members["caller"] = caller.text }
        return try record(.policy, at: now, .init(members.map { ($0.key, .string($0.value)) }))
    }
}
