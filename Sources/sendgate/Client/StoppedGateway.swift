import ArgumentParser
import CommandTerminal
import Foundation
import GateVocabulary
import GatewayPipeline
import Logging
import SQLiteStore
import WireProtocol

/// A gateway that is not running, put together in this process for the length of one command: the same engine, with the
/// state directory's lock and without a socket. For a command that only asks, nothing is written, not even that it was there.
///
/// The process that asks is attested as on a socket: by the process's user and groups, through the configuration's `callers`.
final class StoppedGateway: Sendable {
    private let gateway: Gateway
    private let end: @Sendable () async throws -> Void
    private let peer: Peer

    /// - Parameter isReading: The command changes nothing.
    /// - Throws: When a gateway runs: a state directory has one owner.
    init(config: String?, dev: String?, isReading: Bool) async throws {
        let environment = Console.current.environment
        var configuration: GatewayConfiguration
        var caller: CallerName?
        if let dev {
            guard access(dev, F_OK) == 0 else {
                throw CommandFailure(
                    "there is no `\(dev)`", hint: "`sendgate serve --dev \(dev)` makes it, with its keys")
            }
            guard !isReading || access("\(dev)/state", F_OK) == 0 else {
                throw CommandFailure(
                    "no gateway has run in `\(dev)`", hint: "`sendgate serve --dev \(dev)` starts one")
            }
            configuration = try DevelopmentGateway(
                directory: dev, policies: nil, hop: nil, otherUserIDs: [], logLevel: .error
            ).configuration
            caller = DevelopmentGateway.caller
        } else {
            configuration = try GatewayConfiguration.read(
                flags: [:], environment: environment, filePath: config)
        }
        configuration.publicListen = nil
        peer = Peer(credentials: .ofThisProcess, boundCaller: caller, listener: 0)
        if isReading {
            let (gateway, store) = try Wiring.reading(configuration, environment: environment)
            self.gateway = gateway
            end = { store.close() }
            return
        }
        var logger = Logger(label: "sendgate") { _ in LineLogHandler(configuration.logFormat) }
        logger.logLevel = .error
        let wiring = try Wiring(
            configuration, environment: environment, logger: logger, isListening: false)
        try await wiring.start()
        let core = Task { try await wiring.core.run() }
        gateway = wiring.gateway
        end = {
            defer { wiring.store.close() }
            core.cancel()
            try await core.value
        }
    }

    func ask(_ method: String, _ target: String, body: [UInt8]) async -> Answer {
        let request = WireRequest(
            kind: .single, method: method, target: target,
            headers: body.isEmpty ? [] : [("content-type", "application/json")], body: body)
        return await withCheckedContinuation { continuation in
            gateway.handle(request, from: peer) { continuation.resume(returning: $0) }
        }
    }

    /// Records the stop, publishes what was recorded, and closes the databases; where nothing was to be changed, closes them.
    func close() async throws { try await end() }
}

extension PeerCredentials {
    /// What the kernel would say of this process.
    fileprivate static var ofThisProcess: PeerCredentials {
        var groups = [gid_t](repeating: 0, count: Int(max(getgroups(0, nil), 0)))
        let count = groups.isEmpty ? 0 : getgroups(Int32(groups.count), &groups)
        return PeerCredentials(
            userID: geteuid(), groupID: getegid(), processID: getpid(),
            supplementaryGroups: groups.prefix(Int(max(count, 0))).sorted())
    }
}

/// Which gateway a command is for: a running one by its socket, or one that is stopped by what it is configured with.
struct GatewayOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The gateway's socket; SENDGATE_SOCKET when absent.", valueName: "path"))
    var socket: String?
    @Option(help: ArgumentHelp("The configuration of a stopped gateway.", valueName: "file"))
    var config: String?
    @Option(help: ArgumentHelp("The directory of `serve --dev`, stopped.", valueName: "dir"))
    var dev: String?

    func validate() throws {
        if [socket, config, dev].count(where: { $0 != nil }) > 1 {
            throw ValidationError("give one of `--socket`, `--config` and `--dev`")
        }
    }

    /// - Parameter isReading: The command changes nothing: of a gateway that is stopped nothing is touched.
    func connection(isReading: Bool = false) async throws -> GatewayConnection {
        guard config == nil, dev == nil else {
            return GatewayConnection(
                stopped: try await StoppedGateway(config: config, dev: dev, isReading: isReading))
        }
        return GatewayConnection(
            path: try SocketOptions.path(socket, environment: Console.current.environment))
    }
}
