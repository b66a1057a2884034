import CommandTerminal
import Foundation
import Testing
import UnixSockets

@testable import sendgate

/// `sendgate init` and `sendgate doctor`.
@Suite struct SetupTests {
    /// Accounts that every Debian has stand for the services; the gateway's user is whoever runs the test.
    private static func arguments(_ folder: TemporaryFolder, _ more: [String] = []) -> [String] {
        let path = folder.root
        return [
            "init", "--origin", "gate.example/set-up", "--unsubscribe-url", "https://example.com/u/",
            "--directory", "\(path)/etc", "--state", "\(path)/var", "--roles", "\(path)/roles",
            "--courier", "\(path)/courier.yaml", "--user", NSUserName(), "--hop", "\(path)/delivery.sock",
            "--hop-user", "daemon", "--policies", CommandLineRun.policies,
        ] + more
    }

    private static func mode(_ path: String) throws -> Int {
        let found = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        return try #require(found)
    }

    @Test
    func `everything a gateway begins with is made once, with the root key apart and each role's key alone`()
        async throws
    {
        let folder = try TemporaryFolder()
        let (etc, state) = (folder.root + "/etc", folder.root + "/var")
        let callers = ["--caller", "payments=daemon", "--caller", "product=bin"]
        let made = try await CommandLineRun(Self.arguments(folder, callers))
        try #require(made.status == 0, "\(made.errors)")
        #expect(try Self.mode("\(etc)/root.key") == 0o400)
        let keys = try FileManager.default.contentsOfDirectory(atPath: "\(state)/keys").sorted()
        #expect(
            keys.map { $0.prefix { $0 != "-" } } == ["data", "index", "link", "origin", "trail"], "\(keys)")
        for role in ["compliance", "security", "legal"] {
            let path = folder.root + "/roles/\(role)"
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).count == 1)
            #expect(try Self.mode(path) == 0o700)
        }
        #expect(try Self.mode("\(state)/trail") & 0o777 == 0o750)
        for line in ["usermod --append --groups sendgate-callers daemon", "sendgate doctor", "trail.pub"] {
            #expect(made.output.contains(line), "\(made.output)")
        }

        // A second time nothing is touched.
        let configuration = try String(contentsOfFile: "\(etc)/gate.yaml", encoding: .utf8)
        let again = try await CommandLineRun(Self.arguments(folder, callers))
        #expect(again.status == 1 && again.errors.contains("is there already"), "\(again.errors)")
        #expect(try String(contentsOfFile: "\(etc)/gate.yaml", encoding: .utf8) == configuration)

        // What was made is in order; what does not run yet is told with its mend.
        let looked = try await CommandLineRun(["doctor", "--config", "\(etc)/gate.yaml", "--json"])
        #expect(looked.status == 3, "\(looked.errors)")
        struct Answer: Decodable {
            struct Finding: Decodable {
                var check: String
                var fault: String?
                var mend: String?
            }
            var findings: [Finding]
        }
        let findings = try JSONDecoder().decode(Answer.self, from: Data(looked.output.utf8)).findings
        for check in ["configuration", "keys", "modes", "proof"] {
            let found = findings.filter { $0.check == check }
            #expect(!found.isEmpty && found.allSatisfy { $0.fault == nil }, "\(findings)")
        }
        let hop = try #require(findings.first { $0.check == "hop" })
        #expect(hop.fault?.contains("no process listens") == true && hop.mend?.contains("systemctl") == true)
        #expect(findings.allSatisfy { ($0.fault == nil) == ($0.mend == nil) }, "a fault without a mend")

        // What a careless copy does.
        chmod("\(etc)/root.key", 0o444)
        let careless = try await CommandLineRun(["doctor", "--config", "\(etc)/gate.yaml"])
        #expect(careless.output.contains("chmod 400 \(etc)/root.key"), "\(careless.output)")
        try FileManager.default.removeItem(atPath: "\(etc)/root.key")
        let without = try await CommandLineRun(["doctor", "--config", "\(etc)/gate.yaml"])
        #expect(without.status == 3 && without.output.contains("`root_key` is `root`"), "\(without.output)")
    }

    @Test(arguments: [
        ([], "--caller NAME=USER"), (["--caller", "payments"], "`--caller` is `payments`"),
        (["--caller", "paymints=daemon"], "no caller `paymints`"),
        (["--caller", "payments=nosuchuser"], "no user `nosuchuser`"),
        (["--caller", "payments=root"], "cannot be root"),
        (["--caller", "payments=daemon", "--caller", "product=daemon"], "`daemon` is named for"),
        (["--caller", "payments=daemon", "--app", "a b"], "`--app` is `a b`"),
        (["--caller", "payments=daemon", "--sockets", "run"], "`--sockets` is `run`"),
        (["--caller", "payments=daemon", "--hop-user", "nosuchuser"], "no user `nosuchuser`"),
        (["--caller", "payments=0"], "cannot be root"),
        (["--caller", "payments=4294967295"], "no user `4294967295`"),
        (["--caller", "payments=daemon", "--caller", "product=1"], "is named for"),
        // What only the configuration as a whole shows.
        (["--caller", "payments=65534"], "which the kernel reports for every user without a mapping"),
        (["--caller", "payments=daemon", "--origin", "a b"], "`origin` is `a b`"),
        (
            ["--caller", "payments=daemon", "--unsubscribe-url", "http://example.com"],
            "must start with `https://`"
        ),
    ])
    func `an answer that cannot be right stops it before anything is written`(more: [String], says: String)
        async throws
    {
        let folder = try TemporaryFolder()
        let refused = try await CommandLineRun(Self.arguments(folder, more))
        #expect(refused.status == 64 || refused.status == 1, "\(refused.errors)")
        #expect(refused.errors.contains(says) && refused.errors.contains("hint:"), "\(refused.errors)")
        #expect(!FileManager.default.fileExists(atPath: folder.root + "/etc"))
    }

    @Test func `a group that the socket needs is missing before anything is written`() async throws {
        try #require(
            UnixAccounts.groupID(named: SetupPlan.callersGroup) == nil, "the machine has the package")
        let folder = try TemporaryFolder()
        let refused = try await CommandLineRun(
            Self.arguments(folder, ["--caller", "payments=daemon", "--sockets", "\(folder.root)/run"]))
        #expect(
            refused.status == 1 && refused.errors.contains("no group `sendgate-callers`"), "\(refused.errors)"
        )
        #expect(refused.errors.contains("groupadd --system sendgate-callers"), "\(refused.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.root).isEmpty)
    }

    @Test func `a caller and who serves the hop may be numbers, as in a container`() async throws {
        let folder = try TemporaryFolder()
        let made = try await CommandLineRun(
            Self.arguments(
                folder, ["--caller", "payments=61001", "--caller", "product=2", "--hop-user", "61002"]))
        try #require(made.status == 0, "\(made.errors)")
        let text = try String(contentsOfFile: folder.root + "/etc/gate.yaml", encoding: .utf8)
        #expect(
            text.contains("payments: {users: [61001]}") && text.contains("users: [daemon, 61002]"), "\(text)")
        // A number that has a name here joins the group by it; another has no group on this machine.
        #expect(made.output.contains("usermod --append --groups sendgate-callers bin."), "\(made.output)")
        #expect(
            made.output.contains("Start what runs as 61001 with the supplementary group"), "\(made.output)")
    }

    @Test func `a gateway without a delivery layer is set up by the page about shadow`() async throws {
        let page = try String(
            contentsOf: CommandLineRun.repository.appending(path: "Sources/sendgate/Sendgate.docc/Shadow.md"),
            encoding: .utf8)
        #expect(page.contains("`sendgate init --hop /run/sendgate/none.sock --hop-user sendgate"))
        let parts = page.components(separatedBy: "```yaml\n")[1].components(separatedBy: "```")[0]
            .replacing("[payments]", with: "[daemon]").replacing("group: payments", with: "group: daemon")
            .components(separatedBy: "listeners:\n")
        let folder = try TemporaryFolder()
        let made = try await CommandLineRun(Self.arguments(folder, ["--caller", "payments=daemon"]))
        try #require(made.status == 0, "\(made.errors)")
        let path = folder.root + "/etc/gate.yaml"
        let text = try String(contentsOfFile: path, encoding: .utf8)
            .replacing(/hop:\n(  .*\n)+/, with: parts[0]).replacing("  - systemd: gate\n", with: parts[1])
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        let configuration = try GatewayConfiguration.read(
            environment: [Setting.rootKey.environmentName: folder.root + "/etc/root.key"], filePath: path)
        #expect(
            configuration.isShadow && text.contains("file: /var/lib/sendgate/state/onward.ndjson"), "\(text)")
    }

    /// A person's answers, one a line.
    private static func asked(_ lines: String, _ answers: SetupAnswers = .init()) throws -> SetupAnswers {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { close(ends[0]) }
        let bytes = Array(lines.utf8)
        try #require(write(ends[1], bytes, bytes.count) == bytes.count)
        close(ends[1])
        let console = Console(
            writeOutput: { _ in }, writeErrors: { _ in }, inputDescriptor: ends[0], environment: [:],
            isWatched: false)
        var answers = answers
        try SetupQuestions(console: console).complete(&answers, callers: ["payments", "product"])
        return answers
    }

    @Test func `what no option says is asked, and an empty line is what stands in brackets or nobody`() throws
    {
        let all = try Self.asked("gate.example/x\n\nhttps://example.com/u/\nalice\n\n\na.b c.d\n")
        #expect(all.origin == "gate.example/x" && all.unsubscribeURL == "https://example.com/u/")
        #expect(all.callers == [.init(caller: "payments", user: "alice")])
        #expect(all.hop == nil && all.apps == ["a.b", "c.d"])
        // Only what is open.
        var some = SetupAnswers(origin: "gate.example/y", unsubscribeURL: "https://example.com/u/")
        some.callers = [.init(caller: "product", user: "bob")]
        let rest = try Self.asked("/run/d.sock\nlayer\n\n", some)
        #expect(rest.hop == .init(path: "/run/d.sock", users: ["layer"]) && rest.apps.isEmpty)
        #expect(throws: CommandFailure.self) { try Self.asked("gate.example/x\n") }
    }
}
