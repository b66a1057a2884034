/// When the gateway audits drift by itself, and how fast any audit goes.
struct DriftSchedule: Hashable, Sendable {
    /// From the beginning of one run to that of the next, in milliseconds; S1 asks for a weekly one. `nil` begins none.
    var intervalMilliseconds: Int64? = 7 * 86_400_000
    /// Recipients looked at in a second; ten million take five and a half hours.
    var personCountPerSecond = 500
}
