import GateRecords
import GateSteps
import GateVocabulary

/// The contents of one sealed column: the number of its layout, then the fields.
protocol SealedRow: StoredValue {
    /// Raised with every change of ``StoredValue/fields``, with a step of ``Schema`` that rewrites the rows there are (SG-0083). When a
    /// store is open all its rows have this layout, so that one of another is damage.
    static var layout: UInt8 { get }
    static var table: String { get }
    /// How many bytes the fields take, about: memory that is reserved for them.
    var fieldByteCount: Int { get }
}

extension SealedRow {
    var sealedFields: [UInt8] { withSealedFields { Array($0) } }

    /// Gives ``sealedFields`` where they were written.
    func withSealedFields<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        var fields = RowWriter(capacity: fieldByteCount)
        write(to: &fields)
        return try fields.withUnsafeBytes(body)
    }

    /// Writes ``sealedFields`` among others.
    func write(to fields: inout RowWriter) {
        fields.put(byte: Self.layout)
        write(row: &fields)
    }

    /// What an earlier version of the schema wrote, in the layout of this build.
    ///
    /// - Returns: `nil` where it is in that already: a later step over the same rows finds so what an earlier one rewrote.
    static func relaid(_ fields: [UInt8], from version: Int) throws -> [UInt8]? {
        guard fields.first != layout else { return nil }
        do throws(DamagedRow) {
            // A person's id is a column in clear, and is not written.
            var reader = try RowReader(fields, writtenUnder: version, subject: .blank)
            let row = try read(row: &reader)
            try reader.finish()
            return row.sealedFields
        } catch {
            throw StoreError.damaged(table: table, error.what)
        }
    }

    /// - Parameter subject: The person whose row it is, where the record names one.
    init(sealedFields: [UInt8], subject: SubjectID? = nil, table: String = Self.table) throws {
        self = try RowReader.read(sealedFields, layout: Self.layout, of: table, subject: subject) {
            try Self.read(row: &$0)
        }
    }
}

extension RowReader {
    /// Reads a row to its end.
    ///
    /// - Parameter table: Named where the row is damaged.
    static func read<Value>(
        _ bytes: [UInt8], layout: UInt8, of table: String, subject: SubjectID? = nil,
        _ read: (inout RowReader) throws -> Value
    ) throws -> Value {
        do {
            var fields = try RowReader(bytes, layout: layout, subject: subject)
            let value = try read(&fields)
            try fields.finish()
            return value
        } catch let damage as DamagedRow {
            throw StoreError.damaged(table: table, damage.what)
        }
    }

    mutating func optional<Value>(
        _ read: (inout RowReader) throws -> Value
    ) throws -> Value? {
        try flag() ? try read(&self) : nil
    }
}
