import GateRecords

/// Up to 256 entries in one file, each after its length as two big-endian bytes (C2SP tlog-tiles, "Log
/// entries").
package enum EntryBundle {
    /// What two bytes can say.
    package static let entryByteCountMax = TrailEntry.byteCountMax

    /// - Precondition: `entry` has at most ``entryByteCountMax`` bytes.
    package static func append(_ entry: some Collection<UInt8>, to bundle: inout [UInt8]) {
        precondition(
            entry.count <= entryByteCountMax, "an entry of \(entry.count) bytes was to be put in a bundle")
        bundle.append(UInt8(entry.count >> 8))
        bundle.append(UInt8(entry.count & 255))
        bundle.append(contentsOf: entry)
    }

    /// The entry whose length starts at `offset`; moves `offset` behind it. `nil` when the bundle ends first.
    package static func next(in bundle: UnsafeRawBufferPointer, at offset: inout Int) -> Range<Int>? {
        guard bundle.count - offset >= 2 else { return nil }
        let count = Int(bundle[offset]) << 8 | Int(bundle[offset + 1])
        guard bundle.count - offset - 2 >= count else { return nil }
        let start = offset + 2
        offset = start + count
        return start..<offset
    }

    /// Where the entries lie, up to the first that is not there whole.
    package static func ranges(in bytes: [UInt8]) -> [Range<Int>] {
        bytes.withUnsafeBytes { buffer in
            var offset = 0
            var ranges: [Range<Int>] = []
            while let range = next(in: buffer, at: &offset) { ranges.append(range) }
            return ranges
        }
    }

    /// Where the entries lie, or `nil` when `bytes` are not exactly `count` of them.
    package static func ranges(in bytes: [UInt8], count: Int) -> [Range<Int>]? {
        bytes.withUnsafeBytes { buffer in
            var offset = 0
            var ranges: [Range<Int>] = []
            ranges.reserveCapacity(count)
            for _ in 0..<count {
                guard let range = next(in: buffer, at: &offset) else { return nil }
                ranges.append(range)
            }
            return offset == buffer.count ? ranges : nil
        }
    }
}
