import GateVocabulary
import Glibc
package import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle
import Synchronization
package import UnixSockets

/// One request, read whole.
package struct HTTPRequest: Sendable {
    package var method: String
    /// Path and query, as the request line has them.
    package var target: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package init(
        method: String, target: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }

    package var path: String { String(target.prefix { $0 != "?" }) }
}

package struct HTTPAnswer: Sendable, Hashable {
    package var status: Int
    package var contentType: String?
    package var retryAfter: Int?
    package var body: [UInt8]

    package init(_ status: Int, contentType: String? = nil, retryAfter: Int? = nil, body: [UInt8] = []) {
        self.status = status
        self.contentType = contentType
        self.retryAfter = retryAfter
        self.body = body
    }
}

/// Every bound of a listener. Times are milliseconds.
package struct HTTPListenerLimits: Sendable, Hashable {
    package var bodyByteCountMax: Int
    /// More than these are closed as soon as they are accepted. A gateway has a connection for each message under way.
    package var connectionCountMax = 1_024
    /// Time of a request: from the connection, or the answer before, to its last byte.
    package var requestMilliseconds: Int64 = 10_000
    /// Time in which a refused client may go on sending before its connection is cut.
    package var lingerMilliseconds: Int64 = 1_000
    package var headerByteCountMax = 16 * 1024
    package var headerFieldCountMax = 100
    /// Time from the shutdown's begin until the last connection is cut.
    package var drainMilliseconds: Int64 = 10_000
    /// How long a connection without a request stays open in that time. The gateway closes one that was idle for a second, two at
    /// most; closed earlier, it would have a request in it sometimes, of which nobody could say whether it was read.
    package var idleDrainMilliseconds: Int64 = 2_500
    /// Connections that wait to be accepted; the kernel caps it at `net.core.somaxconn`.
    package var backlog: Int32 = 1_024

    package init(bodyByteCountMax: Int) { self.bodyByteCountMax = bodyByteCountMax }
}

/// HTTP/1.1 in front of one function, on a Unix socket or on the loopback.
///
/// - Bounds: ``HTTPListenerLimits``. A request that is longer gets 413, one that takes too long 408.
/// - Shutdown: Accepts nothing more, answers what is under way and what still comes over open connections while
///   ``HTTPListenerLimits/drainMilliseconds`` last, and closes each after its answer.
package final class HTTPListener: Service {
    package enum Address: Sendable, Hashable, CustomStringConvertible {
        case unix(SocketFile)
        /// 127.0.0.1 or ::1. Port 0 takes one that is free.
        case loopback(host: String, port: Int)
        /// A socket that a service manager made: a Unix socket, or a public one, on the loopback as well.
        case inherited(name: String, descriptor: Int32, isPublic: Bool)

        package var description: String {
            switch self {
            case .unix(let file): file.path
            case .inherited(let name, _, _): "\(InheritedSockets.configurationPrefix)\(name)"
            case .loopback(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
            }
        }
    }

    let limits: HTTPListenerLimits
    let handler: @Sendable (HTTPRequest) async -> HTTPAnswer
    /// What every request of a process of this user is answered; `nil` serves it. Asked once for each connection to a Unix
    /// socket.
    let refusal: @Sendable (_ userID: UInt32) -> HTTPAnswer?
    private let wanted: Address
    private let whenListening: @Sendable (Address) -> Void
    private let logger: Logger
    private let connections = Mutex<[ObjectIdentifier: any NIOCore.Channel]>([:])
    private let isDrainingFlag = Atomic(false)

    package init(
        on address: Address, limits: HTTPListenerLimits,
        refusal: @escaping @Sendable (_ userID: UInt32) -> HTTPAnswer? = { _ in nil }, logger: Logger,
        whenListening: @escaping @Sendable (Address) -> Void = { _ in },
        handler: @escaping @Sendable (HTTPRequest) async -> HTTPAnswer
    ) {
        wanted = address
        self.limits = limits
        self.refusal = refusal
        self.logger = logger
        self.whenListening = whenListening
        self.handler = handler
    }

    /// Whether the kernel says who connects.
    private var isAttested: Bool {
        switch wanted {
        case .unix, .inherited(_, _, isPublic: false): true
        case .loopback, .inherited(_, _, isPublic: true): false
        }
    }

    var isDraining: Bool { isDrainingFlag.load(ordering: .acquiring) }

    /// Listens until the service group shuts down gracefully, or the task is cancelled.
    package func run() async throws {
        let (listener, socket) = try await listen()
        // Either way it is time to drain.
        try? await gracefulShutdown()
        socket?.unlinkFile()
        try? await listener.close()
        await drain()
        socket?.release()
    }

    private func listen() async throws -> (any NIOCore.Channel, ListeningSocket?) {
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: limits.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.setUp(channel) }
            }
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
        switch wanted {
        case .loopback(let host, let port):
            let channel = try await bootstrap.bind(host: host, port: port).get()
            let bound = Address.loopback(host: host, port: channel.localAddress?.port ?? port)
            started(at: bound)
            return (channel, nil)
        case .unix(let file): return try await listen(on: ListeningSocket.open(.path(file)), bootstrap)
        case .inherited(_, let descriptor, let isPublic):
            return try await listen(
                on: isPublic
                    ? ListeningSocket.adoptPublic(descriptor)
                    : ListeningSocket.open(.inherited(descriptor: descriptor)), bootstrap)
        }
    }

    private func listen(
        on socket: ListeningSocket, _ bootstrap: ServerBootstrap
    ) async throws -> (any NIOCore.Channel, ListeningSocket?) {
        let channel: any NIOCore.Channel
        do {
            channel = try await bootstrap.withBoundSocket(socket.descriptor).get()
        } catch {
            // SwiftNIO has closed the descriptor.
            socket.unlinkFile()
            socket.release()
            throw error
        }
        // SwiftNIO listens with a queue of 128 when it takes a bound socket, before it looks at any option.
        if Glibc.listen(socket.descriptor, limits.backlog) != 0 {
            logger.warning("the queue of connections stays short", metadata: ["socket": "\(wanted)"])
        }
        started(at: wanted)
        return (channel, socket)
    }

    private func started(at address: Address) {
        logger.info("listening", metadata: ["address": "\(address)"])
        whenListening(address)
    }

    /// Chooses for a new connection whether it is served. On its event loop.
    private func setUp(_ channel: any NIOCore.Channel) throws {
        let isAdmitted = connections.withLock { connections in
            guard connections.count < limits.connectionCountMax, !isDraining else { return false }
            connections[ObjectIdentifier(channel)] = channel
            return true
        }
        guard isAdmitted else { throw ChannelError.operationUnsupported }
        channel.closeFuture.whenComplete { _ in
            _ = self.connections.withLock { $0.removeValue(forKey: ObjectIdentifier(channel)) }
        }
        let pipeline = channel.pipeline.syncOperations
        var refused: HTTPAnswer?
        if isAttested {
            let found = try pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                ProcessCredentials(ofConnection: $0)
            }
            // A peer that the kernel says nothing of is not served.
            guard case .some(.some(let credentials)) = found else { throw ChannelError.operationUnsupported }
            refused = refusal(credentials.userID)
        }
        var bounds = NIOHTTPDecoderLimitConfiguration()
        bounds.maxHeaderFieldSize = limits.headerByteCountMax
        bounds.maxHeaderListSize = limits.headerByteCountMax
        bounds.maxHeaderFieldCount = limits.headerFieldCountMax
        try pipeline.addHandlers([
            HTTPResponseEncoder(), ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: bounds)),
            HTTPServerPipelineHandler(), HTTPServerConnection(self, refused: refused),
        ])
    }

    // MARK: Draining

    private func drain() async {
        isDrainingFlag.store(true, ordering: .releasing)
        for channel in open { channel.pipeline.fireUserInboundEventTriggered(HTTPServerConnection.Drain()) }
        let channels = open
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                for channel in channels { try? await channel.closeFuture.get() }
            }
            tasks.addTask { [limits] in
                // The wait ends early when the connections do.
                try? await Task.sleep(for: .milliseconds(limits.drainMilliseconds))
            }
            await tasks.next()
            tasks.cancelAll()
            for channel in open { channel.close(promise: nil) }
        }
    }

    private var open: [any NIOCore.Channel] { connections.withLock { Array($0.values) } }
}

/// One connection: reads a request whole, lets it be answered elsewhere, writes the answer, and reads the next.
///
/// Confined to its event loop; what is answered elsewhere comes back over `NIOLoopBound`.
private final class HTTPServerConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// The listener stops.
    struct Drain: Sendable {}

    private enum State {
        case idle
        case reading(HTTPRequestHead, [UInt8])
        case answering(keepsAlive: Bool)
        /// The last answer is written; bytes of the client are dropped until it closes.
        case lingering
        case closed
    }

    private let listener: HTTPListener
    private let refused: HTTPAnswer?
    private var state = State.idle
    private var deadline: Scheduled<Void>?

    init(_ listener: HTTPListener, refused: HTTPAnswer?) {
        self.listener = listener
        self.refused = refused
    }

    func channelActive(context: ChannelHandlerContext) { awaitRequest(context) }

    func channelInactive(context: ChannelHandlerContext) {
        state = .closed
        deadline?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (Self.unwrapInboundIn(data), state) {
        case (.head(let head), .idle):
            state = .reading(head, [])
            if let refused { finish(refused, context) }
        case (.body(let bytes), .reading(let head, var body)):
            guard body.count + bytes.readableBytes <= listener.limits.bodyByteCountMax else {
                let max = listener.limits.bodyByteCountMax
                return finish(.refusal(413, "the body is longer than \(max) bytes"), context)
            }
            // Taken out of the state, so that the bytes are appended and not copied.
            state = .reading(head, [])
            body.append(contentsOf: bytes.readableBytesView)
            state = .reading(head, body)
        case (.end, .reading(let head, let body)):
            deadline?.cancel()
            state = .answering(keepsAlive: head.isKeepAlive)
            answer(head, body, context)
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch state {
        case .idle, .reading:
            guard error is HTTPParserError || error is NIOHTTPDecoderError else {
                return context.close(promise: nil)
            }
            let isTooLong = (error as? HTTPParserError) == .headerOverflow || error is NIOHTTPDecoderError
            finish(
                isTooLong ? .refusal(431, "the header is too long") : .refusal(400, "this is not HTTP/1.1"),
                context)
        // Bytes behind the request are no reason to lose its answer.
        case .answering, .lingering, .closed: break
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (event, state) {
        case (is Drain, .idle):
            setDeadline(listener.limits.idleDrainMilliseconds, context) { connection, context in
                if case .idle = connection.state { context.close(promise: nil) }
            }
        case (ChannelEvent.inputClosed, .idle), (ChannelEvent.inputClosed, .reading),
            (ChannelEvent.inputClosed, .lingering):
            context.close(promise: nil)
        // A client may close its half and still read the answer.
        case (is Drain, _), (ChannelEvent.inputClosed, _): break
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    // MARK: Answering

    private func answer(_ head: HTTPRequestHead, _ body: [UInt8], _ context: ChannelHandlerContext) {
        let request = HTTPRequest(
            method: head.method.rawValue, target: head.uri,
            headers: head.headers.map { (name: $0.name, value: $0.value) }, body: body)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let loop = context.eventLoop
        Task { [handler = listener.handler] in
            let answer = await handler(request)
            loop.execute {
                let (connection, context) = bound.value
                guard case .answering(let keepsAlive) = connection.state else { return }
                let closes = !keepsAlive || connection.listener.isDraining
                // The next request of the connection may be read while the answer is written.
                if closes { return connection.finish(answer, context) }
                connection.awaitRequest(context)
                _ = connection.write(answer, closes: false, context)
            }
        }
    }

    /// Writes the last answer of the connection, and lets the client read it before the connection is gone.
    private func finish(_ answer: HTTPAnswer, _ context: ChannelHandlerContext) {
        state = .lingering
        setDeadline(listener.limits.requestMilliseconds, context) { _, context in
            context.close(promise: nil)
        }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        write(answer, closes: true, context).assumeIsolated().whenComplete { result in
            let (connection, context) = bound.value
            guard case .success = result else { return context.close(promise: nil) }
            context.close(mode: .output, promise: nil)
            connection.setDeadline(connection.listener.limits.lingerMilliseconds, context) { _, context in
                context.close(promise: nil)
            }
        }
    }

    private func write(
        _ answer: HTTPAnswer, closes: Bool, _ context: ChannelHandlerContext
    ) -> EventLoopFuture<Void> {
        var head = HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status))
        let date = Instant(milliseconds: Int64(time(nil)) * 1_000).httpDate
        head.headers.add(name: "date", value: date)
        if answer.status != 204 { head.headers.add(name: "content-length", value: "\(answer.body.count)") }
        if let type = answer.contentType { head.headers.add(name: "content-type", value: type) }
        if let seconds = answer.retryAfter { head.headers.add(name: "retry-after", value: "\(seconds)") }
        // Said although it is HTTP/1.1's default: the gateway keeps a connection only if the answer says so.
        head.headers.add(name: "connection", value: closes ? "close" : "keep-alive")
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        if !answer.body.isEmpty {
            let buffer = context.channel.allocator.buffer(bytes: answer.body)
            context.write(Self.wrapOutboundOut(.body(.byteBuffer(buffer))), promise: nil)
        }
        return context.writeAndFlush(Self.wrapOutboundOut(.end(nil)))
    }

    private func awaitRequest(_ context: ChannelHandlerContext) {
        state = .idle
        setDeadline(listener.limits.requestMilliseconds, context) { connection, context in
            // A client that has sent nothing is told nothing.
            if case .idle = connection.state { return context.close(promise: nil) }
            connection.finish(.refusal(408, "the request took too long"), context)
        }
    }

    private func setDeadline(
        _ milliseconds: Int64, _ context: ChannelHandlerContext,
        _ body: @escaping @Sendable (HTTPServerConnection, ChannelHandlerContext) -> Void
    ) {
        deadline?.cancel()
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        deadline = context.eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {
            let (connection, context) = bound.value
            if case .closed = connection.state { return }
            body(connection, context)
        }
    }
}
