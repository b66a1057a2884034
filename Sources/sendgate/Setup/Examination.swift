import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import ConfigurationPages
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import OpenSSLCrypto
import PolicyFiles
import UnixHTTPClient
import UnixSockets
import WireProtocol

/// What was looked at, and what is wrong with it.
struct Finding: Hashable, Sendable {
    var check: String
    var subject: String
    /// `nil` when it is as it should be.
    var fault: String?
    /// What puts it right.
    var mend: String?
}

/// A look at everything that a gateway needs of its machine. Nothing is written and no lock is taken.
struct Examination {
    let configurationPath: String

    func findings() async -> [Finding] {
        let configuration: GatewayConfiguration
        do {
            configuration = try read()
        } catch let error as ConfigurationDiagnostics {
            return error.diagnostics.map {
                Finding(
                    check: "configuration", subject: $0.place ?? configurationPath, fault: $0.message,
                    mend: $0.hint ?? "see the handbook's page Configuration")
            }
        } catch {
            return [finding("configuration", configurationPath, error)]
        }
        var findings = [Finding(check: "configuration", subject: configurationPath)]
        findings += accounts(configuration)
        findings += modes(configuration)
        findings += keys(configuration)
        findings += [bundle(configuration), disk(configuration), clock(), hop(configuration)]
        findings.append(await gateway(configuration))
        return findings
    }

    private func finding(_ check: String, _ subject: String, _ error: any Error) -> Finding {
        switch error {
        case let error as CommandFailure:
            Finding(
                check: check, subject: subject, fault: error.message, mend: error.hint ?? "see the message")
        case let error as KeyFileError:
            Finding(check: check, subject: subject, fault: "\(error)", mend: error.hint)
        case let error as EndpointError:
            Finding(check: check, subject: subject, fault: "\(error)", mend: error.hint)
        default:
            Finding(check: check, subject: subject, fault: "\(error)", mend: "run `sendgate doctor` as root")
        }
    }

    /// A root key that is a credential of the unit lies, for root at a terminal, beside the configuration.
    private func read() throws -> GatewayConfiguration {
        var environment = Console.current.environment
        let folder = configurationPath.prefix(
            upTo: configurationPath.lastIndex(of: "/") ?? configurationPath.startIndex)
        let rootKey = "\(folder)/root.key"
        if environment[Setting.rootKey.environmentName] == nil, environment["CREDENTIALS_DIRECTORY"] == nil,
            access(rootKey, F_OK) == 0
        {
            environment[Setting.rootKey.environmentName] = rootKey
        }
        return try GatewayConfiguration.read(environment: environment, filePath: configurationPath)
    }

    // MARK: Accounts

    /// The user that the state belongs to: the gateway's.
    private func owner(_ configuration: GatewayConfiguration) -> UInt32? {
        var status = stat()
        return stat(configuration.keysDirectory, &status) == 0 ? status.st_uid : nil
    }

    private func accounts(_ configuration: GatewayConfiguration) -> [Finding] {
        var findings: [Finding] = []
        if owner(configuration) == 0 {
            findings.append(
                Finding(
                    check: "users", subject: configuration.keysDirectory, fault: "belongs to root",
                    mend: "give it to the gateway's user: `chown -R sendgate: \(configuration.keysDirectory)`"
                ))
        }
        for binding in configuration.callers {
            for user in binding.userIDs.sorted() {
                findings += reach(of: user, named: binding.caller.text, configuration)
            }
        }
        return findings
    }

    /// Whether a caller's process may connect to a socket that it needs: the directory and the file say.
    private func reach(
        of user: UInt32, named caller: String, _ configuration: GatewayConfiguration
    ) -> [Finding] {
        let groups = MachineState.groupIDs(ofUser: user)
        return sharedSockets(configuration).compactMap { path in
            var (directory, file) = (stat(), stat())
            guard stat(SocketFile(path: path).directory, &directory) == 0, stat(path, &file) == 0 else {
                return nil
            }
            func may(_ status: stat, _ bit: mode_t) -> Bool {
                if status.st_uid == user { return status.st_mode & (bit << 6) != 0 }
                if groups.contains(status.st_gid) { return status.st_mode & (bit << 3) != 0 }
                return status.st_mode & bit != 0
            }
            let subject = "uid \(user), `\(caller)`"
            guard may(directory, 0o1), may(file, 0o2) else {
                let group = MachineState.groupName(file.st_gid) ?? "\(file.st_gid)"
                let name = MachineState.userName(user) ?? "\(user)"
                return Finding(
                    check: "groups", subject: subject, fault: "may not connect to \(path)",
                    mend: "usermod --append --groups \(group) \(name), and start the service again")
            }
            return Finding(check: "groups", subject: subject)
        }
    }

    /// The sockets that are not bound to one caller.
    private func sharedSockets(_ configuration: GatewayConfiguration) -> [String] {
        configuration.listeners.filter { $0.caller == nil }.compactMap { listener in
            switch listener.source {
            case .path(let path): path
            // Where the package's unit has it.
            case .systemd(let name): name == "gate" ? Self.packagedSocket : nil
            }
        }
    }

    private static let packagedSocket = "/run/sendgate/callers/gate.sock"

    // MARK: Files

    private func modes(_ configuration: GatewayConfiguration) -> [Finding] {
        var findings: [Finding] = []
        do {
            try WritePermissions.demand(
                state: configuration.stateDirectory, trail: configuration.trailDirectory)
            findings.append(Finding(check: "modes", subject: "state and trail"))
        } catch {
            findings.append(finding("modes", "state and trail", error))
        }
        let user = owner(configuration)
        for path in [configuration.stateDirectory, configuration.trailDirectory] {
            var status = stat()
            // The first start makes them.
            guard stat(path, &status) == 0, let user, status.st_uid != user else { continue }
            findings.append(
                Finding(
                    check: "modes", subject: path,
                    fault: "belongs to uid \(status.st_uid), and the keys to uid \(user)",
                    mend: "chown -R \(MachineState.userName(user) ?? "\(user)") \(path)"))
        }
        if let root = configuration.rootKeyPath {
            var status = stat()
            if stat(root, &status) == 0, status.st_mode & 0o077 != 0, !root.hasPrefix("/run/credentials/") {
                findings.append(
                    Finding(
                        check: "modes", subject: root,
                        fault:
                            "others than its owner may read it (mode \(String(status.st_mode & 0o777, radix: 8)))",
                        mend: "chmod 400 \(root), and rotate the root key: somebody may have a copy"))
            }
        }
        return findings
    }

    private func keys(_ configuration: GatewayConfiguration) -> [Finding] {
        do {
            let keys = try PrivateKeyDirectory(
                at: configuration.keysDirectory, rootPath: configuration.rootKeyPath,
                credentials: Console.current.credentialsDirectory, acceptsThrowaway: false,
                ownedBy: geteuid() == 0 ? owner(configuration) : nil)
            let count = keys.keys.values.reduce(0) { $0 + $1.count }
            return [Finding(check: "keys", subject: "\(count) in \(configuration.keysDirectory)")]
        } catch {
            return [finding("keys", configuration.keysDirectory, error)]
        }
    }

    private func bundle(_ configuration: GatewayConfiguration) -> Finding {
        let subject = configuration.policiesDirectory
        do {
            let policy = try PolicyLoading.signed(configuration)
            try configuration.requireCallers(in: policy)
            let keys = try PrivateKeyDirectory(
                at: configuration.keysDirectory, rootPath: configuration.rootKeyPath,
                credentials: Console.current.credentialsDirectory, acceptsThrowaway: false,
                ownedBy: geteuid() == 0 ? owner(configuration) : nil)
            let proofs = KeptProofs(
                in: configuration.stateDirectory, key: HMACKey(try keys.current(.index).secret))
            let isFirst = access(configuration.stateDirectory, F_OK) != 0
            guard isFirst || ProvedBundles.holds(policy, keptIn: proofs) else {
                return Finding(
                    check: "proof", subject: subject,
                    fault: "this build has not proved it; the next start does",
                    mend:
                        "systemctl start sendgate-prove.service, or `sendgate policy prove --config \(configurationPath)` as the gateway's user"
                )
            }
            return Finding(check: "proof", subject: subject)
        } catch let error as PolicyDiagnostics {
            let first = error.diagnostics.first
            return Finding(
                check: "bundle", subject: subject, fault: first?.placed ?? "cannot be loaded",
                mend: first?.hint ?? "sendgate policy check \(subject)")
        } catch {
            return finding("bundle", subject, error)
        }
    }

    // MARK: The machine

    private func disk(_ configuration: GatewayConfiguration) -> Finding {
        // The state directory is made by the first start.
        var path = configuration.stateDirectory
        while access(path, F_OK) != 0, let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            path = String(path[..<slash])
        }
        do {
            let free = try DiskSpace.freeByteCount(at: path)
            let needed = configuration.limits.freeDiskByteCountMin
            guard free < needed else {
                return Finding(check: "disk", subject: "\(free >> 20) MiB free at \(path)")
            }
            return Finding(
                check: "disk", subject: path,
                fault: "\(free) bytes are free, and sends are refused below \(needed)",
                mend: "make room, or move the state to a larger disk")
        } catch {
            return finding("disk", path, error)
        }
    }

    /// Whether anything keeps the clock right: a gateway refuses sends under one that steps.
    private func clock() -> Finding {
        guard let isSynchronized = MachineState.isClockSynchronized else {
            return Finding(
                check: "clock", subject: "adjtimex",
                fault: "the kernel does not say whether it is kept right",
                mend: "run `sendgate doctor` outside the container")
        }
        guard isSynchronized else {
            return Finding(
                check: "clock", subject: "adjtimex", fault: "nothing keeps the clock right",
                mend:
                    "apt-get install systemd-timesyncd, or another client of NTP; in a container, on its host"
            )
        }
        return Finding(check: "clock", subject: "adjtimex")
    }

    private func hop(_ configuration: GatewayConfiguration) -> Finding {
        guard case .unix(let path, let users) = configuration.hop else {
            return Finding(check: "hop", subject: "a file, and no listener hands a send over")
        }
        let mend =
            "start the delivery layer: systemctl enable --now sendgate-courier.socket sendgate-courier.service"
        guard let server = MachineState.server(at: path) else {
            return Finding(
                check: "hop", subject: path, fault: "no process listens there, or it cannot be reached",
                mend: mend)
        }
        if let users, !users.contains(server.userID) {
            return Finding(
                check: "hop", subject: path,
                fault: "uid \(server.userID) listens there, and `hop.users` does not name it",
                mend:
                    "stop that process, or add its user to `hop.users`; with a socket unit that is root until the service has started"
            )
        }
        return Finding(check: "hop", subject: "\(path), uid \(server.userID)")
    }

    /// What the running gateway says of itself.
    private func gateway(_ configuration: GatewayConfiguration) async -> Finding {
        let mend = "systemctl enable --now sendgate.socket sendgate.service, then journalctl -u sendgate"
        guard let path = sharedSockets(configuration).first ?? boundSocket(configuration) else {
            return Finding(
                check: "gateway", subject: "readyz", fault: "no socket of it is known here",
                mend: "ask it: sendgate status --socket PATH")
        }
        guard access(path, F_OK) == 0 else {
            return Finding(check: "gateway", subject: path, fault: "does not run", mend: mend)
        }
        do {
            let answer = try await GatewayConnection(path: path).use { try await $0.get("/readyz") }
            guard let checks = answer.object?["checks"]?.arrayValue else {
                return Finding(
                    check: "gateway", subject: path, fault: "answered \(answer.status) to GET /readyz",
                    mend: mend)
            }
            guard let first = checks.first(where: { $0["passed"]?.booleanValue != true }) else {
                return Finding(check: "gateway", subject: path)
            }
            let (name, detail) = (
                first["name"]?.stringValue ?? "", first["detail"]?.stringValue ?? "not ready"
            )
            return Finding(
                check: "gateway", subject: path, fault: "\(name): \(detail)",
                mend: "see the handbook's page Running, \"Signs\"")
        } catch {
            return finding("gateway", path, error)
        }
    }

    private func boundSocket(_ configuration: GatewayConfiguration) -> String? {
        configuration.listeners.lazy.compactMap {
            if case .path(let path) = $0.source { path } else { nil }
        }.first
    }
}
