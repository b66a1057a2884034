import GatewayPipeline
import NIOCore
import WireProtocol

/// What a connection has parsed and not yet given to its handler, in the order it came.
struct RequestBacklog {
    enum Item {
        /// The client waits for `100 Continue` before it sends its body.
        case interim
        case request(WireRequest, AnswerQueue.ResponseFrame)
        case stream(LineStream)
        case problem(Problem, AnswerQueue.ResponseFrame)
    }

    private var items = CircularBuffer<Item>(initialCapacity: 4)
    /// The stream whose lines are being given to the handler. It stands before every item.
    var stream: LineStream?

    /// The stream that is being handled counts as one.
    var count: Int { items.count + (stream == nil ? 0 : 1) }
    var isEmpty: Bool { stream == nil && items.isEmpty }
    var first: Item? { items.first }

    mutating func append(_ item: Item) { items.append(item) }

    mutating func removeFirst() { items.removeFirst() }

    /// Makes the stream that stands first the one that is being handled.
    ///
    /// - Precondition: The first item is a stream, and no stream is being handled.
    mutating func beginStream() {
        guard stream == nil, case .stream(let first) = items.popFirst() else {
            preconditionFailure("a stream was begun that does not stand first")
        }
        stream = first
    }

    /// Changes the stream that came last, in its place.
    ///
    /// - Precondition: Nothing came behind it. A live stream keeps that while its lines come.
    mutating func withLastStream<Result>(_ body: (inout LineStream) -> Result) -> Result {
        switch items.popLast() {
        case .stream(var last):
            let result = body(&last)
            items.append(.stream(last))
            return result
        case nil:
            guard stream != nil else { preconditionFailure("lines came without a stream") }
            return body(&stream!)
        case .interim, .request, .problem:
            preconditionFailure("lines came for a stream with something behind it")
        }
    }

    /// Bytes of lines that the stream that came last holds.
    var lastStreamByteCount: Int {
        if case .stream(let last) = items.last { return last.source.bufferedByteCount }
        return stream?.source.bufferedByteCount ?? 0
    }

    /// Empties the backlog.
    ///
    /// - Returns: The bytes that its streams had taken of the shared bound.
    mutating func removeAll() -> Int {
        var byteCount = stream?.reservedByteCount ?? 0
        stream = nil
        for case .stream(let stream) in items { byteCount += stream.reservedByteCount }
        items.removeAll()
        return byteCount
    }
}

/// One request to the stream's target, and those of its lines that the handler has not been given.
struct LineStream {
    var target: String
    /// Names in lower case.
    var headers: [(name: String, value: String)]
    /// Whether the response is chunked; otherwise it ends with the connection (HTTP/1.0).
    var isChunked: Bool
    /// Whether the connection closes after the response.
    var closes: Bool
    /// Filled by the reading side of the connection, emptied by its answering side.
    var source: LineSource
    /// Taken from ``source`` and not yet given to the handler.
    var line: LineSource.Line?
    /// The batch's part of the shared bound on buffered bytes.
    var reservedByteCount: Int
    /// Whether the response's head has its place among the answers.
    var isStarted = false
    /// The stream ended before its framing said so.
    var isAborted = false

    init(_ framing: RequestFraming, source: LineSource, reservedByteCount: Int) {
        target = framing.target
        headers = framing.headers
        isChunked = !framing.isHTTP10
        closes = framing.closes
        self.source = source
        self.reservedByteCount = reservedByteCount
    }

    var frame: AnswerQueue.Frame { isChunked ? .chunkedLine : .bareLine }

    func request(_ line: [UInt8]) -> WireRequest {
        WireRequest(kind: .streamLine, method: "POST", target: target, headers: headers, body: line)
    }
}
