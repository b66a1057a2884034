import AuditTrail
import Dispatch
import GateRecords
import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Synchronization
import Testing

@testable import SQLiteStore

/// A tree that notes what is done with it, and fails or waits as it is told to.
private final class ScriptedLibrary: TrailLibrary {
    let origin = "gate.example/test"
    private let state = Mutex(
        (steps: [String](), indices: [UInt64](), failures: [String: [TrailLibraryError]]()))
    /// Called before entries are taken, on the publisher's thread.
    let willIntegrate = Mutex<(@Sendable () -> Void)?>(nil)

    func note(_ step: String) { state.withLock { $0.steps.append(step) } }
    var steps: [String] { state.withLock { $0.steps } }
    /// Of the entries that were taken.
    var indices: [UInt64] { state.withLock { $0.indices } }
    /// The next calls of this name fail, one error each.
    func fail(_ name: String, _ failures: [TrailLibraryError]) {
        state.withLock { $0.failures[name] = failures }
    }

    private func step(_ name: String) throws {
        let failure: TrailLibraryError? = state.withLock { state in
            state.steps.append(name)
            guard state.failures[name]?.isEmpty == false else { return nil }
            return state.failures[name]?.removeFirst()
        }
        if let failure { throw failure }
    }

    func integrate(_ entries: [StoredEntry]) throws -> UInt64 {
        willIntegrate.withLock { $0 }?()
        try step("integrate")
        state.withLock { $0.indices += entries.map(\.index) }
        return entries.last.map { $0.index + 1 } ?? 0
    }
    func publish() throws { try step("publish") }
    func entry(_ index: UInt64) throws -> [UInt8]? { nil }
    func file(_ path: String) throws -> [UInt8]? { nil }
    func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws {}
    func publishKeyset(_ note: [UInt8]) throws {}
}

/// From durable entries to a signed checkpoint, and what stands in between.
@Suite struct PublisherTests {
    private let library = ScriptedLibrary()
    private let end = ProcessEnd()
    private let marked = DispatchSemaphore(value: 0)

    private func publisher(
        of gate: GatewayHarness, intervalMilliseconds: Int = 1
    ) -> TrailPublisher {
        let (library, end, marked) = (library, end, marked)
        return TrailPublisher(
            store: gate.store, library: library, clock: gate.clock,
            intervalMilliseconds: intervalMilliseconds, retryMilliseconds: 1,
            mark: { size in
                library.note("mark \(size)")
                marked.signal()
            }, durabilityLost: { end.end($0) })
    }

    private func wait(_ semaphore: DispatchSemaphore) async { await Task.detached { semaphore.wait() }.value }

    /// From here on each integration signals the first and waits for the second.
    private func holdIntegration() -> (entered: DispatchSemaphore, release: DispatchSemaphore) {
        let (entered, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        library.willIntegrate.withLock {
            $0 = {
                entered.signal()
                release.wait()
            }
        }
        return (entered, release)
    }

    @Test func `entries are marked as published after their checkpoint, and once`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let publisher = publisher(of: gate)
        publisher.start()
        await wait(marked)
        try await gate.register("u_1", device: nil)
        publisher.entriesWereCommitted()
        await wait(marked)
        publisher.drain()
        #expect(library.steps == ["integrate", "publish", "mark 2", "integrate", "publish", "mark 3"])
        #expect(publisher.publishedSize == 3 && publisher.lagMilliseconds() == 0 && publisher.failure == nil)
    }

    @Test(arguments: ["integrate", "publish"])
    func `a synchronization that failed ends the process, and is not tried again`(_ step: String) async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        library.fail(step, [.lostDurability("checkpoint")])
        let publisher = publisher(of: gate)
        publisher.start()
        await end.wait()
        publisher.entriesWereCommitted()
        #expect(end.reasons == ["checkpoint"])
        #expect(library.steps == (step == "integrate" ? ["integrate"] : ["integrate", "publish"]))
    }

    @Test(
        arguments: [
            TrailLibraryError.unavailable("the disk is full"), .conflict("entry 1 reads differently"),
        ])
    func `what cannot be published now is tried again, and its age goes on`(_ failure: TrailLibraryError)
        async throws
    {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        library.fail("publish", [failure, failure, failure])
        let (entered, release) = holdIntegration()
        let publisher = publisher(of: gate)
        publisher.start()
        for attempt in 0..<4 {
            await wait(entered)
            #expect(publisher.lagMilliseconds() == Int64(attempt) * 4000)
            #expect((publisher.failure != nil) == (attempt > 0))
            gate.clock.advance(seconds: 4)
            // What is committed meanwhile is younger, and makes nothing younger.
            publisher.entriesWereCommitted()
            release.signal()
        }
        await wait(marked)
        library.willIntegrate.withLock { $0 = nil }
        release.signal()
        publisher.drain()
        #expect(publisher.lagMilliseconds() == 0 && publisher.failure == nil)
        #expect(end.reasons == [])
        #expect(library.steps.filter { $0.hasPrefix("mark") } == ["mark 2"])
    }

    /// Otherwise a send would be refused for a trail that is behind, where the clock is what is wrong.
    @Test(arguments: [3_600, -3_600])
    func `a clock that is set makes nothing older or younger that waits to be published`(
        _ seconds: Int64
    ) async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let (entered, release) = holdIntegration()
        let publisher = publisher(of: gate)
        publisher.start()
        await wait(entered)
        gate.clock.advance(seconds: 4)
        gate.clock.step(seconds: seconds)
        #expect(publisher.lagMilliseconds() == 4_000)
        // What was committed ahead waits as long when the clock is right again.
        publisher.entriesWereCommitted()
        gate.clock.step(seconds: -seconds)
        gate.clock.advance(seconds: 1)
        #expect(publisher.lagMilliseconds() == 5_000)
        library.willIntegrate.withLock { $0 = nil }
        release.signal()
        publisher.drain()
        #expect(publisher.lagMilliseconds() == 0)
    }

    @Test func `what failed once is published although nothing new is committed`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        library.fail("publish", [.unavailable("the disk is full")])
        let publisher = publisher(of: gate)
        publisher.start()
        await wait(marked)
        publisher.drain()
        #expect(library.steps == ["integrate", "publish", "integrate", "publish", "mark 2"])
        #expect(publisher.failure == nil)
    }

    @Test func `an entry on a damaged page is never published`() async throws {
        let gate = try GatewayHarness(keeping: .files(.uncached))
        try await gate.register("u_1")
        try gate.damagePage(of: "SELECT bytes FROM entry WHERE number = 0")
        let publisher = publisher(of: gate)
        publisher.start()
        publisher.drain()
        #expect(library.steps == [])
        #expect(publisher.failure?.contains("of `gate.db` is not as it was written") == true)
    }

    @Test func `who starts again takes up where the store says that it was`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        try gate.store.write { $0.setPublishedSize(2) }
        let idle = publisher(of: gate)
        idle.start()
        idle.drain()
        #expect(library.steps == [])
        try await gate.register("u_1", device: nil)
        let next = publisher(of: gate)
        next.start()
        next.drain()
        #expect(library.steps == ["integrate", "publish", "mark 3"])
        #expect(library.indices == [2])
    }

    @Test func `what is committed while others are published has waited since then`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let (entered, release) = holdIntegration()
        let publisher = publisher(of: gate)
        publisher.start()
        await wait(entered)
        try await gate.register("u_1", device: nil)
        publisher.entriesWereCommitted()
        gate.clock.advance(seconds: 4)
        release.signal()
        await wait(entered)
        #expect(publisher.publishedSize == 2 && publisher.lagMilliseconds() == 4_000)
        release.signal()
        publisher.drain()
        #expect(publisher.publishedSize == 3 && publisher.lagMilliseconds() == 0)
    }

    @Test func `what is committed within one interval is one checkpoint`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        // No test takes an hour: what ends the pause is the stop.
        let publisher = publisher(of: gate, intervalMilliseconds: 3_600_000)
        publisher.start()
        await wait(marked)
        for number in 2...41 {
            try await gate.register("u_\(number)", device: nil)
            publisher.entriesWereCommitted()
        }
        publisher.drain()
        #expect(library.steps == ["integrate", "publish", "mark 2", "integrate", "publish", "mark 42"])
        #expect(library.indices == Array(0..<42))
    }

    @Test func `under load a checkpoint comes at most each half second`() async throws {
        let gate = try GatewayHarness()
        let interval = TrailPublisher.checkpointIntervalMilliseconds
        // An entry that just missed one checkpoint waits for the next, which is due within the second that is promised.
        #expect(interval == 500)
        let startedAt = ContinuousClock.now
        let publisher = publisher(of: gate, intervalMilliseconds: interval)
        publisher.start()
        for number in 1...100 {
            try await gate.register("u_\(number)", device: nil)
            publisher.entriesWereCommitted()
        }
        publisher.drain()
        let elapsed = startedAt.duration(to: .now)
        // The first at once, the last because of the stop.
        let most = 2 + Int(elapsed / .milliseconds(interval))
        let count = library.steps.count { $0 == "publish" }
        #expect(count <= most, "\(count) checkpoints in \(elapsed)")
        #expect(library.steps.last == "mark 100")
    }

    @Test func `what was left when it stops is published first`() async throws {
        let gate = try GatewayHarness()
        try await gate.register("u_1")
        let publisher = publisher(of: gate)
        publisher.start()
        await wait(marked)
        // It is not told of this one.
        try await gate.register("u_1", device: nil)
        publisher.drain()
        #expect(library.steps.last == "mark 3")
    }
}
