import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import CommandTerminal
import Foundation
import GateRecords
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyFiles
import KeyLifecycle
import OpenSSLCrypto
import PolicyFiles
import SQLiteStore
import SealedFormat
import TrailDirectory

/// The state directory of a stopped gateway beside the newest trail there is: what the one lacks of the other, and how it
/// gets it back.
///
///     verify the trail → compare it with what the store holds → plan → run → publish under the new name
///
/// Until ``run(_:progress:)`` nothing is written.
struct RestoreWork {
    private let configuration: GatewayConfiguration
    private let keys: PrivateKeyDirectory
    let store: any GateStore
    private let closeStore: () -> Void
    private let trail: CopiedTrail
    /// Held from before the trail is verified until it is published under its new name; `nil` for a dry run of a trail that no
    /// writer ever had.
    private let lock: FileLock?

    /// What there is to do.
    enum Plan {
        /// The store has every entry that the trail has.
        case nothing
        case restore(RestoreUnderWay)
    }

    /// Takes the locks of both directories.
    ///
    /// - Parameters:
    ///   - folder: The trail. It goes on where it is, so it has to be the configured one.
    ///   - isDryRun: No byte of the two directories changes, and ``run(_:progress:)`` throws.
    init(_ configuration: GatewayConfiguration, trail folder: String, isDryRun: Bool = false) throws {
        func real(_ path: String) -> String {
            URL(fileURLWithPath: path).resolvingSymlinksInPath().standardizedFileURL.path
        }
        guard real(folder) == real(configuration.trailDirectory) else {
            throw CommandFailure(
                "the trail goes on in `\(configuration.trailDirectory)`, which is not `\(folder)`",
                hint: "put the newest copy of the trail there first")
        }
        self.configuration = configuration
        trail = try CopiedTrail(at: configuration.trailDirectory)
        try WritePermissions.demand(
            state: configuration.stateDirectory, trail: configuration.trailDirectory)
        func readKeys() throws -> PrivateKeyDirectory {
            try CommandFailure.tellingOfRestore(in: configuration.stateDirectory) {
                try PrivateKeyDirectory(
                    at: configuration.keysDirectory, rootPath: configuration.rootKeyPath,
                    credentials: Console.current.credentialsDirectory,
                    acceptsThrowaway: configuration.isDevelopment)
            }
        }
        var read = try readKeys()
        if isDryRun {
            let opened = try Wiring.openStoreToRead(
                configuration.stateDirectory, readingAgain: &read, by: readKeys)
            (store, closeStore) = (opened, { opened.close() })
        } else {
            let opened = try Wiring.openStore(
                of: configuration.stateDirectory, readingAgain: &read, by: readKeys)
            (store, closeStore) = (opened, { opened.close() })
        }
        keys = read
        do {
            let path = configuration.trailDirectory
            lock =
                try isDryRun ? TrailDirectoryWriter.sharedLock(path) : TrailDirectoryWriter.lock(path)
        } catch {
            closeStore()
            guard case .inUse = error else { throw error }
            throw CommandFailure(
                "another process writes to the trail `\(configuration.trailDirectory)`",
                hint: "stop the gateway that publishes there, and run `sendgate restore` again")
        }
    }

    func close() { closeStore() }

    // MARK: Looking

    /// Verifies the whole trail and compares the store with its beginning.
    ///
    /// - Throws: `CommandFailure` for a trail that is damaged, of another gateway, behind the external checkpoint, or that does
    ///   not begin as the store, and for key files without which no gateway would start afterwards.
    func plan(
        isTailLost: Bool, progress: @escaping (_ done: UInt64, _ total: UInt64) -> Void
    ) throws -> Plan {
        let count = try store.read { try $0.entryCount() }
        let begun = try store.read { try $0.restoreUnderWay() }
        try requireKept(from: begun?.entry.backupSize ?? count)
        let (checkpoint, changedKeys) = try verifiedCheckpoint(
            readingFrom: begun?.entry.backupSize ?? count, progress: progress)
        if let underWay = begun {
            guard underWay.entry.previous == checkpoint.head else {
                throw CommandFailure(
                    "the restore that was begun is of \(underWay.entry.previous.size) entries of `\(underWay.entry.previous.origin)`, and this is another trail",
                    hint: "put back the trail that it was begun with")
            }
            // Which consents are withdrawn is decided once, with the first entry.
            guard underWay.entry.isTailLost || !isTailLost else {
                throw CommandFailure(
                    "the restore that was begun does not take the end of the trail for lost",
                    hint:
                        "run `sendgate restore` without `--tail-lost` until it has ended, and then once more with it"
                )
            }
            try compare(min(count, checkpoint.size))
            try demandKeyFiles(after: changedKeys)
            return .restore(underWay)
        }
        try demandNewest(checkpoint, isTailLost: isTailLost)
        guard count <= checkpoint.size else {
            // Published by the next start.
            guard isTailLost else { return .nothing }
            throw CommandFailure(
                "the databases know \(count) entries and the trail has \(checkpoint.size)",
                hint: "start the gateway once, so that it publishes them, and stop it")
        }
        try compare(count)
        guard count < checkpoint.size || isTailLost else { return .nothing }
        try demandKeyFiles(after: changedKeys)
        return .restore(
            RestoreUnderWay(
                RestoreEntry(
                    origin: TrailName.restored(configuration.trailOrigin, at: SystemClock().now()),
                    previous: checkpoint.head, backupSize: count, isTailLost: isTailLost, user: getuid())))
    }

    /// What the backup lacks has to be in the trail; a snapshot says of the pruned entries only what a verifier needs.
    private func requireKept(from count: UInt64) throws {
        guard let size = try auditing({ try trail.reader.snapshotHead()?.size }), count <= size else {
            return
        }
        throw CommandFailure(
            "the databases end at entry \(count), and the entries before \(size) were pruned from the trail",
            hint: "nothing was touched; restore from a backup that is younger than `trail_keep_days`")
    }

    /// - Parameter first: The archive must have the bundles that this entry and the ones after it were decided under.
    /// - Returns: Also how these entries change the keyring, in order.
    private func verifiedCheckpoint(
        readingFrom first: UInt64, progress: @escaping (_ done: UInt64, _ total: UInt64) -> Void
    ) throws -> (Checkpoint, [RecordedKey]) {
        let note: [UInt8] = try auditing { try trail.reader.read(.checkpoint) } ?? []
        let name: String
        do {
            name = try Checkpoint(parsing: SignedNote(parsing: note).text).origin
        } catch {
            throw CommandFailure(
                "the checkpoint of the trail cannot be read: \(error)",
                hint: "nothing was touched; compare with another copy of the trail", status: .foundDifference)
        }
        guard TrailName.isName(name, of: configuration.trailOrigin) else {
            throw TrailError.otherOrigin(expected: configuration.trailOrigin, found: name)
        }
        var policies: [String: UInt64] = [:]
        var changedKeys: [RecordedKey] = []
        let report = try auditing {
            try TrailVerifier(
                trail.reader, trusting: TrailTrust(origin: name, keys: try trailKeys(named: name)),
                examining: .schema(.version1), version: BuildVersion(Sendgate.version)
            ).verify(
                visit: { visited in
                    guard visited.index >= first, let entry = visited.entry else { return }
                    do {
                        changedKeys += try RecordedKey.changed(by: entry)
                    } catch {
                        throw RestoreFailure.unreadableEntry(index: visited.index, "\(error)")
                    }
                    if let digest = entry.members["policy"]?.stringValue, policies[digest] == nil {
                        policies[digest] = visited.index
                    }
                }, progress: progress)
        }
        if let newer = report.newerEntry { throw CommandFailure(newer.message, hint: NewerEntry.hint) }
        guard report.damage == nil, let checkpoint = report.checkpoint?.checkpoint else {
            throw CommandFailure(
                "the trail is damaged: \(report.damage?.message ?? "it has no checkpoint")",
                hint:
                    "nothing was touched; put back a copy of the trail that `sendgate audit verify` finds whole, signed by a key that is not compromised",
                status: .foundDifference)
        }
        // Before the first commit: without its bundle an entry cannot be brought back, and the restore would end there.
        for (digest, index) in policies.sorted(by: { $0.value < $1.value })
        where try trail.policy(PolicyDigest(digest)) == nil {
            throw CommandFailure(
                "the archived policy `\(digest)` is missing, and entry \(index) was decided under it",
                hint:
                    "nothing was touched; copy it into `\(trail.path)/policies` from another copy of the trail",
                status: .foundDifference)
        }
        return (checkpoint, changedKeys)
    }

    /// Requires a file of each data key that values of the backup are sealed under, which the restore and the pass after it
    /// read, and of each key that the restored keyring has in use: a start refuses without it, and so would the end of the
    /// restore, once everything is written.
    ///
    /// - Parameter changed: What the trail says of the keyring since the backup.
    private func demandKeyFiles(after changed: [RecordedKey]) throws {
        var keyring = try store.read { try $0.keyring() } ?? Keyring()
        for key in changed { keyring.take(key) }
        let sealing = try store.read { try $0.missingDataKeys() }
        guard sealing.isEmpty else {
            let names = sealing.map { "`\($0)`" }.joined(separator: ", ")
            let files = sealing.map { "`\($0).key`" }.joined(separator: ", ")
            throw CommandFailure(
                "values of the backup are sealed under data keys that are not in `\(keys.path)`: \(names)",
                hint:
                    "nothing was touched; put \(files) back from a copy of the key directory as old as the backup, also where the trail says that the key is destroyed, and run the command again; the gateway removes the file when it has sealed the values anew"
            )
        }
        let missing = keyring.missing(from: Set(keys.keys.values.joined().map(\.id)))
        guard !missing.isEmpty else { return }
        let names = missing.map { "the \($0.purpose.rawValue) key `\($0.id)`" }.joined(separator: ", ")
        let files = missing.map { "`\($0.id).key`" }.joined(separator: ", ")
        throw CommandFailure(
            "in use after the restore, and not in `\(keys.path)`: \(names)",
            hint:
                "nothing was touched; put \(files) back from the newest copy of the key directory, and run the command again"
        )
    }

    /// Requires that the trail has what was signed over it elsewhere. Not asked of a restore that goes on, which was begun
    /// with this trail, nor with `--tail-lost`: the checkpoint may be signed by a key that came into use in the lost entries.
    private func demandNewest(_ checkpoint: Checkpoint, isTailLost: Bool) throws {
        guard let path = configuration.externalCheckpointPath, !isTailLost else { return }
        try ExternalCheckpoint(at: path, of: configuration.trailOrigin).demandNewest(
            trail.reader,
            trusting: TrailTrust(origin: checkpoint.origin, keys: trailKeys(named: checkpoint.origin)))
    }

    private func trailKeys(named name: String) throws -> [NoteVerifierKey] {
        let found = try (keys.keys[.trail] ?? []).map { try GatewayKey($0, at: SystemClock().now()) }
        return try Self.believed(found, in: store.read { try $0.keyring() } ?? Keyring())
            .compactMap { NoteVerifierKey(name: name, publicKey: try Ed25519PublicKey(rawBytes: $0)) }
    }

    /// The public halves of trail keys that may have signed the newest checkpoint: it may be younger than the backup, and
    /// so may its key.
    ///
    /// A key that is known as compromised is left out, whatever the directory holds. A key that waited to be promoted may
    /// be in use since, but only where its file is.
    ///
    /// - Parameters:
    ///   - found: What the key directory holds.
    ///   - keyring: As the backup has it.
    static func believed(_ found: [GatewayKey], in keyring: Keyring) -> [[UInt8]] {
        let known = keyring.keys.filter { key in
            key.state != .preActivation || found.contains { $0.id == key.id }
        }
        let new = found.filter { keyring[$0.id] == nil }
        let keys = (new + known).filter { $0.purpose == .trail && !$0.isCompromised }
        var all: [[UInt8]] = []
        for key in keys.compactMap(\.publicKey) where !all.contains(key) { all.append(key) }
        return all
    }

    /// Holds what the store still has of its first `count` entries against the trail.
    private func compare(_ count: UInt64) throws {
        func refuse(_ index: UInt64) -> CommandFailure {
            CommandFailure(
                "entry \(index) of the databases is not entry \(index) of the trail: the two are of different histories",
                hint: "nothing was touched; a state directory is restored from the trail it wrote itself",
                status: .foundDifference)
        }
        guard count > 0 else { return }
        // The bundle that is still filling is held in any case, but where it has just been filled.
        var index = try store.read { try $0.publishedSize() } / 256 * 256
        while index < count {
            let held = try store.read { try $0.entries(from: index, limit: 1_000) }
            guard let first = held.first, let last = held.last, first.index < count else { break }
            for entry in held where entry.index < count {
                guard try trail.reader.entry(entry.index) == entry.bytes else { throw refuse(entry.index) }
            }
            index = last.index + 1
        }
        guard try store.read({ try $0.entryCount() }) == count,
            let newest = try trail.reader.entry(count - 1),
            try TrailEntry(reading: newest).time == store.read({ try $0.newestEntryTime() })
        else {
            // More entries than the old tree has are those of a restore that was recorded.
            guard try store.read({ try $0.entryCount() }) > count else { throw refuse(count - 1) }
            return
        }
    }

    // MARK: Restoring

    private func restore() throws -> TrailRestore {
        let trail = trail
        let policy = trail.policiesReadOnce()
        func purposes() throws -> Set<Purpose> {
            guard let inForce = try store.read({ try $0.activatedPolicy() }) else {
                return Self.purposes(of: nil)
            }
            guard let found = try policy(inForce.digest) else {
                throw CommandFailure(
                    "the bundle in force, `\(inForce.digest.text)`, is not archived beside the trail",
                    hint: "put its file back, and run the command again", status: .foundDifference)
            }
            return Self.purposes(of: found)
        }
        return TrailRestore(
            store,
            entry: { index in
                guard let bytes = try trail.reader.entry(index) else {
                    throw CommandFailure("the trail has no entry \(index)")
                }
                return bytes
            }, policies: policy, withdrawing: purposes,
            index: IndexKey(HMACKey(try keys.current(.index).secret)))
    }

    /// What may be withdrawn unseen: marketing and social, with the purposes that types in them have besides.
    private static func purposes(of policy: CompiledPolicy?) -> Set<Purpose> {
        let categories: [GateVocabulary.Category] = [.marketing, .social]
        let special = policy?.types.filter { categories.contains($0.category) }.compactMap(\.purpose) ?? []
        return Set(categories.map { Purpose($0.rawValue) } + special)
    }

    /// What would come back.
    func preview(_ plan: RestoreUnderWay) throws -> RestoreEntry { try restore().preview(plan) }

    /// Brings it back, and publishes the tree under its new name.
    func run(
        _ plan: RestoreUnderWay, progress: (_ done: UInt64, _ total: UInt64) -> Void
    ) throws -> RestoreEntry {
        // Before the entries: once the last commit is there a start no longer refuses, and it publishes the list it has.
        try restoreKeyset()
        let entry = try restore().run(
            plan, clock: SystemClock().reading(), limits: configuration.limits, progress: progress)
        try publish(after: entry.previous.origin, as: entry.origin)
        return entry
    }

    /// The list of genuine keys lies beside the checkpoint, signed by the authority; a start would publish the older one
    /// of the backup in its place.
    private func restoreKeyset() throws {
        guard let note = try auditing({ try trail.reader.keysetNote() }) else { return }
        let text = String(decoding: note, as: UTF8.self)
        guard try store.read({ try $0.keysetNote() }) != text else { return }
        let trust = KeysetTrust(
            authorities: configuration.authorities, gateway: configuration.trailOrigin)
        do throws(KeysetError) {
            let keyset = try trust.keyset(in: note, at: SystemClock().now())
            let known: Keyset?
            do { known = try store.read { try $0.keyset() } } catch { known = nil }
            if let known, known.version >= keyset.version { return }
        } catch {
            return Terminal.warning("the keyset beside the trail is not taken over: \(error)")
        }
        try store.write { try $0.restoreKeyset(text) }
    }

    private func publish(after previous: String, as origin: String) throws {
        let found = try keys.keys.values.joined().map { try GatewayKey($0, at: SystemClock().now()) }
        let keyring = try Wiring.keyring(adopting: found, from: keys, in: store, at: SystemClock().now())
        let files = Dictionary(
            keys.keys.values.joined().map { ($0.id, $0) }, uniquingKeysWith: { one, _ in one })
        guard let signer = try KeyHolder.trailSigner(of: keyring, in: files, origin: origin) else {
            throw KeyFileError.missing(purpose: .trail, directory: keys.path)
        }
        let count = try store.read { try $0.entryCount() }
        let library = try PublishedTrail(
            at: configuration.trailDirectory, signer: signer,
            olderKeys: keyring.earlierTrailKeys(origin: origin, trusted: true),
            formerKeys: keyring.earlierTrailKeys(origin: origin, trusted: false), after: previous,
            of: store, holding: lock)
        var next = try store.read { try $0.publishedSize() }
        while next < count {
            let entries = try store.read { try $0.entries(from: next, limit: 4_096) }
            guard !entries.isEmpty else { break }
            next = try library.integrate(entries)
        }
        try library.publish()
        try store.write { $0.setPublishedSize(count) }
    }
}
