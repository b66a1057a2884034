import GateVocabulary
import Testing

@Suite struct RegionCodeTests {
    @Test(arguments: [
        ("NO", "NO"), ("US", "US"), ("US-CA", "US"), ("GB-ENG", "GB"), ("FR-A", "FR"), ("CN-11", "CN"),
    ])
    func `a code knows its country`(text: String, country: String) throws {
        let code = try #require(RegionCode(text))
        #expect(code.description == text)
        #expect(code.country == RegionCode(country))
        #expect(code.country.country == code.country)
    }
}
