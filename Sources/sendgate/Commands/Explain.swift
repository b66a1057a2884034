import ArgumentParser
import CanonicalJSON
import CommandTerminal
import Foundation

/// `sendgate explain`: what the gate would say, gate by gate, without sending anything.
struct Explain: GateCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says what would be decided, gate by gate.",
        usage: """
            sendgate explain --socket PATH --type TYPE --user ID [--as CALLER] …
            sendgate explain --socket PATH --type TYPE --facts FILE|-
            sendgate explain --socket PATH --file FILE|-
            """,
        discussion: """
            Nothing is sent, counted or held. Ends with 0 when it would go out now, later or in a summary, with 2 \
            when the gate would say no.
            """)

    static let example = """
        sendgate explain --socket /tmp/gate/gate.sock --type promo.offer --user u_42 --as marketing \\
          --param headline='No fees this week' --param offer_id=0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10
        """

    @OptionGroup var socket: SocketOptions
    @Option(
        name: .customLong("as"),
        help: ArgumentHelp("Ask as this caller; lends no grant.", valueName: "caller"))
    var caller: String?
    @Option(help: ArgumentHelp("Facts instead of a stored recipient, as JSON.", valueName: "file"))
    var facts: String?
    @OptionGroup var language: LanguageOptions
    @OptionGroup var options: SendOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if facts == "-", options.file == "-" {
            throw ValidationError("`--facts` and `--file` cannot both read standard input")
        }
    }

    func run() async throws {
        var object = try options.object()
        if let caller { object["caller"] = .string(caller) }
        if let facts {
            object["facts"] = .object(
                try CommandInput.object(of: facts, byteCountMax: SendOptions.bodyByteCountMax))
        }
        let answer = try await socket.connection().use {
            try await $0.post("/v1/sends/explain\(language.query)", object)
        }
        throw show(answer)
    }

    private func show(_ answer: GatewayAnswer) -> ExitStatus {
        let outcome = answer.object?["outcome"]?.stringValue
        let status: ExitStatus =
            switch outcome {
            case "forward", "defer", "digest": answer.status == 200 ? .done : .failed
            case "suppress", "reject": answer.status == 200 ? .refusedByPolicy : .failed
            default: .failed
            }
        if output.json {
            Terminal.print(answer.body + [UInt8(ascii: "\n")])
            return status
        }
        guard answer.status == 200, outcome != nil, let object = answer.object else {
            return answer.reportProblem()
        }
        Terminal.print(Terminal.printable(DecisionWords.headline(object)))
        for pointer in object["params_violations"]?.arrayValue ?? [] {
            Terminal.print(
                Terminal.printable("The param `\(pointer.stringValue ?? "")` does not fit the type."))
        }
        for delivery in object["deliveries"]?.arrayValue ?? [] {
            Terminal.print("")
            let name = delivery["destination"]?.stringValue ?? "no destination"
            var line =
                "\(name): \(delivery["outcome"]?.stringValue ?? "?"), \(delivery["reason"]?.stringValue ?? "?")"
            if let moment = delivery["not_before"]?.stringValue { line += ", not before \(moment)" }
            if let form = delivery["form"]?.stringValue, form != "never" {
                line += "; body \(form), interruption \(delivery["interruption"]?.stringValue ?? "?")"
            }
            Terminal.print(Terminal.printable(line))
            for line in DecisionWords.gates(delivery["gates"]?.arrayValue ?? []) {
                Terminal.print("  \(line)")
            }
        }
        return status
    }
}
