package import GateVocabulary
package import WireProtocol

/// A request that changes something and is recorded in its caller's name, and the grants of which it needs one.
///
/// Declared once: the route of the same name asks for these grants, the operation asks again under the bundle that its step
/// runs under, and an auditor's replay from the first entry asks a third time, under the bundle that was in force.
package enum CallerAct: String, CaseIterable, Sendable, Hashable {
    case putRecipient, deleteRecipient
    case putDevice, deleteDevice, putSubscriptions
    case putAddress, deleteAddress
    case addDeviceKey, confirmDeviceKey
    /// Every change of a key but those two: a device's, or one of the gateway's own.
    case changeKey
    case addConsent, withdrawConsent, putPreference, addPermissionPrompt
    case acknowledgeEvent, cancelSend, addReceipt, addReply
    /// A person with all that another system knew of them; each part is an act of its own besides.
    case importPerson
    case putKeyset, runDrift, activatePolicy

    /// The caller needs one of them.
    package var grants: [Grant] {
        switch self {
        case .putRecipient, .putAddress, .deleteAddress: [.recipientsWrite]
        case .deleteRecipient: [.subjectsErase]
        case .putDevice, .deleteDevice, .putSubscriptions, .addDeviceKey, .confirmDeviceKey: [.devicesWrite]
        case .changeKey, .putKeyset: [.keysRotate]
        case .addConsent, .withdrawConsent: [.consentsWrite]
        case .importPerson: [.consentsImport]
        case .putPreference: [.preferencesWrite, .preferencesStepUp]
        case .addPermissionPrompt: [.preferencesWrite]
        case .acknowledgeEvent, .cancelSend: [.send]
        case .addReceipt: [.receiptsWrite]
        case .addReply: [.repliesWrite]
        case .runDrift: [.driftRun]
        case .activatePolicy: [.policyActivate]
        }
    }

    package var permission: Permission { .oneOf(grants) }
}
