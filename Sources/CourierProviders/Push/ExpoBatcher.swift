import CanonicalJSON
import CourierModel
import GateVocabulary

/// Puts pushes together that come within milliseconds: Expo takes a hundred a request and six hundred a second of a project.
actor ExpoBatcher {
    struct Push: Sendable {
        var order: DeliveryOrder
        /// Expo's message, with its token.
        var message: JSONObject
        /// Whether a second copy replaces the first.
        var mayRepeat: Bool
        /// Set when the task that waits for the outcome is cancelled.
        let cancellation = CancellationMark()

        init(order: DeliveryOrder, message: JSONObject, mayRepeat: Bool) {
            (self.order, self.message, self.mayRepeat) = (order, message, mayRepeat)
        }

        /// Whether it may still be written.
        func mayGo(_ clock: ProviderClock) -> Bool { !cancellation.isSet && clock.allows(order) }

        /// The outcome of a request that was not written.
        func outcome(of fault: ExchangeFault, _ clock: ProviderClock) -> DeliveryOutcome {
            cancellation.isSet ? .stopping : .fault(fault, of: order, mayRepeat: mayRepeat, clock)
        }
    }

    /// Expo's bound on one request ("Request errors", `PUSH_TOO_MANY_NOTIFICATIONS`).
    static let countMax = 100
    /// How long the first push of a request waits for others.
    private static let collectMilliseconds = 5
    /// Expo's bound for a project ("Limits").
    private static let perSecond = 600

    private var waiting: [(push: Push, promise: CheckedContinuation<DeliveryOutcome, Never>)] = []
    private var bucket = TokenBucket(perSecond: perSecond, burst: countMax)
    private let clock: ProviderClock
    private let send: @Sendable ([Push]) async -> [DeliveryOutcome]

    /// - Parameter send: One request, with an outcome for each push in their order.
    init(_ clock: ProviderClock, send: @escaping @Sendable ([Push]) async -> [DeliveryOutcome]) {
        self.clock = clock
        self.send = send
    }

    func deliver(_ push: Push) async -> DeliveryOutcome {
        await withTaskCancellationHandler {
            await withCheckedContinuation { promise in
                waiting.append((push, promise))
                if waiting.count >= Self.countMax {
                    sendWaiting()
                } else if waiting.count == 1 {
                    Task {
                        await pause(milliseconds: Self.collectMilliseconds)
                        sendWaiting()
                    }
                }
            }
        } onCancel: {
            // Its request is other tasks' too, so it is left out of the request and not ended with it.
            push.cancellation.set()
        }
    }

    private func sendWaiting() {
        guard !waiting.isEmpty else { return }
        let batch = waiting
        waiting = []
        Task {
            while let wait = bucket.take(batch.count, at: clock.uptimeMilliseconds()) {
                await pause(milliseconds: Int(wait))
            }
            let outcomes = await send(batch.map(\.push))
            for ((_, promise), outcome) in zip(batch, outcomes) { promise.resume(returning: outcome) }
        }
    }

    private func pause(milliseconds: Int) async {
        // The pausing task is never cancelled: each push of the batch has to be answered.
        try? await Task.sleep(for: .milliseconds(milliseconds))
    }
}
