import DeliveryRelay
import GateSteps
import GateVocabulary
import Testing

/// The contract of the page `DeliveryLayer`, a second time by hand.
@Suite struct HopProtocolTests {
    private static let wrong = [
        300, 301, 302, 303, 304, 307, 308, 401, 403, 404, 405, 408, 415, 421, 425, 451, 100, 600, 999,
    ]

    @Test func `in version 1 each status says what became of the message`() {
        for body in ["", "<html>", #"{"outcome":"token_gone","reason":"Unregistered"}"#] {
            for status in 200...299 {
                #expect(
                    Self.result(.statusOnly, status, body) == .accepted(status: status, byProvider: false))
            }
            #expect(Self.result(.statusOnly, 409, body) == .seenBefore)
            for status in [400, 410, 413, 422] {
                #expect(Self.result(.statusOnly, status, body) == .refused(status: status, reason: nil))
            }
            for status in [429] + Array(500...599) {
                #expect(
                    Self.result(.statusOnly, status, body)
                        == .busy(status: status, retryAfterMilliseconds: nil, scope: .message))
            }
            for status in Self.wrong { #expect(Self.isMisconfigured(Self.result(.statusOnly, status, body))) }
        }
    }

    @Test func `in version 2 each row of the table is read`() {
        func expect(
            _ status: Int, _ body: String, _ expected: HopResult, _ place: SourceLocation = #_sourceLocation
        ) {
            #expect(Self.result(.outcomes, status, body) == expected, sourceLocation: place)
        }
        expect(200, #"{"outcome":"accepted","provider_id":"x"}"#, .accepted(status: 200, byProvider: true))
        expect(202, "", .accepted(status: 202, byProvider: false))
        expect(409, "", .seenBefore)
        expect(409, "<html>", .seenBefore)
        // A repeat is told what the first try was told, and the first answer may never have reached the trail.
        expect(409, #"{"outcome":"accepted","provider_id":"x"}"#, .accepted(status: 409, byProvider: true))
        expect(
            409, #"{"outcome":"token_gone","reason":"Unregistered","at":"2026-11-29T12:00:00Z"}"#,
            .tokenGone(status: 409, reason: "Unregistered", at: Instant(rfc3339: "2026-11-29T12:00:00Z")))
        expect(409, #"{"outcome":"failed","reason":"x"}"#, .refused(status: 409, reason: "x"))
        expect(409, #"{"outcome":"later","reason":"x"}"#, .seenBefore)
        expect(
            422, #"{"outcome":"token_gone","reason":"Unregistered","at":"2026-11-29T12:00:00Z"}"#,
            .tokenGone(status: 422, reason: "Unregistered", at: Instant(rfc3339: "2026-11-29T12:00:00Z")))
        expect(
            422, #"{"outcome":"token_gone","reason":"UNREGISTERED"}"#,
            .tokenGone(status: 422, reason: "UNREGISTERED", at: nil))
        for status in [400, 413, 422] {
            expect(
                status, #"{"outcome":"failed","reason":"a b"}"#, .refused(status: status, reason: "a_b"))
        }
        for status in [429, 503] {
            expect(
                status, #"{"outcome":"later","reason":"x","scope":"app"}"#,
                .busy(status: status, retryAfterMilliseconds: nil, scope: .app, reason: "x"))
            expect(status, "", .busy(status: status, retryAfterMilliseconds: nil, scope: .message))
        }
        for status in [500, 502] {
            expect(status, "<html>", .busy(status: status, retryAfterMilliseconds: nil, scope: .message))
        }
        for (body, mayRepeat) in [
            (#"{"outcome":"ambiguous","retry":false}"#, false),
            (#"{"outcome":"ambiguous","retry":true}"#, true),
            (#"{"outcome":"ambiguous"}"#, true), ("", true), ("<html>", true),
        ] {
            expect(504, body, .ambiguous("status_504", mayRepeat: mayRepeat))
        }
        expect(
            504, #"{"outcome":"ambiguous","reason":"un answered","retry":true}"#,
            .ambiguous("un_answered", mayRepeat: true))
    }

    /// A proxy's page, half a body, an outcome under another status: none of them ends a message.
    @Test func `what the contract does not know ends no message`() {
        let foreign = ["<html>", "{", "[]", #"{"outcome":"sent"}"#, #"{"outcome":"failed"}"#]
        for status in [200, 400, 413, 422] {
            for body in foreign {
                #expect(Self.isMisconfigured(Self.result(.outcomes, status, body)), "\(status) \(body)")
            }
        }
        for status in [400, 413, 422] { #expect(Self.isMisconfigured(Self.result(.outcomes, status, ""))) }
        #expect(Self.isMisconfigured(Self.result(.outcomes, 200, #"{"outcome":"failed","reason":"x"}"#)))
        #expect(Self.isMisconfigured(Self.result(.outcomes, 422, #"{"outcome":"accepted"}"#)))
        #expect(Self.isMisconfigured(Self.result(.outcomes, 400, #"{"outcome":"token_gone","reason":"x"}"#)))
        for status in Self.wrong + [410, 501, 505] {
            #expect(Self.isMisconfigured(Self.result(.outcomes, status, "")))
        }
    }

    @Test(
        arguments: [
            ("7", 7_000), ("0", 0), ("-1", 0), ("86400", 86_400_000), ("86401", 86_400_000),
            ("9223372036854775807", 86_400_000), ("1.5", nil), ("soon", nil), ("", nil),
            ("Wed, 21 Oct 2026 07:28:00 GMT", nil),
        ] as [(String, Int64?)])
    func `how long to wait is the hop's to say, in whole seconds and within a day`(
        _ text: String, _ milliseconds: Int64?
    ) {
        for version in HopProtocol.allCases {
            #expect(
                version.result(status: 503, retryAfter: text, body: [])
                    == .busy(status: 503, retryAfterMilliseconds: milliseconds, scope: .message))
        }
    }

    @Test(arguments: [
        (String(repeating: "no way ", count: 20), String(repeating: "no_way_", count: 9) + "n"),
        ("no auth for +4790000000", "no_auth_for__"), ("+4790000000", "_"), ("4790000000", "_"),
        ("ola@example.org is unknown", "_is_unknown"),
    ])
    func `a reason is a word of 64 bytes at most that names nobody, whatever the layer wrote`(
        _ written: String, _ word: String
    ) {
        let answer = #"{"outcome":"failed","reason":"\#(written)"}"#
        #expect(Self.result(.outcomes, 422, answer) == .refused(status: 422, reason: word))
    }

    private static func result(_ version: HopProtocol, _ status: Int, _ body: String) -> HopResult {
        version.result(status: status, retryAfter: nil, body: Array(body.utf8))
    }

    private static func isMisconfigured(_ result: HopResult) -> Bool {
        if case .misconfigured = result { true } else { false }
    }
}
