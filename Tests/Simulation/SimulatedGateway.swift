import CanonicalJSON
import CompliancePolicy
import Dispatch
import GateTestKit
import GateVocabulary
import InMemoryStore
import OpenSSLCrypto
import SealedPush
import Synchronization
import WireProtocol

@testable import GateSteps
@testable import GatewayPipeline
import KeyLifecycle

extension SeededNumbers {
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
    /// Whether something happens that happens once in so many times.
    mutating func onceIn(_ count: Int) -> Bool { below(count) == 0 }
    mutating func one<Element>(of elements: [Element]) -> Element { elements[below(elements.count)] }
}

/// Ids and clocks that a seed decides.
final class SimulatedEnvironment: Clock, IdentifierSource {
    private let dice: Mutex<SeededNumbers>
    private let clock = Mutex(
        ClockReading(wall: Instant(milliseconds: 1_795_260_000_000), uptime: 1_000_000, boot: "first"))

    init(seed: UInt64) { dice = Mutex(SeededNumbers(seed: seed)) }

    func randomBytes16() throws -> (high: UInt64, low: UInt64) {
        dice.withLock { ($0.next(), $0.next()) }
    }
    func now() -> Instant { reading().wall }
    func reading() -> ClockReading { clock.withLock { $0 } }
    func advance(milliseconds: Int64) {
        clock.withLock {
            $0.wall = $0.wall.advanced(byMilliseconds: milliseconds)
            $0.uptime += milliseconds
        }
    }
    /// Sets the wall clock, as an operator would.
    func step(milliseconds: Int64) {
        clock.withLock { $0.wall = $0.wall.advanced(byMilliseconds: milliseconds) }
    }
}

/// A tree that is published nowhere: the store holds every entry.
private struct NoLibrary: TrailLibrary {
    var origin: String { SimulatedGateway.origin }
    func integrate(_ entries: [StoredEntry]) throws -> UInt64 { 0 }
    func publish() throws {}
    func entry(_ index: UInt64) throws -> [UInt8]? { nil }
    func file(_ path: String) throws -> [UInt8]? { nil }
    func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws {}
    func publishKeyset(_ note: [UInt8]) throws {}
}

/// One gateway that steps on the thread of its caller: nothing happens but what the simulation does.
final class SimulatedGateway {
    static let origin = "simulated.example/trail"
    static let users: [String: UInt32] = [
        "marketing": 2001, "payments": 2002, "security": 2003, "product": 2004, "keys-team": 2005,
        "auditor": 2006, "help": 2007, "social": 2008, "replies": 2009, "keys-witness": 2010,
    ]

    let store: InMemoryStore
    let engine: Engine
    private let gateway: Gateway
    private let own: EngineMemory
    private let environment: SimulatedEnvironment
    /// What the relay took and has not reported yet.
    var taken: [Delivery] = []

    struct Reply {
        var status: Int
        var json: JSONObject
        subscript(_ key: String) -> String? { json[key]?.stringValue }

        /// What was decided: of the send as a whole, then at each destination.
        var decisions: [[String]] {
            func decision(_ said: JSONObject) -> [String] {
                ["destination", "outcome", "reason", "detail", "not_before"].map {
                    said[$0]?.stringValue ?? ""
                }
            }
            let places = (json["deliveries"]?.arrayValue ?? []).compactMap(\.objectValue)
                .filter { $0["destination"] != nil }
            return [decision(json)] + places.map(decision).sorted { $0[0] < $1[0] }
        }
    }

    /// What every simulated gateway of a process shares: threads that seal, and keys.
    struct Parts {
        let sealers: SealerPool
        let keys: GateKeys
        let attestation: PeerAttestation
        /// What phones believe.
        let origin: OriginKey

        /// - Parameter origin: One that is generated, where a test names none.
        init(origin given: Ed25519PrivateKey? = nil) throws {
            sealers = try SealerPool(threadCount: 1) { try Sealer() }
            let origin = try given ?? Ed25519PrivateKey.generate()
            let id = Array(origin.publicKey.rawBytes.prefix(8))
            self.origin = try OriginKey(
                keyID: Hexadecimal.encode(id), publicKey: origin.publicKey.rawBytes)
            keys = GateKeys(
                origin: try OriginSigner(
                    keyID: id, privateKey: origin),
                index: HMACKey(SecretBytes(copying: [UInt8](repeating: 9, count: 32))),
                links: LinkKeys(
                    current: .init(
                        id: "link", secret: SecretBytes(copying: [UInt8](repeating: 7, count: 32)))))
            attestation = try PeerAttestation(
                bindings: SimulatedGateway.users.map {
                    .init(caller: CallerName($0.key), userIDs: [$0.value])
                }, boundListeners: [:], acceptsRoot: false)
        }
    }

    init(
        over store: InMemoryStore, environment: SimulatedEnvironment, policy: CompiledPolicy, parts: Parts
    ) throws {
        self.store = store
        self.environment = environment
        let library = NoLibrary()
        var limits = EngineLimits()
        // Years pass between two commands of one person.
        limits.clockStepForwardMillisecondsMax = .max / 4
        limits.clockGapMillisecondsMax = .max / 4
        let dependencies = EngineDependencies(
            limits: limits, clock: environment, identifiers: environment, sealers: parts.sealers,
            library: library, keys: parts.keys, unsubscribeURL: "https://example.com/u/",
            publishLagMilliseconds: { 0 }, freeDiskByteCount: { 1 << 40 },
            committed: {}, tell: { _ in },
            durabilityLost: { fatalError("durability lost: \($0)") })
        let inForce = PolicyInForce(policy)
        engine = Engine(store: store, policy: inForce, dependencies: dependencies)
        own = EngineMemory(dependencies)
        gateway = Gateway(
            engine: engine, store: store, library: library, policy: inForce, attestation: parts.attestation,
            dependencies: dependencies,
            management: GatewayManagement(
                privateKeys: LoadedPrivateKeys(), checks: { [] }, addMetrics: { _ in },
                policySource: PolicySource(
                    load: { PolicySource.Loaded(policy: policy, reviewedDigest: policy.digest) },
                    versionsOnlyRise: false)), work: WorkSignal())
        for lane in DeliveryLane.allCases { _ = claim(lane) }
    }

    /// Runs what waits in the engine's queue.
    private func step() {
        while engine.load.queuedCount > 0 {
            _ = engine.commitNext(own)
            engine.answering.answerWaiting()
        }
    }

    func replacePolicy(with policy: CompiledPolicy) {
        engine.submit(
            EditOperation(
                caller: nil, lane: .security, order: .free,
                edit: { step, now in
                    _ = try step.recordPolicy(policy, by: nil, at: now)
                    return { _ in Answer(json: [:]) }
                },
                reply: { [gateway] _ in gateway.policy.replace(with: policy) }))
        step()
    }

    func call(_ caller: String, _ method: String, _ target: String, _ body: JSONObject? = nil) -> Reply {
        callTogether([(caller, method, target, body)])[0]
    }

    /// Asks for several things that come into one batch.
    func callTogether(
        _ calls: [(caller: String, method: String, target: String, body: JSONObject?)]
    ) -> [Reply] {
        let asked = calls.map { ask($0.caller, $0.method, $0.target, $0.body) }
        step()
        return asked.map { $0() }
    }

    private func ask(
        _ caller: String, _ method: String, _ target: String, _ body: JSONObject?
    ) -> () -> Reply {
        let peer = Peer(
            credentials: PeerCredentials(
                userID: Self.users[caller] ?? 4242, groupID: 100, processID: 1, supplementaryGroups: []),
            boundCaller: nil, listener: 0)
        let request = WireRequest(
            kind: .single, method: method, target: target,
            headers: body == nil ? [] : [("content-type", "application/json")],
            body: body.map { CanonicalJSON.write(.object($0)) } ?? [])
        let box = ReplyBox()
        gateway.handle(request, from: peer) { box.put($0) }
        return { Self.read(box.take()) }
    }

    private static func read(_ answer: Answer) -> Reply {
        do {
            guard case .object(let json) = try CanonicalJSON.read(answer.body) else {
                return Reply(status: answer.status, json: [:])
            }
            return Reply(status: answer.status, json: json)
        } catch {
            return Reply(status: 0, json: ["unreadable": .string("\(error)")])
        }
    }

    /// Explains a send. The answer is read before anything is stepped, so that a seed makes the same ids each time.
    func explain(_ body: JSONObject) -> Reply {
        let reply = ask("auditor", "POST", "/v1/sends/explain", body)()
        step()
        return reply
    }

    /// Audits the next people of the drift run that is under way.
    func audit(personCountMax: Int) -> DriftRun? {
        let known = Mutex<DriftRun?>(nil)
        engine.advanceDriftRun(personCountMax: personCountMax) { result in
            if case .success(let run) = result { known.withLock { $0 = run } }
        }
        step()
        return known.withLock { $0 }
    }

    /// Records a key of the gateway's own that was just made.
    func add(_ key: GatewayKey, by caller: CallerName) -> Reply {
        let box = ReplyBox()
        engine.submit(
            EditOperation(
                caller: caller, lane: .security, order: .free,
                edit: { step, now in
                    let added = try step.addGatewayKey(key, replacing: nil, by: caller, at: now)
                    return { Answer(KeyChangedAnswer(added.key, trail: $0[added.trail])) }
                }, reply: { box.put($0) }))
        step()
        return Self.read(box.take())
    }

    // MARK: The relay

    func setHopUsable(_ isUsable: Bool) {
        let left = engine.inFlight.setHopUsable(isUsable)
        giveBack(left)
    }

    private func giveBack(_ offers: [MessageOffer]) {
        guard !offers.isEmpty else { return }
        report(
            offers.map { offer in
                ReportedResult(message: offer.delivery.message, outcome: .neverTaken) { [engine] failure in
                    if failure != nil { engine.inFlight.add([offer]) }
                }
            })
    }

    private func report(_ results: [ReportedResult]) {
        engine.submit(ReportOperation(results: results, inFlight: engine.inFlight) {})
        step()
    }

    /// Takes messages as the relay does: what is offered, or else what is due in the store.
    func claim(_ lane: DeliveryLane) -> [Delivery] {
        let now = environment.now()
        let offers = engine.inFlight.take(8, of: lane)
        let oldest = now.advanced(byMilliseconds: -engine.dependencies.limits.decisionFreshMilliseconds)
        let isFresh = { (offer: MessageOffer) in
            offer.decidedAt >= oldest && now <= offer.delivery.expiresAt
        }
        giveBack(offers.filter { !isFresh($0) })
        var deliveries = offers.filter(isFresh).map(\.delivery)
        if offers.isEmpty, let due = engine.inFlight.due[lane], due <= now {
            let claimed = Mutex<[Delivery]>([])
            engine.submit(
                ClaimOperation(deliveryLane: lane, limit: 8, inFlight: engine.inFlight) { result in
                    if case .success(let deliveries) = result { claimed.withLock { $0 = deliveries } }
                })
            step()
            deliveries = claimed.withLock { $0 }
        }
        taken += deliveries
        return deliveries
    }

    /// - Returns: Whether it is recorded.
    func report(_ message: MessageID, _ result: HopResult, retryAt: Instant?) -> Bool {
        let failure = Mutex<EngineFailure?>(nil)
        report([
            ReportedResult(message: message, outcome: .tried(result, retryAt: retryAt)) { outcome in
                failure.withLock { $0 = outcome }
            }
        ])
        return failure.withLock { $0 == nil }
    }

    func prune() {
        engine.submit(
            StepOperation {
                $0.memory.prune(before: try $0.now().advanced(byMilliseconds: -35 * 86_400_000))
            })
        step()
    }
}

extension StoreContents {
    struct Counts: Hashable {
        var entries: Int
        var sends: Int
        var outbox: Int
    }

    /// How much there is, where nothing is changed without being more or less.
    var counts: Counts { Counts(entries: entries.count, sends: sends.count, outbox: outbox.count) }
}

/// Where an answer will be. A repeated one is read on a reader's thread.
private final class ReplyBox: Sendable {
    private let reply = Mutex<Answer?>(nil)
    private let answered = DispatchSemaphore(value: 0)
    func put(_ answer: Answer) {
        reply.withLock { $0 = answer }
        answered.signal()
    }
    func take() -> Answer {
        answered.wait()
        return reply.withLock { $0! }
    }
}

/// Runs one step of the simulation's own.
private struct StepOperation: EngineOperation {
    let body: @Sendable (StepContext) throws -> Void
    var caller: CallerName? { nil }
    var lane: EngineLane { .general }
    init(_ body: @escaping @Sendable (StepContext) throws -> Void) { self.body = body }
    func perform(in batch: Batch) throws -> Completion {
        try batch.step(body)
        return { _ in }
    }
    func refuse(_ failure: EngineFailure) {}
}

/// The private half of every key is there, and none is made: a key is recorded by ``SimulatedGateway/add(_:by:)``.
private struct LoadedPrivateKeys: PrivateKeys {
    func requirePlace(for purpose: KeyPurpose) {}
    func make(_ purpose: KeyPurpose, at now: Instant) throws -> GatewayKey {
        throw EngineFailure.unavailable("no keys are made here")
    }
    func isLoaded(_ id: String) -> Bool { true }
    func requireReady(for event: KeyEvent, of key: GatewayKey) {}
    func follow(_ keyring: Keyring) {}
    func isFollowed(_ key: GatewayKey) -> Bool { true }
    func erase(_ key: GatewayKey) {}
}
