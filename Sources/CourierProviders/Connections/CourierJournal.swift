package import CanonicalJSON
package import GateVocabulary
import Glibc
import NIOPosix
import Synchronization

/// What the courier must still know after it was killed: which texts and mails it began to hand over, which of Expo's tickets
/// have no receipt yet, when a webhook came first.
///
/// - Durability: ``commit(_:)`` returns when the changes are on the disk (`fdatasync`). Commits that arrive during a write share
///   the next one. A change of which the caller was not told is present after a restart, or absent.
/// - Ordering: Changes of one key take effect in the order of their commits.
/// - Bounds: Each prefix of keys (`expo/`, `once/`, `first/`) has a quota of its own, so none takes the room of another. The file
///   is rewritten without what has ended when more than half of it is dead, and takes no new entry above its limit.
///   Entries end by themselves at their ``Entry/keptUntil``.
/// - Errors: After ``JournalFault`` nothing of the commit is promised, and the next commit tries again on a new file.
package final class CourierJournal: Sendable {
    package struct Entry: Sendable, Hashable {
        package var value: JSONValue
        /// From then on the entry may be forgotten.
        package var keptUntil: Instant

        package init(_ value: JSONValue, keptUntil: Instant) {
            self.value = value
            self.keptUntil = keptUntil
        }
    }

    package enum Change: Sendable, Hashable {
        case put(String, Entry)
        case remove(String)
    }

    package struct Limits: Sendable, Hashable {
        /// Entries of one prefix that are kept at once: a day of texts. A prefix is what stands before the first `/` of a key.
        package var entryCountMax = 200_000
        /// Prefixes that have a quota of their own. Expo takes 600 pushes a second and has a receipt after 900 s, so 540,000
        /// tickets wait for theirs.
        package var entryCountMaxByPrefix = ["expo": 600_000]
        /// The file, in bytes: 600,000 tickets of some 180, as much again that is dead, and the others.
        package var byteCountMax = 512 * 1024 * 1024
        /// The value of one entry, in bytes of canonical JSON.
        package var valueBytesMax = 4096

        package init() {}

        func entryCountMax(of prefix: Substring) -> Int {
            entryCountMaxByPrefix[String(prefix)] ?? entryCountMax
        }
    }

    private struct State {
        var entries: [String: Entry] = [:]
        /// Number of ``entries`` by prefix.
        var counts: [Substring: Int] = [:]
        /// The earliest end of an entry, or a moment before it.
        var nextEnd = Instant(milliseconds: .max)
        /// Bytes of the lines that ``entries`` would take.
        var liveByteCount = 0
        var pending: [(changes: [Change], promise: CheckedContinuation<JournalFault?, Never>)] = []
        var isWriting = false
    }

    /// Only the one write that is under way touches it.
    private struct File {
        var descriptor: Int32 = -1
        var byteCount = 0
        /// Held while the journal is open; -1 after ``close()``.
        var lock: Int32
    }

    /// The version of the lines (SG-0083). From the second on, a journal begins with a line that says it; one that does not is of the
    /// first. Opening a journal writes it anew in the version of the build.
    static let version: Int64 = 1

    private let path: String
    private let limits: Limits
    private let now: @Sendable () -> Instant
    private let state: Mutex<State>
    private let file: Mutex<File>
    /// The damage that the file had when it was opened, for the log; `nil` when it had none.
    package let damage: Damage?

    package struct Damage: Sendable, Hashable {
        /// Lines that were torn, or do not fit their checksum.
        package var lineCount: Int
        /// Entries that are in force, from the lines around them.
        package var keptCount: Int
        /// The path of the damaged lines, kept as they stood; `nil` where they could not be written.
        package var copy: String?
    }

    /// Opens the journal, or makes it (0600). A damaged line is left out, and the valid ones around it are kept: an entry that
    /// was promised is never given up for one beside it that was not.
    ///
    /// - Throws: ``JournalFault``, also when another process has it open.
    package init(
        path: String, limits: Limits = Limits(), now: @escaping @Sendable () -> Instant
    ) throws(JournalFault) {
        self.path = path
        self.limits = limits
        self.now = now
        let lock = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0 else { throw .system(path: path, errorNumber: errno) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(lock)
            throw .inUse(path: path)
        }
        let bytes: [UInt8]
        do throws(JournalFault) {
            // Ends and changes of entries are written above the limit, too.
            bytes = try Self.read(path, byteCountMax: 2 * limits.byteCountMax)
        } catch {
            Glibc.close(lock)
            throw error
        }
        var (loaded, damaged) = (State(), [ArraySlice<UInt8>]())
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: true)
        if let version = lines.first.flatMap(JournalLine.version), version > Self.version {
            // Nothing was written: a journal that is damaged for this build is all that a newer one knows.
            Glibc.close(lock)
            throw .newer(path: path, version: version)
        }
        for line in lines {
            if let change = JournalLine.read(line) {
                Self.apply(change, to: &loaded)
            } else {
                damaged.append(line)
            }
        }
        // Crash point: the lines may be kept a second time by the next start, because the journal still has them.
        damage =
            damaged.isEmpty
            ? nil
            : Damage(
                lineCount: damaged.count, keptCount: loaded.entries.count,
                copy: Self.keep(damaged, at: path + ".damaged"))
        state = Mutex(loaded)
        // From here on the lock goes with the object.
        file = Mutex(File(lock: lock))
        try rewrite()
    }

    deinit { closeFiles() }

    /// Leaves the journal to another process. Every commit after it fails.
    package func close() async {
        // Behind every commit that is under way, whatever becomes of it.
        _ = await submit([])
        closeFiles()
    }

    private func closeFiles() {
        file.withLock { file in
            if file.descriptor >= 0 { Glibc.close(file.descriptor) }
            if file.lock >= 0 { Glibc.close(file.lock) }
            file = File(lock: -1)
        }
    }

    package subscript(_ key: String) -> Entry? { state.withLock { $0.entries[key] } }

    /// Every entry whose key begins so, in no order.
    package func entries(withPrefix prefix: String) -> [(key: String, entry: Entry)] {
        state.withLock { state in
            state.entries.filter { $0.key.hasPrefix(prefix) }.map { (key: $0.key, entry: $0.value) }
        }
    }

    /// Whether a new entry of the key's prefix would be taken.
    package func hasRoom(for key: String) -> Bool {
        let prefix = Self.prefix(key)
        endOverdue(prefix)
        return state.withLock { $0.counts[prefix, default: 0] } < limits.entryCountMax(of: prefix)
    }

    private static func prefix(_ key: String) -> Substring {
        key.firstIndex(of: "/").map { key[..<$0] } ?? ""
    }

    /// Forgets what has ended where a prefix is full. The file forgets it when it is rewritten.
    private func endOverdue(_ prefix: Substring) {
        let today = now()
        state.withLock { state in
            guard state.counts[prefix, default: 0] >= limits.entryCountMax(of: prefix), today >= state.nextEnd
            else { return }
            for (key, entry) in state.entries where today >= entry.keptUntil {
                Self.apply(.remove(key), to: &state)
            }
            // Not every commit looks through all of them.
            let next = state.entries.values.lazy.map(\.keptUntil).min() ?? Instant(milliseconds: .max)
            state.nextEnd = max(next, today.advanced(bySeconds: 1))
        }
    }

    /// Makes the changes durable, all of them.
    package func commit(_ changes: [Change]) async throws(JournalFault) {
        for case .put(let key, let entry) in changes {
            let byteCount = key.utf8.count + CanonicalJSON.write(entry.value).count
            guard byteCount <= limits.valueBytesMax else {
                throw .entryTooLong(byteCount: byteCount, byteCountMax: limits.valueBytesMax)
            }
        }
        if let fault = await submit(changes) { throw fault }
    }

    private func submit(_ changes: [Change]) async -> JournalFault? {
        await withCheckedContinuation { promise in
            let isFirst = state.withLock { state in
                state.pending.append((changes, promise))
                defer { state.isWriting = true }
                return !state.isWriting
            }
            // The write blocks, so it has a thread of its own and not one that runs tasks.
            if isFirst { NIOThreadPool.singleton.submit { _ in self.writePending() } }
        }
    }

    // MARK: Writing

    private func writePending() {
        while true {
            let batch = state.withLock { state in
                let batch = state.pending
                state.pending = []
                if batch.isEmpty { state.isWriting = false }
                return batch
            }
            if batch.isEmpty { return }
            for (waiting, fault) in zip(batch, write(batch.map(\.changes))) {
                waiting.promise.resume(returning: fault)
            }
        }
    }

    /// Each commit for itself: one of a full prefix keeps no other from the disk.
    private func write(_ commits: [[Change]]) -> [JournalFault?] {
        do throws(JournalFault) {
            try compact(for: commits)
        } catch {
            return commits.map { _ in error }
        }
        var (faults, admitted, new): ([JournalFault?], [Change], [Substring: Set<String>]) = ([], [], [:])
        var lines: [UInt8] = []
        for changes in commits {
            let more = changes.flatMap(JournalLine.write)
            let fault = refusal(of: changes, byteCount: lines.count + more.count, beside: &new)
            faults.append(fault)
            guard fault == nil else { continue }
            admitted += changes
            lines += more
        }
        do throws(JournalFault) {
            try append(lines)
        } catch {
            return faults.map { $0 ?? error }
        }
        // Crash point: the lines are durable, and nobody was told.
        state.withLock { state in for change in admitted { Self.apply(change, to: &state) } }
        return faults
    }

    /// Rewrites the file when more than half of it is dead, and it is long or has no room.
    private func compact(for commits: [[Change]]) throws(JournalFault) {
        let written = file.withLock { $0 }
        guard written.lock >= 0 else { throw .system(path: path, errorNumber: EBADF) }
        let isFull = {
            written.byteCount + commits.joined().reduce(0) { $0 + JournalLine.write($1).count }
                > self.limits.byteCountMax
        }
        let liveByteCount = state.withLock { $0.liveByteCount }
        let isMostlyDead = written.byteCount > 2 * liveByteCount
        let isLong = written.byteCount > 2 * liveByteCount + Self.rewriteBytesMin
        if written.descriptor < 0 || isLong || (isMostlyDead && isFull()) { try rewrite() }
    }

    /// - Parameters:
    ///   - byteCount: Of the lines up to these changes.
    ///   - new: Keys that earlier commits of the batch add, by prefix; those of an admitted one join them.
    private func refusal(
        of changes: [Change], byteCount: Int, beside new: inout [Substring: Set<String>]
    ) -> JournalFault? {
        var wanted = new
        for case .put(let key, _) in changes where self[key] == nil {
            let prefix = Self.prefix(key)
            wanted[prefix, default: []].insert(key)
            endOverdue(prefix)
            let kept = state.withLock { $0.counts[prefix, default: 0] }
            guard kept + (wanted[prefix]?.count ?? 0) <= limits.entryCountMax(of: prefix),
                file.withLock({ $0.byteCount }) + byteCount <= limits.byteCountMax
            else { return .full(path: path, entryCount: kept) }
        }
        new = wanted
        return nil
    }

    private func append(_ lines: [UInt8]) throws(JournalFault) {
        let errorNumber = file.withLock { file -> Int32 in
            let failure = Self.write(lines, to: file.descriptor)
            if failure == 0, fdatasync(file.descriptor) == 0 {
                file.byteCount += lines.count
                return 0
            }
            // After a failed write or sync the file's end is unknown, so the next commit begins a new file.
            let errorNumber = failure == 0 ? errno : failure
            Glibc.close(file.descriptor)
            file = File(lock: file.lock)
            return errorNumber
        }
        if errorNumber != 0 { throw .system(path: path, errorNumber: errorNumber) }
    }

    /// Puts a file with nothing but living entries in the place of the old one. Until the rename the old one counts.
    private func rewrite() throws(JournalFault) {
        let today = now()
        let lines = state.withLock { state -> [UInt8] in
            state.entries = state.entries.filter { today < $0.value.keptUntil }
            state.counts = state.entries.keys.reduce(into: [:]) { $0[Self.prefix($1), default: 0] += 1 }
            state.nextEnd = state.entries.values.lazy.map(\.keptUntil).min() ?? Instant(milliseconds: .max)
            let lines = state.entries.flatMap { JournalLine.write(.put($0.key, $0.value)) }
            state.liveByteCount = lines.count
            return lines
        }
        let temporary = path + ".new"
        let descriptor = open(
            temporary, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(path: path, errorNumber: errno) }
        var errorNumber = Self.write(lines, to: descriptor)
        if errorNumber == 0, fsync(descriptor) != 0 || rename(temporary, path) != 0 { errorNumber = errno }
        if errorNumber == 0 { errorNumber = Self.synchronizeFolder(of: path) }
        guard errorNumber == 0 else {
            Glibc.close(descriptor)
            throw .system(path: path, errorNumber: errorNumber)
        }
        file.withLock { file in
            if file.descriptor >= 0 { Glibc.close(file.descriptor) }
            file = File(descriptor: descriptor, byteCount: lines.count, lock: file.lock)
        }
    }

    /// A file of less is not rewritten, in bytes.
    private static let rewriteBytesMin = 1024 * 1024

    private static func apply(_ change: Change, to state: inout State) {
        switch change {
        case .put(let key, let entry):
            if let old = state.entries.updateValue(entry, forKey: key) {
                state.liveByteCount -= JournalLine.write(.put(key, old)).count
            } else {
                state.counts[prefix(key), default: 0] += 1
            }
            state.nextEnd = min(state.nextEnd, entry.keptUntil)
            state.liveByteCount += JournalLine.write(change).count
        case .remove(let key):
            if let old = state.entries.removeValue(forKey: key) {
                state.liveByteCount -= JournalLine.write(.put(key, old)).count
                state.counts[prefix(key), default: 0] -= 1
            }
        }
    }

    /// Appends damaged lines to a file of their own, which only somebody who looks for a lost entry reads.
    /// - Returns: The file's path; `nil` where it could not be written, or has too much already.
    private static func keep(_ lines: [ArraySlice<UInt8>], at path: String) -> String? {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_size < damagedBytesMax else { return nil }
        let bytes = lines.flatMap { $0 + [UInt8(ascii: "\n")] }
        return write(bytes, to: descriptor) == 0 && fdatasync(descriptor) == 0 ? path : nil
    }

    /// Damaged lines are kept up to so many bytes, so that a disk that fails again and again does not fill itself.
    private static let damagedBytesMax = 64 * 1024 * 1024

    // MARK: Files

    /// - Returns: 0, or the error's number.
    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress! + written, bytes.count - written)
            }
            if count > 0 {
                written += count
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }

    private static func read(_ path: String, byteCountMax: Int) throws(JournalFault) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        if descriptor < 0, errno == ENOENT { return [] }
        guard descriptor >= 0 else { throw .system(path: path, errorNumber: errno) }
        defer { Glibc.close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .system(path: path, errorNumber: errno) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= byteCountMax else {
                throw .tooLong(path: path, byteCountMax: byteCountMax)
            }
        }
    }

    private static func synchronizeFolder(of path: String) -> Int32 {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno }
        defer { Glibc.close(descriptor) }
        return fsync(descriptor) == 0 ? 0 : errno
    }
}

/// Why the journal cannot be read or written.
package enum JournalFault: Error, Hashable, CustomStringConvertible {
    case system(path: String, errorNumber: Int32)
    case inUse(path: String)
    /// A later version of the courier wrote it.
    case newer(path: String, version: Int64)
    case tooLong(path: String, byteCountMax: Int)
    case full(path: String, entryCount: Int)
    case entryTooLong(byteCount: Int, byteCountMax: Int)

    package var description: String {
        switch self {
        case .system(let path, let errorNumber):
            "the journal `\(path)` cannot be used: \(String(cString: strerror(errorNumber)))"
        case .inUse(let path): "another process has the journal `\(path)` open"
        case .newer(let path, let version):
            "the journal `\(path)` was written by a newer sendgate-courier, in version \(version) where this build knows \(CourierJournal.version): install the version that wrote it, or a later one"
        case .tooLong(let path, let byteCountMax):
            "the journal `\(path)` has more than \(byteCountMax) bytes; raise its limit"
        case .full(let path, let entryCount):
            "the journal `\(path)` is full with \(entryCount) entries; they end with time"
        case .entryTooLong(let byteCount, let byteCountMax):
            "an entry of \(byteCount) bytes is over the limit of \(byteCountMax)"
        }
    }
}

/// One line: the CRC-32 of what follows in 8 hexadecimal digits, a blank, and canonical JSON `{key, until?, value?}`, which has no
/// line break.
private enum JournalLine {
    static func write(_ change: CourierJournal.Change) -> [UInt8] {
        var object: JSONObject
        switch change {
        case .put(let key, let entry):
            object = [
                "key": .string(key), "until": .integer(entry.keptUntil.milliseconds), "value": entry.value,
            ]
        case .remove(let key): object = ["key": .string(key)]
        }
        let json = CanonicalJSON.write(.object(object))
        return Array(checksum(json[...]).utf8) + [UInt8(ascii: " ")] + json + [UInt8(ascii: "\n")]
    }

    /// - Returns: `nil` for a line that was not written whole, or was damaged.
    static func read(_ line: ArraySlice<UInt8>) -> CourierJournal.Change? {
        guard let object = content(line), case .string(let key)? = object["key"] else { return nil }
        guard case .integer(let until)? = object["until"], let value = object["value"] else {
            return .remove(key)
        }
        return .put(key, CourierJournal.Entry(value, keptUntil: Instant(milliseconds: until)))
    }

    private static func content(_ line: ArraySlice<UInt8>) -> JSONObject? {
        let json = line.dropFirst(9)
        guard line.count > 9, line.prefix(8).elementsEqual(checksum(json).utf8),
            case .success(.object(let object)) = Result(catching: { try CanonicalJSON.read(json) })
        else { return nil }
        return object
    }

    /// The version that a line says; `nil` of any other line.
    static func version(_ line: ArraySlice<UInt8>) -> Int64? {
        guard let object = content(line), object["key"] == nil else { return nil }
        return object["version"]?.integerValue
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> String {
        let sum = ~bytes.reduce(~UInt32(0)) { sum, byte in
            table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)] ^ sum >> 8
        }
        let digits = String(sum, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    /// CRC-32 of ISO/IEC 3309, as in gzip (RFC 1952 section 8).
    private static let table = (UInt32(0)..<256).map { index in
        (0..<8).reduce(index) { sum, _ in sum & 1 == 1 ? 0xEDB8_8320 ^ sum >> 1 : sum >> 1 }
    }
}
