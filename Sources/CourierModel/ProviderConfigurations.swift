/// A secret in a file of the courier's own, or one that systemd lays out (systemd.exec, "Credentials"). The file is read
/// at the start and again at SIGHUP.
package struct CredentialFile: Sendable, Hashable {
    package var path: String
    /// Whether the file lies in `$CREDENTIALS_DIRECTORY`, where root's group may read it.
    package var isSystemd: Bool

    package init(path: String, isSystemd: Bool = false) {
        self.path = path
        self.isSystemd = isSystemd
    }
}

/// How one app reaches Apple.
package struct APNsConfiguration: Sendable, Hashable {
    package enum Environment: String, CaseIterable, Sendable {
        case production, sandbox
    }

    /// Ten characters, as Apple's developer site shows them.
    package var keyID: String
    package var teamID: String
    /// PKCS #8 in PEM, P-256: the `.p8` file as downloaded.
    package var key: CredentialFile
    package var environment: Environment
    /// The topics that messages of the app may have: its bundle id, and what Apple derives from it. Any other is refused
    /// before it is written.
    package var topics: [String]
    /// PEM file of further roots, for a test.
    package var trust: String?
    /// `host:port` in place of Apple's, for a test.
    package var endpoint: String?

    package init(
        keyID: String, teamID: String, key: CredentialFile, environment: Environment, topics: [String],
        trust: String? = nil, endpoint: String? = nil
    ) {
        self.keyID = keyID
        self.teamID = teamID
        self.key = key
        self.environment = environment
        self.topics = topics
        self.trust = trust
        self.endpoint = endpoint
    }
}

/// How one app reaches Google.
package struct FCMConfiguration: Sendable, Hashable {
    /// The JSON file of a service account, which names the project.
    package var serviceAccount: CredentialFile
    package var trust: String?
    /// `host:port` in place of Google's, for a test. The token's address stands in the service account's file.
    package var endpoint: String?

    package init(serviceAccount: CredentialFile, trust: String? = nil, endpoint: String? = nil) {
        self.serviceAccount = serviceAccount
        self.trust = trust
        self.endpoint = endpoint
    }
}

/// How one app reaches Expo's push service.
package struct ExpoConfiguration: Sendable, Hashable {
    /// One line; absent where the project does not demand one.
    package var accessToken: CredentialFile?
    package var trust: String?
    package var endpoint: String?

    package init(accessToken: CredentialFile?, trust: String? = nil, endpoint: String? = nil) {
        self.accessToken = accessToken
        self.trust = trust
        self.endpoint = endpoint
    }
}

/// How e-mails reach the mail relay (RFC 6409).
package struct MailConfiguration: Sendable, Hashable {
    package enum Security: String, CaseIterable, Sendable {
        /// TLS from the first byte, port 465 (RFC 8314).
        case tls
        case starttls
        /// Plain text. Only to the loopback.
        case none
    }

    package enum Authentication: String, CaseIterable, Sendable {
        case plain, xoauth2
    }

    package var host: String
    package var port: Int
    package var security: Security
    /// Absent where the relay knows the courier by its address.
    package var username: String?
    /// The password, or the access token of XOAUTH2.
    package var password: CredentialFile?
    package var authentication: Authentication
    /// Who writes: `From`, and where bounces and answers go.
    package var sender: MailSender
    package var trust: String?
    /// The courier's name in EHLO (RFC 5321 section 4.1.1.1); the machine's where it is `nil`.
    package var clientName: String?
    /// Share of the times in RFC 5321 section 4.5.3.2 for a reply, which are minutes, for a queue that is in no hurry. A
    /// twentieth is 15 s for a reply and 30 s for the answer to a mail; what is left of `DeliveryOrder.answerMilliseconds` bounds
    /// each of them.
    package var timeoutScale = 0.05
    /// Connections at once. Further mails wait for one of them.
    package var connectionsMax = 4
    /// Mails over one connection: relays close it after some hundred, in the middle of one more.
    package var messagesPerConnectionMax = 100
    /// A connection without a mail is closed after so long, in milliseconds. Postfix closes it after 300 s
    /// (`smtpd_timeout`), and many after a minute.
    package var idleMilliseconds: Int64 = 30_000

    package init(
        host: String, port: Int, security: Security, username: String?, password: CredentialFile?,
        authentication: Authentication, sender: MailSender, trust: String? = nil
    ) {
        self.host = host
        self.port = port
        self.security = security
        self.username = username
        self.password = password
        self.authentication = authentication
        self.sender = sender
        self.trust = trust
    }

    package var endpoint: String { "\(host):\(port)" }
}

/// How text messages reach the SMS service.
package struct SMSConfiguration: Sendable, Hashable {
    package enum Service: Sendable, Hashable {
        /// Twilio's form API.
        case twilio(TwilioAccount)
        /// A request as JSON, over HTTPS.
        /// - Parameters:
        ///   - url: `https://host[:port]`, without a path: that is the template's.
        ///   - secret: One line, for the headers of the template.
        case json(url: String, secret: CredentialFile?, template: TextTemplate)
    }

    package var service: Service
    package var trust: String?
    /// `https://host:port` in place of Twilio's, for a test.
    package var endpoint: String?

    package init(service: Service, trust: String? = nil, endpoint: String? = nil) {
        self.service = service
        self.trust = trust
        self.endpoint = endpoint
    }
}

/// An account of Twilio's (https://www.twilio.com/docs/messaging/api/message-resource).
package struct TwilioAccount: Sendable, Hashable {
    package static let url = "https://api.twilio.com"

    /// `AC` and 32 hexadecimal digits.
    package var accountSID: String
    /// An API key (`SK…`) whose secret is the credential; `nil` where that is the account's auth token.
    package var keySID: String?
    package var credential: CredentialFile
    /// Number, short code or name that texts come from, or a messaging service (`MG…`).
    package var from: String
    /// Address of the status callbacks as Twilio calls it, without a query; `nil` for none.
    package var statusCallback: String?

    package init(
        accountSID: String, keySID: String? = nil, credential: CredentialFile, from: String,
        statusCallback: String? = nil
    ) {
        self.accountSID = accountSID
        self.keySID = keySID
        self.credential = credential
        self.from = from
        self.statusCallback = statusCallback
    }

    /// The form of `POST …/Messages.json`.
    /// - Parameter validSeconds: Twilio gives up a text that waits longer in its queue: 1 to 36,000.
    package func form(
        _ order: DeliveryOrder, text: String, validSeconds: Int64
    ) -> [(name: String, value: String)] {
        var fields = [
            (name: "To", value: order.token), (name: "Body", value: text),
            (name: from.hasPrefix("MG") ? "MessagingServiceSid" : "From", value: from),
            (name: "ValidityPeriod", value: String(min(max(validSeconds, 1), 36_000))),
        ]
        if let statusCallback {
            fields.append(("StatusCallback", TwilioWebhook.statusCallback(statusCallback, for: order)))
        }
        return fields
    }
}
