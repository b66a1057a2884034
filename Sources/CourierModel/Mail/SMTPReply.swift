import GateVocabulary

/// One reply of a mail relay (RFC 5321 section 4.2).
package struct SMTPReply: Sendable, Hashable {
    package var code: Int
    /// Without codes, one for each line.
    package var lines: [String]

    package init(code: Int, lines: [String]) {
        self.code = code
        self.lines = lines
    }

    /// The enhanced status code that the text begins with, such as `5.1.1` (RFC 2034 section 3).
    package var enhancedCode: String? {
        guard let word = lines.first?.split(separator: " ").first else { return nil }
        let numbers = word.split(separator: ".", omittingEmptySubsequences: false)
        guard numbers.count == 3, numbers[0].utf8.count == 1, numbers[0].first == String(code).first,
            numbers.allSatisfy({ (1...3).contains($0.utf8.count) && $0.utf8.allSatisfy(isDigit) })
        else { return nil }
        return String(word)
    }

    /// For reasons and logs: `smtp_550_5.1.1`. The text of a reply may name the mailbox, so it stays out.
    package var reason: String { "smtp_\(code)" + (enhancedCode.map { "_\($0)" } ?? "") }
}

/// Puts the bytes of a relay together to replies. Bounded: a relay can make it hold no more than ``replyBytesMax``.
package struct SMTPReplyReader: Sendable {
    /// Longest reply with all its lines, in bytes. A line has 512 at most (RFC 5321 section 4.5.3.1.5), and an answer to EHLO some
    /// twenty lines.
    package static let replyBytesMax = 16_384

    package struct Malformed: Error, Hashable, CustomStringConvertible {
        package var why: String
        package var description: String { "the relay sent \(why)" }
    }

    private var bytes: [UInt8] = []
    private var lines: [String] = []
    private var code: Int?
    private var byteCount = 0

    package init() {}

    /// Whether nothing is left of what was read. What stands behind the answer to STARTTLS came without TLS from anybody.
    package var isEmpty: Bool { bytes.isEmpty && lines.isEmpty }

    package mutating func append(_ more: some Collection<UInt8>) throws(Malformed) {
        guard bytes.count + byteCount + more.count <= Self.replyBytesMax else {
            throw Malformed(why: "a reply of more than \(Self.replyBytesMax) bytes")
        }
        bytes += more
    }

    /// - Returns: `nil` when the reply is not whole yet.
    package mutating func next() throws(Malformed) -> SMTPReply? {
        while let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
            var line = Array(bytes[..<end])
            bytes.removeSubrange(...end)
            byteCount += line.count
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            let digits = line.prefix(3)
            guard digits.count == 3, digits.allSatisfy(isDigit),
                let code = Int(String(decoding: digits, as: UTF8.self)), (200..<600).contains(code),
                self.code == nil || self.code == code
            else { throw Malformed(why: "a line that is no SMTP reply") }
            let separator = line.count > 3 ? line[3] : UInt8(ascii: " ")
            lines.append(String(decoding: line.dropFirst(4), as: UTF8.self))
            switch separator {
            case UInt8(ascii: "-"): self.code = code
            case UInt8(ascii: " "):
                defer { (lines, self.code, byteCount) = ([], nil, 0) }
                return SMTPReply(code: code, lines: lines)
            default: throw Malformed(why: "a line that is no SMTP reply")
            }
        }
        return nil
    }
}

/// What a relay says it can do in its answer to EHLO (RFC 5321 section 4.1.1.1).
package struct SMTPCapabilities: Sendable, Hashable {
    /// Keyword in upper case → parameters.
    private var keywords: [String: [String]] = [:]

    package init(_ reply: SMTPReply) {
        for line in reply.lines.dropFirst() {
            let words = line.split(separator: " ").map { $0.uppercased() }
            if let keyword = words.first { keywords[keyword] = Array(words.dropFirst()) }
        }
    }

    package func offers(_ keyword: String) -> Bool { keywords[keyword] != nil }
    package func offers(authentication mechanism: String) -> Bool {
        keywords["AUTH"]?.contains(mechanism) ?? false
    }
    /// Longest message in bytes (RFC 1870); `nil` without a limit.
    package var sizeMax: Int? { keywords["SIZE"]?.first.flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil } }
}

/// The steps of handing over one mail, each of which ends with a reply.
package enum SMTPStage: String, CaseIterable, Sendable, Comparable {
    case greeting, ehlo, startTLS, authentication, reset, mailFrom, recipient, data, content

    private var place: Int { Self.allCases.firstIndex(of: self)! }
    package static func < (left: SMTPStage, right: SMTPStage) -> Bool { left.place < right.place }

    /// How long a client waits for the reply, in seconds: RFC 5321 section 4.5.3.2.
    package var replySeconds: Int {
        switch self {
        case .greeting, .ehlo, .startTLS, .authentication, .reset, .mailFrom, .recipient: 300
        case .data: 120
        case .content: 600
        }
    }

    package func isPositive(_ reply: SMTPReply) -> Bool {
        switch self {
        case .greeting, .startTLS: reply.code == 220
        case .authentication: reply.code == 235
        case .data: reply.code == 354
        case .ehlo, .reset, .mailFrom: reply.code == 250
        // The relay has the mail with any of them (RFC 5321 section 4.2.1).
        case .content: (200..<300).contains(reply.code)
        // 251: it will be forwarded.
        case .recipient: reply.code == 250 || reply.code == 251
        }
    }

    /// What a reply that is not positive means for the message. Up to `MAIL FROM` nothing is about the message, so whatever
    /// the relay says is about the connection, the account or the sender, and no message ends by it.
    package func outcome(_ reply: SMTPReply) -> DeliveryOutcome {
        let reason = reply.reason
        // A limit that will be over: the mailbox's room, or what the sender may send in a day.
        if (500..<600).contains(reply.code), self >= .mailFrom, let limit = SMTPLimit(reply) {
            return limit.outcome(reason)
        }
        switch (self, reply.code) {
        case (.mailFrom, 552): return .failed(reason: reason)
        // Neither yes nor no, behind the final dot.
        case (.content, ..<400): return .ambiguous(reason: reason, mayRepeat: false)
        // The recipient's mailbox (RFC 3463 section 3.3).
        case (.recipient, 452), (.content, 452):
            let isMailbox = reply.enhancedCode?.hasPrefix("4.2.") ?? false
            return .later(reason: reason, seconds: nil, scope: isMailbox ? .message : .app)
        case (_, 421), (_, 452): return .later(reason: reason, seconds: nil, scope: .app)
        case (.recipient, 400..<500), (.data, 400..<500), (.content, 400..<500):
            return .later(reason: reason, seconds: nil, scope: .message)
        case (_, 400..<500): return .later(reason: reason, seconds: nil, scope: .app)
        case (.recipient, 500..<600), (.data, 500..<600), (.content, 500..<600):
            return Self.isAboutUs(reply) ? .misconfigured(reason: reason) : .failed(reason: reason)
        // The same on every try, or neither yes nor no: the relay and the courier do not mean the same step.
        default: return .misconfigured(reason: reason)
        }
    }

    /// Whether a refusal is about the courier and not about the mail: Postfix checks client, sender and relaying only at
    /// `RCPT TO` (`smtpd_delay_reject`), Exchange at the content.
    private static func isAboutUs(_ reply: SMTPReply) -> Bool {
        if [502, 503, 504, 530, 534, 535, 538].contains(reply.code) { return true }
        guard let code = reply.enhancedCode else { return saysUs(reply) }
        // Sender's mailbox or system address is bad; credentials; TLS; send as (RFC 3463, its registry, and Exchange's).
        // The last: the sender's domain is not authenticated (RFC 7372 section 3).
        if [
            "5.1.7", "5.1.8", "5.7.8", "5.7.9", "5.7.10", "5.7.11", "5.7.57", "5.7.60", "5.7.20", "5.7.21",
            "5.7.22",
            "5.7.23", "5.7.24", "5.7.25", "5.7.26",
        ].contains(code) {
            return true
        }
        return code.hasPrefix("5.7.") && saysUs(reply)
    }

    /// Parts of the replies with which Postfix, Exim, Sendmail and Exchange refuse the client or its sender.
    private static let usPhrases = [
        "relay access denied", "relaying denied", "unable to relay", "not permitted to relay",
        "relay not permitted", "relaying not allowed", "do not relay", "sender address rejected",
        "client host rejected", "helo command rejected", "authentication required", "must authenticate",
        "not authenticated", "send as",
    ]

    private static func saysUs(_ reply: SMTPReply) -> Bool {
        // A mailbox may be called like a phrase.
        let text = reply.lines.joined(separator: " ").lowercased().replacing(/<[^>]*>/, with: "")
        return usPhrases.contains { text.contains($0) }
    }
}

/// A limit that a relay names with a 5xx, although it will be over by itself. Relays answer so for a full mailbox (552, RFC 5321 section
/// 4.2.3), for what an account may send in a day (550 5.4.5 and 5.7.0, Google Workspace, "SMTP error reference") and for rates.
package enum SMTPLimit: Sendable, Hashable {
    /// A limit of this mailbox: no room, or too many mails to it.
    case mailbox
    /// A limit of the account or of the courier's address: every mail meets it.
    case sender

    /// Pauses after each, in seconds: the gateway tries until the message's own end.
    private static let (mailboxSeconds, senderSeconds) = (1_800, 900)

    /// Parts of replies about a limit, of Postfix, Exim, Exchange, Google, Yahoo and hosting providers.
    private static let limitPhrases = [
        "quota", "mailbox full", "mailbox is full", "inbox is full", "insufficient storage",
        "exceeded storage",
        "storage allocation", "rate limit", "rate-limit", "ratelimit", "rate exceeded", "at a rate",
        "throttl",
        "too many messages", "too many mails", "too many emails", "too many recipients",
        "too many connections",
        "sending limit", "daily limit", "hourly limit", "per day", "per hour", "per minute", "message limit",
        "limit reached", "messages limit", "exceeded the limit",
    ]
    private static let mailboxPhrases = [
        "mailbox", "inbox", "storage", "over quota", "user is receiving", "recipient", "account is over",
        "contact is receiving",
    ]
    private static let senderPhrases = [
        "sending", "sender", "you have", "your ", "outgoing", "daily", "hourly",
    ]
    /// One mail that is too long is too long on every try (RFC 3463 sections 3.3 and 3.4).
    private static let sizeCodes = ["5.2.3", "5.3.4"]
    private static let sizePhrases = ["message size", "size exceed", "size limit", "too large", "too big"]

    /// - Returns: `nil` where the reply names no limit, or that of one mail's size.
    init?(_ reply: SMTPReply) {
        let text = reply.lines.joined(separator: " ").lowercased()
            .replacing(/<[^>]*>/, with: "").replacing(/[^\s@]+@[^\s@]+/, with: "")
        let code = reply.enhancedCode
        if code == "5.2.2" {
            self = .mailbox
        } else if code.map(Self.sizeCodes.contains) ?? false
            || Self.sizePhrases.contains(where: text.contains)
        {
            return nil
        } else if code == "5.4.5" {
            self = .sender
        } else if Self.limitPhrases.contains(where: text.contains) {
            let isSender = Self.senderPhrases.contains(where: text.contains)
            self = !isSender && Self.mailboxPhrases.contains(where: text.contains) ? .mailbox : .sender
        } else {
            return nil
        }
    }

    func outcome(_ reason: String) -> DeliveryOutcome {
        switch self {
        case .mailbox: .later(reason: reason, seconds: Self.mailboxSeconds, scope: .message)
        case .sender: .later(reason: reason, seconds: Self.senderSeconds, scope: .app)
        }
    }
}

private func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
