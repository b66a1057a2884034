package import OpenSSLCrypto

/// The part of a trail that still changes: the partial tiles, and the bundle that is filling up.
///
/// A value: a publisher appends to a copy and keeps it once the files are durable. Holds one partial tile per
/// level and one partial bundle, 16 MiB at the very most.
package struct TrailEdge: Sendable {
    /// A file and what it holds.
    package typealias File = (path: TrailPath, bytes: [UInt8])

    /// Entries in the tree.
    package private(set) var size: UInt64
    /// Hashes of the partial tile at each level; empty where there is none.
    private var tiles: [[UInt8]]
    /// The entries of the partial bundle with their lengths.
    private var bundle: [UInt8]

    package init() {
        size = 0
        tiles = []
        bundle = []
    }

    /// Reads the edge of a tree whose structure was checked under a signed checkpoint.
    ///
    /// - Throws: ``TrailDamage`` when a file is missing or has another length, what the reader throws.
    package init(reading reader: some TrailReader, size: UInt64) throws {
        self.init()
        self.size = size
        guard let topLevel = TileLayout.topLevel(size: size) else { return }
        for level in 0...topLevel {
            let width = TileLayout.partialWidth(level: level, size: size)
            let index = TileLayout.hashCount(level: level, size: size) >> 8
            let path = TrailPath.tile(level: level, index: index, width: width)
            tiles.append(width == 0 ? [] : try reader.readTile(path))
        }
        let width = TileLayout.partialWidth(level: 0, size: size)
        guard width > 0 else { return }
        let path = TrailPath.entries(index: size >> 8, width: width)
        guard let found = try reader.readAnyWidth(path, into: &bundle) else {
            throw TrailDamage.missing(path)
        }
        bundle.removeLast(bundle.count - found.count)
        var offset = 0
        for position in 0..<width {
            guard bundle.withUnsafeBytes({ EntryBundle.next(in: $0, at: &offset) }) != nil else {
                throw TrailDamage.entry(index: size - UInt64(width - position), in: path)
            }
        }
        // A full bundle that stands in for the partial one holds entries this tree does not have yet.
        bundle.removeLast(bundle.count - offset)
    }

    /// Appends one entry.
    ///
    /// - Returns: The bundle and the tiles it completed; empty for 255 entries out of 256.
    /// - Precondition: `entry` has at most 65,535 bytes.
    package mutating func append(_ entry: [UInt8], leafHash: SHA256Digest) -> [File] {
        var completed: [File] = []
        EntryBundle.append(entry, to: &bundle)
        let index = size
        size += 1
        if size & 255 == 0 {
            completed.append((.entries(index: index >> 8, width: TrailPath.fullWidth), bundle))
            bundle = []
        }
        var hash = leafHash
        var level = 0
        while true {
            if level == tiles.count { tiles.append([]) }
            hash.withUnsafeBytes { tiles[level].append(contentsOf: $0) }
            guard tiles[level].count == TrailPath.fullWidth * SHA256Digest.byteCount else { break }
            let tileIndex = index >> UInt64(8 * (level + 1))
            completed.append(
                (.tile(level: level, index: tileIndex, width: TrailPath.fullWidth), tiles[level]))
            // A full tile's root is one hash of the level above.
            hash = tiles[level].withUnsafeBytes { TreeHash.perfectRoot($0) }
            tiles[level] = []
            level += 1
        }
        return completed
    }

    /// The partial tiles and the partial bundle of exactly this size.
    package var partials: [File] {
        var partials: [File] = []
        if !bundle.isEmpty { partials.append((.entries(index: size >> 8, width: Int(size & 255)), bundle)) }
        for (level, tile) in tiles.enumerated() where !tile.isEmpty {
            let index = TileLayout.hashCount(level: level, size: size) >> 8
            partials.append(
                (.tile(level: level, index: index, width: tile.count / SHA256Digest.byteCount), tile))
        }
        return partials
    }

    /// The Merkle Tree Hash over all entries.
    package var root: SHA256Digest { Self.root(ofTiles: tiles) }

    /// - Parameter tiles: The partial tile of each level, lowest first; empty where there is none.
    static func root(ofTiles tiles: [[UInt8]]) -> SHA256Digest {
        var subtrees: [SHA256Digest] = []
        for tile in tiles.reversed() {
            var offset = 0
            var rest = tile.count / SHA256Digest.byteCount
            while rest > 0 {
                let count = 1 << (Int.bitWidth - 1 - rest.leadingZeroBitCount)
                let end = offset + SHA256Digest.byteCount * count
                subtrees.append(
                    tile.withUnsafeBytes {
                        TreeHash.perfectRoot(UnsafeRawBufferPointer(rebasing: $0[offset..<end]))
                    })
                offset = end
                rest -= count
            }
        }
        guard var root = subtrees.popLast() else { return TreeHash.empty }
        for subtree in subtrees.reversed() { root = TreeHash.node(subtree, root) }
        return root
    }
}
