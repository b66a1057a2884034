package import CanonicalJSON
import CommandTerminal

/// What a gateway held while it was sent to for a long time at one rate.
package struct SoakReport {
    /// What the gateway held at one moment.
    package struct Sample: Hashable, Sendable {
        /// Seconds since the load began.
        package var seconds: Int
        /// Sends answered so far.
        package var sendCount: Int
        package var memoryMebibytes: Int
        package var descriptorCount: Int
        package var threadCount: Int
        /// Bytes of the databases, their logs left out.
        package var databaseByteCount: Int64
        /// Bytes of the databases' write-ahead logs.
        package var logByteCount: Int64
        package var trailByteCount: Int64
        /// Messages that wait for the hop.
        package var waitingCount: Int
    }

    package var offeredPerSecond: Double
    package var countByStatus: [Int: Int]
    package var p50Microseconds: Int
    package var p99Microseconds: Int
    package var p999Microseconds: Int
    package var samples: [Sample]

    /// Nothing is judged before: caches fill, and one page of a table is many sends.
    package static let judgedSeconds = 600
    /// Memory may end so much above that of the second quarter: a batch more or less, and what the allocator keeps.
    private static let memorySlackMebibytes = 12
    /// A connection more or less, a file that is being written, a thread of a pool.
    private static let countSlack = 8
    /// A log that is full, and one that was just moved.
    private static let logSlackByteCount: Int64 = 96 << 20
    /// Bytes a send in the last quarter, against those in the second, in percent.
    private static let growthSlackPercent: Int64 = 25

    /// Where a quarter of the run begins: the sample nearest to it.
    private func sample(_ quarter: Int) -> Sample { samples[(samples.count - 1) * quarter / 4] }

    /// What grew that should not, a sentence each; empty where all is flat, and `nil` of a run too short to say.
    package var findings: [String]? {
        guard let last = samples.last, last.seconds >= Self.judgedSeconds, samples.count >= 9 else {
            return nil
        }
        var findings: [String] = []
        // The first quarter fills caches and pools.
        let settled = samples[((samples.count - 1) / 4)...((samples.count - 1) / 2)]
        let memory = settled.map(\.memoryMebibytes).max() ?? 0
        let end = samples.suffix((samples.count + 3) / 4)
        let lastMemory = end.map(\.memoryMebibytes).min() ?? 0
        if lastMemory > memory + Self.memorySlackMebibytes {
            findings.append(
                "memory grew: never below \(lastMemory) MiB in the last quarter, at most \(memory) in the second"
            )
        }
        for (name, path) in Self.counted {
            let before = settled.map { $0[keyPath: path] }.max() ?? 0
            let after = end.map { $0[keyPath: path] }.min() ?? 0
            guard after > before + Self.countSlack else { continue }
            findings.append(
                "\(name) grew: never below \(after) in the last quarter, at most \(before) in the second")
        }
        let log = settled.map(\.logByteCount).max() ?? 0
        if let after = end.map(\.logByteCount).min(), after > log + Self.logSlackByteCount {
            findings.append(
                "the log grew: never below \(after) bytes in the last quarter, at most \(log) in the second")
        }
        for (name, path) in Self.growing {
            let (second, fourth) = (bytesASend(path, from: 1, to: 2), bytesASend(path, from: 3, to: 4))
            // The database grows by a whole log at a time.
            let slack = Self.logSlackByteCount / Int64(max(1, last.sendCount - sample(3).sendCount))
            if fourth > second + second * Self.growthSlackPercent / 100 + slack {
                findings.append("the \(name) grew by \(fourth) bytes a send at the end, \(second) before")
            }
        }
        let failed = countByStatus.filter { ![202, 403].contains($0.key) }
        if !failed.isEmpty {
            let counts = failed.sorted { $0.key < $1.key }.map { status, count in
                status == 0 ? "\(count) without an answer" : "\(count) with \(status)"
            }
            findings.append("sends were not decided: \(counts.joined(separator: ", "))")
        }
        return findings
    }

    private static let counted: [(name: String, path: any KeyPath<Sample, Int> & Sendable)] = [
        ("descriptors", \.descriptorCount), ("threads", \.threadCount),
    ]

    private static let growing: [(name: String, path: any KeyPath<Sample, Int64> & Sendable)] = [
        ("database", \.databaseByteCount), ("trail", \.trailByteCount),
    ]

    private func bytesASend(_ path: KeyPath<Sample, Int64>, from: Int, to: Int) -> Int64 {
        let (begin, end) = (sample(from), sample(to))
        let count = Int64(end.sendCount - begin.sendCount)
        return count > 0 ? (end[keyPath: path] - begin[keyPath: path]) / count : 0
    }

    /// Bytes that a send left in the databases, from the first quarter's end on.
    package var databaseBytesASend: Int64 { bytesASend(\.databaseByteCount, from: 1, to: 4) }
    package var trailBytesASend: Int64 { bytesASend(\.trailByteCount, from: 1, to: 4) }

    package func show() {
        var table = Table("minute", "sends", "MiB", "files", "threads", "database", "log", "trail", "waiting")
        // Twelve lines of a long run.
        let step = max(1, samples.count / 12)
        for (number, sample) in samples.enumerated()
        where number.isMultiple(of: step) || number == samples.count - 1 {
            let minutes = Double(sample.seconds) / 60
            table.add(
                "\((minutes * 10).rounded() / 10)", "\(sample.sendCount)", "\(sample.memoryMebibytes)",
                "\(sample.descriptorCount)", "\(sample.threadCount)",
                Self.mebibytes(sample.databaseByteCount),
                Self.mebibytes(sample.logByteCount), Self.mebibytes(sample.trailByteCount),
                "\(sample.waitingCount)")
        }
        for line in table.lines { Terminal.print(line) }
        Terminal.print(
            "\(Int(offeredPerSecond)) sends a second; p50 \(p50Microseconds) us, p99 \(p99Microseconds) us, p99.9 \(p999Microseconds) us"
        )
        Terminal.print(
            "a send left \(databaseBytesASend) bytes in the database and \(trailBytesASend) in the trail")
        guard let findings else { return Terminal.print("shorter than ten minutes: nothing is judged") }
        if findings.isEmpty { Terminal.print("flat: memory, descriptors, and bytes a send") }
        for finding in findings { Terminal.warning(finding) }
    }

    private static func mebibytes(_ count: Int64) -> String { "\(count >> 20) MiB" }

    package var json: JSONObject {
        [
            "offered_per_second": .integer(Int64(offeredPerSecond)),
            "answers": .object(
                JSONObject(countByStatus.map { ("\($0.key)", JSONValue.integer(Int64($0.value))) })),
            "p50_microseconds": .integer(Int64(p50Microseconds)),
            "p99_microseconds": .integer(Int64(p99Microseconds)),
            "p999_microseconds": .integer(Int64(p999Microseconds)),
            "database_bytes_a_send": .integer(databaseBytesASend),
            "trail_bytes_a_send": .integer(trailBytesASend),
            "findings": findings.map { .array($0.map(JSONValue.string)) } ?? .null,
            "samples": .array(samples.map { .object(Self.json($0)) }),
        ]
    }

    private static func json(_ sample: Sample) -> JSONObject {
        [
            "seconds": .integer(Int64(sample.seconds)), "sends": .integer(Int64(sample.sendCount)),
            "memory_mebibytes": .integer(Int64(sample.memoryMebibytes)),
            "descriptors": .integer(Int64(sample.descriptorCount)),
            "threads": .integer(Int64(sample.threadCount)),
            "database_bytes": .integer(sample.databaseByteCount), "log_bytes": .integer(sample.logByteCount),
            "trail_bytes": .integer(sample.trailByteCount), "waiting": .integer(Int64(sample.waitingCount)),
        ]
    }
}
