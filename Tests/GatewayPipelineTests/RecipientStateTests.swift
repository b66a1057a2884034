import GateTestKit
import GateVocabulary
import GatewayPipeline
import GateRecords
import Testing

/// One person as one value, and what it keeps of a ledger.
@Suite struct RecipientStateTests {
    private static let subject = SubjectID(high: 1, low: 1)
    private static let purposes = [Purpose.marketing, Purpose("partner_offers")]

    /// A ledger as reporters with wrong clocks make it: each withdrawal that names a consent comes after it.
    private func ledger(_ numbers: inout SeededNumbers, count: Int) -> [ConsentRecord] {
        var records: [ConsentRecord] = []
        for number in 0..<count {
            let state = ConsentRecord.State.allCases.randomElement(using: &numbers)!
            let named: ConsentRecord? =
                switch state {
                case .withdrawn: records.filter { $0.state == .given }.randomElement(using: &numbers)
                case .undone: records.filter { $0.state == .withdrawn }.randomElement(using: &numbers)
                case .given, .refused, .shown: nil
                }
            let channel = named?.channel ?? Channel.allCases.randomElement(using: &numbers)!
            let address: GateVocabulary.Tag? =
                if let named { named.address } else if channel == .push {
                    nil
                } else {
                    [nil, GateVocabulary.Tag(high: 0, low: 1), GateVocabulary.Tag(high: 0, low: 2)]
                        .randomElement(using: &numbers)!
                }
            let received = Int64(1_000_000 + number * 10_000)
            let early = [0, 0, 5, 20_000, 90_000_000].randomElement(using: &numbers)! / 1_000
            records.append(
                ConsentRecord(
                    sequence: Int64(number + 1), subject: Self.subject, id: "c\(number)",
                    idTag: GateVocabulary.Tag(high: 7, low: UInt64(number)),
                    purpose: named?.purpose ?? Self.purposes.randomElement(using: &numbers)!,
                    channel: channel,
                    address: address, state: state, eventTime: Instant(seconds: received - Int64(early)),
                    receivedAt: Instant(seconds: received),
                    method: [ConsentMethod.inAppToggle, .existingCustomer].randomElement(using: &numbers)!,
                    source: CallerName("app"), jurisdiction: nil, notice: nil,
                    expiresAt: Bool.random(using: &numbers) ? Instant(seconds: received + 50_000) : nil,
                    withdraws: named?.idTag, previousHash: ""))
        }
        return records
    }

    @Test func `records taken one by one are what the whole ledger comes to, at every length of it`() {
        var numbers = SeededNumbers(seed: 0x5EED_0015)
        var givenCount = 0
        for _ in 0..<2_000 {
            let records = ledger(&numbers, count: Int.random(in: 1...12, using: &numbers))
            var state = RecipientState(Self.subject)
            for (index, record) in records.enumerated() {
                let earlier = Array(records[..<index])
                #expect(state.apply(record, after: earlier).sequence == Int64(index + 1))
                #expect(state.consentCount == Int64(index + 1))
                #expect(state.consentsInForce == ConsentLedger.consentsInForce(in: Array(records[...index])))
            }
            givenCount += state.consentsInForce.byScope.values.count { $0.state == .given }
        }
        #expect(givenCount > 1_000)
    }

    @Test func `destinations are kept by tag, and a record replaces the one of its tag`() {
        var state = RecipientState(Self.subject)
        func device(_ tag: UInt64, _ token: String) -> DeviceRecord {
            DeviceRecord(
                subject: Self.subject, tag: GateVocabulary.Tag(high: 0, low: tag),
                id: DestinationID("d\(tag)"),
                platform: .ios, app: "app", token: token, region: nil, timeZone: nil, osPermission: .granted,
                criticalAlerts: false, isActive: true, seenAt: Instant(seconds: 1))
        }
        for tag in [3, 1, 2] as [UInt64] { state.apply(.device(device(tag, "first"), action: .registered)) }
        state.apply(.device(device(2, "second"), action: .updated))
        #expect(state.devices.map(\.tag.low) == [1, 2, 3])
        #expect(state.devices.map(\.token) == ["first", "second", "first"])
        state.apply(.deviceRemoved(GateVocabulary.Tag(high: 0, low: 1)))
        #expect(state.devices.map(\.tag.low) == [2, 3])
    }

    @Test func `the choice that arrives last is in force, and the history is counted`() {
        var state = RecipientState(Self.subject)
        func choice(_ scope: String, _ preference: PreferenceState, _ seconds: Int64) -> PreferenceRecord {
            PreferenceRecord(
                subject: Self.subject, scope: scope, channel: .push, destination: nil, state: preference,
                source: .inAppSettings, at: Instant(seconds: seconds), caller: CallerName("app"))
        }
        state.apply(.preference(choice("marketing", .userOn, 9)))
        state.apply(.preference(choice("social", .userOff, 9)))
        state.apply(.preference(choice("marketing", .userOff, 5)))
        #expect(state.preferences.map(\.scope) == ["social", "marketing"])
        #expect(state.preferences.map(\.state) == [.userOff, .userOff] && state.choiceCount == 3)
    }
}
