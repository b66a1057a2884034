import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Dispatch
import GateRecords
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Testing

/// Which bundle an activation puts in force.
@Suite struct ActivationTests {
    private static func edited(_ hours: Int) throws -> CompiledPolicy {
        try GatewayHarness.policy(
            caps: """
                categories: {}
                types:
                  transfer.received:
                    - {count: 2, window_hours: \(hours), source: a test, because: It is short., reviewed: "2026-11-02"}
                """)
    }

    @Test func `only the bundle that was reviewed comes into force, and another leaves nothing`() async throws
    {
        let gate = try GatewayHarness()
        let (reviewed, swapped) = (try Self.edited(1), try Self.edited(2))
        gate.configure(swapped)
        let entryCount = try gate.entries().count
        for digest in [reviewed.digest, gate.policy.digest] {
            let reply = try await gate.call(
                "keys-team", "POST", "/v1/policy/activate", ["digest": .string(digest.text)])
            #expect(
                reply.status == 409 && reply["type"] == "urn:sendgate:problem:policy_mismatch",
                "\(reply.json)")
            #expect(reply["detail"]?.contains(swapped.digest.text) == true)
        }
        #expect(gate.inForce.current.digest == gate.policy.digest)
        #expect(try gate.entries().count == entryCount)
        try await gate.activate(swapped)
        #expect(gate.inForce.current.digest == swapped.digest)
        // Replay finds it, and a restart knows what was in force.
        #expect(gate.library.archived(swapped.digest) == swapped.bundle.canonicalJSON)
        #expect(try gate.store.read { try $0.activatedPolicy() } == ActivatedPolicy(swapped))
    }

    @Test func `under load, nothing behind the entry of a new bundle is decided under the one before`()
        async throws
    {
        let gate = try GatewayHarness()
        for number in 0..<4 { try await gate.register("u_\(number)") }
        let next = try Self.edited(1)
        gate.configure(next)
        // Everything comes while the engine is busy, so that it queues up as one batch.
        let hold = HoldOperation()
        gate.engine.submit(hold)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                hold.entered.wait()
                continuation.resume()
            }
        }
        async let activated = gate.call(
            "keys-team", "POST", "/v1/policy/activate", ["digest": .string(next.digest.text)])
        let sends = (0..<40).map { number in
            Task {
                try await gate.call(
                    "payments", "POST", "/v1/sends",
                    GatewayHarness.remittance("r\(number)", to: "u_\(number % 4)"))
            }
        }
        while gate.engine.load.queuedCount < 41 { await Task.yield() }
        hold.release.signal()
        #expect(try await activated.status == 200)
        for send in sends { #expect(try await send.value.status == 202) }
        var bundles = BundlesInForce()
        let start = StartEntry(policy: gate.policy.digest, approvals: [], tzdata: "", version: "1")
        _ = bundles.follow(try TrailEntry(reading: start.bytes(index: 0, time: gate.clock.now())))
        var counts: [String: Int] = [:]
        for stored in try gate.entries() {
            let entry = try TrailEntry(reading: stored.bytes)
            #expect(bundles.follow(entry) == nil)
            if let named = entry.members["policy"]?.stringValue { counts[named, default: 0] += 1 }
        }
        #expect(counts.values.reduce(0, +) == 41)
        // The security lane goes first.
        #expect(counts[next.digest.text] ?? 0 > 1, "\(counts)")
    }
}

/// How many places one person can be reached at.
@Suite struct DestinationCountTests {
    @Test func `a person has twenty devices and twenty addresses, and no more`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1", device: nil)
        func device(_ number: Int, zone: String = "Europe/Berlin") async throws -> GatewayHarness.Reply {
            try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/devices/d_\(number)",
                [
                    "platform": "ios", "app": "no.getdrop.app",
                    "token": .string(apnsToken("token-\(number)")),
                    "time_zone": .string(zone), "os_permission": "granted", "critical_alerts": true,
                ])
        }
        func address(_ number: Int, value: Int? = nil) async throws -> GatewayHarness.Reply {
            try await gate.call(
                "product", "PUT", "/v1/recipients/u_1/addresses/a_\(number)",
                [
                    "kind": "email", "value": .string("u\(value ?? number)@example.com"),
                    "verified_at": "2026-11-01T12:00:00Z",
                ])
        }
        for number in 1...20 {
            #expect(try await device(number).status == 200)
            #expect(try await address(number).status == 200)
        }
        for reply in [try await device(21), try await address(21)] {
            #expect(
                reply.status >= 400 && reply["type"] == "urn:sendgate:problem:too_many_destinations",
                "\(reply.json)")
        }
        // Those that are there may change, and one that goes makes room.
        #expect(try await device(20, zone: "Europe/Oslo").status == 200)
        #expect(try await address(20, value: 99).status == 200)
        for place in ["devices/d_1", "addresses/a_1"] {
            #expect(try await gate.call("product", "DELETE", "/v1/recipients/u_1/" + place).status == 200)
        }
        #expect(try await device(21).status == 200)
        #expect(try await address(21).status == 200)
    }
}
