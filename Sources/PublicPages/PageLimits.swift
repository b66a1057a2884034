package import NIOCore

/// The bounds on one client and on all of them together.
package struct PageLimits: Sendable {
    /// Everything of a request but its body.
    package var headerByteCountMax = 16 * 1024
    package var headerFieldCountMax = 64
    package var bodyByteCountMax = 4 * 1024
    /// Connections open at once; for one more, an answered or an unfinished one is closed (``PageConnections``).
    package var connectionCountMax = 256
    /// Requests answered in a second, over a while; and at once, after a while without any. Requests of links that the gateway
    /// made have as many for themselves as all others together, so that forged links keep no genuine one out.
    package var requestsPerSecond = 100
    package var requestBurst = 200
    /// Requests of one link in a second that count among those of links; more of them count among the others.
    package var requestsPerSecondOfLink = 10
    /// From the connection to the end of a request's header: a proxy connects when it has a request.
    package var headerTime = TimeAmount.seconds(3)
    /// From the connection to the last byte of a request.
    package var requestTime = TimeAmount.seconds(10)
    /// From the end of a request to the end of its answer.
    package var answerTime = TimeAmount.seconds(20)
    /// How long a client may go on sending bytes that are not read.
    package var lingerTime = TimeAmount.seconds(2)
    /// And how many of them. A form that is too long is a few kilobytes; nothing that a browser sends is a megabyte.
    package var lingerByteCountMax = 1024 * 1024

    package init() {}
}
