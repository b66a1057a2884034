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
            struct Sealing: Decodable {
                struct Rate: Decodable {
                    var suite: String
                    var operation: String
                    var perSecond: Int
                    var floorPerSecond: Int
                    var floorPercent: Int
                }
                var contentBytes: Int
                var rates: [Rate]
            }
            var costs: Costs
            var deviceKeys: Int
            var deviceKeyRegistrationsPerSecond: Int
            var measurements: [Measurement]
            var sealing: Sealing
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
            #expect(report.deviceKeys == 4 && report.deviceKeyRegistrationsPerSecond > 0)
            // Both operations of both suites, each with a floor of its own.
            let rates = report.sealing.rates
            #expect(report.sealing.contentBytes == 512)
            #expect(
                rates.map { "\($0.operation) \($0.suite)" } == [
                    "seal P256_SHA256_AES256GCM", "open P256_SHA256_AES256GCM",
                    "seal X25519_SHA256_CHACHA20POLY1305", "open X25519_SHA256_CHACHA20POLY1305",
                ])
            for rate in rates {
                #expect(rate.perSecond > 0 && rate.floorPerSecond > 0, "\(rate)")
                let percent = 100 * rate.perSecond / max(rate.floorPerSecond, 1)
                #expect(abs(percent - rate.floorPercent) <= 1, "\(rate)")
            }
        }

        @Test func `keys are rotated under the load and no send fails and no envelope is unreadable`() throws
        {
            struct Rotations: Decodable {
                struct Latency: Decodable { var count: Int }
                struct Row: Decodable {
                    var purpose: String
                    var count: Int
                    var sends: Int
                    var failed: Int
                    var lost: Int
                    var during: Latency
                    var opened: Int
                    var unreadable: Int
                    var rows: Int?
                    var rowsPerSecond: Int?
                }
                var without: Latency
                var rotations: [Row]
            }
            let scratch = try Scratch()
            let finished = try bench(["--json", "--rotate", "all", "--rate", "50"], in: scratch)
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let report = try decoder.decode(Rotations.self, from: Data(finished.output.utf8))
            #expect(report.without.count > 0)
            #expect(report.rotations.map(\.purpose) == ["origin", "trail", "link", "root", "data"])
            for row in report.rotations {
                #expect(row.count == (row.purpose == "data" ? 1 : 5) && row.sends > 0)
                #expect(row.during.count <= row.sends)
                #expect(row.failed == 0 && row.lost == 0 && row.unreadable == 0 && row.opened > 0)
                #expect((row.rows != nil) == (row.purpose == "data"))
            }
            #expect(try #require(report.rotations.last?.rows) > 0)
            #expect(try #require(report.rotations.last?.rowsPerSecond) > 0)
        }

        @Test func `the table names both ratios and the line about instructions`() throws {
            let scratch = try Scratch()
            let lines = try bench([], in: scratch).output.split(separator: "\n")
            #expect(lines.contains { $0.hasPrefix("what") && $0.hasSuffix("of floor") }, "\(lines)")
            #expect(lines.filter { $0.hasPrefix("open") && $0.hasSuffix(" %") }.count == 4, "\(lines)")
            #expect(
                lines.contains {
                    $0.hasPrefix("instructions: not counted: ") || $0.contains(/^open +\d+ +\d+/)
                }, "\(lines)")
            #expect(lines.contains("allocations: not counted: ask for them with --allocations"))
            #expect(
                lines.filter { $0.contains(/^(seal|open) (P256|X25519)_\w+ +\d+ +\d+ +\d+ %/) }.count == 4)
            #expect(lines.contains { $0.hasPrefix("streamed against single requests: ") })
            // Nothing is left behind.
            #expect(try FileTree.files(in: scratch.folder).allSatisfy { $0.hasPrefix("stderr-") })
        }
    }
}
