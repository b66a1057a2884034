import CanonicalJSON
import CourierModel
import CourierProviders
import Foundation
import GateVocabulary
import Testing

/// Against `h2` and `cryptography` in Python, over TLS with an authority of the test's own.
@Suite(.timeLimit(.minutes(1))) struct APNsProviderTests {
    final class Stage {
        let service: PushService
        let provider: APNsProvider
        let clock = MovableClock()
        let folder: TestFolder
        let key: CredentialFile

        init(
            streams: Int = 100, certificate: String = "good", protocols: String = "h2",
            limits: ConnectionLimits = .http2,
            trust: Bool = true, host: String = "localhost", window: Int? = nil
        ) throws {
            service = try PushService(
                certificate: certificate, streams: streams, protocols: protocols, window: window)
            folder = try TestFolder()
            key = try folder.secret(
                "apns.p8", String(contentsOfFile: PushKeys.credential("apns.p8").path, encoding: .utf8))
            provider = try APNsProvider(
                APNsConfiguration(
                    keyID: "KEYIDKEYID", teamID: "TEAMIDTEAM", key: key, environment: .sandbox,
                    topics: ["com.example.app", "no.getdrop.app"],
                    trust: trust ? try PushKeys.folder.get().file("ca.pem") : nil,
                    endpoint: "\(host):\(service.port)"),
                clock: clock.clock, limits: limits)
        }

        /// Answers of Apple's to one message that are not the usual one.
        func outcome(
            _ answer: JSONValue, of number: UInt64 = 1, collapses: Bool = true
        ) async throws -> DeliveryOutcome {
            try service.next(answer)
            return await provider.deliver(PushOrder.apple(number, collapses: collapses))
        }
    }

    private static func says(_ status: Int64, _ reason: String, _ more: JSONObject = [:]) -> JSONValue {
        var body: JSONObject = ["reason": .string(reason)]
        for (name, value) in more.members { body[name] = value }
        return ["status": .integer(status), "body": .string(JSONValue.object(body).description)]
    }

    // MARK: The request

    @Test func `a push keeps every rule of Apple's and is accepted under the message's id`() async throws {
        let stage = try Stage()
        let order = PushOrder.apple()
        #expect(await stage.provider.deliver(order) == .accepted(providerID: order.message.uuidText))
        let requests = try stage.service.requests()
        #expect(requests.map(\.broken) == [nil])
        let request = try #require(requests.first)
        #expect(request.path == "/3/device/\(PushOrder.token)")
        #expect(request.headers["apns-id"] == .string(order.message.uuidText))
        #expect(request.headers["apns-collapse-id"] == "00112233445566778899aabbccddeeff")
        #expect(request.body == order.body.description)
    }

    @Test func `whatever the gateway composes for Apple keeps the rules`() async throws {
        let stage = try Stage()
        let orders = try PushOrder.golden("apns-", token: PushOrder.token)
        let outcomes = await stage.provider.start(orders).value
        #expect(orders.count >= 12)
        #expect(outcomes.allSatisfy { $0.name == "accepted" })
        #expect(try stage.service.requests().allSatisfy { $0.broken == nil })
    }

    @Test(arguments: [
        "", "0g", "ab\"cd", "ab\r\ncd", "ab/../cd", "ab cd", "абвг", String(repeating: "ab", count: 101),
    ])
    func `a token that is not hexadecimal is refused before anything is written`(_ token: String) async throws
    {
        let stage = try Stage()
        #expect(
            await stage.provider.deliver(PushOrder.apple(token: token)) == .failed(reason: "token_malformed"))
        #expect(try stage.service.requests().isEmpty)
    }

    @Test func `4,096 bytes go, and 4,097 are refused before anything is written`() async throws {
        let stage = try Stage()
        let around = PushOrder.apple(text: "").body.description.utf8.count
        let fits = PushOrder.apple(text: String(repeating: "x", count: 4_096 - around))
        #expect(await stage.provider.deliver(fits) == .accepted(providerID: fits.message.uuidText))
        let tooLong = PushOrder.apple(text: String(repeating: "x", count: 4_097 - around))
        #expect(await stage.provider.deliver(tooLong) == .failed(reason: "PayloadTooLarge"))
        #expect(try stage.service.requests().map(\.body.utf8.count) == [4_096])
    }

    @Test func `a header that would break out of its line fails before anything is written`() async throws {
        let stage = try Stage()
        var order = PushOrder.apple()
        order.headers["apns-collapse-id"] = "a\r\napns-priority: 10"
        #expect(await stage.provider.deliver(order) == .failed(reason: "header_malformed"))
        #expect(try stage.service.requests().isEmpty)
    }

    @Test func `a topic of another app is a misconfiguration, and nothing is written`() async throws {
        let stage = try Stage()
        let outcome = await stage.provider.deliver(PushOrder.apple(topic: "com.example.second"))
        #expect(outcome == .misconfigured(reason: "topic_not_configured"))
        #expect(try stage.service.requests().isEmpty)
    }

    @Test func `nothing is written when the gateway has stopped waiting, or after the message's end`()
        async throws
    {
        let stage = try Stage()
        stage.clock.endPatience()
        let deadline = HandOverDeadline(bootID: "b", uptimeMilliseconds: 1)
        #expect(await stage.provider.deliver(PushOrder.apple(handOverBy: deadline)) == .tooLate)
        var late = PushOrder.apple()
        late.expiresAt = stage.clock.clock.now()
        #expect(await stage.provider.deliver(late) == .tooLate)
        #expect(try stage.service.requests().isEmpty)
    }

    @Test func `the gateway's patience is asked again just before the write`() async throws {
        // Given one stream, which is taken.
        let stage = try Stage(streams: 1, limits: Self.oneConnection)
        try stage.service.next(["do": "hold"])
        let first = stage.provider.start(PushOrder.apple(1))
        _ = try await stage.service.requests(1)
        // When the gateway gives up the second message while it waits for the stream.
        let deadline = HandOverDeadline(bootID: "b", uptimeMilliseconds: 1)
        let second = stage.provider.start(PushOrder.apple(2, handOverBy: deadline))
        await stage.clock.asked()
        stage.clock.endPatience()
        try stage.service.release()
        // Then it is never written.
        #expect(await first.value == .accepted(providerID: PushOrder.apple(1).message.uuidText))
        #expect(await second.value == .tooLate)
        #expect(try stage.service.requests().isEmpty)
    }

    // MARK: Answers

    @Test func `410 gives the token up with Apple's time`() async throws {
        let outcome = try await Stage().outcome(
            Self.says(410, "Unregistered", ["timestamp": 1_700_000_000_123]))
        #expect(outcome == .tokenGone(reason: "Unregistered", at: Instant(milliseconds: 1_700_000_000_123)))
    }

    @Test
    func `three hundred dead tokens of three hundred are doubted, and none of them after the fourth ends`()
        async throws
    {
        let stage = try Stage()
        let dead = Self.says(410, "Unregistered", ["timestamp": 1_700_000_000_123])
        var names: [String] = []
        for number in 1...300 { names.append(try await stage.outcome(dead, of: UInt64(number)).name) }
        #expect(
            names == Array(repeating: "token_gone", count: 4) + Array(repeating: "misconfigured", count: 296))
        let doubt = try #require(stage.provider.doubt)
        #expect(doubt.hasPrefix("dead_addresses_doubted: Unregistered of 300"), "\(doubt)")
        // A reload of credentials is a change of the configuration, and tries anew.
        try await stage.provider.reloadCredentials()
        #expect(stage.provider.doubt == nil)
    }

    @Test func `one bad token ends its message where others were taken, and waits where none was`()
        async throws
    {
        let stage = try Stage()
        let bad = Self.says(400, "BadDeviceToken")
        #expect(
            try await stage.outcome(bad) == .later(reason: "BadDeviceToken", seconds: 60, scope: .message))
        _ = await stage.provider.deliver(PushOrder.apple(2))
        #expect(try await stage.outcome(bad) == .failed(reason: "BadDeviceToken"))
    }

    @Test(
        arguments: [
            (
                ["status": 200, "body": #"{"reason":"BadDeviceToken"}"#],
                .ambiguous(reason: "BadDeviceToken", mayRepeat: true)
            ),
            (["status": 200, "body": "<html>"], .ambiguous(reason: "body_with_200", mayRepeat: true)),
            (
                ["status": 410, "body": "<html>gone"],
                .later(reason: "status_410", seconds: 60, scope: .message)
            ),
            (["status": 302, "body": ""], .misconfigured(reason: "status_302")),
            (
                ["status": 503, "body": "x", "headers": ["retry-after": "7"]],
                .later(reason: "status_503", seconds: nil, scope: .app)
            ),
            (
                ["status": 429, "body": #"{"reason":"TooManyRequests"}"#, "headers": ["retry-after": "90"]],
                .later(reason: "TooManyRequests", seconds: 90, scope: .message)
            ),
            (
                ["status": 403, "body": #"{"reason":"A\"b\r\n\u0000c"}"#],
                .misconfigured(reason: "status_403")
            ),
        ] as [(JSONValue, DeliveryOutcome)])
    func `an answer that is not Apple's ends nothing`(_ answer: JSONValue, _ outcome: DeliveryOutcome)
        async throws
    {
        #expect(try await Stage().outcome(answer) == outcome)
    }

    // MARK: The provider token

    @Test func `one provider token serves all requests for 50 minutes`() async throws {
        let stage = try Stage()
        _ = await stage.provider.start((1...50).map { PushOrder.apple($0) }).value
        stage.clock.pass(minutes: 49)
        try stage.service.setClock(ahead: 49 * 60)
        _ = await stage.provider.deliver(PushOrder.apple(51))
        let before = try stage.service.requests()
        #expect(before.count == 51)
        #expect(Set(before.map { $0.headers["authorization"] }).count == 1)
        stage.clock.pass(minutes: 1)
        _ = await stage.provider.deliver(PushOrder.apple(52))
        let after = try stage.service.requests()
        #expect(after.map(\.broken) == [nil])
        #expect(after[0].headers["authorization"] != before[0].headers["authorization"])
    }

    @Test func `an expired provider token is renewed once and the push goes again under the same id`()
        async throws
    {
        let stage = try Stage()
        _ = await stage.provider.deliver(PushOrder.apple(1))
        stage.clock.pass(minutes: 21)
        try stage.service.setClock(ahead: 21 * 60)
        _ = try stage.service.requests()
        let outcome = try await stage.outcome(Self.says(403, "ExpiredProviderToken"))
        #expect(outcome == .accepted(providerID: PushOrder.apple().message.uuidText))
        let requests = try stage.service.requests()
        #expect(requests.count == 2)
        #expect(Set(requests.map { $0.headers["authorization"] }).count == 2)
        #expect(Set(requests.map { $0.headers["apns-id"] }).count == 1)
    }

    @Test func `a new provider token goes over the connection on which the old one was refused`()
        async throws
    {
        let stage = try Stage(limits: Self.oneConnection)
        _ = await stage.provider.deliver(PushOrder.apple(1))
        stage.clock.pass(minutes: 21)
        try stage.service.setClock(ahead: 21 * 60)
        #expect(try await stage.outcome(Self.says(403, "ExpiredProviderToken")).name == "accepted")
        let requests = try stage.service.requests()
        #expect(requests.count == 3)
        #expect(Set(requests.map(\.connection)).count == 1)
        #expect(try stage.service.connectionCount() == 1)
    }

    @Test func `a key that is revoked in the middle is a misconfiguration, and ends no message`()
        async throws
    {
        let stage = try Stage()
        #expect(await stage.provider.deliver(PushOrder.apple(1)).name == "accepted")
        let outcome = try await stage.outcome(Self.says(403, "InvalidProviderToken"))
        #expect(outcome.name == "misconfigured")
        #expect(outcome.reason?.hasPrefix("InvalidProviderToken: check key_id, team_id and the key") == true)
        #expect(try stage.service.requests().count == 2)
    }

    @Test func `a clock an hour off is named, and no second token is asked of Apple within 20 minutes`()
        async throws
    {
        let stage = try Stage()
        stage.clock.setWall(ahead: -3_700)
        let outcome = await stage.provider.deliver(PushOrder.apple())
        #expect(
            outcome.reason?.hasPrefix("ExpiredProviderToken, this machine's clock is 37") == true
                && outcome.reason?.hasSuffix(" s behind the provider's") == true, "\(outcome)")
        #expect(outcome.name == "misconfigured")
        #expect(try stage.service.requests().count == 1)
        let fault = await stage.provider.check().compactMap(\.fault).joined()
        #expect(
            fault.hasPrefix("ExpiredProviderToken, this machine's clock is 37")
                && fault.hasSuffix(" s behind the provider's"), "\(fault)")
    }

    @Test func `a key of another kind is refused with its path, and a reload keeps the old one`() async throws
    {
        let stage = try Stage()
        _ = try stage.folder.secret(
            "apns.p8", String(contentsOfFile: PushKeys.credential("account.pub").path, encoding: .utf8))
        await #expect(throws: CredentialError.self) { try await stage.provider.reloadCredentials() }
        #expect(await stage.provider.deliver(PushOrder.apple()).name == "accepted")
        #expect(await stage.provider.check().first?.fault?.hasPrefix("is not a P-256 key in PEM") == true)
    }

    @Test func `a reload takes the new key without losing a stream`() async throws {
        let stage = try Stage()
        try stage.service.next(["do": "hold"])
        let held = stage.provider.start(PushOrder.apple(1))
        _ = try await stage.service.requests(1)
        _ = try stage.folder.secret(
            "apns.p8", String(contentsOfFile: PushKeys.credential("other.p8").path, encoding: .utf8))
        try await stage.provider.reloadCredentials()
        // Apple does not know the other key.
        let outcome = await stage.provider.deliver(PushOrder.apple(2))
        #expect(outcome.reason?.hasPrefix("InvalidProviderToken: check key_id, team_id and the key") == true)
        try stage.service.release()
        #expect(await held.value.name == "accepted")
    }

    // MARK: Connections

    static var oneConnection: ConnectionLimits {
        var limits = ConnectionLimits.http2
        (limits.connectionsMin, limits.connectionsMax) = (1, 1)
        return limits
    }

    @Test func `with one stream allowed, pushes go one by one until SETTINGS allow more`() async throws {
        let stage = try Stage(streams: 1, limits: Self.oneConnection)
        try stage.service.next(["do": "hold"], ["do": "hold"], ["do": "hold"])
        let outcomes = stage.provider.start((1...3).map { PushOrder.apple($0) })
        #expect(try await stage.service.requests(1).map(\.open) == [1])
        try stage.service.allow(streams: 100)
        #expect(try await stage.service.requests(2).map(\.open).max() == 3)
        try stage.service.release()
        #expect(await outcomes.value.map(\.name) == ["accepted", "accepted", "accepted"])
    }

    @Test func `connections grow by demand up to the limit`() async throws {
        let stage = try Stage(streams: 2)
        for _ in 1...16 { try stage.service.next(["do": "hold"]) }
        let outcomes = stage.provider.start((1...16).map { PushOrder.apple($0) })
        let requests = try await stage.service.requests(16)
        #expect(Set(requests.map(\.connection)).count == 8)
        #expect(requests.allSatisfy { $0.open <= 2 })
        try stage.service.release()
        #expect(await outcomes.value.count { $0.name == "accepted" } == 16)
    }

    @Test(arguments: ["refuse", "goaway_unread"])
    func `what Apple has not read goes again at once on another connection`(_ how: String) async throws {
        let stage = try Stage()
        #expect(try await stage.outcome(["do": .string(how)]).name == "accepted")
        let requests = try stage.service.requests()
        #expect(requests.count == 2)
        #expect(Set(requests.map(\.connection)).count == 2)
        #expect(Set(requests.map { $0.headers["apns-id"] }).count == 1)
    }

    @Test func `GOAWAY lets the streams that Apple has read end, and new ones go elsewhere`() async throws {
        // Given one connection, so that it is the held stream's that ends.
        let stage = try Stage(limits: Self.oneConnection)
        try stage.service.next(["do": "hold"])
        let held = stage.provider.start(PushOrder.apple(1))
        let first = try await stage.service.requests(1)
        #expect(try await stage.outcome(["do": "goaway_read"]).name == "accepted")
        #expect(await stage.provider.deliver(PushOrder.apple(3)).name == "accepted")
        try stage.service.release()
        #expect(await held.value.name == "accepted")
        let others = try stage.service.requests()
        #expect(others.count == 2)
        #expect(others.last?.connection != first[0].connection)
    }

    @Test func `the connection's window is renewed, and no answer is lost over it`() async throws {
        // Given a megabyte of answers on one connection, whose window is 65,535 bytes.
        let stage = try Stage(limits: Self.oneConnection)
        let padding = String(repeating: "x", count: 10_000)
        for _ in 1...100 {
            try stage.service.next(Self.says(400, "BadPriority", ["padding": .string(padding)]))
        }
        let outcomes = await stage.provider.start((1...100).map { PushOrder.apple($0) }).value
        #expect(outcomes.allSatisfy { $0 == .failed(reason: "BadPriority") })
        #expect(Set(try stage.service.requests().map(\.connection)).count == 1)
    }

    @Test func `a stream that is refused three times was never written`() async throws {
        let stage = try Stage()
        try stage.service.next(["do": "refuse"], ["do": "refuse"], ["do": "refuse"])
        let outcome = await stage.provider.deliver(PushOrder.apple())
        #expect(
            outcome
                == .later(reason: "provider_unreachable: 3 streams were refused", seconds: nil, scope: .app))
    }

    @Test(
        arguments: [
            ("reset", "unanswered: the provider reset the stream (HTTP/2 error 8)"),
            ("close", "unanswered: the connection was lost: the connection was cut off"),
            ("half", "unanswered: the connection was lost: the connection was cut off"),
            ("huge", "unanswered: the answer is longer than 65536 bytes"),
        ], [true, false])
    func `what was written and has no answer is ambiguous`(
        _ how: (name: String, reason: String), _ collapses: Bool
    ) async throws {
        let outcome = try await Stage().outcome(["do": .string(how.name)], collapses: collapses)
        #expect(outcome == .ambiguous(reason: how.reason, mayRepeat: collapses))
    }

    @Test func `a connection that has gone silent is found by a ping, and its pushes are ambiguous`()
        async throws
    {
        var limits = Self.oneConnection
        (limits.pingMilliseconds, limits.pingAnswerMilliseconds) = (100, 200)
        let stage = try Stage(limits: limits)
        #expect(
            try await stage.outcome(["do": "freeze"])
                == .ambiguous(
                    reason: "unanswered: the connection was lost: no answer to a ping within 200 ms",
                    mayRepeat: true))
        #expect(await stage.provider.deliver(PushOrder.apple(2)).name == "accepted")
    }

    @Test func `the answer to another ping is no sign of life`() async throws {
        var limits = Self.oneConnection
        (limits.pingMilliseconds, limits.pingAnswerMilliseconds) = (100, 200)
        let stage = try Stage(limits: limits)
        #expect(
            try await stage.outcome(["do": "lie"])
                == .ambiguous(
                    reason: "unanswered: the connection was lost: no answer to a ping within 200 ms",
                    mayRepeat: true))
    }

    @Test func `a push whose body the provider's window never lets through was not written`() async throws {
        let stage = try Stage(window: 0)
        var order = PushOrder.apple(collapses: false)
        order.answerBy = ProviderClock.uptimeMilliseconds() + DeliveryOrder.writeMilliseconds + 300
        #expect(await stage.provider.deliver(order) == .tooLate)
        #expect(try stage.service.requests().isEmpty)
    }

    @Test(arguments: [
        ("other_name", "h2", "TLS failed: the certificate is for another name"),
        ("expired", "h2", "TLS failed: the certificate is not trusted"),
        ("unknown", "h2", "TLS failed: the certificate is not trusted"),
        ("good", "http/1.1", "the server does not speak HTTP/2"),
    ])
    func `a server that is not surely Apple gets no request`(
        _ certificate: String, _ protocols: String, _ why: String
    ) async throws {
        let stage = try Stage(certificate: certificate, protocols: protocols)
        let outcome = await stage.provider.deliver(PushOrder.apple())
        // A certificate has to be mended by somebody; a protocol is the server's, which may be another one soon.
        #expect(outcome.name == (protocols == "h2" ? "misconfigured" : "later"))
        let reason = try #require(outcome.reason)
        #expect(
            reason.hasPrefix(
                "provider_unreachable: cannot connect to localhost:\(stage.service.port): \(why)"),
            "\(reason)")
        #expect(try stage.service.requests().isEmpty)
        #expect(await stage.provider.check().last?.fault.map { "provider_unreachable: \($0)" } == reason)
    }

    @Test func `without the trust file the test's own authority is not believed`() async throws {
        let stage = try Stage(trust: false)
        #expect(await stage.provider.deliver(PushOrder.apple()).reason?.contains("is not trusted") == true)
    }

    @Test func `a name that does not resolve, and a port where nobody listens, are told apart`() async throws
    {
        let stage = try Stage(host: "nowhere.invalid")
        #expect(
            await stage.provider.deliver(PushOrder.apple())
                == .misconfigured(
                    reason: "provider_unreachable: cannot find nowhere.invalid: its name does not resolve"))
        let port = try SilentListener().port
        let silent = try APNsProvider(
            APNsConfiguration(
                keyID: "KEYIDKEYID", teamID: "TEAMIDTEAM", key: stage.key, environment: .sandbox,
                topics: ["com.example.app"], endpoint: "127.0.0.1:\(port)"), clock: stage.clock.clock)
        #expect(
            await silent.deliver(PushOrder.apple())
                == .later(
                    reason: "provider_unreachable: cannot connect to 127.0.0.1:\(port): Connection refused",
                    seconds: nil,
                    scope: .app))
    }

    @Test func `a server that accepts and never answers is not waited for beyond the limit`() async throws {
        let listener = try SilentListener()
        var limits = Self.oneConnection
        limits.connectMilliseconds = 200
        let stage = try Stage()
        let provider = try APNsProvider(
            APNsConfiguration(
                keyID: "KEYIDKEYID", teamID: "TEAMIDTEAM", key: stage.key, environment: .sandbox,
                topics: ["com.example.app"], endpoint: "127.0.0.1:\(listener.port)"),
            clock: stage.clock.clock,
            limits: limits)
        #expect(
            await provider.deliver(PushOrder.apple())
                == .later(
                    reason:
                        "provider_unreachable: cannot connect to 127.0.0.1:\(listener.port): no h2 within 200 ms",
                    seconds: nil,
                    scope: .app))
    }

    @Test func `a cancelled push is given up at once, and says whether it was written`() async throws {
        let stage = try Stage()
        try stage.service.next(["do": "silence"])
        let task = Task { [provider = stage.provider] in await provider.deliver(PushOrder.apple()) }
        _ = try await stage.service.requests(1)
        task.cancel()
        #expect(
            await task.value
                == .ambiguous(
                    reason: "unanswered: the request was cancelled after it was written", mayRepeat: true))
        #expect(await stage.provider.deliver(PushOrder.apple(2)).name == "accepted")
    }

    @Test func `a push of a task that was cancelled before is never written`() async throws {
        let stage = try Stage()
        #expect(await stage.provider.deliverCancelled(PushOrder.apple(1)) == .stopping)
        #expect(await stage.provider.deliver(PushOrder.apple(2)).name == "accepted")
        #expect(
            try stage.service.requests().map { $0.headers["apns-id"]?.stringValue } == [
                PushOrder.apple(2).message.uuidText
            ])
    }

    @Test func `check reaches Apple without a push`() async throws {
        let stage = try Stage()
        #expect(await stage.provider.check().compactMap(\.fault) == [])
        // What it asks has no payload, and no device has such a token.
        let requests = try stage.service.requests()
        #expect(requests.map(\.path) == ["/3/device/00"])
        #expect(requests.map(\.body) == [""])
    }

    @Test(arguments: [
        ("InvalidProviderToken", "InvalidProviderToken: check key_id, team_id and the key"),
        ("BadEnvironmentKeyIdInToken", "BadEnvironmentKeyIdInToken"), ("TopicDisallowed", "TopicDisallowed"),
    ])
    func `check says what Apple refuses`(_ word: String, _ fault: String) async throws {
        let stage = try Stage()
        try stage.service.next(Self.says(403, word))
        let found = await stage.provider.check().compactMap(\.fault)
        #expect(found.count == 1 && found[0].hasPrefix(fault), "\(found)")
    }

    @Test func `a provider that nobody holds any more ends its connections`() async throws {
        let service = try PushService()
        let key = try PushKeys.credential("apns.p8")
        var provider: APNsProvider? = try APNsProvider(
            APNsConfiguration(
                keyID: "KEYIDKEYID", teamID: "TEAMIDTEAM", key: key, environment: .sandbox,
                topics: ["com.example.app"], trust: try PushKeys.folder.get().file("ca.pem"),
                endpoint: service.endpoint))
        #expect(await provider?.deliver(PushOrder.apple()).name == "accepted")
        #expect(try service.connectionCount() > 0)
        provider = nil
        let deadline = ContinuousClock.now + .seconds(20)
        while try service.connectionCount() > 0 {
            guard ContinuousClock.now < deadline else { throw PeerError("a connection stays") }
            await Task.yield()
        }
    }

    @Test func `a provider that is stopped writes nothing more`() async throws {
        let stage = try Stage()
        #expect(await stage.provider.deliver(PushOrder.apple(1)).name == "accepted")
        let running = Task { [provider = stage.provider] in try await provider.run() }
        running.cancel()
        _ = await running.result
        #expect(await stage.provider.deliver(PushOrder.apple(2)).name == "later")
    }
}

/// A socket whose connections are taken by the kernel and by nobody else.
final class SilentListener {
    let port: Int
    private let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        // `sockaddr_in`: family, port and address in the network's order, eight bytes of nothing.
        var address: [UInt8] = [UInt8(AF_INET), 0, 0, 0, 127, 0, 0, 1] + Array(repeating: 0, count: 8)
        var length = socklen_t(address.count)
        let isBound = address.withUnsafeMutableBytes { bytes in
            let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            return Foundation.bind(descriptor, pointer, length) == 0 && listen(descriptor, 8) == 0
                && getsockname(descriptor, pointer, &length) == 0
        }
        guard isBound else { throw PeerError("no port") }
        self.descriptor = descriptor
        port = Int(address[2]) << 8 | Int(address[3])
    }

    /// Returns when somebody has connected.
    func accepted() async {
        await withCheckedContinuation { continuation in
            let descriptor = descriptor
            Thread.detachNewThread {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                _ = poll(&waiting, 1, 20_000)
                continuation.resume()
            }
        }
    }

    deinit { close(descriptor) }
}
