import BundleModel
import CanonicalJSON
import CompliancePolicy
import Dispatch
import Foundation
import GateFloor
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import OpenSSLCrypto
import PolicyFiles
import GateRecords
import SQLiteStore
import Synchronization
import WireProtocol

/// A send from its request to its answer and its hand-over, with the real engine, store, sealers and policy: all of a
/// gateway but sockets, publisher and hop.
///
/// The processor time is that of all threads. For instructions and allocations, which repeat from run to run,
/// `instructions.py` beside the package runs `GateBenchmarks POLICIES sends KIND COUNT` under a tool that counts them,
/// with two counts, and takes the difference.
final class Sends: Sendable {
    /// What becomes of the sends.
    enum Kind: String, CaseIterable {
        /// A text that goes out as it is.
        case open
        /// Marketing without a consent.
        case refused
        /// Sealed to the device's key.
        case sealed
    }

    /// Sends under way at once, and so about the size of a batch.
    private static let connectionCount = 64
    private static let users: [String: UInt32] = ["payments": 2_001, "marketing": 2_002]

    private let store: SQLiteStore
    let engine: Engine
    private let peopleCount: Int
    private let gateway: Gateway
    private let sentCount = Atomic(0)

    /// - Parameters:
    ///   - policies: The folder of the bundle.
    ///   - folder: An existing one, on the disk to measure.
    ///   - everyDenied: Of every so many people, the phone of one shows nothing of the app.
    init(policies: String, in folder: String, peopleCount: Int = 1_000, everyDenied: Int? = nil) throws {
        self.peopleCount = peopleCount
        let policy = CompiledPolicy(
            try PolicyBundle.read(
                documents: PolicyDirectory.read(at: Self.unlimited(policies, in: folder))
            ).get())
        let index = HMACKey(try SecretBytes.random(byteCount: 32))
        store = try SQLiteStore(
            directory: folder + "/sends",
            cipher: RowCipher(
                current: .init(id: "bench", key: try AES256GCMKey(SecretBytes.random(byteCount: 32)))),
            indexKey: index)
        try store.write { try $0.archiveNotices(of: policy) }
        let origin = try Ed25519PrivateKey.generate()
        let kid = Array(SHA256.digest(origin.publicKey.rawBytes).bytes.prefix(8))
        let library = NoLibrary()
        let work = WorkSignal()
        let dependencies = EngineDependencies(
            limits: EngineLimits(), clock: WallClock(), identifiers: OpenSSLIdentifiers(),
            sealers: try SealerPool(threadCount: 2) { try Sealer() }, library: library,
            keys: GateKeys(
                origin: try OriginSigner(keyID: kid, privateKey: origin), index: index,
                links: LinkKeys(
                    current: .init(
                        id: "link", secret: SecretBytes(copying: [UInt8](repeating: 7, count: 32))))),
            unsubscribeURL: "https://example.com/u/", publishLagMilliseconds: { 0 },
            freeDiskByteCount: { 1 << 40 }, committed: { work.raise() },
            tell: { preconditionFailure("told: \($0)") },
            durabilityLost: { preconditionFailure("durability lost: \($0)") })
        let inForce = PolicyInForce(policy)
        engine = Engine(store: store, policy: inForce, dependencies: dependencies)
        gateway = Gateway(
            engine: engine, store: store, library: library, policy: inForce,
            attestation: try PeerAttestation(
                bindings: Self.users.map { .init(caller: CallerName($0.key), userIDs: [$0.value]) },
                boundListeners: [:], acceptsRoot: false),
            dependencies: dependencies,
            management: GatewayManagement(
                privateKeys: NoPrivateKeys(), checks: { [] }, addMetrics: { _ in },
                policySource: PolicySource(
                    load: { PolicySource.Loaded(policy: policy, reviewedDigest: policy.digest) },
                    versionsOnlyRise: false)),
            work: work)
        // A thousand to a transaction, which holds what it changes.
        for first in stride(from: 0, to: peopleCount, by: 1_000) {
            try store.write { transaction in
                for number in first..<min(first + 1_000, peopleCount) {
                    let isDenied = everyDenied.map { number % $0 == 0 } ?? false
                    try Self.register(number, isDenied ? .denied : .granted, in: transaction)
                }
            }
        }
        engine.start()
    }

    func stop() { engine.drain() }

    /// A copy of the bundle in which no person reaches the limit of a tier or that over everything: a person gets more here
    /// than in any day, and what is above a limit is gathered and not forwarded.
    private static func unlimited(_ policies: String, in folder: String) throws -> String {
        let copy = folder + "/policies"
        try FileManager.default.copyItem(atPath: policies, toPath: copy)
        let limits = try String(contentsOfFile: copy + "/limits.yaml", encoding: .utf8)
        // What a category and a type of their own allow is below, and stays.
        let end = limits.firstRange(of: "\ncategories:")?.lowerBound ?? limits.endIndex
        let raised = limits[..<end].replacing(/\bcount: *[0-9]+/, with: "count: 1000000")
        try (raised + limits[end...]).write(
            toFile: copy + "/limits.yaml", atomically: true, encoding: .utf8)
        return copy
    }

    static func findings(policies: String, in folder: String) async throws -> [Finding] {
        let sends = try Sends(policies: policies, in: folder)
        defer { sends.stop() }
        var findings: [Finding] = []
        for kind in Kind.allCases {
            try await sends.send(2_000, kind)
            let count = 4_000
            let (written, taken) = (try writtenByteCount(), processorNanoseconds())
            try await sends.send(count, kind)
            let nanoseconds = Int((processorNanoseconds() - taken) / Double(count))
            let kilobytes = (try writtenByteCount() - written) / count / 1_000
            findings.append(
                Finding(
                    what: "a send, \(kind.rawValue), hand-over included",
                    measured: "\(nanoseconds) ns of all threads", floor: "\(kilobytes) KB written"))
        }
        return findings
    }

    /// Sends so many, so many under way at once, and hands over what they lead to meanwhile, as the relay does.
    func send(_ count: Int, _ kind: Kind) async throws {
        await gateway.setHopUsable(true)
        let first = sentCount.add(count, ordering: .relaxed).oldValue
        try await withThrowingDiscardingTaskGroup { group in
            for connection in 0..<Self.connectionCount {
                group.addTask { [self] in
                    for number in stride(
                        from: first + connection, to: first + count, by: Self.connectionCount)
                    {
                        await request(number, kind)
                    }
                }
            }
            if kind != .refused { group.addTask { [self] in try await handOver(count) } }
        }
    }

    /// Sends once, hands it over, and takes what that left in the store.
    func rows(of kind: Kind) async throws -> SendRows {
        await gateway.setHopUsable(true)
        // Once it is known that nothing waits, messages go from memory.
        _ = try await gateway.claim(lane: .general, limit: 8)
        let before = try store.read { try $0.entryCount() }
        await request(sentCount.add(1, ordering: .relaxed).oldValue, kind)
        guard let delivery = try await gateway.claim(lane: .general, limit: 1).first else {
            fatalError("a send of the kind \(kind.rawValue) was not forwarded")
        }
        try await gateway.report(delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        let entries = try store.read { try $0.entries(from: before, limit: 8) }
        guard let decision = entries.first, let end = entries.last, entries.count > 1 else {
            fatalError("a send and its hand-over left \(entries.count) entries")
        }
        return try SendRows(
            entry: decision.bytes, deliveryEntry: end.bytes, headers: delivery.headers, body: delivery.body)
    }

    private func handOver(_ count: Int) async throws {
        var claimedCount = 0
        try await withThrowingDiscardingTaskGroup { group in
            while claimedCount < count {
                let version = gateway.workVersion
                let deliveries = try await gateway.claim(lane: .general, limit: 32)
                claimedCount += deliveries.count
                for delivery in deliveries {
                    group.addTask { [gateway] in
                        try await gateway.report(
                            delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
                    }
                }
                if deliveries.isEmpty { await gateway.waitForWork(lane: .general, after: version) }
            }
        }
    }

    private func request(_ number: Int, _ kind: Kind) async {
        let uuid = "0d4f5a3e-5c1b-4e52-9a1f-" + String(100_000_000_000 + number)
        let (caller, content) =
            switch kind {
            case .open:
                (
                    "payments",
                    #""type":"statement.available","params":{"statement_id":"\#(uuid)","period":"October 2026"}"#
                )
            case .refused:
                (
                    "marketing",
                    #""type":"promo.offer","params":{"offer_id":"\#(uuid)","headline":"No fees this week"}"#
                )
            case .sealed:
                (
                    "payments",
                    #""type":"transaction.remittance_sent","params":{"amount":{"minor":500000,"currency":"NOK"},"recipient_name":"Ahmad Karimi","transaction_id":"\#(uuid)"}"#
                )
            }
        // Every person in turn, in an order that repeats no sooner than it must.
        let user = number &* 617 % peopleCount
        let body = #"{"id":"s-\#(number)","recipient":{"user":"u_\#(user)"},\#(content)}"#
        let peer = Peer(
            credentials: PeerCredentials(
                userID: Self.users[caller]!, groupID: 100, processID: 1, supplementaryGroups: []),
            boundCaller: nil, listener: 0)
        let request = WireRequest(
            kind: .single, method: "POST", target: "/v1/sends",
            headers: [("content-type", "application/json")], body: Array(body.utf8))
        let reply = await withCheckedContinuation { continuation in
            gateway.handle(request, from: peer) { continuation.resume(returning: $0) }
        }
        // Made here, as a connection makes it when it writes the answer.
        let answer = reply.body
        guard reply.status == (kind == .refused ? 403 : 202) else {
            fatalError("the answer was \(reply.status): \(String(decoding: answer, as: UTF8.self))")
        }
    }

    private static func register(
        _ number: Int, _ permission: OSPermission, in transaction: GateMemory
    ) throws {
        let at = WallClock().now()
        let subject = Subject(
            id: try .random(),
            tagKey: try SecretBytes.random(byteCount: Subject.tagKeyByteCount))
        transaction.add(subject, for: UserID("u_\(number)"))
        let region = RegionObservation(code: RegionCode("DE")!, source: .kyc, observedAt: at)
        try transaction.apply(
            .recipient(
                RecipientRecord(
                    subject: subject.id, region: region, age: .adult, locale: "en", timeZone: "Europe/Berlin",
                    privacy: .full, pushEnabled: true, quietHours: nil, registeredAt: at, updatedAt: at),
                action: .registered), to: subject.id)
        let tag = subject.tag(.device, "phone")
        try transaction.apply(
            .device(
                DeviceRecord(
                    subject: subject.id, tag: tag, id: DestinationID("phone"), platform: .ios,
                    app: "no.getdrop.app", token: "token-of-\(number)", region: region,
                    timeZone: "Europe/Berlin", osPermission: permission, criticalAlerts: false,
                    isActive: true,
                    seenAt: at), action: .registered), to: subject.id)
        try transaction.apply(
            .deviceKey(
                DeviceKeyRecord(
                    key: .random(), subject: subject.id, device: tag,
                    suite: "P256_SHA256_AES256GCM",
                    publicKey: AgreementPrivateKey.generate(curve: .p256).publicKey.rawBytes, state: "active",
                    challenge: nil, createdAt: at, changedAt: at), proof: nil), to: subject.id)
    }

    private static func processorNanoseconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }

    /// What this process has handed to write(2) so far (proc(5), `wchar`): the log, and its way into the database.
    private static func writtenByteCount() throws -> Int {
        let lines = try String(contentsOfFile: "/proc/self/io", encoding: .utf8).split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix("wchar: ") }), let count = Int(line.dropFirst(7))
        else { preconditionFailure("/proc/self/io has no wchar") }
        return count
    }
}

private struct WallClock: GatewayPipeline.Clock {
    func now() -> Instant { Instant(milliseconds: Self.milliseconds(CLOCK_REALTIME)) }
    func reading() -> ClockReading {
        ClockReading(wall: now(), uptime: Self.milliseconds(CLOCK_BOOTTIME), boot: "benchmark")
    }
    private static func milliseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}

private struct OpenSSLIdentifiers: IdentifierSource {
    func randomBytes16() throws -> (high: UInt64, low: UInt64) { try SecureRandom.number() }
    func randomBytes16(count: Int) throws -> [(high: UInt64, low: UInt64)] {
        try SecureRandom.numbers(count)
    }
}

extension RandomIdentifier {
    fileprivate static func random() throws -> Self {
        let (high, low) = try SecureRandom.number()
        return Self(high: high, low: low)
    }
}

/// No published trail: the publisher is not what is measured here.
private struct NoLibrary: TrailLibrary {
    let origin = "gate.example/benchmark"
    func integrate(_ entries: [StoredEntry]) throws -> UInt64 { 0 }
    func publish() throws {}
    func entry(_ index: UInt64) throws -> [UInt8]? { nil }
    func file(_ path: String) throws -> [UInt8]? { nil }
    func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws {}
    func publishKeyset(_ note: [UInt8]) throws {}
}

/// No key is made or changed here.
private struct NoPrivateKeys: PrivateKeys {
    func requirePlace(for purpose: KeyPurpose) {}
    func make(_ purpose: KeyPurpose, at now: Instant) throws -> GatewayKey {
        throw EngineFailure.unavailable("no keys are made here")
    }
    func isLoaded(_ id: String) -> Bool { false }
    func requireReady(for event: KeyEvent, of key: GatewayKey) {}
    func follow(_ keyring: Keyring) {}
    func isFollowed(_ key: GatewayKey) -> Bool { true }
    func erase(_ key: GatewayKey) {}
}
