import CommandTerminal
import SealedFormat
import AuditTrail
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import KeyLifecycle
import OpenSSLCrypto
import SQLiteStore
import Synchronization

/// The private halves of the gateway's keys, from files to where they are used.
///
///     keyring (committed) → origin: envelopes  ·  trail: checkpoints  ·  link: unsubscribe links  ·  root: the files
///
/// Which data key seals is the store's to know, in the same commit as the keyring.
final class KeyHolder: PrivateKeys {
    private let directory: String
    private let rootPath: String?
    private let credentials: String?
    private let prefix: String
    private let trailOrigin: String
    private let state: Mutex<State>
    /// Two trials at once would take the file from each other.
    private let probing = Mutex(())
    /// One keyring is followed at a time, so that a pass over the files puts none back that a change has replaced.
    private let following = Mutex(())
    private let gateKeys: GateKeys
    private let library: PublishedTrail
    private let store: SQLiteStore

    private struct State {
        var files: [String: PrivateKeyFile]
        /// Wraps what is made.
        var root: PrivateKeyFile
    }

    /// - Parameter keyring: As the start found it.
    /// - Parameter prefix: Of the ids of keys that are made: `dev-` where throwaway keys are taken.
    init(
        _ keys: PrivateKeyDirectory, as keyring: Keyring, prefix: String, trailOrigin: String,
        gateKeys: GateKeys, library: PublishedTrail, store: SQLiteStore
    ) throws {
        (directory, rootPath, credentials) = (keys.path, keys.rootPath, keys.credentials)
        self.prefix = prefix
        self.trailOrigin = trailOrigin
        let files = Dictionary(
            keys.keys.values.joined().map { ($0.id, $0) }, uniquingKeysWith: { one, _ in one })
        guard let root = keyring.active(.root).flatMap({ files[$0.id] }) else {
            throw KeyFileError.missing(purpose: .root, directory: keys.path)
        }
        state = Mutex(State(files: files, root: root))
        self.gateKeys = gateKeys
        self.library = library
        self.store = store
    }

    func requirePlace(for purpose: KeyPurpose) throws(KeyringRefusal) {
        if purpose == .root, let rootPath { throw .rootIsElsewhere(path: rootPath) }
    }

    func make(_ purpose: KeyPurpose, at now: Instant) throws -> GatewayKey {
        var file = try PrivateKeyFile.generate(purpose, prefix: prefix, at: now)
        try file.create(in: directory, wrappedBy: state.withLock { $0.root })
        state.withLock { [file] in $0.files[file.id] = file }
        // A data key opens from here on, so that it can seal from the end of the commit that promotes it.
        if purpose == .data { store.add(try RowCipher.Key(file)) }
        return try GatewayKey(file, at: now)
    }

    func isLoaded(_ id: String) -> Bool {
        let files = state.withLock { $0.files }
        guard let key = files[id] else { return false }
        return PrivateKeyDirectory.holds(
            key, in: directory, roots: files.filter { $1.purpose == .root }, rootPath: rootPath,
            credentials: credentials)
    }

    func requireReady(for event: KeyEvent, of key: GatewayKey) throws {
        if key.isFollowedByWriting(event) {
            try probing.withLock { _ in try PrivateKeyDirectory.requireWritable(at: directory) }
        }
        guard event == .promote || event == .resume, key.purpose.isAsymmetric,
            let file = state.withLock({ $0.files[key.id] })
        else { return }
        let privateKey = try Ed25519PrivateKey(seed: file.secret)
        // Nothing that is signed elsewhere begins so.
        let trial = Array("sendgate/key-trial/v1\0\(key.id)".utf8)
        guard privateKey.publicKey.rawBytes == key.publicKey,
            privateKey.publicKey.isValid(signature: try privateKey.sign(trial), for: trial)
        else { throw CommandFailure("the key `\(key.id)` does not sign as its public half says") }
        if key.purpose == .trail { try library.requireVerifierKeysWritable() }
    }

    func follow(_ keyring: Keyring) throws {
        try following.withLock { _ in try put(keyring) }
    }

    /// Does what failed when the keyring in use was followed.
    func followAgain() throws {
        try following.withLock { _ in try put(gateKeys.keyring) }
    }

    private func put(_ keyring: Keyring) throws {
        let files = state.withLock { state in
            if let root = keyring.active(.root).flatMap({ state.files[$0.id] }) { state.root = root }
            return state.files
        }
        gateKeys.replace(
            with: keyring, origin: try Self.originSigner(of: keyring, in: files),
            links: try Self.linkKeys(of: keyring, in: files) ?? gateKeys.links)
        // Key files follow also where the trail's cannot be written.
        let signing = Result {
            guard let signer = try Self.trailSigner(of: keyring, in: files, origin: trailOrigin) else {
                return
            }
            try library.sign(
                with: signer, olderKeys: keyring.earlierTrailKeys(origin: trailOrigin, trusted: true))
        }
        try followInFiles(keyring)
        try signing.get()
    }

    /// Wraps the files anew, and erases what the keyring has destroyed and nothing needs. What fails is tried again by the next
    /// call.
    ///
    /// - Throws: What failed first.
    private func followInFiles(_ keyring: Keyring) throws {
        var failures: [any Error] = []
        do {
            try state.withLock { state in
                for key in try RootRotation.wrap(Array(state.files.values), by: state.root, in: directory) {
                    state.files[key.id] = key
                }
            }
        } catch {
            failures.append(error)
        }
        // A root key goes only after what it wrapped is wrapped by the one in use.
        let isWrapped = failures.isEmpty
        for key in keyring.keys where key.state == .destroyed && (isWrapped || key.purpose != .root) {
            guard state.withLock({ $0.files[key.id] }) != nil else { continue }
            do {
                if try !isNeeded(key, in: keyring) { try erase(key) }
            } catch {
                failures.append(error)
            }
        }
        if let first = failures.first { throw first }
    }

    /// Whether stored values may be under a destroyed data key. A running gateway destroys one only when none is; a store that
    /// was restored is older than the destruction, which the trail brought back before its values are sealed anew.
    private func isNeeded(_ key: GatewayKey, in keyring: Keyring) throws -> Bool {
        guard key.purpose == .data else { return false }
        return try store.read {
            try $0.hasSealed(under: key.id) && $0.resealedDataKey() != keyring.active(.data)?.id
        }
    }

    func isFollowed(_ key: GatewayKey) -> Bool {
        state.withLock { state in
            switch (key.purpose, key.state) {
            case (_, .destroyed): state.files[key.id] == nil
            case (.trail, .active): library.signingKey.publicKey.rawBytes == key.publicKey
            case (.root, .active): state.files.values.allSatisfy { !$0.isWrapped || $0.wrappers == [key.id] }
            default: true
            }
        }
    }

    func erase(_ key: GatewayKey) throws {
        try PrivateKeyFile.erase(key.id, in: directory)
        state.withLock { $0.files[key.id] = nil }
    }

    // MARK: Signers

    static func originSigner(
        of keyring: Keyring, in files: [String: PrivateKeyFile]
    ) throws -> OriginSigner? {
        guard let key = keyring.active(.origin), let file = files[key.id] else { return nil }
        let privateKey = try Ed25519PrivateKey(seed: file.secret)
        return try OriginSigner(
            keyID: Array(SHA256.digest(privateKey.publicKey.rawBytes).bytes.prefix(8)),
            privateKey: privateKey)
    }

    /// The active link key makes links. Earlier link keys verify the links that they made, as long as no other party may hold
    /// them.
    static func linkKeys(of keyring: Keyring, in files: [String: PrivateKeyFile]) throws -> LinkKeys? {
        func key(_ key: GatewayKey) -> LinkKeys.Key? {
            files[key.id].map { .init(id: $0.id, secret: $0.secret) }
        }
        guard let current = keyring.active(.link).flatMap(key) else { return nil }
        let older = keyring.keys.filter {
            $0.purpose == .link && ($0.state == .deactivated || $0.state == .suspended) && !$0.isCompromised
        }
        return LinkKeys(current: current, older: older.compactMap(key))
    }

    static func trailSigner(
        of keyring: Keyring, in files: [String: PrivateKeyFile], origin: String
    ) throws -> NoteSigner? {
        guard let key = keyring.active(.trail), let file = files[key.id] else { return nil }
        guard let signer = NoteSigner(name: origin, key: try Ed25519PrivateKey(seed: file.secret)) else {
            throw CommandFailure(
                "`\(origin)` cannot name a trail",
                hint: "set `origin` to something like `gate.example.com/prod`")
        }
        return signer
    }
}

extension Keyring {
    /// Public halves of trail keys that signed earlier checkpoints, the newest 64: as many as `trail.pub` has room for.
    ///
    /// - Parameter isTrusted: Whether to give the keys that an auditor may believe; else the keys that another may hold.
    func earlierTrailKeys(origin: String, trusted isTrusted: Bool) -> [NoteVerifierKey] {
        keys.filter { key in
            key.purpose == .trail && key.state != .active && key.state != .preActivation
                && key.isCompromised != isTrusted
        }.sorted { $0.changedAt > $1.changedAt }.prefix(Keyring.keyCountMax).compactMap { key in
            key.publicKey.flatMap { try? Ed25519PublicKey(rawBytes: $0) }
                .flatMap { NoteVerifierKey(name: origin, publicKey: $0) }
        }
    }
}

extension GatewayKey {
    /// What everybody may know of a key, as its file has it.
    init(_ file: PrivateKeyFile, at now: Instant) throws {
        self.init(
            id: file.id, purpose: file.purpose, state: .preActivation, createdAt: file.createdAt,
            changedAt: now, publicKey: try file.publicKey()?.rawBytes)
    }
}

extension RowCipher.Key {
    convenience init(_ file: PrivateKeyFile) throws {
        self.init(id: file.id, key: try AES256GCMKey(file.secret))
    }
}
