import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import OpenSSLCrypto
import SealedFormat
import SendPlanning
import Testing

@testable import GateRecords
@testable import GateSteps

/// From a snapshot and the entries behind it the folds go on as from all entries.
@Suite struct PrunedFoldTests {
    /// A published trail in memory.
    private struct Trail: TrailReader {
        static let signer = NoteSigner(
            name: "test.example/trail",
            key: try! Ed25519PrivateKey(seed: SecretBytes(copying: [UInt8](repeating: 7, count: 32))))!
        static let trust = TrailTrust(origin: "test.example/trail", keys: [signer.verifierKey])
        static let lookBackDays = 90

        var files: [TrailPath: [UInt8]] = [:]
        var size: UInt64

        init(_ entries: [[UInt8]]) throws {
            var edge = TrailEdge()
            for entry in entries {
                for file in edge.append(entry, leafHash: TreeHash.leaf(entry)) {
                    files[file.path] = file.bytes
                }
            }
            for file in edge.partials { files[file.path] = file.bytes }
            size = edge.size
            files[.checkpoint] = try Checkpoint(
                origin: "test.example/trail", size: size, root: edge.root
            ).signed(by: [Self.signer])
        }

        /// The same entries with one more behind them, and those before a size pruned.
        static func pruned(_ entries: [[UInt8]], before size: UInt64) throws -> Trail {
            let maker = SnapshotMaker(try Trail(entries), treeSize: UInt64(entries.count), after: nil)
            let plan = try #require(try maker.plan(before: Instant(milliseconds: .max), sizeMax: size))
            var segments: [[UInt8]] = []
            let entry = try maker.make(plan, keepDays: 400, lookBackDays: lookBackDays) {
                segments.append($1)
            }
            let time = try TrailEntry(reading: entries[entries.count - 1]).time
            let head = SnapshotHead(entry, recordedAs: UInt64(entries.count))
            var trail = try Trail(entries + [try entry.bytes(index: head.index, time: time)])
            trail.files[.snapshot] = head.bytes
            for (number, bytes) in segments.enumerated() {
                trail.files[.segment(size: size, number: number)] = bytes
            }
            for index in 0..<size >> 8 { trail.files[.entries(index: index, width: 256)] = nil }
            return trail
        }

        func read(_ path: TrailPath, into buffer: inout [UInt8]) throws -> Int? {
            guard let bytes = files[path] else { return nil }
            buffer = bytes + buffer.dropFirst(bytes.count)
            return bytes.count
        }

        func byteCount(of path: TrailPath) throws -> Int? { files[path]?.count }
    }

    /// What two folds of the same trail come to.
    private struct Told: Equatable {
        var people: [SubjectID: RecipientState]
        var ledgers: [SubjectID: [ConsentRecord]]
        var choices: [SubjectID: [PreferenceRecord]]
        var keyring: [GatewayKey]
        var policy: PolicyDigest?
        var keyset: String?
        var next: UInt64
    }

    private func told(_ trail: Trail) throws -> Told {
        var fold = StateFold(sendsSince: .longAgo)
        let report = try TrailVerifier(trail, trusting: Trail.trust, examining: .hashing).verify {
            try fold.apply(Array($0.bytes))
        }
        try #require(report.damage == nil, "\(report.damage?.message ?? "")")
        return Told(
            people: fold.told.people, ledgers: fold.told.ledgers, choices: fold.told.choices,
            keyring: fold.keyring.keys, policy: fold.policyInForce, keyset: fold.keysetDigest,
            next: fold.next)
    }

    /// Replays a trail from its first entry on, or from its snapshot.
    private func replay(
        _ trail: Trail, _ policy: CompiledPolicy
    ) throws -> (fold: EvidenceFold, standings: [EntryStanding], found: [String]) {
        var fold = EvidenceFold()
        var (standings, found): ([EntryStanding], [String]) = ([], [])
        let report = try TrailVerifier(trail, trusting: Trail.trust, examining: .schema(.version1)).verify {
            let (differences, objection) = try fold.follow($0) { $0 == policy.digest ? policy : nil }
            standings.append($0.standing)
            found += differences.map { "\($0)" } + [objection?.description].compactMap(\.self)
        }
        try #require(report.damage == nil, "\(report.damage?.message ?? "")")
        return (fold, standings, found)
    }

    /// A life, a pause that nothing reaches over, and another life.
    private func lives(_ acts: Int, _ seed: UInt64) async throws -> (gate: GatewayHarness, entries: [[UInt8]])
    {
        let gate = try GatewayHarness(opening: { step, now in
            try step.recordStart(step.policy, version: "test", keys: [], at: now)
        })
        var random = SeededNumbers(seed: seed)
        try await EvidenceFoldTests().live(gate, acts: acts, &random)
        for message in try waiting(
            in: try gate.store.read { try $0.entries(from: 0, limit: 20_000) }.map(\.bytes))
        {
            try await gate.gateway.report(message, .accepted(status: 202, byProvider: false), retryAt: nil)
        }
        // In a gateway that runs what waits ends in time.
        for _ in 0..<5 {
            gate.clock.advance(seconds: Int64(Trail.lookBackDays / 5 + 1) * 86_400)
            for lane in [DeliveryLane.general, .security] {
                while case let claimed = try await gate.claim(lane), !claimed.isEmpty {
                    for delivery in claimed {
                        try await gate.gateway.report(
                            delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
                    }
                }
            }
        }
        try await EvidenceFoldTests().live(gate, acts: acts / 2, &random)
        return (gate, try gate.store.read { try $0.entries(from: 0, limit: 20_000) }.map(\.bytes))
    }

    /// Messages that the life before left with the hop.
    private func waiting(in entries: [[UInt8]]) throws -> Set<MessageID> {
        var waiting: Set<MessageID> = []
        func id(_ value: JSONValue?) -> MessageID? {
            value?.stringValue.flatMap { MessageID(uuidText: $0) }
        }
        for entry in try entries.map({ try TrailEntry(reading: $0) }) {
            switch entry.kind {
            case .send:
                let deliveries = entry.members["deliveries"]?.arrayValue ?? []
                waiting.formUnion(deliveries.compactMap { id($0["message_id"]) })
            case .delivery, .unsent:
                if let ended = id(entry.members["message_id"]) { waiting.remove(ended) }
            default: break
            }
        }
        return waiting
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `a replay from a snapshot finds what one from the first entry finds, and nothing else`(
        seed: UInt64
    ) async throws {
        let (gate, entries) = try await lives(900, seed)
        let whole = try replay(try Trail(entries), gate.policy)
        #expect(whole.found.isEmpty, "\(whole.found.prefix(3))")
        let all = try told(Trail(entries))
        let sizes = stride(from: 256, through: entries.count - 64, by: 256).map { UInt64($0) }
        #expect(sizes.count >= 2)
        for size in sizes {
            let trail = try Trail.pruned(entries, before: size)
            let pruned = try replay(trail, gate.policy)
            #expect(pruned.found.isEmpty, "\(size): \(pruned.found.prefix(3))")
            #expect(pruned.fold.people == whole.fold.people, "\(size)")
            #expect(pruned.fold.ledgers == whole.fold.ledgers && pruned.fold.choices == whole.fold.choices)
            #expect(pruned.fold.acts.notices == whole.fold.acts.notices)
            #expect(pruned.fold.acts.policy?.digest == whole.fold.acts.policy?.digest)
            var expected = all
            expected.next += 1
            #expect(try told(trail) == expected, "\(size)")
        }
        let first = try replay(try Trail.pruned(entries, before: 256), gate.policy)
        #expect(first.standings.filter { $0 == .whole }.count > 50)
    }

    /// Forged behind the pause, where all that an entry may rest on is there again.
    @Test func `what the gate would have refused is named behind a snapshot, too`() async throws {
        let (gate, entries) = try await lives(900, 3)
        let trail = try Trail.pruned(entries, before: 256)
        let honest = try replay(trail, gate.policy)
        #expect(honest.found.isEmpty, "\(honest.found.prefix(3))")
        let firstWhole = try #require(
            try TrailVerifier(trail, trusting: Trail.trust).verify().firstWhole?.index)
        // Of every consent behind it, one byte of what it says was before.
        var named = 0
        for index in Int(firstWhole)..<entries.count {
            let entry = try TrailEntry(reading: entries[index])
            guard entry.kind == .consent || entry.kind == .send, named < 4 else { continue }
            var forged = entry
            if entry.kind == .consent {
                forged.members["previous"] = .string(String(repeating: "0", count: 64))
            } else {
                guard let deliveries = entry.members["deliveries"]?.arrayValue,
                    var delivery = deliveries.first?.objectValue,
                    var facts = delivery["facts"]?.objectValue, facts["privacy"] != nil
                else { continue }
                facts["privacy"] = facts["privacy"] == "full" ? "hidden" : "full"
                delivery["facts"] = .object(facts)
                forged.members["deliveries"] = .array([.object(delivery)] + deliveries.dropFirst())
            }
            named += 1
            var changed = Array(entries[...index])
            changed[index] = try forged.encoded().bytes
            let found = try replay(try Trail.pruned(changed, before: 256), gate.policy).found
            #expect(!found.isEmpty, "entry \(index), \(entry.kind)")
        }
        #expect(named == 4)
    }
}
