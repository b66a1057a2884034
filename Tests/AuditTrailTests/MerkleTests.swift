import AuditTrail
import GateRecords
import GateTestKit
import GateVocabulary
import OpenSSLCrypto
import SealedFormat
import Testing

private func digest(_ hexadecimal: String) -> SHA256Digest {
    SHA256Digest(bytes: Hexadecimal.decode(hexadecimal)!)!
}

/// The eight leaves and the roots that Certificate Transparency's own tests use
/// (certificate-transparency · merkletree/merkle_tree_test.cc).
private enum Known {
    static let leaves = [
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
    ].map { Hexadecimal.decode($0)! }

    static let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ].map(digest)

    static func node(_ node: TreeNode) -> SHA256Digest {
        let width = 1 << node.height
        let start = Int(node.index) * width
        return reference(leaves[start..<(start + width)].map { TreeHash.leaf($0) })
    }
}

@Suite struct MerkleTests {
    @Test(arguments: 0...8)
    func `a tree of the known leaves has the known root`(size: Int) {
        var frontier = MerkleFrontier()
        for leaf in Known.leaves[..<size] { frontier.append(TreeHash.leaf(leaf)) }
        #expect(frontier.root == Known.roots[size])
        #expect(frontier.size == UInt64(size))
    }

    @Test(arguments: [
        (
            0, 8,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ]
        ),
        (
            5, 8,
            [
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ]
        ),
        (2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
        (
            1, 5,
            [
                "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ]
        ),
    ])
    func `a known inclusion proof is built and verifies`(index: Int, size: Int, hashes: [String]) {
        let proof = InclusionProof(of: UInt64(index), inTreeOf: UInt64(size), node: Known.node)
        #expect(proof.hashes == hashes.map(digest))
        #expect(proof.proves(TreeHash.leaf(Known.leaves[index]), under: Known.roots[size]))
    }

    @Test(arguments: [
        (
            1, 8,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ]
        ),
        (
            6, 8,
            [
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ]
        ),
        (
            2, 5,
            [
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ]
        ),
        (8, 8, []), (0, 8, []),
    ])
    func `a known consistency proof is built and verifies`(old: Int, new: Int, hashes: [String]) {
        let proof = ConsistencyProof(from: UInt64(old), to: UInt64(new), node: Known.node)
        #expect(proof.hashes == hashes.map(digest))
        #expect(proof.proves(from: Known.roots[old], to: Known.roots[new]))
    }

    @Test func `every proof in every tree up to 300 entries verifies, and a bent one does not`() {
        let sizeMax = 300
        let leaves = (0..<sizeMax).map { TreeHash.leaf(Array("leaf \($0)".utf8)) }
        // Perfect subtrees by height, and the root at every size, from the definition.
        var subtrees: [[SHA256Digest]] = [leaves]
        while subtrees.last!.count > 1 {
            let below = subtrees.last!
            subtrees.append((0..<(below.count / 2)).map { TreeHash.node(below[2 * $0], below[2 * $0 + 1]) })
        }
        let node: (TreeNode) -> SHA256Digest = { subtrees[$0.height][Int($0.index)] }
        let roots = (0...sizeMax).map { reference(Array(leaves[..<$0])) }
        var frontier = MerkleFrontier()
        var failures: [String] = []
        for size in 0...sizeMax {
            if size > 0 { frontier.append(leaves[size - 1]) }
            if frontier.root != roots[size] { failures.append("root of \(size)") }
            for index in 0..<size {
                var proof = InclusionProof(of: UInt64(index), inTreeOf: UInt64(size), node: node)
                if !proof.proves(leaves[index], under: roots[size]) { failures.append("\(index) in \(size)") }
                // A neighbour's leaf, another index and a longer proof must all fail.
                if size > 1, proof.proves(leaves[(index + 1) % size], under: roots[size]) {
                    failures.append("neighbour of \(index) in \(size)")
                }
                proof.hashes.append(TreeHash.empty)
                if proof.root(forLeaf: leaves[index]) != nil { failures.append("long \(index) in \(size)") }
                proof.hashes.removeLast(min(2, proof.hashes.count))
                if size > 1, proof.root(forLeaf: leaves[index]) != nil {
                    failures.append("short \(index) in \(size)")
                }
            }
            for old in 0...size {
                var proof = ConsistencyProof(from: UInt64(old), to: UInt64(size), node: node)
                if !proof.proves(from: roots[old], to: roots[size]) { failures.append("\(old) to \(size)") }
                if old > 0, proof.proves(from: roots[old - 1], to: roots[size]) {
                    failures.append("other root \(old) to \(size)")
                }
                // Growth from nothing says nothing of the tree it leads to.
                if old > 0, proof.proves(from: roots[old], to: roots[(size + 1) % roots.count]) {
                    failures.append("\(old) to another root than of \(size)")
                }
                if old == 0, proof.proves(from: roots[1], to: roots[size]) {
                    failures.append("another root than of nothing to \(size)")
                }
                let hashes = proof.hashes
                proof.hashes = hashes + [TreeHash.empty]
                if proof.proves(from: roots[old], to: roots[size]) {
                    failures.append("long \(old) to \(size)")
                }
                guard !hashes.isEmpty else { continue }
                proof.hashes = hashes.dropLast()
                if proof.proves(from: roots[old], to: roots[size]) {
                    failures.append("short \(old) to \(size)")
                }
                proof.hashes = hashes
                proof.hashes[hashes.count / 2] = TreeHash.empty
                if proof.proves(from: roots[old], to: roots[size]) {
                    failures.append("bent \(old) to \(size)")
                }
            }
        }
        #expect(failures.isEmpty)
    }

    @Test(arguments: [(0, 0), (1, 1), (2, 2), (5, 4), (4, 4), (UInt64.max, 8)] as [(UInt64, UInt64)])
    func `no entry at or behind the end is in a tree`(_ index: UInt64, _ size: UInt64) {
        for count in 0...4 {
            let proof = InclusionProof(
                index: index, size: size, hashes: Array(repeating: TreeHash.empty, count: count))
            #expect(proof.root(forLeaf: TreeHash.empty) == nil)
        }
    }
}

@Suite struct TrailPathTests {
    @Test(arguments: [
        ("checkpoint", TrailPath.checkpoint),
        ("tile/0/000", .tile(level: 0, index: 0, width: 256)),
        ("tile/0/999", .tile(level: 0, index: 999, width: 256)),
        ("tile/1/x001/000", .tile(level: 1, index: 1_000, width: 256)),
        ("tile/3/x001/x234/067", .tile(level: 3, index: 1_234_067, width: 256)),
        ("tile/3/x001/x234/067.p/8", .tile(level: 3, index: 1_234_067, width: 8)),
        ("tile/entries/x001/x234/067.p/255", .entries(index: 1_234_067, width: 255)),
        ("tile/entries/017", .entries(index: 17, width: 256)),
    ])
    func `a path and its text are one and the same`(_ text: String, path: TrailPath) {
        #expect(path.text == text)
        #expect(TrailPath(parsing: text) == path)
    }

    @Test(arguments: [
        "", "/", "checkpoint/", "/checkpoint", "Checkpoint", "checkpoint\0", "..", "../checkpoint", "tile",
        "tile/0", "tile/0/", "tile/0/0", "tile/0/0000", "tile/0/00a", "tile/00/000", "tile/8/000",
        "tile/-1/000",
        "tile/+1/000", "tile/0/x000/000", "tile/0/001/000", "tile/0/x001", "tile/0/000.p", "tile/0/000.p/",
        "tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/01", "tile/0/000.p/+1", "tile/0/000/p/1",
        "tile/0/../checkpoint", "tile/0/..", "tile/data/000", "tile/entries/000.p/1/",
        "tile/0/x001/000.p/1/2",
        "tile/0/%30%30%30", "tile/0/٠٠٠", "tile/0/x999/x999/x999/x999/x999/x999/x999/999", "x.tmp",
        "trail.pub",
        "policies/00.json",
    ])
    func `any other text is no path`(_ text: String) {
        #expect(TrailPath(parsing: text) == nil)
    }

    /// The worked example of C2SP tlog-tiles, "Partial Tiles".
    @Test func `a tree of 70,000 entries has the tiles the specification lists`() {
        #expect(TileLayout.hashCount(level: 0, size: 70_000) >> 8 == 273)
        #expect(TileLayout.partialWidth(level: 0, size: 70_000) == 112)
        #expect(TileLayout.hashCount(level: 1, size: 70_000) >> 8 == 1)
        #expect(TileLayout.partialWidth(level: 1, size: 70_000) == 17)
        #expect(TileLayout.partialWidth(level: 2, size: 70_000) == 1)
        #expect(TileLayout.topLevel(size: 70_000) == 2)
        #expect(TileLayout.topLevel(size: 256) == 1)
        #expect(TileLayout.partialWidth(level: 0, size: 256) == 0)
        #expect(TileLayout.topLevel(size: 0) == nil)
        #expect(TileLayout.bundle(holding: 69_999, size: 70_000) == .entries(index: 273, width: 112))
        #expect(TrailPath.tile(level: 1, index: 1, width: 17).entryRange == 65_536..<69_888)
    }

    @Test func `a bundle is its entries and nothing else`() {
        var bundle: [UInt8] = []
        let entries: [[UInt8]] = [[1, 2, 3], [], [UInt8](repeating: 9, count: 65_535)]
        for entry in entries { EntryBundle.append(entry, to: &bundle) }
        #expect(EntryBundle.ranges(in: bundle, count: 3)?.map { Array(bundle[$0]) } == entries)
        #expect(EntryBundle.ranges(in: bundle, count: 2) == nil)
        #expect(EntryBundle.ranges(in: bundle, count: 4) == nil)
        for count in [1, 4, 6, bundle.count - 1] {
            #expect(EntryBundle.ranges(in: Array(bundle[..<count]), count: 3) == nil)
        }
    }

    @Test(
        arguments: [
            ("", []), ("Zg==", [0x66]), ("Zm8=", [0x66, 0x6F]), ("Zm9v", [0x66, 0x6F, 0x6F]),
            ("+/8=", [0xFB, 0xFF]),
        ] as [(String, [UInt8])])
    func `base64 has one spelling`(_ text: String, bytes: [UInt8]) {
        #expect(Base64.encode(bytes) == text)
        #expect(Base64.decode(text) == bytes)
    }

    @Test(arguments: ["Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==\n", "Zm9v=", "Zm 9", "Zm-_", "=Zg="])
    func `any other spelling of base64 is refused`(_ text: String) {
        #expect(Base64.decode(text) == nil)
    }
}
