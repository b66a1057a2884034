import NIOCore

/// One request, from the call to its answer or fault. Only the event loop of its connections touches it.
final class Exchange {
    let request: ProviderRequest
    /// Whether the request may still be written, asked just before the write.
    let mayWrite: @Sendable () -> Bool
    /// Runs after a connection is chosen and before the first byte, such as the journal's entry of a text; `nil` where nothing does.
    let begin: (@Sendable () async -> Bool)?
    let promise: EventLoopPromise<ProviderAnswer>
    /// The connection that carries it.
    weak var connection: ProviderConnection?
    /// The connection that refused it unread last.
    weak var refuser: ProviderConnection?
    var refusalCount = 0
    /// Whether the kernel took its last byte. Until then the provider has no whole request, so it cannot have acted on it.
    var isWritten = false
    var deadline: Scheduled<Void>?
    private(set) var isSettled = false
    private var answer = ProviderAnswer(status: 0, headers: [], body: [])

    init(
        _ request: ProviderRequest, _ promise: EventLoopPromise<ProviderAnswer>,
        begin: (@Sendable () async -> Bool)? = nil, mayWrite: @escaping @Sendable () -> Bool
    ) {
        self.request = request
        self.promise = promise
        self.begin = begin
        self.mayWrite = mayWrite
    }

    func receive(status: Int, headers: [(name: String, value: String)]) {
        answer.status = status
        answer.headers = headers
    }

    /// - Returns: Whether the body is still within its bound.
    func receive(_ bytes: ByteBuffer) -> Bool {
        guard answer.body.count + bytes.readableBytes <= ProviderAnswer.bodyBytesMax else { return false }
        answer.body.append(contentsOf: bytes.readableBytesView)
        return true
    }

    func finish() {
        guard answer.status != 0 else { return settle(.unanswered("the answer has no status")) }
        if isSettled { return }
        isSettled = true
        deadline?.cancel()
        promise.succeed(answer)
    }

    /// Settles a request that is given up: as unanswered once it is written.
    func giveUp(_ why: String) { settle(isWritten ? .unanswered(why) : .notWritten(why)) }

    func settle(_ fault: ExchangeFault) {
        if isSettled { return }
        isSettled = true
        deadline?.cancel()
        promise.fail(fault)
    }
}

/// One connection to a provider, as its pool sees it. Only its event loop touches it.
class ProviderConnection {
    /// The pool, up to the connection's end.
    private(set) var pool: ConnectionPool?
    let limits: ConnectionLimits
    /// The moment by which the connection has to be ready; set before it is dialled.
    var readyBy = NIODeadline.distantFuture
    /// Set for good by ``end()``: bytes that the channel reads afterwards are ignored.
    private(set) var isEnded = false
    /// Set once it may carry requests: TLS is verified, and the server's first SETTINGS are here.
    private(set) var isReady = false
    /// The connection takes no more requests; those it carries go on.
    private(set) var isDraining = false
    /// Why it ended, or is about to.
    var fault: String?
    /// Whether the next connection will end alike: see ``ConnectionFault/needsOperator(_:)``.
    private(set) var needsOperator = false
    /// Tells an idle connection from one in use.
    var lastUse = NIODeadline.now()

    init(_ pool: ConnectionPool) {
        self.pool = pool
        limits = pool.limits
    }

    /// How many more requests it takes now.
    var room: Int { 0 }
    /// The requests that it carries.
    var carried: [Exchange] { [] }
    /// As `carried.count`, without making a list.
    var load: Int { 0 }

    /// Writes the request, which `room` allows. The caller flushes.
    func write(_ exchange: Exchange) { preconditionFailure("a kind of connection has to write") }
    /// Keeps its place for the request until ``write(_:)`` or ``leave(_:)``.
    func reserve(_ exchange: Exchange) { preconditionFailure("a kind of connection has to reserve") }
    /// Gives the place back, of which nothing was written.
    func leave(_ exchange: Exchange) { preconditionFailure("a kind of connection has to give a place back") }
    func flush() { preconditionFailure("a kind of connection has to flush") }
    /// Tells the server that nobody waits for the answer any more.
    func abandon(_ exchange: Exchange) { preconditionFailure("a kind of connection has to abandon") }
    /// Cancels its timers, and gives away what it carries.
    func release() -> [Exchange] { preconditionFailure("a kind of connection has to release") }
    /// Settles what it carries as unanswered, and closes.
    func fail(_ why: String) { preconditionFailure("a kind of connection has to fail") }
    /// Closes a connection that carries nothing.
    func closeIdle() { preconditionFailure("a kind of connection has to close") }

    /// Ends it by an error of its channel.
    final func fail(_ error: any Error) {
        if fault == nil { needsOperator = ConnectionFault.needsOperator(error) }
        fail(ConnectionFault.words(error))
    }

    final func becomeReady() {
        guard !isReady, !isEnded, let pool else { return }
        isReady = true
        pool.connected(self)
    }

    /// Settles what was written; a request that was not goes to another connection. Events that the channel still has find
    /// nothing left to do.
    final func end() {
        guard !isEnded else { return }
        isEnded = true
        let pool = pool
        let why = "the connection was lost: \(fault ?? "the provider closed it")"
        for exchange in release() {
            if exchange.isWritten {
                exchange.settle(.unanswered(why))
            } else if let pool {
                pool.refused(exchange, by: self, why)
            } else {
                exchange.settle(.notWritten(why))
            }
        }
        self.pool = nil
        pool?.disconnected(self)
    }

    /// Gives up the request of `future`, if it carries it.
    final func cancel(_ future: EventLoopFuture<ProviderAnswer>) {
        guard let exchange = carried.first(where: { $0.promise.futureResult === future }) else { return }
        exchange.giveUp(
            exchange.isWritten
                ? "the request was cancelled after it was written" : "the request was cancelled")
        abandon(exchange)
    }

    /// A promise for the last part of the request. The kernel takes it, or the connection cannot write it.
    final func promise(ofLastPartOf exchange: Exchange, on loop: any EventLoop) -> EventLoopPromise<Void> {
        let promise = loop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in
            guard exchange.connection === self else { return }
            switch result {
            case .success: exchange.isWritten = true
            case .failure(let error): self.couldNotWrite(exchange, ConnectionFault.words(error))
            }
        }
        return promise
    }

    /// Gives the request to another connection, because a part of it could not be written.
    private func couldNotWrite(_ exchange: Exchange, _ why: String) {
        guard !exchange.isSettled, let pool else { return }
        abandon(exchange)
        pool.refused(exchange, by: self, "the request could not be written: \(why)")
        pool.dispatch()
    }

    final func drain() {
        isDraining = true
        if load == 0 { closeIdle() }
    }
}
