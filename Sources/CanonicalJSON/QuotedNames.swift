/// The names of a closed list as they stand in JSON, ready to be copied. Written as the `String`s that they are, they cost 2 % more
/// instructions in a refused send, whose entry has some twenty.
@usableFromInline
package struct QuotedNames<Value: CaseIterable>: Sendable {
    /// The names by ``position(of:)``.
    @usableFromInline let all: [QuotedName]

    /// - Parameters:
    ///   - values: Every one, in the order of their declaration.
    ///   - name: Gives the name of a value: at most 29 bytes.
    /// - Precondition: No value has a payload.
    package init(of values: [Value] = Array(Value.allCases), _ name: (Value) -> String) {
        precondition(MemoryLayout<Value>.size == 1, "\(Value.self) is no list of two names or more")
        var all = [QuotedName](repeating: QuotedName(""), count: values.count)
        for value in values { all[Self.position(of: value)] = QuotedName(name(value)) }
        self.all = all
    }

    @inlinable
    @inline(__always)
    package subscript(_ value: Value) -> QuotedName { all[Self.position(of: value)] }

    /// The one byte of a value without a payload, which is its place in the list.
    @inlinable
    @inline(__always)
    static func position(of value: Value) -> Int { Int(withUnsafeBytes(of: value) { $0[0] }) }
}

/// A name in its quotation marks.
@usableFromInline
package struct QuotedName: BitwiseCopyable, Sendable {
    /// The bytes, and in the last one how many there are.
    @usableFromInline let bytes: SIMD32<UInt8>

    init(_ name: String) {
        let quoted = CanonicalWriter.bytes { $0.text(name) }
        precondition(quoted.count < 32, "the name `\(name)` has more than 29 bytes")
        var bytes = SIMD32<UInt8>()
        for (place, byte) in quoted.enumerated() { bytes[place] = byte }
        bytes[31] = UInt8(quoted.count)
        self.bytes = bytes
    }

    @inlinable var byteCount: Int { Int(bytes[31]) }
}

extension CanonicalWriter {
    @inlinable
    @inline(__always)
    package mutating func name(_ name: QuotedName) {
        reserve(32)
        // All 32 bytes are written, and those after the quotation mark are written over by what follows.
        UnsafeMutableRawPointer(start + count).storeBytes(of: name.bytes, as: SIMD32<UInt8>.self)
        count += name.byteCount
    }
}
