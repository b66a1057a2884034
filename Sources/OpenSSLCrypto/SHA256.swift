import COpenSSL

/// A SHA-256 digest (FIPS 180-4): 32 bytes, stored inline.
///
/// - Note: `==` is not constant-time. Digests are public here; compare authenticators with
///   ``HMACKey/constantTimeEqual(_:_:)-([UInt8],[UInt8])``.
package struct SHA256Digest: Hashable, Sendable {
    package static let byteCount = 32

    // The digest's bytes in order, as they lie in memory; the integers mean nothing.
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    init(writtenBy body: (UnsafeMutablePointer<UInt8>) -> Void) {
        Swift.withUnsafeMutableBytes(of: &words) { buffer in
            body(buffer.baseAddress!.assumingMemoryBound(to: UInt8.self))
        }
    }

    /// - Parameter bytes: Exactly 32; any other count gives `nil`.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        Swift.withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes) }
    }

    /// The first 16 bytes, as two integers in network order.
    package var leading: (high: UInt64, low: UInt64) {
        (UInt64(bigEndian: words.0), UInt64(bigEndian: words.1))
    }

    package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    package func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // A typed throw does not pass through the standard library's closure, so its outcome is carried out.
        let outcome: Swift.Result<Result, Failure> = Swift.withUnsafeBytes(of: words) { buffer in
            do throws(Failure) { return .success(try body(buffer)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    package static func == (left: SHA256Digest, right: SHA256Digest) -> Bool { left.words == right.words }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }
}

extension SHA256Digest: CustomStringConvertible {
    /// 64 lower-case hexadecimal digits.
    package var description: String {
        let digits = Array("0123456789abcdef".utf8)
        return withUnsafeBytes { bytes in
            String(unsafeUninitializedCapacity: 64) { text in
                for (index, byte) in bytes.enumerated() {
                    text[2 * index] = digits[Int(byte >> 4)]
                    text[2 * index + 1] = digits[Int(byte & 15)]
                }
                return 64
            }
        }
    }
}

/// SHA-256 (FIPS 180-4) in one call, or piece by piece with ``Hasher``. Allocates nothing.
package enum SHA256 {
    package static func digest(_ bytes: UnsafeRawBufferPointer) -> SHA256Digest {
        var hasher = Hasher()
        hasher.update(bytes)
        return hasher.finalize()
    }

    package static func digest(_ bytes: [UInt8]) -> SHA256Digest {
        bytes.withUnsafeBytes { digest($0) }
    }

    package static func digest(_ bytes: ArraySlice<UInt8>) -> SHA256Digest {
        bytes.withUnsafeBytes { digest($0) }
    }

    /// A digest being computed. A value: a copy goes its own way from there, so a common prefix is hashed once.
    package struct Hasher: Sendable {
        private var state = SHA256_CTX()

        package init() {
            SHA256_Init(&state)
        }

        package mutating func update(_ bytes: UnsafeRawBufferPointer) {
            // The three calls cannot fail: they report failure only for a wrong digest length in `state`.
            guard let start = bytes.baseAddress else { return }
            SHA256_Update(&state, start, bytes.count)
        }

        package mutating func update(_ bytes: [UInt8]) {
            bytes.withUnsafeBytes { update($0) }
        }

        package mutating func update(_ bytes: ArraySlice<UInt8>) {
            bytes.withUnsafeBytes { update($0) }
        }

        package mutating func update(_ digest: SHA256Digest) {
            digest.withUnsafeBytes { update($0) }
        }

        package mutating func update(byte: UInt8) {
            withUnsafeBytes(of: byte) { update($0) }
        }

        /// The digest of everything so far. The hasher itself may go on.
        package func finalize() -> SHA256Digest {
            var last = state
            return SHA256Digest { _ = SHA256_Final($0, &last) }
        }
    }
}
