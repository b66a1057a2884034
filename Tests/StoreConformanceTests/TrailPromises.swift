import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import Testing

@Suite struct TrailPromises {
    @Test(arguments: StoreUnderTest.all)
    func `entries are dense, in order and counted for ever`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        #expect(try opened.read { try $0.newestEntryTime() } == nil)
        try opened.write { (transaction) throws in
            for index in 0..<5 {
                try transaction.appendEntry(.sample(UInt64(index), at: .sample(Int64(index))))
            }
        }
        try opened.reopen()
        try opened.read { (store) throws in
            #expect(try store.entryCount() == 5)
            #expect(try store.newestEntryTime() == .sample(4))
            #expect(
                try store.entries(from: 1, limit: 3)
                    == (1...3).map { .sample(UInt64($0), at: .sample(Int64($0))) })
            #expect(try store.entries(from: 5, limit: 3).isEmpty)
            #expect(try store.entries(from: .max, limit: 3).isEmpty)
            #expect(try store.entry(4) == .sample(4, at: .sample(4)))
            #expect(try store.entry(5) == nil)
        }
    }

    @Test(arguments: StoreUnderTest.all)
    func `entries are read from any index on, however many a commit wrote`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        var entries: [StoredEntry] = []
        for count in [1, 7, 64, 1, 130, 3, 260] {
            let new = (0..<count).map { number in
                StoredEntry(
                    index: UInt64(entries.count + number), time: .sample(Int64(entries.count)),
                    bytes: [UInt8](repeating: UInt8(number & 0xFF), count: number * 37 % 500))
            }
            try opened.write { step in for entry in new { try step.appendEntry(entry) } }
            entries += new
        }
        func expectHeld(from first: Int) throws {
            try opened.read { (store) throws in
                for index in stride(from: first, to: entries.count, by: 1) {
                    #expect(try store.entry(UInt64(index)) == entries[index])
                    for limit in [0, 1, 2, 70, 999] {
                        #expect(
                            try store.entries(from: UInt64(index), limit: limit)
                                == Array(entries[index...].prefix(limit)))
                    }
                }
                #expect(try store.entry(UInt64(entries.count)) == nil)
                if first > 0 { #expect(try store.entry(UInt64(first - 1)) == nil) }
            }
        }
        try expectHeld(from: 0)
        try opened.write { $0.setPublishedSize(300) }
        try opened.reopen()
        try expectHeld(from: 256)
    }

    @Test(arguments: StoreUnderTest.all)
    func `entries stay until their full bundle is durable elsewhere`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            for index in 0..<600 { try transaction.appendEntry(.sample(UInt64(index))) }
        }
        try opened.write { $0.setPublishedSize(255) }
        #expect(try opened.read { try $0.entry(0) } != nil)
        try opened.write { $0.setPublishedSize(600) }
        try opened.reopen()
        try opened.read { (store) throws in
            #expect(try store.publishedSize() == 600)
            #expect(try store.entryCount() == 600)
            // What is not in a full bundle of 256 is still held, so a restart can write that bundle again.
            #expect(try store.entries(from: 512, limit: 999).count == 88)
            #expect(try store.entry(511) == nil && store.entry(512) != nil)
            #expect(try store.newestEntryTime() == .sample())
        }
        try opened.write { try $0.appendEntry(.sample(600)) }
        #expect(try opened.read { try $0.entryCount() } == 601)
    }

    @Test(arguments: StoreUnderTest.all)
    func `the published size never shrinks and never passes the entries`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            for index in 0..<3 { try transaction.appendEntry(.sample(UInt64(index))) }
            transaction.setPublishedSize(2)
        }
        #expect(throws: (any Error).self) { try opened.write { $0.setPublishedSize(1) } }
        #expect(throws: (any Error).self) { try opened.write { $0.setPublishedSize(4) } }
        #expect(try opened.read { try $0.publishedSize() } == 2)
    }

    @Test(arguments: StoreUnderTest.all)
    func `an entry of the largest size passes through`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let entry = StoredEntry(
            index: 0, time: .sample(), bytes: [UInt8](repeating: UInt8(ascii: "x"), count: 65_535))
        try opened.write { try $0.appendEntry(entry) }
        #expect(try opened.read { try $0.entry(0) } == entry)
    }

    @Test(arguments: StoreUnderTest.all)
    func `settings are set, replaced and taken away`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        try opened.write { (transaction) throws in
            transaction.setSetting("a", to: "1")
            transaction.setSetting("a", to: "2")
            transaction.setSetting("b", to: "")
            transaction.setSetting("c", to: "3")
            transaction.setSetting("c", to: nil)
        }
        try opened.read { (store) throws in
            #expect(try store.setting("a") == "2")
            #expect(try store.setting("b") == "")
            #expect(try store.setting("c") == nil)
            #expect(try store.settingNames(in: "a"..<"c", limit: 9) == ["a", "b"])
            #expect(try store.settingNames(in: "a"..<"c", limit: 1) == ["a"])
            #expect(try store.settingNames(in: "b"..<"z", limit: 9) == ["b"])
        }
    }
}
