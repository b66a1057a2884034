import CanonicalJSON
import GateVocabulary
import Testing

@testable import AuditTrail
@testable import GateRecords

/// An entry that names a policy names the one in force.
@Suite struct BundlesInForceTests {
    private static let digests = ["a", "b"].map { String(repeating: $0, count: 64) }

    /// Entries by their kinds, each with the policy of this place in ``digests``; a `restore` cites what is before it.
    private static func trail(_ entries: [(kind: String, policy: Int?)]) throws -> MemoryTrail {
        var encoded: [[UInt8]] = []
        for entry in entries {
            let (index, time) = (UInt64(encoded.count), Instant(milliseconds: 1))
            if EntryKind(entry.kind) == .restore {
                let before = Checkpoint(
                    origin: MemoryTrail.origin, size: index,
                    root: reference(encoded.map { TreeHash.leaf($0) }))
                let restore = RestoreEntry(
                    origin: MemoryTrail.origin, previous: before.head, backupSize: index, isTailLost: false,
                    user: 0)
                encoded.append(try restore.bytes(index: index, time: time))
                continue
            }
            let members: JSONObject = entry.policy.map { ["policy": .string(digests[$0])] } ?? ["n": 1]
            encoded.append(
                try TrailEntry(
                    kind: EntryKind(entry.kind), index: index, time: time, members: members
                ).encoded().bytes)
        }
        return try MemoryTrail(entries: encoded)
    }

    private static func damage(of entries: [(kind: String, policy: Int?)]) throws -> TrailDamage? {
        try TrailVerifier(trail(entries), trusting: MemoryTrail.trust).verify().damage
    }

    @Test func `what is decided under the bundle of the newest start or activation is whole`() throws {
        let damage = try Self.damage(of: [
            ("unknown_peer", nil), ("start", 0), ("send", 0), ("policy", 1), ("send", 1), ("redecision", 1),
            ("mandatory_unreached", 1), ("policy_refused", 1), ("stop", 1), ("restore", nil), ("start", 0),
            ("send", 0),
        ])
        #expect(damage == nil)
    }

    @Test(arguments: ["send", "redecision", "mandatory_unreached", "policy_refused", "stop", "one_day_added"])
    func `an entry of any kind that names another is named, with the entry that put the right one in force`(
        kind: String
    ) throws {
        let found = try Self.damage(of: [("start", 0), ("policy", 1), ("send", 1), (kind, 0)])
        let expected = BundlesInForce.Break(
            index: 3, named: PolicyDigest(Self.digests[0]),
            inForce: .init(policy: PolicyDigest(Self.digests[1]), since: 1))
        guard case .policy(_, let broken) = found else {
            Issue.record("\(String(describing: found))")
            return
        }
        #expect(broken == expected)
        #expect(found?.firstEntry == 3 && found?.hint == BundlesInForce.Break.hint)
        #expect(
            found?.message.contains("entry 3 names") == true && found?.message.contains("entry 1 put") == true
        )
    }

    @Test func `before the first start no policy can be named`() throws {
        let found = try Self.damage(of: [("send", 0), ("start", 0)])
        #expect(found?.firstEntry == 0 && found?.message.contains("no `start` or `policy` entry") == true)
    }
}
