import CanonicalJSON
import CourierModel
import CourierProviders
import Foundation
import GateVocabulary
import Testing

@Suite struct TextProviderTests {
    final class Stage {
        let folder: TestFolder
        let service: PeerProcess
        let provider: TextProvider
        let journal: CourierJournal
        let configuration: SMSConfiguration

        /// - Parameter template: `nil` for Twilio.
        init(
            _ answers: [JSONValue], template: TextTemplate? = nil, certificate: String = "good",
            journal path: String? = nil
        )
            throws
        {
            let certificates = try TestCertificates.folder.get()
            folder = try TestFolder()
            let table = CanonicalJSON.write(.array(answers))
            service = try PeerProcess(
                "text_service.py",
                [
                    certificates.file("\(certificate).pem"), certificates.file("\(certificate).key"),
                    String(decoding: table, as: UTF8.self),
                ])
            let url = "https://localhost:\(try service.readLine())"
            let credential = try folder.secret("secret", "s3cret\n")
            let account = TwilioAccount(
                accountSID: "AC00000000000000000000000000000001", credential: credential, from: "MG1",
                statusCallback: "https://hooks.pay.example/status")
            var configuration = SMSConfiguration(
                service: template.map { .json(url: url, secret: credential, template: $0) }
                    ?? .twilio(account))
            configuration.trust = certificates.file("ca.pem")
            configuration.endpoint = url
            self.configuration = configuration
            journal = try CourierJournal(path: path ?? folder.file("journal"), now: { TestClock.now })
            provider = try TextProvider(configuration, clock: TestClock.patient, single: SingleCopy(journal))
        }
    }

    static let taken: JSONValue = [
        "status": 201, "body": ["sid": "SM1", "status": "queued", "price": .null],
    ]
    static func order(_ number: UInt64 = 1, text: String = "Pay: kr 100 & \"Ødegård\"\n=?") -> DeliveryOrder {
        TestClock.order(.sms, number: number, to: "+4790000000", text: text)
    }

    @Test func `a text reaches Twilio as its form, and the second try has the first one's answer`()
        async throws
    {
        let stage = try Stage([Self.taken])
        #expect(await stage.provider.deliver(Self.order()) == .accepted(providerID: "SM1"))
        #expect(await stage.provider.deliver(Self.order()) == .accepted(providerID: "SM1"))
        #expect(await stage.provider.deliver(Self.order(2)) == .accepted(providerID: "SM1"))
        let request = try stage.service.readJSON()
        #expect(request["path"] == "/2010-04-01/Accounts/AC00000000000000000000000000000001/Messages.json")
        let (headers, body) = (try request.object("headers"), try request.text("body"))
        #expect(headers["content-type"] == "application/x-www-form-urlencoded")
        #expect(
            headers["authorization"]
                == .string(
                    "Basic " + Data("AC00000000000000000000000000000001:s3cret".utf8).base64EncodedString()))
        let form = try #require(URLComponents(string: "?\(body)")?.queryItems)
        #expect(
            form.map { "\($0.name)=\($0.value ?? "")" } == [
                "To=+4790000000", "Body=Pay: kr 100 & \"Ødegård\"\n=?", "MessagingServiceSid=MG1",
                "ValidityPeriod=3600",
                "StatusCallback=https://hooks.pay.example/status?send=00000000-0000-0002-0000-000000000001&destination=e_1",
            ])
        // The next request is the second message's.
        let next = try stage.service.readJSON().text("body")
        #expect(next.contains("-000000000002"))
    }

    @Test func `an answer that is lost is ambiguous, and the text never goes again`() async throws {
        let folder = try TestFolder()
        let expected = DeliveryOutcome.ambiguous(reason: "provider_unanswered", mayRepeat: false)
        do {
            let stage = try Stage([["drop": true], Self.taken], journal: folder.file("journal"))
            #expect(await stage.provider.deliver(Self.order()) == expected)
            #expect(await stage.provider.deliver(Self.order()) == expected)
            await stage.journal.close()
        }
        let stage = try Stage([Self.taken], journal: folder.file("journal"))
        #expect(await stage.provider.deliver(Self.order()) == expected)
        #expect(await stage.provider.deliver(Self.order(2)) == .accepted(providerID: "SM1"))
        let body = try stage.service.readJSON().text("body")
        #expect(body.contains("-000000000002"))
    }

    @Test func `what Twilio refuses ends, what it puts off goes again, and a wrong account waits`()
        async throws
    {
        let stage = try Stage([
            ["status": 400, "body": ["code": 21610, "message": "unsubscribed"]],
            ["status": 429, "body": ["code": 20429], "headers": ["Retry-After": "9"]],
            ["status": 401, "body": ["code": 20003]], ["status": 500, "body": "oops"], Self.taken,
        ])
        #expect(
            await stage.provider.deliver(Self.order(1))
                == .failed(reason: "twilio_21610_unsubscribed_at_carrier"))
        #expect(
            await stage.provider.deliver(Self.order(2))
                == .later(reason: "twilio_20429_too_many_requests", seconds: 9, scope: .app))
        #expect(
            await stage.provider.deliver(Self.order(2))
                == .misconfigured(reason: "twilio_20003_authentication_failed"))
        #expect(
            await stage.provider.deliver(Self.order(3))
                == .ambiguous(reason: "twilio_http_500", mayRepeat: false))
        #expect(await stage.provider.deliver(Self.order(2)) == .accepted(providerID: "SM1"))
        #expect(
            await stage.provider.deliver(Self.order(1))
                == .failed(reason: "twilio_21610_unsubscribed_at_carrier"))
        #expect(
            await stage.provider.deliver(Self.order(3))
                == .ambiguous(reason: "twilio_http_500", mayRepeat: false))
    }

    @Test func `a provider whose certificate is not trusted gets no text, and the text goes later`()
        async throws
    {
        let stage = try Stage([Self.taken], certificate: "self")
        let outcome = await stage.provider.deliver(Self.order())
        #expect(outcome.name == "misconfigured")
        #expect(outcome.reason?.hasPrefix("provider_unreachable: ") == true)
        #expect(stage.journal["once/\(Self.order().message.uuidText)"] == nil)
        #expect(await stage.provider.check().first?.fault != nil)
    }

    @Test func `a text is begun on a connection that stands, and one that gets none was never begun`()
        async throws
    {
        let stage = try Stage([Self.taken])
        // A service that accepts connections and never speaks TLS.
        let silent = try SilentListener()
        var configuration = stage.configuration
        configuration.endpoint = "https://localhost:\(silent.port)"
        let provider = try TextProvider(
            configuration, clock: TestClock.patient, single: SingleCopy(stage.journal))
        let key = "once/\(Self.order().message.uuidText)"
        let connecting = Task { await provider.deliver(Self.order()) }
        await silent.accepted()
        // What a courier that is killed now would find.
        #expect(stage.journal[key] == nil)
        connecting.cancel()
        #expect(await connecting.value == .stopping)
        #expect(await stage.provider.deliver(Self.order()) == .accepted(providerID: "SM1"))
        #expect(stage.journal[key]?.value["state"] == "accepted")
    }

    @Test func `a text is in the journal before its request is written`() async throws {
        let stage = try Stage([["status": 201, "body": ["sid": "SM1"], "delay": 60_000]])
        let key = "once/\(Self.order().message.uuidText)"
        let task = Task { [provider = stage.provider] in await provider.deliver(Self.order()) }
        // The service has read the request whole.
        _ = try stage.service.readJSON()
        #expect(stage.journal[key]?.value == ["state": "begun"])
        task.cancel()
        #expect(await task.value == .ambiguous(reason: "provider_unanswered", mayRepeat: false))
    }

    @Test func `a text that cannot be journaled is not written`() async throws {
        let stage = try Stage([Self.taken])
        await stage.journal.close()
        #expect(
            await stage.provider.deliver(Self.order())
                == .later(reason: "journal_unavailable", seconds: nil, scope: .app))
        // The connection that it did not go on carries the look at the account, which the service hears of first.
        _ = await stage.provider.check()
        #expect(try stage.service.readJSON()["method"] == "GET")
    }

    @Test func `numbers that are refused one after the other are doubted`() async throws {
        let stage = try Stage([["status": 400, "body": ["code": 21_614]]])
        var names: [String] = []
        for number in 1...6 { names.append(await stage.provider.deliver(Self.order(UInt64(number))).name) }
        #expect(names == Array(repeating: "failed", count: 4) + ["misconfigured", "misconfigured"])
    }

    @Test func `a text of a task that was cancelled is not written, and goes later`() async throws {
        let stage = try Stage([Self.taken])
        #expect(await stage.provider.deliverCancelled(Self.order()) == .stopping)
        #expect(stage.journal["once/\(Self.order().message.uuidText)"] == nil)
        #expect(await stage.provider.deliver(Self.order()) == .accepted(providerID: "SM1"))
    }

    @Test func `check reads the account and sends nothing`() async throws {
        let good = try Stage([["status": 200, "body": ["status": "active"]]])
        #expect(await good.provider.check().map(\.fault) == [nil])
        #expect(try good.service.readJSON()["method"] == "GET")
        let suspended = try Stage([["status": 200, "body": ["status": "suspended"]]])
        #expect(await suspended.provider.check().first?.fault == "the account is not active")
        let wrong = try Stage([["status": 401, "body": ["code": 20003]]])
        #expect(await wrong.provider.check().first?.fault?.contains("401") == true)
    }

    static let template = TextTemplate(
        path: "/v2/messages?to=${to}",
        headers: [("authorization", "Bearer ${secret}"), ("idempotency-key", "${id}")],
        body: [
            "messages": [
                ["recipient": "${to}", "content": "${text}", "ref": "${send}/${destination}", "flash": false]
            ]
        ],
        idPointer: JSONPointer(parsing: "/messages/0/id"), codePointer: JSONPointer(parsing: "/error/code"),
        statuses: [402: .misconfigured, 409: .accepted], codes: ["blocked": .failed, "slow": .later])

    @Test func `a template is filled without a way out of its strings`() async throws {
        #expect(Self.template.fault == nil)
        let stage = try Stage([["status": 202, "body": ["messages": [["id": 77]]]]], template: Self.template)
        let text = "\"},{\"recipient\":\"+1\",\"x\":\"${secret} ${to} \\ \u{7} 🇳🇴"
        #expect(await stage.provider.deliver(Self.order(text: text)) == .accepted(providerID: "77"))
        let request = try stage.service.readJSON()
        #expect(request["path"] == "/v2/messages?to=%2B4790000000")
        let (headers, body) = (try request.object("headers"), try request.text("body"))
        #expect(headers["authorization"] == "Bearer s3cret")
        #expect(headers["idempotency-key"] == "00000000-0000-0001-0000-000000000001")
        #expect(
            try CanonicalJSON.read(Array(body.utf8)) == [
                "messages": [
                    [
                        "recipient": "+4790000000", "content": .string(text),
                        "ref": "00000000-0000-0002-0000-000000000001/e_1", "flash": false,
                    ]
                ]
            ])
    }

    @Test func `a template's own table counts more than the statuses of HTTP`() async throws {
        let stage = try Stage(
            [
                ["status": 402], ["status": 400, "body": ["error": ["code": "slow"]]],
                ["status": 500, "body": ["error": ["code": "blocked"]]], ["status": 409],
                ["status": 400, "body": ["error": ["code": "no such number!"]]],
                ["status": 200, "body": ["error": ["code": "new"]]],
            ], template: Self.template)
        #expect(await stage.provider.deliver(Self.order(1)) == .misconfigured(reason: "provider_http_402"))
        #expect(
            await stage.provider.deliver(Self.order(1))
                == .later(reason: "provider_slow", seconds: nil, scope: .message))
        #expect(await stage.provider.deliver(Self.order(1)) == .failed(reason: "provider_blocked"))
        #expect(await stage.provider.deliver(Self.order(2)) == .accepted(providerID: nil))
        #expect(await stage.provider.deliver(Self.order(3)) == .failed(reason: "provider_no_such_number_"))
        // A success with a code that the table does not have.
        #expect(
            await stage.provider.deliver(Self.order(4))
                == .ambiguous(reason: "provider_new", mayRepeat: false))
    }

    @Test func `a text that had failed before Twilio answered is not taken for sent`() async throws {
        let stage = try Stage([
            ["status": 201, "body": ["sid": "SM1", "status": "failed", "error_code": 30007]],
            ["status": 201, "body": ["sid": "SM2", "status": "undelivered", "error_code": .null]],
            ["status": 201, "body": ["sid": "SM3", "status": "queued", "error_code": .null]],
        ])
        #expect(await stage.provider.deliver(Self.order(1)) == .failed(reason: "twilio_30007"))
        #expect(await stage.provider.deliver(Self.order(2)) == .failed(reason: "twilio_undelivered"))
        #expect(await stage.provider.deliver(Self.order(3)) == .accepted(providerID: "SM3"))
    }

    @Test func `an answer with a fraction is read, and one that cannot be read is not taken for a yes`()
        async throws
    {
        let stage = try Stage(
            [
                ["status": 200, "raw": #"{"price": 0.07, "error": {"code": "blocked"}}"#],
                ["status": 200, "raw": "<html>"],
            ], template: Self.template)
        #expect(await stage.provider.deliver(Self.order(1)) == .failed(reason: "provider_blocked"))
        #expect(
            await stage.provider.deliver(Self.order(2))
                == .ambiguous(reason: "provider_answer_unreadable", mayRepeat: false))
    }

    @Test
    func
        `a success without Twilio's name for the text is not taken for a yes, and the text never goes again`()
        async throws
    {
        let stage = try Stage([
            ["status": 200, "raw": "<html>"],
            ["status": 200, "body": ["code": 21_211, "message": "no", "status": 400]],
            ["status": 204, "raw": ""], Self.taken,
        ])
        for number in 1...3 as ClosedRange<UInt64> {
            for _ in 1...2 {
                #expect(
                    await stage.provider.deliver(Self.order(number))
                        == .ambiguous(reason: "provider_answer_unreadable", mayRepeat: false))
            }
        }
        #expect(await stage.provider.deliver(Self.order(4)) == .accepted(providerID: "SM1"))
    }

    @Test func `no text is written once the gateway has gone, also when the connection was long in coming`()
        async throws
    {
        // Given a deadline that passes between the provider's own look and the write.
        let stage = try Stage([Self.taken])
        let provider = try TextProvider(
            stage.configuration, clock: TestClock.over(after: 1), single: SingleCopy(stage.journal))
        var order = Self.order()
        order.handOverBy = HandOverDeadline(bootID: "b", uptimeMilliseconds: 1)
        #expect(await provider.deliver(order) == .tooLate)
        #expect(stage.journal["once/\(order.message.uuidText)"] == nil)
        // The first one that the service hears of is another.
        #expect(await stage.provider.deliver(Self.order(2)) == .accepted(providerID: "SM1"))
        let body = try stage.service.readJSON().text("body")
        #expect(body.contains("-000000000002"))
    }

    @Test func `a template that would send nothing, or the secret to the wrong place, is said so`() {
        func fault(_ change: (inout TextTemplate) -> Void) -> String? {
            var template = Self.template
            change(&template)
            return template.fault
        }
        #expect(fault { $0.body = ["to": "${to}"] } == "the body has no `${text}`")
        #expect(
            fault {
                $0.body = ["x": "${text}"]; $0.path = "/"
            } == "neither body nor path has `${to}`")
        #expect(
            fault { $0.path = "/${secret}/${to}" } == "`${secret}` stands in the path; put it into a header")
        #expect(
            fault { $0.headers = [("x", "${text}")] }
                == "`${text}` stands in the header `x`; put it into the body")
        #expect(
            fault { $0.path = "/${number}" }?.hasPrefix("`${number}` in the path is none of ${to}") == true)
    }

    @Test func `a new credential is read without a restart`() async throws {
        let stage = try Stage([Self.taken])
        #expect(await stage.provider.deliver(Self.order(1)) == .accepted(providerID: "SM1"))
        _ = try stage.folder.secret("secret", "0ther")
        try await stage.provider.reloadCredentials()
        #expect(await stage.provider.deliver(Self.order(2)) == .accepted(providerID: "SM1"))
        func authorization() throws -> String {
            try stage.service.readJSON().object("headers").text("authorization")
        }
        #expect(try authorization() != authorization())
    }
}
