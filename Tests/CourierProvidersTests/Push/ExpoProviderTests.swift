import CanonicalJSON
import CourierModel
import CourierProviders
import Foundation
import GateVocabulary
import Synchronization
import Testing

/// Against a stand-in in Python over HTTP/1.1.
@Suite(.timeLimit(.minutes(1))) struct ExpoProviderTests {
    /// What the gateway was told, and what it says.
    final class Gateway: Sendable {
        let told = Mutex<[JSONValue]>([])
        let status = Mutex<Int?>(204)
    }

    final class Stage {
        let service: PushService
        let provider: ExpoProvider
        let clock = MovableClock()
        let folder: TestFolder
        let gateway = Gateway()

        init(
            token: String? = "expo-token\n", journal: CourierJournal? = nil, folder: TestFolder? = nil,
            certificate: String = "good"
        ) throws {
            service = try PushService(certificate: certificate)
            let scratch = try folder ?? TestFolder()
            self.folder = scratch
            provider = try Self.provider(
                service, scratch, clock, gateway, token,
                try journal ?? CourierJournal(path: scratch.file("journal"), now: clock.clock.now))
        }

        static func provider(
            _ service: PushService, _ folder: TestFolder, _ clock: MovableClock, _ gateway: Gateway,
            _ token: String?, _ journal: CourierJournal
        ) throws -> ExpoProvider {
            try ExpoProvider(
                ExpoConfiguration(
                    accessToken: try token.map { try folder.secret("token", $0) },
                    trust: try PushKeys.folder.get().file("ca.pem"), endpoint: service.endpoint),
                name: "main", journal: journal, clock: clock.clock
            ) { path, body in
                gateway.told.withLock { $0.append(["path": .string(path), "body": body]) }
                return gateway.status.withLock { $0 }.map { GatewayAnswer(status: $0, body: nil) }
            }
        }

        func outcome(_ answer: JSONValue, collapses: Bool = true) async throws -> DeliveryOutcome {
            try service.next(answer)
            return await provider.deliver(PushOrder.expo(collapses: collapses))
        }

        func tickets() throws -> Int {
            try String(contentsOfFile: folder.file("journal"), encoding: .utf8).split(separator: "\n").count
        }
    }

    private static func says(_ error: String) -> JSONValue {
        [
            "status": 200,
            "body": .string(
                JSONValue.object([
                    "data": [["status": "error", "message": "x", "details": ["error": .string(error)]]]
                ]).description),
        ]
    }

    @Test func `a push carries its token and the access token, and its ticket is kept before it is answered`()
        async throws
    {
        let stage = try Stage()
        #expect(await stage.provider.deliver(PushOrder.expo()) == .accepted(providerID: "ticket-1"))
        #expect(try stage.tickets() == 1)
        let requests = try stage.service.requests()
        #expect(requests.map(\.broken) == [nil])
        #expect(requests[0].headers["authorization"] == "Bearer expo-token")
        #expect(
            requests[0].body
                == #"[{"body":"B","collapseId":"00112233445566778899aabbccddeeff","title":"T","to":"ExponentPushToken[a]"}]"#
        )
    }

    /// The files are held to what the gateway composes by `GoldenPayloadTests`.
    private static func composed() throws -> [String] {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../PayloadCompositionTests/Golden")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        return names.filter { $0.hasPrefix("expo-") }.map { folder.appendingPathComponent($0).path }.sorted()
    }

    @Test func `every message that the gateway composes for Expo is one that Expo takes`() async throws {
        let composed = try Self.composed()
        #expect(composed.count >= 20)
        let stage = try Stage()
        for path in composed {
            let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
            var order = PushOrder.expo()
            order.body = try CanonicalJSON.read(Array(try #require(lines.dropFirst().first).utf8))
            #expect(await stage.provider.deliver(order).name == "accepted", "\(path)")
        }
        #expect(try stage.service.requests().allSatisfy { $0.broken == nil })
    }

    /// Without a name for its copies a message goes once; the app replaces a data message by the tag in its data.
    @Test(
        arguments: [
            (["title": "T"], false), (["collapseId": "00"], true), (["tag": "00"], true),
            (["data": ["collapse": "00"]], true), (["data": ["body": "B"]], false),
        ] as [(JSONObject, Bool)])
    func `a push goes again only where its copies replace one another`(
        _ body: JSONObject, _ mayRepeat: Bool
    ) async throws {
        let stage = try Stage()
        try stage.service.next(["status": 200, "body": "<html>"])
        var order = PushOrder.expo()
        order.body = .object(body)
        #expect(
            await stage.provider.deliver(order) == .ambiguous(reason: "status_200", mayRepeat: mayRepeat))
    }

    @Test func `two hundred and fifty pushes at once are three requests, and each gets its own outcome`()
        async throws
    {
        let stage = try Stage(token: nil)
        let orders = (1...250).map {
            PushOrder.expo($0, token: $0 % 50 == 0 ? "ExponentPushToken[gone]" : "ExpoPushToken[a]")
        }
        let outcomes = await stage.provider.start(orders).value
        for (index, outcome) in outcomes.enumerated() {
            #expect(outcome.name == ((index + 1) % 50 == 0 ? "token_gone" : "accepted"))
        }
        #expect(Set(outcomes.compactMap { if case .accepted(let id) = $0 { id } else { nil } }).count == 245)
        #expect(try stage.tickets() == 245)
        let requests = try stage.service.requests()
        #expect(requests.allSatisfy { $0.broken == nil })
        #expect(requests.count <= 6, "\(requests.count)")
    }

    @Test(arguments: [
        "", "ExponentPushToken[]", "ExponentPushToken[a", "ExponentPushToken[a\"]",
        "ExponentPushToken[a\r\n]", "a[b]", "ExpoPushToken[a b]", "F5f8E9a0-0b1C-4d2e-8F3a-4b5c6d7e8f9",
        "ExponentPushToken[a]ExponentPushToken[b]",
    ])
    func `a token that is none of Expo's is refused before anything is written`(_ token: String) async throws
    {
        let stage = try Stage()
        #expect(
            await stage.provider.deliver(PushOrder.expo(token: token)) == .failed(reason: "token_malformed"))
        #expect(try stage.service.requests().isEmpty)
    }

    @Test func `a message that Expo refuses does not spoil the others of its request`() async throws {
        let stage = try Stage()
        let orders = (1...5).map {
            PushOrder.expo($0, token: $0 == 3 ? "ExponentPushToken[other-project]" : "ExponentPushToken[a]")
        }
        let outcomes = await stage.provider.start(orders).value
        #expect(outcomes.map(\.name) == Array(repeating: "accepted", count: 5))
        let broken = try stage.service.requests().map(\.broken)
        #expect(broken == ["PUSH_TOO_MANY_EXPERIENCE_IDS", nil, nil, nil, nil, nil])
    }

    @Test(
        arguments: [
            (says("DeviceNotRegistered"), true, .tokenGone(reason: "DeviceNotRegistered", at: nil)),
            (says("MessageTooBig"), true, .failed(reason: "MessageTooBig")),
            (
                says("MessageRateExceeded"), true,
                .later(reason: "MessageRateExceeded", seconds: 30, scope: .message)
            ),
            (says("InvalidCredentials"), true, .misconfigured(reason: "InvalidCredentials")),
            (["status": 200, "body": "<html>"], true, .ambiguous(reason: "status_200", mayRepeat: true)),
            (
                ["status": 200, "body": #"{"data":[]}"#], false,
                .ambiguous(reason: "status_200", mayRepeat: false)
            ),
            (
                ["status": 200, "body": #"{"errors":[{"code":"X"}]}"#], true,
                .ambiguous(reason: "X", mayRepeat: true)
            ),
            (
                ["status": 401, "body": #"{"errors":[{"code":"UNAUTHORIZED"}]}"#], true,
                .misconfigured(reason: "UNAUTHORIZED")
            ),
            (
                ["status": 429, "body": "", "headers": ["retry-after": "9"]], true,
                .later(reason: "status_429", seconds: 9, scope: .app)
            ),
            (["status": 502, "body": "<html>"], false, .ambiguous(reason: "status_502", mayRepeat: false)),
            (
                ["do": "huge"], true,
                .ambiguous(
                    reason: "unanswered: the connection was lost: the answer is longer than 65536 bytes",
                    mayRepeat: true)
            ),
        ] as [(JSONValue, Bool, DeliveryOutcome)])
    func `each answer of Expo's has its outcome`(
        _ answer: JSONValue, _ collapses: Bool, _ outcome: DeliveryOutcome
    ) async throws {
        #expect(try await Stage().outcome(answer, collapses: collapses) == outcome)
    }

    @Test(arguments: ["close", "half"], [true, false])
    func `a lost answer is ambiguous, and harmless to repeat with a collapse id alone`(
        _ how: String, _ collapses: Bool
    ) async throws {
        guard
            case .ambiguous(_, collapses) = try await Stage().outcome(
                ["do": .string(how)], collapses: collapses)
        else {
            Issue.record("not ambiguous")
            return
        }
    }

    // MARK: Receipts

    @Test
    func `receipts are asked for after 15 minutes, and an error is told to the gateway with the push's time`()
        async throws
    {
        let stage = try Stage()
        // One after the other, so that the third has the third ticket.
        for (number, name) in ["a", "stale", "later"].enumerated() {
            let order = PushOrder.expo(UInt64(number), token: "ExponentPushToken[\(name)]")
            #expect(await stage.provider.deliver(order).name == "accepted")
        }
        _ = try stage.service.requests()
        stage.clock.pass(minutes: 14)
        await stage.provider.fetchReceipts()
        #expect(try stage.service.requests().isEmpty)
        stage.clock.pass(minutes: 2)
        await stage.provider.fetchReceipts()
        #expect(try stage.service.requests().map(\.broken) == [nil])
        let told = stage.gateway.told.withLock { $0 }
        #expect(told.count == 1)
        #expect(told[0]["path"] == "/v1/receipts")
        let body = told[0]["body"]
        #expect(body?["event"] == "token_gone")
        #expect(body?["reason"] == "DeviceNotRegistered")
        #expect(body?["send"]?.stringValue == PushOrder.expo(1).send.uuidText)
        let at = try #require(body?["at"]?.stringValue.flatMap { Instant(rfc3339: $0) })
        let age = stage.clock.clock.now().milliseconds - at.milliseconds
        #expect((960_000..<980_000).contains(age), "\(age)")
        // The one without a receipt is asked for again, the others are not.
        await stage.provider.fetchReceipts()
        #expect(try stage.service.requests().isEmpty)
        stage.clock.pass(minutes: 15)
        await stage.provider.fetchReceipts()
        #expect(try stage.service.requests().map(\.body) == [#"{"ids":["ticket-3"]}"#])
        #expect(stage.gateway.told.withLock { $0.count } == 1)
    }

    @Test func `receipts that call every token dead are not believed until an operator confirms it`()
        async throws
    {
        let stage = try Stage()
        for part in 0..<3 {
            _ = await stage.provider.start(
                (1...100).map {
                    PushOrder.expo(UInt64(part * 100 + $0), token: "ExponentPushToken[stale]")
                }
            ).value
        }
        stage.clock.pass(minutes: 16)
        _ = try stage.service.requests()
        await stage.provider.fetchReceipts()
        #expect(try stage.service.requests().count == 3)
        #expect(stage.gateway.told.withLock { $0.isEmpty })
        #expect(stage.provider.doubt?.contains("DeviceNotRegistered of 300") == true)
        // Pushes that would be lost like these wait, and Expo is asked for the receipts again.
        #expect(await stage.provider.deliver(PushOrder.expo(901)).name == "misconfigured")
        #expect(try stage.service.requests().isEmpty)
        // One a minute goes, whose receipt may tell otherwise.
        stage.clock.pass(minutes: 1)
        #expect(await stage.provider.deliver(PushOrder.expo(902)).name == "accepted")
        #expect(await stage.provider.deliver(PushOrder.expo(903)).name == "misconfigured")
        stage.provider.confirmDeadAddresses()
        #expect(stage.provider.doubt == nil)
        stage.clock.pass(minutes: 15)
        await stage.provider.fetchReceipts()
        #expect(stage.gateway.told.withLock { $0.count } == 300)
        #expect(await stage.provider.deliver(PushOrder.expo(901)).name == "accepted")
    }

    @Test func `a receipt that the gateway did not take is told again`() async throws {
        let stage = try Stage()
        _ = await stage.provider.deliver(PushOrder.expo(token: "ExponentPushToken[stale]"))
        stage.clock.pass(minutes: 16)
        stage.gateway.status.withLock { $0 = nil }
        await stage.provider.fetchReceipts()
        stage.gateway.status.withLock { $0 = 404 }
        await stage.provider.fetchReceipts()
        await stage.provider.fetchReceipts()
        let told = stage.gateway.told.withLock { $0 }
        #expect(told.count == 2)
        #expect(told[0] == told[1])
    }

    @Test func `where no ticket can be kept any more, pushes wait and nothing is written`() async throws {
        let folder = try TestFolder()
        var limits = CourierJournal.Limits()
        limits.entryCountMaxByPrefix = ["expo": 1]
        let journal = try CourierJournal(
            path: folder.file("journal"), limits: limits, now: { ProviderClock.system.now() })
        let stage = try Stage(journal: journal, folder: folder)
        #expect(await stage.provider.deliver(PushOrder.expo(1)).name == "accepted")
        #expect(
            await stage.provider.deliver(PushOrder.expo(2))
                == .later(reason: "journal_full", seconds: 60, scope: .app))
        #expect(try stage.service.requests().count == 1)
        #expect(journal.hasRoom(for: "once/1"))
    }

    @Test func `a hundred tickets are asked for in one request`() async throws {
        let stage = try Stage()
        for part in 0..<4 {
            _ = await stage.provider.start((1...100).map { PushOrder.expo(UInt64(part * 100 + $0)) }).value
        }
        stage.clock.pass(minutes: 16)
        _ = try stage.service.requests()
        await stage.provider.fetchReceipts()
        let requests = try stage.service.requests()
        #expect(requests.map(\.broken) == [nil, nil, nil, nil])
        #expect(requests.map { $0.body.split(separator: ",").count } == [100, 100, 100, 100])
    }

    @Test func `tickets outlive the courier, and end after a day`() async throws {
        let folder = try TestFolder()
        let first = try Stage(folder: folder)
        _ = await first.provider.deliver(PushOrder.expo(token: "ExponentPushToken[stale]"))
        // A copy, because the first courier still holds its journal.
        try FileManager.default.copyItem(atPath: folder.file("journal"), toPath: folder.file("journal2"))
        first.clock.pass(minutes: 16)
        let second = try Stage.provider(
            first.service, folder, first.clock, first.gateway, nil,
            try CourierJournal(path: folder.file("journal2"), now: first.clock.clock.now))
        await second.fetchReceipts()
        #expect(first.gateway.told.withLock { $0.count } == 1)
        first.clock.pass(minutes: 25 * 60)
        try FileManager.default.copyItem(atPath: folder.file("journal"), toPath: folder.file("journal3"))
        let third = try CourierJournal(path: folder.file("journal3"), now: first.clock.clock.now)
        #expect(third.entries(withPrefix: "expo/").isEmpty)
    }

    @Test(arguments: ["", "\n", "a b\n", "é\n", "token\nanother\n", "token\n\n"])
    func `an access token that is none is refused with its path, and a reload keeps the old one`(
        _ text: String
    ) async throws {
        let stage = try Stage()
        _ = try stage.folder.secret("token", text)
        await #expect(throws: CredentialError.self) { try await stage.provider.reloadCredentials() }
        #expect(await stage.provider.deliver(PushOrder.expo()).name == "accepted")
        _ = try stage.folder.secret("token", "another")
        try await stage.provider.reloadCredentials()
        #expect(await stage.provider.deliver(PushOrder.expo()) == .misconfigured(reason: "UNAUTHORIZED"))
    }

    @Test func `a cancelled push is left out of its request, and the others go`() async throws {
        let stage = try Stage()
        let others = stage.provider.start(
            (1...3).map { PushOrder.expo($0, token: "ExponentPushToken[\($0)]") })
        #expect(
            await stage.provider.deliverCancelled(PushOrder.expo(4, token: "ExponentPushToken[x]"))
                == .stopping)
        #expect(await others.value.map(\.name) == ["accepted", "accepted", "accepted"])
        #expect(try stage.service.requests().allSatisfy { !$0.body.contains("[x]") })
    }

    @Test func `4,096 bytes go, and 4,097 are refused before anything is written`() async throws {
        let stage = try Stage()
        func order(_ count: Int) -> DeliveryOrder {
            var order = PushOrder.expo()
            let around = JSONValue.object(["body": "", "collapseId": "c"]).description.utf8.count
            order.body = ["body": .string(String(repeating: "x", count: count - around)), "collapseId": "c"]
            return order
        }
        #expect(await stage.provider.deliver(order(4_096)).name == "accepted")
        #expect(await stage.provider.deliver(order(4_097)) == .failed(reason: "MessageTooBig"))
        #expect(try stage.service.requests().count == 1)
    }

    @Test(arguments: [
        ("other_name", "the certificate is for another name"), ("expired", "the certificate is not trusted"),
        ("unknown", "the certificate is not trusted"), ("itself", "the certificate is not trusted"),
    ])
    func `a server that is not surely Expo gets no request`(_ certificate: String, _ why: String) async throws
    {
        let stage = try Stage(certificate: certificate)
        let outcome = await stage.provider.deliver(PushOrder.expo())
        #expect(outcome.name == "misconfigured")
        #expect(outcome.reason?.contains("TLS failed: \(why)") == true, "\(outcome)")
        #expect(try stage.service.requests().isEmpty)
    }

    @Test func `check reaches Expo without a push`() async throws {
        let stage = try Stage()
        let findings = await stage.provider.check()
        #expect(findings.compactMap(\.fault) == [])
        #expect(findings.count == 2)
        #expect(try stage.service.requests().isEmpty)
    }
}
