import SealedFormat

#if canImport(CryptoKit)
    import CryptoKit
#else
    import Crypto
#endif
#if canImport(Darwin)
    import Darwin
#elseif canImport(Android)
    import Android
#else
    import Glibc
#endif

// Only for `DataProtocol`, which SHA-256 takes.
#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One bounded record in a file, shared by the processes of an app: in the container of its app group.
///
/// Slots of 64 bytes, big-endian:
///
///     mid[16] ‖ digest[32] ‖ exp u64 ‖ first 8 bytes of SHA-256 of these 56
///
/// Every call opens the file and holds `flock(LOCK_EX)` from before it reads until after it synchronised, so two threads
/// exclude each other as two processes do. A new record is one write into a slot that holds none. A process that ends
/// before the write leaves the file as it was; during the write, a slot whose last 8 bytes do not fit, which counts as
/// free; after it, a record whose caller showed nothing, so that its message is not shown with an alert.
///
/// - Warning: iOS ends an app that holds a lock in a shared container while it is suspended. A call takes milliseconds; an
///   app that opens messages in the background wraps it in `ProcessInfo.performExpiringActivity`.
@available(macOS 14, iOS 17, tvOS 17, watchOS 10, visionOS 1, macCatalyst 17, *)
public struct FileSeenMessages: SeenMessages {
    /// Why a message was not recorded. It is not opened then.
    public enum Failure: Error, Hashable, CustomStringConvertible {
        /// All slots hold messages that have not expired. Forgetting one early would let it be repeated.
        case full(countMax: Int)
        /// The system refused `call`; `code` is its `errno`.
        case system(call: String, code: Int32)
        /// The file is no regular file, or longer than any record is.
        case notARecord
        /// A message id has 16 bytes, a digest 32.
        case malformedMessage

        public var description: String {
            switch self {
            case .full(let countMax): "the record has \(countMax) messages that have not expired"
            case .system(let call, let code): "\(call): error \(code)"
            case .notARecord: "the file is no record of messages"
            case .malformedMessage: "a message id has 16 bytes and a digest 32"
            }
        }
    }

    /// 4 MiB, which an extension can read within its 24 MB.
    private static let countLimit = 65_536

    private let file: String
    private let countMax: Int

    /// - Parameters:
    ///   - file: Its path. Made when it is absent, readable for its owner only. The folder must be there, with a
    ///     protection of at most `completeUntilFirstUserAuthentication`: an extension runs while the device is locked.
    ///   - countMax: Unexpired messages held at once, 64 bytes each; at most 65,536. The app and its extension give the
    ///     same number. A message beyond it is refused.
    public init(file: String, countMax: Int = 8192) {
        precondition((1...Self.countLimit).contains(countMax), "countMax is 1 to \(Self.countLimit)")
        self.file = file
        self.countMax = countMax
    }

    public func record(messageID: [UInt8], digest: [UInt8], expiresAt: UInt64) throws -> SeenMessage {
        guard messageID.count == SealedLimits.identifierByteCount,
            digest.count == SealedLimits.digestByteCount
        else { throw Failure.malformedMessage }
        return try withSlots { slots, descriptor in
            var free: Int?
            for number in 0..<slots.count {
                let slot = slots[number]
                if slot.isEmpty {
                    free = free ?? (number < countMax ? number : nil)
                } else if slot.messageID.elementsEqual(messageID), slot.isWhole {
                    return slot.digest.elementsEqual(digest) ? .same : .different
                }
            }
            // A torn slot is looked for only where there is no other: each costs a hash.
            let found =
                free ?? (slots.count < countMax ? slots.count : nil)
                ?? (0..<min(slots.count, countMax)).first { !slots[$0].isWhole }
            guard let place = found else { throw Failure.full(countMax: countMax) }
            try write(
                Slot.bytes(messageID: messageID, digest: digest, expiresAt: expiresAt), at: place, descriptor)
            try synchronise(descriptor, "fsync")
            if slots.count == 0 { try synchroniseFolder() }
            return .new
        }
    }

    /// Empties the slots of expired messages. A crash loses such records at worst, so nothing is synchronised.
    public func forgetExpired(now: UInt64) throws {
        try withSlots { slots, descriptor in
            for number in 0..<slots.count where !slots[number].isEmpty && slots[number].expiresAt < now {
                try write([UInt8](repeating: 0, count: Slot.byteCount), at: number, descriptor)
            }
        }
    }

    private struct Slot {
        static let byteCount = 64

        static func bytes(messageID: [UInt8], digest: [UInt8], expiresAt: UInt64) -> [UInt8] {
            var bytes = messageID + digest
            withUnsafeBytes(of: expiresAt.bigEndian) { bytes.append(contentsOf: $0) }
            return bytes + check(bytes[...])
        }

        private static func check(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            Array(SHA256.hash(data: bytes).prefix(8))
        }

        let bytes: ArraySlice<UInt8>

        var messageID: ArraySlice<UInt8> { bytes.prefix(16) }
        var digest: ArraySlice<UInt8> { bytes.dropFirst(16).prefix(32) }
        var expiresAt: UInt64 { bytes.dropFirst(48).prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
        var isEmpty: Bool { bytes.allSatisfy { $0 == 0 } }
        var isWhole: Bool { Self.check(bytes.prefix(56)) == Array(bytes.suffix(8)) }
    }

    /// The whole slots of the file. A part of one at its end is written over by the next record.
    private struct Slots {
        let bytes: [UInt8]
        var count: Int { bytes.count / Slot.byteCount }
        subscript(number: Int) -> Slot {
            Slot(bytes: bytes[(number * Slot.byteCount)..<((number + 1) * Slot.byteCount)])
        }
    }

    private func withSlots<Result>(_ body: (Slots, Int32) throws -> Result) throws -> Result {
        let descriptor = try system("open") { open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
        // The lock is the open file's, so it ends here too.
        defer { _ = close(descriptor) }
        _ = try system("flock") { flock(descriptor, LOCK_EX) }
        var status = stat()
        _ = try system("fstat") { fstat(descriptor, &status) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= Self.countLimit * Slot.byteCount else {
            throw Failure.notARecord
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var offset = 0
        while offset < bytes.count {
            let count = try system("pread") {
                bytes.withUnsafeMutableBytes { buffer in
                    pread(descriptor, buffer.baseAddress! + offset, buffer.count - offset, off_t(offset))
                }
            }
            guard count > 0 else { throw Failure.notARecord }
            offset += count
        }
        return try body(Slots(bytes: bytes), descriptor)
    }

    private func write(_ bytes: [UInt8], at number: Int, _ descriptor: Int32) throws {
        let count = try system("pwrite") {
            pwrite(descriptor, bytes, bytes.count, off_t(number * Slot.byteCount))
        }
        // A full disk; the slot is torn, so it is free.
        guard count == bytes.count else { throw Failure.system(call: "pwrite", code: ENOSPC) }
    }

    private func synchronise(_ descriptor: Int32, _ call: String) throws {
        #if canImport(Darwin)
            // There fsync leaves the drive's own cache as it is (fsync(2)); not every file system has this one.
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        _ = try system(call) { fsync(descriptor) }
    }

    /// The name of a file just made is durable only with its folder.
    private func synchroniseFolder() throws {
        let folder = file.lastIndex(of: "/").map { String(file[...$0]) } ?? "."
        let descriptor = try system("open") { open(folder, O_RDONLY | O_CLOEXEC) }
        defer { _ = close(descriptor) }
        try synchronise(descriptor, "fsync of the folder")
    }

    private func system<Number: BinaryInteger>(_ call: String, _ body: () -> Number) throws -> Number {
        while true {
            let result = body()
            if result >= 0 { return result }
            let code = errno
            guard code == EINTR else { throw Failure.system(call: call, code: code) }
        }
    }
}
