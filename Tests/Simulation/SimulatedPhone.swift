import SealedFormat
import CanonicalJSON
import Crypto
import GateTestKit
import GateVocabulary
import SealedPush

/// One device and its keys: the private halves, and where each key stands by what was answered so far.
struct SimulatedPhone {
    static let app = "no.getdrop.app"
    static let device = "d_1"
    /// Keys that wait to be proved; one more takes the place of the oldest.
    static let waitingCountMax = 4
    /// Keys that ended and are kept.
    static let endedCountMax = 32
    static let proofCountMax = 5
    /// Registrations that are taken within a minute.
    static let registrationCountMax = 4

    enum State: String {
        case waiting = "pre_activation"
        case active, suspended, deactivated, compromised, destroyed
    }

    /// What the security team does to a key.
    enum Verb: CaseIterable {
        case promote, suspend, resume, revokeCompromised, revokeLost, revokeRetired, destroy

        var path: String {
            switch self {
            case .promote: "promote"
            case .suspend: "suspend"
            case .resume: "resume"
            case .revokeCompromised, .revokeLost, .revokeRetired: "revoke"
            case .destroy: "destroy"
            }
        }

        var body: JSONObject? {
            switch self {
            case .promote, .suspend, .resume, .destroy: nil
            case .revokeCompromised: ["cause": "compromised"]
            case .revokeLost: ["cause": "lost"]
            case .revokeRetired: ["cause": "retired"]
            }
        }

        var isRevocation: Bool { path == "revoke" }

        /// Where it leads from a state; `nil` where it is refused.
        func next(after state: State) -> State? {
            switch (self, state) {
            case (.promote, .waiting), (.resume, .suspended): .active
            case (.suspend, .active): .suspended
            case (.revokeCompromised, .waiting), (.revokeCompromised, .active),
                (.revokeCompromised, .suspended), (.revokeCompromised, .deactivated):
                .compromised
            case (.revokeLost, .active), (.revokeLost, .suspended), (.revokeRetired, .active),
                (.revokeRetired, .suspended):
                .deactivated
            case (.destroy, .waiting), (.destroy, .deactivated), (.destroy, .compromised): .destroyed
            default: nil
            }
        }
    }

    /// What the gateway sealed to a key that is registered, and to the one in use before it.
    struct Challenge {
        var own: String
        var old: String?
        var oldKey: String?
        var expiresAt: Instant
        var proofsLeft = SimulatedPhone.proofCountMax
    }

    struct Key {
        let id: String
        let pair: P256.KeyAgreement.PrivateKey
        let registeredAt: Instant
        var state = State.waiting
        var challenge: Challenge?
        /// The security team has said that nothing sealed to it goes any more.
        var isRevoked = false

        var publicKey: [UInt8] { Array(pair.publicKey.x963Representation) }
    }

    /// Oldest first; forgotten ones are not among them.
    var keys: [Key] = []
    /// Ids that the gateway has forgotten.
    var forgotten: [String] = []

    var active: Key? { keys.first { $0.state == .active } }
    func position(of id: String) -> Int? { keys.firstIndex { $0.id == id } }

    /// What a message that waits must be sealed to if it is to go: the key in use, or one that was replaced while the
    /// device has one in use.
    func mayReceive(sealedTo id: String) -> Bool {
        guard let key = position(of: id).map({ keys[$0] }) else { return false }
        return key.state == .active || (key.state == .deactivated && !key.isRevoked && active != nil)
    }

    /// A key is registered: the surplus of those that wait is forgotten, and of those that ended.
    mutating func add(_ key: Key) {
        let waiting = keys.filter { $0.state == .waiting }
        for surplus in waiting.dropLast(Self.waitingCountMax - 1) {
            keys.removeAll { $0.id == surplus.id }
            forgotten.append(surplus.id)
        }
        let ended = keys.filter { [.deactivated, .compromised, .destroyed].contains($0.state) }
        for surplus in ended.dropLast(Self.endedCountMax) {
            keys.removeAll { $0.id == surplus.id }
            forgotten.append(surplus.id)
        }
        keys.append(key)
    }

    /// Whether one more registration is taken.
    func mayRegister(at now: Instant) -> Bool {
        keys.count { $0.registeredAt.advanced(bySeconds: 60) > now } < Self.registrationCountMax
    }

    /// Whether the right proofs bring a key into use.
    func mayProve(_ key: Key, at now: Instant) -> Bool {
        guard key.state == .waiting, let challenge = key.challenge, now <= challenge.expiresAt,
            !keys.contains(where: { $0.state == .suspended })
        else { return false }
        return active?.id == challenge.oldKey
    }

    /// A key comes into use, and no other is any longer.
    mutating func activate(_ id: String) {
        for index in keys.indices where keys[index].state == .active && keys[index].id != id {
            keys[index].state = .deactivated
            keys[index].challenge = nil
        }
        guard let index = position(of: id) else { return }
        keys[index].state = .active
        keys[index].challenge = nil
    }

    // MARK: What the app does

    static func pair(_ dice: inout SeededNumbers) throws -> P256.KeyAgreement.PrivateKey {
        var bytes = (0..<4).flatMap { _ in withUnsafeBytes(of: dice.next()) { Array($0) } }
        // Below the order of the group, which begins with 32 ones.
        bytes[0] &= 0x7F
        return try P256.KeyAgreement.PrivateKey(rawRepresentation: bytes)
    }

    static func opener(_ key: Key, origin: OriginKey) throws -> SealedPushOpener {
        try SealedPushOpener(
            app: app, device: device, keys: [DeviceKey(keyID: key.id, privateKey: key.pair)],
            origins: [origin], seen: InMemorySeenMessages())
    }

    /// The envelope's one spelling, from the object that an answer carries it in.
    static func envelope(_ object: JSONObject) -> String {
        func text(_ member: String) -> String { object[member]?.stringValue ?? "" }
        return
            #"{"v":1,"s":"\#(text("s"))","kid":"\#(text("kid"))","mid":"\#(text("mid"))","exp":\#(object["exp"]?.integerValue ?? 0),"ct":"\#(text("ct"))"}"#
    }
}
