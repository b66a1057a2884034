import AuditTrail
import BundleModel
import CommandTerminal
import CompliancePolicy
import DeliveryRelay
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import KeyLifecycle
import Logging
import PublicPages
import TrailDirectory
import UnixSocketEndpoint

/// A gateway for a first hour: everything it needs is made inside one directory.
///
///     DIR/gate.sock      the user that runs it, as the caller `dev`, who may do everything
///     DIR/<caller>.sock  one for each caller of the bundle, with that caller's grants and no more
///     DIR/keys/          throwaway keys, whose ids start with `dev-`; production refuses them
///     DIR/state/         databases and lock
///     DIR/trail/         the trail, as auditors read it
///     DIR/authority.pub  when it is there: the verifier keys of an authority, whose keysets are taken
///     DIR/onward.ndjson  what would have gone to the delivery layer
struct DevelopmentGateway {
    /// Who the person at the keyboard is. Not in the bundle's `callers.yaml`; see `DevelopmentCaller`.
    static let caller = CallerName("dev")

    /// Where the pages behind unsubscribe links lead for all other settings. Nothing listens there.
    static let preferencesURL = "http://127.0.0.1/preferences"

    /// Uids besides that of the process that may use the bound sockets.
    static let otherUserCountMax = 64

    let configuration: GatewayConfiguration
    /// The socket where everything is allowed.
    let gateSocket: String
    /// The bound sockets, by caller.
    let callerSockets: [(caller: CallerName, path: String)]

    /// Makes the directory and the keys when they are not there; what is there is kept.
    ///
    /// - Parameters:
    ///   - directory: Made with mode 0700. Its parent must exist.
    ///   - policies: The bundle's folder; the repository's when `nil`.
    ///   - hop: `nil` writes what goes on to `onward.ndjson`.
    ///   - otherUserIDs: May use the bound sockets. The directory is then open to all who know a path in it.
    init(
        directory: String, policies: String?, hop: GatewayConfiguration.NextHop?, otherUserIDs: Set<UInt32>,
        logLevel: Logger.Level
    ) throws {
        let root = try Self.prepare(directory, isShared: !otherUserIDs.isEmpty)
        let folder = try policies ?? Self.repositoryPolicies()
        let bundle = try PolicyLoading.bundle(at: folder, addingDevelopmentCaller: Self.caller)
        let keys = "\(root)/keys"
        if access(keys, F_OK) != 0 {
            try PrivateKeyDirectory.initialize(at: keys, prefix: "dev-", now: SystemClock().now())
        }
        let trailOrigin = try Self.trailOrigin(in: root, keys: keys)

        let user = geteuid()
        gateSocket = "\(root)/gate.sock"
        callerSockets = bundle.callers.keys.filter { $0 != Self.caller }.sorted().map {
            ($0, "\(root)/\(Self.fileName(of: $0)).sock")
        }
        var listeners = [
            GatewayConfiguration.Listener(
                source: .path(gateSocket), directoryMode: nil, mode: 0o600, caller: Self.caller,
                userIDs: [user])
        ]
        listeners += callerSockets.map { caller, path in
            GatewayConfiguration.Listener(
                source: .path(path), directoryMode: nil, mode: otherUserIDs.isEmpty ? 0o600 : 0o666,
                caller: caller,
                userIDs: otherUserIDs.union([user]))
        }
        var configuration = GatewayConfiguration(
            stateDirectory: "\(root)/state", trailDirectory: "\(root)/trail",
            policiesDirectory: try Self.absolute(folder), keysDirectory: keys, rootKeyPath: nil,
            trailOrigin: trailOrigin, listeners: listeners, callers: [],
            hop: hop ?? .file(path: "\(root)/onward.ndjson"),
            // The port is known once the kernel has chosen it.
            unsubscribeURL: "http://127.0.0.1/u/", publicListen: .loopback(port: 0), logLevel: logLevel,
            developmentCaller: Self.caller,
            sealerCount: max(1, min(4, ProcessInfo.processInfo.activeProcessorCount)))
        // A placeholder: the app that has such a page is not part of a gateway.
        configuration.preferencesURL = Self.preferencesURL
        configuration.authorities = try Self.authorities(in: root)
        // What answers a first hour answers at once, so messages wait here where they can be watched.
        configuration.hopConcurrency = .init(requestCount: 32)
        // Room for a test that is not about room.
        configuration.limits.freeDiskByteCountMin = 16 << 20
        // A user is not locked out by coming back after a month.
        configuration.limits.clockGapMillisecondsMax = .max
        self.configuration = configuration
    }

    /// The trail's name: that of its first key, which is random, so that two development trails never have one name. Kept
    /// in a file, because keys are rotated and a trail's name is not.
    private static func trailOrigin(in root: String, keys: String) throws -> String {
        let path = "\(root)/origin"
        if let bytes = FileManager.default.contents(atPath: path) {
            return String(decoding: bytes, as: UTF8.self)
        }
        let key = try PrivateKeyDirectory(at: keys, acceptsThrowaway: true).current(.trail).id
        let origin = "sendgate.invalid/\(key)"
        do {
            try Data(origin.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        } catch {
            throw CommandFailure("cannot write `\(path)`: \(error)", hint: "name a directory of your own")
        }
        return origin
    }

    private static func authorities(in root: String) throws -> [NoteVerifierKey] {
        let path = "\(root)/authority.pub"
        guard let bytes = FileManager.default.contents(atPath: path) else { return [] }
        do {
            return try VerifierKeyFile.keys(in: Array(bytes))
        } catch {
            throw CommandFailure(
                "`\(path)`: \(error)", hint: "`sendgate keys authority init` prints a key, as name+id+key")
        }
    }

    private static func prepare(_ directory: String, isShared: Bool) throws -> String {
        let mode: mode_t = isShared ? 0o711 : 0o700
        if mkdir(directory, mode) == 0 {
            // The umask may have taken bits away; the mode asked for is the mode given.
            guard chmod(directory, mode) == 0 else { throw Self.failure("change the mode of", directory) }
        } else if errno != EEXIST {
            throw failure("make", directory)
        }
        var status = stat()
        guard stat(directory, &status) == 0 else { throw failure("look at", directory) }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw CommandFailure("`\(directory)` is not a directory", hint: "name one that --dev may fill")
        }
        guard status.st_uid == geteuid() else {
            throw CommandFailure(
                "`\(directory)` belongs to uid \(status.st_uid)", hint: "name a directory of your own")
        }
        let forbidden: mode_t = isShared ? 0o066 : 0o077
        guard status.st_mode & forbidden == 0 else {
            throw CommandFailure(
                "`\(directory)` is open to others (mode \(String(status.st_mode & 0o777, radix: 8)))",
                hint:
                    "run `chmod \(String(mode, radix: 8)) \(directory)`: whoever can enter it is the caller `dev`"
            )
        }
        if isShared, chmod(directory, mode) != 0 { throw failure("change the mode of", directory) }
        return try absolute(directory)
    }

    private static func failure(_ verb: String, _ path: String) -> CommandFailure {
        CommandFailure(
            "cannot \(verb) `\(path)`: \(String(cString: strerror(errno)))",
            hint: "check that its parent exists and is yours")
    }

    /// The path without links, which is what the socket's 107 bytes are counted of.
    static func absolute(_ path: String) throws -> String {
        guard let resolved = realpath(path, nil) else { throw failure("find", path) }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The bundle that lies beside the sources, of the working folder or of the one that this build was made in, or the one that is
    /// installed with the program.
    static func repositoryPolicies() throws -> String {
        var candidates = ["Policies"]
        // .build/<triple>/debug/sendgate is four steps below the repository; one more allows for a scratch folder.
        var folder = (try? absolute("/proc/self/exe")) ?? ""
        // /usr/bin/sendgate has its bundle in /usr/share/sendgate.
        let prefix = (folder as NSString).deletingLastPathComponent
        candidates.append("\((prefix as NSString).deletingLastPathComponent)/share/sendgate/Policies")
        for _ in 0..<5 {
            guard let slash = folder.lastIndex(of: "/") else { break }
            folder = String(folder[..<slash])
            candidates.append("\(folder)/Policies")
        }
        for candidate in candidates where access("\(candidate)/bundle.yaml", R_OK) == 0 { return candidate }
        throw CommandFailure(
            "there is no `Policies` folder here, and none is installed",
            hint: "name the bundle with --policies DIR")
    }

    /// A caller's name as a file name: what a path could misread becomes `_`. Names of two callers that differ only
    /// there would collide, and the second socket would be refused as a duplicate.
    private static func fileName(of caller: CallerName) -> String {
        String(
            decoding: caller.text.utf8.map { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    byte
                default: UInt8(ascii: "_")
                }
            }, as: UTF8.self)
    }
}
