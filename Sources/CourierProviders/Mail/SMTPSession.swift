import CourierModel
import NIOCore
import NIOSSL
import SealedFormat

/// A connection that the relay has accepted the courier on: TLS, EHLO, signed in.
struct SMTPSession: Sendable {
    let connection: SMTPConnection
    private let capabilities: SMTPCapabilities
    private(set) var messageCount = 0

    static func open(
        _ configuration: MailConfiguration, _ clientName: String, _ tls: NIOSSLContext?, _ signIn: SMTPSignIn,
        by deadline: NIODeadline? = nil
    ) async throws(SMTPFault) -> SMTPSession {
        let connection = try await SMTPConnection.connect(
            configuration, tls, SMTPTimeouts(scale: configuration.timeoutScale), by: deadline)
        do throws(SMTPFault) {
            return try await greet(connection, configuration, clientName, signIn)
        } catch {
            await connection.close()
            throw error
        }
    }

    private static func greet(
        _ connection: SMTPConnection, _ configuration: MailConfiguration, _ clientName: String,
        _ signIn: SMTPSignIn
    ) async throws(SMTPFault) -> SMTPSession {
        try require(.greeting, try await connection.reply(.greeting))
        let hello = "EHLO \(clientName)"
        var answer = try require(.ehlo, try await connection.command(hello, .ehlo))
        if configuration.security == .starttls {
            guard SMTPCapabilities(answer).offers("STARTTLS") else {
                throw SMTPFault(
                    reason: "starttls_not_offered", why: "\(configuration.endpoint) does not offer STARTTLS",
                    isConfiguration: true)
            }
            try require(.startTLS, try await connection.command("STARTTLS", .startTLS))
            try await connection.startTLS()
            answer = try require(.ehlo, try await connection.command(hello, .ehlo))
        }
        let capabilities = SMTPCapabilities(answer)
        if let mechanism = signIn.mechanism {
            guard capabilities.offers(authentication: mechanism) else {
                throw SMTPFault(
                    reason: "auth_not_offered",
                    why: "\(configuration.endpoint) does not offer AUTH \(mechanism)",
                    isConfiguration: true)
            }
            try require(.authentication, try await authenticate(connection, mechanism, signIn.response))
        }
        return SMTPSession(connection: connection, capabilities: capabilities)
    }

    /// AUTH (RFC 4954, section 4). A response that does not fit into the line of the command goes in a line of its own.
    private static func authenticate(
        _ connection: SMTPConnection, _ mechanism: String, _ response: String
    ) async throws(SMTPFault) -> SMTPReply {
        let command = "AUTH \(mechanism)"
        var reply: SMTPReply
        if command.utf8.count + 1 + response.utf8.count <= commandBytesMax {
            reply = try await connection.command("\(command) \(response)", .authentication)
        } else {
            reply = try await connection.command(command, .authentication)
            guard reply.code == 334 else { return reply }
            reply = try await connection.command(response, .authentication)
        }
        // XOAUTH2 tells the error in a challenge and wants an empty answer to it.
        return reply.code == 334 ? try await connection.command("", .authentication) : reply
    }

    /// Longest line of a command without its CRLF, in bytes (RFC 5321, section 4.5.3.1.4).
    private static let commandBytesMax = 510

    @discardableResult
    private static func require(_ stage: SMTPStage, _ reply: SMTPReply) throws(SMTPFault) -> SMTPReply {
        guard stage.isPositive(reply) else { throw SMTPFault(stage, reply) }
        return reply
    }

    /// Whether the relay would still take a mail: a connection that was idle may be gone.
    func answersReset() async -> Bool {
        guard await connection.isUsable() else { return false }
        do throws(SMTPFault) {
            return SMTPStage.reset.isPositive(try await connection.command("RSET", .reset))
        } catch {
            return false
        }
    }

    /// Hands one mail over.
    ///
    /// - Parameters:
    ///   - weigh: Takes the outcome of a mailbox that the relay refuses for good, and says what it is worth.
    ///   - mayBegin: Asked just before the content is written; an outcome is the end.
    ///   - mayEnd: Asked just before the dot, after which the relay has the mail; an outcome is the end.
    /// - Returns: The outcome, and whether the session can take another mail.
    mutating func send(
        _ mail: MailMessage, weigh: @Sendable (DeliveryOutcome) -> DeliveryOutcome,
        mayBegin: @Sendable () async -> DeliveryOutcome?,
        mayEnd: @Sendable () -> DeliveryOutcome?
    ) async -> (outcome: DeliveryOutcome, isUsable: Bool) {
        if mail.needsSMTPUTF8, !capabilities.offers("SMTPUTF8") {
            return (.failed(reason: "relay_without_smtputf8"), true)
        }
        let content = DotStuffing.encode(mail.content)
        if let sizeMax = capabilities.sizeMax, content.count > sizeMax {
            return (.failed(reason: "too_long_for_relay"), true)
        }
        messageCount += 1
        do throws(SMTPFault) {
            for (stage, line) in envelope(of: mail) {
                let reply = try await connection.command(line, stage)
                // After a refusal the relay still has what it took before; RSET or the next mail forgets it.
                guard stage.isPositive(reply) else {
                    var outcome = stage.outcome(reply)
                    if stage == .recipient, case .failed = outcome { outcome = weigh(outcome) }
                    return (outcome, reply.code != 421)
                }
            }
            // The relay waits for content and can take nothing else, so an end here costs the connection.
            if let outcome = await mayBegin() { return (outcome, false) }
            try await connection.write(content)
        } catch {
            return (error.outcome, false)
        }
        // Without the dot the relay has nothing.
        if let outcome = mayEnd() { return (outcome, false) }
        // Crash point: from here on the relay may have the mail.
        do throws(SMTPFault) {
            let reply = try await connection.command(".", .content)
            guard SMTPStage.content.isPositive(reply) else {
                return (SMTPStage.content.outcome(reply), reply.code != 421)
            }
            return (.accepted(providerID: Self.queueID(reply)), true)
        } catch {
            return (.ambiguous(reason: error.reason, mayRepeat: false), false)
        }
    }

    private func envelope(of mail: MailMessage) -> [(SMTPStage, String)] {
        var (sender, recipient) = ("MAIL FROM:<\(mail.sender)>", "RCPT TO:<\(mail.recipient)>")
        if mail.needsSMTPUTF8 { sender += " SMTPUTF8" }
        // RFC 3461 sections 4.1, 4.3 and 4.4: tell of failures only, with the headers, and with our name of the mail, which
        // has 100 characters at most.
        if capabilities.offers("DSN") {
            sender += " RET=HDRS"
            if mail.reference.utf8.count <= 100 { sender += " ENVID=\(mail.reference)" }
            recipient += " NOTIFY=FAILURE"
        }
        return [(.mailFrom, sender), (.recipient, recipient), (.data, "DATA")]
    }

    /// What the relay calls the mail, as Postfix, Exim and Sendmail say it; `nil` where the answer names nothing that is an id.
    private static func queueID(_ reply: SMTPReply) -> String? {
        let words = reply.lines.joined(separator: " ").split(separator: " ")
        for marker in ["as", "id="] {
            guard let index = words.firstIndex(where: { $0.lowercased().hasPrefix(marker) }) else { continue }
            let id =
                marker == "as"
                ? words[(index + 1)...].first.map(String.init) : String(words[index].dropFirst(3))
            if let id, (1...64).contains(id.utf8.count),
                id.utf8.allSatisfy({
                    $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: "@")
                })
            {
                return id
            }
        }
        return nil
    }
}
