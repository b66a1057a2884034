import AuditTrail
import GateRecords
package import OpenSSLCrypto

/// The right edge of a Merkle tree: appends entry by entry and knows the root, from the definition in RFC 6962 section 2.1.
///
/// Holds the roots of the perfect subtrees the tree falls into, largest first: one for every bit that is set in its size.
package struct MerkleFrontier {
    /// Entries in the tree.
    package private(set) var size: UInt64 = 0
    private var hashes: [SHA256Digest] = []

    package init() {}

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

    package var root: SHA256Digest {
        guard var root = hashes.last else { return TreeHash.empty }
        for hash in hashes.dropLast().reversed() { root = TreeHash.node(hash, root) }
        return root
    }
}
