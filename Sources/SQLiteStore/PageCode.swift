import CSQLite
import OpenSSLCrypto

/// The keys of the page codes of one state directory.
///
///     key = HKDF-Expand(index key, label ‖ file name, 32)      RFC 5869, section 2.3; the index key is random
struct PageKeys: Sendable {
    /// Of the file whose pages are authenticated, for errors.
    let file: String
    fileprivate let hash: SecretBytes
    fileprivate let seal: SecretBytes
    /// Authenticates the mark beside the file (``LogMark``).
    let mark: HMACKey

    init(index: HMACKey, file: String) {
        func key(_ label: String) -> SecretBytes {
            // The first block of HKDF-Expand is an HMAC of the label and its number.
            SecretBytes(copying: index.authenticate(Array("sendgate/\(label)/v1/\(file)".utf8) + [1]))
        }
        self.file = file
        hash = key("page-hash")
        seal = key("page-seal")
        mark = HMACKey(key("log-mark"))
    }
}

/// The code of a page, in the last 16 of its 2,048 bytes.
///
///     code = AES-256-CMAC(L, AES-256-GMAC(K, zero nonce, "sg-page1" ‖ file[16] ‖ u64 page number ‖ page[2032]))
///
/// GMAC under one nonce is a keyed universal hash of the page; two of its values would give its key away, so none leaves: each
/// goes through AES under a second key (Carter and Wegman's construction: hash, then a pseudorandom function of the hash). The
/// CMAC of 16 bytes is one AES block. A nonce would have to be new whenever a page is written, and page numbers repeat.
///
/// One thread at a time: the memory inside keeps it from being `Sendable`.
struct PageCode: ~Copyable {
    static let byteCount = Int(SENDGATE_PAGE_CODE_BYTE_COUNT)
    static let pageByteCount = Int(SENDGATE_PAGE_BYTE_COUNT)
    /// The page that SQLite leaves out of every file (sqlite.org/fileformat2.html, section 1.3.2).
    static let lockBytePage = Int64(0x4000_0000) / Int64(pageByteCount) + 1
    /// Bytes of a page that SQLite uses.
    static let usedByteCount = pageByteCount - byteCount
    private static let headByteCount = 32
    private static let label: StaticString = "sg-page1"
    private static let fileByteCount = 16

    private let hash: AES256GMAC
    private var seal: AES256CMAC
    /// What the code is of, and behind it room for the code: the page as it is written begins at `headByteCount`.
    private let message: UnsafeMutableRawPointer
    /// The hash, and the room that ``AES256CMAC`` asks for.
    private let block: UnsafeMutableRawPointer

    init(_ keys: PageKeys) throws {
        let hash = try AES256GMAC(keys.hash)
        let seal = try AES256CMAC(keys.seal)
        self.hash = hash
        self.seal = seal
        message = .allocate(byteCount: Self.headByteCount + Self.pageByteCount, alignment: 16)
        block = .allocate(byteCount: 2 * AES256CMAC.blockByteCount, alignment: 16)
        message.initializeMemory(as: UInt8.self, repeating: 0, count: Self.headByteCount + Self.pageByteCount)
        message.copyMemory(from: Self.label.utf8Start, byteCount: Self.label.utf8CodeUnitCount)
        let name = Array(keys.file.utf8.prefix(Self.fileByteCount))
        (message + Self.label.utf8CodeUnitCount).copyMemory(from: name, byteCount: name.count)
    }

    deinit {
        message.deallocate()
        block.deallocate()
    }

    /// The code of the used bytes of `page`, as it lies in memory.
    private mutating func code(of page: UnsafeRawPointer, number: Int64) -> UInt128 {
        message.storeBytes(
            of: UInt64(bitPattern: number).bigEndian, toByteOffset: Self.headByteCount - 8, as: UInt64.self)
        (message + Self.headByteCount).copyMemory(from: page, byteCount: Self.usedByteCount)
        let value = hash.code(
            of: UnsafeRawBufferPointer(start: message, count: Self.headByteCount + Self.usedByteCount))
        block.storeBytes(of: value.bigEndian, as: UInt128.self)
        return seal.code(of: block, byteCount: AES256CMAC.blockByteCount).bigEndian
    }

    /// - Parameters:
    ///   - page: All 2,048 bytes.
    ///   - number: From 1.
    mutating func isRight(_ page: UnsafeRawPointer, number: Int64) -> Bool {
        let code = code(of: page, number: number)
        // One comparison of the whole, so that no time tells how much of it is right.
        return page.loadUnaligned(fromByteOffset: Self.usedByteCount, as: UInt128.self) ^ code == 0
    }

    /// A copy of `page` with its code, valid until the next call.
    mutating func coded(_ page: UnsafeRawPointer, number: Int64) -> UnsafeRawPointer {
        let code = code(of: page, number: number)
        let copy = message + Self.headByteCount
        copy.storeBytes(of: code, toByteOffset: Self.usedByteCount, as: UInt128.self)
        return UnsafeRawPointer(copy)
    }
}
