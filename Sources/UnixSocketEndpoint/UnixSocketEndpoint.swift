package import GatewayPipeline
import Glibc
package import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import WireProtocol
package import UnixSockets

/// HTTP/1.1 over Unix sockets, in front of one ``RequestHandler``.
///
/// Promises:
/// - Every request is attributed to the kernel's word for who connected (`SO_PEERCRED`, `SO_PEERGROUPS`).
/// - The answers of a connection come in the order of its requests, which may be under way at once.
/// - Nothing grows without bound, whatever a client sends or leaves unread: see ``EndpointLimits``.
/// - What the endpoint refuses itself is worded by the handler, so all problem documents look alike.
///
/// One endpoint is good for one run: ``start()``, then ``shutDown()``; ``run()`` does both as a service.
package final class UnixSocketEndpoint: Service {
    private let configurations: [ListenerConfiguration]
    private let limits: EndpointLimits
    private let clock: EndpointClock
    private let handler: any RequestHandler
    private let logger: Logger
    private let usage: EndpointUsage
    private let state = Mutex(State())
    /// Ends when a listener stops by itself, or when ``run()`` shall stop.
    private let stops: AsyncStream<Stop>
    private let stop: AsyncStream<Stop>.Continuation

    private enum Stop: Sendable {
        case asked
        case listenerClosed(Int)
    }

    private struct State {
        var phase = Phase.new
        var group: MultiThreadedEventLoopGroup?
        var mailboxes: [AnswerMailbox] = []
        var sweeps: [RepeatedTask] = []
        var listeners: [Listener] = []
    }

    private enum Phase { case new, running, stopping, stopped }

    private struct Listener: Sendable {
        var socket: ListeningSocket
        var channel: any Channel
    }

    /// - Parameter listeners: Their position is `Peer.listener`.
    package init(
        listeners: [ListenerConfiguration], limits: EndpointLimits = EndpointLimits(),
        clock: EndpointClock = .system, handler: any RequestHandler, logger: Logger
    ) throws(EndpointError) {
        if listeners.isEmpty { throw .noListener }
        if let contradiction = limits.firstContradiction { throw .contradictoryLimits(contradiction) }
        self.configurations = listeners
        self.limits = limits
        self.clock = clock
        self.handler = handler
        self.logger = logger
        usage = EndpointUsage(limits: limits)
        (stops, stop) = AsyncStream.makeStream(of: Stop.self, bufferingPolicy: .bufferingOldest(1))
    }

    // MARK: As a service

    /// Listens until the service group shuts down gracefully, then drains.
    ///
    /// - Throws: ``EndpointError`` when it cannot listen, or when a listener stops by itself.
    package func run() async throws { try await run {} }

    /// The same; `whenListening` is called once, as soon as clients can connect. An endpoint that was started goes on.
    package func run(whenListening: @Sendable () -> Void) async throws {
        if state.withLock({ $0.phase != .running }) { try await start() }
        whenListening()
        let reason = await withGracefulShutdownHandler {
            await withTaskCancellationHandler {
                for await reason in stops { return reason }
                return Stop.asked
            } onCancel: {
                stop.yield(.asked)
            }
        } onGracefulShutdown: {
            self.stop.yield(.asked)
        }
        await shutDown()
        if case .listenerClosed(let index) = reason { throw EndpointError.listenerClosed(listener: index) }
    }

    /// Binds every listener, and then accepts: at the first of them last, so that a client answered there finds the
    /// others open. On return clients can connect.
    package func start() async throws {
        let isFirst = state.withLock { state in
            defer { if state.phase == .new { state.phase = .running } }
            return state.phase == .new
        }
        guard isFirst else { throw EndpointError.alreadyStarted }
        try DescriptorBudget.raise(
            forConnections: limits.connections.total + limits.outgoingConnectionCount)

        var sockets: [ListeningSocket] = []
        do {
            for configuration in configurations {
                sockets.append(try ListeningSocket.open(configuration.source))
            }
        } catch {
            for socket in sockets { socket.abandon() }
            throw error
        }

        let group = MultiThreadedEventLoopGroup(numberOfThreads: limits.eventLoopCount)
        var mailboxes: [AnswerMailbox] = []
        for loop in group.makeIterator() {
            mailboxes.append(
                try await loop.submit { [clock] in AnswerMailbox(loop: loop, clock: clock) }.get())
        }
        state.withLock { [mailboxes] state in
            state.group = group
            state.mailboxes = mailboxes
            state.sweeps = mailboxes.map {
                $0.scheduleSweep(everyMilliseconds: limits.sweepMilliseconds)
            }
        }
        for (index, socket) in sockets.enumerated().reversed() {
            do {
                let channel = try await listen(on: socket, index: index, group: group, mailboxes: mailboxes)
                state.withLock { $0.listeners.append(Listener(socket: socket, channel: channel)) }
                channel.closeFuture.whenComplete { _ in self.listenerClosed(index) }
            } catch {
                // SwiftNIO closes a descriptor it could not listen on; the rest are still ours.
                socket.unlinkFile()
                socket.release()
                for socket in sockets[..<index] { socket.abandon() }
                await shutDown()
                throw error
            }
            logger.info(
                "listening",
                metadata: [
                    "listener": "\(index)",
                    "socket": "\(socket.file?.path ?? "descriptor \(socket.descriptor)")",
                ])
        }
    }

    /// Accepts nothing new, finishes what is under way within ``EndpointLimits/drainMilliseconds``, removes
    /// the socket files. Returns when every connection is closed. Safe to call again.
    package func shutDown() async {
        let running = state.withLock { state -> State? in
            guard state.phase == .running else { return nil }
            state.phase = .stopping
            return state
        }
        guard let running, let group = running.group else { return }
        for listener in running.listeners {
            listener.socket.unlinkFile()
            try? await listener.channel.close().get()
        }
        let deadline = clock.now() + .milliseconds(limits.drainMilliseconds)
        let unusedDeadline = clock.now() + .milliseconds(limits.firstRequestMilliseconds)
        await withTaskGroup(of: Void.self) { tasks in
            for mailbox in running.mailboxes {
                tasks.addTask { await self.drain(mailbox, until: deadline, unusedUntil: unusedDeadline) }
            }
        }
        for sweep in running.sweeps { sweep.cancel() }
        for listener in running.listeners { listener.socket.release() }
        do {
            try await group.shutdownGracefully()
        } catch {
            logger.error("the event loops did not stop cleanly", metadata: ["error": "\(error)"])
        }
        state.withLock { $0.phase = .stopped }
    }

    /// Returns once every event loop has come round: then it takes new connections and reads open ones.
    package func comeRound() async {
        for mailbox in state.withLock({ $0.mailboxes }) {
            // A loop that is shut down answers nobody any more.
            try? await mailbox.loop.submit {}.get()
        }
    }

    /// What has been counted so far. Any thread; the numbers of different loops are not of one instant.
    package func metrics() -> EndpointMetrics {
        var metrics = EndpointMetrics()
        for mailbox in state.withLock({ $0.mailboxes }) { mailbox.counters.add(to: &metrics) }
        metrics.connectionsOpen = usage.connections.value
        metrics.requestsInFlight = usage.inFlight.value
        metrics.bufferedByteCount = usage.bufferedBytes.value
        return metrics
    }

    /// The loops that connections live on; none before ``start()``.
    var eventLoops: [any EventLoop] { state.withLock { $0.mailboxes }.map(\.loop) }

    // MARK: Listening

    private func listen(
        on socket: ListeningSocket, index: Int, group: MultiThreadedEventLoopGroup, mailboxes: [AnswerMailbox]
    ) async throws -> any Channel {
        let configuration = configurations[index]
        let highWaterMark = limits.unwrittenByteCountMax
        let channel = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try self.setUp(channel, configuration, index: index, mailboxes: mailboxes)
                }
            }
            // The connection reads once it can buffer what it reads.
            .childChannelOption(ChannelOptions.autoRead, value: false)
            .childChannelOption(ChannelOptions.maxMessagesPerRead, value: 1)
            .childChannelOption(ChannelOptions.allowRemoteHalfClosure, value: true)
            .childChannelOption(
                ChannelOptions.writeBufferWaterMark,
                value: ChannelOptions.Types.WriteBufferWaterMark(low: highWaterMark / 2, high: highWaterMark)
            )
            .childChannelOption(
                ChannelOptions.recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: min(1_024, limits.readByteCountMax),
                    initial: min(2_048, limits.readByteCountMax),
                    maximum: limits.readByteCountMax)
            )
            .withBoundSocket(socket.descriptor).get()
        // SwiftNIO listens with a queue of 128 when it takes a bound socket, before it looks at any option. A second
        // listen(2) changes the length of the queue and nothing else.
        guard Glibc.listen(socket.descriptor, limits.listenBacklog) == 0 else {
            let number = errno
            try? await channel.close().get()
            throw EndpointError.system(
                call: "listen", path: socket.file?.path ?? "descriptor \(socket.descriptor)",
                errorNumber: number)
        }
        return channel
    }

    /// Attests the peer, and chooses the handler for it or closes. On the connection's event loop.
    private func setUp(
        _ channel: any Channel, _ configuration: ListenerConfiguration, index: Int, mailboxes: [AnswerMailbox]
    ) throws {
        guard let mailbox = mailboxes.first(where: { $0.loop === channel.eventLoop }) else {
            preconditionFailure("a connection was accepted on an event loop without a mailbox")
        }
        let pipeline = channel.pipeline.syncOperations
        let credentials = try pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            PeerCredentials(ofConnection: $0)
        }
        guard case .some(.some(let credentials)) = credentials else {
            mailbox.counters.rise(.connectionsRefused)
            logger.warning(
                "the kernel does not say who connected; closing", metadata: ["listener": "\(index)"])
            throw ChannelError.operationUnsupported
        }
        let peer = Peer(credentials: credentials, boundCaller: configuration.boundCaller, listener: index)
        guard
            let admission = usage.admitConnection(
                ofUser: credentials.userID, isReserved: handler.mayUseReserve(peer))
        else {
            mailbox.counters.rise(.connectionsRefused)
            var writer = ResponseWriter(allocator: channel.allocator)
            writer.writeResponse(
                Problem.tooManyInFlight.answer, date: mailbox.table.date, isHead: false, closes: true)
            try pipeline.addHandler(RefusedConnection(writer.take()))
            return
        }
        mailbox.counters.rise(.connectionsAccepted)
        let connection = HTTPConnection(
            peer: peer, handler: handler, limits: limits, mailbox: mailbox, admission: admission,
            logger: logger)
        try pipeline.add(
            connection, headerByteCountMax: limits.headerByteCountMax,
            headerFieldCountMax: limits.headerFieldCountMax)
    }

    private func listenerClosed(_ index: Int) {
        let isExpected = state.withLock { $0.phase != .running }
        if isExpected { return }
        logger.critical("a listener stopped by itself", metadata: ["listener": "\(index)"])
        stop.yield(.listenerClosed(index))
    }

    // MARK: Draining

    /// Asks every connection of the loop to finish, and cuts those that have not when time is up.
    private func drain(
        _ mailbox: AnswerMailbox, until deadline: NIODeadline, unusedUntil unusedDeadline: NIODeadline
    ) async {
        let drained = mailbox.loop.makePromise(of: Void.self)
        mailbox.loop.execute {
            mailbox.table.startDraining()
            mailbox.loop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(5)) { task in
                if mailbox.clock.now() >= unusedDeadline { mailbox.table.forEach { $0.endUnused() } }
                if mailbox.clock.now() >= deadline { mailbox.table.forEach { $0.cut() } }
                if mailbox.table.count == 0 {
                    task.cancel()
                    drained.succeed()
                }
            }
        }
        try? await drained.futureResult.get()
    }
}

/// Tells a connection over the bound why it is closed, without reading anything from it.
private final class RefusedConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let answer: ByteBuffer

    init(_ answer: ByteBuffer) { self.answer = answer }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(answer)).whenComplete { _ in channel.close(promise: nil) }
    }
}
