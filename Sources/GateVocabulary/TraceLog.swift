import Synchronization

/// What the log of a program says of requests that came with a `traceparent`, so that whoever follows a trace finds the decision, the
/// hand-over and the delivery.
///
/// A line is written where the producer samples the trace (``TraceParent/isSampled``), and of every trace at the level `debug`. The log is
/// written on the threads that do the work, so it takes at most ``lineCountMax`` lines a second; the first line of a later second
/// says how many were left out.
package final class TraceLog: Sendable {
    /// A second.
    package static let lineCountMax = 100

    private struct Window {
        /// Seconds since boot.
        var second: Int64 = 0
        var lineCount = 0
        var leftOutCount = 0
    }

    private let isDebugging: Bool
    private let uptimeMilliseconds: (@Sendable () -> Int64)?
    private let write: @Sendable (_ message: String, _ members: [String: String]) -> Void
    private let window = Mutex(Window())

    /// - Parameters:
    ///   - uptimeMilliseconds: A clock that no step of the wall clock moves.
    ///   - write: Writes one line.
    package init(
        isDebugging: Bool, uptimeMilliseconds: @escaping @Sendable () -> Int64,
        write: @escaping @Sendable (_ message: String, _ members: [String: String]) -> Void
    ) {
        self.isDebugging = isDebugging
        self.uptimeMilliseconds = uptimeMilliseconds
        self.write = write
    }

    private init() {
        isDebugging = false
        uptimeMilliseconds = nil
        write = { _, _ in }
    }

    /// Writes nothing.
    package static let none = TraceLog()

    /// - Parameters:
    ///   - trace: What the request came with; `nil` where it came with none.
    ///   - members: The rest of the line, with nothing personal.
    package func tell(
        _ message: String, of trace: TraceParent?, _ members: @autoclosure () -> [String: String]
    ) {
        guard let trace, let uptimeMilliseconds, isDebugging || trace.isSampled else { return }
        let second = uptimeMilliseconds() / 1000
        let leftOut: Int? = window.withLock { window in
            if window.second != second {
                (window.second, window.lineCount) = (second, 0)
            }
            guard window.lineCount < Self.lineCountMax else {
                window.leftOutCount += 1
                return nil
            }
            window.lineCount += 1
            defer { window.leftOutCount = 0 }
            return window.leftOutCount
        }
        guard let leftOut else { return }
        var members = members()
        members["traceparent"] = trace.text
        if leftOut > 0 { members["left_out_before"] = "\(leftOut)" }
        write(message, members)
    }
}
