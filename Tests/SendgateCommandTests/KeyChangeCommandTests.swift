import CanonicalJSON
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import KeyLifecycle
import OpenSSLCrypto
import SQLiteStore
import Testing

@testable import sendgate

/// `sendgate keys …` against a gateway that runs, and against one that is stopped.
@Suite struct KeyChangeCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var directory: String { folder.path("gate") }

    /// States by purpose, the newest key's last.
    private func states(_ gate: GatewayFixture) async throws -> [String: [String]] {
        let answer = try await gate.ask("GET", "/v1/keys")
        #expect(answer.status == 200)
        return (answer.object["keys"]?.arrayValue ?? []).reduce(into: [:]) { states, key in
            states[key["purpose"]?.stringValue ?? "?", default: []].append(key["state"]?.stringValue ?? "?")
        }
    }

    @Test func `a stopped gateway's keys change in its directory, and it goes on with them`() async throws {
        try await GatewayFixture(in: folder.root).stop()
        for purpose in ["origin", "trail", "data", "link"] {
            let run = try await CommandLineRun("keys", "rotate", purpose, "--dev", directory)
            #expect(run.status == 0, "\(purpose): \(run)")
            #expect(run.output.contains("is active") && run.output.contains("is deactivated"))
        }
        let lagging = try await CommandLineRun("keys", "lagging", "--dev", directory, "--json")
        #expect(lagging.status == 0 && lagging.output.contains("\"done\":true"), "\(lagging)")
        let gate = try await GatewayFixture(in: folder.root)
        let states = try await states(gate)
        for purpose in ["origin", "trail", "data", "link"] {
            #expect(states[purpose] == ["deactivated", "active"], "\(purpose)")
        }
        #expect(states["index"] == ["active"] && states["root"] == ["active"])
        #expect(try await gate.ask("GET", "/readyz").status == 200)
        try await gate.stop()
        let trail = folder.path("gate/trail")
        let verified = try await CommandLineRun("audit", "verify", trail, "--key", "\(trail)/trail.pub")
        #expect(verified.status == 0, "\(verified.errors)")
    }

    @Test(arguments: ["origin", "trail", "data", "link", "root"])
    func `a key that waits and whose file is gone is not put into use, and the next start is a start`(
        purpose: String
    ) async throws {
        try await GatewayFixture(in: folder.root).stop()
        let added = try await CommandLineRun("keys", "add", purpose, "--dev", directory, "--json")
        #expect(added.status == 0, "\(added)")
        let key = try #require(
            try CanonicalJSON.read(Array(added.output.utf8)).objectValue?["key"]?.stringValue)
        try FileManager.default.removeItem(atPath: "\(directory)/keys/\(key).key")
        do {
            let gate = try await GatewayFixture(in: folder.root)
            try await gate.listening { socket in
                for command in [["promote", key], ["rotate", purpose]] {
                    for option in [["--dry-run"], []] {
                        let run = try await CommandLineRun(
                            ["keys"] + command + option + ["--socket", socket])
                        #expect(run.status == 1 && run.errors.contains("put `\(key).key` back"), "\(run)")
                    }
                }
            }
            try await gate.stop()
        }
        let next = try await GatewayFixture(in: folder.root)
        #expect(try await states(next)[purpose] == ["active", "pre_activation"])
        try await next.stop()
    }

    @Test func `a data key that stored values are under stops the start when its file is gone`()
        async throws
    {
        do {
            let gate = try await GatewayFixture(in: folder.root)
            try await gate.registerSomebody()
            try await gate.stop()
        }
        let added = try await CommandLineRun("keys", "add", "data", "--dev", directory, "--json")
        #expect(added.status == 0, "\(added)")
        let new = try #require(
            try CanonicalJSON.read(Array(added.output.utf8)).objectValue?["key"]?.stringValue)
        // As a gateway leaves it that is killed before it has sealed a row anew.
        let (old, count) = try promote(new)
        #expect(count > 0)
        let (file, copy) = ("\(directory)/keys/\(old).key", folder.path("copy"))
        try FileManager.default.moveItem(atPath: file, toPath: copy)
        for command in [["rotate", "data"], ["rotate", "data", "--dry-run"]] {
            let refused = try await CommandLineRun(["keys"] + command + ["--dev", directory])
            #expect(refused.status == 1 && refused.output.isEmpty, "\(refused)")
            for part in ["the data key `\(old)`", "still sealed under", "put `\(old).key` back"] {
                #expect(refused.errors.contains(part), "\(part): \(refused)")
            }
        }
        let error = await #expect(throws: KeyFileError.self) { try await GatewayFixture(in: folder.root) }
        guard case .missingEarlierKey(id: old, directory: _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        try FileManager.default.moveItem(atPath: copy, toPath: file)
        // Waits until nothing is left under it.
        let rotated = try await CommandLineRun("keys", "rotate", "data", "--dev", directory)
        #expect(rotated.status == 0, "\(rotated)")
        try FileManager.default.removeItem(atPath: file)
        let gate = try await GatewayFixture(in: folder.root)
        #expect(try await gate.ask("GET", "/v1/recipients/u_42").status == 200)
        try await gate.stop()
    }

    /// Promotes a data key in the store of a stopped gateway.
    ///
    /// - Returns: The key that it replaces, and how many stored values are under that one.
    private func promote(_ key: String) throws -> (old: String, count: Int64) {
        func readKeys() throws -> PrivateKeyDirectory {
            try PrivateKeyDirectory(at: "\(directory)/keys", acceptsThrowaway: true)
        }
        var keys = try readKeys()
        let store = try Wiring.openStore(of: "\(directory)/state", readingAgain: &keys, by: readKeys)
        defer { store.close() }
        var keyring = try #require(try store.read { try $0.keyring() })
        let old = try #require(keyring.active(.data)).id
        _ = try keyring.apply(
            .promote, to: key, because: .request, by: CallerName("dev"), at: SystemClock().now())
        try store.write { memory in
            memory.useDataKey(key)
            memory.setSetting("keyring", to: keyring.text)
        }
        return (old, try store.read { try $0.laggingRowCount() })
    }

    /// Every file with its bytes and its mode, but for what each connection of SQLite makes and leaves empty.
    private func contents() throws -> [String: String] {
        var contents: [String: String] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
            let path = "\(directory)/\(name)"
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            guard attributes[.type] as? FileAttributeType == .typeRegular, !name.hasSuffix("-shm") else {
                continue
            }
            let bytes = try Data(contentsOf: URL(filePath: path))
            if name.hasSuffix("-wal"), bytes.isEmpty { continue }
            let digest = Hexadecimal.encode(SHA256.digest(Array(bytes)).bytes)
            contents[name] = "\(attributes[.posixPermissions] ?? 0) \(digest)"
        }
        return contents
    }

    @Test func `a dry run and a question leave a stopped gateway as it is, byte for byte`() async throws {
        try await GatewayFixture(in: folder.root).stop()
        // Waits until nothing is left under another key.
        let rotated = try await CommandLineRun("keys", "rotate", "data", "--dev", directory)
        #expect(rotated.status == 0, "\(rotated)")
        let added = try await CommandLineRun("keys", "add", "origin", "--dev", directory, "--json")
        let waiting = try #require(
            try CanonicalJSON.read(Array(added.output.utf8)).objectValue?["key"]?.stringValue, "\(added)")
        // A key that the next start would take in.
        var link = try PrivateKeyFile.generate(.link, prefix: "dev-", at: SystemClock().now())
        let root = try PrivateKeyDirectory(at: "\(directory)/keys", acceptsThrowaway: true).current(.root)
        try link.create(in: "\(directory)/keys", wrappedBy: root)
        // What a start would destroy.
        let part = "\(directory)/keys/\(link.id).key.part"
        #expect(FileManager.default.createFile(atPath: part, contents: Data("0".utf8)))
        let before = try contents()
        #expect(before.count > 10)
        for (words, told) in [
            (["add", "data", "--dry-run"], "would be pre_activation"),
            (["promote", waiting, "--dry-run"], "\(waiting) would be active"),
            (["promote", link.id, "--dry-run"], "\(link.id) would be active"),
            (["suspend", waiting, "--dry-run"], nil), (["resume", waiting, "--dry-run"], nil),
            (["revoke", waiting, "--cause", "compromised", "--dry-run"], "would be compromised"),
            (["destroy", waiting, "--dry-run"], "would stay pre_activation"),
            (["rotate", "origin", "--dry-run"], "\(waiting) waits already"),
            (["rotate", "root", "--dry-run"], "a new root key would be made"),
            (
                ["revoke", "--registered-before", "2026-01-01T00:00:00Z", "--cause", "lost", "--dry-run"],
                "0 of 0 device keys"
            ), (["lagging"], "every stored value is under"),
        ] as [([String], String?)] {
            let run = try await CommandLineRun(["keys"] + words + ["--dev", directory])
            #expect(run.status == (told == nil ? 1 : 0), "\(words): \(run)")
            if let told { #expect(run.output.contains(told), "\(words): \(run)") }
            #expect(try contents() == before, "\(words)")
        }
        // A gateway that starts finds nothing of it but its own.
        let gate = try await GatewayFixture(in: folder.root)
        #expect(try await states(gate)["origin"] == ["active", "pre_activation"])
        // While it runs the directory is its own, for a question too.
        let busy = try await CommandLineRun("keys", "lagging", "--dev", directory)
        #expect(busy.status == 1 && busy.errors.contains("in use"), "\(busy)")
        try await gate.stop()
    }

    @Test func `where a key cannot be written the hint is of the directory, and of no send`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let (keys, aside) = ("\(directory)/keys", folder.path("aside"))
        try await gate.listening { socket in
            try FileManager.default.moveItem(atPath: keys, toPath: aside)
            for words in [["add", "origin"], ["rotate", "origin"]] {
                let run = try await CommandLineRun(["keys"] + words + ["--socket", socket])
                #expect(run.status == 1 && run.errors.contains("cannot write key file"), "\(run)")
                #expect(run.errors.contains("hint: where a file cannot be written"), "\(run.errors)")
                #expect(!run.errors.contains("same id"), "\(run.errors)")
            }
            try FileManager.default.moveItem(atPath: aside, toPath: keys)
        }
        try await gate.stop()
    }

    @Test func `nothing lags in a stopped gateway that has had one data key, whether or not it looked`()
        async throws
    {
        try await GatewayFixture(in: folder.root).stop()
        // One that waits seals nothing.
        let added = try await CommandLineRun("keys", "add", "data", "--dev", directory)
        #expect(added.status == 0, "\(added)")
        let run = try await CommandLineRun("keys", "lagging", "--dev", directory, "--json")
        #expect(run.status == 0 && run.output.contains("\"rows\":0"), "\(run)")
    }

    @Test func `a question about a gateway that never ran makes no state`() async throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: folder.path("gate"), withIntermediateDirectories: false)
        try PrivateKeyDirectory.initialize(
            at: folder.path("gate/keys"), prefix: "dev-", now: SystemClock().now())
        let run = try await CommandLineRun("keys", "lagging", "--dev", folder.path("gate"))
        #expect(run.status == 1, "\(run)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("gate/state")))
    }

    /// Killed at its very end, a command leaves what one that was answered leaves.
    @Test func `a rotation that is asked for once more is the same one, and another is asked for by name`()
        async throws
    {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.listening { socket in
            func rotate(_ more: String...) async throws -> CommandLineRun {
                try await CommandLineRun(["keys", "rotate", "trail", "--socket", socket] + more)
            }
            func key(_ run: CommandLineRun, _ member: String) throws -> String? {
                try CanonicalJSON.read(Array(run.output.utf8)).objectValue?[member]?.stringValue
            }
            let first = try await rotate("--json")
            let new = try #require(try key(first, "active"), "\(first)")
            let before = try await gate.ask("GET", "/v1/keys").object
            let dry = try await rotate("--dry-run")
            #expect(dry.status == 0 && dry.output.contains("nothing: \(new) came into use"), "\(dry)")
            let again = try await rotate("--json")
            #expect(again.status == 0 && again.output == first.output, "\(again)")
            #expect(again.errors.contains("nothing was done; `--again` rotates once more"), "\(again)")
            #expect(try await gate.ask("GET", "/v1/keys").object == before)
            let next = try await rotate("--again", "--json")
            #expect(try key(next, "deactivated") == new, "\(next)")
            // The key before may be revoked meanwhile, as when it was stolen.
            let revoked = try await CommandLineRun(
                "keys", "revoke", new, "--cause", "compromised", "--socket", socket)
            #expect(revoked.status == 0, "\(revoked)")
            let last = try await rotate("--json")
            #expect(try key(last, "active") == key(next, "active"), "\(last)")
        }
        #expect(try await states(gate)["trail"] == ["deactivated", "compromised", "active"])
        try await gate.stop()
    }

    @Test func `a rotation asked for again that was killed goes on without the flag, and makes no other key`()
        async throws
    {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.listening { socket in
            func rotate(_ more: String...) async throws -> String {
                let run = try await CommandLineRun(
                    ["keys", "rotate", "link", "--socket", socket, "--json"] + more)
                #expect(run.status == 0, "\(run)")
                return try #require(
                    try CanonicalJSON.read(Array(run.output.utf8)).objectValue?["active"]?.stringValue)
            }
            let first = try await rotate()
            // As `--again` leaves it between making the key and promoting it, and then after promoting it.
            let added = try await gate.ask(
                "POST", "/v1/keys", ["purpose": "link", "replaces": .string(first)])
            let made = try #require(added.object["key"]?.stringValue, "\(added.object)")
            #expect(try await rotate() == made)
            #expect(try await rotate() == made)
        }
        #expect(try await states(gate)["link"] == ["deactivated", "deactivated", "active"])
        try await gate.stop()
    }

    @Test(
        arguments: [
            // Of the key in use: how long ago it was made and came into its state; and the other's state, and for how long.
            (5, 5, "deactivated", 5, true), (86_400, 600, "deactivated", 600, true),
            (86_400, 601, "deactivated", 601, false),
            // A clock that went back.
            (5, -1, "deactivated", -1, false),
            // Resumed, and nothing was rotated.
            (86_400, 5, "deactivated", 3_600, false),
            // None was in use when it was made.
            (5, 5, "suspended", 60, true), (5, 5, "compromised", 1, true), (5, 5, "pre_activation", 5, false),
        ] as [(Int64, Int64, String, Int64, Bool)])
    func `a rotation counts as done for ten minutes`(
        made: Int64, used: Int64, state: String, since: Int64, isDone: Bool
    ) throws {
        let now = Instant(seconds: 1_795_000_000)
        func key(_ id: String, _ state: String, _ made: Int64, _ changed: Int64) -> KeysRotate.ListedKey {
            .init(
                id: id, state: state, createdAt: now.advanced(bySeconds: -made),
                changedAt: now.advanced(bySeconds: -changed))
        }
        let keys = [key("old", state, 90_000, since), key("new", "active", made, used)]
        #expect(KeysRotate.done(keys, by: now)?.new.id == (isDone ? "new" : nil))
        // The only one, as after a first start.
        #expect(KeysRotate.done([keys[1]], by: now) == nil)
    }

    @Test func `an origin key that is suspended is rotated as one in use is`() async throws {
        var key: String
        do {
            let first = try await GatewayFixture(in: folder.root)
            let listed = try await first.ask("GET", "/v1/keys").object["keys"]?.arrayValue
            key = try #require(listed?.first { $0["purpose"] == "origin" }?["key"]?.stringValue)
            try await first.stop()
        }
        for _ in 0..<2 {
            let suspended = try await CommandLineRun("keys", "suspend", key, "--dev", directory)
            #expect(suspended.status == 0, "\(suspended)")
            let rotated = try await CommandLineRun("keys", "rotate", "origin", "--dev", directory, "--json")
            #expect(rotated.status == 0, "\(rotated)")
            key = try #require(
                try CanonicalJSON.read(Array(rotated.output.utf8)).objectValue?["active"]?.stringValue)
        }
        let gate = try await GatewayFixture(in: folder.root)
        #expect(try await states(gate)["origin"] == ["suspended", "suspended", "active"])
        try await gate.stop()
    }

    @Test func `a running gateway is not changed behind its back`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let run = try await CommandLineRun("keys", "add", "origin", "--dev", directory)
        #expect(run.status == 1 && run.errors.contains("in use"), "\(run)")
        #expect(try await states(gate)["origin"] == ["active"])
        try await gate.stop()
    }

    @Test func `one caller alone destroys nothing, over the socket as little as on the directory`()
        async throws
    {
        try await GatewayFixture(in: folder.root).stop()
        let added = try await CommandLineRun("keys", "add", "link", "--dev", directory, "--json")
        #expect(added.status == 0, "\(added)")
        let key = try #require(
            try CanonicalJSON.read(Array(added.output.utf8)).objectValue?["key"]?.stringValue)
        let dry = try await CommandLineRun("keys", "destroy", key, "--dry-run", "--dev", directory)
        #expect(
            dry.status == 0
                && dry.output.contains("would stay pre_activation until another caller asks for the same"),
            "\(dry)")
        let first = try await CommandLineRun("keys", "destroy", key, "--dev", directory)
        #expect(first.status == 0 && first.output.contains("another caller"), "\(first)")
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.listening { socket in
            let second = try await CommandLineRun("keys", "destroy", key, "--socket", socket)
            #expect(second.status == 1 && second.errors.contains("another must ask"), "\(second)")
            let listed = try await CommandLineRun("keys", "list", "--socket", socket)
            #expect(listed.output.contains(key) && listed.output.contains("pre_activation"), "\(listed)")
        }
        try await gate.stop()
    }

    @Test(arguments: [
        (["suspend", "KEY"], "would be suspended"),
        (["revoke", "KEY", "--cause", "lost"], "would be deactivated"),
        (["add", "data"], "would be pre_activation"),
        (["rotate", "origin"], "a new origin key would be made"),
        (["rotate", "root"], "it would be promoted when two callers have asked"),
    ])
    func `a dry run says what would be`(_ words: [String], told: String) async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let before = try await gate.ask("GET", "/v1/keys").object
        let origin = try #require(
            before["keys"]?.arrayValue?.first { $0["purpose"] == "origin" }?["key"]?.stringValue)
        try await gate.listening { socket in
            let run = try await CommandLineRun(
                ["keys"] + words.map { $0 == "KEY" ? origin : $0 } + ["--dry-run", "--socket", socket])
            #expect(run.status == 0 && run.output.contains(told), "\(run)")
        }
        #expect(try await gate.ask("GET", "/v1/keys").object == before)
        try await gate.stop()
    }

    @Test(arguments: [
        ["keys", "rotate"], ["keys", "rotate", "origin", "--directory", "x"], ["keys", "add", "socks"],
        ["keys", "revoke", "x", "--socket", "y"], ["keys", "add", "origin", "--socket", "x", "--dev", "y"],
        ["keys", "list", "--socket", "x", "--keyring", "y"],
    ])
    func `a command line that makes no sense ends with 64`(_ words: [String]) async throws {
        #expect(try await CommandLineRun(words).status == 64)
    }
}
