import ArgumentParser
import CanonicalJSON
import CommandTerminal
import Foundation
import GateVocabulary
import KeyFiles

/// `sendgate keys rotate`: a new key of one purpose, from making it to the point where the old one can go.
///
///     add → promote (the old one: deactivated) → data: wait until nothing is under the old one
///                  └ root: a second caller runs the same command
///
/// Each step is looked up in the keyring first, so a command that was interrupted goes on where it ended.
struct KeysRotate: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate", abstract: "Puts a new key into use, without losing a send.",
        usage: """
            sendgate keys rotate PURPOSE --socket PATH [--again] [--dry-run] [--no-wait] [--json]
            sendgate keys rotate PURPOSE --config FILE [--again] [--dry-run] [--no-wait] [--json]
            """,
        discussion: """
            PURPOSE is origin, trail, data, link or root: the gateway makes the key, promotes it, and lets the old \
            one go on reading. A key that waits already is promoted. After a data key, stored values are sealed anew \
            in the background; the command waits for the last, and one that was interrupted waits on. The old key is \
            left to `keys destroy`, which two callers ask for. Of two such commands at once one makes the key, and the other \
            puts it into use as well or is refused: the keys rotate once. So does a command that is run again because its \
            answer was lost: within ten minutes of a rotation, whoever asked for it, nothing is done but to say what is in \
            use, unless `--again` is given. A command with `--again` that was interrupted is run again without it: the key \
            that it made, or that it put into use, is found, and with `--again` yet another would be made where it had \
            come into use.

            For root two callers run the command within an hour. The new root key is made in the key directory, and the \
            keys that the old one wraps are wrapped anew when it is promoted. Where `root_key` names another place, it is \
            refused, with what to do: the successor of a key that is kept apart never lies beside the keys that it opens.
            """)
    static let example = "sendgate keys rotate origin --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("What the key is for.", valueName: "purpose")) var purpose: KeyPurpose
    @OptionGroup var gateway: GatewayOptions
    @Flag(
        name: .customLong("again"),
        help:
            "Rotate although the keys rotated within the last ten minutes. After an interruption, run it without."
    )
    var isAgain = false
    @Flag(name: .customLong("dry-run"), help: "Say what would be done, and change nothing.")
    var isDryRun = false
    @Flag(name: .customLong("no-wait"), help: "For data: do not wait until everything is sealed anew.")
    var isNotWaiting = false
    @OptionGroup var output: OutputOptions

    func run() async throws {
        try await gateway.connection(isReading: isDryRun).use { try await rotate(over: $0) }
    }

    // MARK: Over the socket

    private func rotate(over connection: GatewayConnection) async throws {
        let keys = try await keyring(connection)
        let waiting = keys.first { $0.state == "pre_activation" }?.id
        let old = keys.first { $0.state == "active" }?.id
        if purpose == .data, waiting == nil, !(try await KeyLag(asking: connection)).isDone {
            Terminal.note("an earlier rotation is not at its end")
            if isDryRun { return plan(["every stored value that is left would be sealed anew"]) }
            return try await finish(connection, old: keys.last { $0.state == "deactivated" }?.id, new: old)
        }
        if waiting == nil, !isAgain, let done = Self.done(keys, by: SystemClock().now()) {
            let remark = "\(done.new.id) came into use \(done.age) s ago"
            if isDryRun { return plan(["nothing: \(remark); with `--again` a new key would be made"]) }
            Terminal.note("\(remark), and nothing was done; `--again` rotates once more")
            return try await finish(connection, old: done.old?.id, new: done.new.id)
        }
        if isDryRun {
            if let waiting {
                // As the promotion would be, e.g. for a key whose file is gone.
                let promotion = try await connection.post(Self.promotion(of: waiting), ["dry_run": true])
                guard promotion.status == 200 else {
                    throw promotion.reportProblem(unavailable: KeyChange.unavailable)
                }
            } else {
                let addition = try await connection.post(
                    "/v1/keys", ["purpose": .string(purpose.rawValue), "dry_run": true])
                guard addition.status == 200 else {
                    throw addition.reportProblem(unavailable: KeyChange.unavailable)
                }
            }
            let steps = [
                waiting.map { "\($0) waits already" } ?? "a new \(purpose.rawValue) key would be made",
                purpose == .root
                    ? "it would be promoted when two callers have asked" : "it would be promoted",
                old.map { "\($0) would be deactivated, and go on reading" },
                purpose == .data ? "every stored value would be sealed anew" : nil,
                purpose == .root ? "the keys that it wraps would be wrapped anew" : nil,
            ].compactMap { $0 }
            return plan(steps)
        }
        let new: String
        if let waiting {
            new = waiting
        } else {
            var addition: JSONObject = ["purpose": .string(purpose.rawValue)]
            // Where none is in use, the newest: the gateway compares with the same.
            let replaced = old ?? keys.last { $0.state != "pre_activation" }?.id
            if let replaced { addition["replaces"] = .string(replaced) }
            let added = try await connection.post("/v1/keys", addition)
            guard added.status == 200, let key = added.object?["key"]?.stringValue else {
                throw added.reportProblem(unavailable: KeyChange.unavailable)
            }
            new = key
            Terminal.note("made \(new)")
        }
        let promoted = try await connection.post(Self.promotion(of: new), [:])
        if promoted.status == 202 { return try KeyChange.show(promoted, of: new, asJSON: output.json) }
        // Another command that runs the same rotation may have been first.
        if promoted.status != 200 {
            guard promoted.status == 409,
                try await keyring(connection).first(where: { $0.state == "active" })?.id == new
            else { throw promoted.reportProblem(unavailable: KeyChange.unavailable) }
        }
        try await finish(connection, old: old, new: new)
    }

    /// Prints what a dry run would do.
    private func plan(_ steps: [String]) {
        if output.json {
            return Terminal.print(["dry_run": true, "steps": .array(steps.map { .string($0) })])
        }
        for step in steps { Terminal.print(step) }
    }

    private static func promotion(of key: String) -> String {
        "/v1/keys/\(PercentEncoding.encode(key))/promote"
    }

    private func finish(_ connection: GatewayConnection, old: String?, new: String?) async throws {
        if purpose == .data, !isNotWaiting { try await waitForRows(connection) }
        if output.json {
            var object: JSONObject = ["purpose": .string(purpose.rawValue)]
            if let new { object["active"] = .string(new) }
            if let old { object["deactivated"] = .string(old) }
            return Terminal.print(object)
        }
        if let new { Terminal.print("\(new) is active") }
        if let old {
            Terminal.print("\(old) is deactivated")
            Terminal.note("sendgate: hint: when nothing needs it any more, `sendgate keys destroy \(old)`")
        }
    }

    /// A key of the purpose, as the gateway lists it.
    struct ListedKey {
        var id: String
        var state: String
        var createdAt: Instant?
        var changedAt: Instant?
    }

    /// How long a rotation counts as the one that is asked for, in seconds: as long as it takes to find out that the command before
    /// was lost and to run it again. What was stolen since is rotated with `--again`.
    static let doneSeconds: Int64 = 600

    /// The rotation that ended just now: a key that came into use in the commit that deactivated another; or, where none was in
    /// use before it, that was made for it.
    static func done(
        _ keys: [ListedKey], by now: Instant
    ) -> (new: ListedKey, old: ListedKey?, age: Int64)? {
        func secondsSince(_ moment: Instant?) -> Int64? {
            moment.map { now.seconds - $0.seconds }.flatMap { (0...doneSeconds).contains($0) ? $0 : nil }
        }
        guard let new = keys.first(where: { $0.state == "active" }), let age = secondsSince(new.changedAt)
        else { return nil }
        if let old = keys.last(where: { $0.state == "deactivated" && $0.changedAt == new.changedAt }) {
            return (new, old, age)
        }
        let hasOther = keys.contains { $0.id != new.id && $0.state != "pre_activation" }
        return hasOther && secondsSince(new.createdAt) != nil ? (new, nil, age) : nil
    }

    private func keyring(_ connection: GatewayConnection) async throws -> [ListedKey] {
        let answer = try await connection.get("/v1/keys")
        guard answer.status == 200, let keys = answer.object?["keys"]?.arrayValue else {
            throw answer.reportProblem()
        }
        return keys.compactMap { key in
            guard key["purpose"]?.stringValue == purpose.rawValue, let id = key["key"]?.stringValue,
                let state = key["state"]?.stringValue
            else { return nil }
            func moment(_ member: String) -> Instant? {
                key[member]?.stringValue.flatMap { Instant(rfc3339: $0) }
            }
            return ListedKey(
                id: id, state: state, createdAt: moment("created_at"), changedAt: moment("changed_at"))
        }
    }

    /// How often a gateway is asked how many rows are left: each answer reads all of them.
    private static let pollingInterval = Duration.seconds(1)

    private func waitForRows(_ connection: GatewayConnection) async throws {
        var progress = Progress("sealing anew")
        defer { progress.end() }
        var most: Int64 = 0
        while true {
            let lag = try await KeyLag(asking: connection)
            if lag.isDone { return }
            most = max(most, lag.rowCount)
            progress.show(UInt64(most - lag.rowCount), of: UInt64(max(most, 1)))
            try await Task.sleep(for: Self.pollingInterval)
        }
    }
}
