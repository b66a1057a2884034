import GateSteps
import Glibc
import OpenSSLCrypto
import Synchronization

/// What of a database's log was made durable, in a small file beside it: how far a log must reach that is found after the process
/// ended, however it ended.
///
/// SQLite's recovery takes a frame whose checksum is wrong for the end of the log, so one flipped bit would take back, without a
/// word, all that was answered since. The mark is written after each synchronization and before anything is answered.
///
///     "sg-mark1" ‖ boot id[16] ‖ salts[8] ‖ i64 frames ‖ checksum[8] ‖ HMAC-SHA256(M, the above)[16]      little-endian
///
/// The file itself is never synchronized: within one boot the kernel has what was written to it, and after another one, when what
/// the kernel had is gone, the mark says nothing. No frames means that all of the log is in the database.
final class LogMark: Sendable {
    static let suffix = "-mark"
    private static let label: StaticString = "sg-mark1"
    private static let byteCount = 64
    private static let codeByteCount = 16

    /// Which boot this is (`/proc/sys/kernel/random/boot_id`, random(4)); `nil` when it is not known, and then no mark counts.
    static let boot: [UInt8]? = {
        guard let file = fopen("/proc/sys/kernel/random/boot_id", "r") else { return nil }
        defer { fclose(file) }
        var text = [UInt8](repeating: 0, count: 36)
        guard fread(&text, 1, text.count, file) == text.count else { return nil }
        // Two hexadecimal digits a byte, in groups with hyphens between.
        let digits = text.compactMap { Character(Unicode.Scalar($0)).hexDigitValue.map(UInt8.init) }
        guard digits.count == 32 else { return nil }
        return stride(from: 0, to: 32, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }()

    private let path: String
    private let keys: PageKeys
    private let boot: [UInt8]?
    /// The open file; `nil` once it is closed, or where nothing may be written.
    private let file: Mutex<Int32?>

    /// - Parameter isReadOnly: Makes and writes nothing.
    /// - Throws: ``StoreOpeningError``.
    init(besides database: String, keys: PageKeys, isReadOnly: Bool = false, boot: [UInt8]? = LogMark.boot)
        throws
    {
        path = database + Self.suffix
        self.keys = keys
        self.boot = boot
        guard !isReadOnly else {
            file = Mutex(nil)
            return
        }
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else {
            if errno == ELOOP { throw StoreOpeningError.notARegularFile(path: path) }
            throw StoreOpeningError.system(operation: "open", path: path, code: errno)
        }
        file = Mutex(opened)
    }

    deinit { close() }

    func close() {
        file.withLock { file in
            if let file { Glibc.close(file) }
            file = nil
        }
    }

    // MARK: Writing

    /// Says how much of the log is durable.
    ///
    /// - Throws: `StoreError.lostDurability`: what is answered from here on would not be missed.
    func write(_ end: LogEnd) throws {
        guard let boot else { return }
        var bytes = Self.bytes(of: end, boot: boot)
        bytes += keys.mark.authenticate(bytes).prefix(Self.codeByteCount)
        let written = file.withLock { file in file.map { pwrite($0, bytes, bytes.count, 0) } ?? bytes.count }
        guard written == bytes.count else {
            throw StoreError.lostDurability(
                "`\(keys.file)\(Self.suffix)` could not be written: make room on the disk (\(String(cString: strerror(errno))))"
            )
        }
    }

    private static func bytes(of end: LogEnd, boot: [UInt8]) -> [UInt8] {
        var bytes = label.withUTF8Buffer { Array($0) } + boot
        for value in [end.salts, UInt64(bitPattern: end.frameCount), end.checksum] {
            withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
        }
        return bytes
    }

    /// What an earlier process of this boot made durable; `nil` where none did, or what it wrote cannot be read.
    func read() -> LogEnd? {
        guard let boot, case (let marked, isOwn: true)? = stored() else { return nil }
        func value(_ offset: Int) -> UInt64 {
            marked.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }.littleEndian
        }
        let end = LogEnd(salts: value(24), frameCount: Int64(bitPattern: value(32)), checksum: value(40))
        return marked == Self.bytes(of: end, boot: boot) ? end : nil
    }

    /// Whether the mark has its code under this key; `nil` where there is none.
    var isOwn: Bool? { stored()?.isOwn }

    private func stored() -> (marked: [UInt8], isOwn: Bool)? {
        let opened = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard opened >= 0 else { return nil }
        defer { Glibc.close(opened) }
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        guard pread(opened, &bytes, bytes.count, 0) == bytes.count else { return nil }
        let marked = Array(bytes.dropLast(Self.codeByteCount))
        let isOwn = HMACKey.constantTimeEqual(
            Array(bytes.suffix(Self.codeByteCount)),
            Array(keys.mark.authenticate(marked).prefix(Self.codeByteCount)))
        return (marked, isOwn)
    }

    // MARK: At the start

    /// Holds the log against the mark, before SQLite has opened it: requires all that is marked, and cuts off what comes behind,
    /// which nobody was answered.
    ///
    /// - Returns: Where the log ends.
    /// - Throws: ``StoreOpeningError``.
    func settle() throws -> LogEnd {
        let log = String(path.dropLast(Self.suffix.count)) + "-wal"
        let canWrite = file.withLock { $0 != nil }
        let opened = open(log, (canWrite ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW)
        defer { if opened >= 0 { Glibc.close(opened) } }
        guard opened >= 0 || errno == ENOENT else {
            throw StoreOpeningError.system(operation: "open", path: log, code: errno)
        }
        let mark = read()
        var found = WriteAheadLog.Content()
        if opened >= 0 {
            guard
                let content = WriteAheadLog.content(of: opened, markedFrameCount: mark?.frameCount ?? 0)
            else { throw StoreOpeningError.system(operation: "read", path: log, code: errno) }
            found = content
        }
        // After another boot, as much is there as the disk has kept, and the published trail says whether that is enough.
        guard let mark else { return found.end }
        var kept = LogEnd()
        if mark.frameCount > 0 {
            if found.salts == mark.salts {
                guard found.end.frameCount >= mark.frameCount, found.markedChecksum == mark.checksum else {
                    throw damaged(found.end.frameCount, mark)
                }
                kept = mark
            } else if found.salts.map({ Self.follows($0, mark.salts) }) != true {
                throw damaged(0, mark)
            }
            // The log began anew, which SQLite does when all of the one before is in the database; of this one nothing was
            // marked yet.
        }
        let byteCount = kept.frameCount > 0 ? WriteAheadLog.offset(ofFrame: kept.frameCount) : 0
        if opened >= 0, found.byteCount > byteCount, canWrite {
            guard ftruncate(opened, Int(byteCount)) == 0 else {
                throw StoreOpeningError.system(operation: "cut", path: log, code: errno)
            }
        }
        return kept
    }

    /// Whether a log with these salts is what SQLite begins after one with those: it counts the first salt up by one (file
    /// format, section 4.4). Any other log is another database's, or was put back.
    private static func follows(_ salts: UInt64, _ earlier: UInt64) -> Bool {
        func first(_ salts: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: salts.littleEndian).byteSwapped }
        return first(salts) == first(earlier) &+ 1
    }

    private func damaged(_ found: Int64, _ mark: LogEnd) -> StoreOpeningError {
        .logDamaged(file: keys.file + "-wal", frameCount: found, markedFrameCount: mark.frameCount)
    }
}
