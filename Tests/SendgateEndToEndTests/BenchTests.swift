import Foundation
import GateTestKit
import Testing

extension EndToEnd {
    /// `sendgate bench`, as short as it can be: what it reports, not how fast.
    @Suite struct BenchTests {
        private struct Report: Decodable {
            struct Measurement: Decodable {
                var what: String
                var handedOverPerSecond: Int
                var batchTenths: Int
                var drainMilliseconds: Int
                var answers: [String: Int]
            }
            var deviceKeys: Int
            var deviceKeyRegistrationsPerSecond: Int
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

        @Test func `a run says how fast sends are answered and handed over`() throws {
            let scratch = try Scratch()
            let finished = try bench(["--json"], in: scratch)
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let report = try decoder.decode(Report.self, from: Data(finished.output.utf8))
            #expect(report.measurements.count == 6)
            for measurement in report.measurements {
                #expect(Set(measurement.answers.keys).isSubset(of: ["202", "403"]), "\(measurement)")
                #expect(measurement.handedOverPerSecond > 0)
                // What `GateBenchmarks POLICIES floor` writes to a transaction.
                #expect(measurement.batchTenths > 0)
            }
            #expect(report.deviceKeys == 4 && report.deviceKeyRegistrationsPerSecond > 0)
        }

        @Test func `a soak holds memory and descriptors flat, and says what a send leaves on disk`() throws {
            struct Soaked: Decodable {
                struct Sample: Decodable {
                    var seconds: Int
                    var sends: Int
                    var descriptors: Int
                    var memoryMebibytes: Int
                    var trailBytes: Int
                    var waiting: Int
                }
                var answers: [String: Int]
                var findings: [String]?
                var samples: [Sample]
                var trailBytesASend: Int
                var databaseBytesASend: Int
            }
            let scratch = try Scratch()
            // Whole, an hour; short, what shows that it measures.
            let minutes = Soak.isWhole ? "60" : "0.05"
            let finished = try Finished.run(
                [
                    Machine.sendgate, "bench", "--json", "--soak", minutes, "--seconds",
                    Soak.isWhole ? "10" : "0.2", "--recipients", Soak.isWhole ? "20000" : "40", "--keys",
                    Soak.isWhole ? "500" : "4", "--connections", "8", "--policies", Machine.policies,
                    "--directory", scratch.folder,
                ], in: scratch, within: Soak.isWhole ? 5_000 : 120)
            #expect(finished.ending == .exit(0), "\(finished)")
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let report = try decoder.decode(Soaked.self, from: Data(finished.output.utf8))
            #expect(report.findings == (Soak.isWhole ? [] : nil))
            #expect(Set(report.answers.keys).isSubset(of: ["202", "403"]), "\(report.answers)")
            let (first, last) = (try #require(report.samples.first), try #require(report.samples.last))
            #expect(first.sends == 0 && last.sends == report.answers.values.reduce(0, +) && last.sends > 0)
            #expect(last.trailBytes > first.trailBytes && report.trailBytesASend > 500)
            #expect(last.waiting == 0 && last.memoryMebibytes > 10 && last.descriptors < 100)
            #expect(report.samples.map(\.seconds) == report.samples.map(\.seconds).sorted())
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

        @Test func `the table has a line for each measurement`() throws {
            let scratch = try Scratch()
            let lines = try bench([], in: scratch).output.split(separator: "\n")
            #expect(
                lines.contains { $0.hasPrefix("what") && $0.hasSuffix("handed over/s") }, "\(lines)")
            #expect(
                lines.filter { $0.contains(/^(?:open|sealed), (?:single|stream), .* \d+$/) }.count == 6,
                "\(lines)")
            #expect(lines.contains { $0.hasPrefix("streamed against single requests: ") })
            // Nothing is left behind.
            #expect(try FileTree.files(in: scratch.folder).allSatisfy { $0.hasPrefix("stderr-") })
        }
    }
}
