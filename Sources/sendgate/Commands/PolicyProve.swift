import ArgumentParser
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import Foundation
import GateVocabulary
import KeyFiles
import OpenSSLCrypto
import PolicyFiles
import PolicyProof
import PolicyStatutes
import Synchronization

/// `sendgate policy prove`: that no decision under a bundle can break a statute.
struct PolicyProve: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "prove",
        abstract: "Proves that no decision under a bundle breaks the law.",
        usage: """
            sendgate policy prove [DIR] [--json]
            sendgate policy prove [DIR] --keep STATE [--keys DIR] [--root-key FILE] [--json]
            sendgate policy prove --config FILE [--json]
            """,
        discussion: """
            Decides every combination of facts and holds each decision against the statutes. Ends with 3 when one is \
            broken, and writes the smallest example as a case for the bundle's cases/; with 1 when the bundle has \
            problems. A gateway does the same with every bundle it loads, once for each build.

            With --keep the proof is kept in the state directory of a gateway, which may be running: the next start of this \
            very build there finds it, and is ready at once. Before an upgrade, prove with the new program, then stop the old \
            one. The proof is kept under the gateway's index key, so --keys says where its private keys are; SENDGATE_KEYS \
            and SENDGATE_ROOT_KEY do, too, and `keys` beside STATE, as `serve --dev` has them, needs neither.
            --config takes all of it, the bundle too, from the configuration of a gateway, and asks for the signatures that it pins.
            """)

    static let example = "sendgate policy prove Policies"

    @Argument(help: ArgumentHelp("The bundle's folder.", valueName: "dir")) var folder: String?
    @Option(
        help: ArgumentHelp("The configuration of the gateway that is to start with it.", valueName: "file"))
    var config: String?
    @Option(help: ArgumentHelp("Keep the proof in this gateway's state directory.", valueName: "dir"))
    var keep: String?
    @Option(help: ArgumentHelp("The gateway's private keys.", valueName: "dir")) var keys: String?
    @Option(help: ArgumentHelp("A root key kept elsewhere.", valueName: "file")) var rootKey: String?
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if config != nil, folder != nil || keep != nil || keys != nil || rootKey != nil {
            throw ValidationError("`--config` says where bundle, state and keys are")
        }
        if keep == nil, keys != nil || rootKey != nil {
            throw ValidationError("`--keys` and `--root-key` go with `--keep`")
        }
    }

    func run() async throws {
        // What cannot be kept says so before the proof and not after it.
        let configuration = try config.map {
            try GatewayConfiguration.read(environment: Console.current.environment, filePath: $0)
        }
        let keep = keep ?? configuration?.stateDirectory
        let place = try keep.map {
            try Self.place(
                in: $0, keys: keys ?? configuration?.keysDirectory,
                rootKey: rootKey ?? configuration?.rootKeyPath)
        }
        let folder = configuration?.policiesDirectory ?? folder ?? "Policies"
        let policy =
            if let configuration {
                try PolicyLoading.signed(configuration)
            } else {
                CompiledPolicy(
                    try PolicyLoading.bundle(
                        at: folder,
                        addingDevelopmentCaller: place?.isDevelopment == true
                            ? DevelopmentGateway.caller : nil))
            }
        let clock = ContinuousClock()
        let start = clock.now
        let line = Mutex(Progress("proving"))
        let report = ProvedBundles.run(of: policy, grain: ProvedBundles.grain) { done, total in
            line.withLock { $0.show(done, of: total) }
        }
        line.withLock { $0.end() }
        let taken = clock.now - start
        let milliseconds =
            taken.components.seconds * 1000 + taken.components.attoseconds / 1_000_000_000_000_000
        let isKept = report.holds && place?.proofs.add(policy.digest, grain: ProvedBundles.grain) == true
        if output.json {
            var answer = Self.json(report, policy, milliseconds: milliseconds)
            if place != nil { answer["kept"] = .boolean(isKept) }
            Terminal.print(answer)
        } else {
            show(report, of: folder, milliseconds: milliseconds)
            if let keep, isKept { Terminal.print("kept in \(keep) for the next start of this build") }
        }
        if !report.holds { throw ExitStatus.foundDifference }
        if let keep, !isKept {
            throw CommandFailure(
                "the proof cannot be kept in `\(keep)`",
                hint: "run as the gateway's user, or as root, with room on its disk")
        }
    }

    /// Where a gateway looks for its proofs, and whether it is one of `serve --dev`: that one adds a caller to the bundle, so
    /// its proof is another.
    private static func place(
        in state: String, keys: String?, rootKey: String?
    ) throws -> (proofs: KeptProofs, isDevelopment: Bool) {
        guard access(state, F_OK) == 0 else {
            throw CommandFailure(
                "there is no state directory `\(state)`",
                hint: "the first start of a gateway makes it, and proves for itself")
        }
        _ = SecretMemory.protect()
        let environment = Console.current.environment
        let sibling = "\(state)/../keys"
        guard
            let directory = keys ?? environment[Setting.keys.environmentName]
                ?? (access(sibling, F_OK) == 0 ? sibling : nil)
        else {
            throw CommandFailure.usage(
                "`--keep` needs the gateway's keys",
                hint: "name their directory with `--keys`, as `keys` of its configuration does")
        }
        let files = try PrivateKeyDirectory(
            at: directory, rootPath: rootKey ?? environment[Setting.rootKey.environmentName],
            credentials: Console.current.credentialsDirectory, acceptsThrowaway: true)
        let index = try files.current(.index)
        return (KeptProofs(in: state, key: HMACKey(index.secret)), index.isThrowaway)
    }

    private func show(_ report: ProofReport, of folder: String, milliseconds: Int64) {
        for flaw in report.flaws { Terminal.error("\(folder)/\(flaw.placed)", hint: flaw.hint) }
        for refutation in report.refutations {
            Terminal.error(
                "\(folder)/\(refutation.diagnostic.placed)",
                hint: "see \(refutation.statute.law); the case below is what must come out")
        }
        for refutation in report.refutations { Terminal.print(Array((refutation.example + "\n").utf8)) }
        let states =
            "\(report.stateCount) states in \(milliseconds) ms, standing for 10^\(report.combinationsPowerOfTen) combinations of facts for \(report.sendCount) ways of asking"
        let by = "proved by \(Self.build), which tells \(ProvedBundles.grain) apart"
        if report.holds {
            Terminal.print("no statute can be broken")
            Terminal.print(states)
            Terminal.print(by)
        } else {
            let count = report.flaws.count + report.refutations.count
            Terminal.note(states)
            Terminal.note(by)
            Terminal.note(
                count == 1 ? "1 statute or page is broken" : "\(count) statutes or pages are broken")
        }
    }

    /// The program whose gates were asked: its version, and the digest of its file, which two builds never share.
    private static var build: String {
        let digest = KeptProofs.runningBuild.map { Hexadecimal.encode($0.bytes) }
        return "sendgate \(Sendgate.version), build \(digest.map { String($0.prefix(16)) } ?? "unknown")"
    }

    private static func json(
        _ report: ProofReport, _ policy: CompiledPolicy, milliseconds: Int64
    ) -> JSONObject {
        [
            "policy": .string(policy.digest.text),
            "holds": .boolean(report.holds),
            "states": .integer(Int64(report.stateCount)),
            "combinations_power_of_ten": .integer(Int64(report.combinationsPowerOfTen)),
            "ways_of_asking": .integer(Int64(report.sendCount)),
            "milliseconds": .integer(milliseconds),
            "version": .string(Sendgate.version),
            "build": KeptProofs.runningBuild.map { .string(Hexadecimal.encode($0.bytes)) } ?? .null,
            "grain": .string("\(ProvedBundles.grain)"),
            "flaws": .array(report.flaws.map { .object($0.json) }),
            "broken": .array(
                report.refutations.map { refutation in
                    [
                        "statute": .string(refutation.statute.name),
                        "says": .string(refutation.statute.says),
                        "law": .string(refutation.statute.law),
                        "type": .string(refutation.request.type.text),
                        "caller": .string(refutation.request.caller.text),
                        "channel": .string(refutation.request.channel.rawValue),
                        "critical": .boolean(refutation.request.critical),
                        "facts": .object(refutation.facts.json),
                        "unusual": .array(refutation.unusual.map { .string($0) }),
                        "outcome": .string(refutation.decision.outcome.name),
                        "reason": .string(refutation.decision.reason.rawValue),
                        "case": .string(refutation.example),
                    ]
                }),
        ]
    }
}
