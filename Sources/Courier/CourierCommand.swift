public import ArgumentParser
import CanonicalJSON
package import CommandTerminal
import ConfigurationPages
import CourierModel
import CourierProviders
import Foundation
import Logging
import UnixSockets

/// `sendgate-courier`: hands decided messages to Apple, Google, Expo, a mail relay and an SMS service.
public struct CourierCommand: AsyncParsableCommand {
    public static let configuration = CommandConfiguration(
        commandName: "sendgate-courier",
        abstract: "Hands what the gateway decided to Apple, Google, Expo, a mail relay and an SMS service.",
        version: ProgramVersion.text, subcommands: [ServeCommand.self, CheckCommand.self])

    public init() {}

    /// The whole program.
    public static func main() async {
        // A reader that went away is an error of one write, not the end of a courier.
        signal(SIGPIPE, SIG_IGN)
        var console = Console.current
        console.program = "sendgate-courier"
        let status = await Console.$current.withValue(console) {
            await run(Array(CommandLine.arguments.dropFirst()))
        }
        Foundation.exit(status.rawValue)
    }

    /// Runs one command line to its end.
    package static func run(_ arguments: [String]) async -> ExitStatus {
        await run(arguments, report: report)
    }

    private static func report(_ error: any Error) -> ExitStatus {
        switch error {
        case let failure as CommandFailure:
            Terminal.error(failure.message, hint: failure.hint)
            return failure.status
        case let found as ConfigurationDiagnostics:
            for diagnostic in found.diagnostics {
                Terminal.error(diagnostic.description, hint: diagnostic.hint)
            }
        case let error as EndpointError: Terminal.error("\(error)", hint: error.hint)
        case let error as CredentialError: Terminal.error("\(error)", hint: error.hint)
        default:
            switch exitCode(for: error) {
            case .success:
                Terminal.print(fullMessage(for: error, columns: Console.current.isWatched ? nil : 80))
                return .done
            case .validationFailure:
                Terminal.error(message(for: error), hint: "see `sendgate-courier --help`")
                return .usage
            default: Terminal.error("\(error)")
            }
        }
        return .failed
    }
}

struct SourceOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The configuration.", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "A directory of yours: its socket, its courier.yaml where there is one. Not for production.",
            valueName: "dir"))
    var dev: String?

    @Flag(help: "Print the same facts as JSON.")
    var json = false

    func validate() throws {
        guard (config == nil) != (dev == nil) else {
            throw ValidationError("one of `--config` and `--dev` is needed")
        }
    }

    func read() throws -> CourierConfiguration {
        let credentials = Console.current.credentialsDirectory
        if let config { return try CourierConfiguration.read(config, credentialsDirectory: credentials) }
        return try CourierConfiguration.development(
            try directory(dev ?? ""), credentialsDirectory: credentials)
    }

    /// Makes the directory when it is not there. Whoever may enter it may send as the gateway.
    private func directory(_ path: String) throws -> String {
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw CommandFailure(
                "cannot make `\(path)`: \(String(cString: strerror(errno)))",
                hint: "check that its parent exists and is yours")
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(),
            status.st_mode & 0o077 == 0, let resolved = realpath(path, nil)
        else {
            throw CommandFailure(
                "`\(path)` is no directory that is yours alone", hint: "name one of mode 0700, or a new one")
        }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Listens for the gateway and delivers.",
        usage: """
            sendgate-courier serve --config FILE
            sendgate-courier serve --dev DIR
            """,
        discussion: """
            SIGTERM and SIGINT finish what is under way and stop; SIGHUP reads the credentials again.

            EXAMPLE:
              sendgate-courier serve --dev /tmp/courier &
              sendgate serve --dev /tmp/gate --hop unix:/tmp/courier/courier.sock
            """)

    @OptionGroup var source: SourceOptions

    func run() async throws {
        let configuration = try source.read()
        var logger = Logger(label: "sendgate-courier") { _ in LineLogHandler(configuration.logFormat) }
        logger.logLevel = configuration.logLevel
        // Until it is trapped: the credentials are read at the start anyway.
        signal(SIGHUP, SIG_IGN)
        if source.dev != nil { Terminal.warning("development mode: not for production") }
        let isJSON = source.json
        let environment = Console.current.environment
        try await CourierServices(
            configuration,
            inherited: InheritedSockets(environment: environment, processID: getpid()),
            manager: ServiceManager(environment: environment, processID: getpid()), logger: logger
        ) { inbound in
            guard isJSON else { return }
            var answer: JSONObject = [
                "ready": true, "version": .string(ProgramVersion.text),
                "socket": .string(configuration.socket.path),
            ]
            answer["inbound"] = inbound.map { .string("\($0)") }
            Terminal.print(answer)
        }.run()
    }
}

struct CheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Reaches every provider without sending anything, and says what is wrong.",
        usage: "sendgate-courier check --config FILE [--json]",
        discussion: """
            Exit status 3 when something is wrong.

            EXAMPLE:
              sendgate-courier check --config /etc/sendgate-courier/courier.yaml
            """)

    @OptionGroup var source: SourceOptions

    func run() async throws {
        let configuration = try source.read()
        // The journal itself may be in use by `serve`; a look writes nothing into it.
        let folder = FileManager.default.temporaryDirectory.appending(path: "sendgate-courier-\(UUID())")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: folder) }
        let journal = try CourierJournal(path: "\(folder.path)/journal", now: ProviderClock.system.now)
        let makers = ProviderRegistry.makers(
            configuration, journal: journal, reports: configuration.gateway.map(GatewayReports.init),
            clock: .system, logger: Logger(label: "sendgate-courier") { _ in SwiftLogNoOpLogHandler() })
        var (table, rows, hasFault) = (Table("WAY", "LOOKED AT", "FOUND"), [JSONValue](), false)
        for (lane, make) in makers.sorted(by: { $0.key.description < $1.key.description }) {
            for finding in await Self.findings(make) {
                hasFault = hasFault || finding.fault != nil
                table.add("\(lane)", finding.subject, finding.fault ?? "good")
                var row: JSONObject = ["way": .string("\(lane)"), "subject": .string(finding.subject)]
                row["fault"] = finding.fault.map(JSONValue.string)
                rows.append(.object(row))
            }
        }
        if source.json {
            Terminal.print(["findings": .array(rows)])
        } else if table.isEmpty {
            Terminal.note("no provider is configured")
        } else {
            for line in table.lines { Terminal.print(line) }
        }
        if hasFault { throw ExitStatus.foundDifference }
    }

    private static func findings(_ make: () throws -> any DeliveryProvider) async -> [ProviderFinding] {
        do {
            return await (try make()).check()
        } catch let error as CredentialError {
            return [ProviderFinding("credential \(error.path)", fault: "\(error.why); \(error.hint)")]
        } catch {
            return [ProviderFinding("settings", fault: "\(error)")]
        }
    }
}
