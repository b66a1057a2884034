/// When Apple's provider token is renewed ("Establishing a token-based connection to APNs": not more than once in 20 minutes, and
/// not less than once in an hour). Times are milliseconds on a clock that never jumps.
package struct ProviderTokenSchedule: Sendable, Hashable {
    package static let renewalMilliseconds: Int64 = 50 * 60_000
    package static let ageMillisecondsMin: Int64 = 20 * 60_000

    package var issuedAt: Int64

    package init(issuedAt: Int64) { self.issuedAt = issuedAt }

    package func isDue(at now: Int64) -> Bool { now - issuedAt >= Self.renewalMilliseconds }
    /// Whether Apple takes a new one, as after it has refused the old.
    package func mayRenew(at now: Int64) -> Bool { now - issuedAt >= Self.ageMillisecondsMin }
}
