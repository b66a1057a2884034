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
                // A tenth to somebody unknown, and every id twice.
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
            let tested = try Self.promtool(
                ["test", "rules", "\(Self.monitoring)/alerts_test.yaml"], in: scratch)
            #expect(tested.ending == .exit(0), "\(tested.output)\(tested.errors)")
        }

        @Test func `the dashboard loads, and each of its queries is one of what is recorded`() throws {
            let scratch = try Scratch()
            let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(Self.monitoring)/dashboard.json"))
            let board = try JSONDecoder().decode(Dashboard.self, from: bytes)
            let targets = board.panels.flatMap(\.targets)
            #expect(board.panels.count > 15 && targets.count >= board.panels.count)
            #expect(Set(board.panels.map(\.id)).count == board.panels.count)
            #expect(board.panels.allSatisfy { $0.gridPos.x + $0.gridPos.w <= 24 })
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
            struct Panel: Decodable {
                var id: Int
                var title: String
                var gridPos: Position
                var targets: [Target]
            }
            struct Position: Decodable { var x, y, w, h: Int }
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
