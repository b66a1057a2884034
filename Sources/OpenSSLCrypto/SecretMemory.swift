import COpenSSL
import Synchronization

/// Where secrets live: pages of their own that are never swapped out (mlock2(2)), stand in no core dump
/// (`MADV_DONTDUMP`, madvise(2)), and lie between inaccessible pages. OpenSSL's secure heap
/// (CRYPTO_secure_malloc(3)); private keys that OpenSSL makes itself lie there as well.
package enum SecretMemory {
    /// How well the memory of secrets is protected, as the kernel allowed.
    package enum Protection: Sendable, Hashable {
        /// ``protect()`` was not called: secrets lie in ordinary memory.
        case none
        case locked(byteCount: Int)
        /// The pages are apart and out of dumps, and may be swapped out: the kernel refused to lock them.
        case unlocked(byteCount: Int)

        package var isLocked: Bool { if case .locked = self { true } else { false } }
    }

    /// Sizes to try, in bytes: for the keys of the people that the store keeps in memory, for some thousand secrets, and what the smallest limit in use still allows
    /// (`RLIMIT_MEMLOCK` was 64 KiB before Linux 5.16, getrlimit(2)).
    private static let byteCounts = [1 << 22, 1 << 20, 1 << 15]
    /// The smallest piece, which is a key.
    private static let pieceByteCount = 32

    private static let state = Mutex((protection: Protection.none, outsideCount: UInt64(0)))

    /// Call before the first secret is read; later calls change nothing.
    @discardableResult
    package static func protect() -> Protection {
        state.withLock { state in
            guard state.protection == .none else { return state.protection }
            for byteCount in byteCounts {
                // 1 is everything, 2 is everything but the lock, 0 is nothing (the page size is unknown, no memory).
                switch CRYPTO_secure_malloc_init(byteCount, pieceByteCount) {
                case 1: state.protection = .locked(byteCount: byteCount)
                case 0: continue
                default:
                    let isLast = byteCount == byteCounts.last
                    if isLast || CRYPTO_secure_malloc_done() != 1 {
                        state.protection = .unlocked(byteCount: byteCount)
                    }
                }
                if state.protection != .none { break }
            }
            return state.protection
        }
    }

    /// Forbids core dumps of the whole process, and attaching to it by others of the same user.
    ///
    /// - Returns: Whether the kernel agreed.
    package static func forbidDumps() -> Bool { sendgate_forbid_dumps() == 0 }

    package static var protection: Protection { state.withLock { $0.protection } }

    /// Secrets that found no room in the protected pages since the start, and lie in ordinary memory instead.
    package static var outsideCount: UInt64 { state.withLock { $0.outsideCount } }

    /// Zeroed memory, aligned to 16 bytes. Give it back with ``free(_:)``.
    static func allocate(byteCount: Int) -> UnsafeMutableRawBufferPointer {
        // One byte at least, so that even an empty secret has an address.
        let size = max(byteCount, 1)
        var memory = CRYPTO_secure_malloc(size, nil, 0)
        if memory == nil {
            state.withLock { $0.outsideCount += 1 }
            memory = CRYPTO_malloc(size, nil, 0)
        }
        guard let memory else { fatalError("no memory for \(size) bytes") }
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: size)
        return UnsafeMutableRawBufferPointer(start: memory, count: byteCount)
    }

    /// Zeroes the memory and gives it back, wherever it was taken from.
    static func free(_ memory: UnsafeMutableRawBufferPointer) {
        CRYPTO_secure_clear_free(memory.baseAddress, max(memory.count, 1), nil, 0)
    }
}
