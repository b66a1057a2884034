import Testing

@testable import WireProtocol

@Suite struct TilePathTests {
    @Test(arguments: [
        ("0/000", TilePath(level: .hashes(0), index: 0, width: 256)),
        ("63/999", TilePath(level: .hashes(63), index: 999, width: 256)),
        ("0/x001/x234/067", TilePath(level: .hashes(0), index: 1_234_067, width: 256)),
        ("entries/x001/000.p/255", TilePath(level: .entries, index: 1000, width: 255)),
        ("1/x999/x999/x999/x999/999.p/1", TilePath(level: .hashes(1), index: 999_999_999_999_999, width: 1)),
    ])
    func `a tile has one name`(_ text: String, _ tile: TilePath) {
        #expect(TilePath(text) == tile)
        #expect(tile.description == text)
    }

    @Test(arguments: [
        "", "0", "0/", "/000", "00/000", "64/000", "a/000", "0/0", "0/0000", "0/x000/000", "0/001/000",
        "0/x001", "0/x01/000",
        "0/000.p", "0/000.p/", "0/000.p/0", "0/000.p/256", "0/000.p/01", "0/000.p/1/2", "0/000/p/1",
        "Entries/000",
        "entries", "0/x001/x001/x001/x001/x001/000", "0/-01", "0/٠٠٠", "0/000/", "0/.p/1", "0/x00a/000",
    ])
    func `another name of a tile is refused, and its pattern agrees`(_ text: String) throws {
        #expect(TilePath(text) == nil)
        let regex = try Regex(TilePath.pattern).matchingSemantics(.unicodeScalar)
        #expect(text.firstMatch(of: regex) == nil)
    }
}
