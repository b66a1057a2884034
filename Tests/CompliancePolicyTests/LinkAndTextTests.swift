import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import Testing

struct LinkRow: Sendable, CustomTestStringConvertible {
    var prefix: String
    var link: String
    var testDescription: String { "\(prefix) ← \(link)" }

    init(_ prefix: String, _ link: String) {
        self.prefix = prefix
        self.link = link
    }
}

/// Where a tap may lead, and what a text may hold that people read.
@Suite struct LinkAndTextTests {
    static let covered: [LinkRow] = [
        LinkRow("drop://", "drop://"), LinkRow("drop://", "drop://send"),
        LinkRow("drop://", "drop://send/7/"),
        LinkRow("drop://send", "drop://send"), LinkRow("drop://send", "drop://send/7"),
        LinkRow("drop://send", "drop://send/"), LinkRow("drop://send", "drop://send?step=2&of=v1.2"),
        LinkRow("drop://send", "drop://send#top"), LinkRow("drop://send/", "drop://send/7"),
        LinkRow("drop://send?tab=1", "drop://send?tab=2"), LinkRow("whistl://a/b", "whistl://a/b/C_d-e~f"),
    ]

    static let tricks: [LinkRow] =
        [
            // Another scheme.
            "https://evil.example", "https://drop.example/send", "javascript:alert(1)", "javascript://send",
            "intent://send#Intent;scheme=drop;end", "tel:+4790000000", "data:text/html,x",
            "file:///etc/passwd",
            "Drop://send", "DROP://send", "drop:send", "drop:/send", "drop:///send", "//evil.example/send",
            "//evil", "dropp://send", "xdrop://send", " drop://send", "drop ://send",
            // User information, ports, and links inside links.
            "drop://send@evil.example", "drop://send:80", "drop://evil.example@send", "drop://u:p@send",
            "drop://send?to=https://evil.example", "drop://send?to=javascript:x", "drop://send//evil.example",
            "drop://send\\evil", "drop://send/\\evil.example",
            // Out of the place again, however it is spelled.
            "drop://send/../x", "drop://send/..", "drop://send/./x", "drop://send/.", "drop://send/%2e%2e/x",
            "drop://send%2f..%2fx", "drop://%73end", "drop://send/%00", "drop://send?next=../x",
            // What only begins the same.
            "drop://sendevil", "drop://send.evil.example", "drop://send-evil", "drop://sen", "drop://SEND",
            "drop://send&x", "drop://send=x",
            // Characters that look the same, that nobody sees, or that end a line.
            "drop://s\u{435}nd", "drop://send\u{200B}", "drop://send/\u{202E}x", "drop://send\n",
            "drop://send/ x",
            "dr\u{43E}p://send", "drop\u{FF1A}//send", "drop://send/{id}", "drop://send/<x>",
            "drop://send/\u{7}",
            "drop://send/" + String(repeating: "a", count: 512),
        ].map { LinkRow("drop://send", $0) }

    @Test(arguments: covered)
    func `a link lies under a place and what is below it`(row: LinkRow) throws {
        #expect(try #require(LinkPrefix(inApp: row.prefix)).covers(row.link))
    }

    @Test(arguments: tricks)
    func `a link that could lead elsewhere lies under nothing`(row: LinkRow) throws {
        #expect(try !#require(LinkPrefix(inApp: row.prefix)).covers(row.link))
        let policy = try TestBundle.minimal.setting(
            "types/payment.yaml", "deep_link", to: .string(row.prefix)
        )
        .compile()
        let params: JSONObject = ["amount": ["minor": 1, "currency": "NOK"], "id": ParamsTests.uuid]
        let found = policy.paramsViolations(params, deepLink: row.link, of: TestType.payment)
        #expect(found.map(\.pointer.text) == ["/deep_link"])
        // The message names the place and never the link.
        #expect(found.allSatisfy { !$0.message.replacing(row.prefix, with: "").contains(row.link) })
    }

    @Test func `a link below a place of the page passes, and a type without a place takes none`() throws {
        let params: JSONObject = ["amount": ["minor": 1, "currency": "NOK"], "id": ParamsTests.uuid]
        func violations(_ bundle: TestBundle, _ link: String) throws -> [String] {
            try bundle.compile().paramsViolations(params, deepLink: link, of: TestType.payment)
                .map(\.pointer.text)
        }
        let page = TestBundle.minimal.setting("types/payment.yaml", "deep_link", to: "drop://send")
        let more = page.setting("types/payment.yaml", "deep_link_prefixes", to: ["drop://wallet"])
        #expect(try violations(page, "drop://send/7") == [])
        #expect(try violations(page, "drop://wallet/7") == ["/deep_link"])
        #expect(try violations(more, "drop://wallet/7") == [])
        #expect(try violations(more, "drop://send") == [])
        #expect(try violations(TestBundle.minimal, "drop://send") == ["/deep_link"])
    }

    @Test(arguments: [
        "https://", "https://getdrop", "https://getdrop.no:80", "https://a@b.no", "https://.no",
        "https://no.",
        "http://getdrop.no", "https://GETDROP.no", "drop://getdrop.no", "https://b\u{E5}nk.no",
    ])
    func `a place on the web names a whole host`(text: String) {
        #expect(LinkPrefix(onWeb: text) == nil)
    }

    @Test func `a place on the web is its host and no other that begins the same`() throws {
        let place = try #require(LinkPrefix(onWeb: "https://posten.no"))
        #expect(place.covers("https://posten.no/sporing?id=1"))
        for link in [
            "https://posten.no.evil.example", "https://posten.no:8080", "https://posten.no@evil.example",
            "https://posten.nothing.example", "http://posten.no",
        ] {
            #expect(!place.covers(link), "\(link)")
        }
    }

    // MARK: Texts

    @Test(arguments: [
        "Ahmad Karimi", "Bj\u{F8}rnstjerne \u{C5}s", "Md.Rahim", "St.Clair", "J. Li", "Dr. Hansen AS",
        "10.50",
        "NOK 1 000,50", "kl. 12:30", "Ref:12345", "A/S Norske Skog", "R&D #7", "1.2.3", "12.11.2026", "a.m.",
        "3:1",
        "\u{645}\u{6CC}\u{200C}\u{62E}\u{648}\u{627}\u{647}\u{645}", "\u{1F469}\u{200D}\u{1F467}",
        "\u{2764}\u{FE0F}",
        "\u{AE40}\u{CCA0}\u{C218}", "10\u{A0}000", "O'Neil, \"Kari\"", "50% today!", "v2.0", "No. 7.",
        "e-post",
    ])
    func `a name, a number and a sentence are texts`(text: String) {
        #expect(PlainTextRule().violation(in: text) == nil)
    }

    @Test(arguments: [
        "https://evil.example/login", "HTTPS://EVIL.EXAMPLE", "http:evil.example", "javascript:alert(1)",
        "tel:+4790000000",
        "mailto:a@b", "intent://x", "drop://send", "see www.evil", "evil.com", "EVIL.COM", "Evil.Com",
        "evil.com.",
        "evil.com!", "(evil.com)", "evil.com\u{1F600}", "go to evil.example/x now", "Evil.Bank/login",
        "a@evil.com",
        "x:evil.com", "u:p@evil.com", "to=evil.com", "t.co", "bit.ly/x", "192.168.0.1", "192.168.0.1/x",
        "evil.com:8080",
        "\u{435}vil.com", "evil\u{3002}com", "\u{FF45}vil\u{FF0E}com", "evil\u{FF0E}\u{FF43}\u{FF4F}\u{FF4D}",
        "https\u{FF1A}\u{2215}\u{2215}evil", "xn--vil-6bd.example", "evil.shop", "evil.unheardof",
        "\u{43F}\u{440}\u{438}\u{43C}\u{435}\u{440}.\u{440}\u{444}", "//evil",
    ])
    func `a text that a phone would make a link of is none`(text: String) throws {
        #expect(try #require(PlainTextRule().violation(in: text)).contains("no link"))
    }

    @Test(arguments: [
        "two\nlines", "two\r\nlines", "tab\there", "a\u{0}b", "bell\u{7}", "a\u{85}b", "a\u{2028}b",
        "a\u{2029}b",
        "100\u{202E}000", "\u{2066}x\u{2069}", "\u{200F}x", "b\u{200B}ank", "b\u{200C}ank", "b\u{200D}ank",
        "soft\u{AD}hyphen", "\u{FEFF}x", "a\u{2060}b", "a\u{FE0F}b", "\u{E0041}x", "x\u{3164}", "x\u{115F}",
        "a\u{2800}b", "a\u{FFFC}b", "a\u{E000}b", "a\u{10FFFF}", " ", "  ", "\u{A0}", "\u{3000}\u{2009}", "",
    ])
    func `what nobody sees, or what breaks a line, is no text`(text: String) throws {
        #expect(PlainTextRule().violation(in: text) != nil)
    }

    @Test func `a type asks for less by name, and never for links`() {
        let lines = PlainTextRule(allowing: [.lineBreaks])
        #expect(lines.violation(in: "two\nlines") == nil)
        for text in ["two\r\nlines", "a\tb", "a\u{2028}b", "\n", "see\nevil.com", "see\nhttps://evil"] {
            #expect(lines.violation(in: text) != nil, "\(text)")
        }
        let names = PlainTextRule(allowing: [.domainNames])
        for text in ["booking.com", "help@getdrop.no", "FINN.no AS"] {
            #expect(names.violation(in: text) == nil)
        }
        for text in [
            "booking.com/x", "https://booking.com", "www.booking.com", "evil.com:80", "evil.com?x",
            "two\nlines",
            "tel:+4790000000", "b\u{200B}ooking.com",
        ] {
            #expect(names.violation(in: text) != nil, "\(text)")
        }
    }
}
