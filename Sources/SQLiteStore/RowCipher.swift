import GateSteps
import GatewayPipeline
package import OpenSSLCrypto
import Synchronization

/// Seals what must not be readable in the files: AES-256-GCM under the data key, bound to the exact
/// table, column and row, and to the columns that the row is looked up by, so that no ciphertext can be moved and no look-up led
/// to another's.
///
/// Stored bytes: kid length (u8) ‖ kid ‖ nonce[12] ‖ ciphertext ‖ tag[16]. The key id travels with every
/// value, so rows sealed before a rotation stay readable as long as the older key is loaded.
///
///     aad = "sendgate/row/v1\0" ‖ lp(table) ‖ lp(column) ‖ lp(row id) ‖ lp(kid)    lp: u16 big-endian length
package struct RowCipher: Sendable {
    /// A data key and the id it is known by in the keyring. A class, so that a copy of the cipher counts few references.
    package final class Key: Sendable {
        package let id: String
        fileprivate let key: AES256GCMKey
        fileprivate let idBytes: [UInt8]
        /// The first bytes of every value sealed under it.
        fileprivate let head: [UInt8]
        /// Seals made under the key, over its whole life as far as this directory knows.
        fileprivate let seals = SealCount()

        /// - Parameter id: 1 to 255 bytes.
        package init(id: String, key: AES256GCMKey) {
            precondition((1...255).contains(id.utf8.count), "a data key's id is 1 to 255 bytes")
            self.id = id
            self.key = key
            idBytes = Array(id.utf8)
            head = RowCipher.head(of: id)
        }
    }

    private let current: Key
    private var older: [Key]

    /// - Parameters:
    ///   - current: Seals everything new.
    ///   - older: Open what an earlier ``current`` sealed. Few, so they are searched one by one.
    package init(current: Key, older: [Key] = []) {
        self.current = current
        self.older = older
    }

    package var currentKeyID: String { current.id }

    /// The first bytes of every value that is sealed under the key of this id.
    static func head(of id: String) -> [UInt8] { [UInt8(id.utf8.count)] + Array(id.utf8) }

    /// The id of the key that a stored value says it is under; `nil` of one that says none.
    static func keyID(of stored: [UInt8]) -> String? {
        guard let count = stored.first, count > 0, stored.count > Int(count) else { return nil }
        return String(validating: stored[1...Int(count)], as: UTF8.self)
    }

    /// Whether the key of this id opens here.
    func isLoaded(_ id: String) -> Bool { id == current.id || older.contains { $0.id == id } }

    /// The first bytes of every value that is sealed under the current key.
    var currentHead: [UInt8] { current.head }

    /// Adds a key that opens, and may be promoted.
    mutating func add(_ key: Key) {
        guard key.id != current.id, !older.contains(where: { $0.id == key.id }) else { return }
        older.append(key)
    }

    /// The same keys, with another one sealing; `nil` when it is none of them.
    func promoting(_ id: String) -> RowCipher? {
        if id == current.id { return self }
        guard let next = older.first(where: { $0.id == id }) else { return nil }
        return RowCipher(current: next, older: [current] + older.filter { $0.id != id })
    }

    /// Seals of the current key. Its nonces are random, so two of them may be equal one day, which would lay the
    /// key open: at 2³² seals the odds are one in 2³² (NIST SP 800-38D section 8.3).
    var sealCount: UInt64 { current.seals.value }

    /// Adds the seals that were made before this process began.
    func resumeSealCount(at count: UInt64) { current.seals.add(count) }

    /// For work that seals and opens several values under the current key.
    func contexts() -> AES256GCMContexts { AES256GCMContexts(current.key) }

    /// - Parameter contexts: Of the current key.
    /// - Throws: `StoreError.unavailable` once the key has sealed as many rows as one key may.
    func seal(
        _ plaintext: [UInt8], in column: SealedColumn, row: [UInt8], on contexts: AES256GCMContexts? = nil
    ) throws -> [UInt8] {
        try plaintext.withUnsafeBytes { try seal($0, in: column, row: row, on: contexts) }
    }

    /// The same for bytes in any memory.
    func seal(
        _ plaintext: UnsafeRawBufferPointer, in column: SealedColumn, row: [UInt8],
        on contexts: AES256GCMContexts? = nil
    ) throws -> [UInt8] {
        let byteCount = byteCount(of: plaintext.count)
        return try [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
            let output = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: byteCount)
            try row.withUnsafeBytes {
                try seal(plaintext, in: column, row: $0, on: contexts ?? self.contexts(), into: output)
            }
            count = byteCount
        }
    }

    /// - Parameter output: ``byteCount(of:)`` bytes.
    func seal(
        _ plaintext: UnsafeRawBufferPointer, in column: SealedColumn, row: UnsafeRawBufferPointer,
        on contexts: AES256GCMContexts, into output: UnsafeMutableRawBufferPointer
    ) throws {
        guard current.seals.take(below: DataKeyUse.sealCountMax) else {
            throw StoreError.unavailable(
                "the data key `\(current.id)` has sealed 2^32 rows and seals no more; add a new data key (Running a gateway, Rotating a key)"
            )
        }
        output.copyBytes(from: current.head)
        let sealed = UnsafeMutableRawBufferPointer(rebasing: output[current.head.count...])
        try column.withContext(row: row, kid: current.idBytes) {
            try contexts.seal(plaintext, aad: $0, into: sealed)
        }
    }

    /// - Throws: `StoreError.damaged` for a value that was not sealed for this column and row.
    func open(
        _ stored: [UInt8], in column: SealedColumn, row: [UInt8], on contexts: AES256GCMContexts? = nil
    ) throws -> [UInt8] {
        // What a row is bound to comes from the file as well.
        guard row.count <= SealedColumn.rowByteCountMax else {
            throw StoreError.damaged(table: column.table, "what it is bound to is too long")
        }
        // A slice from 1 up to, not through, so that a length of zero is an empty id, which no key has.
        guard let kidCount = stored.first, stored.count > Int(kidCount) else {
            throw StoreError.damaged(table: column.table, "a sealed value is cut short")
        }
        let kid = stored[1..<1 + Int(kidCount)]
        let key: Key
        var known: AES256GCMContexts?
        if kid.elementsEqual(current.idBytes) {
            (key, known) = (current, contexts)
        } else if let match = older.first(where: { kid.elementsEqual($0.idBytes) }) {
            key = match
        } else {
            throw StoreError.damaged(
                table: column.table,
                "a value is sealed under the data key `\(String(decoding: kid, as: UTF8.self))`, which is not loaded"
            )
        }
        do {
            return try row.withUnsafeBytes { row in
                try column.withContext(row: row, kid: key.idBytes) {
                    try (known ?? AES256GCMContexts(key.key)).open(stored[(1 + Int(kidCount))...], aad: $0)
                }
            }
        } catch OpenSSLError.authenticationFailed {
            throw StoreError.damaged(
                table: column.table, "a value does not authenticate under the data key `\(key.id)`")
        }
    }

    /// The length of a value of `count` bytes when it is stored, sealed under the current key.
    func byteCount(of count: Int) -> Int { 1 + current.idBytes.count + 12 + count + 16 }

    /// Whether a stored value was sealed under the current key.
    func isCurrent(_ stored: [UInt8]) -> Bool {
        stored.count > current.idBytes.count && Int(stored[0]) == current.idBytes.count
            && stored[1...current.idBytes.count].elementsEqual(current.idBytes)
    }
}

/// A count that many threads raise.
private final class SealCount: Sendable {
    private let count = Atomic<UInt64>(0)
    var value: UInt64 { count.load(ordering: .relaxed) }
    func add(_ more: UInt64) { count.wrappingAdd(more, ordering: .relaxed) }

    /// - Returns: Whether the count was still below the bound, and is one more now.
    func take(below max: UInt64) -> Bool {
        var known = value
        while known < max {
            let (exchanged, found) = count.weakCompareExchange(
                expected: known, desired: known + 1, ordering: .relaxed)
            if exchanged { return true }
            known = found
        }
        return false
    }
}

/// One encrypted column of one table.
struct SealedColumn: Sendable {
    let table: String
    static let rowByteCountMax = Int(UInt16.max)
    private let prefix: [UInt8]

    init(_ table: String, _ column: String) {
        self.table = table
        prefix = Array("sendgate/row/v1\0".utf8) + Self.part(table) + Self.part(column)
    }

    private static func part(_ text: String) -> [UInt8] {
        withUnsafeBytes(of: UInt16(text.utf8.count).bigEndian) { Array($0) } + Array(text.utf8)
    }

    /// Gives what a sealed value is bound to. Made where it is used up at once: most of it is a few dozen bytes, of every row.
    fileprivate func withContext<Result>(
        row: UnsafeRawBufferPointer, kid: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        let byteCount = prefix.count + 4 + row.count + kid.count
        return try withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { context in
            prefix.withUnsafeBytes { context.copyMemory(from: $0) }
            var count = prefix.count
            Self.append(row, to: context, &count)
            kid.withUnsafeBytes { Self.append($0, to: context, &count) }
            return try body(UnsafeRawBufferPointer(rebasing: context[..<count]))
        }
    }

    private static func append(
        _ part: UnsafeRawBufferPointer, to context: UnsafeMutableRawBufferPointer, _ count: inout Int
    ) {
        precondition(part.count <= rowByteCountMax, "a row id has at most 65,535 bytes")
        context.storeBytes(of: UInt16(part.count).bigEndian, toByteOffset: count, as: UInt16.self)
        count += 2
        UnsafeMutableRawBufferPointer(rebasing: context[count...]).copyMemory(from: part)
        count += part.count
    }
}
