import CanonicalJSON
import Testing

@testable import WireProtocol

@Suite struct TilePathTests {
    @Test(arguments: [
        "0/000", "63/999", "0/x001/x234/067", "entries/x001/000.p/255", "1/x999/x999/x999/x999/999.p/1",
    ])
    func `the name of a tile is accepted, and its pattern agrees`(_ text: String) throws {
        #expect(TextRule.tile.accepts(text))
        #expect(text.firstMatch(of: try Self.pattern) != nil)
    }

    @Test(arguments: [
        "", "0", "0/", "/000", "00/000", "64/000", "a/000", "0/0", "0/0000", "0/x000/000", "0/001/000",
        "0/x001", "0/x01/000",
        "0/000.p", "0/000.p/", "0/000.p/0", "0/000.p/256", "0/000.p/01", "0/000.p/1/2", "0/000/p/1",
        "Entries/000",
        "entries", "0/x001/x001/x001/x001/x001/000", "0/-01", "0/٠٠٠", "0/000/", "0/.p/1", "0/x00a/000",
    ])
    func `another name of a tile is refused, and its pattern agrees`(_ text: String) throws {
        #expect(!TextRule.tile.accepts(text))
        #expect(text.firstMatch(of: try Self.pattern) == nil)
    }

    private static var pattern: Regex<AnyRegexOutput> {
        get throws {
            try Regex(#require(TextRule.tile.schema["pattern"]?.stringValue))
                .matchingSemantics(.unicodeScalar)
        }
    }
}
