import BundleModel
import CanonicalJSON
import CompliancePolicy
import Testing

@testable import PolicyFiles
import PolicyPages

private func read(_ text: String) throws(PolicyDiagnostics) -> PolicyNode {
    try PolicyPage.read(Array(text.utf8), file: "page.yaml")
}

/// The problems of a page that must have some, each as `line:column message`.
private func diagnostics(_ bytes: [UInt8]) -> [String] {
    do throws(PolicyDiagnostics) {
        _ = try PolicyPage.read(bytes, file: "page.yaml")
        return []
    } catch {
        return error.diagnostics.map { diagnostic in
            let place = diagnostic.line.map { "\($0):\(diagnostic.column ?? 0) " } ?? ""
            return place + diagnostic.message
        }
    }
}

private func diagnostics(_ text: String) -> [String] { diagnostics(Array(text.utf8)) }

@Suite struct `A page is read strictly` {
    @Test func `every kind of value comes out with its place`() throws {
        let node = try read(
            """
            # A comment.
            name: "NO"
            count: 12
            below: -3
            flag: true
            none: null
            list: [a, 'b']
            nested:
              - {x: 1}

            """)
        #expect(
            node.json == [
                "name": "NO", "count": 12, "below": -3, "flag": true, "none": nil, "list": ["a", "b"],
                "nested": [["x": 1]],
            ])
        #expect(node["name"]?.location == SourceLocation(file: "page.yaml", line: 2, column: 7))
        #expect(node["list"]?.location == SourceLocation(file: "page.yaml", line: 7, column: 7))
        #expect(node.location(of: ["nested", "0", "x"])?.line == 9)
    }

    @Test func `columns count characters, as editors do`() throws {
        let node = try read("{\"å\": \"ø\", b: c}\n")
        #expect(node["b"]?.location?.column == 15)
    }

    @Test func `texts keep their line breaks as YAML says`() throws {
        let node = try read("a: >-\n  one\n  two\nb: |\n  one\n  two\nc: one\n  two\n")
        #expect(node.json == ["a": "one two", "b": "one\ntwo\n", "c": "one two"])
    }

    @Test(arguments: [
        ("a: NO\n", "1:4 `NO` is true or false to some readers of YAML"),
        ("a: yes\n", "1:4 `yes` is true or false to some readers of YAML"),
        ("a: off\n", "1:4 `off` is true or false to some readers of YAML"),
        ("a: True\n", "1:4 `True` is true or false to some readers of YAML"),
        ("a: [x, n]\n", "1:8 `n` is true or false to some readers of YAML"),
        ("a: 21:00\n", "1:4 `21:00` is a number to base 60 to some readers of YAML"),
        ("a: 2026-11-02\n", "1:4 `2026-11-02` is a date to some readers of YAML and a text to others"),
        (
            "a: 2026-11-02T10:00:00Z\n",
            "1:4 `2026-11-02T10:00:00Z` is a date to some readers of YAML and a text to others"
        ),
        ("a: 0644\n", "1:4 `0644` is a number to some readers of YAML, and not the same one to all"),
        ("a: 0o17\n", "1:4 `0o17` is a number to some readers of YAML, and not the same one to all"),
        ("a: 0x1F\n", "1:4 `0x1F` is a number to some readers of YAML, and not the same one to all"),
        ("a: 1_000\n", "1:4 `1_000` is a number to some readers of YAML, and not the same one to all"),
        ("a: +1\n", "1:4 `+1` is a number to some readers of YAML, and not the same one to all"),
        ("a: -0\n", "1:4 `-0` is a number to some readers of YAML, and not the same one to all"),
        ("a: 12e3\n", "1:4 `12e3` is a number to some readers of YAML, and not the same one to all"),
        ("a: .5\n", "1:4 `.5` is a number to some readers of YAML, and not the same one to all"),
        ("a: .inf\n", "1:4 `.inf` is a number to some readers of YAML, and not the same one to all"),
        ("a: 1.5\n", "1:4 `1.5` is a fraction, and numbers here are whole"),
        (
            "a: 9007199254740992\n",
            "1:4 `9007199254740992` is beyond ±(2⁵³−1), where readers begin to round"
        ),
        ("a: ~\n", "1:4 `~` means nothing, in a spelling of its own"),
        ("a: Null\n", "1:4 `Null` means nothing, in a spelling of its own"),
        ("a: =\n", "1:4 `=` is a default to some readers of YAML"),
        ("a:\nb: 1\n", "1:3 has no value here"),
        ("NO: 1\n", "1:1 the key `NO` is true or false to some readers of YAML"),
        ("7: 1\n", "1:1 the key `7` is not a text"),
        ("<<: {a: 1}\n", "1:1 the key `<<` merges mappings in some readers of YAML"),
        ("? [a]\n: b\n", "1:3 has a list or a mapping as a key"),
    ])
    func `a word that readers type differently is refused where it stands`(text: String, expected: String) {
        #expect(diagnostics(text) == [expected])
    }

    @Test(arguments: [
        "\"NO\"", "'21:00'", "\"2026-11-02\"", "\"\"", "2fa_code", "none", "nothing", "yesterday", "v1.2",
        "47 CFR 64.1200(c)(1)", "Art. 6(1)(b)", "drop://", "- 1", "1 {from} = {rate}", "GDPR", "nb",
        "-", "...",
    ])
    func `a word that every reader takes for a text stays one`(word: String) throws {
        // Some of the words need quotes for other reasons; those are a text with them.
        let text = word == "- 1" || word == "-" || word.hasPrefix("1 {") ? "'\(word)'" : word
        let value = try #require(try read("a: \(text)\n")["a"])
        guard case .text = value.value else {
            Issue.record("`\(word)` became \(value.shapeName)")
            return
        }
    }

    @Test func `integers up to 2⁵³−1 are numbers`() throws {
        #expect(
            try read("a: 9007199254740991\nb: -9007199254740991\nc: 0\n").json
                == ["a": 9_007_199_254_740_991, "b": -9_007_199_254_740_991, "c": 0])
    }

    @Test func `every bad word of a page is told at once, each with a hint`() throws {
        do throws(PolicyDiagnostics) {
            _ = try read("a: NO\nb: 21:00\nc:\n  - 0644\n")
            Issue.record("the page was read")
        } catch {
            #expect(error.diagnostics.map(\.line) == [1, 2, 4])
            #expect(error.diagnostics.allSatisfy { $0.hint != nil })
            #expect(
                error.diagnostics[0].hint == "put it between double quotes, \"NO\", or write true or false")
        }
    }

    @Test(arguments: [
        ("a: &x 1\nb: 2\n", "1:4 has an anchor, and a page says everything where it stands"),
        ("a: &x [1]\nb: *x\n", "1:4 has an anchor, and a page says everything where it stands"),
        ("a: &x {b: 1}\n", "1:4 has an anchor, and a page says everything where it stands"),
        ("&x a: 1\n", "1:1 has an anchor, and a page says everything where it stands"),
        ("a: *x\n", "1:4 has an alias, and a page says everything where it stands"),
        ("a: !!str 1\n", "1:4 has a tag, and the schema alone says what a value is"),
        ("a: ! yes\n", "1:4 has a tag, and the schema alone says what a value is"),
        ("a: !secret x\n", "1:4 has a tag, and the schema alone says what a value is"),
        ("a: !!map {b: 1}\n", "1:4 has a tag, and the schema alone says what a value is"),
        ("!!str a: 1\n", "1:1 has a tag, and the schema alone says what a value is"),
    ])
    func `anchors, aliases and tags are refused`(text: String, expected: String) {
        let found = diagnostics(text)
        #expect(found.first == expected)
    }

    @Test(arguments: ["'&x'", "\"*x\"", "'!x'", "a & b", "a *b*", "R&D!"])
    func `their letters are welcome inside a text`(word: String) throws {
        #expect(try read("a: \(word)\n")["a"] != nil)
    }

    @Test func `a billion laughs are not even composed`() {
        // Each key doubles what has to be hashed; composing this would take longer than a lifetime.
        var text = "a0: &a0 {x: y}\n"
        for level in 1...64 {
            text += "a\(level): &a\(level) {? [*a\(level - 1) , *a\(level - 1) ] : z}\n"
        }
        #expect(diagnostics(text) == ["1:5 has an anchor, and a page says everything where it stands"])
    }

    @Test(arguments: [
        ("a: 1\nb: 2\na: 3\n", "3:1 has the key `a` twice, first in line 1"),
        ("a: 1\n\"a\": 3\n", "2:1 has the key `a` twice, first in line 1"),
        ("x:\n  a: 1\n  b:\n    a: 2\n  a: 3\n", "5:3 has the key `a` twice, first in line 2"),
        ("a: {b: 1, b: 2}\n", "1:5 has the key `b` twice, first in line 1"),
    ])
    func `a key that occurs twice is refused`(text: String, expected: String) {
        #expect(diagnostics(text) == [expected])
    }

    @Test(arguments: [
        ("a: 1\n---\nb: 2\n", "2:1 holds a second document"),
        ("%YAML 1.1\n---\na: 1\n", "1:1 has a directive, and a page means the same without one"),
        ("# c\n\n%TAG ! x:\n---\na: 1\n", "3:1 has a directive, and a page means the same without one"),
        (
            "a: [1, 2\n",
            "2:1 is no YAML here: did not find expected ',' or ']', while parsing a flow sequence that began in line 1"
        ),
        (
            "a: \"x\n",
            "2:1 is no YAML here: found unexpected end of stream, while scanning a quoted scalar that began in line 1"
        ),
        ("a: 1\n b: 2\n", "2:3 is no YAML here: mapping values are not allowed in this context"),
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
    ])
    func `what is not one document is refused`(text: String, expected: String) {
        #expect(diagnostics(text) == [expected])
    }

    @Test func `one document between markers is fine`() throws {
        #expect(try read("---\na: 1\n...\n").json == ["a": 1])
    }

    @Test(arguments: [
        ("a:\n\tb: 1\n", "2:1 has a tab (U+0009)"),
        ("a: b\tc\n", "1:5 has a tab (U+0009)"),
        ("a: 1\r\nb: 2\r\n", "1:5 has a carriage return (U+000D)"),
        ("\u{FEFF}a: 1\n", "1:1 has a byte order mark (U+FEFF)"),
        ("a: b\u{0}\n", "1:5 has a control character (U+0000)"),
        ("a: b\u{85}c\n", "1:5 has a line separator that not every reader takes for one (U+0085)"),
        ("a: b\u{2028}c\n", "1:5 has a line separator that not every reader takes for one (U+2028)"),
        ("a: å\u{202E}c\n", "1:5 has a mark that reorders the text on a screen (U+202E)"),
        ("a: b\u{2066}c\n", "1:5 has a mark that reorders the text on a screen (U+2066)"),
        ("a: \"b\\0\"\n", "1:4 has a control character in a text"),
        ("a: \"b\\u202e\"\n", "1:4 has a mark that reorders the text on a screen in a text"),
    ])
    func `characters nobody can see are refused`(text: String, expected: String) {
        #expect(diagnostics(text) == [expected])
    }

    @Test func `bytes that are not UTF-8 are refused where they begin`() {
        #expect(diagnostics(Array("a: 1\nb: x".utf8) + [0xFF, 0x0A]) == ["2:5 is not UTF-8 from here on"])
        #expect(diagnostics([0xC3]) == ["1:1 is not UTF-8 from here on"])
        // A surrogate half, which UTF-8 does not have.
        #expect(diagnostics([0x61, 0xED, 0xA0, 0x80]) == ["1:2 is not UTF-8 from here on"])
        // UTF-16 with its byte order mark.
        #expect(diagnostics([0xFF, 0xFE, 0x61, 0x00]) == ["1:1 is not UTF-8 from here on"])
    }

    @Test func `a page may be 256 KiB and not a byte more`() throws {
        let longest = "a: " + String(repeating: "x", count: 256 * 1024 - 4) + "\n"
        #expect(try read(longest)["a"] != nil)
        #expect(diagnostics(longest + "#") == ["is longer than 262144 bytes"])
        // The pages with a line for every type have room for ten thousand of them.
        #expect(try PolicyPage.read(Array((longest + "#").utf8), file: "bundle.yaml")["a"] != nil)
        #expect(try PolicyPage.read(Array((longest + "#").utf8), file: "messages/nb.yaml")["a"] != nil)
    }

    @Test func `sixteen levels are deep enough`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + "x" + String(repeating: "]", count: depth) + "\n"
        }
        #expect(try read(nested(16)).shapeName == "a list")
        #expect(diagnostics(nested(17)) == ["1:17 is nested deeper than 16 levels"])
        // libyaml stops before the stack would.
        #expect(diagnostics(nested(100_000)).count == 1)
        #expect(diagnostics(String(repeating: "- ", count: 100_000) + "x\n").count == 1)
    }

    @Test func `a page of nothing but mistakes tells a hundred of them`() {
        #expect(diagnostics(String(repeating: "- NO\n", count: 1_000)).count == 100)
    }

    @Test func `a notice is its text, to the byte`() throws {
        let text = "Vil du ha tilbud?\n\n\tJa eller nei: begge er greit.\n"
        #expect(try PolicyPage.readText(Array(text.utf8), file: "notices/a.1.nb.txt").json == .string(text))
        #expect(throws: PolicyDiagnostics.self) { try PolicyPage.readText([], file: "notices/a.1.nb.txt") }
        #expect(throws: PolicyDiagnostics.self) {
            try PolicyPage.readText(Array("a\r\n".utf8), file: "notices/a.1.nb.txt")
        }
    }
}
