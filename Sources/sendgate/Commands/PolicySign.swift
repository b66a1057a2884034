import ArgumentParser
import AuditTrail
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import GateVocabulary
import KeyFiles
import KeyLifecycle
import OpenSSLCrypto
import PolicyFiles

/// `sendgate policy sign`: approves a role's part of a bundle as it lies in its folder.
struct PolicySign: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Signs a role's part of a bundle that passes its checks and its proof.",
        usage: "sendgate policy sign DIR --role compliance|security|legal --key FILE [--json]",
        discussion: """
            `compliance` signs the whole bundle, `security` critical.yaml and callers.yaml, `legal` what says how the law is \
            read: mandatory types with their texts, permissions, regions, channels and notices. Writes \
            `ROLE.sig` into the folder, beside the signatures of others over the same contents. Prints the verifier key, \
            which a gateway pins under `policy_signing.ROLE`.
            """)

    static let example = """
        sendgate keys init --only policy --directory /tmp/policy-keys
        sendgate policy sign Policies --role compliance --key /tmp/policy-keys/policy-*.key
        """

    @Argument(help: ArgumentHelp("The bundle's folder.", valueName: "dir")) var folder: String
    @Option(help: ArgumentHelp("Whose approval it is.", valueName: "role")) var role: ApprovalRole
    @Option(help: ArgumentHelp("A private key of the purpose `policy`.", valueName: "file")) var key: String
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let file = try PrivateKeyFile.read(
            key, roots: [:], credentials: Console.current.credentialsDirectory)
        guard file.purpose == .policy else {
            throw CommandFailure(
                "`\(key)` is a key of the purpose `\(file.purpose.rawValue)`",
                hint: "bundles are signed with a key of the purpose `policy`")
        }
        guard let signer = NoteSigner(name: file.id, key: try Ed25519PrivateKey(seed: file.secret)) else {
            throw CommandFailure("the id of `\(key)` cannot name a signature", hint: "make a new key")
        }
        let bundle = try PolicyLoading.bundle(at: folder)
        // What no gateway would put in force is not signed.
        try ProvedBundles.demand(CompiledPolicy(bundle))
        try PolicySignature.sign(role, of: bundle, in: folder, by: signer)
        let pages = bundle.parts(signedAs: role)?.keys.sorted()
        if output.json {
            var object = bundle.summary
            object["role"] = .string(role.rawValue)
            object["signed_by"] = .string(signer.verifierKey.text)
            if let pages { object["pages"] = .array(pages.map { .string($0) }) }
            Terminal.print(object)
        } else {
            Terminal.print(bundle.headline)
            for page in pages ?? [] { Terminal.print("  \(page)") }
            Terminal.print("signed as \(role.rawValue) by \(signer.verifierKey)")
        }
    }
}

extension ApprovalRole: ExpressibleByArgument {}

/// `sendgate policy activate`: puts the configured bundle in force, if it is the one that was reviewed.
struct PolicyActivate: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "activate",
        abstract: "Puts the reviewed bundle in force.",
        usage: "sendgate policy activate DIR|DIGEST [--socket PATH] [--json]",
        discussion: """
            The gateway reads its own configured folder, never this one: DIR only says which digest was reviewed. \
            Another digest there, or a bundle that does not pass, leaves the one in force.
            """)

    static let example = "sendgate policy activate Policies --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("The reviewed bundle: its folder or its digest.", valueName: "bundle"))
    var bundle: String
    @OptionGroup var socket: SocketOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let isDigest = Hexadecimal.decode(bundle)?.count == 32
        let digest = isDigest ? bundle : try PolicyLoading.bundle(at: bundle).digest.text
        let answer = try await socket.connection().use {
            try await $0.post("/v1/policy/activate", ["digest": .string(digest)])
        }
        guard answer.status == 200, let object = answer.object else { throw answer.reportProblem() }
        if output.json { return Terminal.print(object) }
        Terminal.print("in force  \(object["policy"]?.stringValue ?? "?")")
        if let previous = object["previous"]?.stringValue { Terminal.print("before    \(previous)") }
    }
}

extension PolicySignature {
    /// Signs a role's part of a bundle in its folder: a gateway that reads meanwhile finds the old file or the new one.
    static func sign(
        _ role: ApprovalRole, of bundle: PolicyBundle, in folder: String, by signer: NoteSigner
    ) throws {
        try OutputFile.replace(
            "\(folder)/\(fileName(of: role))", with: signed(role, of: bundle, in: folder, by: signer))
    }
}
