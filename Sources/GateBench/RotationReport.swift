package import CanonicalJSON
import CommandTerminal
import GateVocabulary

/// What sends met while keys were rotated.
package struct RotationReport {
    /// Latency of some sends, in microseconds.
    struct Latency {
        var count: Int
        var p50: Int
        var p99: Int

        init(_ microseconds: [Int]) {
            let sorted = microseconds.sorted()
            func percentile(_ percent: Int) -> Int {
                sorted.isEmpty ? 0 : sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
            }
            count = sorted.count
            p50 = percentile(50)
            p99 = percentile(99)
        }

        var json: JSONValue {
            [
                "count": .integer(Int64(count)), "p50_microseconds": .integer(Int64(p50)),
                "p99_microseconds": .integer(Int64(p99)),
            ]
        }
    }

    struct Row {
        var purpose: KeyPurpose
        var rotationCount: Int
        /// The longest, in milliseconds: for data until the last row was sealed anew.
        var longestMilliseconds: Int
        /// All sends of the load.
        var sendCount: Int
        /// Sends that were neither forwarded nor refused.
        var failedCount: Int
        /// Sends that were accepted (202), each of which owes one sealed message.
        var acceptedCount: Int
        /// Sends whose sealed message reached the next hop; a message that came twice counts once.
        var handedOverCount: Int
        /// Sends that were under way while a key was rotated.
        var during: Latency
        /// Of a sample of the sealed messages that the next hop was given.
        var openedCount: Int
        var unreadableCount: Int
        /// For data: rows under the earlier key, and how many were sealed anew in a second.
        var rowCount: Int?
        var rowsPerSecond: Int?

        /// Accepted sends whose message never came.
        ///
        /// A send whose answer was lost is in `failedCount`, although its message may have come: so there may be more messages
        /// than answers, and the count never goes below zero.
        var lostCount: Int { max(0, acceptedCount - handedOverCount) }
    }

    var recipients: Int
    var offeredPerSecond: Double
    /// The same load while nothing was rotated.
    var without: Latency
    var rows: [Row]

    /// Whether no send failed, the message of every accepted send was handed over, and every message that was tried was opened.
    package var isFlawless: Bool {
        rows.allSatisfy { $0.failedCount == 0 && $0.lostCount == 0 && $0.unreadableCount == 0 }
    }

    package func show() {
        var table = Table(
            "rotating", "times", "longest ms", "sends", "failed", "lost", "during", "p50 us", "p99 us",
            "opened", "unreadable", "rows/s")
        table.add(
            "nothing", "", "", "\(without.count)", "", "", "", "\(without.p50)", "\(without.p99)", "", "", "")
        for row in rows {
            table.add(
                row.purpose.rawValue, "\(row.rotationCount)", "\(row.longestMilliseconds)",
                "\(row.sendCount)",
                "\(row.failedCount)", "\(row.lostCount)", "\(row.during.count)", "\(row.during.p50)",
                "\(row.during.p99)",
                "\(row.openedCount)", "\(row.unreadableCount)", row.rowsPerSecond.map(String.init) ?? "")
        }
        for line in table.lines { Terminal.print(line) }
        Terminal.print("\(recipients) recipients, \(Int(offeredPerSecond)) sends a second offered")
        if !isFlawless { Terminal.error("a rotation cost a send or an envelope") }
    }

    package var json: JSONObject {
        [
            "recipients": .integer(Int64(recipients)),
            "offered_per_second": .integer(Int64(offeredPerSecond)), "without": without.json,
            "rotations": .array(
                rows.map { row in
                    func number(_ value: Int?) -> JSONValue { value.map { .integer(Int64($0)) } ?? .null }
                    return [
                        "purpose": .string(row.purpose.rawValue), "count": number(row.rotationCount),
                        "longest_milliseconds": number(row.longestMilliseconds),
                        "sends": number(row.sendCount), "failed": number(row.failedCount),
                        "lost": number(row.lostCount),
                        "during": row.during.json, "opened": number(row.openedCount),
                        "unreadable": number(row.unreadableCount), "rows": number(row.rowCount),
                        "rows_per_second": number(row.rowsPerSecond),
                    ]
                }),
        ]
    }
}
