import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import GatewayPipeline
import Testing

/// What a producer reads first: the example of each param is what the param's name says.
@Suite struct ParamExampleTests {
    private static let people: Set<String> = [
        "author_name", "commenter_name", "liker_name", "sender_name", "recipient_name", "first_name",
    ]

    @Test func `every text of the bundle has an example of its own, that fits`() throws {
        var seen = 0
        for type in try Repository.policy().types {
            for (name, schema) in type.params {
                guard case .text(let most, let rule) = schema.kind else { continue }
                seen += 1
                let text = try #require(ParamExamples.text(of: name, byteCountMax: most, by: rule))
                #expect(text != "An example" && text != "x", "\(name) of \(type.id)")
                #expect(schema.kind.canonical(.string(text)) != nil, "\(name): \(text)")
                // A person's name is the example of a person's name, and of nothing else.
                #expect(
                    ["Ahmad Karimi", "Ana Horvat", "Ahmad"].contains(text) == Self.people.contains(name),
                    "\(name)")
                if name.hasSuffix("currency") {
                    #expect(ISOCodes.fractionDigitCounts[text] != nil, "\(name)")
                }
                if name.hasSuffix("rate") { #expect(Double(text) != nil, "\(name)") }
            }
        }
        #expect(seen > 30)
    }

    @Test(arguments: [
        ("country_name", "Serbia"),
        ("what_happened", "Some of your contact details were seen by somebody else."),
        ("countryName", "Serbia"), ("order_number", "A-1024"), ("happened", "An example"),
    ])
    func `a name is read by its words`(_ name: String, _ text: String) {
        #expect(ParamExamples.text(of: name, byteCountMax: 128, by: PlainTextRule()) == text)
    }

    @Test func `a number of an example lies within the bounds of its param`() {
        #expect(ParamExamples.number(of: "days_free", in: 0...7) == 3)
        #expect(ParamExamples.number(of: "risk_percent", in: 0...50) == 50)
        #expect(ParamExamples.number(of: "step", in: 1...9) == 1)
        #expect(ParamExamples.number(of: "balance", in: -5...(-1)) == -1)
    }
}
