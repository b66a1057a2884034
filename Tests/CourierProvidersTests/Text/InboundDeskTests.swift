import CanonicalJSON
import CourierModel
import CourierProviders
import Crypto
import Foundation
import GateVocabulary
import Synchronization
import Testing

@Suite struct InboundDeskTests {
    static let secret = [UInt8](repeating: 9, count: 32)
    static let route = InboundRoute.reports(SignedWebhook(path: "/reports", secrets: [secret]))

    static func signature(of body: [UInt8], under secret: [UInt8] = secret, at now: Instant = TestClock.now)
        -> String
    {
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("\(now.seconds).".utf8) + body, using: SymmetricKey(data: secret))
        return "t=\(now.seconds),v1=\(Hexadecimal.encode(Array(code)))"
    }

    static func request(_ body: String, at now: Instant, path: String = "/reports") -> InboundRequest {
        InboundRequest(
            target: path, headers: [("X-Sendgate-Signature", signature(of: Array(body.utf8), at: now))],
            body: Array(body.utf8))
    }

    @Test func `a new secret of a webhook is in force without a restart`() async throws {
        let folder = try TestFolder()
        let journal = try CourierJournal(path: folder.file("journal"), now: { TestClock.now })
        let clock = TestClock.patient
        let desk = InboundDesk(
            routes: [.reports(SignedWebhook(path: "/reports", secrets: [[UInt8](repeating: 1, count: 32)]))],
            journal: journal, clock: clock
        ) { _, _ in GatewayAnswer(status: 200, body: nil) }
        let body = #"{"kind":"reply","id":"m-1","channel":"sms","from":"+4790000000","text":"STOP"}"#
        #expect(await desk.handle(Self.request(body, at: clock.now())).answer.status == 403)
        desk.replace([Self.route])
        #expect(await desk.handle(Self.request(body, at: clock.now())).answer.status == 204)
    }

    @Test func `a report that is sent again has its first time, also after a restart`() async throws {
        let folder = try TestFolder()
        let now = Mutex(TestClock.now)
        let clock = ProviderClock(now: { now.withLock { $0 } }, isOver: { _ in false })
        let passed = Mutex<[JSONValue]>([])
        let body = #"{"kind":"reply","id":"m-1","channel":"sms","from":"+4790000000","text":"STOP"}"#
        // The gateway is away at first.
        for status in [Int?.none, 503, 200, 200] {
            let journal = try CourierJournal(path: folder.file("journal"), now: clock.now)
            let desk = InboundDesk(routes: [Self.route], journal: journal, clock: clock) { path, body in
                passed.withLock { $0.append(["path": .string(path), "body": body]) }
                return status.map { GatewayAnswer(status: $0, body: nil) }
            }
            let (answer, log) = await desk.handle(Self.request(body, at: clock.now()))
            #expect(answer.status == (status == 200 ? 204 : 503))
            #expect((log == nil) == (status == 200))
            now.withLock { $0 = $0.advanced(bySeconds: 60) }
            await journal.close()
        }
        let all = passed.withLock { $0 }
        #expect(all.count == 4 && Set(all).count == 1)
        #expect(
            all.first == [
                "path": "/v1/replies",
                "body": [
                    "id": "m-1", "channel": "sms", "from": "+4790000000", "text": "STOP",
                    "received_at": .string(TestClock.now.rfc3339),
                ],
            ])
    }

    @Test func `nothing that is not signed reaches the gateway, and the log names nobody`() async throws {
        let folder = try TestFolder()
        let journal = try CourierJournal(path: folder.file("journal"), now: { TestClock.now })
        let desk = InboundDesk(routes: [Self.route], journal: journal, clock: TestClock.patient) { _, _ in
            Issue.record("passed on")
            return nil
        }
        let body = #"{"kind":"reply","id":"m-1","channel":"sms","from":"+4790000000","text":"STOP"}"#
        var forged = Self.request(body, at: TestClock.now)
        forged.body += [32]
        let (answer, log) = await desk.handle(forged)
        #expect(answer.status == 403 && log == "refused /reports with 403: the signature is wrong")
        #expect(await desk.handle(Self.request(body, at: TestClock.now, path: "/other")).answer.status == 404)
        #expect(await desk.handle(Self.request("[]", at: TestClock.now)).answer.status == 204)
        var long = Self.request(body, at: TestClock.now)
        long.body = [UInt8](repeating: 32, count: InboundRequest.bytesMax + 1)
        #expect(await desk.handle(long).answer.status == 413)
        #expect(journal.entries(withPrefix: "").isEmpty)
    }

    /// The lines of the handbook's page, with `curl` told apart from the real one.
    @Test func `what the page's lines sign with openssl is genuine`() throws {
        let folder = try TestFolder()
        let page = try String(contentsOfFile: PeerProcess.page("DeliveryLayer"), encoding: .utf8)
        let lines = page.split(separator: "\n").drop { !$0.hasPrefix("    cat >\"$bounce\"") }
            .prefix { $0.hasPrefix("    ") }.map { $0.dropFirst(4) }
        #expect(lines.count == 4)
        let script = """
            SECRET=0123456789abcdef0123456789abcdef
            bounce='\(folder.file("bounce"))'
            curl() { for word; do case $word in X-Sendgate-*) printf '%s' "$word"; esac; done; }
            \(lines.joined(separator: "\n"))
            """
        let body = "Subject: hello\r\n\r\n\u{e6}\0\r\n"
        let (process, input, output) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", script]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(body.utf8))
        try input.fileHandleForWriting.close()
        let header = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        let fields = header.split(separator: ": ", maxSplits: 1).map(String.init)
        try #require(fields.count == 2, "\(header)")
        let seconds = try #require(Int64(fields[1].dropFirst(2).prefix { $0 != "," }))
        let webhook = SignedWebhook(
            path: "/bounces", secrets: [Array("0123456789abcdef0123456789abcdef".utf8)])
        #expect(
            InboundRoute.bounces(webhook).read(
                InboundRequest(target: "/bounces", headers: [(fields[0], fields[1])], body: Array(body.utf8)),
                at: Instant(seconds: seconds)) == .nothing)
    }
}
