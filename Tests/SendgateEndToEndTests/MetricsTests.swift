import Foundation
import Testing

extension EndToEnd {
    @Suite struct MetricsTests {
        private static let monitoring =
            "\(Machine.repository)/Sources/sendgate/Sendgate.docc/Monitoring"

        private static func promtool(_ arguments: [String], in scratch: Scratch) throws -> Finished {
            try Finished.run([Machine.promtool] + arguments, in: scratch, within: 60)
        }

        @Test func `what is counted is what the trail says, and Prometheus's own checker has nothing to add`()
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            let connection = try gate.connect()
            for number in 0..<40 {
                // A tenth to an unknown recipient, and every id twice.
                let user = number % 10 == 9 ? "u_nobody" : "u_1"
                let body =
                    number % 2 == 0
                    ? Sample.login("m-\(number)", to: user) : Sample.remittance("m-\(number)", to: user)
                for _ in 0..<2 { _ = try connection.request("POST", "/v1/sends", body) }
            }
            let page = try connection.request("GET", "/metrics").text
            let checked = try Finished.run(
                [
                    "/bin/sh", "-c", "exec \"$0\" check metrics < \"$1\"", Machine.promtool,
                    try scratch.write("metrics", page),
                ], in: scratch, within: 60)
            #expect(checked.ending == .exit(0), "\(checked.output)\(checked.errors)")
            #expect(checked.output.isEmpty && checked.errors.isEmpty, "\(checked.output)\(checked.errors)")
            #expect(page.contains("\nsendgate_operations_total ") && page.contains("\nsendgate_outbox_rows "))
            #expect(try gate.stop() == .exit(0))
            let counted = page.split(separator: "\n").filter { $0.hasPrefix("sendgate_decisions_total{") }
            let entries = try TrailText(gate.trail)
            var total = 0
            for reason in Set(counted.compactMap { $0.firstMatch(of: /reason="([a-z_]+)"/)?.1 }) {
                let count = counted.filter { $0.contains("reason=\"\(reason)\"") }
                    .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }.reduce(0, +)
                total += count
                // Keys of an entry are in order, so the send's own reason stands between these two.
                #expect(entries.count(of: #","reason":"\#(reason)","request":"#) == count, "\(reason)")
            }
            #expect(total == 40, "\(counted)")
        }

        @Test func `the rules and alerts are rules, and fire and stay silent as their tests say`() throws {
            let scratch = try Scratch()
            let rules = ["recording.yaml", "alerts.yaml"].map { "\(Self.monitoring)/\($0)" }
            let checked = try Self.promtool(["check", "rules"] + rules, in: scratch)
            #expect(checked.ending == .exit(0), "\(checked.output)\(checked.errors)")
            let tested = try Self.promtool(["test", "rules"] + Self.alertTests, in: scratch)
            #expect(tested.ending == .exit(0), "\(tested.output)\(tested.errors)")
        }

        private static let alertTests = ["alerts_test.yaml", "alerts_days_test.yaml"].map {
            "\(monitoring)/\($0)"
        }

        @Test func `each alert has a case in which it fires and one in which it stays silent`() throws {
            let alerts = try String(contentsOfFile: "\(Self.monitoring)/alerts.yaml", encoding: .utf8)
            let named = Set(alerts.matches(of: /- alert: ([A-Za-z0-9]+)/).map { String($0.1) })
            #expect(named.count >= 20)
            var (firing, silent) = (Set<String>(), Set<String>())
            for file in Self.alertTests {
                let cases = try String(contentsOfFile: file, encoding: .utf8)
                for found in cases.matches(of: /alertname: ([A-Za-z0-9]+)\n +exp_alerts:(.*)\n/) {
                    if found.2 == " []" {
                        silent.insert(String(found.1))
                    } else {
                        firing.insert(String(found.1))
                    }
                }
                // Each case is one that was read above.
                let count = cases.matches(of: /alertname:/).count
                #expect(cases.matches(of: /alertname: [A-Za-z0-9]+\n +exp_alerts:/).count == count)
            }
            // A name that is no alert's would be silent in every case.
            #expect(firing == named, "\(firing.symmetricDifference(named).sorted())")
            #expect(silent == named, "\(silent.symmetricDifference(named).sorted())")
        }

        @Test func `Grafana's models take the whole dashboard, and Prometheus has a number for each panel`()
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            // People are counted at a start, and then once a minute.
            try gate.stop()
            try gate.start()
            let checked = try Finished.run(
                [
                    Machine.python, Machine.peer("check_dashboard.py"), Self.monitoring, gate.folder,
                    Machine.prometheus, scratch.path("prometheus"),
                ], environment: Machine.commands, in: scratch, within: 240)
            #expect(checked.ending == .exit(0), "\(checked)")
            #expect(checked.output.contains(#""panels": 24, "queries": 33,"#), "\(checked.output)")
            #expect(checked.output.contains(#""rules": 32"#), "\(checked.output)")
            #expect(try gate.stop() == .exit(0))
        }

        @Test func `the dashboard's panels lie well, and each of its queries is one of what is recorded`()
            throws
        {
            let scratch = try Scratch()
            let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(Self.monitoring)/dashboard.json"))
            let board = try JSONDecoder().decode(Dashboard.self, from: bytes)
            let targets = board.panels.flatMap(\.targets)
            #expect(board.panels.count > 15 && targets.count >= board.panels.count)
            #expect(Set(board.panels.map(\.id)).count == board.panels.count)
            // Grafana has 24 columns, and moves a panel that lies on another.
            for (number, panel) in board.panels.enumerated() {
                let place = panel.gridPos
                #expect(place.x >= 0 && place.y >= 0 && place.w > 0 && place.h > 0, "\(panel.title)")
                #expect(place.x + place.w <= 24, "\(panel.title)")
                for other in board.panels[..<number] where place.overlaps(other.gridPos) {
                    Issue.record("the panel \(panel.title) lies on \(other.title)")
                }
                // The source of a panel is a variable of the dashboard, and one that asks for a Prometheus.
                let source = panel.datasource
                let variable = board.templating.list.first { "${\($0.name)}" == source.uid }
                #expect(source.type == "prometheus", "\(panel.title)")
                #expect(variable?.type == "datasource", "\(panel.title) asks \(source.uid)")
                #expect(variable?.query == source.type, "\(panel.title)")
            }
            let rules = try JSONEncoder().encode(
                Rules(groups: [
                    .init(
                        name: "dashboard",
                        rules: targets.enumerated().map { number, target in
                            .init(record: "dashboard:query\(number)", expr: target.expr)
                        })
                ]))
            let file = try scratch.write("dashboard.yaml", String(decoding: rules, as: UTF8.self))
            let checked = try Self.promtool(["check", "rules", file], in: scratch)
            #expect(checked.ending == .exit(0), "\(checked.output)\(checked.errors)")

            // Of metrics that there are, in the dashboard and in the rules.
            let page = try String(
                contentsOfFile: "\(Machine.repository)/Sources/sendgate/Sendgate.docc/Metrics.md",
                encoding: .utf8)
            let declared = Set(page.matches(of: /\| `(sendgate_[a-z0-9_]+)` \|/).map { String($0.1) })
            #expect(declared.count > 40)
            let recording = try String(
                contentsOfFile: "\(Self.monitoring)/recording.yaml", encoding: .utf8)
            let recorded = Set(recording.matches(of: /record: (sendgate:[a-z0-9_:]+)/).map { String($0.1) })
            let alerts = try String(contentsOfFile: "\(Self.monitoring)/alerts.yaml", encoding: .utf8)
            let texts = targets.map(\.expr) + [recording, alerts]
            for text in texts {
                for match in text.matches(of: /sendgate_[a-z0-9_]+/) {
                    var name = String(match.0)
                    for end in ["_bucket", "_sum", "_count"] where !declared.contains(name) {
                        if name.hasSuffix(end) { name.removeLast(end.count) }
                    }
                    #expect(declared.contains(name), "`\(name)` is not declared")
                }
                for match in text.matches(of: /sendgate:[a-z0-9_:]+/) {
                    #expect(recorded.contains(String(match.0)), "`\(match.0)` is not recorded")
                }
            }
        }

        private struct Dashboard: Decodable {
            var title: String
            var panels: [Panel]
            var templating: Templating
            struct Panel: Decodable {
                var id: Int
                var title: String
                var datasource: Source
                var gridPos: Position
                var targets: [Target]
            }
            struct Source: Decodable { var type, uid: String }
            struct Templating: Decodable { var list: [Variable] }
            struct Variable: Decodable { var name, type, query: String }
            struct Position: Decodable {
                var x, y, w, h: Int

                func overlaps(_ other: Position) -> Bool {
                    x < other.x + other.w && other.x < x + w && y < other.y + other.h && other.y < y + h
                }
            }
            struct Target: Decodable { var refId, expr: String }
        }

        private struct Rules: Encodable {
            var groups: [Group]
            struct Group: Encodable {
                var name: String
                var rules: [Rule]
            }
            struct Rule: Encodable { var record, expr: String }
        }
    }
}
