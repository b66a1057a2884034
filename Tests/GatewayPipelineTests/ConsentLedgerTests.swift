import GateVocabulary
import GatewayPipeline
import Testing

@Suite struct ConsentLedgerTests {
    static let subject = SubjectID(high: 1, low: 1)
    static let number = GateVocabulary.Tag(high: 9, low: 9)

    func event(
        _ state: ConsentEvent.State, at seconds: Int64, channel: Channel = .push,
        address: GateVocabulary.Tag? = nil,
        purpose: Purpose = .marketing, method: ConsentMethod = .inAppToggle, expires: Int64? = nil
    ) -> ConsentEvent {
        ConsentEvent(
            subject: Self.subject, id: "c", idTag: GateVocabulary.Tag(high: 0, low: UInt64(seconds)),
            purpose: purpose,
            channel: channel, address: address, state: state, eventTime: Instant(seconds: seconds),
            receivedAt: Instant(seconds: seconds), method: method, source: CallerName("product"),
            jurisdiction: "DE", notice: nil, expiresAt: expires.map { Instant(seconds: $0) }, withdraws: nil,
            previousHash: "")
    }

    func state(_ events: [ConsentEvent], channel: Channel = .push, address: GateVocabulary.Tag? = nil)
        -> ConsentState
    {
        ConsentLedger.fact(purpose: .marketing, channel: channel, address: address, in: events).state
    }

    @Test func `nobody asked means never asked`() {
        #expect(state([]) == .neverAsked)
        #expect(state([event(.given, at: 1, purpose: Purpose("intervention"))]) == .neverAsked)
    }

    @Test func `the latest event time wins whatever order it arrived in`() {
        let given = event(.given, at: 10)
        let withdrawn = event(.withdrawn, at: 20)
        #expect(state([given, withdrawn]) == .withdrawn)
        // The grant arrives after the withdrawal but was given before it: it resurrects nothing.
        #expect(state([withdrawn, given]) == .withdrawn)
        #expect(state([given, withdrawn, event(.given, at: 30)]) == .given)
    }

    @Test(arguments: [ConsentEvent.State.refused, .withdrawn])
    func `a tie counts as no`(no: ConsentEvent.State) {
        let expected: ConsentState = no == .refused ? .refused : .withdrawn
        #expect(state([event(.given, at: 10), event(no, at: 10)]) == expected)
        #expect(state([event(no, at: 10), event(.given, at: 10)]) == expected)
    }

    @Test func `consent for one channel or address never covers another`() {
        let push = event(.given, at: 10)
        let sms = event(.given, at: 10, channel: .sms, address: Self.number)
        #expect(state([push], channel: .sms, address: Self.number) == .otherChannel)
        #expect(state([sms]) == .otherChannel)
        #expect(state([sms], channel: .sms, address: Self.number) == .given)
        #expect(state([sms], channel: .sms, address: GateVocabulary.Tag(high: 8, low: 8)) == .otherAddress)
    }

    @Test func `a sale is no consent somebody gave for another channel or address`() {
        let sale = event(.given, at: 10, channel: .email, address: Self.number, method: .existingCustomer)
        #expect(state([sale]) == .neverAsked)
        #expect(state([sale], channel: .email, address: GateVocabulary.Tag(high: 8, low: 8)) == .neverAsked)
        #expect(state([sale], channel: .email, address: Self.number) == .given)
    }

    @Test func `a given consent carries its method and its end`() {
        let fact = ConsentLedger.fact(
            purpose: .marketing, channel: .push, address: nil,
            in: [event(.given, at: 10, method: .doubleOptIn, expires: 99)])
        #expect(fact == ConsentFact(state: .given, method: .doubleOptIn, expiresAt: Instant(seconds: 99)))
    }

    @Test func `a withdrawal of a purpose ends every address that has it`() {
        let events = [
            event(.given, at: 1, channel: .sms, address: Self.number),
            event(.given, at: 2, channel: .sms, address: GateVocabulary.Tag(high: 8, low: 8)),
            event(.withdrawn, at: 3, channel: .sms, address: GateVocabulary.Tag(high: 8, low: 8)),
        ]
        let scopes = ConsentLedger.givenScopes(of: .marketing, channel: .sms, in: events)
        #expect(scopes.map(\.address) == [Self.number])
    }
}
