import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords

/// Goes through the fields of a sealed row, whose order is the format.
///
/// ``FieldWriter`` is given the value of each field and writes it; ``FieldReader`` is given none and reads it. Either
/// returns the value, so the call that makes a record of its fields is the only list of them, and a field that is left
/// out does not compile.
protocol FieldCoder: ~Copyable {
    associatedtype Failure: Error

    /// The person whose row it is: a column in clear, and none of the fields.
    func subject(_ subject: SubjectID?) -> SubjectID

    /// Whether the row has the fields that came with a layout. A row is written in the newest.
    func hasLayout(_ version: UInt8) -> Bool

    mutating func flag(_ flag: Bool?) throws(Failure) -> Bool
    /// - Parameter range: Is checked where the integer is read.
    mutating func integer<Integer: FixedWidthInteger>(
        _ integer: Integer?, in range: ClosedRange<Int64>
    ) throws(Failure) -> Integer
    mutating func instant(_ instant: Instant?) throws(Failure) -> Instant
    mutating func code<Code: StoredCode>(_ value: Code?) throws(Failure) -> Code
    mutating func id<Kind: IdentifierKind>(
        _ id: RandomIdentifier<Kind>?
    ) throws(Failure) -> RandomIdentifier<Kind>
    mutating func byteArray(_ bytes: [UInt8]?) throws(Failure) -> [UInt8]
    mutating func text(_ text: String?) throws(Failure) -> String
    mutating func region(_ code: RegionCode?) throws(Failure) -> RegionCode
    /// A tag as bytes after their count, which is 0 where there is none.
    mutating func countedTag(_ tag: Tag?) throws(Failure) -> Tag?
}

/// A field of a sealed row, or an object of several fields.
protocol SealedValue {
    /// - Parameter value: The value to write; `nil` where one is read.
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ value: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self
}

extension FieldCoder where Self: ~Copyable {
    mutating func required<Value: SealedValue>(_ value: Value?) throws(Failure) -> Value {
        try Value.exchange(value, with: &self)
    }

    /// A flag, then the value when there is one.
    mutating func optional<Value: SealedValue>(_ value: Value?) throws(Failure) -> Value? {
        try flag(value != nil) ? try Value.exchange(value, with: &self) : nil
    }

    /// A count, then the values.
    mutating func list<Value: SealedValue>(_ values: [Value]?) throws(Failure) -> [Value] {
        let count = try integer(values?.count, in: 0...StoredRow.countMax)
        if let values {
            for value in values { _ = try Value.exchange(value, with: &self) }
            return values
        }
        var read: [Value] = []
        read.reserveCapacity(Int(min(count, 64)))
        // A wrong count ends the loop with an error after the last byte, not with an allocation.
        for _ in 0..<count { read.append(try Value.exchange(nil, with: &self)) }
        return read
    }

    /// A count, then each key and its value.
    ///
    /// - Parameter precedes: An order in which one dictionary has one encoding.
    mutating func dictionary<Key: SealedValue & Hashable, Value: SealedValue>(
        _ values: [Key: Value]?,
        by precedes: ((key: Key, value: Value), (key: Key, value: Value)) -> Bool
    ) throws(Failure) -> [Key: Value] {
        let count = try integer(values?.count, in: 0...StoredRow.countMax)
        if let values {
            // One is in order as it is.
            if values.count == 1, let (key, value) = values.first {
                _ = try Key.exchange(key, with: &self)
                _ = try Value.exchange(value, with: &self)
                return values
            }
            for (key, value) in values.sorted(by: precedes) {
                _ = try Key.exchange(key, with: &self)
                _ = try Value.exchange(value, with: &self)
            }
            return values
        }
        var read: [Key: Value] = [:]
        for _ in 0..<count {
            let key = try Key.exchange(nil, with: &self)
            read[key] = try Value.exchange(nil, with: &self)
        }
        return read
    }
}

// MARK: Rows

/// The contents of one sealed column: the number of a layout, then the fields.
protocol SealedRow: SealedValue {
    /// The layouts that are read. A changed order is a new one; rows of an older one are read until they are written
    /// again.
    static var layouts: ClosedRange<UInt8> { get }
    static var table: String { get }
    /// How many bytes the fields take, about: memory that is reserved for them.
    var fieldByteCount: Int { get }
}

extension SealedRow {
    var sealedFields: [UInt8] { withSealedFields { Array($0) } }

    /// Gives ``sealedFields`` where they were written.
    func withSealedFields<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        var fields = FieldWriter(capacity: fieldByteCount)
        write(to: &fields)
        return try fields.withUnsafeBytes(body)
    }

    /// Writes ``sealedFields`` among others.
    func write(to fields: inout FieldWriter) {
        fields.put(byte: Self.layouts.upperBound)
        _ = Self.exchange(self, with: &fields)
    }

    /// - Parameter subject: The person whose row it is, where the record names one.
    init(sealedFields: [UInt8], subject: SubjectID? = nil, table: String = Self.table) throws {
        var fields = try FieldReader(sealedFields, versions: Self.layouts, table: table, subject: subject)
        self = try Self.exchange(nil, with: &fields)
        try fields.finish()
    }
}

// MARK: The two coders

extension FieldWriter: FieldCoder {
    typealias Failure = Never

    private func given<Value>(_ value: Value?) -> Value {
        guard let value else { preconditionFailure("a field has no value to write") }
        return value
    }

    func subject(_ subject: SubjectID?) -> SubjectID { given(subject) }
    func hasLayout(_ version: UInt8) -> Bool { true }

    mutating func flag(_ flag: Bool?) -> Bool {
        put(given(flag))
        return given(flag)
    }

    mutating func integer<Integer: FixedWidthInteger>(
        _ integer: Integer?, in range: ClosedRange<Int64>
    ) -> Integer {
        put(Int64(truncatingIfNeeded: given(integer)))
        return given(integer)
    }

    mutating func instant(_ instant: Instant?) -> Instant {
        put(given(instant))
        return given(instant)
    }

    mutating func code<Code: StoredCode>(_ value: Code?) -> Code {
        put(given(value))
        return given(value)
    }

    mutating func id<Kind: IdentifierKind>(_ id: RandomIdentifier<Kind>?) -> RandomIdentifier<Kind> {
        put(given(id))
        return given(id)
    }

    mutating func byteArray(_ bytes: [UInt8]?) -> [UInt8] {
        put(given(bytes))
        return given(bytes)
    }

    mutating func text(_ text: String?) -> String {
        put(given(text))
        return given(text)
    }

    mutating func region(_ code: RegionCode?) -> RegionCode {
        put(given(code).description)
        return given(code)
    }

    mutating func countedTag(_ tag: Tag?) -> Tag? {
        put(raw: UInt32(tag == nil ? 0 : 16))
        if let tag { put(tag) }
        return tag
    }
}

extension FieldReader: FieldCoder {
    typealias Failure = any Error

    func subject(_: SubjectID?) -> SubjectID {
        guard let subject else { preconditionFailure("rows of `\(table)` belong to no person") }
        return subject
    }

    func hasLayout(_ version: UInt8) -> Bool { self.version >= version }

    mutating func flag(_: Bool?) throws -> Bool { try flag() }
    mutating func integer<Integer: FixedWidthInteger>(
        _: Integer?, in range: ClosedRange<Int64>
    ) throws -> Integer { Integer(truncatingIfNeeded: try integer(in: range)) }
    mutating func instant(_: Instant?) throws -> Instant { try instant() }
    mutating func code<Code: StoredCode>(_: Code?) throws -> Code { try code() }
    mutating func id<Kind: IdentifierKind>(
        _: RandomIdentifier<Kind>?
    ) throws -> RandomIdentifier<Kind> { try id() }
    mutating func byteArray(_: [UInt8]?) throws -> [UInt8] { try byteArray() }
    mutating func text(_: String?) throws -> String { try text() }

    mutating func region(_: RegionCode?) throws -> RegionCode {
        guard let code = RegionCode(try text()) else { throw unknown("region") }
        return code
    }

    mutating func countedTag(_: Tag?) throws -> Tag? {
        let bytes = try byteArray()
        guard let tag = Tag(bytes: bytes) else {
            guard bytes.isEmpty else {
                throw StoreError.damaged(table: table, "a sealed row holds a tag of \(bytes.count) bytes")
            }
            return nil
        }
        return tag
    }
}

// MARK: Single fields

extension Bool: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ flag: Bool?, with fields: inout Coder
    ) throws(Coder.Failure) -> Bool { try fields.flag(flag) }
}

extension Instant: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ instant: Instant?, with fields: inout Coder
    ) throws(Coder.Failure) -> Instant { try fields.instant(instant) }
}

extension RandomIdentifier: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ id: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self { try fields.id(id) }
}

extension [UInt8]: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ bytes: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self { try fields.byteArray(bytes) }
}

extension String: SealedValue {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ text: String?, with fields: inout Coder
    ) throws(Coder.Failure) -> String { try fields.text(text) }
}

extension SealedValue where Self: TextIdentifier {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ id: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self { Self(try fields.text(id?.text)) }
}
extension CallerName: SealedValue {}
extension DestinationID: SealedValue {}
extension Purpose: SealedValue {}
extension TypeID: SealedValue {}

extension StoredCode {
    static func exchange<Coder: FieldCoder & ~Copyable>(
        _ value: Self?, with fields: inout Coder
    ) throws(Coder.Failure) -> Self { try fields.code(value) }
}
