import CanonicalJSON

/// The names a bundle knows, each with its position, looked up by bytes without allocating.
///
/// A `Dictionary` hashes under a random key, so that no client can feed it names that collide; that costs more than the
/// decision itself. Here every name stands in a reviewed bundle, and a request only asks for one: however it is
/// spelled, it meets no more names than were put next to one another when the table was made.
struct NameTable: Sendable {
    private struct Slot: Sendable {
        var hash: UInt64 = 0
        /// In ``bytes``; a free slot has no bytes at all, for no name is empty.
        var start: Int32 = 0
        var count: Int32 = 0
        var position: Int32 = 0
    }

    /// All names, one after the other.
    private let bytes: [UInt8]
    /// A power of two, at most half of them taken.
    private let slots: [Slot]

    /// - Parameter names: A name's position is its index, the first one's where two are equal. An archived bundle may
    ///   have an empty one; no request can have it.
    init(_ names: [String]) {
        var bytes: [UInt8] = []
        var size = 2
        while size < names.count * 2 { size *= 2 }
        var slots = [Slot](repeating: Slot(), count: size)
        for (position, name) in names.enumerated() where !name.isEmpty {
            let hash = CodeUnits.withBytes(name) { Self.hash($0) }
            var index = Int(truncatingIfNeeded: hash) & (size - 1)
            while slots[index].count > 0 { index = (index + 1) & (size - 1) }
            slots[index] = Slot(
                hash: hash, start: Int32(bytes.count), count: Int32(name.utf8.count),
                position: Int32(position))
            bytes += name.utf8
        }
        self.bytes = bytes
        self.slots = slots
    }

    /// - Returns: `nil` for a name that is not in the table.
    func position(of name: String) -> Int? {
        CodeUnits.withBytes(name) { asked in
            let hash = Self.hash(asked)
            let last = slots.count - 1
            var index = Int(truncatingIfNeeded: hash) & last
            while slots[index].count > 0 {
                let slot = slots[index]
                if slot.hash == hash, isAsked(asked, slot) { return Int(slot.position) }
                index = (index + 1) & last
            }
            return nil
        }
    }

    @inline(__always)
    private func isAsked(_ asked: UnsafeBufferPointer<UInt8>, _ slot: Slot) -> Bool {
        bytes.withUnsafeBufferPointer { all in
            let start = Int(slot.start)
            return CodeUnits.equal(asked, UnsafeBufferPointer(rebasing: all[start..<start + Int(slot.count)]))
        }
    }

    /// Multiply and fold, a word at a time. The multiplier is 2^64 over the golden ratio, made odd (Knuth, The Art of
    /// Computer Programming, volume 3, section 6.4).
    @inline(__always)
    static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
        let multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15
        var hash = UInt64(bytes.count) &* multiplier
        var offset = 0
        while offset + 8 <= bytes.count {
            hash = (hash ^ CodeUnits.word(bytes, offset)) &* multiplier
            hash ^= hash >> 32
            offset += 8
        }
        hash = (hash ^ CodeUnits.rest(bytes, from: offset)) &* multiplier
        return hash ^ hash >> 32
    }
}
