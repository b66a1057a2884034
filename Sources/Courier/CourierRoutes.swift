package import CanonicalJSON
package import CourierModel
package import CourierProviders
import GateVocabulary
import UnixHTTPClient

extension HTTPAnswer {
    /// An answer that says what is wrong with the request.
    package static func refusal(_ status: Int, _ message: String) -> HTTPAnswer {
        .json(status, ["error": .string(message)])
    }

    package static func json(_ status: Int, retryAfter: Int? = nil, _ body: JSONValue) -> HTTPAnswer {
        HTTPAnswer(
            status, contentType: "application/json", retryAfter: retryAfter, body: CanonicalJSON.write(body))
    }

    package static func text(_ status: Int, _ body: String) -> HTTPAnswer {
        HTTPAnswer(status, contentType: "text/plain; version=0.0.4; charset=utf-8", body: Array(body.utf8))
    }
}

/// The answers of the courier's listeners, each a function of a request.
package enum CourierRoutes {
    /// The gate's socket: `POST /v1/deliveries`.
    ///
    /// A body that is not JSON comes from another client than a gateway: the answer has no outcome. An order that does not fit is one of
    /// another version's; it waits, because neither it nor the others should end for a setting that is wrong.
    ///
    /// - Parameter log: Takes what is wrong with such an order, without a value of it.
    package static func delivery(
        _ request: HTTPRequest, at desk: DeliveryDesk, log: @Sendable (String) -> Void
    ) async -> HTTPAnswer {
        guard request.path == "/v1/deliveries" else { return .refusal(404, "there is only `/v1/deliveries`") }
        guard request.method == "POST" else { return .refusal(405, "`/v1/deliveries` takes POST") }
        let outcome: DeliveryOutcome
        do {
            let limits = JSONLimits(byteCountMax: DeliveryOrder.bytesMax)
            outcome = await desk.deliver(
                try DeliveryOrder(try CanonicalJSON.read(request.body, limits: limits)),
                tracedTo: TraceParent(in: request.headers))
        } catch let error as JSONShapeError {
            log("\(error)")
            outcome = .later(reason: "order_not_understood", seconds: nil, scope: .message)
        } catch {
            return .refusal(400, "\(error)")
        }
        let (status, retryAfter, body) = outcome.answer
        guard let body else { return HTTPAnswer(status, retryAfter: retryAfter) }
        return .json(status, retryAfter: retryAfter, body)
    }

    /// The operators' socket: `/healthz`, `/readyz` and `/metrics`, and the word that addresses are dead.
    package static func operations(
        _ request: HTTPRequest, at desk: DeliveryDesk, _ metrics: CourierMetrics
    ) -> HTTPAnswer {
        if request.path == "/v1/dead-addresses" { return confirmation(request, at: desk) }
        guard request.method == "GET" else {
            return .refusal(405, "this socket answers GET, and POST to `/v1/dead-addresses`")
        }
        switch request.path {
        case "/healthz": return .json(200, ["alive": true])
        case "/readyz":
            let causes = desk.openCircuits.filter(\.value.isConfiguration)
                .map { "\($0.key): \($0.value.reason)" }.sorted()
            return .json(
                causes.isEmpty ? 200 : 503,
                [
                    "ready": .boolean(causes.isEmpty), "reasons": .array(causes.map(JSONValue.string)),
                    "waiting": .array(desk.waitingReasons.map(JSONValue.string)),
                ])
        case "/metrics": return .text(200, metrics.exposition(desk))
        default:
            return .refusal(404, "there are `/healthz`, `/readyz`, `/metrics` and `/v1/dead-addresses`")
        }
    }

    /// `POST /v1/dead-addresses` with `{"confirm": "apns com.example.app"}`.
    private static func confirmation(_ request: HTTPRequest, at desk: DeliveryDesk) -> HTTPAnswer {
        guard request.method == "POST" else { return .refusal(405, "`/v1/dead-addresses` takes POST") }
        guard case .success(.object(let body)) = Result(catching: { try CanonicalJSON.read(request.body) }),
            let way = body["confirm"]?.stringValue, body.count == 1
        else {
            return .refusal(400, "write `{\"confirm\": \"WAY\"}`, with a way out as `/readyz` names it")
        }
        guard desk.confirmDeadAddresses(of: way) else {
            return .refusal(
                404, "there is no such way out; there are: \(desk.waysOut.joined(separator: ", "))")
        }
        return .json(200, ["confirmed": .string(way)])
    }

    /// The inbound port: webhooks of providers.
    package static func inbound(
        _ request: HTTPRequest, at desk: InboundDesk, log: @Sendable (String) -> Void
    ) async -> HTTPAnswer {
        guard request.method == "POST" else { return HTTPAnswer(405) }
        let (answer, line) = await desk.handle(
            InboundRequest(target: request.target, headers: request.headers, body: request.body))
        if let line { log(line) }
        return HTTPAnswer(answer.status, contentType: answer.contentType, body: answer.body)
    }
}

/// Tells the gateway what came in.
package struct GatewayReports: Sendable {
    /// Waits between the tries of one report, in milliseconds. Then the sender is told to come again.
    private static let pausesMilliseconds: [Int64] = [100, 400, 1_500]
    private static let answerMilliseconds: Int64 = 5_000

    /// Both clients' connections, and the ones that take their places.
    package static let connectionCountMax = 4

    private let clients: [String: UnixHTTPClient]

    package init(_ gateway: GatewayReportsConfiguration) {
        let clients = [gateway.repliesSocket, gateway.receiptsSocket].map { path in
            UnixHTTPClient(UnixHTTPClientConfiguration(path: path, serverUserIDs: gateway.userIDs))
        }
        self.clients = ["/v1/replies": clients[0], "/v1/receipts": clients[1]]
    }

    /// - Returns: `nil` when the gateway did not answer, or is too busy to. A repeat of a report is harmless.
    package func pass(_ path: String, _ body: JSONValue) async -> GatewayAnswer? {
        guard let client = clients[path] else { preconditionFailure("the gateway has no `\(path)`") }
        let bytes = CanonicalJSON.write(body)
        for pause in Self.pausesMilliseconds + [0] {
            if let answer = await Self.ask(client, path, bytes), answer.status < 500, answer.status != 429 {
                return answer
            }
            guard pause > 0, (try? await Task.sleep(for: .milliseconds(pause))) != nil else { return nil }
        }
        return nil
    }

    private static func ask(_ client: UnixHTTPClient, _ path: String, _ body: [UInt8]) async -> GatewayAnswer?
    {
        // Why it did not answer is in the gateway's log and in `nil` for the sender, who comes again.
        guard
            let response = try? await client.request(
                "POST", path, headers: [("content-type", "application/json")], body: body,
                timeoutMilliseconds: answerMilliseconds)
        else { return nil }
        return GatewayAnswer(status: response.status, body: try? CanonicalJSON.read(response.body))
    }
}
