import ArgumentParser
import AuditTrail
import CanonicalJSON
import CommandTerminal
import GateSteps
import GateVocabulary
import SealedFormat

/// `sendgate keys keyset …`: the signed list of genuine keys.
struct KeysKeyset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keyset",
        abstract: "Shows the signed list of genuine keys, and puts one in force.",
        subcommands: [KeysetShow.self, KeysetInstall.self])
}

/// `sendgate keys keyset show`
struct KeysetShow: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Prints a keyset, to be read aloud.",
        usage: "sendgate keys keyset show FILE [--authority KEY|FILE …] [--after KEYSET] [--json]",
        discussion: """
            With --authority its signature is checked, and its expiry; else it says who claims to have signed it. With \
            --after the keys that are new or have another state are marked. `-` reads standard input.
            """)
    static let example = "sendgate keys keyset show /tmp/keyset --authority /tmp/authority/authority.pub"

    @Argument(help: ArgumentHelp("The signed note.", valueName: "file")) var file: String
    @Option(help: ArgumentHelp("The authority's verifier key, or a file of them.", valueName: "key|file"))
    var authority: [String] = []
    @Option(help: ArgumentHelp("An earlier keyset.", valueName: "keyset")) var after: String?
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let page = try KeysetPage(at: file)
        if !authority.isEmpty {
            try page.verify(by: authority.flatMap(AuditTrust.keys), at: SystemClock().now())
        }
        let earlier = try after.map { try KeysetPage(at: $0).keyset }
        if let earlier, let refusal = page.keyset.refusal(toFollow: earlier) {
            throw CommandFailure("\(refusal)", hint: "ask whoever signed it", status: .foundDifference)
        }
        if output.json { Terminal.print(page.json) } else { page.show(comparedWith: earlier) }
        if authority.isEmpty {
            Terminal.warning("no --authority is given, so nobody's signature was checked")
        }
    }
}

/// `sendgate keys keyset install`
struct KeysetInstall: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "install", abstract: "Brings a signed keyset to the gateway; two callers must.",
        usage: """
            sendgate keys keyset install FILE --socket PATH [--json]
            sendgate keys keyset install FILE --config FILE [--json]
            """,
        discussion: """
            The first caller proposes it, another who brings the same file puts it in force within the hour, and both are \
            in the trail. Refused unless an authority of the gateway's configuration signed it, its version is above the \
            one in force, and the origin and trail keys in use are in it.
            """)
    static let example = "sendgate keys keyset install /tmp/keyset --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("The signed note.", valueName: "file")) var file: String
    @OptionGroup var gateway: GatewayOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let bytes = try CommandInput.bytes(of: file, byteCountMax: SignedNote.byteCountMax)
        guard let note = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure("`\(file)` is not UTF-8", hint: "`keys authority sign` writes a keyset")
        }
        let answer = try await gateway.connection().use {
            try await $0.put("/v1/keyset", ["note": .string(note)])
        }
        guard answer.status < 300, let object = answer.object else { throw answer.reportProblem() }
        if output.json { return Terminal.print(object) }
        let version = object["version"]?.integerValue ?? 0
        if let until = object["second_caller_by"]?.stringValue {
            Terminal.print(
                "version \(version) is proposed: another caller must bring the same file by \(until)")
        } else {
            Terminal.print("version \(version) is in force until \(object["expires_at"]?.stringValue ?? "?")")
        }
    }
}

/// A keyset as a person reads it.
struct KeysetPage {
    let keyset: Keyset
    /// Names in its signatures; not checked.
    let signers: [String]
    private let note: [UInt8]

    init(_ keyset: Keyset, signedBy signers: [String]) {
        self.keyset = keyset
        self.signers = signers
        note = []
    }

    init(at path: String) throws {
        try self.init(CommandInput.bytes(of: path, byteCountMax: SignedNote.byteCountMax), named: path)
    }

    init(_ bytes: [UInt8], named path: String) throws {
        do {
            let signed = try SignedNote(parsing: bytes)
            keyset = try Keyset(parsing: signed.text)
            signers = signed.signatures.map(\.name)
            note = bytes
        } catch let error as NoteError {
            throw CommandFailure("`\(path)`: \(error)", hint: "`keys authority sign` writes a keyset")
        } catch let error as KeysetError {
            throw CommandFailure("`\(path)`: \(error)", hint: "`keys authority sign` writes a keyset")
        }
    }

    /// - Throws: A difference when none of the keys signed it, or when it has expired.
    func verify(by authorities: [NoteVerifierKey], at now: Instant) throws {
        do throws(KeysetError) {
            _ = try KeysetTrust(authorities: authorities, gateway: keyset.gateway).keyset(in: note, at: now)
        } catch {
            throw CommandFailure(
                "\(error)", hint: "ask the gateway for the keyset in force: `GET /v1/keyset`",
                status: .foundDifference)
        }
    }

    /// A keyset that has expired passes: the next one takes its place all the same.
    ///
    /// - Throws: When none of the keys signed it.
    func requireSignature(by authorities: [NoteVerifierKey], named path: String) throws {
        do throws(NoteError) {
            _ = try SignedNote(parsing: note).attestations(by: authorities)
        } catch {
            throw CommandFailure(
                "`\(path)`: \(KeysetError.notSigned(why: error.message))",
                hint: "nothing was signed; take the keyset in force from the gateway: `GET /v1/keyset`",
                status: .refusedByPolicy)
        }
    }

    func show(comparedWith earlier: Keyset?) {
        Terminal.print("gateway  \(keyset.gateway)")
        Terminal.print("version  \(keyset.version)")
        Terminal.print("issued   \(Self.date(keyset.issuedAt))")
        Terminal.print("expires  \(Self.date(keyset.expiresAt))")
        Terminal.print("signed   \(signers.joined(separator: ", "))")
        var table = Table("purpose", "id", "state", "believed", "public key", "")
        for key in keyset.keys {
            let old = earlier?.keys.first { $0.purpose == key.purpose && $0.id == key.id }
            let mark = earlier == nil || old == key ? "" : old.map { "was \($0.state.rawValue)" } ?? "new"
            table.add(
                key.purpose.rawValue, key.id, key.state.rawValue, key.isBelieved ? "yes" : "no",
                GateVocabulary.Hexadecimal.encode(key.publicKey), mark)
        }
        for key in earlier?.keys ?? []
        where !keyset.keys.contains(where: { $0.purpose == key.purpose && $0.id == key.id }) {
            table.add(
                key.purpose.rawValue, key.id, "", "no", GateVocabulary.Hexadecimal.encode(key.publicKey),
                "gone, was \(key.state.rawValue)")
        }
        for line in table.lines { Terminal.print(line) }
    }

    var json: JSONObject {
        [
            "gateway": .string(keyset.gateway), "version": .integer(Int64(keyset.version)),
            "issued": .string(Self.date(keyset.issuedAt)), "expires": .string(Self.date(keyset.expiresAt)),
            "signed_by": .array(signers.map { .string($0) }),
            "keys": .array(
                keyset.keys.map { key in
                    [
                        "purpose": .string(key.purpose.rawValue), "id": .string(key.id),
                        "state": .string(key.state.rawValue), "believed": .boolean(key.isBelieved),
                        "public_key": .string(GateVocabulary.Hexadecimal.encode(key.publicKey)),
                    ]
                }),
        ]
    }

    private static func date(_ seconds: UInt64) -> String {
        Instant(milliseconds: Int64(seconds) * 1000).rfc3339
    }
}
