import ArgumentParser
import AuditTrail
import CanonicalJSON
import CommandTerminal
import Foundation
import GateRecords
import GateSteps
import GateVocabulary
import Logging

/// `sendgate restore`: an old state directory gets back what the newest trail says.
struct RestoreCommand: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Brings what a backup lacks back from the trail.",
        usage: """
            sendgate restore --trail DIR --config FILE [--dry-run] [--tail-lost] [--json]
            sendgate restore --trail DIR --dev DIR [--dry-run] [--tail-lost] [--json]
            """,
        discussion: """
            For a state directory that was put back from a backup, beside the newest trail. Verifies the trail, brings \
            back consents and withdrawals, preferences, erasures, keys, send ids and what became of messages, and goes \
            on under a new origin, with an entry that cites the old one. Stop the gateway first. Ended in the middle, \
            it goes on when it is run again; until it is done the gateway does not start. Exit status 3 when the trail \
            is damaged or of another history, or lacks a bundle in policies/ that its entries were decided under; \
            nothing is touched then. A trail that is behind the `external_checkpoint` of the configuration is refused, \
            too: it is not the newest.

            With --tail-lost entries beyond this trail are known to be lost, and a person may have withdrawn or objected \
            in them: of everybody consents to marketing and social are then withdrawn, and both are switched off on \
            every channel, until the person asks for them again. Other choices, erasures and keys of those entries are \
            lost.
            """)

    static let example =
        "sendgate restore --trail /var/lib/sendgate/trail --config /etc/sendgate/sendgate.yaml"

    @Option(help: ArgumentHelp("The newest trail there is, in its configured place.", valueName: "dir"))
    var trail: String
    @Option(help: ArgumentHelp("The gateway's configuration.", valueName: "file")) var config: String?
    @Option(help: ArgumentHelp("The directory of `serve --dev`.", valueName: "dir")) var dev: String?
    @Flag(help: "Say what would come back, and write nothing.") var dryRun = false
    @Flag(help: "Entries after the last one of this trail are lost.") var tailLost = false
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if (config == nil) == (dev == nil) { throw ValidationError("give either `--config` or `--dev`") }
    }

    func run() async throws {
        let work = try RestoreWork(places(), trail: trail, isDryRun: dryRun)
        defer { work.close() }
        var progress = Progress("verifying")
        let plan = try work.plan(isTailLost: tailLost) { progress.show($0, of: $1) }
        progress.end()
        guard case .restore(let underWay) = plan else {
            if output.json { return Terminal.print(["restored": false]) }
            return Terminal.note("the databases have every entry that the trail has; nothing to restore")
        }
        if dryRun { return show(try work.preview(underWay)) }
        progress = Progress("restoring")
        let entry = try work.run(underWay) { progress.show($0, of: $1) }
        progress.end()
        show(entry)
    }

    private func places() throws -> GatewayConfiguration {
        guard let dev else {
            return try GatewayConfiguration.read(
                flags: [:], environment: Console.current.environment, filePath: config)
        }
        guard access(dev, F_OK) == 0 else {
            throw CommandFailure(
                "there is no `\(dev)`", hint: "`sendgate serve --dev \(dev)` makes it, with its keys")
        }
        return try DevelopmentGateway(
            directory: dev, policies: nil, hop: nil, otherUserIDs: [], logLevel: .error
        ).configuration
    }

    private func show(_ entry: RestoreEntry) {
        if output.json {
            var object = entry.json
            object["restored"] = .boolean(!dryRun)
            return Terminal.print(object)
        }
        let missing = entry.previous.size - entry.backupSize
        let would = dryRun ? "would come back" : "came back"
        Terminal.print(
            "the backup has \(entry.backupSize) entries, and the trail \(entry.previous.size): \(missing) \(would)"
        )
        for item in RestoreEntry.Item.allCases {
            let (applied, skipped) = (entry.applied[item] ?? 0, entry.skipped[item] ?? 0)
            guard applied + skipped > 0 else { continue }
            let name = item.rawValue.replacingOccurrences(of: "_", with: " ")
            Terminal.print(
                "  \(name): \(applied)"
                    + (skipped > 0 ? ", and \(skipped) of people the backup does not know" : ""))
        }
        if entry.isTailLost {
            Terminal.print(
                "  of everybody: marketing and social withdrawn and off on every channel, until asked for again"
            )
        }
        guard !dryRun else { return Terminal.note("nothing was written") }
        Terminal.print("entry \(entry.previous.size): the trail goes on as `\(entry.origin)`")
        Terminal.note(
            "sendgate: hint: give auditors the new `trail.pub`; the old checkpoint still proves what it did")
    }
}
