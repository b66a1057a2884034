/// Where a choice was made (S1; `in_app_step_up` is the only one that can switch security off).
package enum PreferenceSource: String, CaseIterable, Sendable, Hashable {
    case inAppSettings = "in_app_settings"
    case osSettingsSync = "os_settings_sync"
    case inAppStepUp = "in_app_step_up"
    case unsubscribeLink = "unsubscribe_link"
    case adminOverride = "admin_override"
    /// The gateway's drift audit suppressed a category at a device, or let it go again.
    case driftAudit = "drift_audit"

    /// The sources that a caller may assert: an audit is the gateway's own.
    package static let allCases: [PreferenceSource] = [
        .inAppSettings, .osSettingsSync, .inAppStepUp, .unsubscribeLink, .adminOverride,
    ]
}

extension PreferenceSource {
    /// A caller that reports what a person chose behind a second confirmation need not be trusted with their everyday
    /// choices, nor the other way round.
    package var neededGrant: Grant { self == .inAppStepUp ? .preferencesStepUp : .preferencesWrite }
}
