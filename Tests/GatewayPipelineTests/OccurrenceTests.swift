import CanonicalJSON
import Foundation
import GateVocabulary
import SQLiteStore
import Testing

@testable import GateSteps
@testable import GatewayPipeline

/// Counts of what is not an entry each: the entries add up to what happened.
@Suite struct OccurrenceTests {
    private func counts(_ kind: String, _ gate: GatewayHarness) async throws -> [Int64] {
        await gate.settle()
        return try gate.store.read { try $0.entries(from: 0, limit: 9_999) }.compactMap {
            let entry = try CanonicalJSON.read($0.bytes)
            return entry["kind"]?.stringValue == kind ? entry["count"]?.integerValue : nil
        }
    }

    @Test func `what unknown peers tried adds up, whether or not they come back`() async throws {
        let gate = try GatewayHarness()
        for round in 0..<3 {
            for _ in 0..<10 { #expect(try await gate.call("nobody", "GET", "/v1/types").status == 401) }
            #expect(try await counts("unknown_peer", gate).count == round + 1)
            gate.clock.advance(seconds: 61)
        }
        #expect(try await counts("unknown_peer", gate) == [1, 10, 10])
        // None comes back; the sweep says the rest.
        gate.gateway.recordCounts()
        #expect(try await counts("unknown_peer", gate).reduce(0, +) == 30)
        gate.clock.advance(seconds: 61)
        gate.gateway.recordCounts()
        #expect(try await counts("unknown_peer", gate).count == 4)
    }

    @Test func `explanations of stored people add up and none is counted twice`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let body = GatewayHarness.remittance("x", to: "u_1")
        var answered: Int64 = 0
        for seconds in [0, 10, 70, 1, 200] {
            gate.clock.advance(seconds: Int64(seconds))
            let reply = try await gate.call("auditor", "POST", "/v1/sends/explain", body)
            try #require(reply.status == 200, "\(reply.json)")
            answered += 1
        }
        gate.gateway.recordCounts(isLast: true)
        #expect(try await counts("explain", gate).reduce(0, +) == answered)
    }

    @Test func `explanations of stored people have a rate, minute by minute`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let body = GatewayHarness.remittance("x", to: "u_1")
        for _ in 0..<600 {
            try #require(try await gate.call("auditor", "POST", "/v1/sends/explain", body).status == 200)
        }
        let refused = try await gate.call("auditor", "POST", "/v1/sends/explain", body)
        #expect(refused.status == 429 && refused["type"] == "urn:sendgate:problem:rate_limited")
        gate.clock.advance(seconds: 60)
        #expect(try await gate.call("auditor", "POST", "/v1/sends/explain", body).status == 200)
    }

    @Test func `a count whose entry is refused is said by a later one`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        // Every entry is refused while the clock stands before the newest one.
        gate.clock.step(seconds: -3_600)
        for _ in 0..<7 { _ = try await gate.call("nobody", "GET", "/v1/types") }
        #expect(try await counts("unknown_peer", gate).isEmpty)
        gate.clock.step(seconds: 3_600)
        gate.clock.advance(seconds: 61)
        gate.gateway.recordCounts()
        #expect(try await counts("unknown_peer", gate) == [7])
    }

    @Test
    func `any order of occurrences, commits, refusals and sweeps adds up, beyond the keys there is room for`()
    {
        for seed in 1...200 as ClosedRange<UInt64> {
            var state = seed &* 0x9E37_79B9_7F4A_7C15
            func next(_ bound: UInt64) -> Int {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return Int((state >> 33) % bound)
            }
            let meter = OccurrenceMeter<Int>(keyCountMax: 3, overflow: -1)
            var (uptime, happened, recorded) = (Int64(0), 0, 0)
            var underWay: [OccurrenceMeter<Int>.Count] = []
            for _ in 0..<300 {
                uptime += Int64(next(20_000))
                switch next(4) {
                case 0, 1:
                    happened += 1
                    if let count = meter.record(next(6), at: uptime) { underWay.append(count) }
                case 2: underWay += meter.takeDue(at: uptime)
                default:
                    guard !underWay.isEmpty else { continue }
                    let count = underWay.remove(at: next(UInt64(underWay.count)))
                    if next(2) == 0 {
                        meter.refused(count)
                    } else {
                        meter.committed(count)
                        recorded += count.count
                    }
                }
            }
            for count in underWay {
                meter.committed(count)
                recorded += count.count
            }
            recorded += meter.takeDue(at: uptime, isLast: true).reduce(0) { $0 + $1.count }
            #expect(recorded == happened, "seed \(seed)")
        }
    }
}
