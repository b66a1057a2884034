package import NIOCore

/// What one client may cost, and all of them together.
package struct PageLimits: Sendable {
    package var headerByteCountMax = 16 * 1024
    package var headerFieldCountMax = 64
    package var bodyByteCountMax = 4 * 1024
    /// Connections open at once; one more is told to come back.
    package var connectionCountMax = 256
    /// Requests answered in a second, over a while; and at once, after a while without any.
    package var requestsPerSecond = 100
    package var requestBurst = 200
    /// From the first byte to the last of a request.
    package var requestTime = TimeAmount.seconds(10)
    /// From the end of a request to the end of its answer.
    package var answerTime = TimeAmount.seconds(20)
    /// How long a client may go on sending what nobody reads.
    package var lingerTime = TimeAmount.seconds(2)

    package init() {}
}
