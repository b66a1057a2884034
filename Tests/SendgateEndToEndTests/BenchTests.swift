import Foundation
import Testing

extension EndToEnd {
    /// `sendgate bench`, as short as it can be: what it reports, not how fast.
    @Suite struct BenchTests {
        private struct Report: Decodable {
            struct Costs: Decodable {
                struct Cost: Decodable {
                    var what: String
                    var count: Int
                    var instructions: Int?
                    var engineInstructions: Int?
                    var allocations: Int?
                }
                var perSend: [Cost]
                var instructionsNotCounted: String?
                var allocationsNotCounted: String?
            }
            struct Measurement: Decodable {
                var what: String
                var floorPerSecond: Int
                var floorPercent: Int?
                var handedOverPerSecond: Int
                var drainMilliseconds: Int
                var answers: [String: Int]
            }
            var costs: Costs
            var measurements: [Measurement]
        }

        private func bench(_ more: [String], in scratch: Scratch) throws -> Finished {
            let finished = try Finished.run(
                [
                    Machine.sendgate, "bench", "--quick", "--seconds", "0.2", "--recipients", "40", "--keys",
                    "4", "--connections", "8", "--policies", Machine.policies, "--directory", scratch.folder,
                ] + more, in: scratch, within: 120)
            #expect(finished.ending == .exit(0), "\(finished)")
            return finished
        }

        @Test func `a run says what a send costs beside the rates and why it does not`() throws {
            let scratch = try Scratch()
            let finished = try bench(["--json"], in: scratch)
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let report = try decoder.decode(Report.self, from: Data(finished.output.utf8))
            // A field that is null is there all the same.
            for field in ["instructions", "instructions_not_counted", "engine_instructions", "allocations"] {
                #expect(finished.output.contains("\"\(field)\":"), "\(field)")
            }
            #expect(report.costs.perSend.map(\.what) == ["open", "sealed", "refused"])
            for cost in report.costs.perSend {
                #expect(cost.count == (cost.instructions == nil ? 0 : 500))
                // A machine with a counter counts, and any other says why not.
                #expect((cost.instructions == nil) == (report.costs.instructionsNotCounted != nil))
                #expect((cost.engineInstructions == nil) == (cost.instructions == nil))
                #expect(cost.instructions.map { $0 > 10_000 } ?? true)
                #expect(cost.allocations == nil)
            }
            #expect(report.costs.allocationsNotCounted == "ask for them with --allocations")
            #expect(report.measurements.count == 6)
            for measurement in report.measurements {
                #expect(Set(measurement.answers.keys).isSubset(of: ["202", "403"]), "\(measurement)")
                #expect(measurement.floorPerSecond > 0 && measurement.handedOverPerSecond > 0)
            }
            // Single requests and the stream are held against the floor, for open and sealed bodies.
            #expect(report.measurements.filter { $0.floorPercent != nil }.count == 4)
        }

        @Test func `the table names both ratios and the line about instructions`() throws {
            let scratch = try Scratch()
            let lines = try bench([], in: scratch).output.split(separator: "\n")
            #expect(lines.contains { $0.hasPrefix("what") && $0.hasSuffix("of floor") }, "\(lines)")
            #expect(lines.filter { $0.hasPrefix("open") && $0.hasSuffix(" %") }.count == 2, "\(lines)")
            #expect(
                lines.contains {
                    $0.hasPrefix("instructions: not counted: ") || $0.contains(/^open +\d+ +\d+/)
                }, "\(lines)")
            #expect(lines.contains("allocations: not counted: ask for them with --allocations"))
            #expect(lines.contains { $0.hasPrefix("streamed against single requests: ") })
            // Nothing is left behind.
            #expect(try FileTree.files(in: scratch.folder).allSatisfy { $0.hasPrefix("stderr-") })
        }
    }
}
