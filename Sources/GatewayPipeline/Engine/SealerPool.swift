package import Dispatch
import Foundation
package import OpenSSLCrypto
import Synchronization

/// Threads that seal, each with its own ``Sealer`` and so its own OpenSSL contexts.
///
/// Sealing costs more than all the rest of a send (55 µs against 38 µs, measured on P-256), so it runs
/// beside the engine: an order is taken as soon as a send is planned, and the engine waits for the
/// results only once, before the commit.
///
/// - Ordering: none; each ``Ticket`` is filled when its order is done. Every fourth order that waits wakes a thread that
///   sleeps, and ``Ticket/wait()`` as many as are needed for the rest.
/// - Bounds: the engine's batch bounds how many orders can be under way.
package final class SealerPool: Sendable {
    package typealias Job = @Sendable (_ sealer: inout Sealer) throws -> [UInt8]

    /// One order, and the place where its result will be.
    package final class Ticket: Sendable {
        private let job: Job
        private let result = Mutex<Result<[UInt8], any Error>?>(nil)
        private let group: DispatchGroup
        private let pool: SealerPool

        fileprivate init(_ job: @escaping Job, in group: DispatchGroup, of pool: SealerPool) {
            self.job = job
            self.group = group
            self.pool = pool
            group.enter()
        }

        fileprivate func fill(by sealer: inout Sealer) {
            let value = Result { try job(&sealer) }
            result.withLock { $0 = value }
            group.leave()
        }

        /// Blocks until all orders of its group are done.
        package func wait() throws -> [UInt8] {
            pool.wake()
            group.wait()
            return try result.withLock { $0! }.get()
        }
    }

    private let orders = Mutex<[Ticket]>([])
    private let available = DispatchSemaphore(value: 0)
    private let threadCount: Int
    /// Orders that a thread is woken for.
    private static let wakingCount = 4

    /// - Parameter makeSealer: Called once on each thread.
    package init(threadCount: Int, makeSealer: @escaping @Sendable () throws -> Sealer) throws {
        precondition(threadCount > 0, "a sealer pool needs a thread")
        self.threadCount = threadCount
        let started = Mutex<(any Error)?>(nil)
        let ready = DispatchSemaphore(value: 0)
        for number in 0..<threadCount {
            let thread = Thread { [self] in
                do {
                    var sealer = try makeSealer()
                    ready.signal()
                    run(&sealer)
                } catch {
                    started.withLock { $0 = error }
                    ready.signal()
                }
            }
            thread.start()
            thread.name = "sealer-\(number)"
        }
        for _ in 0..<threadCount { ready.wait() }
        if let error = started.withLock({ $0 }) { throw error }
    }

    /// Takes an order; the ticket is filled by whichever thread is free first.
    ///
    /// - Parameter group: The orders that are waited for together.
    package func submit(in group: DispatchGroup, _ job: @escaping Job) -> Ticket {
        let ticket = Ticket(job, in: group, of: self)
        let count = orders.withLock { orders in
            orders.append(ticket)
            return orders.count
        }
        if count.isMultiple(of: Self.wakingCount) { available.signal() }
        return ticket
    }

    /// Has as many threads take what is left as there are orders.
    func wake() {
        for _ in 0..<min(orders.withLock { $0.count }, threadCount) { available.signal() }
    }

    /// Never returns: a pool lives as long as its process.
    private func run(_ sealer: inout Sealer) {
        while true {
            available.wait()
            while let ticket = orders.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                ticket.fill(by: &sealer)
            }
        }
    }
}
