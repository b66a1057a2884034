import CourierModel
import Testing

@Suite struct SMTPReplyTests {
    private func read(_ pieces: [String]) throws -> [SMTPReply] {
        var (reader, replies) = (SMTPReplyReader(), [SMTPReply]())
        for piece in pieces {
            try reader.append(Array(piece.utf8))
            while let reply = try reader.next() { replies.append(reply) }
        }
        return replies
    }

    @Test func `a reply of several lines is read however it is cut`() throws {
        let whole =
            "250-relay.example\r\n250-SIZE 1000\r\n250-AUTH PLAIN XOAUTH2\r\n250 SMTPUTF8\r\n220 go\r\n"
        let expected = try read([whole])
        #expect(expected.count == 2)
        #expect(try read(whole.map { String($0) }) == expected)
        let capabilities = SMTPCapabilities(expected[0])
        #expect(
            capabilities.sizeMax == 1000 && capabilities.offers("SMTPUTF8")
                && !capabilities.offers("STARTTLS"))
        #expect(
            capabilities.offers(authentication: "XOAUTH2") && !capabilities.offers(authentication: "LOGIN"))
    }

    @Test(arguments: [
        "hello\r\n", "25\r\n", "999 x\r\n", "100 x\r\n", "250-a\r\n251 b\r\n", "250+a\r\n", "\r\n",
    ])
    func `what is no reply is an error`(bytes: String) {
        #expect(throws: SMTPReplyReader.Malformed.self) { try read([bytes]) }
    }

    @Test func `a mebibyte of greeting is an error long before it is read`() {
        for piece in [String(repeating: "x", count: 8192), String(repeating: "220-hello\r\n", count: 700)] {
            var reader = SMTPReplyReader()
            var byteCount = 0
            #expect(throws: SMTPReplyReader.Malformed.self) {
                while byteCount < 1 << 20 {
                    byteCount += piece.utf8.count
                    try reader.append(Array(piece.utf8))
                    while try reader.next() != nil {}
                }
            }
            #expect(byteCount <= SMTPReplyReader.replyBytesMax + piece.utf8.count)
        }
    }

    /// Replies of Postfix, Exchange Online and Gmail as their documentation and sources have them.
    @Test(arguments: [
        (SMTPStage.greeting, "554 5.3.2 not accepting", "misconfigured"),
        (.ehlo, "421 4.3.2 shutting down", "app"),
        (.authentication, "535 5.7.8 Error: authentication failed", "misconfigured"),
        (.authentication, "454 4.7.0 Temporary authentication failure", "app"),
        (.mailFrom, "530 5.7.0 Must issue a STARTTLS command first", "misconfigured"),
        (.mailFrom, "550 5.7.60 Client does not have permissions to send as this sender", "misconfigured"),
        (.mailFrom, "552 5.3.4 Message size exceeds fixed limit", "failed"),
        (.recipient, "554 5.7.1 <ola@example.org>: Relay access denied", "misconfigured"),
        (.recipient, "553 5.7.1 <a@b.example>: Sender address rejected: not owned by user", "misconfigured"),
        (.recipient, "554 5.7.1 <unknown[10.0.0.1]>: Client host rejected: Access denied", "misconfigured"),
        (.recipient, "550 5.1.1 <ola@example.org>: Recipient address rejected: User unknown", "failed"),
        (.recipient, "550 5.7.1 <ola@example.org>: Recipient address rejected: Access denied", "failed"),
        (.recipient, "501 5.1.3 Bad recipient address syntax", "failed"),
        (.recipient, "503 5.5.1 Error: need MAIL command", "misconfigured"),
        (.recipient, "450 4.2.0 Greylisted", "message"),
        (.recipient, "451 4.3.0 Temporary lookup failure", "message"),
        (.recipient, "452 4.3.1 Insufficient system storage", "app"),
        (.recipient, "421 4.7.0 Too many errors", "app"),
        (.data, "554 5.5.1 Error: no valid recipients", "failed"),
        (.content, "554 5.6.0 Message rejected", "failed"),
        (.content, "451 4.3.0 queue file write error", "message"),
        (.content, "550 5.7.1 Unable to relay", "misconfigured"),
        (
            .recipient, "550 5.7.26 This mail has been blocked because the sender is unauthenticated",
            "misconfigured"
        ),
        (.content, "550 5.4.5 Daily user sending limit exceeded", "app"),
        (.content, "354 what", "ambiguous smtp_354 false"),
        (.recipient, "452 4.2.2 <ola@example.org>: Mailbox full", "message"),
        (.content, "452 4.2.2 Mailbox full", "message"), (.content, "452 4.3.1 No room", "app"),
        (.recipient, "552 5.2.2 <ola@example.org>: Over quota", "message"),
        (.recipient, "550 5.2.2 Mailbox full", "message"),
        (.recipient, "552 5.2.2 Mailbox size limit exceeded", "message"),
        (.content, "552 Your message size exceeds our quota", "failed"),
        (.recipient, "552 Requested mail action aborted: exceeded storage allocation", "message"),
        (.content, "552 5.2.2 The email account that you tried to reach is over quota", "message"),
        (
            .recipient,
            "550 5.2.1 The user you are trying to contact is receiving mail at a rate that prevents more",
            "message"
        ),
        (.recipient, "550 5.7.0 Daily user sending limit exceeded", "app"),
        (.recipient, "550 5.7.1 <ola@example.org>: Too many messages per hour from your address", "app"),
        (.content, "554 5.7.0 Your message could not be sent: sending quota exceeded", "app"),
        (.content, "550 5.7.0 Rate limit exceeded, try again later", "app"),
        (.mailFrom, "552 5.7.0 Hourly limit reached", "app"),
        (.mailFrom, "552 5.3.4 Message size exceeds fixed limit", "failed"),
        (.recipient, "552 5.2.3 Message length exceeds the mailbox's limit", "failed"),
        (.content, "552 5.3.4 Message size exceeds the quota of one mail", "failed"),
        (.recipient, "550 5.1.1 <quota@example.org>: User unknown", "failed"),
        (.recipient, "550 5.1.1 quota@example.org: User unknown", "failed"),
        (.recipient, "550 5.2.1 Mailbox disabled, not accepting messages", "failed"),
        (.content, "554 5.7.1 Message rejected as spam", "failed"),
        (.recipient, "550 5.7.1 <relay@example.org>: Recipient address rejected", "failed"),
        (.recipient, "550 5.7.1 the recipient authenticates no sender of this list", "failed"),
    ])
    func `a refusal ends the message only when it is about the message`(
        stage: SMTPStage, reply: String, expected: String
    ) throws {
        let reply = try #require(try read([reply + "\r\n"]).first)
        #expect(!stage.isPositive(reply))
        let found =
            switch stage.outcome(reply) {
            case .failed: "failed"
            case .later(_, _, let scope): scope.rawValue
            case .misconfigured: "misconfigured"
            case .ambiguous(let reason, let mayRepeat): "ambiguous \(reason) \(mayRepeat)"
            case let other: "\(other)"
            }
        #expect(found == expected)
    }

    @Test(arguments: [200, 250, 251, 252, 299])
    func `any yes to the final dot is a mail that the relay has`(code: Int) {
        #expect(SMTPStage.content.isPositive(SMTPReply(code: code, lines: [])))
    }

    @Test func `a reason has the codes of a reply and none of its words`() throws {
        let reply = try #require(try read(["550 5.1.1 <ola@example.org> unknown\r\n"]).first)
        #expect(reply.reason == "smtp_550_5.1.1")
        #expect(try read(["550 ola@example.org\r\n"]).first?.reason == "smtp_550")
        #expect(try read(["550 4.1.1 another class\r\n"]).first?.reason == "smtp_550")
    }
}
