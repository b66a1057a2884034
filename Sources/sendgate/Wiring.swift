import AuditTrail
import BundleModel
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
import PayloadSealing
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
    let policy: PolicyInForce
    let healthChecks: HealthChecks
    /// What an auditor pins.
    let trailKey: NoteVerifierKey
    private let logger: Logger

    /// Opens everything, in the order in which it can fail without leaving anything half done: keys, bundle, the
    /// state directory with its lock, the trail, and last the description of the sockets.
    ///
    /// Nothing runs and nobody can connect yet.
    init(_ configuration: GatewayConfiguration, environment: [String: String], logger: Logger) throws {
        self.configuration = configuration
        self.logger = logger
        // Before the first key is read.
        if !SecretMemory.protect().isLocked {
            logger.warning(
                "keys may be swapped out: the kernel refused to lock their memory",
                metadata: ["hint": "raise the limit: `LimitMEMLOCK=` in systemd, `ulimit -l` elsewhere"])
        }
        try WritePermissions.demand(
            state: configuration.stateDirectory, trail: configuration.trailDirectory)
        let sockets = try SocketPlan(configuration, environment: environment)
        let pageSocket = try configuration.publicListen.map { try PageSocket($0) }

        let keys = try PrivateKeyDirectory(
            at: configuration.keysDirectory, rootPath: configuration.rootKeyPath,
            credentials: environment["CREDENTIALS_DIRECTORY"], acceptsThrowaway: configuration.isDevelopment)
        let originKey = try Ed25519PrivateKey(seed: keys.current(.origin).secret)
        let gateKeys = GateKeys(
            origin: try OriginSigner(
                keyID: Array(SHA256.digest(originKey.publicKey.rawBytes).bytes.prefix(8)),
                privateKey: originKey),
            index: HMACKey(try keys.current(.index).secret), links: try Self.linkKeys(keys))
        let trailSigner = try Self.trailSigner(keys, origin: configuration.trailOrigin)
        trailKey = trailSigner.verifierKey

        let clock = SystemClock()
        let proofs = KeptProofs(in: configuration.stateDirectory, key: gateKeys.index)
        let first = try PolicyLoading.configured(configuration, provedIn: proofs).policy
        // A start has no other one to keep, so it says so and goes on: without a gate nobody hears of anything.
        for problem in PolicyLoading.untimeliness(of: first.bundle, at: clock.now()) {
            logger.warning("\(problem)")
        }
        let load: @Sendable () throws -> PolicySource.Loaded = {
            let loaded = try PolicyLoading.configured(configuration, provedIn: proofs)
            let problems = PolicyLoading.untimeliness(of: loaded.policy.bundle, at: clock.now())
            guard problems.isEmpty else { throw PolicyProblems(problems) }
            return loaded
        }
        try configuration.requireCallers(in: first)
        let policy = PolicyInForce(first)
        self.policy = policy

        let store = try SQLiteStore(
            directory: configuration.stateDirectory, cipher: Self.rowCipher(keys), indexKey: gateKeys.index,
            damageFound: { logger.critical("in the store, \($0)") })
        // A first start has the directory only now.
        proofs.add(first.digest, grain: PolicyProof.grain)
        var refusals = try store.read { try $0.editedNotices(of: first.bundle) }
        if configuration.policySigning != nil,
            let problem = try store.read({ try $0.activatedPolicy() })?.refusal(of: ActivatedPolicy(first))
        {
            refusals.insert(problem, at: 0)
        }
        guard refusals.isEmpty else { throw PolicyProblems(refusals) }
        let library = try PublishedTrail(
            at: configuration.trailDirectory, signer: trailSigner,
            olderKeys: Self.olderTrailKeys(keys, origin: configuration.trailOrigin),
            publishedSize: store.read { try $0.publishedSize() },
            entryCount: store.read { try $0.entryCount() })
        // Archived before it decides anything, or replay would miss it.
        try library.archivePolicy(first.digest, first.bundle.canonicalJSON)

        let work = WorkSignal()
        let end: @Sendable (String) -> Never = { what in
            // Nothing may be answered, flushed or tidied up any more: what is on disk is not known, and only a
            // restart reads it. EX_SOFTWARE, so that a service manager sees a failure and starts us again.
            logger.critical("what was committed may not be on disk; stopping at once: \(what)")
            _exit(70)
        }
        let engineBox = Late<Engine>()
        let publisher = TrailPublisher(
            store: store, library: library, clock: clock,
            mark: { size in engineBox.value?.submit(MaintenanceOperation.published(size)) },
            durabilityLost: end)
        let dependencies = EngineDependencies(
            limits: configuration.limits, clock: clock, identifiers: SystemIdentifiers(),
            sealers: try SealerPool(threadCount: configuration.sealerCount) { try Sealer() },
            trailOrigin: configuration.trailOrigin, keys: gateKeys,
            unsubscribeURL: Self.unsubscribeURL(configuration, servedOn: pageSocket),
            publishLagMilliseconds: { publisher.lagMilliseconds() },
            freeDiskByteCount: { try DiskSpace.freeByteCount(at: configuration.stateDirectory) },
            publishedEntry: { try library.entry($0) },
            committed: {
                publisher.entriesWereCommitted()
                work.raise()
            }, alarm: { logger.critical("\($0)") }, durabilityLost: end)
        let engine = Engine(store: store, policy: policy, dependencies: dependencies)
        engineBox.fill(engine)

        let endpointBox = Late<UnixSocketEndpoint>()
        let health = RelayHealth()
        let ledger = ReloadLedger(clock: clock, logger: logger)
        let healthChecks = HealthChecks(
            store: store, publisher: publisher, policy: policy, clock: clock, health: health, reloads: ledger,
            limits: configuration.limits, stateDirectory: configuration.stateDirectory,
            endpoint: { endpointBox.value?.metrics() })
        self.healthChecks = healthChecks
        let keyAnswers = try Self.answers(about: keys)
        gateway = Gateway(
            engine: engine, store: store, library: library, policy: policy, attestation: sockets.attestation,
            dependencies: dependencies,
            operations: GatewayOperations(
                gateKeys: { keyAnswers }, checks: { healthChecks.checks() },
                moreMetrics: { healthChecks.metrics() },
                policySource: PolicySource(
                    load: load, versionsOnlyRise: configuration.policySigning != nil,
                    refused: { ledger.refused($0) }, accepted: { ledger.accepted($0) })), work: work)
        endpoint = try UnixSocketEndpoint(
            listeners: sockets.listeners, limits: configuration.endpoint, handler: gateway,
            logger: logger)
        endpointBox.fill(endpoint)
        pages = pageSocket.map { [gateway] in
            PublicPages(
                on: $0, desk: LinkDesk(gateway), preferencesURL: configuration.preferencesURL, logger: logger)
        }
        relay = DeliveryRelay(
            feed: gateway, hop: Self.hop(configuration.hop), clock: clock, logger: logger, health: health)
        core = EngineService(
            engine: engine, publisher: publisher,
            recordCounts: { [gateway] in gateway.recordCounts(isLast: $0) },
            retentionMilliseconds: configuration.limits.retentionMilliseconds,
            lapsedReviews: { policy.current.bundle.lapsedReviews(at: clock.now()) },
            checkRows: { try store.checkRows(countMax: $0) }, logger: logger)
        reload = PolicyReload(gateway: gateway)
    }

    /// Serves until SIGTERM or SIGINT, then drains: the sockets take nothing new, the relay finishes what is under
    /// way, and the core records the stop and publishes the rest.
    ///
    /// - Parameter whenListening: Called once, as soon as clients can connect.
    func run(whenListening: @escaping @Sendable () -> Void) async throws {
        try await core.start(version: Sendgate.version)
        var group = ServiceGroupConfiguration(
            // Shut down from the last to the first.
            services: [
                .init(service: core), .init(service: relay), .init(service: reload),
                .init(service: Listening(endpoint: endpoint, whenListening: whenListening)),
            ] + (pages.map { [.init(service: $0)] } ?? []), gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger)
        group.maximumGracefulShutdownDuration = .milliseconds(
            configuration.endpoint.drainMilliseconds + 2 * UnixHop.answerMilliseconds)
        try await ServiceGroup(configuration: group).run()
    }

    private struct Listening: Service {
        let endpoint: UnixSocketEndpoint
        let whenListening: @Sendable () -> Void
        func run() async throws { try await endpoint.run(whenListening: whenListening) }
    }

    // MARK: Keys

    private static func trailSigner(_ keys: PrivateKeyDirectory, origin: String) throws -> NoteSigner {
        let key = try Ed25519PrivateKey(seed: keys.current(.trail).secret)
        guard let signer = NoteSigner(name: origin, key: key) else {
            throw CommandFailure(
                "`\(origin)` cannot name a trail",
                hint: "set `origin` to something like `gate.example.com/prod`")
        }
        return signer
    }

    /// Keys that signed earlier checkpoints of the same trail.
    private static func olderTrailKeys(_ keys: PrivateKeyDirectory, origin: String) throws
        -> [NoteVerifierKey]
    {
        try (keys.keys[.trail] ?? []).dropFirst().compactMap { key in
            try key.publicKey().flatMap { NoteVerifierKey(name: origin, publicKey: $0) }
        }
    }

    /// The newest data key seals, older ones still open what they sealed.
    static func rowCipher(_ keys: PrivateKeyDirectory) throws -> RowCipher {
        let list = try (keys.keys[.data] ?? []).map {
            RowCipher.Key(id: $0.id, key: try AES256GCMKey($0.secret))
        }
        guard let current = list.first else {
            throw KeyFileError.missing(purpose: .data, directory: keys.path)
        }
        return RowCipher(current: current, older: Array(list.dropFirst()))
    }

    /// The newest link key makes links, older ones still verify what they made.
    private static func linkKeys(_ keys: PrivateKeyDirectory) throws -> LinkKeys {
        func key(_ file: PrivateKeyFile) -> LinkKeys.Key { .init(id: file.id, secret: file.secret) }
        return LinkKeys(
            current: key(try keys.current(.link)), older: (keys.keys[.link] ?? []).dropFirst().map(key))
    }

    private static func answers(about keys: PrivateKeyDirectory) throws -> [KeyAnswer] {
        try KeyPurpose.allCases.flatMap { purpose in
            try (keys.keys[purpose] ?? []).enumerated().map { position, key in
                KeyAnswer(
                    key: key.id, purpose: purpose.rawValue, suite: purpose.suite,
                    state: (position == 0 ? KeyState.active : .deactivated).rawValue,
                    createdAt: key.createdAt, changedAt: nil,
                    publicKey: try key.publicKey().map { Base64URL.encode($0.rawBytes) })
            }
        }
    }

    // MARK: The world

    /// With `--dev` the link in a message leads to the pages of this very process, on the port that was free.
    private static func unsubscribeURL(
        _ configuration: GatewayConfiguration, servedOn socket: PageSocket?
    ) -> String {
        guard configuration.isDevelopment, let socket else { return configuration.unsubscribeURL }
        return "http://\(socket.address)/u/"
    }

    private static func hop(_ hop: GatewayConfiguration.NextHop) -> any Hop {
        switch hop {
        case .unix(let path, let users): UnixHop(path: path, serverUserIDs: users)
        case .file(let path): FileHop(path: path)
        }
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
