import WireProtocol

/// One bound in three parts, so that neither one user nor everything that is not security can use it up.
package struct SharedBound: Hashable, Sendable {
    /// For all connections together.
    package var total: Int
    /// For all connections of one user id together.
    package var perUser: Int
    /// The part of ``total`` that only the handler's reserved peers may use: at least a tenth, so that a
    /// flood of marketing never silences a fraud alert.
    package var reserved: Int

    package init(total: Int, perUser: Int, reserved: Int) {
        self.total = total
        self.perUser = perUser
        self.reserved = reserved
    }

    /// What peers may use together.
    func ceiling(forReserved isReserved: Bool) -> Int { isReserved ? total : total - reserved }
}

/// Every bound of the endpoint. Byte counts are bytes, times are milliseconds.
package struct EndpointLimits: Hashable, Sendable {
    // MARK: Sizes

    /// The body of one request, and one line of a stream without its line feed.
    package var requestByteCountMax = WireLimits.bodyByteCountMax
    /// Request line, header fields and all other framing of a request, as sent: chunk-size lines with their extensions, trailers,
    /// white space, blank lines before the request line. RFC 9112 section 7.1.1 asks for a bound and names no number; 16 KiB
    /// is ours. A stream may have so much in one place, and ``FramingCount/perBodyByteMax`` more for each byte of its body.
    package var headerByteCountMax = WireLimits.headerByteCountMax
    package var headerFieldCountMax = 100
    /// The body of a batch.
    package var batchByteCountMax = WireLimits.batchByteCountMax
    /// Lines of a batch, empty ones included: skipping sixteen million of them would hold up the loop.
    package var batchLineCountMax = WireLimits.batchLineCountMax

    // MARK: Shared by all connections

    /// Open connections. Measured with 5,000 (release build): 7 KiB each when idle, 22 KiB each with half a
    /// header section sent, so the default is about 180 MiB at worst.
    package var connections = SharedBound(total: 8_192, perUser: 6_144, reserved: 820)
    /// Connections that the process opens itself, to the delivery layer. They take descriptors, too.
    package var outgoingConnectionCount = 0
    /// Requests and lines that the handler has and has not answered.
    package var inFlight = SharedBound(total: 8_192, perUser: 4_096, reserved: 820)
    /// Bytes of request bodies held, beyond ``unreservedBodyByteCount`` of each.
    package var bufferedBytes = SharedBound(
        total: 256 * 1024 * 1024, perUser: 96 * 1024 * 1024, reserved: 26 * 1024 * 1024)
    /// A body up to this size is not counted in ``bufferedBytes``: the bound on connections covers it.
    package var unreservedBodyByteCount = 16 * 1024

    // MARK: One connection

    /// Pipelined requests under way, answered or not, whose answers have not been written yet.
    package var inFlightPerConnectionMax = 64
    /// The same for the lines of a stream.
    package var streamLinesInFlightMax = 256
    /// Bytes read at once, and so the most that can be parsed before backpressure takes hold.
    package var readByteCountMax = 64 * 1024
    /// Bytes waiting to be written above which nothing more is read or handled.
    package var unwrittenByteCountMax = 256 * 1024

    // MARK: Time

    /// A connection on which nothing is under way.
    package var idleMilliseconds: Int64 = 60_000
    /// From the first byte of a request, or of a line of a live stream, to its last. Time in which the endpoint itself does not
    /// read is not counted.
    package var requestReadMilliseconds: Int64 = 10_000
    /// Bytes wait to be written and the client takes none.
    package var writeStallMilliseconds: Int64 = 10_000
    /// A request waits for the handler. Past it the connection is closed: the answer is unknown.
    package var answerMilliseconds: Int64 = 30_000
    /// After the last answer of a refused request, what the client still sends is thrown away for so
    /// long and up to so many bytes, because closing with unread bytes resets a Unix socket and the
    /// client may then never read the answer. Ordinary clients write a whole body before they look at what came
    /// back: twice the largest body, so that one just over its bound still reads its 413.
    package var lingerMilliseconds: Int64 = 5_000
    package var lingerByteCountMax = 32 * 1024 * 1024
    /// At shutdown: how long requests under way may take before their connections are cut.
    package var drainMilliseconds: Int64 = 10_000
    /// At shutdown: how long a connection on which no request has come yet may ask for the first time. A client writes as
    /// soon as it is connected; half a second is what a loaded machine may keep it from its processor.
    package var firstRequestMilliseconds: Int64 = 500

    // MARK: Machinery

    package var eventLoopCount = 1
    /// Connections the kernel queues before `accept`; it caps this at `net.core.somaxconn`.
    package var listenBacklog: Int32 = 1_024

    package init() {}

    /// - Returns: The first bound that makes no sense, as a sentence; `nil` when all do.
    package var firstContradiction: String? {
        let shared: [(String, SharedBound)] = [
            ("connections", connections), ("inFlight", inFlight), ("bufferedBytes", bufferedBytes),
        ]
        for (name, bound) in shared {
            if bound.total < 1 || bound.perUser < 1 { return "`\(name)` allows nothing" }
            if bound.reserved < 0 || bound.reserved >= bound.total {
                return "`\(name)` reserves \(bound.reserved) of \(bound.total)"
            }
        }
        let counts: [(String, Int)] = [
            ("requestByteCountMax", requestByteCountMax), ("headerByteCountMax", headerByteCountMax),
            ("headerFieldCountMax", headerFieldCountMax), ("batchByteCountMax", batchByteCountMax),
            ("batchLineCountMax", batchLineCountMax), ("inFlightPerConnectionMax", inFlightPerConnectionMax),
            ("streamLinesInFlightMax", streamLinesInFlightMax), ("readByteCountMax", readByteCountMax),
            ("unwrittenByteCountMax", unwrittenByteCountMax), ("eventLoopCount", eventLoopCount),
            ("listenBacklog", Int(listenBacklog)), ("idleMilliseconds", Int(idleMilliseconds)),
            ("requestReadMilliseconds", Int(requestReadMilliseconds)),
            ("writeStallMilliseconds", Int(writeStallMilliseconds)),
            ("answerMilliseconds", Int(answerMilliseconds)), ("lingerMilliseconds", Int(lingerMilliseconds)),
            ("drainMilliseconds", Int(drainMilliseconds)),
            ("firstRequestMilliseconds", Int(firstRequestMilliseconds)),
        ]
        for (name, count) in counts where count < 1 { return "`\(name)` is \(count)" }
        return nil
    }

    /// How often each event loop looks at its connections' deadlines: an eighth of the shortest one, so
    /// a deadline is kept to within that. One timer per loop costs nothing per request.
    var sweepMilliseconds: Int64 {
        let shortest = min(
            idleMilliseconds, requestReadMilliseconds, writeStallMilliseconds, answerMilliseconds,
            lingerMilliseconds)
        return min(500, max(5, shortest / 8))
    }
}
