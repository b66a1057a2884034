import CanonicalJSON
import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import KeyLifecycle
import Logging
import OpenSSLCrypto
import SQLiteStore
import Synchronization
import Testing

@testable import sendgate

/// What the gateway makes of a keyring where its key files cannot be written.
@Suite struct KeyHolderTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var path: String { folder.path("gate/keys") }

    private func names() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: path))
    }

    /// As two callers ask for it.
    private func change(
        _ keyring: inout Keyring, _ event: KeyEvent, _ key: GatewayKey, at now: Instant
    ) throws {
        _ = try keyring.apply(event, to: key.id, because: .request, by: CallerName("one"), at: now)
        guard keyring[key.id]?.proposed != nil else { return }
        _ = try keyring.apply(event, to: key.id, because: .request, by: CallerName("two"), at: now)
    }

    private func holder(
        of keys: PrivateKeyDirectory, in store: SQLiteStore
    ) throws -> (KeyHolder, GateKeys, Keyring) {
        let keyring = try #require(try store.read { try $0.keyring() })
        let files = Dictionary(uniqueKeysWithValues: keys.keys.values.joined().map { ($0.id, $0) })
        let signer = try #require(
            try KeyHolder.trailSigner(of: keyring, in: files, origin: "gate.example.com/test"))
        let gateKeys = GateKeys(
            origin: try KeyHolder.originSigner(of: keyring, in: files),
            index: HMACKey(try keys.current(.index).secret),
            links: try #require(try KeyHolder.linkKeys(of: keyring, in: files)), keyring: keyring)
        let holder = try KeyHolder(
            keys, as: keyring, prefix: "dev-", trailOrigin: "gate.example.com/test", gateKeys: gateKeys,
            library: PublishedTrail(
                at: folder.path("trail"), signer: signer, olderKeys: [], of: store),
            store: store)
        return (holder, gateKeys, keyring)
    }

    @Test func `a pass over the key files puts no keyring back that a change has replaced`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.stop(closesStore: false)
        let store = gate.wiring.store
        defer { store.close() }
        let keys = try PrivateKeyDirectory(at: path, acceptsThrowaway: true)
        let (holder, gateKeys, whole) = try holder(of: keys, in: store)
        var suspended = whole
        try change(&suspended, .suspend, try #require(whole.active(.origin)), at: SystemClock().now())
        let passesLeft = Mutex(1_000)
        async let passes: Void = Task.detached {
            while passesLeft.withLock({ $0 }) > 0 {
                try holder.followAgain()
                passesLeft.withLock { $0 -= 1 }
            }
        }.value
        while passesLeft.withLock({ $0 }) > 0 {
            for keyring in [suspended, whole] {
                try holder.follow(keyring)
                #expect(gateKeys.keyring == keyring)
            }
        }
        try await passes
    }

    @Test func `what needs no writing is in force where no key can be wrapped, and the rest is retried`()
        async throws
    {
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.stop(closesStore: false)
        let store = gate.wiring.store
        defer { store.close() }
        let keys = try PrivateKeyDirectory(at: path, acceptsThrowaway: true)
        let (holder, gateKeys, found) = try holder(of: keys, in: store)
        var keyring = found
        let now = SystemClock().now()
        var (old, new): ([KeyPurpose: GatewayKey], [KeyPurpose: GatewayKey]) = ([:], [:])
        for purpose in [KeyPurpose.link, .root] {
            old[purpose] = keyring.active(purpose)
            let made = try holder.make(purpose, at: now)
            new[purpose] = made
            _ = try keyring.add(made)
            try change(&keyring, .promote, made, at: now)
            try change(&keyring, .destroy, try #require(old[purpose]), at: now)
        }
        try change(&keyring, .suspend, try #require(keyring.active(.origin)), at: now)
        let (oldRoot, newRoot) = (try #require(old[.root]), try #require(new[.root]))
        let (oldLink, newLink) = (try #require(old[.link]), try #require(new[.link]))

        // No file can be written under this name.
        let place = "\(path)/\(try keys.current(.index).id).\(newRoot.id).key.part"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        #expect(throws: KeyFileError.self) { try holder.follow(keyring) }
        #expect(gateKeys.keyring == keyring)
        #expect(throws: NoOriginKey.self) { try gateKeys.origin() }
        #expect(try !names().contains { $0.hasPrefix(oldLink.id) })
        #expect(try names().contains("\(oldRoot.id).key"), "it wraps keys still")
        // Either root key opens what there is.
        _ = try PrivateKeyDirectory(at: path, acceptsThrowaway: true)

        try FileManager.default.removeItem(atPath: place)
        try holder.follow(keyring)
        #expect(try !names().contains { $0.contains(oldRoot.id) })
        let after = try PrivateKeyDirectory(at: path, acceptsThrowaway: true)
        #expect(try after.current(.link).id == newLink.id)
        #expect(after.keys.values.joined().allSatisfy { !$0.isWrapped || $0.wrappers == [newRoot.id] })
    }

    /// Has a key destroyed whose file cannot be erased, and stops the gateway.
    ///
    /// - Returns: Also the directory that is in the way.
    private func destroyInVain() async throws -> (
        key: String, place: String, configuration: GatewayConfiguration
    ) {
        let gate = try await GatewayFixture(in: folder.root)
        let made = try await gate.ask("POST", "/v1/keys", ["purpose": "link"])
        let key = try #require(made.object["key"]?.stringValue, "\(made.object)")
        // No file can be renamed to this name, and none under it can be overwritten.
        let place = "\(path)/\(key).key.doomed"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        for (caller, status) in [(DevelopmentGateway.caller, 202), (CallerName("keys-team"), 503)] {
            let answer = try await gate.ask("POST", "/v1/keys/\(key)/destroy", as: caller)
            #expect(answer.status == status, "\(answer.object)")
            let detail = answer.object["detail"]?.stringValue
            #expect(detail?.contains("`\(path)/\(key).key`") ?? (status == 202), "\(answer.object)")
        }
        try await gate.stop()
        return (key, place, gate.wiring.configuration)
    }

    @Test(arguments: ["origin", "trail", "data", "link", "root"])
    func `a key whose file went while the gateway ran does not come into use`(purpose: String) async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let made = try await gate.ask("POST", "/v1/keys", ["purpose": .string(purpose)])
        var keys = [(try #require(made.object["key"]?.stringValue, "\(made.object)"), "promote")]
        if purpose == "origin" {
            let origin = try names().first { $0.contains("origin-") && !$0.hasPrefix(keys[0].0) }
            let old = String(try #require(origin).dropLast(".key".count))
            #expect(try await gate.ask("POST", "/v1/keys/\(old)/suspend").status == 200)
            keys.append((old, "resume"))
        }
        let before = try await gate.ask("GET", "/v1/keys").object
        for (key, verb) in keys {
            let (file, aside) = ("\(path)/\(key).key", folder.path("aside"))
            try FileManager.default.moveItem(atPath: file, toPath: aside)
            let answer = try await gate.ask("POST", "/v1/keys/\(key)/\(verb)")
            let told = answer.object["detail"]?.stringValue ?? ""
            #expect(answer.status == 409 && told.contains("put `\(key).key` back"), "\(answer.object)")
            #expect(try await gate.ask("GET", "/v1/keys").object == before)
            try FileManager.default.moveItem(atPath: aside, toPath: file)
        }
        // With the file put back the same is done, or proposed to a second caller.
        for (key, verb) in keys.reversed().prefix(1) {
            let answer = try await gate.ask("POST", "/v1/keys/\(key)/\(verb)")
            #expect(answer.status == (purpose == "root" ? 202 : 200), "\(answer.object)")
        }
        try await gate.stop()
    }

    @Test func `a trail key that auditors cannot be told of does not come into use`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let made = try await gate.ask("POST", "/v1/keys", ["purpose": "trail"])
        let key = try #require(made.object["key"]?.stringValue, "\(made.object)")
        let before = try await gate.ask("GET", "/v1/keys").object
        let (file, aside) = (folder.path("gate/trail/trail.pub"), folder.path("aside"))
        try FileManager.default.moveItem(atPath: file, toPath: aside)
        // No file can take the place of a directory.
        try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
        let answer = try await gate.ask("POST", "/v1/keys/\(key)/promote")
        let told = answer.object["detail"]?.stringValue ?? ""
        #expect(answer.status == 503 && told.contains("nothing was recorded"), "\(answer.object)")
        #expect(try await gate.ask("GET", "/v1/keys").object == before)
        try FileManager.default.removeItem(atPath: file)
        try FileManager.default.moveItem(atPath: aside, toPath: file)
        let promoted = try await gate.ask("POST", "/v1/keys/\(key)/promote")
        #expect(promoted.status == 200, "\(promoted.object)")
        try await gate.stop()
        // The last checkpoint is signed by it, as auditors can verify.
        let verified = try await CommandLineRun("audit", "verify", folder.path("gate/trail"), "--key", file)
        #expect(verified.status == 0, "\(verified)")
    }

    @Test func `what a trail key asks that is not done is known`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let made = try await gate.ask("POST", "/v1/keys", ["purpose": "trail"])
        let key = try #require(made.object["key"]?.stringValue, "\(made.object)")
        let held = gate.wiring.healthChecks.privateKeys
        var keyring = try #require(try gate.wiring.store.read { try $0.keyring() })
        let active = try #require(keyring.active(.trail))
        #expect(held.isFollowed(active))
        try change(&keyring, .promote, try #require(keyring[key]), at: SystemClock().now())
        #expect(!held.isFollowed(try #require(keyring.active(.trail))))
        try await gate.stop()
    }

    @Test func `a key directory that is gone is told before a destruction is recorded`() async throws {
        let gate = try await GatewayFixture(in: folder.root)
        let made = try await gate.ask("POST", "/v1/keys", ["purpose": "link"])
        let key = try #require(made.object["key"]?.stringValue, "\(made.object)")
        let before = try await gate.ask("GET", "/v1/keys").object
        try FileManager.default.moveItem(atPath: path, toPath: folder.path("aside"))
        for body in [["dry_run": true], [:]] as [JSONObject] {
            let answer = try await gate.ask("POST", "/v1/keys/\(key)/destroy", body)
            #expect(answer.status == 503, "\(answer.object)")
            #expect(answer.object["detail"]?.stringValue?.contains("nothing was recorded") == true)
        }
        try FileManager.default.moveItem(atPath: folder.path("aside"), toPath: path)
        #expect(try await gate.ask("GET", "/v1/keys").object == before)
        #expect(try await gate.ask("POST", "/v1/keys/\(key)/destroy").status == 202)
        try await gate.stop()
    }

    @Test func `a start goes on where a destroyed key's file cannot be erased, and names it`() async throws {
        let (key, place, configuration) = try await destroyInVain()
        #expect(try names().contains("\(key).key"))
        func started() async throws -> [String] {
            let log = CapturedLog()
            let wiring = try Wiring(
                configuration, environment: [:], logger: Logger(label: "test") { _ in log })
            try await wiring.start()
            let core = Task { try await wiring.core.run() }
            core.cancel()
            try await core.value
            wiring.store.close()
            return log.warnings.withLock { $0 }
        }
        let warnings = try await started()
        for file in [place, "\(path)/\(key).key"] {
            #expect(warnings.contains { $0.contains("`\(file)`") }, "\(warnings)")
        }
        try FileManager.default.removeItem(atPath: place)
        #expect(try await !started().contains { $0.contains("cannot write key file") })
        #expect(try !names().contains { $0.hasPrefix(key) })
    }
}

/// Keeps the warnings.
private final class CapturedLog: LogHandler {
    let warnings = Mutex<[String]>([])
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .warning }
        set {}
    }
    subscript(metadataKey _: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    func log(event: LogEvent) {
        if event.level == .warning { warnings.withLock { $0.append("\(event.message)") } }
    }
}
