package import AuditTrail
import GateVocabulary

extension TrailDirectoryWriter {
    /// Puts a part of a snapshot in place. It is read by nobody before ``adopt(_:)``.
    package func writeSegment(of size: UInt64, _ number: Int, _ bytes: [UInt8]) throws {
        try replace([(path: TrailPath.segment(size: size, number: number).text, bytes: bytes)])
    }

    /// Brings a snapshot into force whose segments are there. What it keeps no more may go from here on, and readers know what stands in
    /// for it.
    ///
    /// - Precondition: The checkpoint covers its entry.
    package func adopt(_ head: SnapshotHead) throws {
        precondition(
            head.index < checkpoint?.size ?? 0, "the snapshot of entry \(head.index) is not signed yet")
        guard try snapshotHead() != head else { return }
        try replace([(path: TrailPath.snapshot.text, bytes: head.bytes)])
    }

    /// What is in force; `nil` where nothing was pruned.
    ///
    /// - Throws: ``TrailError/damaged(_:)`` for a head that is none, or of a newer format.
    package func snapshotHead() throws -> SnapshotHead? { try FilesReader(files: files).snapshotHead() }

    /// Removes the bundles that the snapshot in force stands in for.
    ///
    /// Crash points: each file is there or not, in any order, and a reader needs none of them. The next call goes on with what is left.
    ///
    /// - Parameter countMax: So many at most, so that who publishes waits for some of them only.
    /// - Returns: How many went; none where all are gone.
    package func prune(countMax: Int) throws -> Int {
        guard let size = try snapshotHead()?.size else { return 0 }
        // An earlier process may have ended before the name of the head was durable; what it stands in for must not go before.
        try syncing { () throws(TrailError) in try files.syncDirectory(TrailPath.snapshots) }
        return try prune(in: "tile/entries", below: size, countMax: countMax)
    }

    private func prune(in directory: String, below size: UInt64, countMax: Int) throws -> Int {
        var count = 0
        var isTouched = false
        // Partial bundles first: one without its full bundle is what no copy of a trail has.
        let names = try files.list(directory).sorted()
        for name in names.filter({ $0.hasSuffix(".p") }) + names.filter({ !$0.hasSuffix(".p") })
        where count < countMax {
            let path = "\(directory)/\(name)"
            if let bundle = TrailPath(parsing: path) {
                guard bundle.full.entryRange.upperBound <= size else { continue }
                try files.remove(path)
                isTouched = true
                count += 1
            } else if TrailDirectoryReader.isFolderName(path), Self.mayHold(path, below: size) {
                count += try prune(in: path, below: size, countMax: countMax - count)
                guard try files.list(path).isEmpty else { continue }
                try files.removeDirectory(path)
                forgetDirectory(path)
                isTouched = true
            }
        }
        // A name that comes back after a power cut would be an entry that was to be gone.
        if isTouched { try syncing { () throws(TrailError) in try files.syncDirectory(directory) } }
        return count
    }

    /// Whether the first file that a folder may have is of entries before `size`.
    private static func mayHold(_ folder: String, below size: UInt64) -> Bool {
        var folder = folder
        if folder.hasSuffix(".p") {
            return TrailPath(parsing: "\(folder)/1").map { $0.full.entryRange.upperBound <= size } ?? false
        }
        // A folder of folders begins with the first of the first.
        for _ in 0..<6 {
            if let path = TrailPath(parsing: "\(folder)/000") { return path.entryRange.lowerBound < size }
            folder += "/x000"
        }
        return false
    }

    /// Removes the segments of other snapshots than these.
    ///
    /// - Parameter countMax: As ``prune(countMax:)`` has it.
    /// - Returns: How many went; none where all are gone.
    package func removeSnapshots(besides sizes: Set<UInt64>, countMax: Int) throws -> Int {
        var count = 0
        for name in try files.list(TrailPath.snapshots).sorted() where count < countMax {
            guard let size = UInt64(name), !sizes.contains(size) else { continue }
            let directory = "\(TrailPath.snapshots)/\(name)"
            for segment in try files.list(directory).sorted().prefix(countMax - count) {
                try files.remove("\(directory)/\(segment)")
                count += 1
            }
            guard try files.list(directory).isEmpty else { continue }
            try files.removeDirectory(directory)
            forgetDirectory(directory)
        }
        return count
    }
}

extension TrailReader {
    /// What stands in for pruned entries; `nil` where nothing was pruned.
    ///
    /// - Throws: ``TrailError/damaged(_:)`` for a head that is none, or of a newer format.
    package func snapshotHead() throws -> SnapshotHead? {
        guard let bytes: [UInt8] = try read(.snapshot) else { return nil }
        do throws(SnapshotDamage) {
            return try SnapshotHead(parsing: bytes)
        } catch {
            throw TrailError.damaged(.snapshot(error))
        }
    }
}
