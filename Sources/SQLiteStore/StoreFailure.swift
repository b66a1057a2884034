import CSQLite
import GateSteps
import GatewayPipeline

/// A statement does not fit the stored rows: a row is there already that must not be, or one is missing that was to
/// be changed. Nothing is wrong with the store, and only that statement was undone.
package struct UnfitWrite: Error, Equatable, Sendable, CustomStringConvertible {
    package let table: String
    /// SQLite's own message, which names columns and never values.
    package let message: String

    package var description: String { "`\(table)` is not as the request supposes: \(message)" }
}

/// Translates SQLite's result codes into the store's errors.
enum StoreFailure {
    /// Whether the error is about the rows to be written, so that other changes can still be written: a row that is
    /// damaged, missing or there already, and not the disk.
    static func isOfOneChange(_ error: any Error) -> Bool {
        error is UnfitWrite || (error as? StoreError)?.damage != nil
    }

    /// - Parameters:
    ///   - code: An extended result code (sqlite.org/rescode.html).
    ///   - file: The database's file name.
    ///   - table: What the statement was about.
    static func error(code: Int32, message: String, file: String, table: String) -> any Error {
        switch code & 0xFF {
        case SQLITE_FULL:
            return StoreError.unavailable(
                "`\(file)` cannot grow: free disk space, or raise its bound (\(message))")
        case SQLITE_READONLY:
            return StoreError.unavailable(
                "`\(file)` is read-only: make the file system writable for this process (\(message))")
        case SQLITE_IOERR where code == ioErrorFsync || code == ioErrorDirectoryFsync:
            // The kernel may have dropped the pages it could not write and forgotten the error, so a second
            // fsync that succeeds proves nothing (PostgreSQL's "fsyncgate", 2018). Only a restart, which
            // reads what is really there, tells what is true.
            return StoreError.lostDurability("`\(file)` could not be synchronized (\(message))")
        case SQLITE_IOERR:
            return StoreError.unavailable(
                "`\(file)` met an input or output error \(code): look at the disk and the kernel's log (\(message))"
            )
        case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH:
            return StoreError.unavailable(
                "`\(file)` or a file beside it cannot be opened: check that it exists, its owner and its mode (\(message))"
            )
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL:
            return StoreError.unavailable(
                "`\(file)` is locked by another program: close whatever else has it open (\(message))")
        case SQLITE_NOMEM:
            return StoreError.unavailable("`\(file)`: out of memory")
        case SQLITE_CONSTRAINT:
            return UnfitWrite(table: table, message: message)
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            return StoreError.damaged(
                table: table, "`\(file)` is not a sound database: restore it from a backup (\(message))")
        default:
            // A statement this build compiled against its own schema cannot fail otherwise, so the
            // schema was changed by another process.
            return StoreError.damaged(table: table, "`\(file)` refuses a statement (\(code): \(message))")
        }
    }

    // The extended codes are macros with a shift in them, which do not import.
    private static let ioErrorFsync = SQLITE_IOERR | 4 << 8
    private static let ioErrorDirectoryFsync = SQLITE_IOERR | 5 << 8
}
