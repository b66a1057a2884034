import ArgumentParser
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import Foundation
import GateVocabulary

/// `sendgate send`: asks the gateway to notify a recipient.
struct Send: GateCommand {
    static let configuration = CommandConfiguration(
        abstract: "Asks to notify somebody, and says what was decided.",
        usage: """
            sendgate send --socket PATH --id ID --type TYPE --user ID [--params JSON] …
            sendgate send --socket PATH --file FILE|-
            """,
        discussion: """
            Ends with 0 when it goes out now, later or in a summary, with 2 when the gate says no. Repeating an id \
            sends nothing twice.
            """)

    static let example = FirstNotification.commands(program: "sendgate", socket: "/tmp/gate/gate.sock")

    @OptionGroup var socket: SocketOptions
    @Option(help: ArgumentHelp("Your own id for this send; one is made up when absent.", valueName: "id"))
    var id: String?
    @OptionGroup var options: SendOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        var object = try options.object()
        if let id { object["id"] = .string(id) }
        if object["id"] == nil { object["id"] = .string("cli-\(UUID().uuidString.lowercased())") }
        let answer = try await socket.connection().use { try await $0.post("/v1/sends", object) }
        throw Self.show(answer, output)
    }

    /// Prints the answer to one send.
    static func show(_ answer: GatewayAnswer, _ output: OutputOptions) -> ExitStatus {
        let isDecision = answer.object?["send_id"] != nil
        let status: ExitStatus =
            switch answer.status {
            case 202 where wouldBeStopped(answer): .refusedByPolicy
            case 202: .done
            case 403 where isDecision: .refusedByPolicy
            default: .failed
            }
        if output.json {
            Terminal.print(answer.body + [UInt8(ascii: "\n")])
            return status
        }
        guard isDecision, let object = answer.object else {
            return answer.reportProblem(unavailable: GatewayAnswer.sameID)
        }
        for line in lines(of: object) { Terminal.print(Terminal.printable(line)) }
        return status
    }

    /// Whether a send in shadow came to what is answered 403 elsewhere.
    private static func wouldBeStopped(_ answer: GatewayAnswer) -> Bool {
        answer.object?["reason"]?.stringValue.flatMap(Reason.init(rawValue:))?.outcome.isPromise == false
    }

    private static func lines(of object: JSONObject) -> [String] {
        var lines = [DecisionWords.headline(object)]
        if object["shadow"]?.booleanValue == true {
            lines.append("This socket is in shadow: it was decided and recorded, and does not go out.")
        }
        if object["replayed"]?.booleanValue == true {
            lines.append("This repeats the first answer to this id; nothing was sent again.")
        }
        if let hint = object["hint"]?.stringValue { lines.append("hint: \(hint)") }
        for violation in object["violations"]?.arrayValue ?? [] {
            lines.append(
                "\(violation["pointer"]?.stringValue ?? "?"): \(violation["message"]?.stringValue ?? "")")
        }
        lines += DecisionWords.deliveries(object["deliveries"]?.arrayValue ?? [])
        var evidence = "send \(object["send_id"]?.stringValue ?? "?")"
        if let index = object["trail"]?["index"]?.integerValue { evidence += ", entry \(index) of the trail" }
        lines.append(evidence)
        return lines
    }
}

/// A decision from the gateway's JSON in words.
enum DecisionWords {
    /// The outcome, its reason and who can change it, in one or two sentences.
    ///
    /// The gateway's own sentences where it was asked in a language, else the English ones.
    static func headline(_ object: JSONObject) -> String {
        let outcome = object["outcome"]?.stringValue ?? "?"
        let code = object["reason"]?.stringValue ?? "?"
        let detail = object["detail"]?.stringValue
        let label = "\(outcome): \(code)" + (detail.map { " (\($0))" } ?? "")
        guard let reason = Reason(rawValue: code) else { return label }
        let knownDetail = detail.flatMap(Detail.init(rawValue:))
        var sentences = [Explanation.english.sentence(reason, knownDetail)]
        var fix = Explanation.english.fix(reason, knownDetail)
        if let own = object["explanation"]?.stringValue, let ownFix = object["fix"]?.stringValue {
            (sentences, fix) = ([own], ownFix)
        }
        if !reason.outcome.isPromise { sentences.append(fix) }
        return "\(label). \(sentences.joined(separator: " "))"
    }

    static func deliveries(_ deliveries: [JSONValue]) -> [String] {
        var table = Table("destination", "outcome", "reason", "not before", "key")
        for delivery in deliveries {
            let detail = delivery["detail"]?.stringValue.map { " (\($0))" } ?? ""
            table.add(
                delivery["destination"]?.stringValue ?? "–", delivery["outcome"]?.stringValue ?? "",
                (delivery["reason"]?.stringValue ?? "") + detail, delivery["not_before"]?.stringValue ?? "",
                delivery["key_id"]?.stringValue ?? "")
        }
        return table.isEmpty ? [] : table.lines
    }

    /// Every gate of one explained delivery.
    static func gates(_ gates: [JSONValue]) -> [String] {
        var table = Table("gate", "", "verdict", "reason")
        for gate in gates {
            let detail = gate["detail"]?.stringValue.map { " (\($0))" } ?? ""
            table.add(
                gate["gate"]?.integerValue.map(String.init) ?? "", gate["name"]?.stringValue ?? "",
                gate["verdict"]?.stringValue == "not_applicable"
                    ? "–" : gate["verdict"]?.stringValue ?? "",
                (gate["reason"]?.stringValue ?? "") + detail)
        }
        return table.lines
    }
}
