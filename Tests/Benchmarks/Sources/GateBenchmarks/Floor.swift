import Foundation
import GateFloor

/// What `sendgate bench` measured over sockets, against SQLite's C interface writing the same rows at the same batch size, on
/// the same disk, in the same run.
///
/// The shapes of the rows come from a gateway in this process; rates and batch sizes from the program.
struct Floor {
    /// The members of `sendgate bench --json` that are compared.
    private struct Report: Decodable {
        struct Measurement: Decodable {
            var what: String
            var batchTenths: Int
            var handedOverPerSecond: Int
            var p50Microseconds: Int
            var p99Microseconds: Int

            /// Whether the load set the pace.
            var isOpenLoop: Bool { what.contains("offered") }
            /// The promises are about single requests with open bodies; a stream and sealed bodies are shown beside them.
            var isPromised: Bool { what.hasPrefix("open, single") }
        }
        var recipients: Int
        var refusedPercent: Int
        var measurements: [Measurement]
    }

    /// Of what the floor writes, the drain included.
    private static let shareMin = 0.35
    /// At half of the full rate: how many times as long as the floor's transaction an answer takes, both at the 99th percentile.
    private static let latencyRatioMax = 10.0
    private static let seconds = 3.0

    /// - Parameters:
    ///   - program: A release build of `sendgate`.
    ///   - more: Further arguments of `sendgate bench`.
    ///   - folder: An existing one, on the disk to measure.
    static func findings(
        policies: String, program: String, more: [String], in folder: String
    ) async throws -> [Finding] {
        let report = try measured(
            program, ["bench", "--json", "--policies", policies, "--directory", folder] + more)
        let sends = try Sends(policies: policies, in: folder)
        defer { sends.stop() }
        let open = try await sends.rows(of: .open)
        let sealed = try await sends.rows(of: .sealed)
        return try report.measurements.map { measurement in
            let batch = max(1, (measurement.batchTenths + 5) / 10)
            let specimen = try FloorSpecimen(
                of: measurement.what.hasPrefix("sealed") ? sealed : open, batch: batch,
                refusedPercent: report.refusedPercent, in: folder + "/specimen")
            let floor = try BenchFloor(specimen, in: folder + "/floor", people: report.recipients)
                .measure(seconds: seconds)
            return measurement.isOpenLoop
                ? latency(of: measurement, floor, batch) : rate(of: measurement, floor, batch)
        }
    }

    private static func rate(
        of measurement: Report.Measurement, _ floor: BenchFloor.Measurement, _ batch: Int
    ) -> Finding {
        let share = Double(measurement.handedOverPerSecond) / floor.sendsPerSecond
        return Finding(
            what: "\(measurement.what), drain included", measured: "\(measurement.handedOverPerSecond)/s",
            floor:
                "\(Int(100 * share)) % of raw SQLite, \(Int(floor.sendsPerSecond))/s, \(batch) sends a transaction",
            promise: measurement.isPromised ? "at least \(Int(100 * shareMin)) %" : nil,
            isKept: measurement.isPromised ? share >= shareMin : nil)
    }

    private static func latency(
        of measurement: Report.Measurement, _ floor: BenchFloor.Measurement, _ batch: Int
    ) -> Finding {
        let ratio = Double(measurement.p99Microseconds) / Double(max(floor.p99Microseconds, 1))
        return Finding(
            what: "\(measurement.what), p99 (p50 \(measurement.p50Microseconds) us)",
            measured: "\(measurement.p99Microseconds) us",
            floor:
                "\(String(format: "%.1f", ratio)) times raw SQLite, \(floor.p99Microseconds) us, \(batch) sends a transaction",
            promise: measurement.isPromised ? "at most \(Int(latencyRatioMax)) times" : nil,
            isKept: measurement.isPromised ? ratio <= latencyRatioMax : nil)
    }

    private static func measured(_ program: String, _ arguments: [String]) throws -> Report {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            fatalError("`\(program) bench` ended with \(process.terminationStatus)")
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Report.self, from: bytes)
    }
}
