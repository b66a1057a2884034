import ArgumentParser
import CanonicalJSON
import CommandTerminal
import Foundation
import GateVocabulary

/// `sendgate drift …`: what the app, the provider of notifications and the operating system disagree about.
struct Drift: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drift", abstract: "Compares preferences with the provider and the phones.",
        subcommands: [DriftRunCommand.self, DriftShow.self, DriftList.self])
}

/// `sendgate drift run`: an audit over all recipients.
struct DriftRunCommand: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Audits all recipients, repairs, suppresses and marks.",
        usage: "sendgate drift run --socket PATH [--dry-run] [--no-wait] [--json]",
        discussion: """
            The gateway goes over the recipients at a bounded rate (`drift.persons_per_second`), beside everything else, \
            and goes on after a restart where it stood; the command only waits. A run that is under way already is waited \
            for instead of another one begun. The gateway begins one by itself every `drift.every_days` days.
            """)
    static let example = "sendgate drift run --socket /tmp/gate/gate.sock"

    @OptionGroup var socket: SocketOptions
    @Flag(name: .customLong("dry-run"), help: "Count what there is, and change nothing.")
    var isDryRun = false
    @Flag(name: .customLong("no-wait"), help: "Begin it, and do not wait for its end.")
    var isNotWaiting = false
    @OptionGroup var output: OutputOptions

    /// How often the gateway is asked how far it is.
    private static let pollingInterval = Duration.milliseconds(200)

    func run() async throws {
        let audit = try await socket.connection().use { try await run(over: $0) }
        if output.json { Terminal.print(audit) } else { DriftReport(audit).show() }
    }

    private func run(over connection: GatewayConnection) async throws -> JSONObject {
        let begun = try await connection.post("/v1/drift", ["dry_run": .boolean(isDryRun)])
        guard begun.status == 202, var run = begun.object else { throw begun.reportProblem() }
        let started = run["started_at"]
        var progress = Progress("auditing")
        defer { progress.end() }
        while !isNotWaiting, run["finished_at"] == nil {
            try await Task.sleep(for: Self.pollingInterval)
            let answer = try await connection.get("/v1/drift")
            guard answer.status == 200, let now = answer.object else { throw answer.reportProblem() }
            guard now["started_at"] == started else {
                throw CommandFailure(
                    "another audit was begun before this one was seen to end",
                    hint: "`sendgate drift show` says how that one stands")
            }
            run = now
            progress.show(run["examined"]?.integerValue ?? 0, "recipients")
        }
        return run
    }
}

/// `sendgate drift show`: how the newest audit stands.
struct DriftShow: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Says how the newest audit stands.",
        usage: "sendgate drift show --socket PATH [--json]",
        discussion: """
            Counts only: it names nobody. What was found of whom is in `sendgate drift list`. A dry run is an audit, too, \
            and the first line says so.
            """)
    static let example = "sendgate drift show --socket /tmp/gate/gate.sock"

    @OptionGroup var socket: SocketOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let answer = try await socket.connection().use { try await $0.get("/v1/drift") }
        guard answer.status == 200, let run = answer.object else { throw answer.reportProblem() }
        if output.json { Terminal.print(run) } else { DriftReport(run).show() }
    }
}

/// `sendgate drift list`: what was found of whom, and the orders to the provider.
struct DriftList: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists what was found of whom, a line each.",
        usage: "sendgate drift list --socket PATH [--orders] [--json]",
        discussion: """
            People are told by the trail's pseudonym. `--orders` gives what a provider has to change, with the push \
            token it knows the device by, as a line of JSON each: whoever speaks to the provider carries it out and \
            reports the state afterwards (`PUT …/devices/{device}/subscriptions`).
            """)
    static let example = "sendgate drift list --socket /tmp/gate/gate.sock --orders"

    @OptionGroup var socket: SocketOptions
    @Flag(name: .customLong("orders"), help: "Only what a provider has to change, as JSON lines.")
    var isOrdersOnly = false
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await socket.connection().use { try await list(over: $0) }
    }

    private func list(over connection: GatewayConnection) async throws {
        var table = Table("subject", "device", "finding", "category", "action", "old", "new")
        var target: String? = "/v1/drift/findings"
        while let page = target {
            let answer = try await connection.get(page)
            guard answer.status == 200, let object = answer.object,
                let findings = object["findings"]?.arrayValue
            else { throw answer.reportProblem() }
            for finding in findings {
                guard let members = finding.objectValue else { continue }
                if isOrdersOnly, members["token"] == nil { continue }
                if isOrdersOnly || output.json {
                    Terminal.print(members)
                } else {
                    func cell(_ name: String) -> String { members[name]?.stringValue ?? "" }
                    table.add(
                        cell("subject"), cell("device"), cell("finding"), cell("category"), cell("action"),
                        cell("old"), cell("new"))
                }
            }
            target = object["next"]?.stringValue.map { "/v1/drift/findings?after=\($0)" }
        }
        guard !isOrdersOnly, !output.json else { return }
        if table.isEmpty { return Terminal.note("nothing is found of anybody") }
        for line in table.lines { Terminal.print(line) }
    }
}

/// One audit, for a person.
struct DriftReport {
    private let run: JSONObject

    /// - Parameter run: As `GET /v1/drift` gives it.
    init(_ run: JSONObject) { self.run = run }

    /// What is said where nothing was found: by an audit that goes on, no more than that.
    var nothingFound: String { run["finished_at"] == nil ? "nothing found so far" : "all sides agree" }

    /// Which audit it is. A dry run stands in the place of the audit before it, whose figures are in the trail.
    var heading: String {
        let started = run["started_at"]?.stringValue ?? "?"
        let end = run["finished_at"]?.stringValue.map { "finished \($0)" } ?? "under way"
        let kind = run["dry_run"] == true ? "dry run, which changes nothing: " : ""
        return "\(kind)started \(started) by \(run["started_by"]?.stringValue ?? "?"), \(end)"
    }

    func show() {
        Terminal.print(heading)
        func count(_ name: String) -> Int64 { run[name]?.integerValue ?? 0 }
        Terminal.print(
            "\(count("examined")) recipients examined, \(count("unreadable")) unreadable; \(count("recorded")) entries \(run["dry_run"] == true ? "would be" : "were") written, \(count("resolved")) of them for drifts that are no more"
        )
        let rows = run["found"]?.arrayValue ?? []
        guard !rows.isEmpty else { return Terminal.print(nothingFound) }
        var table = Table("count", "finding", "action", "")
        for row in rows {
            let kind = row["finding"]?.stringValue ?? "?"
            let action = row["action"]?.stringValue ?? "?"
            table.add(
                "\(row["count"]?.integerValue ?? 0)", kind, action,
                DriftKind(rawValue: kind)?.words(after: DriftAction(rawValue: action)) ?? "")
        }
        for line in table.lines { Terminal.print(line) }
    }
}

extension DriftKind {
    /// What it means and who can do something about it, in one line.
    func words(after action: DriftAction?) -> String {
        switch self {
        case .subscribedWhileOff: "switched off here, subscribed there: `sendgate drift list --orders`"
        case .unsubscribedWhileOn where action == .repaired:
            "chosen here since, not subscribed there: `sendgate drift list --orders`"
        case .unsubscribedWhileOn: "on here, not subscribed there: suppressed until somebody chooses anew"
        case .blockedAtOS: "the phone shows nothing of the app: the app shows a badge"
        case .deliveredQuietly: "iOS delivers quietly: nobody was asked yet"
        case .permissionOutdated: "a push was seen where the permission is denied: the app must report anew"
        case .notEntitled: "critical alerts without the entitlement: taken off the device"
        case .zoneMissing: "quiet hours without a time zone: the app must report one"
        case .tokenStale: "not heard of for long: the app must register again"
        case .providerRefuses: "the provider refused the newest push for good"
        }
    }
}
