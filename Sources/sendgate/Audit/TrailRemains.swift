import AuditTrail
import CanonicalJSON
import Foundation
import GateVocabulary
import OpenSSLCrypto
import SealedFormat
import TrailDirectory

/// The files of a trail that the signed tree does not vouch for: partial tiles and bundles of earlier sizes, tiles
/// beyond the checkpoint, the archive of policies, and what no trail has. Each is held against what is proved elsewhere.
struct TrailRemains {
    let trail: CopiedTrail
    /// Of the verified checkpoint.
    let size: UInt64
    /// Whom the auditor believes.
    let keys: [NoteVerifierKey]
    /// SHA-256 of the keyset that the newest entry of one put in force, in lower-case hexadecimal; `nil` without such an entry.
    let keyset: String?
    /// Every policy that an entry names, with the first entry that does.
    let policies: [String: UInt64]
    /// The size that a valid checkpoint signs now: a gateway may be writing.
    let signedSize: () throws -> UInt64

    /// A gateway signs its tiles within a second of writing them.
    private static let checkpointSecondsMax = 1.0

    /// Everything that is not what it should be, in words.
    func differences() throws -> [String] {
        var found: [String] = []
        var newer: [(name: String, end: UInt64)] = []
        let names = FileManager.default.enumerator(atPath: trail.path)?.compactMap { $0 as? String } ?? []
        var strayCount = 0
        for name in names.sorted() {
            guard let path = TrailPath(parsing: name), path != .checkpoint else {
                if isStray(name) {
                    strayCount += 1
                    if strayCount <= Self.strayCountShown {
                        found.append("`\(name)` is nothing that a trail has")
                    }
                }
                continue
            }
            if path.entryRange.upperBound > size {
                newer.append((name, path.entryRange.upperBound))
            } else if path.width < TrailPath.fullWidth, try !isCopy(path) {
                found.append("`\(name)` is not what the signed tree has there")
            }
        }
        if strayCount > Self.strayCountShown {
            found.append("\(strayCount - Self.strayCountShown) more names are nothing that a trail has")
        }
        if let difference = try unsigned(newer) { found.append(difference) }
        found += try keyDifferences()
        for digest in try trail.reader.policyDigests() where policies[digest.text] == nil {
            if let damage = try damage(of: digest) { found.append(damage) }
        }
        for (digest, entry) in policies.sorted(by: { $0.value < $1.value }) {
            if let damage = try damage(of: PolicyDigest(digest)) {
                found.append("\(damage), and entry \(entry) was decided under it")
            }
        }
        return found
    }

    /// What `trail.pub` and `keyset` say against the keys that the auditor has and what the entries say.
    private func keyDifferences() throws -> [String] {
        var found: [String] = []
        do {
            let named = try trail.reader.verifierKeys().filter { $0.algorithm == .ed25519 }
            let believed = keys.filter { $0.algorithm == .ed25519 }
            let isAgreed = named.contains { key in
                believed.contains { $0.publicKey.rawBytes == key.publicKey.rawBytes }
            }
            if !named.isEmpty, !isAgreed {
                found.append(
                    "`\(VerifierKeyFile.name)` has none of the trail's keys that you believe: whoever takes it for the trail's key is deceived"
                )
            }
        } catch let error as TrailError where error.isDifference {
            found.append(error.message)
        }
        guard let note = try trail.reader.keysetNote() else { return found }
        let name = KeysetFile.name
        do {
            let listed = try Keyset(parsing: SignedNote(parsing: note).text)
            let gateway = (keys.first { $0.algorithm == .ed25519 }?.name).map { TrailName.gateway(of: $0) }
            if let gateway, listed.gateway != gateway {
                found.append("`\(name)` is of the gateway `\(listed.gateway)`, and the trail of `\(gateway)`")
            }
            if let keyset, keyset != Hexadecimal.encode(SHA256.digest(note).bytes) {
                found.append(
                    "`\(name)` is another list than the newest `keyset` entry put in force, whose SHA-256 is \(keyset)"
                )
            }
        } catch {
            found.append("`\(name)` is no keyset: \(error)")
        }
        return found
    }

    /// Names shown one by one.
    private static let strayCountShown = 100

    /// Whether a name that is no tile's is one that no writer of trails makes.
    private func isStray(_ name: String) -> Bool {
        var isFolder: ObjCBool = false
        _ = FileManager.default.fileExists(atPath: "\(trail.path)/\(name)", isDirectory: &isFolder)
        return isFolder.boolValue
            ? !TrailDirectoryReader.isFolderName(name) : !TrailDirectoryReader.isOtherFileName(name)
    }

    /// What is wrong with an archived policy; `nil` when it is there and is the one its name says.
    private func damage(of digest: PolicyDigest) throws -> String? {
        do {
            let isThere = try trail.reader.policy(digest) != nil
            return isThere ? nil : "`policies/\(digest).json` is missing"
        } catch let error as TrailError where error.isDifference {
            return error.message
        }
    }

    /// Tiles are durable before their checkpoint, so that those of a gateway that writes may be ahead for a moment.
    /// Ahead for longer, the checkpoint is an older one put back, or the copy was made while the gateway wrote.
    private func unsigned(_ newer: [(name: String, end: UInt64)]) throws -> String? {
        guard let furthest = newer.max(by: { $0.end < $1.end }) else { return nil }
        let deadline = Date(timeIntervalSinceNow: Self.checkpointSecondsMax)
        while Date() < deadline {
            if try signedSize() >= furthest.end { return nil }
            Thread.sleep(forTimeInterval: 0.05)
        }
        return
            "`checkpoint` signs \(size) entries, and `\(furthest.name)` goes up to \(furthest.end): the checkpoint is older than its tiles"
    }

    /// Whether a file the tree has outgrown is the beginning of the one in its place now.
    private func isCopy(_ path: TrailPath) throws -> Bool {
        do {
            guard let bytes = try trail.reader.read(path) else { return false }
            let truth = try trail.reader.read(current(path)) ?? trail.reader.read(path.full)
            return truth?.starts(with: bytes) == true && isWhole(bytes, path)
        } catch let error as TrailError where error.isDifference {
            return false
        }
    }

    /// The file of the same place in the tree as it is signed now.
    private func current(_ path: TrailPath) -> TrailPath {
        switch path {
        case .checkpoint, .snapshot, .segment: path
        case .tile(let level, let index, _):
            TileLayout.tile(level: level, holding: index << 8, size: size)
        case .entries(let index, _): TileLayout.bundle(holding: index << 8, size: size)
        }
    }

    private func isWhole(_ bytes: [UInt8], _ path: TrailPath) -> Bool {
        switch path {
        case .checkpoint, .snapshot, .segment: true
        case .tile(_, _, let width): bytes.count == width * 32
        case .entries(_, let width): EntryBundle.ranges(in: bytes, count: width) != nil
        }
    }
}
