import NIOCore

/// Stands before the parser: counts bytes, gives them to it in pieces, and keeps from it what a closing connection still
/// receives.
final class InboundMeter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The most that the parser is given at once. It reports what it has read when it has read all of it, so this is how far
    /// a request may go past a bound on its framing before the connection is told. Most requests are one piece.
    static let pieceByteCountMax = 4 * 1024

    private let connection: HTTPConnection

    init(_ connection: HTTPConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        while let piece = bytes.readSlice(length: min(bytes.readableBytes, Self.pieceByteCountMax)),
            piece.readableBytes > 0
        {
            // What comes behind a refused request is thrown away piece by piece, and counted.
            guard connection.willParse(byteCount: piece.readableBytes) else { continue }
            context.fireChannelRead(wrapInboundOut(piece))
            connection.didParse()
        }
    }
}
