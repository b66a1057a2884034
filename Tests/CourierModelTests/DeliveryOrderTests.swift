import CanonicalJSON
import CourierModel
import GateVocabulary
import Testing

@Suite struct DeliveryOrderTests {
    static let push = """
        {"app":"main","body":{"aps":{"alert":{"title":"A"}}},"channel":"push","destination":"phone",
        "expires_at":"2026-11-29T12:00:00.000Z","hand_over_by":{"boot_id":"b","uptime_ms":12},
        "headers":{"apns-topic":"com.example.app"},"message_id":"00112233-4455-4677-8899-aabbccddeeff",
        "platform":"ios","send_id":"00112233-4455-4677-8899-aabbccddee00","token":"ab","new":1}
        """

    @Test func `what an order and a secret say of themselves may stand in a log`() throws {
        let order = try DeliveryOrder(try CanonicalJSON.read([UInt8](Self.push.utf8)))
        let webhook = SignedWebhook(path: "/reports", secrets: [Array("s3cret".utf8)])
        let twilio = TwilioWebhook(path: "/t", publicURL: "https://h", authTokens: [Array("s3cret".utf8)])
        #expect("\(order)" == "push 00112233-4455-4677-8899-aabbccddeeff")
        #expect(String(reflecting: order) == "\(order)")
        #expect(String(reflecting: webhook) == "signed webhook /reports")
        #expect("\([twilio])" == "[webhook of Twilio /t]")
    }

    @Test func `an order is read whole, and members of a newer gateway are passed over`() throws {
        let order = try DeliveryOrder(try CanonicalJSON.read([UInt8](Self.push.utf8)))
        #expect(order.message.uuidText == "00112233-4455-4677-8899-aabbccddeeff")
        #expect(order.platform == .ios)
        #expect(order.headers == ["apns-topic": "com.example.app"])
        #expect(order.handOverBy == HandOverDeadline(bootID: "b", uptimeMilliseconds: 12))
        #expect(order.provider == nil)
    }

    @Test func `an order writes as it reads`() throws {
        let order = try DeliveryOrder(try CanonicalJSON.read([UInt8](Self.push.utf8)))
        #expect(try DeliveryOrder(order.json) == order)
        var other = order
        (other.channel, other.platform, other.app, other.handOverBy) = (.email, nil, nil, nil)
        #expect(try DeliveryOrder(other.json) == other)
    }

    @Test(arguments: ["message_id", "channel", "token", "headers", "body", "expires_at"])
    func `an order without a member is refused with the member's name`(_ name: String) throws {
        var object = try #require(try CanonicalJSON.read([UInt8](Self.push.utf8)).objectValue)
        object[name] = nil
        #expect {
            try DeliveryOrder(.object(object))
        } throws: { error in
            "\(error)" == "the member is missing at `/\(name)`"
        }
    }

    @Test func `each outcome has the status and the body of the hop protocol's table`() throws {
        func written(_ outcome: DeliveryOutcome) -> String {
            let (status, retryAfter, body) = outcome.answer
            let text = body.map { String(decoding: CanonicalJSON.write($0), as: UTF8.self) } ?? ""
            return "\(status) \(retryAfter.map(String.init) ?? "-") \(text)"
        }
        #expect(written(.accepted(providerID: "x")) == #"200 - {"outcome":"accepted","provider_id":"x"}"#)
        #expect(written(.accepted(providerID: nil)) == #"200 - {"outcome":"accepted"}"#)
        #expect(
            written(.seenBefore(.accepted(providerID: "x")))
                == #"409 - {"outcome":"accepted","provider_id":"x"}"#)
        #expect(
            written(.seenBefore(.tokenGone(reason: "Unregistered", at: nil)))
                == #"409 - {"outcome":"token_gone","reason":"Unregistered"}"#)
        #expect(
            written(.tokenGone(reason: "Unregistered", at: Instant(milliseconds: 0)))
                == #"422 - {"at":"1970-01-01T00:00:00Z","outcome":"token_gone","reason":"Unregistered"}"#)
        #expect(
            written(.failed(reason: "PayloadTooLarge"))
                == #"422 - {"outcome":"failed","reason":"PayloadTooLarge"}"#)
        #expect(
            written(.later(reason: "TooManyRequests", seconds: 7, scope: .app))
                == #"503 7 {"outcome":"later","reason":"TooManyRequests","scope":"app"}"#)
        #expect(
            written(.misconfigured(reason: "TopicDisallowed"))
                == #"503 - {"outcome":"later","reason":"TopicDisallowed","scope":"app"}"#)
        #expect(
            written(.ambiguous(reason: "no answer", mayRepeat: false))
                == #"504 - {"outcome":"ambiguous","reason":"no_answer","retry":false}"#)
        // A reason is one word of at most 64 letters, and a pause has a bound.
        #expect(
            written(.misconfigured(reason: "InvalidProviderToken: check key_id, the clock is 3,600 s off"))
                == #"503 - {"outcome":"later","reason":"InvalidProviderToken","scope":"app"}"#)
        #expect(
            written(.later(reason: "", seconds: 1_000_000, scope: .message))
                == #"503 86400 {"outcome":"later","reason":"unknown","scope":"message"}"#)
    }

    @Test func `the gateway reads what the courier writes`() {
        let read: [(DeliveryOutcome, DeliveryOutcome?)] = [
            (.accepted(providerID: "p"), .accepted(providerID: nil)),
            (.seenBefore(.accepted(providerID: "p")), .accepted(providerID: nil)),
            (
                .tokenGone(reason: "Unregistered", at: Instant(milliseconds: 1)),
                .tokenGone(reason: "Unregistered", at: Instant(milliseconds: 1))
            ),
            (.tokenGone(reason: "UNREGISTERED", at: nil), .tokenGone(reason: "UNREGISTERED", at: nil)),
            (.failed(reason: "A"), .failed(reason: "A")),
            (.later(reason: "A", seconds: 7, scope: .app), .later(reason: "A", seconds: nil, scope: .app)),
            (
                .later(reason: "A", seconds: nil, scope: .message),
                .later(reason: "A", seconds: nil, scope: .message)
            ),
            (.misconfigured(reason: "A"), .later(reason: "A", seconds: nil, scope: .app)),
            (.ambiguous(reason: "A", mayRepeat: true), .ambiguous(reason: "A", mayRepeat: true)),
            (.ambiguous(reason: "A", mayRepeat: false), .ambiguous(reason: "A", mayRepeat: false)),
        ]
        #expect(Set(read.map(\.0.word)) == Set(DeliveryOutcome.Word.allCases))
        for (outcome, expected) in read {
            #expect(
                DeliveryOutcome(answer: outcome.answer.body.map { CanonicalJSON.write($0) } ?? []) == expected
            )
        }
    }

    @Test func `a time that cannot be read makes an answer none`() {
        func read(_ at: String) -> DeliveryOutcome? {
            DeliveryOutcome(
                answer: Array(#"{"outcome":"token_gone","reason":"Unregistered","at":\#(at)}"#.utf8))
        }
        #expect(
            read(#""1970-01-01T00:00:00.001Z""#)
                == .tokenGone(reason: "Unregistered", at: Instant(milliseconds: 1)))
        for at in [#""yesterday""#, "1", "null", "{}"] { #expect(read(at) == nil, "\(at)") }
    }

    @Test func `a pause of an app is told as long as its circuit follows it`() {
        func told(_ scope: DeliveryOutcome.Scope) -> Int? {
            DeliveryOutcome.later(reason: "A", seconds: 100_000, scope: scope).answer.retryAfter
        }
        #expect(told(.app) == 900 && told(.message) == 86_400)
    }

    @Test(arguments: [("b", 11, false), ("b", 12, true), ("b", 13, true), ("c", 0, true), ("", 0, true)])
    func `a hand-over is over at its mark, and on every other boot`(
        _ boot: String, _ uptime: Int64, _ isOver: Bool
    ) {
        let deadline = HandOverDeadline(bootID: "b", uptimeMilliseconds: 12)
        #expect(deadline.isOver(bootID: boot, uptimeMilliseconds: uptime) == isOver)
    }
}
