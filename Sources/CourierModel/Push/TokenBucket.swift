/// A rate with some saved up. Pure: times are milliseconds on a clock that never jumps.
package struct TokenBucket: Sendable, Hashable {
    private let perSecond: Int64
    /// What may be taken at once, in thousandths.
    private let burst: Int64
    private var thousandths: Int64
    private var filledAt: Int64?

    package init(perSecond: Int, burst: Int) {
        self.perSecond = Int64(perSecond)
        self.burst = Int64(burst) * 1_000
        thousandths = self.burst
    }

    /// - Parameter count: At most the burst.
    /// - Returns: `nil` when so many were taken; else the milliseconds until there are so many.
    package mutating func take(_ count: Int, at now: Int64) -> Int64? {
        let since = max(0, now - (filledAt ?? now))
        filledAt = now
        thousandths = min(burst, thousandths + min(since, 3_600_000) * perSecond)
        let wanted = Int64(count) * 1_000
        guard thousandths >= wanted else { return (wanted - thousandths + perSecond - 1) / perSecond }
        thousandths -= wanted
        return nil
    }
}
