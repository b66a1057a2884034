import Synchronization
import WireProtocol

/// What an endpoint counts.
package enum EndpointCount: Int, CaseIterable, Sendable {
    case connectionsAccepted
    /// Over the bound on connections, or not to be named by the kernel.
    case connectionsRefused
    /// Complete requests given to the handler, stream lines not among them.
    case requests
    case streams
    case streamLines
    /// Answers the endpoint gave itself, `Problem`s.
    case problems
    case bytesRead
    /// Bytes handed to the socket's queue.
    case bytesWritten
    case idleTimeouts
    case readTimeouts
    case writeStalls
    /// Connections closed because the handler had not answered in time, or dropped its `reply`.
    case answersMissing
}

/// What the endpoint has done since it started, and what it holds now. Counts only rise, gauges do not.
package struct EndpointMetrics: Hashable, Sendable {
    private var counts = [UInt64](repeating: 0, count: EndpointCount.allCases.count)
    /// Gauges.
    package var connectionsOpen: Int = 0
    package var requestsInFlight: Int = 0
    package var bufferedByteCount: Int = 0

    package init() {}

    package internal(set) subscript(count: EndpointCount) -> UInt64 {
        get { counts[count.rawValue] }
        set { counts[count.rawValue] = newValue }
    }
}

/// One event loop's counts. Only that loop writes, any thread reads, so relaxed order is enough.
final class LoopCounters: Sendable {
    private let counts = InlineArray<12, Atomic<UInt64>> { _ in Atomic(0) }

    /// A load and a store: cheaper than a locked add, and right because one thread writes.
    func rise(_ count: EndpointCount, by amount: Int = 1) {
        let risen = counts[count.rawValue].load(ordering: .relaxed) &+ UInt64(amount)
        counts[count.rawValue].store(risen, ordering: .relaxed)
    }

    func add(to metrics: inout EndpointMetrics) {
        for count in EndpointCount.allCases {
            metrics[count] += counts[count.rawValue].load(ordering: .relaxed)
        }
    }
}
