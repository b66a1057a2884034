import COpenSSL
import Synchronization

/// HMAC-SHA256 (RFC 2104) under one key, with both pads hashed ahead: a code of a short message takes two compressions, where
/// one under a key that is not kept ready takes four.
package final class HMACKey: Sendable {
    // The two chaining values are as secret as the key, so they live where they are zeroed.
    private let pads: SecretBytes

    /// What a key takes of ``SecretMemory``.
    package static let secretByteCount = HMACStates.padsByteCount

    /// - Parameter secret: Any length; more than 64 bytes are hashed first, as the RFC says.
    package init(_ secret: SecretBytes) {
        pads = SecretBytes(byteCount: HMACStates.padsByteCount) { pads in
            HMACStates.withState { state in
                secret.withUnsafeBytes { HMACStates.key(state, with: $0) }
                HMACStates.save(state, to: pads)
            }
        }
    }

    /// - Returns: 32 bytes.
    package func authenticate(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBytes { authenticate($0) }
    }

    /// - Returns: 32 bytes.
    package func authenticate(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        HMACStates.withState { state in
            start(state)
            HMACStates.update(state, bytes)
            return [UInt8](unsafeUninitializedCapacity: 32) { code, count in
                HMACStates.finish(state, into: code.baseAddress!)
                count = 32
            }
        }
    }

    /// The code of several texts as one message. Nothing is allocated, and the working memory is zeroed.
    ///
    /// - Parameter message: Calls its argument with one text after the other.
    package func code(of message: ((String) -> Void) -> Void) -> SHA256Digest {
        HMACStates.withState { state in
            start(state)
            message { text in
                var text = text
                text.withUTF8 { HMACStates.update(state, UnsafeRawBufferPointer($0)) }
            }
            return SHA256Digest { HMACStates.finish(state, into: $0) }
        }
    }

    fileprivate func start(_ state: UnsafeMutablePointer<sendgate_hmac_sha256>) {
        pads.withUnsafeBytes { HMACStates.start(state, from: $0) }
    }

    /// Whether two authenticators are equal, in a time that depends on their lengths only.
    package static func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }

    /// Whether two secrets are equal, in a time that depends on their lengths only.
    package static func constantTimeEqual(_ left: SecretBytes, _ right: SecretBytes) -> Bool {
        left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in
                left.count == right.count
                    && (left.isEmpty || CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0)
            }
        }
    }
}

/// The ``HMACKey`` of one secret, made when it is first asked for and then kept.
package struct LazyHMACKey: ~Copyable, Sendable {
    private let made = Mutex<HMACKey?>(nil)

    package init() {}

    /// - Parameter secret: The same in every call.
    package func of(_ secret: SecretBytes) -> HMACKey {
        made.withLock { made in
            if let made { return made }
            let key = HMACKey(secret)
            made = key
            return key
        }
    }
}

/// HMAC-SHA256 with a new key for every message and nothing allocated in between.
///
/// Owns its working memory, which is zeroed after every message and at the end. One thread at a time:
/// the pointer inside keeps it from being `Sendable`.
package struct HMACSHA256Computation: ~Copyable {
    private let state: UnsafeMutablePointer<sendgate_hmac_sha256>

    package init() {
        state = .allocate(capacity: 1)
        state.initialize(to: sendgate_hmac_sha256())
    }

    deinit {
        OPENSSL_cleanse(state, MemoryLayout<sendgate_hmac_sha256>.size)
        state.deallocate()
    }

    /// Forgets what went before and takes `key`, of any length.
    package mutating func start(key: UnsafeRawBufferPointer) {
        HMACStates.key(state, with: key)
    }

    /// Forgets what went before and takes a key whose pads are hashed already.
    package mutating func start(_ key: HMACKey) {
        key.start(state)
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        HMACStates.update(state, bytes)
    }

    package mutating func update(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { HMACStates.update(state, $0) }
    }

    /// - Parameter code: Room for 32 bytes. May be the memory of the key.
    package mutating func finish(into code: UnsafeMutableRawBufferPointer) {
        precondition(code.count == 32, "an HMAC-SHA256 code is 32 bytes, the buffer has \(code.count)")
        HMACStates.finish(state, into: code.baseAddress!.assumingMemoryBound(to: UInt8.self))
        OPENSSL_cleanse(state, MemoryLayout<sendgate_hmac_sha256>.size)
    }
}

/// RFC 2104 over two SHA-256 states that the caller owns and zeroes.
enum HMACStates {
    static let blockByteCount = 64
    /// Bytes of the chaining values after both pads.
    static let padsByteCount = 2 * MemoryLayout<ChainingValue>.size

    private typealias ChainingValue = (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32)

    /// Lends working memory, and zeroes it at the end.
    @inline(__always)
    static func withState<Result>(
        _ body: (UnsafeMutablePointer<sendgate_hmac_sha256>) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(of: sendgate_hmac_sha256.self, capacity: 1) { working in
            let state = working.baseAddress!
            state.initialize(to: sendgate_hmac_sha256())
            defer { OPENSSL_cleanse(state, MemoryLayout<sendgate_hmac_sha256>.size) }
            return body(state)
        }
    }

    /// Keeps of two states what one block each, the pad, has made of them.
    static func save(_ state: UnsafePointer<sendgate_hmac_sha256>, to pads: UnsafeMutableRawBufferPointer) {
        pads.storeBytes(of: state.pointee.inner.h, as: ChainingValue.self)
        pads.storeBytes(
            of: state.pointee.outer.h, toByteOffset: MemoryLayout<ChainingValue>.size, as: ChainingValue.self)
    }

    /// The two states as they were after their pads.
    static func start(_ state: UnsafeMutablePointer<sendgate_hmac_sha256>, from pads: UnsafeRawBufferPointer)
    {
        SHA256_Init(&state.pointee.inner)
        SHA256_Init(&state.pointee.outer)
        state.pointee.inner.h = pads.load(as: ChainingValue.self)
        state.pointee.outer.h = pads.load(
            fromByteOffset: MemoryLayout<ChainingValue>.size, as: ChainingValue.self)
        // The length of a message is counted in bits, and is in its last block.
        state.pointee.inner.Nl = UInt32(8 * blockByteCount)
        state.pointee.outer.Nl = UInt32(8 * blockByteCount)
    }

    static func key(_ state: UnsafeMutablePointer<sendgate_hmac_sha256>, with key: UnsafeRawBufferPointer) {
        withUnsafeTemporaryAllocation(byteCount: blockByteCount, alignment: 8) { pad in
            defer { OPENSSL_cleanse(pad.baseAddress, pad.count) }
            _ = pad.initializeMemory(as: UInt8.self, repeating: 0)
            if key.count > blockByteCount {
                SHA256_Init(&state.pointee.inner)
                SHA256_Update(&state.pointee.inner, key.baseAddress, key.count)
                SHA256_Final(pad.baseAddress?.assumingMemoryBound(to: UInt8.self), &state.pointee.inner)
            } else {
                pad.copyMemory(from: key)
            }
            for index in 0..<blockByteCount { pad[index] ^= 0x36 }
            SHA256_Init(&state.pointee.inner)
            SHA256_Update(&state.pointee.inner, pad.baseAddress, blockByteCount)
            for index in 0..<blockByteCount { pad[index] ^= 0x36 ^ 0x5c }
            SHA256_Init(&state.pointee.outer)
            SHA256_Update(&state.pointee.outer, pad.baseAddress, blockByteCount)
        }
    }

    static func update(_ state: UnsafeMutablePointer<sendgate_hmac_sha256>, _ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        SHA256_Update(&state.pointee.inner, start, bytes.count)
    }

    static func finish(
        _ state: UnsafeMutablePointer<sendgate_hmac_sha256>, into code: UnsafeMutablePointer<UInt8>
    ) {
        SHA256_Final(code, &state.pointee.inner)
        SHA256_Update(&state.pointee.outer, code, 32)
        SHA256_Final(code, &state.pointee.outer)
    }
}
