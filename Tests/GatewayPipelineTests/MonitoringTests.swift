import Foundation
import Testing

@testable import GatewayPipeline

/// The rules and the dashboard beside the handbook's page ask for series that there are: each name, label and value of an
/// expression is held against `MetricFamily.all`. Whether the expressions are PromQL is for Prometheus's own checker.
@Suite struct MonitoringTests {
    private static let folder = URL(fileURLWithPath: #filePath)
        .appendingPathComponent("../../../Sources/sendgate/Sendgate.docc/Monitoring").standardized

    /// What an expression can say of one series: its labels, each with every value it can have; `nil` when it is open.
    private typealias Labels = [String: Set<String>?]

    /// A rule of a file of rules.
    private struct Rule {
        var name: String
        var expression: String
        /// The labels that the rule adds to the series.
        var added: [String: String]
        var annotations: String
    }

    /// The rules of a file, written as these files are: `expr` in one line or as a block, `labels` in one line.
    private static func rules(of file: String) throws -> [Rule] {
        let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
        var rules: [Rule] = []
        var blockIndent: Int?
        for line in text.split(separator: "\n") {
            let indent = line.prefix { $0 == " " }.count
            if let start = line.firstMatch(of: /- (?:alert|record): ([A-Za-z0-9_:]+)/) {
                rules.append(Rule(name: String(start.1), expression: "", added: [:], annotations: ""))
                blockIndent = nil
                continue
            }
            guard !rules.isEmpty else { continue }
            let last = rules.count - 1
            if let block = blockIndent, indent > block {
                rules[last].expression += line.dropFirst(indent) + " "
                continue
            }
            blockIndent = nil
            if let found = line.firstMatch(of: /^ +expr: (.*)$/) {
                if found.1 == "|" { blockIndent = indent } else { rules[last].expression = String(found.1) }
            } else if let found = line.firstMatch(of: /^ +labels: \{(.*)\}$/) {
                for pair in found.1.split(separator: ",") {
                    let parts = pair.split(separator: ":").map { $0.trimmingCharacters(in: .whitespaces) }
                    rules[last].added[parts[0]] = parts[1]
                }
            } else if line.contains("summary: ") || line.contains("action: ") {
                rules[last].annotations += line + "\n"
            }
        }
        return rules
    }

    /// Every series that an expression can name: those of the families, then what the rules record.
    private struct Series {
        var labels: [String: Labels] = [:]

        init() {
            for family in MetricFamily.all {
                var labels: Labels = [:]
                for label in family.labels {
                    let values: Set<String>? =
                        if case .closed(let values) = label.values { Set(values) } else { nil }
                    labels.updateValue(values, forKey: label.name)
                }
                guard family.kind == .histogram else {
                    self.labels[family.name] = labels
                    continue
                }
                for end in ["_sum", "_count"] { self.labels[family.name + end] = labels }
                labels["le"] = Set(
                    family.boundsMilliseconds.map { MetricValue.milliseconds($0).text } + ["+Inf"])
                self.labels[family.name + "_bucket"] = labels
            }
        }

        /// A recorded series has the labels of its expression, and those that the rule adds.
        mutating func record(_ rule: Rule) {
            var known = labels[rule.name] ?? [:]
            known.merge(of(rule.expression)) { one, _ in one }
            for (name, value) in rule.added {
                known.updateValue((known[name].flatMap { $0 } ?? []).union([value]), forKey: name)
            }
            labels[rule.name] = known
        }

        /// The labels of an expression's result: those it groups by or, when it groups by none, those of its series.
        func of(_ expression: String) -> Labels {
            var all: Labels = [:]
            for name in Self.names(in: expression) {
                all.merge(labels[name] ?? [:]) { one, _ in one }
            }
            let groups = expression.matches(of: /\bby \(([^)]*)\)/).map { Self.words($0.1) }
            guard let first = groups.first else { return all }
            let kept = groups.dropFirst().reduce(Set(first)) { $0.intersection($1) }
            return all.filter { kept.contains($0.key) }
        }

        static func names(in expression: some StringProtocol) -> [String] {
            String(expression).matches(of: /\bsendgate[_:][a-z0-9_:]+/).map { String($0.0) }
        }

        static func words(_ list: some StringProtocol) -> [String] {
            list.split(whereSeparator: { $0 == "," || $0 == " " }).map { String($0) }
        }

        /// What an expression says that no series can have.
        func problems(of expression: String) -> [String] {
            var problems: [String] = []
            for name in Set(Self.names(in: expression)) where labels[name] == nil {
                problems.append("there is no `\(name)`")
            }
            for found in expression.matches(of: /\b(sendgate[_:][a-z0-9_:]+)\{([^}]*)\}/) {
                guard let declared = labels[String(found.1)] else { continue }
                for matcher in found.2.matches(of: /([a-z_]+)(?:=~|!=|!~|=)"([^"]*)"/) {
                    let label = String(matcher.1)
                    guard let values = declared[label] else {
                        problems.append("`\(found.1)` has no label `\(label)`")
                        continue
                    }
                    for value in matcher.2.split(separator: "|")
                    where values?.contains(String(value)) == false {
                        problems.append("the label `\(label)` of `\(found.1)` is never `\(value)`")
                    }
                }
            }
            for found in expression.matches(of: /\b(by|on|group_left|group_right) \(([^)]*)\)/) {
                // What is grouped follows in parentheses; what `on` matches is on both sides, so all series have it.
                let grouped =
                    found.1 == "by" ? Self.parenthesised(expression[found.range.upperBound...]) : nil
                for label in Self.words(found.2) {
                    for name in Self.names(in: grouped ?? expression)
                    where labels[name].map({ $0.keys.contains(label) }) == false {
                        problems.append("`\(name)` is grouped by `\(label)`, which it does not have")
                    }
                }
            }
            return problems
        }

        /// What stands between the parenthesis that begins `text` and the one that closes it.
        static func parenthesised(_ text: Substring) -> String {
            var depth = 0
            var inside = ""
            for character in text.drop(while: { $0 == " " }) {
                if character == "(" { depth += 1 }
                if character == ")" { depth -= 1 }
                if depth == 0 { break }
                inside.append(character)
            }
            return inside
        }
    }

    private static func series() throws -> Series {
        var series = Series()
        for rule in try rules(of: "recording.yaml") { series.record(rule) }
        return series
    }

    @Test func `a rule asks for no series, label or value that cannot be`() throws {
        let series = try Self.series()
        let recording = try Self.rules(of: "recording.yaml")
        let alerts = try Self.rules(of: "alerts.yaml")
        #expect(recording.count >= 10 && alerts.count >= 20)
        for rule in recording + alerts {
            #expect(!rule.expression.isEmpty, "\(rule.name)")
            #expect(series.problems(of: rule.expression) == [], "\(rule.name)")
        }
        for alert in alerts {
            for found in alert.annotations.matches(of: /\$labels\.([a-z_]+)/) {
                let label = String(found.1)
                let isThere = series.of(alert.expression).keys.contains(label)
                #expect(isThere, "\(alert.name) tells of the label `\(label)`, which its series lack")
            }
        }
    }

    @Test func `a panel asks for no series, label or value that cannot be`() throws {
        struct Dashboard: Decodable {
            struct Panel: Decodable {
                var title: String
                var targets: [Target]
            }
            struct Target: Decodable { var expr, legendFormat: String }
            var panels: [Panel]
        }
        let bytes = try Data(contentsOf: Self.folder.appendingPathComponent("dashboard.json"))
        let board = try JSONDecoder().decode(Dashboard.self, from: bytes)
        let series = try Self.series()
        for panel in board.panels {
            for target in panel.targets {
                #expect(series.problems(of: target.expr) == [], "\(panel.title)")
                for found in target.legendFormat.matches(of: /\{\{ *([a-z_]+) *\}\}/) {
                    let label = String(found.1)
                    let isThere = series.of(target.expr).keys.contains(label)
                    #expect(isThere, "\(panel.title) shows the label `\(label)`, which its series lack")
                }
            }
        }
    }

    @Test(arguments: [
        ("sendgate_tap_total > 0", "there is no"),
        ("sendgate_time_to_accept_seconds > 0", "there is no"),
        (#"sendgate_taps_total{channel="pager"} > 0"#, "is never `pager`"),
        (#"sendgate_receipts_total{event=~"failed|token_lost"} > 0"#, "is never `token_lost`"),
        (#"sendgate_taps_total{tier="critical"} > 0"#, "has no label `tier`"),
        (#"sendgate_time_to_accept_seconds_bucket{le="11"} > 0"#, "is never `11`"),
        ("sum by (tier) (increase(sendgate_taps_total[1h])) > 0", "is grouped by `tier`"),
        ("sendgate:opt_in:ratio and on (tier) sendgate:opt_in:ratio", "is grouped by `tier`"),
        (#"sendgate:accepted_in_time:ratio5m{target="2m"} < 1"#, "is never `2m`"),
    ]) func `an expression that asks for what cannot be is found`(expression: String, problem: String) throws
    {
        let problems = try Self.series().problems(of: expression)
        #expect(problems.contains { $0.contains(problem) }, "\(problems)")
    }
}
