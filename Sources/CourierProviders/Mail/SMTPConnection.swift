import CourierModel
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Why a connection to a relay gave no reply. The words are for logs and reasons: they name no mailbox and no text.
struct SMTPFault: Error, Hashable {
    /// The outcome's reason: letters and `_`, and behind a colon what an operator has to know.
    var reason: String
    /// The words of `check` and the log.
    var why: String
    /// Whether the next try will go the same way until somebody changes something.
    var isConfiguration = false

    /// The outcome of every mail that meets the fault: a connection's fault says nothing of one mail.
    var outcome: DeliveryOutcome {
        isConfiguration ? .misconfigured(reason: reason) : .later(reason: reason, seconds: nil, scope: .app)
    }
}

extension SMTPFault {
    /// A reply that keeps the courier from speaking of a mail at all.
    init(_ stage: SMTPStage, _ reply: SMTPReply) {
        reason = reply.reason
        why =
            "the relay answered \(reply.code)\(reply.enhancedCode.map { " \($0)" } ?? "") to \(stage.rawValue)"
        if case .misconfigured = stage.outcome(reply) { isConfiguration = true }
    }
}

/// One connection to a mail relay: a command, then its reply.
///
/// - Concurrency: One task uses it at a time.
/// - Errors: After a fault it is closed, and another one is needed.
final class SMTPConnection: Sendable {
    private let channel: any Channel
    private let handler: NIOLoopBound<SMTPReplyHandler>
    private let tls: NIOSSLContext?
    private let host: String
    private let timeouts: SMTPTimeouts
    private let deadline: Mutex<NIODeadline?>

    private init(
        _ channel: any Channel, _ handler: NIOLoopBound<SMTPReplyHandler>, _ tls: NIOSSLContext?,
        _ host: String, _ timeouts: SMTPTimeouts, _ deadline: NIODeadline?
    ) {
        self.deadline = Mutex(deadline)
        (self.channel, self.handler, self.tls, self.host, self.timeouts) = (
            channel, handler, tls, host, timeouts
        )
    }

    /// Connects; with implicit TLS the relay's certificate is verified before a byte of SMTP is read.
    static func connect(
        _ configuration: MailConfiguration, _ tls: NIOSSLContext?, _ timeouts: SMTPTimeouts,
        by deadline: NIODeadline?
    ) async throws(SMTPFault) -> SMTPConnection {
        let host = configuration.host
        let (channel, handler): (any Channel, NIOLoopBound<SMTPReplyHandler>)
        do {
            (channel, handler) = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(.milliseconds(timeouts.milliseconds(.greeting, by: deadline)))
                .connect(host: host, port: configuration.port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let (pipeline, handler) = (channel.pipeline.syncOperations, SMTPReplyHandler())
                        if configuration.security == .tls, let tls {
                            try pipeline.addHandler(NIOSSLClientHandler(context: tls, host: host))
                        }
                        try pipeline.addHandler(handler)
                        return (channel, NIOLoopBound(handler, eventLoop: channel.eventLoop))
                    }
                }
        } catch {
            let endpoint = ProviderEndpoint(host: host, port: configuration.port)
            let why = ConnectionFault.words(error, endpoint)
            guard ConnectionFault.needsOperator(error) else {
                throw SMTPFault(reason: "connect_failed", why: why)
            }
            throw SMTPFault(reason: "connect_failed: \(why)", why: why, isConfiguration: true)
        }
        if configuration.security == .none {
            guard let address = channel.remoteAddress else {
                throw SMTPFault(reason: "connection_lost", why: "the relay closed the connection")
            }
            guard address.isLoopback else {
                await close(channel)
                throw SMTPFault(
                    reason: "plain_off_loopback",
                    why: "`\(host)` is not on this machine, and mail leaves it with TLS only",
                    isConfiguration: true)
            }
        }
        return SMTPConnection(channel, handler, tls, host, timeouts, deadline)
    }

    /// Bounds every wait on the connection by a moment; `nil` leaves the bound to the times of the stages.
    func end(at deadline: NIODeadline?) { self.deadline.withLock { $0 = deadline } }

    private func milliseconds(_ stage: SMTPStage) -> Int64 {
        timeouts.milliseconds(stage, by: deadline.withLock { $0 })
    }

    /// Waits for the reply that the relay owes at `stage`.
    func reply(_ stage: SMTPStage) async throws(SMTPFault) -> SMTPReply { try await exchange([], stage) }

    /// - Parameter line: Without CRLF.
    func command(_ line: String, _ stage: SMTPStage) async throws(SMTPFault) -> SMTPReply {
        try await exchange(Array(line.utf8) + [UInt8(ascii: "\r"), UInt8(ascii: "\n")], stage)
    }

    /// Writes the content of a message up to the line with the dot, which is not written: a relay that the connection to breaks
    /// before it has taken nothing (RFC 5321 section 4.1.1.4).
    func write(_ content: [UInt8]) async throws(SMTPFault) {
        let timeout = milliseconds(.content)
        do {
            try await channel.eventLoop.flatSubmit { [channel, handler] in
                handler.value.begin(milliseconds: timeout)
                return channel.writeAndFlush(ByteBuffer(bytes: content)).always { _ in
                    handler.value.endWrite()
                }
            }.get()
        } catch {
            throw fault(error)
        }
    }

    /// Begins TLS on the connection and verifies the relay's certificate. What the relay sent before it counts for nothing
    /// after it, so another EHLO must follow.
    func startTLS() async throws(SMTPFault) {
        guard let tls else {
            preconditionFailure("an SMTP connection without a TLS context was told to start TLS")
        }
        do {
            try await channel.eventLoop.submit { [channel, handler, host] in
                guard handler.value.isEmpty else {
                    throw SMTPFault(
                        reason: "bytes_before_tls", why: "the relay sent bytes behind its answer to STARTTLS")
                }
                try channel.pipeline.syncOperations.addHandler(
                    NIOSSLClientHandler(context: tls, host: host), position: .first)
            }.get()
        } catch {
            await close()
            throw fault(error)
        }
    }

    /// Whether the relay still has the connection open and said nothing unasked.
    func isUsable() async -> Bool {
        await withCheckedContinuation { result in
            channel.eventLoop.execute { [channel, handler] in
                result.resume(returning: channel.isActive && handler.value.isEmpty)
            }
        }
    }

    /// Closes the connection after so long, unless it is used again.
    func park(milliseconds: Int64) {
        channel.eventLoop.execute { [handler] in handler.value.park(milliseconds: milliseconds) }
    }

    /// Takes leave without waiting for the answer.
    func quit() async {
        channel.writeAndFlush(ByteBuffer(string: "QUIT\r\n"), promise: nil)
        await close()
    }

    func close() async { await Self.close(channel) }

    private static func close(_ channel: any Channel) async {
        // A connection that cannot be closed is closed already.
        await withCheckedContinuation { done in channel.close().whenComplete { _ in done.resume() } }
    }

    private func exchange(_ bytes: [UInt8], _ stage: SMTPStage) async throws(SMTPFault) -> SMTPReply {
        let timeout = milliseconds(stage)
        do {
            return try await channel.eventLoop.flatSubmit { [channel, handler] in
                let reply = handler.value.expectReply(milliseconds: timeout)
                if !bytes.isEmpty { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }
                return reply
            }.get()
        } catch {
            throw fault(error)
        }
    }

    private func fault(_ error: any Error) -> SMTPFault {
        error as? SMTPFault ?? SMTPFault(reason: "connection_lost", why: "the connection broke: \(error)")
    }
}

extension NIOSSLClientHandler {
    /// A host that is an address is verified against the addresses of the certificate; it has no name to be asked for
    /// (RFC 6066 section 3).
    fileprivate convenience init(context: NIOSSLContext, host: String) throws {
        let isAddress = ProviderEndpoint(host: host, port: 0).isAddress
        try self.init(context: context, serverHostname: isAddress ? nil : host)
    }
}

extension SocketAddress {
    var isLoopback: Bool {
        switch self {
        case .v4: ipAddress?.hasPrefix("127.") ?? false
        case .v6: ipAddress == "::1"
        case .unixDomainSocket: true
        }
    }
}

/// Gives each reply to whoever waits for it. Only the connection's event loop touches it.
private final class SMTPReplyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var reader = SMTPReplyReader()
    private var waiting: EventLoopPromise<SMTPReply>?
    /// Came before somebody asked: the greeting, or a relay's good-bye.
    private var early: SMTPReply?
    private var timer: Scheduled<Void>?
    private var context: ChannelHandlerContext?
    private var fault: SMTPFault?

    var isEmpty: Bool { reader.isEmpty && early == nil && fault == nil }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func begin(milliseconds: Int64) {
        timer?.cancel()
        timer = context?.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) {
            self.fail(
                SMTPFault(reason: "timed_out", why: "the relay did not answer within \(milliseconds) ms"))
        }
    }

    func endWrite() {
        if waiting == nil { timer?.cancel() }
    }

    func park(milliseconds: Int64) {
        timer?.cancel()
        timer = context?.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) {
            self.fail(SMTPFault(reason: "idle", why: "the connection was idle for \(milliseconds) ms"))
        }
    }

    func expectReply(milliseconds: Int64) -> EventLoopFuture<SMTPReply> {
        guard let context, fault == nil, waiting == nil else {
            let fault = fault ?? SMTPFault(reason: "connection_lost", why: "the relay closed the connection")
            return (context?.eventLoop ?? MultiThreadedEventLoopGroup.singleton.next()).makeFailedFuture(
                fault)
        }
        let promise = context.eventLoop.makePromise(of: SMTPReply.self)
        if let reply = early {
            early = nil
            promise.succeed(reply)
        } else {
            begin(milliseconds: milliseconds)
            waiting = promise
        }
        return promise.futureResult
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do {
            try reader.append(unwrapInboundIn(data).readableBytesView)
            while let reply = try reader.next() {
                if let waiting {
                    self.waiting = nil
                    timer?.cancel()
                    waiting.succeed(reply)
                } else if early == nil {
                    early = reply
                } else {
                    fail(SMTPFault(reason: "reply_unasked", why: "the relay answered more than it was asked"))
                }
            }
        } catch {
            fail(SMTPFault(reason: "reply_malformed", why: "\(error)"))
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { fail(Self.describe(error)) }

    func channelInactive(context: ChannelHandlerContext) {
        fail(SMTPFault(reason: "connection_lost", why: "the relay closed the connection"))
        context.fireChannelInactive()
    }

    private func fail(_ fault: SMTPFault) {
        timer?.cancel()
        if self.fault == nil { self.fault = fault }
        if let waiting {
            self.waiting = nil
            waiting.fail(fault)
        }
        context?.close(promise: nil)
    }

    private static func describe(_ error: any Error) -> SMTPFault {
        let why = ConnectionFault.words(error)
        return switch error {
        case NIOSSLError.handshakeFailed, NIOSSLError.unableToValidateCertificate, is NIOSSLExtraError:
            SMTPFault(reason: "tls_failed: \(why)", why: why, isConfiguration: true)
        default: SMTPFault(reason: "connection_lost", why: why)
        }
    }
}
