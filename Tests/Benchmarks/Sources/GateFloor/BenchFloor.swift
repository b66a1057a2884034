import CSQLite
import Foundation
import GateTestKit
import SQLiteStore

/// What the machine could do with nothing in the way: the rows of a ``FloorSpecimen``, written by SQLite's C interface in a
/// bare loop, with the settings of the gateway's own connection.
package final class BenchFloor {
    private let database: RawDatabase
    private let folder: String
    private let specimen: FloorSpecimen
    private var statements: [PreparedChange] = []
    private let begin: OpaquePointer
    private let commit: OpaquePointer
    private var random = SeededNumbers(seed: 1)
    private let personCount: UInt64
    private var number: Int64 = 0

    private struct PreparedChange {
        var table: String
        var statement: OpaquePointer
        var rows: [[Bound]]
        /// How many rows each run changes.
        var changed: [Int32]
    }

    /// A value where SQLite reads it.
    private enum Bound {
        case null
        case integer(Int64, step: Int64)
        case person
        case text(UnsafeMutableRawBufferPointer)
        case blob(UnsafeMutableRawBufferPointer, isUnique: Bool, milliseconds: UInt64?)

        init(_ value: FloorSpecimen.Value) {
            if value.isPerson {
                self = .person
                return
            }
            self =
                switch value.first {
                case .null: .null
                case .integer(let first): .integer(first, step: value.step)
                case .text(let bytes): .text(Self.copy(bytes))
                case .blob(let bytes):
                    .blob(
                        Self.copy(bytes), isUnique: value.isUnique,
                        milliseconds: value.isTimed ? FloorSpecimen.milliseconds(bytes) : nil)
                }
        }

        /// With a byte more: the address of nothing would bind NULL.
        private static func copy(_ bytes: [UInt8]) -> UnsafeMutableRawBufferPointer {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count + 1, alignment: 8)
            memory.copyBytes(from: bytes)
            return UnsafeMutableRawBufferPointer(start: memory.baseAddress, count: bytes.count)
        }

        func free() {
            switch self {
            case .text(let bytes), .blob(let bytes, _, _): bytes.baseAddress?.deallocate()
            case .null, .integer, .person: break
            }
        }
    }

    /// - Parameters:
    ///   - folder: Made, on the disk to measure, and removed at the end.
    ///   - people: Whom the rows are spread over.
    package init(_ specimen: FloorSpecimen, in folder: String, people: Int) throws {
        self.specimen = specimen
        self.folder = folder
        personCount = UInt64(max(people, 1))
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        database = try RawDatabase(path: folder + "/gate.db")
        let limits = SQLiteStoreLimits()
        try SQLiteStore.configureWriter(database.handle, limits: limits)
        // The gateway moves its log at the same length, but looks at the result (`Connection.moveLog`).
        try database.check(
            sqlite3_wal_autocheckpoint(
                database.handle, Int32(limits.logByteCountBeforeCheckpoint) / SENDGATE_PAGE_BYTE_COUNT))
        begin = try database.prepare("BEGIN IMMEDIATE")
        commit = try database.prepare("COMMIT")
        for text in specimen.schema { try database.run(text) }
        try fill()
        for change in specimen.tableChanges { try prepare(change) }
    }

    deinit {
        for prepared in statements {
            sqlite3_finalize(prepared.statement)
            for value in prepared.rows.joined() { value.free() }
        }
        sqlite3_finalize(begin)
        sqlite3_finalize(commit)
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// What one thread reaches that writes the rows of sends and of their results, one transaction after the other.
    package struct Measurement {
        package let sendsPerSecond: Double
        /// Ninety-nine of a hundred transactions took no longer.
        package let p99Microseconds: Int
    }

    package func measure(seconds: Double) throws -> Measurement {
        let start = Self.now()
        let end = start + UInt64(seconds * 1e9)
        var times: [UInt64] = []
        var last = start
        repeat {
            try transaction()
            let now = Self.now()
            times.append(now - last)
            last = now
        } while last < end
        times.sort()
        return Measurement(
            sendsPerSecond: Double(times.count * specimen.batch) / (Double(last - start) / 1e9),
            p99Microseconds: Int(times[times.count * 99 / 100] / 1_000))
    }

    /// Nanoseconds of the monotonic clock.
    private static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// Writes the next batch.
    func transaction() throws {
        try run(begin)
        // The same in the whole transaction, so that a row still has the id of the one it belongs to.
        let mask = number == 0 ? 0 : random.next()
        for prepared in statements {
            for (row, changed) in zip(prepared.rows, prepared.changed) {
                for (position, value) in row.enumerated() {
                    try bind(value, to: prepared.statement, at: Int32(position + 1), mask)
                }
                try run(prepared.statement)
                guard sqlite3_changes(database.handle) == changed else {
                    throw FloorFailure("the floor did not find the rows of `\(prepared.table)`")
                }
            }
        }
        try run(commit)
        number += 1
    }

    private func run(_ statement: OpaquePointer) throws {
        let code = sqlite3_step(statement)
        sqlite3_reset(statement)
        try database.check(code)
    }

    /// - Parameter mask: Makes an id of the last transaction one of this.
    private func bind(
        _ value: Bound, to statement: OpaquePointer, at position: Int32, _ mask: UInt64 = 0
    ) throws {
        let code: Int32
        switch value {
        case .null: code = sqlite3_bind_null(statement, position)
        case .integer(let first, let step):
            code = sqlite3_bind_int64(statement, position, first &+ number &* step)
        case .person:
            code = sqlite3_bind_int64(statement, position, 1 + Int64(random.next() % personCount))
        // Without a copy: the bytes stay where they are until the statement is finalized.
        case .text(let bytes):
            code = sqlite3_bind_text(
                statement, position, bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
                Int32(bytes.count), nil)
        case .blob(let bytes, let isUnique, let milliseconds):
            if isUnique {
                withUnsafeBytes(of: mask) { mask in
                    for index in bytes.indices { bytes[index] ^= mask[index & 7] }
                }
            }
            if let milliseconds {
                let time = milliseconds &+ UInt64(number)
                for index in 0..<6 { bytes[index] = UInt8(truncatingIfNeeded: time >> (8 * (5 - index))) }
            }
            code = sqlite3_bind_blob(statement, position, bytes.baseAddress, Int32(bytes.count), nil)
        }
        try database.check(code)
    }

    private func fill() throws {
        for (table, columns, rows) in specimen.contents {
            let statement = try database.prepare(Self.insert(into: table, columns))
            defer { sqlite3_finalize(statement) }
            // A table that is made with a row in it has that one.
            try database.run("DELETE FROM \(table)")
            for row in rows {
                let row = row.map { Bound(FloorSpecimen.Value(first: $0)) }
                defer { for value in row { value.free() } }
                for (position, value) in row.enumerated() {
                    try bind(value, to: statement, at: Int32(position + 1))
                }
                try run(statement)
            }
        }
    }

    private static func insert(into table: String, _ columns: [String]) -> String {
        "INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))"
    }

    private func prepare(_ change: FloorSpecimen.TableChange) throws {
        var change = change
        var changed = change.rows.map { _ in Int32(1) }
        let isKey = change.key.map { "\($0) = ?" }.joined(separator: " AND ")
        let text: String
        switch change.kind {
        case .insert: text = Self.insert(into: change.table, change.columns)
        case .update:
            let isValue = { (index: Int) in !change.key.contains(change.columns[index]) }
            let values = change.columns.indices.filter(isValue)
            let keys = change.key.compactMap { change.columns.firstIndex(of: $0) }
            let assignments = values.map { "\(change.columns[$0]) = ?" }.joined(separator: ", ")
            text = "UPDATE \(change.table) SET \(assignments) WHERE \(isKey)"
            change.rows = change.rows.map { row in (values + keys).map { row[$0] } }
        case .delete:
            guard let ranges = change.ranges else {
                text = "DELETE FROM \(change.table) WHERE \(isKey)"
                break
            }
            text = "DELETE FROM \(change.table) WHERE \(change.key[0]) BETWEEN ? AND ?"
            change.rows = ranges.map { [$0.first, $0.last] }
            changed = ranges.map(\.count)
        }
        statements.append(
            PreparedChange(
                table: change.table, statement: try database.prepare(text),
                rows: change.rows.map { $0.map(Bound.init) }, changed: changed))
    }
}

/// Why the floor was not measured.
package struct FloorFailure: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

extension FloorSpecimen.TableChange {
    /// Rows with consecutive numbers for keys, which one statement reaches; `nil` where keys are something else.
    fileprivate var ranges: [(first: FloorSpecimen.Value, last: FloorSpecimen.Value, count: Int32)]? {
        var ranges: [(first: FloorSpecimen.Value, last: FloorSpecimen.Value, count: Int32)] = []
        for row in rows {
            guard row.count == 1, case .integer(let number) = row[0].first else { return nil }
            if let open = ranges.last, case .integer(let last) = open.last.first, last + 1 == number,
                open.last.step == row[0].step
            {
                ranges[ranges.count - 1].last = row[0]
                ranges[ranges.count - 1].count += 1
            } else {
                ranges.append((row[0], row[0], 1))
            }
        }
        return ranges
    }
}
