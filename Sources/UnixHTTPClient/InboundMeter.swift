import NIOCore

/// Stands before the parser and tells the handler of every byte, because the parser tells it of the body only.
final class InboundMeter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let handler: ClientHandler

    init(_ handler: ClientHandler) { self.handler = handler }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard handler.willParse(byteCount: Self.unwrapInboundIn(data).readableBytes) else { return }
        context.fireChannelRead(data)
        handler.didParse()
    }
}

/// What a server has sent besides the bodies of its answers: heads, interim answers, chunk-size lines with their extensions,
/// trailers and white space.
struct AnswerFraming {
    private var byteCount = 0
    /// Since the last byte of a body.
    private var runByteCount = 0
    private var bodyByteCount = 0
    private var hasBody = false
    private var hasEnd = false

    /// Framing bytes for each byte of a body. The shortest chunk, of one byte, has five (RFC 9112 section 7.1).
    private static let perBodyByteMax = 8

    mutating func received(_ count: Int) {
        byteCount += count
        runByteCount += count
        hasBody = false
        hasEnd = false
    }

    mutating func body(_ count: Int) {
        byteCount -= count
        bodyByteCount += count
        hasBody = true
    }

    mutating func end() { hasEnd = true }

    /// The parser has read every byte of the last ``received(_:)``.
    ///
    /// - Returns: Whether the answer under way has more of it than a head may have, and a plain chunked body explains.
    mutating func isTooLong(byteCountMax: Int) -> Bool {
        // What follows the end of an answer, in the same read, belongs to either.
        if hasEnd { self = AnswerFraming() }
        if hasBody { runByteCount = 0 }
        return runByteCount > byteCountMax || byteCount > byteCountMax + Self.perBodyByteMax * bodyByteCount
    }
}
