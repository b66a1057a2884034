import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords

/// A closed list of values whose position is what the files hold: an enum without payloads.
///
/// - Warning: Append only. Moving or removing a value changes the meaning of every row ever written;
///   `StoredCodeTests` pins each list.
protocol StoredCode: SealedValue, Equatable, Sendable {
    static var codes: [Self] { get }
}

extension StoredCode {
    // The values of an enum without payloads are told apart by one byte (the bit cast checks the size alone); to compare those
    // of another module with `==` is a call for each.
    // A list of one value has no bits at all.
    private var tag: UInt8 { MemoryLayout<Self>.size == 0 ? 0 : unsafeBitCast(self, to: UInt8.self) }

    var code: Int64 {
        guard let index = Self.codes.firstIndex(where: { [tag] in $0.tag == tag }) else {
            preconditionFailure("\(Self.self) has a value without a stored code: \(self)")
        }
        return Int64(index)
    }

    init?(code: Int64) {
        guard code >= 0, code < Self.codes.count else { return nil }
        self = Self.codes[Int(code)]
    }
}

extension Category: StoredCode {
    static let codes: [Category] = [.transactional, .security, .social, .marketing]
}
extension Tier: StoredCode {
    static let codes: [Tier] = [.critical, .important, .informational, .promotional]
}
extension Channel: StoredCode {
    static let codes: [Channel] = [.push, .sms, .email]
}
extension Platform: StoredCode {
    static let codes: [Platform] = [.ios, .android]
}
extension PushProvider: StoredCode {
    static let codes: [PushProvider] = [.expo]
}
extension BodyForm: StoredCode {
    static let codes: [BodyForm] = [.sealed, .generic, .full, .never]
}
extension Interruption: StoredCode {
    static let codes: [Interruption] = [.passive, .active, .timeSensitive, .critical]
}
extension AgeFact: StoredCode {
    static let codes: [AgeFact] = [.adult, .minor]
}
extension PrivacyLevel: StoredCode {
    static let codes: [PrivacyLevel] = [.full, .generic, .hidden]
}
extension RegionSource: StoredCode {
    static let codes: [RegionSource] = [.kyc, .userDeclared, .device, .sim, .ip]
}
extension OSPermission: StoredCode {
    static let codes: [OSPermission] = [.granted, .provisional, .denied, .notDetermined]
}
extension ConsentMethod: StoredCode {
    static let codes: [ConsentMethod] = [
        .inAppToggle, .webForm, .doubleOptIn, .paperForm, .phoneCall, .smsKeyword, .existingCustomer,
        .expressConsent, .writtenConsent, .emailReply, .sharedAddress,
    ]
}
extension PreferenceState: StoredCode {
    static let codes: [PreferenceState] = [.default, .userOn, .userOff, .userOffStepUp]
}
extension PreferenceSource: StoredCode {
    static let codes: [PreferenceSource] = [
        .inAppSettings, .osSettingsSync, .inAppStepUp, .unsubscribeLink, .adminOverride, .driftAudit,
        .consent, .reply, .sharedAddress, .restore, .stateAudit,
    ]
}
extension ReplyEffect: StoredCode {
    static let codes: [ReplyEffect] = [
        .withdrawn, .notAWithdrawal, .nothingKnownHere, .alreadySo, .notAnAddress,
    ]
}
extension DriftKind: StoredCode {
    static let codes: [DriftKind] = [
        .subscribedWhileOff, .unsubscribedWhileOn, .blockedAtOS, .deliveredQuietly, .permissionOutdated,
        .notEntitled, .zoneMissing, .tokenStale, .providerRefuses,
    ]
}
extension DriftAction: StoredCode {
    static let codes: [DriftAction] = [.repaired, .suppressed, .marked, .resolved]
}
extension ConsentRecord.State: StoredCode {
    static let codes: [ConsentRecord.State] = [.given, .refused, .withdrawn, .shown, .undone]
}
extension PermissionPrompt.Choice: StoredCode {
    static let codes: [PermissionPrompt.Choice] = [.granted, .denied]
}
extension SendEventKind: StoredCode {
    static let codes: [SendEventKind] = [
        .handedOver, .refusedByHop, .expiredUnsent, .ambiguous, .withdrawn, .summarised, .mandatoryUnreached,
        .acceptedByProvider, .failed, .tokenGone, .expired, .userObserved,
    ]
}
extension OutboxRecord.State: StoredCode {
    static let codes: [OutboxRecord.State] = [.ready, .deferred, .digesting]
}

/// The order in which waiting messages go: security before everything, then by tier. Each rank has queues
/// of its own, so no flood in one can hold up another.
enum Rank {
    private static let perLane = Int64(Tier.codes.count)

    static func of(_ category: Category, _ tier: Tier) -> Int64 {
        (category == .security ? 0 : perLane) + tier.code
    }

    /// The ranks of a lane, first to go first.
    static func all(in lane: DeliveryLane) -> Range<Int64> {
        switch lane {
        case .security: 0..<perLane
        case .general: perLane..<2 * perLane
        }
    }
}
