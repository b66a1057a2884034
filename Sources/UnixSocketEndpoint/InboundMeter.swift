package import NIOCore
import NIOHTTP1

/// A connection that bounds what its parser does not give back: framing, and what comes behind the last request.
package protocol MeteredConnection: ChannelInboundHandler {
    /// Called with every piece of the input before the parser sees it.
    ///
    /// - Returns: Whether the parser shall see it.
    func willParse(byteCount: Int) -> Bool
    /// Called after the parser has seen every byte of the piece.
    func didParse()
}

/// Stands before the parser: counts bytes, gives them to it in pieces, and keeps from it what a closing connection still
/// receives.
final class InboundMeter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The most that the parser is given at once. It reports what it has read when it has read all of it, so this is how far
    /// a request may go past a bound on its framing before the connection is told. Most requests are one piece.
    static let pieceByteCountMax = 4 * 1024

    private let connection: any MeteredConnection

    init(_ connection: any MeteredConnection) { self.connection = connection }

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

extension ChannelPipeline.SynchronousOperations {
    /// Adds a connection behind its parser and its meter. The parser refuses a head over these bounds.
    package func add(
        _ connection: any MeteredConnection, headerByteCountMax: Int, headerFieldCountMax: Int
    ) throws {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = headerByteCountMax
        limits.maxHeaderListSize = headerByteCountMax
        limits.maxHeaderFieldCount = headerFieldCountMax
        try addHandlers([
            InboundMeter(connection),
            ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: limits)),
            connection,
        ])
    }
}
