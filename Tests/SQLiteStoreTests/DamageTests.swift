import Foundation
@testable import GateSteps
import GateTestKit
import GateVocabulary
import GatewayPipeline
import InMemoryStore
@testable import GateRecords
import Testing

@testable import SQLiteStore

/// Whatever the files hold, reading them ends with values or with an error that names the place. A trap here ends the
/// whole run, which is what these tests are for.
@Suite struct DamageTests {
    private static let seed: UInt64 = 0x5EED_0011

    /// What `body` made of its bytes: a value, damage, or something else that it should not throw.
    private func expectValueOrDamage(_ bytes: [UInt8], _ body: () throws -> Void) {
        do {
            try body()
        } catch let error as StoreError where error.damage != nil {
        } catch {
            Issue.record("\(error) from \(Hexadecimal.encode(bytes))")
        }
    }

    // MARK: Decoders

    @Test func `a sealed value of one zero byte is damage`() throws {
        let cipher = RowCipher(current: try .test(1))
        for bytes: [UInt8] in [[0], [0, 0], [], [UInt8](repeating: 0, count: 64)] {
            let error = #expect(throws: StoreError.self) {
                try cipher.open(bytes, in: SealedColumn("outbox", "sealed"), row: [1])
            }
            #expect(error?.damage?.table == "outbox")
            #expect(!cipher.isCurrent(bytes))
        }
    }

    @Test func `a sealed value opens as it was sealed or is damage, whatever was done to it`() throws {
        let cipher = RowCipher(current: try .test(1), older: [try .test(2)])
        let column = SealedColumn("device", "sealed")
        let plain = Array("a push token".utf8)
        let sealed = try cipher.seal(plain, in: column, row: [1])
        for bytes in DamagedBytes(of: sealed, seed: Self.seed, randomCount: 5_000) {
            expectValueOrDamage(bytes) {
                let opened = try cipher.open(bytes, in: column, row: [1])
                #expect(opened == plain && bytes == sealed)
            }
            _ = cipher.isCurrent(bytes)
        }
    }

    /// Past the seal, as if its writer had the key: the fields themselves never trap.
    @Test func `fields read as something or are damage, whatever they hold`() throws {
        let decoders: [(fields: [UInt8], read: ([UInt8]) throws -> Void)] = [
            (
                RecipientState.full.sealedFields,
                { _ = try RecipientState(sealedFields: $0, subject: .sample(1)) }
            ),
            (
                ConsentRecord.full.sealedFields,
                { _ = try ConsentRecord(sealedFields: $0, subject: .sample(1), sequence: 1) }
            ),
            (
                Self.segment,
                { _ = try EntrySegment.entries($0, from: 5, count: 3) }
            ),
            (
                PreferenceRecord.full.sealedFields,
                { _ = try PreferenceRecord(sealedFields: $0, subject: .sample(1)) }
            ),
            (
                SendRecord.Details(
                    type: TypeID("t"), requestID: "r", destinationNames: [.sample(1): "d", .sample(2): "e"]
                ).sealedFields, { _ = try SendRecord.Details(sealedFields: $0) }
            ),
            (
                OutboxRecord.Content(
                    headers: [1], body: [2, 3], facts: [4], eventTag: .sample(5), mayHaveArrived: true,
                    isCancelled: false
                ).sealedFields, { _ = try OutboxRecord.Content(sealedFields: $0) }
            ),
        ]
        for (number, decoder) in decoders.enumerated() {
            try decoder.read(decoder.fields)
            for bytes in DamagedBytes(of: decoder.fields, seed: Self.seed + UInt64(number)) {
                expectValueOrDamage(bytes) { try decoder.read(bytes) }
            }
        }
    }

    /// What a person may have or lack has a value in at least one of the records that are read back.
    @Test func `every field of a sealed row reads back as it was written`() throws {
        let state = RecipientState.full
        #expect(try RecipientState(sealedFields: state.sealedFields, subject: .sample(1)) == state)
        let (consent, choice) = (ConsentRecord.full, PreferenceRecord.full)
        #expect(
            try ConsentRecord(sealedFields: consent.sealedFields, subject: .sample(1), sequence: 0) == consent
        )
        #expect(try PreferenceRecord(sealedFields: choice.sealedFields, subject: .sample(1)) == choice)
        let details = SendRecord.Details(
            type: TypeID("t"), requestID: "r", destinationNames: [.sample(1): "d", .sample(2): "e"])
        #expect(try SendRecord.Details(sealedFields: details.sealedFields) == details)
        let content = OutboxRecord.Content(
            headers: [1], body: [2, 3], facts: [4], eventTag: .sample(5),
            traceParent: TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            mayHaveArrived: true, isCancelled: true
        )
        #expect(try OutboxRecord.Content(sealedFields: content.sealedFields) == content)
        #expect(content.sealedFields.count == content.fieldByteCount)
        for record: Any in [state, consent, choice, details, content] {
            let (present, absent) = Self.fields(of: record, at: "\(type(of: record))")
            #expect(absent.subtracting(present) == [])
        }
    }

    /// The paths of what may be absent or empty, by whether it is.
    private static func fields(of value: Any, at path: String) -> (present: Set<String>, absent: Set<String>)
    {
        let mirror = Mirror(reflecting: value)
        let isOptional = [.optional, .collection, .dictionary].contains(mirror.displayStyle)
        guard !isOptional || !mirror.children.isEmpty else { return ([], [path]) }
        var found: (present: Set<String>, absent: Set<String>) = (isOptional ? [path] : [], [])
        for child in mirror.children {
            let inner = fields(of: child.value, at: isOptional ? path : "\(path).\(child.label ?? "")")
            found.present.formUnion(inner.present)
            found.absent.formUnion(inner.absent)
        }
        return found
    }

    @Test func `a state in the layout of a newer build is damage that names both layouts`() throws {
        var fields = RecipientState.full.sealedFields
        fields[0] += 1
        let error = #expect(throws: StoreError.self) {
            try RecipientState(sealedFields: fields, subject: .sample(1))
        }
        #expect("\(try #require(error))".contains("layout \(fields[0]), not \(fields[0] - 1)"))
    }

    private static var segment: [UInt8] {
        var segment = EntrySegment(expectedCount: 1)
        for index in UInt64(5)..<8 {
            segment.append(StoredEntry(index: index, time: .sample, bytes: Array("{\"n\":\(index)}".utf8)))
        }
        return segment.bytes.bytes
    }

    // MARK: Columns

    /// Values that stand for every kind of nonsense a STRICT column can hold.
    private static func nonsense(_ type: String) -> [String] {
        switch type {
        case "INTEGER":
            ["-9223372036854775808", "-1", "99", "253402300800000", "9223372036854775807", "NULL"]
        case "TEXT": ["''", "'\u{FFFD}'", "CAST(x'ff00fe' AS TEXT)", "NULL"]
        default:
            [
                "x''", "x'00'", "zeroblob(16)", "x'ffffffffffffffffffffffffffffffffffff'", "NULL",
            ]
        }
    }

    /// Everything that reads or changes the rows of one person, each by itself. Gives what was damaged.
    private func exercise(_ store: SQLiteStore, _ number: Int) throws {
        func attempt(_ body: () throws -> Void) throws {
            do {
                try body()
            } catch let error as StoreError where error.damage != nil {
            } catch is UnfitWrite {
            }
        }
        let (subject, send, message) = (
            SubjectID.sample(number), SendID.sample(number), MessageID.sample(number)
        )
        let reads: [(any StoreReading) throws -> Void] = [
            { _ = try $0.subject(of: UserID(Canary.user + "-\(number)")) }, { _ = try $0.subject(subject) },
            { _ = try $0.recipient(subject) }, { _ = try $0.devices(of: subject) },
            { _ = try $0.addresses(of: subject) },
            { _ = try $0.deviceKeys(of: subject, device: .sample(1)) },
            { _ = try $0.deviceKey(.sample(1000 + number)) }, { _ = try $0.consentRecords(of: subject) },
            { _ = try $0.preferences(of: subject) }, { _ = try $0.preferenceHistory(of: subject) },
            { _ = try $0.permissionPrompts(of: subject) }, { _ = try $0.send(send) },
            { _ = try $0.send(caller: CallerName("payments"), idHash: Tag.sample(number).bytes) },
            { _ = try $0.sends(of: subject, before: nil, limit: 9) },
            {
                _ = try $0.forwardCounts(
                    of: subject, type: TypeID("t"), typeSince: .sample, category: .transactional,
                    categorySince: Instant(milliseconds: 0), besides: send)
            }, { _ = try $0.forwards(of: subject, since: Instant(milliseconds: 0), limit: 9) },
            { _ = try $0.dedupeRecord(.sample(9), to: subject) }, { _ = try $0.outbox(message) },
            { _ = try $0.outbox(MessageID.sample(10 + number)) },
            { _ = try $0.outbox(of: send) }, { _ = try $0.outbox(of: subject) },
            { _ = try $0.outboxCount(of: subject, limit: 9) },
            { _ = try $0.dueOutbox(at: .sample, limit: 9, lane: .general, excluding: []) },
            { reading in
                if let due = try reading.nextOutboxDue(lane: .general, excluding: []) {
                    // What the relay does with it.
                    _ = due.milliseconds - Instant.sample.milliseconds
                }
            }, { _ = try $0.outboxDepth() }, { _ = try $0.events(of: send) },
            { _ = try $0.events(of: CallerName("payments"), after: 0, limit: 9) },
            { _ = try $0.entries(from: 0, limit: 9) }, { _ = try $0.newestEntryTime() },
            { _ = try $0.newestEntryClock() }, { _ = try $0.setting("some") },
        ]
        for read in reads { try attempt { try store.read(read) } }
        let changes: [(GateMemory) throws -> Void] = [
            { transaction in
                if let row = try transaction.outbox(message) { transaction.updateOutbox(row) }
            }, { $0.markAttempt(message, at: .sample) },
            { $0.postponeOutbox(message, until: .sample) },
            { transaction in
                if var device = try transaction.devices(of: subject).first {
                    device.seenAt = .sample
                    try transaction.putDevice(device)
                }
            }, { $0.prune(before: Instant(seconds: 1_900_000_000)) },
            { $0.removeOutbox(message) }, { $0.eraseSubject(subject) },
        ]
        // Undone again, so that the next one finds the same damage.
        for change in changes {
            try attempt {
                do {
                    try store.write { (transaction: GateMemory) throws -> Void in
                        try change(transaction)
                        try transaction.cannotBeWritten()
                    }
                } catch is UnfitWrite {
                }
            }
        }
    }

    private func populate(_ path: String) throws {
        try openStore(path).write { transaction in
            for number in 1...2 {
                let subject = try transaction.putCanaries(number)
                transaction.offerOutbox(.canary(10 + number, of: number))
                transaction.countForward(
                    of: subject, type: TypeID("t"), category: .transactional, at: .sample,
                    send: .sample(number))
                transaction.putDedupe(
                    DedupeRecord(eventTag: .sample(9), send: .sample(number), at: .sample), to: subject)
            }
            transaction.setSetting("some", to: "value")
        }
    }

    @Test func `nonsense in any column of any row is a value or damage and the other person is as before`()
        throws
    {
        let folder = try TemporaryFolder()
        try populate(folder.state)
        var columns: [(file: String, table: String, column: String, type: String)] = []
        for file in ["gate.db", "subjects.db"] {
            try tamper(folder.state + "/" + file) { connection in
                let all = StatementText(
                    "schema",
                    """
                    SELECT m.name, c.name, c.type FROM sqlite_schema m, pragma_table_xinfo(m.name) c
                    WHERE m.type = 'table' ORDER BY 1, c.cid
                    """)
                columns += try connection.every(all) { (file, $0.text(), $0.text(), $0.text()) }
            }
        }
        #expect(columns.count > 60)
        var putCount = 0
        for (file, table, column, type) in columns {
            for value in Self.nonsense(type) {
                let copy = try TemporaryFolder()
                try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
                // The first row only: what is damaged is the first person's, or everybody's.
                let first = "rowid = (SELECT min(rowid) FROM \(table))"
                let isKeyed = [
                    "device_key", "duty", "push_token", "ledger", "erasure", "history",
                    "outbox_counters",
                    "setting",
                    "key_check", "dedupe",
                ]
                .contains(table)
                let place = isKeyed ? "(SELECT min(\(column)) FROM \(table)) IS \(column)" : first
                let wasPut: Void? =
                    try? tamper(copy.state + "/" + file) {
                        try $0.script("UPDATE \(table) SET \(column) = \(value) WHERE \(place)")
                    }
                guard wasPut != nil else { continue }  // What the column's own constraints refuse.
                putCount += 1
                do {
                    let store = try openStore(copy.state)
                    try exercise(store, 1)
                    // Tables that only a whole start can be refused for are told at the start.
                    if !["sequences", "word", "key_check", "index_check"].contains(table) {
                        let devices = try store.read { try $0.devices(of: .sample(2)) }
                        #expect(devices.first?.token == Canary.token, "\(table).\(column) = \(value)")
                    }
                    try exercise(store, 2)
                } catch  where error is StoreError || error is StoreOpeningError {
                    // A start reads these tables.
                    #expect(
                        [
                            "key_check", "index_check", "sequences", "word", "entry", "erasure", "offered",
                            "outbox_counters", "setting",
                        ].contains(table), "\(table).\(column) = \(value): \(error)")
                }
            }
        }
        #expect(putCount > columns.count, "only \(putCount) values could be put")
    }

    @Test(arguments: [0, 2, 3, 6])
    func `an entry that is missing and not published yet stops the start`(publishedSize: UInt64) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.state)
        let firsts = [0, 2, 4]
        for first in firsts {
            try store.write { transaction in
                for number in [first, first + 1] {
                    try transaction.appendEntry(
                        StoredEntry(
                            index: UInt64(number), time: .sample, bytes: Array("{\"n\":\(number)}".utf8)))
                }
            }
        }
        try store.write { $0.setPublishedSize(publishedSize) }
        store.close()
        for first in firsts {
            for change in ["UPDATE entry SET count = 1", "UPDATE entry SET count = 3", "DELETE FROM entry"] {
                let copy = try TemporaryFolder()
                try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
                try tamper(copy.state + "/gate.db") { try $0.script("\(change) WHERE number = \(first)") }
                // One that is too long hides none of what follows, and is one too many at the end.
                let isWhole = change.hasSuffix("3") ? first < 4 : first + 2 <= publishedSize
                if isWhole {
                    try openStore(copy.state).close()
                } else {
                    let error = #expect(throws: StoreOpeningError.self) { try openStore(copy.state) }
                    #expect("\(error as Any)".contains("entry"), "\(change) of \(first)")
                }
            }
        }
    }

    @Test func `files with flipped bytes open and read, or say what is damaged`() throws {
        let folder = try TemporaryFolder()
        try populate(folder.state)
        var numbers = SeededNumbers(seed: Self.seed)
        var (openCount, refusedCount) = (0, 0)
        for round in 0..<60 {
            let copy = try TemporaryFolder()
            try FileManager.default.copyItem(atPath: folder.state, toPath: copy.state)
            let path = URL(fileURLWithPath: copy.state + (round % 4 == 0 ? "/subjects.db" : "/gate.db"))
            var bytes = Array(try Data(contentsOf: path))
            for _ in 0...Int(numbers.next() % 16) {
                bytes[Int(numbers.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: numbers.next())
            }
            try Data(bytes).write(to: path)
            do {
                let store = try openStore(copy.state)
                try exercise(store, 1)
                try exercise(store, 2)
                openCount += 1
            } catch is StoreError {
                refusedCount += 1
            } catch is StoreOpeningError {
                refusedCount += 1
            }
        }
        #expect(openCount > 0 && refusedCount > 0, "\(openCount) opened, \(refusedCount) were refused")
    }
}

// Records with every field set.

extension RecipientState {
    /// Everything set that can be, twice where there may be several.
    fileprivate static var full: RecipientState {
        var state = RecipientState(.sample(1))
        var device = DeviceRecord.full
        device.tag = .sample(12)
        device.region = nil
        let prompt = PermissionPrompt(
            subject: .sample(1), device: .sample(2), shownAt: .sample, answer: .denied)
        let changes: [PersonChange] = [
            .recipient(.full, action: .registered), .device(.full, action: .registered),
            .device(device, action: .registered), .address(.full, action: .registered, replaced: nil),
            .deviceKey(.full, proof: nil), .consent(.full), .preference(.full),
            .permissionPrompt(prompt, action: .answered),
            .subscriptions(
                .sample(2),
                ProviderSubscriptions(states: [.marketing: true, .security: false], observedAt: .sample)),
            .drift(
                DriftFinding(
                    .subscribedWhileOff, .marked, device: .sample(2), category: .marketing, old: "on",
                    new: "off")),
        ]
        for change in changes { state.apply(change) }
        return state
    }
}

extension RecipientRecord {
    fileprivate static let full = RecipientRecord(
        subject: .sample(1),
        region: RegionObservation(code: RegionCode("DE")!, source: .kyc, observedAt: .sample), age: .adult,
        locale: "nb", timeZone: "Europe/Oslo", privacy: .generic, pushEnabled: true,
        quietHours: QuietHours(startMinute: 60, endMinute: 1439), registeredAt: .sample, updatedAt: .sample)
}

extension DeviceRecord {
    fileprivate static let full = DeviceRecord(
        subject: .sample(1), tag: .sample(2), id: DestinationID("d"), platform: .ios, provider: .expo,
        app: "a",
        token: "t",
        region: RegionObservation(code: RegionCode("US-CA")!, source: .ip, observedAt: .sample),
        timeZone: "Europe/Oslo", osPermission: .denied, criticalAlerts: true, isActive: false,
        seenAt: .sample)
}

extension AddressRecord {
    fileprivate static let full = AddressRecord(
        subject: .sample(1), tag: .sample(2), id: DestinationID("a"), channel: .sms, value: "+4790000001",
        verifiedAt: .sample, contestedAt: .sample, updatedAt: .sample)
}

extension DeviceKeyRecord {
    fileprivate static let full = DeviceKeyRecord(
        key: .sample(3), subject: .sample(1), device: .sample(2), suite: "P256_SHA256_AES256GCM",
        publicKey: [UInt8](repeating: 4, count: 65), state: "active",
        challenge: PendingChallenge(
            expectedProof: [1, 2], expectedOldKeyProof: [3], oldKey: .sample(4), expiresAt: .sample),
        createdAt: .sample, changedAt: .sample)
}

extension ConsentRecord {
    fileprivate static let full = ConsentRecord(
        subject: .sample(1), id: "c", idTag: .sample(3), purpose: .marketing, channel: .sms,
        address: .sample(4), state: .withdrawn, eventTime: .sample, statedTime: .sample, receivedAt: .sample,
        method: .doubleOptIn,
        source: CallerName("app"), jurisdiction: "DE",
        notice: NoticeReference(id: "promo", version: "3", sha256: "ab", language: "nb"), expiresAt: .sample,
        withdraws: .sample(5), previousHash: "cd", entryIndex: 17)
}

extension PreferenceRecord {
    fileprivate static let full = PreferenceRecord(
        subject: .sample(1), scope: "marketing", channel: .push, destination: .sample(2), state: .userOff,
        source: .inAppSettings, at: .sample, caller: CallerName("app"))
}
