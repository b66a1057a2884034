import Dispatch
package import Foundation
import Synchronization

/// A thread whose work no send waits for: publishing, moving the log, holding the state against the trail.
///
/// Measured at 900 sends a second on two processors: threads of equal rank that work for 10 ms at a time made all that decide and
/// answer wait for 6 to 13 ms. One of lower rank gives the processor up as soon as another can use it, and is not
/// starved by them: a nice value of 10 still has a ninth of what 0 has (sched(7); weights 110 and 1,024).
package enum BackgroundThread {
    private static let niceness: Int32 = 10

    /// - Parameter name: At most 15 bytes, as the kernel has it.
    @discardableResult
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> Thread {
        let thread = Thread {
            Thread.current.name = name
            // The value is the calling thread's own on Linux (setpriority(2), "C library/kernel differences"). Raising it is
            // always allowed, so there is no error to handle.
            _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.niceness)
            body()
        }
        thread.stackSize = 8 << 20
        thread.start()
        return thread
    }

    /// Runs `body` with each number below `count`, on as many threads as there are processors, and waits for them.
    package static func perform(
        _ count: Int, named name: String, _ body: @Sendable (_ number: Int) -> Void
    ) {
        withoutActuallyEscaping(body) { body in
            let numbers = Numbers(count, body)
            let group = DispatchGroup()
            for _ in 0..<min(count, ProcessInfo.processInfo.activeProcessorCount) {
                group.enter()
                start(name) {
                    numbers.run()
                    group.leave()
                }
            }
            group.wait()
            // The last threads may not be gone yet.
            numbers.forgetBody()
        }
    }

    private final class Numbers: Sendable {
        private let count: Int
        private let next = Atomic(0)
        private let body: Mutex<(@Sendable (Int) -> Void)?>

        init(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
            self.count = count
            self.body = Mutex(body)
        }

        func run() {
            guard let body = body.withLock({ $0 }) else { return }
            while true {
                let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard number < count else { return }
                body(number)
            }
        }

        func forgetBody() { body.withLock { $0 = nil } }
    }
}
