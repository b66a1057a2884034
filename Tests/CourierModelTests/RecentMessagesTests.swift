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
        for number in [1, 2, 2, 3, 1, 4, 5] { recent.insert(Self.id(number)) }
        #expect((1...6).filter { recent.contains(Self.id($0)) } == [3, 4, 5])
    }
}
