import Foundation
import GateSteps
import GateVocabulary
import Testing

@testable import GatewayPipeline

/// The text of `/metrics`, and the handbook's table of it.
@Suite struct ExpositionTests {
    @Test(arguments: [
        ("", ""), ("plain", "plain"), ("a\"b", "a\\\"b"), ("a\\b", "a\\\\b"), ("a\nb", "a\\nb"),
        ("\\n", "\\\\n"), ("\\\"\n", "\\\\\\\"\\n"), ("æ{}=,", "æ{}=,"),
    ])
    func `a label's value is escaped as the text format has it`(value: String, written: String) {
        #expect(Exposition.escaped(value) == written)
        var page = Exposition()
        page.add(.policyInfo, [value, "b", "c"], 1)
        #expect(
            page.text.hasSuffix(
                "sendgate_policy_info{digest=\"\(written)\",reviewed=\"b\",approved=\"c\"} 1\n"))
    }

    @Test(
        arguments: [
            (0, "0"), (1, "0.001"), (10, "0.01"), (250, "0.25"), (1_000, "1"), (1_500, "1.5"),
            (12_345, "12.345"), (-1, "-0.001"), (-2_000, "-2"), (Int64.max, "9223372036854775.807"),
        ] as [(Int64, String)])
    func `milliseconds are seconds, exactly`(milliseconds: Int64, text: String) {
        #expect(MetricValue.milliseconds(milliseconds).text == text)
    }

    @Test func `families come once each, in the declared order, and only with samples`() {
        var page = Exposition()
        page.add(.queued, [], 3)
        page.add(.handOvers, ["handed_over", "push", "security", "critical"], UInt64(2))
        page.add(.handOvers, ["ambiguous", "sms", "transactional", "important"], UInt64.max)
        page.add(.hopReachable, [], isTrue: true)
        #expect(
            page.text == """
                # HELP sendgate_hand_overs_total Messages whose hand-over to the next hop ended.
                # TYPE sendgate_hand_overs_total counter
                sendgate_hand_overs_total{result="handed_over",channel="push",category="security",tier="critical"} 2
                sendgate_hand_overs_total{result="ambiguous",channel="sms",category="transactional",tier="important"} 18446744073709551615
                # HELP sendgate_queued_operations Operations waiting for the engine.
                # TYPE sendgate_queued_operations gauge
                sendgate_queued_operations 3
                # HELP sendgate_hop_reachable Whether the next hop answers as a delivery layer does.
                # TYPE sendgate_hop_reachable gauge
                sendgate_hop_reachable 1

                """)
        #expect(Exposition().text.isEmpty)
    }

    @Test func `a histogram's buckets hold all that took no longer`() {
        var histogram = TimeHistogram(of: .timeToAccept)
        for milliseconds in [0, 100, 101, 10_000, 10_001, 3_600_001] as [Int64] {
            histogram.add(milliseconds)
        }
        var page = Exposition()
        page.add(.timeToAccept, ["critical"], histogram)
        let samples = page.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
        func bucket(_ bound: String) -> String? {
            samples.first { $0.contains("le=\"\(bound)\"") }?.split(separator: " ").last.map(String.init)
        }
        #expect(bucket("0.1") == "2" && bucket("0.25") == "3" && bucket("5") == "3")
        #expect(bucket("10") == "4" && bucket("30") == "5" && bucket("3600") == "5" && bucket("+Inf") == "6")
        #expect(samples.suffix(2).first == "sendgate_time_to_accept_seconds_sum{tier=\"critical\"} 3620.203")
        #expect(samples.last == "sendgate_time_to_accept_seconds_count{tier=\"critical\"} 6")
        #expect(samples.count == MetricFamily.timeToAccept.boundsMilliseconds.count + 3)
    }

    @Test func `names and units are as Prometheus wants them`() {
        let names = MetricFamily.all.map(\.name)
        #expect(Set(names).count == names.count)
        for family in MetricFamily.all {
            #expect(family.name.hasPrefix("sendgate_"), "\(family.name)")
            #expect((family.kind == .counter) == family.name.hasSuffix("_total"), "\(family.name)")
            #expect(family.kind != .histogram || family.name.hasSuffix("_seconds"), "\(family.name)")
            #expect(family.boundsMilliseconds == family.boundsMilliseconds.sorted(), "\(family.name)")
            #expect(!family.help.contains("\n") && !family.help.contains("\\"), "\(family.name)")
            #expect(Set(family.labels.map(\.name)).count == family.labels.count, "\(family.name)")
            for name in ["milliseconds", "minutes", "counter", "gauge", "_bucket"] {
                #expect(!family.name.contains(name), "\(family.name)")
            }
        }
    }

    @Test func `the targets of the tiers are bounds of the buckets`() {
        let targets: [Tier: Int64] = [
            .critical: 10_000, .important: 60_000, .informational: 600_000, .promotional: 1_800_000,
        ]
        for tier in Tier.allCases {
            #expect(targets[tier].map(MetricFamily.timeToAccept.boundsMilliseconds.contains) == true)
        }
    }

    // MARK: The handbook

    private static let page = URL(fileURLWithPath: #filePath)
        .appendingPathComponent("../../../Sources/sendgate/Sendgate.docc/Metrics.md").standardized

    private static func rows(_ prefix: String) throws -> [String] {
        try String(contentsOf: page, encoding: .utf8).split(separator: "\n").map(String.init)
            .filter { $0.hasPrefix(prefix) }
    }

    @Test func `the handbook has every metric`() throws {
        let expected = MetricFamily.all.map { family in
            let labels = family.labels.map { "`\($0.name)`" }.joined(separator: " ")
            return "| `\(family.name)` | \(family.kind.rawValue) | \(labels) | \(family.help) |"
        }
        #expect(
            try Self.rows("| `sendgate_") == expected,
            "Metrics.md should have these rows:\n\(expected.joined(separator: "\n"))")
    }

    @Test func `the handbook has every value that a label can have`() throws {
        var expected: [String] = []
        for label in MetricFamily.all.flatMap(\.labels) {
            let values =
                switch label.values {
                case .closed(let values): values.map { "`\($0)`" }.joined(separator: " ")
                case .registered(let what, let countMax): "\(what), \(countMax) at most; then `other`"
                case .one(let what): "one value: \(what)"
                }
            let row = "| label `\(label.name)` | \(values) |"
            if !expected.contains(row) { expected.append(row) }
        }
        #expect(
            try Self.rows("| label `") == expected,
            "Metrics.md should have these rows:\n\(expected.joined(separator: "\n"))")
    }
}
