import CSQLite
import Glibc

/// The files of one connection, between SQLite and its file system: no page of the database without its code (``PageCode``), and
/// no frame of the log without its checksum, gets past it.
///
/// SQLite looks at a frame's checksum when it recovers a log, and never again. Here each page that is read from the log is held
/// against it, above all when a checkpoint moves the page: else a bit that flipped in the log would get a right code.
///
/// - Sizes are constants: of what the first page says, only that it says them is looked at.
/// - No mapping into memory and no growth in pieces, which would go past it or leave pages without a code.
/// - `cache_spill` is off, because SQLite writes the frames of a transaction that does not fit into memory with checksums that it
///   puts right at the commit.
final class PageFile: @unchecked Sendable {
    // @unchecked is sound because SQLite calls it within calls of the connection's owner, which `Connection.exclusively` keeps to one
    // thread at a time. The one call beside them, `xSync` of the log, touches nothing of this.
    private let keys: PageKeys
    private var code: PageCode
    /// Where a page is read to of which SQLite wants a part.
    private let page = UnsafeMutableRawPointer.allocate(byteCount: PageCode.pageByteCount, alignment: 16)
    private let frame = UnsafeMutableRawPointer.allocate(
        byteCount: WriteAheadLog.checkedByteCountMax, alignment: 16)
    /// What the newest refused read found; taken by who reports the failure.
    private var damage: String?
    /// Behind the newest commit that this connection wrote, or that its log had when it was opened.
    var logEnd: LogEnd

    /// - Parameter logEnd: Where the log's recovery ends.
    init(_ keys: PageKeys, logEnd: LogEnd) throws {
        self.keys = keys
        self.logEnd = logEnd
        code = try PageCode(keys)
    }

    deinit {
        page.deallocate()
        frame.deallocate()
    }

    /// What the last refused read found, once.
    func takeDamage() -> String? {
        defer { damage = nil }
        return damage
    }

    private func refuse(_ what: String) -> Int32 {
        damage = what
        // A statement that meets it fails alone, as where SQLite itself finds a page unsound. An I/O error would end its transaction.
        return SQLITE_CORRUPT
    }

    // MARK: The database

    /// Bytes at the start of the file that SQLite also reads without a lock, before the log's recovery may have healed the page.
    static let headerByteCount = 100

    /// Whether a first page has the layout of this build: pages of 2,048 bytes, of which 16 are for the code.
    static func hasLayout(_ header: UnsafeRawPointer) -> Bool {
        let size = UInt16(bigEndian: header.loadUnaligned(fromByteOffset: 16, as: UInt16.self))
        return Int(size) == PageCode.pageByteCount
            && header.load(fromByteOffset: 20, as: UInt8.self) == UInt8(PageCode.byteCount)
    }

    /// Reads a part of the header, of which only the layout is looked at.
    fileprivate static func readHeader(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ out: UnsafeMutableRawPointer, _ count: Int32,
        _ offset: Int64
    ) -> Int32 {
        let code = file.read(out, count, offset)
        guard code == SQLITE_OK, offset == 0, count > 20, !hasLayout(out) else { return code }
        return SQLITE_CORRUPT
    }

    fileprivate func read(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ out: UnsafeMutableRawPointer, _ count: Int32,
        _ offset: Int64
    ) -> Int32 {
        let size = Int64(PageCode.pageByteCount)
        if Int64(count) == size, offset % size == 0 { return readPage(file, out, number: offset / size + 1) }
        if offset + Int64(count) <= Int64(Self.headerByteCount) {
            let code = Self.readHeader(file, out, count, offset)
            return code == SQLITE_CORRUPT ? refuse("page 1 of `\(keys.file)` says another layout") : code
        }
        let start = offset - offset % size
        guard offset + Int64(count) <= start + size else { return SQLITE_IOERR }
        let code = readPage(file, page, number: start / size + 1)
        if code == SQLITE_OK {
            out.copyMemory(from: page + Int(offset - start), byteCount: Int(count))
        }
        return code
    }

    private func readPage(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ out: UnsafeMutableRawPointer, number: Int64
    ) -> Int32 {
        let code = file.read(
            out, Int32(PageCode.pageByteCount), (number - 1) * Int64(PageCode.pageByteCount))
        guard code == SQLITE_OK else {
            guard code == Self.shortRead else { return code }
            // A new file has no page yet.
            if number == 1, file.byteCount == 0 { return code }
            return refuse("`\(keys.file)` ends before its page \(number)")
        }
        return self.code.isRight(out, number: number)
            ? SQLITE_OK : refuse("page \(number) of `\(keys.file)` is not as it was written")
    }

    fileprivate func write(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ bytes: UnsafeRawPointer, _ count: Int32, _ offset: Int64
    ) -> Int32 {
        let size = Int64(PageCode.pageByteCount)
        guard Int64(count) == size, offset % size == 0, offset > 0 || Self.hasLayout(bytes) else {
            return SQLITE_IOERR
        }
        return file.write(code.coded(bytes, number: offset / size + 1), count, offset)
    }

    // MARK: The log

    fileprivate func readLog(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ out: UnsafeMutableRawPointer, _ count: Int32,
        _ offset: Int64
    ) -> Int32 {
        guard Int(count) == PageCode.pageByteCount, let number = WriteAheadLog.frame(ofPageAt: offset) else {
            // The header, and whole frames, which SQLite holds against their checksums itself.
            return file.read(out, count, offset)
        }
        let bytes = WriteAheadLog.bytesToCheck(frame: number)
        let code = file.read(frame, Int32(bytes.count), bytes.offset)
        guard code == SQLITE_OK else {
            return code == Self.shortRead
                ? refuse("`\(keys.file)-wal` ends before its frame \(number + 1)") : code
        }
        guard WriteAheadLog.isRight(frameIn: frame, count: bytes.count) else {
            return refuse("frame \(number + 1) of `\(keys.file)-wal` is not as it was written")
        }
        out.copyMemory(from: frame + (bytes.count - PageCode.pageByteCount), byteCount: Int(count))
        return SQLITE_OK
    }

    fileprivate func writeLog(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ bytes: UnsafeRawPointer, _ count: Int32, _ offset: Int64
    ) -> Int32 {
        let code = file.write(bytes, count, offset)
        guard code == SQLITE_OK, Int(count) == WriteAheadLog.frameHeadByteCount,
            let number = WriteAheadLog.frame(ofPageAt: offset + Int64(count)),
            let end = WriteAheadLog.end(ofCommitIn: bytes, frame: number)
        else { return code }
        logEnd = end
        return code
    }

    /// SQLITE_IOERR_SHORT_READ, a macro with a shift in it, which does not import.
    private static let shortRead = SQLITE_IOERR | 2 << 8
}

extension UnsafeMutablePointer<sqlite3_file> {
    fileprivate func read(_ out: UnsafeMutableRawPointer, _ count: Int32, _ offset: Int64) -> Int32 {
        pointee.pMethods.pointee.xRead(self, out, count, offset)
    }

    fileprivate func write(_ bytes: UnsafeRawPointer, _ count: Int32, _ offset: Int64) -> Int32 {
        pointee.pMethods.pointee.xWrite(self, bytes, count, offset)
    }

    fileprivate var byteCount: Int64 {
        var count: Int64 = 0
        return pointee.pMethods.pointee.xFileSize(self, &count) == SQLITE_OK ? count : -1
    }
}

/// SQLite's interface to files (sqlite.org/vfs.html) with a ``PageFile`` in it, over the process's default one.
enum PageFiles {
    static let name = "sendgate-pages"

    /// What SQLite has of an open file: this, and behind it the file of the layer below.
    private struct Head {
        var base: sqlite3_file
        /// Retained in the database's file, and not in that of its log, which closes first.
        var pages: Unmanaged<PageFile>?
    }
    private static let headByteCount = (MemoryLayout<Head>.size + 15) / 16 * 16

    /// The layer below, which may be another at each opening.
    private static var lower: UnsafeMutablePointer<sqlite3_vfs> { sqlite3_vfs_find(nil) }

    /// Registered once, before the first connection is opened.
    static let isRegistered: Bool = {
        let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        vfs.initialize(to: lower.pointee)
        vfs.pointee.pNext = nil
        vfs.pointee.zName = UnsafePointer(strdup(name))
        vfs.pointee.szOsFile += Int32(headByteCount)
        // All others look at no file, and are given to the layer below by being its own.
        vfs.pointee.xOpen = { _, name, file, flags, found in open(name, file!, flags, found) }
        vfs.pointee.xDelete = { _, name, synchronize in lower.pointee.xDelete(lower, name, synchronize) }
        return sqlite3_vfs_register(vfs, 0) == SQLITE_OK
    }()

    /// Gives the open database its pages, before anything but its layout was read.
    static func attach(_ pages: PageFile, to handle: OpaquePointer) -> Int32 {
        var file: UnsafeMutablePointer<sqlite3_file>?
        let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file)
        guard code == SQLITE_OK, let file else { return code }
        head(file).pointee.pages = .passRetained(pages)
        // Read back by SQLite when it makes the first page.
        var byteCount = Int32(PageCode.byteCount)
        return sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &byteCount)
    }

    private static func head(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<Head> {
        UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self)
    }

    @inline(__always)
    private static func below(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<
        sqlite3_file
    > {
        (UnsafeMutableRawPointer(file!) + headByteCount).assumingMemoryBound(to: sqlite3_file.self)
    }

    @inline(__always)
    private static func methods(_ file: UnsafeMutablePointer<sqlite3_file>?) -> sqlite3_io_methods {
        below(file).pointee.pMethods.pointee
    }

    @inline(__always)
    private static func withPages(
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ body: (PageFile, UnsafeMutablePointer<sqlite3_file>) -> Int32
    ) -> Int32 {
        // Without keys nothing is read or written.
        guard let file, let pages = head(file).pointee.pages else { return SQLITE_IOERR }
        return pages._withUnsafeGuaranteedRef { body($0, below(file)) }
    }

    private static func open(
        _ name: sqlite3_filename?, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
        _ found: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        let lower = lower
        let isDatabase = flags & SQLITE_OPEN_MAIN_DB != 0
        guard isDatabase || flags & SQLITE_OPEN_WAL != 0 else {
            // Journals and what lies in memory.
            return lower.pointee.xOpen(lower, name, file, flags, found)
        }
        let head = head(file)
        head.initialize(to: Head(base: sqlite3_file(pMethods: nil), pages: nil))
        if !isDatabase, let database = sqlite3_database_file_object(name) {
            head.pointee.pages = self.head(database).pointee.pages
        }
        let code = lower.pointee.xOpen(lower, name, below(file), flags, found)
        if code == SQLITE_OK { file.pointee.pMethods = UnsafePointer(isDatabase ? database : log) }
        return code
    }

    // nonisolated(unsafe) is sound because a table is made once and then only read.
    nonisolated(unsafe) private static let database = table { table in
        table.xRead = { file, out, count, offset in
            // SQLite reads the header while it opens the file, before ``attach(_:to:)``.
            if head(file!).pointee.pages == nil, offset + Int64(count) <= Int64(PageFile.headerByteCount) {
                return PageFile.readHeader(below(file), out!, count, offset)
            }
            return withPages(file) { $0.read($1, out!, count, offset) }
        }
        table.xWrite = { file, bytes, count, offset in
            withPages(file) { $0.write($1, bytes!, count, offset) }
        }
        table.xClose = { file in
            let code = methods(file).xClose(below(file))
            head(file!).pointee.pages?.release()
            return code
        }
    }
    // The same.
    nonisolated(unsafe) private static let log = table { table in
        table.xRead = { file, out, count, offset in
            withPages(file) { $0.readLog($1, out!, count, offset) }
        }
        table.xWrite = { file, bytes, count, offset in
            withPages(file) { $0.writeLog($1, bytes!, count, offset) }
        }
        table.xClose = { PageFiles.methods($0).xClose(PageFiles.below($0)) }
    }

    private static func table(_ fill: (inout sqlite3_io_methods) -> Void) -> UnsafeMutablePointer<
        sqlite3_io_methods
    > {
        var table = sqlite3_io_methods()
        // Of the second version, which has no way to map the file.
        table.iVersion = 2
        table.xTruncate = { PageFiles.methods($0).xTruncate(PageFiles.below($0), $1) }
        table.xSync = { PageFiles.methods($0).xSync(PageFiles.below($0), $1) }
        table.xFileSize = { PageFiles.methods($0).xFileSize(PageFiles.below($0), $1) }
        table.xLock = { PageFiles.methods($0).xLock(PageFiles.below($0), $1) }
        table.xUnlock = { PageFiles.methods($0).xUnlock(PageFiles.below($0), $1) }
        table.xCheckReservedLock = { PageFiles.methods($0).xCheckReservedLock(PageFiles.below($0), $1) }
        table.xFileControl = { file, operation, argument in
            operation == SQLITE_FCNTL_CHUNK_SIZE || operation == SQLITE_FCNTL_MMAP_SIZE
                ? SQLITE_NOTFOUND
                : PageFiles.methods(file).xFileControl(PageFiles.below(file), operation, argument)
        }
        table.xSectorSize = { PageFiles.methods($0).xSectorSize(PageFiles.below($0)) }
        table.xDeviceCharacteristics = {
            PageFiles.methods($0).xDeviceCharacteristics(PageFiles.below($0)) & ~PageFiles.readsOfParts
        }
        table.xShmMap = { PageFiles.methods($0).xShmMap(PageFiles.below($0), $1, $2, $3, $4) }
        table.xShmLock = { PageFiles.methods($0).xShmLock(PageFiles.below($0), $1, $2, $3) }
        table.xShmBarrier = { PageFiles.methods($0).xShmBarrier(PageFiles.below($0)) }
        table.xShmUnmap = { PageFiles.methods($0).xShmUnmap(PageFiles.below($0), $1) }
        fill(&table)
        let kept = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        kept.initialize(to: table)
        return kept
    }

    /// SQLITE_IOCAP_SUBPAGE_READ, which SQLite 3.48 and newer have.
    private static let readsOfParts: Int32 = 0x8000
}
