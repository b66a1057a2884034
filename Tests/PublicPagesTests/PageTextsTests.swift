import BundleModel
import CompliancePolicy
import GateTestKit
import PublicPages
import Testing

@Suite struct PageTextsTests {
    @Test func `every language of the bundle has every text`() throws {
        let bundle = try Repository.policy().bundle
        #expect(bundle.messages.count >= 4)
        for locale in bundle.messages.keys {
            let texts = try #require(PageTexts.byLanguage[locale], "\(locale)")
            #expect(texts.all.allSatisfy { !$0.isEmpty }, "\(locale)")
        }
    }
}
