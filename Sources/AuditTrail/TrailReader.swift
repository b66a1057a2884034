import SealedFormat
package import OpenSSLCrypto

/// Where a trail's files come from.
///
/// - Durability and ordering: none promised; the reader may be a directory a publisher is writing to. A tile
///   or bundle that was there under a checkpoint stays, or is there in full.
/// - Concurrency: one call at a time.
package protocol TrailReader {
    /// Puts a file's bytes at the start of `buffer`, which is grown when it is too small and never shrunk.
    ///
    /// - Returns: How many bytes the file has, or `nil` when there is no such file.
    /// - Throws: What the medium reports: no permission, an I/O error, a file longer than any of its name can be.
    func read(_ path: TrailPath, into buffer: inout [UInt8]) throws -> Int?

    /// How many bytes a file has, without reading them; `nil` when there is no such file.
    func byteCount(of path: TrailPath) throws -> Int?
}

extension TrailReader {
    package func read(_ path: TrailPath) throws -> [UInt8]? {
        var buffer: [UInt8] = []
        guard let count = try read(path, into: &buffer) else { return nil }
        buffer.removeLast(buffer.count - count)
        return buffer
    }

    /// Reads a tile or bundle of a tree, from the full one when the partial one was already cleared away
    /// (C2SP tlog-tiles, "Partial Tiles").
    package func readAnyWidth(
        _ path: TrailPath, into buffer: inout [UInt8]
    ) throws -> (count: Int, isFull: Bool)? {
        if let count = try read(path, into: &buffer) { return (count, path.width == TrailPath.fullWidth) }
        guard path.width < TrailPath.fullWidth, let count = try read(path.full, into: &buffer) else {
            return nil
        }
        return (count, true)
    }
}

extension TrailReader {
    /// A tile of exactly its width; cut from the full one where only that is left.
    ///
    /// - Throws: ``TrailDamage`` when it is missing or has another length.
    package func readTile(_ path: TrailPath) throws -> [UInt8] {
        var bytes: [UInt8] = []
        guard let found = try readAnyWidth(path, into: &bytes) else { throw TrailDamage.missing(path) }
        let expected = path.byteCountMax
        guard found.count == (found.isFull ? path.full.byteCountMax : expected) else {
            throw TrailDamage.wrongLength(path, byteCount: found.count, expected: expected)
        }
        bytes.removeLast(bytes.count - expected)
        return bytes
    }
}

extension TrailPath {
    /// The longest a file of this name may be.
    package var byteCountMax: Int {
        switch self {
        case .checkpoint: SignedNote.byteCountMax
        case .tile(_, _, let width): width * SHA256Digest.byteCount
        case .entries(_, let width): width * (2 + EntryBundle.entryByteCountMax)
        case .snapshot: SnapshotHead.byteCountMax
        case .segment: Snapshot.segmentByteCountMax
        }
    }
}

/// The hashes of one tree, taken from its tiles.
///
/// - Warning: Nothing read here is authenticated. A proof built from it has to be checked against a signed
///   root, as ``InclusionProof/proves(_:under:)`` and ``ConsistencyProof/proves(from:to:)`` do.
package struct TileHashes<Reader: TrailReader> {
    private let reader: Reader
    private let size: UInt64
    /// The tile read last at each level; proofs walk along an edge, so one each is enough.
    private var held: [Int: (path: TrailPath, bytes: [UInt8])] = [:]

    package init(_ reader: Reader, size: UInt64) {
        self.reader = reader
        self.size = size
    }

    /// - Throws: ``TrailDamage`` when the tile is not there or has another length; what the reader throws.
    package mutating func hash(of node: TreeNode) throws -> SHA256Digest {
        let level = node.height / 8
        let shift = UInt64(node.height % 8)
        let first = node.index << shift
        let path = TileLayout.tile(level: level, holding: first, size: size)
        let offset = Int(first & 255) * SHA256Digest.byteCount
        let end = offset + SHA256Digest.byteCount << Int(shift)
        if held[level]?.path != path { held[level] = (path, try reader.readTile(path)) }
        guard let bytes = held[level]?.bytes, end <= bytes.count else {
            preconditionFailure("node \(node) was asked of a tree of \(size) entries")
        }
        return bytes.withUnsafeBytes {
            TreeHash.perfectRoot(UnsafeRawBufferPointer(rebasing: $0[offset..<end]))
        }
    }

    /// - Precondition: `index` is below the tree's size.
    package mutating func inclusionProof(of index: UInt64) throws -> InclusionProof {
        try InclusionProof(of: index, inTreeOf: size) { try hash(of: $0) }
    }

    /// - Precondition: `oldSize` is at most the tree's size.
    package mutating func consistencyProof(from oldSize: UInt64) throws -> ConsistencyProof {
        try ConsistencyProof(from: oldSize, to: size) { try hash(of: $0) }
    }

    /// The root the tree had at an earlier size, or has.
    package mutating func root(ofFirst count: UInt64) throws -> SHA256Digest {
        precondition(count <= size, "the root of \(count) entries was asked of a tree of \(size)")
        return try MerkleTree.root(of: 0..<count) { try hash(of: $0) }
    }
}
