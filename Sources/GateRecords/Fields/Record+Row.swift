import CanonicalJSON
package import GateVocabulary

/// A record that belongs to one person, who is a column of its row in clear and none of its fields.
package protocol PersonRecord: Record {
    var subject: SubjectID { get set }
}

// MARK: As a row

extension StoredValue where Self: Record {
    package func write(row: inout RowWriter) { Self.fields.write(row: self, to: &row) }

    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        var record = blank
        try fields.read(row: &row, into: &record)
        return record
    }
}

extension Fields {
    package func write(row object: Object, to row: inout RowWriter) {
        withUnsafePointer(to: object) { object in
            for (offset, type) in stored { type.write(at: UnsafeRawPointer(object) + offset, row: &row) }
        }
    }

    package func read(row: inout RowReader, into object: inout Object) throws(DamagedRow) {
        if let version = row.version, storedSince.contains(where: { $0.version > version }) {
            return try read(row: &row, writtenUnder: version, into: &object)
        }
        try withUnsafeMutablePointer(to: &object) { object throws(DamagedRow) in
            for (offset, type) in stored {
                try type.read(to: UnsafeMutableRawPointer(object) + offset, row: &row)
            }
        }
    }

    /// Reads the fields that rows had under an earlier version of the schema.
    private func read(
        row: inout RowReader, writtenUnder version: Int, into object: inout Object
    ) throws(DamagedRow) {
        let later = Set(storedSince.lazy.filter { $0.version > version }.map(\.place))
        try withUnsafeMutablePointer(to: &object) { object throws(DamagedRow) in
            for (place, (offset, type)) in stored.enumerated() where !later.contains(place) {
                try type.read(to: UnsafeMutableRawPointer(object) + offset, row: &row)
            }
        }
    }
}

extension StoredValue where Self: PersonRecord {
    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        var record = blank
        try fields.read(row: &row, into: &record)
        guard let subject = row.subject else {
            preconditionFailure("a row of \(Self.self) belongs to no person")
        }
        record.subject = subject
        return record
    }
}

extension StoredValue {
    package static func write(_ elements: [Self], row: inout RowWriter) {
        row.put(raw: UInt32(elements.count))
        for element in elements { element.write(row: &row) }
    }

    package static func readElements(row: inout RowReader) throws(DamagedRow) -> [Self] {
        let count = try row.count()
        var elements: [Self] = []
        elements.reserveCapacity(Swift.min(count, 64))
        // A wrong count ends the loop with an error after the last byte, not with an allocation.
        for _ in 0..<count { elements.append(try read(row: &row)) }
        return elements
    }
}

extension UInt8: StoredValue {
    package func write(row: inout RowWriter) { row.put(byte: self) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> UInt8 { try row.byte() }

    // As a whole: they lie as they would one by one. A body has thousands of them.
    package static func write(_ bytes: [UInt8], row: inout RowWriter) { row.put(bytes) }
    package static func readElements(row: inout RowReader) throws(DamagedRow) -> [UInt8] {
        try row.byteArray()
    }
}

/// How many of something.
extension StoredValue where Self: FixedWidthInteger {
    package func write(row: inout RowWriter) { row.put(Int64(self)) }
    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        guard let count = Self(exactly: try row.integer(in: 0...CanonicalJSON.integerMax)) else {
            throw .unknown("number")
        }
        return count
    }
}

extension Int: StoredValue {}
extension Int64: StoredValue, ShownValue {}
extension UInt64: StoredValue, ShownValue {}

extension Array: RecordValue {}

/// Lists.
extension Array: StoredValue where Element: StoredValue {
    package func write(row: inout RowWriter) { Element.write(self, row: &row) }

    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        try Element.readElements(row: &row)
    }
}

// MARK: As evidence

extension Record {
    /// What the trail alone tells of it: the private fields and the secrets are those of a blank record.
    package var evidence: Self { hiding(from: .blank) { $0.strip } }

    /// What the trail tells of it, with what an earlier record of the same thing has beside.
    package func completed(by known: Self) -> Self { hiding(from: known) { $0.complete } }

    private func hiding(
        from other: Self,
        _ change: (Field.Hidden) -> @Sendable (UnsafeRawPointer, UnsafeMutableRawPointer) -> Void
    ) -> Self {
        var record = self
        withUnsafePointer(to: other) { other in
            withUnsafeMutablePointer(to: &record) { record in
                for field in Self.fields.all {
                    guard let hidden = field.hidden else { continue }
                    change(hidden)(
                        UnsafeRawPointer(other) + field.offset, UnsafeMutableRawPointer(record) + field.offset
                    )
                }
            }
        }
        return record
    }
}
