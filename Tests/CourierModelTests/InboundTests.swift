import CanonicalJSON
import CourierModel
import Crypto
import GateVocabulary
import SealedFormat
import Testing

@Suite struct InboundTests {
    static let now = Instant(rfc3339: "2026-11-29T12:00:00.000Z")!
    static let send = SendID(high: 3, low: 4)
    static let reference = DeliveryReference(send: send, destination: DestinationID("n/1 é"))

    // MARK: Twilio

    static let webhook = TwilioWebhook(
        path: "/twilio/messages", publicURL: "https://hooks.pay.example/twilio",
        authTokens: [Array("12345".utf8)])

    /// The example of Twilio's own page on webhook security (recalled; Twilio's own `RequestValidator` gives the same).
    static let example = (
        url: "https://mycompany.com/myapp.php", query: "foo=1&bar=2",
        body:
            "CallSid=CA1234567890ABCDE&Caller=%2B12349013030&Digits=1234&From=%2B12349013030&To=%2B18005551212",
        signature: "0/KCTR6DLpKmkAf8muzZqo1nDgQ="
    )

    @Test func `the example of Twilio's page is genuine, and nothing else of it is`() {
        func read(_ query: String, _ body: String, _ signature: String, token: String = "12345")
            -> InboundResult
        {
            let webhook = TwilioWebhook(
                path: "/x", publicURL: Self.example.url, authTokens: [[1, 2], Array(token.utf8)])
            return InboundRoute.twilioMessages(webhook).read(
                InboundRequest(
                    target: "/x?\(query)", headers: [("X-Twilio-Signature", signature)],
                    body: Array(body.utf8)),
                at: Self.now)
        }
        let (query, body, signature) = (Self.example.query, Self.example.body, Self.example.signature)
        // Genuine, and no message: the example is a call.
        #expect(
            read(query, body, signature)
                == .refused(status: 400, reason: "the form has no MessageSid or no From"))
        let wrong = InboundResult.refused(status: 403, reason: "the signature is wrong")
        #expect(read("foo=1&bar=3", body, signature) == wrong)
        #expect(read(query, body + "&A=1", signature) == wrong)
        #expect(read(query, body, "0/KCTR6DLpKmkAf8muzZqo1nDgR=") != .nothing)
        #expect(read(query, body, signature, token: "12346") == wrong)
        #expect(read(query, body, Base64.encode([UInt8](repeating: 0, count: 20))) == wrong)
    }

    @Test func `a status callback is about what its address says`() throws {
        let order = try MailMessageTests.order()
        #expect(
            TwilioWebhook.statusCallback("https://hooks.pay.example/status", for: order)
                == "https://hooks.pay.example/status?send=00000000-0000-0003-0000-000000000004&destination=e_1"
        )
    }

    // MARK: The courier's own form

    static let secret = [UInt8](repeating: 7, count: 32)
    static let reports = InboundRoute.reports(SignedWebhook(path: "/reports", secrets: [[1], secret]))

    /// `printf '%s.%s' "$t" "$body" | openssl dgst -sha256 -hmac …` gives the same.
    static func signed(
        _ body: String, at seconds: Int64, _ route: InboundRoute = reports, header: String? = nil
    )
        -> InboundResult
    {
        let code = Array(
            HMAC<SHA256>.authenticationCode(
                for: Array("\(seconds).\(body)".utf8), using: SymmetricKey(data: secret)))
        let header = header ?? "t=\(seconds),v1=00,v1=\(Hexadecimal.encode(code))"
        return route.read(
            InboundRequest(
                target: route.path, headers: [("x-sendgate-signature", header)], body: Array(body.utf8)),
            at: now)
    }

    @Test func `a signed report is passed on within five minutes, and not after`() {
        let body =
            #"{"kind":"receipt","send":"\#(Self.send.uuidText)","destination":"n_1","event":"failed","reason":"no route"}"#
        let expected = InboundReport(
            .receipt(
                DeliveryReference(send: Self.send, destination: DestinationID("n_1")), .failed,
                reason: "no route"),
            key: "receipt/\(Self.send.uuidText)/n_1/failed/no_route")
        for seconds in [Self.now.seconds - 300, Self.now.seconds, Self.now.seconds + 300] {
            #expect(Self.signed(body, at: seconds) == .pass([expected]))
        }
        for seconds in [Self.now.seconds - 301, Self.now.seconds + 301, 0, .min, .max] {
            #expect(Self.signed(body, at: seconds) != .pass([expected]), "\(seconds)")
        }
        for header in [
            "", "t=1", "v1=00", "t=x,v1=00", "t=\(Self.now.seconds),v1=00", "t=\(Self.now.seconds),v1=xyz",
        ] {
            guard case .refused(403, _) = Self.signed(body, at: Self.now.seconds, header: header) else {
                Issue.record("`\(header)` was accepted")
                continue
            }
        }
        // As the gateway takes it.
        #expect(
            expected.body(firstAt: Self.now) == [
                "send": .string(Self.send.uuidText), "destination": "n_1", "event": "failed",
                "reason": "no_route",
                "at": "2026-11-29T12:00:00Z",
            ])
    }

    @Test func `a reply keeps the time its sender names`() {
        let body =
            #"[{"kind":"reply","id":"m-1","channel":"sms","from":"+4790000000","text":"STOP","received_at":"2026-11-29T11:00:00Z"}]"#
        guard case .pass(let reports) = Self.signed(body, at: Self.now.seconds) else {
            Issue.record("refused")
            return
        }
        #expect(reports.map(\.path) == ["/v1/replies"])
        #expect(
            reports.map { $0.body(firstAt: Self.now) } == [
                [
                    "id": "m-1", "channel": "sms", "from": "+4790000000", "text": "STOP",
                    "received_at": "2026-11-29T11:00:00Z",
                ]
            ])
    }

    @Test(arguments: [
        "", "{", "1", "{}", #"{"kind":"call"}"#,
        #"{"kind":"reply","id":"m","channel":"push","from":"a","text":"b"}"#,
        #"{"kind":"receipt","send":"x","destination":"d","event":"failed"}"#,
        #"{"kind":"receipt","send":"00000000-0000-0003-0000-000000000004","destination":"d","event":"user_observed"}"#,
        #"{"kind":"receipt","send":"00000000-0000-0003-0000-000000000004","destination":"d","event":"failed","why":"x"}"#,
    ])
    func `a signed body that is no report is refused and says where`(body: String) {
        guard case .refused(400, let reason) = Self.signed(body, at: Self.now.seconds) else {
            Issue.record("accepted")
            return
        }
        #expect(!reason.isEmpty)
    }

    // MARK: Bounces and complaints

    static let bounces = InboundRoute.bounces(SignedWebhook(path: "/bounces", secrets: [secret]))

    /// As Postfix writes one (bounce(8)).
    static func bounce(
        action: String = "failed", status: String = "5.1.1", reference: String? = reference.header
    ) -> String {
        let original = reference.map { "X-Sendgate-Delivery: \($0)\r\n" } ?? ""
        return """
            From: MAILER-DAEMON@relay.example (Mail Delivery System)\r
            Subject: Undelivered Mail Returned to Sender\r
            MIME-Version: 1.0\r
            Content-Type: multipart/report; report-type=delivery-status;\r
            \tboundary="4F6.1732879509/relay.example"\r
            \r
            This is a MIME-encapsulated message.\r
            \r
            --4F6.1732879509/relay.example\r
            Content-Type: text/plain; charset=us-ascii\r
            \r
            I'm sorry.\r
            \r
            --4F6.1732879509/relay.example\r
            Content-Description: Delivery report\r
            Content-Type: message/delivery-status\r
            \r
            Reporting-MTA: dns; relay.example\r
            X-Postfix-Queue-ID: 4F6\r
            \r
            Final-Recipient: rfc822; ola@example.org\r
            Original-Recipient: rfc822;ola@example.org\r
            Action: \(action)\r
            Status: \(status)\r
            Diagnostic-Code: smtp; 550 5.1.1 <ola@example.org>:\r
                User unknown\r
            \r
            --4F6.1732879509/relay.example\r
            Content-Type: text/rfc822-headers\r
            \r
            Subject: Payment received\r
            Message-ID: <m@pay.example>\r
            \(original)\r
            --4F6.1732879509/relay.example--\r

            """
    }

    @Test(arguments: [
        ("5.1.1", InboundReport.ReceiptEvent.tokenGone), ("5.2.2", .failed), ("4.4.7", .expired),
        ("5.7.1", .failed),
    ])
    func `a bounce is told of the message that its headers name`(
        status: String, event: InboundReport.ReceiptEvent
    ) {
        #expect(
            Self.signed(Self.bounce(status: status), at: Self.now.seconds, Self.bounces)
                == .pass([
                    InboundReport(
                        .receipt(Self.reference, event, reason: "smtp_\(status)"),
                        key: "bounce/\(Self.reference.header)/\(status)")
                ]))
    }

    @Test func `a delay is nothing to tell, and a bounce of nobody's message is refused`() {
        #expect(
            Self.signed(Self.bounce(action: "delayed", status: "4.4.1"), at: Self.now.seconds, Self.bounces)
                == .nothing)
        #expect(Self.signed("Subject: hello\r\n\r\nhi", at: Self.now.seconds, Self.bounces) == .nothing)
        guard
            case .refused(422, _) = Self.signed(
                Self.bounce(reference: nil), at: Self.now.seconds, Self.bounces)
        else {
            Issue.record("accepted")
            return
        }
    }

    @Test func `a complaint unsubscribes the mailbox that complained`() {
        let reference = DeliveryReference(
            send: SendID(high: 2, low: 1), destination: DestinationID("mail")
        ).header
        let complaint = """
            MIME-Version: 1.0
            Content-Type: multipart/report; report-type=feedback-report; boundary=b

            --b
            Content-Type: message/feedback-report

            Feedback-Type: abuse
            User-Agent: SomeGenerator/1.0
            Version: 1
            Original-Rcpt-To: <ola@example.org>

            --b
            Content-Type: message/rfc822

            Message-ID: <m@pay.example>
            To: ola@example.org
            X-Sendgate-Delivery: \(reference)

            text
            --b--
            """
        #expect(
            Self.signed(complaint, at: Self.now.seconds, Self.bounces)
                == .pass([
                    InboundReport(
                        .reply(
                            id: "complaint <m@pay.example>", channel: .email, from: "<ola@example.org>",
                            text: "unsubscribe"), key: "complaint/<m@pay.example>")
                ]))
        // Anybody can write one about a mail that they did not receive.
        for forged in [
            complaint.replacing("X-Sendgate-Delivery: \(reference)\n", with: ""),
            complaint.replacing(reference, with: "1.2"),
        ] {
            guard case .refused(422, _) = Self.signed(forged, at: Self.now.seconds, Self.bounces) else {
                Issue.record("a forged complaint was passed on")
                continue
            }
        }
    }

    // MARK: Answers

    @Test func `the sender hears of success only when the gateway has taken everything`() {
        let route = InboundRoute.twilioMessages(Self.webhook)
        let confirmed = GatewayAnswer(
            status: 200,
            body: [
                "confirmation": [
                    "text": "Pay & Co: <ended>", "until": "2026-11-29T12:05:00Z", "language": "en",
                ]
            ])
        let result = InboundResult.pass([
            InboundReport(.reply(id: "m", channel: .sms, from: "+1", text: "STOP"), key: "m")
        ])
        func text(_ answers: [GatewayAnswer?], at now: Instant = Self.now) -> String {
            let answer = route.answer(result, gateway: answers, at: now)
            return "\(answer.status) \(String(decoding: answer.body, as: UTF8.self))"
        }
        #expect(
            text([confirmed]) == "200 <Response><Message>Pay &amp; Co: &lt;ended&gt;</Message></Response>")
        #expect(text([confirmed], at: Self.now.advanced(bySeconds: 300)) == "200 <Response/>")
        #expect(text([GatewayAnswer(status: 409, body: nil)]) == "200 <Response/>")
        for status in [401, 403, 429, 500, 503] {
            #expect(text([GatewayAnswer(status: status, body: nil)]) == "503 ")
        }
        #expect(text([nil]) == "503 ")
        #expect(Self.reports.answer(.nothing, gateway: [], at: Self.now).status == 204)
        #expect(
            Self.reports.answer(.refused(status: 403, reason: ""), gateway: [], at: Self.now).status == 403)
        #expect(Self.reports.answer(result, gateway: [confirmed, nil], at: Self.now).status == 503)
    }

    @Test func `a destination of any spelling comes back out of a header`() {
        #expect(Self.reference.header == "00000000-0000-0003-0000-000000000004.6e2f3120c3a9")
    }
}
