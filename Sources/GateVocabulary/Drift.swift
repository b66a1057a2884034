/// What the app's preferences, the provider of notifications and the operating system do not agree about (S1, "Preference
/// drift audit").
package enum DriftKind: String, CaseIterable, Sendable, Hashable {
    /// The recipient does not get the category, and the provider still has the device subscribed to it.
    case subscribedWhileOff = "subscribed_while_off"
    /// The recipient would get the category, and the provider does not have the device subscribed to it.
    case unsubscribedWhileOn = "unsubscribed_while_on"
    /// Push is on for the account, and the operating system shows nothing of the app.
    case blockedAtOS = "blocked_at_os"
    /// Push is on for the account, and iOS delivers quietly: the user was not asked yet (provisional authorization).
    case deliveredQuietly = "delivered_quietly"
    /// The permission on record is `denied`, and the recipient has seen a push on the device since.
    case permissionOutdated = "permission_outdated"
    /// The device says that it takes critical alerts, and its app has no entitlement to them.
    case notEntitled = "not_entitled"
    /// Quiet hours are set, and no time zone is known to read them in.
    case zoneMissing = "zone_missing"
    /// Nothing was heard of the device for long: its token may be one that no app has any more.
    case tokenStale = "token_stale"
    /// The provider refused the newest push to the device for good.
    case providerRefuses = "provider_refuses"
}

/// What was done about a drift.
package enum DriftAction: String, CaseIterable, Sendable, Hashable {
    /// The app's preference is authoritative: the other side is set to what it says.
    case repaired
    /// Neither side is known to be right: nothing of the category goes to the device until the recipient chooses.
    case suppressed
    /// The gateway can only report the drift: the app or the recipient has to end it.
    case marked
    /// The drift has ended.
    case resolved
}
