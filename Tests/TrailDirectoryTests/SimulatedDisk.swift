import AuditTrail
import GateRecords

@testable import TrailDirectory

/// A disk that forgets: what was not synced may be gone after a crash, in any combination.
///
/// A file's bytes are durable once synced, a name once its directory is, a directory's own name once its
/// parent is. A failed sync loses the bytes for good, however often it is asked again, as Linux does.
final class SimulatedDisk: DurableFiles {
    final class Inode {
        var bytes: [UInt8]
        var isSynced = false
        init(_ bytes: [UInt8]) { self.bytes = bytes }
    }

    enum Fault {
        /// The machine stops before the operation takes effect.
        case crash
        /// The operation fails; a write leaves half of its bytes.
        case error
    }

    private(set) var names: [String: Inode] = [:]
    private(set) var directories: Set<String> = [""]
    private var durableNames: [String: Inode] = [:]
    private var durableDirectories: Set<String> = [""]
    private var isDown = false

    /// Operations that change something, counted from 0.
    private(set) var operationCount = 0
    var faultAt: Int?
    var fault = Fault.crash

    init() {}

    /// A copy of a disk's files, all of them durable.
    init(files: [String: [UInt8]]) {
        for (path, bytes) in files {
            let inode = Inode(bytes)
            inode.isSynced = true
            names[path] = inode
            var directory = Self.parent(of: path)
            while directory != "" {
                directories.insert(directory)
                directory = Self.parent(of: directory)
            }
        }
        durableNames = names
        durableDirectories = directories
    }

    var contents: [String: [UInt8]] { names.mapValues(\.bytes) }

    /// What is there after the machine has stopped and started again. `choices` decides for every name and
    /// every byte that was not synced.
    func afterCrash(_ choices: inout some RandomNumberGenerator) -> SimulatedDisk {
        let disk = SimulatedDisk()
        for directory in directories.union(durableDirectories).sorted() where directory != "" {
            let isSame = directories.contains(directory) == durableDirectories.contains(directory)
            let stays = isSame ? directories.contains(directory) : Bool.random(using: &choices)
            if stays, disk.directories.contains(Self.parent(of: directory)) {
                disk.directories.insert(directory)
            }
        }
        for path in Set(names.keys).union(durableNames.keys).sorted() {
            let inode =
                names[path] === durableNames[path]
                ? names[path] : (Bool.random(using: &choices) ? names[path] : durableNames[path])
            guard let inode, disk.directories.contains(Self.parent(of: path)) else { continue }
            let kept =
                inode.isSynced
                ? inode.bytes
                : Array(inode.bytes.prefix(Int.random(in: 0...inode.bytes.count, using: &choices)))
            disk.names[path] = Inode(kept)
            disk.names[path]?.isSynced = true
        }
        disk.durableNames = disk.names
        disk.durableDirectories = disk.directories
        return disk
    }

    static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return String(path[..<slash])
    }

    /// Counts an operation; throws when it is its turn to fail. Returns whether it should only half happen.
    private func begin(_ failure: TrailError) throws(TrailError) {
        if isDown { throw failure }
        defer { operationCount += 1 }
        guard operationCount == faultAt else { return }
        if fault == .crash { isDown = true }
        throw failure
    }

    private func require(directoryOf path: String) throws(TrailError) {
        guard directories.contains(Self.parent(of: path)) else { throw .failed(.open, path: path, code: 2) }
    }

    func write(_ path: String, _ bytes: [UInt8]) throws(TrailError) {
        try require(directoryOf: path)
        guard names[path] == nil else { throw .failed(.write, path: path, code: 17) }
        let inode = Inode(Array(bytes.prefix(bytes.count / 2)))
        if !isDown { names[path] = inode }
        try begin(.failed(.write, path: path, code: 28))
        inode.bytes = bytes
        try begin(.syncFailed(path: path, code: 5))
        inode.isSynced = true
    }

    func rename(_ path: String, to newPath: String) throws(TrailError) {
        try require(directoryOf: newPath)
        try begin(.failed(.rename, path: newPath, code: 5))
        guard let inode = names.removeValue(forKey: path) else {
            throw .failed(.rename, path: newPath, code: 2)
        }
        names[newPath] = inode
    }

    func syncDirectory(_ path: String) throws(TrailError) {
        try begin(.syncFailed(path: path, code: 5))
        for name in Set(names.keys).union(durableNames.keys) where Self.parent(of: name) == path {
            durableNames[name] = names[name]
        }
        for directory in directories.union(durableDirectories) where Self.parent(of: directory) == path {
            if directories.contains(directory) {
                durableDirectories.insert(directory)
            } else if directory != "" {
                durableDirectories.remove(directory)
            }
        }
    }

    func makeDirectory(_ path: String) throws(TrailError) {
        try require(directoryOf: path)
        try begin(.failed(.makeDirectory, path: path, code: 28))
        directories.insert(path)
    }

    func remove(_ path: String) throws(TrailError) {
        try begin(.failed(.remove, path: path, code: 5))
        names[path] = nil
    }

    func removeDirectory(_ path: String) throws(TrailError) {
        try begin(.failed(.remove, path: path, code: 5))
        directories.remove(path)
    }

    func list(_ path: String) throws(TrailError) -> [String] {
        if isDown { throw .failed(.list, path: path, code: 5) }
        let inside = Set(names.keys).union(directories.filter { $0 != "" })
        return inside.filter { Self.parent(of: $0) == path }
            .map { path.isEmpty ? $0 : String($0.dropFirst(path.utf8.count + 1)) }
    }

    func read(_ path: String, into buffer: inout [UInt8], byteCountMax: Int) throws(TrailError) -> Int? {
        if isDown { throw .failed(.read, path: path, code: 5) }
        guard let bytes = names[path]?.bytes else { return nil }
        guard bytes.count <= byteCountMax else { throw .notTrailFile(path: path) }
        buffer.replaceSubrange(0..<min(buffer.count, bytes.count), with: bytes)
        return bytes.count
    }

    func byteCount(_ path: String) throws(TrailError) -> Int? {
        if isDown { throw .failed(.read, path: path, code: 5) }
        return names[path]?.bytes.count
    }
}

/// Numbers from a seed, the same on every machine (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
