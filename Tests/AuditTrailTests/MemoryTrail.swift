@testable import AuditTrail
@testable import GateRecords
import CanonicalJSON
import GateTestKit
import GateVocabulary
import OpenSSLCrypto

/// A trail held in memory, built level by level straight from the definition in C2SP tlog-tiles.
struct MemoryTrail: TrailReader {
    static let origin = "test.example/trail"
    static let key = try! Ed25519PrivateKey(seed: SecretBytes(copying: [UInt8](repeating: 7, count: 32)))
    static let signer = NoteSigner(name: origin, key: key)!
    static let trust = TrailTrust(origin: origin, keys: [signer.verifierKey])

    var files: [TrailPath: [UInt8]] = [:]

    func read(_ path: TrailPath, into buffer: inout [UInt8]) throws -> Int? {
        guard let bytes = files[path] else { return nil }
        if buffer.count < bytes.count {
            buffer.append(contentsOf: repeatElement(0, count: bytes.count - buffer.count))
        }
        buffer.replaceSubrange(0..<bytes.count, with: bytes)
        return bytes.count
    }

    func byteCount(of path: TrailPath) throws -> Int? { files[path]?.count }

    init(entries: [[UInt8]], signers: [NoteSigner] = [signer]) throws {
        var level = 0
        var hashes = entries.map { TreeHash.leaf($0) }
        let root = reference(hashes)
        while !hashes.isEmpty {
            var next: [SHA256Digest] = []
            for start in stride(from: 0, to: hashes.count, by: 256) {
                let tile = hashes[start..<min(start + 256, hashes.count)]
                let index = UInt64(start / 256)
                files[.tile(level: level, index: index, width: tile.count)] = tile.flatMap(\.bytes)
                if tile.count == 256 { next.append(reference(Array(tile))) }
                if level == 0 {
                    var bundle: [UInt8] = []
                    for entry in entries[start..<(start + tile.count)] {
                        EntryBundle.append(entry, to: &bundle)
                    }
                    files[.entries(index: index, width: tile.count)] = bundle
                }
            }
            hashes = next
            level += 1
        }
        files[.checkpoint] = try Checkpoint(origin: Self.origin, size: UInt64(entries.count), root: root)
            .signed(by: signers)
    }

    /// A trail of well-formed entries of the kind `test`.
    init(count: Int) throws {
        try self.init(entries: (0..<count).map { Self.entry($0) })
    }

    static func entry(_ index: Int, time: Int? = nil, members: JSONObject = ["n": 1]) -> [UInt8] {
        let entry = TrailEntry(
            kind: EntryKind("test"), index: UInt64(index),
            time: Instant(milliseconds: Int64(time ?? 1_700_000_000_000 + index)), members: members)
        return try! entry.encoded().bytes
    }

    static let schema = EntrySchema([EntryKind("test"): .members(required: ["n": .integer(0...9)])])
}

/// RFC 6962 section 2.1, word for word.
func reference(_ leaves: [SHA256Digest]) -> SHA256Digest {
    if leaves.isEmpty { return SHA256.digest([] as [UInt8]) }
    if leaves.count == 1 { return leaves[0] }
    var split = 1
    while split * 2 < leaves.count { split *= 2 }
    let left = reference(Array(leaves[..<split]))
    let right = reference(Array(leaves[split...]))
    return SHA256.digest([0x01] + left.bytes + right.bytes)
}
