import ArgumentParser
import AuditTrail
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import Foundation
import GateRecords
import GateVocabulary
import GatewayPipeline
import TrailDirectory

/// `sendgate report`: how notifications did in a period, by the trail alone.
struct ReportCommand: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Says how notifications did in a period.",
        usage: "sendgate report TRAIL [--since TIME] [--until TIME] [--svg FILE] [--json]",
        discussion: """
            Reads the trail's folder, or a copy of it, verifies it as it goes, and counts what its entries say, by the \
            same definitions as `GET /metrics` (the handbook's page "Metrics"). With a socket it also shows what the \
            running gateway counts now: what waits, and which keys and reviews are due.

            Ends with 3 when the trail is damaged, and with --check also when an alarm line is crossed.
            """)

    static let example = "sendgate report /tmp/gate/trail --since 2026-11-17 --svg week.svg"

    @Argument(help: ArgumentHelp("The trail's folder.", valueName: "trail")) var folder: String
    @Option(help: ArgumentHelp("From then on: a day, or an RFC 3339 time.", valueName: "time"))
    var since: String?
    @Option(help: ArgumentHelp("Before then: a day, or an RFC 3339 time.", valueName: "time"))
    var until: String?
    @Option(help: ArgumentHelp("Draw charts into a file that is not there yet.", valueName: "file"))
    var svg: String?
    @Option(help: ArgumentHelp("The socket of a running gateway.", valueName: "path"))
    var socket: String?
    @Flag(help: "End with 3 when an alarm line is crossed.") var check = false
    @Flag(help: "Leave out who is opted in: less memory for many recipients.") var withoutPeople = false
    @OptionGroup var trusted: TrustOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        let period = try period()
        if let since = period.since, let until = period.until, since >= until {
            throw ValidationError("`--since` is not before `--until`")
        }
    }

    private func period() throws -> ReportPeriod {
        ReportPeriod(
            since: try since.map(ReportPeriod.instant), until: try until.map(ReportPeriod.instant))
    }

    func run() async throws {
        let trail = try CopiedTrail(at: folder)
        let trust = try AuditTrust(trail, trusted)
        trust.warnAboutOwnWord()
        let now = try await present()
        let counted = try figures(trail, trust.trust)
        let report = Report(counted.figures, counted.samples)
        if let svg { try OutputFile.create(svg, with: Array(ReportChart(report).text.utf8)) }
        if output.json {
            var object = report.json
            if let now { object["now"] = .object(now.json) }
            Terminal.print(object)
        } else {
            var lines = ReportLines(report, isColoured: Console.current.isColoured)
            if let now { lines.add(now) }
            for line in lines.lines { Terminal.print(line) }
        }
        if check, !report.alarms.isEmpty { throw ExitStatus.foundDifference }
    }

    private func figures(
        _ trail: CopiedTrail, _ trust: TrailTrust
    ) throws -> (figures: TrailFigures, samples: MetricSamples) {
        let policy = trail.policiesReadOnce()
        var figures = TrailFigures(try period(), countsPeople: !withoutPeople)
        try trail.readVerified(trust, since: figures.period.since) {
            try figures.add($0, isCounted: $1, policies: policy)
        }
        return (figures, try figures.samples(policies: policy))
    }

    /// What a running gateway says of this moment; `nil` without a socket.
    private func present() async throws -> PresentFigures? {
        guard let socket else { return nil }
        let metrics = try await GatewayConnection(path: socket).use { try await $0.get("/metrics") }
        guard metrics.status == 200 else { throw metrics.reportProblem() }
        return PresentFigures(Status.samples(metrics.text))
    }
}

extension CopiedTrail {
    /// Counts what the entries say, each after it was verified.
    ///
    /// - Parameters:
    ///   - since: Entries from then on have to be there; `nil` counts those that are.
    ///   - standsAlone: Whether an entry counts by itself, without those before it.
    ///   - count: Also told whether the entry is counted, or followed only: of a pruned trail the first are.
    /// - Throws: ``CommandFailure`` with ``ExitStatus/foundDifference`` for a damaged trail, and for an entry that `count` cannot
    ///   read; and where entries since then were pruned.
    @discardableResult
    func readVerified(
        _ trust: TrailTrust, since: Instant?, standsAlone: Bool = false,
        _ count: @escaping (_ entry: [UInt8], _ isCounted: Bool) throws -> Void
    ) throws -> TrailReport {
        var progress = Progress("reading")
        var countable = CountableEntries(since: since, standsAlone: standsAlone)
        let verified = try auditing {
            try TrailVerifier(reader, trusting: trust, examining: .envelope).verify(
                visit: { entry in
                    if let read = entry.entry { try EntrySchema.version1.requireKind(of: read) }
                    do {
                        try count(Array(entry.bytes), countable.counts(entry))
                    } catch let error as CommandFailure {
                        throw error
                    } catch {
                        throw CommandFailure(
                            "entry \(entry.index) cannot be counted: \(error)",
                            hint: "run `sendgate audit verify` on this folder", status: .foundDifference)
                    }
                }, progress: { progress.show($0, of: $1) })
        }
        progress.end()
        if let damage = verified.damage {
            throw CommandFailure(
                damage.message, hint: "run `sendgate audit verify` on this folder", status: .foundDifference)
        }
        if let remark = try countable.remark(), since == nil { Terminal.warning(remark) }
        return verified
    }
}

extension ReportPeriod {
    static func instant(_ text: String) throws -> Instant {
        if let instant = Instant(rfc3339: text) { return instant }
        if CalendarDate(text) != nil, let instant = Instant(rfc3339: "\(text)T00:00:00Z") { return instant }
        throw ValidationError(
            "`\(text)` is no time: write a day as `2026-11-17`, or `2026-11-17T08:00:00Z`")
    }
}

/// What no entry says: how the gateway stands now, as `GET /metrics` has it.
struct PresentFigures {
    /// The metric's name without its prefix, what it is, its value.
    private(set) var rows: [(name: String, what: String, value: String)] = []

    private static let shown: [(metric: MetricFamily, what: String)] = [
        (.queued, "operations in the queue"), (.outboxRows, "messages in the outbox"),
        (.publishLag, "seconds the trail is behind"), (.keysToRotate, "keys to rotate"),
        (.keysWaiting, "keys that wait to be promoted"), (.lapsedReviews, "duties whose review is due"),
        (.reviewsDueSoon, "duties due for review in 60 days"), (.storeDamage, "damage found in the store"),
    ]

    /// - Parameter samples: Of the text format, labels kept as part of the name.
    init(_ samples: [String: String]) {
        for (family, what) in Self.shown {
            let values = samples.filter { $0.key == family.name || $0.key.hasPrefix("\(family.name){") }
            guard !values.isEmpty else { continue }
            let value =
                values.count == 1 && family.labels.isEmpty
                ? values.values.first ?? "?" : "\(values.values.compactMap { Int64($0) }.reduce(0, +))"
            rows.append((String(family.name.dropFirst("sendgate_".count)), what, value))
        }
    }

    var json: JSONObject {
        JSONObject(rows.map { ($0.name, Int64($0.value).map { .integer($0) } ?? .string($0.value)) })
    }
}
