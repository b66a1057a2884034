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
    /// - Throws: ``StoreOpeningError``, also where there are no databases, and where not one page is right.
    package static func damages(in path: String, under index: HMACKey) throws -> [StoredDamage] {
        let directory = try StateDirectory(path: path, isReadOnly: true)
        defer { directory.unlock() }
        let schemas = [Schema.gate, .subjects]
        guard schemas.contains(where: { access("\(path)/\($0.file)", F_OK) == 0 }) else {
            throw StoreOpeningError.noDatabases(path: path)
        }
        var damages: [StoredDamage] = []
        var rightCount: Int64 = 0
        for schema in schemas {
            let found = try inspect("\(path)/\(schema.file)", PageKeys(index: index, file: schema.file))
            rightCount += found.rightCount
            damages += found.damages
        }
        if rightCount == 0, !damages.isEmpty {
            for schema in schemas { try directory.requireLayout(of: schema) }
            throw StoreOpeningError.wrongIndexKey
        }
        return damages
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

    private static func inspect(
        _ path: String, _ keys: PageKeys
    ) throws -> (rightCount: Int64, damages: [StoredDamage]) {
        func damage(_ what: String, page: Int64? = nil) -> StoredDamage {
            StoredDamage(table: page.map { "\(keys.file) page \($0)" } ?? keys.file, row: nil, what: what)
        }
        var damages: [StoredDamage] = []
        var log = WriteAheadLog.Pages()
        do {
            let end = try LogMark(besides: path, keys: keys, isReadOnly: true).settle()
            log = try WriteAheadLog.pages(of: path + "-wal", to: end)
        } catch let error as StoreOpeningError {
            guard case .logDamaged = error else { throw error }
            damages.append(damage("\(error)"))
        }
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else {
            guard errno == ENOENT else {
                throw StoreOpeningError.system(operation: "open", path: path, code: errno)
            }
            return (0, damages + [damage("the file is missing")])
        }
        defer { close(file) }
        var code = try PageCode(keys)
        var wrong: [StoredDamage] = []
        var (number, rightCount, wrongCount) = (Int64(0), Int64(0), Int64(0))
        var pageCount = log.databasePageCount
        let page = UnsafeMutableRawPointer.allocate(byteCount: PageCode.pageByteCount, alignment: 16)
        defer { page.deallocate() }
        func note(_ what: String) {
            wrongCount += 1
            if wrong.count < namedCountMax { wrong.append(damage(what, page: number)) }
        }
        while true {
            let count = pread(file, page, PageCode.pageByteCount, Int(number) * PageCode.pageByteCount)
            if count < 0, errno == EINTR { continue }
            if count == 0 { break }
            number += 1
            guard number != PageCode.lockBytePage, !log.numbers.contains(number) else { continue }
            if count < 0 {
                note("it cannot be read: look at the disk and the kernel's log (\(errno))")
            } else if count < PageCode.pageByteCount {
                note("`\(keys.file)` ends in the middle of it")
            } else if code.isRight(page, number: number) {
                rightCount += 1
                // The size of the database, which every commit writes (file format, section 1.3.7).
                if number == 1, pageCount == 0 {
                    pageCount = Int64(
                        UInt32(bigEndian: page.loadUnaligned(fromByteOffset: 28, as: UInt32.self)))
                }
            } else {
                note("page \(number) of `\(keys.file)` is not as it was written")
            }
        }
        if wrongCount > Int64(wrong.count) {
            wrong.append(
                damage("\(wrongCount - Int64(wrong.count)) further pages are not as they were written"))
        }
        let last = (1...max(pageCount, 1)).last { !log.numbers.contains($0) } ?? 0
        if number < last || number == 0 && log.numbers.isEmpty {
            wrong.append(
                damage(
                    number == 0
                        ? "the file is empty" : "`\(keys.file)` ends after page \(number) of \(pageCount)"))
        }
        return (rightCount, damages + wrong)
    }
}
