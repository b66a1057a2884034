package import GateVocabulary
import KeyLifecycle
package import GateRecords
import WireProtocol

/// The settings that keep the proposal of one caller to destroy a device key, which another has to follow.
///
/// They stand beside the person, because a proposal is no part of what is known of them. It is of the key in the state that it was
/// in: with any change of the key it is over.
private enum DestructionSettings {
    static func setting(_ key: KeyID) -> String { "\(settingNames.lowerBound)\(key.hexadecimal)" }
    static let settingNames = "destruction "..<"destruction!"
    /// Under what name a proposal has the key's state.
    static let contentKey = "state"
}

extension StepContext {
    /// Names of all settings that are proposals to destroy a device key.
    package static var destructionSettingNames: Range<String> { DestructionSettings.settingNames }

    /// Lets go of a proposal whose hour is over. It counted for nothing any more, and its entry is in the trail.
    ///
    /// - Parameter name: The setting's.
    package func dropDestructionProposal(_ name: String, at now: Instant) throws {
        guard let text = try memory.setting(name),
            let proposal = StoredProposal(text: text, contentKey: DestructionSettings.contentKey),
            proposal.by.expiresAt < now
        else { return }
        memory.setSetting(name, to: nil)
    }
}

extension GateMemory {
    /// - Parameter proposal: Its content is the state of the key.
    func setDestructionProposal(_ proposal: StoredProposal?, of key: KeyID) {
        setSetting(
            DestructionSettings.setting(key), to: proposal?.text(contentKey: DestructionSettings.contentKey))
    }
}

extension RecordReading {
    /// The caller who proposed within the hour to destroy a device key, where another one asks for it now; `nil` where the
    /// one who asks is the first.
    ///
    /// - Throws: ``Problem`` for the same caller once more.
    package func destructionCaller(
        of key: DeviceKeyRecord, besides caller: CallerName, at now: Instant
    ) throws -> CallerName? {
        let proposal = try setting(DestructionSettings.setting(key.key), orDamaged: "it holds no proposal") {
            StoredProposal(text: $0, contentKey: DestructionSettings.contentKey)
        }
        guard let proposal else { return nil }
        let first = proposal.by
        let isOfThisState = proposal.content == key.state && first.at == key.changedAt
        guard isOfThisState, first.isOpen(at: now) else { return nil }
        guard first.caller != caller else {
            throw Problem(
                .wrongState, detail: KeyringRefusal.secondCallerMissing(until: first.expiresAt).message)
        }
        return first.caller
    }
}
