import CanonicalJSON
import FoundationEssentials
import GatewayPipeline
import Glibc
import Logging
import Synchronization
import Testing
import UnixSocketEndpoint
import UnixSockets
import WireProtocol

/// Answers as the gateway does, from memory: an id is taken once, and repeated with its first answer.
final class FakeGate: RequestHandler {
    /// What to do with one request instead of answering it.
    enum Mishap: Sendable {
        /// Takes the send, then loses the answer and the connection.
        case losesAnswer
        /// Says it is busy, and takes nothing.
        case isBusy(retryAfterSeconds: Int)
    }

    private struct State {
        var answers: [String: JSONObject] = [:]
        var mishaps: [Mishap] = []
        var takenCount = 0
        var requestCount = 0
        var bodies: [JSONValue] = []
    }

    private let state = Mutex(State())

    func mayUseReserve(_ peer: Peer) -> Bool { false }

    init(mishaps: [Mishap] = []) { state.withLock { $0.mishaps = mishaps } }

    /// Sends taken: each id once.
    var takenCount: Int { state.withLock { $0.takenCount } }
    var requestCount: Int { state.withLock { $0.requestCount } }
    var bodies: [JSONValue] { state.withLock { $0.bodies } }

    func handle(
        _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void
    ) {
        let isLine = request.kind == .streamLine
        guard let json = try? CanonicalJSON.read(request.body), let id = json["id"]?.stringValue else {
            reply(Self.problem(400, "malformed_json"))
            return
        }
        let (mishap, answer) = state.withLock { state -> (Mishap?, JSONObject) in
            state.requestCount += 1
            state.bodies.append(json)
            let mishap = state.mishaps.isEmpty ? nil : state.mishaps.removeFirst()
            if case .isBusy = mishap { return (mishap, [:]) }
            if var first = state.answers[id] {
                first["replayed"] = true
                return (mishap, first)
            }
            state.takenCount += 1
            let answer = Self.decision(id, json["type"]?.stringValue ?? "", index: Int64(state.takenCount))
            state.answers[id] = answer
            return (mishap, answer)
        }
        switch mishap {
        case .losesAnswer: return
        case .isBusy(let seconds):
            reply(Self.problem(429, "too_many_in_flight", retryAfterSeconds: seconds))
            return
        case nil: break
        }
        if json["type"]?.stringValue == "conflict" {
            reply(Self.problem(409, "id_conflict"))
            return
        }
        var document = answer
        let status = answer["outcome"]?.stringValue == "reject" ? 403 : 202
        if isLine || status == 403 { document["status"] = .integer(Int64(status)) }
        reply(Answer(status: status, body: CanonicalJSON.write(document)))
    }

    private static func decision(_ id: String, _ type: String, index: Int64) -> JSONObject {
        let outcome = type == "marketing.offer" ? "reject" : "forward"
        var answer: JSONObject = [
            "id": .string(id), "send_id": .string("00000000-0000-4000-8000-000000000001"),
            "outcome": .string(outcome),
            "reason": .string(outcome == "reject" ? "no_gdpr_consent" : "allowed"),
            "who_can_fix": "recipient", "policy": .string(String(repeating: "a", count: 64)),
            "deliveries": [
                [
                    "destination": "d_1", "outcome": .string(outcome),
                    "reason": .string(outcome == "reject" ? "no_gdpr_consent" : "allowed"),
                    "key_id": "00112233445566778899aabbccddeeff",
                ]
            ],
            "trail": [
                "origin": "gate.test/trail", "index": .integer(index),
                "leaf": .string(String(repeating: "b", count: 64)),
            ],
        ]
        if type == "social.comment" { answer["shadow"] = true }
        if type == "privacy.breach_notice" { answer["owed"] = ["email", "letter"] }
        if type == "marketing.misspelled" {
            answer["violations"] = [["pointer": "/params/headline", "message": "expected a text"]]
        }
        return answer
    }

    static func problem(_ status: Int, _ name: String, retryAfterSeconds: Int? = nil) -> Answer {
        var document: JSONObject = [
            "type": .string("urn:sendgate:problem:\(name)"), "title": "A problem",
            "status": .integer(Int64(status)),
        ]
        if let retryAfterSeconds { document["retry_after"] = .integer(Int64(retryAfterSeconds)) }
        return Answer(
            status: status, contentType: "application/problem+json",
            headers: retryAfterSeconds.map { [("retry-after", "\($0)")] } ?? [],
            body: CanonicalJSON.write(document))
    }
}

func makeEndpoint(_ path: String, _ handler: FakeGate) throws -> UnixSocketEndpoint {
    var limits = EndpointLimits()
    limits.connections = SharedBound(total: 100, perUser: 80, reserved: 10)
    limits.lingerMilliseconds = 300
    return try UnixSocketEndpoint(
        listeners: [ListenerConfiguration(source: .path(SocketFile(path: path)))], limits: limits,
        handler: handler, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
}

func withGate(
    mishaps: [FakeGate.Mishap] = [], _ body: (_ path: String, _ gate: FakeGate) async throws -> Void
) async throws {
    var template = Array("/tmp/client-XXXXXX".utf8CString)
    let directory = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let gate = FakeGate(mishaps: mishaps)
    let endpoint = try makeEndpoint(directory + "/gate.sock", gate)
    try await endpoint.start()
    do {
        try await body(directory + "/gate.sock", gate)
    } catch {
        await endpoint.shutDown()
        throw error
    }
    await endpoint.shutDown()
}
