import CanonicalJSON
import CourierModel
import CourierProviders
import Foundation
import GateVocabulary
import Testing

/// Against `h2` and `cryptography` in Python.
@Suite(.timeLimit(.minutes(1))) struct FCMProviderTests {
    final class Stage {
        let service: PushService
        let provider: FCMProvider
        let clock = MovableClock()
        let folder: TestFolder

        init(certificate: String = "good", protocols: String = "h2,http/1.1") throws {
            service = try PushService(certificate: certificate, protocols: protocols)
            folder = try TestFolder()
            provider = try FCMProvider(
                FCMConfiguration(
                    serviceAccount: try PushKeys.account(service, in: folder),
                    trust: try PushKeys.folder.get().file("ca.pem"), endpoint: service.endpoint),
                clock: clock.clock)
        }

        func outcome(_ answer: JSONValue, collapses: Bool = true) async throws -> DeliveryOutcome {
            try service.next(answer)
            return await provider.deliver(PushOrder.google(collapses: collapses))
        }

        func account(_ change: (String) -> String) throws -> CredentialFile {
            let text = try String(contentsOfFile: folder.file("account.json"), encoding: .utf8)
            return try folder.secret("account.json", change(text))
        }
    }

    private static func says(_ status: Int64, _ state: String, _ code: String? = nil) -> JSONValue {
        var error: JSONObject = ["code": .integer(status), "message": "no", "status": .string(state)]
        if let code {
            error["details"] = [
                ["@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(code)]
            ]
        }
        return [
            "status": .integer(status),
            "body": .string(JSONValue.object(["error": .object(error)]).description),
        ]
    }

    @Test func `a push carries the token and an access token, and Google's name of it is kept`() async throws
    {
        let stage = try Stage()
        let order = PushOrder.google()
        #expect(
            await stage.provider.deliver(order) == .accepted(providerID: "projects/courier-test/messages/1"))
        let requests = try stage.service.requests()
        #expect(requests.map(\.broken) == [nil, nil])
        #expect(requests.map(\.path) == ["/token", "/v1/projects/courier-test/messages:send"])
        #expect(
            requests[1].body
                == #"{"message":{"android":{"priority":"HIGH","ttl":"300s"},"data":{"body":"A","collapse":"00112233445566778899aabbccddeeff"},"token":"fcm-token:1"}}"#
        )
    }

    @Test(arguments: [
        ("other_name", "the certificate is for another name"), ("expired", "the certificate is not trusted"),
        ("unknown", "the certificate is not trusted"), ("itself", "the certificate is not trusted"),
    ])
    func `a token server that is not surely Google's gets no assertion`(_ certificate: String, _ why: String)
        async throws
    {
        let stage = try Stage(certificate: certificate)
        let outcome = await stage.provider.deliver(PushOrder.google())
        guard case .misconfigured(let reason) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(reason.hasPrefix("oauth_unreachable: "), "\(reason)")
        #expect(reason.contains("TLS failed: \(why)"), "\(reason)")
        #expect(try stage.service.requests().isEmpty)
    }

    @Test func `whatever the gateway composes for Google fits FCM's own description and may be repeated`()
        async throws
    {
        let stage = try Stage()
        let orders = try PushOrder.golden("fcm-", token: "fcm-token:1")
        let outcomes = await stage.provider.start(orders).value
        #expect(orders.count >= 12)
        #expect(outcomes.allSatisfy { $0.name == "accepted" })
        #expect(try stage.service.requests().allSatisfy { $0.broken == nil })
        for order in orders {
            try stage.service.next(["do": "reset"])
            guard case .ambiguous(_, true) = await stage.provider.deliver(order) else {
                Issue.record("nothing replaces \(order.body)")
                continue
            }
        }
    }

    @Test(arguments: ["", "a b", "a\"b", "a\r\nb", "a\\b", "é", String(repeating: "a", count: 1_025)])
    func `a token that is none is refused before anything is written`(_ token: String) async throws {
        let stage = try Stage()
        #expect(
            await stage.provider.deliver(PushOrder.google(token: token)) == .failed(reason: "token_malformed")
        )
        #expect(try stage.service.requests().isEmpty)
    }

    @Test func `4,096 bytes of what the gateway composed go, and 4,097 are refused`() async throws {
        let stage = try Stage()
        let around = PushOrder.google(text: "").body.description.utf8.count
        let fits = PushOrder.google(text: String(repeating: "x", count: 4_096 - around))
        #expect(await stage.provider.deliver(fits).name == "accepted")
        let tooLong = PushOrder.google(text: String(repeating: "x", count: 4_097 - around))
        #expect(await stage.provider.deliver(tooLong) == .failed(reason: "payload_too_large"))
    }

    @Test func `a spike of UNREGISTERED is doubted`() async throws {
        let stage = try Stage()
        var names: [String] = []
        for number in 1...30 {
            try stage.service.next(Self.says(404, "NOT_FOUND", "UNREGISTERED"))
            names.append(await stage.provider.deliver(PushOrder.google(UInt64(number))).name)
        }
        #expect(names.prefix(5) == ["token_gone", "token_gone", "token_gone", "token_gone", "misconfigured"])
        #expect(Set(names.dropFirst(4)) == ["misconfigured"])
        #expect(stage.provider.doubt?.contains("UNREGISTERED of 30") == true)
    }

    @Test func `UNREGISTERED alone gives a token up`() async throws {
        let stage = try Stage()
        #expect(
            try await stage.outcome(Self.says(404, "NOT_FOUND", "UNREGISTERED"))
                == .tokenGone(reason: "UNREGISTERED", at: nil))
        #expect(try await stage.outcome(Self.says(404, "NOT_FOUND")) == .misconfigured(reason: "NOT_FOUND"))
    }

    @Test(
        arguments: [
            (["status": 200, "body": "<html>"], true, .ambiguous(reason: "status_200", mayRepeat: true)),
            (
                ["status": 200, "body": #"{"error":{"status":"X"}}"#], false,
                .ambiguous(reason: "error_with_200", mayRepeat: false)
            ),
            (["status": 503, "body": "busy"], true, .later(reason: "status_503", seconds: 10, scope: .app)),
            (["status": 503, "body": "busy"], false, .ambiguous(reason: "status_503", mayRepeat: false)),
            (
                ["status": 429, "body": "", "headers": ["retry-after": "120"]], true,
                .later(reason: "status_429", seconds: 120, scope: .app)
            ),
            (["status": 301, "body": ""], true, .misconfigured(reason: "status_301")),
            (
                ["do": "reset"], true,
                .ambiguous(
                    reason: "unanswered: the provider reset the stream (HTTP/2 error 8)", mayRepeat: true)
            ),
        ] as [(JSONValue, Bool, DeliveryOutcome)])
    func `an answer that is not Google's ends nothing`(
        _ answer: JSONValue, _ collapses: Bool, _ outcome: DeliveryOutcome
    ) async throws {
        #expect(try await Stage().outcome(answer, collapses: collapses) == outcome)
    }

    @Test func `one access token serves all requests, and one task renews it five minutes before its end`()
        async throws
    {
        let stage = try Stage()
        _ = await stage.provider.start((1...20).map { PushOrder.google($0) }).value
        #expect(try stage.service.requests().count { $0.path == "/token" } == 1)
        stage.clock.pass(minutes: 54)
        try stage.service.setClock(ahead: 54 * 60)
        _ = await stage.provider.deliver(PushOrder.google())
        #expect(try stage.service.requests().count { $0.path == "/token" } == 0)
        // Within five minutes of its end it is still used, while the next one is fetched.
        stage.clock.pass(minutes: 2)
        try stage.service.setClock(ahead: 56 * 60)
        let outcomes = await stage.provider.start((1...20).map { PushOrder.google($0) }).value
        #expect(outcomes.allSatisfy { $0.name == "accepted" })
        let requests = try await stage.service.requests(21)
        #expect(requests.count { $0.path == "/token" } == 1)
        #expect(requests.allSatisfy { $0.broken == nil })
    }

    @Test func `where the early renewal fails the old token serves, and the token server is left in peace`()
        async throws
    {
        let stage = try Stage()
        #expect(await stage.provider.deliver(PushOrder.google()).name == "accepted")
        _ = try stage.service.requests()
        stage.clock.pass(minutes: 56)
        try stage.service.setClock(ahead: 56 * 60)
        // Given a wall clock that somebody set back, so that the token server refuses.
        stage.clock.setWall(ahead: 0)
        for number in UInt64(1)...20 {
            #expect(await stage.provider.deliver(PushOrder.google(number)).name == "accepted")
        }
        let requests = try await stage.service.requests(21)
        #expect(requests.count { $0.path == "/token" } == 1)
    }

    @Test func `a token server that refuses is asked again after a pause, and not with every push`()
        async throws
    {
        let stage = try Stage()
        try stage.service.setClock(ahead: 3_600)
        func deliver(_ count: UInt64) async throws -> (names: Set<String>, tokens: Int) {
            var names: Set<String> = []
            for number in 1...count {
                names.insert(await stage.provider.deliver(PushOrder.google(number)).name)
            }
            return (names, try stage.service.requests().count { $0.path == "/token" })
        }
        #expect(try await deliver(20) == (["misconfigured"], 1))
        stage.clock.pass(minutes: 1)
        #expect(try await deliver(20) == (["misconfigured"], 1))
        // A reload asks at once.
        try stage.service.setClock(ahead: 60)
        try await stage.provider.reloadCredentials()
        #expect(try await deliver(20) == (["accepted"], 1))
    }

    @Test func `where Google refuses new access tokens too, the token server is left in peace`()
        async throws
    {
        let stage = try Stage()
        let refusal = Self.says(401, "UNAUTHENTICATED")
        for _ in 1...21 { try stage.service.next(refusal) }
        for number in UInt64(1)...20 {
            #expect(await stage.provider.deliver(PushOrder.google(number)).name == "misconfigured")
        }
        #expect(try stage.service.requests().count { $0.path == "/token" } == 2)
    }

    @Test func `an access token that Google takes no more is renewed once`() async throws {
        let stage = try Stage()
        #expect(await stage.provider.deliver(PushOrder.google()).name == "accepted")
        #expect(try await stage.outcome(Self.says(401, "UNAUTHENTICATED")).name == "accepted")
        #expect(try stage.service.requests().count { $0.path == "/token" } == 2)
        let refusal = Self.says(401, "UNAUTHENTICATED")
        try stage.service.next(refusal)
        #expect(try await stage.outcome(refusal) == .misconfigured(reason: "UNAUTHENTICATED"))
        #expect(
            try await stage.outcome(Self.says(401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"))
                == .misconfigured(reason: "THIRD_PARTY_AUTH_ERROR"))
    }

    @Test func `a clock an hour off is named where the token server refuses`() async throws {
        let stage = try Stage()
        try stage.service.setClock(ahead: 3_600)
        let outcome = await stage.provider.deliver(PushOrder.google())
        #expect(outcome.name == "misconfigured")
        #expect(
            outcome.reason?.hasPrefix(
                "oauth_invalid_grant: check the account's key; this machine's clock is 36") == true
                || outcome.reason?.contains("this machine's clock is 3599 s") == true, "\(outcome)")
        #expect(await stage.provider.check().compactMap(\.fault).count == 1)
    }

    @Test func `an account revoked in the middle is a misconfiguration, and a new one works after a reload`()
        async throws
    {
        let stage = try Stage()
        #expect(await stage.provider.deliver(PushOrder.google()).name == "accepted")
        // Given another account, whose key Google does not know.
        let good = try String(contentsOfFile: stage.folder.file("account.json"), encoding: .utf8)
        _ = try stage.account { $0.replacing("courier@", with: "nobody@") }
        try await stage.provider.reloadCredentials()
        #expect(
            await stage.provider.deliver(PushOrder.google()).reason?.hasPrefix("oauth_invalid_grant") == true)
        _ = try stage.account { _ in good }
        try await stage.provider.reloadCredentials()
        #expect(await stage.provider.deliver(PushOrder.google()).name == "accepted")
    }

    @Test(arguments: [
        (#""type": "service_account""#, #""type": "authorized_user""#, "is not of a service account"),
        (
            #""project_id": "courier-test""#, #""project_id": "a/../b""#,
            "has a `project_id` that no project has"
        ),
        (#""project_id": "courier-test""#, #""project": "x""#, "has no `project_id`"),
        ("https://localhost", "http://localhost", "has a `token_uri` that is no https address"),
        (
            "BEGIN PRIVATE", "BEGIN",
            "has a `private_key` that is no RSA key of 2,048 bits and more"
        ),
        (#"{"type""#, #"["type""#, "is not a JSON object"),
    ])
    func `a service account's file that is none is refused with what is wrong, and the old one stays`(
        _ from: String, _ to: String, _ why: String
    ) async throws {
        let stage = try Stage()
        let file = try stage.account { $0.replacing(from, with: to) }
        await #expect {
            try await stage.provider.reloadCredentials()
        } throws: { error in
            (error as? CredentialError)?.why == why && "\(error)" == "the credential `\(file.path)` \(why)"
        }
        #expect(await stage.provider.deliver(PushOrder.google()).name == "accepted")
    }

    @Test func `check exchanges a token and sends nothing`() async throws {
        let stage = try Stage()
        let findings = await stage.provider.check()
        #expect(findings.compactMap(\.fault) == [])
        #expect(findings.count == 3)
        #expect(try stage.service.requests().map(\.path) == ["/token"])
    }
}
