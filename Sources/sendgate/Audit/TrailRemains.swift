import AuditTrail
import CanonicalJSON
import Foundation
import GateVocabulary
import TrailDirectory

/// The files of a trail that the signed tree does not need any more: partial tiles and bundles of earlier sizes, and
/// the archive of rule books. They are copies of what is proved elsewhere, so each is held against that.
struct TrailRemains {
    let trail: CopiedTrail
    /// Of the verified checkpoint.
    let size: UInt64

    /// How many were looked at, and the first that is not what it should be, in words.
    func examine() throws -> (count: Int, damage: String?) {
        var count = 0
        let names = FileManager.default.enumerator(atPath: trail.path)?.compactMap { $0 as? String } ?? []
        for name in names.sorted() {
            guard let path = TrailPath(parsing: name), path.width < TrailPath.fullWidth,
                path.entryRange.upperBound <= size, let bytes = try trail.reader.read(path)
            else { continue }
            count += 1
            let truth = try trail.reader.read(current(path)) ?? trail.reader.read(path.full)
            guard let truth, truth.starts(with: bytes), isWhole(bytes, path) else {
                return (count, "`\(name)` is not what the signed tree has there")
            }
        }
        for digest in try trail.reader.policyDigests() {
            count += 1
            guard try trail.reader.policy(digest) != nil else {
                return (count, "`policies/\(digest)` is missing")
            }
        }
        return (count, nil)
    }

    /// The file of the same place in the tree as it is signed now.
    private func current(_ path: TrailPath) -> TrailPath {
        switch path {
        case .checkpoint: path
        case .tile(let level, let index, _):
            TileLayout.tile(level: level, holding: index << 8, size: size)
        case .entries(let index, _): TileLayout.bundle(holding: index << 8, size: size)
        }
    }

    private func isWhole(_ bytes: [UInt8], _ path: TrailPath) -> Bool {
        switch path {
        case .checkpoint: true
        case .tile(_, _, let width): bytes.count == width * 32
        case .entries(_, let width): EntryBundle.ranges(in: bytes, count: width) != nil
        }
    }
}
