package import OpenSSLCrypto

/// The right edge of a Merkle tree: everything that is needed to append to it and to know its root.
///
/// Holds the roots of the perfect subtrees the tree falls into, largest first: one for every bit that is
/// set in its size, so at most 64 hashes.
package struct MerkleFrontier: Hashable, Sendable {
    /// Entries in the tree.
    package private(set) var size: UInt64
    package private(set) var hashes: [SHA256Digest]

    package init() {
        size = 0
        hashes = []
    }

    /// - Returns: `nil` unless there are as many hashes as bits set in `size`.
    package init?(size: UInt64, hashes: [SHA256Digest]) {
        guard hashes.count == size.nonzeroBitCount else { return nil }
        self.size = size
        self.hashes = hashes
    }

    package mutating func append(_ leafHash: SHA256Digest) {
        var hash = leafHash
        // Each bit set at the low end of the size is a subtree as large as the one just completed.
        var rest = size
        while rest & 1 == 1 {
            hash = TreeHash.node(hashes.removeLast(), hash)
            rest >>= 1
        }
        hashes.append(hash)
        size += 1
    }

    /// The Merkle Tree Hash of RFC 6962 section 2.1.
    package var root: SHA256Digest {
        guard var root = hashes.last else { return TreeHash.empty }
        for hash in hashes.dropLast().reversed() { root = TreeHash.node(hash, root) }
        return root
    }

    /// The size as eight big-endian bytes, then the hashes.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 + 32 * hashes.count)
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: size >> UInt64(shift)))
        }
        for hash in hashes { hash.withUnsafeBytes { bytes.append(contentsOf: $0) } }
        return bytes
    }

    /// - Returns: `nil` for anything but the whole of what ``bytes`` gives.
    package init?(bytes: [UInt8]) {
        guard bytes.count >= 8 else { return nil }
        let size = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        guard bytes.count == 8 + 32 * size.nonzeroBitCount else { return nil }
        let hashes = stride(from: 8, to: bytes.count, by: 32).compactMap {
            SHA256Digest(bytes: bytes[$0..<($0 + 32)])
        }
        self.init(size: size, hashes: hashes)
    }
}
