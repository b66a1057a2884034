/// Puts several files in place so that all of them are on the disk afterwards.
///
/// Each file is written under a temporary name and synced, then all are renamed, then every directory that
/// got a name is synced once. At any crash in between each name has either its old file or its new one, whole.
struct DurableBatch {
    private let files: any DurableFiles
    /// Directories whose own name is known to be durable, so that each is made and synced once.
    private var durableDirectories: Set<String> = [""]

    /// Where files are written before they have a name; emptied when a directory is opened.
    static let temporaryDirectory = ".writing"

    init(_ files: any DurableFiles) {
        self.files = files
    }

    /// - Parameter contents: The files to put in place; a path occurs once.
    mutating func replace(_ contents: [(path: String, bytes: [UInt8])]) throws(TrailError) {
        guard !contents.isEmpty else { return }
        try makeDurable(Self.temporaryDirectory)
        for content in contents { try makeDurable(Self.parent(of: content.path)) }
        var written = 0
        do throws(TrailError) {
            for content in contents {
                let temporary = Self.temporaryPath(written)
                // Something may be left there by an attempt that failed.
                try files.remove(temporary)
                try files.write(temporary, content.bytes)
                written += 1
            }
        } catch {
            // Nothing has a name yet. Room is what a full disk needs, so what was written goes first; if even
            // that fails, opening the directory the next time clears it.
            if !error.isFatal {
                for index in 0...written { try? files.remove(Self.temporaryPath(index)) }
            }
            throw error
        }
        // Durable now: every file's content, under a name that is never read. A crash here loses nothing.
        for (index, content) in contents.enumerated() {
            try files.rename(Self.temporaryPath(index), to: content.path)
        }
        // A crash here leaves some of the new names; what a checkpoint covers is not among them, and the
        // next attempt puts the same bytes there again.
        for directory in Set(contents.map { Self.parent(of: $0.path) }).sorted() {
            try files.syncDirectory(directory)
        }
    }

    /// Forgets directories that were removed, so that they are made again when they are needed again.
    mutating func forget(_ directory: String) {
        durableDirectories.remove(directory)
    }

    private mutating func makeDurable(_ directory: String) throws(TrailError) {
        guard !durableDirectories.contains(directory) else { return }
        let parent = Self.parent(of: directory)
        try makeDurable(parent)
        try files.makeDirectory(directory)
        // Also when it was there: the process that made it may have died before it synced the name.
        try files.syncDirectory(parent)
        durableDirectories.insert(directory)
    }

    private static func temporaryPath(_ index: Int) -> String { "\(temporaryDirectory)/\(index)" }

    private static func parent(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
        return String(path[..<slash])
    }
}
