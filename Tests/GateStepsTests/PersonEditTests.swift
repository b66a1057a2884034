import GateRecords
import GateTestKit
import GateVocabulary
import OpenSSLCrypto
import Testing
import WireProtocol

@testable import GateSteps

/// What one act makes of a person, with no store and no step.
@Suite struct PersonEditTests {
    private static let subject = Subject(
        id: SubjectID(high: 1, low: 1), tagKey: SecretBytes(copying: [UInt8](repeating: 7, count: 32)))
    private static let number = GateVocabulary.Tag(high: 9, low: 9)
    private static let caller = CallerName("consent-service")
    private static let now = Instant(seconds: 1_000_000)

    private static func person(_ state: RecipientState, _ ledger: [ConsentRecord] = []) -> RecipientWithLedger
    {
        let record = RecipientRecord.blank
        return RecipientWithLedger(
            person: RecipientSnapshot(subject: subject, record: record, state: state), consents: ledger)
    }

    private static func begin(_ person: RecipientWithLedger) throws -> PersonEdit {
        PersonEdit(person, policy: try TestBundle.minimal.compile(), at: now)
    }

    /// A person with a verified number.
    private static var registered: RecipientState {
        var state = RecipientState(subject.id)
        state.apply(
            .address(
                AddressRecord(
                    subject: subject.id, tag: number, id: DestinationID("mobile"), channel: .sms,
                    value: "+4915112345678", verifiedAt: Instant(seconds: 1), updatedAt: Instant(seconds: 1)),
                action: .registered, replaced: nil))
        return state
    }

    private static func consent(
        _ state: ConsentRecord.State = .given, of purpose: Purpose = .marketing, in edit: PersonEdit,
        saidAt moment: Instant = Instant(seconds: 10)
    ) -> ConsentRecord {
        edit.consent(
            state, named: "c\(edit.consents.count)", of: purpose, on: .sms, at: number, saidAt: moment,
            method: .webForm, by: caller)
    }

    /// A person whose consent is in the ledger, and the stored state from before it, with the ledger's length: an old row that
    /// was put back.
    private static func putBack(of purpose: Purpose) throws -> (RecipientWithLedger, ConsentRecord) {
        var edit = try begin(person(registered))
        edit.apply(consent(of: purpose, in: edit))
        var old = registered
        _ = old.count(
            upTo: LedgerEnds(consentCount: edit.state.consentCount, choiceCount: edit.state.choiceCount))
        return (person(old, edit.consents), edit.consents[0])
    }

    @Test func `a consent switches the category on, and one withdrawal ends both`() throws {
        var edit = try Self.begin(Self.person(Self.registered))
        let given = Self.consent(in: edit)
        edit.apply(given)
        #expect(edit.changesConsentsOrChoices)
        #expect(edit.state.preference("marketing", .sms, at: Self.number) == .userOn)
        let withdrawal = edit.withdrawal(of: given, saidAt: Self.now, method: .webForm, by: Self.caller)
        edit.apply(withdrawal)
        #expect(edit.fact(inScopeOf: given).state == .withdrawn)
        #expect(edit.state.preference("marketing", .sms, at: Self.number).isOff)
        #expect(edit.changes.count == 4 && edit.consents.map(\.sequence) == [1, 2])
        #expect(edit.consents[1].previousHash == edit.consents[0].chainHash)
        #expect(edit.before.person.state == Self.registered)
    }

    @Test func `a choice that ends a consent withdraws it by name, whatever state was put back`() throws {
        let (person, given) = try Self.putBack(of: .marketing)
        #expect(person.person.state.consentsInForce == ConsentsInForce())
        var edit = try Self.begin(person)
        edit.choose(
            PreferenceRecord(
                subject: Self.subject.id, scope: "marketing", channel: .sms, destination: Self.number,
                state: .userOff, source: .inAppSettings, at: Self.now, caller: Self.caller), on: [.sms])
        #expect(edit.consents.last?.state == .withdrawn)
        #expect(edit.consents.last?.withdraws == given.idTag)
        #expect(edit.stored == person.person.state)
    }

    @Test func `a reply ends a consent of another purpose, whatever state was put back`() throws {
        let (person, given) = try Self.putBack(of: Purpose("partner_offers"))
        let place = try #require(person.person.addresses.first)
        var edit = try Self.begin(person)
        let ended = edit.stop(place, by: Self.caller)
        #expect(ended)
        #expect(edit.consents.contains { $0.state == .withdrawn && $0.withdraws == given.idTag })
        #expect(edit.fact(inScopeOf: given).state == .withdrawn)
    }

    @Test func `a reply said twice changes nothing the second time`() throws {
        var first = try Self.begin(Self.person(Self.registered))
        first.apply(Self.consent(in: first))
        let place = try #require(first.person.addresses.first)
        let ended = first.stop(place, by: Self.caller)
        #expect(ended)
        var second = try Self.begin(RecipientWithLedger(person: first.person, consents: first.consents))
        let endedAgain = second.stop(place, by: Self.caller)
        #expect(!endedAgain && second.changes.isEmpty && !second.changesConsentsOrChoices)
    }

    @Test func `a withdrawal of what was withdrawn says so`() throws {
        var edit = try Self.begin(Self.person(Self.registered))
        let given = Self.consent(in: edit)
        edit.apply(given)
        edit.apply(edit.withdrawal(of: given, saidAt: Self.now, method: .webForm, by: Self.caller))
        var again = try Self.begin(RecipientWithLedger(person: edit.person, consents: edit.consents))
        let withdrawal = again.withdrawal(of: given, saidAt: Self.now, method: .webForm, by: Self.caller)
        again.apply(withdrawal)
        #expect(again.noEffect(of: withdrawal, isForEveryChannel: false) == .alreadySo)
        #expect(again.noEffect(of: withdrawal, isForEveryChannel: true) == .alreadySo)
    }
}
