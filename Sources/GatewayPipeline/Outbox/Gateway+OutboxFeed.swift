package import GateSteps
package import GateVocabulary

extension Gateway: OutboxFeed {
    private var inFlight: MessagesInFlight { engine.inFlight }

    package var workVersion: UInt64 { work.version }

    package func roomBecameFree() { work.raise() }

    package func claim(lane: DeliveryLane, limit: Int) async throws -> [Delivery] {
        let now = dependencies.clock.now()
        let offers = inFlight.take(limit, of: lane)
        // A look into the store is a commit, so it is for what is due only.
        let isDue = inFlight.due[lane].map { $0 <= now } ?? false
        guard offers.isEmpty else {
            if isDue { refill(lane) }
            return await deliveries(of: offers, at: now)
        }
        guard isDue, !inFlight.isRefilling(lane) else { return [] }
        return try await withCheckedThrowingContinuation { continuation in
            engine.submit(
                ClaimOperation(deliveryLane: lane, limit: limit, inFlight: inFlight) { result in
                    continuation.resume(with: result)
                })
        }
    }

    /// Claims messages to offer while those that were offered go.
    private func refill(_ lane: DeliveryLane) {
        guard inFlight.beginRefill(of: lane) else { return }
        engine.submit(
            ClaimOperation(deliveryLane: lane, limit: 0, inFlight: inFlight) { [self] _ in
                inFlight.endRefill(of: lane)
                // A claim may have found nothing meanwhile. After a failure the next one meets it, too.
                work.raise()
            })
    }

    /// The offers that may go as they were decided. The others wait in the store again, where they are decided once
    /// more, or end.
    private func deliveries(of offers: [MessageOffer], at now: Instant) async -> [Delivery] {
        let oldest = now.advanced(byMilliseconds: -dependencies.limits.decisionFreshMilliseconds)
        let isFresh = { (offer: MessageOffer) in
            offer.decidedAt >= oldest && now <= offer.delivery.expiresAt
        }
        await giveBack(offers.filter { !isFresh($0) })
        return offers.filter(isFresh).map { offer in
            var delivery = offer.delivery
            delivery.handedOverAt = now
            return delivery
        }
    }

    private func giveBack(_ offers: [MessageOffer]) async {
        await withDiscardingTaskGroup { group in
            for offer in offers {
                group.addTask { [self] in
                    do {
                        try await record(offer.delivery.message, .neverTaken)
                    } catch {
                        // The store cannot take it now: it stays offered, and is given back the next time.
                        inFlight.add([offer])
                    }
                }
            }
        }
    }

    package func setHopUsable(_ isUsable: Bool) async { await giveBack(inFlight.setHopUsable(isUsable)) }

    package func report(_ message: MessageID, _ result: HopResult, retryAt: Instant?) async throws {
        try await record(message, .tried(result, retryAt: retryAt))
    }

    private func record(_ message: MessageID, _ outcome: MessageOutcome) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let reported = ReportedResult(message: message, outcome: outcome) { failure in
                if let failure { continuation.resume(throwing: failure) } else { continuation.resume() }
            }
            if let group = results.add(reported) { record(group) }
        }
    }

    private func record(_ group: [ReportedResult]) {
        engine.submit(
            ReportOperation(results: group, inFlight: inFlight) { [self] in
                if let next = results.next() { record(next) }
            })
    }

    package func waitForWork(lane: DeliveryLane, after version: UInt64) async {
        // The next row that waits for a moment is due at that moment, whatever else happens.
        let alarm = inFlight.due[lane].map { due in
            let now = dependencies.clock.now()
            let milliseconds = max(due.milliseconds - now.milliseconds, 1)
            return Task {
                try await Task.sleep(for: .milliseconds(milliseconds))
                work.raise()
            }
        }
        await work.wait(above: version)
        alarm?.cancel()
    }
}
