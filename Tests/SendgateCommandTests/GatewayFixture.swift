import CanonicalJSON
import Foundation
import GateVocabulary
import GatewayPipeline
import Logging
import SQLiteStore
import Testing
import WireProtocol
import UnixSocketEndpoint

@testable import sendgate

/// A development gateway in this process, everything but its sockets: what it records is a real trail.
final class GatewayFixture: Sendable {
    let wiring: Wiring
    private let core: Task<Void, any Error>

    /// - Parameter folder: Where `gate/` is made, or found again.
    /// - Parameter signing: What a production configuration may ask for as well.
    /// - Parameter clock: Says when everything happens.
    /// - Parameter edit: Changes what development makes of it.
    init(
        in folder: String, policies: String = CommandLineRun.policies,
        hop: GatewayConfiguration.NextHop? = nil, signing: GatewayConfiguration.PolicySigning? = nil,
        clock: any GatewayPipeline.Clock = SystemClock(),
        edit: (inout GatewayConfiguration) -> Void = { _ in }
    ) async throws {
        var configuration = try DevelopmentGateway(
            directory: "\(folder)/gate", policies: policies, hop: hop, otherUserIDs: [], logLevel: .critical
        ).configuration
        configuration.policySigning = signing
        edit(&configuration)
        let wiring = try Wiring(
            configuration, environment: [:],
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, clock: clock)
        try await wiring.core.start(version: Sendgate.version)
        self.wiring = wiring
        core = Task { try await wiring.core.run() }
    }

    /// Records the stop, publishes the rest and lets the directory go.
    ///
    /// - Parameter closesStore: `false` leaves the databases open and the directory locked, for the test to close.
    func stop(closesStore: Bool = true) async throws {
        core.cancel()
        let result = await core.result
        if closesStore { wiring.store.close() }
        try result.get()
    }

    /// Listens while `body` runs.
    ///
    /// - Parameter body: Is given the socket where the caller `dev` may do everything.
    func listening(_ body: (_ socket: String) async throws -> Void) async throws {
        guard case .path(let path)? = wiring.configuration.listeners.first?.source else {
            preconditionFailure("a development gateway has a socket of its own")
        }
        let (ready, isReady) = AsyncStream<Void>.makeStream()
        let endpoint = wiring.endpoint
        let serving = Task {
            defer { isReady.finish() }
            try await endpoint.run { isReady.finish() }
        }
        for await _ in ready {}
        defer { serving.cancel() }
        try await body(path)
        serving.cancel()
        _ = await serving.result
    }

    /// The samples of `/metrics`, labels kept as part of the name.
    func metrics() async -> [String: String] {
        let request = WireRequest(
            kind: .single, method: "GET", target: "/metrics", headers: [], body: [])
        let reply = await reply(to: request)
        #expect(reply.status == 200, "\(String(decoding: reply.body, as: UTF8.self))")
        return Status.samples(String(decoding: reply.body, as: UTF8.self))
    }

    /// One request, as the caller `dev` unless another is named.
    func ask(
        _ method: String, _ target: String, _ body: JSONObject? = nil,
        as caller: CallerName = DevelopmentGateway.caller
    ) async throws -> (status: Int, object: JSONObject) {
        let request = WireRequest(
            kind: .single, method: method, target: target,
            headers: body == nil ? [] : [("content-type", "application/json")],
            body: body.map { CanonicalJSON.write($0) } ?? [])
        let reply = await reply(to: request, from: caller)
        let value = try CanonicalJSON.read(reply.body, limits: .document)
        return (reply.status, try #require(value.objectValue))
    }

    private func reply(
        to request: WireRequest, from caller: CallerName = DevelopmentGateway.caller
    ) async -> Answer {
        let peer = Peer(
            credentials: PeerCredentials(
                userID: geteuid(), groupID: getegid(), processID: getpid(), supplementaryGroups: []),
            boundCaller: caller,
            listener: wiring.configuration.listeners.firstIndex { $0.caller == caller } ?? 0)
        return await withCheckedContinuation { continuation in
            wiring.gateway.handle(request, from: peer) { continuation.resume(returning: $0) }
        }
    }

    func registerSomebody() async throws {
        let recipient = try await ask(
            "PUT", "/v1/recipients/u_42",
            [
                "region": "DE", "region_source": "kyc", "locale": "en", "time_zone": "Europe/Berlin",
                "age": "adult",
            ])
        #expect(recipient.status < 300, "\(recipient.object)")
        let device = try await ask(
            "PUT", "/v1/recipients/u_42/devices/d_1",
            ["platform": "ios", "app": "no.getdrop.app", "token": "00aa", "os_permission": "granted"])
        #expect(device.status < 300, "\(device.object)")
    }

    func send(_ id: String, _ type: String, _ params: JSONObject) async throws -> (
        status: Int, object: JSONObject
    ) {
        try await ask(
            "POST", "/v1/sends",
            [
                "id": .string(id), "type": .string(type), "recipient": ["user": "u_42"],
                "params": .object(params),
            ])
    }

    static let login: JSONObject = [
        "login_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10", "device_name": "a laptop",
        "at": "2026-11-21T05:00:00Z",
    ]
}

/// Whether a condition comes true that a thread of the gateway makes true and tells nobody of.
///
/// - Parameter lookCount: Looks, 5 ms apart.
func eventually(_ lookCount: Int = 2_000, _ condition: () throws -> Bool) async throws -> Bool {
    for _ in 0..<lookCount {
        if try condition() { return true }
        try await Task.sleep(for: .milliseconds(5))
    }
    return false
}
