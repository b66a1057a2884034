import ArgumentParser
import CanonicalJSON
import CommandTerminal
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import KeyLifecycle
import OpenSSLCrypto
import SQLiteStore

/// Which state directory a command works on. The gateway has to be stopped: a directory has one owner.
struct StateOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The gateway's configuration.", valueName: "file")) var config: String?
    @Option(help: ArgumentHelp("The directory of `serve --dev`.", valueName: "dir")) var dev: String?

    func validate() throws {
        if (config == nil) == (dev == nil) { throw ValidationError("give either `--config` or `--dev`") }
    }

    /// Takes the state directory's lock, so no gateway runs beside it. The caller closes the store.
    ///
    /// - Throws: `CommandFailure` while a restore is under way, which alone may write.
    func open() throws -> (store: SQLiteStore, trail: String, limits: EngineLimits) {
        let (state, trail, keysPath, rootPath, limits) = try places()
        try WritePermissions.demand(state: state, trail: nil)
        func readKeys() throws -> PrivateKeyDirectory {
            try CommandFailure.tellingOfRestore(in: state) { try self.keys(at: keysPath, rootPath) }
        }
        var keys = try readKeys()
        let store = try Wiring.openStore(of: state, readingAgain: &keys, by: readKeys)
        do {
            // An entry that is written now stands where one of the trail belongs, and the restore could not go on.
            if try store.read({ try $0.restoreUnderWay() }) != nil { throw CommandFailure.restoreUnderWay }
        } catch let error as StoreError where error.damage != nil {
            // What is damaged is for `store check` to name.
        } catch {
            store.close()
            throw error
        }
        return (store, trail, limits)
    }

    /// Opens the databases for questions alone: no byte of them changes. The caller closes the store.
    func openToRead() throws -> (store: ReadOnlyStore, trail: String) {
        let (state, trail, keysPath, rootPath, _) = try places()
        try WritePermissions.demand(state: state, trail: nil)
        func readKeys() throws -> PrivateKeyDirectory { try self.keys(at: keysPath, rootPath) }
        var keys = try readKeys()
        let store = try Wiring.openStoreToRead(state, readingAgain: &keys, by: readKeys)
        guard try store.read({ try $0.restoreUnderWay() }) == nil else {
            store.close()
            throw CommandFailure.restoreUnderWay
        }
        return (store, trail)
    }

    /// What is damaged in the databases, of which no byte changes, also where they cannot be opened.
    func damages() throws -> [StoredDamage] {
        let (state, _, keysPath, rootPath, _) = try places()
        try WritePermissions.demand(state: state, trail: nil)
        let keys = try CommandFailure.tellingOfRestore(in: state) { try self.keys(at: keysPath, rootPath) }
        guard !SQLiteStore.hasUnverifiedSetting(RestoreUnderWay.settingName, in: state) else {
            throw CommandFailure.restoreUnderWay
        }
        return try PageInspection.damages(in: state, under: HMACKey(keys.current(.index).secret))
    }

    private func keys(at path: String, _ rootPath: String?) throws -> PrivateKeyDirectory {
        try PrivateKeyDirectory(
            at: path, rootPath: rootPath, credentials: Console.current.credentialsDirectory,
            acceptsThrowaway: dev != nil)
    }

    private func places() throws -> (
        state: String, trail: String, keys: String, root: String?, limits: EngineLimits
    ) {
        if let dev { return ("\(dev)/state", "\(dev)/trail", "\(dev)/keys", nil, EngineLimits()) }
        let configuration = try GatewayConfiguration.read(
            flags: [:], environment: Console.current.environment, filePath: config)
        return (
            configuration.stateDirectory, configuration.trailDirectory, configuration.keysDirectory,
            configuration.rootKeyPath, configuration.limits
        )
    }
}

/// `sendgate store …`: whether the pages of a state directory are as they were written.
struct StoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "Checks the pages of the databases.",
        subcommands: [StoreCheck.self])

    static func printed(_ damage: [StoredDamage], _ output: OutputOptions) {
        if output.json {
            let rows = damage.map { damage -> JSONValue in
                [
                    "table": .string(damage.table), "row": damage.row.map { .string($0) } ?? .null,
                    "what": .string(damage.what),
                ]
            }
            return Terminal.print(["damaged": .array(rows)])
        }
        for damage in damage { Terminal.print(damage.description) }
        if damage.isEmpty { Terminal.note("every page is as it was written") }
    }
}

/// `sendgate store check`: holds every page against its code.
struct StoreCheck: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Holds every page against its code.",
        usage: """
            sendgate store check --config FILE [--json]
            sendgate store check --dev DIR [--json]
            """,
        discussion: """
            Names every page that is not as the gateway wrote it, also in databases that no gateway can open any more. Stop the \
            gateway first; while it runs it checks by itself, and `sendgate status` says what it has found. Changes nothing. Exit \
            status 3 when something is damaged.
            """)

    static let example = "sendgate store check --config /etc/sendgate/sendgate.yaml"

    @OptionGroup var state: StateOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let damages = try state.damages()
        StoreCommand.printed(damages, output)
        if !damages.isEmpty { throw ExitStatus.foundDifference }
    }
}
