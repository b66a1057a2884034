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
import OpenSSLCrypto
import PolicyFiles
import PublicPages
import SQLiteStore
import SealedFormat
import ServiceLifecycle
import Synchronization
import TrailDirectory
import UnixSignals
import UnixSocketEndpoint
import WireProtocol

/// One gateway, put together. The only file that names concrete adapters beside each other.
struct Wiring {
    let configuration: GatewayConfiguration
    let core: EngineService
    let gateway: Gateway
    let relay: DeliveryRelay
    let endpoint: UnixSocketEndpoint
    /// `nil` where no pages are served.
    let pages: PublicPages?
    let reload: PolicyReload
    private let reloads: ReloadLedger
    let policy: PolicyInForce
    let healthChecks: HealthChecks
    let pruning: TrailPruning
    /// What an auditor pins.
    let trailKey: NoteVerifierKey
    private let keyHolder: KeyHolder
    private let starting: StartingGateway?
    let store: SQLiteStore
    private let logger: Logger

    /// Opens everything, in the order in which it can fail without leaving anything half done: keys, bundle, the
    /// state directory with its lock, the trail, and last the description of the sockets.
    ///
    /// Nothing runs yet, and no client is answered but by what `starting` says.
    ///
    /// - Parameters:
    ///   - starting: What has proved the bundle, with sockets that this gateway takes over.
    ///   - isListening: `false` for one command of a gateway that is stopped: its endpoint is never started.
    ///   - clock: Says when everything happens.
    ///   - notices: Of a service manager, who is told how long a start takes.
    init(
        _ configuration: GatewayConfiguration, environment: [String: String], logger: Logger,
        starting: StartingGateway? = nil, isListening: Bool = true, clock: any Clock = SystemClock(),
        notices: ServiceNotices? = nil
    ) throws {
        self.starting = starting
        self.configuration = configuration
        self.logger = logger
        // Before the first key is read.
        if !SecretMemory.protect().isLocked {
            logger.warning(
                "keys may be swapped out: the kernel refused to lock their memory",
                metadata: ["hint": "raise the limit: `LimitMEMLOCK=` in systemd, `ulimit -l` elsewhere"])
        }
        for warning in configuration.warnings { logger.warning("\(warning)") }
        try WritePermissions.demand(
            state: configuration.stateDirectory, trail: configuration.trailDirectory)
        // Before a port is taken: the second of two starts says so, and not that an address is in use.
        try Self.requireUnused(configuration)
        let sockets = try SocketPlan(
            configuration, environment: environment, isListening: isListening)
        let pageSocket = try configuration.publicListen.map {
            try PageSocket($0, inherited: sockets.pageDescriptor)
        }

        func readKeys() throws -> PrivateKeyDirectory {
            try CommandFailure.tellingOfRestore(in: configuration.stateDirectory) {
                try Self.keys(of: configuration, environment)
            }
        }
        var keys = try readKeys()
        let indexKey = HMACKey(try keys.current(.index).secret)

        let proofs = KeptProofs(in: configuration.stateDirectory, key: indexKey)
        let first = try PolicyLoading.configured(configuration, provedIn: proofs, logger: logger).policy
        // A start has no other one to keep, so it says so and goes on: without a gate no notification goes out.
        for diagnostic in PolicyLoading.untimeliness(of: first.bundle, at: clock.now()) {
            logger.warning("\(diagnostic)")
        }
        let load: @Sendable () throws -> PolicySource.Loaded = {
            let loaded = try PolicyLoading.configured(
                configuration, provedIn: proofs, isNext: true, logger: logger)
            let diagnostics = PolicyLoading.untimeliness(of: loaded.policy.bundle, at: clock.now())
            guard diagnostics.isEmpty else { throw PolicyDiagnostics(diagnostics) }
            return loaded
        }
        try configuration.requireCallers(in: first)
        let policy = PolicyInForce(first)
        self.policy = policy

        let store = try Self.openStore(
            of: configuration.stateDirectory, readingAgain: &keys, by: readKeys,
            damageFound: { logger.critical("in the store, \($0)") },
            migrating: MigrationNotices(logger: logger, notices: notices, starting: starting?.handler).tell)
        // Its lock is held now, so that no other process writes keys.
        try Self.warning(logger) {
            try PrivateKeyDirectory.eraseUnfinished(in: configuration.keysDirectory)
        }
        if try store.read({ try $0.restoreUnderWay() }) != nil { throw CommandFailure.restoreUnderWay }
        // Of a gateway that is stopped nothing is handed over.
        if isListening { try configuration.requireNothingWaits(store.read { try $0.outboxDepth() }) }
        let lineage = try store.read { try $0.trailLineage() }
        let origin = try TrailLineage.origin(lineage, configured: configuration.trailOrigin)
        // A first start has the directory only now.
        proofs.add(first.digest, grain: ProvedBundles.grain)
        try Self.requireAccepted(first, by: store, under: configuration)
        let found = try keys.keys.values.joined().map { try GatewayKey($0, at: clock.now()) }
        let keyring = try Self.keyring(adopting: found, from: keys, in: store, at: clock.now())
        let files = Dictionary(
            keys.keys.values.joined().map { ($0.id, $0) }, uniquingKeysWith: { one, _ in one })
        guard let links = try KeyHolder.linkKeys(of: keyring, in: files) else {
            throw KeyFileError.missing(purpose: .link, directory: keys.path)
        }
        let gateKeys = GateKeys(
            origin: try KeyHolder.originSigner(of: keyring, in: files), index: indexKey, links: links,
            keyring: keyring)
        guard
            let trailSigner = try KeyHolder.trailSigner(
                of: keyring, in: files, origin: origin)
        else { throw KeyFileError.missing(purpose: .trail, directory: keys.path) }
        trailKey = trailSigner.verifierKey
        let library = try PublishedTrail(
            at: configuration.trailDirectory, signer: trailSigner,
            olderKeys: keyring.earlierTrailKeys(origin: origin, trusted: true),
            formerKeys: keyring.earlierTrailKeys(origin: origin, trusted: false),
            after: lineage?.previous, of: store)
        if let path = configuration.externalCheckpointPath {
            try ExternalCheckpoint(at: path, of: configuration.trailOrigin).demand(
                trusting: TrailTrust(
                    origin: origin,
                    keys: [trailKey] + keyring.earlierTrailKeys(origin: origin, trusted: true)),
                in: TrailDirectoryReader(openingAt: configuration.trailDirectory),
                knownTo: store.read { try $0.entryCount() })
        }
        try Self.publishKeyset(of: store, to: library, at: clock.now(), logger)
        // Archived before it decides anything, or replay would miss it.
        try library.archivePolicy(first.digest, first.bundle.canonicalJSON)

        let work = WorkSignal()
        let end: @Sendable (String) -> Never = { what in
            // Nothing may be answered, flushed or tidied up any more: what is on disk is not known, and only a
            // restart reads it. EX_SOFTWARE, so that a service manager sees a failure and starts the gateway again.
            logger.critical("what was committed may not be on disk; stopping at once: \(what)")
            _exit(70)
        }
        let engineBox = Late<Engine>()
        let publisher = TrailPublisher(
            store: store, library: library, clock: clock,
            mark: { size in engineBox.value?.notePublished(size) },
            tell: { logger.tell($0) }, durabilityLost: end)
        let traces = TraceLog(
            isDebugging: logger.logLevel <= .debug, uptimeMilliseconds: { clock.reading().uptime }
        ) { message, members in
            logger.info("\(message)", metadata: members.mapValues { .string($0) })
        }
        let dependencies = EngineDependencies(
            limits: configuration.limits, clock: clock, identifiers: SystemIdentifiers(),
            sealers: try SealerPool(threadCount: configuration.sealerCount) { try Sealer() },
            library: library, keys: gateKeys,
            unsubscribeURL: Self.unsubscribeURL(configuration, servedOn: pageSocket),
            publishLagMilliseconds: { publisher.lagMilliseconds() },
            freeDiskByteCount: { try DiskSpace.freeByteCount(at: configuration.stateDirectory) },
            committed: {
                publisher.entriesWereCommitted()
                work.raise()
            }, tell: { logger.tell($0) }, traces: traces, durabilityLost: end, drift: configuration.drift,
            hasRestoredSends: lineage != nil)
        let engine = Engine(store: store, policy: policy, dependencies: dependencies)
        engineBox.fill(engine)

        let endpointBox = Late<UnixSocketEndpoint>()
        let health = RelayHealth()
        let ledger = ReloadLedger(clock: clock, logger: logger)
        let persons = PersonCount(store: store, policy: policy, clock: clock)
        let trust: @Sendable () -> TrailTrust = {
            TrailTrust(
                origin: origin,
                keys: [library.signingKey]
                    + gateKeys.keyring.earlierTrailKeys(origin: origin, trusted: true))
        }
        let statePass = StatePass(store, directory: configuration.stateDirectory) {
            StateComparison(
                store: store, trail: try TrailDirectoryReader(openingAt: configuration.trailDirectory),
                trust: trust(), clock: clock)
        }
        let pruning = try TrailPruning(
            configuration.pruning,
            around: TrailPruning.Surroundings(
                store: store, library: library,
                reader: try TrailDirectoryReader(openingAt: configuration.trailDirectory),
                externalSize: {
                    try configuration.externalCheckpointPath.map {
                        try ExternalCheckpoint(at: $0, of: configuration.trailOrigin).size(trusting: trust())
                    }
                },
                now: { try engine.performing { try $0.step { try $0.now() } } },
                record: { entry in
                    _ = try engine.performing { try $0.step { try $0.recordSnapshot(entry) } }
                }))
        let keyHolder = try KeyHolder(
            keys, as: keyring, prefix: configuration.isDevelopment ? "dev-" : "",
            trailOrigin: origin,
            gateKeys: gateKeys, library: library, store: store)
        let healthChecks = HealthChecks(
            store: store, publisher: publisher, policy: policy, clock: clock, health: health, reloads: ledger,
            keys: gateKeys, privateKeys: keyHolder,
            limits: configuration.limits, stateDirectory: configuration.stateDirectory,
            persons: persons, statePass: statePass, pruning: pruning,
            endpoint: { endpointBox.value?.metrics() })
        self.healthChecks = healthChecks
        self.pruning = pruning
        reloads = ledger
        self.keyHolder = keyHolder
        self.store = store
        gateway = Gateway(
            engine: engine, store: store, library: library, policy: policy, attestation: sockets.attestation,
            // What an operator does to a gateway that is stopped comes over none of them.
            listeners: isListening ? sockets.modes : [], dependencies: dependencies,
            management: GatewayManagement(
                privateKeys: keyHolder, authorities: configuration.authorities,
                checks: { healthChecks.checks() },
                addMetrics: { healthChecks.addMetrics(to: &$0) },
                policySource: PolicySource(
                    load: load, versionsOnlyRise: configuration.policySigning != nil,
                    refused: { ledger.refused($0) }, accepted: { ledger.accepted($0) })), work: work)
        endpoint =
            try starting?.endpoint
            ?? UnixSocketEndpoint(
                listeners: sockets.listeners, limits: configuration.endpoint, handler: gateway,
                logger: logger)
        endpointBox.fill(endpoint)
        pages = pageSocket.map { [gateway] in
            PublicPages(
                on: $0, handler: LinkHandler(gateway), preferencesURL: configuration.preferencesURL,
                logger: logger)
        }
        relay = DeliveryRelay(
            feed: gateway, hop: Self.hop(configuration, clock), concurrency: configuration.hopConcurrency,
            clock: clock, logger: logger, health: health, traces: traces)
        core = EngineService(
            engine: engine, publisher: publisher, keys: gateKeys, foundKeys: found,
            pinnedKeys: configuration.pinnedKeys,
            recordCounts: { [gateway] in gateway.recordCounts(isLast: $0) },
            retentionMilliseconds: configuration.limits.retentionMilliseconds,
            lapsedReviews: { policy.current.bundle.lapsedReviews(at: clock.now()) },
            checkPages: { try store.checkPages(countMax: $0) }, statePass: statePass,
            pruning: pruning,
            ledgerEnds: { subject in try store.read { try $0.ledgerEnds(of: subject) } },
            countPersons: { try persons.advance() },
            driftSchedule: configuration.driftSchedule,
            eraseUnneededKeys: { try keyHolder.followAgain() }, logger: logger)
        reload = PolicyReload(gateway: gateway)
    }

    /// Records the start, and has the key files follow the record: what a kill left of a change of the keyring is done.
    func start() async throws {
        try await core.start(version: Sendgate.version)
        // As recorded, with the moment of the entry.
        guard let keyring = try store.read({ try $0.keyring() }) else { return }
        try Self.warning(logger) { try keyHolder.follow(keyring) }
    }

    /// Serves until SIGTERM or SIGINT, then drains: the sockets take nothing new, the relay finishes what is under
    /// way, the core records the stop and publishes the rest, and the databases are closed.
    ///
    /// - Parameters:
    ///   - notices: Of a service manager.
    ///   - whenListening: Called once, as soon as clients can connect.
    func run(telling notices: ServiceNotices, whenListening: @escaping @Sendable () -> Void) async throws {
        // Closing folds the logs into the databases. The last reference to the store may outlive this call, up to the
        // end of the process, and is not released then.
        defer { store.close() }
        try await start()
        let status: @Sendable () -> String = { [policy, reloads] in
            let bundle = policy.current.bundle
            let refused =
                reloads.lastRefusal.map { "; the bundle read since was refused: \($0.reason)" } ?? ""
            return "ready, under `\(bundle.name)` version \(bundle.version)\(refused)"
        }
        var reload = reload
        (reload.notices, reload.status) = (notices, status)
        let managed = ManagedService(notices: notices) { [core, endpoint] in
            await core.comeRound()
            await endpoint.comeRound()
        }
        var group = ServiceGroupConfiguration(
            // Shut down from the last to the first.
            services: [
                .init(service: core), .init(service: relay), .init(service: reload),
                .init(
                    service: Listening(
                        endpoint: endpoint,
                        handOver: { [starting, gateway] in starting?.handler.handOver(to: gateway) },
                        whenListening: {
                            whenListening()
                            notices.ready(status())
                        })),
            ] + (pages.map { [.init(service: $0)] } ?? []) + [.init(service: managed)],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger)
        group.maximumGracefulShutdownDuration = .milliseconds(
            configuration.endpoint.drainMilliseconds + 2 * UnixHop.answerMilliseconds)
        try await ServiceGroup(configuration: group).run()
    }

    private struct Listening: Service {
        let endpoint: UnixSocketEndpoint
        let handOver: @Sendable () -> Void
        let whenListening: @Sendable () -> Void
        func run() async throws {
            handOver()
            try await endpoint.run(whenListening: whenListening)
        }
    }

    static func requireUnused(_ configuration: GatewayConfiguration) throws {
        try CommandFailure.tellingOfRestore(in: configuration.stateDirectory) {
            try SQLiteStore.requireUnused(configuration.stateDirectory)
        }
    }

    // MARK: Keys

    static func keys(
        of configuration: GatewayConfiguration, _ environment: [String: String]
    ) throws -> PrivateKeyDirectory {
        try PrivateKeyDirectory(
            at: configuration.keysDirectory, rootPath: configuration.rootKeyPath,
            credentials: environment["CREDENTIALS_DIRECTORY"], acceptsThrowaway: configuration.isDevelopment)
    }

    /// Goes on where key files cannot be written: every key is in use as recorded, and only its files are not yet as the
    /// record says.
    private static func warning(_ logger: Logger, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as KeyFileError {
            guard case .cannotWrite = error else { throw error }
            logger.warning("\(error); the next start tries again", metadata: ["hint": "\(error.hint)"])
        }
    }

    /// The keyring with what the key directory holds now; recorded with the start.
    ///
    /// - Throws: `KeyFileError` when a key in use has no file, or a data key that stored values are still sealed under.
    static func keyring(
        adopting found: [GatewayKey], from keys: PrivateKeyDirectory, in store: some GateStore,
        at now: Instant
    ) throws -> Keyring {
        var keyring = try store.read { try $0.keyring() } ?? Keyring()
        _ = keyring.adopt(found, at: now)
        let ids = Set(found.map(\.id))
        if let key = keyring.missing(from: ids).first {
            throw KeyFileError.missingKey(id: key.id, purpose: key.purpose, directory: keys.path)
        }
        let needed = try store.read { store in
            try store.resealedDataKey() == keyring.active(.data)?.id
                ? nil
                : keyring.earlierDataKeys(missingFrom: ids).first { try store.hasValues(under: $0.id) }
        }
        // With it gone, whatever it sealed would be damage: people would get nothing, and a "no" would not be found.
        if let needed { throw KeyFileError.missingEarlierKey(id: needed.id, directory: keys.path) }
        return keyring
    }

    /// Opens the databases with the keys that are in the key directory once their lock is held: the command that had the
    /// lock until then may have changed them.
    ///
    /// - Parameters:
    ///   - keys: What was read before, so that no state directory is made for keys that are missing.
    ///   - migrating: Told how far an older state directory is brought up to date; who waits at a terminal is shown it.
    static func openStore(
        of directory: String, readingAgain keys: inout PrivateKeyDirectory,
        by readKeys: () throws -> PrivateKeyDirectory,
        damageFound: @escaping @Sendable (StoredDamage) -> Void = { _ in },
        migrating: @escaping (MigrationProgress) throws -> Void = MigrationNotices.showing()
    ) throws -> SQLiteStore {
        try CommandFailure.tellingOfRestore(in: directory) {
            try SQLiteStore(
                directory: directory, damageFound: damageFound, migrating: migrating,
                readingKeys: {
                    keys = try readKeys()
                    return (try rowCipher(keys), HMACKey(try keys.current(.index).secret))
                })
        }
    }

    /// The same databases for questions alone: no byte of them changes.
    static func openStoreToRead(
        _ directory: String, readingAgain keys: inout PrivateKeyDirectory,
        by readKeys: () throws -> PrivateKeyDirectory
    ) throws -> ReadOnlyStore {
        try CommandFailure.tellingOfRestore(in: directory) {
            try ReadOnlyStore(directory: directory) {
                keys = try readKeys()
                return (try rowCipher(keys), HMACKey(try keys.current(.index).secret))
            }
        }
    }

    /// Every data key. The newest seals in a new state directory, and in others the one that was promoted last.
    private static func rowCipher(_ keys: PrivateKeyDirectory) throws -> RowCipher {
        let list = try (keys.keys[.data] ?? []).map {
            try RowCipher.Key($0)
        }
        guard let current = list.first else {
            throw KeyFileError.missing(purpose: .data, directory: keys.path)
        }
        return RowCipher(current: current, older: Array(list.dropFirst()))
    }

    // MARK: Policy and trail

    /// Refuses a bundle that changes a notice people were shown, and, where a signature is required, one that is older than
    /// the bundle activated last.
    private static func requireAccepted(
        _ first: CompiledPolicy, by store: SQLiteStore, under configuration: GatewayConfiguration
    ) throws {
        var refusals = try store.read { try $0.editedNotices(of: first.bundle) }
        if configuration.policySigning != nil,
            let diagnostic = try store.read({ try $0.activatedPolicy() })?.refusal(of: ActivatedPolicy(first))
        {
            refusals.insert(diagnostic, at: 0)
        }
        guard refusals.isEmpty else { throw PolicyDiagnostics(refusals) }
    }

    /// Puts the stored keyset beside the checkpoint, and warns of one that has expired.
    private static func publishKeyset(
        of store: SQLiteStore, to library: PublishedTrail, at now: Instant, _ logger: Logger
    ) throws {
        guard let note = try store.read({ try $0.keysetNote() }) else { return }
        try library.publishKeyset(Array(note.utf8))
        // An expired keyset stays in force: it says nothing until the next one is signed.
        if let keyset = try store.read({ try $0.keyset() }),
            now.milliseconds / 1000 >= Int64(keyset.expiresAt)
        {
            logger.warning("\(KeysetError.expired(at: keyset.expiresAt))")
        }
    }

    // MARK: Links and the next hop

    /// With `--dev` the link in a message leads to the pages of this very process, on the port that was free.
    private static func unsubscribeURL(
        _ configuration: GatewayConfiguration, servedOn socket: PageSocket?
    ) -> String {
        guard configuration.isDevelopment, let socket else { return configuration.unsubscribeURL }
        return "http://\(socket.address)/u/"
    }

    private static func hop(_ configuration: GatewayConfiguration, _ clock: any Clock) -> any Hop {
        switch configuration.hop {
        case .unix(let path, let users):
            UnixHop(
                path: path, serverUserIDs: users, speaking: configuration.hopProtocol, clock: clock)
        case .file(let path): FileHop(path: path)
        }
    }
}

extension Wiring {
    /// A gateway that is stopped, for questions and dry runs: the same routes over the state directory, the key directory and the bundle
    /// as they are. Nothing is written, recorded or taken in, and a change is refused.
    ///
    /// The caller closes the store.
    static func reading(
        _ configuration: GatewayConfiguration, environment: [String: String]
    ) throws -> (gateway: Gateway, store: ReadOnlyStore) {
        // Before the first key is read. Where the kernel refuses, a start says so.
        _ = SecretMemory.protect()
        try WritePermissions.demand(
            state: configuration.stateDirectory, trail: configuration.trailDirectory)
        let policy = try PolicyLoading.signed(configuration)
        try configuration.requireCallers(in: policy)
        var keys = try keys(of: configuration, environment)
        let store = try openStoreToRead(configuration.stateDirectory, readingAgain: &keys) {
            try Self.keys(of: configuration, environment)
        }
        do {
            let gateway = try reading(configuration, policy, keys, store, environment)
            return (gateway, store)
        } catch {
            store.close()
            throw error
        }
    }

    private static func reading(
        _ configuration: GatewayConfiguration, _ policy: CompiledPolicy, _ keys: PrivateKeyDirectory,
        _ store: ReadOnlyStore, _ environment: [String: String]
    ) throws -> Gateway {
        if try store.read({ try $0.restoreUnderWay() }) != nil { throw CommandFailure.restoreUnderWay }
        let clock = SystemClock()
        let origin = try TrailLineage.origin(
            store.read { try $0.trailLineage() }, configured: configuration.trailOrigin)
        let found = try keys.keys.values.joined().map { try GatewayKey($0, at: clock.now()) }
        // As the next start has it: what lies in the key directory anew waits.
        let keyring = try keyring(adopting: found, from: keys, in: store, at: clock.now())
        let files = Dictionary(
            keys.keys.values.joined().map { ($0.id, $0) }, uniquingKeysWith: { one, _ in one })
        guard let links = try KeyHolder.linkKeys(of: keyring, in: files) else {
            throw KeyFileError.missing(purpose: .link, directory: keys.path)
        }
        let unwritten = UnwrittenFiles(
            origin: origin, keys: Set(files.keys), keysDirectory: keys.path, rootPath: keys.rootPath)
        let inForce = PolicyInForce(policy)
        let dependencies = EngineDependencies(
            limits: configuration.limits, clock: clock, identifiers: SystemIdentifiers(),
            sealers: try SealerPool(threadCount: 1) { try Sealer() }, library: unwritten,
            keys: GateKeys(
                origin: nil, index: HMACKey(try keys.current(.index).secret), links: links, keyring: keyring),
            unsubscribeURL: configuration.unsubscribeURL, publishLagMilliseconds: { 0 },
            freeDiskByteCount: { try DiskSpace.freeByteCount(at: configuration.stateDirectory) },
            committed: {}, tell: { _ in },
            durabilityLost: { preconditionFailure("nothing was written that could be lost: \($0)") })
        let engine = Engine(store: store, policy: inForce, dependencies: dependencies)
        // From here on it refuses what it is given.
        engine.start()
        engine.drain()
        return Gateway(
            engine: engine, store: store, library: unwritten, policy: inForce,
            attestation: try SocketPlan(
                configuration, environment: environment, isListening: false
            ).attestation,
            dependencies: dependencies,
            management: GatewayManagement(
                privateKeys: unwritten, checks: { [] }, addMetrics: { _ in },
                policySource: PolicySource(
                    load: { throw UnwrittenFiles.refusal }, versionsOnlyRise: true)), work: WorkSignal())
    }
}

/// A value that is made after those who need it. Filled once, before anything runs; held weakly, so that the
/// circle it closes does not keep a stopped gateway's databases and locks.
private final class Late<Value: AnyObject & Sendable>: Sendable {
    private struct Weakly {
        weak var value: Value?
    }
    private let state = Mutex(Weakly())
    var value: Value? { state.withLock { $0.value } }
    func fill(_ value: Value) { state.withLock { $0.value = value } }
}
