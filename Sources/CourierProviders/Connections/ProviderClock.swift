package import CourierModel
package import GateVocabulary

/// The two clocks that a provider reads, so that a test can move them.
package struct ProviderClock: Sendable {
    /// The wall clock: `iat` of a provider token, `Retry-After` as a date, the end of a message.
    package var now: @Sendable () -> Instant
    /// Whether the gateway has stopped waiting for the answer, on the clock that both share.
    package var isOver: @Sendable (HandOverDeadline) -> Bool

    package init(
        now: @escaping @Sendable () -> Instant, isOver: @escaping @Sendable (HandOverDeadline) -> Bool
    ) {
        self.now = now
        self.isOver = isOver
    }

    /// Whether the order may still be written to a provider. Providers ask just before they write.
    package func allows(_ order: DeliveryOrder) -> Bool {
        if let deadline = order.handOverBy, isOver(deadline) { return false }
        return now() < order.expiresAt
    }
}
