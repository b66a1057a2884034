package import GateSteps
package import GatewayPipeline
import GateVocabulary
import Glibc
import Synchronization
import UnixHTTPClient

/// The delivery layer's own socket: `POST /v1/deliveries`, one message at a time on each connection.
///
/// The listening process is checked by the kernel's word before anything is written (`SO_PEERCRED`): a
/// process that took the path over must not be given tokens.
package final class UnixHop: Hop {
    /// Longest wait for the answer to one message, in milliseconds. After it the message is ambiguous.
    package static let answerMilliseconds: Int64 = 10_000

    private let configuration: UnixHTTPClientConfiguration
    private let hopProtocol: HopProtocol
    private let clock: any Clock
    private let answerMilliseconds: Int64
    /// Nothing is handed over for so long after an answer that can only come from a wrong configuration, in milliseconds.
    package static let misconfiguredMilliseconds: Int64 = 5_000
    private let misconfigured = Mutex<(reason: String, until: Int64)?>(nil)
    /// Whether the last try failed before anything was written, so that the socket is looked at first.
    private let mayBeDown = Mutex(true)
    private let idle = IdleConnections()
    /// The look under way, which both lanes wait for: at a start they would make the same connection twice.
    private let looking = Mutex<Task<String?, Never>?>(nil)

    /// - Parameter serverUserIDs: The users that may listen there; `nil` accepts every user, for `--dev`.
    package init(
        path: String, serverUserIDs: Set<UInt32>?, speaking hopProtocol: HopProtocol = .outcomes,
        clock: any Clock, answerMilliseconds: Int64 = UnixHop.answerMilliseconds
    ) {
        self.hopProtocol = hopProtocol
        self.clock = clock
        self.answerMilliseconds = answerMilliseconds
        configuration = UnixHTTPClientConfiguration(path: path, serverUserIDs: serverUserIDs)
    }

    package func obstacle() async -> String? {
        let now = clock.reading().uptime
        if let reason = misconfigured.withLock({ $0.flatMap { $0.until > now ? $0.reason : nil } }) {
            return reason
        }
        guard mayBeDown.withLock({ $0 }) else { return nil }
        let look = looking.withLock { looking in
            let look = looking ?? Task { await self.look() }
            looking = look
            return look
        }
        let obstacle = await look.value
        looking.withLock { if $0 == look { $0 = nil } }
        return obstacle
    }

    private func look() async -> String? {
        do {
            await (try UnixHTTPConnection.connect(configuration)).close()
        } catch {
            guard case .serverNotTrusted(let found) = error.cause else {
                // Whoever may not enter a directory learns nothing of what is in it.
                if case .connectFailed(EACCES) = error.cause { return "\(error.description); \(error.hint)" }
                return error.description
            }
            let expected = (configuration.serverUserIDs ?? []).sorted().map(String.init)
            return
                "`\(configuration.path)` is served by uid \(found), and `hop.users` allows \(expected.joined(separator: ", "))"
        }
        mayBeDown.withLock { $0 = false }
        return nil
    }

    package func deliver(_ delivery: Delivery) async -> HopResult {
        let body: [UInt8]
        do {
            var deadline = clock.reading()
            deadline.uptime += answerMilliseconds
            body = try DeliveryDocument.write(delivery, waitsUntil: deadline)
        } catch {
            // The body that the gateway composed is not JSON: a fault of its own, and the same on every retry.
            return .refused(status: 400, reason: nil)
        }
        while let connection = idle.take() {
            let result = await exchange(body, of: delivery, on: connection)
            // The server had closed it before anything was written.
            if case .notWritten = result { continue }
            return result
        }
        let connection: UnixHTTPConnection
        do {
            connection = try await UnixHTTPConnection.connect(configuration)
        } catch {
            mayBeDown.withLock { $0 = true }
            return .notWritten(error.description)
        }
        let result = await exchange(body, of: delivery, on: connection)
        if case .notWritten = result { mayBeDown.withLock { $0 = true } }
        return result
    }

    /// Takes one message to the hop. The connection is kept or closed by what the answer says.
    private func exchange(
        _ body: [UInt8], of delivery: Delivery, on connection: UnixHTTPConnection
    ) async -> HopResult {
        var headers = [("content-type", "application/json")]
        if let trace = delivery.traceParent { headers.append(("traceparent", trace.text)) }
        do {
            let response = try await connection.request(
                "POST", "/v1/deliveries", headers: headers, body: body,
                timeoutMilliseconds: answerMilliseconds)
            if response.header("connection")?.lowercased() == "keep-alive" {
                idle.put(connection)
            } else {
                await connection.close()
            }
            let result = hopProtocol.result(
                status: response.status, retryAfter: response.header("retry-after"), body: response.body)
            note(result)
            return result
        } catch {
            await connection.close()
            guard error.stage == .neverWritten else { return .ambiguous("hop_unanswered", mayRepeat: true) }
            return .notWritten(error.description)
        }
    }

    /// An answer that is not about its message would be given to every message, so the hop is left alone for a while.
    private func note(_ result: HopResult) {
        let until = clock.reading().uptime + Self.misconfiguredMilliseconds
        misconfigured.withLock {
            guard case .misconfigured(let status, let reason) = result else {
                $0 = nil
                return
            }
            // An answer that could be about this message alone holds back no other.
            if ![200, 400, 413, 422].contains(status) { $0 = (reason, until) }
        }
    }
}
