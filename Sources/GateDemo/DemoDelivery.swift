import CanonicalJSON
import Foundation
import GatewayPipeline
import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals
import UnixSocketEndpoint
import UnixSockets
import WireProtocol

/// A delivery layer that keeps what it is given, for the demo and for a first try.
package enum DemoDelivery {
    /// Serves until SIGTERM or SIGINT.
    ///
    /// - Parameters:
    ///   - socket: The path to listen at.
    ///   - record: The file each message becomes a line of.
    package static func run(socket: String, record: String) async throws {
        let endpoint = try UnixSocketEndpoint(
            listeners: [ListenerConfiguration(source: .path(SocketFile(path: socket, directoryMode: nil)))],
            limits: EndpointLimits(), handler: DeliveryRecorder(path: record),
            logger: Logger(label: "delivery"))
        let group = ServiceGroup(
            configuration: .init(
                services: [.init(service: endpoint)], gracefulShutdownSignals: [.sigterm, .sigint],
                logger: Logger(label: "delivery")))
        try await group.run()
    }
}

/// Accepts every message once: a message id it has is answered 409, as the contract says.
private final class DeliveryRecorder: RequestHandler {
    private let file: LineFile
    private let known = Mutex<Set<String>>([])

    init(path: String) {
        file = LineFile(path: path)
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        for line in text.split(separator: "\n") {
            guard case .object(let object)? = try? CanonicalJSON.read(Array(line.utf8)),
                let message = object["message_id"]?.stringValue
            else { continue }
            known.withLock { _ = $0.insert(message) }
        }
    }

    func mayUseReserve(_ peer: Peer) -> Bool { false }

    func handle(_ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void) {
        guard request.method == "POST", request.target == "/v1/deliveries",
            case .object(let object)? = try? CanonicalJSON.read(request.body),
            let message = object["message_id"]?.stringValue
        else { return reply(Answer(status: 400, body: [])) }
        let status: Int = known.withLock { known in
            guard known.insert(message).inserted else { return 409 }
            guard file.append(request.body) == nil else {
                known.remove(message)
                return 503
            }
            return 202
        }
        reply(Answer(status: status, body: Array("{}".utf8)))
    }
}
