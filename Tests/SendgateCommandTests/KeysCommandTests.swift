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
        #expect(names.count == 7)
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
        #expect(fromKeyring.output.split(separator: "\n").count == 8)
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
