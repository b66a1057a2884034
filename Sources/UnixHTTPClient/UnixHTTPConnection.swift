import NIOCore
import NIOHTTP1
import NIOPosix

/// One HTTP/1.1 connection over a Unix socket, whose server the kernel has vouched for.
///
/// Several requests may be under way; their answers come in order. It is never repaired: once it has
/// failed, every request on it says whether it may have been handled, and a new connection is needed.
/// ``UnixHTTPClient`` does that.
package final class UnixHTTPConnection: Sendable {
    private let channel: any Channel
    private let handler: NIOLoopBound<ClientHandler>
    private let configuration: UnixHTTPClientConfiguration

    private init(
        _ channel: any Channel, _ handler: NIOLoopBound<ClientHandler>,
        _ configuration: UnixHTTPClientConfiguration
    ) {
        self.channel = channel
        self.handler = handler
        self.configuration = configuration
    }

    /// Connects and checks the server's user before anything is written.
    package static func connect(
        _ configuration: UnixHTTPClientConfiguration
    ) async throws(UnixHTTPError) -> UnixHTTPConnection {
        let byteCount = configuration.path.utf8.count
        guard byteCount <= 107, byteCount > 0 else {
            throw UnixHTTPError(.neverWritten, .pathTooLong(byteCount: byteCount), path: configuration.path)
        }
        var decoderLimits = NIOHTTPDecoderLimitConfiguration()
        decoderLimits.maxHeaderFieldSize = configuration.headerByteCountMax
        decoderLimits.maxHeaderListSize = configuration.headerByteCountMax
        decoderLimits.maxHeaderFieldCount = configuration.headerFieldCountMax
        let limits = decoderLimits
        do {
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(.milliseconds(configuration.connectMilliseconds))
                // The handler reads, so that a slow reader of a stream holds the server back.
                .channelOption(ChannelOptions.autoRead, value: false)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let handler = ClientHandler(configuration)
                        try channel.pipeline.syncOperations.addHandlers([
                            HTTPRequestEncoder(), InboundMeter(handler),
                            ByteToMessageHandler(HTTPResponseDecoder(limitConfiguration: limits)), handler,
                        ])
                    }
                }
                .connect(unixDomainSocketPath: configuration.path).get()
            let (handler, userID) = try await channel.eventLoop.submit {
                let operations = channel.pipeline.syncOperations
                let userID = try operations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                    serverUserID(ofConnection: $0)
                }
                return (
                    NIOLoopBound(
                        try operations.handler(type: ClientHandler.self), eventLoop: channel.eventLoop),
                    userID.flatMap { $0 }
                )
            }.get()
            if let trusted = configuration.serverUserIDs {
                guard let userID, trusted.contains(userID), userID != overflowUserID else {
                    try? await channel.close().get()
                    throw UnixHTTPError(
                        .neverWritten, .serverNotTrusted(userID: userID ?? UInt32.max),
                        path: configuration.path)
                }
            }
            return UnixHTTPConnection(channel, handler, configuration)
        } catch let error as UnixHTTPError {
            throw error
        } catch {
            throw UnixHTTPError(.neverWritten, connectCause(error, configuration), path: configuration.path)
        }
    }

    private static func connectCause(
        _ error: any Error, _ configuration: UnixHTTPClientConfiguration
    ) -> UnixHTTPError.Cause {
        switch error {
        case let error as IOError: .connectFailed(errorNumber: error.errnoCode)
        case ChannelError.connectTimeout: .connectTimedOut(milliseconds: configuration.connectMilliseconds)
        case SocketAddressError.unixDomainSocketPathTooLong:
            .pathTooLong(byteCount: configuration.path.utf8.count)
        default: .closed
        }
    }

    /// Sends one request and waits for its answer, whatever the status.
    ///
    /// - Parameters:
    ///   - headers: Without `Host` and the framing fields, which are added.
    ///   - timeoutMilliseconds: From now to the last byte of the answer, waiting for a place included. When
    ///     it passes for a written request the connection is closed, since the answers behind it are late too.
    /// - Throws: ``UnixHTTPError``; its stage says whether the request may have been handled.
    package func request(
        _ method: String, _ target: String, headers: [(name: String, value: String)] = [],
        body: [UInt8] = [], timeoutMilliseconds: Int64
    ) async throws(UnixHTTPError) -> UnixHTTPResponse {
        guard var head = Self.head(method, target, headers) else {
            throw UnixHTTPError(.neverWritten, .requestMalformed, path: configuration.path)
        }
        if Task.isCancelled { throw UnixHTTPError(.neverWritten, .cancelled, path: configuration.path) }
        if !body.isEmpty || method == "POST" || method == "PUT" {
            head.headers.add(name: "Content-Length", value: String(body.count))
        }
        let request = ClientHandler.Request(head: head, body: body, timeoutMilliseconds: timeoutMilliseconds)
        let promise = channel.eventLoop.makePromise(of: UnixHTTPResponse.self)
        let handler = handler
        let loop = channel.eventLoop
        do {
            return try await withTaskCancellationHandler {
                loop.execute { handler.value.submit(request, promise) }
                return try await promise.futureResult.get()
            } onCancel: {
                loop.execute { handler.value.cancel(promise) }
            }
        } catch {
            throw Self.typed(error, configuration)
        }
    }

    /// Opens `target` as a live NDJSON stream, which takes the whole connection.
    package func openStream(
        _ target: String, headers: [(name: String, value: String)] = []
    ) async throws(UnixHTTPError) -> UnixHTTPStreamOpening {
        guard var head = Self.head("POST", target, headers) else {
            throw UnixHTTPError(.neverWritten, .requestMalformed, path: configuration.path)
        }
        head.headers.add(name: "Content-Type", value: "application/x-ndjson")
        head.headers.add(name: "Transfer-Encoding", value: "chunked")
        head.headers.add(name: "Sendgate-Stream", value: "live")
        let opened = channel.eventLoop.makePromise(of: UnixHTTPResponse?.self)
        let streamHead = head
        let handler = handler
        let configuration = configuration
        do {
            channel.eventLoop.execute {
                handler.value.open(StreamExchange(opened, configuration: configuration), streamHead)
            }
            if let refusal = try await opened.futureResult.get() { return .refused(refusal) }
            return .open(UnixHTTPStream(channel, handler, configuration))
        } catch {
            throw Self.typed(error, configuration)
        }
    }

    /// Whether it can take another request. May change the moment it is asked.
    package func isReusable() async -> Bool {
        let handler = handler
        return (try? await channel.eventLoop.submit { handler.value.isReusable }.get()) ?? false
    }

    package func close() async {
        try? await channel.close().get()
    }

    /// `nil` when a part would break out of its place in the request.
    private static func head(
        _ method: String, _ target: String, _ headers: [(name: String, value: String)]
    ) -> HTTPRequestHead? {
        let isToken = { (text: String) in !text.isEmpty && text.utf8.allSatisfy { $0 > 32 && $0 < 127 } }
        guard isToken(method), isToken(target) else { return nil }
        var head = HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: method), uri: target)
        head.headers.add(name: "Host", value: "localhost")
        for (name, value) in headers {
            guard isToken(name), value.utf8.allSatisfy({ $0 >= 32 && $0 != 127 }) else { return nil }
            head.headers.add(name: name, value: value)
        }
        return head
    }

    static func typed(_ error: any Error, _ configuration: UnixHTTPClientConfiguration) -> UnixHTTPError {
        error as? UnixHTTPError ?? UnixHTTPError(.unanswered, .closed, path: configuration.path)
    }
}

/// One live stream: lines go out and answers come in at the same time.
///
/// Sending waits while the server does not read, and the server does not read while its answers are not
/// taken, so send and read from two tasks.
package final class UnixHTTPStream: Sendable {
    private let channel: any Channel
    private let handler: NIOLoopBound<ClientHandler>
    private let configuration: UnixHTTPClientConfiguration

    init(
        _ channel: any Channel, _ handler: NIOLoopBound<ClientHandler>,
        _ configuration: UnixHTTPClientConfiguration
    ) {
        self.channel = channel
        self.handler = handler
        self.configuration = configuration
    }

    /// Sends lines, each without its line feed, in one write. Returns when there is room for more.
    package func send(_ lines: [[UInt8]]) async throws(UnixHTTPError) {
        if lines.isEmpty { return }
        var bytes = channel.allocator.buffer(capacity: lines.reduce(0) { $0 + $1.count + 1 })
        for line in lines {
            if line.contains(UInt8(ascii: "\n")) {
                throw UnixHTTPError(.neverWritten, .requestMalformed, path: configuration.path)
            }
            bytes.writeBytes(line)
            bytes.writeInteger(UInt8(ascii: "\n"))
        }
        let handler = handler
        do {
            try await channel.eventLoop.flatSubmit { [bytes] in handler.value.writeLines(bytes) }.get()
        } catch {
            throw UnixHTTPConnection.typed(error, configuration)
        }
    }

    /// Says that no more lines will come; the answers still do.
    package func finish() async throws(UnixHTTPError) {
        let handler = handler
        do {
            try await channel.eventLoop.flatSubmit { handler.value.endLines() }.get()
        } catch {
            throw UnixHTTPConnection.typed(error, configuration)
        }
    }

    /// The next answer, or `nil` after the last.
    ///
    /// - Throws: ``UnixHTTPError`` of stage `unanswered` when the stream broke: lines without an answer may
    ///   have been handled.
    package func next(timeoutMilliseconds: Int64) async throws(UnixHTTPError) -> [UInt8]? {
        let handler = handler
        do {
            return try await channel.eventLoop.flatSubmit {
                handler.value.nextAnswer(timeoutMilliseconds: timeoutMilliseconds)
            }.get()
        } catch {
            throw UnixHTTPConnection.typed(error, configuration)
        }
    }

    package func close() async {
        try? await channel.close().get()
    }
}
