import CommandTerminal
import CourierModel
import CourierProviders
import Foundation
import Synchronization
import Testing

@testable import Courier

@Suite struct CommandTests {
    private func run(_ arguments: String...) async -> (
        status: CommandTerminal.ExitStatus, output: String, errors: String
    ) {
        let (output, errors) = (Written(), Written())
        var console = Console(
            writeOutput: output.add, writeErrors: errors.add, inputDescriptor: -1, environment: [:],
            isWatched: false)
        console.program = "sendgate-courier"
        let status = await Console.$current.withValue(console) { await CourierCommand.run(arguments) }
        return (status, output.text, errors.text)
    }

    private final class Written: Sendable {
        private let bytes = Mutex<[UInt8]>([])
        var text: String { String(decoding: bytes.withLock { $0 }, as: UTF8.self) }
        @Sendable func add(_ more: [UInt8]) { bytes.withLock { $0 += more } }
    }

    @Test func `a command line that makes no sense ends with 64, and help with 0`() async {
        for arguments in [
            ["serve"], ["serve", "--config", "/a", "--dev", "/b"], ["deliver"], ["check", "--no"],
        ] {
            let (output, errors) = (Written(), Written())
            let console = Console(
                writeOutput: output.add, writeErrors: errors.add, inputDescriptor: -1, environment: [:],
                isWatched: false)
            let status = await Console.$current.withValue(console) { await CourierCommand.run(arguments) }
            #expect(status == .usage, "\(arguments)")
            #expect(output.text == "")
        }
        let help = await run("--help")
        #expect(help.status == .done)
        #expect(help.output.contains("serve"))
        #expect(await run("--version").output == "\(ProgramVersion.text)\n")
    }

    @Test func `a configuration that cannot be read ends with 1 and says what to do`() async throws {
        let missing = await run("check", "--config", "/nowhere/courier.yaml")
        #expect(missing.status == .failed)
        #expect(missing.errors.hasPrefix("sendgate-courier: error: /nowhere/courier.yaml: cannot be read"))
    }

    @Test func `check says which way out cannot be reached and ends with 3`() async throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        // Port 1 of the loopback: nothing listens there.
        try folder.write(
            "courier.yaml", "mail: {host: \"127.0.0.1\", port: 1, security: none, from: a@example.com}\n")
        let found = await run("check", "--dev", folder.path, "--json")
        #expect(found.status == .foundDifference, "\(found.errors)")
        #expect(found.output.contains(#""way":"mail""#))
        #expect(found.output.contains(#""fault":"#))
        // A credential that cannot be used is a finding, and keeps nothing else from being looked at.
        try folder.write(
            "courier.yaml",
            """
            mail: {host: "127.0.0.1", port: 1, security: none, from: a@example.com}
            apps:
              main: {fcm: {service_account: \(folder.path)/none.json}}
            """)
        let table = await run("check", "--dev", folder.path)
        #expect(table.output.contains("fcm main"))
        #expect(table.output.contains("is missing; check the path"))
        #expect(table.output.contains("\nmail"))
        #expect(table.status == .foundDifference)
        #expect(table.output.hasPrefix("WAY"))
        #expect(await run("check", "--dev", folder.path + "/empty").errors == "no provider is configured\n")
    }

    @Test(arguments: [
        (0o644, "is open to others (mode 644)", "run `chmod 0400 "),
        (0o440, "is open to others (mode 440)", "run `chmod 0400 "),
    ])
    func `a credential that others may read is refused`(_ mode: Int, _ why: String, _ hint: String) throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        let path = try folder.write("key", "secret", mode: mode)
        let error = #expect(throws: CredentialError.self) { try CredentialFile(path: path).read() }
        #expect(error?.why == why)
        #expect(error?.hint.hasPrefix(hint) == true)
        #expect("\(try #require(error))".contains("secret") == false)
    }

    @Test(
        arguments: [
            ([0xEF, 0xBB, 0xBF, 0x73], "begins with a byte order mark", "begins with a byte order mark"),
            ([0x73, 0xC3, 0xB8], "has characters outside ASCII", nil),
            ([0x73, 0xFF], "has characters outside ASCII", "is not UTF-8"),
            (
                [0x73, 0x0A, 0x73], "is not one line of printable characters",
                "is not one line of printable characters"
            ), ([0x73, 0x0D, 0x0A], nil, nil),
        ] as [([UInt8], String?, String?)])
    func `a secret with bytes outside ASCII is refused, and a password may have them in UTF-8`(
        _ bytes: [UInt8], _ ascii: String?, _ utf8: String?
    ) throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        let path = "\(folder.path)/secret"
        #expect(
            FileManager.default.createFile(
                atPath: path, contents: Data(bytes), attributes: [.posixPermissions: 0o400]))
        func why(_ encoding: CredentialFile.LineEncoding) -> String? {
            do throws(CredentialError) {
                _ = try CredentialFile(path: path).readLine(encoding)
                return nil
            } catch {
                return error.why
            }
        }
        #expect(why(.ascii) == ascii)
        #expect(why(.utf8) == utf8)
    }

    @Test
    func `a credential that is missing, a folder, empty or too long is refused, and one of ours is read`()
        throws
    {
        let folder = try CourierFolder()
        defer { folder.remove() }
        func why(_ file: CredentialFile) -> String? {
            do throws(CredentialError) {
                _ = try file.read()
                return nil
            } catch {
                return error.why
            }
        }
        #expect(why(CredentialFile(path: folder.path + "/none")) == "is missing")
        #expect(why(CredentialFile(path: folder.path)) == "is not a file")
        #expect(
            why(CredentialFile(path: try folder.write("empty", "")))
                == "has 0 bytes, and 1 to 65536 are accepted")
        let long = try folder.write("long", String(repeating: "a", count: 65_537))
        #expect(why(CredentialFile(path: long)) == "has 65537 bytes, and 1 to 65536 are accepted")
        for mode in [0o400, 0o600] {
            #expect(try CredentialFile(path: try folder.write("m\(mode)", "s", mode: mode)).read() == [0x73])
        }
    }
}
