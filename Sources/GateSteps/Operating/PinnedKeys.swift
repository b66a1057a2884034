package import BundleModel
import CanonicalJSON
package import GateRecords
import GateVocabulary

/// A public key that the gateway's configuration pins: a role's that approves bundles, or an authority's.
package struct PinnedKey: Hashable, Sendable {
    /// `nil` for an authority.
    package var role: ApprovalRole?
    /// The verifier key: its name, its short id and the public key.
    package var key: String

    package init(_ key: String, of role: ApprovalRole?) {
        self.key = key
        self.role = role
    }

    private var purpose: KeyPurpose { role == nil ? .authority : .policy }

    private var members: JSONObject {
        var members: JSONObject = ["key": .string(key), "purpose": .string(purpose.rawValue)]
        if let role { members["role"] = .string(role.rawValue) }
        return members
    }

    /// The pinned keys of a start, as they are stored.
    fileprivate static func text(of pins: [PinnedKey]) -> String {
        JSONValue.array(pins.map { .object($0.members) }).description
    }

    fileprivate static func read(_ text: String) -> [PinnedKey]? {
        guard let elements = try? CanonicalJSON.read(Array(text.utf8)).arrayValue else { return nil }
        var pins: [PinnedKey] = []
        for element in elements {
            guard let key = element["key"]?.stringValue else { return nil }
            let role = element["role"]?.stringValue
            if let role, ApprovalRole(rawValue: role) == nil { return nil }
            pins.append(PinnedKey(key, of: role.flatMap { ApprovalRole(rawValue: $0) }))
        }
        return pins
    }

    fileprivate func transition(_ event: String) -> ChangedPin {
        ChangedPin(key: key, purpose: Code(purpose), event: Code(event), role: role.map { Code($0) })
    }
}

extension StepContext {
    /// Records the keys that the configuration of a start pins.
    ///
    /// - Returns: The keys that came and went since the start before, as the entry of the start has them; `nil` when
    ///   none did.
    package func adoptPins(_ pins: [PinnedKey]) throws -> [ChangedPin]? {
        let known =
            try memory.setting(
                Self.pinsSetting, orDamaged: "it holds no list of pinned keys", PinnedKey.read) ?? []
        let changes =
            known.filter { !pins.contains($0) }.map { $0.transition("unpin") }
            + pins.filter { !known.contains($0) }.map { $0.transition("pin") }
        guard !changes.isEmpty else { return nil }
        memory.setSetting(Self.pinsSetting, to: PinnedKey.text(of: pins))
        return changes
    }

    private static let pinsSetting = "pinned_keys"
}
