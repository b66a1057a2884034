import CompliancePolicy
import Foundation
import GateVocabulary
import OpenSSLCrypto
import PolicyProof

/// Proofs that the same build made at earlier starts, or `policy prove --keep` before them, so that a start does not make them
/// again.
///
/// The file `proofs` of the state directory has one line per bundle: its digest and a tag over build, grain and digest
/// under the gateway's index key. A line that another build, another gateway or an editor wrote has the wrong tag and
/// counts for nothing. A lost file costs one proof, so it is replaced whole and never synchronized.
struct KeptProofs: Sendable {
    static let fileName = "proofs"
    /// Lines kept, the newest last: many more bundles than a gateway goes back and forth between.
    static let countMax = 64

    private let directory: String
    private let path: String
    private let key: HMACKey
    private let build: SHA256Digest?

    /// - Parameters:
    ///   - directory: The state directory. It is read before its lock is taken, which is harmless: a line
    ///     counts by its tag alone, and the file is replaced in one step.
    ///   - build: The digest of the program that proves. Without one nothing is kept and nothing counts, so that every
    ///     start proves.
    init(in directory: String, key: HMACKey, build: SHA256Digest? = Self.runningBuild) {
        self.directory = directory
        path = "\(directory)/\(Self.fileName)"
        self.key = key
        self.build = build
    }

    /// Whether this build proved the bundle before, at the same grain.
    func contains(_ digest: PolicyDigest, grain: BundleProof.Grain) -> Bool {
        guard let line = line(digest, grain) else { return false }
        let expected = Array(line.utf8)
        return lines.contains { HMACKey.constantTimeEqual(Array($0.utf8), expected) }
    }

    /// Keeps that the bundle was proved. A failure is no failure of the start: the next one proves again.
    ///
    /// The file is its directory's owner's, so that root may prove for the gateway's user.
    ///
    /// - Returns: Whether it is kept.
    @discardableResult
    func add(_ digest: PolicyDigest, grain: BundleProof.Grain) -> Bool {
        guard let line = line(digest, grain) else { return false }
        if lines.contains(line) { return true }
        let text = (lines + [line]).suffix(Self.countMax).map { "\($0)\n" }.joined()
        let temporary = "\(path).new"
        guard
            FileManager.default.createFile(
                atPath: temporary, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600]),
            giveToOwner(temporary), rename(temporary, path) == 0
        else {
            unlink(temporary)
            return false
        }
        return true
    }

    private func giveToOwner(_ file: String) -> Bool {
        var status = stat()
        guard stat(directory, &status) == 0 else { return false }
        return status.st_uid == geteuid() || chown(file, status.st_uid, status.st_gid) == 0
    }

    private var lines: [String] {
        // A line is 129 characters; more than that many is no file of ours.
        guard let handle = FileHandle(forReadingAtPath: path),
            let data = try? handle.read(upToCount: Self.countMax * 256)
        else { return [] }
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// - Returns: `nil` without a build.
    private func line(_ digest: PolicyDigest, _ grain: BundleProof.Grain) -> String? {
        guard let build else { return nil }
        let tag = key.authenticate(
            Array("sendgate/proof/v1\0".utf8) + build.bytes + Array("\(grain)\0\(digest.text)".utf8))
        return "\(digest.text) \(Hexadecimal.encode(tag))"
    }

    /// The digest of the running program's own file, which has every gate and every statute in it; `nil` when it
    /// cannot be read.
    static let runningBuild: SHA256Digest? = {
        guard let file = try? Data(contentsOf: URL(filePath: "/proc/self/exe"), options: .alwaysMapped) else {
            return nil
        }
        return file.withUnsafeBytes { SHA256.digest($0) }
    }()
}
