import NIOCore

/// Stands before the parser: counts bytes, and keeps from it what comes behind the one request of a connection.
final class PageInboundMeter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let connection: PageConnection

    init(_ connection: PageConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard connection.willParse(byteCount: Self.unwrapInboundIn(data).readableBytes, context) else {
            return
        }
        context.fireChannelRead(data)
        connection.didParse()
    }
}
