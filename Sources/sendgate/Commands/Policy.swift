import ArgumentParser
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import ConfigurationPages
import Foundation
import GateVocabulary
import PolicyFiles
import PolicyProof

/// `sendgate policy …`: the bundle, for those who write, review and load it.
struct Policy: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks, tests, proves, compares, signs and activates a bundle.",
        subcommands: [
            PolicyCheck.self, PolicyTest.self, PolicyProve.self, PolicyDiff.self, PolicyShow.self,
            PolicySign.self, PolicyActivate.self,
        ])
}

/// `sendgate policy check`: every problem at once, each with its line.
struct PolicyCheck: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Lists every problem of a bundle, with its line.",
        usage: "sendgate policy check DIR [--json]")

    static let example = "sendgate policy check Policies"

    @Argument(help: ArgumentHelp("The bundle's folder.", valueName: "dir")) var folder: String
    @OptionGroup var output: OutputOptions

    func run() async throws {
        do throws(PolicyDiagnostics) {
            let bundle = try PolicyLoading.bundle(at: folder)
            if output.json {
                var object = bundle.summary
                object["problems"] = .array([])
                object["remarks"] = .array(bundle.remarks.map { .object($0.json) })
                Terminal.print(object)
            } else {
                Terminal.print(bundle.headline)
                for remark in bundle.remarks { Terminal.warning(remark.placed(in: folder)) }
            }
        } catch {
            if output.json {
                Terminal.print(["problems": .array(error.diagnostics.map { .object($0.json) })])
            } else {
                for diagnostic in error.diagnostics {
                    Terminal.error(diagnostic.placed(in: folder), hint: diagnostic.hint)
                }
                let count = error.diagnostics.count
                Terminal.note(count == 1 ? "1 problem" : "\(count) problems")
            }
            throw ExitStatus.failed
        }
    }
}

/// `sendgate policy test`: the bundle's own cases.
struct PolicyTest: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "test",
        abstract: "Runs a bundle's cases and says what they cover.",
        usage: "sendgate policy test DIR [--json]",
        discussion:
            "Ends with 3 when a case comes out otherwise than it says, with 1 when the bundle has problems.")

    static let example = "sendgate policy test Policies"

    @Argument(help: ArgumentHelp("The bundle's folder.", valueName: "dir")) var folder: String
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let policy = CompiledPolicy(try PolicyLoading.bundle(at: folder))
        let results = policy.bundle.cases.map { $0.run(under: policy) }
        let failed = results.filter { !$0.passed }
        let coverage = CaseCoverage(results)
        if output.json {
            Terminal.print(Self.json(results, coverage))
        } else {
            show(results, failed, coverage)
        }
        if !failed.isEmpty { throw ExitStatus.foundDifference }
    }

    private func show(_ results: [CaseResult], _ failed: [CaseResult], _ coverage: CaseCoverage) {
        for result in failed {
            Terminal.print("FAILED \(result.example.place(in: folder)): \(result.example.name)")
            for difference in result.differences { Terminal.print("  \(difference)") }
            if let because = result.example.because { Terminal.print("  because: \(because)") }
        }
        Terminal.print("\(results.count - failed.count) of \(results.count) cases pass")
        func cover(_ what: String, _ reached: Int, _ all: Int, _ missing: [String]) {
            let rest = missing.isEmpty ? "" : "; not reached: \(missing.joined(separator: ", "))"
            Terminal.print("\(what): \(reached) of \(all)\(rest)")
        }
        cover(
            "outcomes", coverage.outcomes.count, Outcome.allCases.count, coverage.missingOutcomes.map(\.name))
        cover(
            "gates that said no", coverage.gates.count, Gate.allCases.count, coverage.missingGates.map(\.name)
        )
        cover(
            "reasons", coverage.reasons.count, Reason.allCases.count, coverage.missingReasons.map(\.rawValue))
    }

    private static func json(_ results: [CaseResult], _ coverage: CaseCoverage) -> JSONObject {
        [
            "cases": .array(
                results.map { result in
                    var object: JSONObject = [
                        "name": .string(result.example.name), "file": .string(result.example.file),
                        "passed": .boolean(result.passed),
                        "outcome": .string(result.decision.outcome.name),
                        "reason": .string(result.decision.reason.rawValue),
                        "differences": .array(result.differences.map { .string($0) }),
                    ]
                    if let line = result.example.line { object["line"] = .integer(Int64(line)) }
                    return .object(object)
                }),
            "passed": .integer(Int64(results.count(where: \.passed))),
            "failed": .integer(Int64(results.count(where: { !$0.passed }))),
            "not_reached": [
                "outcomes": .array(coverage.missingOutcomes.map { .string($0.name) }),
                "gates": .array(coverage.missingGates.map { .string($0.name) }),
                "reasons": .array(coverage.missingReasons.map { .string($0.rawValue) }),
            ],
        ]
    }
}

/// `sendgate policy show`: a bundle on one page, or one type of it.
struct PolicyShow: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract:
            "Shows a bundle, or one type of it, on a page.",
        usage: "sendgate policy show [TYPE] [--policies DIR] [--json]")

    static let example = "sendgate policy show transaction.failed --policies Policies"

    @Argument(help: ArgumentHelp("A notification type.", valueName: "type")) var type: String?
    @Option(help: ArgumentHelp("The bundle's folder.", valueName: "dir")) var policies = "Policies"
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let policy = CompiledPolicy(try PolicyLoading.bundle(at: policies))
        guard let type else { return try show(policy) }
        guard let found = policy.type(TypeID(type)) else {
            throw CommandFailure(
                "the bundle has no type `\(type)`",
                hint: NearestName.to(type, among: policy.types.map(\.id.text)).map { "did you mean `\($0)`?" }
                    ?? "`sendgate policy show --policies \(policies)` lists every type")
        }
        if output.json {
            // The page itself, as the digest covers it.
            guard let page = policy.bundle.documents["types/\(type).yaml"]?.json.objectValue else {
                preconditionFailure("the type \(type) has no page")
            }
            Terminal.print(page)
        } else {
            for line in TypePage(found, of: policy).lines { Terminal.print(line) }
        }
    }

    private func show(_ policy: CompiledPolicy) throws {
        let bundle = policy.bundle
        let claims = try PolicySignature.claims(on: bundle, in: policies)
        if output.json {
            var object = bundle.summary
            object["signatures"] = .object(
                JSONObject(claims.map { ($0.role.rawValue, .object($0.claim.json)) }))
            object["type_names"] = .array(policy.types.map { .string($0.id.text) })
            return Terminal.print(object)
        }
        Terminal.print(bundle.headline)
        Terminal.print("in effect from \(bundle.effectiveFrom)")
        for (role, claim) in claims { Terminal.print("\(role.rawValue): \(claim.words)") }
        Terminal.print("")
        var table = Table("type", "category", "tier", "sensitivity", "push", "")
        for type in policy.types {
            var marks: [String] = []
            if !type.isEnabled { marks.append("disabled") }
            if type.mandatory != nil { marks.append("mandatory") }
            if bundle.critical.contains(where: { $0.type == type.id }) { marks.append("may be critical") }
            table.add(
                type.id.text, type.category.rawValue, type.tier.rawValue, type.sensitivity.rawValue,
                type.body.push.rawValue, marks.joined(separator: ", "))
        }
        for line in table.lines { Terminal.print(line) }
    }
}

extension PolicySignature.Claim {
    fileprivate var words: String {
        switch self {
        case .unsigned: "unsigned"
        case .signed(let keys):
            "signed by \(keys.joined(separator: ", ")); only a gateway knows whether it pins the key"
        case .otherContents: "unsigned as it is now; what was signed were other contents"
        }
    }

    fileprivate var json: JSONObject {
        switch self {
        case .unsigned: ["state": "unsigned"]
        case .signed(let keys): ["state": "signed", "keys": .array(keys.map { .string($0) })]
        case .otherContents: ["state": "other_contents"]
        }
    }
}

extension PolicyBundle {
    var headline: String {
        (isStarter ? "a starter, an example to begin with: " : "")
            + "\(name) version \(version), \(types.count) types, \(callers.count) callers, \(cases.count) cases, \(notices.count) notices\ndigest \(digest)"
    }

    var summary: JSONObject {
        [
            "name": .string(name), "version": .integer(Int64(version)), "digest": .string(digest.text),
            "effective_from": .string("\(effectiveFrom)"), "types": .integer(Int64(types.count)),
            "callers": .integer(Int64(callers.count)), "cases": .integer(Int64(cases.count)),
            "notices": .integer(Int64(notices.count)), "starter": .boolean(isStarter),
        ]
    }
}

extension PolicyDiagnostic {
    var json: JSONObject {
        var object: JSONObject = ["file": .string(file), "message": .string(message)]
        if let line { object["line"] = .integer(Int64(line)) }
        if let column { object["column"] = .integer(Int64(column)) }
        if let hint { object["hint"] = .string(hint) }
        return object
    }
}

extension PolicyCase {
    func place(in folder: String) -> String {
        "\(folder)/\(file)" + (line.map { ":\($0)" } ?? "")
    }
}
