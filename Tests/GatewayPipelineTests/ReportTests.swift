import CanonicalJSON
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import SQLiteStore
import Testing

/// What the hop made of a message, as row, entry and event: the table a second time, by hand.
@Suite struct ReportTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var result: HopResult
        /// When it is not tried again.
        var end: String
        var status: Int64?
        /// The end when an earlier try is in doubt.
        var endInDoubt: String
        /// Whether it can be called back while it waits for another try; `nil` for what has no other.
        var isOurs: Bool?
    }

    static let rows = [
        Row(
            testDescription: "2xx", result: .accepted(status: 202, byProvider: false), end: "handed_over",
            status: 202,
            endInDoubt: "handed_over"),
        Row(
            testDescription: "409", result: .seenBefore, end: "handed_over", status: 409,
            endInDoubt: "handed_over"),
        Row(
            testDescription: "4xx", result: .refused(status: 410, reason: nil), end: "refused_by_hop",
            status: 410,
            endInDoubt: "refused_by_hop"),
        Row(
            testDescription: "3xx, 429, 5xx",
            result: .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
            end: "expired_unsent", status: 503, endInDoubt: "ambiguous", isOurs: true),
        Row(
            testDescription: "nobody there", result: .notWritten("refused"), end: "expired_unsent",
            status: nil,
            endInDoubt: "ambiguous", isOurs: true),
        Row(
            testDescription: "no answer", result: .ambiguous("reset", mayRepeat: true), end: "ambiguous",
            status: nil,
            endInDoubt: "ambiguous", isOurs: false),
    ]

    private func gate() async throws -> (gate: GatewayHarness, delivery: Delivery, send: String) {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let sent = try await gate.remit("r")
        return (gate, try #require(try await gate.claim().first), try #require(sent["send_id"]))
    }

    private func events(_ gate: GatewayHarness) async throws -> [String] {
        let answer = try await gate.call("payments", "GET", "/v1/events?after=0")
        return answer.json["events"]?.arrayValue?.compactMap { $0["event"]?.stringValue } ?? []
    }

    private func row(_ gate: GatewayHarness, _ delivery: Delivery) throws -> OutboxRecord? {
        try gate.store.read { try $0.outbox(delivery.message) }
    }

    @Test(arguments: rows, [false, true])
    func `what the hop said last is the end, unless an earlier try is in doubt`(_ row: Row, _ isInDoubt: Bool)
        async throws
    {
        let (gate, first, send) = try await gate()
        var delivery = first
        if isInDoubt {
            try await gate.gateway.report(
                first.message, .ambiguous("reset", mayRepeat: true),
                retryAt: gate.clock.now().advanced(bySeconds: 1))
            gate.clock.advance(seconds: 1)
            delivery = try #require(try await gate.claim().first)
        }
        #expect(delivery.attemptCount == (isInDoubt ? 1 : 0) && delivery.message == first.message)
        try await gate.gateway.report(delivery.message, row.result, retryAt: nil)
        let end = isInDoubt ? row.endInDoubt : row.end
        #expect(try self.row(gate, delivery) == nil)
        #expect(try await events(gate) == (isInDoubt ? ["in_doubt", end] : [end]))
        let entries = try gate.entries("delivery")
        #expect(entries.count == 1)
        let entry = try #require(entries.first)
        #expect(entry["result"]?.stringValue == end && entry["send_id"]?.stringValue == send)
        #expect(entry["attempts"]?.integerValue == (isInDoubt ? 2 : 1))
        #expect(entry["status"]?.integerValue == (end == "ambiguous" ? nil : row.status))
        gate.clock.advance(seconds: 120)
        #expect(try await gate.claim().isEmpty)
    }

    @Test(arguments: rows.filter { $0.isOurs != nil })
    func `what is to be tried again waits until then, and no longer than it lives`(_ row: Row) async throws {
        let (gate, delivery, _) = try await gate()
        let again = gate.clock.now().advanced(bySeconds: 7)
        try await gate.gateway.report(delivery.message, row.result, retryAt: again)
        let waiting = try #require(try self.row(gate, delivery))
        #expect(waiting.notBefore == again)
        #expect((waiting.attemptedAt == nil) == (row.isOurs == true))
        #expect(waiting.mayHaveArrived == (row.isOurs == false))
        let doubt = row.isOurs == false ? ["in_doubt"] : []
        #expect(try await events(gate) == doubt && gate.entries("delivery").isEmpty)
        gate.clock.advance(milliseconds: 6_999)
        #expect(try await gate.claim().isEmpty)
        gate.clock.advance(milliseconds: 1)
        let second = try #require(try await gate.claim().first)
        #expect(second.message == delivery.message && second.attemptCount == 1)
        #expect(second.body == delivery.body && second.headers == delivery.headers)
        // A next try at its expiry or after is none: this one was the last.
        try await gate.gateway.report(second.message, row.result, retryAt: second.expiresAt)
        #expect(try self.row(gate, delivery) == nil)
        #expect(try await events(gate) == doubt + [row.end])
    }

    /// What comes of a message that is cancelled while it is under way: the answer promises neither that it went nor that it did not.
    @Test(arguments: rows, [false, true])
    func `what is cancelled on its way is not tried again`(_ row: Row, _ isInDoubt: Bool) async throws {
        let (gate, first, send) = try await gate()
        var delivery = first
        if isInDoubt {
            try await gate.gateway.report(
                first.message, .ambiguous("reset", mayRepeat: true), retryAt: gate.clock.now())
            delivery = try #require(try await gate.claim().first)
        }
        let cancelled = try await gate.call("payments", "POST", "/v1/sends/\(send)/cancel")
        #expect(cancelled.json["withdrawn"] == [])
        #expect(cancelled.json["gone"] == (isInDoubt ? ["d_1"] : []))
        #expect(cancelled.json["under_way"] == (isInDoubt ? [] : ["d_1"]))
        let isFinal = row.isOurs == nil
        try await gate.gateway.report(
            delivery.message, row.result,
            retryAt: isFinal ? nil : gate.clock.now().advanced(bySeconds: 1))
        let end = isFinal ? row.end : isInDoubt || row.isOurs == false ? "ambiguous" : "withdrawn"
        #expect(try await events(gate) == (isInDoubt ? ["in_doubt", end] : [end]))
        #expect(try self.row(gate, delivery) == nil)
        if end == "withdrawn" {
            #expect(try gate.entries("unsent").map { $0["cause"]?.stringValue } == ["cancelled"])
        }
        gate.clock.advance(seconds: 120)
        #expect(try await gate.claim().isEmpty)
    }

    @Test func `what may have arrived is not said to be withdrawn when its destination or its time is gone`()
        async throws
    {
        // With the words that tell a person why, in each language of the bundle.
        let told = [
            "destination_removed": [
                "en": "no longer in use", "nb": "ikke lenger i bruk", "bs": "više nisu bili u upotrebi",
                "sq": "nuk ishte më në përdorim",
            ],
            "expired": [
                "en": "of no use any more", "nb": "ikke lenger til nytte", "bs": "više nije bilo od koristi",
                "sq": "nuk ishte më i dobishëm",
            ],
            "cancelled": [
                "en": "the sender cancelled it", "nb": "avsenderen avlyste det",
                "bs": "pošiljalac ga je otkazao",
                "sq": "dërguesi e anuloi",
            ],
        ]
        for cause in told.keys.sorted() {
            let (gate, delivery, send) = try await gate()
            try await gate.gateway.report(
                delivery.message, .ambiguous("reset", mayRepeat: true),
                retryAt: gate.clock.now().advanced(bySeconds: 1))
            switch cause {
            case "destination_removed":
                let path = "/v1/recipients/u_1/devices/d_1"
                #expect(try await gate.call("product", "DELETE", path).status == 200)
                gate.clock.advance(seconds: 1)
            case "expired":
                gate.clock.advance(
                    milliseconds: delivery.expiresAt.milliseconds - gate.clock.now().milliseconds + 1)
            default:
                let path = "/v1/sends/\(send)/cancel"
                #expect(try await gate.call("payments", "POST", path).json["gone"] == ["d_1"])
                let told = try await gate.call("auditor", "GET", "/v1/recipients/u_1/decisions")
                let sentence = told.json["decisions"]?.arrayValue?.first?["explanation"]?.stringValue
                #expect(sentence?.contains("waits") == false, "\(told.json)")
                gate.clock.advance(seconds: 1)
            }
            #expect(try await gate.claim().isEmpty)
            #expect(try await events(gate) == ["in_doubt", "ambiguous"], "\(cause)")
            #expect(try self.row(gate, delivery) == nil)
            #expect(try gate.entries("delivery").map { $0["cause"]?.stringValue } == [cause])
            for (locale, words) in try #require(told[cause]) {
                let answer = try await gate.call(
                    "auditor", "GET", "/v1/recipients/u_1/decisions?locale=\(locale)")
                let sentence = answer.json["decisions"]?.arrayValue?.first?["explanation"]?.stringValue ?? ""
                #expect(sentence.contains(words), "\(cause), \(locale): \(sentence)")
            }
        }
    }

    @Test(arguments: [(-1, true), (0, true), (1, false)] as [(Int64, Bool)])
    func `a message goes until the millisecond it ends, and then says that it ended`(
        _ milliseconds: Int64, _ goes: Bool
    ) async throws {
        let (gate, delivery, _) = try await gate()
        try await gate.gateway.report(
            delivery.message, .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
            retryAt: gate.clock.now())
        let life = delivery.expiresAt.milliseconds - gate.clock.now().milliseconds
        gate.clock.advance(milliseconds: life + milliseconds)
        #expect(try await gate.claim().count == (goes ? 1 : 0))
        #expect(try await events(gate) == (goes ? [] : ["withdrawn"]))
        if !goes { #expect(try gate.entries("unsent").map { $0["cause"]?.stringValue } == ["expired"]) }
    }

    @Test func `a message under way is not claimed twice, and one that ends is reported once`() async throws {
        let (gate, delivery, _) = try await gate()
        gate.clock.advance(seconds: 600)
        #expect(try await gate.claim().isEmpty)
        for _ in 0..<2 {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        }
        #expect(try await events(gate) == ["handed_over"])
        #expect(try gate.entries("delivery").count == 1)
    }
}
