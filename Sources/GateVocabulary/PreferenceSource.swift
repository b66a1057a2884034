/// Where a choice was made (S1; `in_app_step_up` is the only one that can switch security off), or what else it follows from.
package enum PreferenceSource: String, CaseIterable, Sendable, Hashable {
    case inAppSettings = "in_app_settings"
    case osSettingsSync = "os_settings_sync"
    case inAppStepUp = "in_app_step_up"
    case unsubscribeLink = "unsubscribe_link"
    /// An administrator of the company chose for the person, as a caller with this source says. The gateway never writes it by
    /// itself.
    case adminOverride = "admin_override"
    /// The gateway's drift audit suppressed a category at a device, or let it go again.
    case driftAudit = "drift_audit"
    /// What is stored of the person was not what the trail tells, so that it is not known whether they said no.
    case stateAudit = "state_audit"
    /// It follows from a consent that was given, refused or withdrawn otherwise than in the app; how is said by that record.
    case consent
    /// It follows from a reply to a text or an e-mail.
    case reply
    /// Somebody else who registered the same number or mailbox said no by it.
    case sharedAddress = "shared_address"
    /// The gateway was restored from a backup, and this is what the lost part may have switched off.
    case restore

    /// The sources that a caller may assert; the others are written by the gateway alone.
    package static let allCases: [PreferenceSource] = [
        .inAppSettings, .osSettingsSync, .inAppStepUp, .unsubscribeLink, .adminOverride,
    ]
}

extension PreferenceSource {
    /// A caller that reports what a person chose behind a second confirmation need not be trusted with their everyday
    /// choices, nor the other way round.
    package var neededGrant: Grant { self == .inAppStepUp ? .preferencesStepUp : .preferencesWrite }
}
