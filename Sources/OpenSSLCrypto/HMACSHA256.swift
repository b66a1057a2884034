import COpenSSL

/// HMAC-SHA256 (RFC 2104) under one key, with both pads hashed ahead.
package struct HMACKey: Sendable {
    // The two pad states are as secret as the key, so they live where they are zeroed.
    private let states: SecretBytes

    /// - Parameter secret: Any length; more than 64 bytes are hashed first, as the RFC says.
    package init(_ secret: SecretBytes) {
        states = SecretBytes(byteCount: MemoryLayout<sendgate_hmac_sha256>.size) { memory in
            let states = memory.bindMemory(to: sendgate_hmac_sha256.self)
            secret.withUnsafeBytes { HMACStates.key(states.baseAddress!, with: $0) }
        }
    }

    /// - Returns: 32 bytes.
    package func authenticate(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBytes { authenticate($0) }
    }

    /// - Returns: 32 bytes.
    package func authenticate(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        withUnsafeTemporaryAllocation(of: sendgate_hmac_sha256.self, capacity: 1) { working in
            let state = working.baseAddress!
            withStates { state.initialize(to: $0) }
            defer { OPENSSL_cleanse(state, MemoryLayout<sendgate_hmac_sha256>.size) }
            HMACStates.update(state, bytes)
            return [UInt8](unsafeUninitializedCapacity: 32) { code, count in
                HMACStates.finish(state, into: code.baseAddress!)
                count = 32
            }
        }
    }

    /// The code of one message under a key that is not kept ready: nothing is allocated, and the working memory is zeroed.
    package static func code(of message: [UInt8], under secret: SecretBytes) -> SHA256Digest {
        withUnsafeTemporaryAllocation(of: sendgate_hmac_sha256.self, capacity: 1) { working in
            let state = working.baseAddress!
            state.initialize(to: sendgate_hmac_sha256())
            defer { OPENSSL_cleanse(state, MemoryLayout<sendgate_hmac_sha256>.size) }
            secret.withUnsafeBytes { HMACStates.key(state, with: $0) }
            message.withUnsafeBytes { HMACStates.update(state, $0) }
            return SHA256Digest { HMACStates.finish(state, into: $0) }
        }
    }

    fileprivate func withStates(_ body: (sendgate_hmac_sha256) -> Void) {
        states.withUnsafeBytes { body($0.load(as: sendgate_hmac_sha256.self)) }
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
        key.withStates { state.pointee = $0 }
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
