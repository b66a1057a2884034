import GateRecords
import GateVocabulary

extension ConsentMethod {
    /// Where the choice was made, when consent and preference are recorded in one step.
    var preferenceSource: PreferenceSource {
        switch self {
        case .inAppToggle: .inAppSettings
        case .smsKeyword, .emailReply: .reply
        case .sharedAddress: .sharedAddress
        case .webForm, .doubleOptIn, .paperForm, .phoneCall, .existingCustomer, .expressConsent,
            .writtenConsent:
            .consent
        }
    }
}

extension PreferenceSource {
    /// The same the other way round, for the withdrawal that a choice makes.
    func consentMethod(on channel: Channel) -> ConsentMethod {
        switch self {
        case .inAppSettings, .osSettingsSync, .inAppStepUp: .inAppToggle
        case .unsubscribeLink, .consent: .webForm
        case .reply: .reply(on: channel)
        case .sharedAddress: .sharedAddress
        case .adminOverride, .restore: .phoneCall
        // An audit's record is no choice of the person.
        case .driftAudit, .stateAudit: preconditionFailure("what an audit suppresses withdraws no consent")
        }
    }
}
