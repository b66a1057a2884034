import Dispatch
import Foundation
import Synchronization

/// Threads that look things up, so that no event loop waits for a disk.
final class ReaderThreads: Sendable {
    /// Look-ups waiting at once; more are refused with 429.
    private static let waitingCountMax = 1024

    private let waiting = Mutex<[@Sendable () -> Void]>([])
    private let available = DispatchSemaphore(value: 0)

    init(threadCount: Int) {
        for number in 0..<threadCount {
            let thread = Thread { [self] in
                while true {
                    available.wait()
                    let work = waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                    work?()
                }
            }
            thread.name = "reader-\(number)"
            thread.start()
        }
    }

    /// - Returns: Whether it was taken.
    func submit(_ work: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = waiting.withLock { waiting in
            guard waiting.count < Self.waitingCountMax else { return false }
            waiting.append(work)
            return true
        }
        if isTaken { available.signal() }
        return isTaken
    }
}
