import AuditTrail
import CanonicalJSON
import CommandTerminal
import Foundation
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import Logging
import SQLiteStore
import SealedFormat
import Synchronization
import Testing
import TrailDirectory

@testable import sendgate

/// `sendgate restore` on the directories of a stopped gateway, and what other commands do before it has ended.
@Suite struct RestoreCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var directory: String { folder.path("gate") }
    private var trail: String { folder.path("gate/trail") }

    private func run() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        _ = try await gate.send("one", "security.new_login", GatewayFixture.login)
        try await gate.stop()
    }

    /// A backup of after the first run, beside the trail of the second.
    ///
    /// - Parameter change: What is done in between, after the backup.
    private func putBackupBack(_ change: () async throws -> Void = {}) async throws {
        try await run()
        try FileManager.default.copyItem(atPath: folder.path("gate/state"), toPath: folder.path("backup"))
        try await change()
        try await run()
        try replace(folder.path("gate/state"), by: folder.path("backup"))
    }

    /// - Parameter external: A checkpoint that was kept elsewhere.
    private func work(external: String? = nil) throws -> RestoreWork {
        var configuration = try DevelopmentGateway(
            directory: directory, policies: CommandLineRun.policies, hop: nil, otherUserIDs: [],
            logLevel: .critical
        ).configuration
        configuration.externalCheckpointPath = external
        return try RestoreWork(configuration, trail: trail)
    }

    private func replace(_ path: String, by copy: String) throws {
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.copyItem(atPath: copy, toPath: path)
    }

    private func plan(_ work: RestoreWork, isTailLost: Bool = false) throws -> RestoreUnderWay {
        let plan = try work.plan(isTailLost: isTailLost) { _, _ in }
        let underWay: RestoreUnderWay? = if case .restore(let underWay) = plan { underWay } else { nil }
        return try #require(underWay)
    }

    /// Leaves a restore that was ended before its first commit of entries.
    private func begin() throws {
        let work = try work()
        defer { work.close() }
        let underWay = try plan(work)
        try work.store.write { try $0.setRestoreUnderWay(underWay) }
    }

    private func restore(_ more: String...) async throws -> CommandLineRun {
        try await CommandLineRun(["restore", "--trail", trail, "--dev", directory, "--json"] + more)
    }

    @Test(arguments: [["store", "check"], ["clock", "accept"]])
    func `no other command opens the databases of a restore that has not ended`(_ command: [String])
        async throws
    {
        try await putBackupBack()
        try begin()
        let refused = try await CommandLineRun(command + ["--dev", directory])
        #expect(refused.status == 1, "\(refused)")
        #expect(
            refused.errors.contains("has not ended")
                && refused.errors.contains("run `sendgate restore` again"),
            "\(refused.errors)")
        let restored = try await restore()
        #expect(restored.status == 0, "\(restored.errors)")
        #expect(try await CommandLineRun(command + ["--dev", directory]).status == 0)
    }

    @Test(arguments: ["data", "index", "link"])
    func `a start without a key says that a restore has not ended, too`(_ purpose: String) async throws {
        let keys = folder.path("gate/keys")
        var name = ""
        try await putBackupBack {
            name = try #require(
                FileManager.default.contentsOfDirectory(atPath: keys)
                    .first { $0.hasPrefix("dev-\(purpose)-") })
            if purpose == "data" {
                // With another one the directory is whole, and only the databases know which is missing.
                let added = try await CommandLineRun("keys", "add", purpose, "--dev", directory)
                try #require(added.status == 0, "\(added)")
            }
        }
        func expectFailure(tellsOfRestore: Bool) async throws {
            for command in ["serve", "store check"] {
                let failed = try await CommandLineRun(
                    command.split(separator: " ").map(String.init) + ["--dev", directory]
                        + (command == "serve" ? ["--policies", CommandLineRun.policies] : []))
                // Pages are held against their codes without a data key.
                let isNeeded = command == "serve" || purpose != "data"
                #expect(failed.status == (isNeeded || tellsOfRestore ? 1 : 0), "\(failed)")
                #expect(failed.errors.contains("\(purpose) key") == isNeeded, "\(failed.errors)")
                #expect(
                    failed.errors.contains("a restore was begun in this state directory and has not ended")
                        == tellsOfRestore
                        && failed.errors.contains("run `sendgate restore` again") == tellsOfRestore,
                    "\(failed.errors)")
            }
        }
        try FileManager.default.moveItem(atPath: "\(keys)/\(name)", toPath: folder.path("aside"))
        try await expectFailure(tellsOfRestore: false)
        try FileManager.default.moveItem(atPath: folder.path("aside"), toPath: "\(keys)/\(name)")
        try begin()
        try FileManager.default.moveItem(atPath: "\(keys)/\(name)", toPath: folder.path("aside"))
        try await expectFailure(tellsOfRestore: true)
    }

    @Test func `the clock is not accepted in a backup that lacks entries of its trail`() async throws {
        try await putBackupBack()
        let refused = try await CommandLineRun("clock", "accept", "--dev", directory)
        #expect(refused.status == 1, "\(refused)")
        #expect(
            refused.errors.contains("an old copy of the databases was put in place")
                && refused.errors.contains("sendgate restore"), "\(refused.errors)")
        #expect(try await restore().status == 0)
        #expect(try await CommandLineRun("clock", "accept", "--dev", directory).status == 0)
    }

    @Test func `a trail behind the external checkpoint is restored from only where its tail is given up`()
        async throws
    {
        let state = folder.path("gate/state")
        try await run()
        try FileManager.default.copyItem(atPath: state, toPath: folder.path("oldest"))
        try await run()
        try FileManager.default.copyItem(atPath: state, toPath: folder.path("old"))
        try FileManager.default.copyItem(atPath: trail, toPath: folder.path("old-trail"))
        try await run()
        try FileManager.default.copyItem(atPath: trail, toPath: folder.path("newest-trail"))
        let external = folder.path("newest-trail/checkpoint")
        // Of the newest trail is nothing lost.
        try replace(state, by: folder.path("oldest"))
        do {
            let work = try work(external: external)
            defer { work.close() }
            #expect(try !plan(work).entry.isTailLost)
        }
        // One that is older than the checkpoint, beside databases that are older still, and beside those of its time.
        try replace(trail, by: folder.path("old-trail"))
        for backup in ["oldest", "old"] {
            try replace(state, by: folder.path(backup))
            let work = try work(external: external)
            defer { work.close() }
            let refusal = #expect(throws: CommandFailure.self) { _ = try plan(work) }
            #expect(refusal?.message.contains("ends before the") == true, "\(refusal as Any)")
            #expect(
                refusal?.hint?.contains("put the newest copy of the trail there") == true
                    && refusal?.hint?.contains("`--tail-lost`") == true, "\(refusal as Any)")
            #expect(try work.store.read { try $0.restoreUnderWay() } == nil)
        }
        let work = try work(external: external)
        defer { work.close() }
        let restored = try work.run(plan(work, isTailLost: true)) { _, _ in }
        #expect(restored.isTailLost)
    }

    @Test func `the list of keys is there before the entries that let a gateway start`() async throws {
        try await putBackupBack()
        _ = try folder.file("gate/trail/keyset", "no keyset\n")
        let errors = Mutex<[UInt8]>([])
        let console = Console(
            writeOutput: { _ in }, writeErrors: { bytes in errors.withLock { $0 += bytes } },
            inputDescriptor: STDIN_FILENO, environment: CommandLineRun.bareEnvironment, isWatched: false)
        var saidAtCommit: [Bool] = []
        try Console.$current.withValue(console) {
            let work = try work()
            defer { work.close() }
            _ = try work.run(plan(work)) { _, _ in
                let text = errors.withLock { String(decoding: $0, as: UTF8.self) }
                saidAtCommit.append(text.contains("the keyset beside the trail is not taken over"))
            }
        }
        #expect(!saidAtCommit.isEmpty && !saidAtCommit.contains(false))
    }

    @Test func `a restore that was begun without --tail-lost ends without it, and is run again with it`()
        async throws
    {
        try await putBackupBack()
        try begin()
        let refused = try await restore("--tail-lost")
        #expect(refused.status == 1, "\(refused)")
        #expect(refused.errors.contains("without `--tail-lost`"), "\(refused.errors)")
        let first = try await restore()
        #expect(first.status == 0 && first.output.contains("\"tail_lost\":false"), "\(first)")
        let second = try await restore("--tail-lost")
        #expect(second.status == 0 && second.output.contains("\"tail_lost\":true"), "\(second)")
    }

    @Test func `a checkpoint is believed of a trail key that is not compromised and may be in use`() {
        func key(_ number: UInt8, _ state: KeyState, _ purpose: KeyPurpose = .trail) -> GatewayKey {
            let moment = Instant(milliseconds: 1_795_000_000_000)
            var key = GatewayKey(
                id: "\(purpose.rawValue)-\(number)", purpose: purpose, state: state, createdAt: moment,
                changedAt: moment, publicKey: [number])
            key.isCompromised = state == .compromised
            return key
        }
        let keyring = Keyring(keys: [
            key(1, .deactivated), key(2, .compromised), key(3, .preActivation), key(4, .active),
            key(5, .preActivation), key(6, .active, .origin),
        ])
        // As a directory has them: it knows no states. The seventh was made after the backup.
        let found = [2, 4, 5, 7].map { key($0, .preActivation) }
        #expect(Set(RestoreWork.believed(found, in: keyring)) == [[1], [4], [5], [7]])
    }

    @Test func `a policy that is missing in the archive is a difference, and nothing is touched`()
        async throws
    {
        try await putBackupBack()
        let archive = folder.path("gate/trail/policies")
        try FileManager.default.moveItem(atPath: archive, toPath: folder.path("aside"))
        let refused = try await restore()
        #expect(refused.status == 3, "\(refused)")
        #expect(
            refused.errors.contains("the archived policy") && refused.errors.contains("is missing"),
            "\(refused.errors)")
        do {
            let work = try work()
            defer { work.close() }
            #expect(try work.store.read { try $0.restoreUnderWay() } == nil)
        }
        try FileManager.default.moveItem(atPath: folder.path("aside"), toPath: archive)
        let restored = try await restore()
        #expect(restored.status == 0, "\(restored.errors)")
    }

    /// Puts a new key into use in the stopped gateway, and gives the path of its file.
    private func rotate(_ purpose: String) async throws -> String {
        let keys = folder.path("gate/keys")
        let before = Set(try FileManager.default.contentsOfDirectory(atPath: keys))
        let rotated = try await CommandLineRun("keys", "rotate", purpose, "--dev", directory)
        try #require(rotated.status == 0, "\(rotated)")
        let new = Set(try FileManager.default.contentsOfDirectory(atPath: keys)).subtracting(before)
        return try "\(keys)/" + #require(new.first { $0.hasPrefix("dev-\(purpose)-") }, "\(new)")
    }

    /// Expects that the restore names these key files and writes nothing while they are away, and that it works once they
    /// are back.
    private func expectDemand(for files: [String], by flags: [String] = []) async throws {
        func written() throws -> [String] {
            let work = try work()
            defer { work.close() }
            return [
                try String(contentsOfFile: folder.path("gate/trail/checkpoint"), encoding: .utf8),
                try "\(work.store.read { try $0.entryCount() })",
                try work.store.read { try $0.keyring() }?.text ?? "",
                try work.store.read { try $0.restoreUnderWay() } == nil ? "no restore" : "a restore",
            ]
        }
        let before = try written()
        for file in files {
            try FileManager.default.moveItem(atPath: file, toPath: file + ".aside")
        }
        for more in [["--dry-run"], []] {
            let refused = try await CommandLineRun(
                ["restore", "--trail", trail, "--dev", directory] + flags + more)
            #expect(refused.status == 1, "\(refused)")
            for file in files {
                let name = URL(filePath: file).lastPathComponent
                #expect(refused.errors.contains("`\(name)`"), "\(refused.errors)")
            }
            #expect(refused.errors.contains("nothing was touched"), "\(refused.errors)")
        }
        #expect(try written() == before)
        for file in files {
            try FileManager.default.moveItem(atPath: file + ".aside", toPath: file)
        }
        let restored = try await CommandLineRun(
            ["restore", "--trail", trail, "--dev", directory] + flags)
        #expect(restored.status == 0, "\(restored.errors)")
        // A start finds everything that it needs.
        try await run()
    }

    @Test func `keys that came into use after the backup are demanded before anything is written`()
        async throws
    {
        var files: [String] = []
        try await putBackupBack {
            files = [try await rotate("link"), try await rotate("origin")]
        }
        try await expectDemand(for: files)
    }

    @Test func `keys in use are demanded before a lost tail is restored`() async throws {
        try await run()
        let files = [try await rotate("link"), try await rotate("origin")]
        try await run()
        try await expectDemand(for: files, by: ["--tail-lost"])
    }

    /// The file of the one data key that there is.
    private func dataKeyFile() throws -> String {
        let keys = folder.path("gate/keys")
        let names = try FileManager.default.contentsOfDirectory(atPath: keys)
            .filter { $0.hasPrefix("dev-data-") }
        try #require(names.count == 1, "\(names)")
        return "\(keys)/\(names[0])"
    }

    /// Starts a gateway that is killed before it has sealed a row anew.
    ///
    /// - Returns: How many rows are under an earlier key.
    private func startedWithoutAPass() async throws -> Int64 {
        let configuration = try DevelopmentGateway(
            directory: directory, policies: CommandLineRun.policies, hop: nil, otherUserIDs: [],
            logLevel: .critical
        ).configuration
        let wiring = try Wiring(
            configuration, environment: [:],
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await wiring.start()
        let count = try wiring.store.read { try $0.laggingRowCount() }
        wiring.core.engine.drain()
        wiring.core.publisher.drain()
        wiring.store.close()
        return count
    }

    @Test func `a data key that was destroyed after the backup goes once the backup is sealed anew`()
        async throws
    {
        var (file, newFile) = ("", "")
        let copy = folder.path("copy")
        try await putBackupBack {
            file = try dataKeyFile()
            try FileManager.default.copyItem(atPath: file, toPath: copy)
            newFile = try await rotate("data")
            let gate = try await GatewayFixture(in: folder.root)
            let key = String(URL(filePath: file).lastPathComponent.dropLast(".key".count))
            for (caller, status) in [(DevelopmentGateway.caller, 202), (CallerName("keys-team"), 200)] {
                let answer = try await gate.ask("POST", "/v1/keys/\(key)/destroy", as: caller)
                #expect(answer.status == status, "\(answer.object)")
            }
            try await gate.stop()
            #expect(access(file, F_OK) != 0)
        }
        let refused = try await restore()
        #expect(refused.status == 1 && refused.errors.contains("is missing"), "\(refused)")
        try FileManager.default.copyItem(atPath: copy, toPath: file)
        let restored = try await restore()
        #expect(restored.status == 0, "\(restored.errors)")
        #expect(try await startedWithoutAPass() > 0)
        #expect(access(file, F_OK) == 0, "rows are under it")
        // Waits for the pass that is not at its end.
        let ended = try await CommandLineRun("keys", "rotate", "data", "--dev", directory)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try dataKeyFile() == newFile)
        let gate = try await GatewayFixture(in: folder.root)
        #expect(try await gate.ask("GET", "/v1/recipients/u_42").status == 200)
        try await gate.stop()
    }

    @Test func `a data key that rows of the backup are under is demanded though another one seals`()
        async throws
    {
        var file = ""
        try await run()
        file = try dataKeyFile()
        let added = try await CommandLineRun("keys", "add", "data", "--dev", directory, "--json")
        let key = try #require(added.output.firstMatch(of: /dev-data-[0-9a-f]{16}/)?.output, "\(added)")
        try FileManager.default.copyItem(atPath: folder.path("gate/state"), toPath: folder.path("backup"))
        let rotated = try await CommandLineRun("keys", "rotate", "data", "--dev", directory)
        #expect(rotated.status == 0, "\(rotated.errors)")
        try await run()
        try replace(folder.path("gate/state"), by: folder.path("backup"))
        do {
            // As a backup of the middle of the pass has it.
            let work = try work()
            defer { work.close() }
            try work.store.write { $0.useDataKey(String(key)) }
        }
        try await expectDemand(for: [file])
    }

    /// Every file of the gateway, without what each connection to a database makes, and leaves empty.
    private func bytes() throws -> [String: Data] {
        var found: [String: Data] = [:]
        let names = FileManager.default.enumerator(atPath: directory)
        while let name = names?.nextObject() as? String {
            let path = "\(directory)/\(name)"
            var status = stat()
            guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, !name.hasSuffix("-shm")
            else { continue }
            let content = try Data(contentsOf: URL(filePath: path))
            if !name.hasSuffix("-wal") || !content.isEmpty { found[name] = content }
        }
        return found
    }

    @Test(arguments: [false, true])
    func `a dry run changes no byte, also beside a log that a kill left`(isKilled: Bool) async throws {
        do {
            let gate = try await GatewayFixture(in: folder.root)
            try await gate.registerSomebody()
            try await gate.stop(closesStore: !isKilled)
            try FileManager.default.copyItem(atPath: folder.path("gate/state"), toPath: folder.path("backup"))
            gate.wiring.store.close()
        }
        try await run()
        try replace(folder.path("gate/state"), by: folder.path("backup"))
        // A copy that was made without the files of the locks.
        for lock in ["state/state.lock", "trail/.lock"] {
            try FileManager.default.removeItem(atPath: "\(directory)/\(lock)")
        }
        let before = try bytes()
        if isKilled { #expect(before["state/gate.db-wal"] != nil, "\(before.keys.sorted())") }
        let looked = try await restore("--dry-run")
        #expect(looked.status == 0 && looked.output.contains("\"restored\":false"), "\(looked)")
        #expect(try bytes() == before)
        // What it says is what then happens.
        let restored = try await restore()
        #expect(restored.status == 0, "\(restored.errors)")
        func applied(_ run: CommandLineRun) throws -> JSONValue? {
            try CanonicalJSON.read(Array(run.output.utf8), limits: .document)["applied"]
        }
        #expect(try applied(looked) != nil && applied(looked) == applied(restored), "\(looked) \(restored)")
    }

    /// A stopped gateway's lock goes with the last of its background threads, a moment after the others.
    private func lockTrail() async throws -> FileLock {
        let deadline = ContinuousClock.now + .seconds(10)
        while true {
            let taken = Result<FileLock, any Error> { try TrailDirectoryWriter.lock(trail) }
            guard case .failure(let error) = taken, error as? TrailError == .inUse,
                ContinuousClock.now < deadline
            else { return try taken.get() }
            await Task.yield()
        }
    }

    @Test func `a trail that another process writes to is not restored from`() async throws {
        try await putBackupBack()
        let lock = try await lockTrail()
        let refused = try await restore("--dry-run")
        withExtendedLifetime(lock) {}
        #expect(refused.status == 1, "\(refused)")
        #expect(refused.errors.contains("stop the gateway that publishes there"), "\(refused.errors)")
    }

    @Test func `no writer comes between the look at the trail and the end of the restore`() async throws {
        try await putBackupBack()
        func expectInUse() {
            #expect(throws: TrailError.inUse) { _ = try TrailDirectoryWriter.lock(trail) }
        }
        let work = try work()
        defer { work.close() }
        expectInUse()
        let underWay = try plan(work)
        expectInUse()
        _ = try work.run(underWay) { _, _ in expectInUse() }
    }

    @Test func `an auditor with the keys of before a restore is told of its new name`() async throws {
        try await putBackupBack()
        let pinned = try folder.file(
            "pinned", String(contentsOfFile: folder.path("gate/trail/trail.pub"), encoding: .utf8))
        #expect(try await restore().status == 0)
        let refused = try await CommandLineRun("audit", "verify", trail, "--key", pinned)
        #expect(refused.status == 3, "\(refused)")
        let name = try #require(
            String(contentsOfFile: folder.path("gate/trail/checkpoint"), encoding: .utf8)
                .split(separator: "\n").first.map(String.init))
        #expect(refused.errors.contains("--origin \(name)"), "\(refused.errors)")
        let verified = try await CommandLineRun("audit", "verify", trail, "--key", pinned, "--origin", name)
        #expect(verified.status == 0, "\(verified.errors)")
    }
}
