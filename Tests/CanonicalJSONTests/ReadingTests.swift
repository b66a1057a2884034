import CanonicalJSON
import Testing

private func read(_ text: String, limits: JSONLimits = .request) throws(JSONError) -> JSONValue {
    try CanonicalJSON.read(Array(text.utf8), limits: limits)
}

private func at(_ offset: Int, _ pointer: String = "") -> JSONPlace {
    JSONPlace(offset: offset, pointer: JSONPointer(parsing: pointer)!)
}

struct Refusal: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    let error: JSONError
    var testDescription: String { name }

    init(_ name: String, _ text: String, _ error: JSONError) {
        self.init(name, bytes: Array(text.utf8), error)
    }

    init(_ name: String, bytes: [UInt8], _ error: JSONError) {
        (self.name, self.bytes, self.error) = (name, bytes, error)
    }
}

@Suite struct ReadingTests {
    @Test func `every shape of value is read`() throws {
        let value = try read(
            #" { "n" : null , "b":[true,false], "i":[-9007199254740991,0,9007199254740991],"s":"é\u00e9\ud83d\ude00\n","o":{} } "#
        )
        #expect(
            value == [
                "n": nil, "b": [true, false], "i": [-9_007_199_254_740_991, 0, 9_007_199_254_740_991],
                "s": "éé😀\n", "o": [:],
            ])
    }

    @Test(arguments: [
        Refusal("nothing", "", .unexpectedEnd(at: at(0))),
        Refusal("only white space", " \n", .unexpectedEnd(at: at(2))),
        Refusal("a word cut short", "tru", .unexpectedEnd(at: at(3))),
        Refusal("a misspelt word", "trve", .malformed(at: at(0), expected: "`true`")),
        Refusal("a capital word", "True", .malformed(at: at(0), expected: "a value")),
        Refusal("NaN", "NaN", .malformed(at: at(0), expected: "a value")),
        Refusal("an unclosed object", #"{"a":1"#, .unexpectedEnd(at: at(6))),
        Refusal("an unclosed array", "[1", .unexpectedEnd(at: at(2))),
        Refusal("an unclosed text", #"{"a":"b"#, .unexpectedEnd(at: at(7, "/a"))),
        Refusal("a comma before a brace", #"{"a":1,}"#, .malformed(at: at(7), expected: "a key in quotes")),
        Refusal("a comma before a bracket", "[1,]", .malformed(at: at(3, "/1"), expected: "a value")),
        Refusal("two commas", "[1,,2]", .malformed(at: at(3, "/1"), expected: "a value")),
        Refusal("no comma", "[1 2]", .malformed(at: at(3), expected: "`,` or `]`")),
        Refusal("no colon", #"{"a" 1}"#, .malformed(at: at(5), expected: "`:`")),
        Refusal("a bare key", "{a:1}", .malformed(at: at(1), expected: "a key in quotes")),
        Refusal("single quotes", "{'a':1}", .malformed(at: at(1), expected: "a key in quotes")),
        Refusal("a comment", "[1/*x*/]", .malformed(at: at(2), expected: "`,` or `]`")),
        Refusal("a second document", "{} {}", .trailingBytes(at: at(3))),
        Refusal("a stray NUL after the document", "1\u{0}", .trailingBytes(at: at(1))),
        Refusal("a form feed as white space", "\u{C}1", .malformed(at: at(0), expected: "a value")),
        Refusal("a no-break space as white space", "\u{A0}1", .malformed(at: at(0), expected: "a value")),
        Refusal("a fraction", "[1.0]", .notAnInteger(at: at(1, "/0"))),
        Refusal("an exponent", "1e2", .notAnInteger(at: at(0))),
        Refusal("a capital exponent", "1E2", .notAnInteger(at: at(0))),
        Refusal("minus zero", "-0", .notAnInteger(at: at(0))),
        Refusal("a leading zero", "01", .notAnInteger(at: at(0))),
        Refusal("a leading zero after a minus", "-01", .notAnInteger(at: at(0))),
        Refusal("a lone minus", "-", .unexpectedEnd(at: at(1))),
        Refusal("a minus before a letter", "-x", .malformed(at: at(1), expected: "a digit")),
        Refusal("a plus", "+1", .malformed(at: at(0), expected: "a value")),
        Refusal("hexadecimal", "0x10", .trailingBytes(at: at(1))),
        Refusal("2^53", "9007199254740992", .integerOutOfRange(at: at(0))),
        Refusal("-2^53", "-9007199254740992", .integerOutOfRange(at: at(0))),
        Refusal("2^64 + 1", "18446744073709551617", .integerOutOfRange(at: at(0))),
        Refusal("a thousand digits", String(repeating: "9", count: 1000), .integerOutOfRange(at: at(0))),
        Refusal("a neighbouring duplicate", #"{"a":1,"a":1}"#, .duplicateKey(at: at(7, "/a"))),
        Refusal("a distant duplicate", #"{"b":1,"c":{"b":2},"a":3,"b":4}"#, .duplicateKey(at: at(25, "/b"))),
        Refusal(
            "a duplicate spelt with an escape", #"{"x":0,"a":1,"\u0061":2}"#, .duplicateKey(at: at(13, "/a"))),
        Refusal(
            "a duplicate further in", #"{"o":[{"a":1,"b":2,"a":3}]}"#, .duplicateKey(at: at(19, "/o/0/a"))),
        Refusal("a raw newline in a text", "\"\n\"", .controlCharacter(at: at(1), byte: 10)),
        Refusal("a raw tab after an escape", "\"\\n\t\"", .controlCharacter(at: at(3), byte: 9)),
        Refusal("a raw NUL", "\"\u{0}\"", .controlCharacter(at: at(1), byte: 0)),
        Refusal("an escaped NUL", #""\u0000""#, .nulCharacter(at: at(1))),
        Refusal("a lone high surrogate", #""\ud800""#, .loneSurrogate(at: at(1))),
        Refusal("a lone low surrogate", #""\udc00""#, .loneSurrogate(at: at(1))),
        Refusal("a high surrogate and a letter", #""\ud800\u0061""#, .loneSurrogate(at: at(1))),
        Refusal("a high surrogate at the end", #""\ud83d\ud83d""#, .loneSurrogate(at: at(1))),
        Refusal(
            "an unknown escape", #""\x41""#,
            .malformed(at: at(1), expected: "an escape of RFC 8259 section 7")),
        Refusal("a short escape", #""\u12g4""#, .malformed(at: at(5), expected: "four hexadecimal digits")),
        Refusal("an escape cut off", #""\u12"#, .unexpectedEnd(at: at(5))),
        Refusal("a backslash at the end", "\"\\", .unexpectedEnd(at: at(2))),
        Refusal("a UTF-8 mark", bytes: [0xEF, 0xBB, 0xBF, 0x31], .byteOrderMark),
        Refusal("UTF-16", bytes: [0xFF, 0xFE, 0x31, 0x00], .byteOrderMark),
        Refusal("UTF-16 without a mark", bytes: [0x31, 0x00], .trailingBytes(at: at(1))),
        Refusal("a stray continuation byte", bytes: [0x22, 0x80, 0x22], .notUTF8(at: at(1))),
        Refusal("an overlong slash", bytes: [0x22, 0xC0, 0xAF, 0x22], .notUTF8(at: at(1))),
        Refusal("an overlong three-byte form", bytes: [0x22, 0xE0, 0x9F, 0xBF, 0x22], .notUTF8(at: at(1))),
        Refusal("an encoded surrogate", bytes: [0x22, 0xED, 0xA0, 0x80, 0x22], .notUTF8(at: at(1))),
        Refusal("above U+10FFFF", bytes: [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], .notUTF8(at: at(1))),
        Refusal("a sequence cut by the quote", bytes: [0x22, 0xE2, 0x82, 0x22], .notUTF8(at: at(1))),
        Refusal("a sequence cut by the end", bytes: [0x22, 0xF0, 0x9F], .notUTF8(at: at(1))),
        Refusal("a byte that is never UTF-8", bytes: [0x22, 0x5C, 0x6E, 0xFF, 0x22], .notUTF8(at: at(3))),
    ])
    func `a malformed document is refused with its place`(_ row: Refusal) {
        #expect(throws: row.error) { try CanonicalJSON.read(row.bytes) }
        #expect(!row.error.message.isEmpty && row.error.message.last != ".")
    }

    @Test func `no prefix of a document is read as the document`() throws {
        let document = Array(#"{"a":[1,-2,{"é":"\u0041\ud83d\ude00€"}],"b":{"c":null,"d":true}}"#.utf8)
        _ = try CanonicalJSON.read(document)
        for count in 0..<document.count {
            #expect(throws: JSONError.self) { try CanonicalJSON.read(Array(document[..<count])) }
        }
    }

    @Test func `no single changed byte makes the reader trap`() {
        let document = Array(#"{"a":[1,-2,{"é":"\u0041\ud83d\ude00€"}],"b":{"c":null,"d":true}}"#.utf8)
        var accepted = 0
        for offset in document.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = document
                changed[offset] = byte
                guard let value = try? CanonicalJSON.read(changed) else { continue }
                accepted += 1
                // What is read can be written, and reads back as the same value.
                #expect((try? CanonicalJSON.readCanonical(CanonicalJSON.write(value))) == value)
            }
        }
        #expect(accepted > document.count)
    }

    @Test(arguments: [
        ("1.0", "1.0"), ("[-0.5e+10]", "-0.5e+10"), ("1E2", "1E2"), ("-0", "-0"),
        ("9007199254740992", "9007199254740992"), ("[99999999999999999999]", "99999999999999999999"),
    ])
    func `a number of another system is its text where that is asked for`(document: String, text: String)
        throws
    {
        let limits = JSONLimits(readsOtherNumbersAsTexts: true)
        let value = try read(document, limits: limits)
        #expect((value.arrayValue?.first ?? value) == .string(text))
        #expect(throws: JSONError.self) { try read(document) }
        for integer in [0, -1, CanonicalJSON.integerMax, -CanonicalJSON.integerMax] {
            #expect(try read("\(integer)", limits: limits) == .integer(integer))
        }
        for malformed in [
            "01", "-", "1.", ".5", "1e", "1e+", "1.5.5", "--1", "-01", "1.0x", "+1", "Infinity",
        ] {
            #expect(throws: JSONError.self, "\(malformed)") { try read(malformed, limits: limits) }
        }
    }

    @Test func `nesting is accepted up to the limit and refused beyond it`() throws {
        let limits = JSONLimits(depthMax: 4)
        _ = try read("[[[[1]]]]", limits: limits)
        #expect(throws: JSONError.tooDeep(at: at(4, "/0/0/0/0"), depthMax: 4)) {
            try read("[[[[[1]]]]]", limits: limits)
        }
        #expect(throws: JSONError.self) { try read(String(repeating: "[", count: 60_000)) }
        #expect(throws: JSONError.self) { try read(String(repeating: #"{"a":"#, count: 12_000)) }
    }

    @Test func `length and member counts are accepted up to the limit and refused beyond it`() throws {
        _ = try read("[1,2]", limits: JSONLimits(byteCountMax: 5))
        #expect(throws: JSONError.tooLong(byteCount: 5, byteCountMax: 4)) {
            try read("[1,2]", limits: JSONLimits(byteCountMax: 4))
        }
        let limits = JSONLimits(memberCountMax: 2)
        _ = try read("[1,2]", limits: limits)
        _ = try read(#"{"a":1,"b":2}"#, limits: limits)
        #expect(throws: JSONError.tooManyMembers(at: at(5), memberCountMax: 2)) {
            try read("[1,2,3]", limits: limits)
        }
        #expect(throws: JSONError.tooManyMembers(at: at(13), memberCountMax: 2)) {
            try read(#"{"a":1,"b":2,"c":3}"#, limits: limits)
        }
    }

    @Test func `a NUL is accepted where the limits say so`() throws {
        let value = try read(#""a\u0000b""#, limits: JSONLimits(refusesNUL: false))
        #expect(value == .string("a\u{0}b"))
    }

    @Test func `many members in any order come out sorted, and a duplicate among them is found`() throws {
        let keys = (0..<500).map { "k\(($0 * 7_919) % 500)" }
        let text = "{" + keys.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        let object = try #require(try read(text).objectValue)
        #expect(Array(object.keys) == keys.sorted())
        let twice = text.dropLast() + #","k17":1}"#
        #expect(throws: JSONError.duplicateKey(at: at(text.utf8.count, "/k17"))) { try read(String(twice)) }
    }

    @Test func `a slice is read from its own start`() throws {
        let bytes = Array("xx[1]yy".utf8)
        #expect(try CanonicalJSON.read(bytes[2..<5]) == [1])
        #expect(throws: JSONError.trailingBytes(at: at(3))) { try CanonicalJSON.read(bytes[2...]) }
    }

    @Test func `keys that only look alike are different keys`() throws {
        let value = try read("{\"\u{E9}\":1,\"e\u{301}\":2}")
        #expect(value["\u{E9}"] == 1)
        #expect(value["e\u{301}"] == 2)
        #expect(JSONValue.string("\u{E9}") != .string("e\u{301}"))
        #expect(Set<JSONValue>(["\u{E9}", "e\u{301}", "\u{E9}"]).count == 2)
    }
}
