import ArgumentParser
import CanonicalJSON
import CommandTerminal
import Foundation

/// `sendgate status`: is it ready, and what does it count.
struct Status: GateCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says whether a send would be taken now.",
        usage: "sendgate status --socket PATH [--json]",
        discussion: """
            Also shows what the gateway counts. Ends with 0 when it is ready, with 1 when it is not, or does not \
            answer.
            """)

    static let example = "sendgate status --socket /tmp/gate/gate.sock"

    @OptionGroup var socket: SocketOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let (readiness, metrics) = try await socket.connection().use {
            (try await $0.get("/readyz"), try await $0.get("/metrics"))
        }
        guard let object = readiness.object, let isReady = object["ready"]?.booleanValue else {
            throw readiness.reportProblem()
        }
        // Readiness is for everybody; counting needs a grant, and a command that lacks it still answers.
        let counts = metrics.status == 200 ? Self.samples(metrics.text) : [:]
        if output.json {
            var answer = object
            answer["metrics"] = .object(
                JSONObject(
                    counts.compactMap { entry in
                        Int64(entry.value).map { (entry.key, JSONValue.integer($0)) }
                    }))
            Terminal.print(answer)
        } else {
            show(isReady, object["checks"]?.arrayValue ?? [], counts)
            // While it starts, the checks say so.
            if metrics.status == 403 {
                Terminal.note("sendgate: hint: counts need the grant `metrics.read`")
            }
        }
        if !isReady { throw ExitStatus.failed }
    }

    private func show(_ isReady: Bool, _ checks: [JSONValue], _ counts: [String: String]) {
        Terminal.print(isReady ? "ready" : "not ready")
        var table = Table("check", "state", "")
        for check in checks {
            table.add(
                check["name"]?.stringValue ?? "?", check["passed"]?.booleanValue == true ? "ok" : "FAILED",
                check["detail"]?.stringValue ?? "")
        }
        for line in table.lines.dropFirst() { Terminal.print("  \(line)") }
        guard !counts.isEmpty else { return }
        func count(_ name: String) -> String { counts["sendgate_\(name)"] ?? "?" }
        let digest = Self.label("digest", of: "sendgate_policy_info", in: counts) ?? "?"
        Terminal.print("policy    \(digest)")
        if let reviewed = Self.label("reviewed", of: "sendgate_policy_info", in: counts), reviewed != digest {
            Terminal.print(
                "          development adds a caller to it; the pages alone, as `policy check` says, are \(reviewed)"
            )
        }
        Terminal.print(
            "trail     \(count("trail_entries")) entries, \(count("publish_lag_seconds")) s behind")
        Terminal.print("outbox    \(count("outbox_rows")) messages, \(count("outbox_bytes")) bytes")
        let shadowed = counts.filter { $0.key.hasPrefix("sendgate_shadow_decisions_total{") }
            .values.compactMap { Int64($0) }.reduce(0, +)
        if shadowed > 0 {
            Terminal.print("shadow    \(shadowed) sends only decided and recorded since the start")
        }
        Terminal.print(
            "engine    \(count("operations_total")) operations in \(count("batches_total")) batches, \(count("queued_operations")) waiting"
        )
        Terminal.print(
            "sockets   \(count("connections_open")) connections, \(count("requests_in_flight")) requests under way, \(count("requests_total")) in all"
        )
    }

    /// The samples of the Prometheus text format, labels kept as part of the name.
    static func samples(_ text: String) -> [String: String] {
        var samples: [String: String] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " ") else { continue }
            samples[String(line[..<space])] = String(line[line.index(after: space)...])
        }
        return samples
    }

    /// The value of one label of a metric that has one sample.
    private static func label(_ label: String, of metric: String, in samples: [String: String]) -> String? {
        guard let name = samples.keys.first(where: { $0.hasPrefix("\(metric){") }),
            let start = name.range(of: "\(label)=\"")?.upperBound,
            let end = name[start...].firstIndex(of: "\"")
        else { return nil }
        return String(name[start..<end])
    }
}
