package import OpenSSLCrypto

/// A perfect subtree: the `index`-th of those with 2^`height` entries, counted from the left.
package struct TreeNode: Hashable, Sendable {
    /// 0 for an entry's own hash.
    package var height: Int
    package var index: UInt64

    package init(height: Int, index: UInt64) {
        self.height = height
        self.index = index
    }
}

/// A proof that one entry is in a tree: the sibling hashes from the entry up to the root (RFC 6962 section 2.1.1).
package struct InclusionProof: Hashable, Sendable {
    /// The entry, counted from 0.
    package var index: UInt64
    /// Entries in the tree.
    package var size: UInt64
    /// From the entry's sibling up to the root's child.
    package var hashes: [SHA256Digest]

    package init(index: UInt64, size: UInt64, hashes: [SHA256Digest]) {
        self.index = index
        self.size = size
        self.hashes = hashes
    }

    /// Builds the proof from perfect subtrees.
    ///
    /// - Precondition: `index < size`.
    package init(
        of index: UInt64, inTreeOf size: UInt64, node: (TreeNode) throws -> SHA256Digest
    ) rethrows {
        precondition(index < size, "entry \(index) was to be proved in a tree of \(size)")
        var hashes: [SHA256Digest] = []
        var start: UInt64 = 0
        var end = size
        while end - start > 1 {
            let middle = start + MerkleTree.split(end - start)
            if index < middle {
                hashes.append(try MerkleTree.root(of: middle..<end, node: node))
                end = middle
            } else {
                hashes.append(try MerkleTree.root(of: start..<middle, node: node))
                start = middle
            }
        }
        self.init(index: index, size: size, hashes: hashes.reversed())
    }

    /// The root of the tree that holds an entry of this hash here (RFC 9162 section 2.1.3.2); `nil` when the
    /// proof does not have the shape of its index and size.
    package func root(forLeaf leafHash: SHA256Digest) -> SHA256Digest? {
        guard index < size else { return nil }
        var position = index
        var last = size - 1
        var root = leafHash
        for hash in hashes {
            guard last > 0 else { return nil }
            if position & 1 == 1 || position == last {
                root = TreeHash.node(hash, root)
                // A rightmost node without a sibling on its height is lifted until it has one.
                while position & 1 == 0, position != 0 {
                    position >>= 1
                    last >>= 1
                }
            } else {
                root = TreeHash.node(root, hash)
            }
            position >>= 1
            last >>= 1
        }
        return last == 0 ? root : nil
    }

    package func proves(_ leafHash: SHA256Digest, under root: SHA256Digest) -> Bool {
        self.root(forLeaf: leafHash) == root
    }
}

/// A proof that a tree only grew: the hashes that rebuild both roots (RFC 6962 section 2.1.2).
package struct ConsistencyProof: Hashable, Sendable {
    package var oldSize: UInt64
    package var newSize: UInt64
    package var hashes: [SHA256Digest]

    package init(oldSize: UInt64, newSize: UInt64, hashes: [SHA256Digest]) {
        self.oldSize = oldSize
        self.newSize = newSize
        self.hashes = hashes
    }

    /// Builds the proof from perfect subtrees of the newer tree.
    ///
    /// - Precondition: `oldSize <= newSize`.
    package init(
        from oldSize: UInt64, to newSize: UInt64, node: (TreeNode) throws -> SHA256Digest
    ) rethrows {
        precondition(oldSize <= newSize, "growth from \(oldSize) to \(newSize) was to be proved")
        var hashes: [SHA256Digest] = []
        if oldSize > 0, oldSize < newSize {
            // RFC 6962's SUBPROOF, unrolled: walk down the newer tree to where the older one ends.
            var start: UInt64 = 0
            var end = newSize
            while end != oldSize {
                let middle = start + MerkleTree.split(end - start)
                if oldSize <= middle {
                    hashes.append(try MerkleTree.root(of: middle..<end, node: node))
                    end = middle
                } else {
                    hashes.append(try MerkleTree.root(of: start..<middle, node: node))
                    start = middle
                }
            }
            // A verifier knows the older root already when the walk never left the left edge.
            if start > 0 { hashes.append(try MerkleTree.root(of: start..<end, node: node)) }
            hashes.reverse()
        }
        self.init(oldSize: oldSize, newSize: newSize, hashes: hashes)
    }

    /// Whether the tree with `newRoot` starts with the whole tree that had `oldRoot`
    /// (RFC 9162 section 2.1.4.2). Everything grew from an empty tree, whose root is ``TreeHash/empty``.
    package func proves(from oldRoot: SHA256Digest, to newRoot: SHA256Digest) -> Bool {
        guard oldSize <= newSize else { return false }
        if oldSize == newSize { return hashes.isEmpty && oldRoot == newRoot }
        if oldSize == 0 { return hashes.isEmpty && oldRoot == TreeHash.empty }
        var path = hashes[...]
        if oldSize.nonzeroBitCount == 1 { path = [oldRoot] + path }
        guard let first = path.popFirst() else { return false }
        var position = oldSize - 1
        var last = newSize - 1
        while position & 1 == 1 {
            position >>= 1
            last >>= 1
        }
        var old = first
        var new = first
        for hash in path {
            guard last > 0 else { return false }
            if position & 1 == 1 || position == last {
                old = TreeHash.node(hash, old)
                new = TreeHash.node(hash, new)
                while position & 1 == 0, position != 0 {
                    position >>= 1
                    last >>= 1
                }
            } else {
                new = TreeHash.node(new, hash)
            }
            position >>= 1
            last >>= 1
        }
        return last == 0 && old == oldRoot && new == newRoot
    }
}

/// Roots of parts of a tree, put together from its perfect subtrees.
package enum MerkleTree {
    /// The largest power of two below `count` (RFC 6962 section 2.1's `k`).
    ///
    /// - Precondition: `count > 1`.
    static func split(_ count: UInt64) -> UInt64 {
        1 << UInt64(63 - (count - 1).leadingZeroBitCount)
    }

    /// The root over the entries of `range`, which starts at a multiple of the largest power of two not
    /// above its count, as every range of RFC 6962's recursion does. At most 64 nodes are asked for.
    package static func root(
        of range: Range<UInt64>, node: (TreeNode) throws -> SHA256Digest
    ) rethrows -> SHA256Digest {
        guard !range.isEmpty else { return TreeHash.empty }
        var subtrees: [SHA256Digest] = []
        var start = range.lowerBound
        while start < range.upperBound {
            let height = 63 - (range.upperBound - start).leadingZeroBitCount
            precondition(
                start & ((1 << UInt64(height)) - 1) == 0,
                "entries \(range) are no part of RFC 6962's recursion")
            subtrees.append(try node(TreeNode(height: height, index: start >> UInt64(height))))
            start += 1 << UInt64(height)
        }
        var root = subtrees.removeLast()
        for hash in subtrees.reversed() { root = TreeHash.node(hash, root) }
        return root
    }
}
