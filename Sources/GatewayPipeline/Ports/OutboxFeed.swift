package import GateSteps
package import GateVocabulary

/// Gives the relay its messages and takes their results; the gateway implements it.
///
/// - Durability: a claimed message is marked as tried before `claim` returns it. A reported result is an entry in the
///   trail when `report` returns.
/// - Ordering: within a lane by tier, then fairly over callers, then by age. A message that is under way is not
///   claimed again.
package protocol OutboxFeed: Sendable {
    /// Rises whenever something may have come in. Read it before `claim`, wait for more with it after.
    var workVersion: UInt64 { get }
    /// Up to `limit` messages whose time has come, decided again where that is due. Empty when none.
    func claim(lane: DeliveryLane, limit: Int) async throws -> [Delivery]
    /// - Parameter retryAt: When to try again; `nil` ends the message, with whatever the result says.
    func report(_ message: MessageID, _ result: HopResult, retryAt: Instant?) async throws
    /// Raises ``workVersion``: more messages can be taken.
    func roomBecameFree()
    /// Says whether the hop can be used. While it cannot, the relay is offered nothing, and when this returns,
    /// messages that were offered and not taken wait in the store again.
    func setHopUsable(_ isUsable: Bool) async
    /// Returns when ``workVersion`` is above `version`, when the lane's next waiting message is due, or when the
    /// task is cancelled.
    func waitForWork(lane: DeliveryLane, after version: UInt64) async
}
