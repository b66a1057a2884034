import ArgumentParser
import CanonicalJSON
import Foundation
import GateVocabulary
import KeyFiles

/// `sendgate keys rotate`: a new key of one purpose, from making it to the point where the old one can go.
///
///     add → promote (the old one: deactivated) → data: wait until nothing is under the old one
///
/// Each step is looked up in the keyring first, so a command that was interrupted goes on where it ended.
struct KeysRotate: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate", abstract: "Puts a new key into use, without losing a send.",
        usage: """
            sendgate keys rotate PURPOSE --socket PATH [--dry-run] [--no-wait] [--json]
            sendgate keys rotate PURPOSE --config FILE [--dry-run] [--no-wait] [--json]
            sendgate keys rotate root --directory DIR [--root-key FILE] [--new-root-key FILE] [--dry-run] [--json]
            """,
        discussion: """
            PURPOSE is origin, trail, data or link: the gateway makes the key, promotes it, and lets the old \
            one go on reading. A key that waits already is promoted. After a data key, stored values are sealed anew \
            in the background; the command waits for the last, and one that was interrupted waits on. The old key is \
            left to `keys destroy`, which two callers ask for.

            A root key changes on the key directory, whether the gateway runs or not: the keys that it wraps are \
            wrapped anew. `--root-key` names one that is kept elsewhere, `--new-root-key` where the new one goes.
            """)
    static let example = "sendgate keys rotate origin --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("What the key is for.", valueName: "purpose")) var purpose: KeyPurpose
    @OptionGroup var gateway: GatewayOptions
    @Option(help: ArgumentHelp("For root: the directory of private keys.", valueName: "dir"))
    var directory: String?
    @Option(help: ArgumentHelp("For root: the present root key, if it is elsewhere.", valueName: "file"))
    var rootKey: String?
    @Option(help: ArgumentHelp("For root: where the new one goes, if not there.", valueName: "file"))
    var newRootKey: String?
    @Flag(name: .customLong("dry-run"), help: "Say what would be done, and change nothing.")
    var isDryRun = false
    @Flag(name: .customLong("no-wait"), help: "For data: do not wait until everything is sealed anew.")
    var isNotWaiting = false
    @OptionGroup var output: OutputOptions

    func validate() throws {
        let isRoot = purpose == .root
        if isRoot, directory == nil { throw ValidationError("`root` needs `--directory`") }
        if !isRoot, directory != nil || rootKey != nil || newRootKey != nil {
            throw ValidationError("`--directory`, `--root-key` and `--new-root-key` go with `root`")
        }
        if isRoot, gateway.isGiven {
            throw ValidationError("`--socket`, `--config` and `--dev` do not go with `root`")
        }
    }

    func run() async throws {
        if let directory { return try rotateRoot(in: directory) }
        let connection = try await gateway.connection()
        do {
            try await rotate(over: connection)
        } catch {
            await connection.close()
            throw error
        }
        await connection.close()
    }

    // MARK: Over the socket

    private func rotate(over connection: GatewayConnection) async throws {
        let keys = try await keyring(connection)
        let waiting = keys.first { $0.state == "pre_activation" }?.id
        let old = keys.first { $0.state == "active" }?.id
        if purpose == .data, waiting == nil, !(try await KeyLag(asking: connection)).isDone {
            Terminal.note("an earlier rotation is not at its end")
            return try await finish(connection, old: keys.last { $0.state == "deactivated" }?.id, new: old)
        }
        if isDryRun {
            let steps = [
                waiting.map { "\($0) waits already" } ?? "a new \(purpose.rawValue) key would be made",
                "it would be promoted", old.map { "\($0) would be deactivated, and go on reading" },
                purpose == .data ? "every stored value would be sealed anew" : nil,
            ].compactMap { $0 }
            if output.json {
                return Terminal.print([
                    "dry_run": true, "steps": .array(steps.map { .string($0) }),
                ])
            }
            for step in steps { Terminal.print(step) }
            return
        }
        let new: String
        if let waiting {
            new = waiting
        } else {
            let added = try await connection.post("/v1/keys", ["purpose": .string(purpose.rawValue)])
            guard added.status == 200, let key = added.object?["key"]?.stringValue else {
                throw added.reportProblem()
            }
            new = key
            Terminal.note("made \(new)")
        }
        let promoted = try await connection.post("/v1/keys/\(KeyTarget.encoded(new))/promote", [:])
        guard promoted.status == 200 else { throw promoted.reportProblem() }
        try await finish(connection, old: old, new: new)
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

    private func keyring(_ connection: GatewayConnection) async throws -> [(id: String, state: String)] {
        let answer = try await connection.get("/v1/keys")
        guard answer.status == 200, let keys = answer.object?["keys"]?.arrayValue else {
            throw answer.reportProblem()
        }
        return keys.compactMap { key in
            guard key["purpose"]?.stringValue == purpose.rawValue, let id = key["key"]?.stringValue,
                let state = key["state"]?.stringValue
            else { return nil }
            return (id, state)
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

    // MARK: On the key directory

    private func rotateRoot(in directory: String) throws {
        let rewrap = try RootRotation(directory: directory, rootPath: rootKey, newRootPath: newRootKey)
        if isDryRun {
            if output.json {
                return Terminal.print([
                    "dry_run": true, "wrapped": .array(rewrap.wrapped.map { .string($0) }),
                ])
            }
            Terminal.print("a new root key would be made, and these wrapped by it:")
            for id in rewrap.wrapped { Terminal.print("  \(id)") }
            return
        }
        let done = try rewrap.run(at: SystemClock().now())
        if output.json {
            return Terminal.print([
                "root": .string(done.root), "path": .string(done.path),
                "wrapped": .array(rewrap.wrapped.map { .string($0) }),
            ])
        }
        Terminal.print("\(done.root) wraps \(rewrap.wrapped.count) keys; it is in \(done.path)")
        Terminal.note(
            "sendgate: hint: name it as `root_key` if it is kept apart, restart the gateway, which records it, and destroy the old root key's copies"
        )
    }
}
