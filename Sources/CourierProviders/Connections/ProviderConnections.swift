import NIOCore
import NIOPosix

/// The HTTP client of one provider: verified TLS, few connections, bounded waiting, and a fault that says whether the
/// request was written.
///
/// - Concurrency: `exchange` may be called many times at once.
/// - Retry: Only what the server has certainly not read goes again, on another connection.
/// - Cancellation: A task that is cancelled gives its request up. One that is not written never is; a written one is then
///   ``ExchangeFault/unanswered(_:)``.
package final class ProviderConnections: Sendable {
    package enum Kind: String, Sendable {
        /// As ALPN calls it (RFC 7301).
        case http2 = "h2"
        case http1 = "http/1.1"
    }

    package let endpoint: ProviderEndpoint
    private let limits: ConnectionLimits
    private let loop: any EventLoop
    private let pool: NIOLoopBoundBox<ConnectionPool>

    package init(
        _ endpoint: ProviderEndpoint, _ kind: Kind, trust: TLSTrust, limits: ConnectionLimits? = nil
    ) {
        self.endpoint = endpoint
        loop = MultiThreadedEventLoopGroup.singleton.next()
        let limits = limits ?? (kind == .http2 ? .http2 : .http1)
        self.limits = limits
        pool = NIOLoopBoundBox.makeBoxSendingValue(
            ConnectionPool(endpoint, kind, trust, limits, loop), eventLoop: loop)
    }

    /// - Parameters:
    ///   - mayWrite: Asked on the event loop just before the write. When it says no, nothing is written.
    ///   - begin: Called when a connection stands that will carry the request, before its first byte is written; again where that
    ///     connection is lost meanwhile. When it says no, nothing is written. For connections of HTTP/1.1 alone, whose one request it holds.
    package func exchange(
        _ request: ProviderRequest, mayWrite: @escaping @Sendable () -> Bool = { true },
        begin: (@Sendable () async -> Bool)? = nil
    ) async throws(ExchangeFault) -> ProviderAnswer {
        guard request.isWellFormed else {
            throw .notWritten("a path or header has a space or control character")
        }
        guard !Task.isCancelled else { throw .notWritten("the request was cancelled") }
        let promise = loop.makePromise(of: ProviderAnswer.self)
        let cancellation = CancellationMark()
        do {
            return try await withTaskCancellationHandler {
                loop.execute { [pool] in
                    pool.value.submit(
                        Exchange(
                            request, promise, begin: begin,
                            mayWrite: { !cancellation.isSet && mayWrite() }))
                }
                return try await promise.futureResult.get()
            } onCancel: {
                // The pool may hear of the end before it has the request, so the request itself asks.
                cancellation.set()
                loop.execute { [pool] in pool.value.cancel(promise.futureResult) }
            }
        } catch {
            throw error as? ExchangeFault ?? .unanswered("the connection failed")
        }
    }

    /// Opens a connection without a request.
    /// - Returns: Why the provider cannot be reached; `nil` when it can.
    package func reach() async -> String? {
        let promise = loop.makePromise(of: Void.self)
        loop.execute { [pool] in pool.value.reach(promise) }
        do {
            try await promise.futureResult.get()
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Bound on its descriptors: its connections, and as many again that end or are tried at a second address of the name.
    package var descriptorCountMax: Int { 2 * limits.connectionsMax }

    deinit { close() }

    /// Ends the connections when their requests are answered. New requests are not written.
    package func close() {
        loop.execute { [pool] in pool.value.close() }
    }
}

extension ProviderRequest {
    /// Whether no part of it would break out of its place in the request.
    var isWellFormed: Bool {
        let isWord = { (text: String) in !text.isEmpty && text.utf8.allSatisfy { $0 > 32 && $0 < 127 } }
        return isWord(method) && isWord(path) && path.hasPrefix("/")
            && headers.allSatisfy { header in
                isWord(header.name) && header.value.utf8.allSatisfy { $0 >= 32 && $0 < 127 }
            }
    }
}
