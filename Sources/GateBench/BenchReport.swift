package import CanonicalJSON
import CommandTerminal
import Foundation
import Histogram

/// Everything one run of `sendgate bench` found.
package struct BenchReport {
    var recipients: Int
    var keys: Int
    var registrationsPerSecond: Double
    /// Device keys, registered and proved.
    var keyRegistrationsPerSecond: Double
    var refusedPercent: Int
    var rows: [BenchRow]
    var peakMemoryMebibytes: Int?

    package func show() {
        var table = Table(
            "what", "rate/s", "p50 us", "p99 us", "p99.9 us", "refused", "batch", "handed over/s")
        for row in rows {
            let refused = row.measured.countByStatus[403, default: 0]
            table.add(
                row.what, Self.whole(row.measured.perSecond), "\(row.microseconds(50))",
                "\(row.microseconds(99))", "\(row.microseconds(99.9))",
                "\(row.measured.count == 0 ? 0 : 100 * refused / row.measured.count) %",
                Self.tenths(row.batch), Self.whole(row.handedOverPerSecond))
        }
        for line in table.lines { Terminal.print(line) }
        Terminal.print("")
        Terminal.print("where the time goes, in percent of one core:")
        for row in rows {
            let shares = row.shares.map { "\($0.stage) \($0.percent)" }.joined(separator: ", ")
            Terminal.print("  \(row.what): \(shares)")
        }
        Terminal.print("the slowest, by when they should have started:")
        for row in rows where row.isOpenLoop {
            let slowest = row.measured.slowest(5).map {
                "\(Self.tenths(Double($0.microseconds) / 1_000)) ms at \(Self.tenths(Double($0.tenth) / 10)) s"
            }
            Terminal.print("  \(row.what): \(slowest.joined(separator: ", "))")
        }
        if let streamed = streamedPercent {
            Terminal.print("streamed against single requests: \(streamed) %")
        }
        Terminal.print(
            "\(recipients) recipients registered at \(Self.whole(registrationsPerSecond))/s, \(keys) device keys "
                + "registered and proved at \(Self.whole(keyRegistrationsPerSecond))/s; the gateway held at most \(peakMemoryMebibytes.map(String.init) ?? "?") MiB"
        )
        for row in rows where !row.notTaken.isEmpty {
            let answers = row.notTaken.map {
                $0.status == 0 ? "\($0.count) not asked in time" : "\($0.count) answered \($0.status)"
            }.joined(separator: ", ")
            Terminal.warning("\(row.what): \(answers)")
        }
    }

    package var json: JSONObject {
        [
            "recipients": .integer(Int64(recipients)), "device_keys": .integer(Int64(keys)),
            "registrations_per_second": .integer(Int64(registrationsPerSecond)),
            "device_key_registrations_per_second": .integer(Int64(keyRegistrationsPerSecond)),
            "refused_percent": .integer(Int64(refusedPercent)),
            "peak_memory_mebibytes": peakMemoryMebibytes.map { .integer(Int64($0)) } ?? .null,
            "measurements": .array(rows.map { .object(Self.json($0)) }),
        ]
    }

    private static func json(_ row: BenchRow) -> JSONObject {
        [
            "what": .string(row.what), "count": .integer(Int64(row.measured.count)),
            "milliseconds": .integer(Int64(row.measured.seconds * 1_000)),
            "per_second": .integer(Int64(row.measured.perSecond)),
            "drain_milliseconds": .integer(Int64(row.drainSeconds * 1_000)),
            "handed_over_per_second": .integer(Int64(row.handedOverPerSecond)),
            "p50_microseconds": .integer(Int64(row.microseconds(50))),
            "p99_microseconds": .integer(Int64(row.microseconds(99))),
            "p999_microseconds": .integer(Int64(row.microseconds(99.9))),
            "slowest": .array(
                row.measured.slowest(5).map {
                    [
                        "at_milliseconds": .integer(Int64(100 * $0.tenth)),
                        "microseconds": .integer(Int64($0.microseconds)),
                    ]
                }),
            "batch_tenths": .integer(Int64(row.batch * 10)),
            "answers": .object(
                JSONObject(
                    row.measured.countByStatus.map { ("\($0.key)", JSONValue.integer(Int64($0.value))) })),
            "core_percent": .object(
                JSONObject(row.shares.map { ($0.stage, JSONValue.integer(Int64($0.percent))) })),
        ]
    }

    /// The open bodies' closed loops: the same number under way, with and without HTTP around each.
    private var streamedPercent: Int? {
        let closed = rows.filter { !$0.isOpenLoop && $0.what.hasPrefix("open") }
        guard let single = closed.first(where: { $0.what.contains("single") }),
            let streamed = closed.first(where: { $0.what.contains("stream") })
        else { return nil }
        guard single.handedOverPerSecond > 0 else { return 0 }
        return Int(100 * streamed.handedOverPerSecond / single.handedOverPerSecond)
    }

    private static func whole(_ value: Double) -> String { String(Int(value)) }
    private static func tenths(_ value: Double) -> String { String(format: "%.1f", value) }
}

/// One measurement.
struct BenchRow {
    var what: String
    var measured: Load.Measurement
    /// From the last answer until everything was handed over.
    var drainSeconds: Double
    /// Sends to a transaction, those of results alone among the transactions.
    var batch: Double
    /// Processor time of each stage, in percent of one core.
    var shares: [(stage: String, percent: Int)]

    /// Sends a second from the first request until the last hand-over: the drain counts.
    var handedOverPerSecond: Double {
        let seconds = measured.seconds + drainSeconds
        return seconds > 0 ? Double(measured.count) / seconds : 0
    }

    var isOpenLoop: Bool

    func microseconds(_ percentile: Double) -> Int { Int(measured.latency.valueAtPercentile(percentile)) }

    /// Answers that decided nothing: the gateway took no more.
    var notTaken: [(status: Int, count: Int)] {
        measured.countByStatus.filter { $0.key != 202 && $0.key != 403 }
            .sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
