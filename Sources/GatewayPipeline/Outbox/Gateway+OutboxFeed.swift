package import GateVocabulary

extension Gateway: OutboxFeed {
    package var workVersion: UInt64 { work.version }

    package func roomBecameFree() { work.raise() }

    package func claim(lane: DeliveryLane, limit: Int) async throws -> [Delivery] {
        // Every commit raises the version, and a claim is one: a look that finds nothing must not wake the next.
        let due = try store.read { try $0.nextOutboxDue(lane: lane, excluding: underWay.all) }
        guard let due, due <= surroundings.clock.now() else { return [] }
        return try await withCheckedThrowingContinuation { continuation in
            engine.submit(
                ClaimOperation(deliveryLane: lane, limit: limit, underWay: underWay) { result in
                    continuation.resume(with: result)
                })
        }
    }

    package func report(_ message: MessageID, _ result: HopResult, retryAt: Instant?) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            engine.submit(
                ReportOperation(message: message, result: result, retryAt: retryAt, underWay: underWay) {
                    failure in
                    if let failure { continuation.resume(throwing: failure) } else { continuation.resume() }
                })
        }
    }

    package func waitForWork(lane: DeliveryLane, after version: UInt64) async {
        // The next row that waits for a moment is due at that moment, whatever else happens.
        let due = (try? store.read { try $0.nextOutboxDue(lane: lane, excluding: underWay.all) }) ?? nil
        let alarm = due.map { due in
            let now = surroundings.clock.now()
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
