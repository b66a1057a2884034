import CanonicalJSON
import GateVocabulary
import Testing

@testable import GateRecords

/// What follows from the fields of a record.
@Suite struct RecordTests {
    static let now = Instant(milliseconds: 1_795_260_000_000)
    static let subject = SubjectID(high: 1, low: 2)
    static let tag = Tag(high: 3, low: 4)

    static let device = DeviceRecord(
        subject: subject, tag: tag, id: DestinationID("d_1"), platform: .android, provider: .expo, app: "a.b",
        token: "ExponentPushToken[x]",
        region: RegionObservation(code: RegionCode("NO")!, source: .sim, observedAt: now),
        timeZone: "Europe/Oslo",
        osPermission: .granted, criticalAlerts: true, isActive: false, seenAt: now,
        subscriptions: ProviderSubscriptions(states: [.marketing: true, .social: false], observedAt: now))
    static let key = DeviceKeyRecord(
        key: KeyID(high: 5, low: 6), subject: subject, device: tag, suite: "P256_SHA256_AES256GCM",
        publicKey: [4, 7, 8], state: "pre_activation",
        challenge: .init(
            expectedProof: [1, 2], expectedOldKeyProof: nil, oldKey: KeyID(high: 7, low: 8), expiresAt: now,
            triesLeft: 3), createdAt: now, changedAt: now)
    static let address = AddressRecord(
        subject: subject, tag: tag, id: DestinationID("a_1"), channel: .sms, value: "+4790000000",
        verifiedAt: now, contestedAt: now, updatedAt: now)
    static let recipient = RecipientRecord(
        subject: subject, region: nil, age: .minor, locale: "nb", timeZone: "Europe/Oslo", privacy: .hidden,
        pushEnabled: false, quietHours: QuietHours(startMinute: 1319, endMinute: 7), registeredAt: now,
        updatedAt: now)
    static let consent = ConsentRecord(
        subject: subject, id: "c-1", idTag: tag, purpose: .marketing, channel: .sms, address: tag,
        state: .withdrawn, eventTime: now, statedTime: now, receivedAt: now, method: .smsKeyword,
        source: CallerName("product"), jurisdiction: "NO",
        notice: .init(id: "promo", version: "3", sha256: String(repeating: "0a", count: 32), language: "nb"),
        expiresAt: now, withdraws: tag, previousHash: String(repeating: "0b", count: 32), entryIndex: 9)
    static let choice = PreferenceRecord(
        subject: subject, scope: "marketing", channel: .push, destination: tag, state: .userOff,
        source: .stateAudit, at: now, caller: CallerName("product"))
    static let prompt = PermissionPrompt(subject: subject, device: tag, shownAt: now, answer: .denied)
    static let drift = DriftFinding(
        .notEntitled, .repaired, device: tag, category: .marketing, old: "on", new: "off")

    private static func row(of value: some StoredValue) -> [UInt8] {
        var row = RowWriter(version: 1)
        value.write(row: &row)
        return row.bytes
    }

    private static func read<Value: StoredValue>(_ bytes: [UInt8]) throws -> Value {
        var row = try RowReader(bytes, layout: 1, subject: subject)
        let value = try Value.read(row: &row)
        try row.finish()
        return value
    }

    // MARK: Rows

    @Test func `a record is read from its row as it was written, and from no other bytes`() throws {
        func check<Value: StoredValue & Equatable>(_ value: Value) throws {
            let bytes = Self.row(of: value)
            #expect(try Self.read(bytes) == value)
            for count in 0..<bytes.count {
                #expect(throws: DamagedRow.self, "\(count) of \(bytes.count) bytes") {
                    let _: Value = try Self.read(Array(bytes[..<count]))
                }
            }
            #expect(throws: DamagedRow.self) {
                let _: Value = try Self.read(bytes + [0])
            }
        }
        try check(Self.device)
        try check(Self.key)
        try check(Self.address)
        try check(Self.recipient)
        try check(Self.consent)
        try check(Self.choice)
        try check(Self.prompt)
        try check(Self.drift)
        var state = RecipientState(Self.subject)
        for change in [
            PersonChange.recipient(Self.recipient, action: .registered), .consent(Self.consent),
            .device(Self.device, action: .registered, isTokenChanged: nil), .preference(Self.choice),
            .address(Self.address, action: .registered, replaced: nil), .drift(Self.drift),
            .deviceKey(Self.key, proof: nil, by: nil), .permissionPrompt(Self.prompt, action: .answered),
        ] { state.apply(change) }
        try check(state)
    }

    /// A record that got a field in versions 4 and 5, beside one that every row has.
    private struct Grown: Record, StoredValue {
        var a: Int64 = 0
        var b: Int64 = 40
        var c: [Int64] = []
        var d: Int64 = 0

        static let blank = Self()
        static let fields = Fields<Self> { fields in
            fields.kept("a", \.a, "Was always there.")
            fields.since(4) { $0.kept("b", \.b, "Came with version 4.") }
            fields.since(5) { $0.kept("c", \.c, "Came with version 5.") }
            fields.kept("d", \.d, "Was always there.")
        }
    }

    @Test
    func
        `a row of an earlier version has the fields of its day, and a blank record's in place of the others`()
        throws
    {
        let whole = Grown(a: 1, b: 2, c: [3], d: 4)
        func bytes(_ values: Int64...) -> [UInt8] {
            var row = RowWriter(version: 9)
            for value in values { row.put(value) }
            return row.bytes
        }
        func read(_ bytes: [UInt8], _ version: Int) throws -> Grown {
            var row = try RowReader(bytes, writtenUnder: version, subject: nil)
            let value = try Grown.read(row: &row)
            try row.finish()
            return value
        }
        #expect(try read(bytes(1, 4), 3) == Grown(a: 1, b: 40, c: [], d: 4))
        #expect(try read(bytes(1, 2, 4), 4) == Grown(a: 1, b: 2, c: [], d: 4))
        #expect(try read(Self.row(of: whole), 5) == whole)
        #expect(try read(Self.row(of: whole), 6) == whole)
        #expect(try Self.read(Self.row(of: whole)) == whole)
        // One of another version is not read as that.
        #expect(throws: DamagedRow.self) { try read(bytes(1, 4), 4) }
        #expect(throws: DamagedRow.self) { try read(bytes(1, 2, 4), 3) }
        #expect(throws: DamagedRow.self) { try read([], 3) }
        // Also within another value.
        var list = RowWriter(version: 9)
        list.put(raw: UInt32(2))
        for value in [1, 4, 5, 6] as [Int64] { list.put(value) }
        var row = try RowReader(list.bytes, writtenUnder: 3, subject: nil)
        #expect(try [Grown].read(row: &row) == [Grown(a: 1, d: 4), Grown(a: 5, d: 6)])
    }

    @Test func `a row with a value that no record has is damaged`() throws {
        // The platform stands behind the tag and the name.
        let bytes = Self.row(of: Self.device)
        let place = 1 + 16 + 4 + 3
        #expect(bytes[place] == 1)
        for value: UInt8 in [2, 255] {
            var other = bytes
            other[place] = value
            #expect(throws: DamagedRow("a sealed row holds an unknown Platform")) {
                let _: DeviceRecord = try Self.read(other)
            }
        }
    }

    @Test func `a moment that a step forgot to fill in is no row and no entry`() throws {
        var device = Self.device
        device.seenAt = .unstated
        #expect(throws: DamagedRow.self) {
            let _: DeviceRecord = try Self.read(Self.row(of: device))
        }
        #expect(Instant.unstated.milliseconds < CanonicalJSON.integerMin)
    }

    // MARK: Classes

    private static let lists: [(name: String, fields: [Field])] = [
        ("device", DeviceRecord.fields.all), ("key", DeviceKeyRecord.fields.all),
        ("address", AddressRecord.fields.all), ("recipient", RecipientRecord.fields.all),
        ("consent", ConsentRecord.fields.all), ("choice", PreferenceRecord.fields.all),
        ("prompt", PermissionPrompt.fields.all), ("drift", DriftFinding.fields.all),
        ("challenge", DeviceKeyRecord.PendingChallenge.fields.all),
    ]

    @Test func `what is private or a secret is in no entry, and no secret is in an answer or a body`() {
        var counts: [FieldClass: Int] = [:]
        for (name, fields) in Self.lists {
            for field in fields {
                counts[field.secrecy, default: 0] += 1
                #expect(field.recorded == nil || field.secrecy == .evidence, "\(name): \(field.name)")
                guard field.secrecy == .secret else { continue }
                #expect(field.shown == nil && field.given == nil, "\(name): \(field.name)")
            }
        }
        #expect(FieldClass.allCases.allSatisfy { counts[$0, default: 0] > 3 })
    }

    @Test func `the trail has no token, name, number, language, public key or challenge`() throws {
        let texts = ["d_1", "a.b", "ExponentPushToken", "a_1", "+4790000000", "\"nb\"", "c-1"]
        let changes: [PersonChange] = [
            .recipient(Self.recipient, action: .registered),
            .device(Self.device, action: .registered, isTokenChanged: true),
            .address(Self.address, action: .registered, replaced: nil),
            .deviceKey(Self.key, proof: nil, by: nil), .preference(Self.choice),
            .permissionPrompt(Self.prompt, action: .prompted), .drift(Self.drift),
        ]
        for change in changes {
            let entry = change.entry(of: Self.subject, by: CallerName("product"), at: Self.now)
            let text = String(decoding: try entry.bytes(index: 1, time: Self.now), as: UTF8.self)
            for secret in texts { #expect(!text.contains(secret), "\(text)") }
        }
    }

    @Test func `the evidence of a record is what its entry tells`() throws {
        let device = Self.device.evidence
        #expect(device.id.text.isEmpty && device.app.isEmpty && device.token.isEmpty)
        #expect(device.tag == Self.tag && device.platform == .android && device.criticalAlerts)
        #expect(device.subscriptions == Self.device.subscriptions && device.seenAt == Self.now)
        let address = Self.address.evidence
        #expect(address.value.isEmpty && address.numberPrefix == Self.address.numberPrefix)
        #expect(address.verifiedAt == .longAgo && address.contestedAt == .longAgo)
        let key = Self.key.evidence
        #expect(key.publicKey.isEmpty && key.challenge == nil && key.suite == Self.key.suite)
        #expect(Self.recipient.evidence.locale == nil && Self.recipient.evidence.age == .minor)
        #expect(device.completed(by: Self.device) == Self.device)
        #expect(address.completed(by: Self.address) == Self.address)
        #expect(key.completed(by: Self.key) == Self.key)
    }

    // MARK: Entries

    @Test func `an entry of a device that is gone has nothing of it but the tag`() throws {
        let entry = DeviceEntry(
            ending: Self.tag, subject: Self.subject, caller: CallerName("product"), action: Code("removed"))
        let read = try TrailEntry(reading: entry.bytes(index: 1, time: Self.now))
        #expect(read.members.members.map(\.key) == ["action", "caller", "device", "subject"])
        let body: DeviceEntry = try read.body()
        #expect(body == entry && body.isEnding)
        // One that has a part of the device's evidence lacks the rest.
        var half = read
        half.members["platform"] = "ios"
        let error = JSONShapeError(JSONPointer(["critical_alerts"]), "the member is missing")
        #expect(throws: error) { try half.body(DeviceEntry.self) }
    }

    @Test func `an entry says either what a device is or that it is gone`() throws {
        for (action, isEnding) in [("registered", true), ("removed", false), ("token_gone", false)] {
            let entry =
                isEnding
                ? DeviceEntry(
                    ending: Self.tag, subject: Self.subject, caller: CallerName("a"), action: Code(action))
                : DeviceEntry(
                    Self.device, subject: Self.subject, caller: CallerName("a"), action: Code(action))
            let read = try TrailEntry(reading: entry.bytes(index: 1, time: Self.now))
            #expect(throws: JSONShapeError.self, "\(action)") { try PersonChange.read(read) }
        }
    }

    // MARK: Bodies

    @Test func `a body fills in what is given, and its absence means what a blank record has`() throws {
        let given = DeviceRecord.given([
            "platform": "ios", "app": "a.b", "token": "00AA", "os_permission": "denied", "region": "NO",
        ])
        var expected = DeviceRecord.blank
        (expected.platform, expected.app, expected.token) = (.ios, "a.b", "00aa")
        expected.osPermission = .denied
        expected.region = RegionObservation(code: RegionCode("NO")!, source: .device, observedAt: .unstated)
        #expect(given == expected)
        let recipient = RecipientRecord.given([
            "region": "NO", "quiet_hours": ["start": "21:05", "end": "08:00"],
        ])
        #expect(recipient.region?.source == .userDeclared && recipient.privacy == .generic)
        #expect(recipient.quietHours == QuietHours(startMinute: 21 * 60 + 5, endMinute: 480))
    }

    @Test func `a time of day is a number of minutes in entries and a wall clock's reading elsewhere`() throws
    {
        for minute in 0..<1440 {
            let time = MinuteOfDay(minute)
            let text = CanonicalWriter.bytes(capacity: 8) { time.write(shown: &$0) }
            #expect(MinuteOfDay.read(given: try CanonicalJSON.read(text)) == time)
            let number = CanonicalWriter.bytes(capacity: 8) { time.write(recorded: &$0) }
            #expect(try MinuteOfDay.read(recorded: try CanonicalJSON.read(number)) == time)
        }
        let text = CanonicalWriter.bytes(capacity: 8) { MinuteOfDay(425).write(shown: &$0) }
        #expect(String(decoding: text, as: UTF8.self) == "\"07:05\"")
    }
}
