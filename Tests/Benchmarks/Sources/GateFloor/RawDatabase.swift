import CSQLite
import Foundation

/// One value of a row, as SQLite's C interface gives and takes it.
enum RawValue: Hashable {
    case null
    case integer(Int64)
    case text([UInt8])
    case blob([UInt8])

    init(_ statement: OpaquePointer, _ column: Int32) {
        func bytes(_ start: UnsafeRawPointer?) -> [UInt8] {
            guard let start else { return [] }
            return Array(
                UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
        }
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER: self = .integer(sqlite3_column_int64(statement, column))
        case SQLITE_TEXT:
            self = .text(bytes(sqlite3_column_text(statement, column).map { UnsafeRawPointer($0) }))
        case SQLITE_BLOB: self = .blob(bytes(sqlite3_column_blob(statement, column)))
        default: self = .null
        }
    }
}

/// A database of the benchmark's own: SQLite's C interface with nothing of ours around it.
final class RawDatabase {
    let handle: OpaquePointer

    init(path: String, isReadOnly: Bool = false) throws {
        var opened: OpaquePointer?
        let access = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let code = sqlite3_open_v2(path, &opened, access | SQLITE_OPEN_NOMUTEX, nil)
        guard code == SQLITE_OK, let opened else {
            sqlite3_close_v2(opened)
            throw FloorFailure("cannot open `\(path)`: \(String(cString: sqlite3_errstr(code)))")
        }
        handle = opened
    }

    deinit { sqlite3_close_v2(handle) }

    func check(_ code: Int32) throws {
        guard code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW else {
            throw FloorFailure("SQLite: \(String(cString: sqlite3_errmsg(handle)))")
        }
    }

    func run(_ sql: String) throws { try check(sqlite3_exec(handle, sql, nil, nil, nil)) }

    /// The caller finalizes it.
    func prepare(_ sql: String) throws -> OpaquePointer {
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
        guard let statement else { throw FloorFailure("no statement: `\(sql)`") }
        return statement
    }

    func rows(_ sql: String) throws -> [[RawValue]] {
        let statement = try prepare(sql)
        defer { sqlite3_finalize(statement) }
        var rows: [[RawValue]] = []
        while true {
            let code = sqlite3_step(statement)
            try check(code)
            guard code == SQLITE_ROW else { return rows }
            rows.append((0..<sqlite3_column_count(statement)).map { RawValue(statement, $0) })
        }
    }

    func texts(_ sql: String) throws -> [String] {
        try rows(sql).map { row in
            guard case .text(let bytes)? = row.first else { return "" }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}
