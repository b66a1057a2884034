/// What a caller may do beyond being known. Given in `Policies/callers.yaml`, checked again on every
/// request and every stream line; what is not granted is denied.
package enum Grant: String, CaseIterable, Sendable, Hashable {
    /// Ask for notifications of the types the caller is permitted.
    case send
    /// Ask for OS critical-alert delivery of an allow-listed type.
    case sendCritical = "send.critical"
    /// Register recipients and their addresses.
    case recipientsWrite = "recipients.write"
    /// Record consent given, refused or withdrawn.
    case consentsWrite = "consents.write"
    /// Record consent older than 24 hours: a migration, not an interaction.
    case consentsImport = "consents.import"
    case preferencesWrite = "preferences.write"
    /// Report a choice made behind a second confirmation, the only one that switches security off.
    case preferencesStepUp = "preferences.step_up"
    /// Register devices and their public keys.
    case devicesWrite = "devices.write"
    /// Report what the delivery layer and the app observed.
    case receiptsWrite = "receipts.write"
    /// Pass on what recipients answered to a text or an e-mail, which can only take consent away.
    case repliesWrite = "replies.write"
    /// Promote, suspend, revoke and destroy keys.
    case keysRotate = "keys.rotate"
    case trailRead = "trail.read"
    /// See what is held of a person, and why things did and did not arrive.
    case subjectsRead = "subjects.read"
    /// Begin an audit of what the app, the provider and the operating system disagree about.
    case driftRun = "drift.run"
    /// Forget a person (GDPR Art. 17).
    case subjectsErase = "subjects.erase"
    /// Put a policy bundle in force.
    case policyActivate = "policy.activate"
    case metricsRead = "metrics.read"
}
