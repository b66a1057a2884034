import ArgumentParser
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import Foundation
import GateVocabulary
import KeyFiles
import KeyLifecycle
import OpenSSLCrypto
import PolicyFiles
import PolicyPages
import SealedFormat

/// `sendgate keys …`: the gateway's own keys.
struct Keys: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes, lists, rotates and ends keys.",
        subcommands: [
            KeysInit.self, KeysList.self, KeysAdd.self, KeysPromote.self, KeysSuspend.self, KeysResume.self,
            KeysRevoke.self, KeysDestroy.self, KeysLagging.self, KeysRotate.self, KeysKeyset.self,
            KeysAuthority.self,
        ])
}

/// `sendgate keys init`: the keys of a gateway, or the key of a role that signs bundles, in a directory of its own.
struct KeysInit: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Makes a gateway's private keys, or a policy key.",
        usage: """
            sendgate keys init --directory DIR [--keyring FILE]
            sendgate keys init --only policy --directory DIR [--keyring FILE]
            """,
        discussion: """
            Nothing is ever overwritten. The directory is made with mode 0700, the files with mode 0400. The keyring, \
            public material only, goes to standard output, or into FILE when that does not exist or lists no keys yet.

            A role that signs bundles has a key of its own, in a directory of its own, away from every gateway: \
            `--only policy` makes it, and adds it to FILE below the keys that FILE lists.
            """)

    static let example = "sendgate keys init --directory /tmp/gate-keys"

    /// What is made by itself.
    enum Only: String, ExpressibleByArgument, CaseIterable {
        case policy
    }

    @Option(help: ArgumentHelp("Where private keys are kept; outside every repository.", valueName: "dir"))
    var directory: String
    @Option(help: ArgumentHelp("Make only the key of a role that signs bundles.", valueName: "policy"))
    var only: Only?
    @Option(help: ArgumentHelp("Where to write the public keyring.", valueName: "file")) var keyring: String?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        if only == .policy { return try makePolicyKey() }
        // Before any key is made: a ceremony that ends half-way is worse than one that never began.
        if let keyring { try KeyringFile.checkWritable(keyring) }
        let paths = try PrivateKeyDirectory.initialize(at: directory, now: SystemClock().now())
        let keys = try PrivateKeyDirectory(at: directory, acceptsThrowaway: false)
        for path in paths { Terminal.note("made \(path)") }
        if let keyring {
            try OutputFile.replace(keyring, with: Array(keys.keyringText().utf8))
            Terminal.note("wrote \(keyring)")
        }
        if output.json {
            Terminal.print(["keys": .array(try KeyRow.rows(of: keys).map { .object($0.json) })])
        } else if keyring == nil {
            Terminal.print(Array(try keys.keyringText().utf8))
        }
        Terminal.note(
            "sendgate: hint: move the root key to where only the gateway can read it, and back all of them up offline"
        )
    }

    private func makePolicyKey() throws {
        let key = try PrivateKeyFile.generate(.policy, at: SystemClock().now())
        let lines = try key.keyringLines(as: .active)
        // Before the key is made, for the same reason.
        let text = try keyring.map { try KeyringFile.text(of: $0, adding: lines) }
        let path = try PrivateKeyDirectory.initialize(at: directory, with: key)
        Terminal.note("made \(path)")
        if let keyring, let text {
            try OutputFile.replace(keyring, with: Array(text.utf8))
            Terminal.note("wrote \(keyring)")
        }
        if output.json {
            Terminal.print(["keys": .array([.object(try KeyRow(key, state: .active).json)])])
        } else if keyring == nil {
            Terminal.print(Array((PrivateKeyDirectory.keyringHeading + lines).utf8))
        }
        Terminal.note("sendgate: hint: sign with it: `sendgate policy sign DIR --role ROLE --key \(path)`")
    }
}

/// `sendgate keys list`: ids, states and dates; never a secret.
struct KeysList: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists keys with state and date, never a secret.",
        usage: """
            sendgate keys list --directory DIR [--root-key FILE] [--json]
            sendgate keys list --keyring FILE [--json]
            sendgate keys list --socket PATH [--json]
            """,
        discussion: """
            With `--socket` as the running gateway has them, which is the record: a directory knows only which files \
            there are, and takes the newest of each purpose for the one in use.
            """)

    static let example = "sendgate keys list --keyring Keys/keyring.yaml"

    @Option(help: ArgumentHelp("A directory of private keys.", valueName: "dir")) var directory: String?
    @Option(help: ArgumentHelp("A root key kept elsewhere.", valueName: "file")) var rootKey: String?
    @Option(help: ArgumentHelp("A public keyring.", valueName: "file")) var keyring: String?
    @Option(help: ArgumentHelp("The socket of a running gateway.", valueName: "path")) var socket: String?
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if [directory, keyring, socket].count(where: { $0 != nil }) != 1 {
            throw ValidationError("give one of `--directory`, `--keyring` and `--socket`")
        }
        if rootKey != nil, directory == nil { throw ValidationError("`--root-key` goes with `--directory`") }
    }

    func run() async throws {
        let rows =
            if let directory {
                // Looking at throwaway keys does no harm; serving with them would.
                try KeyRow.rows(
                    of: PrivateKeyDirectory(
                        at: directory, rootPath: rootKey, credentials: Console.current.credentialsDirectory,
                        acceptsThrowaway: true))
            } else if let socket {
                try await GatewayConnection(path: socket).use { try await KeyRow.rows(from: $0) }
            } else {
                try KeyringFile.read(keyring ?? "")
            }
        if output.json { return Terminal.print(["keys": .array(rows.map { .object($0.json) })]) }
        guard !rows.isEmpty else { return Terminal.note("no keys yet") }
        var table = Table("id", "purpose", "suite", "state", "created", "public key")
        for row in rows {
            table.add(row.id, row.purpose, row.suite, row.state, row.created, row.publicKey ?? "")
        }
        for line in table.lines { Terminal.print(line) }
    }
}

/// What may be shown of one key.
struct KeyRow: Hashable, Sendable {
    var id: String
    var purpose: String
    var suite: String
    var state: String
    /// RFC 3339.
    var created: String
    /// Hexadecimal; `nil` for a symmetric key.
    var publicKey: String?

    static func rows(of keys: PrivateKeyDirectory) throws -> [KeyRow] {
        try KeyPurpose.allCases.flatMap { purpose in
            try (keys.keys[purpose] ?? []).enumerated().map { position, key in
                try KeyRow(key, state: position == 0 ? .active : .deactivated)
            }
        }
    }

    /// The keys of a running gateway, as its record has them.
    static func rows(from connection: GatewayConnection) async throws -> [KeyRow] {
        let answer = try await connection.get("/v1/keys")
        guard answer.status == 200, let keys = answer.object?["keys"]?.arrayValue else {
            throw answer.reportProblem()
        }
        return keys.map { key in
            KeyRow(
                id: key["key"]?.stringValue ?? "?", purpose: key["purpose"]?.stringValue ?? "?",
                suite: key["suite"]?.stringValue ?? "?", state: key["state"]?.stringValue ?? "?",
                created: key["created_at"]?.stringValue ?? "?",
                publicKey: key["public_key"]?.stringValue.flatMap { Base64URL.decode($0) }
                    .map { Hexadecimal.encode($0) })
        }
    }

    var json: JSONObject {
        var object: JSONObject = [
            "id": .string(id), "purpose": .string(purpose), "suite": .string(suite), "state": .string(state),
            "created": .string(created),
        ]
        if let publicKey { object["public_key"] = .string(publicKey) }
        return object
    }
}

extension KeyRow {
    init(_ key: PrivateKeyFile, state: KeyState) throws {
        self.init(
            id: key.id, purpose: key.purpose.rawValue, suite: key.purpose.suite, state: state.rawValue,
            created: key.createdAt.rfc3339,
            publicKey: try key.publicKey().map { Hexadecimal.encode($0.rawBytes) })
    }
}

/// `keyring.yaml`: which keys there are, for everybody to read.
enum KeyringFile {
    static let byteCountMax = 256 * 1024
    static let keyCountMax = 10_000

    static func read(_ path: String) throws -> [KeyRow] {
        try rows(in: CommandInput.bytes(of: path, byteCountMax: byteCountMax), of: path)
    }

    private static func rows(in bytes: [UInt8], of path: String) throws -> [KeyRow] {
        let root = try PolicyPage.read(bytes, file: path)
        func refuse(_ node: PolicyNode?, _ message: String) -> CommandFailure {
            CommandFailure(
                "\(node?.location.map { "\($0)" } ?? path): \(message)",
                hint: "a keyring is written by `sendgate keys init`")
        }
        guard case .mapping(let members) = root.value, members.map(\.key) == ["keys"],
            case .list(let elements)? = root["keys"]?.value, elements.count <= keyCountMax
        else { throw refuse(root, "a keyring has one member, `keys`, which is a list") }
        return try elements.map { element in
            func text(_ key: String) throws -> String {
                guard case .text(let text)? = element[key]?.value else {
                    throw refuse(element, "a key needs `\(key)`, a text")
                }
                return text
            }
            guard case .mapping(let members) = element.value else {
                throw refuse(element, "a key is a mapping")
            }
            let known = ["id", "purpose", "suite", "state", "created", "public_key"]
            if let other = members.first(where: { !known.contains($0.key) }) {
                throw refuse(other.value, "a key has no `\(other.key)`; a keyring holds public material only")
            }
            guard KeyPurpose(rawValue: try text("purpose")) != nil else {
                throw refuse(element["purpose"], "`\(try text("purpose"))` is no purpose of a key")
            }
            guard KeyState(rawValue: try text("state")) != nil else {
                throw refuse(element["state"], "`\(try text("state"))` is no state of a key")
            }
            return KeyRow(
                id: try text("id"), purpose: try text("purpose"), suite: try text("suite"),
                state: try text("state"), created: try text("created"),
                publicKey: element["public_key"] == nil ? nil : try text("public_key"))
        }
    }

    /// A keyring with one more key below those it lists.
    ///
    /// - Throws: Also when the lines do not fit below what is there, as below a list in brackets.
    static func text(of path: String, adding lines: String) throws -> String {
        guard access(path, F_OK) == 0, try !read(path).isEmpty else {
            return PrivateKeyDirectory.keyringHeading + lines
        }
        let bytes = try CommandInput.bytes(of: path, byteCountMax: byteCountMax)
        var text = String(decoding: bytes, as: UTF8.self)
        if !text.hasSuffix("\n") { text += "\n" }
        text += lines
        guard try rows(in: Array(text.utf8), of: path).count == read(path).count + 1 else {
            throw CommandFailure(
                "`\(path)` takes no further key at its end",
                hint: "write one key below the other, with `- id:`")
        }
        return text
    }

    /// - Throws: When the file is there and lists keys: those are a record of what was.
    static func checkWritable(_ path: String) throws {
        guard access(path, F_OK) == 0 else { return }
        guard try read(path).isEmpty else {
            throw CommandFailure(
                "`\(path)` lists keys already and is never overwritten",
                hint: "to rotate, add the new key to it beside the old")
        }
    }
}
