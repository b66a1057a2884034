import CanonicalJSON
import DeliveryRelay
import Foundation
import GateSteps
import Glibc
import GateVocabulary
import GatewayPipeline
import Synchronization
import Testing

extension Delivery {
    static func sample(
        _ number: UInt64 = 1, attempts: Int = 0, expiresAt: Int64 = 1_795_000_000_000
    ) -> Delivery {
        Delivery(
            message: MessageID(high: 1, low: number), send: SendID(high: 3, low: 4),
            destination: DestinationID("d_1"), channel: .push, platform: .ios, app: "no.getdrop.app",
            token: "00aa", headers: Array("{}".utf8), body: Array("{}".utf8),
            expiresAt: Instant(milliseconds: expiresAt),
            attemptCount: attempts, handedOverAt: Instant(milliseconds: expiresAt - 60_000))
    }
}

/// What the delivery layer's answer becomes: the contract a second time, by hand.
@Suite struct HopTests {
    /// What becomes of the message, whatever else the answer says.
    enum Fate: String, Sendable { case accepted, seen, permanent, later, misconfigured, stillOurs, ambiguous }

    private func fate(_ result: HopResult) -> Fate {
        switch result {
        case .accepted: .accepted
        case .seenBefore: .seen
        case .refused, .tokenGone: .permanent
        case .misconfigured: .misconfigured
        case .busy: .later
        case .notWritten: .stillOurs
        case .ambiguous: .ambiguous
        }
    }

    private func result(
        of act: ScriptedHop.Act, users: Set<UInt32>? = [geteuid()],
        speaking hopProtocol: HopProtocol = .outcomes,
        milliseconds: Int64 = 10_000
    ) async throws -> HopResult {
        let hop = try ScriptedHop(act)
        return await UnixHop(
            path: hop.path, serverUserIDs: users, speaking: hopProtocol, clock: MovedClock(),
            answerMilliseconds: milliseconds
        )
        .deliver(.sample())
    }

    @Test func `the answer of a real socket is read by the contract of the hop's version`() async throws {
        let body = #"{"outcome":"failed","reason":"PayloadTooLarge"}"#
        let answer = "HTTP/1.1 422 X\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        #expect(try await result(of: .write(answer)) == .refused(status: 422, reason: "PayloadTooLarge"))
        #expect(
            try await result(of: .write(answer), speaking: .statusOnly) == .refused(status: 422, reason: nil))
        let later = "HTTP/1.1 503 X\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
        #expect(
            try await result(of: .write(later))
                == .busy(status: 503, retryAfterMilliseconds: 7_000, scope: .message))
    }

    @Test func `the trace of the request goes along as a header, where there is one`() async throws {
        let hop = try ScriptedHop(.writeEach("HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n"))
        let unix = UnixHop(path: hop.path, serverUserIDs: [geteuid()], clock: MovedClock())
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        var delivery = Delivery.sample()
        delivery.traceParent = TraceParent(text)
        for sent in [delivery, .sample(2)] { _ = await unix.deliver(sent) }
        let heads = hop.requests.filter { !$0.isEmpty }.map { $0.lowercased() }
        #expect(heads.map { $0.contains("\r\ntraceparent: \(text)\r\n") } == [true, false], "\(heads)")
        #expect(!heads[1].contains("traceparent"))
    }

    @Test func `an answer that only a wrong configuration gives keeps messages back until another comes`()
        async throws
    {
        let hop = try ScriptedHop(.write("HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n"))
        let clock = MovedClock()
        let unix = UnixHop(path: hop.path, serverUserIDs: [geteuid()], clock: clock)
        #expect(await unix.obstacle() == nil)
        #expect(fate(await unix.deliver(.sample())) == .misconfigured)
        let obstacle = try #require(await unix.obstacle())
        #expect(obstacle.contains("404"))
        clock.move(UnixHop.misconfiguredMilliseconds)
        #expect(await unix.obstacle() == nil, "another try is due")
    }

    @Test(
        arguments: [
            ("nothing", ""), ("no HTTP", "what?\r\n\r\n"), ("another protocol", "\u{16}\u{3}\u{1}\r\n\r\n"),
            ("half a head", "HTTP/1.1 202 Acc"),
            ("half a body", "HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nab"),
            ("two lengths", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nContent-Length: 3\r\n\r\n"),
            ("an interim answer alone", "HTTP/1.1 100 Continue\r\n\r\n"),
            (
                "an endless body",
                "HTTP/1.1 202 Accepted\r\nContent-Length: 2000000\r\n\r\n"
                    + String(repeating: "x", count: 1_100_000)
            ),
        ] as [(String, String)])
    func `an answer that is none leaves the message in doubt`(_ name: String, _ bytes: String) async throws {
        let found = try await result(of: .write(bytes))
        #expect(fate(found) == .ambiguous, "\(name) became \(found)")
    }

    @Test func `an interim answer is not the answer`() async throws {
        let found = try await result(
            of: .write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 409 X\r\nContent-Length: 0\r\n\r\n"))
        #expect(found == .seenBefore)
    }

    @Test func `silence past the bound leaves the message in doubt`() async throws {
        #expect(fate(try await result(of: .keepSilent, milliseconds: 30)) == .ambiguous)
    }

    @Test func `a reset after the request was written leaves the message in doubt`() async throws {
        #expect(fate(try await result(of: .closeUnread)) == .ambiguous)
    }

    @Test(arguments: [true, false])
    func `what nobody listens to is never written, and is an obstacle until somebody does`(_ isBound: Bool)
        async throws
    {
        let hop = try ScriptedHop(.keepSilent, listens: false)
        let path = isBound ? hop.path : hop.path + ".none"
        let unix = UnixHop(path: path, serverUserIDs: [geteuid()], clock: MovedClock())
        #expect(fate(await unix.deliver(.sample())) == .stillOurs)
        #expect(await unix.obstacle() != nil)
    }

    @Test func `a hop of another user gets not one byte, and is named`() async throws {
        let hop = try ScriptedHop(.write("HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n"))
        let unix = UnixHop(
            path: hop.path, serverUserIDs: [geteuid() + 1, geteuid() + 2], clock: MovedClock())
        let obstacle = try #require(await unix.obstacle())
        #expect(
            obstacle.contains("uid \(geteuid())") && obstacle.contains("\(geteuid() + 1), \(geteuid() + 2)"))
        #expect(fate(await unix.deliver(.sample())) == .stillOurs)
        // Both connections were closed with nothing in them.
        let right = UnixHop(path: hop.path, serverUserIDs: [geteuid()], clock: MovedClock())
        #expect(fate(await right.deliver(.sample())) == .accepted)
        let requests = hop.requests
        #expect(requests.count == 3 && requests.prefix(2).allSatisfy(\.isEmpty), "\(requests)")
        #expect(requests.last?.hasPrefix("POST /v1/deliveries HTTP/1.1\r\n") == true)
        #expect(await right.obstacle() == nil)
    }

    @Test func `a hop that says so gets the next message on the same connection`() async throws {
        let hop = try ScriptedHop(
            .writeEach("HTTP/1.1 202 X\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n"))
        let unix = UnixHop(path: hop.path, serverUserIDs: [geteuid()], clock: MovedClock())
        for number in 1...3 { #expect(fate(await unix.deliver(.sample(UInt64(number)))) == .accepted) }
        #expect(hop.requests.count == 3)
        // The one connection is closed when it has been idle for a while.
        var closed = hop.closed.makeAsyncIterator()
        #expect(await closed.next() != nil)
        #expect(fate(await unix.deliver(.sample(4))) == .accepted)
    }

    @Test func `a hop that does not say so gets a connection for each message`() async throws {
        let hop = try ScriptedHop(.writeEach("HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n"))
        let unix = UnixHop(path: hop.path, serverUserIDs: [geteuid()], clock: MovedClock())
        var closed = hop.closed.makeAsyncIterator()
        for number in 1...2 {
            #expect(fate(await unix.deliver(.sample(UInt64(number)))) == .accepted)
            #expect(await closed.next() != nil)
        }
    }

    @Test func `a kept connection that the hop has closed costs no message its place`() async throws {
        let hop = try ScriptedHop(
            .write("HTTP/1.1 202 X\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"))
        let unix = UnixHop(path: hop.path, serverUserIDs: [geteuid()], clock: MovedClock())
        var closed = hop.closed.makeAsyncIterator()
        for number in 1...5 {
            #expect(fate(await unix.deliver(.sample(UInt64(number)))) == .accepted)
            #expect(await closed.next() != nil)
        }
        #expect(hop.requests.count == 5)
    }

    @Test func `a hop that goes away is looked at before the next message`() async throws {
        var hop: ScriptedHop? = try ScriptedHop(.write("HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n"))
        let unix = UnixHop(path: try #require(hop?.path), serverUserIDs: [geteuid()], clock: MovedClock())
        #expect(await unix.obstacle() == nil)
        #expect(fate(await unix.deliver(.sample())) == .accepted)
        // Looked at once; the connection of each message tells enough after that.
        #expect(await unix.obstacle() == nil)
        #expect(hop?.requests.count == 2)
        hop = nil
        #expect(await unix.obstacle() == nil)
        #expect(fate(await unix.deliver(.sample())) == .stillOurs)
        #expect(await unix.obstacle() != nil)
    }
}

/// The hop of a gateway in development: a file.
@Suite struct FileHopTests {
    @Test func `each message is one line of a file that its owner alone reads`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "hop-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let hop = FileHop(path: "\(folder)/sent")
        #expect(await hop.deliver(.sample(1)) == .accepted(status: 200, byProvider: false))
        #expect(await hop.deliver(.sample(2)) == .accepted(status: 200, byProvider: false))
        let written = try String(contentsOfFile: "\(folder)/sent", encoding: .utf8)
        let expected = try [1, 2].map { try DeliveryDocument.write(.sample($0)) + [UInt8(ascii: "\n")] }
        #expect(Array(written.utf8) == expected.flatMap { $0 })
        var status = stat()
        try #require(stat("\(folder)/sent", &status) == 0)
        #expect(status.st_mode & 0o7777 == 0o600)
    }

    @Test func `what a link leads to is not written`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "hop-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data().write(to: URL(filePath: "\(folder)/other"))
        try FileManager.default.createSymbolicLink(
            atPath: "\(folder)/sent", withDestinationPath: "\(folder)/other")
        guard case .notWritten = await FileHop(path: "\(folder)/sent").deliver(.sample()) else {
            Issue.record("a link was followed")
            return
        }
        #expect(try Data(contentsOf: URL(filePath: "\(folder)/other")).isEmpty)
    }

    @Test func `of a line that has no room nothing stays`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "hop-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // A file without blocks, longer than any other of this process, which may then grow by ten bytes.
        let path = "\(folder)/sent"
        let byteCount = 1 << 40
        try Data().write(to: URL(filePath: path))
        try #require(truncate(path, byteCount) == 0)
        var before = rlimit()
        try #require(getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before) == 0)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before) }
        var limit = rlimit(rlim_cur: rlim_t(byteCount + 10), rlim_max: before.rlim_max)
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
        #expect(
            await FileHop(path: path).deliver(.sample()) == .notWritten("only 10 bytes were written"))
        var status = stat()
        try #require(stat(path, &status) == 0)
        #expect(status.st_size == byteCount)
    }
}

/// When one message is tried again.
@Suite struct DeliveryAttemptTests {
    private let now = Instant(milliseconds: 1_000_000)

    private func retryTime(
        _ result: HopResult, attempts: Int = 0, jitter: Double = 0, life: Int64 = 3_600_000
    ) -> Instant? {
        DeliveryAttempt(attemptCount: attempts, expiresAt: now.advanced(byMilliseconds: life))
            .retryTime(after: result, at: now, jitter: jitter)
    }

    private func wait(_ result: HopResult, attempts: Int = 0, jitter: Double = 0) -> Int64? {
        retryTime(result, attempts: attempts, jitter: jitter, life: 1 << 40).map {
            $0.milliseconds - now.milliseconds
        }
    }

    static let again: [HopResult] = [
        .busy(status: 503, retryAfterMilliseconds: nil, scope: .message),
        .busy(status: 429, retryAfterMilliseconds: nil, scope: .message),
        .busy(status: 302, retryAfterMilliseconds: nil, scope: .message), .notWritten("refused"),
        .ambiguous("reset", mayRepeat: true),
    ]

    @Test func `what was taken, was there or is refused for good is not tried again`() {
        for result in [
            .accepted(status: 202, byProvider: false), .seenBefore, .refused(status: 400, reason: nil),
        ] as [HopResult] {
            for attempts in [0, 40] { #expect(retryTime(result, attempts: attempts) == nil) }
        }
    }

    /// Half of the step without jitter, nearly the whole with all of it: a quarter of a second, doubled, up to a minute.
    @Test(
        arguments: [
            (0, 125, 250), (1, 250, 500), (2, 500, 1000), (3, 1000, 2000), (7, 16_000, 32_000),
            (8, 30_000, 60_000), (9, 30_000, 60_000), (16, 30_000, 60_000), (1000, 30_000, 60_000),
        ] as [(Int, Int64, Int64)])
    func `the wait doubles up to a minute and is spread over its upper half`(
        _ attempts: Int, _ least: Int64, _ most: Int64
    ) {
        for result in Self.again {
            #expect(wait(result, attempts: attempts, jitter: 0) == least)
            #expect(wait(result, attempts: attempts, jitter: 0.5) == least + (most - least) / 2)
            let late = wait(result, attempts: attempts, jitter: 0.999_999)
            #expect(late.map { $0 < most && $0 >= most - 2 } == true)
        }
    }

    @Test func `the hop's own wait counts when it is the longer one`() {
        func busy(_ milliseconds: Int64) -> HopResult {
            .busy(status: 429, retryAfterMilliseconds: milliseconds, scope: .message)
        }
        #expect(wait(busy(7_000)) == 7_000)
        #expect(wait(busy(124)) == 125)
        #expect(wait(busy(126)) == 126)
        #expect(wait(busy(0), attempts: 8) == 30_000)
        #expect(wait(busy(86_400_000), attempts: 1000) == 86_400_000)
    }

    @Test func `after the pause of an app all of its messages are due, however often each was tried`() {
        for attempts in [0, 8, 1000] {
            for jitter in [0, 0.999_999] {
                let wait = wait(
                    .busy(status: 503, retryAfterMilliseconds: 60_000, scope: .app), attempts: attempts,
                    jitter: jitter)
                #expect(wait.map { (60_000..<60_250).contains($0) } == true)
            }
        }
    }

    @Test func `nothing is tried again at or after its expiry`() {
        for result in Self.again {
            #expect(retryTime(result, life: 126) == now.advanced(byMilliseconds: 125))
            #expect(retryTime(result, life: 125) == nil)
            #expect(retryTime(result, life: 0) == nil)
            #expect(retryTime(result, life: -1) == nil)
        }
        #expect(
            retryTime(.busy(status: 429, retryAfterMilliseconds: 7_000, scope: .message), life: 7_000) == nil)
    }
}

/// A clock that a test moves.
final class MovedClock: GatewayPipeline.Clock {
    private let uptime = Mutex<Int64>(1_000_000)
    func now() -> Instant { reading().wall }
    func reading() -> ClockReading {
        let uptime = uptime.withLock { $0 }
        return ClockReading(
            wall: Instant(milliseconds: 1_795_000_000_000 + uptime), uptime: uptime, boot: "first")
    }
    func move(_ milliseconds: Int64) { uptime.withLock { $0 += milliseconds } }
}
