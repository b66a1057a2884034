import ArgumentParser
import AuditTrail
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import Foundation
import GateVocabulary
import GatewayPipeline
import Logging
import DeliveryRelay
import PublicPages
import UnixSocketEndpoint
import UnixSockets

/// `sendgate serve`: listens until it is told to stop.
struct Serve: GateCommand {
    static let configuration = CommandConfiguration(
        abstract: "Listens on its sockets and decides every send.",
        usage: """
            sendgate serve --config FILE [--state DIR] [--log-level LEVEL] [--hop file:PATH] …
            sendgate serve --dev DIR [--policies DIR] [--hop unix:PATH|file:PATH]
            """,
        discussion: """
            SIGTERM and SIGINT finish what is under way and stop; SIGHUP reads the bundle again. Flags win over \
            SENDGATE_… variables, and those over the file. Without --dev, a file is a hop where no listener hands sends over \
            (`mode: shadow`).
            """)

    static let example = """
        sendgate serve --dev /tmp/gate &
        curl --unix-socket /tmp/gate/gate.sock http://localhost/v1/types
        """

    @Option(help: ArgumentHelp("The configuration.", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp("Make everything inside this directory. Not for production.", valueName: "dir"))
    var dev: String?

    @Option(help: ArgumentHelp("The folder of the bundle.", valueName: "dir"))
    var policies: String?

    @Option(
        help: ArgumentHelp(
            "Where forwarded sends go: unix:PATH with --dev; file:PATH also where all is in shadow.",
            valueName: "hop"))
    var hop: String?

    @Option(
        help: ArgumentHelp(
            "With --dev: this user may use the callers' sockets, too. Repeatable.", valueName: "uid"))
    var devAllowUID: [UInt32] = []

    @Option(
        help: ArgumentHelp(
            "With --dev: messages at the hop at once; 32 when absent.", valueName: "n"))
    var devHopRequests: Int?

    @Option(help: ArgumentHelp("Databases and lock.", valueName: "dir")) var state: String?
    @Option(help: ArgumentHelp("The trail.", valueName: "dir")) var trail: String?
    @Option(help: ArgumentHelp("Private keys.", valueName: "dir")) var keys: String?
    @Option(help: ArgumentHelp("A root key kept elsewhere.", valueName: "file")) var rootKey: String?
    @Option(help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel: String?

    @OptionGroup var output: OutputOptions

    func validate() throws {
        if dev == nil {
            for (flag, isGiven) in [
                ("--dev-allow-uid", !devAllowUID.isEmpty),
                ("--dev-hop-requests", devHopRequests != nil),
            ] where isGiven {
                throw ValidationError("`\(flag)` goes with `--dev` only")
            }
            if let hop, config == nil || !hop.hasPrefix("file:") {
                throw ValidationError(
                    "`--hop \(hop)` goes with `--dev`; with `--config` set `hop.unix` and `hop.users`, or `--hop file:PATH` where all listeners are in shadow"
                )
            }
            return
        }
        let others = [
            ("--config", config), ("--state", state), ("--trail", trail), ("--keys", keys),
            ("--root-key", rootKey),
        ]
        for (flag, value) in others where value != nil {
            throw ValidationError("`\(flag)` does not go with `--dev`, which makes its own")
        }
        guard devAllowUID.count <= DevelopmentGateway.otherUserCountMax else {
            throw ValidationError(
                "`--dev-allow-uid` is given \(devAllowUID.count) times, \(DevelopmentGateway.otherUserCountMax) are accepted"
            )
        }
        if let devHopRequests, let range = Setting.hopRequests.range, !range.contains(devHopRequests) {
            throw ValidationError(
                "`--dev-hop-requests` is \(devHopRequests), \(range.lowerBound) to \(range.upperBound) are accepted"
            )
        }
    }

    func run() async throws {
        let environment = Console.current.environment
        if let dev {
            try refuseSettings(in: environment)
            let development = try DevelopmentGateway(
                directory: dev, policies: policies, hop: try developmentHop(),
                otherUserIDs: Set(devAllowUID), logLevel: try developmentLogLevel())
            Terminal.warning(
                "development mode: throwaway keys, and `\(DevelopmentGateway.caller)` may do everything")
            Terminal.warning("nothing here is for production, and production refuses these keys")
            var configuration = development.configuration
            if let devHopRequests {
                configuration.hopConcurrency = .init(requestCount: devHopRequests)
            }
            try await serve(configuration, environment) { wiring in
                announce(development, wiring)
            }
        } else {
            let configuration = try GatewayConfiguration.read(
                flags: flags, environment: environment, filePath: config)
            try await serve(configuration, environment) { wiring in announce(wiring) }
        }
    }

    /// A setting that is given and has no effect would be believed.
    private func refuseSettings(in environment: [String: String]) throws {
        let given = Setting.allCases.map(\.environmentName).filter { environment[$0] != nil }
        guard !given.isEmpty else { return }
        throw CommandFailure.usage(
            "`--dev` takes no settings, and \(given.map { "`\($0)`" }.joined(separator: ", ")) is set",
            hint: "unset it, or name a configuration with `--config` in place of `--dev`")
    }

    private var flags: [Setting: String] {
        let given: [(Setting, String?)] = [
            (.state, state), (.trail, trail), (.policies, policies), (.keys, keys), (.rootKey, rootKey),
            (.logLevel, logLevel), (.hopFile, hop.map { String($0.dropFirst("file:".count)) }),
        ]
        return Dictionary(uniqueKeysWithValues: given.compactMap { entry in entry.1.map { (entry.0, $0) } })
    }

    private func serve(
        _ configuration: GatewayConfiguration, _ environment: [String: String],
        whenListening: @escaping @Sendable (Wiring) -> Void
    ) async throws {
        var logger = Logger(label: "sendgate") { _ in LineLogHandler(configuration.logFormat) }
        logger.logLevel = configuration.logLevel
        let notices = ServiceNotices(
            try ServiceManager(environment: environment, processID: getpid()), logger: logger)
        let starting = try await StartingGateway.proving(
            configuration, environment: environment, logger: logger, notices: notices)
        do {
            let wiring = try Wiring(
                configuration, environment: environment, logger: logger, starting: starting,
                notices: notices)
            try await wiring.run(telling: notices) { whenListening(wiring) }
        } catch {
            // Of a gateway that ran they are closed already.
            await starting?.endpoint.shutDown()
            throw error
        }
    }

    // MARK: With --dev

    private func developmentHop() throws -> GatewayConfiguration.NextHop? {
        guard let hop else { return nil }
        guard let colon = hop.firstIndex(of: ":") else {
            throw CommandFailure.usage("`--hop` is `\(hop)`", hint: "write unix:PATH or file:PATH")
        }
        let path = String(hop[hop.index(after: colon)...])
        let full = path.hasPrefix("/") ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
        switch hop[..<colon] {
        case "unix" where !path.isEmpty: return .unix(path: full, serverUserIDs: nil)
        case "file" where !path.isEmpty: return .file(path: full)
        default: throw CommandFailure.usage("`--hop` is `\(hop)`", hint: "write unix:PATH or file:PATH")
        }
    }

    private func developmentLogLevel() throws -> Logger.Level {
        guard let logLevel else { return .warning }
        guard let level = Logger.Level(rawValue: logLevel) else {
            throw CommandFailure.usage(
                "`--log-level` is `\(logLevel)`",
                hint: "one of \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return level
    }

    // MARK: Ready

    private func announce(_ development: DevelopmentGateway, _ wiring: Wiring) {
        if output.json { return announce(wiring) }
        let policy = wiring.policy.current.bundle
        Terminal.note(
            "sendgate \(Sendgate.version) listens, under `\(policy.name)` version \(policy.version):")
        Terminal.note("  \(development.gateSocket)  everything, for you")
        for (caller, path) in development.callerSockets { Terminal.note("  \(path)  as \(caller)") }
        if let pages = wiring.pages {
            Terminal.note("  http://\(pages.address)/u/  the pages behind unsubscribe links")
        }
        Terminal.note("Register somebody, then notify them:")
        let commands = FirstNotification.commands(
            program: CommandLine.arguments[0], socket: development.gateSocket)
        for line in commands.split(separator: "\n") { Terminal.note("  \(line)") }
    }

    /// One line of JSON when a program waits for it; nothing otherwise, the log has said it.
    private func announce(_ wiring: Wiring) {
        guard output.json else { return }
        let sockets: [JSONValue] = wiring.configuration.listeners.map { listener in
            var object = JSONObject()
            switch listener.source {
            case .path(let path): object["path"] = .string(path)
            case .systemd(let name): object["systemd"] = .string(name)
            }
            if let caller = listener.caller { object["caller"] = .string(caller.text) }
            switch listener.sends {
            case .enforce: break
            case .shadow: object["mode"] = "shadow"
            case .manage: object["mode"] = "manage"
            }
            return .object(object)
        }
        var answer: JSONObject = [
            "ready": true, "version": .string(Sendgate.version),
            "policy": .string(wiring.policy.current.digest.text), "sockets": .array(sockets),
            "trail": .string(wiring.configuration.trailDirectory), "trail_key": .string(wiring.trailKey.text),
        ]
        if let pages = wiring.pages { answer["pages"] = .string("\(pages.address)") }
        Terminal.print(answer)
    }
}
