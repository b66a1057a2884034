import ArgumentParser
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import GateVocabulary
import PolicyFiles
import PolicyProof
import PolicyStatutes
import Synchronization

/// `sendgate policy prove`: that no decision under a bundle can break a statute.
struct PolicyProve: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "prove",
        abstract: "Proves that no decision under a bundle breaks the law.",
        usage: "sendgate policy prove [DIR] [--json]",
        discussion: """
            Decides every combination of facts and holds each decision against the statutes. Ends with 3 when one is \
            broken, and writes the smallest example as a case for the bundle's cases/; with 1 when the bundle has \
            problems. A gateway does the same with every bundle it loads.
            """)

    static let example = "sendgate policy prove Policies"

    @Argument(help: ArgumentHelp("The bundle's folder.", valueName: "dir")) var folder = "Policies"
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let policy = CompiledPolicy(try PolicyLoading.bundle(at: folder))
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
        if output.json {
            Terminal.print(Self.json(report, policy, milliseconds: milliseconds))
        } else {
            show(report, milliseconds: milliseconds)
        }
        if !report.holds { throw ExitStatus.foundDifference }
    }

    private func show(_ report: ProofReport, milliseconds: Int64) {
        for flaw in report.flaws { Terminal.error("\(folder)/\(flaw.placed)", hint: flaw.hint) }
        for refutation in report.refutations {
            Terminal.error(
                "\(folder)/\(refutation.diagnostic.placed)",
                hint: "see \(refutation.statute.law); the case below is what must come out")
        }
        for refutation in report.refutations { Terminal.print(Array((refutation.example + "\n").utf8)) }
        let states =
            "\(report.stateCount) states in \(milliseconds) ms, standing for 10^\(report.combinationsPowerOfTen) combinations of facts for \(report.sendCount) ways of asking"
        if report.holds {
            Terminal.print("no statute can be broken")
            Terminal.print(states)
        } else {
            let count = report.flaws.count + report.refutations.count
            Terminal.note(states)
            Terminal.note(
                count == 1 ? "1 statute or page is broken" : "\(count) statutes or pages are broken")
        }
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
