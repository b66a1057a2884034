import CanonicalJSON
import Testing

private func canonical(_ text: String) throws -> String {
    String(decoding: CanonicalJSON.write(try CanonicalJSON.read(Array(text.utf8))), as: UTF8.self)
}

@Suite struct WritingTests {
    /// RFC 8785 section 3.2.3's own example, without its floating point values.
    @Test func `members are sorted by UTF-16 code units`() throws {
        let written = try canonical(
            #"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#
        )
        #expect(
            written
                == "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\u{FB33}\":\"Hebrew Letter Dalet With Dagesh\"}"
        )
    }

    /// RFC 8785 section 3.2.2's string, and every other control character.
    @Test func `only what must be escaped is escaped, in its one spelling`() throws {
        #expect(
            try canonical(#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#) == #""€$\u000f\nA'B\"\\\\\"/""#
        )
        #expect(
            try canonical(#""\u0001\u0008\u0009\u000a\u000b\u000c\u000d\u001f\u007f""#)
                == "\"\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\u{7F}\"")
    }

    @Test func `a character is escaped wherever it stands`() {
        let escapes: [(String, String)] =
            [
                ("\"", "\\\""), ("\\", "\\\\"), ("\u{8}", "\\b"), ("\t", "\\t"), ("\n", "\\n"),
                ("\u{C}", "\\f"),
            ]
            + [("\r", "\\r"), ("\0", "\\u0000"), ("\u{1F}", "\\u001f")]
        let plain = ["a", "!", "#", "[", "]", " ", "\u{7F}", "é", "€", "😀"]
        // Texts longer than two words of eight bytes, with the character at every place and others beside it.
        for count in 0...20 {
            for (character, escaped) in escapes + plain.map({ ($0, $0) }) {
                for place in 0...count {
                    for filler in plain {
                        let (before, after) = (
                            String(repeating: filler, count: place),
                            String(repeating: filler, count: count - place)
                        )
                        let written = CanonicalJSON.write(.string(before + character + after))
                        guard written == Array("\"\(before)\(escaped)\(after)\"".utf8) else {
                            Issue.record("\(String(decoding: written, as: UTF8.self))")
                            return
                        }
                    }
                }
            }
        }
    }

    private enum Sample: String, CaseIterable {
        case short = ""
        case plain
        case escaped = "a\"b"
        case long = "12345678901234567890123456789"
    }

    @Test func `a name of a closed list is written as its text is`() {
        let names = QuotedNames(\Sample.rawValue)
        for sample in Sample.allCases {
            #expect(
                CanonicalWriter.bytes { $0.name(names[sample]) }
                    == CanonicalJSON.write(.string(sample.rawValue)))
        }
    }

    @Test(arguments: [1, 9, 10, 2_000])
    func `a value longer than was expected is written as a shorter one is`(_ characterCount: Int) {
        let text = String(repeating: "a", count: characterCount)
        let bytes = CanonicalWriter.bytes(capacity: 16) { json in
            json.array([text, text, text]) { $0.text($1) }
        }
        #expect(bytes == CanonicalJSON.write(.array([.string(text), .string(text), .string(text)])))
    }

    @Test func `an object is written member by member as its tree is`() {
        var json = CanonicalWriter(capacity: 1)
        json.object { json in
            json.member("absent", String?.none)
            json.member("array") { $0.array([[], ["{", "["], [""]]) { $0.array($1) { $0.text($1) } } }
            json.member("false", false)
            json.member("hexadecimal") {
                $0.quoted { $0.hexadecimal(high: 0x0123_4567_89AB_CDEF, low: .max - 1) }
            }
            json.member("integers") {
                $0.array([0, -1, 10, 99, 100, -9_007_199_254_740_991]) { $0.integer($1) }
            }
            json.member("none") { $0.object { _ in } }
            json.member("parts") { json in
                json.quoted { json in
                    json.characters("a\"")
                    json.integer(7)
                    json.hexadecimal([0x00, 0x9A, 0xFF, 0x01, 0x23, 0xCD, 0xEF])
                }
            }
            json.member("uuid") {
                $0.quoted { $0.uuid(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210) }
            }
            json.member("value") { $0.value(["b": nil, "a": [true, "\n"]] as JSONValue) }
        }
        let tree: JSONObject = [
            "array": [[], ["{", "["], [""]], "false": false,
            "hexadecimal": "0123456789abcdeffffffffffffffffe",
            "integers": [0, -1, 10, 99, 100, -9_007_199_254_740_991], "none": [:],
            "parts": "a\"7009aff0123cdef",
            "uuid": "01234567-89ab-cdef-fedc-ba9876543210", "value": ["a": [true, "\n"], "b": nil],
        ]
        let bytes = json.finish()
        #expect(String(decoding: bytes, as: UTF8.self) == tree.description)
        #expect(CanonicalJSON.isCanonical(bytes))
    }

    @Test func `every digit has its character`() {
        for number in UInt32(0)..<256 {
            let expected = String(number * 0x0101_0101, radix: 16)
            let digits = HexadecimalDigits.of(number * 0x0101_0101)
            let text = withUnsafeBytes(of: digits.bigEndian) { String(decoding: $0, as: UTF8.self) }
            #expect(text == String(repeating: "0", count: 8 - expected.count) + expected)
        }
    }

    @Test func `every count of digits is written, and every four of them`() {
        var integers: [Int64] = Array(0..<10_000)
        integers += integers.map { $0 * 10_000 + 9_999 } + integers.map { $0 * 100_000_000 + 1 }
        var power: Int64 = 1
        for _ in 0..<16 {
            integers += [power - 1, power, power + 1, 1 - power, -power, -power - 1]
            power *= 10
        }
        integers += [CanonicalJSON.integerMax, CanonicalJSON.integerMin]
        for integer in integers {
            let text = String(decoding: CanonicalJSON.write(.integer(integer)), as: UTF8.self)
            guard text == String(integer) else {
                Issue.record("\(integer) was written as \(text)")
                return
            }
        }
    }

    @Test func `integers are plain decimal`() throws {
        #expect(
            try canonical("[-9007199254740991,-10,-1,0,7,10,9007199254740991]")
                == "[-9007199254740991,-10,-1,0,7,10,9007199254740991]")
    }

    @Test(arguments: [
        "{}", "[]", "null", #"{"a":1,"b":[true,{"c":"d"}]}"#, "\"\\u001f\\n€\u{10FFFF}\"",
        "{\"\u{10000}\":1,\"\u{FFFD}\":2}",
    ])
    func `a canonical spelling is recognised and comes back unchanged`(_ text: String) throws {
        let bytes = Array(text.utf8)
        #expect(CanonicalJSON.isCanonical(bytes))
        #expect(CanonicalJSON.write(try CanonicalJSON.readCanonical(bytes)) == bytes)
    }

    @Test(arguments: [
        (" {}", 0), ("{} ", 2), (#"{"a": 1}"#, 5), (#"{"b":1,"a":2}"#, 7), (#""\u0041""#, 1), (#""\/""#, 1),
        (#""\u000a""#, 1), (#""\u001F""#, 1), ("{\"\u{FFFD}\":1,\"\u{10000}\":2}", 9),
        (#""\ud83d\ude00""#, 1),
    ])
    func `any other spelling is refused with the byte where it departs`(_ text: String, offset: Int) throws {
        let bytes = Array(text.utf8)
        _ = try CanonicalJSON.read(bytes)
        #expect(!CanonicalJSON.isCanonical(bytes))
        let error = #expect(throws: JSONError.self) { try CanonicalJSON.readCanonical(bytes) }
        #expect(error == .notCanonical(at: JSONPlace(offset: offset)))
    }

    @Test func `reading canonically accepts exactly what writing gives`() throws {
        // Every document one byte away from a canonical one is either canonical itself or refused.
        let document = Array(#"{"a":[0,-12,"\n\u001f\\"],"b":{"c":null}}"#.utf8)
        var readCount = 0
        for offset in document.indices {
            for byte in UInt8(0x20)...0x7E {
                var changed = document
                changed[offset] = byte
                guard let value = try? CanonicalJSON.read(changed) else { continue }
                readCount += 1
                #expect(CanonicalJSON.isCanonical(changed) == (CanonicalJSON.write(value) == changed))
            }
        }
        #expect(readCount > document.count)
    }
}

@Suite struct ObjectTests {
    @Test func `members are found, replaced, added and removed by exact key`() {
        var object: JSONObject = ["b": 2, "a": 1]
        object["c"] = 3
        object["b"] = nil
        object["a"] = .null
        object["missing"] = nil
        #expect(object == ["a": nil, "c": 3])
        #expect(object["a"] == .some(.null))
        #expect(object["b"] == nil)
        #expect(object.map(\.key) == ["a", "c"])
    }

    @Test func `members are left out by name wherever they stand`() {
        let object: JSONObject = ["a": 1, "b": 2, "c": 3, "d": 4]
        #expect(object.without(sortedKeys: ["a", "c", "x"]) == ["b": 2, "d": 4])
        #expect(object.without(sortedKeys: ["", "aa", "d"]) == ["a": 1, "b": 2, "c": 3])
        #expect(object.without(sortedKeys: []) == object)
        #expect(object.without(sortedKeys: ["a", "b", "c", "d"]) == [:])
    }

    @Test func `an object built with one key twice stops the program`() async {
        await #expect(processExitsWith: .failure) {
            _ = JSONObject([("a", 1), ("a", 2)])
        }
    }

    @Test func `an integer no JSON reader carries exactly stops the program`() async {
        await #expect(processExitsWith: .failure) {
            _ = CanonicalJSON.write(.integer(CanonicalJSON.integerMax + 1))
        }
    }
}

@Suite struct PointerTests {
    /// RFC 6901 section 5.
    @Test(arguments: [
        ("", "{\"\":0,\"a/b\":1,\"c%d\":2,\"foo\":[\"bar\",\"baz\"],\"m~n\":8}"),
        ("/foo", "[\"bar\",\"baz\"]"),
        ("/foo/0", "\"bar\""), ("/", "0"), ("/a~1b", "1"), ("/c%d", "2"), ("/m~0n", "8"),
    ])
    func `a pointer leads to its value`(_ text: String, expected: String) throws {
        let document: JSONValue = ["foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "m~n": 8]
        let pointer = try #require(JSONPointer(parsing: text))
        #expect(document[pointer]?.description == expected)
        #expect(JSONPointer(pointer.tokens) == pointer)
    }

    @Test(arguments: ["/foo/2", "/foo/-", "/foo/00", "/foo/+1", "/foo/bar", "/nothing", "/foo/0/x"])
    func `a pointer to nothing gives nothing`(_ text: String) throws {
        let document: JSONValue = ["foo": ["bar", "baz"]]
        #expect(document[try #require(JSONPointer(parsing: text))] == nil)
    }

    @Test(arguments: ["foo", "/~", "/~2", "/a~"])
    func `a pointer that is spelt wrongly is refused`(_ text: String) {
        #expect(JSONPointer(parsing: text) == nil)
    }

    @Test func `a long pointer is shortened on a character's edge`() {
        let pointer = JSONPointer.root.appending(String(repeating: "é", count: 500))
        let shortened = pointer.shortened(byteCountMax: 20)
        #expect(shortened == "/" + String(repeating: "é", count: 9) + "…")
        #expect(JSONPointer.root.appending("a/b").appending(3).text == "/a~1b/3")
    }
}
