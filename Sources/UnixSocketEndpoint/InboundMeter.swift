import NIOCore

/// Stands before the parser: counts bytes, and keeps from it what a closing connection still receives.
final class InboundMeter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let connection: HTTPConnection

    init(_ connection: HTTPConnection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard connection.willParse(byteCount: unwrapInboundIn(data).readableBytes) else { return }
        context.fireChannelRead(data)
        connection.didParse()
    }
}
