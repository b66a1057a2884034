import CanonicalJSON
import CourierModel
import CourierProviders
import Foundation
import GateVocabulary
import SealedFormat
import Testing

/// Against aiosmtpd, over TLS with an authority of the test's own.
@Suite struct SMTPProviderTests {
    /// A relay, and a provider in front of it.
    final class Stage {
        let folder: TestFolder
        let relay: PeerProcess
        let provider: SMTPProvider
        let journal: CourierJournal

        init(
            _ options: [String: JSONValue] = [:], security: MailConfiguration.Security = .starttls,
            certificate: String? = "good", host: String = "localhost",
            authentication: MailConfiguration.Authentication? = nil,
            secret: String = "right", timeoutScale: Double = 0.05, clock: ProviderClock = TestClock.patient,
            journal path: String? = nil, connectionsMax: Int = 2, messagesMax: Int = 100,
            idleMilliseconds: Int64 = 30_000
        ) throws {
            let certificates = try TestCertificates.folder.get()
            folder = try TestFolder()
            var options = options
            options["security"] = .string(security == .tls ? "implicit" : security.rawValue)
            if security != .none, let certificate {
                options["certificate"] = .string(certificates.file("\(certificate).pem"))
                options["key"] = .string(certificates.file("\(certificate).key"))
            }
            if authentication != nil {
                options.merge(["user": "courier", "password": "right", "token": "right"]) { first, _ in first
                }
            }
            let json = CanonicalJSON.write(.object(JSONObject(options.map { ($0.key, $0.value) })))
            relay = try PeerProcess("mail_relay.py", [String(decoding: json, as: UTF8.self)])
            let port = Int(try relay.readLine()) ?? 0
            var configuration = MailConfiguration(
                host: host, port: port, security: security, username: authentication == nil ? nil : "courier",
                password: authentication == nil ? nil : try folder.secret("password", "\(secret)\n"),
                authentication: authentication ?? .plain,
                sender: MailSender(
                    address: "noreply@pay.example", name: "Örsted Pay", bounceAddress: "bounces@pay.example"),
                trust: certificates.file("ca.pem"))
            configuration.clientName = "courier.pay.example"
            configuration.timeoutScale = timeoutScale
            configuration.connectionsMax = connectionsMax
            configuration.messagesPerConnectionMax = messagesMax
            configuration.idleMilliseconds = idleMilliseconds
            journal = try CourierJournal(path: path ?? folder.file("journal"), now: { TestClock.now })
            provider = try SMTPProvider(configuration, clock: clock, single: SingleCopy(journal))
        }

        /// The next message that the relay took.
        func message() throws -> (
            sender: String, recipients: JSONValue?, options: JSONValue?, content: String
        ) {
            while true {
                let object = try relay.readJSON()
                guard case .string(let sender)? = object["sender"],
                    case .string(let content)? = object["content"]
                else {
                    continue
                }
                return (
                    sender, object["recipients"], object["options"],
                    String(decoding: Base64.decode(content) ?? [], as: UTF8.self)
                )
            }
        }
    }

    static let accepted = DeliveryOutcome.accepted(providerID: "4F6A1")

    @Test(arguments: [
        (MailConfiguration.Security.starttls, MailConfiguration.Authentication?.some(.plain)),
        (.starttls, .xoauth2),
        (.tls, .plain), (.tls, nil), (.none, nil),
    ])
    func `a mail reaches the relay by every kind of connection and sign-in`(
        security: MailConfiguration.Security, authentication: MailConfiguration.Authentication?
    ) async throws {
        let stage = try Stage(security: security, authentication: authentication)
        #expect(await stage.provider.check().map(\.fault) == [nil])
        #expect(await stage.provider.deliver(TestClock.order(text: ".hidden\n.\n..\nend")) == Self.accepted)
        let message = try stage.message()
        #expect(message.sender == "bounces@pay.example" && message.recipients == ["ola@example.org"])
        #expect(
            message.content.contains("Message-ID: <00000000-0000-0001-0000-000000000001@pay.example>\r\n"))
        #expect(message.content.contains("List-Unsubscribe: <https://pay.example/u/1>\r\n"))
        #expect(message.content.hasSuffix("\r\n\r\n.hidden\r\n.\r\n..\r\nend\r\n"))
    }

    @Test func `EHLO is said again after STARTTLS, and one connection carries mail after mail`() async throws
    {
        let stage = try Stage(["dsn": true], authentication: .plain, connectionsMax: 1)
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(await stage.provider.deliver(TestClock.order(number: number)) == Self.accepted)
        }
        var told: [String] = []
        while told.count(where: { $0.hasPrefix("RCPT") }) < 3 {
            let object = try stage.relay.readJSON()
            if object["connected"] != nil { told.append("connected") }
            if case .string(let command)? = object["command"] { told.append(command) }
        }
        func mail(_ number: Int) -> [String] {
            [
                "MAIL FROM:<bounces@pay.example> RET=HDRS ENVID=00000000-0000-0002-0000-00000000000\(number).655f31",
                "RCPT TO:<ola@example.org> NOTIFY=FAILURE",
            ]
        }
        #expect(told == ["connected", "EHLO", "EHLO"] + mail(1) + ["RSET"] + mail(2) + ["RSET"] + mail(3))
    }

    @Test(arguments: [
        ("other", "localhost"), ("expired", "localhost"), ("self", "localhost"), ("other", "127.0.0.1"),
    ])
    func `a certificate for another name, expired or signed by itself gets no mail`(
        certificate: String, host: String
    ) async throws {
        for security in [MailConfiguration.Security.starttls, .tls] {
            let stage = try Stage(
                security: security, certificate: certificate, host: host, authentication: .plain)
            let outcome = await stage.provider.deliver(TestClock.order())
            #expect(outcome.name == "misconfigured")
            #expect(outcome.reason?.hasPrefix("tls_failed: TLS failed: ") == true, "\(outcome)")
            let fault = await stage.provider.check().first?.fault
            #expect(fault?.contains("TLS failed") == true, "\(fault ?? "-")")
        }
    }

    @Test func `a certificate for an address is good for the address`() async throws {
        let stage = try Stage(security: .tls, host: "127.0.0.1")
        #expect(await stage.provider.deliver(TestClock.order()) == Self.accepted)
        _ = try stage.message()
    }

    @Test func `mail never goes without TLS when the relay does not offer it`() async throws {
        let stage = try Stage(security: .starttls, certificate: nil)
        #expect(
            await stage.provider.deliver(TestClock.order()) == .misconfigured(reason: "starttls_not_offered"))
    }

    @Test func `a wrong password is a configuration, and a new one is read without a restart`() async throws {
        for (authentication, reason) in [
            (MailConfiguration.Authentication.plain, "smtp_535_5.7.8"), (.xoauth2, "smtp_535_5.7.8"),
        ] {
            let stage = try Stage(authentication: authentication, secret: "wrong")
            #expect(await stage.provider.deliver(TestClock.order()) == .misconfigured(reason: reason))
            _ = try stage.folder.secret("password", "right\n")
            try await stage.provider.reloadCredentials()
            #expect(await stage.provider.deliver(TestClock.order()) == Self.accepted)
            _ = try stage.folder.secret("password", "")
            await #expect(throws: CredentialError.self) { try await stage.provider.reloadCredentials() }
            #expect(await stage.provider.deliver(TestClock.order(number: 2)) == Self.accepted)
        }
    }

    @Test func `an access token longer than a command's line goes in a line of its own`() async throws {
        // The relay refuses a command of more than 512 bytes.
        for count in [340, 360, 2_000, 9_100] {
            let token = String(repeating: "t", count: count)
            let stage = try Stage(["token": .string(token)], authentication: .xoauth2, secret: token)
            #expect(await stage.provider.deliver(TestClock.order()) == Self.accepted, "\(count)")
        }
        let wrong = try Stage(
            authentication: .xoauth2, secret: String(repeating: "w", count: 2_000))
        #expect(await wrong.provider.deliver(TestClock.order()) == .misconfigured(reason: "smtp_535_5.7.8"))
        let error = #expect(throws: CredentialError.self) {
            try Stage(authentication: .xoauth2, secret: String(repeating: "t", count: 9_300))
        }
        #expect(error?.why.hasSuffix("bytes of AUTH, and relays take 12286") == true, "\(error?.why ?? "-")")
    }

    @Test func `a mail of a task that was cancelled is not written, and goes later`() async throws {
        let stage = try Stage()
        #expect(await stage.provider.deliverCancelled(TestClock.order()) == .stopping)
        #expect(stage.journal["once/\(TestClock.order().message.uuidText)"] == nil)
        #expect(await stage.provider.deliver(TestClock.order()) == Self.accepted)
    }

    @Test func `what the relay says of a mailbox ends that mail alone`() async throws {
        let stage = try Stage([
            "answers": [
                "gone": "550 5.1.1 no such user", "grey": "451 4.7.1 greylisted", "busy": "452 4.3.1 full",
            ]
        ])
        func deliver(_ local: String, _ number: UInt64) async -> DeliveryOutcome {
            await stage.provider.deliver(TestClock.order(number: number, to: "\(local)@example.org"))
        }
        #expect(await deliver("gone", 1) == .failed(reason: "smtp_550_5.1.1"))
        #expect(await deliver("grey", 2) == .later(reason: "smtp_451_4.7.1", seconds: nil, scope: .message))
        #expect(await deliver("busy", 3) == .later(reason: "smtp_452_4.3.1", seconds: nil, scope: .app))
        // The connection was good for all of them, and is for this one.
        #expect(await deliver("ola", 4) == Self.accepted)
        // What ended stays ended, and what was put off goes.
        #expect(await deliver("gone", 1) == .failed(reason: "smtp_550_5.1.1"))
        #expect(await deliver("ola", 2) == Self.accepted)
    }

    @Test func `a relay that refuses the content after the dot ends the mail`() async throws {
        let stage = try Stage(["answers": ["DATA": "554 5.6.0 spam"]])
        #expect(await stage.provider.deliver(TestClock.order()) == .failed(reason: "smtp_554_5.6.0"))
    }

    @Test func `a relay that dies after the dot may have the mail, and gets no second copy`() async throws {
        let stage = try Stage(["die_after_dot": true])
        let expected = DeliveryOutcome.ambiguous(reason: "connection_lost", mayRepeat: false)
        #expect(await stage.provider.deliver(TestClock.order()) == expected)
        _ = try stage.message()
        #expect(await stage.provider.deliver(TestClock.order()) == expected)
        // Another mail does reach it, and it is the next that the relay is told of.
        #expect(await stage.provider.deliver(TestClock.order(number: 2)) == expected)
        #expect(try stage.message().content.contains("-000000000002@pay.example>"))
    }

    @Test func `a courier that was killed behind the dot gives no second copy`() async throws {
        let folder = try TestFolder()
        do {
            let journal = try CourierJournal(path: folder.file("journal"), now: { TestClock.now })
            // As SingleCopy writes it before the content goes.
            try await journal.commit([
                .put(
                    "once/\(TestClock.order().message.uuidText)",
                    CourierJournal.Entry(["state": "begun"], keptUntil: TestClock.now.advanced(bySeconds: 60))
                )
            ])
            await journal.close()
        }
        let stage = try Stage(journal: folder.file("journal"))
        #expect(
            await stage.provider.deliver(TestClock.order())
                == .ambiguous(reason: "interrupted", mayRepeat: false))
        #expect(await stage.provider.deliver(TestClock.order(number: 2)) == Self.accepted)
        #expect(try stage.message().content.contains("-000000000002@pay.example>"))
    }

    @Test(arguments: ["MAIL", "RCPT", "dot"])
    func `a relay that stops answering is left after the time of its step`(stage step: String) async throws {
        let stage = try Stage(["hold_at": .string(step)], timeoutScale: 0.002)
        let expected: DeliveryOutcome =
            step == "dot"
            ? .ambiguous(reason: "timed_out", mayRepeat: false)
            : .later(reason: "timed_out", seconds: nil, scope: .app)
        #expect(await stage.provider.deliver(TestClock.order()) == expected)
    }

    @Test func `a relay that accepts and never answers, floods or speaks before TLS gets no mail`()
        async throws
    {
        for (raw, expected) in [
            ("silent", DeliveryOutcome.later(reason: "timed_out", seconds: nil, scope: .app)),
            ("flood", .later(reason: "reply_malformed", seconds: nil, scope: .app)),
            ("inject", .later(reason: "bytes_before_tls", seconds: nil, scope: .app)),
        ] {
            let stage = try Stage(["raw": .string(raw)], timeoutScale: raw == "silent" ? 0.001 : 0.05)
            #expect(await stage.provider.deliver(TestClock.order()) == expected, "\(raw)")
        }
    }

    @Test func `nothing is written when the gateway has stopped waiting`() async throws {
        // Given a deadline that is over when it is asked for the third time, just before the content, and for the fourth, just
        // before the dot.
        for lastYes in 0...3 {
            let stage = try Stage(clock: TestClock.over(after: lastYes))
            let order = TestClock.order(handOverBy: HandOverDeadline(bootID: "b", uptimeMilliseconds: 1))
            #expect(await stage.provider.deliver(order) == .tooLate)
            #expect(stage.journal["once/\(order.message.uuidText)"] == nil)
            // The first message that the relay hears of is another one.
            #expect(await stage.provider.deliver(TestClock.order(number: 2)) == Self.accepted)
            #expect(try stage.message().content.contains("-000000000002@pay.example>"))
        }
    }

    @Test func `a mail whose time passes in the queue opens no session, and none waits beyond it`()
        async throws
    {
        // Given a relay that says nothing, one place, and a deadline a moment away.
        let stage = try Stage(["raw": "silent"], timeoutScale: 1, connectionsMax: 1)
        let provider = stage.provider
        let outcomes = await withTaskGroup(of: DeliveryOutcome.self) { group in
            for number in 1...20 {
                group.addTask {
                    var order = TestClock.order(number: UInt64(number))
                    order.answerBy =
                        ProviderClock.uptimeMilliseconds() + DeliveryOrder.writeMilliseconds + 200
                    return await provider.deliver(order)
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes == Array(repeating: .tooLate, count: 20))
    }

    @Test func `a mailbox outside ASCII goes when the relay speaks SMTPUTF8 and fails when it does not`()
        async throws
    {
        let order = TestClock.order(to: "øla@example.org")
        let stage = try Stage(["smtputf8": true])
        #expect(await stage.provider.deliver(order) == Self.accepted)
        let message = try stage.message()
        #expect(message.recipients == ["øla@example.org"] && message.options == ["SMTPUTF8"])
        #expect(message.content.contains("To: <øla@example.org>\r\n"))
        let plain = try Stage(["smtputf8": false])
        #expect(await plain.provider.deliver(order) == .failed(reason: "relay_without_smtputf8"))
        #expect(await plain.provider.deliver(TestClock.order(number: 2)) == Self.accepted)
    }

    @Test func `a mail longer than the relay takes fails before it is written`() async throws {
        let stage = try Stage(["size": 2000])
        #expect(
            await stage.provider.deliver(TestClock.order(text: String(repeating: "x", count: 3000)))
                == .failed(reason: "too_long_for_relay"))
    }

    @Test func `twenty mails at once share two connections`() async throws {
        let stage = try Stage()
        let provider = stage.provider
        let outcomes = await withTaskGroup(of: DeliveryOutcome.self) { group in
            for number in 1...20 as ClosedRange<UInt64> {
                group.addTask { await provider.deliver(TestClock.order(number: number)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.allSatisfy { $0 == Self.accepted } && outcomes.count == 20)
        var (connected, taken) = (0, 0)
        while taken < 20 {
            let object = try stage.relay.readJSON()
            if object["connected"] != nil { connected += 1 }
            if object["content"] != nil { taken += 1 }
        }
        #expect((1...2).contains(connected))
    }

    @Test func `a connection is left after so many mails, and after so long without one`() async throws {
        for (messagesMax, idleMilliseconds) in [(1, 30_000), (100, 1)] as [(Int, Int64)] {
            let stage = try Stage(messagesMax: messagesMax, idleMilliseconds: idleMilliseconds)
            for number in 1...3 as ClosedRange<UInt64> {
                #expect(await stage.provider.deliver(TestClock.order(number: number)) == Self.accepted)
                // The relay has seen the end of the connection.
                #expect(try stage.relay.next("lost") == true)
            }
        }
    }

    @Test func `a connection that the relay closed meanwhile costs no mail`() async throws {
        let stage = try Stage(["close_after_mail": true], connectionsMax: 1)
        var outcomes: [DeliveryOutcome] = []
        for number in 1...20 as ClosedRange<UInt64> {
            outcomes.append(await stage.provider.deliver(TestClock.order(number: number)))
            if number.isMultiple(of: 2) { #expect(try stage.relay.next("lost") == true) }
        }
        #expect(outcomes == [DeliveryOutcome](repeating: Self.accepted, count: 20))
    }

    @Test func `a relay that knows none of twenty mailboxes in a row is doubted, and no more mails end`()
        async throws
    {
        let stage = try Stage(["answers": ["gone": "550 5.1.1 no such user"]])
        func deliver(_ local: String, _ number: UInt64) async -> DeliveryOutcome {
            await stage.provider.deliver(TestClock.order(number: number, to: "\(local)@example.org"))
        }
        #expect(await deliver("ola", 1) == Self.accepted)
        for number in UInt64(2)...20 { #expect(await deliver("gone", number).name == "failed") }
        #expect(await deliver("gone", 21).name == "misconfigured")
        #expect(stage.provider.doubt?.contains("smtp_550_5.1.1 of 20") == true)
        // Nothing is known of its end, so it goes when an operator says that it may.
        #expect(stage.journal["once/\(TestClock.order(number: 21).message.uuidText)"] == nil)
        stage.provider.confirmDeadAddresses()
        #expect(stage.provider.doubt == nil)
        #expect(await deliver("gone", 21) == .failed(reason: "smtp_550_5.1.1"))
    }

    @Test func `a relay whose name does not resolve is an operator's to mend`() async throws {
        let folder = try TestFolder()
        let configuration = MailConfiguration(
            host: "nowhere.invalid", port: 1, security: .starttls, username: nil, password: nil,
            authentication: .plain, sender: MailSender(address: "noreply@pay.example"))
        let provider = try SMTPProvider(
            configuration, clock: TestClock.patient,
            single: SingleCopy(CourierJournal(path: folder.file("journal"), now: { TestClock.now })))
        #expect(
            await provider.deliver(TestClock.order())
                == .misconfigured(
                    reason: "connect_failed: cannot find nowhere.invalid: its name does not resolve"))
    }

    @Test func `a relay that is not there puts the mail off`() async throws {
        let folder = try TestFolder()
        let configuration = MailConfiguration(
            host: "127.0.0.1", port: 1, security: .none, username: nil, password: nil, authentication: .plain,
            sender: MailSender(address: "noreply@pay.example"))
        let provider = try SMTPProvider(
            configuration, clock: TestClock.patient,
            single: SingleCopy(CourierJournal(path: folder.file("journal"), now: { TestClock.now })))
        #expect(
            await provider.deliver(TestClock.order())
                == .later(reason: "connect_failed", seconds: nil, scope: .app))
    }
}
