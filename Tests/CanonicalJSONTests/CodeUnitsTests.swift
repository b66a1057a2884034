import CanonicalJSON
import Testing

@Suite struct CodeUnitsTests {
    /// Every length around the words a text is compared in, kept on the stack and on the heap.
    static let texts = (0...40).map { length in
        String("abcdefghijklmnopqrstuvwxyz0123456789-_.~".prefix(length))
    }

    @Test(arguments: texts)
    func `a text equals itself and no text of its length that differs in one byte`(text: String) {
        #expect(CodeUnits.equal(text, String(decoding: Array(text.utf8), as: UTF8.self)))
        for offset in text.utf8.indices {
            var bytes = Array(text.utf8)
            bytes[text.utf8.distance(from: text.utf8.startIndex, to: offset)] ^= 0x20
            #expect(!CodeUnits.equal(text, String(decoding: bytes, as: UTF8.self)))
        }
    }

    @Test(arguments: texts)
    func `no text equals one that is longer by a byte`(text: String) {
        for byte in ["a", "\0"] {
            #expect(!CodeUnits.equal(text, text + byte))
            #expect(!CodeUnits.equal(text + byte, text))
        }
    }

    @Test func `texts that look alike are told apart by their bytes`() {
        #expect("é" == "e\u{301}")
        #expect(!CodeUnits.equal("é", "e\u{301}"))
        #expect(!CodeUnits.equal("\u{212B}ngstrom-with-a-tail", "\u{C5}ngstrom-with-a-tail"))
    }

    @Test(arguments: texts)
    func `words and rest together hold every byte once`(text: String) {
        let bytes = Array(text.utf8)
        func pieces(_ bytes: [UInt8]) -> [UInt64] {
            bytes.withUnsafeBufferPointer { buffer in
                let words = stride(from: 0, through: buffer.count - 8, by: 8).map {
                    CodeUnits.word(buffer, $0)
                }
                return words + [CodeUnits.rest(buffer, from: buffer.count & ~7)]
            }
        }
        let whole = pieces(bytes)
        #expect(whole.count == bytes.count / 8 + 1)
        for offset in bytes.indices {
            var changed = bytes
            changed[offset] = ~changed[offset]
            let differing = zip(whole, pieces(changed)).enumerated().filter { $0.element.0 != $0.element.1 }
            #expect(differing.map(\.offset) == [offset / 8])
        }
    }
}
