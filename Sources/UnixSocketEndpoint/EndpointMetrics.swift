import Synchronization
import WireProtocol

/// What the endpoint has done since it started, and what it holds now. Counts only rise, gauges do not.
package struct EndpointMetrics: Hashable, Sendable {
    package var connectionsAccepted: UInt64 = 0
    /// Over the bound on connections, or not to be named by the kernel.
    package var connectionsRefused: UInt64 = 0
    /// Complete requests given to the handler, stream lines not among them.
    package var requests: UInt64 = 0
    package var streams: UInt64 = 0
    package var streamLines: UInt64 = 0
    /// Answers the endpoint gave itself, `Problem`s.
    package var problems: UInt64 = 0
    package var bytesRead: UInt64 = 0
    /// Bytes handed to the socket's queue.
    package var bytesWritten: UInt64 = 0
    package var idleTimeouts: UInt64 = 0
    package var readTimeouts: UInt64 = 0
    package var writeStalls: UInt64 = 0
    /// Connections closed because the handler had not answered in time, or dropped its `reply`.
    package var answersMissing: UInt64 = 0
    /// Gauges.
    package var connectionsOpen: Int = 0
    package var requestsInFlight: Int = 0
    package var bufferedByteCount: Int = 0

    package init() {}
}

/// One event loop's counts. Only that loop writes, any thread reads, so relaxed order is enough.
final class LoopCounters: Sendable {
    let connectionsAccepted = Atomic<UInt64>(0)
    let connectionsRefused = Atomic<UInt64>(0)
    let requests = Atomic<UInt64>(0)
    let streams = Atomic<UInt64>(0)
    let streamLines = Atomic<UInt64>(0)
    let problems = Atomic<UInt64>(0)
    let bytesRead = Atomic<UInt64>(0)
    let bytesWritten = Atomic<UInt64>(0)
    let idleTimeouts = Atomic<UInt64>(0)
    let readTimeouts = Atomic<UInt64>(0)
    let writeStalls = Atomic<UInt64>(0)
    let answersMissing = Atomic<UInt64>(0)

    func add(to metrics: inout EndpointMetrics) {
        metrics.connectionsAccepted += connectionsAccepted.load(ordering: .relaxed)
        metrics.connectionsRefused += connectionsRefused.load(ordering: .relaxed)
        metrics.requests += requests.load(ordering: .relaxed)
        metrics.streams += streams.load(ordering: .relaxed)
        metrics.streamLines += streamLines.load(ordering: .relaxed)
        metrics.problems += problems.load(ordering: .relaxed)
        metrics.bytesRead += bytesRead.load(ordering: .relaxed)
        metrics.bytesWritten += bytesWritten.load(ordering: .relaxed)
        metrics.idleTimeouts += idleTimeouts.load(ordering: .relaxed)
        metrics.readTimeouts += readTimeouts.load(ordering: .relaxed)
        metrics.writeStalls += writeStalls.load(ordering: .relaxed)
        metrics.answersMissing += answersMissing.load(ordering: .relaxed)
    }
}

extension Atomic where Value == UInt64 {
    /// A load and a store: cheaper than a locked add, and right because one thread writes.
    func rise(by amount: Int = 1) {
        store(load(ordering: .relaxed) &+ UInt64(amount), ordering: .relaxed)
    }
}
