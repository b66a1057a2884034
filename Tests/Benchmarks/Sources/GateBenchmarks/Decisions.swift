import AuditTrail
import BundleModel
import BundleModel
import CompliancePolicy
import GateRecords
import GateTestKit
import GateVocabulary
import OpenSSLCrypto
import PolicyFiles
import SendPlanning

/// Deciding, writing a decision down, and deciding it again from what was written.
struct Decisions {
    let policy: CompiledPolicy
    private let facts = Facts.ready
    private let forwarded = AttestedRequest(
        caller: CallerName("payments"), type: TypeID("transaction.remittance_sent"), channel: .push,
        critical: false)
    private let refused = AttestedRequest(
        caller: CallerName("marketing"), type: TypeID("promo.offer"), channel: .push, critical: false)

    /// - Parameter folder: Of the product's own bundle.
    init(policies folder: String) throws {
        policy = CompiledPolicy(try PolicyBundle.read(documents: PolicyDirectory.read(at: folder)).get())
    }

    private var unconsented: Facts { facts.with { $0.consent = nil } }

    func findings() throws -> [Finding] {
        precondition(decide(forwarded, given: facts, under: policy).outcome == .forward)
        precondition(!decide(refused, given: unconsented, under: policy).outcome.isPromise)
        let entry = self.entry()
        let bytes = try entry.bytes(index: 1, time: .utc("2026-03-02T12:00:00Z"))
        precondition(replay(bytes) { _ in policy } == .same)
        let forwarding = try decisionCost(forwarded, facts)
        let refusing = try decisionCost(refused, unconsented)
        let hashing = try Stopwatch.nanoseconds { _ in
            Stopwatch.consume(SHA256.digest(bytes))
        }
        let encoding = try Stopwatch.nanoseconds { call in
            Stopwatch.consume(
                try entry.bytes(index: UInt64(call), time: .utc("2026-03-02T12:00:00Z")).count)
        }
        let replaying = try Stopwatch.nanoseconds { _ in
            Stopwatch.consume(replay(bytes) { _ in policy } == .same)
        }
        return [
            decision("decide, forward, full trace", forwarding),
            decision("decide, refuse, full trace", refusing),
            allocations(),
            .ratio(
                "encode an entry of \(bytes.count) B", nanoseconds: encoding, floor: hashing,
                "SHA-256 of it", atLeast: nil),
            Finding(
                what: "audit replay", measured: "\(Int(1e9 / replaying)) decisions/s",
                floor: "\(Int(100 * (forwarding + encoding) / replaying)) % of deciding and encoding alone",
                promise: "at least 100000 a second", isKept: 1e9 / replaying >= 100_000),
        ]
    }

    private func decisionCost(_ request: AttestedRequest, _ facts: Facts) throws -> Double {
        // Two seconds: a neighbour on the same processor's other half slows it down for longer than a few rounds.
        try Stopwatch.nanoseconds(rounds: 61) { _ in
            Stopwatch.consume(decide(request, given: facts, under: policy).reason)
        }
    }

    private func allocations() -> Finding {
        let decisions = 10_000
        let made = Allocations.count {
            for _ in 0..<decisions {
                Stopwatch.consume(decide(forwarded, given: facts, under: policy).reason)
            }
        }
        let known = Allocations.count { Stopwatch.consume([UInt8](repeating: 1, count: decisions).count) }
        // Where an array is not seen, nothing is.
        let isWatched = known.map { $0 > 0 } ?? false
        return Finding(
            what: "allocations in \(decisions) forwards", measured: made.map { "\($0)" } ?? "not watched",
            floor: "-", promise: "none", isKept: isWatched ? made == 0 : nil)
    }

    private func decision(_ what: String, _ nanoseconds: Double) -> Finding {
        Finding(
            what: what, measured: "\(Int(nanoseconds)) ns", floor: "-", promise: "at most 100 ns",
            isKept: nanoseconds <= 100)
    }

    /// What a forwarded send leaves in the trail.
    private func entry() -> SendEntry {
        SendEntry(
            send: SendID(high: 1, low: 2), subject: SubjectID(high: 3, low: 4), caller: forwarded.caller,
            peer: .init(userID: 1001, groupID: 1001, processID: 4711),
            request: .init(
                type: forwarded.type, channel: forwarded.channel, critical: forwarded.critical,
                idTag: Tag(high: 5, low: 6), locale: "nb"),
            paramsVerdict: [],
            deliveries: [
                .init(
                    destination: Tag(high: 7, low: 8), message: MessageID(high: 9, low: 10), facts: facts,
                    decision: decide(forwarded, given: facts, under: policy), key: KeyID(high: 11, low: 12),
                    byteCount: 1_480)
            ], policy: policy.digest, tzdata: "2026a")
    }
}
