import CourierModel
import CourierProviders
import GateVocabulary
import Synchronization
import Testing

@testable import Courier

@Suite struct DeliveryDeskTests {
    private let time = TestClock()
    private let log = LogLines()

    private func desk(
        _ providers: [ProviderLane: any DeliveryProvider], underWayMax: Int = 576, recentMax: Int = 16
    ) -> DeliveryDesk {
        DeliveryDesk(
            ProviderRegistry(providers), underWayMax: underWayMax, recentMax: recentMax, clock: time.clock,
            jitter: { 0 }, metrics: CourierMetrics(lanes: providers.keys), logger: log.logger)
    }

    private static let main = ProviderLane(.apns, app: "main")
    private static let outage = DeliveryOutcome.later(reason: "Shutdown", seconds: nil, scope: .app)

    @Test(arguments: [("boot", 1_000_000), ("boot", 999_999), ("another", 9_000_000)] as [(String, Int64)])
    func `nothing is written once the gateway counts its try as ended`(_ boot: String, _ uptime: Int64) async
    {
        let provider = ScriptedProvider()
        var order = DeliveryOrder.push(1)
        order.handOverBy = HandOverDeadline(bootID: boot, uptimeMilliseconds: uptime)
        #expect(await desk([Self.main: provider]).deliver(order) == .tooLate)
        #expect(provider.orders == [])
    }

    @Test func `a delivery whose trace is sampled is one line of the log, without its token`() async {
        let trace = TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        let desk = desk([Self.main: ScriptedProvider()])
        _ = await desk.deliver(.push(1))
        _ = await desk.deliver(.push(2), tracedTo: trace)
        let line = log.lines.filter { $0.contains("traceparent=") }
        #expect(line.count == 1 && line[0].hasPrefix("info delivered "), "\(log.lines)")
        #expect(
            line[0].contains("outcome=accepted")
                && line[0].contains("send_id=00000000-0000-4000-8000-000000000002"))
        #expect(!log.lines.joined().contains("secret-token"))
    }

    @Test func `nothing is written of an expired message`() async {
        let provider = ScriptedProvider()
        var order = DeliveryOrder.push(1)
        order.expiresAt = Instant(milliseconds: 1_000_000)
        #expect(await desk([Self.main: provider]).deliver(order) == .tooLate)
        #expect(provider.orders == [])
    }

    @Test func `a repeat of a message that is under way is not sent twice`() async {
        let (begun, end) = (Latch(), Latch())
        let provider = ScriptedProvider { _ in
            begun.open()
            await end.wait()
            return .accepted(providerID: "p-1")
        }
        let desk = desk([Self.main: provider])
        async let first = desk.deliver(.push(1))
        await begun.wait()
        async let second = desk.deliver(.push(1))
        #expect(desk.underWayCount == 1)
        end.open()
        let outcomes = await [first, second]
        // The repeat may arrive when the first has just ended: then it was seen before.
        #expect(outcomes[0] == .accepted(providerID: "p-1"))
        let accepted = DeliveryOutcome.accepted(providerID: "p-1")
        #expect([accepted, .seenBefore(accepted)].contains(outcomes[1]))
        #expect(provider.orders.count == 1)
        #expect(desk.underWayCount == 0)
    }

    @Test func `a repeat to another address does not get the first one's outcome`() async {
        let (begun, end) = (Latch(), Latch())
        let provider = ScriptedProvider { _ in
            begun.open()
            await end.wait()
            return .tokenGone(reason: "Unregistered", at: nil)
        }
        let desk = desk([Self.main: provider])
        async let first = desk.deliver(.push(1))
        await begun.wait()
        var repeated = DeliveryOrder.push(1)
        repeated.token = "another"
        #expect(
            await desk.deliver(repeated)
                == .later(reason: "message_under_way", seconds: 1, scope: .message))
        end.open()
        #expect(await first == .tokenGone(reason: "Unregistered", at: nil))
    }

    @Test func `a relay that is silent leaves room for pushes`() async {
        let end = Latch()
        let silent = ScriptedProvider { _ in
            await end.wait()
            return .accepted(providerID: nil)
        }
        let desk = desk(
            [ProviderLane(.mail): silent, Self.main: ScriptedProvider()], underWayMax: 8)
        await withTaskGroup(of: Void.self) { tasks in
            func mail(_ number: Int) -> DeliveryOrder {
                var order = DeliveryOrder.push(number)
                (order.channel, order.platform, order.app) = (.email, nil, nil)
                return order
            }
            for number in 1...2 { tasks.addTask { _ = await desk.deliver(mail(number)) } }
            while desk.underWayCount < 2 { await Task.yield() }
            #expect(
                await desk.deliver(mail(3)) == .later(reason: "courier_busy", seconds: 1, scope: .message))
            #expect(await desk.deliver(.push(4)) == .accepted(providerID: "p-1"))
            end.open()
        }
        #expect(await desk.deliver(.push(5)) == .accepted(providerID: "p-1"))
    }

    @Test func `an order has eight seconds from its arrival, or until the gateway goes`() async {
        let seen = Mutex<[Int64?]>([])
        let provider = ScriptedProvider { order in
            seen.withLock { $0.append(order.answerBy) }
            return .accepted(providerID: nil)
        }
        let desk = desk([Self.main: provider])
        _ = await desk.deliver(.push(1))
        var order = DeliveryOrder.push(2)
        order.handOverBy = HandOverDeadline(bootID: "boot", uptimeMilliseconds: 1_003_000)
        _ = await desk.deliver(order)
        #expect(seen.withLock { $0 } == [1_008_000, 1_003_000])
        // Its last second is the provider's, for the answer.
        order.answerBy = 1_003_000
        #expect(time.clock.allows(order) && time.clock.left(order, atMost: 9_000) == 3_000)
        time.advance(byMilliseconds: 2_001)
        #expect(!time.clock.allows(order))
    }

    @Test func `what was taken is answered as seen before, and what was not goes again`() async {
        let taken = ScriptedProvider()
        let refusing = ScriptedProvider(.failed(reason: "BadTopic"))
        let desk = desk([Self.main: taken, ProviderLane(.apns, app: "other"): refusing], recentMax: 2)
        #expect(await desk.deliver(.push(1)) == .accepted(providerID: "p-1"))
        #expect(await desk.deliver(.push(1)) == .seenBefore(.accepted(providerID: "p-1")))
        #expect(taken.orders.count == 1)
        for _ in 0..<2 { #expect(await desk.deliver(.push(2, app: "other")) == .failed(reason: "BadTopic")) }
        #expect(refusing.orders.count == 2)
        // The memory is bounded.
        for number in 3...4 { _ = await desk.deliver(.push(number)) }
        #expect(await desk.deliver(.push(1)) == .accepted(providerID: "p-1"))
    }

    @Test func `over the bound an order is answered at once, and those under way are not disturbed`() async {
        let (begun, end) = (Latch(), Latch())
        let provider = ScriptedProvider { order in
            if order.message == DeliveryOrder.push(8).message { begun.open() }
            await end.wait()
            return .accepted(providerID: nil)
        }
        let desk = desk([Self.main: provider], underWayMax: 8)
        let outcomes = await withTaskGroup(of: DeliveryOutcome.self) { tasks in
            for number in 1...8 { tasks.addTask { await desk.deliver(.push(number)) } }
            await begun.wait()
            while desk.underWayCount < 8 { await Task.yield() }
            let over = await desk.deliver(.push(9))
            #expect(over == .later(reason: "courier_busy", seconds: 1, scope: .message))
            end.open()
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes == Array(repeating: .accepted(providerID: nil), count: 8))
        #expect(await desk.deliver(.push(9)) == .accepted(providerID: nil))
    }

    @Test func `an app's outage opens its circuit alone, and one order finds out when it ends`() async {
        let broken = ScriptedProvider(Self.outage)
        let fine = ScriptedProvider()
        let desk = desk([
            Self.main: broken, ProviderLane(.fcm, app: "main"): fine, ProviderLane(.apns, app: "other"): fine,
        ])
        #expect(await desk.deliver(.push(1)) == Self.outage)
        #expect(await desk.deliver(.push(2)) == .later(reason: "Shutdown", seconds: 1, scope: .app))
        #expect(broken.orders.count == 1)
        #expect(await desk.deliver(.push(3, app: "other")) == .accepted(providerID: "p-1"))
        #expect(await desk.deliver(.push(4, platform: .android)) == .accepted(providerID: "p-1"))
        time.advance(byMilliseconds: 500)
        #expect(await desk.deliver(.push(5)) == Self.outage)
        #expect(broken.orders.count == 2)
        #expect(log.lines.count { $0.hasPrefix("warning a circuit is open") } == 1)
    }

    @Test func `a configuration that is wrong raises an alarm, one line a minute, and never says a token`()
        async
    {
        let desk = desk([Self.main: ScriptedProvider(.misconfigured(reason: "InvalidProviderToken"))])
        for number in 1...50 {
            let (status, _, _) = await desk.deliver(.push(number)).answer
            #expect(status == 503)
            time.advance(byMilliseconds: 1_000)
        }
        #expect(desk.openCircuits[Self.main]?.isConfiguration == true)
        #expect(log.lines.count == 1)
        time.advance(byMilliseconds: 60_000)
        _ = await desk.deliver(.push(51))
        #expect(log.lines.count == 2)
        #expect(
            log.lines[0]
                == "error the configuration keeps messages from going; `sendgate-courier check` says more lane=apns main reason=InvalidProviderToken"
        )
        #expect(!log.lines.contains { $0.contains("secret-token") })
    }

    @Test func `an app that nothing is configured for waits`() async {
        let desk = desk([:])
        #expect(await desk.deliver(.push(1)) == .misconfigured(reason: "no_provider"))
        #expect(desk.openCircuits[Self.main] == Circuit.Cause(reason: "no_provider", isConfiguration: true))
        #expect(log.lines.count == 1)
    }

    @Test func `an app that nothing is configured for is told of while its messages wait, and no longer`()
        async
    {
        let desk = desk([Self.main: ScriptedProvider()])
        let stranger = ProviderLane(.fcm, app: "main")
        _ = await desk.deliver(.push(1, platform: .android))
        #expect(desk.openCircuits[stranger] != nil)
        // It comes again within a minute for as long as it waits.
        for _ in 1...5 {
            time.advance(byMilliseconds: 100_000)
            _ = await desk.deliver(.push(1, platform: .android))
            #expect(desk.openCircuits[stranger] != nil)
        }
        time.advance(byMilliseconds: DeliveryDesk.strangerMilliseconds)
        #expect(desk.openCircuits.isEmpty)
        // A way out that is configured stays until a message has gone.
        let other = self.desk([Self.main: ScriptedProvider(.misconfigured(reason: "x"))])
        _ = await other.deliver(.push(1))
        time.advance(byMilliseconds: DeliveryDesk.strangerMilliseconds)
        #expect(other.openCircuits[Self.main] != nil)
    }

    @Test func `a repeat of a push to a dead token is told so, and one to a new token goes`() async {
        let gone = DeliveryOutcome.tokenGone(reason: "Unregistered", at: Instant(milliseconds: 7))
        let provider = ScriptedProvider { $0.token == "secret-token" ? gone : .accepted(providerID: "p-1") }
        let desk = desk([Self.main: provider])
        #expect(await desk.deliver(.push(1)) == gone)
        #expect(await desk.deliver(.push(1)) == .seenBefore(gone))
        var renewed = DeliveryOrder.push(1)
        renewed.token = "another"
        #expect(await desk.deliver(renewed) == .accepted(providerID: "p-1"))
        #expect(provider.orders.count == 2)
    }

    /// Doubts every address until it is told not to.
    private final class DoubtingProvider: DeliveryProvider {
        private let isConfirmed = Mutex(false)
        static let reason = "dead_addresses_doubted: Unregistered of 20 in a row"
        func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome {
            doubt.map(DeliveryOutcome.misconfigured) ?? .tokenGone(reason: "Unregistered", at: nil)
        }
        var doubt: String? { isConfirmed.withLock { $0 } ? nil : Self.reason }
        func confirmDeadAddresses() { isConfirmed.withLock { $0 = true } }
        var descriptorCountMax: Int { 1 }
        func check() async -> [ProviderFinding] { [] }
        func run() async throws {}
        func reloadCredentials() async throws {}
    }

    @Test
    func
        `addresses that are doubted stop the app, are named in /readyz and the log, until an operator confirms`()
        async
    {
        let provider = DoubtingProvider()
        let desk = desk([Self.main: provider, ProviderLane(.fcm, app: "main"): ScriptedProvider()])
        let metrics = CourierMetrics(lanes: [Self.main])
        func ask(_ method: String, _ target: String, _ body: String = "") -> (status: Int, body: String) {
            let answer = CourierRoutes.operations(
                HTTPRequest(method: method, target: target, body: Array(body.utf8)), at: desk, metrics)
            return (answer.status, String(decoding: answer.body, as: UTF8.self))
        }
        // Known before an order comes, as from Expo's receipts.
        #expect(ask("GET", "/readyz").status == 503)
        #expect(await desk.deliver(.push(1)).answer.status == 503)
        #expect(
            ask("GET", "/readyz").body
                == #"{"ready":false,"reasons":["apns main: \#(DoubtingProvider.reason)"],"waiting":[]}"#)
        #expect(
            ask("GET", "/metrics").body.contains(
                #"sendgate_courier_misconfigured{service="apns",app="main"} 1"#))
        #expect(
            log.lines == [
                "error messages wait, because so many addresses cannot be dead lane=apns main reason=\(DoubtingProvider.reason)"
            ])
        #expect(await desk.deliver(.push(2, platform: .android)) == .accepted(providerID: "p-1"))

        #expect(ask("GET", "/v1/dead-addresses").status == 405)
        for body in ["", "[]", "{}", #"{"confirm":1}"#, #"{"confirm":"apns main","more":1}"#] {
            #expect(ask("POST", "/v1/dead-addresses", body).status == 400, "\(body)")
        }
        let unknown = ask("POST", "/v1/dead-addresses", #"{"confirm":"apns other"}"#)
        #expect(unknown.status == 404 && unknown.body.contains("there are: apns main, fcm main"))
        #expect(ask("GET", "/readyz").status == 503)
        #expect(ask("POST", "/v1/dead-addresses", #"{"confirm":"apns main"}"#).status == 200)
        // The next order tries at once, and ends.
        #expect(await desk.deliver(.push(3)) == .tokenGone(reason: "Unregistered", at: nil))
        #expect(ask("GET", "/readyz").status == 200)
    }

    @Test func `a message that waits by itself is in the log once, and in /readyz while it waits`() async {
        let waits = DeliveryOutcome.later(reason: "BadDeviceToken", seconds: 60, scope: .message)
        let desk = desk([Self.main: ScriptedProvider(waits)])
        func readyz() -> String {
            let answer = CourierRoutes.operations(
                HTTPRequest(method: "GET", target: "/readyz"), at: desk, CourierMetrics(lanes: []))
            return "\(answer.status) " + String(decoding: answer.body, as: UTF8.self)
        }
        let waiting = #"200 {"ready":true,"reasons":[],"waiting":["apns main: BadDeviceToken"]}"#
        for _ in 1...9 {
            #expect(await desk.deliver(.push(1)) == waits)
            #expect(readyz() == waiting)
            time.advance(byMilliseconds: 60_000)
        }
        #expect(
            log.lines == [
                "warning a message waits, and others of its app may go lane=apns main reason=BadDeviceToken"
            ])
        time.advance(byMilliseconds: 60_000)
        _ = await desk.deliver(.push(1))
        #expect(log.lines.count == 2)
        // It is told for a minute, and for as long as a message may take to come again.
        time.advance(byMilliseconds: 60_000 + WaitingReasons.marginMilliseconds - 1)
        #expect(readyz() == waiting)
        time.advance(byMilliseconds: 1)
        #expect(readyz() == #"200 {"ready":true,"reasons":[],"waiting":[]}"#)
    }

    @Test func `what the courier itself cannot do in time is no reason to look for`() async {
        let desk = desk([Self.main: ScriptedProvider(.tooLate)])
        _ = await desk.deliver(.push(1))
        #expect(desk.waitingReasons.isEmpty && log.lines.isEmpty)
    }

    @Test func `a provider cannot make the courier keep more than a thousand reasons`() {
        var waiting = WaitingReasons()
        for number in 1...2_500 {
            let isNew = waiting.note("r\(number)", on: Self.main, seconds: nil, at: 0)
            #expect(isNew)
            #expect(waiting.reasons(at: 0).count <= WaitingReasons.countMax)
        }
    }

    @Test func `credentials that were read again let the next order try at once`() async {
        let desk = desk([Self.main: ScriptedProvider(.misconfigured(reason: "x"))])
        _ = await desk.deliver(.push(1))
        desk.retryCircuits()
        #expect(await desk.deliver(.push(2)) == .misconfigured(reason: "x"))
    }

    @Test func `a reload reads every credential again, and one that cannot be used keeps no other from it`()
        async
    {
        let (good, bad) = (ReloadingProvider(isRefused: false), ReloadingProvider(isRefused: true))
        let providers: [ProviderLane: any DeliveryProvider] = [
            Self.main: bad, ProviderLane(.fcm, app: "main"): good,
        ]
        let registry = ProviderRegistry(providers)
        let metrics = CourierMetrics(lanes: providers.keys)
        let desk = DeliveryDesk(
            registry, underWayMax: 8, clock: time.clock, jitter: { 0 }, metrics: metrics, logger: log.logger)
        _ = await desk.deliver(.push(1))
        await CredentialReload(registry: registry, desk: desk, metrics: metrics, logger: log.logger).reload()
        #expect(good.count == 1)
        #expect(
            log.lines.contains(
                "error the credentials cannot be used; the old ones stay error=the credential `/k` is missing lane=apns main"
            ))
        #expect(log.lines.contains("notice the credentials were read again lane=fcm main"))
        let page = metrics.exposition(desk)
        #expect(page.contains(#"credential_reloads_total{result="done"} 1"#))
        #expect(page.contains(#"credential_reloads_total{result="refused"} 1"#))
        // The circuit that the wrong credential opened lets one try.
        #expect(await desk.deliver(.push(2)) == .misconfigured(reason: "x"))
    }

    private final class ReloadingProvider: DeliveryProvider {
        private let reloads = Mutex(0)
        private let isRefused: Bool
        init(isRefused: Bool) { self.isRefused = isRefused }
        var count: Int { reloads.withLock { $0 } }
        func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome { .misconfigured(reason: "x") }
        var descriptorCountMax: Int { 1 }
        func check() async -> [ProviderFinding] { [] }
        func run() async throws {}
        func reloadCredentials() async throws {
            if isRefused { throw CredentialError(path: "/k", why: "is missing", hint: "") }
            reloads.withLock { $0 += 1 }
        }
    }

    @Test func `metrics count each outcome, know the alarm, and name no app of a stranger`() async {
        let providers: [ProviderLane: any DeliveryProvider] = [
            Self.main: ScriptedProvider(.misconfigured(reason: "x")), ProviderLane(.sms): ScriptedProvider(),
        ]
        let metrics = CourierMetrics(lanes: providers.keys)
        let desk = DeliveryDesk(
            ProviderRegistry(providers), underWayMax: 8, clock: time.clock, jitter: { 0 }, metrics: metrics,
            logger: log.logger)
        _ = await desk.deliver(.push(1))
        _ = await desk.deliver(.push(2, app: "stranger\"\n"))
        metrics.inbound(status: 204)
        metrics.reloaded(isRefused: true)
        let text = metrics.exposition(desk)
        for line in [
            #"sendgate_courier_deliveries_total{service="apns",app="main",outcome="misconfigured"} 1"#,
            #"sendgate_courier_deliveries_total{service="apns",app="other",outcome="misconfigured"} 1"#,
            #"sendgate_courier_delivery_seconds_bucket{service="apns",le="0.01"} 2"#,
            #"sendgate_courier_delivery_seconds_count{service="apns"} 2"#,
            "sendgate_courier_deliveries_under_way 0",
            #"sendgate_courier_circuit_open{service="apns",app="main"} 1"#,
            #"sendgate_courier_misconfigured{service="apns",app="main"} 1"#,
            #"sendgate_courier_misconfigured{service="apns",app="other"} 1"#,
            #"sendgate_courier_misconfigured{service="sms",app=""} 0"#,
            #"sendgate_courier_credential_reloads_total{result="refused"} 1"#,
            #"sendgate_courier_inbound_requests_total{status="2xx"} 1"#,
        ] {
            #expect(text.contains(line + "\n"), "\(line)")
        }
        #expect(!text.contains("stranger"))
    }

    @Test(arguments: [
        (Channel.push, Platform.ios as Platform?, nil as PushProvider?, "apns main"),
        (.push, .android, nil, "fcm main"), (.push, .android, .expo, "expo main"),
        (.push, .ios, .expo, "expo main"),
        (.sms, nil, nil, "sms"), (.email, nil, nil, "mail"),
    ])
    func `an order's way out is that of its channel, platform, provider and app`(
        _ channel: Channel, _ platform: Platform?, _ provider: PushProvider?, _ lane: String
    ) {
        var order = DeliveryOrder.push(1)
        (order.channel, order.platform, order.provider) = (channel, platform, provider)
        #expect(ProviderLane(order).description == lane)
    }
}
