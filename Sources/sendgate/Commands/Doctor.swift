import ArgumentParser
import CanonicalJSON
import CommandTerminal
import Foundation

/// `sendgate doctor`: what keeps a configured gateway from working, and the mend for each.
struct Doctor: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract:
            "Looks at accounts, modes, keys, proof, disk, clock and hop, and says the mend for each fault.",
        usage: "sendgate doctor [--config FILE] [--json]",
        discussion: """
            Changes nothing. Run it as root, who may look at everything: what cannot be looked at counts as a fault. Ends with 3 when \
            something is wrong.
            """)

    static let example = "sendgate doctor --config /etc/sendgate/gate.yaml"

    @Option(help: ArgumentHelp("The configuration.", valueName: "file"))
    var config = "/etc/sendgate/gate.yaml"
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let findings = await Examination(configurationPath: config).findings()
        if output.json {
            Terminal.print(["findings": .array(findings.map { .object($0.json) })])
        } else {
            var table = Table("CHECK", "LOOKED AT", "FOUND")
            for finding in findings { table.add(finding.check, finding.subject, finding.fault ?? "good") }
            for line in table.lines { Terminal.print(line) }
            for finding in findings {
                guard let mend = finding.mend else { continue }
                Terminal.print("\(finding.check): \(mend)")
            }
        }
        if findings.contains(where: { $0.fault != nil }) { throw ExitStatus.foundDifference }
    }
}

extension Finding {
    fileprivate var json: JSONObject {
        var object: JSONObject = ["check": .string(check), "subject": .string(subject)]
        object["fault"] = fault.map(JSONValue.string)
        object["mend"] = mend.map(JSONValue.string)
        return object
    }
}
