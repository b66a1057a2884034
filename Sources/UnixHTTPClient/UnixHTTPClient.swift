/// Requests to one Unix socket over one connection at a time, made when first needed and made again when it
/// is gone.
///
/// A request that never left on a connection the server had meanwhile closed is tried once more on a new
/// one: no server can have handled it. Nothing else is repeated here; whether repeating is safe is known only
/// to the caller.
package final class UnixHTTPClient: Sendable {
    package let configuration: UnixHTTPClientConfiguration
    private let keeper: ConnectionKeeper

    package init(_ configuration: UnixHTTPClientConfiguration) {
        self.configuration = configuration
        keeper = ConnectionKeeper(configuration)
    }

    /// See ``UnixHTTPConnection/request(_:_:headers:body:timeoutMilliseconds:)``.
    package func request(
        _ method: String, _ target: String, headers: [(name: String, value: String)] = [],
        body: [UInt8] = [], timeoutMilliseconds: Int64
    ) async throws(UnixHTTPError) -> UnixHTTPResponse {
        let (connection, isFresh) = try await keeper.connection()
        do throws(UnixHTTPError) {
            return try await connection.request(
                method, target, headers: headers, body: body, timeoutMilliseconds: timeoutMilliseconds)
        } catch {
            guard !isFresh, error.stage == .neverWritten else { throw error }
            switch error.cause {
            case .closed, .systemError: break
            default: throw error
            }
        }
        let (again, _) = try await keeper.connection(insteadOf: connection)
        return try await again.request(
            method, target, headers: headers, body: body, timeoutMilliseconds: timeoutMilliseconds)
    }

    /// Opens a live stream on a connection of its own.
    package func openStream(
        _ target: String, headers: [(name: String, value: String)] = []
    ) async throws(UnixHTTPError) -> UnixHTTPStreamOpening {
        try await UnixHTTPConnection.connect(configuration).openStream(target, headers: headers)
    }

    /// Closes the connection; the next request makes a new one.
    package func close() async {
        await keeper.close()
    }
}

/// Hands out one connection to all that ask, and sees to it that several asking at once make one.
private actor ConnectionKeeper {
    private let configuration: UnixHTTPClientConfiguration
    private var current: Task<Result<UnixHTTPConnection, UnixHTTPError>, Never>?

    init(_ configuration: UnixHTTPClientConfiguration) { self.configuration = configuration }

    func connection(
        insteadOf broken: UnixHTTPConnection? = nil
    ) async throws(UnixHTTPError) -> (UnixHTTPConnection, isFresh: Bool) {
        if let current {
            if case .success(let connection) = await current.value, connection !== broken,
                await connection.isReusable()
            {
                return (connection, false)
            }
            // Another task may have replaced it during the wait.
            if self.current == current { self.current = nil }
        }
        if let current { return (try await current.value.get(), true) }
        let configuration = configuration
        let task = Task { () async -> Result<UnixHTTPConnection, UnixHTTPError> in
            do throws(UnixHTTPError) {
                return .success(try await UnixHTTPConnection.connect(configuration))
            } catch {
                return .failure(error)
            }
        }
        current = task
        return (try await task.value.get(), true)
    }

    func close() async {
        guard let current else { return }
        self.current = nil
        if case .success(let connection) = await current.value { await connection.close() }
    }
}
