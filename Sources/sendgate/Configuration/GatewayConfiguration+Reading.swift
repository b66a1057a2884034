import AuditTrail
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import ConfigurationPages
import Foundation
import DeliveryRelay
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import Logging
import UnixSocketEndpoint
import UnixSockets
import PublicPages

extension GatewayConfiguration {
    /// Reads a production configuration.
    ///
    /// - Parameters:
    ///   - flags: What the command line says; it wins over everything.
    ///   - filePath: The file of `--config`; `nil` when everything stands in the environment. Listeners and callers
    ///     stand in the file only.
    /// - Throws: Every problem of every source.
    static func read(
        flags: [Setting: String] = [:], environment: [String: String], filePath: String?
    ) throws(ConfigurationDiagnostics) -> GatewayConfiguration {
        let file = if let filePath { try ConfigurationFile(at: filePath) } else { ConfigurationFile() }
        var sources = ConfigurationSources(flags: flags, environment: environment, file: file)
        let configuration = GatewayConfiguration(&sources)
        guard sources.diagnostics.isEmpty else { throw ConfigurationDiagnostics(sources.diagnostics) }
        return configuration
    }

    private init(_ sources: inout ConfigurationSources) {
        stateDirectory = sources.requiredPath(.state, hint: "the directory for databases and the lock")
        trailDirectory = sources.requiredPath(.trail, hint: "the directory auditors read")
        policiesDirectory = sources.requiredPath(.policies, hint: "the folder of the bundle")
        keysDirectory = sources.requiredPath(.keys, hint: "the directory `sendgate keys init` made")
        rootKeyPath = Self.rootKeyPath(&sources)
        trailOrigin = Self.origin(&sources)
        externalCheckpointPath = sources.path(.externalCheckpoint)
        unsubscribeURL = Self.unsubscribeURL(&sources)
        publicListen = Self.publicListen(&sources)
        preferencesURL = Self.preferencesURL(&sources)
        authorities = Self.authorities(&sources)
        logLevel = Self.choice(.logLevel, standard: .info, &sources)
        logFormat = Self.choice(.logFormat, standard: .logfmt, &sources)
        sealerCount =
            sources.number(.sealers) ?? min(64, max(1, ProcessInfo.processInfo.activeProcessorCount))
        policySigning = Self.policySigning(&sources)
        listeners = Self.listeners(&sources)
        hop = Self.hop(&sources, for: listeners)
        callers = Self.callers(&sources)
        for word in sources.file.listeners.compactMap(\.caller) + sources.file.callers.map(\.name) {
            let name = CallerName(word.text)
            callerPlaces[name] = callerPlaces[name] ?? word.place
        }
        readLimits(&sources)
    }

    /// A path, or the name of a credential, which another unit finds in another folder.
    private static func rootKeyPath(_ sources: inout ConfigurationSources) -> String? {
        guard let text = sources.text(.rootKey) else { return nil }
        guard InheritedSockets.isName(text), !text.contains("/"), !text.hasPrefix(".") else {
            return sources.path(.rootKey)
        }
        if let folder = sources.environment["CREDENTIALS_DIRECTORY"] { return "\(folder)/\(text)" }
        sources.refuse(
            "`root_key` is `\(text)`, the name of a credential, and systemd has laid out none",
            at: sources.place(of: .rootKey),
            hint:
                "in a unit add `LoadCredential=\(text):/path`; at a terminal name the file, as `\(Setting.rootKey.environmentName)=/path`"
        )
        return nil
    }

    private static func origin(_ sources: inout ConfigurationSources) -> String {
        let origin = sources.required(
            .origin, hint: "the trail's name in every checkpoint, e.g. `gate.example.com/prod`")
        // The origin becomes a signed note's key name, which knows no white space and no plus (C2SP signed-note).
        let isName =
            (1...255).contains(origin.utf8.count)
            && origin.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "+") }
        if !origin.isEmpty, !isName {
            sources.refuse(
                "`origin` is `\(origin)`, which has a character that a key's name may not have",
                at: sources.place(of: .origin), hint: "use ASCII letters, digits, `.`, `-` and `/`")
        }
        return origin
    }

    private static func unsubscribeURL(_ sources: inout ConfigurationSources) -> String {
        let url = sources.required(
            .unsubscribeURL, hint: "where a one-tap unsubscribe lands, e.g. `https://example.com/u/`")
        if !url.isEmpty,
            !url.hasPrefix("https://") || url.utf8.count > 512 || url.utf8.contains(where: { $0 <= 0x20 })
        {
            sources.refuse(
                "`unsubscribe_url` must start with `https://`, have no space and at most 512 bytes",
                at: sources.place(of: .unsubscribeURL), hint: "write it as `https://example.com/u/`")
        }
        return url
    }

    private static func publicListen(_ sources: inout ConfigurationSources) -> PageAddress? {
        guard let text = sources.text(.publicListen) else { return nil }
        if text.hasPrefix("/"), text.utf8.count <= PageAddress.pathByteCountMax { return .unix(path: text) }
        if text.hasPrefix(InheritedSockets.configurationPrefix) {
            let name = String(text.dropFirst(InheritedSockets.configurationPrefix.count))
            if InheritedSockets.isName(name) { return .systemd(name: name) }
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        if parts.count == 2, parts[0] == "127.0.0.1",
            let port = ConfigurationSources.digits(String(parts[1])).flatMap({ UInt16(exactly: $0) }),
            port > 0
        {
            return .loopback(port: port)
        }
        sources.refuse(
            "`public_listen` is `\(text)`", at: sources.place(of: .publicListen),
            hint:
                "write `127.0.0.1:PORT`, `systemd:NAME`, or an absolute path of at most \(PageAddress.pathByteCountMax) bytes; a proxy in front has the name and the certificate"
        )
        return nil
    }

    private static func preferencesURL(_ sources: inout ConfigurationSources) -> String? {
        guard let url = sources.text(.preferencesURL) else { return nil }
        if !url.hasPrefix("https://") || url.utf8.count > 512
            || url.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F })
        {
            sources.refuse(
                "`preferences_url` must start with `https://`, have only ASCII characters without space, and at most 512",
                at: sources.place(of: .preferencesURL))
        }
        return url
    }

    /// A setting that is one of a few words.
    private static func choice<Value: RawRepresentable<String> & CaseIterable>(
        _ setting: Setting, standard: Value, _ sources: inout ConfigurationSources
    ) -> Value {
        guard let text = sources.text(setting) else { return standard }
        if let value = Value(rawValue: text) { return value }
        let known = Value.allCases.map(\.rawValue)
        sources.refuse(
            "`\(setting.rawValue)` is `\(text)`", at: sources.place(of: setting),
            hint: NearestName.to(text, among: known).map { "did you mean `\($0)`?" }
                ?? "one of \(known.joined(separator: ", "))")
        return standard
    }

    /// A file is for a gateway in shadow alone: to any other it would be a delivery layer that delivers nothing.
    private static func hop(_ sources: inout ConfigurationSources, for listeners: [Listener]) -> NextHop {
        if let file = sources.path(.hopFile) {
            let place = sources.place(of: .hopFile)
            for listener in listeners where listener.sends.forwards {
                sources.refuse(
                    "`hop.file` delivers nothing, and `\(listener.name)` hands sends over", at: place,
                    hint: listener.sends.isShadow
                        ? "leave out what it enforces, or set `hop.unix` to the delivery layer's socket"
                        : "make it `mode: shadow`, or `mode: manage` if nothing is sent over it; or set `hop.unix` to the delivery layer's socket"
                )
            }
            if !listeners.isEmpty, !listeners.contains(where: \.sends.isShadow) {
                sources.refuse(
                    "`hop.file` is for a gateway in shadow, and no listener is `mode: shadow`", at: place)
            }
            if !sources.isFlag(.hopFile), sources.text(.hopUnix) != nil {
                sources.refuse(
                    "`hop.file` and `hop.unix` are both set", at: place, hint: "a gateway has one next hop")
            }
            return .file(path: file)
        }
        let path = sources.requiredPath(.hopUnix, hint: "the delivery layer's socket")
        let names = (sources.text(.hopUsers) ?? "").split(separator: ",").map {
            ConfigurationFile.Word(text: String($0), place: sources.place(of: .hopUsers) ?? "")
        }
        let users = accounts(names, as: .user, for: .hop, &sources)
        if names.isEmpty {
            sources.refuse(
                "`hop.users` is not set", at: nil,
                hint: "name the users the delivery layer runs as: whoever listens there is given push tokens")
        }
        return .unix(path: path, serverUserIDs: users)
    }

    /// The keys of each role. All roles have some, and no key has two roles: one person's key would approve what
    /// two were to look at.
    private static func policySigning(_ sources: inout ConfigurationSources) -> PolicySigning {
        var keys: [ApprovalRole: [NoteVerifierKey]] = [:]
        var roles: [NoteVerifierKey: ApprovalRole] = [:]
        for role in ApprovalRole.allCases {
            let setting = role.setting
            let place = sources.place(of: setting)
            let words = (sources.text(setting) ?? "").split(separator: ",").map(String.init)
            if words.isEmpty {
                sources.refuse(
                    "`\(setting.rawValue)` is not set, so no bundle could ever come into force", at: place,
                    hint:
                        "pin the verifier keys that sign as `\(role.rawValue)`; `sendgate policy sign` prints them"
                )
            }
            for word in words {
                guard let key = verifierKey(word, at: place, &sources) else { continue }
                let other = roles.updateValue(role, forKey: key)
                if let other, other != role {
                    sources.refuse(
                        "`\(key.name)` is pinned for `\(other.rawValue)` and for `\(role.rawValue)`",
                        at: place,
                        hint: "give each role a key of its own")
                }
                keys[role, default: []].append(key)
            }
        }
        return PolicySigning(keys: keys)
    }

    private static func authorities(_ sources: inout ConfigurationSources) -> [NoteVerifierKey] {
        let place = sources.place(of: .authority)
        let words = (sources.text(.authority) ?? "").split(separator: ",").map(String.init)
        if words.count > authorityCountMax {
            sources.refuse(
                "`authority` has \(words.count) keys, \(authorityCountMax) are accepted", at: place,
                hint: "pin the one in use, and its successor")
        }
        return words.prefix(authorityCountMax).compactMap {
            verifierKey($0, from: "sendgate keys authority init", at: place, &sources)
        }
    }

    private static func verifierKey(
        _ word: String, from command: String = "sendgate policy sign", at place: String?,
        _ sources: inout ConfigurationSources
    ) -> NoteVerifierKey? {
        guard let key = NoteVerifierKey(parsing: word), key.algorithm == .ed25519 else {
            sources.refuse(
                "`\(word)` is no verifier key", at: place,
                hint: "`\(command)` prints it, as name+id+key")
            return nil
        }
        guard !PrivateKeyFile.isThrowaway(id: key.name) else {
            sources.refuse(
                "`\(key.name)` is a throwaway key", at: place, hint: "pin a key of `sendgate keys init`")
            return nil
        }
        return key
    }

    // MARK: Sockets and callers

    private static func listeners(_ sources: inout ConfigurationSources) -> [Listener] {
        if sources.file.listeners.isEmpty {
            sources.refuse(
                "no listener is configured", at: nil, hint: "add `listeners:` with at least one `path`")
        }
        var seen: Set<Listener.Source> = []
        var listeners: [Listener] = []
        for written in sources.file.listeners {
            let source: Listener.Source
            switch (written.path, written.systemd) {
            case (let path?, nil): source = .path(path.text)
            case (nil, let name?): source = .systemd(name: name.text)
            default:
                sources.refuse(
                    "a listener has either `path` or `systemd`", at: written.place,
                    hint: "`systemd` names a socket of the unit, its `FileDescriptorName=`")
                continue
            }
            if !seen.insert(source).inserted {
                sources.refuse("the same socket is configured twice", at: written.place)
            }
            var listener = Listener(source: source)
            if let word = written.directoryMode, let mode = mode(word, &sources) {
                listener.directoryMode = mode
                if mode & 0o002 != 0 {
                    sources.refuse(
                        "`directory_mode` \"\(word.text)\" lets everybody write in the directory",
                        at: word.place,
                        hint: "whoever can may put a socket of their own there; use \"0750\"")
                }
            }
            listener.place = written.place
            read(written, into: &listener, &sources)
            listener.ownerID = written.owner.flatMap { account($0, as: .user, for: .socket, &sources) }
            listener.groupID = written.group.flatMap { account($0, as: .group, for: .socket, &sources) }
            listener.caller = written.caller.flatMap { callerName($0, &sources) }
            listener.userIDs = accounts(written.users, as: .user, for: .caller, &sources)
            if written.caller == nil, !written.users.isEmpty {
                sources.refuse(
                    "`users` without `caller` binds nobody", at: written.place,
                    hint: "add `caller`, or bind users under `callers`")
            }
            if case .systemd = source,
                socketMode(of: written) ?? written.directoryMode ?? written.owner ?? written.group != nil
            {
                sources.refuse(
                    "systemd makes this socket, so its mode and owner stand in the socket unit",
                    at: written.place, hint: "use `SocketMode=`, `SocketUser=` and `SocketGroup=` there")
            }
            if case .path(let path) = source, listeners.contains(where: { $0.disagrees(with: listener) }) {
                sources.refuse(
                    "`\(path)` shares its directory with another socket and asks for another mode, owner or group of it",
                    at: written.place,
                    hint:
                        "give each a directory of its own, or both the same `directory_mode`, `owner` and `group`"
                )
            }
            listeners.append(listener)
        }
        return listeners
    }

    private enum SendsWord: String, CaseIterable { case enforce, shadow, manage }

    /// Four octal digits under `mode` are the socket's mode, as every configuration had them before there were others.
    private static func socketMode(of written: ConfigurationFile.Listener) -> ConfigurationFile.Word? {
        if let word = written.socketMode { return word }
        return written.mode.flatMap { word in SendsWord(rawValue: word.text) == nil ? word : nil }
    }

    /// What becomes of a listener's sends, and its socket's mode.
    private static func read(
        _ written: ConfigurationFile.Listener, into listener: inout Listener,
        _ sources: inout ConfigurationSources
    ) {
        let sends = written.mode.flatMap { SendsWord(rawValue: $0.text) }
        if let word = written.mode, sends == nil, word.text.first?.isLetter == true {
            let known = SendsWord.allCases.map(\.rawValue)
            sources.refuse(
                "`mode` is `\(word.text)`", at: word.place,
                hint: NearestName.to(word.text, among: known).map { "did you mean `\($0)`?" }
                    ?? "one of \(known.joined(separator: ", ")), or the socket's mode as `socket_mode: \"0660\"`"
            )
        } else if let word = written.mode, sends == nil, written.socketMode != nil {
            sources.refuse(
                "`mode` \"\(word.text)\" and `socket_mode` both say the socket's mode", at: word.place,
                hint: "keep `socket_mode`; `mode` is `enforce`, `shadow` or `manage`")
        } else if let mode = mode(socketMode(of: written), &sources) {
            listener.mode = mode
        }
        let enforced = written.enforceTypes + written.enforceCallers
        for word in enforced { listener.enforcedPlaces[word.text] = word.place }
        switch sends {
        case .shadow:
            listener.sends = .shadow(
                ListenerMode.Enforced(
                    types: Set(written.enforceTypes.map { TypeID($0.text) }),
                    callers: Set(written.enforceCallers.map { CallerName($0.text) })))
        case .manage: listener.sends = .manage
        case .enforce, nil: listener.sends = .enforce
        }
        if let first = enforced.first, sends != .shadow {
            sources.refuse(
                "`enforce_types` and `enforce_callers` are for a listener with `mode: shadow`",
                at: first.place,
                hint: sends == .manage
                    ? "this one takes no sends" : "this one enforces everything; leave them out")
        }
    }

    private static func callers(_ sources: inout ConfigurationSources) -> [CallerBinding] {
        sources.file.callers.compactMap { written in
            guard let name = callerName(written.name, &sources) else { return nil }
            if written.users.isEmpty, written.groups.isEmpty {
                sources.refuse(
                    "caller `\(name)` names neither users nor groups", at: written.name.place,
                    hint: "nobody could ever be this caller")
            }
            return CallerBinding(
                caller: name, userIDs: accounts(written.users, as: .user, for: .caller, &sources),
                groupIDs: accounts(written.groups, as: .group, for: .caller, &sources))
        }
    }

    private static func callerName(
        _ word: ConfigurationFile.Word, _ sources: inout ConfigurationSources
    ) -> CallerName? {
        if (1...128).contains(word.text.utf8.count) { return CallerName(word.text) }
        sources.refuse("a caller's name has 1 to 128 bytes", at: word.place)
        return nil
    }

    /// Four octal digits between quotes, as `chmod` takes them; never writable or searchable by accident.
    private static func mode(
        _ word: ConfigurationFile.Word?, _ sources: inout ConfigurationSources
    ) -> UInt32? {
        guard let word else { return nil }
        guard (3...4).contains(word.text.utf8.count), let mode = UInt32(word.text, radix: 8), mode <= 0o777
        else {
            sources.refuse(
                "`\(word.text)` is no mode", at: word.place, hint: "write it as chmod does, e.g. \"0660\"")
            return nil
        }
        return mode
    }

    private enum AccountKind: String {
        case user, group
        /// As `id` and the kernel's own pages say it.
        var id: String { self == .user ? "uid" : "gid" }
    }

    /// What an account is named for.
    private enum AccountUse {
        /// Its processes speak as a caller.
        case caller
        /// It owns a socket and the directory of it.
        case socket
        /// It serves the delivery layer's socket. Root may: a socket that systemd hands over was made by systemd, and the
        /// kernel names who called `listen`.
        case hop
    }

    private static func accounts(
        _ words: [ConfigurationFile.Word], as kind: AccountKind, for use: AccountUse,
        _ sources: inout ConfigurationSources
    ) -> Set<UInt32> {
        Set(words.compactMap { account($0, as: kind, for: use, &sources) })
    }

    /// A number as it is, or a name the system knows; not one that vouches for nobody.
    private static func account(
        _ word: ConfigurationFile.Word, as kind: AccountKind, for use: AccountUse,
        _ sources: inout ConfigurationSources
    ) -> UInt32? {
        guard let id = account(word, as: kind, &sources) else { return nil }
        let overflow = UnixAccounts.overflowIDs
        if (kind == .user ? overflow.userIDs : overflow.groupIDs).contains(id) {
            sources.refuse(
                "`\(word.text)` is \(kind.id) \(id), which the kernel reports for every \(kind.rawValue) without a mapping",
                at: word.place, hint: "make a \(kind.rawValue) of its own")
            return nil
        }
        guard use != .hop else { return id }
        if id == 0 {
            sources.refuse(
                "`\(word.text)` is \(kind.id) 0: root can act as every user, so it speaks for no caller",
                at: word.place, hint: "make a \(kind.rawValue) of its own; only `serve --dev` accepts root")
            return nil
        }
        if use == .caller, kind == .user, UnixAccounts.primaryGroupID(ofUser: id) == 0 {
            sources.refuse(
                "the primary group of `\(word.text)` is gid 0, root's", at: word.place,
                hint: "give it a group of its own with `usermod --gid`")
            return nil
        }
        return id
    }

    private static func account(
        _ word: ConfigurationFile.Word, as kind: AccountKind, _ sources: inout ConfigurationSources
    ) -> UInt32? {
        if let number = ConfigurationSources.digits(word.text) {
            // The largest number means "leave as it is" to chown(2) and is no user.
            if let id = UInt32(exactly: number), id != UInt32.max { return id }
            sources.refuse("`\(word.text)` is no \(kind.rawValue) id", at: word.place)
            return nil
        }
        let id =
            kind == .user ? UnixAccounts.userID(named: word.text) : UnixAccounts.groupID(named: word.text)
        if id == nil {
            sources.refuse(
                "there is no \(kind.rawValue) `\(word.text)` on this machine", at: word.place,
                hint: "create it, or write its number")
        }
        return id
    }

    // MARK: Bounds

    private mutating func readLimits(_ sources: inout ConfigurationSources) {
        func set(_ setting: Setting, _ use: (Int) -> Void) {
            if let number = sources.number(setting) { use(number) }
        }
        set(.queuedOperations) { limits.queuedOperationCountMax = $0 }
        set(.queuedOperationsPerCaller) { limits.queuedOperationCountPerCallerMax = $0 }
        set(.outboxMessages) { limits.outboxRowCountMax = $0 }
        set(.outboxMessagesPerCaller) { limits.outboxRowCountPerCallerMax = $0 }
        set(.outboxBytes) { limits.outboxByteCountMax = Int64($0) }
        set(.freeDiskBytes) { limits.freeDiskByteCountMin = Int64($0) }
        set(.securitySharePercent) { limits.securitySharePercent = $0 }
        set(.driftEveryDays) { driftSchedule.intervalMilliseconds = $0 == 0 ? nil : Int64($0) * 86_400_000 }
        set(.driftPersonsPerSecond) { driftSchedule.personCountPerSecond = $0 }
        if let apps = sources.text(.driftCriticalAlertApps) {
            let names = apps.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            if names.count > DriftSettings.criticalAlertAppCountMax {
                sources.refuse(
                    "`drift.critical_alert_apps` has \(names.count) apps, \(DriftSettings.criticalAlertAppCountMax) are accepted",
                    at: sources.place(of: .driftCriticalAlertApps),
                    hint: "name the apps that Apple granted the entitlement to")
            }
            drift.criticalAlertApps = Set(names)
        }
        set(.driftStaleDays) { drift.staleMilliseconds = Int64($0) * 86_400_000 }
        set(.retentionDays) { limits.retentionMilliseconds = Int64($0) * 86_400_000 }
        set(.trailKeepDays) { pruning = Self.pruning(keepDays: $0, limits, &sources) }
        set(.eventLoops) { endpoint.eventLoopCount = $0 }
        set(.listenBacklog) { endpoint.listenBacklog = Int32($0) }
        set(.connections) { endpoint.connections.total = $0 }
        set(.connectionsPerUser) { endpoint.connections.perUser = $0 }
        set(.requestsInFlight) { endpoint.inFlight.total = $0 }
        set(.requestsInFlightPerUser) { endpoint.inFlight.perUser = $0 }
        set(.hopProtocol) { hopProtocol = HopProtocol(rawValue: $0) ?? hopProtocol }
        set(.hopRequests) { hopConcurrency = .init(requestCount: $0) }
        set(.drainSeconds) { endpoint.drainMilliseconds = Int64($0) * 1000 }
        endpoint.outgoingConnectionCount = hopConcurrency.general + hopConcurrency.security
        reserveForSecurity()
    }

    /// - Parameter limits: As they were read, the retention among them.
    private static func pruning(
        keepDays: Int, _ limits: EngineLimits, _ sources: inout ConfigurationSources
    ) -> TrailPruning.Terms? {
        let retentionDays = Int(limits.retentionMilliseconds / 86_400_000)
        let least = TrailPruning.Terms.keepDaysMin(retentionDays: retentionDays)
        guard keepDays >= least else {
            sources.refuse(
                "`trail_keep_days` is \(keepDays), and with `limits.retention_days` of \(retentionDays) must be \(least) or more",
                at: sources.place(of: .trailKeepDays),
                hint:
                    "an entry may rest on others up to \(least / 2) days before it, and as many days have to be left that can be checked whole"
            )
            return nil
        }
        return TrailPruning.Terms(
            keepDays: keepDays, lookBackDays: TrailPruning.Terms.lookBackDays(retentionDays: retentionDays))
    }

    /// Gives the security category its share of every bound of the endpoint, as the engine gives it of its own.
    mutating func reserveForSecurity() {
        func reserved(_ total: Int) -> Int { (total * limits.securitySharePercent + 99) / 100 }
        endpoint.connections.reserved = reserved(endpoint.connections.total)
        endpoint.inFlight.reserved = reserved(endpoint.inFlight.total)
        endpoint.bufferedBytes.reserved = reserved(endpoint.bufferedBytes.total)
    }
}

extension ApprovalRole {
    /// Where the role's keys are pinned.
    var setting: Setting {
        switch self {
        case .compliance: .policySigningCompliance
        case .security: .policySigningSecurity
        case .legal: .policySigningLegal
        }
    }
}
