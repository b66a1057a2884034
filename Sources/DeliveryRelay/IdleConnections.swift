import Synchronization
import UnixHTTPClient

/// Connections to the hop whose last answer said `Connection: keep-alive`: each takes one message at a time, so that no
/// answer waits behind another's.
///
/// A server that says nothing of it gets a connection for each message, although HTTP/1.1 lets it be kept (RFC 9112
/// section 9.3). One that serves each connection by a process or thread, of which it has fewer than messages are under way,
/// would otherwise answer the same few connections again and again while the others ran into their deadline.
final class IdleConnections: Sendable {
    /// A connection is closed when it was not used for so long, in milliseconds. Servers close theirs later, gunicorn after
    /// 2 s and Node.js after 5 s, so a request rarely meets a server that is closing.
    static let idleMilliseconds: Int64 = 1_000

    private struct State {
        /// The one used last comes last.
        var connections: [(connection: UnixHTTPConnection, since: ContinuousClock.Instant)] = []
        var isSweeping = false
    }
    private let state = Mutex(State())

    /// The one used last, which the server is least likely to have closed.
    func take() -> UnixHTTPConnection? {
        state.withLock { $0.connections.popLast()?.connection }
    }

    func put(_ connection: UnixHTTPConnection) {
        let begins = state.withLock { state in
            state.connections.append((connection, .now))
            defer { state.isSweeping = true }
            return !state.isSweeping
        }
        if begins { Task { await sweep() } }
    }

    /// Closes what has become too old, until none is left.
    private func sweep() async {
        while true {
            try? await Task.sleep(for: .milliseconds(Self.idleMilliseconds))
            let oldest = ContinuousClock.now - .milliseconds(Self.idleMilliseconds)
            let (closing, isEmpty) = state.withLock { state in
                let count = state.connections.prefix { $0.since <= oldest }.count
                let closing = state.connections.prefix(count).map(\.connection)
                state.connections.removeFirst(count)
                state.isSweeping = !state.connections.isEmpty
                return (closing, !state.isSweeping)
            }
            for connection in closing { await connection.close() }
            if isEmpty { return }
        }
    }
}
