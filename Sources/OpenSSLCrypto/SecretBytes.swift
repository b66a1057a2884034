import COpenSSL
import Synchronization

/// Key material in memory of its own (``SecretMemory``): never resized, never copied by Swift, zeroed when released.
///
/// The type has no description, no `Codable`, no `==`; read it with ``withUnsafeBytes(_:)`` and compare it with
/// ``HMACKey/constantTimeEqual(_:_:)-(SecretBytes,SecretBytes)``.
///
/// - Warning: Bytes that were copied in from an `[UInt8]` still exist in that array. Prefer
///   ``init(byteCount:initializingWith:)`` and ``random(byteCount:)`` for material that starts here.
package final class SecretBytes: @unchecked Sendable, CustomReflectable {
    // @unchecked is sound because `memory` is written only inside `init`, before any other reference
    // exists, and in `deinit`, after the last one is gone. In between it is only read.
    private let memory: UnsafeMutableRawBufferPointer

    package var count: Int { memory.count }

    /// - Parameter body: Fills the buffer, which starts as zeros. What it throws, this throws.
    package init(
        byteCount: Int, initializingWith body: (UnsafeMutableRawBufferPointer) throws -> Void
    ) rethrows {
        memory = SecretMemory.allocate(byteCount: byteCount)
        // When `body` throws, every stored property is set, so `deinit` runs and zeroes the memory.
        try body(memory)
    }

    package convenience init(copying bytes: [UInt8]) {
        self.init(byteCount: bytes.count) { $0.copyBytes(from: bytes) }
    }

    package convenience init(copying bytes: UnsafeRawBufferPointer) {
        self.init(byteCount: bytes.count) { $0.copyMemory(from: bytes) }
    }

    /// Fresh bytes from OpenSSL's generator for secrets (`RAND_priv_bytes`).
    package static func random(byteCount: Int) throws -> SecretBytes {
        try SecretBytes(byteCount: byteCount) { buffer in
            guard
                buffer.isEmpty
                    || RAND_priv_bytes(
                        buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(buffer.count)) == 1
            else { throw OpenSSLError.lastFailure(of: "make random bytes") }
        }
    }

    deinit { SecretMemory.free(memory) }

    /// The pointer is valid only inside `body`.
    package func withUnsafeBytes<Result: ~Copyable, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(memory))
    }

    /// `dump` and the debugger's summary see a length and nothing else.
    package var customMirror: Mirror { Mirror(self, children: ["count": memory.count]) }
}

extension [UInt8] {
    /// Zeroes a copy of a secret that had to lie in ordinary memory for a moment; never optimised away.
    ///
    /// - Warning: An array that shares its storage is copied first, and the shared bytes stay. Call it on a variable that
    ///   nothing else was assigned from.
    package mutating func zeroise() {
        withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
    }
}

/// Working memory for the secrets of one computation, used again for the next.
///
/// Zeroed after every use and at the end. One thread at a time: the pointer inside keeps it from being
/// `Sendable`.
package struct SecretScratch: ~Copyable {
    private let memory: UnsafeMutableRawBufferPointer

    package init(byteCount: Int) {
        memory = SecretMemory.allocate(byteCount: byteCount)
    }

    deinit { SecretMemory.free(memory) }

    /// Lends the memory, which starts as zeros, and zeroes it when `body` returns or throws.
    package mutating func use<Result>(_ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows
        -> Result
    {
        defer { OPENSSL_cleanse(memory.baseAddress, memory.count) }
        return try body(memory)
    }
}

/// Random bytes that need not stay secret: identifiers, nonces, padding of file names.
///
/// From OpenSSL's generator, drawn many at a time, because asking it for sixteen costs more than a hash of them. No byte is
/// given twice: this process never goes on as two (`fork` without `exec`), which alone could.
package enum SecureRandom {
    /// - Parameter count: At most 2³¹−1, OpenSSL's own bound.
    package static func bytes(_ count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            try fill(UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count))
            initialized = count
        }
    }

    /// 128 bits, for an identifier.
    package static func number() throws -> (high: UInt64, low: UInt64) {
        var number: (high: UInt64, low: UInt64) = (0, 0)
        try withUnsafeMutableBytes(of: &number) { try fill($0) }
        return number
    }

    /// 128 bits each. The generator is asked once, however many they are.
    package static func numbers(_ count: Int) throws -> [(high: UInt64, low: UInt64)] {
        try Array(unsafeUninitializedCapacity: count) { buffer, initialized in
            try fill(UnsafeMutableRawBufferPointer(buffer))
            initialized = count
        }
    }

    /// - Parameter bytes: At most 2³¹−1.
    static func fill(_ bytes: UnsafeMutableRawBufferPointer) throws {
        guard bytes.count <= Reserve.drawCountMax else { return try Reserve.draw(into: bytes) }
        try reserve.withLock { try $0.take(into: bytes) }
    }

    private static let reserve = Mutex(Reserve())

    private struct Reserve {
        /// Bytes a caller gets out of the reserve; more are drawn for it alone.
        static let drawCountMax = 64
        private var bytes = [UInt8](repeating: 0, count: 4_096)
        private var position = 4_096

        mutating func take(into taken: UnsafeMutableRawBufferPointer) throws {
            try bytes.withUnsafeMutableBytes { bytes in
                if bytes.count - position < taken.count {
                    // Nothing is left to take should the generator fail.
                    position = bytes.count
                    try Self.draw(into: bytes)
                    position = 0
                }
                let part = UnsafeMutableRawBufferPointer(rebasing: bytes[position..<position + taken.count])
                taken.copyMemory(from: UnsafeRawBufferPointer(part))
                // What was given out is not kept.
                part.initializeMemory(as: UInt8.self, repeating: 0)
            }
            position += taken.count
        }

        static func draw(into bytes: UnsafeMutableRawBufferPointer) throws {
            let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            guard bytes.isEmpty || RAND_bytes(start, Int32(bytes.count)) == 1 else {
                throw OpenSSLError.lastFailure(of: "make random bytes")
            }
        }
    }
}
