import AuditTrail
import BundleModel
import CommandTerminal
import CompliancePolicy
import ConfigurationPages
import Foundation
import GateVocabulary
import KeyFiles
import KeyLifecycle
import OpenSSLCrypto
import PolicyFiles
import SealedFormat
import UnixSockets

/// Writes what a plan says.
///
///     bundle → keys of the roles → signatures → keys of the gateway, root apart → owners → configuration
///
/// The configuration is last: without it no unit starts, and a run that was broken off is seen by its absence.
struct SetupWork {
    struct Made: Hashable {
        /// Files and directories, in the order in which they were made.
        var paths: [String] = []
    }

    private let plan: SetupPlan
    private var made = Made()

    init(_ plan: SetupPlan) { self.plan = plan }

    consuming func run() throws -> Made {
        try check()
        for (path, mode) in [
            (plan.places.directory, 0o755), (plan.places.roles, 0o700), (plan.places.state, 0o711),
        ] {
            try makeDirectory(path, mode: mode_t(mode))
        }
        try copyBundle()
        var signers: [ApprovalRole: String] = [:]
        for role in ApprovalRole.allCases { signers[role] = try sign(as: role) }
        try makeKeys()
        try makeTrail()
        try write(plan.configurationPath, plan.configurationText(signers: signers))
        if plan.hasCourier, access(plan.places.courier, F_OK) != 0,
            access((plan.places.courier as NSString).deletingLastPathComponent, F_OK) == 0
        {
            try write(plan.places.courier, plan.courierText)
        }
        try checkConfiguration(at: plan.configurationPath)
        return made
    }

    /// Finds, before anything is written, what would stop the work in the middle or keep the gateway from starting.
    private func check() throws {
        try ProvedBundles.demand(CompiledPolicy(PolicyLoading.bundle(at: plan.places.policies)))
        // The keys of the roles are made later; others stand for them.
        var signers: [ApprovalRole: String] = [:]
        for role in ApprovalRole.allCases {
            signers[role] = try Self.signer(PrivateKeyFile.generate(.policy, at: SystemClock().now()))
                .verifierKey
                .text
        }
        let path = NSTemporaryDirectory() + "sendgate-init-\(UUID().uuidString).yaml"
        try OutputFile.create(path, with: Array(plan.configurationText(signers: signers).utf8))
        defer { unlink(path) }
        do {
            try checkConfiguration(at: path)
        } catch let error as ConfigurationDiagnostics {
            // A line of a file that is gone helps nobody.
            throw ConfigurationDiagnostics(
                error.diagnostics.map { ConfigurationDiagnostic($0.message, hint: $0.hint) })
        }
    }

    private mutating func write(_ path: String, _ text: String) throws {
        try OutputFile.create(path, with: Array(text.utf8))
        made.paths.append(path)
    }

    private mutating func makeDirectory(_ path: String, mode: mode_t) throws {
        if mkdir(path, mode) == 0 {
            guard chmod(path, mode) == 0 else { throw failure("change the mode of", path) }
            made.paths.append(path)
        } else if errno != EEXIST {
            throw failure("make", path)
        }
    }

    private func failure(_ verb: String, _ path: String) -> CommandFailure {
        CommandFailure(
            "cannot \(verb) `\(path)`: \(String(cString: strerror(errno)))",
            hint: "run `sendgate init` as root")
    }

    /// Files that their owner alone may write, whatever the modes of the copied ones are.
    private mutating func copyBundle() throws {
        let source = plan.places.policies
        try makeDirectory(plan.policiesPath, mode: 0o755)
        guard let names = FileManager.default.enumerator(atPath: source) else {
            throw CommandFailure("`\(source)` cannot be read", hint: "name the bundle with `--policies`")
        }
        for case let name as String in names {
            let (from, to) = ("\(source)/\(name)", "\(plan.policiesPath)/\(name)")
            var status = stat()
            guard stat(from, &status) == 0 else { throw failure("read", from) }
            if status.st_mode & S_IFMT == S_IFDIR {
                guard mkdir(to, 0o755) == 0, chmod(to, 0o755) == 0 else { throw failure("make", to) }
                continue
            }
            // Whose keys signed the source is not pinned here.
            if name.hasSuffix(".sig") { continue }
            guard let bytes = FileManager.default.contents(atPath: from) else { throw failure("read", from) }
            try OutputFile.create(to, with: Array(bytes))
        }
    }

    private static func signer(_ key: PrivateKeyFile) throws -> NoteSigner {
        guard let signer = NoteSigner(name: key.id, key: try Ed25519PrivateKey(seed: key.secret)) else {
            preconditionFailure("the id of a key that was just made cannot name a signature: \(key.id)")
        }
        return signer
    }

    /// - Returns: The verifier key to pin.
    private mutating func sign(as role: ApprovalRole) throws -> String {
        let key = try PrivateKeyFile.generate(.policy, at: SystemClock().now())
        made.paths.append(try PrivateKeyDirectory.initialize(at: plan.rolePath(role), with: key))
        let signer = try Self.signer(key)
        let bundle = try PolicyLoading.bundle(at: plan.policiesPath)
        // What no gateway would put in force is not signed. Proved once, for the first role.
        if role == ApprovalRole.allCases.first { try ProvedBundles.demand(CompiledPolicy(bundle)) }
        try PolicySignature.sign(role, of: bundle, in: plan.policiesPath, by: signer)
        made.paths.append("\(plan.policiesPath)/\(PolicySignature.fileName(of: role))")
        return signer.verifierKey.text
    }

    /// The root key lies apart from those that it opens.
    private mutating func makeKeys() throws {
        // The package's directory is the gateway's user's already; keys are written by who owns it.
        try makeDirectory(plan.keysPath, mode: 0o700)
        try give(plan.keysPath, to: geteuid(), getegid())
        let paths = try PrivateKeyDirectory.initialize(
            at: plan.keysPath, rootIn: plan.places.directory, now: SystemClock().now())
        guard let root = paths.first, rename(root, plan.rootKeyPath) == 0 else {
            throw failure("write", plan.rootKeyPath)
        }
        made.paths += [plan.rootKeyPath] + paths.dropFirst()
        let keys = try PrivateKeyDirectory(
            at: plan.keysPath, rootPath: plan.rootKeyPath, acceptsThrowaway: false)
        try write(plan.keyringPath, keys.keyringText())
        for path in [plan.places.state, plan.keysPath] + paths.dropFirst() {
            try give(path, to: plan.userID, plan.groupID)
        }
    }

    private mutating func makeTrail() throws {
        try makeDirectory(plan.trailPath, mode: 0o750)
        let auditors = UnixAccounts.groupID(named: SetupPlan.auditorsGroup)
        try give(plan.trailPath, to: plan.userID, auditors ?? plan.groupID)
        // What is made in it later is of the auditors' group as well. A change of owner takes the bit away, so it comes last.
        guard chmod(plan.trailPath, 0o2750) == 0 else { throw failure("change the mode of", plan.trailPath) }
    }

    private func give(_ path: String, to user: UInt32, _ group: UInt32) throws {
        guard chown(path, user, group) == 0 else { throw failure("give `\(plan.user)`", path) }
    }

    /// What a start would refuse is found here, while whoever answered is still at the terminal.
    private func checkConfiguration(at path: String) throws {
        _ = try GatewayConfiguration.read(
            environment: [Setting.rootKey.environmentName: plan.rootKeyPath], filePath: path)
    }
}
