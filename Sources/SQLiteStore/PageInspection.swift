package import GateSteps
import Glibc
package import OpenSSLCrypto

/// Holds every page of the databases of a stopped gateway against its code, free ones too, as they lie on the disk: also where
/// SQLite cannot open a database any more. No byte of them changes.
///
/// A page that the log has is not looked at: it may be half written, and the next start writes it anew. Whether all of the log is
/// there is what its mark says (``LogMark``).
package enum PageInspection {
    /// With more, a list helps no more: the remedy is a backup.
    private static let namedCountMax = 256

    /// - Parameters:
    ///   - path: The state directory.
    ///   - index: What users are looked up under, of which the pages' keys are made.
    /// - Returns: What is damaged: one for each page, but for those beyond 256 of a database.
    /// - Throws: ``StoreOpeningError``, also where there are no databases, and where nothing in them fits the key.
    package static func damages(in path: String, under index: HMACKey) throws -> [StoredDamage] {
        let directory = try StateDirectory(path: path, isReadOnly: true)
        defer { directory.unlock() }
        let schemas = [Schema.gate, .subjects]
        guard schemas.contains(where: { access("\(path)/\($0.file)", F_OK) == 0 }) else {
            throw StoreOpeningError.noDatabases(path: path)
        }
        for schema in schemas { try StateDirectory.requireKnownVersion(of: schema, in: path) }
        let files = try schemas.map {
            try inspect("\(path)/\($0.file)", PageKeys(index: index, file: $0.file))
        }
        // The key is right where anything fits it.
        if files.contains(where: \.hasForeign), !files.contains(where: \.hasOwn) {
            for schema in schemas { try directory.requireLayout(of: schema) }
            throw StoreOpeningError.wrongIndexKey
        }
        return files.flatMap(\.damages)
    }

    /// What was found of one database.
    private struct File {
        var damages: [StoredDamage] = []
        /// Whether a page, or the mark of the log, has the code that it has under the key.
        var hasOwn = false
        /// Whether one has another code.
        var hasForeign = false
    }

    private static func inspect(_ path: String, _ keys: PageKeys) throws -> File {
        func damage(_ what: String) -> StoredDamage { StoredDamage(table: keys.file, row: nil, what: what) }
        var found = File()
        var log = WriteAheadLog.Pages()
        let mark = try LogMark(besides: path, keys: keys, isReadOnly: true)
        if let isOwn = mark.isOwn { (found.hasOwn, found.hasForeign) = (isOwn, !isOwn) }
        do {
            log = try WriteAheadLog.pages(of: path + "-wal", to: mark.settle())
        } catch let error as StoreOpeningError {
            guard case .logDamaged = error else { throw error }
            found.damages.append(damage("\(error)"))
        }
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else {
            guard errno == ENOENT else {
                throw StoreOpeningError.system(operation: "open", path: path, code: errno)
            }
            found.damages.append(damage("the file is missing"))
            return found
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw StoreOpeningError.notARegularFile(path: path)
        }
        let (onDisk, pageCount) = try inspectPages(of: file, Int64(status.st_size), log, keys, &found)
        if onDisk == 0, log.numbers.isEmpty {
            found.damages.append(damage("the file is empty"))
        } else if (onDisk..<max(pageCount, onDisk)).contains(where: { !log.numbers.contains($0 + 1) }) {
            found.damages.append(damage("`\(keys.file)` ends after page \(onDisk) of \(pageCount)"))
        }
        return found
    }

    /// - Parameter byteCount: Of the file.
    /// - Returns: How many pages the file has, and how many the database is to have; 0 where that is not known.
    private static func inspectPages(
        of file: Int32, _ byteCount: Int64, _ log: WriteAheadLog.Pages, _ keys: PageKeys,
        _ found: inout File
    ) throws -> (onDisk: Int64, pageCount: Int64) {
        let size = Int64(PageCode.pageByteCount)
        let onDisk = (byteCount + size - 1) / size
        var pageCount = log.databasePageCount
        var code = try PageCode(keys)
        var wrongCount = 0
        let page = UnsafeMutableRawPointer.allocate(byteCount: PageCode.pageByteCount, alignment: 16)
        defer { page.deallocate() }
        for number in 1..<onDisk + 1 where number != PageCode.lockBytePage && !log.numbers.contains(number) {
            var count = -1
            repeat {
                count = pread(file, page, PageCode.pageByteCount, Int((number - 1) * size))
            } while count < 0 && errno == EINTR
            let what: String
            if count < 0 {
                what = "it cannot be read: look at the disk and the kernel's log (\(errno))"
            } else if count < PageCode.pageByteCount {
                what = "`\(keys.file)` ends in the middle of it"
            } else if code.isRight(page, number: number) {
                found.hasOwn = true
                // The size of the database, which every commit writes (file format, section 1.3.7).
                if number == 1, pageCount == 0 {
                    pageCount = Int64(
                        UInt32(bigEndian: page.loadUnaligned(fromByteOffset: 28, as: UInt32.self)))
                }
                continue
            } else {
                found.hasForeign = true
                what = "page \(number) of `\(keys.file)` is not as it was written"
            }
            wrongCount += 1
            guard wrongCount <= namedCountMax else { continue }
            found.damages.append(
                StoredDamage(table: "\(keys.file) page \(number)", row: nil, what: what))
        }
        if wrongCount > namedCountMax {
            found.damages.append(
                StoredDamage(
                    table: keys.file, row: nil,
                    what: "\(wrongCount - namedCountMax) further pages are not as they were written"))
        }
        return (onDisk, pageCount)
    }

    /// Whether the first page in a file has the code that it has under these keys.
    ///
    /// - Warning: As for ``StateDirectory/prepareFile(_:)``.
    static func isFirstPageRight(of path: String, _ keys: PageKeys) throws -> Bool {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { return false }
        defer { close(file) }
        var code = try PageCode(keys)
        return withUnsafeTemporaryAllocation(byteCount: PageCode.pageByteCount, alignment: 16) { page in
            pread(file, page.baseAddress!, page.count, 0) == page.count
                && code.isRight(page.baseAddress!, number: 1)
        }
    }
}
