import ArgumentParser
import AuditTrail
import CommandTerminal
import GateVocabulary
import GatewayPipeline

/// `sendgate shadow …`: what a gateway beside another sender found.
struct Shadow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shadow", abstract: "Says what a gateway in shadow would have stopped.",
        subcommands: [ShadowReportCommand.self])
}

/// `sendgate shadow report`: what would have been stopped in a period, by the trail alone.
struct ShadowReportCommand: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Says what would have been stopped, by type, reason and country.",
        usage: "sendgate shadow report TRAIL [--from TIME] [--to TIME] [--csv] [--html FILE] [--json]",
        discussion: """
            Reads the trail's folder, or a copy of it, verifies it as it goes, and counts the sends that came over \
            listeners with `mode: shadow`. Where producers say whether their own sender sent it (`"sent"`), it also counts \
            what was sent all the same, and what is allowed and was not sent. No person is named: samples are numbers of \
            entries and ids of sends.

            Ends with 3 when the trail is damaged.
            """)

    static let example = "sendgate shadow report /tmp/gate/trail --from 2026-11-01 --html shadow.html"

    @Argument(help: ArgumentHelp("The trail's folder.", valueName: "trail")) var folder: String
    @Option(help: ArgumentHelp("From then on: a day, or an RFC 3339 time.", valueName: "time"))
    var from: String?
    @Option(help: ArgumentHelp("Before then: a day, or an RFC 3339 time.", valueName: "time"))
    var to: String?
    @Flag(help: "Print one line for each type, reason and country (RFC 4180).") var csv = false
    @Option(help: ArgumentHelp("Write one page into a file that is not there yet.", valueName: "file"))
    var html: String?
    @OptionGroup var trusted: TrustOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        let period = try period()
        if let since = period.since, let until = period.until, since >= until {
            throw ValidationError("`--from` is not before `--to`")
        }
        if csv, output.json { throw ValidationError("`--csv` and `--json` are two forms of one output") }
    }

    private func period() throws -> ReportPeriod {
        ReportPeriod(
            since: try from.map(ReportPeriod.instant), until: try to.map(ReportPeriod.instant))
    }

    func run() async throws {
        let trail = try CopiedTrail(at: folder)
        let trust = try AuditTrust(trail, trusted)
        trust.warnAboutOwnWord()
        let policy = trail.policiesReadOnce()
        var figures = ShadowFigures(try period())
        let verified = try trail.readVerified(
            trust.trust, since: figures.period.since, standsAlone: true
        ) { if $1 { try figures.add($0, policies: policy) } }
        let report = ShadowReport(figures, of: trust.trust.origin, entryCount: verified.entryCount)
        if let html { try OutputFile.create(html, with: report.page) }
        if csv {
            Terminal.print(Array(report.csv.utf8))
        } else if output.json {
            Terminal.print(report.json)
        } else {
            for line in report.lines { Terminal.print(line) }
        }
    }
}
