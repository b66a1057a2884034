public import CanonicalJSON

/// The members that entries of every kind have. They stand among those of the kind, in canonical order.
@usableFromInline
package struct EntryEnvelope: Sendable {
    /// The envelope's format.
    @inlinable
    package static var version: Int64 { 1 }
    /// In canonical order; no kind may use one for its own.
    package static let names = ["index", "kind", "time", "v"]

    /// Bytes of the entry of a send with one destination, about. A longer one is copied while it is written.
    @inlinable
    package static var entryByteCountExpected: Int { 2_000 }

    @usableFromInline package let kind: String
    /// Counts from 0 without gaps.
    @usableFromInline package var index: UInt64
    /// When the entry was recorded.
    @usableFromInline package var time: Instant
    /// How many of ``names`` are written, or read.
    @usableFromInline var count = 0

    @inlinable
    package init(kind: String, index: UInt64 = 0, time: Instant = Instant(milliseconds: 0)) {
        (self.kind, self.index, self.time) = (kind, index, time)
    }

    /// Writes the members that stand before a name and are not written yet; all that are left before none.
    @inlinable
    @inline(__always)
    package mutating func write(before name: StaticString?, to json: inout CanonicalWriter) {
        if count == 0, Self.stands("index", before: name) {
            json.member("index", Int64(index))
            count = 1
        }
        if count == 1, Self.stands("kind", before: name) {
            json.member("kind", kind)
            count = 2
        }
        if count == 2, Self.stands("time", before: name) {
            json.member("time", time)
            count = 3
        }
        if count == 3, Self.stands("v", before: name) {
            json.member("v", Self.version)
            count = 4
        }
    }

    var isComplete: Bool { count == Self.names.count }

    /// Reads the next member if it stands before a name.
    ///
    /// - Returns: Whether it was read.
    mutating func readNext(
        before name: StaticString?, from cursor: inout EntryCursor
    ) throws(EntryError) -> Bool {
        switch count {
        case 0 where Self.stands("index", before: name):
            try cursor.expect(field: "index")
            index = try cursor.unsigned()
        case 1 where Self.stands("kind", before: name):
            try cursor.expect(field: "kind")
            let found = try cursor.plain()
            guard cursor.bytes[found].elementsEqual(kind.utf8) else {
                throw cursor.failure("`\(kind)` before it")
            }
        case 2 where Self.stands("time", before: name):
            try cursor.expect(field: "time")
            time = try cursor.instant()
        case 3 where Self.stands("v", before: name):
            try cursor.expect(field: "v")
            try cursor.expect("1")
        default: return false
        }
        count += 1
        return true
    }

    /// Nearly all names differ in their first byte, which the compiler compares.
    @inlinable
    @inline(__always)
    static func stands(_ own: StaticString, before name: StaticString?) -> Bool {
        guard let name else { return true }
        let (first, other) = (own.utf8Start[0], name.utf8Start[0])
        return first == other ? precedes(own, name) : first < other
    }

    @usableFromInline
    static func precedes(_ own: StaticString, _ name: StaticString) -> Bool {
        // A static string's bytes live as long as the program, and its count is theirs.
        UnsafeBufferPointer(start: own.utf8Start, count: own.utf8CodeUnitCount)
            .lexicographicallyPrecedes(
                UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }
}
