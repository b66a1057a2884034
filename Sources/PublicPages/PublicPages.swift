package import GatewayPipeline
package import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle
import Synchronization

/// Pages that anybody who has a link may open, in front of one ``UnsubscribeDesk``.
///
/// On an event loop and with bounds of its own (``PageLimits``): whatever the public does here, producers on their
/// sockets do not notice. It knows nothing of the gate but what the desk answers.
package final class PublicPages: Service {
    private let socket: PageSocket
    private let service: PageService
    private let limits: PageLimits
    private let rate: PageRate
    private let logger: Logger
    private let connectionCount = Mutex(0)
    private let state = Mutex(State())

    private struct State {
        var group: MultiThreadedEventLoopGroup?
        var listener: (any Channel)?
        var connections: [ObjectIdentifier: any Channel] = [:]
    }

    /// - Parameter preferencesURL: Where somebody changes everything else; `nil` leaves the link out.
    package init(
        on socket: PageSocket, desk: any UnsubscribeDesk, preferencesURL: String?,
        limits: PageLimits = PageLimits(), logger: Logger
    ) {
        self.socket = socket
        self.limits = limits
        self.logger = logger
        service = PageService(desk: desk, preferencesURL: preferencesURL)
        rate = PageRate(
            perSecond: limits.requestsPerSecond, burst: limits.requestBurst, clock: { NIODeadline.now() })
    }

    package var address: PageAddress { socket.address }

    /// Listens until the service group shuts down gracefully.
    package func run() async throws {
        try await start()
        try? await gracefulShutdown()
        await shutDown()
    }

    /// On return clients can connect.
    package func start() async throws {
        guard let descriptor = socket.take() else { preconditionFailure("pages were started twice") }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        state.withLock { $0.group = group }
        do {
            let listener = try await ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try self.setUp(channel) }
                }
                .childChannelOption(ChannelOptions.maxMessagesPerRead, value: 1)
                .childChannelOption(ChannelOptions.allowRemoteHalfClosure, value: true)
                .childChannelOption(
                    ChannelOptions.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4_096)
                )
                .withBoundSocket(descriptor).get()
            state.withLock { $0.listener = listener }
        } catch {
            socket.unlinkFile()
            await shutDown()
            throw error
        }
        logger.info("unsubscribe pages are served", metadata: ["address": "\(socket.address)"])
    }

    /// Accepts nothing new, and ends what is open: no page is worth waiting for.
    package func shutDown() async {
        let running = state.withLock { state in
            defer { state = State() }
            return state
        }
        guard let group = running.group else { return socket.abandon() }
        socket.unlinkFile()
        try? await running.listener?.close().get()
        for channel in running.connections.values { try? await channel.close().get() }
        try? await group.shutdownGracefully()
    }

    private func setUp(_ channel: any Channel) throws {
        let isAdmitted = connectionCount.withLock { count in
            count += 1
            return count <= limits.connectionCountMax
        }
        let id = ObjectIdentifier(channel)
        state.withLock { $0.connections[id] = channel }
        let connection = PageConnection(
            service: service, limits: limits, isAdmitted: isAdmitted, rate: rate
        ) { [weak self] in
            guard let self else { return }
            connectionCount.withLock { $0 -= 1 }
            _ = state.withLock { $0.connections.removeValue(forKey: id) }
        }
        var decoderLimits = NIOHTTPDecoderLimitConfiguration()
        decoderLimits.maxHeaderFieldSize = limits.headerByteCountMax
        decoderLimits.maxHeaderListSize = limits.headerByteCountMax
        decoderLimits.maxHeaderFieldCount = limits.headerFieldCountMax
        try channel.pipeline.syncOperations.addHandlers([
            ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: decoderLimits)), connection,
        ])
    }
}
