import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import DeliveryRelay
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import Logging
import PolicyProof
import Testing
import TrailDirectory
import UnixSocketEndpoint
import UnixSockets
import WireProtocol

@testable import SQLiteStore
@testable import sendgate

@Suite struct ServingTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `a development gateway decides a send for a caller the bundle does not know`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        let sent = try await gate.send("one", "security.new_login", GatewayFixture.login)
        #expect(sent.status == 202, "\(sent.object)")
        let refused = try await gate.send("two", "promo.offer", [:])
        #expect(refused.status == 403)
        try await gate.stop()
    }

    @Test func `the development caller is in the archive, and the bundle's own callers stay as they were`()
        async throws
    {
        let gate = try await GatewayFixture(in: folder.root)
        let policy = gate.wiring.policy.current
        #expect(policy.bundle.developmentCaller == DevelopmentGateway.caller)
        #expect(policy.grants(of: DevelopmentGateway.caller) == .all)
        let plain = try PolicyLoading.bundle(at: CommandLineRun.policies)
        #expect(plain.developmentCaller == nil)
        #expect(plain.digest != policy.digest)
        for (name, rule) in plain.callers { #expect(policy.bundle.callers[name] == rule) }
        // The first checkpoint is the publisher's, in its own time; a stop waits for it.
        try await gate.stop()
        let archived = try CopiedTrail(at: folder.path("gate/trail")).policy(policy.digest)
        #expect(archived?.bundle.developmentCaller == DevelopmentGateway.caller)
    }

    private static func ask(_ handler: some RequestHandler, _ target: String) async -> (
        status: Int, body: String
    ) {
        let peer = Peer(
            credentials: PeerCredentials(userID: 1, groupID: 1, processID: 1, supplementaryGroups: []),
            boundCaller: nil, listener: 0)
        let request = WireRequest(kind: .single, method: "GET", target: target, headers: [], body: [])
        let answer = await withCheckedContinuation { continuation in
            handler.handle(request, from: peer) { continuation.resume(returning: $0) }
        }
        return (answer.status, String(decoding: answer.body, as: UTF8.self))
    }

    @Test func `a gateway whose bundle is being proved says how far that is, and takes nothing`() async throws
    {
        let handler = StartingHandler()
        #expect(await Self.ask(handler, "/healthz").status == 200)
        #expect(await Self.ask(handler, "/readyz").body.contains("proving the bundle"))
        handler.proved(43, of: 100)
        let readiness = await Self.ask(handler, "/readyz")
        #expect(readiness.status == 503 && readiness.body.contains("proving 43 %"), "\(readiness)")
        #expect(readiness.body.contains(#""ready":false"#), "\(readiness)")
        let send = await Self.ask(handler, "/v1/sends")
        #expect(send.status == 503 && send.body.contains("proving 43 %"), "\(send)")
        // What an older state directory still needs comes after the proof.
        MigrationNotices(
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, notices: nil, starting: handler
        ).tell(MigrationProgress(file: "gate.db", version: 4, work: .rows, done: 3, total: 4))
        let migrating = await Self.ask(handler, "/readyz").body
        #expect(migrating.contains("version 4, 75 % of 4 rows") && migrating.contains(#""name":"store""#))
        #expect(!migrating.contains("proving"), "\(migrating)")
        // The gateway takes the same sockets over.
        let gate = try await GatewayFixture(in: folder.root)
        handler.handOver(to: gate.wiring.gateway)
        #expect(await Self.ask(handler, "/readyz").body.contains(#""name":"store""#))
        try await gate.stop()
    }

    /// A bundle of its own, which no other test has proved in this process.
    private func configuration(named name: String) throws -> GatewayConfiguration {
        let policies = folder.path(name)
        try FileManager.default.copyItem(atPath: CommandLineRun.policies, toPath: policies)
        let page = "\(policies)/bundle.yaml"
        let text = try String(contentsOfFile: page, encoding: .utf8)
        let changed = text.replacingOccurrences(of: "name: starter", with: "name: \(name)")
        try #require(changed != text)
        try changed.write(toFile: page, atomically: true, encoding: .utf8)
        return try DevelopmentGateway(
            directory: folder.path("gate"), policies: policies, hop: nil, otherUserIDs: [],
            logLevel: .critical
        ).configuration
    }

    /// Counted in states, not in seconds: a start that decides each once is ready within the proof's time, however busy the
    /// machine is.
    @Test func `a start decides every state of the proof once, and none where the proof was kept`()
        async throws
    {
        let configuration = try configuration(named: "proved-once")
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let starting = try #require(
            try await StartingGateway.proving(configuration, environment: [:], logger: logger))
        // Nobody lacks a grant yet.
        let status = try await CommandLineRun("status", "--socket", folder.path("gate/gate.sock"))
        #expect(status.status == 1 && status.output.contains("not ready"), "\(status)")
        #expect(!status.errors.contains("metrics.read"), "\(status)")
        let policy = try PolicyLoading.signed(configuration)
        let whole = ProvedBundles.run(of: policy, grain: ProvedBundles.grain)
        #expect(starting.handler.stateCount == whole.stateCount)
        // The sockets are open already, and the second start ends there.
        await #expect(throws: (any Error).self) {
            try await StartingGateway.proving(
                self.configuration(named: "proved-twice"), environment: [:], logger: logger)
        }
        let wiring = try Wiring(configuration, environment: [:], logger: logger, starting: starting)
        #expect(starting.handler.stateCount == whole.stateCount)
        #expect(wiring.endpoint === starting.endpoint)
        await starting.endpoint.shutDown()
        wiring.store.close()
        #expect(try await StartingGateway.proving(configuration, environment: [:], logger: logger) == nil)
    }

    @Test func `a start that fails last of all lets the state directory go at once`() async throws {
        var configuration = try DevelopmentGateway(
            directory: folder.path("gate"), policies: CommandLineRun.policies, hop: nil, otherUserIDs: [],
            logLevel: .critical
        ).configuration
        configuration.endpoint.listenBacklog = 0
        // The sockets come after everything that the store is given to.
        for _ in 1...2 {
            let error = #expect(throws: EndpointError.self) {
                _ = try Wiring(
                    configuration, environment: [:],
                    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            }
            #expect(error?.description.contains("listenBacklog") == true)
            #expect(FileManager.default.fileExists(atPath: "\(configuration.stateDirectory)/state.lock"))
            #expect(throws: Never.self) { try SQLiteStore.requireUnused(configuration.stateDirectory) }
        }
        try await GatewayFixture(in: folder.root).stop()
    }

    @Test func `a command keeps a proof where the start of the same build looks`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let proofs = folder.path("gate/state/\(KeptProofs.fileName)")
        let kept = try String(contentsOfFile: proofs, encoding: .utf8)
        try FileManager.default.removeItem(atPath: proofs)
        let run = try await CommandLineRun(
            "policy", "prove", CommandLineRun.policies, "--keep", folder.path("gate/state"), "--json")
        #expect(run.status == 0, "\(run.errors)")
        #expect(
            run.output.contains(#""kept": true"#) || run.output.contains(#""kept":true"#), "\(run.output)")
        #expect(run.output.contains("\"build\"") && run.output.contains("\"version\""))
        // The gateway runs meanwhile, and its own line is the same to the byte.
        #expect(try String(contentsOfFile: proofs, encoding: .utf8) == kept)
        try await gate.stop()
        let nowhere = try await CommandLineRun(
            "policy", "prove", CommandLineRun.policies, "--keep", folder.path("none"))
        #expect(nowhere.status == 1 && nowhere.errors.contains("no state directory"), "\(nowhere.errors)")
    }

    @Test func `a start and a stop are entries, and a restart goes on where the trail ended`() async throws {
        try await GatewayFixture(in: folder.root).stop()
        try await GatewayFixture(in: folder.root).stop()
        let trail = try CopiedTrail(at: folder.path("gate/trail"))
        let kinds = try (0..<4).map { index in
            let bytes = try #require(try trail.reader.entry(UInt64(index)))
            return try CanonicalJSON.read(bytes)["kind"]?.stringValue
        }
        #expect(kinds == ["start", "stop", "start", "stop"])
    }

    @Test func `production refuses throwaway keys`() async throws {
        try await GatewayFixture(in: folder.root).stop()
        let configuration = try folder.file(
            "gate.yaml",
            """
            state: \(folder.path("state"))
            trail: \(folder.path("trail"))
            policies: \(CommandLineRun.policies)
            keys: \(folder.path("gate/keys"))
            origin: gate.example.com/test
            unsubscribe_url: https://example.com/u/
            hop: {unix: \(folder.path("hop.sock")), users: [1]}
            listeners: [{path: \(folder.path("gate.sock"))}]
            callers: {payments: {users: [1]}}
            policy_signing:
              compliance: ["policy-fe6be3c5fa7bc8b6+e1b1829b+AcLslsyzf9uOSyTuim2n2cf7lwqJsWresWAvx/bo/dT7"]
              security: ["policy-b7ba3ccfddc01ece+9adab86e+AScLanoFRYtS0h7tZKUcZ4oT/pbUDWEhTPCkU11aBELA"]
              legal: ["policy-dd5c9ae9bac4b5a4+91e4a24e+AWnA/v/o8AtzuWLqkal205TmtYyQOy4Ui45K5rNbqFGs"]

            """)
        let run = try await CommandLineRun("serve", "--config", configuration)
        #expect(run.status == 1)
        #expect(run.errors.contains("is a throwaway key and is accepted with --dev only"))
        #expect(!FileManager.default.fileExists(atPath: folder.path("state")))
    }

    @Test(arguments: ["gate/trail", "gate/trail/tile", "gate/trail/policies", "gate/keys"])
    func `a start on a folder that everybody may write in is refused`(_ open: String) async throws {
        try await GatewayFixture(in: folder.root).stop()
        let path = folder.path(open)
        for mode in [0o777, 0o1777] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            let error = await #expect(throws: (any Error).self) { try await GatewayFixture(in: folder.root) }
            switch error {
            case let error as CommandFailure:
                #expect(
                    error.message == "everybody may write `\(path)` (mode \(String(mode, radix: 8)))",
                    "\(error)")
            case let error as KeyFileError:
                #expect(error == .directoryTooOpen(path: path, mode: UInt32(mode)))
            default: Issue.record("\(String(describing: error))")
            }
        }
        // The directory of the keys is its owner's alone; a group may read the others.
        let mode = open == "gate/keys" ? 0o700 : 0o750
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        try await GatewayFixture(in: folder.root).stop()
    }

    private func leaveSomething() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        _ = try await gate.send("one", "security.new_login", GatewayFixture.login)
        try await gate.stop()
    }

    @Test func `no file or folder that the gateway believes may be written by everybody`() async throws {
        try await leaveSomething()
        // What a crash leaves behind.
        let database = folder.path("gate/state/gate.db")
        func leaveTheLogs() {
            for log in ["gate.db", "subjects.db"].flatMap({ ["\($0)-wal", "\($0)-shm"] }) {
                let path = folder.path("gate/state/\(log)")
                guard !FileManager.default.fileExists(atPath: path) else { continue }
                _ = FileManager.default.createFile(atPath: path, contents: nil)
            }
        }
        leaveTheLogs()
        let paths = ["state", "trail", "keys"].flatMap { part in
            let names = FileManager.default.enumerator(atPath: folder.path("gate/\(part)"))
            return ["gate/\(part)"]
                + (names?.compactMap { ($0 as? String).map { "gate/\(part)/\($0)" } } ?? [])
        }.map(folder.path)
        #expect(paths.count > 20 && paths.contains { $0.contains("/.writing") }, "\(paths)")
        for path in paths {
            // A start that is refused later than at the state directory has closed the database.
            leaveTheLogs()
            let mode = try #require(
                try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
            try FileManager.default.setAttributes([.posixPermissions: mode | 0o002], ofItemAtPath: path)
            let error = await #expect(throws: (any Error).self, "\(path)") {
                try await GatewayFixture(in: folder.root)
            }
            #expect(error.map { "\($0)".contains(path) } == true, "\(path): \(String(describing: error))")
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
        leaveTheLogs()
        // A copy that an installer with umask 022, or 002, has made.
        for path in paths where path.contains("/trail") {
            let mode = try #require(
                try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
            try FileManager.default.setAttributes([.posixPermissions: mode | 0o064], ofItemAtPath: path)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: database)
        try await GatewayFixture(in: folder.root).stop()
    }

    @Test(arguments: ["", "/types", "/types/promo.offer.yaml"])
    func `a bundle that everybody may write does not come into force`(_ open: String) async throws {
        let policies = try folder.policies()
        let path = policies + open
        let mode = try #require(
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
        try FileManager.default.setAttributes([.posixPermissions: mode | 0o002], ofItemAtPath: path)
        let error = await #expect(throws: PolicyDiagnostics.self) {
            try await GatewayFixture(in: folder.root, policies: policies)
        }
        #expect(error?.diagnostics.map(\.file) == [path])
        #expect(error?.diagnostics.first?.hint?.hasPrefix("run `chmod o-w \(path)`") == true)
    }

    @Test func `a directory others may enter is refused for development`() async throws {
        let open = folder.path("open")
        try FileManager.default.createDirectory(
            atPath: open, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
        let run = try await CommandLineRun("serve", "--dev", open)
        #expect(run.status == 1)
        #expect(run.errors.contains("chmod 700 \(open)"))
    }

    @Test func `other users get the callers' sockets and never the one that may do everything`() throws {
        let development = try DevelopmentGateway(
            directory: folder.path("shared"), policies: CommandLineRun.policies, hop: nil,
            otherUserIDs: [4711], logLevel: .critical)
        let listeners = development.configuration.listeners
        #expect(listeners.first?.source == .path(development.gateSocket))
        #expect(listeners.first?.mode == 0o600)
        #expect(listeners.first?.userIDs == [geteuid()])
        #expect(listeners.count == development.callerSockets.count + 1)
        for listener in listeners.dropFirst() {
            #expect(listener.mode == 0o666)
            #expect(listener.userIDs == [geteuid(), 4711])
        }
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("shared"))
        #expect(attributes[.posixPermissions] as? Int == 0o711)
    }

    @Test func `a reload puts a new bundle in force, and a broken one leaves the old`() async throws {
        let policies = try folder.policies()
        let gate = try await GatewayFixture(in: folder.root, policies: policies)
        let first = gate.wiring.policy.current.digest

        // Nothing changed: nothing happens.
        await gate.wiring.reload.reload()
        #expect(gate.wiring.policy.current.digest == first)

        try folder.edit("Policies/bundle.yaml", "version: 1", "version: 2")
        await gate.wiring.reload.reload()
        let second = gate.wiring.policy.current
        #expect(second.digest != first)
        #expect(second.bundle.version == 2)
        // The user that ran the gateway may still do everything under the new one.
        #expect(second.bundle.developmentCaller == DevelopmentGateway.caller)

        try folder.edit("Policies/bundle.yaml", "version: 2", "version: two")
        await gate.wiring.reload.reload()
        #expect(gate.wiring.policy.current.digest == second.digest)
        let checks = try await gate.ask("GET", "/readyz")
        #expect(checks.status == 200)
        let policy = checks.object["checks"]?.arrayValue?.first { $0["name"]?.stringValue == "policy" }
        #expect(policy?["detail"]?.stringValue?.contains("bundle.yaml:") == true, "\(checks.object)")
        try await gate.stop()

        let trail = try CopiedTrail(at: folder.path("gate/trail"))
        let entries = try (0..<4).map { index in
            try CanonicalJSON.read(try #require(try trail.reader.entry(UInt64(index))))
        }
        #expect(entries.map { $0["kind"]?.stringValue } == ["start", "policy", "policy_refused", "stop"])
        #expect(entries[2]["policy"]?.stringValue == second.digest.text)
    }

    @Test func `a disk without room makes the gateway unready`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let ready = try await gate.ask("GET", "/readyz")
        #expect(ready.object["ready"]?.booleanValue == true)
        var healthChecks = gate.wiring.healthChecks
        healthChecks.limits.freeDiskByteCountMin = .max
        let disk = healthChecks.checks().first { $0.name == "disk" }
        #expect(disk?.isPassed == false)
        #expect(disk?.detail?.contains("make room") == true)
        try await gate.stop()
    }

    @Test func `an idle gateway commits nothing`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.registerSomebody()
        let relay = Task { try await gate.wiring.relay.run() }
        _ = try await gate.send("one", "security.new_login", GatewayFixture.login)
        // The message has gone when the hop's answer is an event. Each look is a round through the gateway, so the
        // bound is on looks, not on time; without it a relay that never hands over would hang the run.
        var looksLeft = 20_000
        var isGone = false
        while !isGone, looksLeft > 0 {
            looksLeft -= 1
            let events = try await gate.ask("GET", "/v1/events?after=0").object["events"]?.arrayValue ?? []
            isGone = events.contains { $0["event"]?.stringValue == "handed_over" }
        }
        #expect(isGone, "the message was never handed over")
        let before = gate.wiring.core.engine.load.batchCount
        for _ in 0..<50 { _ = try await gate.ask("GET", "/readyz") }
        // The publisher's mark may still come; a relay that wakes itself would make thousands.
        #expect(gate.wiring.core.engine.load.batchCount - before <= 5)
        relay.cancel()
        try await relay.value
        try await gate.stop()
    }
}
