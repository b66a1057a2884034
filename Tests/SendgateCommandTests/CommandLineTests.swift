import CanonicalJSON
import Foundation
import GateVocabulary
import KeyFiles
import Testing

@testable import sendgate

@Suite struct CommandLineTests {
    private static let commands: [[String]] = [
        ["serve"], ["status"], ["send"], ["explain"], ["policy", "check"], ["policy", "test"],
        ["policy", "show"], ["policy", "diff"], ["policy", "sign"], ["policy", "activate"],
        ["consents", "show"],
        ["consents", "grant"], ["consents", "withdraw"], ["keys", "init"], ["keys", "list"],
        ["keys", "revoke"], ["keys", "keyset", "show"], ["keys", "keyset", "install"],
        ["keys", "authority", "init"], ["keys", "authority", "sign"],
        ["audit", "verify"], ["audit", "replay"], ["clock", "accept"],
        ["audit", "show"], ["report"],
    ]

    @Test(arguments: commands)
    func `help opens with a synopsis, ends with an example and fits one screen`(command: [String])
        async throws
    {
        let run = try await CommandLineRun(command + ["--help"])
        #expect(run.status == 0)
        #expect(run.errors.isEmpty)
        let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.first?.hasPrefix("USAGE: sendgate \(command.joined(separator: " "))") == true)
        #expect(lines.count <= 50)
        #expect(lines.allSatisfy { $0.count <= 100 })
        #expect(!run.output.contains("\n\n\n"))
        let example = try #require(run.output.components(separatedBy: "EXAMPLE:\n").last)
        #expect(example.contains("  sendgate \(command.joined(separator: " "))"))
        #expect(try await CommandLineRun(["help"] + command).output == run.output)
    }

    @Test func `the example of policy sign makes the one key that it signs with`() async throws {
        let folder = try TemporaryFolder()
        let lines = PolicySign.example.split(separator: "\n").map {
            $0.replacing("/tmp/policy-keys", with: folder.path("keys")).split(separator: " ").map(String.init)
        }
        let made = try await CommandLineRun(Array(try #require(lines.first).dropFirst()))
        #expect(made.status == 0, "\(made)")
        let pattern = try #require(lines.last?.last)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path("keys"))
        #expect(names.count == 1 && pattern == folder.path("keys/policy-*.key"))
        let name = try #require(names.first { $0.hasPrefix("policy-") && $0.hasSuffix(".key") })
        let key = try PrivateKeyFile.read(folder.path("keys/\(name)"), roots: [:])
        #expect(key.purpose == .policy)
    }

    @Test(arguments: [
        ["serve", "--bogus"], ["nonsense"], ["audit", "verify", "/tmp"], ["audit", "show", "/tmp", "x y"],
        ["audit", "show", "/tmp", "3", "--language", "norsk"],
        ["explain", "--socket", "/tmp/x", "--language", "nb?"],
        ["serve", "--dev", "/tmp/x", "--config", "/tmp/y"], ["serve", "--hop", "file:/x"],
        ["keys", "list"], ["send", "--type", "x"], ["policy", "check"],
        ["serve", "--dev", "/tmp/sendgate-none", "--hop", "pigeon"],
    ])
    func `a command line that makes no sense ends with 64, an error and a hint`(arguments: [String])
        async throws
    {
        let run = try await CommandLineRun(arguments)
        #expect(run.status == 64, "\(run.errors)")
        #expect(run.output.isEmpty)
        let lines = run.errors.split(separator: "\n")
        #expect(lines.first?.hasPrefix("sendgate: error: ") == true)
        #expect(lines.contains { $0.hasPrefix("sendgate: hint: ") })
    }

    @Test func `version and help are data`() async throws {
        let version = try await CommandLineRun("--version")
        #expect((version.status, version.output) == (0, "\(Sendgate.version)\n"))
        #expect(try await CommandLineRun().status == 0)
    }

    @Test(arguments: [
        ["--version"], ["policy", "check", "Policies"], ["policy", "check", "Keys"], ["nonsense"],
        ["status", "--socket", "/tmp/sendgate-nowhere.sock"],
    ])
    func `the binary says on its streams, and ends with, what its command does`(arguments: [String])
        async throws
    {
        let binary = try BinaryRun(arguments)
        let run = try await CommandLineRun(arguments)
        #expect((binary.status, binary.output, binary.errors) == (run.status, run.output, run.errors))
        #expect(!binary.output.isEmpty || !binary.errors.isEmpty)
    }

    @Test func `a decision is told in the gateway's own words where a language was asked for`() {
        var answer: JSONObject = ["outcome": "reject", "reason": "minor", "explanation": "Nei."]
        let english = "reject: minor. The recipient is under age, and this is not sent to minors."
        #expect(DecisionWords.headline(answer) == "\(english) There is nothing to put right.")
        answer["fix"] = "Slik er det."
        #expect(DecisionWords.headline(answer) == "reject: minor. Nei. Slik er det.")
    }

    @Test func `a gateway that is not there ends with 1 and says where to look`() async throws {
        let run = try await CommandLineRun("status", "--socket", "/tmp/sendgate-nowhere.sock")
        #expect(run.status == 1)
        #expect(run.errors.contains("sendgate: error: `/tmp/sendgate-nowhere.sock`"))
        #expect(run.errors.contains("sendgate: hint: is the gateway running"))
    }

    @Test func `errors cannot move the cursor of whoever reads them`() async throws {
        let run = try await CommandLineRun("policy", "show", "x\u{1B}[2Jy")
        #expect(run.status == 1)
        #expect(!run.errors.contains("\u{1B}"))
    }

    @Test(arguments: ["SENDGATE_DRIFT_EVERY_DAYS", "SENDGATE_LIMITS_RETENTION_DAYS"])
    func `a development gateway refuses a setting that it would not heed`(name: String) async throws {
        let folder = try TemporaryFolder()
        let run = try await CommandLineRun(
            ["serve", "--dev", folder.path("gate")], environment: [name: "40"])
        #expect(run.status == 64 && run.errors.contains("`\(name)` is set"), "\(run)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("gate")))
    }

    @Test func `serve without anything says everything it lacks`() async throws {
        let run = try await CommandLineRun("serve")
        #expect(run.status == 1)
        for setting in ["state", "trail", "policies", "keys", "origin", "hop.unix"] {
            #expect(run.errors.contains("`\(setting)` is not set"))
        }
        #expect(run.errors.contains("`SENDGATE_STATE`"))
    }
}
