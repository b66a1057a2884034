import ArgumentParser
import CanonicalJSON
import CommandTerminal
import GateVocabulary
import UnixHTTPClient

/// What the commands that change one key have in common: the gateway does it, running or not, and records who asked.
struct KeyChangeOptions: ParsableArguments {
    @OptionGroup var gateway: GatewayOptions
    @Flag(name: .customLong("dry-run"), help: "Say what would become of it, and change nothing.")
    var isDryRun = false
    @OptionGroup var output: OutputOptions

    /// Asks for one change and prints what came of it.
    func change(_ key: String, _ verb: String, _ body: JSONObject = [:]) async throws {
        try KeyChange.show(
            await post("/v1/keys/\(PercentEncoding.encode(key))/\(verb)", body), of: key, asJSON: output.json)
    }

    func post(_ target: String, _ body: JSONObject) async throws -> GatewayAnswer {
        var body = body
        if isDryRun { body["dry_run"] = true }
        return try await gateway.connection(isReading: isDryRun).use { try await $0.post(target, body) }
    }
}

enum KeyChange {
    /// The hint where the gateway cannot do it now.
    static let unavailable =
        "where a file cannot be written, make the key directory writable for the gateway; then try again, and `sendgate keys list` says how far it came"

    /// Prints one answer; a key that waits for a second caller says so.
    static func show(_ answer: GatewayAnswer, of key: String? = nil, asJSON isJSON: Bool) throws {
        guard answer.status < 300, let object = answer.object else {
            throw answer.reportProblem(unavailable: unavailable)
        }
        if isJSON { return Terminal.print(object) }
        let name = object["key"]?.stringValue ?? key ?? "a new key"
        let state = object["state"]?.stringValue ?? "?"
        if object["dry_run"]?.booleanValue == true {
            if let until = object["second_caller_by"]?.stringValue {
                return Terminal.print(
                    "\(name) would stay \(state) until another caller asks for the same, by \(until); nothing was changed"
                )
            }
            return Terminal.print("\(name) would be \(state); nothing was changed")
        }
        if let until = object["second_caller_by"]?.stringValue {
            Terminal.print("\(name) is \(state) as before: another caller must ask for the same by \(until)")
        } else {
            Terminal.print("\(name) is \(state)")
        }
    }
}

/// `sendgate keys add`
struct KeysAdd: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Has the gateway make a key, which waits to be promoted.",
        usage: """
            sendgate keys add PURPOSE --socket PATH [--dry-run] [--json]
            sendgate keys add PURPOSE --config FILE [--dry-run] [--json]
            """,
        discussion: """
            PURPOSE is origin, trail, data, link or root. The private half is made inside the gateway and written to its key \
            directory; nobody else sees it. One key of a purpose waits at a time.
            """)
    static let example = "sendgate keys add origin --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("What the key is for.", valueName: "purpose")) var purpose: KeyPurpose
    @OptionGroup var options: KeyChangeOptions

    func run() async throws {
        let answer = try await options.post("/v1/keys", ["purpose": .string(purpose.rawValue)])
        try KeyChange.show(answer, asJSON: options.output.json)
    }
}

/// `sendgate keys promote`
struct KeysPromote: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "promote", abstract: "Puts a key into use; the one before it goes on reading.",
        usage: """
            sendgate keys promote KEY --socket PATH [--dry-run] [--json]
            sendgate keys promote KEY --config FILE [--dry-run] [--json]
            """,
        discussion: "KEY is the id of a key of the gateway's own, or that of a device key.")
    static let example =
        "sendgate keys promote origin-9f86d081884c7d65 --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("The key's id.", valueName: "key")) var key: String
    @OptionGroup var options: KeyChangeOptions

    func run() async throws { try await options.change(key, "promote") }
}

/// `sendgate keys suspend`
struct KeysSuspend: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend", abstract: "Sets a key aside while somebody looks into it.",
        usage: """
            sendgate keys suspend KEY --socket PATH [--dry-run] [--json]
            sendgate keys suspend KEY --config FILE [--dry-run] [--json]
            """,
        discussion: """
            It protects nothing new from the next decision on. While no origin key is in use no push is sealed or \
            signed: each is answered 503. Keys that the gateway cannot go on without are rotated first.
            """)
    static let example =
        "sendgate keys suspend origin-9f86d081884c7d65 --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("The key's id.", valueName: "key")) var key: String
    @OptionGroup var options: KeyChangeOptions

    func run() async throws { try await options.change(key, "suspend") }
}

/// `sendgate keys resume`
struct KeysResume: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Puts a suspended key back into use.",
        usage: """
            sendgate keys resume KEY --socket PATH [--dry-run] [--json]
            sendgate keys resume KEY --config FILE [--dry-run] [--json]
            """,
        discussion: "Refused while another key of the purpose, or of the device, is in use.")
    static let example =
        "sendgate keys resume origin-9f86d081884c7d65 --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("The key's id.", valueName: "key")) var key: String
    @OptionGroup var options: KeyChangeOptions

    func run() async throws { try await options.change(key, "resume") }
}

/// `sendgate keys revoke`
struct KeysRevoke: GateCommand {
    enum Cause: String, CaseIterable, ExpressibleByArgument, Sendable { case compromised, lost, retired }

    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Ends the use of a key for good.",
        usage: """
            sendgate keys revoke KEY --cause CAUSE --socket PATH [--dry-run] [--json]
            sendgate keys revoke KEY --cause CAUSE --config FILE [--dry-run] [--json]
            sendgate keys revoke --user USER [--device DEVICE] --cause CAUSE …
            sendgate keys revoke --registered-before TIME [--app APP] [--suite SUITE] --cause CAUSE …
            """,
        discussion: """
            CAUSE is compromised (somebody else may hold it: it is trusted no more), lost or retired (it goes on \
            reading what it protected). It is refused from the next decision on.

            With --user the keys of a person's devices are revoked, or of one device: nobody has to look their ids up.

            With --registered-before many device keys are revoked, those of everybody that were registered before TIME (RFC \
            3339): of one app, of one suite, or all. Each has an entry of its own. Interrupted, the same command goes on.
            """)
    static let example =
        "sendgate keys revoke origin-9f86d081884c7d65 --cause compromised --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("The key's id.", valueName: "key")) var key: String?
    @Option(help: ArgumentHelp("Why: compromised, lost or retired.", valueName: "cause")) var cause: Cause
    @Option(help: ArgumentHelp("Keys of this person's devices.", valueName: "user")) var user: String?
    @Option(help: ArgumentHelp("Only keys of this device of theirs.", valueName: "device"))
    var device: String?
    @Option(help: ArgumentHelp("Device keys registered before this moment.", valueName: "time"))
    var registeredBefore: String?
    @Option(help: ArgumentHelp("Only device keys of this app.", valueName: "app")) var app: String?
    @Option(help: ArgumentHelp("Only device keys of this suite.", valueName: "suite")) var suite: String?
    @OptionGroup var options: KeyChangeOptions

    func validate() throws {
        if [key, user, registeredBefore].count(where: { $0 != nil }) != 1 {
            throw ValidationError(
                "give the id of a key, `--user` for a person's, or `--registered-before` for many device keys"
            )
        }
        if device != nil, user == nil { throw ValidationError("`--device` goes with `--user`") }
        if registeredBefore == nil, app != nil || suite != nil {
            throw ValidationError("`--app` and `--suite` go with `--registered-before`")
        }
    }

    func run() async throws {
        if let key {
            return try await options.change(key, "revoke", ["cause": .string(cause.rawValue)])
        }
        try await DeviceKeyRevocation(
            cause: cause, user: user, device: device, registeredBefore: registeredBefore, app: app,
            suite: suite, options: options
        ).run()
    }
}

/// Ends the use of many device keys, a piece at a time.
struct DeviceKeyRevocation {
    var cause: KeysRevoke.Cause
    var user: String?
    var device: String?
    /// `nil`: now.
    var registeredBefore: String?
    var app: String?
    var suite: String?
    var options: KeyChangeOptions

    func run() async throws {
        try await options.gateway.connection(isReading: options.isDryRun).use { try await revoke(over: $0) }
    }

    private func revoke(over connection: GatewayConnection) async throws {
        // A person's keys are all of those that are registered by now.
        let moment = registeredBefore ?? SystemClock().now().rfc3339
        var body: JSONObject = ["cause": .string(cause.rawValue), "registered_before": .string(moment)]
        if let user {
            var owner: JSONObject = ["user": .string(user)]
            if let device { owner["device"] = .string(device) }
            body["recipient"] = .object(owner)
        }
        if let app { body["app"] = .string(app) }
        if let suite { body["suite"] = .string(suite) }
        if options.isDryRun { body["dry_run"] = true }
        var (examined, revoked, unreadable) = (Int64(0), Int64(0), Int64(0))
        var progress = Progress("revoking")
        repeat {
            let answer = try await connection.post("/v1/device-keys/revoke", body)
            guard answer.status == 200, let object = answer.object else {
                progress.end()
                if revoked > 0 { Terminal.note("\(revoked) keys were revoked; the same command goes on") }
                throw answer.reportProblem()
            }
            examined += object["examined"]?.integerValue ?? 0
            revoked += object["revoked"]?.integerValue ?? 0
            unreadable += object["unreadable"]?.integerValue ?? 0
            body["after"] = object["next"]
            // Ids are random, so their first byte says how far along they are.
            if let next = object["next"]?.stringValue, let place = UInt64(next.prefix(2), radix: 16) {
                progress.show(place, of: 256)
            }
        } while body["after"] != nil
        progress.end()
        if let user, examined == 0 {
            throw CommandFailure(
                device.map { "`\(user)` has no device `\($0)` with a key" }
                    ?? "`\(user)` has no device with a key",
                hint: "a caller with `subjects.read` sees a person's devices: `GET /v1/recipients/{user}`")
        }
        if options.output.json {
            return Terminal.print([
                "examined": .integer(examined), "revoked": .integer(revoked),
                "unreadable": .integer(unreadable), "dry_run": .boolean(options.isDryRun),
            ])
        }
        let verb = options.isDryRun ? "would be revoked; nothing was changed" : "are revoked"
        Terminal.print("\(revoked) of \(examined) device keys \(verb)")
        if unreadable > 0 {
            Terminal.warning(
                "\(unreadable) could not be read, so nothing is sealed to them; run `sendgate store check`")
        }
    }
}

/// `sendgate keys destroy`
struct KeysDestroy: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "destroy", abstract: "Destroys what is left of a key; two callers must ask.",
        usage: """
            sendgate keys destroy KEY --socket PATH [--dry-run] [--json]
            sendgate keys destroy KEY --config FILE [--dry-run] [--json]
            """,
        discussion: """
            The first caller proposes it, another does it within the hour, and both are in the trail. The private half of \
            one of the gateway's own is overwritten and unlinked; where its file cannot go, nothing is recorded. A data key \
            is kept while a stored value is sealed under it.
            """)
    static let example =
        "sendgate keys destroy origin-9f86d081884c7d65 --socket /tmp/gate/keys-team.sock"

    @Argument(help: ArgumentHelp("The key's id.", valueName: "key")) var key: String
    @OptionGroup var options: KeyChangeOptions

    func run() async throws { try await options.change(key, "destroy") }
}

/// `sendgate keys lagging`
struct KeysLagging: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "lagging", abstract: "Counts what is still sealed under an earlier data key.",
        usage: """
            sendgate keys lagging --socket PATH [--json]
            sendgate keys lagging --config FILE [--json]
            """,
        discussion: "Ends with 3 while anything is.")
    static let example = "sendgate keys lagging --socket /tmp/gate/keys-team.sock"

    @OptionGroup var gateway: GatewayOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let lag = try await gateway.connection(isReading: true).use { try await KeyLag(asking: $0) }
        if output.json {
            Terminal.print(lag.object)
        } else {
            Terminal.print(
                lag.isDone
                    ? "every stored value is under \(lag.key)"
                    : "\(lag.rowCount) stored values are not under \(lag.key) yet")
        }
        if !lag.isDone { throw ExitStatus.foundDifference }
    }
}

/// What is still sealed under an earlier data key.
struct KeyLag {
    var object: JSONObject
    var key: String { object["data_key"]?.stringValue ?? "?" }
    var rowCount: Int64 { object["rows"]?.integerValue ?? 0 }
    var isDone: Bool { object["done"]?.booleanValue ?? false }

    init(asking connection: GatewayConnection) async throws {
        let answer = try await connection.get("/v1/keys/lagging")
        guard answer.status == 200, let object = answer.object else { throw answer.reportProblem() }
        self.object = object
    }
}

extension KeyPurpose: ExpressibleByArgument {}
