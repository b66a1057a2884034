import BundleModel
import CompliancePolicy
import GateVocabulary
import PayloadComposition
import Testing

/// What `policy check` demands of a plural text is what composing it asks for.
@Suite struct PluralFormTests {
    @Test(
        arguments: [
            "nb", "en", "sv", "da", "de", "nl", "fi", "et", "sq", "el", "hu", "tr", "bg", "is", "mk", "fr",
            "pt",
            "es", "it", "ca", "eu", "fo", "fy", "gl", "hi", "bn", "fa", "ur", "hy", "ka", "lb", "fil", "so",
            "sw", "ku", "ps", "ta", "te", "ti", "am", "bs", "hr", "sr", "cs", "sk", "lt", "ro", "pl", "ru",
            "uk",
            "be", "sl", "gd", "he", "lv", "ga", "mt", "cy", "ar", "ja", "zh", "vi", "th", "id",
        ])
    func `the forms a language must have are those its numbers take`(language: String) throws {
        let tag = try #require(LanguageTag(language))
        // Every rule for whole numbers turns on the last two digits, or on being a million.
        let taken = Set((0...200).map { PluralForm(of: $0, in: tag) }).subtracting([.other])
        #expect(Set(PluralForm.needed(in: language)) == taken)
    }
}
