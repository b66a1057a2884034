import CommandTerminal
import ArgumentParser
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateVocabulary
import OpenSSLCrypto

/// `sendgate consents …`: the ledger, asked and added to over the socket.
struct Consents: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows, records and withdraws consent.",
        subcommands: [ConsentsShow.self, ConsentsGrant.self, ConsentsWithdraw.self])
}

/// `sendgate consents show`: did this person consent, to what text, given how.
struct ConsentsShow: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Says what somebody had consented to at a time, and to which words.",
        usage: "sendgate consents show USER [--as-of TIME] [--known-at TIME] [--purpose NAME] [--json]",
        discussion: """
            TIME is RFC 3339, or a date, which means its last moment in UTC. --known-at leaves out what the gateway \
            heard of later, so that a decision of that day can be understood.
            """)

    static let example = "sendgate consents show u_42 --as-of 2025-11-03 --socket /tmp/gate/gate.sock"

    @Argument(help: ArgumentHelp("The person.", valueName: "user")) var user: String
    @Option(help: ArgumentHelp("What was said up to then.", valueName: "time")) var asOf: String?
    @Option(help: ArgumentHelp("What the gateway had heard of by then.", valueName: "time"))
    var knownAt: String?
    @Option(help: ArgumentHelp("One purpose, e.g. marketing.", valueName: "name")) var purpose: String?
    @OptionGroup var socket: SocketOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        var query: [String] = []
        if let asOf { query.append("as_of=\(PercentEncoding.encode(try Self.moment(asOf, "--as-of")))") }
        if let knownAt {
            query.append("known_at=\(PercentEncoding.encode(try Self.moment(knownAt, "--known-at")))")
        }
        let target = "/v1/recipients/\(PercentEncoding.encode(user))/consents"
        let answer = try await socket.connection().use {
            try await $0.get(query.isEmpty ? target : "\(target)?\(query.joined(separator: "&"))")
        }
        guard answer.status == 200, let object = answer.object else { throw answer.reportProblem() }
        if output.json { return Terminal.print(object) }
        show(object)
    }

    /// A date means its last moment, so that "on that day" includes all of it.
    static func moment(_ text: String, _ flag: String) throws -> String {
        if CalendarDate(text) != nil { return "\(text)T23:59:59.999Z" }
        guard let instant = Instant(rfc3339: text) else {
            throw CommandFailure.usage(
                "`\(flag)` is `\(text)`", hint: "write 2025-11-03 or 2025-11-03T12:00:00Z")
        }
        return instant.rfc3339
    }

    private func show(_ answer: JSONObject) {
        let records = (answer["records"]?.arrayValue ?? []).compactMap(\.objectValue)
        let standing = (answer["standing"]?.arrayValue ?? []).compactMap(\.objectValue)
            .filter { purpose == nil || $0["purpose"]?.stringValue == purpose }
        let asOf = answer["as_of"]?.stringValue ?? "now"
        let knownAt = answer["known_at"]?.stringValue ?? "now"
        Terminal.print("\(user) as of \(asOf), as known at \(knownAt)")
        if standing.isEmpty {
            Terminal.print(purpose.map { "\($0): nothing recorded" } ?? "nothing recorded")
        }
        for row in standing {
            Terminal.print("")
            Terminal.print("\(Self.scope(row)): \(row["state"]?.stringValue ?? "?")")
            for record in records where Self.scope(record) == Self.scope(row) { show(record: record) }
        }
    }

    private static func scope(_ row: JSONObject) -> String {
        let address = row["address"]?.stringValue.map { " to \($0)" } ?? ""
        return
            "\(row["purpose"]?.stringValue ?? "?") by \(row["channel"]?.stringValue ?? "?")\(Terminal.printable(address))"
    }

    private func show(record: JSONObject) {
        func text(_ key: String) -> String { record[key]?.stringValue ?? "?" }
        Terminal.print(
            "  \(text("event_time"))  \(text("state")) (\(text("method"))), heard of at \(text("received_at")) from \(text("source")), record \(Terminal.printable(text("id")))"
        )
        if let expiry = record["expires_at"]?.stringValue { Terminal.print("    counts until \(expiry)") }
        if let basis = record["lawful_basis"]?.stringValue { Terminal.print("    basis: \(basis)") }
        guard let notice = record["notice"]?.objectValue else { return }
        func part(_ key: String) -> String { notice[key]?.stringValue ?? "?" }
        Terminal.print(
            "    shown: \(part("id")) version \(part("version")) in \(part("language")), SHA-256 \(part("sha256"))"
        )
        for line in part("text").split(separator: "\n", omittingEmptySubsequences: false).prefix(200)
        where !line.isEmpty {
            Terminal.print("    | \(Terminal.printable(String(line)))")
        }
    }
}

/// `sendgate consents grant`: records that a person consented.
struct ConsentsGrant: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "grant",
        abstract: "Records that somebody gave or refused consent.",
        usage: """
            sendgate consents grant USER --notice FILE --purpose NAME --channel CHANNEL --method METHOD
                --jurisdiction CODE [--address ID] [--state given|refused|shown] [--id ID] [--at TIME]
            """,
        discussion: """
            FILE is the notice as it was shown, named as in the bundle: ID.VERSION.LANGUAGE.txt. Its digest must be \
            one the bundle knows.
            """)

    static let example = """
        sendgate consents grant u_42 --notice Policies/notices/promo.3.en.txt --purpose marketing \\
          --channel push --method in_app_toggle --jurisdiction DE --socket /tmp/gate/product.sock
        """

    @Argument(help: ArgumentHelp("The person.", valueName: "user")) var user: String
    @Option(help: ArgumentHelp("The text that was shown.", valueName: "file")) var notice: String
    @Option(help: ArgumentHelp("What for.", valueName: "name")) var purpose: String
    @Option(help: ArgumentHelp("push, sms or email.", valueName: "channel")) var channel: String
    @Option(help: ArgumentHelp("How, e.g. in_app_toggle.", valueName: "method")) var method: String
    @Option(help: ArgumentHelp("Whose law, e.g. DE.", valueName: "code")) var jurisdiction: String
    @Option(help: ArgumentHelp("Which number or e-mail address.", valueName: "id")) var address: String?
    @Option(help: ArgumentHelp("given, refused or shown.", valueName: "state")) var state = "given"
    @Option(help: ArgumentHelp("The record's id; a new one when absent.", valueName: "id")) var id: String?
    @Option(help: ArgumentHelp("When the person spoke; now when absent.", valueName: "time")) var at: String?
    @OptionGroup var socket: SocketOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let bytes = try CommandInput.bytes(of: notice, byteCountMax: 65_536)
        let name = notice.split(separator: "/").last.map(String.init) ?? notice
        guard let key = Notice.Key(path: "notices/\(name)") else {
            throw CommandFailure.usage(
                "`\(name)` is not named like a notice", hint: "name the file ID.VERSION.LANGUAGE.txt")
        }
        var body: JSONObject = [
            "id": .string(id ?? UUID().uuidString.lowercased()), "state": .string(state),
            "purpose": .string(purpose), "channel": .string(channel), "method": .string(method),
            "jurisdiction": .string(jurisdiction),
            "event_time": .string(at ?? SystemClock().now().rfc3339),
            "notice": [
                "id": .string(key.id), "version": .string(key.version), "language": .string(key.language),
                "sha256": .string(Hexadecimal.encode(SHA256.digest(bytes).bytes)),
            ],
        ]
        if let address { body["address"] = .string(address) }
        let answer = try await socket.connection().use {
            try await $0.post("/v1/recipients/\(PercentEncoding.encode(user))/consents", body)
        }
        try ConsentsWithdraw.report(answer, "recorded as \(body["id"]?.stringValue ?? "")", output)
    }
}

/// `sendgate consents withdraw`: as easy as giving (GDPR Art. 7(3)).
struct ConsentsWithdraw: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "withdraw",
        abstract: "Records that somebody took consent back.",
        usage: "sendgate consents withdraw USER ID [--every-channel] [--method METHOD] [--at TIME]",
        discussion: "What waits to be sent on the strength of it is taken out in the same step.")

    static let example =
        "sendgate consents withdraw u_42 c-20261120-1 --every-channel --socket /tmp/gate/product.sock"

    @Argument(help: ArgumentHelp("The person.", valueName: "user")) var user: String
    @Argument(help: ArgumentHelp("The record of the consent.", valueName: "id")) var id: String
    @Flag(help: "An objection: the purpose ends on every channel (GDPR Art. 21).") var everyChannel = false
    @Option(help: ArgumentHelp("How; as it was given when absent.", valueName: "method")) var method: String?
    @Option(help: ArgumentHelp("When the person spoke; now when absent.", valueName: "time")) var at: String?
    @OptionGroup var socket: SocketOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        var body: JSONObject = [:]
        if everyChannel { body["every_channel"] = true }
        if let method { body["method"] = .string(method) }
        if let at { body["event_time"] = .string(at) }
        let consents = "/v1/recipients/\(PercentEncoding.encode(user))/consents"
        let answer = try await socket.connection().use {
            try await $0.post("\(consents)/\(PercentEncoding.encode(id))/withdraw", body)
        }
        try Self.report(answer, "withdrawn", output)
    }

    static func report(_ answer: GatewayAnswer, _ done: String, _ output: OutputOptions) throws {
        guard answer.status < 300, let object = answer.object else { throw answer.reportProblem() }
        if output.json { return Terminal.print(object) }
        let index = object["trail"]?["index"]?.integerValue.map { ", entry \($0)" } ?? ""
        Terminal.print("\(Terminal.printable(done))\(index)")
        if object["effect"] == "none" {
            Terminal.warning("without effect: \(object["why"]?.stringValue ?? "?")")
        }
    }
}
