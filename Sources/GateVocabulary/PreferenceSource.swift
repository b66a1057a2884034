/// Where a choice was made (S1; `in_app_step_up` is the only one that can switch security off).
package enum PreferenceSource: String, CaseIterable, Sendable, Hashable {
    case inAppSettings = "in_app_settings"
    case osSettingsSync = "os_settings_sync"
    case inAppStepUp = "in_app_step_up"
    case unsubscribeLink = "unsubscribe_link"
    case adminOverride = "admin_override"
}
