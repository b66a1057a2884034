package import GateSteps
package import GateVocabulary

/// Where the relay gets its work and leaves its results; the gateway is the other end.
///
/// - Durability: a claimed message is marked as tried before `claim` returns it. What is reported is an
///   entry in the trail when `report` returns.
/// - Ordering: within a lane by tier, then fairly over callers, then by age. A message that is under way is
///   not claimed again.
package protocol OutboxFeed: Sendable {
    /// Rises whenever something may have come in. Read it before `claim`, wait for more with it after.
    var workVersion: UInt64 { get }
    /// Up to `limit` messages whose time has come, decided again where that is due. Empty when none.
    func claim(lane: DeliveryLane, limit: Int) async throws -> [Delivery]
    /// - Parameter retryAt: When to try again; `nil` ends the message, with whatever the result says.
    func report(_ message: MessageID, _ result: HopResult, retryAt: Instant?) async throws
    /// Raises ``workVersion``: there is room again for what waits.
    func roomBecameFree()
    /// Says whether the hop can be used. While it cannot, nothing goes to the relay before it asks, and what was about to
    /// waits in the store again when this returns.
    func hop(isUsable: Bool) async
    /// Returns when ``workVersion`` is above `version`, when the lane's next waiting message is due, or when the
    /// task is cancelled.
    func waitForWork(lane: DeliveryLane, after version: UInt64) async
}
