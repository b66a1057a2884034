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
    /// Mailbox of `From` and the envelope's sender.
    package var from: String
    package var trust: String?

    package init(
        host: String, port: Int, security: Security, username: String?, password: CredentialFile?,
        authentication: Authentication, from: String, trust: String? = nil
    ) {
        self.host = host
        self.port = port
        self.security = security
        self.username = username
        self.password = password
        self.authentication = authentication
        self.from = from
        self.trust = trust
    }
}

/// How text messages reach the SMS service.
package struct SMSConfiguration: Sendable, Hashable {
    package enum Service: Sendable, Hashable {
        /// Twilio's form API.
        case twilio(accountSID: String, authToken: CredentialFile)
        /// A JSON body from a template, with `{{to}}`, `{{text}}`, `{{from}}` and `{{id}}` in its texts.
        case json(url: String, bearer: CredentialFile?, template: String)
    }

    package var service: Service
    /// The number, the sender's name, or Twilio's messaging service.
    package var from: String
    package var trust: String?
    /// `host:port` in place of Twilio's, for a test.
    package var endpoint: String?

    package init(service: Service, from: String, trust: String? = nil, endpoint: String? = nil) {
        self.service = service
        self.from = from
        self.trust = trust
        self.endpoint = endpoint
    }
}
