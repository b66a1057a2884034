import CommandTerminal
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import KeyLifecycle

/// The trail and the key files of a gateway that only reads: which keys there are, and a refusal of everything else.
struct UnwrittenFiles: TrailLibrary, PrivateKeys {
    let origin: String
    /// Ids of keys whose files are there.
    let keys: Set<String>
    let keysDirectory: String
    /// A root key that is kept elsewhere.
    let rootPath: String?

    static let refusal = CommandFailure("the gateway was put together to be asked, and changes nothing")

    func isLoaded(_ id: String) -> Bool { keys.contains(id) }

    func integrate(_ entries: [StoredEntry]) throws -> UInt64 { throw Self.refusal }
    func publish() throws { throw Self.refusal }
    func entry(_ index: UInt64) throws -> [UInt8]? { throw Self.refusal }
    func file(_ path: String) throws -> [UInt8]? { throw Self.refusal }
    func archivePolicy(_ digest: PolicyDigest, _ canonical: [UInt8]) throws { throw Self.refusal }
    func publishKeyset(_ note: [UInt8]) throws { throw Self.refusal }

    func requireReady(for event: KeyEvent, of key: GatewayKey) throws {
        if key.isFollowedByWriting(event) { try PrivateKeyDirectory.requireAccess(at: keysDirectory) }
    }
    func requirePlace(for purpose: KeyPurpose) throws(KeyringRefusal) {
        if purpose == .root, let rootPath { throw .rootIsElsewhere(path: rootPath) }
    }
    func make(_ purpose: KeyPurpose, at now: Instant) throws -> GatewayKey { throw Self.refusal }
    func follow(_ keyring: Keyring) throws { throw Self.refusal }
    func isFollowed(_ key: GatewayKey) -> Bool { false }
    func erase(_ key: GatewayKey) throws { throw Self.refusal }
}
