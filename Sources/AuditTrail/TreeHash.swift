package import OpenSSLCrypto

/// The two hashes a trail is made of (RFC 6962 section 2.1): the prefixes keep an entry from passing for
/// two hashes and two hashes from passing for an entry.
package enum TreeHash {
    /// SHA-256 over nothing: the root of a tree without entries.
    package static let empty = SHA256.digest([] as [UInt8])

    /// SHA-256(0x00 ‖ entry).
    package static func leaf(_ entry: UnsafeRawBufferPointer) -> SHA256Digest {
        var hasher = afterLeafPrefix
        hasher.update(entry)
        return hasher.finalize()
    }

    package static func leaf(_ entry: [UInt8]) -> SHA256Digest {
        entry.withUnsafeBytes { leaf($0) }
    }

    /// The hash of an entry that has one spare byte in front of it, which is overwritten with the prefix.
    ///
    /// A third faster than hashing the prefix first, which puts every block of the entry out of step.
    static func leaf(overwritingFirstByteOf entry: UnsafeMutableRawBufferPointer) -> SHA256Digest {
        entry[0] = 0x00
        return SHA256.digest(UnsafeRawBufferPointer(entry))
    }

    /// SHA-256(0x01 ‖ left ‖ right).
    package static func node(_ left: SHA256Digest, _ right: SHA256Digest) -> SHA256Digest {
        withUnsafeTemporaryAllocation(byteCount: 65, alignment: 8) { buffer in
            buffer[0] = 0x01
            left.store(to: buffer, at: 1)
            right.store(to: buffer, at: 33)
            return SHA256.digest(UnsafeRawBufferPointer(buffer))
        }
    }

    /// The root of the perfect subtree over consecutive hashes, as they lie in a tile.
    ///
    /// - Parameter hashes: A power of two of them, at most 256; 32 bytes each.
    package static func perfectRoot(_ hashes: UnsafeRawBufferPointer) -> SHA256Digest {
        let count = hashes.count / SHA256Digest.byteCount
        precondition(
            hashes.count % SHA256Digest.byteCount == 0 && count.nonzeroBitCount == 1 && count <= 256,
            "a perfect subtree over \(hashes.count) bytes of hashes was asked for")
        // One spare byte in front of the hashes holds the prefix, so that each pair is hashed where it lies:
        // the byte before a pair belongs to a pair that has already been read.
        return withUnsafeTemporaryAllocation(byteCount: hashes.count + 1, alignment: 8) { buffer in
            UnsafeMutableRawBufferPointer(rebasing: buffer[1...]).copyMemory(from: hashes)
            var width = count
            while width > 1 {
                for pair in 0..<(width / 2) {
                    buffer[64 * pair] = 0x01
                    SHA256.digest(UnsafeRawBufferPointer(rebasing: buffer[(64 * pair)..<(64 * pair + 65)]))
                        .store(to: buffer, at: 32 * pair + 1)
                }
                width /= 2
            }
            // Sound: 32 bytes always make a digest.
            return SHA256Digest(bytes: buffer[1..<33]).unsafelyUnwrapped
        }
    }

    private static let afterLeafPrefix: SHA256.Hasher = {
        var hasher = SHA256.Hasher()
        hasher.update(byte: 0x00)
        return hasher
    }()
}

extension SHA256Digest {
    // Both functions read the 32 bytes in place. `withUnsafeBytes` of the value itself, unlike the digest's own
    // generic method, is compiled in place; half of a verification's time is spent between two hashes.

    /// Writes the 32 bytes at `offset`.
    @inline(__always)
    func store(to buffer: UnsafeMutableRawBufferPointer, at offset: Int) {
        precondition(offset >= 0 && offset + Self.byteCount <= buffer.count)
        Swift.withUnsafeBytes(of: self) { bytes in
            UnsafeMutableRawBufferPointer(rebasing: buffer[offset..<(offset + Self.byteCount)])
                .copyMemory(from: bytes)
        }
    }

    /// Whether the 32 bytes at `offset` are this digest. Not constant-time: digests of a trail are public.
    @inline(__always)
    func lies(in buffer: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        precondition(offset >= 0 && offset + Self.byteCount <= buffer.count)
        return Swift.withUnsafeBytes(of: self) { bytes in
            for word in stride(from: 0, to: Self.byteCount, by: 8)
            where bytes.loadUnaligned(fromByteOffset: word, as: UInt64.self)
                != buffer.loadUnaligned(fromByteOffset: offset + word, as: UInt64.self)
            {
                return false
            }
            return true
        }
    }
}
