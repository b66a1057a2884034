import Foundation
import OpenSSLCrypto
import Testing

@testable import SQLiteStore

extension SQLiteStoreLimits {
    /// Every page that is asked for is read from the disk.
    static let uncached = SQLiteStoreLimits(
        readerCount: 1, writerCacheByteCount: 1, readerCacheByteCount: 1, personNumberCountMax: 0)
}

extension GatewayHarness {
    /// Flips a bit on the page of `gate.db` where a value ends, as a disk does, while the store is open.
    ///
    /// - Parameter query: Gives the value, whose last 16 bytes are nowhere else.
    func damagePage(of query: String) throws {
        let connection = files.writer.connection
        let value = try connection.exclusively {
            try connection.emptyLog()
            return try connection.first(StatementText("damaged", query)) { $0.byteArray() }
        }
        let path = folder + "/gate.db"
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let end = Data(try #require(value).suffix(16))
        let range = try #require(bytes.range(of: end))
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64(range.lowerBound))
        try file.write(contentsOf: Data([bytes[range.lowerBound] ^ 0x10]))
        try file.close()
    }

    /// Changes a bit in the first page of a table or an index.
    func damageRootPage(of name: String) throws {
        let connection = files.writer.connection
        let number = try connection.exclusively {
            try connection.emptyLog()
            return try connection.first(
                StatementText("damaged", "SELECT rootpage FROM sqlite_schema WHERE name = '\(name)'")
            ) { $0.integer() }
        }
        let place = UInt64(try #require(number) - 1) * UInt64(PageCode.pageByteCount) + 900
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: folder + "/gate.db"))
        try file.seek(toOffset: place)
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: place)
        try file.write(contentsOf: Data([byte ^ 0x10]))
        try file.close()
    }
}
