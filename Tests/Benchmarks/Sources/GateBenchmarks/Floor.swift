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
        }
        var recipients: Int
        var refusedPercent: Int
        var measurements: [Measurement]
    }

    /// The promise for single requests with open bodies, the drain included; a stream and sealed bodies are shown beside it.
    private static let shareMin = 0.35
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
        // At an offered rate the load sets the pace, so there is nothing to compare.
        let closedLoops = report.measurements.filter { !$0.what.contains("offered") }
        return try closedLoops.map { measurement in
            let batch = max(1, (measurement.batchTenths + 5) / 10)
            let specimen = try FloorSpecimen(
                of: measurement.what.hasPrefix("sealed") ? sealed : open, batch: batch,
                refusedPercent: report.refusedPercent, in: folder + "/specimen")
            let floor = try BenchFloor(specimen, in: folder + "/floor", people: report.recipients)
                .sendsPerSecond(seconds: seconds)
            let share = Double(measurement.handedOverPerSecond) / floor
            let isPromised = measurement.what.hasPrefix("open, single")
            return Finding(
                what: "\(measurement.what), drain included", measured: "\(measurement.handedOverPerSecond)/s",
                floor: "\(Int(100 * share)) % of raw SQLite, \(Int(floor))/s, \(batch) sends a transaction",
                promise: isPromised ? "at least \(Int(100 * shareMin)) %" : nil,
                isKept: isPromised ? share >= shareMin : nil)
        }
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
