import CanonicalJSON
package import GateRecords
package import GateVocabulary
package import OpenSSLCrypto
import SealedFormat

/// How closely each entry is looked at, beyond its hash.
package enum EntryExamination: Sendable {
    /// Bytes only: an entry is whatever the signed tree says it is.
    case hashing
    /// Also canonical, with a dense index and a time that never decreases, but at an entry of the kind `clock`; and a policy
    /// that is named is the one in force.
    case envelope
    /// Also exactly the members its kind may have.
    case schema(EntrySchema)
}

extension TrailPath {
    var level: UInt64 {
        if case .tile(let level, _, _) = self { UInt64(level) } else { 0 }
    }
}

/// The outcome of one verification.
package struct TrailReport: Sendable {
    package var checkpoint: TrustedCheckpoint?
    /// In the order they were established. Meaningful even when ``damage`` was found afterwards.
    package var facts: [TrailFact] = []
    /// `nil` when nothing is wrong.
    package var damage: TrailDamage?
    /// Entries rehashed.
    package var entryCount: UInt64 = 0
    /// Their bytes, without lengths.
    package var entryByteCount: UInt64 = 0
    /// Of the first and last entry looked at; `nil` when only hashing.
    package var firstTime: Instant?
    package var lastTime: Instant?
    /// The first entry of a newer sendgate: it and others like it have results of gates, facts, or a kind, that this build
    /// does not know and did not check. The rest of these entries was checked as in any other.
    package var newerEntry: NewerEntry?
    /// The version in the last `start`, where it is later than the one that verifies. Unknown kinds from there on may be of that version.
    package var laterVersion: BuildVersion?
    /// What stands in for the entries that are gone; `nil` of a trail that has all of them.
    package var snapshot: SnapshotHead?
    /// The first entry that rests on none that is gone; `nil` of a trail that has all of them, and when only hashing.
    package var firstWhole: (index: UInt64, time: Instant)?
}

/// One entry on its way past, already authenticated.
package struct VerifiedEntry {
    package let index: UInt64
    package let leafHash: SHA256Digest
    package let bytes: ArraySlice<UInt8>
    /// `nil` when only hashing.
    package let entry: TrailEntry?
    /// When only hashing, ``EntryStanding/kept`` or ``EntryStanding/whole``.
    package let standing: EntryStanding
}

/// Rehashes a whole trail.
///
/// Authenticity flows from the signed root downwards: the tiles on the right edge must give the root, every
/// full tile must give the hash its parent holds, every entry the hash its tile holds. So the first file that
/// fails is the one that was changed, whatever else was. Entries pass in order, each exactly once; memory
/// stays at one tile per level and one bundle.
package struct TrailVerifier<Reader: TrailReader> {
    package var reader: Reader
    package var trust: TrailTrust
    package var examination: EntryExamination
    /// A checkpoint that was kept where the operator cannot reach it.
    package var externalCheckpoint: [UInt8]?
    /// Of the program that verifies. What a later one wrote may be of a kind that this one does not know; `nil` takes none for later.
    package var version: BuildVersion?

    /// - Parameter version: Matters where entries are held against a schema.
    package init(
        _ reader: Reader, trusting trust: TrailTrust, examining examination: EntryExamination = .envelope,
        since externalCheckpoint: [UInt8]? = nil, version: BuildVersion? = nil
    ) {
        self.version = version
        self.reader = reader
        self.trust = trust
        self.examination = examination
        self.externalCheckpoint = externalCheckpoint
    }

    /// - Parameters:
    ///   - visit: Sees every entry, in order, after it was authenticated and examined.
    ///   - progress: Told after each bundle how many of the entries are done.
    /// - Throws: What the reader or `visit` throw; ``NewerEntry`` for an entry of a later format, behind which nothing can be read.
    ///   Damage is a result, not an error.
    package func verify(
        visit: ((VerifiedEntry) throws -> Void)? = nil,
        progress: ((_ done: UInt64, _ total: UInt64) -> Void)? = nil
    ) throws -> TrailReport {
        var restores: [(index: UInt64, entry: RestoreEntry?)] = []
        let visiting: (VerifiedEntry) throws -> Void = { entry in
            if let found = entry.entry, found.kind == .restore {
                restores.append((entry.index, try? RestoreEntry(found.members)))
            }
            try visit?(entry)
        }
        let isVisited = visit != nil || examination.readsEntries
        var walk = TrailWalk(
            reader: reader, examination: examination, version: version, visit: isVisited ? visiting : nil,
            progress: progress)
        do {
            try establish(&walk, restores: { restores })
        } catch let damage as TrailDamage {
            walk.report.damage = damage
        }
        return walk.report
    }

    /// What has to hold before anything may be appended: the checkpoint is signed, **every** tile leads to its
    /// root, the entries of the newest bundles are the ones that were signed, and every older bundle is there.
    ///
    /// Costs 8 KiB of reading for 256 old entries, and all bytes of the newest.
    ///
    /// - Parameter newestBundleCount: How many bundles are rehashed.
    /// - Returns: A report with ``TrailFact/signed(keyNames:)`` as its only fact, or with the damage.
    package func checkTiles(andNewest newestBundleCount: UInt64) throws -> TrailReport {
        var walk = TrailWalk(reader: reader, examination: .hashing)
        do {
            let checkpoint = try openCheckpoint(&walk)
            try openSnapshot(&walk, under: checkpoint)
            let bundleCount = (checkpoint.size + 255) >> 8
            walk.firstRehashedBundle = bundleCount - min(bundleCount, newestBundleCount)
            try walk.run(under: checkpoint)
        } catch let damage as TrailDamage {
            walk.report.damage = damage
        }
        return walk.report
    }

    private func openCheckpoint(_ walk: inout TrailWalk<Reader>) throws -> Checkpoint {
        guard let bytes = try reader.read(.checkpoint) else { throw TrailDamage.missing(.checkpoint) }
        let trusted: TrustedCheckpoint
        do throws(CheckpointError) {
            trusted = try TrustedCheckpoint(opening: bytes, trusting: trust)
        } catch {
            throw TrailDamage.checkpoint(error)
        }
        walk.report.checkpoint = trusted
        walk.report.facts.append(
            .signed(keyNames: trusted.attestations.filter { $0.cosignedAtSeconds == nil }.map(\.key.name)))
        return trusted.checkpoint
    }

    private func establish(
        _ walk: inout TrailWalk<Reader>, restores: () -> [(index: UInt64, entry: RestoreEntry?)]
    ) throws {
        let checkpoint = try openCheckpoint(&walk)
        try openSnapshot(&walk, under: checkpoint)
        try walk.run(under: checkpoint)
        if let head = walk.report.snapshot,
            try TileHashes(reader, size: checkpoint.size).citedRoot(head.size) != head.entry.root
        {
            throw TrailDamage.snapshot(.otherTree(index: head.index))
        }
        let restores = restores()
        if let snapshot = walk.report.snapshot {
            walk.report.facts.append(
                .consistentFrom(first: snapshot.size, kept: snapshot.entry.lineCount, size: checkpoint.size))
            if let whole = walk.report.firstWhole {
                walk.report.facts.append(.wholeFrom(whole.index, whole.time))
            }
        } else {
            walk.report.facts.append(.consistent(size: checkpoint.size))
        }
        switch examination {
        case .hashing: break
        case .envelope: walk.report.facts.append(.wellFormed(withSchema: false))
        case .schema:
            walk.report.facts.append(.wellFormed(withSchema: walk.report.newerEntry == nil))
        }
        for (index, entry) in restores {
            guard let previous = entry?.previous, previous.size == index,
                try TileHashes(reader, size: checkpoint.size).citedRoot(index) == previous.root
            else { throw TrailDamage.falseCitation(index: index) }
            walk.report.facts.append(.continues(origin: previous.origin, size: previous.size))
        }
        if let externalCheckpoint {
            let size = try compare(
                checkpoint, with: externalCheckpoint, earlier: restores.compactMap(\.entry?.previous))
            walk.report.facts.append(.appendOnly(since: size))
        }
        for attestation in walk.report.checkpoint?.attestations ?? [] {
            guard let seconds = attestation.cosignedAtSeconds else { continue }
            walk.report.facts.append(.witnessed(by: attestation.key.name, atSeconds: seconds))
        }
    }

    /// - Parameter earlier: What `restore` entries cite. A checkpoint of one of these names is signed by the same public
    ///   keys, and of no more entries than are cited of it: what was signed beyond is another history.
    private func compare(
        _ checkpoint: Checkpoint, with externalBytes: [UInt8], earlier: [TreeHead]
    ) throws -> UInt64 {
        let external: Checkpoint
        var trust = trust
        do throws(CheckpointError) {
            if let name = try? Checkpoint(parsing: SignedNote(parsing: externalBytes).text).origin,
                let cited = earlier.last(where: { CodeUnits.equal($0.origin, name) })
            {
                trust = trust.renamed(cited.origin)
            }
            external = try TrustedCheckpoint(opening: externalBytes, trusting: trust).checkpoint
        } catch {
            throw TrailDamage.externalCheckpoint(error)
        }
        if let cited = earlier.last(where: { CodeUnits.equal($0.origin, external.origin) }),
            !CodeUnits.equal(checkpoint.origin, external.origin), external.size > cited.size
        {
            throw TrailDamage.rolledBack(size: cited.size, externalSize: external.size)
        }
        guard external.size <= checkpoint.size else {
            throw TrailDamage.rolledBack(size: checkpoint.size, externalSize: external.size)
        }
        // The proof is checked against both signed roots, so it does not matter that the tiles it is built
        // from are read once more.
        var hashes = TileHashes(reader, size: checkpoint.size)
        let proof = try hashes.consistencyProof(from: external.size)
        guard proof.proves(from: external.root, to: checkpoint.root) else {
            throw TrailDamage.rewritten(since: external.size)
        }
        return external.size
    }
}

extension EntryExamination {
    /// Whether entries are read, and not only hashed.
    fileprivate var readsEntries: Bool {
        switch self {
        case .hashing: false
        case .envelope, .schema: true
        }
    }
}

extension TileHashes {
    fileprivate func citedRoot(_ size: UInt64) throws -> SHA256Digest {
        var hashes = self
        return try hashes.root(ofFirst: size)
    }
}

/// The state of one walk over a trail. Throws ``TrailDamage`` at the first thing wrong.
struct TrailWalk<Reader: TrailReader> {
    let reader: Reader
    let examination: EntryExamination
    let version: BuildVersion?
    let visit: ((VerifiedEntry) throws -> Void)?
    let progress: ((UInt64, UInt64) -> Void)?
    /// Of the bundles before this one only the lengths are looked at.
    var firstRehashedBundle: UInt64 = 0 {
        didSet { isPartial = true }
    }
    /// Whether the lines of a snapshot are passed over, and the entries that sign it.
    private(set) var isPartial = false
    var report = TrailReport()

    private(set) var size: UInt64 = 0
    private var gateRuns = GateRuns()
    private var bundles = BundlesInForce()
    private var issued = IssuedIDs()
    /// One per level, reused.
    private var tiles: [[UInt8]] = []
    var bundle: [UInt8] = []
    /// Until the first entry behind the pruned ones.
    var lines: SnapshotLines<Reader>?
    var selection: SnapshotSelection?
    /// The time of the entry before, from the newest pruned one on, and how long the gateway ran since that.
    var newestBefore: Instant?
    var ranMilliseconds: Int64 = 0

    init(
        reader: Reader, examination: EntryExamination, version: BuildVersion? = nil,
        visit: ((VerifiedEntry) throws -> Void)? = nil, progress: ((UInt64, UInt64) -> Void)? = nil
    ) {
        self.reader = reader
        self.examination = examination
        self.version = version
        self.visit = visit
        self.progress = progress
    }

    mutating func run(under checkpoint: Checkpoint) throws {
        size = checkpoint.size
        guard let topLevel = TileLayout.topLevel(size: size) else {
            guard checkpoint.root == TreeHash.empty else {
                throw TrailDamage.otherTree(signed: checkpoint.root, found: TreeHash.empty)
            }
            return
        }
        if let head = report.snapshot, !isPartial {
            lines = SnapshotLines(reader, head)
            selection = SnapshotSelection(of: head)
        }
        tiles = Array(repeating: [], count: topLevel + 1)
        let edge = try readEdge(topLevel: topLevel)
        let root = TrailEdge.root(ofTiles: edge)
        guard root == checkpoint.root else {
            try locateEdgeDamage(edge, signed: checkpoint.root)
            throw TrailDamage.otherTree(signed: checkpoint.root, found: root)
        }
        // The higher a tile on the edge, the further left are the entries it covers.
        for level in stride(from: topLevel, through: 0, by: -1) where !edge[level].isEmpty {
            let first = TileLayout.hashCount(level: level, size: size) & ~255
            if level == 0 {
                try checkBundle(first >> 8, against: edge[0])
            } else {
                for (offset, hash) in Self.hashes(in: edge[level]).enumerated() {
                    try checkTile(level: level - 1, index: first + UInt64(offset), gives: hash)
                }
            }
        }
    }

    // MARK: The right edge

    /// The partial tiles, by level; empty where the tree has none.
    private mutating func readEdge(topLevel: Int) throws -> [[UInt8]] {
        try (0...topLevel).map { level in
            let width = TileLayout.partialWidth(level: level, size: size)
            guard width > 0 else { return [] }
            let index = TileLayout.hashCount(level: level, size: size) >> 8
            return try reader.readTile(.tile(level: level, index: index, width: width))
        }
    }

    private static func hashes(in tile: [UInt8]) -> [SHA256Digest] {
        stride(from: 0, to: tile.count, by: 32).compactMap { SHA256Digest(bytes: tile[$0..<($0 + 32)]) }
    }

    /// The tiles on the edge do not give the signed root: finds one that what lies below it contradicts.
    ///
    /// If putting the contradicting hashes in its place gives the signed root, that tile is proved to be the
    /// damaged one; else the first contradiction is named. Without any, the files agree on another history.
    private mutating func locateEdgeDamage(_ edge: [[UInt8]], signed: SHA256Digest) throws {
        var suspect: TrailDamage?
        for level in edge.indices where !edge[level].isEmpty {
            let width = edge[level].count / 32
            let index = TileLayout.hashCount(level: level, size: size) >> 8
            let below = try hashesBelow(level: level, first: index << 8, count: width)
            guard let below else { continue }
            guard
                let offset = zip(below, Self.hashes(in: edge[level])).enumerated()
                    .first(where: { $0.element.0 != $0.element.1 })?.offset
            else { continue }
            let damage = TrailDamage.tile(.tile(level: level, index: index, width: width), hash: offset)
            var mended = edge
            mended[level] = below.flatMap(\.bytes)
            if TrailEdge.root(ofTiles: mended) == signed { throw damage }
            suspect = suspect ?? damage
        }
        if let suspect { throw suspect }
    }

    /// Hashes recomputed from the entries, or from the full tiles one level down; `nil` when those are not
    /// all there, and so confirm nothing.
    private mutating func hashesBelow(level: Int, first: UInt64, count: Int) throws -> [SHA256Digest]? {
        if level > 0 {
            var hashes: [SHA256Digest] = []
            for offset in 0..<UInt64(count) {
                let path = TrailPath.tile(level: level - 1, index: first + offset, width: TrailPath.fullWidth)
                guard let bytes = try reader.read(path), bytes.count == path.byteCountMax else { return nil }
                hashes.append(bytes.withUnsafeBytes { TreeHash.perfectRoot($0) })
            }
            return hashes
        }
        var bytes: [UInt8] = []
        let path = TrailPath.entries(index: first >> 8, width: count)
        guard let found = try reader.readAnyWidth(path, into: &bytes) else { return nil }
        return bytes.withUnsafeBytes { buffer in
            let buffer = UnsafeRawBufferPointer(rebasing: buffer[..<found.count])
            var offset = 0
            var hashes: [SHA256Digest] = []
            while hashes.count < count, let range = EntryBundle.next(in: buffer, at: &offset) {
                hashes.append(TreeHash.leaf(UnsafeRawBufferPointer(rebasing: buffer[range])))
            }
            return hashes.count == count ? hashes : nil
        }
    }

    // MARK: Full tiles

    /// - Parameter hash: From the parent, already authenticated.
    private mutating func checkTile(level: Int, index: UInt64, gives hash: SHA256Digest) throws {
        let path = TrailPath.tile(level: level, index: index, width: TrailPath.fullWidth)
        // The level's buffer is taken out while its children, which use the others, are looked at.
        var tile: [UInt8] = []
        swap(&tile, &tiles[level])
        defer { swap(&tile, &tiles[level]) }
        guard let count = try reader.read(path, into: &tile) else { throw TrailDamage.missing(path) }
        guard count == path.byteCountMax else {
            throw TrailDamage.wrongLength(path, byteCount: count, expected: path.byteCountMax)
        }
        let root = tile.withUnsafeBytes {
            TreeHash.perfectRoot(UnsafeRawBufferPointer(rebasing: $0[..<count]))
        }
        guard root == hash else {
            let below = try hashesBelow(level: level, first: index << 8, count: TrailPath.fullWidth)
            let held = Self.hashes(in: Array(tile[..<count]))
            let offset = below.flatMap { below in
                zip(below, held).enumerated().first { $0.element.0 != $0.element.1 }?.offset
            }
            throw TrailDamage.tile(path, hash: offset)
        }
        if level == 0 {
            let isPruned = report.snapshot.map { index << 8 < $0.size } ?? false
            if index < firstRehashedBundle {
                return isPruned ? () : try checkPresence(ofBundle: index)
            }
            isPruned ? try checkPruned(index, against: tile) : try checkBundle(index, against: tile)
        } else {
            for child in 0..<UInt64(TrailPath.fullWidth) {
                let offset = Int(child) * 32
                guard let hash = SHA256Digest(bytes: tile[offset..<(offset + 32)]) else { return }
                try checkTile(level: level - 1, index: index << 8 + child, gives: hash)
            }
        }
    }

    /// That a full bundle is there, as long as it must be at least.
    private func checkPresence(ofBundle index: UInt64) throws {
        let bundle = TrailPath.entries(index: index, width: TrailPath.fullWidth)
        guard let bundleByteCount = try reader.byteCount(of: bundle) else {
            throw TrailDamage.missing(bundle)
        }
        // Two bytes of length for each of 256 entries, and no entry is empty.
        let byteCountMin = TrailPath.fullWidth * 3
        guard bundleByteCount >= byteCountMin else {
            throw TrailDamage.wrongLength(bundle, byteCount: bundleByteCount, expected: byteCountMin)
        }
    }

    // MARK: Entries

    /// - Parameter tile: At level 0, already authenticated; as wide as the bundle.
    private mutating func checkBundle(_ index: UInt64, against tile: [UInt8]) throws {
        try finishLines()
        let width = min(TrailPath.fullWidth, Int(size - index << 8))
        let path = TrailPath.entries(index: index, width: width)
        guard let found = try reader.readAnyWidth(path, into: &bundle) else {
            throw TrailDamage.missing(path)
        }
        var offset = 0
        for position in 0..<width {
            let entryIndex = index << 8 + UInt64(position)
            let checked: (range: Range<Int>, leafHash: SHA256Digest)? = bundle.withUnsafeMutableBytes {
                buffer in
                let buffer = UnsafeMutableRawBufferPointer(rebasing: buffer[..<found.count])
                guard let range = EntryBundle.next(in: UnsafeRawBufferPointer(buffer), at: &offset) else {
                    return nil
                }
                // The length in front of the entry has been read; its second byte makes room for the prefix.
                let leafHash = TreeHash.leaf(
                    overwritingFirstByteOf: UnsafeMutableRawBufferPointer(
                        rebasing: buffer[(range.lowerBound - 1)..<range.upperBound]))
                let isSigned = tile.withUnsafeBytes { leafHash.lies(in: $0, at: 32 * position) }
                return isSigned ? (range, leafHash) : nil
            }
            guard let checked else { throw TrailDamage.entry(index: entryIndex, in: path) }
            try examine(
                bundle[checked.range], leafHash: checked.leafHash, index: entryIndex, in: path,
                as: .whole)
            report.entryCount += 1
            report.entryByteCount += UInt64(checked.range.count)
        }
        if !found.isFull || width == TrailPath.fullWidth, offset != found.count {
            throw TrailDamage.trailingBytes(in: path, byteCount: found.count - offset)
        }
        progress?(report.entryCount, size)
    }

    /// - Parameter standing: What is known of it without reading it: ``EntryStanding/kept``, or ``EntryStanding/whole``.
    mutating func examine(
        _ bytes: ArraySlice<UInt8>, leafHash: SHA256Digest, index: UInt64, in path: TrailPath,
        as standing: EntryStanding
    ) throws {
        var entry: TrailEntry?
        switch examination {
        case .hashing: break
        case .envelope:
            entry = try examineEnvelope(bytes, index: index, in: path, as: standing)
        case .schema(let schema):
            let examined = try examineEnvelope(bytes, index: index, in: path, as: standing)
            if examined.kind == .start {
                let writer = examined.members["version"]?.stringValue.flatMap { BuildVersion($0) }
                report.laterVersion = writer.flatMap { writer in
                    version.flatMap { writer > $0 ? writer : nil }
                }
            }
            let violations = schema.violations(in: examined)
            if !violations.isEmpty {
                var newer = examined.newer
                var wrong = newer == nil ? violations.first : violations.first { !examined.isOfAddedGate($0) }
                // Kinds are only added, so one that a later version wrote cannot be judged by this one.
                if schema.members(of: examined.kind) == nil, let later = report.laterVersion, let version {
                    newer = NewerEntry(index: index, sign: .version(later, reader: version))
                    wrong = nil
                }
                if let wrong { throw TrailDamage.schema(index: index, in: path, wrong) }
                report.newerEntry = report.newerEntry ?? newer
            }
            if let found = gateRuns.follow(examined) {
                throw TrailDamage.gates(index: index, in: path, found)
            }
            entry = examined
        }
        if let head = report.snapshot, index == head.index, !isPartial { try requireSigned(head, by: bytes) }
        let standing = entry.map { self.standing(of: $0, as: standing) } ?? standing
        if let visit {
            try visit(
                VerifiedEntry(
                    index: index, leafHash: leafHash, bytes: bytes, entry: entry, standing: standing))
        }
    }

    // MARK: Envelopes

    private mutating func examineEnvelope(
        _ bytes: ArraySlice<UInt8>, index: UInt64, in path: TrailPath, as standing: EntryStanding
    ) throws -> TrailEntry {
        let entry: TrailEntry
        do throws(TrailEntryError) {
            entry = try TrailEntry(reading: bytes)
        } catch .newerFormat(let format) {
            throw NewerEntry(index: index, sign: .format(format))
        } catch {
            throw TrailDamage.malformedEntry(index: index, in: path, error)
        }
        guard entry.index == index else {
            throw TrailDamage.wrongIndex(index: index, in: path, found: entry.index)
        }
        // The entry that stood before a kept one may be gone.
        let mayStep = entry.kind == .clock && standing == .kept
        if let last = report.lastTime, entry.time < last, !mayStep, !entry.stepsClock(from: last) {
            throw TrailDamage.timeDecreased(index: index, in: path)
        }
        if let found = bundles.follow(entry) { throw TrailDamage.policy(in: path, found) }
        if let found = issued.follow(entry) { throw TrailDamage.issued(in: path, found) }
        if report.firstTime == nil { report.firstTime = entry.time }
        report.lastTime = entry.time
        return entry
    }
}
