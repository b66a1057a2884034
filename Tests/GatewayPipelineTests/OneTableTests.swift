import BundleModel
import CompliancePolicy
import GateSteps
import GateTestKit
import GateVocabulary
import GateRecords
import Testing
import WireProtocol

/// Tables of two modules that cannot be one, because neither may import the other, say the same.
@Suite struct OneTableTests {
    @Test func `a person whom no push reached is reached by every other means`() {
        let means = Set(DischargeMeans.allCases.filter { $0 != .push }.map(\.rawValue))
        #expect(Set(MandatoryRule.waysOut) == means && MandatoryRule.waysOut.count == means.count)
    }

    /// A currency is used in every country, so a country that the bundle knows can be paid in.
    @Test func `a bundle's regions are countries, and their zones are zones`() throws {
        for code in try Repository.policy().bundle.regions.regions.keys {
            #expect(ISOCodes.countries.contains(code.country.description), "\(code)")
        }
        #expect(ISOCodes.countries.count == 250)
    }

    /// The plural forms that a text must have are those its numbers take.
    @Test func `a language asks for the forms that its numbers take`() {
        let expected: [String: [PluralForm]] = [
            "en": [.one], "nb-NO": [.one], "bs": [.one, .few], "ru": [.one, .few, .many],
            "sl": [.one, .two, .few],
            "lv": [.zero, .one], "ar": [.zero, .one, .two, .few, .many], "ga": [.one, .two, .few, .many],
            "fr": [.one], "es": [.one], "he": [.one, .two], "ja": [], "kk": [.one], "not a tag": [],
        ]
        for (locale, forms) in expected { #expect(PluralForm.needed(in: locale) == forms, "\(locale)") }
    }
}
