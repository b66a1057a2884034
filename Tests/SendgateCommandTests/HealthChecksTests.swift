import SealedFormat
import DeliveryRelay
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import Logging
import GateRecords
import Synchronization
import Testing
import UnixSocketEndpoint
import UnixSockets
import WireProtocol

@testable import sendgate

/// What readiness says of the parts around the engine, and how they are put together.
@Suite struct HealthChecksTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private final class SteppedClock: GatewayPipeline.Clock {
        private let wall = Mutex(Instant(milliseconds: 1_795_000_000_000))
        func now() -> Instant { wall.withLock { $0 } }
        func reading() -> ClockReading {
            ClockReading(wall: now(), uptime: now().milliseconds, boot: "first")
        }
        func advance(milliseconds: Int64) { wall.withLock { $0 = $0.advanced(byMilliseconds: milliseconds) } }
    }

    private struct NoLibrary: TrailLibrary {
        let origin = "gate.example/test"
        func integrate(_ entries: [StoredEntry]) throws -> UInt64 { 0 }
        func publish() throws {}
        func entry(_ index: UInt64) throws -> [UInt8]? { nil }
        func file(_ path: String) throws -> [UInt8]? { nil }
        func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws {}
        func publishKeyset(_ note: [UInt8]) throws {}
    }

    @Test func `a trail more than five seconds behind makes the gateway unready`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let real = gate.wiring.healthChecks
        let clock = SteppedClock()
        let publisher = TrailPublisher(
            store: real.store, library: NoLibrary(), clock: clock, mark: { _ in },
            durabilityLost: { fatalError($0) })
        let healthChecks = HealthChecks(
            store: real.store, publisher: publisher, policy: real.policy, clock: clock, health: real.health,
            reloads: real.reloads, keys: real.keys, privateKeys: real.privateKeys, limits: real.limits,
            stateDirectory: real.stateDirectory, persons: real.persons, statePass: real.statePass,
            pruning: real.pruning, endpoint: { nil })
        func trail() -> ReadinessAnswer.Check? { healthChecks.checks().first { $0.name == "trail" } }
        #expect(trail()?.isPassed == true && trail()?.detail == nil)
        // It does not run: what is committed now is never published.
        publisher.entriesWereCommitted()
        for (step, isPassed) in [(0, true), (4_999, true), (1, true), (1, false), (25_000, false)]
            as [(Int64, Bool)]
        {
            clock.advance(milliseconds: step)
            #expect(trail()?.isPassed == isPassed, "after \(step) ms more")
        }
        #expect(trail()?.detail == "the published trail is 30001 ms behind")
        try await gate.stop()
    }

    @Test func `without an origin key the gateway is unready, and a key that waits is named`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let checks = gate.wiring.healthChecks
        func keys() -> ReadinessAnswer.Check? { checks.checks().first { $0.name == "keys" } }
        #expect(keys()?.isPassed == true)
        var keyring = checks.keys.keyring
        let new = GatewayKey(
            id: "dev-origin-new", purpose: .origin, state: .preActivation,
            createdAt: Instant(milliseconds: 1), changedAt: Instant(milliseconds: 1), publicKey: nil)
        _ = try keyring.add(new)
        let old = try #require(keyring.active(.origin)).id
        _ = try keyring.apply(
            .suspend, to: old, because: .request, by: CallerName("dev"), at: Instant(milliseconds: 2))
        try checks.privateKeys.follow(keyring)
        #expect(keys()?.isPassed == false)
        #expect(keys()?.detail?.contains("no origin key is in use") == true)
        #expect(keys()?.detail?.contains("dev-origin-new") == true)
        try await gate.stop()
    }

    @Test func `a key that waits or is suspended and has no file is named, and those with one are not`()
        async throws
    {
        let gate = try await GatewayFixture(in: folder.root)
        let checks = gate.wiring.healthChecks
        func detail() -> String { checks.checks().first { $0.name == "keys" }?.detail ?? "" }
        var keyring = checks.keys.keyring
        let old = try #require(keyring.active(.origin)).id
        let at = Instant(milliseconds: 1)
        _ = try keyring.apply(.suspend, to: old, because: .request, by: CallerName("dev"), at: at)
        func waiting(_ id: String, as state: KeyState) -> Keyring {
            let key = GatewayKey(
                id: id, purpose: .trail, state: state, createdAt: at, changedAt: at, publicKey: nil)
            return Keyring(keys: keyring.keys + [key])
        }
        let made = try checks.privateKeys.make(.trail, at: at)
        for (id, state, isNamed) in [
            (made.id, .preActivation, false), ("dev-trail-gone", .preActivation, true),
            ("dev-trail-gone", .suspended, true), ("dev-trail-gone", .deactivated, false),
        ] as [(String, KeyState, Bool)] {
            try checks.privateKeys.follow(waiting(id, as: state))
            let told = "key `\(id)`, which is `\(state.rawValue)`, cannot come into use"
            #expect(detail().contains(told) == isNamed, "\(id), \(state): \(detail())")
            #expect(!detail().contains("`\(old)`"))
        }
        try await gate.stop()
    }

    @Test func `a keyset that has expired or soon does is named, and its end is in the metrics`() async throws
    {
        let gate = try await GatewayFixture(in: folder.root)
        let checks = gate.wiring.healthChecks
        func keys() -> ReadinessAnswer.Check? { checks.checks().first { $0.name == "keys" } }
        func metric() -> String? {
            checks.metricsText.split(separator: "\n").map(String.init)
                .first { $0.hasPrefix("sendgate_keyset_expiry_timestamp_seconds ") }
        }
        #expect(keys()?.detail?.contains("keyset") != true && metric() == nil)
        let now = UInt64(SystemClock().now().seconds)
        let day: UInt64 = 86_400
        for (expiresAt, told) in [
            (now + 31 * day, nil), (now + 29 * day, "version 7, expires at"),
            (now - 60, "version 7, expired at"),
        ] as [(UInt64, String?)] {
            let keyset = try Keyset(
                gateway: "gate.example/test", version: 7, issuedAt: now - day, expiresAt: expiresAt,
                keys: checks.keys.keyring.keys.compactMap { Keyset.Key($0) })
            let signature = NoteSignature(
                name: "example.com/a", keyID: 1, bytes: [UInt8](repeating: 1, count: 64))
            let note = SignedNote(text: keyset.text, signatures: [signature])
            try checks.store.write { try $0.restoreKeyset(String(decoding: note.bytes, as: UTF8.self)) }
            // No send stops for it.
            #expect(keys()?.isPassed == true)
            let detail = keys()?.detail ?? ""
            #expect(detail.contains(told ?? "keyset") == (told != nil), "\(detail)")
            #expect(metric() == "sendgate_keyset_expiry_timestamp_seconds \(expiresAt)")
        }
        try await gate.stop()
    }

    // MARK: The hop

    private struct Taking: RequestHandler {
        let taken: Counter
        func mayUseReserve(_ peer: Peer) -> Bool { false }
        func handle(
            _ request: WireRequest, from peer: Peer, reply: @escaping @Sendable (Answer) -> Void
        ) {
            taken.add()
            reply(Answer(status: 202, body: []))
        }
    }

    @Test(arguments: [true, false])
    func `only the configured user's hop is given anything`(_ isConfigured: Bool) async throws {
        let taken = Counter()
        let path = folder.path("hop/hop.sock")
        let hop = try UnixSocketEndpoint(
            listeners: [ListenerConfiguration(source: .path(SocketFile(path: path)))],
            handler: Taking(taken: taken), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await hop.start()
        let gate = try await GatewayFixture(
            in: folder.root, hop: .unix(path: path, serverUserIDs: [isConfigured ? geteuid() : geteuid() + 1])
        )
        try await gate.registerSomebody()
        let sent = try await gate.send("one", "security.new_login", GatewayFixture.login)
        #expect(sent.status == 202, "\(sent.object)")
        let relay = Task { try await gate.wiring.relay.run() }
        // Each look is a round through the gateway; the bound is on looks, not on time.
        func look(until isDone: () async throws -> Bool) async throws {
            for _ in 0..<20_000 {
                if try await isDone() { return }
                _ = try await gate.ask("GET", "/v1/types")
            }
            Issue.record("nothing happened")
        }
        let health = gate.wiring.healthChecks.health
        if isConfigured {
            try await look { taken.count == 1 }
            #expect(health.isHopReachable)
        } else {
            try await look { health.obstacle != nil }
            #expect(
                health.obstacle?.contains("is served by uid \(geteuid())") == true, "\(health.obstacle ?? "")"
            )
            #expect(taken.count == 0)
            let waiting = try gate.wiring.healthChecks.store.read { try $0.outboxDepth().rowCount }
            #expect(waiting == 1)
        }
        relay.cancel()
        try await relay.value
        try await gate.stop()
        await hop.shutDown()
    }

    // MARK: Retention

    /// A row of each kind at an age; what is younger than thirty-five days stays, and so does what is never pruned.
    @Test
    func `what is older than thirty-five days goes at the start, and what waits or was agreed to stays`()
        async throws
    {
        let day: Int64 = 86_400_000
        let ages: [(name: UInt64, age: Int64, goes: Bool)] = [
            (1, 400 * day, true), (2, 36 * day, true), (3, 35 * day + 60_000, true),
            (4, 35 * day - 3_600_000, false), (5, 31 * day, false), (6, day, false),
        ]
        let payments = CallerName("payments")
        let offer = TypeID("promo.offer")
        func tag(_ number: UInt64) -> GateVocabulary.Tag { GateVocabulary.Tag(high: 0, low: number) }
        /// A gateway before, which is gone when this returns: one at a time has the state directory.
        func fill() async throws -> (subject: SubjectID, entryCount: UInt64) {
            let first = try await GatewayFixture(in: folder.root)
            try await first.registerSomebody()
            let now = SystemClock().now()
            let store = first.wiring.healthChecks.store
            let subject = try #require(try store.read { try $0.subject(of: UserID("u_42")) }).id
            try store.write { (transaction) throws in
                for (name, age, _) in ages {
                    let (at, send) = (now.advanced(byMilliseconds: -age), SendID(high: 0, low: name))
                    transaction.insertSend(
                        SendRecord(
                            id: send, caller: payments, idHash: Array(repeating: UInt8(name), count: 16),
                            contentMAC: Array(repeating: 0, count: 32), subject: subject, type: offer,
                            category: .marketing, channel: .push, receivedAt: at, entryIndex: 0,
                            requestID: "r\(name)", destinationNames: [:]))
                    transaction.countForward(
                        of: subject, type: offer, category: .marketing, at: at, send: send)
                    transaction.appendEvent(
                        EventRecord(
                            caller: payments, send: send, subject: subject, event: .handedOver,
                            destination: nil,
                            at: at, reason: nil))
                    transaction.putDedupe(
                        DedupeRecord(eventTag: tag(name), send: send, at: at), to: subject)
                }
                let choice = PreferenceRecord(
                    subject: subject, scope: "marketing", channel: .push, destination: nil, state: .userOff,
                    source: .inAppSettings, at: now.advanced(byMilliseconds: -4_000 * day), caller: payments)
                try transaction.apply(.preference(choice), to: subject)
                transaction.putDuty(
                    DutyRecord(
                        duty: tag(99), subject: subject, state: .owed, send: SendID(high: 0, low: 1),
                        caller: payments, type: TypeID("transaction.failed"), mustGoBy: "email",
                        within: "a day",
                        dueAt: now.advanced(byMilliseconds: 400 * day)))
            }
            let entryCount = try store.read { try $0.entryCount() }
            try await first.stop()
            return (subject, entryCount)
        }
        let (subject, entryCount) = try await fill()

        let gate = try await GatewayFixture(in: folder.root)
        let kept = gate.wiring.healthChecks.store
        var looksLeft = 20_000
        while looksLeft > 0, try kept.read({ try $0.send(SendID(high: 0, low: 3)) }) != nil {
            looksLeft -= 1
            _ = try await gate.ask("GET", "/v1/types")
        }
        try kept.read { (store) throws in
            for (name, age, goes) in ages {
                let send = SendID(high: 0, low: name)
                let what = "\(Double(age) / Double(day)) days"
                #expect((try store.send(send) == nil) == goes, "the id of \(what)")
                #expect(try store.events(of: send).isEmpty == goes, "the event of \(what)")
                #expect(
                    (try store.dedupeRecord(tag(name), to: subject) == nil) == goes,
                    "what was told \(what) ago")
            }
            let forwards = try store.forwards(of: subject, since: Instant(milliseconds: 0), limit: 99)
            #expect(forwards.count == ages.count { !$0.goes })
            // No entry tells of the choice, so the pass over what is stored may have closed the account besides.
            #expect(try Set(store.preferences(of: subject).map(\.state)) == [.userOff])
            #expect(try store.duty(tag(99), of: subject) != nil)
            #expect(try store.recipient(subject) != nil && store.devices(of: subject).count == 1)
            #expect(try store.entryCount() > entryCount)
            #expect(try store.entries(from: 0, limit: 99).count == Int(try store.entryCount()))
        }
        try await gate.stop()
    }
}

/// A count that several may hold.
private final class Counter: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock { $0 } }
    func add() { value.withLock { $0 += 1 } }
}

extension HealthChecks {
    /// What the outer layers add to `/metrics`.
    var metricsText: String {
        var page = Exposition()
        addMetrics(to: &page)
        return page.text
    }
}
