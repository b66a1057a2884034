import GateTestKit
import GateVocabulary
import Testing

@testable import GateSteps
@testable import GatewayPipeline
@testable import GateRecords

@Suite struct ConsentLedgerTests {
    static let subject = SubjectID(high: 1, low: 1)
    static let number = GateVocabulary.Tag(high: 9, low: 9)

    func record(
        _ state: ConsentRecord.State, at seconds: Int64, channel: Channel = .push,
        address: GateVocabulary.Tag? = nil,
        purpose: Purpose = .marketing, method: ConsentMethod = .inAppToggle, expires: Int64? = nil
    ) -> ConsentRecord {
        ConsentRecord(
            subject: Self.subject, id: "c", idTag: GateVocabulary.Tag(high: 0, low: UInt64(seconds)),
            purpose: purpose,
            channel: channel, address: address, state: state, eventTime: Instant(seconds: seconds),
            receivedAt: Instant(seconds: seconds), method: method, source: CallerName("product"),
            jurisdiction: "DE", notice: nil, expiresAt: expires.map { Instant(seconds: $0) }, withdraws: nil,
            previousHash: "")
    }

    func state(_ records: [ConsentRecord], channel: Channel = .push, address: GateVocabulary.Tag? = nil)
        -> ConsentState
    {
        ConsentLedger.fact(purpose: .marketing, channel: channel, address: address, in: records).state
    }

    @Test func `nobody asked means never asked`() {
        #expect(state([]) == .neverAsked)
        #expect(state([record(.given, at: 1, purpose: Purpose("intervention"))]) == .neverAsked)
    }

    @Test func `the latest event time wins whatever order it arrived in`() {
        let given = record(.given, at: 10)
        let withdrawn = record(.withdrawn, at: 20)
        #expect(state([given, withdrawn]) == .withdrawn)
        // The grant arrives after the withdrawal but was given before it: it resurrects nothing.
        #expect(state([withdrawn, given]) == .withdrawn)
        #expect(state([given, withdrawn, record(.given, at: 30)]) == .given)
    }

    @Test(arguments: [ConsentRecord.State.refused, .withdrawn])
    func `a tie counts as no`(no: ConsentRecord.State) {
        let expected: ConsentState = no == .refused ? .refused : .withdrawn
        #expect(state([record(.given, at: 10), record(no, at: 10)]) == expected)
        #expect(state([record(no, at: 10), record(.given, at: 10)]) == expected)
    }

    @Test func `consent for one channel or address never covers another`() {
        let push = record(.given, at: 10)
        let sms = record(.given, at: 10, channel: .sms, address: Self.number)
        #expect(state([push], channel: .sms, address: Self.number) == .otherChannel)
        #expect(state([sms]) == .otherChannel)
        #expect(state([sms], channel: .sms, address: Self.number) == .given)
        #expect(state([sms], channel: .sms, address: GateVocabulary.Tag(high: 8, low: 8)) == .otherAddress)
    }

    @Test func `a sale is no consent somebody gave for another channel or address`() {
        let sale = record(.given, at: 10, channel: .email, address: Self.number, method: .existingCustomer)
        #expect(state([sale]) == .neverAsked)
        #expect(state([sale], channel: .email, address: GateVocabulary.Tag(high: 8, low: 8)) == .neverAsked)
        #expect(state([sale], channel: .email, address: Self.number) == .given)
    }

    @Test func `a given consent carries its method and its end`() {
        let fact = ConsentLedger.fact(
            purpose: .marketing, channel: .push, address: nil,
            in: [record(.given, at: 10, method: .doubleOptIn, expires: 99)])
        #expect(fact == ConsentFact(state: .given, method: .doubleOptIn, expiresAt: Instant(seconds: 99)))
    }

    // MARK: Orders of arrival

    /// One record reported at a time of its own.
    private func reported(
        _ state: ConsentRecord.State, _ number: UInt64, at seconds: Int64, receivedAt received: Int64,
        withdraws: GateVocabulary.Tag? = nil, address: GateVocabulary.Tag? = nil, channel: Channel = .push
    ) -> ConsentRecord {
        var record = record(state, at: seconds, channel: channel, address: address)
        record.idTag = GateVocabulary.Tag(high: 1, low: number)
        record.receivedAt = Instant(seconds: received)
        record.withdraws = withdraws
        return record
    }

    @Test func `a grant from before a withdrawal was received does not outweigh it`() {
        let given = reported(.given, 1, at: 10, receivedAt: 10)
        for saidAt in [Int64(5), 10, 12, 20] {
            let withdrawn = reported(.withdrawn, 2, at: saidAt, receivedAt: 20, withdraws: given.idTag)
            let late = reported(.given, 3, at: 15, receivedAt: 30)
            #expect(state([given, withdrawn, late]) == .withdrawn, "said at \(saidAt)")
            #expect(
                state([given, withdrawn, late, reported(.given, 4, at: 20, receivedAt: 31)]) == .withdrawn)
            #expect(state([given, withdrawn, late, reported(.given, 4, at: 21, receivedAt: 31)]) == .given)
        }
        // A history that is imported is read by its own times.
        let history = [
            reported(.given, 1, at: 10, receivedAt: 900_000),
            reported(.withdrawn, 2, at: 20, receivedAt: 900_000, withdraws: given.idTag),
            reported(.given, 3, at: 30, receivedAt: 900_000),
        ]
        #expect(state(history) == .given)
    }

    @Test func `a no to a whole channel is one to every address, until a yes for one of them`() {
        let other = GateVocabulary.Tag(high: 8, low: 8)
        let no = reported(.withdrawn, 1, at: 20, receivedAt: 20, channel: .email)
        let late = reported(.given, 2, at: 15, receivedAt: 30, address: Self.number, channel: .email)
        let yes = reported(.given, 3, at: 40, receivedAt: 40, address: Self.number, channel: .email)
        #expect(state([no], channel: .email, address: other) == .withdrawn)
        #expect(state([no, late], channel: .email, address: Self.number) == .withdrawn)
        #expect(state([no, late, yes], channel: .email, address: Self.number) == .given)
        #expect(state([no, late, yes], channel: .email, address: other) == .withdrawn)
        #expect(state([no], channel: .sms, address: other) == .neverAsked)
    }

    /// Grants and withdrawals of a day, dated anyhow, in any order of arrival.
    @Test(arguments: [UInt64(11), 12, 13, 14])
    func `what a withdrawal ended, only a grant from after its receipt begins again`(seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        var (ended, begun) = (0, 0)
        for _ in 0..<2_000 {
            var records: [ConsentRecord] = []
            var lastEnd: Int64?
            for position in 1...UInt64(3 + numbers.next() % 8) {
                let received = Int64(position) * 10
                let said = received - Int64(numbers.next() % UInt64(received))
                let wasGiven = state(records) == .given
                let named = records.filter { $0.state == .given }.randomElement(using: &numbers)
                let isWithdrawal = named != nil && numbers.next() % 2 == 0
                records.append(
                    reported(
                        isWithdrawal ? .withdrawn : .given, position, at: said, receivedAt: received,
                        withdraws: isWithdrawal ? named?.idTag : nil))
                let isGiven = state(records) == .given
                if isWithdrawal, wasGiven, !isGiven {
                    lastEnd = received
                    ended += 1
                }
                guard isGiven, let lastEnd else { continue }
                begun += 1
                #expect(
                    records.contains { $0.state == .given && $0.eventTime > Instant(seconds: lastEnd) },
                    "\(records.map { ($0.state, $0.eventTime, $0.receivedAt) })")
            }
        }
        #expect(ended > 500 && begun > 100, "\(ended) ended, \(begun) began again")
    }

    @Test func `a withdrawal of a purpose ends every address that has it`() {
        let records = [
            record(.given, at: 1, channel: .sms, address: Self.number),
            record(.given, at: 2, channel: .sms, address: GateVocabulary.Tag(high: 8, low: 8)),
            record(.withdrawn, at: 3, channel: .sms, address: GateVocabulary.Tag(high: 8, low: 8)),
        ]
        let inForce = ConsentLedger.consentsInForce(in: records)
        #expect(inForce.given(.marketing, on: .sms).map(\.position) == [1])
        #expect(inForce.isGiven(.marketing, on: .sms, at: Self.number))
        #expect(!inForce.isGiven(.marketing, on: .sms, at: GateVocabulary.Tag(high: 8, low: 8)))
    }

    @Test func `whatever is changed of a recorded consent breaks the chain behind it`() {
        typealias Edit = (inout ConsentRecord) -> Void
        var whole = record(.given, at: 10, channel: .sms, address: Self.number, expires: 99)
        whole.jurisdiction = "DE"
        whole.statedTime = whole.eventTime.advanced(byMilliseconds: 1)
        whole.withdraws = GateVocabulary.Tag(high: 1, low: 1)
        whole.notice = .init(id: "promo", version: "3", sha256: "aa", language: "nb")
        let edits: [(String, Edit)] = [
            ("sequence", { $0.sequence += 1 }), ("idTag", { $0.idTag = Self.number }),
            ("purpose", { $0.purpose = Purpose("analytics") }), ("channel", { $0.channel = .email }),
            ("address", { $0.address = nil }), ("state", { $0.state = .refused }),
            ("eventTime", { $0.eventTime = $0.eventTime.advanced(byMilliseconds: 1) }),
            ("statedTime", { $0.statedTime = nil }),
            ("statedTime", { $0.statedTime = $0.statedTime?.advanced(byMilliseconds: 1) }),
            ("receivedAt", { $0.receivedAt = $0.receivedAt.advanced(byMilliseconds: 1) }),
            ("method", { $0.method = .paperForm }), ("source", { $0.source = CallerName("other") }),
            ("jurisdiction", { $0.jurisdiction = nil }), ("notice", { $0.notice = nil }),
            ("notice", { $0.notice?.id += "x" }), ("notice", { $0.notice?.version += "x" }),
            ("notice", { $0.notice?.sha256 += "x" }), ("notice", { $0.notice?.language += "x" }),
            ("expiresAt", { $0.expiresAt = nil }),
            ("expiresAt", { $0.expiresAt = $0.expiresAt?.advanced(byMilliseconds: 1) }),
            ("withdraws", { $0.withdraws = nil }), ("previousHash", { $0.previousHash += "0" }),
        ]
        // Whose it is and what its caller calls it are in its tag; where its entry lies is not known before it is written.
        let fields = Mirror(reflecting: whole).children.compactMap(\.label)
        #expect(Set(edits.map(\.0)) == Set(fields).subtracting(["subject", "id", "entryIndex"]))
        var hashes: Set<String> = [whole.chainHash]
        for (_, edit) in edits {
            var changed = whole
            edit(&changed)
            hashes.insert(changed.chainHash)
        }
        #expect(hashes.count == edits.count + 1)
    }
}
