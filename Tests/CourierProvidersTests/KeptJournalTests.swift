import CanonicalJSON
import CourierModel
import Foundation
import GateVocabulary
import Logging
import Synchronization
import Testing

@testable import CourierProviders

/// Journals of each version of their lines, kept in the repository: this build goes on with each of them (SG-0083).
///
/// `SENDGATE_RECORD_STATE=1` records one of this version, unless there is one; `Tests/Fixtures/README.md` says when.
@Suite struct KeptJournalTests {
    private static let fixtures = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../Fixtures/Journals").standardizedFileURL.path
    private static let recordedAt = Instant(rfc3339: "2026-11-29T12:00:00Z")!
    private static let newest = "\(fixtures)/version-\(CourierJournal.version)"
    private static let ticket = "6f0d1e9c-2f2e-4d0a-8f6b-1f1f5b1d7a10"
    private static let reply =
        #"{"kind":"reply","id":"m-1","channel":"sms","from":"+4790000000","text":"STOP"}"#

    private static let versions =
        try! FileManager.default.contentsOfDirectory(atPath: fixtures).sorted()

    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private static func clock(secondsLater: Int64) -> ProviderClock {
        let now = recordedAt.advanced(bySeconds: secondsLater)
        return ProviderClock(now: { now }, isOver: { _ in false })
    }

    private func receipts(_ journal: CourierJournal, _ clock: ProviderClock) -> ExpoReceipts {
        ExpoReceipts(
            name: "main", journal: journal, clock: clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        ) { _, _ in GatewayAnswer(status: 200, body: nil) }
    }

    /// A desk whose gateway keeps what it is passed.
    private func desk(
        _ journal: CourierJournal, _ clock: ProviderClock, status: Int?,
        _ passed: @escaping @Sendable (JSONValue) -> Void = { _ in }
    ) -> InboundDesk {
        InboundDesk(routes: [InboundDeskTests.route], journal: journal, clock: clock) { _, body in
            passed(body)
            return status.map { GatewayAnswer(status: $0, body: nil) }
        }
    }

    @Test(arguments: versions)
    func `a kept journal forbids second copies, and knows its tickets and first times`(version: String)
        async throws
    {
        let path = folder.file("journal")
        try FileManager.default.copyItem(atPath: "\(Self.fixtures)/\(version)", toPath: path)
        let clock = Self.clock(secondsLater: 1_200)
        let journal = try CourierJournal(path: path, now: clock.now)
        #expect(journal.damage == nil)
        let once = SingleCopy(journal)
        func deliver(_ number: UInt64) async -> DeliveryOutcome {
            await once.deliver(TestClock.order(number: number)) { _ in
                Issue.record("message \(number) was tried again")
                return .accepted(providerID: nil)
            }
        }
        #expect(await deliver(1) == .interrupted)
        #expect(await deliver(2) == .accepted(providerID: "q-2"))
        #expect(await deliver(3) == .failed(reason: "550"))

        let asked = Mutex<[String]>([])
        await receipts(journal, clock).fetch { body throws(ExchangeFault) in
            asked.withLock { $0.append(String(decoding: body, as: UTF8.self)) }
            return ProviderAnswer(status: 503, headers: [], body: [])
        }
        #expect(asked.withLock { $0 } == [#"{"ids":["\#(Self.ticket)"]}"#])

        let passed = Mutex<[JSONValue]>([])
        let (answer, _) = await desk(journal, clock, status: 200) { body in
            passed.withLock { $0.append(body) }
        }
        .handle(InboundDeskTests.request(Self.reply, at: clock.now()))
        #expect(answer.status == 204)
        #expect(passed.withLock { $0.first?["received_at"] } == .string(Self.recordedAt.rfc3339))
        await journal.close()
    }

    @Test func `this version has a kept journal`() async throws {
        if ProcessInfo.processInfo.environment["SENDGATE_RECORD_STATE"] == "1" {
            try await record()
            Issue.record("recorded; run again without SENDGATE_RECORD_STATE")
        }
        #expect(FileManager.default.fileExists(atPath: Self.newest))
    }

    /// Has the parts of a courier write what they write, and ends them in the middle.
    private func record() async throws {
        try #require(
            !FileManager.default.fileExists(atPath: Self.newest),
            "what a version wrote is never recorded anew")
        let clock = Self.clock(secondsLater: 0)
        let path = folder.file("journal")
        let journal = try CourierJournal(path: path, now: clock.now)
        let once = SingleCopy(journal)
        let ends: [UInt64: DeliveryOutcome] = [
            2: .accepted(providerID: "q-2"), 3: .failed(reason: "550"),
        ]
        for (number, outcome) in ends.sorted(by: { $0.key < $1.key }) {
            _ = await once.deliver(TestClock.order(number: number)) { begin in await begin() ?? outcome }
        }
        await receipts(journal, clock).expect([(Self.ticket, TestClock.order(number: 4))])
        let (answer, _) = await desk(journal, clock, status: nil)
            .handle(InboundDeskTests.request(Self.reply, at: clock.now()))
        #expect(answer.status == 503)
        // Begun, and not ended when the file is taken.
        _ = await once.deliver(TestClock.order(number: 1)) { begin in
            _ = await begin()
            #expect(throws: Never.self) {
                try Data(contentsOf: URL(filePath: path)).write(to: URL(filePath: Self.newest))
            }
            return .accepted(providerID: nil)
        }
        await journal.close()
    }

    @Test func `a journal of a newer courier is refused by name and left as it is`() async throws {
        let path = folder.file("journal")
        let line = #"5a1dc9f0 {"version":2}"#
        let bytes = Data("\(line)\nwhat a later one writes\n".utf8)
        try bytes.write(to: URL(filePath: path))
        let error = #expect(throws: JournalFault.self) {
            try CourierJournal(path: path, now: { Self.recordedAt })
        }
        #expect(error == .newer(path: path, version: 2))
        #expect("\(error!)".contains("written by a newer sendgate-courier, in version 2"))
        #expect(try Data(contentsOf: URL(filePath: path)) == bytes)
        // Its lock is free again.
        try FileManager.default.removeItem(atPath: path)
        try await CourierJournal(path: path, now: { Self.recordedAt }).close()
    }
}
