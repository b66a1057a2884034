import GateSteps
import GateVocabulary
import GatewayPipeline
import InMemoryStore
import OpenSSLCrypto
import GateRecords
import Testing

@testable import SQLiteStore

@Suite struct RowCipherTests {
    private let column = SealedColumn("device", "sealed")
    private let plain = Array("a push token".utf8)

    private func isDamaged(in expected: String = "device", _ body: () throws -> Void) -> Bool {
        do {
            try body()
            return false
        } catch StoreError.damaged(let table, _, _) {
            return table == expected
        } catch {
            return false
        }
    }

    @Test func `what is sealed opens again at the same place only`() throws {
        let cipher = RowCipher(current: try .test(1))
        let sealed = try cipher.seal(plain, in: column, row: [1, 2])
        #expect(try cipher.open(sealed, in: column, row: [1, 2]) == plain)
        #expect(isDamaged { _ = try cipher.open(sealed, in: column, row: [1, 3]) })
        #expect(isDamaged { _ = try cipher.open(sealed, in: column, row: [1]) })
        #expect(isDamaged { _ = try cipher.open(sealed, in: SealedColumn("device", "other"), row: [1, 2]) })
        // The table in the error is the one that was asked, so this one is told by another name.
        #expect(throws: StoreError.self) {
            try cipher.open(sealed, in: SealedColumn("address", "sealed"), row: [1, 2])
        }
    }

    @Test func `length prefixes keep neighbouring parts of the context apart`() throws {
        let cipher = RowCipher(current: try .test(1))
        let sealed = try cipher.seal(plain, in: SealedColumn("ab", "c"), row: [1])
        #expect(throws: StoreError.self) { try cipher.open(sealed, in: SealedColumn("a", "bc"), row: [1]) }
    }

    @Test func `what a value is bound to has exactly the documented bytes`() throws {
        let sealed = try RowCipher(current: try .test(1)).seal(plain, in: column, row: [1, 2])
        let id = Array("data-test-1".utf8)
        // lp(part) is its length in two bytes, then the part: table, column, row, key.
        let context =
            Array("sendgate/row/v1".utf8) + [0] + [0, 6] + Array("device".utf8) + [0, 6]
            + Array("sealed".utf8) + [0, 2, 1, 2] + [0, UInt8(id.count)] + id
        let key = try AES256GCMKey(SecretBytes(copying: [UInt8](repeating: 1, count: 32)))
        #expect(try key.open(Array(sealed[(1 + id.count)...]), aad: context) == plain)
    }

    @Test func `a state and a record are sealed for whose they are and where they stand`() {
        let subject = SubjectID.sample(7)
        let number: [UInt8] = [0, 0, 0, 0, 0, 0, 1, 2]
        #expect(GateReading.stateRow(subject, 258) == subject.bytes + number)
        let kind: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1]
        #expect(LedgerKind.choice.row(subject, 258) == subject.bytes + kind + number)
    }

    @Test func `a waiting message is sealed for every column that is written with it`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        try store.write { _ = try $0.putCanaries() }
        let record = try #require(try store.read { try $0.outbox(MessageID.sample(1)) })
        let changes: [(inout OutboxRecord) -> Void] = [
            { $0.message = .sample(9) }, { $0.send = .sample(9) }, { $0.subject = .sample(9) },
            { $0.destination = .sample(9) }, { $0.request.caller = CallerName("another") },
            { $0.request.type = TypeID("another") }, { $0.request.channel = .email },
            { $0.request.critical.toggle() }, { $0.category = .social },
            { $0.tier = $0.tier == .critical ? .promotional : .critical },
            { $0.state = $0.state == .deferred ? .ready : .deferred },
            { $0.form = $0.form == .full ? .sealed : .full },
            { $0.interruption = $0.interruption == .passive ? .active : .passive },
            { $0.key = .sample(9) }, { $0.decidedAt = Instant(milliseconds: 1) },
            { $0.expiresAt = Instant(milliseconds: 1) },
        ]
        func bound(_ record: OutboxRecord, number: Int64 = 1, rank: Int64 = 2) -> [UInt8] {
            OutboxRow(number: number, head: record).bound(rank: rank)
        }
        var bytes: Set<[UInt8]> = [bound(record), bound(record, number: 2), bound(record, rank: 3)]
        for change in changes {
            var changed = record
            change(&changed)
            bytes.insert(bound(changed))
        }
        #expect(bytes.count == changes.count + 3)
    }

    @Test func `the stored form names its key and starts with it`() throws {
        let sealed = try RowCipher(current: try .test(1)).seal(plain, in: column, row: [1])
        let id = Array("data-test-1".utf8)
        #expect(sealed[0] == UInt8(id.count))
        #expect(Array(sealed[1...id.count]) == id)
        #expect(sealed.count == 1 + id.count + 12 + plain.count + 16)
    }

    @Test func `sealing twice gives different bytes`() throws {
        let cipher = RowCipher(current: try .test(1))
        #expect(try cipher.seal(plain, in: column, row: [1]) != cipher.seal(plain, in: column, row: [1]))
    }

    @Test func `every changed byte and every cut is damage`() throws {
        let cipher = RowCipher(current: try .test(1))
        let sealed = try cipher.seal(plain, in: column, row: [1])
        for position in sealed.indices {
            var changed = sealed
            changed[position] ^= 1
            #expect(isDamaged { _ = try cipher.open(changed, in: column, row: [1]) }, "byte \(position)")
        }
        for count in 0..<sealed.count {
            #expect(isDamaged { _ = try cipher.open(Array(sealed[..<count]), in: column, row: [1]) })
        }
        #expect(isDamaged { _ = try cipher.open(sealed + [0], in: column, row: [1]) })
    }

    @Test func `a rotated key still opens what it sealed, and the new one seals from now on`() throws {
        let before = RowCipher(current: try .test(1))
        let after = RowCipher(current: try .test(2), older: [try .test(1)])
        let old = try before.seal(plain, in: column, row: [1])
        let new = try after.seal(plain, in: column, row: [1])
        #expect(try after.open(old, in: column, row: [1]) == plain)
        #expect(isDamaged { _ = try before.open(new, in: column, row: [1]) })
        #expect(after.isCurrent(new) && !after.isCurrent(old))
    }

    @Test func `a value under a key that is not loaded says which`() throws {
        let sealed = try RowCipher(current: try .test(1)).seal(plain, in: column, row: [1])
        #expect(
            throws: StoreError.damaged(
                table: "device", "a value is sealed under the data key `data-test-1`, which is not loaded")
        ) {
            try RowCipher(current: try .test(2)).open(sealed, in: column, row: [1])
        }
    }

    // MARK: Fields

    @Test func `fields that are cut short or too long are damage, whatever is missing`() throws {
        var state = RecipientState(.sample(1))
        let device = DeviceRecord(
            subject: .sample(1), tag: .sample(2), id: DestinationID("d"), platform: .ios, app: "a",
            token: "t",
            region: RegionObservation(code: RegionCode("US-CA")!, source: .ip, observedAt: .sample),
            timeZone: "Europe/Oslo", osPermission: .denied, criticalAlerts: true, isActive: false,
            seenAt: .sample)
        state.apply(.device(device, action: .registered))
        let fields = state.sealedFields
        func read(_ fields: [UInt8]) throws -> RecipientState {
            try RecipientState(sealedFields: fields, subject: .sample(1))
        }
        #expect(try read(fields) == state)
        for count in 0..<fields.count {
            #expect(isDamaged(in: RecipientState.table) { _ = try read(Array(fields[..<count])) })
        }
        #expect(isDamaged(in: RecipientState.table) { _ = try read(fields + [0]) })
        // A count that promises more than there is ends with an error, not with an allocation. The first list's count
        // is after the layout and the flag of the record.
        for number in 2..<6 {
            var endless = fields
            endless[number] = 0x0F
            #expect(isDamaged(in: RecipientState.table) { _ = try read(endless) })
        }
    }

    // MARK: Looking for remnants

    @Test func `a remnant is found wherever the pieces are cut`() {
        let needle = (0..<40).map { UInt8($0 * 6 + 3) }
        let other = [UInt8](repeating: 0xEE, count: 32)
        let hay = [UInt8](repeating: 0, count: 100) + needle + [UInt8](repeating: 9, count: 60)
        func finds(_ needles: [[UInt8]], in hay: [UInt8], pieceCount: Int) -> Bool {
            var search = RemnantSearch(needles)
            for start in stride(from: 0, to: hay.count, by: pieceCount) {
                let piece = Array(hay[start..<min(start + pieceCount, hay.count)])
                if piece.withUnsafeBytes({ search.finds(in: $0) }) { return true }
            }
            return false
        }
        for pieceCount in [1, 3, 8, 39, 40, 41, 100, 107, 1000] {
            #expect(finds([other, needle], in: hay, pieceCount: pieceCount), "pieces of \(pieceCount)")
            #expect(!finds([other], in: hay, pieceCount: pieceCount))
            #expect(!finds([], in: hay, pieceCount: pieceCount))
        }
        // The same head with another end is no match.
        #expect(!finds([Array(needle.dropLast()) + [0]], in: hay, pieceCount: 50))
    }
}
