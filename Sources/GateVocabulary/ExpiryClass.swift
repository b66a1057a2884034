/// When a message ends, as far as it is told outside a seal.
///
/// The exact time would tell the type: a code lives five minutes, and hardly anything else does. Outside there are three
/// classes a tier, counted from the moment a message is composed or handed over; the exact end is inside the seal, and
/// the gateway itself hands nothing over after it.
package enum ExpiryClass {
    /// Seconds, rising; the last is the longest time to live there is (FCM, `AndroidConfig.ttl`: 28 days).
    package static func seconds(of tier: Tier) -> [Int64] {
        switch tier {
        case .critical: [86_400, 604_800, 2_419_200]
        case .important, .informational, .promotional: [172_800, 604_800, 2_419_200]
        }
    }

    /// The shortest class a message of this tier fits that has until `expiry` to live.
    package static func seconds(until expiry: Instant, from now: Instant, tier: Tier) -> Int64 {
        let left = expiry.milliseconds - now.milliseconds
        let classes = seconds(of: tier)
        return classes.first { left <= $0 * 1000 } ?? classes[classes.count - 1]
    }
}
