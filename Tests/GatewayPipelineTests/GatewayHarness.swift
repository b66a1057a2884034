import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateRecords
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import KeyLifecycle
import OpenSSLCrypto
import PolicyFiles
import PolicyPages
import SQLiteStore
import SealedFormat
import SealedPush
import Synchronization
import Testing
import WireProtocol

/// A clock the test moves.
final class TestClock: Clock {
    private let clocks: Mutex<ClockReading>
    init(_ text: String) { clocks = Mutex(ClockReading(wall: .utc(text), uptime: 1_000_000, boot: "first")) }
    func now() -> Instant { reading().wall }
    func reading() -> ClockReading { clocks.withLock { $0 } }
    /// Time passes.
    func advance(seconds: Int64) {
        clocks.withLock {
            $0.wall = $0.wall.advanced(bySeconds: seconds)
            $0.uptime += seconds * 1000
        }
    }
    func advance(milliseconds: Int64) {
        clocks.withLock {
            $0.wall = $0.wall.advanced(byMilliseconds: milliseconds)
            $0.uptime += milliseconds
        }
    }
    /// Sets the wall clock, as an operator would.
    func step(seconds: Int64) { step(milliseconds: seconds * 1000) }
    func step(milliseconds: Int64) {
        clocks.withLock { $0.wall = $0.wall.advanced(byMilliseconds: milliseconds) }
    }
    /// What no kernel does.
    func rewindUptime(milliseconds: Int64) { clocks.withLock { $0.uptime -= milliseconds } }
    func set(_ wall: Instant) { clocks.withLock { $0.wall = wall } }
    func reboot() {
        clocks.withLock {
            $0.boot = ($0.boot ?? "") + "+"
            $0.uptime = 10_000
        }
    }
}

struct RandomIdentifiers: IdentifierSource {
    func randomBytes16() throws -> (high: UInt64, low: UInt64) {
        var generator = SystemRandomNumberGenerator()
        return (generator.next(), generator.next())
    }
}

/// What the operator was told.
final class Alarms: Sendable {
    private let texts = Mutex<[String]>([])
    func add(_ text: String) { texts.withLock { $0.append(text) } }
    var all: [String] { texts.withLock { $0 } }
}

/// Keeps the engine busy until it is let go, so that what is asked meanwhile comes into one batch.
struct HoldOperation: EngineOperation {
    let entered = DispatchSemaphore(value: 0)
    let release = DispatchSemaphore(value: 0)
    var caller: CallerName? { nil }
    var lane: EngineLane { .security }
    func perform(in batch: Batch) throws -> Completion {
        entered.signal()
        release.wait()
        return { _ in }
    }
    func refuse(_ failure: EngineFailure) { Issue.record("the hold was refused: \(failure)") }
}

/// Does nothing, in a batch of its own or another's.
struct PassOperation: EngineOperation {
    let passed: @Sendable () -> Void
    var caller: CallerName? { nil }
    var lane: EngineLane { .general }
    func perform(in batch: Batch) throws -> Completion { { [passed] _ in passed() } }
    func refuse(_ failure: EngineFailure) { Issue.record("the pass was refused: \(failure)") }
}

/// A published tree in memory; what a store does not hold any more is looked up here.
final class MemoryLibrary: TrailLibrary {
    let origin = "gate.example/test"
    private let entries = Mutex<[[UInt8]]>([])
    let keysets = Mutex<[[UInt8]]>([])
    private let policies = Mutex<[PolicyDigest: [UInt8]]>([:])
    func integrate(_ new: [StoredEntry]) throws -> UInt64 {
        entries.withLock { entries in
            for entry in new where entry.index == UInt64(entries.count) { entries.append(entry.bytes) }
            return UInt64(entries.count)
        }
    }
    func publish() throws {}
    /// Called before an entry is looked up, on the thread that looks.
    let willRead = Mutex<(@Sendable () -> Void)?>(nil)
    func entry(_ index: UInt64) throws -> [UInt8]? {
        willRead.withLock { $0 }?()
        return entries.withLock { index < $0.count ? $0[Int(index)] : nil }
    }
    func file(_ path: String) throws -> [UInt8]? { nil }
    let archiveFailure = Mutex<TrailLibraryError?>(nil)
    func archived(_ digest: PolicyDigest) -> [UInt8]? { policies.withLock { $0[digest] } }
    func publishKeyset(_ note: [UInt8]) throws { keysets.withLock { $0.append(note) } }

    func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws {
        if let failure = archiveFailure.withLock({ $0 }) { throw failure }
        policies.withLock { $0[digest] = canonical }
    }
}

/// What the configured folder holds: the policy in force until a test puts another one there.
private final class ConfiguredPolicy: Sendable {
    let policy: Mutex<CompiledPolicy>
    init(_ policy: CompiledPolicy) { self.policy = Mutex(policy) }
}

/// Where a harness keeps what must be remembered.
enum StateKeeping: Sendable {
    case memory
    /// A state directory of its own, for a test about rows, files, data keys or a start over what is there. With no person kept
    /// decoded, what is done to the file behind the gateway's back is seen at once.
    case files(SQLiteStoreLimits = SQLiteStoreLimits())
    /// A state directory that is there, of the gateway `after`.
    case folder(String)

    /// What a test gets that does not say. `make soak` holds every promise of this module on files too.
    static let usual: StateKeeping = Soak.isWhole ? .files() : .memory
}

/// What a test changes about the world around the engine.
struct EngineEnvironment: Sendable {
    /// What the engine and the gateway use in place of the store.
    var store: @Sendable (any GateStore) -> any GateStore = { $0 }
    var publishLagMilliseconds: @Sendable () -> Int64 = { 0 }
    var freeDiskByteCount: @Sendable () throws -> Int64 = { 1 << 40 }
    var durabilityLost: @Sendable (String) -> Never = { fatalError("durability lost: \($0)") }
    /// Told besides ``GatewayHarness/alarms``.
    var tell: @Sendable (OperatorNotice) -> Void = { _ in }
    var traces = TraceLog.none
    /// Whether the store was restored before the gateway started.
    var hasRestoredSends = false
    /// Whether the engine ends: not one whose thread a test has stopped for ever.
    var isDrained = true
}

/// A whole gateway without a socket: real policies, real sealing, a clock of the test's own, a store that the test may choose.
final class GatewayHarness: Sendable {
    /// The state directory; nothing is in it when the store is in memory.
    let folder: String
    let clock: TestClock
    let store: any GateStore
    let engine: Engine
    let gateway: Gateway
    let policy: CompiledPolicy
    let inForce: PolicyInForce
    let origin: Ed25519PrivateKey
    let library: MemoryLibrary
    let keys: Keys
    let gateKeys: GateKeys
    let privateKeys: TestPrivateKeys
    let alarms = Alarms()
    private let isDrained: Bool
    private let configured: ConfiguredPolicy

    /// Uids by caller: the harness is everybody.
    static let users: [String: UInt32] = [
        "marketing": 2001, "payments": 2002, "security": 2003, "product": 2004, "keys-team": 2005,
        "auditor": 2006, "help": 2007, "social": 2008,
    ]
    /// ``users`` and the callers that an edit of the bundle added.
    let users: [String: UInt32]

    /// What a state directory belongs to.
    struct Keys: Sendable {
        var data: SecretBytes
        var index: SecretBytes
        var origin: Ed25519PrivateKey
    }

    /// - Parameters:
    ///   - earlier: A gateway whose keys and published trail this one has.
    ///   - caps: A `limits.yaml` to use in place of the bundle's own.
    ///   - opening: What the engine records first.
    ///   - edit: Changes the pages of the bundle before it is read.
    ///   - isChecked: `false` reads the bundle as an archive is read, whatever its pages let a caller do.
    ///   - listeners: What becomes of sends over each.
    init(
        at time: String = "2026-11-21T12:00:00Z", limits: EngineLimits = EngineLimits(), caps: String? = nil,
        environment: EngineEnvironment = EngineEnvironment(), after earlier: GatewayHarness? = nil,
        keeping: StateKeeping = .usual,
        edit: ((inout [String: PolicyNode]) -> Void)? = nil, isChecked: Bool = true,
        listeners: [ListenerMode] = [], authorities: [NoteVerifierKey] = [],
        drift: DriftSettings = DriftSettings(), opening: Engine.Opening? = nil
    ) throws {
        var limits = limits
        isDrained = environment.isDrained
        clock = TestClock(time)
        let policy: CompiledPolicy
        if caps != nil || edit != nil {
            policy = try Self.policy(caps: caps, isChecked: isChecked, edit: edit)
        } else {
            policy = try Repository.policy()
        }
        let configured = ConfiguredPolicy(policy)
        self.configured = configured
        let alarms = alarms
        self.policy = policy
        let added = policy.bundle.callers.keys.map(\.text).filter { Self.users[$0] == nil }.sorted()
        let users = Self.users.merging(zip(added, 3001...)) { own, _ in own }
        self.users = users
        keys =
            try earlier?.keys
            ?? Keys(
                data: .random(byteCount: 32), index: .random(byteCount: 32), origin: .generate())
        let index = HMACKey(keys.index)
        let own = NSTemporaryDirectory() + "sendgate-gateway-\(UUID().uuidString)"
        let rows = RowCipher(current: .init(id: "test", key: try AES256GCMKey(keys.data)))
        switch keeping {
        case .memory: (folder, store) = (own, InMemoryStore(StoreContents(index: index)))
        case .files(let storeLimits):
            // Who is not kept in memory is read from the file, and its damage is met.
            limits.recentPersonCountMax = storeLimits.personNumberCountMax
            (folder, store) = (
                own, try SQLiteStore(directory: own, cipher: rows, indexKey: index, limits: storeLimits)
            )
        case .folder(let path):
            (folder, store) = (path, try SQLiteStore(directory: path, cipher: rows, indexKey: index))
        }
        // As a start does.
        try store.write { try $0.archiveNotices(of: policy) }
        origin = keys.origin
        library = earlier?.library ?? MemoryLibrary()
        let kid = Array(SHA256.digest(origin.publicKey.rawBytes).bytes.prefix(8))
        let work = WorkSignal()
        let library = library
        gateKeys = GateKeys(
            origin: try OriginSigner(keyID: kid, privateKey: origin), index: index,
            links: LinkKeys(
                current: .init(
                    id: "link-1", secret: SecretBytes(copying: [UInt8](repeating: 7, count: 32)))),
            keyring: try store.read { try $0.keyring() } ?? Keyring())
        privateKeys = TestPrivateKeys(gateKeys, store: store)
        let dependencies = EngineDependencies(
            limits: limits, clock: clock, identifiers: RandomIdentifiers(),
            sealers: try SealerPool(threadCount: 2) { try Sealer() }, library: library,
            keys: gateKeys,
            unsubscribeURL: "https://example.com/u/",
            publishLagMilliseconds: environment.publishLagMilliseconds,
            freeDiskByteCount: environment.freeDiskByteCount,
            committed: { work.raise() },
            tell: {
                if case .alarm(let text) = $0 { alarms.add(text) }
                environment.tell($0)
            },
            traces: environment.traces, durabilityLost: environment.durabilityLost, drift: drift,
            hasRestoredSends: environment.hasRestoredSends)
        inForce = PolicyInForce(policy)
        let used = environment.store(store)
        engine = Engine(store: used, policy: inForce, dependencies: dependencies)
        let attestation = try PeerAttestation(
            bindings: users.map { .init(caller: CallerName($0.key), userIDs: [$0.value]) },
            boundListeners: [:], acceptsRoot: false)
        gateway = Gateway(
            engine: engine, store: used, library: library, policy: inForce, attestation: attestation,
            listeners: listeners, dependencies: dependencies,
            management: GatewayManagement(
                privateKeys: privateKeys, authorities: authorities, checks: { [] }, addMetrics: { _ in },
                policySource: PolicySource(
                    load: {
                        let policy = configured.policy.withLock { $0 }
                        return PolicySource.Loaded(policy: policy, reviewedDigest: policy.digest)
                    },
                    versionsOnlyRise: false)),
            work: work)
        engine.start(opening: opening)
    }

    /// - Parameter isChecked: `false` reads the bundle as an archive is read, whatever its pages let a caller do.
    static func policy(
        caps: String? = nil, isChecked: Bool = true, edit: ((inout [String: PolicyNode]) -> Void)? = nil
    ) throws -> CompiledPolicy {
        var pages = try Repository.pages()
        if let caps {
            pages["limits.yaml"] = try PolicyPage.read(Array(caps.utf8), file: "limits.yaml")
            // What the bundle says about its own caps is not about these.
            for page in pages.keys where page.hasPrefix("cases/") {
                pages[page] = try PolicyPage.read(Array("cases: []".utf8), file: page)
            }
        }
        edit?(&pages)
        let bundle =
            isChecked
            ? PolicyBundle.read(documents: pages)
            : PolicyBundle.read(archive: .object(JSONObject(pages.map { ($0.key, $0.value.json) })))
        return CompiledPolicy(try bundle.get())
    }

    /// Puts another bundle in the configured folder.
    func configure(_ next: CompiledPolicy) { configured.policy.withLock { $0 = next } }

    /// The same, and puts it in force.
    func activate(_ next: CompiledPolicy) async throws {
        configure(next)
        let reply = try await call(
            "keys-team", "POST", "/v1/policy/activate", ["digest": .string(next.digest.text)])
        try #require(reply.status == 200, "\(reply.json)")
    }

    /// The store of a harness that keeps ``StateKeeping/files(_:)``.
    var files: SQLiteStore {
        guard let files = store as? SQLiteStore else { fatalError("this test must keep its state in files") }
        return files
    }

    deinit {
        if isDrained { engine.drain() }
        try? FileManager.default.removeItem(atPath: folder)
    }

    struct Reply: Sendable {
        var status: Int
        var json: JSONObject
        subscript(_ key: String) -> String? { json[key]?.stringValue }
    }

    func call(
        _ caller: String, _ method: String, _ target: String, _ body: JSONObject? = nil,
        headers: [(name: String, value: String)] = [], over listener: Int = 0
    ) async throws -> Reply {
        let reply = await ask(caller, method, target, body, headers: headers, over: listener)
        guard case .object(let json) = try CanonicalJSON.read(reply.body) else {
            return Reply(status: reply.status, json: [:])
        }
        return Reply(status: reply.status, json: json)
    }

    /// The answer as it is written to the socket, whatever its body is.
    ///
    /// - Parameter caller: One of ``users``; any other name is a peer that no configuration binds.
    func ask(
        _ caller: String, _ method: String, _ target: String, _ body: JSONObject? = nil,
        headers: [(name: String, value: String)] = [], kind: WireRequest.Kind = .single,
        over listener: Int = 0
    ) async -> Answer {
        let peer = Peer(
            credentials: PeerCredentials(
                userID: users[caller] ?? 4242, groupID: 100, processID: 1, supplementaryGroups: []),
            boundCaller: nil, listener: listener)
        let request = WireRequest(
            kind: kind, method: method, target: target,
            headers: (body == nil ? [] : [("content-type", "application/json")]) + headers,
            body: body.map { CanonicalJSON.write(.object($0)) } ?? [])
        return await withCheckedContinuation { continuation in
            gateway.handle(request, from: peer) { continuation.resume(returning: $0) }
        }
    }

    /// Registers a person with one iPhone; `change` may alter the bodies.
    func register(
        _ user: String, region: String = "DE", zone: String = "Europe/Berlin", age: String = "adult",
        quiet: JSONObject? = nil, device: String? = "d_1", osPermission: String = "granted",
        app: String = "no.getdrop.app"
    ) async throws {
        var recipient: JSONObject = [
            "region": .string(region), "region_source": "kyc", "locale": "en", "time_zone": .string(zone),
            "age": .string(age), "privacy": "generic", "push_enabled": true,
        ]
        if let quiet { recipient["quiet_hours"] = .object(quiet) }
        let reply = try await call("product", "PUT", "/v1/recipients/\(user)", recipient)
        try #require(reply.status == 200, "\(reply.json)")
        guard let device else { return }
        let registered = try await call(
            "product", "PUT", "/v1/recipients/\(user)/devices/\(device)",
            [
                "platform": "ios", "app": .string(app),
                "token": .string(apnsToken("token-of-\(user)-\(device)")),
                "region": .string(region),
                "time_zone": .string(zone), "os_permission": .string(osPermission), "critical_alerts": true,
            ])
        try #require(registered.status == 200, "\(registered.json)")
    }

    /// Begins a drift audit and takes it to its end, so many people at a time.
    @discardableResult
    func audit(isDryRun: Bool = false, personCountMax: Int = 100) async throws -> DriftRun {
        let begun = try await call("product", "POST", "/v1/drift", ["dry_run": .boolean(isDryRun)])
        try #require(begun.status == 202, "\(begun.json)")
        while true {
            let run = try #require(try await auditPiece(personCountMax))
            if !run.isUnderWay { return run }
        }
    }

    /// Takes the audit that is under way so many people further; `nil` when none is.
    func auditPiece(_ personCountMax: Int) async throws -> DriftRun? {
        try await withCheckedThrowingContinuation { continuation in
            engine.advanceDriftRun(personCountMax: personCountMax) { continuation.resume(with: $0) }
        }
    }

    /// Gives consent to marketing on push, from the notice the bundle holds.
    @discardableResult
    func consent(
        _ user: String, id: String = "c1", at moment: String? = nil, state: String = "given"
    ) async throws -> Reply {
        try await call(
            "product", "POST", "/v1/recipients/\(user)/consents",
            try consentBody(id, at: moment, state: state))
    }

    func consentBody(_ id: String, at moment: String? = nil, state: String = "given") throws -> JSONObject {
        let notice = try #require(
            policy.bundle.notices.values.first { $0.key.id == "promo" && $0.key.language == "en" })
        return [
            "id": .string(id), "purpose": "marketing", "channel": "push", "state": .string(state),
            "event_time": .string(moment ?? clock.now().rfc3339), "method": "in_app_toggle",
            "jurisdiction": "DE",
            "notice": [
                "id": .string(notice.key.id), "version": .string(notice.key.version),
                "language": .string(notice.key.language), "sha256": .string(notice.sha256),
            ],
        ]
    }

    /// The body a producer reads at `GET /v1/types/{type}`, for one person.
    func example(_ type: String, _ id: String, to user: String, as caller: String) async throws -> JSONObject
    {
        let answer = try await call(caller, "GET", "/v1/types/\(type)")
        var body = try #require(answer.json["example"]?.objectValue, "\(answer.json)")
        body["id"] = .string(id)
        body["recipient"] = ["user": .string(user)]
        return body
    }

    func promo(_ id: String, to user: String) async throws -> JSONObject {
        try await example("promo.offer", id, to: user, as: "marketing")
    }

    static func remittance(_ id: String, to user: String) -> JSONObject {
        [
            "id": .string(id), "type": "transaction.remittance_sent", "recipient": ["user": .string(user)],
            "params": [
                "amount": ["minor": 500_000, "currency": "NOK"], "recipient_name": "Ahmad Karimi",
                "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
            ],
        ]
    }

    /// Registers and proves a device key, as a phone would.
    func addKey(
        _ user: String, device: String = "d_1", app: String = "no.getdrop.app"
    ) async throws -> (DeviceKeyPair, keyID: String) {
        let (pair, keyID, confirmed) = try #require(try await offerKey(user, device: device, app: app))
        try #require(confirmed.status == 200, "\(confirmed.json)")
        return (pair, keyID)
    }

    /// The same where it may be refused: by a device that is not there, or for want of the earlier key's proof.
    func offerKey(
        _ user: String, device: String, app: String = "no.getdrop.app"
    ) async throws -> (pair: DeviceKeyPair, keyID: String, confirmed: Reply)? {
        let pair = DeviceKeyPair()
        let added = try await call(
            "product", "POST", "/v1/recipients/\(user)/devices/\(device)/keys",
            ["suite": "P256_SHA256_AES256GCM", "public_key": .string(Base64URL.encode(pair.publicKey))])
        guard added.status == 201 else { return nil }
        let keyID = try #require(added["key_id"])
        let proof = try pair.proof(
            of: envelopeText(#require(added.json["challenge"]?.objectValue)), keyID: keyID,
            app: app, device: device, origin: origin.publicKey.rawBytes, now: clock.now())
        let confirmed = try await call(
            "product", "POST", "/v1/recipients/\(user)/devices/\(device)/keys/\(keyID)/confirm",
            ["proof": .string(proof)])
        return (pair, keyID, confirmed)
    }

    /// Publishes everything, so that the store lets go of what stands in full bundles.
    func publishAll() throws {
        let entries = try store.read { try $0.entries(from: 0, limit: Int(try $0.entryCount())) }
        let size = try library.integrate(entries)
        try store.write { $0.setPublishedSize(size) }
    }

    /// Returns when all that was answered before is told as well: alarms are given after the answers of a batch, and
    /// before the next.
    func settle() async {
        await withCheckedContinuation { continuation in
            engine.submit(PassOperation { continuation.resume() })
        }
    }

    /// Writes through the engine, which alone changes the store while it runs.
    func write(_ body: @escaping @Sendable (GateMemory) throws -> Void) async throws {
        let refused: EngineFailure? = await withCheckedContinuation { continuation in
            engine.submit(WritingOperation(body: body) { continuation.resume(returning: $0) })
        }
        if let refused { throw refused }
    }

    func claim(_ lane: DeliveryLane = .general) async throws -> [Delivery] {
        try await gateway.claim(lane: lane, limit: 100)
    }
}

/// Writes what a test wants written.
private struct WritingOperation: EngineOperation {
    let body: @Sendable (GateMemory) throws -> Void
    let done: @Sendable (EngineFailure?) -> Void
    var caller: CallerName? { nil }
    var lane: EngineLane { .general }
    func perform(in batch: Batch) throws -> Completion {
        try batch.step { try body($0.memory) }
        return { [done] _ in done(nil) }
    }
    func refuse(_ failure: EngineFailure) { done(failure) }
}

/// Drops settings that are over, as the gateway does every hour.
struct DroppingOperation: EngineOperation {
    let finished: @Sendable () -> Void
    var caller: CallerName? { nil }
    var lane: EngineLane { .security }
    var scans: Bool { true }
    func perform(in batch: Batch) throws -> Completion {
        var next: String?
        repeat { next = try batch.dropExpiredSettings(from: next) } while next != nil
        return { [finished] _ in finished() }
    }
    func refuse(_ failure: EngineFailure) { Issue.record("refused: \(failure)") }
}
