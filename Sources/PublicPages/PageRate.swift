import NIOCore
import Synchronization

/// A bound on requests over time that all clients share: a bucket of tokens that fills steadily.
final class PageRate: Sendable {
    private struct Bucket {
        /// In billionths of a request.
        var level: Int64
        var filledAt: NIODeadline
    }

    private static let whole: Int64 = 1_000_000_000
    private let perSecond: Int64
    private let levelMax: Int64
    private let clock: @Sendable () -> NIODeadline
    private let bucket: Mutex<Bucket>

    init(perSecond: Int, burst: Int, clock: @escaping @Sendable () -> NIODeadline) {
        self.perSecond = Int64(perSecond)
        levelMax = Int64(burst) * Self.whole
        self.clock = clock
        bucket = Mutex(Bucket(level: levelMax, filledAt: clock()))
    }

    /// - Returns: Whether one more request may be served now.
    func take() -> Bool {
        let now = clock()
        return bucket.withLock { bucket in
            // A bucket is full after the longest time that is looked at.
            let elapsed = min(max(0, (now - bucket.filledAt).nanoseconds), 3600 * Self.whole)
            bucket.filledAt = max(bucket.filledAt, now)
            let (gained, overflows) = elapsed.multipliedReportingOverflow(by: perSecond)
            bucket.level = overflows ? levelMax : min(levelMax, bucket.level + min(gained, levelMax))
            guard bucket.level >= Self.whole else { return false }
            bucket.level -= Self.whole
            return true
        }
    }
}
