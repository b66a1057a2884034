import SealedFormat
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import OpenSSLCrypto
import SQLiteStore
import Synchronization

/// Private halves in memory, used as the gateway's own are.
final class TestPrivateKeys: PrivateKeys {
    /// What is wrong with the place that key files are in.
    enum Fault: Error {
        /// Nothing can be written, which is known before.
        case readOnly
        /// It can be written, and yet no file can be removed or wrapped anew.
        case stuck
        /// No key signs.
        case mute
    }

    private struct State {
        var made: [String: SecretBytes] = [:]
        var followed: [Keyring] = []
        var erased: [String] = []
        var lost: Set<String> = []
        var fault: Fault?
        var rootPath: String?
    }
    private let state = Mutex(State())
    private let keys: GateKeys
    private let firstLink = LinkKeys.Key(
        id: "link-1", secret: SecretBytes(copying: [UInt8](repeating: 7, count: 32)))
    private let store: any GateStore

    init(_ keys: GateKeys, store: any GateStore) {
        self.keys = keys
        self.store = store
    }

    var made: Set<String> { Set(state.withLock { $0.made.keys }) }
    var followed: [Keyring] { state.withLock { $0.followed } }
    var erased: [String] { state.withLock { $0.erased } }

    /// From here on as after a start that did not find the key's file.
    func lose(_ id: String) { state.withLock { _ = $0.lost.insert(id) } }

    func isLoaded(_ id: String) -> Bool { state.withLock { !$0.lost.contains(id) } }

    func fail(_ fault: Fault?) { state.withLock { $0.fault = fault } }

    func requireReady(for event: KeyEvent, of key: GatewayKey) throws {
        switch state.withLock({ $0.fault }) {
        case .readOnly? where key.isFollowedByWriting(event): throw Fault.readOnly
        case .mute? where event == .promote || event == .resume: throw Fault.mute
        default: break
        }
    }

    func isFollowed(_ key: GatewayKey) -> Bool {
        state.withLock { $0.fault == nil }
            || key.state != .destroyed && (key.purpose != .root || key.state != .active)
    }

    /// Where the root key is kept from here on, apart from the others.
    func keepRoot(at path: String) { state.withLock { $0.rootPath = path } }

    func requirePlace(for purpose: KeyPurpose) throws(KeyringRefusal) {
        if purpose == .root, let path = state.withLock({ $0.rootPath }) { throw .rootIsElsewhere(path: path) }
    }
    func make(_ purpose: KeyPurpose, at now: Instant) throws -> GatewayKey {
        let secret = try SecretBytes.random(byteCount: 32)
        let id = "\(purpose.rawValue)-\(Hexadecimal.encode(try SecureRandom.bytes(8)))"
        state.withLock { $0.made[id] = secret }
        if purpose == .data, let files = store as? SQLiteStore {
            files.add(RowCipher.Key(id: id, key: try AES256GCMKey(secret)))
        }
        return GatewayKey(
            id: id, purpose: purpose, state: .preActivation, createdAt: now, changedAt: now,
            publicKey: purpose.isAsymmetric
                ? try Ed25519PrivateKey(seed: secret).publicKey.rawBytes : nil)
    }

    func follow(_ keyring: Keyring) throws {
        let secret = state.withLock { state in
            state.followed.append(keyring)
            guard state.fault == nil else { return keyring.active(.origin).flatMap { state.made[$0.id] } }
            state.erased += keyring.keys.filter { $0.state == .destroyed }.map(\.id)
                .filter { !state.erased.contains($0) }
            return keyring.active(.origin).flatMap { state.made[$0.id] }
        }
        let origin = try secret.map { secret in
            let key = try Ed25519PrivateKey(seed: secret)
            return try OriginSigner(
                keyID: Array(SHA256.digest(key.publicKey.rawBytes).bytes.prefix(8)), privateKey: key)
        }
        // As before it, for a key that was not made here.
        let link = keyring.active(.link).flatMap { key in
            state.withLock { $0.made[key.id] }.map { LinkKeys.Key(id: key.id, secret: $0) }
        }
        let links = link.map { LinkKeys(current: $0, older: [firstLink]) } ?? keys.links
        keys.replace(with: keyring, origin: origin, links: links)
        if let fault = state.withLock({ $0.fault }) { throw fault }
    }

    func erase(_ key: GatewayKey) { state.withLock { $0.erased.append(key.id) } }
}
