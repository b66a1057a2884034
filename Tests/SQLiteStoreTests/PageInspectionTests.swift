import Foundation
import GateSteps
import GateTestKit
import GatewayPipeline
import OpenSSLCrypto
import Testing

@testable import SQLiteStore

/// Every page of databases that no process has open is held against its code, also where they cannot be opened.
@Suite struct PageInspectionTests {
    private static let size = PageCode.pageByteCount

    /// A state directory as a process left it that was killed: with pages in the database and in the log.
    ///
    /// - Parameter isFirst: Whether it was the first process: of the pages all lie in the logs.
    private func killed(isFirst: Bool = false) throws -> TemporaryFolder {
        let (folder, copy) = (try TemporaryFolder(), try TemporaryFolder())
        if !isFirst {
            let first = try openStore(folder.state)
            try first.write { step in for number in 1...12 { _ = try step.putCanaries(number) } }
            first.close()
        }
        let store = try openStore(folder.state)
        try store.write { step in for number in 13...14 { _ = try step.putCanaries(number) } }
        try store.synchronize()
        try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
        store.close()
        return copy
    }

    /// The same after a stop, when all of each log is in its database.
    private func stopped() throws -> TemporaryFolder {
        let folder = try killed()
        try openStore(folder.state).close()
        return folder
    }

    private func files(_ folder: TemporaryFolder) throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.state)
        return Dictionary(
            uniqueKeysWithValues: try names.map {
                ($0, try Data(contentsOf: URL(fileURLWithPath: folder.state + "/" + $0)))
            })
    }

    private func edit(_ folder: TemporaryFolder, _ file: String, _ edit: (inout Data) -> Void) throws {
        let path = URL(fileURLWithPath: folder.state + "/" + file)
        var bytes = try Data(contentsOf: path)
        edit(&bytes)
        try bytes.write(to: path)
    }

    /// What is damaged; requires that no file has changed.
    private func damages(_ folder: TemporaryFolder, under index: HMACKey = .test()) throws -> [String] {
        let before = try files(folder)
        let found = Result { try PageInspection.damages(in: folder.state, under: index).map(\.description) }
        #expect(try files(folder) == before)
        return try found.get()
    }

    @Test func `databases that were stopped or killed are whole`() throws {
        #expect(try damages(stopped()) == [])
        #expect(try damages(killed()) == [])
    }

    @Test(arguments: ["gate.db", "subjects.db"])
    func `a flipped bit in any page is named, and no other`(file: String) throws {
        let folder = try stopped()
        let pageCount = try #require(try files(folder)[file]).count / Self.size
        var numbers = SeededNumbers(seed: Soak.seed("flips in stopped databases"))
        for page in 0..<pageCount {
            let bit = Int(numbers.next() % UInt64(Self.size * 8))
            func flip(_ bytes: inout Data) { bytes[page * Self.size + bit / 8] ^= 1 << (bit % 8) }
            try edit(folder, file, flip)
            let found = try damages(folder)
            #expect(
                found.count == 1 && found[0].contains("page \(page + 1) of `\(file)`"),
                "page \(page + 1), bit \(bit): \(found)")
            try edit(folder, file, flip)
        }
    }

    @Test func `every damaged page is named, not only the first`() throws {
        let folder = try stopped()
        try edit(folder, "gate.db") { bytes in
            for page in [0, 1, 7, 20] { bytes[page * Self.size + 100] ^= 1 }
        }
        let found = try damages(folder)
        #expect(found.count == 4, "\(found)")
        try edit(folder, "gate.db") { bytes in
            for place in stride(from: 0, to: bytes.count, by: Self.size) { bytes[place + 9] ^= 1 }
        }
        // Another database is right, so it is not the key.
        #expect(try damages(folder).count > 20)
    }

    @Test func `a file that is empty, gone, cut off or zeroed is named`() throws {
        let cases: [(edit: (inout Data) -> Void, what: (_ pageCount: Int) -> String)] = [
            ({ $0 = Data() }, { _ in "`gate.db` is damaged: the file is empty" }),
            ({ $0.removeLast(Self.size * 3) }, { "ends after page \($0 - 3) of \($0)" }),
            ({ $0.removeLast(100) }, { _ in "`gate.db` ends in the middle of it" }),
            (
                { $0.replaceSubrange(0..<Self.size, with: Data(count: Self.size)) },
                { _ in "page 1 of `gate.db`" }
            ),
        ]
        for (change, what) in cases {
            let folder = try stopped()
            // Random ids fall on more pages or fewer.
            let pageCount = try #require(try files(folder)["gate.db"]).count / Self.size
            try edit(folder, "gate.db", change)
            let found = try damages(folder)
            #expect(found.count == 1 && found[0].contains(what(pageCount)), "\(pageCount): \(found)")
        }
        let folder = try stopped()
        try FileManager.default.removeItem(atPath: folder.state + "/gate.db")
        #expect(try damages(folder) == ["`gate.db` is damaged: the file is missing"])
        let emptied = try stopped()
        for file in ["gate.db", "subjects.db"] { try edit(emptied, file) { $0 = Data() } }
        #expect(try damages(emptied).count == 2)
        try FileManager.default.removeItem(atPath: folder.state + "/subjects.db")
        try FileManager.default.createDirectory(
            atPath: folder.state + "/gate.db", withIntermediateDirectories: false)
        #expect(throws: StoreOpeningError.notARegularFile(path: folder.state + "/gate.db")) {
            try PageInspection.damages(in: folder.state, under: .test())
        }
    }

    @Test func `what the log has still to bring is no damage, and a log without its end is`() throws {
        let folder = try killed()
        let path = folder.state + "/gate.db"
        let mark = try LogMark(
            besides: path, keys: PageKeys(index: .test(), file: "gate.db"), isReadOnly: true)
        let inLog = try WriteAheadLog.pages(of: path + "-wal", to: mark.settle()).numbers
        let pageCount = try #require(try files(folder)["gate.db"]).count / Self.size
        let (torn, other) = (
            try #require((1...pageCount).first { inLog.contains(Int64($0)) }),
            try #require((1...pageCount).first { !inLog.contains(Int64($0)) })
        )
        for (page, isDamage) in [(torn, false), (other, true)] {
            try edit(folder, "gate.db") { $0[(page - 1) * Self.size + 99] ^= 1 }
            #expect(try damages(folder).isEmpty != isDamage, "page \(page)")
        }
        let log = try #require(try files(folder)["gate.db-wal"])
        try edit(folder, "gate.db-wal") { $0[log.count / 2] ^= 4 }
        let found = try damages(folder)
        #expect(found.contains { $0.contains("frames of it can be read") }, "\(found)")
    }

    @Test func `without databases, or under another key, nothing is called whole or damaged`() throws {
        let empty = try TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: empty.state, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        #expect(throws: StoreOpeningError.noDatabases(path: empty.state)) { try damages(empty) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: empty.state) == [])
        for folder in [try stopped(), try killed(), try killed(isFirst: true)] {
            #expect(throws: StoreOpeningError.wrongIndexKey) { try damages(folder, under: .test(8)) }
        }
        // Under the right key nothing of it is one of a wrong one.
        let first = try killed(isFirst: true)
        #expect(try damages(first) == [])
        try FileManager.default.removeItem(atPath: first.state + "/subjects.db")
        #expect(try damages(first) == ["`subjects.db` is damaged: the file is missing"])
    }

    @Test func `a gateway that runs is told of, not read`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        defer { store.close() }
        #expect(throws: StoreOpeningError.directoryInUse(path: folder.state, processID: getpid())) {
            try PageInspection.damages(in: folder.state, under: .test())
        }
    }
}
