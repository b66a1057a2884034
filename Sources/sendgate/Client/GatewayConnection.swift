import ArgumentParser
import CanonicalJSON
import CommandTerminal
import Foundation
import UnixHTTPClient
import WireProtocol

/// Which gateway a command talks to.
struct SocketOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The gateway's socket; SENDGATE_SOCKET when absent.", valueName: "path"))
    var socket: String?

    /// The path, from the flag or the environment.
    func path(environment: [String: String]) throws -> String {
        try Self.path(socket, environment: environment)
    }

    static func path(_ socket: String?, environment: [String: String]) throws -> String {
        guard let path = socket ?? environment["SENDGATE_SOCKET"], !path.isEmpty else {
            throw CommandFailure.usage(
                "no socket is named", hint: "give --socket PATH, or set SENDGATE_SOCKET")
        }
        return path
    }

    func connection() throws -> GatewayConnection {
        GatewayConnection(path: try path(environment: Console.current.environment))
    }
}

/// One answer of the gateway, read as strictly as the gateway reads requests.
struct GatewayAnswer: Sendable {
    var status: Int
    var body: [UInt8]
    /// `nil` when the body is no JSON object.
    var object: JSONObject?

    var text: String { String(decoding: body, as: UTF8.self) }
}

/// A gateway, for one command.
struct GatewayConnection {
    private enum Way {
        case socket(UnixHTTPClient)
        case stopped(StoppedGateway)
    }
    private let way: Way

    /// The longest wait for an answer, in milliseconds: longer than the gateway itself waits for its engine.
    static let answerMilliseconds: Int64 = 35_000

    init(path: String) {
        way = .socket(UnixHTTPClient(UnixHTTPClientConfiguration(path: path)))
    }

    init(stopped: StoppedGateway) { way = .stopped(stopped) }

    func get(_ target: String) async throws -> GatewayAnswer { try await ask("GET", target, body: []) }

    func delete(_ target: String) async throws -> GatewayAnswer { try await ask("DELETE", target, body: []) }

    func post(_ target: String, _ body: JSONObject) async throws -> GatewayAnswer {
        try await ask("POST", target, body: CanonicalJSON.write(body))
    }

    func put(_ target: String, _ body: JSONObject) async throws -> GatewayAnswer {
        try await ask("PUT", target, body: CanonicalJSON.write(body))
    }

    /// Closes after `body`, also where that fails.
    func use<Value>(_ body: (GatewayConnection) async throws -> Value) async throws -> Value {
        do {
            let value = try await body(self)
            await close()
            return value
        } catch {
            await close()
            throw error
        }
    }

    private func close() async {
        switch way {
        case .socket(let client): await client.close()
        case .stopped(let gateway):
            do {
                try await gateway.close()
            } catch {
                Terminal.error("the gateway did not stop as it should: \(error)")
            }
        }
    }

    private func ask(_ method: String, _ target: String, body: [UInt8]) async throws -> GatewayAnswer {
        let (status, bytes): (Int, [UInt8])
        switch way {
        case .socket(let client):
            let response = try await client.request(
                method, target, headers: body.isEmpty ? [] : [("Content-Type", "application/json")],
                body: body, timeoutMilliseconds: Self.answerMilliseconds)
            (status, bytes) = (response.status, response.body)
        case .stopped(let gateway):
            let answer = await gateway.ask(method, target, body: body)
            (status, bytes) = (answer.status, answer.body)
        }
        let value = try? CanonicalJSON.read(bytes, limits: .document)
        return GatewayAnswer(status: status, body: bytes, object: value?.objectValue)
    }
}

extension GatewayAnswer {
    /// The hint for what has an id of its own.
    static let sameID = "try again with the same id: a repeated id is sent once"

    /// Prints a problem document as an error, and says how the command ends.
    ///
    /// - Parameter unavailable: The hint where the gateway cannot do it now.
    func reportProblem(unavailable: String = "try again") -> ExitStatus {
        guard let object else {
            Terminal.error("the gateway answered \(status) with something that is not JSON")
            return .failed
        }
        let title = object["title"]?.stringValue ?? "the gateway answered \(status)"
        var message = title.prefix(1).lowercased() + title.dropFirst()
        if let detail = object["detail"]?.stringValue { message += ": \(detail)" }
        Terminal.error(message, hint: hint(unavailable))
        for violation in object["violations"]?.arrayValue ?? [] {
            let place =
                violation["pointer"]?.stringValue.map { $0.isEmpty ? "the body" : "`\($0)`" }
                ?? violation["parameter"]?.stringValue.map { "`\($0)`" } ?? "the request"
            Terminal.note(
                "  \(Terminal.printable("\(place): \(violation["message"]?.stringValue ?? "is wrong")"))")
        }
        return .failed
    }

    private func hint(_ unavailable: String) -> String? {
        switch status {
        case 401: "bind this user to a caller in the gateway's configuration, or use another socket"
        case 403: "ask whoever keeps `callers.yaml`"
        case 429 where unavailable != Self.sameID: "try again"
        case 429, 503: unavailable
        default: nil
        }
    }
}
