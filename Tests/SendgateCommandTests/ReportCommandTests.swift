import AuditTrail
import CanonicalJSON
import Foundation
import GateRecords
import GateSteps
import GateVocabulary
import Testing
import WireProtocol

@testable import sendgate

/// How a period is told by the trail alone.
@Suite struct ReportCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var trail: String { folder.path("gate/trail") }

    /// A stopped gateway's trail, and what it counted while it ran.
    private func live() async throws -> [String: String] {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        #expect(try await gate.send("one", "security.new_login", GatewayFixture.login).status == 202)
        for number in 0..<5 { _ = try await gate.send("p\(number)", "promo.offer", [:]) }
        for state in ["user_off", "user_on", "user_off"] {
            let reply = try await gate.ask(
                "PUT", "/v1/recipients/u_42/preferences/social",
                ["state": .string(state), "source": "in_app_settings", "channel": "push"])
            #expect(reply.status == 200, "\(reply.object)")
        }
        let counted = await gate.metrics()
        try await gate.stop()
        return counted
    }

    private func report(_ arguments: String...) async throws -> JSONObject {
        let run = try await CommandLineRun(["report", trail, "--json"] + arguments)
        #expect(run.status == 0, "\(run.errors)")
        return try #require(
            try CanonicalJSON.read(Array(run.output.dropLast().utf8), limits: .document).objectValue)
    }

    @Test func `the figures of a whole process are those of its metrics`() async throws {
        let counted = try await live()
        let report = try await report()
        func sum(_ metric: String, _ part: String = "") -> Int64 {
            counted.filter {
                $0.key.hasPrefix("sendgate_\(metric){") && (part.isEmpty || $0.key.contains(part))
            }
            .values.compactMap { Int64($0) }.reduce(0, +)
        }
        let decisions = try #require(report["decisions"]?.objectValue)
        #expect(decisions["total"]?.integerValue == 6 && sum("decisions_total") == 6)
        for label in ["outcome", "reason", "category", "tier", "channel", "caller"] {
            let counts = try #require(decisions["by_\(label)"]?.objectValue)
            #expect(counts.compactMap { $0.value.integerValue }.reduce(0, +) == 6, "\(label)")
            for (value, count) in counts {
                #expect(
                    count.integerValue == sum("decisions_total", "\(label)=\"\(value)\""),
                    "\(label) \(value)")
            }
        }
        let disables = report["disables"]?.objectValue?.compactMap { $0.value.integerValue }
            .reduce(0, +)
        #expect(disables == sum("disables_total"))
        #expect(report["persons"] == 1)
        #expect(report["opted_in"]?["security"]?["push"]?["part"] == 1)
        #expect(report["opted_in"]?["social"]?["push"]?["part"] == 0)
        #expect(report["opted_in"]?["security"]?["sms"]?["of"] == 0)
        #expect(try await self.report("--without-people")["persons"] == nil)
    }

    @Test func `a period begins with its first moment and ends before its last`() async throws {
        _ = try await live()
        let all = try await report()
        #expect(all["days"]?.arrayValue?.isEmpty == false)
        let until = try #require(all["until"]?.stringValue)
        // The last entry is the gateway's stop.
        let before = try await report("--until", until)
        let after = try await report("--since", until)
        let counts = [before, after].compactMap { $0["entries"]?.integerValue }
        #expect(counts.reduce(0, +) == all["entries"]?.integerValue && counts.allSatisfy { $0 > 0 })
        let none = try await CommandLineRun("report", trail, "--until", "2020-01-01")
        #expect(none.status == 0 && none.output == "nothing was recorded in this period\n")
    }

    @Test func `the table fits a hundred columns and has no colours in a pipe`() async throws {
        _ = try await live()
        let run = try await CommandLineRun("report", trail)
        #expect(run.status == 0)
        let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.allSatisfy { $0.count <= 100 && $0.last != " " }, "\(run.output)")
        #expect(!run.output.contains("\u{1B}"))
        for part in ["decisions", "by outcome", "by caller", "opted in at the end"] {
            #expect(run.output.contains(part), "\(run.output)")
        }
        let report = try report(of: Self.week())
        let coloured = ReportLines(report, isColoured: true).lines
        #expect(coloured.contains { $0.hasPrefix("\u{1B}[31malarm: ") })
        #expect(ReportLines(report, isColoured: false).lines.allSatisfy { !$0.contains("\u{1B}") })
    }

    @Test(arguments: [
        ["--since", "yesterday"], ["--until", "2026-02-30"],
        ["--since", "2026-11-17", "--until", "2026-11-17"],
    ])
    func `a time that is none ends with 64`(arguments: [String]) async throws {
        let run = try await CommandLineRun(["report", "/tmp"] + arguments)
        #expect(run.status == 64, "\(run.errors)")
    }

    @Test func `a chart is written once, is well-formed and has the report's figures`() async throws {
        _ = try await live()
        let file = folder.path("week.svg")
        #expect(try await CommandLineRun("report", trail, "--svg", file).status == 0)
        let again = try await CommandLineRun("report", trail, "--svg", file)
        #expect(again.status == 1 && again.errors.contains("never overwritten"))
        let chart = try Chart(String(contentsOfFile: file, encoding: .utf8))
        let report = try await report()
        let day = try #require(report["days"]?.arrayValue?.first?.objectValue)
        let name = try #require(day["day"]?.stringValue)
        for outcome in Outcome.allCases {
            let drawn = chart.figures["day.\(name).\(outcome.name)"]?["count"].flatMap { Int64($0) }
            #expect(drawn ?? 0 == day[outcome.name]?.integerValue, "\(outcome)")
        }
        #expect(chart.figures["opted_in.security"]?["part"] == "1")
    }

    // MARK: A week whose figures are known

    /// A week in which everything happened, each a known number of times.
    private static func week() -> [(Instant, Observation)] {
        let start = Instant(seconds: 1_795_000_000 / 86_400 * 86_400)
        var week: [(Instant, Observation)] = []
        let promo = TypeAxes(category: .marketing, tier: .promotional)
        for day in 0..<7 as Range<Int64> {
            let now = start.advanced(bySeconds: day * 86_400 + 3_600)
            for number in 0..<100 as Range<Int64> {
                let reason: Reason = number < 80 ? .allowed : number < 95 ? .frequencyCap : .unknownType
                week.append(
                    (
                        now,
                        .decided(reason: reason, type: promo, channel: .push, caller: CallerName("marketing"))
                    ))
                guard number < 80 else { continue }
                let result: HandOver = number < 76 ? .handedOver : .refusedByHop
                week.append(
                    (
                        now,
                        .ended(
                            result, channel: .push, category: .marketing, tier: .promotional,
                            waitedMilliseconds: result == .handedOver
                                ? (number < 70 ? 1_000 : 2_000_000) : nil)
                    ))
                guard number < 20 else { continue }
                week.append(
                    (
                        now,
                        .opened(
                            category: .marketing, channel: .push, afterMilliseconds: (number + 1) * 1_000)
                    ))
                if number < 10 { week.append((now, .tapped(category: .marketing, channel: .push))) }
            }
        }
        week.append((start, .unreached(TypeID("account.terms_change"))))
        return week
    }

    private func report(of week: [(Instant, Observation)]) throws -> Report {
        var figures = TrailFigures(ReportPeriod(), countsPeople: false)
        for (time, observation) in week { figures.add([observation], at: time) }
        return Report(figures, try figures.samples { _ in nil })
    }

    @Test func `rates, medians and alarms are those of the week`() throws {
        let report = try report(of: Self.week())
        #expect(report.decisionCount == 700)
        #expect(report.days.count == 7 && report.days.allSatisfy { $0.outcomes[.forward] == 80 })
        let json = report.json
        #expect(json["accepted"]?["push"] == ["part": 532, "of": 560, "per_ten_thousand": 9_500])
        #expect(json["tap_through"]?["marketing"] == ["part": 70, "of": 532, "per_ten_thousand": 1_316])
        let opened = try #require(json["time_to_open"]?["marketing"]?.objectValue)
        #expect(opened["count"] == 140)
        let median = try #require(opened["median_milliseconds"]?.integerValue)
        #expect((9_990...10_010).contains(median))
        let p90 = try #require(opened["p90_milliseconds"]?.integerValue)
        #expect((17_980...18_020).contains(p90))
        let accepted = try #require(json["time_to_accept"]?["promotional"]?.objectValue)
        #expect(accepted["in_time"] == ["part": 490, "of": 532, "per_ten_thousand": 9_211])
        #expect(accepted["target_milliseconds"] == 1_800_000)
        #expect(json["mandatory_unreached"] == ["account.terms_change": 1])
        #expect(report.alarms.count == 3, "\(report.alarms)")
        #expect(report.alarms.first?.hasPrefix("95.00 % of push messages were accepted") == true)
    }

    @Test func `what providers refused of what they spoke of is a rate and an alarm`() throws {
        func report(refused: Int) throws -> Report {
            let events: [SendEventKind] = [.failed, .tokenGone, .expired]
            let now = Instant(seconds: 1_795_000_000)
            return try self.report(
                of: (0..<200).map { number in
                    let event = number < refused ? events[number % 3] : .acceptedByProvider
                    return (now, .receipt(event, category: .security, channel: .push))
                } + [(now, .receipt(.userObserved, category: .security, channel: .push))])
        }
        let low = try report(refused: 5)
        #expect(
            low.json["accepted_by_provider"]?["push"] == ["part": 195, "of": 200, "per_ten_thousand": 9_750])
        #expect(
            low.alarms == [
                "providers accepted 97.50 % of the push messages they spoke of, fewer than 98 in 100"
            ])
        let line = try #require(
            ReportLines(low, isColoured: false).lines.drop { !$0.hasPrefix("accepted by providers") }
                .dropFirst()
                .first)
        #expect(
            line.split(separator: " ").map(String.init) == [
                "push", "195", "200", "97.50", "%", "below", "98", "%",
            ])
        let chart = try Chart(ReportChart(low).text)
        #expect(chart.figures["accepted_by_provider.push"] == ["part": "195", "of": "200"])
        #expect(try report(refused: 4).alarms.isEmpty)
    }

    @Test func `a message counts once, as accepted if one receipt says so`() throws {
        let now = Instant(seconds: 1_795_000_000)
        func share(_ told: [(message: UInt64, event: ReceiptBody.Event)]) throws -> Share? {
            var figures = TrailFigures(ReportPeriod(), countsPeople: false)
            for (message, event) in told {
                figures.add([.receipt(event.eventKind, category: .security, channel: .push)], at: now)
                figures.providerOutcomes.add(
                    ReceiptEntry(
                        send: SendID(high: 1, low: message), destination: Tag(high: 2, low: 3),
                        event: Code(event), at: now, caller: CallerName("product"),
                        channel: Code(Channel.push)))
            }
            let report = Report(figures, try figures.samples { _ in nil })
            return report.acceptedByProviders.first { $0.channel == .push }?.share
        }
        let often: [(UInt64, ReceiptBody.Event)] = [
            (1, .acceptedByProvider), (1, .failed), (1, .failed), (1, .expired), (1, .acceptedByProvider),
        ]
        #expect(try share(often) == Share(part: 1, of: 1))
        #expect(try share(often.reversed()) == Share(part: 1, of: 1))
        #expect(try share([(1, .failed), (1, .tokenGone), (1, .userObserved)]) == Share(part: 0, of: 1))
        #expect(try share(often + [(2, .failed), (2, .failed)]) == Share(part: 1, of: 2))
    }

    @Test func `the chart of the week parses and its bars are the figures`() throws {
        let report = try report(of: Self.week())
        let chart = try Chart(ReportChart(report).text)
        #expect(chart.figures["tap_through.marketing"] == ["part": "70", "of": "532"])
        #expect(chart.figures["accepted.push"] == ["part": "532", "of": "560"])
        #expect(chart.figures["in_time.promotional"] == ["part": "490", "of": "532"])
        let forwards = chart.figures.filter { $0.key.hasPrefix("day.") && $0.key.hasSuffix(".forward") }
        #expect(forwards.count == 7 && forwards.values.allSatisfy { $0["count"] == "80" })
        // What a bar shows is what its figure says: stacked heights are in proportion.
        #expect(chart.names.isSuperset(of: ["title", "desc", "style", "rect", "text", "line"]))
        #expect(chart.names.isDisjoint(with: ["script", "image", "use", "foreignObject"]))
        #expect(chart.text.contains("prefers-color-scheme: dark"))
        #expect(!chart.text.contains("http") || chart.text.components(separatedBy: "http").count == 2)
    }

    @Test(arguments: [1, 31, 32, 400])
    func `however long the period is, at most 31 bars stand beside each other`(days: Int64) throws {
        var week: [(Instant, Observation)] = []
        for day in 0..<days {
            week.append(
                (
                    Instant(seconds: 1_700_006_400 + day * 86_400),
                    .decided(reason: .allowed, type: nil, channel: .push, caller: CallerName("payments"))
                ))
        }
        let chart = try Chart(ReportChart(try report(of: week)).text)
        let bars = chart.figures.filter { $0.key.hasPrefix("day.") }
        // 400 days are 13 a bar.
        #expect(bars.count == [1: 1, 31: 31, 32: 16, 400: 31][days])
        #expect(bars.values.compactMap { $0["count"].flatMap { Int64($0) } }.reduce(0, +) == days)
    }

    @Test(
        arguments: [
            (0, "0 ms"), (999, "999 ms"), (1_000, "1 s"), (1_500, "1.5 s"), (59_900, "60 s"),
            (90_000, "1.5 min"),
            (3_600_000, "1 h"), (172_800_000, "2 d"),
        ] as [(Int64, String)])
    func `a time has two digits and a unit`(milliseconds: Int64, words: String) {
        #expect(Report.words(milliseconds) == words)
    }

    @Test func `shares round to the nearest and nothing has no rate`() {
        #expect(Share(part: 2, of: 3).text == "66.67 %")
        #expect(Share(part: 0, of: 7).text == "0.00 %")
        #expect(Share(part: 9_799, of: 10_000).perTenThousand == 9_799)
        #expect(Share(part: 0, of: 0).text == "–")
    }

    @Test func `a damaged trail ends with 3, an alarm only where it is asked for`() async throws {
        _ = try await live()
        #expect(try await CommandLineRun("report", trail, "--check").status == 0)
        let tile = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: "\(trail)/tile/entries")
                .filter { !$0.hasSuffix(".p") }.max { Self.width($0) < Self.width($1) })
        let file = "\(trail)/tile/entries/\(tile)"
        var bytes = try Data(contentsOf: URL(filePath: file))
        let place = try #require(bytes.range(of: Data("promo.offer".utf8))).lowerBound
        bytes[place] = UInt8(ascii: "P")
        try bytes.write(to: URL(filePath: file))
        #expect(try await CommandLineRun("report", trail).status == 3)
    }

    private static func width(_ bundle: String) -> Int {
        bundle.split(separator: "/").last.flatMap { Int($0) } ?? 0
    }
}

/// An SVG as another parser reads it: Python's, which knows nothing of ours.
private struct Chart {
    let text: String
    let names: Set<String>
    /// `data-` attributes by figure.
    let figures: [String: [String: String]]

    private static let script = """
        import json, sys, xml.etree.ElementTree as tree
        root = tree.fromstring(sys.stdin.buffer.read())
        names, figures = set(), {}
        for element in root.iter():
            names.add(element.tag.split('}')[1])
            figure = element.attrib.get('data-figure')
            if figure is not None:
                figures[figure] = {k[5:]: v for k, v in element.attrib.items()
                                   if k.startswith('data-') and k != 'data-figure'}
                x, width = float(element.attrib['x']), float(element.attrib['width'])
                assert x >= 0 and x + width <= 360, element.attrib
        assert root.attrib['role'] == 'img' and root[0].text and root[1].text
        print(json.dumps({'names': sorted(names), 'figures': figures}))
        """

    init(_ text: String) throws {
        self.text = text
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3", "-c", Self.script]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        input.fileHandleForWriting.write(Data(text.utf8))
        try input.fileHandleForWriting.close()
        let answer = try #require(try output.fileHandleForReading.readToEnd())
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        let parsed = try CanonicalJSON.read(Array(answer.dropLast()), limits: .document)
        names = Set(parsed["names"]?.arrayValue?.compactMap(\.stringValue) ?? [])
        var figures: [String: [String: String]] = [:]
        for (name, values) in parsed["figures"]?.objectValue ?? [:] {
            for (key, value) in values.objectValue ?? [:] {
                figures[name, default: [:]][key] = value.stringValue
            }
        }
        self.figures = figures
    }
}
