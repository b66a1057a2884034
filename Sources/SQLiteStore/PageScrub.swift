import Foundation
import GateSteps
import GatewayPipeline
import Synchronization

/// Reads every page of both databases, free ones too, one pass after the other, so that damage is found before anybody asks for
/// what is on it.
///
/// Pages are read as they are on disk, beside everything that reads and writes. One that is not as it was written may be half
/// written or lie in the log only; it is looked at again once all of the log was moved, while nothing is written.
final class PageScrub: @unchecked Sendable {
    // @unchecked is sound because everything mutable is touched only while `lock` is held.
    struct File {
        let writer: Connection
        /// Moves the log of `writer`; `nil` where its commits do.
        let mover: LogMover?
        let reader: Connection
        /// Pages that were not right when they were read, and not looked at again yet.
        fileprivate var suspects: Set<Int64> = []
        fileprivate var damaged: Set<Int64> = []

        init(writer: Connection, mover: LogMover? = nil, reader: Connection) {
            self.writer = writer
            self.mover = mover
            self.reader = reader
        }

        /// - Returns: Whether all of the log is in the database.
        fileprivate func moveWholeLog() throws -> Bool {
            try mover?.pausing { try writer.moveWholeLog() } ?? writer.moveWholeLog()
        }
    }

    private let lock = NSLock()
    private var files: [File]
    private let damages: DamageLog
    private let place: PassPlace
    private var file: Int
    private var next: Int64
    private let progress = Mutex(PageCheck())

    /// - Parameter directory: Keeps how far the pass is, for the next process.
    init(_ files: [File], damages: DamageLog, directory: String) {
        self.files = files
        self.damages = damages
        place = PassPlace(in: directory, "scrub-place")
        (file, next) = place.read().map { (Int($0), $1) } ?? (0, 1)
        if !files.indices.contains(file) || next < 1 { (file, next) = (0, 1) }
    }

    var state: PageCheck { progress.withLock { $0 } }

    func close() {
        for file in files { file.reader.close() }
    }

    /// Reads the next pages, so many at most.
    ///
    /// - Returns: Whether that was the end of a pass.
    func advance(pageCountMax: Int) throws -> Bool {
        try lock.withLock {
            defer { place.write(Int64(file), next) }
            for index in files.indices { try recheckSuspects(of: index) }
            var left = Int64(pageCountMax)
            while left > 0 {
                let count = try read(&left)
                guard next > count else { continue }
                try recheckSuspects(of: file)
                next = 1
                file = (file + 1) % files.count
                guard file == 0 else { continue }
                progress.withLock { $0.passCount += 1 }
                return true
            }
            return false
        }
    }

    /// - Returns: How many pages the file has.
    private func read(_ left: inout Int64) throws -> Int64 {
        let reader = files[file].reader
        return try reader.exclusively {
            let count = try reader.pageCountOnDisk()
            let end = max(min(next + left, count + 1), next)
            let wrong = try reader.wrongPages(next..<end).map(\.number)
            files[file].suspects.formUnion(wrong.filter { !files[file].damaged.contains($0) })
            progress.withLock { $0.checkedPageCount += end - next }
            // A look at the end of a file counts, so that every call ends.
            left -= max(end - next, 1)
            next = end
            // A file that was cut off has pages that no read of it meets.
            let pageCount = try reader.databasePageCount()
            if next > count, pageCount > count, !files[file].damaged.contains(pageCount) {
                files[file].suspects.insert(pageCount)
            }
            return count
        }
    }

    /// Looks at suspects again, when all of the log is in the database and nothing is being written.
    private func recheckSuspects(of index: Int) throws {
        let suspects = files[index].suspects
        guard !suspects.isEmpty else { return }
        let writer = files[index].writer
        try writer.exclusively {
            do {
                // Else a reader of an older snapshot is in the way, or a transaction; the next call tries again.
                guard try files[index].moveWholeLog() else { return }
            } catch StoreError.unavailable {
                // A full disk.
                return
            }
            let pageCount = try writer.databasePageCount()
            for number in suspects.sorted() where number <= pageCount {
                guard let (_, what) = try writer.wrongPages(number..<number + 1).first else { continue }
                files[index].damaged.insert(number)
                damages.note(StoredDamage(table: "\(writer.file) page \(number)", row: nil, what: what))
            }
            files[index].suspects = []
        }
    }
}
