import Foundation
import Testing

@Suite struct KeysCommandTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `init makes keys only their owner can read, and prints the public keyring`() async throws {
        let directory = folder.path("keys")
        let run = try await CommandLineRun("keys", "init", "--directory", directory)
        #expect(run.status == 0, "\(run.errors)")
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(names.count == 6 && !names.contains { $0.hasPrefix("policy-") })
        for name in names {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
            #expect(attributes[.posixPermissions] as? Int == 0o400)
            #expect(run.errors.contains("made \(directory)/\(name)"))
        }
        #expect(run.output.contains("purpose: trail"))
        #expect(!run.output.contains("secret"))
        // The keyring is what `keys list` reads back.
        let keyring = try folder.file("keyring.yaml", run.output)
        let fromKeyring = try await CommandLineRun("keys", "list", "--keyring", keyring)
        let fromDirectory = try await CommandLineRun("keys", "list", "--directory", directory)
        #expect(fromKeyring.status == 0, "\(fromKeyring.errors)")
        #expect(fromKeyring.output == fromDirectory.output)
        #expect(fromKeyring.output.split(separator: "\n").count == 7)
    }

    /// systemd: root's, 0440, in a folder of 0550.
    @Test func `a root key that is a credential of the service manager is listed, and none elsewhere`()
        async throws
    {
        try #require(getuid() == 0, "only root's files are credentials, so run it as root")
        let (directory, credentials) = (folder.path("keys"), folder.path("credentials"))
        #expect(try await CommandLineRun("keys", "init", "--directory", directory).status == 0)
        let root = try #require(
            try FileManager.default.contentsOfDirectory(atPath: directory).first { $0.hasPrefix("root-") })
        try FileManager.default.createDirectory(atPath: credentials, withIntermediateDirectories: false)
        let laid = "\(credentials)/root"
        try FileManager.default.moveItem(atPath: "\(directory)/\(root)", toPath: laid)
        chmod(laid, 0o440)
        chmod(credentials, 0o550)
        let list = ["keys", "list", "--directory", directory, "--root-key", laid]
        let elsewhere = try await CommandLineRun(list)
        #expect(elsewhere.status == 1 && elsewhere.errors.contains(laid), "\(elsewhere.errors)")
        let listed = try await CommandLineRun(list, environment: ["CREDENTIALS_DIRECTORY": credentials])
        #expect(listed.status == 0, "\(listed.errors)")
        #expect(listed.output.contains(root.dropLast(4)))
    }

    @Test func `nothing is ever overwritten`() async throws {
        let directory = folder.path("keys")
        #expect(try await CommandLineRun("keys", "init", "--directory", directory).status == 0)
        let before = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
        let again = try await CommandLineRun("keys", "init", "--directory", directory)
        #expect(again.status == 1)
        #expect(again.errors.contains("never overwritten"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).sorted() == before)
    }

    @Test func `an empty keyring is filled and a filled one is left alone`() async throws {
        let keyring = try folder.file("keyring.yaml", "# none yet\nkeys: []\n")
        #expect(try await CommandLineRun("keys", "list", "--keyring", keyring).output.isEmpty)
        let first = try await CommandLineRun(
            "keys", "init", "--directory", folder.path("a"), "--keyring", keyring)
        #expect(first.status == 0, "\(first.errors)")
        #expect(first.output.isEmpty)
        let text = try String(contentsOfFile: keyring, encoding: .utf8)
        let second = try await CommandLineRun(
            "keys", "init", "--directory", folder.path("b"), "--keyring", keyring)
        #expect(second.status == 1)
        #expect(try String(contentsOfFile: keyring, encoding: .utf8) == text)
        // Refused before any key was made.
        #expect(!FileManager.default.fileExists(atPath: folder.path("b")))
    }

    @Test func `a list of genuine keys that lacks one of the list before says which is gone`() async throws {
        let authority = folder.path("authority")
        let made = try await CommandLineRun(
            "keys", "authority", "init", "--directory", authority, "--name", "example.com/a")
        #expect(made.status == 0, "\(made.errors)")
        let (gate, roles) = (folder.path("gate.yaml"), folder.path("roles.yaml"))
        for run in [
            try await CommandLineRun("keys", "init", "--directory", folder.path("gate"), "--keyring", gate),
            try await CommandLineRun(
                "keys", "init", "--only", "policy", "--directory", folder.path("role"), "--keyring", roles),
        ] { #expect(run.status == 0, "\(run.errors)") }
        let policy = try #require(
            try FileManager.default.contentsOfDirectory(atPath: folder.path("role")).first
        ).dropLast(".key".count).suffix(16)
        func sign(_ lists: [String], _ more: [String], as name: String) async throws -> CommandLineRun {
            try await CommandLineRun(
                ["keys", "authority", "sign", "--directory", authority, "--gateway", "gate.example.com/prod"]
                    + lists.flatMap { ["--keys", $0] } + more + ["--out", folder.path(name)])
        }
        let first = try await sign([gate, roles], ["--first"], as: "one")
        #expect(first.status == 0 && !first.output.contains("gone"), "\(first)")
        let kept = try await sign([gate, roles], ["--after", folder.path("one")], as: "two")
        #expect(kept.status == 0 && !kept.output.contains("gone"), "\(kept)")
        let lacking = try await sign([gate], ["--after", folder.path("two")], as: "three")
        let gone = lacking.output.split(separator: "\n").filter { $0.contains("gone") }
        #expect(lacking.status == 0 && gone.count == 1 && gone[0].contains(policy), "\(lacking)")
    }

    @Test func `a list of genuine keys follows only one that the authority signed`() async throws {
        let (gate, one) = (folder.path("gate.yaml"), folder.path("one"))
        func make(_ directory: String, _ name: String) async throws {
            let made = try await CommandLineRun(
                "keys", "authority", "init", "--directory", folder.path(directory), "--name", name)
            #expect(made.status == 0, "\(made.errors)")
        }
        try await make("authority", "example.com/a")
        // Another key under the same name, and one that takes the place of the first.
        try await make("thief", "example.com/a")
        try await make("next", "example.com/b")
        let keys = try await CommandLineRun(
            "keys", "init", "--directory", folder.path("gate"), "--keyring", gate)
        #expect(keys.status == 0, "\(keys.errors)")
        func sign(_ directory: String, _ more: [String], as name: String) async throws -> CommandLineRun {
            try await CommandLineRun(
                [
                    "keys", "authority", "sign", "--directory", folder.path(directory), "--gateway",
                    "gate.example.com/prod", "--keys", gate,
                ] + more + ["--out", folder.path(name)])
        }
        func expectRefused(_ directory: String, after earlier: String) async throws {
            let run = try await sign(directory, ["--after", earlier], as: "never")
            #expect(run.status == 2 && run.output.isEmpty, "\(run)")
            #expect(
                run.errors.contains("`\(earlier)`: the keyset is not signed by the authority"),
                "\(run.errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.path("never")))
        }
        #expect(try await sign("authority", ["--first"], as: "one").status == 0)
        let text = try String(contentsOfFile: one, encoding: .utf8)
        let origin = try #require(text.split(separator: "\n").first { $0.hasPrefix("origin ") })
        for forged in [
            text.replacing("version 1\n", with: "version 4294967294\n"),
            text.replacing("\(origin)\n", with: ""),
            text.replacing(origin, with: origin.replacing(" active ", with: " deactivated ")),
        ] {
            #expect(forged != text)
            try await expectRefused("authority", after: folder.file("forged", forged))
        }
        try await expectRefused("thief", after: one)
        try await expectRefused("next", after: one)
        let followed = try await sign(
            "next", ["--after", one, "--authority", folder.path("authority/authority.pub")], as: "two")
        #expect(followed.status == 0 && followed.output.contains("version  2"), "\(followed)")
        #expect(try await sign("next", ["--after", folder.path("two")], as: "three").status == 0)
    }

    @Test func `a policy key is made by itself, and the keyring has it below the others`() async throws {
        let keyring = try folder.file("keyring.yaml", "# none yet\nkeys: []\n")
        func make(_ name: String) async throws -> CommandLineRun {
            try await CommandLineRun(
                "keys", "init", "--only", "policy", "--directory", folder.path(name), "--keyring", keyring)
        }
        for (number, role) in ["compliance", "legal"].enumerated() {
            let run = try await make(role)
            #expect(run.status == 0 && run.output.isEmpty, "\(run.errors)")
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path(role))
            #expect(names.count == 1 && names[0].hasPrefix("policy-"), "\(names)")
            #expect(run.errors.contains("made \(folder.path(role))/\(names[0])"))
            let list = try await CommandLineRun("keys", "list", "--keyring", keyring)
            #expect(list.output.split(separator: "\n").count == number + 2, "\(list)")
            #expect(list.output.contains(names[0].dropLast(".key".count)))
        }
        let gate = try folder.file("gate.yaml", "keys: []\n")
        let made = try await CommandLineRun(
            "keys", "init", "--directory", folder.path("gate"), "--keyring", gate)
        #expect(made.status == 0, "\(made.errors)")
        let before = try String(contentsOfFile: gate, encoding: .utf8)
        let added = try await CommandLineRun(
            "keys", "init", "--only", "policy", "--directory", folder.path("security"), "--keyring", gate)
        #expect(added.status == 0, "\(added.errors)")
        let after = try String(contentsOfFile: gate, encoding: .utf8)
        #expect(after.hasPrefix(before) && after != before)

        // A second one in the directory of the first, and below a list that takes no lines.
        let text = try String(contentsOfFile: keyring, encoding: .utf8)
        #expect(try await make("legal").status == 1)
        #expect(try String(contentsOfFile: keyring, encoding: .utf8) == text)
        let brackets = try folder.file(
            "brackets.yaml",
            "keys: [{id: x, purpose: trail, suite: Ed25519, state: active, created: \"2026\"}]\n")
        let refused = try await CommandLineRun(
            "keys", "init", "--only", "policy", "--directory", folder.path("other"), "--keyring", brackets)
        #expect(refused.status == 1, "\(refused.errors)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("other")))
        #expect(
            try await CommandLineRun(
                "keys", "init", "--only", "trail", "--directory", folder.path("other")
            ).status == 64)
    }

    @Test func `the repository's keyring lists no keys and admits no secrets`() async throws {
        let run = try await CommandLineRun("keys", "list", "--keyring", "Keys/keyring.yaml")
        #expect(run.status == 0)
        #expect(run.output.isEmpty)
        let secret = try folder.file(
            "leak.yaml",
            "keys:\n  - {id: x, purpose: trail, suite: Ed25519, state: active, created: \"2026\", secret: aa}\n"
        )
        let leak = try await CommandLineRun("keys", "list", "--keyring", secret)
        #expect(leak.status == 1)
        #expect(leak.errors.contains("`secret`"))
    }
}
