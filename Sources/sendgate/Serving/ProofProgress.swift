/// What the log is told while a bundle is proved: nothing in the first second, and a line each second from then on.
///
/// On two cores a proof takes some ten seconds in a release build, which is how long a start with a new bundle takes.
struct ProofProgress: Sendable {
    private static let interval = Duration.seconds(1)

    private var last: ContinuousClock.Instant

    init(from start: ContinuousClock.Instant) { last = start }

    /// - Parameters:
    ///   - done: States that were decided, of `total`.
    ///   - now: When they were.
    /// - Returns: A line for the log; `nil` where it is too early for another, or the last state was decided.
    mutating func line(_ done: UInt64, of total: UInt64, at now: ContinuousClock.Instant) -> String? {
        guard now - last >= Self.interval, done < total else { return nil }
        last = now
        return
            "proving the bundle, which this build has not proved before: \(done * 100 / total) % of \(total) states"
    }
}
