import CanonicalJSON
package import GateVocabulary
import KeyLifecycle
package import GateRecords
import WireProtocol

/// The proposal of one caller to destroy a device key, which another has to follow.
///
/// A setting beside the person, because it is no part of what is known of them. It is of the key as it was: with any change
/// of the key it is over.
struct DestructionProposal {
    /// The key's.
    var state: String
    var by: GatewayKey.Proposal

    fileprivate var text: String {
        String(
            decoding: CanonicalJSON.write(
                JSONValue.object([
                    "at": .integer(by.at.milliseconds), "caller": .string(by.caller.text),
                    "state": .string(state),
                ])), as: UTF8.self)
    }

    fileprivate init?(text: String) {
        guard let value = try? CanonicalJSON.read(Array(text.utf8)), let state = value["state"]?.stringValue,
            let caller = value["caller"]?.stringValue, let at = value["at"]?.integerValue
        else { return nil }
        self.init(state: state, by: .init(caller: CallerName(caller), at: Instant(milliseconds: at)))
    }

    init(state: String, by proposal: GatewayKey.Proposal) {
        self.state = state
        by = proposal
    }

    fileprivate static func setting(_ key: KeyID) -> String { "\(settingNames.lowerBound)\(key.hexadecimal)" }
    static let settingNames = "destruction "..<"destruction!"
}

extension StepContext {
    /// Names of all settings that are proposals to destroy a device key.
    package static var destructionSettingNames: Range<String> { DestructionProposal.settingNames }

    /// Lets go of a proposal whose hour is over. It counted for nothing any more, and its entry is in the trail.
    ///
    /// - Parameter name: The setting's.
    package func dropDestructionProposal(_ name: String, at now: Instant) throws {
        guard let text = try memory.setting(name), let proposal = DestructionProposal(text: text),
            proposal.by.expiresAt < now
        else { return }
        memory.setSetting(name, to: nil)
    }
}

extension GateMemory {
    func setDestructionProposal(_ proposal: DestructionProposal?, of key: KeyID) throws {
        setSetting(DestructionProposal.setting(key), to: proposal?.text)
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
        let name = DestructionProposal.setting(key.key)
        guard let text = try setting(name) else { return nil }
        guard let proposal = DestructionProposal(text: text) else {
            throw StoreError.damaged(table: "setting", row: name, "it holds no proposal")
        }
        let first = proposal.by
        let isOfThisState = proposal.state == key.state && first.at == key.changedAt
        guard isOfThisState, first.isOpen(at: now) else { return nil }
        guard first.caller != caller else {
            throw Problem(
                .wrongState, detail: KeyringRefusal.secondCallerMissing(until: first.expiresAt).message)
        }
        return first.caller
    }
}
