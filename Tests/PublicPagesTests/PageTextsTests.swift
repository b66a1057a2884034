import BundleModel
import CompliancePolicy
import GateTestKit
import Foundation
import Testing

@testable import PublicPages

@Suite struct PageTextsTests {
    @Test func `every language of the bundle has every text`() throws {
        let bundle = try Repository.policy().bundle
        #expect(bundle.messages.count >= 4)
        for locale in bundle.messages.keys {
            let texts = try #require(PageTexts.byLanguage[locale], "\(locale)")
            #expect(texts.all.allSatisfy { !$0.isEmpty }, "\(locale)")
        }
    }

    @Test func `every language says until when a mute can be undone, once`() {
        for texts in PageTexts.byLanguage.values {
            #expect(
                texts.undoHint.components(separatedBy: PageTexts.timePlace).count == 2, "\(texts.language)")
            #expect(!texts.undoHint.contains("15"), "\(texts.language)")
        }
    }
}
