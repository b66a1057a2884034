import CourierModel
import GateVocabulary
import Testing

@Suite struct RecentMessagesTests {
    private static func id(_ number: Int) -> MessageID {
        let digits = String(number, radix: 16)
        let text = "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
        return MessageID(uuidText: text)!
    }

    @Test func `the newest ids are known, in a number that is bounded, whatever is told twice`() {
        var recent = RecentMessages(countMax: 3)
        for number in [1, 2, 2, 3, 1, 4, 5] {
            recent.insert(.accepted(providerID: "p"), of: Self.id(number), to: "a")
        }
        #expect((1...6).filter { recent.outcome(of: Self.id($0), to: "a") != nil } == [3, 4, 5])
    }

    @Test func `what was taken is known for every address, and a dead token for itself alone`() {
        let gone = DeliveryOutcome.tokenGone(reason: "Unregistered", at: Instant(milliseconds: 7))
        var recent = RecentMessages()
        recent.insert(.accepted(providerID: "p"), of: Self.id(1), to: "a")
        recent.insert(gone, of: Self.id(2), to: "a")
        #expect(recent.outcome(of: Self.id(1), to: "b") == .accepted(providerID: "p"))
        #expect(recent.outcome(of: Self.id(2), to: "a") == gone)
        #expect(recent.outcome(of: Self.id(2), to: "b") == nil)
        // The person's new token has it now.
        recent.insert(.accepted(providerID: "q"), of: Self.id(2), to: "b")
        #expect(recent.outcome(of: Self.id(2), to: "a") == .accepted(providerID: "q"))
    }

    @Test(
        arguments: [
            .failed(reason: "x"), .later(reason: "x", seconds: nil, scope: .app), .misconfigured(reason: "x"),
            .ambiguous(reason: "x", mayRepeat: true),
        ] as [DeliveryOutcome])
    func `what another try may end otherwise is asked again`(_ outcome: DeliveryOutcome) {
        var recent = RecentMessages()
        recent.insert(outcome, of: Self.id(1), to: "a")
        #expect(recent.outcome(of: Self.id(1), to: "a") == nil)
    }
}
