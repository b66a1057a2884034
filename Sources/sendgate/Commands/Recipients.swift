import ArgumentParser
import CanonicalJSON
import CommandTerminal
import GateVocabulary

/// `sendgate recipients …`: what is held of one person, asked over the socket.
struct Recipients: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows, exports and erases one person.",
        subcommands: [RecipientsShow.self, RecipientsExport.self, RecipientsErase.self])
}

/// A person, in the commands about one.
struct RecipientOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("The person.", valueName: "user")) var user: String
    @OptionGroup var gateway: GatewayOptions
    @OptionGroup var output: OutputOptions

    var target: String { "/v1/recipients/\(PercentEncoding.encode(user))" }

    /// All that is held of the person.
    func held() async throws -> JSONObject {
        let answer = try await gateway.connection(isReading: true).use { try await $0.get(target) }
        guard answer.status == 200, let object = answer.object else { throw answer.reportProblem() }
        return object
    }
}

/// `sendgate recipients show`
struct RecipientsShow: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Says what is known of somebody, where they are reached, and what they chose.",
        usage: "sendgate recipients show USER [--socket PATH] [--json]",
        discussion: "Numbers and mailboxes are shown; push tokens never. Needs the grant `subjects.read`.")

    static let example = "sendgate recipients show u_42 --socket /tmp/gate/auditor.sock"

    @OptionGroup var options: RecipientOptions

    func run() async throws {
        let person = try await options.held()
        if options.output.json { return Terminal.print(person) }
        for line in Self.lines(of: person) { Terminal.print(Terminal.printable(line)) }
    }

    private static func lines(of person: JSONObject) -> [String] {
        func text(_ value: JSONValue?, _ key: String) -> String { value?[key]?.stringValue ?? "–" }
        func list(_ key: String) -> [JSONValue] { person[key]?.arrayValue ?? [] }
        var lines = [
            "\(person["user"]?.stringValue ?? "?"), registered at \(person["registered_at"]?.stringValue ?? "?")"
        ]
        for key in ["region", "age", "locale", "time_zone", "privacy", "push_enabled", "quiet_hours"] {
            guard let value = person[key] else { continue }
            let shown =
                value.stringValue ?? value.booleanValue.map { "\($0)" }
                ?? String(decoding: CanonicalJSON.write(value), as: UTF8.self)
            lines.append("  \(key): \(shown)")
        }
        var places = Table("destination", "what", "where", "state")
        for device in list("devices") {
            places.add(
                text(device, "device"), text(device, "platform"), text(device, "app"),
                device["active"] == true ? "active, \(text(device, "os_permission"))" : "inactive")
        }
        for address in list("addresses") {
            places.add(
                text(address, "address"), text(address, "kind"), text(address, "value"),
                address["verified_at"] == nil ? "not verified" : "verified")
        }
        if !places.isEmpty { lines += [""] + places.lines }
        var choices = Table("scope", "channel", "destination", "state", "since", "source")
        for choice in list("preferences") {
            choices.add(
                text(choice, "scope"), text(choice, "channel"), text(choice, "destination"),
                text(choice, "state"), text(choice, "at"), text(choice, "source"))
        }
        if !choices.isEmpty { lines += [""] + choices.lines }
        lines += [
            "",
            "\(list("consents").count) consent records (`sendgate consents show`), \(list("decisions").count) decisions at least (`--json` has them)",
        ]
        return lines
    }
}

/// `sendgate recipients export`: the copy that a person has a right to (GDPR Arts. 15 and 20).
struct RecipientsExport: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes all that is held of somebody to a file.",
        usage: "sendgate recipients export USER --output FILE [--socket PATH]",
        discussion: """
            One JSON document with everything that is held and may be shown, decisions among it (GDPR Arts. 15 and 20). \
            FILE must not be there.
            """)

    static let example =
        "sendgate recipients export u_42 --output u_42.json --socket /tmp/gate/auditor.sock"

    @OptionGroup var options: RecipientOptions
    @Option(name: .customLong("output"), help: ArgumentHelp("Where it goes.", valueName: "file")) var file:
        String

    func run() async throws {
        var person = try await options.held()
        // The rest of the decisions, which an answer has a thousand of at most.
        var decisions = person["decisions"]?.arrayValue ?? []
        var next = person["decisions_next"]
        while let before = next {
            let place = before.stringValue ?? before.integerValue.map(String.init) ?? ""
            let target = "\(options.target)/decisions?limit=1000&before=\(PercentEncoding.encode(place))"
            let answer = try await options.gateway.connection(isReading: true).use {
                try await $0.get(target)
            }
            guard answer.status == 200, let object = answer.object else { throw answer.reportProblem() }
            decisions += object["decisions"]?.arrayValue ?? []
            next = object["next"]
        }
        person["decisions"] = .array(decisions)
        person["decisions_next"] = nil
        try OutputFile.create(file, with: CanonicalJSON.write(person) + [UInt8(ascii: "\n")])
        if options.output.json {
            return Terminal.print(["file": .string(file), "decisions": .integer(Int64(decisions.count))])
        }
        Terminal.print(Terminal.printable("\(file) has all that is held of \(options.user)"))
    }
}

/// `sendgate recipients erase`: GDPR Art. 17.
struct RecipientsErase: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "erase",
        abstract: "Forgets somebody for good.",
        usage: "sendgate recipients erase USER --confirm USER [--socket PATH] [--json]",
        discussion: """
            Destroys everything that is held of a person, and the key that links the trail's pseudonym to them. The trail \
            still verifies. It cannot be taken back, so the name is given twice.
            """)

    static let example = "sendgate recipients erase u_42 --confirm u_42 --socket /tmp/gate/product.sock"

    @OptionGroup var options: RecipientOptions
    @Option(help: ArgumentHelp("The person once more.", valueName: "user")) var confirm: String

    func validate() throws {
        if confirm != options.user { throw ValidationError("`--confirm` is another name than the person's") }
    }

    func run() async throws {
        let answer = try await options.gateway.connection().use { try await $0.delete(options.target) }
        try ConsentsWithdraw.report(answer, "\(options.user) is forgotten", options.output)
    }
}
