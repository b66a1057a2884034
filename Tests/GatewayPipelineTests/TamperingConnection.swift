import Foundation
import OpenSSLCrypto

@testable import SQLiteStore

extension Connection {
    /// A connection to a database with the key of its pages, past all that authenticates rows: what it writes is found by those
    /// alone. Of a store that is closed, its log is not held against a mark afterwards.
    static func tampering(_ path: String, index: SecretBytes) throws -> Connection {
        try? FileManager.default.removeItem(atPath: path + LogMark.suffix)
        let keys = PageKeys(index: HMACKey(index), file: (path as NSString).lastPathComponent)
        return try Connection(
            path: path, file: "tampered", role: .writer(byteCountMax: nil), cacheByteCount: 1 << 20,
            busyTimeoutMilliseconds: 1_000, pages: try PageFile(keys, logEnd: LogEnd()))
    }
}
