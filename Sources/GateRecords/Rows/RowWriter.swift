public import GateVocabulary

/// Lays the fields of one stored row end to end, before they are sealed together.
///
/// Sealing a row once instead of field by field costs one nonce and one tag per row, and hides which of
/// its fields are set. The order of the fields is the format; the first byte says which order.
@usableFromInline
package struct RowWriter: ~Copyable {
    // Memory of its own, taken with the first field. An array asks at every append whether it is shared: with one, an open send,
    // whose rows have 66 fields, takes 3 % more instructions (`Tests/Benchmarks/instructions.py`).
    @usableFromInline var start: UnsafeMutableRawPointer?
    @usableFromInline var capacity = 0
    /// How many bytes are taken at first.
    @usableFromInline let expectedByteCount: Int
    @usableFromInline package internal(set) var count = 0

    package init(capacity: Int) { expectedByteCount = max(capacity, 16) }

    package init(version: UInt8, capacity: Int = 128) {
        self.init(capacity: capacity)
        put(byte: version)
    }

    deinit { start?.deallocate() }

    package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result
    {
        try body(UnsafeRawBufferPointer(start: start, count: count))
    }

    /// Forgets what was put, and keeps its memory.
    package mutating func removeAll() { count = 0 }

    /// Where the next so many bytes go, which are one at least.
    @inlinable
    @inline(__always)
    mutating func place(of more: Int) -> UnsafeMutableRawPointer {
        if count + more > capacity { grow(to: count + more) }
        return start! + count
    }

    @usableFromInline
    @inline(never)
    mutating func grow(to wanted: Int) {
        capacity = max(2 * capacity, wanted, expectedByteCount)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
        if let start {
            larger.copyMemory(from: start, byteCount: count)
            start.deallocate()
        }
        start = larger
    }

    // What writes one to sixteen bytes is inlined: a call costs more than it.
    @inlinable
    @inline(__always)
    package mutating func put<Integer: FixedWidthInteger>(raw integer: Integer) {
        place(of: MemoryLayout<Integer>.size).storeBytes(of: integer.bigEndian, as: Integer.self)
        count += MemoryLayout<Integer>.size
    }

    package mutating func put(raw part: UnsafeRawBufferPointer) {
        guard let first = part.baseAddress, !part.isEmpty else { return }
        place(of: part.count).copyMemory(from: first, byteCount: part.count)
        count += part.count
    }

    @inlinable
    @inline(__always)
    package mutating func put(byte: UInt8) { put(raw: byte) }

    @inlinable
    @inline(__always)
    package mutating func put(_ flag: Bool) { put(byte: flag ? 1 : 0) }

    @inlinable
    @inline(__always)
    package mutating func put(_ integer: Int64) { put(raw: integer) }

    @inlinable
    @inline(__always)
    package mutating func put(_ instant: Instant) { put(instant.milliseconds) }

    @inlinable
    @inline(__always)
    package mutating func put(_ id: RandomIdentifier<some IdentifierKind>) {
        put(raw: id.high)
        put(raw: id.low)
    }

    package mutating func put(_ part: [UInt8]) {
        precondition(part.count <= Int(UInt32.max), "a field has at most 2³²−1 bytes")
        put(raw: UInt32(part.count))
        part.withUnsafeBytes { put(raw: $0) }
    }

    package mutating func put(_ text: String) {
        var text = text
        text.withUTF8 { text in
            put(raw: UInt32(text.count))
            put(raw: UnsafeRawBufferPointer(text))
        }
    }

    /// A flag, then the value when there is one.
    @inlinable
    package mutating func put<Value>(_ value: Value?, _ write: (inout RowWriter, Value) -> Void) {
        put(value != nil)
        if let value { write(&self, value) }
    }

    @inlinable
    package mutating func put(optional instant: Instant?) { put(instant) { $0.put($1) } }
}
