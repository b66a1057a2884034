import CanonicalJSON
import CourierModel
import CourierProviders
import Foundation
import GateVocabulary
import Logging
import ServiceLifecycle
import Synchronization
import Testing
import UnixHTTPClient
import UnixSockets

@testable import Courier

/// The courier over its real sockets, with a scripted provider.
@Suite struct ListenerTests {
    private let log = LogLines()

    /// Runs the courier while `body` does, then shuts it down.
    private func withCourier(
        _ provider: any DeliveryProvider, change: (inout CourierConfiguration) -> Void = { _ in },
        _ body: (_ folder: String, _ services: CourierServices) async throws -> Void
    ) async throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        var configuration = try CourierConfiguration.development(folder.path, credentialsDirectory: nil)
        change(&configuration)
        let listening = Latch()
        let services = try CourierServices(
            configuration, registry: ProviderRegistry([ProviderLane(.apns, app: "main"): provider]),
            journal: nil,
            clock: .system, handlesSignals: false, logger: log.logger,
            whenListening: { _ in listening.open() })
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await services.run() }
            await listening.wait()
            try await body(folder.path, services)
            await services.group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    @Test func `each socket of a service manager is taken by its name, and none is left over`() throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        var configuration = try CourierConfiguration.development(folder.path, credentialsDirectory: nil)
        configuration.inbound = InboundConfiguration(host: "127.0.0.1", port: 0)
        func inherited(_ names: [String]) throws -> InheritedSockets {
            try InheritedSockets(
                environment: [
                    "LISTEN_PID": "42", "LISTEN_FDS": "\(names.count)",
                    "LISTEN_FDNAMES": names.joined(separator: ":"),
                ], processID: 42)
        }
        #expect(try configuration.addresses(.none)[.gate] == .unix(configuration.socket))
        configuration.inheritedNames = [.gate: "gate", .inbound: "webhooks"]
        let handed = try inherited(["webhooks", "gate"])
        let addresses = try configuration.addresses(handed)
        #expect(addresses[.gate] == .inherited(name: "gate", descriptor: 4, isPublic: false))
        #expect(addresses[.inbound] == .inherited(name: "webhooks", descriptor: 3, isPublic: true))
        #expect(addresses[.operations] == configuration.operations.map(HTTPListener.Address.unix))
        for names in [["gate"], ["gate", "webhooks", "more"], ["gate", "gate", "webhooks"], []] {
            let handed = try inherited(names)
            #expect(throws: EndpointError.self) { try configuration.addresses(handed) }
        }
    }

    @Test func `an order comes over a socket that was handed over, and the file stays`() async throws {
        let path = "/tmp/sendgate-courier-\(UUID().uuidString.prefix(8))"
        #expect(mkdir(path, 0o700) == 0)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let socketPath = "\(path)/courier.sock"
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        _ = SystemCall.withAddress(of: socketPath) { bind(descriptor, $0, $1) }
        listen(descriptor, 8)
        let listener = HTTPListener(
            on: .inherited(name: "gate", descriptor: descriptor, isPublic: false),
            limits: HTTPListenerLimits(bodyByteCountMax: 1_024),
            refusal: { $0 == geteuid() ? nil : .refusal(403, "") }, logger: log.logger
        ) { _ in HTTPAnswer(204) }
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [listener], gracefulShutdownSignals: [], logger: log.logger))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            // What connects before it listens waits: the socket is the manager's.
            let answer = try await RawClient.ask(unix: socketPath, "GET", "/healthz", body: "")
            #expect(answer.status == 204)
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
        #expect(access(socketPath, F_OK) == 0)
    }

    private static func body(_ number: Int) -> String {
        String(decoding: CanonicalJSON.write(DeliveryOrder.push(number).json), as: UTF8.self)
    }

    private static func post(_ folder: String, _ body: String) async throws -> String {
        try await RawClient.ask(unix: "\(folder)/courier.sock", "POST", "/v1/deliveries", body: body)
    }

    @Test func `an order gets its outcome as the answer`() async throws {
        try await withCourier(ScriptedProvider()) { folder, _ in
            let answer = try await Self.post(folder, Self.body(1))
            #expect(answer.status == 200)
            #expect(answer.answerBody == #"{"outcome":"accepted","provider_id":"p-1"}"#)
            #expect(try await Self.post(folder, Self.body(1)).status == 409)
        }
    }

    @Test func `a directory that the gateway cannot enter is said with what to do`() async throws {
        // The folder of a test has mode 0700, and is this user's.
        let other = geteuid() + 4_294
        try await withCourier(ScriptedProvider(), change: { $0.gateUserIDs = [geteuid(), other] }) {
            folder, _ in
            let told = log.lines.filter { $0.hasPrefix("warning the gateway cannot connect: ") }
            #expect(told.count == 1)
            #expect(told.first?.contains("uid \(other) cannot reach `\(folder)/courier.sock`") == true)
            #expect(told.first?.contains("run `chmod 0750 \(folder)`") == true)
            try FileManager.default.setAttributes([.posixPermissions: 0o750], ofItemAtPath: folder)
            let socket = SocketFile(path: "\(folder)/courier.sock")
            #expect(socket.obstacle(forUser: other) == nil)
        }
    }

    @Test func `a journal that was damaged is said, with what was lost, what was kept and where`()
        async throws
    {
        let folder = try CourierFolder()
        defer { folder.remove() }
        let configuration = try CourierConfiguration.development(folder.path, credentialsDirectory: nil)
        let journal = try #require(try configuration.openJournal(.system))
        for name in ["once/a", "once/b"] {
            try await journal.commit([
                .put(name, CourierJournal.Entry("x", keptUntil: Instant(milliseconds: 4_000_000_000_000)))
            ])
        }
        await journal.close()
        let file = "\(folder.path)/journal"
        let text = try String(contentsOfFile: file, encoding: .utf8)
        try folder.write("journal", text + "torn")
        _ = try CourierServices(configuration, logger: log.logger)
        #expect(
            log.lines.contains { line in
                line.hasPrefix("error the journal was damaged; ") && line.contains("journal=\(file) ")
                    && line.contains("kept_entries=2") && line.contains("lost_lines=1")
                    && line.contains("lost_lines_are_in=\(file).damaged")
            }, "\(log.lines)")
        #expect(try String(contentsOfFile: file + ".damaged", encoding: .utf8) == "torn\n")
    }

    @Test func `"later" has its Retry-After`() async throws {
        let provider = ScriptedProvider(.later(reason: "TooManyRequests", seconds: 7, scope: .message))
        try await withCourier(provider) { folder, _ in
            let answer = try await Self.post(folder, Self.body(1))
            #expect(answer.status == 503)
            #expect(answer.contains("retry-after: 7\r\n"))
        }
    }

    @Test func `an order that is none is refused with what is wrong`() async throws {
        try await withCourier(ScriptedProvider()) { folder, _ in
            #expect(try await Self.post(folder, "{").status == 400)
            let missing = try await Self.post(folder, "{}")
            #expect(missing.status == 503)
            #expect(
                missing.answerBody
                    == #"{"outcome":"later","reason":"order_not_understood","scope":"message"}"#)
            #expect(log.lines.contains { $0.contains("the member is missing at `/message_id`") })
            let socket = "\(folder)/courier.sock"
            #expect(try await RawClient.ask(unix: socket, "GET", "/v1/deliveries").status == 405)
            #expect(try await RawClient.ask(unix: socket, "POST", "/v1/other").status == 404)
            let long = try await Self.post(folder, String(repeating: " ", count: DeliveryOrder.bytesMax + 1))
            #expect(long.status == 413)
            let client = try RawClient(unix: socket)
            client.write("this is not HTTP\r\n\r\n")
            #expect(await client.readAll().status == 400)
            let header = try RawClient(unix: socket)
            header.write(
                "POST /v1/deliveries HTTP/1.1\r\nx: \(String(repeating: "a", count: 20_000))\r\n\r\n")
            #expect(await header.readAll().status == 431)
        }
    }

    @Test func `a process of another user is not served`() async throws {
        let provider = ScriptedProvider()
        try await withCourier(provider, change: { $0.gateUserIDs = [geteuid() + 1] }) { folder, _ in
            let answer = try await Self.post(folder, Self.body(1))
            #expect(answer.status == 403)
            #expect(answer.answerBody == #"{"error":"uid \#(geteuid()) is not one of `gate_users`"}"#)
            #expect(provider.orders == [])
        }
    }

    @Test func `a client that is slow is cut, in the header without a word and in the body with 408`()
        async throws
    {
        let folder = try CourierFolder()
        defer { folder.remove() }
        var limits = HTTPListenerLimits(bodyByteCountMax: 1_024)
        (limits.requestMilliseconds, limits.lingerMilliseconds) = (100, 50)
        try await withListener(limits, folder) { path in
            let header = try RawClient(unix: path)
            header.write("POST / HTTP/1.1\r\nho")
            #expect(await header.readAll() == "")
            let body = try RawClient(unix: path)
            body.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n1234")
            #expect(await body.readAll().status == 408)
        }
    }

    @Test(arguments: [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n", "POST / HTTP/1.1\r\nx: ",
    ])
    func
        `a request that comes byte by byte without an end holds its connection no longer than the time of a request`(
            _ head: String
        ) async throws
    {
        let folder = try CourierFolder()
        defer { folder.remove() }
        var limits = HTTPListenerLimits(bodyByteCountMax: 1 << 30)
        (limits.headerByteCountMax, limits.requestMilliseconds, limits.lingerMilliseconds) = (
            1 << 30, 100, 50
        )
        try await withListener(limits, folder) { path in
            let client = try RawClient(unix: path)
            client.write(head)
            let isOver = Atomic(false)
            async let drip: Void = RawClient.onThread {
                while !isOver.load(ordering: .acquiring) { client.write("x") }
            }
            let answer = await client.readAll()
            isOver.store(true, ordering: .releasing)
            await drip
            #expect([408, nil].contains(answer.status))
        }
    }

    @Test func `the courier asks for as many descriptors as all of its connections may take`() throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        var configuration = try CourierConfiguration.development(folder.path, credentialsDirectory: nil)
        configuration.underWayMax = 100
        let one = ProviderRegistry([ProviderLane(.apns, app: "main"): ScriptedProvider()])
        #expect(CourierServices.descriptorCountMax(configuration, one) == 200 + 32 + 1)
        configuration.inbound = InboundConfiguration(host: "127.0.0.1", port: 0)
        let two = ProviderRegistry(
            [ProviderLane(.apns, app: "main"): ScriptedProvider()], fallback: FileProvider(path: "/x"))
        #expect(CourierServices.descriptorCountMax(configuration, two) == 200 + 32 + 256 + 4 + 2)
    }

    @Test func `requests of one connection are answered one after another, in order`() async throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        try await withListener(HTTPListenerLimits(bodyByteCountMax: 1_024), folder) { path in
            let client = try RawClient(unix: path)
            client.write(
                "GET /1 HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            let answers = await client.readAll()
            #expect(answers.matches(of: /"(\/[12])"/).map { String($0.1) } == ["/1", "/2"])
        }
    }

    private func withListener(
        _ limits: HTTPListenerLimits, _ folder: CourierFolder, _ body: (_ path: String) async throws -> Void
    ) async throws {
        let listening = Latch()
        let path = "\(folder.path)/a.sock"
        let listener = HTTPListener(
            on: .unix(SocketFile(path: path, directoryMode: nil, socketMode: 0o600)), limits: limits,
            logger: log.logger, whenListening: { _ in listening.open() }
        ) { .json(200, .string($0.path)) }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await listener.run() }
            await listening.wait()
            try await body(path)
            tasks.cancelAll()
            try await tasks.waitForAll()
        }
        #expect(access(path, F_OK) != 0)
    }

    @Test func `576 orders are under way at once, and one more waits`() async throws {
        try DescriptorBudget.raise(forConnections: 2_000)
        let (begun, end) = (Latch(), Latch())
        let arrivedCount = Mutex(0)
        let provider = ScriptedProvider { _ in
            let isLast = arrivedCount.withLock { count in
                count += 1
                return count == 576
            }
            if isLast { begun.open() }
            await end.wait()
            return .accepted(providerID: nil)
        }
        try await withCourier(provider) { folder, services in
            let statuses = try await withThrowingTaskGroup(of: Int.self) { tasks in
                for number in 1...576 {
                    tasks.addTask {
                        let connection = try await UnixHTTPConnection.connect(
                            UnixHTTPClientConfiguration(path: "\(folder)/courier.sock"))
                        let answer = try await connection.request(
                            "POST", "/v1/deliveries", headers: [], body: Array(Self.body(number).utf8),
                            timeoutMilliseconds: 60_000)
                        await connection.close()
                        return answer.status
                    }
                }
                await begun.wait()
                #expect(services.desk.underWayCount == 576)
                let over = try await Self.post(folder, Self.body(577))
                #expect(over.status == 503)
                #expect(over.answerBody == #"{"outcome":"later","reason":"courier_busy","scope":"message"}"#)
                end.open()
                return try await tasks.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses == Array(repeating: 200, count: 576))
        }
    }

    @Test func `a stop answers what is under way, accepts nothing new, and removes the socket`() async throws
    {
        let (begun, end) = (Latch(), Latch())
        let provider = ScriptedProvider { _ in
            begun.open()
            await end.wait()
            return .accepted(providerID: nil)
        }
        try await withCourier(provider) { folder, services in
            let path = "\(folder)/courier.sock"
            let idle = try RawClient(unix: path)
            async let answer = Self.post(folder, Self.body(1))
            await begun.wait()
            await services.group.triggerGracefulShutdown()
            while access(path, F_OK) == 0 { await Task.yield() }
            end.open()
            #expect(try await answer.status == 200)
            #expect(await idle.readAll() == "")
        }
    }

    @Test func `a connection that is kept is answered once more while the courier stops`() async throws {
        try await withCourier(ScriptedProvider(.accepted(providerID: nil))) { folder, services in
            let path = "\(folder)/courier.sock"
            let connection = try await UnixHTTPConnection.connect(UnixHTTPClientConfiguration(path: path))
            var number = 0
            func post() async throws -> UnixHTTPResponse {
                number += 1
                return try await connection.request(
                    "POST", "/v1/deliveries", body: Array(Self.body(number).utf8),
                    timeoutMilliseconds: 60_000)
            }
            #expect(try await post().header("connection") == "keep-alive")
            await services.group.triggerGracefulShutdown()
            while access(path, F_OK) == 0 { await Task.yield() }
            // It accepts nothing more, and may have begun to drain or not.
            var answer = try await post()
            while answer.status == 200, answer.header("connection") == "keep-alive" {
                answer = try await post()
            }
            #expect(answer.status == 200 && answer.header("connection") == "close")
        }
    }

    @Test func `a stop ends with its time, whatever is under way`() async throws {
        let begun = Latch()
        let cancelled = Mutex(false)
        let provider = ScriptedProvider { _ in
            begun.open()
            await Latch().wait()
            cancelled.withLock { $0 = Task.isCancelled }
            return .ambiguous(reason: "cancelled", mayRepeat: false)
        }
        try await withCourier(provider, change: { $0.drainMilliseconds = 50 }) { folder, services in
            async let answer = Self.post(folder, Self.body(1))
            await begun.wait()
            await services.group.triggerGracefulShutdown()
            let text = try await answer
            #expect(text == "")
            while services.desk.underWayCount > 0 { await Task.yield() }
        }
        #expect(cancelled.withLock { $0 })
    }

    @Test func `the operators' socket says whether it is alive, ready and what it counted`() async throws {
        try await withCourier(ScriptedProvider(.misconfigured(reason: "InvalidProviderToken"))) { folder, _ in
            let path = "\(folder)/operations.sock"
            #expect(try await RawClient.ask(unix: path, "GET", "/healthz").status == 200)
            #expect(
                try await RawClient.ask(unix: path, "GET", "/readyz").answerBody
                    == #"{"ready":true,"reasons":[],"waiting":[]}"#)
            _ = try await Self.post(folder, Self.body(1))
            let unready = try await RawClient.ask(unix: path, "GET", "/readyz")
            #expect(unready.status == 503)
            #expect(
                unready.answerBody
                    == #"{"ready":false,"reasons":["apns main: InvalidProviderToken"],"waiting":[]}"#)
            let metrics = try await RawClient.ask(unix: path, "GET", "/metrics")
            #expect(metrics.contains(#"sendgate_courier_misconfigured{service="apns",app="main"} 1"#))
            #expect(!metrics.contains("secret-token"))
            #expect(try await RawClient.ask(unix: path, "POST", "/metrics").status == 405)
        }
        #expect(!log.lines.contains { $0.contains("secret-token") })
    }

    @Test func `with no provider configured --dev writes what would have gone`() async throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        let configuration = try CourierConfiguration.development(folder.path, credentialsDirectory: nil)
        let registry = try ProviderRegistry(
            configuration, journal: nil, reports: nil, clock: .system, logger: log.logger)
        let desk = DeliveryDesk(
            registry, underWayMax: 8, metrics: CourierMetrics(lanes: registry.providers.keys),
            logger: log.logger)
        for number in 1...2 { #expect(await desk.deliver(.push(number)) == .accepted(providerID: nil)) }
        let lines = try String(contentsOfFile: "\(folder.path)/onward.ndjson", encoding: .utf8).split(
            separator: "\n")
        let orders = try lines.map { try DeliveryOrder(try CanonicalJSON.read(Array($0.utf8))) }
        #expect(orders == [.push(1), .push(2)])
    }

    @Test func `a report is passed on until the gateway has answered`() async throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        let tries = Mutex(0)
        let listening = Latch()
        let path = "\(folder.path)/gate.sock"
        let gateway = HTTPListener(
            on: .unix(SocketFile(path: path, directoryMode: nil, socketMode: 0o600)),
            limits: HTTPListenerLimits(bodyByteCountMax: 4_096), logger: log.logger,
            whenListening: { _ in listening.open() }
        ) { request in
            let number = tries.withLock { count in
                count += 1
                return count
            }
            return number < 3 ? HTTPAnswer(503) : .json(200, ["path": .string(request.path)])
        }
        let reports = GatewayReports(
            GatewayReportsConfiguration(repliesSocket: path, receiptsSocket: path, userIDs: [geteuid()]))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await gateway.run() }
            await listening.wait()
            let answer = await reports.pass("/v1/replies", ["id": "1"])
            #expect(answer == GatewayAnswer(status: 200, body: ["path": "/v1/replies"]))
            tasks.cancelAll()
            try await tasks.waitForAll()
        }
        #expect(tries.withLock { $0 } == 3)
        // Nobody listens any more.
        #expect(await reports.pass("/v1/receipts", [:]) == nil)
    }

    @Test func `a webhook without its signature is refused, on the loopback`() async throws {
        let folder = try CourierFolder()
        defer { folder.remove() }
        let secret = try folder.write("secret", String(repeating: "s", count: 32))
        try folder.write(
            "courier.yaml",
            """
            gate: {replies: \(folder.path)/gate.sock}
            inbound:
              listen: "127.0.0.1:0"
              reports: {path: /reports, secrets: [\(secret)]}
            """)
        let configuration = try CourierConfiguration.development(folder.path, credentialsDirectory: nil)
        let listening = Latch()
        let address = Mutex<HTTPListener.Address?>(nil)
        let services = try CourierServices(
            configuration, registry: ProviderRegistry([:]), journal: try configuration.openJournal(.system),
            clock: .system, handlesSignals: false, logger: log.logger
        ) { inbound in
            address.withLock { $0 = inbound }
            listening.open()
        }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await services.run() }
            await listening.wait()
            var port = 0
            if case .loopback(_, let bound)? = address.withLock({ $0 }) { port = bound }
            for (path, status) in [("/reports", 403), ("/elsewhere", 404)] {
                let client = try RawClient(port: port)
                client.write(
                    "POST \(path) HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")
                #expect(await client.readAll().status == status)
            }
            await services.group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }
}
