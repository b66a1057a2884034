import CourierModel
package import CourierProviders
package import Logging
package import ServiceLifecycle
import Synchronization
import UnixSignals
package import UnixSockets

/// The courier with everything it runs: providers, listeners, the reload of credentials.
///
/// Shutdown goes from the gate's socket inwards: the socket drains first, then the others stop, and the providers' connections
/// last.
package struct CourierServices {
    package let group: ServiceGroup
    package let desk: DeliveryDesk
    private let journal: CourierJournal?

    /// - Parameter whenListening: Called once, when every listener accepts connections, with the address of the inbound port.
    package init(
        _ configuration: CourierConfiguration, clock: ProviderClock = .system,
        inherited: InheritedSockets = .none, manager: ServiceManager = .none, logger: Logger,
        whenListening: @escaping @Sendable (_ inbound: HTTPListener.Address?) -> Void = { _ in }
    ) throws {
        let journal = try configuration.openJournal(clock)
        if let damage = journal?.damage, let directory = configuration.journalDirectory {
            logger.error(
                "the journal was damaged; a mail or text of a lost line may go a second time, and a receipt of Expo's is not asked for",
                metadata: [
                    "journal": "\(directory)/journal", "lost_lines": "\(damage.lineCount)",
                    "kept_entries": "\(damage.keptCount)",
                    "lost_lines_are_in": "\(damage.copy ?? "no file: it could not be written")",
                ])
        }
        let registry = try ProviderRegistry(
            configuration, journal: journal, reports: configuration.gateway.map(GatewayReports.init),
            clock: clock,
            logger: logger)
        try self.init(
            configuration, registry: registry, journal: journal, clock: clock, inherited: inherited,
            manager: manager, logger: logger, whenListening: whenListening)
    }

    /// - Parameter handlesSignals: Whether SIGTERM and SIGINT end it and SIGHUP reads credentials; off in tests, which share
    ///   their process.
    package init(
        _ configuration: CourierConfiguration, registry: ProviderRegistry, journal: CourierJournal?,
        clock: ProviderClock, handlesSignals: Bool = true, inherited: InheritedSockets = .none,
        manager: ServiceManager = .none, logger: Logger,
        whenListening: @escaping @Sendable (_ inbound: HTTPListener.Address?) -> Void
    ) throws {
        try DescriptorBudget.raise(forConnections: Self.descriptorCountMax(configuration, registry))
        let addresses = try configuration.addresses(inherited)
        let notices = CourierNotices(manager: manager, wayCount: registry.sorted.count, logger: logger)
        let metrics = CourierMetrics(lanes: registry.providers.keys)
        let desk = DeliveryDesk(
            registry, underWayMax: configuration.underWayMax, clock: clock, metrics: metrics, logger: logger)
        self.desk = desk
        self.journal = journal
        let hasInbound = configuration.inbound != nil
        let readiness = Readiness(
            listenerCount: 1 + (hasInbound ? 1 : 0) + (configuration.operations == nil ? 0 : 1),
            whenReady: { inbound in
                whenListening(inbound)
                notices.ready()
            })
        var services: [any Service] = registry.sorted.map {
            ProviderService(lane: $0.lane, provider: $0.provider)
        }
        var reloadInbound: (@Sendable () throws -> Void)?
        if let inbound = configuration.inbound, let address = addresses[.inbound],
            let gateway = configuration.gateway, let journal
        {
            let (listener, inboundDesk) = try Self.inbound(
                inbound, at: address, gateway, journal, clock, metrics, logger,
                whenListening: readiness.listening)
            services.append(listener)
            reloadInbound = { inboundDesk.replace(try inbound.routes()) }
        }
        if handlesSignals {
            services.append(
                CredentialReload(
                    registry: registry, desk: desk, reloadInbound: reloadInbound, metrics: metrics,
                    notices: notices, logger: logger))
        }
        if let operations = addresses[.operations] {
            var limits = HTTPListenerLimits(bodyByteCountMax: 1_024)
            limits.connectionCountMax = Self.operationsConnectionsMax
            services.append(
                HTTPListener(
                    on: operations, limits: limits, logger: logger,
                    whenListening: readiness.listening
                ) { CourierRoutes.operations($0, at: desk, metrics) })
        }
        services.append(
            GateListener(
                configuration, at: addresses[.gate] ?? .unix(configuration.socket), desk, logger,
                whenListening: readiness.listening))
        services.append(notices)
        group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services, gracefulShutdownSignals: handlesSignals ? [.sigterm, .sigint] : [],
                logger: logger))
    }

    /// Returns when everything has stopped and the journal is closed.
    package func run() async throws {
        do {
            try await group.run()
        } catch {
            await journal?.close()
            throw error
        }
        await journal?.close()
    }

    /// Bound on the descriptors of all connections: the gateway's, the operators', those that webhooks come on and that their
    /// reports go on, and the providers'.
    static func descriptorCountMax(_ configuration: CourierConfiguration, _ registry: ProviderRegistry) -> Int
    {
        let inbound =
            configuration.inbound == nil ? 0 : inboundConnectionsMax + GatewayReports.connectionCountMax
        return configuration.gateConnectionsMax + operationsConnectionsMax + inbound
            + registry.sorted.reduce(registry.fallback?.descriptorCountMax ?? 0) {
                $0 + $1.provider.descriptorCountMax
            }
    }

    /// Connections of operators at once: a Prometheus server, and a look or two.
    private static let operationsConnectionsMax = 32
    /// Connections of the proxy in front of the inbound port at once.
    private static let inboundConnectionsMax = 256

    private static func inbound(
        _ inbound: InboundConfiguration, at address: HTTPListener.Address,
        _ gateway: GatewayReportsConfiguration, _ journal: CourierJournal,
        _ clock: ProviderClock, _ metrics: CourierMetrics, _ logger: Logger,
        whenListening: @escaping @Sendable (HTTPListener.Address) -> Void
    ) throws -> (HTTPListener, InboundDesk) {
        let reports = GatewayReports(gateway)
        let desk = InboundDesk(routes: try inbound.routes(), journal: journal, clock: clock) {
            await reports.pass($0, $1)
        }
        var limits = HTTPListenerLimits(bodyByteCountMax: InboundRequest.bytesMax)
        limits.connectionCountMax = inboundConnectionsMax
        let listener = HTTPListener(
            on: address, limits: limits, logger: logger,
            whenListening: whenListening
        ) { request in
            let answer = await CourierRoutes.inbound(request, at: desk) { logger.warning("\($0)") }
            metrics.inbound(status: answer.status)
            return answer
        }
        return (listener, desk)
    }
}

extension CourierConfiguration {
    /// Connections of the gateway at once: one for each order under way, and one for each answer that it still reads.
    fileprivate var gateConnectionsMax: Int { 2 * underWayMax }

    /// - Throws: `JournalFault`, also when another process has the journal open.
    package func openJournal(_ clock: ProviderClock) throws(JournalFault) -> CourierJournal? {
        guard let journalDirectory else { return nil }
        return try CourierJournal(path: "\(journalDirectory)/journal", now: clock.now)
    }
}

/// Counts the listeners that accept connections, and says when all do.
private final class Readiness: Sendable {
    private struct State {
        var left: Int
        var inbound: HTTPListener.Address?
    }

    private let state: Mutex<State>
    private let whenReady: @Sendable (_ inbound: HTTPListener.Address?) -> Void

    init(listenerCount: Int, whenReady: @escaping @Sendable (_ inbound: HTTPListener.Address?) -> Void) {
        state = Mutex(State(left: listenerCount))
        self.whenReady = whenReady
    }

    @Sendable func listening(at address: HTTPListener.Address) {
        let inbound = state.withLock { state -> HTTPListener.Address?? in
            switch address {
            case .loopback, .inherited(_, _, isPublic: true): state.inbound = address
            case .unix, .inherited: break
            }
            state.left -= 1
            return state.left == 0 ? .some(state.inbound) : nil
        }
        if let inbound { whenReady(inbound) }
    }
}

extension InboundConfiguration {
    /// Reads the secrets.
    fileprivate func routes() throws(CredentialError) -> [InboundRoute] {
        var routes: [InboundRoute] = []
        if let twilio {
            var tokens: [[UInt8]] = []
            for file in twilio.authTokens { tokens.append(try file.readLine()) }
            func webhook(_ path: String) -> TwilioWebhook {
                TwilioWebhook(path: path, publicURL: twilio.publicURL + path, authTokens: tokens)
            }
            if let path = twilio.messagesPath { routes.append(.twilioMessages(webhook(path))) }
            if let path = twilio.statusesPath { routes.append(.twilioStatuses(webhook(path))) }
        }
        if let reports { routes.append(.reports(try reports.webhook())) }
        if let bounces { routes.append(.bounces(try bounces.webhook())) }
        return routes
    }
}

extension InboundConfiguration.Signed {
    /// Bytes of a secret: less could be tried out.
    private static let secretByteCountMin = 32

    fileprivate func webhook() throws(CredentialError) -> SignedWebhook {
        var found: [[UInt8]] = []
        for file in secrets {
            let secret = try file.readLine()
            guard secret.count >= Self.secretByteCountMin else {
                throw CredentialError(
                    path: file.path,
                    why: "has \(secret.count) bytes, and \(Self.secretByteCountMin) are needed",
                    hint: "run `openssl rand -hex 32`")
            }
            found.append(secret)
        }
        return SignedWebhook(path: path, secrets: found)
    }
}

/// The socket that the gateway connects to, and the end of what is under way there.
private struct GateListener: Service {
    let listener: HTTPListener
    let desk: DeliveryDesk

    init(
        _ configuration: CourierConfiguration, at address: HTTPListener.Address, _ desk: DeliveryDesk,
        _ logger: Logger,
        whenListening: @escaping @Sendable (HTTPListener.Address) -> Void
    ) {
        self.desk = desk
        var limits = HTTPListenerLimits(bodyByteCountMax: DeliveryOrder.bytesMax)
        limits.connectionCountMax = configuration.gateConnectionsMax
        limits.drainMilliseconds = configuration.drainMilliseconds
        let served = configuration.gateUserIDs
        listener = HTTPListener(
            on: address, limits: limits,
            refusal: { userID in
                served.contains(userID) ? nil : .refusal(403, "uid \(userID) is not one of `gate_users`")
            }, logger: logger,
            whenListening: { address in
                // The directory may have been made by now.
                if case .unix(let socket) = address {
                    for fault in served.sorted().compactMap({ socket.obstacle(forUser: $0) }) {
                        logger.warning("the gateway cannot connect: \(fault)")
                    }
                }
                whenListening(address)
            }
        ) { request in
            await CourierRoutes.delivery(request, at: desk) { error in
                logger.error(
                    "an order is not understood; is the gateway newer than the courier?",
                    metadata: ["error": "\(error)"])
            }
        }
    }

    func run() async throws {
        defer { desk.cancel() }
        try await listener.run()
    }
}

/// A provider's connections, for as long as the gate's socket is served.
private struct ProviderService: Service {
    let lane: ProviderLane
    let provider: any DeliveryProvider

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await provider.run() }
        } catch is CancellationError {}
        // A provider without connections to hold is done at once, and stays until the end.
        try? await gracefulShutdown()
    }
}

/// Reads credential files again at SIGHUP. A file that cannot be used is named in the log, and the old credentials stay.
struct CredentialReload: Service {
    let registry: ProviderRegistry
    let desk: DeliveryDesk
    /// Reads the secrets of webhooks again.
    var reloadInbound: (@Sendable () throws -> Void)?
    let metrics: CourierMetrics
    var notices: CourierNotices?
    let logger: Logger

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        for await _ in signals.cancelOnGracefulShutdown() {
            notices?.reloading()
            await reload()
            notices?.ready()
        }
    }

    func reload() async {
        for (lane, provider) in registry.sorted {
            do {
                try await provider.reloadCredentials()
                metrics.reloaded(isRefused: false)
                logger.notice("the credentials were read again", metadata: ["lane": "\(lane)"])
            } catch {
                metrics.reloaded(isRefused: true)
                logger.error(
                    "the credentials cannot be used; the old ones stay",
                    metadata: ["lane": "\(lane)", "error": "\(error)"])
            }
        }
        if let reloadInbound {
            do {
                try reloadInbound()
                metrics.reloaded(isRefused: false)
                logger.notice("the secrets of webhooks were read again")
            } catch {
                metrics.reloaded(isRefused: true)
                logger.error(
                    "the secrets of webhooks cannot be used; the old ones stay",
                    metadata: ["error": "\(error)"])
            }
        }
        desk.retryCircuits()
    }
}
