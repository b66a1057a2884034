@testable import AuditTrail
import CanonicalJSON
import Foundation
import GateTestKit
import GateVocabulary
import Glibc
import OpenSSLCrypto

@testable import GateRecords
@testable import TrailDirectory

enum TestTrail {
    static let origin = "test.example/trail"
    static let signer = NoteSigner(
        name: origin,
        key: try! Ed25519PrivateKey(seed: SecretBytes(copying: [UInt8](repeating: 7, count: 32))))!
    static let trust = TrailTrust(origin: origin, keys: [signer.verifierKey])

    static func entry(_ index: Int, of text: String = "") -> [UInt8] {
        let entry = TrailEntry(
            kind: EntryKind("test"), index: UInt64(index), time: Instant(milliseconds: Int64(1_000 + index)),
            members: ["t": .string(text)])
        return try! entry.encoded().bytes
    }

    /// The first 800 entries, made once: the tests of crashes go through them hundreds of times.
    private static let firstEntries = (0..<800).map { entry($0) }

    static func entries(_ range: Range<Int>) -> [[UInt8]] { Array(firstEntries[range]) }

    static func sign(_ checkpoint: Checkpoint) throws -> [UInt8] { try checkpoint.signed(by: [signer]) }

    /// The roots of the trees of those entries, by size.
    private static let roots = {
        var frontier = MerkleFrontier()
        return [frontier.root]
            + firstEntries.map { entry in
                frontier.append(TreeHash.leaf(entry))
                return frontier.root
            }
    }()

    static func root(_ count: Int) -> SHA256Digest { roots[count] }

    /// Rehashes everything; the one check every test of this folder ends with.
    static func report(_ reader: some TrailReader, since external: [UInt8]? = nil) throws -> TrailReport {
        try TrailVerifier(reader, trusting: trust, examining: .hashing, since: external).verify()
    }

    /// A fresh directory that is removed after `body`.
    static func withDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
        var template = Array("/tmp/sendgate-trail-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw TrailError.failed(.makeDirectory, path: "/tmp", code: errno)
        }
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try body(path)
    }
}
