/// The reasons that providers give of messages that wait by themselves, while their app's others may go: for the log and `/readyz`.
///
/// Such a message opens no circuit and raises no alarm, because one wrong token must not. Without this a newcomer whose first push waits for
/// `BadDeviceToken` would find it said nowhere.
///
/// Pure: times are milliseconds on a clock that never jumps.
struct WaitingReasons {
    /// How often the log says the same of a way out, in milliseconds.
    static let logMilliseconds: Int64 = 600_000
    /// A message that waits comes again within a minute, or after the seconds that it was told. A reason that is not heard of again for so
    /// long after that, in milliseconds, keeps none waiting any more.
    static let marginMilliseconds: Int64 = 150_000
    /// Reasons are the courier's and the provider's words, so a provider chooses how many there are.
    static let countMax = 1_000

    private struct Key: Hashable {
        var lane: ProviderLane
        var reason: String
    }

    private struct State {
        var until: Int64
        var loggedAt: Int64
    }

    private var states: [Key: State] = [:]

    /// - Parameter seconds: When the message is tried again, as it was told.
    /// - Returns: Whether the log has to say so.
    mutating func note(_ reason: String, on lane: ProviderLane, seconds: Int?, at now: Int64) -> Bool {
        let key = Key(lane: lane, reason: reason)
        let until = now + Int64(seconds ?? 0) * 1_000 + Self.marginMilliseconds
        if let state = states[key], now < state.loggedAt + Self.logMilliseconds {
            states[key]?.until = max(state.until, until)
            return false
        }
        if states.count >= Self.countMax { states.removeAll() }
        states[key] = State(until: until, loggedAt: now)
        return true
    }

    /// The reasons that are waited for now, as `apns com.example.app: BadDeviceToken`.
    func reasons(at now: Int64) -> [String] {
        states.filter { now < $0.value.until }.map { "\($0.key.lane): \($0.key.reason)" }.sorted()
    }

    /// Nothing waits for what the credentials before said.
    mutating func removeAll() { states = [:] }
}
