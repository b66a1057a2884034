import BundleModel
import CompliancePolicy
import ConfigurationPages
import CanonicalJSON
import CommandTerminal
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Testing

@testable import sendgate

/// Which listeners may be in shadow, and what may be the next hop of a gateway where all are.
@Suite struct ShadowConfigurationTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func read(
        _ listeners: String, hop: String = "hop: {unix: /run/d.sock, users: [1002]}",
        flags: [Setting: String] = [:]
    ) throws -> GatewayConfiguration {
        let text = """
            state: /var/lib/sendgate
            trail: /var/lib/sendgate/trail
            policies: /etc/sendgate/policies
            keys: /etc/sendgate/keys
            origin: gate.example.com/prod
            unsubscribe_url: https://example.com/u/
            \(hop)
            listeners:
            \(listeners)
            callers:
              payments: {users: [1001]}
              product: {users: [1005]}
            policy_signing:
              compliance: ["policy-fe6be3c5fa7bc8b6+e1b1829b+AcLslsyzf9uOSyTuim2n2cf7lwqJsWresWAvx/bo/dT7"]
              security: ["policy-b7ba3ccfddc01ece+9adab86e+AScLanoFRYtS0h7tZKUcZ4oT/pbUDWEhTPCkU11aBELA"]
              legal: ["policy-dd5c9ae9bac4b5a4+91e4a24e+AWnA/v/o8AtzuWLqkal205TmtYyQOy4Ui45K5rNbqFGs"]

            """
        return try GatewayConfiguration.read(
            flags: flags, environment: [:], filePath: folder.file("gate.yaml", text))
    }

    /// What a start says against it, at which place and with which hint.
    private func refusals(
        _ listeners: String, hop: String = "hop: {unix: /run/d.sock, users: [1002]}",
        flags: [Setting: String] = [:]
    ) throws -> [String] {
        do {
            try read(listeners, hop: hop, flags: flags).requireCallers(in: Repository.policy())
            return []
        } catch let error as ConfigurationDiagnostics {
            return error.diagnostics.map { "\($0.place ?? "") \($0.message) \($0.hint ?? "")" }
        }
    }

    private static func bound(_ caller: String, _ more: String...) -> String {
        (["path: /run/s/\(caller)/gate.sock", "mode: shadow", "caller: \(caller)", "users: [1001]"] + more)
            .enumerated().map { ($0 == 0 ? "  - " : "    ") + $1 }.joined(separator: "\n")
    }

    private static let file = "hop: {file: /var/lib/sendgate/onward.ndjson}"
    private static let managing = "  - path: /run/m/gate.sock\n    mode: manage"

    @Test func `the page's caller for copies of the security team's sends may use a socket in shadow`() throws
    {
        let page = try String(
            contentsOf: CommandLineRun.repository.appending(path: "Sources/sendgate/Sendgate.docc/Shadow.md"),
            encoding: .utf8)
        let caller = try #require(
            page.components(separatedBy: "```yaml\n").map { $0.components(separatedBy: "```")[0] }
                .first { $0.contains("security_copy:") })
        let bundle = "\(folder.root)/bundle"
        try FileManager.default.copyItem(atPath: CommandLineRun.policies, toPath: bundle)
        let callers = try String(contentsOfFile: "\(bundle)/callers.yaml", encoding: .utf8)
        try "\(callers)\n\(caller)".write(toFile: "\(bundle)/callers.yaml", atomically: true, encoding: .utf8)
        let critical = try String(contentsOfFile: "\(bundle)/critical.yaml", encoding: .utf8)
        try #require(page.contains("'s/callers: \\[security\\]/callers: [security, security_copy]/'"))
        try critical.replacing("callers: [security]", with: "callers: [security, security_copy]")
            .write(toFile: "\(bundle)/critical.yaml", atomically: true, encoding: .utf8)
        let policy = try CompiledPolicy(PolicyLoading.bundle(at: bundle))
        #expect(policy.grants(of: CallerName("security_copy")).contains(.sendCritical))
        try read(Self.bound("security_copy")).requireCallers(in: policy)
        #expect {
            try read(Self.bound("security")).requireCallers(in: policy)
        } throws: { "\($0)".contains("its caller `security` holds `preferences.step_up`") }
    }

    @Test func `a listener says what becomes of its sends, and its socket's mode beside`() throws {
        let configuration = try read(
            """
              - path: /run/a/gate.sock
                mode: "0600"
              - path: /run/b/gate.sock
                mode: enforce
                socket_mode: "0666"
            \(Self.managing)
            \(Self.bound("payments", "socket_mode: \"0666\"", "enforce_types: [payment.received]"))
            """)
        let listeners = configuration.listeners
        #expect(listeners.map(\.mode) == [0o600, 0o666, 0o660, 0o666])
        #expect(
            listeners.map(\.sends) == [
                .enforce, .enforce, .manage, .shadow(.init(types: [TypeID("payment.received")])),
            ])
        #expect(
            !configuration.isShadow && configuration.warnings.contains { $0.contains("`payment.received`") })
        #expect(throws: Never.self) { try configuration.requireCallers(in: Repository.policy()) }
        // What systemd makes has its mode from the unit, and what becomes of its sends from here.
        let systemd = "  - systemd: gate\n    mode: shadow\n    caller: payments\n    users: [1001]"
        #expect(try read(systemd).listeners.map(\.sends) == [.shadow(.init())])
        #expect(try refusals(systemd + "\n    socket_mode: \"0660\"").contains { $0.contains("SocketMode=") })
    }

    /// A name, the listeners, what is said.
    static let bad: [(name: String, listeners: String, says: [String])] = [
        ("a typo", "  - path: /a/g.sock\n    mode: shadwo", ["gate.yaml:10", "did you mean `shadow`?"]),
        (
            "neither a word nor a mode", "  - path: /a/g.sock\n    mode: dry",
            ["`dry`", "enforce, shadow, manage"]
        ),
        (
            "two modes of one socket", "  - path: /a/g.sock\n    mode: \"0666\"\n    socket_mode: \"0660\"",
            ["both say"]
        ),
        ("no mode", "  - path: /a/g.sock\n    socket_mode: \"0888\"", ["`0888`"]),
        (
            "enforced where all is", "  - path: /a/g.sock\n    enforce_types: [payment.received]",
            ["gate.yaml:10", "enforces everything"]
        ),
        (
            "enforced where nothing is sent", "\(managing)\n    enforce_callers: [payments]",
            ["takes no sends"]
        ),
        (
            "a grant to write", bound("product"),
            ["gate.yaml:9", "`product` holds `recipients.write`", "`consents.write`", "with `send` alone"]
        ),
        ("a grant that steps up", bound("security"), ["`preferences.step_up`"]),
        (
            "everybody", "  - path: /a/g.sock\n    mode: shadow",
            ["`product` holds", "bind it to one caller"]
        ),
        (
            "a type that is none", bound("payments", "enforce_types: [payment.recieved]"),
            ["gate.yaml:13", "did you mean `payment.received`?"]
        ),
        (
            "a caller elsewhere", bound("payments", "enforce_callers: [marketing]"),
            ["no sends of `marketing` come over"]
        ),
    ]

    @Test(arguments: bad.indices)
    func `what cannot be right is refused with its place and what to do`(index: Int) throws {
        let (name, listeners, says) = Self.bad[index]
        let refusals = try refusals(listeners)
        for text in says {
            #expect(refusals.contains { $0.contains(text) }, "\(name): no `\(text)` in \(refusals)")
        }
    }

    @Test func `a file is the hop where no listener hands a send over`() throws {
        let shadow = Self.bound("payments")
        for listeners in [shadow, "\(shadow)\n\(Self.managing)"] {
            let configuration = try read(listeners, hop: Self.file)
            #expect(configuration.hop == .file(path: "/var/lib/sendgate/onward.ndjson"))
            #expect(configuration.isShadow)
            #expect(try refusals(listeners, hop: Self.file).isEmpty)
        }
        // The command line wins over the file, as it does of every setting.
        let flagged = try read(shadow, flags: [.hopFile: "/tmp/onward"])
        #expect(flagged.hop == .file(path: "/tmp/onward"))
        let refused: [(listeners: String, says: String)] = [
            ("\(shadow)\n  - path: /a/g.sock", "make it `mode: shadow`, or `mode: manage`"),
            (Self.bound("payments", "enforce_types: [payment.received]"), "leave out what it enforces"),
            (Self.managing, "no listener is `mode: shadow`"),
        ]
        for (listeners, says) in refused {
            let refusals = try refusals(listeners, hop: Self.file)
            #expect(refusals.contains { $0.contains(says) }, "\(says): \(refusals)")
        }
        let both = try refusals(shadow, hop: "hop: {file: /tmp/f, unix: /run/d.sock, users: [1002]}")
        #expect(both.contains { $0.contains("both set") }, "\(both)")
        #expect(try refusals(shadow, hop: "hop: {file: onward}").contains { $0.contains("no absolute path") })
    }

    private func depth(_ rows: [CallerName: Int], security: Int = 0) -> OutboxDepth {
        OutboxDepth(
            rowCount: rows.values.reduce(0, +), securityRowCount: security, byteCount: 0,
            rowCountByCaller: rows)
    }

    @Test func `a file is no hop while real messages wait, which it would swallow`() throws {
        let payments = CallerName("payments")
        let file = try read(Self.bound("payments"), hop: Self.file)
        let unix = try read(Self.bound("payments"))
        // Nothing, or a notice that the gateway itself made.
        for waiting in [depth([:]), depth([.gateway: 1], security: 1)] {
            #expect(throws: Never.self) { try file.requireNothingWaits(waiting) }
        }
        // A message of a caller's, and a summary of some.
        for (waiting, count) in [
            (depth([payments: 1]), 1), (depth([.gateway: 1]), 1), (depth([payments: 2], security: 2), 2),
            (depth([payments: 3, .gateway: 1], security: 1), 3),
        ] {
            let failure = try #require(throws: CommandFailure.self) { try file.requireNothingWaits(waiting) }
            #expect(failure.message.hasPrefix("\(count) message"), "\(failure)")
            #expect(failure.hint?.contains("`hop.unix` of before") == true)
            #expect(throws: Never.self) { try unix.requireNothingWaits(waiting) }
        }
    }

    @Test func `a message that waits in the store is found by the start`() async throws {
        let gate = try await GatewayFixture(
            in: folder.root, hop: .unix(path: folder.path("nobody.sock"), serverUserIDs: nil))
        var configuration = gate.wiring.configuration
        configuration.developmentCaller = nil
        configuration.hop = .file(path: folder.path("onward"))
        func start() throws {
            try configuration.requireNothingWaits(gate.wiring.store.read { try $0.outboxDepth() })
        }
        try await gate.registerSomebody()
        #expect(throws: Never.self) { try start() }
        let sent = try await gate.send("one", "security.new_login", GatewayFixture.login)
        #expect(sent.status == 202, "\(sent.object)")
        #expect(throws: CommandFailure.self) { try start() }
        try await gate.stop()
    }

    @Test func `a bundle that does not fit a listener in shadow is refused while the gateway runs`()
        async throws
    {
        let policies = try folder.policies()
        let payments = CallerName("payments")
        let gate = try await GatewayFixture(in: folder.root, policies: policies) { configuration in
            for place in configuration.listeners.indices
            where configuration.listeners[place].caller == payments {
                configuration.listeners[place].sends = .shadow(.init())
            }
        }
        let first = gate.wiring.policy.current.digest
        try folder.edit(
            "Policies/callers.yaml", "statements and summaries of spending.\n    grants: [send]\n",
            "statements and summaries of spending.\n    grants: [send, receipts.write]\n")
        let next = try PolicyLoading.bundle(at: policies, addingDevelopmentCaller: DevelopmentGateway.caller)
        let says = "is in shadow, and its caller `payments` holds `receipts.write`"
        await gate.wiring.reload.reload()
        #expect(gate.wiring.policy.current.digest == first)
        #expect(gate.wiring.healthChecks.reloads.lastRefusal?.reason.contains(says) == true)
        let asked = try await gate.ask("POST", "/v1/policy/activate", ["digest": .string(next.digest.text)])
        #expect(asked.object["detail"]?.stringValue?.contains(says) == true, "\(asked.object)")
        #expect(gate.wiring.policy.current.digest == first)
        let ready = try await gate.ask("GET", "/readyz")
        let check = ready.object["checks"]?.arrayValue?.first { $0["name"] == "policy" }
        #expect(check?["detail"]?.stringValue?.contains(says) == true, "\(ready.object)")
        try await gate.stop()
    }

    @Test func `a type that is enforced and unknown is refused of the next bundle as at a start`() throws {
        let configuration = try read(Self.bound("payments", "enforce_types: [payment.recieved]"))
        let refused = try #require(throws: PolicyDiagnostics.self) {
            try configuration.requireStart(under: Repository.policy())
        }
        #expect(refused.description.contains("gate.yaml:13"), "\(refused)")
        #expect(refused.description.contains("the bundle knows no type `payment.recieved`"), "\(refused)")
        let fits = try read(Self.bound("payments", "enforce_types: [payment.received]"))
        #expect(throws: Never.self) { try fits.requireStart(under: Repository.policy()) }
    }

    @Test func `which grants are to write is said of each`() {
        let reading: Set<Grant> = [.send, .sendCritical, .trailRead, .subjectsRead, .metricsRead]
        #expect(Set(Grant.allCases.filter { !$0.isToWrite }) == reading)
    }

    @Test(arguments: [["--hop", "unix:/tmp/x"], ["--hop", "/tmp/x"]])
    func `without --dev a hop on the command line is a file`(arguments: [String]) async throws {
        let run = try await CommandLineRun(["serve", "--config", "/nonexistent"] + arguments)
        #expect(run.status == 64 && run.errors.contains("hop.unix"), "\(run.errors)")
    }
}
