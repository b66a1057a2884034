import CSQLite
import Glibc

/// A place in a write-ahead log: behind the last frame of a commit.
struct LogEnd: Equatable, Sendable {
    /// What the frames of one log have in common; another log in the same file has others. As they lie in the file.
    var salts: UInt64 = 0
    var frameCount: Int64 = 0
    /// Of the last frame. Each frame's checksum goes on from that of the one before it, so this one stands for all.
    var checksum: UInt64 = 0
}

/// The layout of a write-ahead log (sqlite.org/fileformat2.html, section 4), of pages of ``PageCode/pageByteCount`` bytes, written
/// by a little-endian machine.
///
///     header: magic ‖ version ‖ page size ‖ sequence ‖ salts[8] ‖ checksum[8]             32 bytes
///     frame:  page number ‖ pages of the database, or 0 ‖ salts[8] ‖ checksum[8] ‖ page   24 and 2,048 bytes
enum WriteAheadLog {
    static let headerByteCount = 32
    static let frameHeadByteCount = 24
    static let frameByteCount = frameHeadByteCount + PageCode.pageByteCount
    /// Of checksums over words of little-endian machines.
    private static let magic: UInt32 = 0x377f_0682
    private static let saltsOffset = (header: 16, frame: 8)
    private static let checksumOffset = (header: 24, frame: 16)
    private static let pageSizeOffset = 8
    private static let databaseSizeOffset = 4

    static func offset(ofFrame index: Int64) -> Int64 {
        Int64(headerByteCount) + index * Int64(frameByteCount)
    }

    /// The frame whose page begins at `offset`; `nil` where none does.
    static func frame(ofPageAt offset: Int64) -> Int64? {
        let start = offset - Int64(headerByteCount + frameHeadByteCount)
        guard start >= 0, start % Int64(frameByteCount) == 0 else { return nil }
        return start / Int64(frameByteCount)
    }

    /// SQLite's running checksum: two sums, in the byte order in which they lie in the file.
    struct Checksum {
        private var first: UInt32
        private var second: UInt32

        init(stored: UInt64) {
            first = UInt32(truncatingIfNeeded: stored).byteSwapped
            second = UInt32(truncatingIfNeeded: stored >> 32).byteSwapped
        }

        var stored: UInt64 { UInt64(first.byteSwapped) | UInt64(second.byteSwapped) << 32 }

        /// - Parameter byteCount: A multiple of eight.
        mutating func add(_ bytes: UnsafeRawPointer, byteCount: Int) {
            var (one, two) = (first, second)
            var place = 0
            while place < byteCount {
                one &+=
                    UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)) &+ two
                two &+=
                    UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place + 4, as: UInt32.self))
                    &+ one
                place += 8
            }
            (first, second) = (one, two)
        }

        /// Adds a frame: the first eight bytes of its head, and its page.
        mutating func add(head: UnsafeRawPointer, page: UnsafeRawPointer) {
            add(head, byteCount: 8)
            add(page, byteCount: PageCode.pageByteCount)
        }
    }

    /// The salts and the checksum of a header; `nil` where it is not one.
    static func start(_ header: UnsafeRawPointer) -> LogEnd? {
        var checksum = Checksum(stored: 0)
        checksum.add(header, byteCount: checksumOffset.header)
        let found = header.loadUnaligned(fromByteOffset: checksumOffset.header, as: UInt64.self)
        guard UInt32(bigEndian: header.loadUnaligned(as: UInt32.self)) == magic,
            UInt32(bigEndian: header.loadUnaligned(fromByteOffset: pageSizeOffset, as: UInt32.self))
                == UInt32(PageCode.pageByteCount), found == checksum.stored
        else { return nil }
        return LogEnd(
            salts: header.loadUnaligned(fromByteOffset: saltsOffset.header, as: UInt64.self), checksum: found)
    }

    /// Where the log ends once a frame was written, if that is the last of a commit.
    static func end(ofCommitIn head: UnsafeRawPointer, frame: Int64) -> LogEnd? {
        guard head.loadUnaligned(fromByteOffset: databaseSizeOffset, as: UInt32.self) != 0 else { return nil }
        return LogEnd(
            salts: head.loadUnaligned(fromByteOffset: saltsOffset.frame, as: UInt64.self),
            frameCount: frame + 1,
            checksum: head.loadUnaligned(fromByteOffset: checksumOffset.frame, as: UInt64.self))
    }

    /// Bytes from the checksum before a frame's head to the end of its page, and where they begin in the file: one read has all
    /// that the frame is held against.
    static func bytesToCheck(frame: Int64) -> (offset: Int64, count: Int) {
        let start =
            frame == 0
            ? Int64(checksumOffset.header) : offset(ofFrame: frame - 1) + Int64(checksumOffset.frame)
        return (start, Int(offset(ofFrame: frame + 1) - start))
    }
    static let checkedByteCountMax = frameByteCount + frameHeadByteCount + PageCode.pageByteCount

    /// - Parameter bytes: As many as ``bytesToCheck(frame:)`` says.
    static func isRight(frameIn bytes: UnsafeRawPointer, count: Int) -> Bool {
        let head = bytes + (count - frameByteCount)
        var checksum = Checksum(stored: bytes.loadUnaligned(as: UInt64.self))
        checksum.add(head: head, page: head + frameHeadByteCount)
        return checksum.stored == head.loadUnaligned(fromByteOffset: checksumOffset.frame, as: UInt64.self)
    }

    /// Pages that a log has.
    struct Pages {
        var numbers: Set<Int64> = []
        /// Of the database with the log's pages in it; 0 where the log has none.
        var databasePageCount: Int64 = 0
    }

    /// - Parameter end: Where the log ends, which was read before.
    /// - Throws: ``StoreOpeningError`` where the file cannot be read.
    static func pages(of path: String, to end: LogEnd) throws -> Pages {
        var pages = Pages()
        guard end.frameCount > 0 else { return pages }
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { throw StoreOpeningError.system(operation: "open", path: path, code: errno) }
        defer { close(file) }
        for index in 0..<end.frameCount {
            var head: (number: UInt32, databaseSize: UInt32) = (0, 0)
            guard pread(file, &head, 8, Int(offset(ofFrame: index))) == 8 else {
                throw StoreOpeningError.system(operation: "read", path: path, code: errno)
            }
            pages.numbers.insert(Int64(UInt32(bigEndian: head.number)))
            // Not zero in the last frame of a commit.
            if head.databaseSize != 0 {
                pages.databasePageCount = Int64(UInt32(bigEndian: head.databaseSize))
            }
        }
        return pages
    }

    /// What is in a log's file.
    struct Content: Equatable {
        /// `nil` where the header is none.
        var salts: UInt64?
        /// Where SQLite ends its recovery: behind the last commit all of whose frames are right.
        var end = LogEnd()
        /// The last frame with the first page of the database that a commit wrote; `nil` where none did.
        var firstPage: Int64?
        /// The checksum after the frame that was asked for, where the log goes on so far.
        var markedChecksum: UInt64?
        var byteCount: Int64 = 0
    }

    /// Reads a log as SQLite's recovery does.
    ///
    /// - Parameters:
    ///   - file: A descriptor of it.
    ///   - markedFrameCount: The number of frames after which the checksum is asked for.
    /// - Returns: `nil` when it cannot be read.
    static func content(of file: Int32, markedFrameCount: Int64) -> Content? {
        var status = stat()
        guard fstat(file, &status) == 0 else { return nil }
        var content = Content(byteCount: Int64(status.st_size))
        let framesPerPiece = 256
        let buffer = UnsafeMutableRawPointer.allocate(
            byteCount: framesPerPiece * frameByteCount, alignment: 16)
        defer { buffer.deallocate() }
        /// How many whole frames, or headers, there are at a place.
        func read(_ count: Int, at offset: Int64) -> Int? {
            var done = 0
            while done < count {
                let got = pread(file, buffer + done, count - done, Int(offset) + done)
                if got < 0, errno == EINTR { continue }
                guard got >= 0 else { return nil }
                if got == 0 { break }
                done += got
            }
            return done
        }
        guard let headerCount = read(headerByteCount, at: 0) else { return nil }
        guard headerCount == headerByteCount, let start = start(buffer) else { return content }
        content.salts = start.salts
        content.end = start
        if markedFrameCount == 0 { content.markedChecksum = start.checksum }
        var checksum = Checksum(stored: start.checksum)
        var index: Int64 = 0
        var uncommittedFirstPage: Int64?
        while true {
            guard let byteCount = read(framesPerPiece * frameByteCount, at: offset(ofFrame: index)) else {
                return nil
            }
            for place in 0..<byteCount / frameByteCount {
                let head = UnsafeRawPointer(buffer + place * frameByteCount)
                checksum.add(head: head, page: head + frameHeadByteCount)
                let salts = head.loadUnaligned(fromByteOffset: saltsOffset.frame, as: UInt64.self)
                let found = head.loadUnaligned(fromByteOffset: checksumOffset.frame, as: UInt64.self)
                // No page has the number 0.
                guard salts == start.salts, found == checksum.stored,
                    head.loadUnaligned(as: UInt32.self) != 0
                else { return content }
                if head.loadUnaligned(as: UInt32.self) == UInt32(1).bigEndian { uncommittedFirstPage = index }
                if let end = end(ofCommitIn: head, frame: index) {
                    content.end = end
                    content.firstPage = uncommittedFirstPage
                }
                index += 1
                if index == markedFrameCount { content.markedChecksum = found }
            }
            guard byteCount == framesPerPiece * frameByteCount else { return content }
        }
    }
}
