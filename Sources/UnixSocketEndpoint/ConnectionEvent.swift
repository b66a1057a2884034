import GatewayPipeline
import NIOCore
import WireProtocol

/// What can happen to a connection.
///
/// Plain data: what the parser read, what the channel did, what the handler answered, which timer fired, and the answers to
/// what an ``ConnectionAction`` asked.
enum ConnectionEvent {
    /// The channel is connected.
    case active
    /// Bytes came and go to the parser next, if ``HTTPConnectionStateMachine/parsesInput`` still says so.
    case received(byteCount: Int)
    /// The parser has read a request's head.
    case head(Result<RequestFraming, RefusedHead>)
    /// The parser has read a piece of the body.
    case body(ByteBuffer)
    /// The parser has read the end of the request.
    case end
    case parserFailed(ParserFailure)
    /// The parser has seen every byte of the last ``received(byteCount:)``.
    case parsed
    /// The channel has no more bytes for this read.
    case readComplete
    /// The client has sent its last byte and may still read.
    case inputClosed
    /// Reading or writing failed: the client is gone.
    case channelFailed
    case channelClosed
    case writabilityChanged(isWritable: Bool)
    /// The handler's answer to the request that ``ConnectionAction/handle(_:sequence:)`` gave it; `nil` when it will never
    /// answer. ``answersDelivered`` follows, once for several.
    case answer(Answer?, sequence: UInt64)
    case answersDelivered
    /// Answers ``ConnectionAction/admitRequest``.
    case admission(isGranted: Bool)
    /// Answers ``ConnectionAction/reserveBytes(_:)``.
    case reservation(byteCount: Int, isGranted: Bool)
    /// Answers ``ConnectionAction/measureOutput``; comes at every sweep besides.
    case outputMeasured(OutputMeasure)
    /// A timer that ``ConnectionAction/arm(_:)`` started is due. It comes again at every sweep until the timer is disarmed.
    case fired(ConnectionTimer)
    /// Answers ``ConnectionAction/resumeLater``.
    case resumed
    /// The endpoint stops: take no new request, finish those that have begun. A connection on which nothing has come yet may
    /// still ask once.
    case drain
    /// The time for that first request is over.
    case endUnused
    /// The drain's time is over.
    case cut
}

enum ParserFailure: Hashable {
    case headersTooLarge
    case malformed
    /// The decoder was used past its end; nothing follows from it.
    case decoderFinished
}

/// How far the bytes of a connection's answers have got.
struct OutputMeasure: Hashable {
    /// Bytes in the channel's queue.
    var unwrittenByteCount: Int
    /// Bytes that the kernel has taken since the connection began.
    var writtenByteCount: Int
}

/// The deadlines of a connection, each documented in ``EndpointLimits``.
enum ConnectionTimer: Int, CaseIterable {
    /// ``EndpointLimits/writeStallMilliseconds``.
    case writeStall
    /// ``EndpointLimits/lingerMilliseconds``.
    case linger
    /// ``EndpointLimits/answerMilliseconds``.
    case answer
    /// ``EndpointLimits/requestReadMilliseconds``.
    case request
    /// ``EndpointLimits/idleMilliseconds``.
    case idle

    func milliseconds(_ limits: EndpointLimits) -> Int64 {
        switch self {
        case .writeStall: limits.writeStallMilliseconds
        case .linger: limits.lingerMilliseconds
        case .answer: limits.answerMilliseconds
        case .request: limits.requestReadMilliseconds
        case .idle: limits.idleMilliseconds
        }
    }
}

/// What the shell shall do next for a connection.
enum ConnectionAction {
    /// Take a place in the shared bound on requests; ``ConnectionEvent/admission(isGranted:)`` says whether there was one.
    case admitRequest
    /// Give an admitted request to the handler. Its answer comes as ``ConnectionEvent/answer(_:sequence:)``, possibly before
    /// the action is done.
    case handle(WireRequest, sequence: UInt64)
    /// Take so much of the shared bound on buffered bytes; ``ConnectionEvent/reservation(byteCount:isGranted:)`` says
    /// whether they were granted.
    case reserveBytes(Int)
    /// Give so much of it back.
    case releaseBytes(Int)
    /// Append a part of an answer to the bytes of the next ``flush``.
    case write(ResponsePart)
    /// Give the bytes appended so far to the channel.
    case flush
    /// Read once more.
    case read
    /// Start the timer, anew if it is running.
    case arm(ConnectionTimer)
    case disarm(ConnectionTimer)
    /// Report ``ConnectionEvent/outputMeasured(_:)``.
    case measureOutput
    /// Report ``ConnectionEvent/resumed`` once the loop has looked at its sockets.
    case resumeLater
    /// Count, and log where it is a fault.
    case record(ConnectionIncident)
    /// End the gateway's side after what is flushed.
    case endOutput
    /// Close both sides at once.
    case close
}

/// What the endpoint's metrics count besides requests and bytes.
enum ConnectionIncident: Hashable {
    case streamBegan
    case idleTimeout
    case readTimeout
    case writeStall
    /// The handler had not answered in time.
    case answerLate
    /// The handler dropped its `reply`.
    case answerDropped
}

/// An answer, or a piece of the framing between the answers of a stream.
enum ResponsePart {
    /// `HTTP/1.1 100 Continue`.
    case interim
    case response(AnswerQueue.Content, isHead: Bool, closes: Bool)
    case streamHead(isChunked: Bool, closes: Bool)
    case line(AnswerQueue.Content, isChunked: Bool)
    /// The last chunk.
    case lastChunk
}
