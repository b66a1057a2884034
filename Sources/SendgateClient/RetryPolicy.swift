/// How often, and how long apart, a send is tried again with the same id.
public struct RetryPolicy: Hashable, Sendable {
    /// Attempts in all, the first included; at least 1. For many sends: attempts in a row without progress.
    public var attemptsMax: Int
    /// The wait before the second attempt; it doubles each time, up to ``waitMillisecondsMax``.
    public var firstWaitMilliseconds: Int64
    /// Also the longest `Retry-After` that is waited for; a longer one is thrown as ``SendgateError/busy(_:)``.
    public var waitMillisecondsMax: Int64

    /// Values below the least that makes sense are raised to it: one attempt, and waits of 0.
    public init(attemptsMax: Int = 5, firstWaitMilliseconds: Int64 = 50, waitMillisecondsMax: Int64 = 5_000) {
        self.attemptsMax = max(1, attemptsMax)
        self.firstWaitMilliseconds = max(0, firstWaitMilliseconds)
        self.waitMillisecondsMax = max(0, waitMillisecondsMax)
    }

    /// One attempt, for callers with a retry of their own.
    public static let never = RetryPolicy(attemptsMax: 1)

    /// - Parameters:
    ///   - attempt: The attempt that failed, from 1.
    ///   - fraction: 0 to 1; spreads producers that failed together (full jitter over the upper half).
    /// - Returns: `nil` when it should not be tried again.
    func wait(after attempt: Int, retryAfterSeconds: Int?, fraction: Double) -> Int64? {
        guard attempt < attemptsMax else { return nil }
        let doubled = firstWaitMilliseconds << Int64(min(attempt - 1, 20))
        let ceiling = min(doubled, waitMillisecondsMax)
        let spread = ceiling / 2 + Int64(Double(ceiling - ceiling / 2) * fraction)
        guard let retryAfterSeconds else { return spread }
        let asked = Int64(min(retryAfterSeconds, 1_000_000)) * 1_000
        return asked > waitMillisecondsMax ? nil : max(asked, spread)
    }
}
