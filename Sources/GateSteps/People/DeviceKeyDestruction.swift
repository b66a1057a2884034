import CanonicalJSON
package import GateVocabulary
import KeyLifecycle
package import GateRecords
import WireProtocol

/// The proposal of one caller to destroy a device key, which another has to follow.
///
/// A setting beside the person, because it is no part of what is known of them. It is of the key in the state that it was in: with
/// any change of the key it is over.
private enum DestructionProposal {
    static func setting(_ key: KeyID) -> String { "\(settingNames.lowerBound)\(key.hexadecimal)" }
    static let settingNames = "destruction "..<"destruction!"
    static let content = "state"
}

/// What one caller proposed, and another has to bring as well. Kept as a setting.
struct StoredProposal {
    /// What must be the same when the other brings it.
    var content: String
    var by: GatewayKey.Proposal
}

extension StoredProposal {
    /// - Parameter member: What the content is called in the text.
    func text(of member: String) -> String {
        JSONValue.object([
            "at": .integer(by.at.milliseconds), "caller": .string(by.caller.text),
            member: .string(content),
        ]).description
    }

    init?(text: String, of member: String) {
        guard let value = try? CanonicalJSON.read(Array(text.utf8)),
            let content = value[member]?.stringValue, let caller = value["caller"]?.stringValue,
            let at = value["at"]?.integerValue
        else { return nil }
        self.init(content: content, by: .init(caller: CallerName(caller), at: Instant(milliseconds: at)))
    }
}

extension StepContext {
    /// Names of all settings that are proposals to destroy a device key.
    package static var destructionSettingNames: Range<String> { DestructionProposal.settingNames }

    /// Lets go of a proposal whose hour is over. It counted for nothing any more, and its entry is in the trail.
    ///
    /// - Parameter name: The setting's.
    package func dropDestructionProposal(_ name: String, at now: Instant) throws {
        guard let text = try memory.setting(name),
            let proposal = StoredProposal(text: text, of: DestructionProposal.content),
            proposal.by.expiresAt < now
        else { return }
        memory.setSetting(name, to: nil)
    }
}

extension GateMemory {
    /// - Parameter proposal: Its content is the state of the key.
    func setDestructionProposal(_ proposal: StoredProposal?, of key: KeyID) {
        setSetting(DestructionProposal.setting(key), to: proposal?.text(of: DestructionProposal.content))
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
        let proposal = try setting(DestructionProposal.setting(key.key), orDamaged: "it holds no proposal") {
            StoredProposal(text: $0, of: DestructionProposal.content)
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
