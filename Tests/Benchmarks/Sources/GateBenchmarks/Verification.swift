import AuditTrail
import GateRecords
import GateTestKit
import CanonicalJSON
import GateVocabulary
import OpenSSLCrypto

/// A whole trail hashed again, against hashing its bytes and nothing else.
struct Verification {
    /// A trail in memory: reading files is the disk's time, not ours.
    private struct Files: TrailReader {
        var files: [TrailPath: [UInt8]] = [:]

        func byteCount(of path: TrailPath) throws -> Int? { files[path]?.count }

        func read(_ path: TrailPath, into buffer: inout [UInt8]) throws -> Int? {
            guard let bytes = files[path] else { return nil }
            if buffer.count < bytes.count {
                buffer.append(contentsOf: repeatElement(0, count: bytes.count - buffer.count))
            }
            buffer.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
            return bytes.count
        }
    }

    /// Full tiles only: 256 bundles of 256 entries.
    private static let entryCount = 65_536

    static func finding() throws -> Finding {
        var files = Files()
        let signer = NoteSigner(name: "bench.test/trail", key: try Ed25519PrivateKey.generate())!
        var frontier = MerkleFrontier()
        var leaves: [SHA256Digest] = []
        var bundles: [[UInt8]] = []
        var bundle: [UInt8] = []
        for index in 0..<entryCount {
            let object: JSONObject = [
                "v": .integer(TrailEntry.version), "kind": "send", "index": .integer(Int64(index)),
                "time": .integer(Int64(index)), "padding": .string(String(repeating: "x", count: 900)),
            ]
            let entry = try TrailEntry(reading: CanonicalJSON.write(object)).encoded()
            EntryBundle.append(entry.bytes, to: &bundle)
            frontier.append(entry.leafHash)
            leaves.append(entry.leafHash)
            if index & 255 == 255 {
                files.files[.entries(index: UInt64(index >> 8), width: 256)] = bundle
                bundles.append(bundle)
                bundle = []
            }
        }
        var level = 0
        while !leaves.isEmpty {
            var parents: [SHA256Digest] = []
            for start in stride(from: 0, to: leaves.count, by: 256) {
                let tile = leaves[start..<min(start + 256, leaves.count)]
                let bytes = tile.flatMap(\.bytes)
                files.files[.tile(level: level, index: UInt64(start / 256), width: tile.count)] = bytes
                if tile.count == 256 {
                    parents.append(bytes.withUnsafeBytes { TreeHash.perfectRoot($0) })
                }
            }
            leaves = parents
            level += 1
        }
        files.files[.checkpoint] = try Checkpoint(
            origin: "bench.test/trail", size: UInt64(entryCount), root: frontier.root
        ).signed(by: [signer])
        let verifier = TrailVerifier(
            files, trusting: TrailTrust(origin: "bench.test/trail", keys: [signer.verifierKey]),
            examining: .hashing)
        let verifying = try Stopwatch.nanoseconds { _ in
            let report = try verifier.verify()
            precondition(report.damage == nil, "the benchmark's own trail does not verify")
        }
        let hashing = try Stopwatch.nanoseconds { _ in
            for bundle in bundles { Stopwatch.consume(SHA256.digest(bundle)) }
        }
        let megabytes = Double(bundles.reduce(0) { $0 + $1.count }) / 1e6
        let share = hashing / verifying
        return Finding(
            what: "audit verify, hashing", measured: "\(Int(megabytes * 1e9 / verifying)) MB/s",
            floor: "\(Int(100 * share)) % of SHA-256 alone, \(Int(megabytes * 1e9 / hashing)) MB/s",
            promise: "at least 50 %", isKept: share >= 0.5)
    }
}
