import BundleModel
import GateRecords
import GateSteps
import GateTestKit
import AuditTrail
import CompliancePolicy
import ConfigurationPages
import Foundation
import GateVocabulary
import GatewayPipeline
import OpenSSLCrypto
import PublicPages
import Testing
import UnixSocketEndpoint

@testable import sendgate

@Suite struct ConfigurationTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let complete = """
        state: /var/lib/sendgate
        trail: /var/lib/sendgate/trail
        policies: /etc/sendgate/policies
        keys: /etc/sendgate/keys
        origin: gate.example.com/prod
        unsubscribe_url: https://example.com/u/
        hop: {unix: /run/delivery/delivery.sock, users: [1002]}
        listeners:
          - path: /run/sendgate/gate.sock
            mode: "0666"
            group: 1003
          - path: /run/sendgate/marketing/gate.sock
            caller: marketing
            users: [1004, 1005]
        callers:
          payments: {users: [1001], groups: [1010]}
        limits:
          outbox_messages: 5000
          security_share_percent: 20
          connections: 1000

        """ + signing

    /// One key for each role; the private ones are not kept.
    private static let signing = """
        policy_signing:
          compliance: ["policy-fe6be3c5fa7bc8b6+e1b1829b+AcLslsyzf9uOSyTuim2n2cf7lwqJsWresWAvx/bo/dT7"]
          security: ["policy-b7ba3ccfddc01ece+9adab86e+AScLanoFRYtS0h7tZKUcZ4oT/pbUDWEhTPCkU11aBELA"]
          legal: ["policy-dd5c9ae9bac4b5a4+91e4a24e+AWnA/v/o8AtzuWLqkal205TmtYyQOy4Ui45K5rNbqFGs"]

        """

    private func read(
        _ text: String, flags: [Setting: String] = [:], environment: [String: String] = [:]
    ) throws -> GatewayConfiguration {
        try GatewayConfiguration.read(
            flags: flags, environment: environment, filePath: folder.file("gate.yaml", text))
    }

    private func diagnostics(
        _ text: String, flags: [Setting: String] = [:], environment: [String: String] = [:]
    ) throws -> [ConfigurationDiagnostic] {
        do {
            _ = try read(text, flags: flags, environment: environment)
            return []
        } catch let error as ConfigurationDiagnostics {
            return error.diagnostics
        }
    }

    @Test func `the handbook's example is read, and the handbook knows every key`() throws {
        let page = try String(
            contentsOf: CommandLineRun.repository.appending(
                path: "Sources/sendgate/Sendgate.docc/Configuration.md"), encoding: .utf8)
        let block = try #require(page.components(separatedBy: "```yaml\n").dropFirst().first)
        let example = try #require(block.components(separatedBy: "```").first)
        let configuration = try read(example)
        #expect(configuration.listeners.count == 3 && configuration.callers.count == 3)
        // What the example says for a bound is what holds when it is absent.
        var bare = configuration
        (bare.limits, bare.endpoint) = (EngineLimits(), EndpointLimits())
        bare.endpoint.outgoingConnectionCount = 512 + 64
        bare.reserveForSecurity()
        #expect(configuration.limits == bare.limits && configuration.endpoint == bare.endpoint)
        let tables = page.components(separatedBy: "```").last ?? ""
        for setting in Setting.allCases {
            let name =
                setting.rawValue.hasPrefix("limits.")
                ? String(setting.rawValue.dropFirst("limits.".count)) : setting.rawValue
            #expect(tables.contains("`\(name)`"), "`\(name)` is in no table of Configuration.md")
        }
        for key in [
            "path", "systemd", "directory_mode", "mode", "socket_mode", "owner", "group", "caller", "users",
            "enforce_types", "enforce_callers",
        ] {
            #expect(tables.contains("`\(key)`"), "`\(key)` is in no table of Configuration.md")
        }
    }

    @Test func `the handbook says what holds of a bound that is not set`() throws {
        func text(_ number: some BinaryInteger) -> String {
            var digits = Array(String(number))
            for place in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: place) }
            return String(digits)
        }
        let (engine, endpoint) = (EngineLimits(), EndpointLimits())
        let (day, mebibyte): (Int64, Int64) = (86_400_000, 1 << 20)
        let expected = [
            "`queued_operations` `queued_operations_per_caller`":
                "\(text(engine.queuedOperationCountMax)) and \(text(engine.queuedOperationCountPerCallerMax))",
            "`outbox_messages` `outbox_messages_per_caller` `outbox_bytes`":
                "\(text(engine.outboxRowCountMax)), \(text(engine.outboxRowCountPerCallerMax)) and \(engine.outboxByteCountMax >> 30) GiB",
            "`free_disk_bytes`": "\(engine.freeDiskByteCountMin / mebibyte) MiB",
            "`security_share_percent`": text(engine.securitySharePercent),
            "`listen_backlog`": text(endpoint.listenBacklog),
            "`connections` `connections_per_user`":
                "\(text(endpoint.connections.total)) and \(text(endpoint.connections.perUser))",
            "`requests_in_flight` `requests_in_flight_per_user`":
                "\(text(endpoint.inFlight.total)) and \(text(endpoint.inFlight.perUser))",
            "`drain_seconds`": text(endpoint.drainMilliseconds / 1000),
            "`retention_days`": text(engine.retentionMilliseconds / day),
        ]
        let bounds = try HandbookTable(of: "Configuration", head: "| key | when absent | bounds |")
        #expect(Dictionary(uniqueKeysWithValues: bounds.rows.map { ($0[0], $0[1]) }) == expected)
        let audits = try HandbookTable(of: "Configuration", head: "| key | default | means |")
        let schedule = DriftSchedule()
        #expect(
            audits.rows.map { "\($0[0]) \($0[1])" } == [
                "`drift.every_days` \((schedule.intervalMilliseconds ?? 0) / day)",
                "`drift.persons_per_second` \(schedule.personCountPerSecond)",
                "`drift.stale_days` \(DriftSettings().staleMilliseconds / day)",
                "`drift.critical_alert_apps` none: not compared",
            ])
    }

    @Test func `a caller the bundle does not know is named with its line`() throws {
        let policy = try Repository.policy()
        try read(Self.complete).requireCallers(in: policy)
        let misspelled = Self.complete.replacingOccurrences(of: "payments:", with: "paymens:")
            .replacingOccurrences(of: "caller: marketing", with: "caller: newsletter")
        let error = #expect(throws: ConfigurationDiagnostics.self) {
            try read(misspelled).requireCallers(in: policy)
        }
        let diagnostics = try #require(error?.diagnostics)
        #expect(
            diagnostics.map(\.message) == [
                "the bundle knows no caller `newsletter`", "the bundle knows no caller `paymens`",
            ])
        #expect(diagnostics[0].place?.contains("gate.yaml:13:") == true, "\(diagnostics[0])")
        #expect(
            diagnostics[0].hint?.contains("marketing, metrics, payments") == true,
            "\(diagnostics[0].hint ?? "")")
        #expect(diagnostics[1].place?.contains("gate.yaml:16:") == true, "\(diagnostics[1])")
        #expect(diagnostics[1].hint == "did you mean `payments`?")
    }

    @Test func `a complete file is read into numbers and names`() throws {
        let configuration = try read(Self.complete)
        #expect(configuration.stateDirectory == "/var/lib/sendgate")
        #expect(configuration.trailOrigin == "gate.example.com/prod")
        #expect(
            configuration.hop == .unix(path: "/run/delivery/delivery.sock", serverUserIDs: [1002]))
        #expect(configuration.listeners.count == 2)
        #expect(configuration.listeners[0].mode == 0o666)
        #expect(configuration.listeners[0].directoryMode == 0o750)
        #expect(configuration.listeners[0].groupID == 1003)
        #expect(configuration.listeners[1].caller == CallerName("marketing"))
        #expect(configuration.listeners[1].userIDs == [1004, 1005])
        #expect(
            configuration.callers == [
                .init(caller: CallerName("payments"), userIDs: [1001], groupIDs: [1010])
            ])
        #expect(configuration.limits.outboxRowCountMax == 5000)
        #expect(configuration.isDevelopment == false)
    }

    @Test func `the length of the queue of connections is the operator's to say`() throws {
        #expect(try read(Self.complete).endpoint.listenBacklog == 1_024)
        let environment = ["SENDGATE_LIMITS_LISTEN_BACKLOG": "64"]
        #expect(try read(Self.complete, environment: environment).endpoint.listenBacklog == 64)
    }

    @Test(arguments: ["0777", "0757", "0702"])
    func `a directory mode that lets everybody write is refused with its line`(_ mode: String) throws {
        let found = try diagnostics(
            Self.complete.replacing(
                "listeners:\n",
                with: "listeners:\n  - path: /run/x/gate.sock\n    directory_mode: \"\(mode)\"\n"))
        #expect(found.count == 1)
        #expect(found.first?.message.contains("lets everybody write") == true, "\(found)")
        #expect(found.first?.place?.contains("gate.yaml:") == true)
    }

    @Test func `two sockets of one directory want the same of it`() throws {
        func found(_ more: String) throws -> [ConfigurationDiagnostic] {
            let listeners = """
                listeners:
                  - {path: /run/x/a.sock, directory_mode: "0711", group: 5}
                  - {path: /run/x/b.sock, \(more)}

                """
            return try diagnostics(Self.complete.replacing("listeners:\n", with: listeners))
        }
        #expect(try found("directory_mode: \"0711\", group: 5, mode: \"0600\"").isEmpty)
        for more in ["group: 5", "directory_mode: \"0711\"", "directory_mode: \"0711\", group: 6"] {
            let diagnostics = try found(more)
            #expect(diagnostics.count == 1, "\(more)")
            #expect(diagnostics.first?.message.hasPrefix("`/run/x/b.sock` shares its directory") == true)
        }
    }

    @Test func `security's share is kept of every bound of the endpoint`() throws {
        let configuration = try read(Self.complete)
        #expect(configuration.limits.securitySharePercent == 20)
        #expect(configuration.endpoint.connections.total == 1000)
        #expect(configuration.endpoint.connections.reserved == 200)
        #expect(configuration.endpoint.inFlight.reserved * 5 >= configuration.endpoint.inFlight.total)
    }

    @Test func `flags win over the environment, and the environment over the file`() throws {
        #expect(try read(Self.complete).stateDirectory == "/var/lib/sendgate")
        let environment = [
            "SENDGATE_STATE": "/srv/env", "SENDGATE_LIMITS_OUTBOX_MESSAGES": "6000",
            "SENDGATE_HOP_USERS": "7,8",
        ]
        let fromEnvironment = try read(Self.complete, environment: environment)
        #expect(fromEnvironment.stateDirectory == "/srv/env")
        #expect(fromEnvironment.limits.outboxRowCountMax == 6000)
        #expect(
            fromEnvironment.hop == .unix(path: "/run/delivery/delivery.sock", serverUserIDs: [7, 8]))
        let fromFlags = try read(
            Self.complete, flags: [.state: "/srv/flag"], environment: environment)
        #expect(fromFlags.stateDirectory == "/srv/flag")
    }

    @Test func `every role has keys of its own, or no bundle could come into force`() throws {
        let names = ApprovalRole.allCases.map(\.rawValue)
        let keys = try names.map { try Self.makeVerifierKey("policy-\($0)") }
        let unsigned = Self.complete.replacing(Self.signing, with: "")
        func signing(_ keys: [String]) -> String {
            unsigned + "policy_signing:\n"
                + zip(names, keys).map { "  \($0): [\"\($1)\"]\n" }.joined()
        }
        let read = try self.read(signing(keys))
        let pinned = ApprovalRole.allCases.map { read.policySigning?.keys[$0]?.map(\.text) ?? [] }
        #expect(pinned == keys.map { [$0] })
        let environment = Dictionary(
            uniqueKeysWithValues: zip(names, keys).map { ("SENDGATE_POLICY_SIGNING_\($0.uppercased())", $1) })
        #expect(try self.read(unsigned, environment: environment).policySigning == read.policySigning)
        func messages(_ text: String) throws -> [String] { try diagnostics(text).map(\.message) }
        #expect(
            try messages(unsigned)
                == names.map { "`policy_signing.\($0)` is not set, so no bundle could ever come into force" })
        #expect(
            try messages(signing([keys[0], keys[1], keys[0]]))
                == ["`policy-compliance` is pinned for `compliance` and for `legal`"])
        #expect(try messages(signing([keys[0], keys[1], "a+b+c"])) == ["`a+b+c` is no verifier key"])
        let throwaway = try Self.makeVerifierKey("dev-policy-0102030405060708")
        #expect(
            try messages(signing([throwaway, keys[1], keys[2]]))
                == ["`dev-policy-0102030405060708` is a throwaway key"])
    }

    private static func makeVerifierKey(_ name: String) throws -> String {
        try #require(NoteVerifierKey(name: name, publicKey: try Ed25519PrivateKey.generate().publicKey)).text
    }

    @Test func `an empty variable counts as none`() throws {
        #expect(
            try read(Self.complete, environment: ["SENDGATE_STATE": ""]).stateDirectory
                == "/var/lib/sendgate")
    }

    @Test func `a misspelled key is named with its line and the nearest known one`() throws {
        let text = Self.complete.replacingOccurrences(of: "policies:", with: "polices:")
        let found = try diagnostics(text)
        let typo = try #require(found.first { $0.message.contains("`polices`") })
        #expect(typo.place?.hasSuffix("gate.yaml:3:1") == true)
        #expect(typo.hint == "did you mean `policies`?")
        #expect(found.contains { $0.message == "`policies` is not set" })
    }

    /// One user in place of a list is not guessed at: a comma in it would be a second one.
    @Test(arguments: [
        ("users: [1002]", "users: 1002", "`hop.users` must be a list, and is a number"),
        ("users: [1002]", "users: \"1002,1003\"", "`hop.users` must be a list, and is a text"),
        ("groups: [1010]", "groups: 1010", "`callers.payments.groups` must be a list, and is a number"),
        ("users: [1004, 1005]", "users: 1004", "`listeners.users` must be a list, and is a number"),
        (
            "listeners:", "listeners:\n  - /run/x.sock",
            "`listeners` must be a list of mappings, and has a text in it"
        ),
    ])
    func `a list is written as a list`(old: String, new: String, message: String) throws {
        let found = try diagnostics(Self.complete.replacingOccurrences(of: old, with: new))
        #expect(found.contains { $0.message == message }, "\(found)")
    }

    @Test(arguments: [
        (
            "outbox_messages: 5000", "outbox_mesages: 5000", "limits.outbox_mesages",
            "did you mean `outbox_messages`?"
        ),
        ("group: 1003", "gruop: 1003", "listeners.gruop", "did you mean `group`?"),
        ("groups: [1010]", "grups: [1010]", "callers.payments.grups", "did you mean `groups`?"),
        ("users: [1002]", "usres: [1002]", "hop.usres", "did you mean `users`?"),
    ])
    func `a typo inside a section is an error with a hint`(
        old: String, new: String, name: String, hint: String
    ) throws {
        let found = try diagnostics(Self.complete.replacingOccurrences(of: old, with: new))
        let typo = try #require(found.first { $0.message == "`\(name)` is not a setting" })
        #expect(typo.place?.contains("gate.yaml:") == true)
        #expect(typo.hint == hint)
    }

    @Test(
        arguments: [
            ("127.0.0.1:8080", PageAddress.loopback(port: 8080)),
            ("/run/sendgate-public/pages.sock", .unix(path: "/run/sendgate-public/pages.sock")),
            ("systemd:pages", .systemd(name: "pages")), ("systemd:", nil), ("systemd:a b", nil),
            ("0.0.0.0:8080", nil), ("localhost:8080", nil), ("127.0.0.1", nil), ("127.0.0.1:0", nil),
            ("127.0.0.1:65536", nil), ("127.0.0.1:+80", nil), ("8080", nil), ("pages.sock", nil),
            ("/" + String(repeating: "a", count: 107), nil),
        ] as [(String, PageAddress?)])
    func `pages are served on the loopback, a path or a socket that is handed over`(
        text: String, address: PageAddress?
    ) throws {
        let file = Self.complete + "public_listen: \"\(text)\"\n"
        if let address {
            #expect(try read(file).publicListen == address)
        } else {
            let found = try diagnostics(file)
            #expect(found.map(\.message) == ["`public_listen` is `\(text)`"])
            #expect(found.first?.hint?.contains("127.0.0.1:PORT") == true)
        }
    }

    @Test(arguments: [
        ("https://example.com/settings", true), ("http://example.com", false), ("https://exämple.com", false),
        ("https://example.com/a b", false), ("javascript:alert(1)", false),
    ])
    func `pages link to https only`(url: String, isTaken: Bool) throws {
        let file = Self.complete + "preferences_url: \"\(url)\"\n"
        #expect(try diagnostics(file).isEmpty == isTaken)
        if isTaken { #expect(try read(file).preferencesURL == url) }
        #expect(try read(Self.complete).preferencesURL == nil && read(Self.complete).publicListen == nil)
    }

    @Test func `links without pages, and pages without a way to all other settings, are warned of`() throws {
        let served = Self.complete + "public_listen: \"127.0.0.1:8080\"\n"
        let unserved = try read(Self.complete).warnings
        #expect(
            unserved.count == 1 && unserved.first?.contains("`public_listen` is not") == true, "\(unserved)")
        let warnings = try read(served).warnings
        #expect(warnings.count == 1 && warnings.first?.contains("`preferences_url`") == true, "\(warnings)")
        #expect(try read(served + "preferences_url: https://example.com/settings\n").warnings == [])
    }

    @Test func `every problem is told at once`() throws {
        let found = try diagnostics(
            """
            state: relative
            origin: has a space
            log_level: verbose
            unsubscribe_url: http://example.com
            listeners:
              - mode: "9999"

            """)
        let messages = found.map(\.message).joined(separator: "\n")
        for part in [
            "`state` is `relative`", "`origin` is", "`log_level`", "`https://`", "`trail`", "`keys`",
            "`hop.unix`", "`hop.users`", "either `path` or `systemd`",
        ] {
            #expect(messages.contains(part), "\(part) is not among\n\(messages)")
        }
    }

    @Test(arguments: [
        ("SENDGATE_SEALERS", "0"), ("SENDGATE_SEALERS", "65"), ("SENDGATE_SEALERS", "two"),
        ("SENDGATE_LIMITS_SECURITY_SHARE_PERCENT", "9"), ("SENDGATE_LIMITS_RETENTION_DAYS", "30"),
        ("SENDGATE_EVENT_LOOPS", "-1"), ("SENDGATE_EVENT_LOOPS", "01"),
    ])
    func `a number outside its range is refused where it was given`(name: String, value: String) throws {
        let found = try diagnostics(Self.complete, environment: [name: value])
        #expect(found.count == 1)
        #expect(found.first?.place == "environment variable `\(name)`")
    }

    @Test func `a variable that is nearly one of ours is a typo, and others are nobody's business`() throws {
        let found = try diagnostics(
            Self.complete, environment: ["SENDGATE_SATE": "/x", "SENDGATE_PEERS": "/y"])
        #expect(found.count == 1)
        #expect(found.first?.place == "environment variable `SENDGATE_SATE`")
        #expect(found.first?.hint == "did you mean `SENDGATE_STATE`?")
    }

    @Test func `entries are kept for ever, or for longer than anything still rests on them`() throws {
        #expect(try read(Self.complete).pruning == nil)
        let year = try read(Self.complete + "trail_keep_days: 400\n").pruning
        #expect(year == TrailPruning.Terms(keepDays: 400, lookBackDays: 90))
        let longer = Self.complete.replacingOccurrences(
            of: "limits:\n", with: "limits:\n  retention_days: 100\n")
        #expect(try read(longer + "trail_keep_days: 260\n").pruning?.lookBackDays == 130)
        for (text, keepDays, words) in [
            (Self.complete, "179", "must be 180 to 36600"), (longer, "259", "must be 260 or more"),
            (Self.complete, "400d", "no whole number"),
        ] {
            let found = try diagnostics(text + "trail_keep_days: \(keepDays)\n")
            #expect(found.count == 1 && found[0].message.contains(words), "\(found)")
            #expect(found.first?.place?.contains("gate.yaml:") == true)
        }
    }

    @Test func `a user nobody knows is refused with its line`() throws {
        let found = try diagnostics(
            Self.complete.replacingOccurrences(of: "[1001]", with: "[nobody-of-this-name]"))
        #expect(found.count == 1)
        #expect(found.first?.message.contains("`nobody-of-this-name`") == true)
        #expect(found.first?.place?.contains("gate.yaml:16:") == true)
    }

    /// What is put for what, and a part of the message.
    @Test(arguments: [
        ("users: [1001]", "users: [root]", "`root` is uid 0"),
        ("users: [1001]", "users: [0]", "`0` is uid 0"),
        ("groups: [1010]", "groups: [root]", "`root` is gid 0"),
        ("groups: [1010]", "groups: [0]", "`0` is gid 0"),
        ("users: [1001]", "users: [nobody]", "`nobody` is uid 65534"),
        ("groups: [1010]", "groups: [nogroup]", "`nogroup` is gid 65534"),
        ("users: [1004, 1005]", "users: [1004, 0]", "`0` is uid 0"),
        ("users: [1004, 1005]", "users: [65534]", "`65534` is uid 65534"),
        ("group: 1003", "group: 1003\n    owner: root", "`root` is uid 0"),
        ("group: 1003", "group: 0", "`0` is gid 0"), ("group: 1003", "group: 65534", "gid 65534"),
        ("users: [1002]", "users: [65534]", "`65534` is uid 65534"),
    ])
    func `root and who has no name are no account, with the line`(from: String, to: String, says: String)
        throws
    {
        let text = Self.complete.replacingOccurrences(of: from, with: to)
        #expect(text != Self.complete)
        let found = try diagnostics(text)
        #expect(found.count == 1, "\(found)")
        #expect(found.first?.message.contains(says) == true, "\(found)")
        #expect(found.first?.place?.contains("gate.yaml") == true && found.first?.hint != nil, "\(found)")
    }

    @Test func `users may be given by name`() throws {
        let configuration = try read(Self.complete.replacingOccurrences(of: "[1001]", with: "[daemon]"))
        #expect(configuration.callers.first?.userIDs == [1])
    }

    @Test func `a mode that a reader of YAML could take for a number must be quoted`() throws {
        let found = try diagnostics(Self.complete.replacingOccurrences(of: "\"0666\"", with: "0666"))
        #expect(found.contains { $0.place?.contains("gate.yaml:10:") == true })
    }

    @Test func `the same key twice is refused`() throws {
        let found = try diagnostics(Self.complete + "state: /elsewhere\n")
        #expect(found.contains { $0.place?.contains("gate.yaml:25:") == true }, "\(found)")
    }

    @Test func `a file everybody may write is refused`() throws {
        let path = try folder.file("open.yaml", Self.complete)
        try FileManager.default.setAttributes([.posixPermissions: 0o646], ofItemAtPath: path)
        #expect(throws: ConfigurationDiagnostics.self) {
            try GatewayConfiguration.read(environment: [:], filePath: path)
        }
    }

    @Test func `a listener cannot be two kinds at once, nor one socket two listeners`() throws {
        let found = try diagnostics(
            Self.complete.replacingOccurrences(
                of: "callers:\n",
                with: "  - path: /run/sendgate/gate.sock\n  - {path: /a, systemd: b}\ncallers:\n"))
        #expect(found.contains { $0.message == "the same socket is configured twice" })
        #expect(found.contains { $0.message == "a listener has either `path` or `systemd`" })
    }
}
