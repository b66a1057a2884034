package import GateSteps
import GatewayPipeline
import GateVocabulary
import Synchronization
import UnixHTTPClient

/// The delivery layer's own socket: `POST /v1/deliveries`, one connection for each message.
///
/// The listening process is checked by the kernel's word before anything is written (`SO_PEERCRED`): a
/// process that took the path over must not be given tokens. A connection of its own for each message
/// costs some 30 µs and keeps a slow answer from standing before another's, whatever kind of server it is.
package final class UnixHop: Hop {
    /// Longest wait for the answer to one message, in milliseconds. After it the message is ambiguous.
    package static let answerMilliseconds: Int64 = 10_000

    private let configuration: UnixHTTPClientConfiguration
    private let answerMilliseconds: Int64
    /// Whether the last try failed before anything was written, so that the socket is looked at first.
    private let mayBeDown = Mutex(true)
    /// The look under way, which both lanes wait for: at a start they would make the same connection twice.
    private let looking = Mutex<Task<String?, Never>?>(nil)

    /// - Parameter serverUserIDs: The users that may listen there; `nil` accepts every user, for `--dev`.
    package init(
        path: String, serverUserIDs: Set<UInt32>?, answerMilliseconds: Int64 = UnixHop.answerMilliseconds
    ) {
        self.answerMilliseconds = answerMilliseconds
        configuration = UnixHTTPClientConfiguration(path: path, serverUserIDs: serverUserIDs)
    }

    package func obstacle() async -> String? {
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
            guard case .serverNotTrusted(let found) = error.cause else { return error.description }
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
            body = try DeliveryDocument.write(delivery)
        } catch {
            // The body that the gateway composed is not JSON: a fault of its own, and the same on every retry.
            return .refused(status: 400)
        }
        let connection: UnixHTTPConnection
        do {
            connection = try await UnixHTTPConnection.connect(configuration)
        } catch {
            mayBeDown.withLock { $0 = true }
            return .notWritten(error.description)
        }
        let result = await exchange(body, on: connection)
        await connection.close()
        return result
    }

    private func exchange(_ body: [UInt8], on connection: UnixHTTPConnection) async -> HopResult {
        do {
            let response = try await connection.request(
                "POST", "/v1/deliveries",
                headers: [("content-type", "application/json"), ("connection", "close")], body: body,
                timeoutMilliseconds: answerMilliseconds)
            return Self.result(of: response)
        } catch {
            guard error.stage == .neverWritten else { return .ambiguous(error.description) }
            mayBeDown.withLock { $0 = true }
            return .notWritten(error.description)
        }
    }

    /// The delivery layer's contract: 2xx accepted, 409 seen before, 429 later, any other 4xx never. Everything else
    /// says nothing about the message (a 3xx of something in between, a 5xx), and it is tried again.
    private static func result(of response: UnixHTTPResponse) -> HopResult {
        switch response.status {
        case 200...299: return .accepted(status: response.status)
        case 409: return .seenBefore
        case 400...499 where response.status != 429: return .refused(status: response.status)
        default:
            // RFC 9110 section 10.2.3: whole seconds; the date form is not used on this socket.
            let seconds = response.header("retry-after").flatMap { Int64($0) }.map { min(max($0, 0), 86_400) }
            return .busy(status: response.status, retryAfterMilliseconds: seconds.map { $0 * 1000 })
        }
    }
}
