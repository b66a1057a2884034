import Foundation
import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import SQLiteStore
import Synchronization
import Testing

/// A kind of store that must keep the promises of `GateStore`. Another adapter joins by adding itself to
/// ``all``; the suite knows nothing else about it.
struct StoreUnderTest: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Opens a store over memory of its own, kept at `place`; opening the same place again finds what was
    /// committed before.
    let open: @Sendable (_ place: String) throws -> any GateStore

    static let all: [StoreUnderTest] = [
        StoreUnderTest(testDescription: "SQLite on disk") { place in
            let data = try AES256GCMKey(SecretBytes(copying: [UInt8](repeating: 7, count: 32)))
            return try SQLiteStore(
                directory: place, cipher: RowCipher(current: RowCipher.Key(id: "data-test-1", key: data)),
                indexKey: StoreContents.sampleIndex)
        },
        StoreUnderTest(testDescription: "in memory") { place in
            if let known = memories.withLock({ $0[place] }) {
                known.reopen()
                return known
            }
            let made = InMemoryStore()
            memories.withLock { $0[place] = made }
            return made
        },
    ]

    private static let memories = Mutex<[String: InMemoryStore]>([:])
}

/// A folder that goes away with the test.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "sendgate-store-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// One open store and the place to open it at again.
final class OpenStore {
    private let kind: StoreUnderTest
    private let folder: TemporaryFolder
    private var current: (any GateStore)?

    init(_ kind: StoreUnderTest) throws {
        self.kind = kind
        folder = try TemporaryFolder()
        current = try kind.open(folder.path + "/state")
    }

    var store: any GateStore { current! }

    @discardableResult
    func write<Result>(_ body: (GateMemory) throws -> Result) throws -> Result {
        try store.write(body)
    }

    /// Runs steps one after the other over one memory, and commits them together.
    ///
    /// - Parameter steps: What they look at is loaded as they ask for it.
    @discardableResult
    func commit(_ steps: [(GateMemory) throws -> Void]) throws -> CommitReceipt {
        let memory = GateMemory()
        try store.load([], into: memory)
        for step in steps { try store.step(step, over: memory) }
        return try store.commit(memory.applied)
    }

    /// How many rows a prune took.
    func prune(before moment: Instant) throws -> Int {
        try store.committing { $0.prune(before: moment) }.receipt.prunedRowCount
    }

    func read<Result>(_ body: (any StoreReading) throws -> Result) throws -> Result {
        try store.read(body)
    }

    /// Closes the store and opens it again, as a restart does.
    func reopen() throws {
        current = nil
        current = try kind.open(folder.path + "/state")
    }
}

/// Something a test throws on purpose.
struct Interrupted: Error, Equatable {}
