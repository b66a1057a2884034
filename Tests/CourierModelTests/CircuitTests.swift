import CourierModel
import GateVocabulary
import Testing

@Suite struct CircuitTests {
    private static let outage = DeliveryOutcome.later(reason: "Shutdown", seconds: nil, scope: .app)
    private static let taken = DeliveryOutcome.accepted(providerID: nil)

    private static func pass(_ circuit: inout Circuit, at now: Int64) throws -> Circuit.Pass {
        guard case .go(let pass) = circuit.admit(at: now) else { throw Refused() }
        return pass
    }

    private struct Refused: Error {}

    /// A circuit that one "later" for the app opened at 0, without jitter: closed again after 500 ms.
    private static func opened(by outcome: DeliveryOutcome = outage) throws -> Circuit {
        var circuit = Circuit()
        circuit.finished(outcome, pass: try pass(&circuit, at: 0), at: 0, jitter: 0)
        return circuit
    }

    @Test(arguments: [
        (CircuitTests.taken, false), (.failed(reason: "x"), false), (.tokenGone(reason: "x", at: nil), false),
        (.later(reason: "x", seconds: 9, scope: .message), false),
        (.ambiguous(reason: "x", mayRepeat: true), false),
        (CircuitTests.outage, true), (.misconfigured(reason: "x"), true),
    ])
    func `only what concerns the whole app opens its circuit`(_ outcome: DeliveryOutcome, _ isOpen: Bool)
        throws
    {
        let circuit = try Self.opened(by: outcome)
        #expect((circuit.cause != nil) == isOpen)
        #expect(circuit.cause?.isConfiguration ?? false == (outcome == .misconfigured(reason: "x")))
    }

    @Test func `an open circuit answers at once, with the seconds that are left and the reason`() throws {
        var circuit = try Self.opened(by: .later(reason: "TooManyRequests", seconds: 7, scope: .app))
        #expect(circuit.admit(at: 1) == .wait(seconds: 7, reason: "TooManyRequests"))
        #expect(circuit.admit(at: 6_001) == .wait(seconds: 1, reason: "TooManyRequests"))
        #expect(circuit.admit(at: 6_999) == .wait(seconds: 1, reason: "TooManyRequests"))
    }

    @Test func `after the pause one order tries, and its success closes the circuit`() throws {
        var circuit = try Self.opened()
        let probe = try Self.pass(&circuit, at: 500)
        #expect(circuit.admit(at: 500) == .wait(seconds: 1, reason: "Shutdown"))
        circuit.finished(Self.taken, pass: probe, at: 600, jitter: 0)
        #expect(circuit.cause == nil)
        _ = try Self.pass(&circuit, at: 600)
        _ = try Self.pass(&circuit, at: 600)
    }

    @Test func `each failed try doubles the pause, up to a minute, and jitter takes at most half`() throws {
        var circuit = try Self.opened()
        var now: Int64 = 500
        var probe = try Self.pass(&circuit, at: now)
        var pauses: [Int64] = []
        for _ in 0..<8 {
            let before = now
            circuit.finished(Self.outage, pass: probe, at: now, jitter: 0)
            waiting: while true {
                switch circuit.admit(at: now) {
                case .wait: now += 500
                case .go(let pass):
                    probe = pass
                    break waiting
                }
            }
            pauses.append(now - before)
        }
        #expect(pauses == [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
        var late = Circuit()
        late.finished(Self.outage, pass: try Self.pass(&late, at: 0), at: 0, jitter: 0.999)
        #expect(late.admit(at: 998) == .wait(seconds: 1, reason: "Shutdown"))
        _ = try Self.pass(&late, at: 1_000)
    }

    @Test func `orders that were under way when the circuit opened neither lengthen its pause nor close it`()
        throws
    {
        var circuit = Circuit()
        let passes = try (0..<500).map { _ in try Self.pass(&circuit, at: 0) }
        for pass in passes { circuit.finished(Self.outage, pass: pass, at: 10, jitter: 0) }
        #expect(circuit.admit(at: 509) == .wait(seconds: 1, reason: "Shutdown"))
        circuit.finished(Self.taken, pass: passes[0], at: 20, jitter: 0)
        #expect(circuit.cause != nil)
        _ = try Self.pass(&circuit, at: 510)
    }

    @Test func `a longer Retry-After of an order that was under way counts`() throws {
        var circuit = Circuit()
        let (first, second) = (try Self.pass(&circuit, at: 0), try Self.pass(&circuit, at: 0))
        circuit.finished(Self.outage, pass: first, at: 0, jitter: 0)
        circuit.finished(.later(reason: "x", seconds: 30, scope: .app), pass: second, at: 0, jitter: 0)
        #expect(circuit.admit(at: 1_000) == .wait(seconds: 29, reason: "Shutdown"))
    }

    @Test func `a try without an answer keeps the circuit open, and one that says nothing lets the next try`()
        throws
    {
        var circuit = try Self.opened()
        circuit.finished(
            .ambiguous(reason: "no answer", mayRepeat: true), pass: try Self.pass(&circuit, at: 500), at: 500,
            jitter: 0)
        #expect(circuit.admit(at: 1_000) == .wait(seconds: 1, reason: "no answer"))
        circuit.finished(.tooLate, pass: try Self.pass(&circuit, at: 1_500), at: 1_500, jitter: 0)
        #expect(circuit.cause != nil)
        _ = try Self.pass(&circuit, at: 1_500)
    }

    @Test func `orders without an answer open the circuit when none between them had one`() throws {
        var circuit = Circuit()
        func finish(_ outcome: DeliveryOutcome, _ count: Int) throws {
            let passes = try (0..<count).map { _ in try Self.pass(&circuit, at: 0) }
            for pass in passes { circuit.finished(outcome, pass: pass, at: 0, jitter: 0) }
        }
        let silence = DeliveryOutcome.ambiguous(reason: "unanswered", mayRepeat: false)
        try finish(silence, Circuit.unansweredCountMax - 1)
        try finish(Self.taken, 1)
        try finish(silence, Circuit.unansweredCountMax - 1)
        // Of these the provider was not asked: an earlier process had begun to hand them over.
        try finish(.interrupted, 20)
        #expect(circuit.cause == nil)
        // Those under way at that moment count as one opening.
        try finish(silence, 20)
        #expect(circuit.cause == Circuit.Cause(reason: "unanswered", isConfiguration: false))
        #expect(circuit.admit(at: 0) == .wait(seconds: 1, reason: "unanswered"))
        let probe = try Self.pass(&circuit, at: 500)
        circuit.finished(Self.taken, pass: probe, at: 500, jitter: 0)
        #expect(circuit.cause == nil)
    }

    @Test func `a Retry-After of a day is followed for a quarter of an hour`() throws {
        var circuit = try Self.opened(by: .later(reason: "x", seconds: 86_400, scope: .app))
        #expect(circuit.admit(at: 0) == .wait(seconds: 900, reason: "x"))
        _ = try Self.pass(&circuit, at: 900_000)
    }

    @Test func `credentials that were read again let the next order try`() throws {
        var circuit = try Self.opened(by: .misconfigured(reason: "InvalidProviderToken"))
        circuit.retry(at: 1)
        circuit.finished(Self.taken, pass: try Self.pass(&circuit, at: 1), at: 2, jitter: 0)
        #expect(circuit.cause == nil)
    }

    @Test func `the longest Retry-After is followed for as long as any`() {
        let now = Instant(milliseconds: 0)
        #expect(RetryAfter.seconds("9223372036854775807", at: now) == RetryAfter.secondsMax)
        var circuit = Circuit()
        guard case .go(let pass) = circuit.admit(at: 0) else { return _ = Issue.record("closed") }
        circuit.finished(
            .later(reason: "x", seconds: .max, scope: .app), pass: pass, at: 0, jitter: 0)
        #expect(
            circuit.admit(at: 0)
                == .wait(seconds: Int(Circuit.retryAfterMillisecondsMax / 1_000), reason: "x"))
    }

    @Test(arguments: [
        DeliveryOutcome.failed(reason: "token_malformed"),
        .later(reason: "journal_unavailable", seconds: nil, scope: .app),
    ])
    func `an order that never reached the provider neither closes nor opens`(local: DeliveryOutcome) {
        var circuit = Circuit()
        guard case .go(let first) = circuit.admit(at: 0) else { return _ = Issue.record("closed") }
        circuit.finished(local, pass: first, at: 0, jitter: 0)
        #expect(circuit.cause == nil)
        circuit.finished(
            .later(reason: "x", seconds: nil, scope: .app), pass: first, at: 0, jitter: 0)
        guard case .go(let probe) = circuit.admit(at: 60_000) else { return _ = Issue.record("open") }
        circuit.finished(local, pass: probe, at: 60_000, jitter: 0)
        #expect(circuit.cause?.reason == "x")
        // The next one tries at once.
        guard case .go = circuit.admit(at: 60_000) else { return _ = Issue.record("held") }
    }
}
