import BundleModel
import CanonicalJSON
import CommandTerminal
import ConfigurationPages
import Foundation
import GateVocabulary
import UnixSockets
import WireProtocol

/// What somebody said of the gateway to be: by options, or asked at a terminal.
struct SetupAnswers: Hashable, Sendable {
    struct Binding: Hashable, Sendable {
        var caller: String
        var user: String
    }

    struct Hop: Hashable, Sendable {
        var path: String
        var users: [String]
    }

    var origin: String?
    var unsubscribeURL: String?
    var callers: [Binding] = []
    var apps: [String] = []
    /// `nil` for the courier's.
    var hop: Hop?

    init(origin: String? = nil, unsubscribeURL: String? = nil) {
        self.origin = origin
        self.unsubscribeURL = unsubscribeURL
    }

    /// Reads `NAME=USER`.
    static func binding(_ text: String) throws -> Binding {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else {
            throw CommandFailure.usage(
                "`--caller` is `\(text)`",
                hint: "write the caller and its Unix user, e.g. `payments=payments`")
        }
        return Binding(caller: String(parts[0]), user: String(parts[1]))
    }
}

/// A gateway that can be set up: every answer is there and makes sense on this machine.
struct SetupPlan: Sendable {
    struct Places: Hashable, Sendable {
        var directory: String
        var state: String
        var roles: String
        /// Where the gateway makes its socket; `nil` where systemd does.
        var sockets: String?
        var courier: String
        /// The bundle that is copied.
        var policies: String
    }

    let origin: String
    let unsubscribeURL: String
    let callers: [SetupAnswers.Binding]
    let apps: [String]
    let hop: SetupAnswers.Hop
    /// Whether the hop is the courier that comes with the gateway.
    let hasCourier: Bool
    let places: Places
    let user: String
    let userID: UInt32
    let groupID: UInt32

    static let courierSocket = "/run/sendgate-courier/gate/courier.sock"
    static let courierUser = "sendgate-courier"
    static let callersGroup = "sendgate-callers"
    static let auditorsGroup = "sendgate-auditors"
    static let callerCountMax = 256

    /// - Parameter callers: Those of the bundle.
    /// - Throws: `CommandFailure` for the first answer that is missing or cannot be right.
    init(_ answers: SetupAnswers, callers known: [String], places: Places, user: String) throws {
        guard let origin = answers.origin, !origin.isEmpty else { throw Self.missing("--origin NAME") }
        guard let url = answers.unsubscribeURL, !url.isEmpty else {
            throw Self.missing("--unsubscribe-url URL")
        }
        guard !answers.callers.isEmpty else { throw Self.missing("--caller NAME=USER") }
        guard answers.callers.count <= Self.callerCountMax else {
            throw CommandFailure.usage(
                "`--caller` is given \(answers.callers.count) times, \(Self.callerCountMax) are accepted")
        }
        for (flag, path) in [
            ("--directory", places.directory), ("--state", places.state), ("--roles", places.roles),
            ("--courier", places.courier), ("--sockets", places.sockets ?? "/"),
            ("--hop", answers.hop?.path ?? "/"),
        ] where !path.hasPrefix("/") || path.utf8.contains(where: { $0 < 0x20 }) {
            throw CommandFailure.usage("`\(flag)` is `\(path)`", hint: "write the path from the root")
        }
        for binding in answers.callers {
            guard known.contains(binding.caller) else {
                throw CommandFailure.usage(
                    "the bundle has no caller `\(binding.caller)`",
                    hint: NearestName.to(binding.caller, among: known).map { "did you mean `\($0)`?" }
                        ?? "one of \(known.joined(separator: ", "))")
            }
            try Self.requireUser(binding.user, "`\(binding.caller)`")
        }
        let bindings = Dictionary(grouping: answers.callers) { Self.userID($0.user) }
        if let other = bindings.first(where: { $0.value.count > 1 }) {
            throw CommandFailure.usage(
                "`\(other.value[0].user)` is named for \(other.value.map { "`\($0.caller)`" }.joined(separator: " and "))",
                hint: "a process is one caller: give each a Unix user of its own")
        }
        guard let userID = Self.userID(user) else {
            throw CommandFailure(
                "there is no user `\(user)`", hint: "the package makes it; else `useradd --system \(user)`")
        }
        for app in answers.apps where app.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9._\-]{0,254}/) == nil {
            throw CommandFailure.usage(
                "`--app` is `\(app)`", hint: "write its bundle id, e.g. `com.example.app`")
        }
        self.origin = origin
        unsubscribeURL = url
        callers = answers.callers
        apps = answers.apps
        hasCourier = answers.hop == nil
        hop = answers.hop ?? .init(path: Self.courierSocket, users: [Self.courierUser, "root"])
        for name in hop.users where Self.userID(name) == nil {
            throw CommandFailure(
                "there is no user `\(name)`, who is to serve the hop",
                hint: hasCourier
                    ? "install sendgate-courier, or name the delivery layer with `--hop` and `--hop-user`"
                    : "create it, or name another with `--hop-user`")
        }
        guard !hop.users.isEmpty else { throw Self.missing("--hop-user USER") }
        guard places.sockets == nil || UnixAccounts.groupID(named: Self.callersGroup) != nil else {
            throw CommandFailure(
                "there is no group `\(Self.callersGroup)`, whose members may use the gateway's socket",
                hint: "the package makes it; else `groupadd --system \(Self.callersGroup)`")
        }
        guard geteuid() == 0 || geteuid() == userID else {
            throw CommandFailure(
                "only root can give keys to `\(user)`", hint: "run `sendgate init` as root")
        }
        self.places = places
        self.user = user
        self.userID = userID
        groupID = UnixAccounts.primaryGroupID(ofUser: userID) ?? userID
    }

    private static func missing(_ option: String) -> CommandFailure {
        .usage("`\(option)` is needed", hint: "give it, or run `sendgate init` at a terminal, which asks")
    }

    /// Of a name of this machine, or of a number, which a container's user may have without a name here.
    private static func userID(_ text: String) -> UInt32? {
        guard let number = ConfigurationSources.digits(text) else { return UnixAccounts.userID(named: text) }
        // The largest number means "leave as it is" to chown(2) and is no user.
        return UInt32(exactly: number).flatMap { $0 == UInt32.max ? nil : $0 }
    }

    private static func requireUser(_ name: String, _ caller: String) throws {
        guard let id = userID(name) else {
            throw CommandFailure(
                "there is no user `\(name)` for \(caller)",
                hint:
                    "name the one that the service runs as, or make it: `useradd --system --user-group \(name)`"
            )
        }
        guard id != 0 else {
            throw CommandFailure(
                "\(caller) cannot be root, who can act as every user",
                hint: "give the service a user of its own")
        }
    }

    // MARK: Where things go

    var configurationPath: String { "\(places.directory)/gate.yaml" }
    var policiesPath: String { "\(places.directory)/policies" }
    var rootKeyPath: String { "\(places.directory)/root.key" }
    var keyringPath: String { "\(places.directory)/keyring.yaml" }
    var keysPath: String { "\(places.state)/keys" }
    var trailPath: String { "\(places.state)/trail" }
    var databasesPath: String { "\(places.state)/state" }
    func rolePath(_ role: ApprovalRole) -> String { "\(places.roles)/\(role.rawValue)" }

    /// Refuses what would be overwritten, before anything is written.
    func requireRoom() throws {
        func hasNames(_ path: String) -> Bool {
            (try? FileManager.default.contentsOfDirectory(atPath: path))?.isEmpty == false
        }
        let paths: [String] = [configurationPath, policiesPath, rootKeyPath, keyringPath]
        let files = paths.filter { access($0, F_OK) == 0 }
        let folders = ([keysPath, trailPath, databasesPath] + ApprovalRole.allCases.map(rolePath)).filter(
            hasNames)
        guard let first = (files + folders).first else { return }
        throw CommandFailure(
            "`\(first)` is there already",
            hint: access(configurationPath, F_OK) == 0
                ? "`sendgate doctor` says what a configured gateway lacks; nothing is overwritten"
                : "an earlier `sendgate init` may have been broken off: look at it, and remove \((files + folders).joined(separator: " ")) if no gateway has run with them"
        )
    }

    // MARK: Texts

    /// - Parameter signers: The verifier key of each role.
    func configurationText(signers: [ApprovalRole: String]) -> String {
        let listener =
            if let sockets = places.sockets {
                """
                  - path: \(sockets)/gate.sock
                    group: \(Self.callersGroup)
                """
            } else {
                "  - systemd: gate"
            }
        let bindings = callers.map { "  \($0.caller): {users: [\($0.user)]}" }.joined(separator: "\n")
        let roles = ApprovalRole.allCases.map { "  \($0.rawValue): [\"\(signers[$0] ?? "")\"]" }
            .joined(separator: "\n")
        return """
            # Written by `sendgate init`. Every key is in the handbook's page Configuration.
            state: \(databasesPath)
            trail: \(trailPath)
            policies: \(policiesPath)
            keys: \(keysPath)
            # The credential of the unit: LoadCredential=root:\(rootKeyPath)
            root_key: root
            origin: \(origin)
            unsubscribe_url: "\(unsubscribeURL)"
            hop:
              unix: \(hop.path)
              users: [\(hop.users.joined(separator: ", "))]
            policy_signing:
            \(roles)
            listeners:
            \(listener)
            callers:
            \(bindings)

            """
    }

    var courierText: String {
        let blocks = apps.map { app in
            """
            #  \(app):
            #    apns:
            #      key_id: TEN_LETTERS
            #      team_id: TEN_LETTERS
            #      key: apns
            #      environment: production
            #      topics: [\(app)]
            #    fcm: {service_account: fcm}
            """
        }
        return """
            # Written by `sendgate init`. Every key is in the handbook's page Courier.
            socket: systemd:gate
            gate_users: [\(user)]
            journal: /var/lib/sendgate-courier
            # Providers. A name in place of a path is a credential of the unit: LoadCredential=apns:/etc/sendgate-courier/apns.p8
            #apps:
            \((blocks.isEmpty ? ["#  com.example.app:"] : blocks).joined(separator: "\n"))

            """
    }

    /// What only people can do, in the order in which they should.
    func left(_ made: SetupWork.Made) -> [String] {
        var left: [String] = []
        if UnixAccounts.groupID(named: Self.callersGroup) == nil {
            left.append("Make the group of the callers: groupadd --system \(Self.callersGroup)")
        }
        let names = callers.map { binding in
            ConfigurationSources.digits(binding.user) == nil
                ? binding.user : Self.userID(binding.user).flatMap(MachineState.userName)
        }
        let commands = names.compactMap(\.self).map { "usermod --append --groups \(Self.callersGroup) \($0)" }
        if !commands.isEmpty {
            left.append(
                "Let each caller's user connect: \(commands.joined(separator: "; ")). A service that runs already is started again for it."
            )
        }
        let nameless = zip(callers, names).filter { $0.1 == nil }.map(\.0.user)
        if !nameless.isEmpty {
            left.append(
                "Start what runs as \(nameless.joined(separator: ", ")) with the supplementary group \(Self.callersGroup): users without a name here are in no group of this machine."
            )
        }
        left.append(
            "Carry the keys of the roles in \(places.roles) to \(ApprovalRole.allCases.map(\.rawValue).joined(separator: ", ")), each on a medium of its own, and remove them here: whoever has all three can put any bundle in force."
        )
        left.append(
            "Copy \(rootKeyPath) and \(keysPath) to two offline media each, in two places: without them nothing in the databases can be read."
        )
        if made.paths.contains(places.courier) {
            left.append(
                "Write the providers into \(places.courier), and run `sendgate-courier check --config \(places.courier)`."
            )
        }
        if places.sockets == nil {
            let courier = hasCourier ? "sendgate-courier.socket sendgate-courier.service " : ""
            left.append("Start it: systemctl enable --now \(courier)sendgate.socket sendgate.service")
        } else {
            left.append("Start it: sendgate serve --config \(configurationPath)")
        }
        left.append("Look whether anything is wrong: sendgate doctor")
        left.append(
            "Hand the line of \(trailPath)/trail.pub to the auditors, by a way that this machine's operator does not control."
        )
        left.append(
            "Make the bundle in \(policiesPath) your own: it is the starter, which your roles have signed and nobody has reviewed."
        )
        return left
    }
}
