import CommandTerminal
import ConfigurationPages
import CourierModel
import Foundation
import Testing
import UnixSockets

@testable import Courier

@Suite struct ConfigurationTests {
    /// Every way out, every bound.
    static let complete = """
        socket: /run/sendgate-courier/courier.sock
        socket_mode: "0660"
        socket_group: 0
        gate_users: [1000]
        operations: /run/sendgate-courier/operations/operations.sock
        operations_mode: "0600"
        journal: /var/lib/sendgate-courier
        log_level: info
        limits: {under_way: 576, drain_seconds: 10}
        apps:
          no.getdrop.app:
            apns:
              key_id: ABC123DEFG
              team_id: DEF123GHIJ
              key: /etc/sendgate-courier/apns.p8
              environment: production
              topics: [no.getdrop.app]
            fcm: {service_account: /etc/sendgate-courier/fcm.json}
            expo: {access_token: expo}
        mail:
          host: smtp.example.com
          port: 587
          security: starttls
          username: drop
          password: /etc/sendgate-courier/smtp
          from: hello@example.com
          from_name: Drop
        sms:
          twilio:
            account: AC00112233445566778899aabbccddeeff
            secret: /etc/sendgate-courier/twilio
            from: "+4790000000"
        gate: {replies: /run/sendgate/replies/gate.sock, receipts: /run/sendgate/receipts/gate.sock, users: [1000]}
        inbound:
          listen: "127.0.0.1:8091"
          twilio:
            public_url: https://hooks.example.com
            messages: /twilio/messages
            statuses: /twilio/statuses
            auth_tokens: [/etc/sendgate-courier/twilio]
          bounces: {path: /bounces, secrets: [/etc/sendgate-courier/bounces]}
        """

    private func read(_ text: String, credentials: String? = "/run/credentials/c") throws
        -> CourierConfiguration
    {
        let folder = try CourierFolder()
        defer { folder.remove() }
        let path = try folder.write("courier.yaml", text)
        return try CourierConfiguration.read(path, credentialsDirectory: credentials)
    }

    /// What is said of a configuration, with the file's name in place of its path, and hints behind `→`.
    private func problems(_ text: String, credentials: String? = nil) -> [String] {
        do {
            _ = try read(text, credentials: credentials)
            return []
        } catch let error as ConfigurationDiagnostics {
            return error.diagnostics.map { diagnostic in
                let place =
                    diagnostic.place.map { $0.split(separator: "/").last.map(String.init) ?? "" } ?? ""
                return "\(place): \(diagnostic.message)" + (diagnostic.hint.map { " → \($0)" } ?? "")
            }
        } catch {
            return ["\(error)"]
        }
    }

    @Test func `a complete configuration is read whole`() throws {
        let configuration = try read(Self.complete)
        #expect(configuration.socket.path == "/run/sendgate-courier/courier.sock")
        #expect(configuration.socket.groupID == 0)
        #expect(configuration.gateUserIDs == [1000])
        #expect(configuration.operations?.socketMode == 0o600)
        let app = try #require(configuration.apps["no.getdrop.app"])
        #expect(app.apns?.topics == ["no.getdrop.app"])
        #expect(app.apns?.environment == .production)
        #expect(app.fcm?.serviceAccount == CredentialFile(path: "/etc/sendgate-courier/fcm.json"))
        #expect(app.expo?.accessToken == CredentialFile(path: "/run/credentials/c/expo", isSystemd: true))
        #expect(configuration.mail?.port == 587)
        #expect(configuration.mail?.sender.name == "Drop")
        #expect(configuration.gateway?.userIDs == [1000])
        #expect(configuration.inbound?.port == 8091)
        #expect(configuration.inbound?.twilio?.statusesPath == "/twilio/statuses")
    }

    static let minimal = """
        socket: /run/c/courier.sock
        gate_users: [1000]

        """

    @Test(arguments: [
        (
            "gate_users: [1000]",
            ["courier.yaml:1:1: `socket` is not set → where the gateway's `hop.unix` leads"]
        ),
        (
            "socket: /run/c/courier.sock",
            [
                "courier.yaml:1:1: `gate_users` is not set → name the users the gateway runs as: no other is served"
            ]
        ),
        (
            minimal + "sokcet: /x", ["courier.yaml:3:1: `sokcet` is not a setting → did you mean `socket`?"]
        ),
        (
            minimal + "limits: {under_way: many}",
            [
                "courier.yaml:3:10: `limits.under_way` must be a whole number, and is a text → write plain digits without quotes"
            ]
        ),
        (
            minimal + "limits: {under_way: 4}",
            ["courier.yaml:3:10: `limits.under_way` is 4, and must be 8 to 10000"]
        ),
        (
            minimal + "log_level: infos",
            ["courier.yaml:3:1: `log_level` is `infos` → did you mean `info`?"]
        ),
        (
            "socket: run/c.sock\ngate_users: [1000]",
            [
                "courier.yaml:1:1: `socket` is `run/c.sock`, which is no absolute path → write the path from the root"
            ]
        ),
        (
            "socket: /run/c.sock\ngate_users: [nobody-of-that-name]",
            [
                "courier.yaml:2:1: `gate_users` names `nobody-of-that-name`, and there is no such user on this machine → create it, or write its number"
            ]
        ),
        (
            minimal + "apps: {a: {}}",
            ["courier.yaml:3:8: an app has none of `apns`, `fcm` and `expo` → remove it, or add one"]
        ),
        (
            minimal
                + "apps: {a: {apns: {key_id: abc, team_id: DEF123GHIJ, key: /k, enviroment: sandbox, topics: [t]}}}",
            [
                "courier.yaml:3:19: `apps.a.apns.key_id` is `abc` → ten letters and digits, as developer.apple.com shows them",
                "courier.yaml:3:18: `apps.a.apns.environment` is not set → one of production, sandbox",
                "courier.yaml:3:62: `apps.a.apns.enviroment` is not a setting → did you mean `environment`?",
            ]
        ),
        (
            minimal + "apps: {a: {fcm: {service_account: fcm}}}",
            [
                "courier.yaml:3:18: `apps.a.fcm.service_account` is `fcm`, the name of a credential, and systemd has laid out none → add `LoadCredential=fcm:/path` to the unit, or write the path from the root"
            ]
        ),
        (
            minimal + "mail: {host: smtp.example.com, security: none, from: a@example.com}\njournal: /j",
            [
                "courier.yaml:3:32: `mail.security` is `none`, and only the loopback is spoken to without TLS → use `starttls` or `tls`"
            ]
        ),
        (
            minimal
                + "mail: {host: smtp.example.com, from: a@example.com, client_name: \"a b\"}\njournal: /j",
            [
                "courier.yaml:3:53: `mail.client_name` is `a b` → a host's name in ASCII, or an address between brackets (RFC 5321, section 4.1.3)"
            ]
        ),
        (
            minimal + "mail: {host: smtp.example.com, from: a@example.com}",
            [
                "courier.yaml:1:1: `journal` is not set → a directory of the courier's own, mode 0700, on a disk that stays"
            ]
        ),
        (minimal + "sms: {}\njournal: /j", ["courier.yaml:3:6: `sms` has neither `twilio` nor `json`"]),
        (
            minimal + "journal: /j\ngate: {replies: /r, users: [1]}\ninbound: {listen: \"0.0.0.0:80\"}",
            [
                "courier.yaml:5:11: `inbound.listen` is `0.0.0.0:80` → write `127.0.0.1:PORT`, `[::1]:PORT` or `systemd:NAME`; a proxy in front has the name and the certificate"
            ]
        ),
        (
            minimal + "gate: {replies: /r}",
            [
                "courier.yaml:3:7: `gate.users` is not set → name the user the gateway runs as: whoever listens there is given numbers"
            ]
        ),
        (
            minimal + "journal: /j\ninbound: {listen: \"[::1]:80\"}",
            [
                "courier.yaml:1:1: `gate` is not set, and `inbound` and Expo's receipts have to tell somebody → set `gate.replies` and `gate.receipts`"
            ]
        ),
        (
            "socket: /run/c.sock\ngate_users: []",
            [
                "courier.yaml:2:1: `gate_users` is empty → name the users the gateway runs as: no other is served"
            ]
        ),
        (
            minimal
                + "apps: {a: {apns: {key_id: ABC123DEFG, team_id: DEF123GHIJ, key: /k, environment: sandbox, topics: []}}}",
            [
                "courier.yaml:3:91: `apps.a.apns.topics` is empty → the app's bundle id, and its other topics if it has some"
            ]
        ),
        (
            minimal + "gate: {replies: /r, users: []}",
            [
                "courier.yaml:3:21: `gate.users` is empty → name the user the gateway runs as: whoever listens there is given numbers"
            ]
        ),
        (
            minimal
                + "journal: /j\ngate: {replies: /r, users: [1]}\ninbound: {listen: \"[::1]:80\", bounces: {path: /b, secrets: []}, twilio: {public_url: \"https://h\", auth_tokens: []}}",
            [
                "courier.yaml:5:99: `inbound.twilio.auth_tokens` is empty → a file with the account's auth token",
                "courier.yaml:5:51: `inbound.bounces.secrets` is empty → files of 32 bytes or more each",
            ]
        ),
        (
            minimal + "apps:\n  a:\n    fcm:\n      service_account: /k\n      endpoint: https://fcm.example",
            [
                "courier.yaml:7:7: `apps.a.fcm.endpoint` is `https://fcm.example`: it has to be a host and perhaps a port, without a path → write `host:port`"
            ]
        ),
        (
            minimal + "apps:\n  a:\n    expo:\n      endpoint: localhost:70000",
            [
                "courier.yaml:6:7: `apps.a.expo.endpoint` is `localhost:70000`: a port is between 1 and 65535 → write `host:port`",
                "courier.yaml:1:1: `gate` is not set, and `inbound` and Expo's receipts have to tell somebody → set `gate.replies` and `gate.receipts`",
                "courier.yaml:1:1: `journal` is not set → a directory of the courier's own, mode 0700, on a disk that stays",
            ]
        ),
        (
            minimal
                + "journal: /j\nsms:\n  json:\n    url: http://sms.example\n    body: {to: \"${to}\", text: \"${text}\"}",
            [
                "courier.yaml:6:5: `sms.json.url` is `http://sms.example`: without TLS only 127.0.0.1, ::1 and localhost are reached → write `https://host:port`"
            ]
        ),
        (
            minimal + "socket: /y",
            [
                "courier.yaml:3:1: has the key `socket` twice, first in line 1 → keep one; readers of YAML disagree about which one counts"
            ]
        ),
    ])
    func `a mistake is named with its line and what to do`(_ text: String, _ expected: [String]) {
        #expect(problems(text) == expected)
    }

    @Test func `the handbook's table has every key, and no other`() throws {
        let page = try String(contentsOf: CourierFolder.handbook("Courier.md"), encoding: .utf8)
        var found: Set<String> = []
        for row in page.matches(of: /(?m)^\| ((?:`[a-z_.*]+` ?)+)\| (?:yes|no)/) {
            for key in row.1.matches(of: /`([a-z_.*]+)`/) { found.insert(String(key.1)) }
        }
        // Groups of settings are headings of the page.
        #expect(found == keys(below: []))
    }

    /// Every setting below a mapping, as `apps.*.apns.key_id`: a key that no mapping has is refused with the ones it has.
    private func keys(below path: [String]) -> Set<String> {
        let page = (path + ["no_such_key: 1"]).enumerated().map { depth, key in
            String(repeating: "  ", count: depth) + (depth < path.count ? "\"\(key)\":" : key)
        }
        let found = problems(page.joined(separator: "\n"))
        let name = (path + ["no_such_key"]).joined(separator: ".")
        if found.contains(where: { $0.contains("`\(name)` must be a mapping") }) {
            return keys(below: path + ["*"])
        }
        guard let refused = found.first(where: { $0.contains("`\(name)` is not a setting → known here: ") })
        else { return [path.joined(separator: ".")] }
        return refused.split(separator: "known here: ")[1].matches(of: /`([a-z_]+)`/)
            .reduce(into: []) { $0.formUnion(keys(below: path + [String($1.1)])) }
    }

    @Test func `the handbook's example is a configuration`() throws {
        let page = try String(contentsOf: CourierFolder.handbook("Courier.md"), encoding: .utf8)
        let examples = page.matches(of: /(?s)```yaml\n(.*?)```/).map { String($0.1) }
        #expect(examples.count == 2)
        #expect(problems(examples[0], credentials: "/run/credentials/c") == [])
        // A part, which takes the place of the same one above.
        #expect(problems(Self.minimal + "journal: /j\n" + examples[1]) == [])
    }

    @Test func `the handbook's table has every metric with its kind, labels and help`() throws {
        let page = try String(contentsOf: CourierFolder.handbook("Courier.md"), encoding: .utf8)
        let rows = page.matches(of: /(?m)^\| `sendgate_courier_.*$/).map { String($0.0) }
        #expect(
            rows
                == CourierMetric.all.map { metric in
                    let labels = metric.labels.map { "`\($0)`" }.joined(separator: " ")
                    return "| `\(metric.name)` | \(metric.kind.rawValue) | \(labels) | \(metric.help) |"
                })
    }
}

/// A folder of one test.
struct CourierFolder {
    let path: String

    init() throws {
        // A short path: a socket's name has room for 107 bytes.
        path = "/tmp/courier-\(UInt32.random(in: 0 ..< .max))"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    @discardableResult func write(_ name: String, _ text: String, mode: Int = 0o600) throws -> String {
        let file = "\(path)/\(name)"
        try Data(text.utf8).write(to: URL(filePath: file))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        return file
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }

    static func handbook(_ name: String) -> URL {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/sendgate/Sendgate.docc/\(name)")
    }
}
