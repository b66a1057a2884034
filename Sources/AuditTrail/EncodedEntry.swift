import CanonicalJSON
package import GateRecords
import GateVocabulary
package import OpenSSLCrypto

/// An entry's bytes and its hash in the tree.
package struct EncodedEntry: Hashable, Sendable {
    /// At most 65,535.
    package let bytes: [UInt8]
    /// SHA-256(0x00 ‖ bytes): the `leaf` a producer holds as its evidence.
    package let leafHash: SHA256Digest

    init(bytes: [UInt8]) {
        self.bytes = bytes
        leafHash = TreeHash.leaf(bytes)
    }
}

extension TrailEntry {
    /// The bytes that are hashed, stored and published.
    package func encoded() throws(TrailEntryError) -> EncodedEntry {
        let bytes = CanonicalJSON.write(object)
        guard bytes.count <= EntryBundle.entryByteCountMax else {
            throw .tooLong(byteCount: bytes.count, byteCountMax: EntryBundle.entryByteCountMax)
        }
        return EncodedEntry(bytes: bytes)
    }

    /// Whether this is an operator's word that time goes on from another moment than that of the entry before.
    func stepsClock(from last: Instant) -> Bool {
        kind == .clock && (try? knownBody(ClockEntry.self))?.previous == last
    }
}
