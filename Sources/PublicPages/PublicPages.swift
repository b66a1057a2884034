package import GatewayPipeline
package import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import UnixSocketEndpoint

/// The public pages of unsubscribe links, in front of one ``UnsubscribeHandler``.
///
/// Runs on an event loop and with bounds of its own (``PageLimits``), so that load on the pages does not slow the
/// producers' sockets. Its only access to the gateway is the handler.
package final class PublicPages: Service {
    private let socket: PageSocket
    private let service: PageService
    private let limits: PageLimits
    private let rates: PageRates
    private let logger: Logger
    private let connections: PageConnections
    private let state = Mutex(State())

    private struct State {
        var group: MultiThreadedEventLoopGroup?
        var listener: (any Channel)?
    }

    /// - Parameter preferencesURL: The app's page for all other preferences; `nil` leaves the link out.
    package init(
        on socket: PageSocket, handler: any UnsubscribeHandler, preferencesURL: String?,
        limits: PageLimits = PageLimits(), logger: Logger
    ) {
        self.socket = socket
        self.limits = limits
        self.logger = logger
        connections = PageConnections(countMax: limits.connectionCountMax)
        service = PageService(handler: handler, preferencesURL: preferencesURL)
        rates = PageRates(limits, clock: { NIODeadline.now() })
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
            await shutDown()
            throw error
        }
        logger.info("unsubscribe pages are served", metadata: ["address": "\(socket.address)"])
    }

    /// Accepts nothing new, and cuts open connections: a page can be loaded again.
    package func shutDown() async {
        let running = state.withLock { state in
            defer { state = State() }
            return state
        }
        guard let group = running.group else { return socket.abandon() }
        socket.unlinkFile()
        try? await running.listener?.close().get()
        for channel in connections.all { try? await channel.close().get() }
        socket.release()
        try? await group.shutdownGracefully()
    }

    private func setUp(_ channel: any Channel) throws {
        let connection = PageConnection(
            service: service, limits: limits, connections: connections, rates: rates)
        try channel.pipeline.syncOperations.add(
            connection, headerByteCountMax: limits.headerByteCountMax,
            headerFieldCountMax: limits.headerFieldCountMax)
    }
}
