package import CourierModel
package import GateVocabulary

/// The clocks that a provider reads, so that a test can move them.
package struct ProviderClock: Sendable {
    /// The wall clock: `iat` of a provider token, `Retry-After` as a date, the end of a message.
    package var now: @Sendable () -> Instant
    /// Whether the gateway has stopped waiting for the answer, on the clock that both share.
    package var isOver: @Sendable (HandOverDeadline) -> Bool
    /// Milliseconds on a clock that no step of the wall clock moves: the age of a token, rates, pauses.
    package var uptimeMilliseconds: @Sendable () -> Int64

    package init(
        now: @escaping @Sendable () -> Instant, isOver: @escaping @Sendable (HandOverDeadline) -> Bool,
        uptimeMilliseconds: @escaping @Sendable () -> Int64 = { ProviderClock.uptimeMilliseconds() }
    ) {
        self.now = now
        self.isOver = isOver
        self.uptimeMilliseconds = uptimeMilliseconds
    }

    /// Whether there is still time to write the order to a provider.
    package func allows(_ order: DeliveryOrder) -> Bool {
        if let deadline = order.handOverBy, isOver(deadline) { return false }
        if let answerBy = order.answerBy, uptimeMilliseconds() > answerBy - DeliveryOrder.writeMilliseconds {
            return false
        }
        return now() < order.expiresAt
    }

    /// Why the order may not be written now, asked in its own task; `nil` when it may. Providers ask just before they write.
    package func refusal(of order: DeliveryOrder) -> DeliveryOutcome? {
        Task.isCancelled ? .stopping : allows(order) ? nil : .tooLate
    }

    /// How long a step of the order may still take: to its answer, and `milliseconds` at most. At least 1.
    package func left(_ order: DeliveryOrder, atMost milliseconds: Int64) -> Int64 {
        guard let answerBy = order.answerBy else { return milliseconds }
        return max(1, min(milliseconds, answerBy - uptimeMilliseconds()))
    }
}
