import ArgumentParser
import AuditTrail
import CanonicalJSON
import CommandTerminal
import Foundation
import GateVocabulary
import KeyFiles
import KeyLifecycle
import OpenSSLCrypto
import SealedFormat

/// `sendgate keys authority …`: on a machine that is not the gateway, without a network.
struct KeysAuthority: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "authority",
        abstract: "Makes the offline key, and signs with it which public keys are genuine.",
        subcommands: [AuthorityInit.self, AuthoritySign.self])
}

/// The directory of an authority: one private key, and its public half beside it.
private enum AuthorityDirectory {
    static let publicName = "authority.pub"

    /// The newest key of the purpose.
    static func key(in directory: String) throws -> PrivateKeyFile {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: directory)
        } catch {
            throw CommandFailure(
                "cannot read `\(directory)`: \(error.localizedDescription)",
                hint: "`sendgate keys authority init --directory \(directory)` makes it")
        }
        let keys = try names.filter { $0.hasSuffix(".key") }
            .map {
                try PrivateKeyFile.read(
                    "\(directory)/\($0)", roots: [:], credentials: Console.current.credentialsDirectory)
            }
            .filter { $0.purpose == .authority }
        guard let newest = keys.max(by: { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }) else {
            throw CommandFailure(
                "`\(directory)` has no authority key",
                hint: "`sendgate keys authority init --directory \(directory)` makes one")
        }
        return newest
    }
}

/// `sendgate keys authority init`
struct AuthorityInit: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Makes the key that apps, auditors and gateways pin.",
        usage: "sendgate keys authority init --directory DIR --name NAME [--json]",
        discussion: """
            The private half is written into DIR, mode 0400, and nothing is overwritten. The public half goes to standard \
            output and into DIR/authority.pub: `authority` in the gateway's configuration, `AuthorityKey` in apps, and \
            `--authority` of `sendgate audit verify` take it. NAME is who signs, such as example.com/authority.
            """)
    static let example =
        "sendgate keys authority init --directory /tmp/authority --name example.com/authority"

    @Option(help: ArgumentHelp("Where the private key is kept; offline.", valueName: "dir"))
    var directory: String
    @Option(help: ArgumentHelp("Who signs; no space and no plus.", valueName: "name")) var name: String
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (1...128).contains(name.utf8.count), SignedNote.isKeyName(name),
            name.utf8.allSatisfy({ $0 < 0x7F })
        else {
            throw ValidationError("`--name` has 1 to 128 ASCII characters without space and `+`")
        }
    }

    func run() async throws {
        let publicPath = "\(directory)/\(AuthorityDirectory.publicName)"
        guard access(publicPath, F_OK) != 0 else { throw KeyFileError.exists(path: publicPath) }
        let key = try PrivateKeyFile.generate(.authority, at: SystemClock().now())
        let path = try PrivateKeyDirectory.initialize(at: directory, with: key)
        let signer = try Self.signer(key, name: name)
        try OutputFile.create(publicPath, with: Array((signer.verifierKey.text + "\n").utf8))
        Terminal.note("made \(path)")
        if output.json {
            Terminal.print(["key": .string(key.id), "verifier_key": .string(signer.verifierKey.text)])
        } else {
            Terminal.print(signer.verifierKey.text)
        }
    }

    static func signer(_ key: PrivateKeyFile, name: String) throws -> NoteSigner {
        guard let signer = NoteSigner(name: name, key: try Ed25519PrivateKey(seed: key.secret)) else {
            throw CommandFailure(
                "`\(name)` cannot name a key", hint: "use ASCII letters, digits, `.` and `/`")
        }
        return signer
    }
}

/// `sendgate keys authority sign`
struct AuthoritySign: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign", abstract: "Signs which public keys of a gateway are genuine.",
        usage: """
            sendgate keys authority sign --directory DIR --gateway NAME --keys FILE … --out FILE
              --first | --after FILE [--authority KEY|FILE …]
            """,
        discussion: """
            FILE of --keys is what `sendgate keys list --socket PATH --json` printed, or a keyring.yaml; the origin, trail \
            and policy keys in it are listed with their states. NAME is the gateway's `origin`. --after names the keyset \
            in force, which the authority signed: the new version is one above it, a key of it that was compromised stays \
            so, and whoever signs reads aloud what is new. Where another authority signed it, whose place this one takes, \
            --authority is its verifier key. --first signs version 1.
            """)
    static let example = """
        sendgate keys list --socket /tmp/gate/keys-team.sock --json > /tmp/keys.json
        sendgate keys authority sign --directory /tmp/authority --gateway gate.example.com/prod \\
          --keys /tmp/keys.json --first --out /tmp/keyset
        """

    static let daysMax = 800

    @Option(help: ArgumentHelp("The authority's directory.", valueName: "dir")) var directory: String
    @Option(help: ArgumentHelp("The gateway's name: its `origin`.", valueName: "name")) var gateway: String
    @Option(help: ArgumentHelp("The gateway's public keys. Repeatable.", valueName: "file"))
    var keys: [String] = []
    @Flag(help: "There was no keyset before: version 1.") var first = false
    @Option(help: ArgumentHelp("The keyset in force.", valueName: "keyset")) var after: String?
    @Option(help: ArgumentHelp("Another authority, which signed `--after`.", valueName: "key|file"))
    var authority: [String] = []
    @Option(help: ArgumentHelp("How long it says anything; 1 to 800 days.", valueName: "n")) var days = 400
    @Option(help: ArgumentHelp("Where the signed note goes.", valueName: "file")) var out: String
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if keys.isEmpty { throw ValidationError("`--keys` is missing: what is to be signed?") }
        if first == (after != nil) { throw ValidationError("give one of `--first` and `--after`") }
        if after == nil, !authority.isEmpty { throw ValidationError("`--authority` goes with `--after`") }
        guard (1...Self.daysMax).contains(days) else {
            throw ValidationError("`--days` is 1 to \(Self.daysMax)")
        }
    }

    func run() async throws {
        let key = try AuthorityDirectory.key(in: directory)
        let name = try Self.name(in: "\(directory)/\(AuthorityDirectory.publicName)", of: key)
        let signer = try AuthorityInit.signer(key, name: name)
        let earlier = try after.map { path in
            let page = try KeysetPage(at: path)
            // Without it a list that was altered on the way could have a compromised key accepted again, or use up the versions.
            try page.requireSignature(
                by: [signer.verifierKey] + authority.flatMap(AuditTrust.keys), named: path)
            return page.keyset
        }
        let now = UInt64(max(0, SystemClock().now().milliseconds / 1000))
        let listed = try listed()
        let keyset: Keyset
        do throws(KeysetError) {
            keyset = try Keyset(
                gateway: gateway, version: (earlier?.version ?? 0) + 1, issuedAt: now,
                expiresAt: now + UInt64(days) * 86_400, keys: listed)
            if let earlier, let refusal = keyset.refusal(toFollow: earlier) { throw refusal }
        } catch {
            throw CommandFailure("\(error)", hint: "nothing was signed", status: .refusedByPolicy)
        }
        guard !keyset.believed(.origin).isEmpty, !keyset.believed(.trail).isEmpty else {
            throw CommandFailure(
                "the keys have no origin or no trail key that could be believed",
                hint: "give the list of a gateway: `sendgate keys list --socket PATH --json`",
                status: .refusedByPolicy)
        }
        let note = SignedNote(text: keyset.text, signatures: [try signer.sign(keyset.text)])
        try OutputFile.create(out, with: note.bytes)
        if output.json {
            Terminal.print(KeysetPage(keyset, signedBy: [signer.verifierKey.name]).json)
        } else {
            KeysetPage(keyset, signedBy: [signer.verifierKey.name]).show(comparedWith: earlier)
        }
        Terminal.note("wrote \(out)")
    }

    /// The name in `authority.pub`, which is of this key.
    private static func name(in path: String, of key: PrivateKeyFile) throws -> String {
        let bytes = try CommandInput.bytes(of: path, byteCountMax: 4096)
        let text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines)
        let publicKey = try key.publicKey()
        guard let verifier = NoteVerifierKey(parsing: text), verifier.publicKey == publicKey else {
            throw CommandFailure(
                "`\(path)` is not the public half of `\(key.id)`",
                hint: "put back the line that `sendgate keys authority init` printed")
        }
        return verifier.name
    }

    /// The keys of every file that apps and auditors verify with.
    private func listed() throws -> [Keyset.Key] {
        var listed: [String: Keyset.Key] = [:]
        for row in try keys.flatMap({ try KeyRow.rows(in: $0) }) {
            guard let key = try row.listedKey() else { continue }
            if let other = listed.updateValue(key, forKey: "\(key.purpose) \(key.id)"), other != key {
                throw CommandFailure(
                    "`\(row.id)` stands in the lists twice, and differently",
                    hint: "take a new list from the gateway")
            }
        }
        return Array(listed.values)
    }
}

extension KeyRow {
    /// The rows of a list, in either of its forms.
    static func rows(in path: String) throws -> [KeyRow] {
        let bytes = try CommandInput.bytes(of: path, byteCountMax: KeyringFile.byteCountMax)
        guard bytes.first(where: { $0 > 0x20 }) == UInt8(ascii: "{") else {
            return try KeyringFile.read(path)
        }
        let value: JSONValue
        do {
            value = try CanonicalJSON.read(bytes, limits: .document)
        } catch {
            throw CommandFailure("`\(path)`: \(error)", hint: "it is what `keys list --json` printed")
        }
        guard let list = value["keys"]?.arrayValue, list.count <= KeyringFile.keyCountMax else {
            throw CommandFailure(
                "`\(path)` has no `keys`", hint: "it is what `sendgate keys list --json` printed")
        }
        return try list.map { key in
            guard let id = key["id"]?.stringValue, let purpose = key["purpose"]?.stringValue,
                let suite = key["suite"]?.stringValue, let state = key["state"]?.stringValue,
                let created = key["created"]?.stringValue
            else {
                throw CommandFailure(
                    "`\(path)` has a key without `id`, `purpose`, `suite`, `state` or `created`",
                    hint: "it is what `sendgate keys list --json` printed")
            }
            return KeyRow(
                id: id, purpose: purpose, suite: suite, state: state, created: created,
                publicKey: key["public_key"]?.stringValue)
        }
    }

    /// The key as a keyset lists it; `nil` for a purpose that is not listed.
    ///
    /// - Throws: When its id is not made of its public key: one of them was changed.
    fileprivate func listedKey() throws -> Keyset.Key? {
        guard let purpose = KeyPurpose(rawValue: purpose).flatMap({ Keyset.Purpose($0) }) else { return nil }
        guard let bytes = publicKey.flatMap({ GateVocabulary.Hexadecimal.decode($0) }),
            let state = KeyState(rawValue: state),
            let short = Keyset.Key.shortID(id),
            GateVocabulary.Hexadecimal.encode(SHA256.digest(bytes).bytes.prefix(8)) == short
        else {
            throw CommandFailure(
                "`\(id)` is not the id of its public key",
                hint: "take a new list from the gateway, and find out who changed this one")
        }
        return Keyset.Key(purpose: purpose, id: short, state: state, publicKey: bytes)
    }
}
