import AuditTrail
import OpenSSLCrypto
import Synchronization

/// A bundle of entries in memory, with the tile that says what its entries are.
struct HeldBundle: Sendable {
    let path: TrailPath
    private let bytes: [UInt8]
    private let ranges: [Range<Int>]
    private let tile: [UInt8]

    /// Reads the bundle that holds an entry of a tree of `size`.
    ///
    /// - Throws: ``TrailDamage`` when a file is missing or of another length than it must be.
    init(of index: UInt64, in reader: some TrailReader, size: UInt64) throws {
        let wanted = TileLayout.bundle(holding: index, size: size)
        var buffer: [UInt8] = []
        guard let found = try reader.readAnyWidth(wanted, into: &buffer) else {
            throw TrailDamage.missing(wanted)
        }
        path = found.isFull ? wanted.full : wanted
        buffer.removeLast(buffer.count - found.count)
        bytes = buffer
        tile = try reader.readTile(.tile(level: 0, index: index >> 8, width: path.width))
        // A bundle that ends early still gives what stands before its end; the damage is at what is asked for.
        ranges = EntryBundle.ranges(in: bytes)
    }

    var number: UInt64 { path.entryRange.lowerBound >> 8 }
    var byteCount: Int { bytes.count + tile.count }

    /// - Throws: ``TrailDamage/entry(index:in:)`` when the entry is not what the tile says.
    func entry(_ index: UInt64) throws -> [UInt8] {
        let position = Int(index & 255)
        guard position < ranges.count, 32 * position < tile.count else {
            throw TrailDamage.entry(index: index, in: path)
        }
        let entry = Array(bytes[ranges[position]])
        let leaf = tile[(32 * position)..<(32 * position + 32)]
        guard SHA256Digest(bytes: leaf) == TreeHash.leaf(entry) else {
            throw TrailDamage.entry(index: index, in: path)
        }
        return entry
    }
}

/// The full bundles read last. They never change, so nothing in here can grow old; entries are looked up a few
/// at a time (a batch that is sent again, one person's history), and reading a file of 400 KB for each would
/// cost more than everything else about it.
final class BundleCache: Sendable {
    /// Bytes held at most, about twenty bundles of ordinary sends; one bundle is held whatever its size.
    private static let byteCountMax = 8 * 1_024 * 1_024

    /// The one used last stands last.
    private let held = Mutex<[HeldBundle]>([])

    func bundle(_ number: UInt64) -> HeldBundle? {
        held.withLock { held in
            guard let place = held.lastIndex(where: { $0.number == number }) else { return nil }
            let bundle = held.remove(at: place)
            held.append(bundle)
            return bundle
        }
    }

    /// Keeps a full bundle; a partial one is about to be replaced and is not kept.
    func hold(_ bundle: HeldBundle) {
        guard bundle.path.width == TrailPath.fullWidth else { return }
        held.withLock { held in
            held.removeAll { $0.number == bundle.number }
            held.append(bundle)
            var byteCount = held.reduce(0) { $0 + $1.byteCount }
            while byteCount > Self.byteCountMax, held.count > 1 {
                byteCount -= held.removeFirst().byteCount
            }
        }
    }
}
