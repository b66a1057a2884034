import CanonicalJSON
import CourierModel
import GateVocabulary
import Testing

@Suite struct MailMessageTests {
    static let sender = MailSender(address: "noreply@pay.example", name: "Örsted Pay")
    static let now = Instant(rfc3339: "2026-11-29T11:05:09.000Z")!

    static func order(
        subject: String = "Payment received", text: String = "You have it.", html: String? = nil,
        to: String = "ola@example.org", headers: [String: String] = [:]
    ) throws -> DeliveryOrder {
        var body: JSONObject = ["subject": .string(subject), "text": .string(text)]
        body["html"] = html.map(JSONValue.string)
        return DeliveryOrder(
            message: MessageID(high: 1, low: 2), send: SendID(high: 3, low: 4),
            destination: DestinationID("e_1"),
            channel: .email, platform: nil, provider: nil, app: nil, token: to, headers: headers,
            body: .object(body), expiresAt: now.advanced(bySeconds: 3600), handOverBy: nil)
    }

    static func text(_ order: DeliveryOrder, from sender: MailSender = sender) throws -> String {
        String(decoding: try MailMessage(order, from: sender, at: now).content, as: UTF8.self)
    }

    @Test func `a plain mail carries its id, its date and what the gateway wrote for unsubscribing`() throws {
        let headers = [
            "list-unsubscribe": "<https://pay.example/u/abc>",
            "list-unsubscribe-post": "List-Unsubscribe=One-Click",
        ]
        let text = try Self.text(Self.order(headers: headers))
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
        #expect(lines[0] == "Date: Sun, 29 Nov 2026 11:05:09 +0000")
        #expect(lines.contains("Message-ID: <00000000-0000-0001-0000-000000000002@pay.example>"))
        #expect(lines.contains("List-Unsubscribe: <https://pay.example/u/abc>"))
        #expect(lines.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click"))
        #expect(lines.contains("X-Sendgate-Delivery: 00000000-0000-0003-0000-000000000004.655f31"))
        #expect(text.hasSuffix("\r\n\r\nYou have it.\r\n"))
        #expect(!text.contains("multipart"))
    }

    @Test
    func `a sender's domain outside ASCII is written as A-labels, and a name before the @ needs SMTPUTF8`()
        throws
    {
        let sender = MailSender(
            address: "noreply@bücher.example", bounceAddress: "bounces@bücher.example",
            replyTo: "Svar@bücher.example")
        let text = try Self.text(Self.order(), from: sender)
        #expect(text.contains("\r\nReply-To: <Svar@xn--bcher-kva.example>\r\n"))
        #expect(text.contains("\r\nFrom: <noreply@xn--bcher-kva.example>\r\n"))
        #expect(text.contains("-000000000002@xn--bcher-kva.example>\r\n"))
        let mail = try MailMessage(Self.order(), from: sender, at: Self.now)
        #expect(mail.sender == "bounces@xn--bcher-kva.example" && !mail.needsSMTPUTF8)
        let outside = MailSender(address: "noreply@pay.example", replyTo: "børge@pay.example")
        #expect(try MailMessage(Self.order(), from: outside, at: Self.now).needsSMTPUTF8)
    }

    @Test func `a mail with HTML has the text first and the HTML after it`() throws {
        let text = try Self.text(Self.order(html: "<p>You have it.</p>"))
        let plain = try #require(text.firstRange(of: "text/plain"))
        let html = try #require(text.firstRange(of: "text/html"))
        #expect(plain.lowerBound < html.lowerBound && text.contains("multipart/alternative"))
    }

    @Test(arguments: ["a\r\nBcc: eve@example.org", "a\nb", "a\rb", "a\0b", "a\u{85}b", "a\u{2028}b"])
    func `a subject with a line break or a NUL is no mail`(subject: String) throws {
        #expect(throws: MailMessage.Refusal.self) { try Self.text(Self.order(subject: subject)) }
    }

    @Test(arguments: [
        "ola@example.org>\r\nRCPT TO:<eve@example.org", "ola@example.org\r\nDATA", "ola example.org",
        "@example.org",
        "ola@", "a@b@example.org", "<ola@example.org>", "ola@exa mple.org", "ola,eve@example.org",
    ])
    func `a mailbox that would end its command or its header is no mail`(mailbox: String) throws {
        #expect(throws: MailMessage.Refusal.self) { try Self.text(Self.order(to: mailbox)) }
    }

    @Test func `a header of the gateway with a line break is no mail`() throws {
        for name in ["list-unsubscribe", "list-unsubscribe-post"] {
            #expect(throws: MailMessage.Refusal.self) {
                try Self.text(Self.order(headers: [name: "<https://pay.example>\r\nBcc: eve@example.org"]))
            }
        }
    }

    @Test func `only a mailbox outside ASCII needs SMTPUTF8`() throws {
        #expect(try !MailMessage(Self.order(), from: Self.sender, at: Self.now).needsSMTPUTF8)
        #expect(
            try MailMessage(Self.order(to: "øla@example.org"), from: Self.sender, at: Self.now).needsSMTPUTF8)
    }

    @Test func `lines are folded at 76 and never longer than 998`() throws {
        let subjects = [
            String(repeating: "Payment of kr 100 received ", count: 20) + "x",
            String(repeating: "Ødegård ", count: 60) + "x",
            String(repeating: "x", count: 900),
        ]
        for subject in subjects {
            let text = try Self.text(
                Self.order(subject: subject, text: String(repeating: "æ=", count: 500), html: "<p>\t \n.</p>")
            )
            #expect(text.split(separator: "\r\n").allSatisfy { $0.utf8.count <= 76 }, "\(text)")
        }
    }

    @Test func `a dot at the start of a line is doubled and no other`() {
        let stuffed = DotStuffing.encode(Array(".\r\n..a\r\nb.c\r\n.".utf8))
        #expect(String(decoding: stuffed, as: UTF8.self) == "..\r\n...a\r\nb.c\r\n..")
    }

    @Test func `a sender that cannot stand in a mail is said so`() {
        #expect(MailSender(address: "nobody").fault == "`nobody` is no mailbox")
        #expect(MailSender(address: "a@b.example", name: "a\nb").fault != nil)
        #expect(Self.sender.fault == nil)
    }
}
