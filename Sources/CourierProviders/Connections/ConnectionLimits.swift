/// Bounds of the connections to one provider.
package struct ConnectionLimits: Sendable {
    /// Connections kept after the first request, so that one GOAWAY does not stop everything.
    package var connectionsMin: Int
    /// Most connections; one is added when requests wait. Apple asks for few that live long.
    package var connectionsMax: Int
    /// Connections that are opened at the same time.
    package var connectingMax: Int
    /// Requests that wait for a place. The gateway has at most 576 under way (512, and 64 of security).
    package var waitingMax = 1_024
    /// Longest time from the first SYN to a connection that may be used: TCP, TLS and HTTP/2's first SETTINGS.
    /// Shorter than `DeliveryOrder.answerMilliseconds`, so that the orders that wait hear of it.
    package var connectMilliseconds: Int64 = 5_000
    /// How often one request that was refused unread goes to another connection.
    package var refusalsMax = 3
    /// An idle connection of HTTP/2 is asked for a sign of life so often; Apple closes those that are silent for an hour.
    package var pingMilliseconds: Int64 = 60_000
    package var pingAnswerMilliseconds: Int64 = 10_000
    /// A connection above the minimum ends after so long without a request. HTTP/1.1 servers close idle connections
    /// after five seconds and more, and a request written to one that is being closed is lost.
    package var idleMilliseconds: Int64
    /// Streams on one connection, whatever more the server allows.
    package var streamsMax = 1_000

    /// Apple and Google.
    package static let http2 = ConnectionLimits(
        connectionsMin: 2, connectionsMax: 8, connectingMax: 1, idleMilliseconds: 300_000)
    /// OAuth, Expo, SMS services.
    package static let http1 = ConnectionLimits(
        connectionsMin: 0, connectionsMax: 16, connectingMax: 4, idleMilliseconds: 4_000)
}
