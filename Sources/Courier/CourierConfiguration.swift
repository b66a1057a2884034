import BundleModel
import CanonicalJSON
package import CommandTerminal
package import ConfigurationPages
package import CourierModel
import CourierProviders
import Glibc
package import Logging
package import UnixSockets

/// Everything that `sendgate-courier serve` reads from its file.
package struct CourierConfiguration: Sendable {
    /// The socket on which the gateway hands messages over.
    package var socket: SocketFile
    /// The users whose processes are served there.
    package var gateUserIDs: Set<UInt32>
    /// The socket for metrics and health, guarded by its mode; `nil` serves neither.
    package var operations: SocketFile?
    /// Names under which a service manager hands sockets over, for the listeners whose sockets it makes.
    package var inheritedNames: [Listening: String] = [:]
    /// The directory of the journal; `nil` where no provider needs one.
    package var journalDirectory: String?
    package var logLevel: Logger.Level
    package var logFormat = LogFormat.logfmt
    /// Orders under way at once: the gateway's 512, and 64 for security.
    package var underWayMax: Int
    package var drainMilliseconds: Int64
    package var apps: [String: AppConfiguration]
    package var mail: MailConfiguration?
    package var sms: SMSConfiguration?
    package var gateway: GatewayReportsConfiguration?
    package var inbound: InboundConfiguration?
    /// `--dev`: what has no provider is written here as NDJSON.
    package var onwardFile: String?
}

extension CourierConfiguration {
    /// The courier's listeners, by the settings that have their addresses.
    package enum Listening: String, Hashable, Sendable, CaseIterable {
        case gate = "socket"
        case operations
        case inbound = "inbound.listen"
    }

    /// The address of each listener.
    ///
    /// - Throws: `EndpointError` for a name under which no socket was handed over, or more than one, and for a socket that was
    ///   handed over and that nothing here asks for: its clients would wait for ever.
    func addresses(
        _ inherited: InheritedSockets
    ) throws(EndpointError) -> [Listening: HTTPListener.Address] {
        var addresses: [Listening: HTTPListener.Address] = [.gate: .unix(socket)]
        addresses[.operations] = operations.map(HTTPListener.Address.unix)
        addresses[.inbound] = inbound.map { .loopback(host: $0.host, port: $0.port) }
        var wanted: Set<Int32> = []
        for listening in Listening.allCases {
            guard let name = inheritedNames[listening] else { continue }
            let descriptor = try inherited.onlyDescriptor(named: name)
            guard wanted.insert(descriptor).inserted else {
                throw .inheritedSocketsMalformed("the socket `\(name)` is asked for twice")
            }
            addresses[listening] = .inherited(
                name: name, descriptor: descriptor, isPublic: listening == .inbound)
        }
        if let other = inherited.sockets.first(where: { !wanted.contains($0.descriptor) }) {
            throw .inheritedSocketsMalformed(
                "a socket named `\(other.name)` was handed over, and the configuration has none of that name")
        }
        return addresses
    }
}

/// One app's ways to its users' phones.
package struct AppConfiguration: Sendable {
    package var apns: APNsConfiguration?
    package var fcm: FCMConfiguration?
    package var expo: ExpoConfiguration?
}

/// The gateway's sockets that take replies and receipts.
package struct GatewayReportsConfiguration: Sendable {
    package var repliesSocket: String
    package var receiptsSocket: String
    /// The users whose processes may listen there, since a listener is given telephone numbers; `nil` trusts any process that could
    /// bind the path, which is for `--dev` alone.
    package var userIDs: Set<UInt32>?
}

/// Webhooks of providers, on a port that a proxy of the company's stands before.
package struct InboundConfiguration: Sendable {
    /// 127.0.0.1 or ::1.
    package var host: String
    package var port: Int
    package var twilio: Twilio?
    package var reports: Signed?
    package var bounces: Signed?

    package struct Twilio: Sendable {
        /// Path of incoming texts, at the listener.
        package var messagesPath: String?
        /// Path of status callbacks.
        package var statusesPath: String?
        /// Scheme, host and prefix as Twilio calls them; the path is appended.
        package var publicURL: String
        package var authTokens: [CredentialFile]
    }

    package struct Signed: Sendable {
        package var path: String
        package var secrets: [CredentialFile]
    }
}

extension CourierConfiguration {
    package static let appCountMax = 200
    package static let underWayStandard = 576

    /// - Parameter credentialsDirectory: Where systemd lays credentials.
    /// - Throws: Every problem of the file.
    package static func read(
        _ path: String, credentialsDirectory: String?
    ) throws(ConfigurationDiagnostics) -> CourierConfiguration {
        let root = try ConfigurationPage.read(path).get()
        let problems = ConfigurationProblems()
        let configuration = CourierConfiguration(
            MappingReader(root, file: path, problems: problems), credentialsDirectory)
        guard problems.diagnostics.isEmpty else { throw ConfigurationDiagnostics(problems.diagnostics) }
        return configuration
    }

    /// A directory for a first hour: a socket for this user, and the providers of `DIR/courier.yaml` where there is one.
    package static func development(
        _ directory: String, credentialsDirectory: String?
    ) throws(ConfigurationDiagnostics) -> CourierConfiguration {
        var configuration = CourierConfiguration(
            socket: SocketFile(path: "\(directory)/courier.sock", directoryMode: nil, socketMode: 0o600),
            gateUserIDs: [geteuid()],
            operations: SocketFile(
                path: "\(directory)/operations.sock", directoryMode: nil, socketMode: 0o600),
            journalDirectory: directory, logLevel: .info, underWayMax: underWayStandard,
            drainMilliseconds: 2_000, apps: [:], onwardFile: "\(directory)/onward.ndjson")
        let file = "\(directory)/courier.yaml"
        guard access(file, F_OK) == 0 else { return configuration }
        let problems = ConfigurationProblems()
        let reader = MappingReader(try ConfigurationPage.read(file).get(), file: file, problems: problems)
        configuration.readProviders(reader, credentialsDirectory, isDevelopment: true)
        reader.end()
        guard problems.diagnostics.isEmpty else { throw ConfigurationDiagnostics(problems.diagnostics) }
        return configuration
    }

    private init(_ file: MappingReader, _ credentials: String?) {
        socket = Self.socket(file, "socket", hint: "where the gateway's `hop.unix` leads")
        gateUserIDs = Self.users(file, "gate_users")
        file.requireElements("gate_users", hint: "name the users the gateway runs as: no other is served")
        inheritedNames[.gate] = Self.inheritedName(file, "socket")
        inheritedNames[.operations] = Self.inheritedName(file, "operations")
        operations =
            Self.place(file, "operations").map { path in
                SocketFile(path: path, socketMode: file.mode("operations_mode", standard: 0o660))
            }
        if operations == nil { _ = file.mode("operations_mode", standard: 0o660) }
        journalDirectory = file.path("journal")
        logLevel = file.choice("log_level", LogLevel.self, standard: .info).level
        logFormat = file.choice("log_format", standard: .logfmt)
        let limits = file.mapping("limits")
        underWayMax =
            limits?.number("under_way", 8...10_000, standard: Self.underWayStandard) ?? Self.underWayStandard
        drainMilliseconds = Int64(limits?.number("drain_seconds", 1...600, standard: 10) ?? 10) * 1_000
        limits?.end()
        apps = [:]
        readProviders(file, credentials, isDevelopment: false)
        file.end()
    }

    /// Apps, mail, text messages and what comes in: what `--dev` takes, too.
    private mutating func readProviders(
        _ file: MappingReader, _ credentials: String?, isDevelopment: Bool
    ) {
        for (name, app) in file.named("apps", countMax: Self.appCountMax) {
            apps[name] = AppConfiguration(app, credentials)
        }
        mail = file.mapping("mail").map { MailConfiguration($0, credentials) }
        sms = file.mapping("sms").map { SMSConfiguration($0, credentials) }
        gateway = file.mapping("gate").map { gate in
            let replies = gate.path("replies") ?? ""
            if replies.isEmpty {
                gate.refuse("replies", "is not set", hint: "the gateway's socket for `POST /v1/replies`")
            }
            let users = Self.users(gate, "users")
            if !isDevelopment || gate.has("users") {
                gate.requireElements(
                    "users", hint: "name the user the gateway runs as: whoever listens there is given numbers"
                )
            }
            defer { gate.end() }
            return GatewayReportsConfiguration(
                repliesSocket: replies, receiptsSocket: gate.path("receipts") ?? replies,
                userIDs: users.isEmpty ? nil : users)
        }
        inbound = file.mapping("inbound").map { inbound in
            inheritedNames[.inbound] = Self.inheritedName(inbound, "listen")
            return InboundConfiguration(inbound, credentials)
        }
        let hasExpo = apps.values.contains { $0.expo != nil }
        if inbound != nil || hasExpo, gateway == nil {
            file.refuse(
                "gate", "is not set, and `inbound` and Expo's receipts have to tell somebody",
                hint: "set `gate.replies` and `gate.receipts`")
        }
        let needsJournal =
            mail != nil || sms != nil || inbound != nil || hasExpo
        if needsJournal, journalDirectory == nil {
            file.refuse(
                "journal", "is not set",
                hint: "a directory of the courier's own, mode 0700, on a disk that stays")
        }
    }

    /// The name in `systemd:NAME`.
    private static func inheritedName(_ file: MappingReader, _ key: String) -> String? {
        guard let text = file.text(key), text.hasPrefix(InheritedSockets.configurationPrefix) else {
            return nil
        }
        let name = String(text.dropFirst(InheritedSockets.configurationPrefix.count))
        if InheritedSockets.isName(name) { return name }
        file.refuse(
            key, "is `\(text)`", hint: "write `systemd:` and the `FileDescriptorName=` of a socket unit")
        return nil
    }

    /// A path from the root, or `systemd:NAME` as it stands.
    private static func place(_ file: MappingReader, _ key: String) -> String? {
        if let text = file.text(key), text.hasPrefix(InheritedSockets.configurationPrefix) { return text }
        return file.path(key)
    }

    private static func socket(_ file: MappingReader, _ key: String, hint: String) -> SocketFile {
        let path = place(file, key) ?? ""
        if path.isEmpty, !file.has(key) { file.refuse(key, "is not set", hint: hint) }
        var socket = SocketFile(path: path, socketMode: file.mode("\(key)_mode", standard: 0o660))
        if let group = file.text("\(key)_group") {
            socket.groupID = UInt32(group) ?? UnixAccounts.groupID(named: group)
            if socket.groupID == nil {
                file.refuse("\(key)_group", "is `\(group)`, and this machine has no such group")
            }
        }
        return socket
    }

    fileprivate static func users(_ reader: MappingReader, _ key: String) -> Set<UInt32> {
        Set(
            reader.list(key).compactMap { text in
                // The largest number means "leave as it is" to chown(2) and is no user.
                if let id = UInt32(text) ?? UnixAccounts.userID(named: text), id != UInt32.max { return id }
                reader.refuse(
                    key, "names `\(text)`, and there is no such user on this machine",
                    hint: "create it, or write its number")
                return nil
            })
    }

    private enum LogLevel: String, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
        var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .info }
    }
}

extension MappingReader {
    /// Refuses a list that is absent or empty: the courier would start, and serve or send nothing.
    fileprivate func requireElements(_ key: String, hint: String) {
        guard has(key) else { return refuse(key, "is not set", hint: hint) }
        if case .list(let elements)? = node(key)?.value, elements.isEmpty {
            refuse(key, "is empty", hint: hint)
        }
    }

    /// - Parameter scheme: What the text lacks of an address.
    fileprivate func endpoint(_ key: String, behind scheme: String) -> String? {
        guard let text = text(key) else { return nil }
        do throws(UnusableEndpoint) {
            _ = try ProviderEndpoint(url: scheme + text)
        } catch {
            refuse(
                key, "is `\(text)`: \(error.why)",
                hint: scheme.isEmpty ? "write `https://host:port`" : "write `host:port`")
        }
        return text
    }

    fileprivate func url(_ key: String) -> String? {
        if !has(key) { refuse(key, "is not set", hint: "`https://host[:port]`; the path is the template's") }
        return endpoint(key, behind: "")
    }

    /// A path from the root, or the name of a credential that systemd lays out (`LoadCredential=NAME:…`).
    fileprivate func credential(_ key: String, in directory: String?) -> CredentialFile? {
        text(key).flatMap { credentialFile($0, key, in: directory) }
    }

    fileprivate func credentials(_ key: String, in directory: String?) -> [CredentialFile] {
        list(key).compactMap { credentialFile($0, key, in: directory) }
    }

    private func credentialFile(_ text: String, _ key: String, in directory: String?) -> CredentialFile? {
        if text.hasPrefix("/") { return CredentialFile(path: text) }
        guard !text.contains("/") else {
            refuse(
                key, "is `\(text)`",
                hint: "write the path from the root, or the name of a credential of systemd")
            return nil
        }
        guard let directory else {
            refuse(
                key, "is `\(text)`, the name of a credential, and systemd has laid out none",
                hint: "add `LoadCredential=\(text):/path` to the unit, or write the path from the root")
            return nil
        }
        return CredentialFile(path: "\(directory)/\(text)", isSystemd: true)
    }

    fileprivate func requiredCredential(_ key: String, in directory: String?, hint: String) -> CredentialFile
    {
        if let file = credential(key, in: directory) { return file }
        if !has(key) { refuse(key, "is not set", hint: hint) }
        return CredentialFile(path: "")
    }
}

extension AppConfiguration {
    fileprivate init(_ app: MappingReader, _ credentials: String?) {
        apns = app.mapping("apns").map { apns in
            defer { apns.end() }
            let identifiers = ["key_id", "team_id"].map { key in
                let text = apns.required(
                    key, hint: "ten letters and digits, as developer.apple.com shows them")
                if !text.isEmpty, text.wholeMatch(of: /[A-Z0-9]{10}/) == nil {
                    apns.refuse(
                        key, "is `\(text)`", hint: "ten letters and digits, as developer.apple.com shows them"
                    )
                }
                return text
            }
            let topics = apns.list("topics")
            apns.requireElements(
                "topics", hint: "the app's bundle id, and its other topics if it has some")
            return APNsConfiguration(
                keyID: identifiers[0], teamID: identifiers[1],
                key: apns.requiredCredential("key", in: credentials, hint: "the `.p8` file of the key"),
                environment: apns.choice("environment"), topics: topics, trust: apns.path("trust"),
                endpoint: apns.endpoint("endpoint", behind: "https://"))
        }
        fcm = app.mapping("fcm").map { fcm in
            defer { fcm.end() }
            return FCMConfiguration(
                serviceAccount: fcm.requiredCredential(
                    "service_account", in: credentials,
                    hint: "the JSON file of a service account of the project"),
                trust: fcm.path("trust"), endpoint: fcm.endpoint("endpoint", behind: "https://"))
        }
        expo = app.mapping("expo").map { expo in
            defer { expo.end() }
            return ExpoConfiguration(
                accessToken: expo.credential("access_token", in: credentials), trust: expo.path("trust"),
                endpoint: expo.endpoint("endpoint", behind: "https://"))
        }
        if apns == nil, fcm == nil, expo == nil {
            app.problems.add(
                "an app has none of `apns`, `fcm` and `expo`", at: app.place, hint: "remove it, or add one")
        }
        app.end()
    }
}

extension MailConfiguration {
    fileprivate init(_ mail: MappingReader, _ credentials: String?) {
        let security = mail.choice("security", Security.self, standard: .starttls)
        let host = mail.required("host", hint: "the mail relay's name, as its certificate has it")
        let isLoopback = ["localhost", "127.0.0.1", "::1"].contains(host)
        if security == .none, !isLoopback {
            mail.refuse(
                "security", "is `none`, and only the loopback is spoken to without TLS",
                hint: "use `starttls` or `tls`")
        }
        let username = mail.text("username")
        let password = mail.credential("password", in: credentials)
        if (username == nil) != (password == nil), !mail.has("username") || !mail.has("password") {
            mail.refuse("password", "and `username` go together")
        }
        let sender = MailSender(
            address: mail.required("from", hint: "the mailbox that writes"), name: mail.text("from_name"),
            bounceAddress: mail.text("bounces_to"), replyTo: mail.text("reply_to"))
        if !sender.address.isEmpty, let fault = sender.fault {
            mail.refuse("from", "cannot be used: \(fault)")
        }
        self.init(
            host: host,
            port: mail.number("port", 1...65_535, standard: security == .tls ? 465 : 587), security: security,
            username: username, password: password,
            authentication: mail.choice("authentication", standard: .plain), sender: sender,
            trust: mail.path("trust"))
        clientName = mail.text("client_name")
        if let clientName, clientName.wholeMatch(of: /[A-Za-z0-9.\-]{1,255}|\[[A-Za-z0-9.:]{1,64}\]/) == nil {
            mail.refuse(
                "client_name", "is `\(clientName)`",
                hint: "a host's name in ASCII, or an address between brackets (RFC 5321, section 4.1.3)")
        }
        connectionsMax = mail.number("connections", 1...64, standard: connectionsMax)
        mail.end()
    }
}

extension SMSConfiguration {
    fileprivate init(_ sms: MappingReader, _ credentials: String?) {
        let twilio = sms.mapping("twilio").map { twilio in
            defer { twilio.end() }
            let account = twilio.required("account", hint: "`AC` and 32 hexadecimal digits")
            if !account.isEmpty, account.wholeMatch(of: /AC[0-9a-f]{32}/) == nil {
                twilio.refuse("account", "is `\(account)`", hint: "`AC` and 32 hexadecimal digits")
            }
            return TwilioAccount(
                accountSID: account, keySID: twilio.text("api_key"),
                credential: twilio.requiredCredential(
                    "secret", in: credentials,
                    hint: "a file with the account's auth token, or the API key's secret"),
                from: twilio.required(
                    "from", hint: "the number or name that texts come from, or a messaging service"),
                statusCallback: twilio.text("status_callback"))
        }
        let json = sms.mapping("json").map { json in
            defer { json.end() }
            return (
                url: json.url("url") ?? "",
                secret: json.credential("secret", in: credentials), template: TextTemplate(json)
            )
        }
        let service: Service
        if let twilio {
            service = .twilio(twilio)
            if json != nil { sms.refuse("json", "and `twilio` are two services", hint: "keep one") }
        } else if let json {
            service = .json(url: json.url, secret: json.secret, template: json.template)
        } else {
            sms.problems.add("`sms` has neither `twilio` nor `json`", at: sms.place)
            service = .twilio(TwilioAccount(accountSID: "", credential: CredentialFile(path: ""), from: ""))
        }
        self.init(service: service, trust: sms.path("trust"), endpoint: sms.endpoint("endpoint", behind: ""))
        sms.end()
    }
}

extension TextTemplate {
    fileprivate init(_ json: MappingReader) {
        func pointer(_ key: String) -> JSONPointer? {
            guard let text = json.text(key) else { return nil }
            let pointer = JSONPointer(parsing: text)
            if pointer == nil {
                json.refuse(key, "is `\(text)`", hint: "a JSON pointer, such as `/messages/0/id` (RFC 6901)")
            }
            return pointer
        }
        func meanings(_ key: String) -> [String: Meaning] {
            guard case .mapping(let members)? = json.node(key)?.value else { return [:] }
            var meanings: [String: Meaning] = [:]
            for member in members {
                guard case .text(let text) = member.value.value, let meaning = Meaning(rawValue: text) else {
                    let names = Meaning.allCases.map(\.rawValue).joined(separator: ", ")
                    json.refuse(
                        key, "gives `\(member.key)` no meaning that is known", hint: "one of \(names)")
                    continue
                }
                meanings[member.key] = meaning
            }
            return meanings
        }
        var statuses: [Int: Meaning] = [:]
        for (name, meaning) in meanings("statuses") {
            if let status = Int(name), (100...599).contains(status) {
                statuses[status] = meaning
            } else {
                json.refuse(
                    "statuses", "has `\(name)`, which is no HTTP status", hint: "write it between quotes")
            }
        }
        var headers: [(name: String, value: String)] = []
        if case .mapping(let members)? = json.node("headers")?.value {
            for member in members {
                guard case .text(let text) = member.value.value else {
                    json.refuse("headers", "has `\(member.key)`, which is no text")
                    continue
                }
                headers.append((member.key.lowercased(), text))
            }
        }
        self.init(
            method: json.text("method") ?? "POST", path: json.text("path") ?? "/", headers: headers,
            body: json.node("body")?.json ?? .object([:]), idPointer: pointer("id_pointer"),
            codePointer: pointer("code_pointer"), statuses: statuses, codes: meanings("codes"))
        if let fault { json.refuse("body", "cannot be used: \(fault)") }
    }
}

extension InboundConfiguration {
    fileprivate init(_ inbound: MappingReader, _ credentials: String?) {
        (host, port) = ("127.0.0.1", 0)
        let listen = inbound.required("listen", hint: "`127.0.0.1:PORT`")
        if let match = listen.wholeMatch(of: /(127\.0\.0\.1|\[::1\]):([0-9]{1,5})/),
            let port = UInt16(match.2)
        {
            host = match.1 == "[::1]" ? "::1" : "127.0.0.1"
            self.port = Int(port)
        } else if !listen.isEmpty, !listen.hasPrefix(InheritedSockets.configurationPrefix) {
            inbound.refuse(
                "listen", "is `\(listen)`",
                hint:
                    "write `127.0.0.1:PORT`, `[::1]:PORT` or `systemd:NAME`; a proxy in front has the name and the certificate"
            )
        }
        func path(_ reader: MappingReader, _ key: String) -> String? {
            guard let path = reader.text(key) else { return nil }
            if path.hasPrefix("/"), !path.contains("?") { return path }
            reader.refuse(key, "is `\(path)`", hint: "a path without a query, such as `/twilio/messages`")
            return nil
        }
        twilio = inbound.mapping("twilio").map { twilio in
            defer { twilio.end() }
            let url = twilio.required("public_url", hint: "`https://host` as Twilio calls it")
            if !url.isEmpty, !url.hasPrefix("https://") || url.hasSuffix("/") {
                twilio.refuse("public_url", "is `\(url)`", hint: "`https://host`, without a slash at its end")
            }
            let found = Twilio(
                messagesPath: path(twilio, "messages"), statusesPath: path(twilio, "statuses"),
                publicURL: url,
                authTokens: twilio.credentials("auth_tokens", in: credentials))
            twilio.requireElements("auth_tokens", hint: "a file with the account's auth token")
            return found
        }
        func signed(_ key: String) -> Signed? {
            inbound.mapping(key).map { reader in
                defer { reader.end() }
                let found = Signed(
                    path: path(reader, "path") ?? "", secrets: reader.credentials("secrets", in: credentials))
                if found.path.isEmpty, !reader.has("path") {
                    reader.refuse("path", "is not set", hint: "such as `/\(key)`")
                }
                reader.requireElements("secrets", hint: "files of 32 bytes or more each")
                return found
            }
        }
        reports = signed("reports")
        bounces = signed("bounces")
        inbound.end()
    }
}
