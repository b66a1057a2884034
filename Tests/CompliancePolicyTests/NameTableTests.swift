import GateTestKit
import GateVocabulary
import Testing

@testable import BundleModel
@testable import CompliancePolicy
@testable import PolicyProof
@testable import PolicyStatutes

@Suite struct NameTableTests {
    @Test(arguments: [1, 2, 3, 64, 65, 10_000])
    func `every name is found at its place, and no other name at all`(count: Int) {
        // Lengths from one byte to three words, most of them alike but for a digit.
        let names = (0..<count).map { number in
            [
                "\(number)", "t.\(number)", "type_\(number)", "copied.type_\(number)",
                "a.rather.long.name.of_\(number)",
            ][
                number % 5]
        }
        let table = NameTable(names)
        for (position, name) in names.enumerated() { #expect(table.position(of: name) == position) }
        for name in names {
            #expect(table.position(of: name + "\0") == nil)
            #expect(table.position(of: "\0" + name) == nil)
            #expect(table.position(of: String(name.dropLast()) + "é") == nil)
        }
        #expect(table.position(of: "") == nil)
    }

    @Test func `a table for no more than one name ends its search`() {
        let table = NameTable(["only"])
        for number in 0..<1_000 { #expect(table.position(of: "not_\(number)") == nil) }
    }

    @Test func `of two equal names the first counts`() {
        #expect(NameTable(["gateway", "app", "gateway"]).position(of: "gateway") == 0)
    }

    @Test func `an empty name has no place, and takes nobody else's`() {
        let table = NameTable(["", "app"])
        #expect(table.position(of: "") == nil)
        #expect(table.position(of: "app") == 1)
    }

    @Test func `names are compared by their bytes`() {
        let table = NameTable(["caf\u{E9}"])
        #expect(table.position(of: "caf\u{E9}") == 0)
        #expect(table.position(of: "cafe\u{301}") == nil)
    }

    @Test func `names have hashes of their own, whatever byte tells them apart`() {
        var hashes: Set<Int> = []
        var nameCount = 0
        for length in 0...40 {
            // The last one differs in no byte.
            for place in 0...length {
                var bytes = [UInt8](repeating: UInt8(ascii: "a"), count: length)
                if place < length { bytes[place] = UInt8(ascii: "b") }
                let hash = UserID(String(decoding: bytes, as: UTF8.self))._rawHashValue(seed: 7)
                #expect(UserID(String(decoding: bytes, as: UTF8.self))._rawHashValue(seed: 7) == hash)
                hashes.insert(hash)
                nameCount += 1
            }
        }
        #expect(hashes.count == nameCount)
        // One letter to a reader, and two names.
        #expect(Set([UserID("\u{e9}"), UserID("e\u{301}"), UserID("\u{e9}")]).count == 2)
    }
}
