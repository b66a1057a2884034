import CourierModel
import CourierProviders
import Foundation
import GateVocabulary
import SealedFormat
import Testing

/// Against Debian's postfix, which needs root, as the machines that run `make test` are.
@Suite struct PostfixTests {
    @Test func `postfix takes the mail, and what it refuses means what it says`() async throws {
        let certificates = try TestCertificates.folder.get()
        let folder = try TestFolder()
        let postfix = try PeerProcess(
            "postfix.py",
            [
                PeerProcess.environment + "/postfix", folder.path, certificates.file("good.pem"),
                certificates.file("good.key"),
            ])
        var configuration = MailConfiguration(
            host: "localhost", port: try #require(Int(try postfix.readLine())), security: .starttls,
            username: nil,
            password: nil, authentication: .plain,
            sender: MailSender(
                address: "noreply@pay.example", name: "Örsted Pay", bounceAddress: "bounces@example.org"),
            trust: certificates.file("ca.pem"))
        configuration.clientName = "courier.pay.example"
        let provider = try SMTPProvider(
            configuration, clock: TestClock.patient,
            single: SingleCopy(CourierJournal(path: folder.file("journal"), now: { TestClock.now })))
        #expect(await provider.check().map(\.fault) == [nil])

        let subject = "Innbetaling på kr 1\u{A0}000,00 " + String(repeating: "🇳🇴", count: 30)
        let order = TestClock.order(subject: subject, text: ".\n..\nFrom here\n\n.end", html: "<p>Æ</p>")
        let outcome = await provider.deliver(order)
        // Its queue id: hexadecimal digits, or more letters with long ids.
        guard case .accepted(.some(let id)) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(id.utf8.count >= 10 && id.allSatisfy { $0.isLetter || $0.isNumber }, "\(id)")
        #expect(
            await provider.deliver(TestClock.order(number: 2, to: "nobody@example.org"))
                == .failed(reason: "smtp_550_5.1.1"))
        #expect(
            await provider.deliver(TestClock.order(number: 3, to: "ola@example.net"))
                == .misconfigured(reason: "smtp_554_5.7.1"))
        guard case .accepted = await provider.deliver(TestClock.order(number: 4)) else {
            Issue.record("the connection was of no use after a refusal")
            return
        }

        // What it takes and cannot deliver comes back, and names the message.
        let full = TestClock.order(number: 5, to: "full@example.org")
        guard case .accepted = await provider.deliver(full) else {
            Issue.record("not taken")
            return
        }
        try postfix.write("bounces 1")
        var bounce = try #require(Base64.decode(try postfix.readLine()))
        // The mailbox's own line before the message.
        bounce.removeFirst((bounce.firstIndex(of: UInt8(ascii: "\n")) ?? 0) + 1)
        let secret = [UInt8](repeating: 3, count: 32)
        let request = InboundRequest(
            target: "/bounces",
            headers: [("X-Sendgate-Signature", InboundDeskTests.signature(of: bounce, under: secret))],
            body: bounce)
        let expected = InboundReport(
            .receipt(DeliveryReference(full), .failed, reason: "smtp_5.2.2"),
            key: "bounce/\(DeliveryReference(full).header)/5.2.2")
        #expect(
            InboundRoute.bounces(SignedWebhook(path: "/bounces", secrets: [secret])).read(
                request, at: TestClock.now)
                == .pass([expected]), "\(String(decoding: bounce, as: UTF8.self))")

        try postfix.write("ola 2")
        let box = String(decoding: try #require(Base64.decode(try postfix.readLine())), as: UTF8.self)
        let sent = String(
            decoding: try MailMessage(order, from: configuration.sender, at: TestClock.now).content,
            as: UTF8.self)
        // As it was sent, with the line ends of the mailbox and its mark before `From`.
        let stored = sent.replacing("\r\n", with: "\n").replacing("\nFrom here", with: "\n>From here")
        #expect(box.contains(stored), "\(box)")
    }
}
