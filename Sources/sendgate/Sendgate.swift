import ArgumentParser
import CommandTerminal
import Foundation
import OpenSSLCrypto

/// The one binary. A command parses, calls a module and prints; everything it knows is in a module.
@main
struct Sendgate: AsyncParsableCommand {
    /// What `--version`, the start entry of the trail and the OpenAPI document say.
    static let version = ProgramVersion.text

    static let configuration = CommandConfiguration(
        commandName: "sendgate",
        abstract:
            "Decides whether a notification may go out, seals it, and records it.",
        version: version,
        subcommands: [
            InitCommand.self, Doctor.self, Serve.self, Demo.self, Status.self, Send.self, Explain.self,
            Policy.self, Recipients.self, Devices.self, Consents.self, ImportCommand.self,
            Keys.self, ClockCommand.self, StoreCommand.self, RestoreCommand.self, Audit.self,
            ReportCommand.self, Shadow.self, Drift.self,
            Bench.self,
        ])

    static func main() async {
        // A reader that went away is an error of one write, not the end of a gateway.
        signal(SIGPIPE, SIG_IGN)
        OpenSSLLibrary.outliveExit()
        ProcessMemory.keepOutOfFiles()
        Foundation.exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    /// Runs one command line to its end.
    static func run(_ arguments: [String]) async -> ExitStatus {
        await run(arguments) { HelpPage.answer(to: $0, arguments: arguments) ?? Terminal.report($0) }
    }
}
