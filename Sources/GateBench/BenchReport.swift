package import CanonicalJSON
import CommandTerminal
import Foundation
import Histogram
import SealedFormat
import ThreadMetering

/// Everything one run of `sendgate bench` found.
package struct BenchReport {
    var recipients: Int
    var keys: Int
    var registrationsPerSecond: Double
    /// Device keys, registered and proved.
    var keyRegistrationsPerSecond: Double
    var refusedPercent: Int
    var rows: [BenchRow]
    var costs: SendCosts
    var sealing: SealingFloor
    var peakMemoryMebibytes: Int?

    package func show() {
        var table = Table(
            "what", "rate/s", "p50 us", "p99 us", "p99.9 us", "refused", "batch", "handed over/s", "floor/s",
            "of floor")
        for row in rows {
            let refused = row.measured.countByStatus[403, default: 0]
            table.add(
                row.what, Self.whole(row.measured.perSecond), "\(row.microseconds(50))",
                "\(row.microseconds(99))", "\(row.microseconds(99.9))",
                "\(row.measured.count == 0 ? 0 : 100 * refused / row.measured.count) %",
                Self.tenths(row.batch), Self.whole(row.handedOverPerSecond), Self.whole(row.floorPerSecond),
                row.ratioPercent.map { "\($0) %" } ?? "-")
        }
        for line in table.lines { Terminal.print(line) }
        Terminal.print("")
        for line in costs.lines { Terminal.print(line) }
        Terminal.print("")
        var seals = Table("\(SealingFloor.contentByteCount) B on one thread", "rate/s", "floor/s", "of floor")
        for rate in sealing.rates {
            seals.add(
                "\(rate.direction.rawValue) \(rate.suite.rawValue)", Self.whole(rate.perSecond),
                Self.whole(rate.floorPerSecond), "\(percent(rate.perSecond, rate.floorPerSecond)) %")
        }
        for line in seals.lines { Terminal.print(line) }
        if let first = sealing.rates.first {
            Terminal.print(
                "seal \(first.suite.rawValue) on two threads: \(Self.whole(sealing.sealedPerSecondOnTwo))/s, "
                    + "\(percent(sealing.sealedPerSecondOnTwo, first.perSecond)) % of one thread")
        }
        Terminal.print("")
        Terminal.print("where the time goes, in percent of one core:")
        for row in rows {
            let shares = row.shares.map { "\($0.stage) \($0.percent)" }.joined(separator: ", ")
            Terminal.print("  \(row.what): \(shares)")
        }
        if let streamed = streamedPercent {
            Terminal.print("streamed against single requests: \(streamed) %")
        }
        Terminal.print(
            "\(recipients) recipients registered at \(Self.whole(registrationsPerSecond))/s, \(keys) device keys "
                + "registered and proved at \(Self.whole(keyRegistrationsPerSecond))/s; the gateway held at most \(peakMemoryMebibytes.map(String.init) ?? "?") MiB"
        )
        Terminal.print(
            "floor: the store's rows of sends and of their results, written by SQLite's C interface in a bare loop, "
                + "at the same batch size, on the same disk; for sealing, an ephemeral key, its agreement and an Ed25519 "
                + "signature, and for opening, reading that key, the agreement and verifying the signature"
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
            "refused_percent": .integer(Int64(refusedPercent)), "costs": .object(costs.json),
            "peak_memory_mebibytes": peakMemoryMebibytes.map { .integer(Int64($0)) } ?? .null,
            "sealing": [
                "content_bytes": .integer(Int64(SealingFloor.contentByteCount)),
                "rates": .array(
                    sealing.rates.map {
                        [
                            "suite": .string($0.suite.rawValue), "operation": .string($0.direction.rawValue),
                            "per_second": .integer(Int64($0.perSecond)),
                            "floor_per_second": .integer(Int64($0.floorPerSecond)),
                            "floor_percent": .integer(Int64(percent($0.perSecond, $0.floorPerSecond))),
                        ]
                    }),
                "sealed_per_second_on_two_threads": .integer(Int64(sealing.sealedPerSecondOnTwo)),
            ],
            "measurements": .array(rows.map { .object(Self.json($0)) }),
        ]
    }

    private static func json(_ row: BenchRow) -> JSONObject {
        var object: JSONObject = [
            "what": .string(row.what), "count": .integer(Int64(row.measured.count)),
            "milliseconds": .integer(Int64(row.measured.seconds * 1_000)),
            "per_second": .integer(Int64(row.measured.perSecond)),
            "drain_milliseconds": .integer(Int64(row.drainSeconds * 1_000)),
            "handed_over_per_second": .integer(Int64(row.handedOverPerSecond)),
            "p50_microseconds": .integer(Int64(row.microseconds(50))),
            "p99_microseconds": .integer(Int64(row.microseconds(99))),
            "p999_microseconds": .integer(Int64(row.microseconds(99.9))),
            "batch_tenths": .integer(Int64(row.batch * 10)),
            "floor_per_second": .integer(Int64(row.floorPerSecond)),
            "answers": .object(
                JSONObject(
                    row.measured.countByStatus.map { ("\($0.key)", JSONValue.integer(Int64($0.value))) })),
            "core_percent": .object(
                JSONObject(row.shares.map { ($0.stage, JSONValue.integer(Int64($0.percent))) })),
        ]
        if let ratio = row.ratioPercent { object["floor_percent"] = .integer(Int64(ratio)) }
        return object
    }

    /// The open bodies' closed loops: the same number under way, with and without HTTP around each.
    private var streamedPercent: Int? {
        let closed = rows.filter { !$0.isOpenLoop && $0.what.hasPrefix("open") }
        guard let single = closed.first(where: { $0.what.contains("single") }),
            let streamed = closed.first(where: { $0.what.contains("stream") })
        else { return nil }
        return percent(streamed.handedOverPerSecond, single.handedOverPerSecond)
    }

    private func percent(_ part: Double, _ whole: Double) -> Int { whole > 0 ? Int(100 * part / whole) : 0 }
    private static func whole(_ value: Double) -> String { String(Int(value)) }
    private static func tenths(_ value: Double) -> String { String(format: "%.1f", value) }
}

/// One measurement and its floor.
struct BenchRow {
    var what: String
    var measured: Load.Measurement
    /// From the last answer until everything was handed over.
    var drainSeconds: Double
    /// Sends to a transaction, those of results alone among the transactions.
    var batch: Double
    /// Processor time of each stage, in percent of one core.
    var shares: [(stage: String, percent: Int)]
    var floorPerSecond = 0.0

    /// Sends a second from the first request until the last hand-over: what the floor does, too.
    var handedOverPerSecond: Double {
        let seconds = measured.seconds + drainSeconds
        return seconds > 0 ? Double(measured.count) / seconds : 0
    }

    /// `nil` for a measurement whose rate was asked for, which no floor can judge.
    var ratioPercent: Int? {
        isOpenLoop || floorPerSecond == 0 ? nil : Int(100 * handedOverPerSecond / floorPerSecond)
    }
    var isOpenLoop: Bool

    func microseconds(_ percentile: Double) -> Int { Int(measured.latency.valueAtPercentile(percentile)) }

    /// Answers that decided nothing: the gateway took no more.
    var notTaken: [(status: Int, count: Int)] {
        measured.countByStatus.filter { $0.key != 202 && $0.key != 403 }
            .sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}

/// What one send costs the gateway, by what becomes of it.
struct SendCosts {
    struct Cost {
        var what: String
        var sendCount = 0
        /// Of all threads.
        var counts: [ThreadCounters.Quantity: Int] = [:]
        var engineInstructions: Int?
    }
    var costs = ["open", "sealed", "refused"].map { Cost(what: $0) }
    /// Why something is not counted.
    var refused: [ThreadCounters.Quantity: ThreadCounters.Refused] = [:]

    mutating func add(
        _ counts: [String: UInt64], of quantity: ThreadCounters.Quantity, _ what: String, _ sendCount: Int
    ) {
        guard let index = costs.firstIndex(where: { $0.what == what }) else { return }
        costs[index].sendCount = sendCount
        costs[index].counts[quantity] = Int(counts.values.reduce(0, +)) / sendCount
        if quantity == .instructions {
            costs[index].engineInstructions = Int(counts[GatewayStage.engine, default: 0]) / sendCount
        }
    }

    private static let quantities: [ThreadCounters.Quantity] = [.instructions, .allocations]

    var lines: [String] {
        var table = Table("per send", "instructions", "of the engine", "allocations")
        func number(_ value: Int?) -> String { value.map(String.init) ?? "-" }
        for cost in costs {
            table.add(
                cost.what, number(cost.counts[.instructions]), number(cost.engineInstructions),
                number(cost.counts[.allocations]))
        }
        let reasons = Self.quantities.compactMap { quantity in
            refused[quantity].map { "\(quantity.rawValue): not counted: \($0)" }
        }
        return (reasons.count < Self.quantities.count ? table.lines : []) + reasons
    }

    var json: JSONObject {
        func number(_ value: Int?) -> JSONValue { value.map { .integer(Int64($0)) } ?? .null }
        func reason(_ quantity: ThreadCounters.Quantity) -> JSONValue {
            refused[quantity].map { .string($0.description) } ?? .null
        }
        return [
            "per_send": .array(
                costs.map {
                    [
                        "what": .string($0.what), "count": .integer(Int64($0.sendCount)),
                        "engine_instructions": number($0.engineInstructions),
                        "instructions": number($0.counts[.instructions]),
                        "allocations": number($0.counts[.allocations]),
                    ]
                }), "instructions_not_counted": reason(.instructions),
            "allocations_not_counted": reason(.allocations),
        ]
    }
}
