import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
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
    @Test func `a text is refused alike, whether its bytes say enough or not`() {
        var numbers = SeededNumbers(seed: 3)
        // Mostly what bytes alone decide, and some of what they do not.
        let characters =
            Array(repeating: Array("abyzABYZ0123456789 ,-'!  "), count: 4).flatMap(\.self)
            + "._:/@+#(\t\n\u{301}é٣"
        for count in 0..<60 {
            for round in 0..<200 {
                let text = String(
                    (0..<count).map { _ in characters[Int(numbers.next() % UInt64(characters.count))] })
                let rule = PlainTextRule(
                    allowing: round % 3 == 0
                        ? Set([TextAllowance.allCases[round % TextAllowance.allCases.count]]) : [])
                #expect(Self.judged(text, by: rule), "`\(text)`")
            }
        }
        for text in [
            "", " ", "    ", "     ", "a     b", "a    b", "123456", "1234567", "1 2 3 4 5 6 7", "-,'!",
            "a-1,b'2!",
        ] {
            #expect(Self.judged(text, by: PlainTextRule()), "`\(text)`")
        }
    }

    /// Whether a text is judged the same by its bytes and by all of the rule.
    private static func judged(_ text: String, by rule: PlainTextRule) -> Bool {
        Result { () throws(TextViolation) in try rule.checked(text) }
            == Result { () throws(TextViolation) in try rule.checked(any: text) }
    }

    static let covered: [LinkRow] = [
        LinkRow("drop://", "drop://"), LinkRow("drop://", "drop://send"),
        LinkRow("drop://", "drop://send/7/"),
        LinkRow("drop://send", "drop://send"), LinkRow("drop://send", "drop://send/7"),
        LinkRow("drop://send", "drop://send/"), LinkRow("drop://send", "drop://send?step=2&of=v1.2"),
        LinkRow("drop://send", "drop://send#top"), LinkRow("drop://send/", "drop://send/7"),
        LinkRow("drop://send?tab=1", "drop://send?tab=2"), LinkRow("whistl://a/b", "whistl://a/b/C_d-e~f"),
        LinkRow("drop://", "drop://open?next=7#top"),
        LinkRow("drop://documents", "drop://documents/terms.pdf"),
        LinkRow("drop://send", "drop://send?transaction=3232235521"),
        LinkRow("drop://send", "drop://send?q="),
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
            // Characters that look the same, that are not seen, or that end a line.
            "drop://s\u{435}nd", "drop://send\u{200B}", "drop://send/\u{202E}x", "drop://send\n",
            "drop://send/ x",
            "dr\u{43E}p://send", "drop\u{FF1A}//send", "drop://send/{id}", "drop://send/<x>",
            "drop://send/\u{7}",
            "drop://send/" + String(repeating: "a", count: 512),
            // Percent-encoding, of control characters too.
            "drop://send/%0d%0aSet-Cookie", "drop://send?x=%00", "drop://send#%0a", "drop://send/%",
            // A host in what the link adds.
            "drop://send?next=//evil.com", "drop://send?next=/evil", "drop://send?url=https%3A%2F%2Fevil.com",
            "drop://send?next=evil.com", "drop://send?evil.example", "drop://send#evil.com",
            "drop://send#/evil",
            "drop://send?next=192.168.0.1", "drop://send?next=0xC0.0xA8.0.1", "drop://send?next=localhost",
            "drop://send?a=1&b=evil.unheardof", "drop://send/evil.com", "drop://send/7/evil.com/x",
            "drop://send/10.0.0.1", "drop://send#a#b", "drop://send?a?b", "drop://send/a&b",
            "drop://send?.=..",
        ].map { LinkRow("drop://send", $0) }
        + [
            "drop://evil.com", "drop://evil.com/x", "drop://open?next=//evil.com", "drop://localhost/x",
            "drop://open?url=https%3A%2F%2Fevil.com", "drop://192.168.0.1", "drop://a/../b",
            "drop://a@evil.com",
            "drop:///send", "drop://open?next=evil.com", "drop://[::1]", "drop://open#evil.com",
        ].map { LinkRow("drop://", $0) }
        + [
            "https://drop.no.evil.com", "https://drop.no@evil.com", "https://drop.no:443/x",
            "https://drop.no.",
            "https://drop.noevil", "https://drop.no?next=evil.com", "https://drop.no/x#evil.com",
            "https://drop.nо",
            "https://DROP.no/x", "https://drop.no/%2e%2e", "https://drop.no/go/evil.com",
            "https://drop.no\\.evil.com",
        ].map { LinkRow("https://drop.no", $0) }

    @Test(arguments: covered)
    func `a link lies under a place and what is below it`(row: LinkRow) throws {
        #expect(try #require(LinkPrefix(inApp: row.prefix)).covers(row.link))
    }

    @Test(arguments: tricks)
    func `a link that could lead elsewhere lies under nothing`(row: LinkRow) throws {
        guard let prefix = LinkPrefix(inApp: row.prefix) else {
            #expect(try !#require(LinkPrefix(onWeb: row.prefix)).covers(row.link))
            return
        }
        #expect(!prefix.covers(row.link))
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

    /// The repository's way: one line of the cover page makes every place of the app a place on the web too.
    private static let linked = TestBundle.minimal.setting(
        "types/payment.yaml", "deep_link", to: "drop://send"
    )
    .setting("bundle.yaml", "app_links", to: ["drop": "https://app.getdrop.no"])

    @Test func `a place of the app is a place on the web where the app answers there`() throws {
        let params: JSONObject = ["amount": ["minor": 1, "currency": "NOK"], "id": ParamsTests.uuid]
        func violations(_ link: String) throws -> [String] {
            try Self.linked.compile().paramsViolations(params, deepLink: link, of: TestType.payment)
                .map(\.pointer.text)
        }
        for link in [
            "drop://send/7", "https://app.getdrop.no/send", "https://app.getdrop.no/send/7?step=2",
        ] {
            #expect(try violations(link) == [], "\(link)")
        }
        for link in [
            "https://app.getdrop.no", "https://app.getdrop.no/", "https://app.getdrop.no/wallet",
            "https://app.getdrop.no/sender", "https://getdrop.no/send", "https://evil.app.getdrop.no/send",
            "https://app.getdrop.no.evil.example/send", "https://app.getdrop.no:443/send",
            "https://a@app.getdrop.no/send", "https://app.getdrop.no@evil.example/send",
            "https://APP.getdrop.no/send", "HTTPS://app.getdrop.no/send", "http://app.getdrop.no/send",
            "https://app.getdrop.no./send", "https://app.getdrop.no/./send",
            "https://app.getdrop.no/x/../send",
            "https://app.getdrop.no//send", "https://app.getdrop.no/%73end",
            "https://app.getdrop.no/send?next=evil.example", "https://app.getdrop.no/send/evil.example",
            "https://app.getdrop.no\\send", "https:/app.getdrop.no/send",
        ] {
            #expect(try violations(link) == ["/deep_link"], "\(link)")
        }
    }

    @Test func `a type's own place on the web lies below one where the app answers`() throws {
        let page = Self.linked.setting(
            "types/payment.yaml", "deep_link", to: "https://app.getdrop.no/receipts")
        let params: JSONObject = ["amount": ["minor": 1, "currency": "NOK"], "id": ParamsTests.uuid]
        let policy = try page.compile()
        let found = { policy.paramsViolations(params, deepLink: $0, of: TestType.payment).isEmpty }
        #expect(found("https://app.getdrop.no/receipts/7"))
        #expect(!found("https://app.getdrop.no/send") && !found("drop://receipts/7"))
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
        "Ahmad Karimi", "Bj\u{F8}rnstjerne \u{C5}s", "Md. Rahim", "St. Clair", "J. Li", "Dr. Hansen AS",
        "Nr.5", "e.g.", "U.S.A.", "Jan.-Mar. 2026", "GmbH. Berlin",
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
        "evil.com:8080", "Evil.Team", "Evil.Casino", "Evil.Security", "Evil.\u{41A}\u{43E}\u{43C}",
        "Evil.Unheardof",
        "GmbH.Berlin", "Dr.M\u{FC}ller", "Md.Rahim", "Amazon.De", "evil\u{FE12}com", "evil\u{2488}com",
        "evil\u{1F100}com", "evil\u{1362}com", "evil\u{A60E}com", "\u{1CCDA}vil.\u{1CCD8}om",
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
        for text in ["booking.com", "FINN.no AS", "J.P.Morgan"] {
            #expect(names.violation(in: text) == nil)
        }
        for text in [
            "booking.com/x", "https://booking.com", "www.booking.com", "evil.com:80", "evil.com?x",
            "two\nlines",
            "tel:+4790000000", "b\u{200B}ooking.com", "a@evil.com", "Md.Rahim@evil.com", "Dr.M\u{FC}ller",
            "call +44 20 7946 0000",
        ] {
            #expect(names.violation(in: text) != nil, "\(text)")
        }
        let addresses = PlainTextRule(allowing: [.emailAddresses])
        #expect(addresses.violation(in: "help@getdrop.no") == nil)
        for text in ["getdrop.no", "help@getdrop.no/x", "paypal.com@evil.com", "paypal.Casino@evil.com"] {
            #expect(addresses.violation(in: text) != nil, "\(text)")
        }
        let persons = PlainTextRule(allowing: [.abbreviations])
        for text in ["Md.Rahim", "St.Clair", "Dr.M\u{FC}ller", "J.R.Tolkien", "Prof.Dr.Hansen"] {
            #expect(persons.violation(in: text) == nil, "\(text)")
        }
        for text in [
            "Evil.Team", "Md.Casino", "md.rahim", "MD.RAHIM", "Security.Rahim", "Md.Rahim/x", "x=Md.Rahim",
            "Md.\u{41A}\u{43E}\u{43C}", "Md.\u{421}asin\u{43E}", "a@Md.Rahim", "Dr.No", "evil.com",
        ] {
            #expect(persons.violation(in: text) != nil, "\(text)")
        }
        let references = PlainTextRule(allowing: [.reference])
        for text in ["A-100234567", "20261122/7", "3232235521"] {
            #expect(references.violation(in: text) == nil, "\(text)")
            #expect(PlainTextRule().violation(in: text) != nil, "\(text)")
        }
        for text in ["call 22345678", "+4722345678", "22 34 56 78", "a.no", "22345678\u{2764}"] {
            #expect(references.violation(in: text) != nil, "\(text)")
        }
        #expect(PlainTextRule(allowing: [.phoneNumbers]).violation(in: "call +44 20 7946 0000") == nil)
        for model in ["Xiaomi 2201116SG", "Xiaomi 22101316G", "SM-G991B", "MTP131PL 2024"] {
            #expect(PlainTextRule().violation(in: model) == nil, "\(model)")
        }
        for number in ["call08001234567", "0800 123 4567x", "x22101316 22101316"] {
            #expect(PlainTextRule().violation(in: number) != nil, "\(number)")
        }
        #expect(PlainTextRule(allowing: [.phoneNumbers]).violation(in: "tel:+442079460000") != nil)
    }

    @Test func `a name with any ending is a link in every spelling`() {
        var random = SeededNumbers(seed: 12)
        let unheard = (0..<500).map { _ in
            String(
                // Of two letters there is none but of a country.
                (0..<Int.random(in: 3...12, using: &random)).map { _ in
                    Character(Unicode.Scalar(UInt8.random(in: 97...122, using: &random)))
                })
        }
        #expect(DomainEndings.all.count > 1_200)
        for ending in DomainEndings.all.sorted() + ISOCodes.countries.sorted() + unheard {
            for name in ["evil.\(ending)", "Evil.\(ending.capitalized)", "EVIL.\(ending.uppercased())"] {
                #expect(PlainTextRule().violation(in: "see \(name) now") != nil, "\(name)")
                #expect(PlainTextRule(allowing: [.emailAddresses]).violation(in: name) != nil, "\(name)")
            }
            guard !unheard.contains(ending) else { continue }
            // A phone links what stands before a dash, or before a label that is no ending.
            for name in ["evil.\(ending)-", "evil.\(ending)-x", "evil.\(ending).7", "evil.\(ending)_"] {
                #expect(PlainTextRule().violation(in: "see \(name) now") != nil, "\(name)")
            }
            #expect(
                PlainTextRule(allowing: [.abbreviations]).violation(in: "Dr.\(ending.capitalized)") != nil,
                "\(ending)")
        }
    }

    @Test func `folding is Unicode's own wherever a form is of ASCII`() {
        let separators = Set(".@:/?#\\=&%+~-_[]{}<>".unicodeScalars)
        var count = 0
        for value in UInt32(0x80)...0x10_FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let form = Array(String(scalar).precomposedStringWithCompatibilityMapping.unicodeScalars)
            guard form != [scalar],
                form.count == 1 && form[0].isASCII
                    || form.contains(where: {
                        $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0))
                            || separators.contains($0)
                    }), !form.contains(" ")
            else { continue }
            count += 1
            let folded = TextFolding.folded(String(scalar))
            #expect(
                folded == TextFolding.folded(String(String.UnicodeScalarView(form))),
                "U+\(String(value, radix: 16))")
        }
        #expect(count > 1_400)
        #expect(TextFolding.folded("\u{FE12}\u{FF61}\u{2488}\u{1F100}") == Array("..1.0.".unicodeScalars))
    }

    @Test(arguments: [
        "call +44 20 7946 0000", "+442079460000", "0044 20 7946 0000", "22 34 56 78", "ring 22345678",
        "tlf. 800 80 040", "(202) 555-0123", "1-800-555-0199", "tel 0800.123.456", "600 123 456",
        "\u{FF12}\u{FF12} 34 56 78", "\u{662}\u{662} 34 56 78", "22\u{B7}34\u{B7}56\u{B7}78",
        "22, 34, 56, 78",
        "22\u{20DD}2345678", "NO93 8601 1117 947", "4111 1111 1111 1111", "12.11.2026 22345678",
        "KID 20261122/7",
        "2 2 3 4 5 6 7 8", "22 - 34 - 56 - 78", "\u{2464}\u{2464}\u{2464}-1234", "22:34:56:78",
        "22\u{318D}34\u{318D}56\u{318D}78", "22\u{30FC}34\u{30FC}5678", "22 \u{4E00} 34 \u{4E00} 5678",
        "22 -- 34 -- 56 -- 78", "22\u{BA}34\u{BA}56\u{BA}78", "\u{3021}\u{3022} 34 56 78", "0.22 34 56 78",
        "22\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}34 56 78", "\u{7535}\u{8BDD}22345678",
    ])
    func `a number to call is no text`(text: String) throws {
        #expect(try #require(PlainTextRule().violation(in: text)).contains("no telephone number"))
    }

    @Test func `no character between the digits of a number hides it but those of a word`() {
        let numbers = [
            ["22", "34", "56", "78"], ["2", "2", "3", "4", "5", "6", "7", "8"], ["0800", "123", "4567"],
        ]
        var hidden: [String] = []
        for value in UInt32(0)...0x10_FFFF {
            // Planes 3 to 13 have ideographs and code points that are no character.
            guard !(0x3_1400...0xD_FFFF).contains(value), let scalar = Unicode.Scalar(value) else { continue }
            let properties = scalar.properties
            // What is no character is refused for that, and one ideograph is as the next.
            guard properties.generalCategory != .unassigned, properties.generalCategory != .privateUse,
                !TextFolding.folded(String(scalar)).contains(where: { ("0"..."9").contains($0) }),
                !properties.isIdeographic || value % 97 == 0 || value == 0x4E00 || value == 0x4E28
            else { continue }
            let isWord =
                [.uppercaseLetter, .lowercaseLetter, .titlecaseLetter].contains(properties.generalCategory)
                || (0xAC00...0xD7A3).contains(value) || (properties.numericValue ?? 0) >= 10_000
            guard !isWord else { continue }
            for digits in value % 11 == 0 ? numbers : [numbers[0]] {
                for separator in ["\(scalar)", "\(scalar)\(scalar)", " \(scalar) "] {
                    // A word of one letter, as the Arabic `and`.
                    if separator.hasPrefix(" "), properties.isAlphabetic, isOfRightToLeftScript(scalar) {
                        continue
                    }
                    // What the rule passes of them is found by their number.
                    if PlainTextRule().violation(in: digits.joined(separator: separator)) == nil {
                        hidden.append("U+\(String(value, radix: 16)) in \(digits)")
                    }
                }
            }
        }
        #expect(hidden.isEmpty, "\(hidden.prefix(20))")
    }

    private func isOfRightToLeftScript(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0590...0x08FF, 0xFB1D...0xFDFF, 0xFE70...0xFEFF, 0x1_0800...0x1_0FFF, 0x1_E800...0x1_EFFF: true
        default: false
        }
    }

    @Test(arguments: [
        "12.11.2026", "12. 11. 2026", "2026-11-22 08:15:30", "1.\u{2013}30.11.2026",
        "01.11.2026\u{2013}30.11.2026",
        "2025/2026", "11/12/2026 8:15", "kr 1.234.567,00", "1,234,567.89", "1 000 000", "1 234 567 customers",
        "100 000 000", "1'234'567", "0.000012345", "11.4523", "**** 1234", "iPhone 15 Pro, iOS 18.1",
        "Chrome 131 on Windows 11", "24/7", "999 999", "1 of 3, 2 of 3, 3 of 3, 4 of 12",
        "2026\u{5E74}11\u{6708}22\u{65E5} 10\u{6642}30\u{5206}", "2026\u{B144} 11\u{C6D4} 22\u{C77C}",
        "1920x1080", "1000 \u{648} 2000", "1200\u{4E07}5000\u{5143}", "4571 **** **** 1234",
        "0.00012345 + 0.00054321",
    ])
    func `a date, a time and an amount are texts`(text: String) {
        #expect(PlainTextRule().violation(in: text) == nil)
    }

    @Test(arguments: [
        "tel:*#06#", "TEL:*#06#", "tel:#31#", "tel:112", "tel:(02)800", "see tel:*100#", "see-tel:112",
        "x:tel:112", "tel\u{FF1A}*#06#",
        "tel[:]*#06#", "(tel:*#06#)", "xmpp:ola", "irc:chat", "news:alt", "mid:1", "cid:1", "nntp:x",
        "callto:ola", "fax:112",
        "webcal:x", "feed:x", "im:ola", "jabber:ola", "rtsp:x", "ssh:x", "sftp:x", "ldap:x", "payto:x",
        "otpauth:x", "upi:pay",
        "lightning:x", "msteams:x", "ms-settings:x", "ms-word:x", "zoommtg:x", "urn:x", "voicemail:x",
        "facetime-audio:x",
        "XMPP:ola", "hi,xmpp:ola", "view-source:x", "web+ap:x", "xmpp:*", "sgnl:x", "vscode:x",
    ])
    func `a scheme that some program opens makes a link of what follows it`(text: String) throws {
        #expect(
            try #require(PlainTextRule(allowing: [.phoneNumbers]).violation(in: text)).contains("no link"))
    }

    @Test(arguments: [
        "Note:this", "Re:Hello", "kl:12", "Ref:12345", "Info:kortet er sperret", "Tip:use it", "OBS:les",
        "PS:takk", "Tel: 1", "News: x",
        "\"Tel:\"", "(tel:)", "tel:", "Payment:NOK 500", "ID:7", "1:2", "Hotel:x", "Total:500", "Til:Ola",
        "a:b:c", "SMS: ja",
    ])
    func `a word and a colon are a text where no program opens it`(text: String) {
        #expect(PlainTextRule().violation(in: text) == nil)
    }

    /// Abbreviations with full stops in the languages that people are answered in, and products whose name has one.
    @Test(arguments: [
        "f.eks. dette", "(f.eks. dette)", "m.fl.", "Ola m.fl. har betalt", "bl.a. dette", "m.m.", "d.v.s.",
        "t.o.m. mai", "f.o.m. mai",
        "o.l.", "m.a.o.", "pga. feil", "t.ex. detta", "fr.o.m. maj", "p.g.a.", "d.o.o.", "z.B. dies", "u.a.",
        "d.h.", "i.d.R.",
        "p.ex. ceci", "c.-à-d.", "p.ej. esto", "EE.UU.", "EE.UU. y", "S.A.", "S.p.A.", "S.r.l.", "t.y.",
        "o.a.", "d.w.z.", "s.r.o.",
        "v.b.", "A.Ş.", "т.е.", "т.д.", "e.g. this", "i.e.", "Ph.D.", "a.k.a.", "Node.js 22", "Node.js",
        "1.mai", "31.desember 2026", "3.kvartal",
        "Vue.js og Next.js.", "N.Y.",
        "Chrome 131.0.0.0", "Chrome/131.0.0.0",
    ])
    func `an abbreviation and a product's name are no link`(text: String) {
        #expect(PlainTextRule().violation(in: text) == nil)
    }

    @Test(arguments: [
        "evil.no", "f.no.", "a.no. b", "m.in.", "p.es.", "t.co.", "evil.js/x", "evil.js:80", "a@evil.js",
        "x=evil.js", "u@f.eks.", "f.eks./x",
        "evil.eks.", "evil.eks", "Node.js.org", "Node.io", "1.shop", "a.1.mai", "abc.xyzw.",
        "a.\u{441}\u{43E}\u{43C}.",
        "evil.\u{440}\u{443}", "evil.qq.no",
        "131.0.0.0/x", "131.0.0.0:80", "131.0.0.1", "0.0.0.0", "u@131.0.0.0", "a.team.", "a.unhea.",
    ])
    func `a name with an ending, or with more behind it, stays a link`(text: String) throws {
        #expect(try #require(PlainTextRule().violation(in: text)).contains("no link"))
    }

    // MARK: Both lists, combined

    /// What ordinary texts are made of.
    static let ordinary = [
        "Ahmad Karimi", "O'Neil", "Bj\u{F8}rn", "St. Clair", "Md. Rahim", "7-Eleven", "H&M", "a/b", "A/S",
        "12:30",
        "kl. 08:15", "kr 1.234,50", "1.234.567,00", "kr 1.234.567.890", "10.50", "NOK 500", "3:1", "50%",
        "100% ok",
        "R&D #7", "Ref:12345", "KID 2026/7", "12.11.2026", "2026-11-22", "v2.0", "(1)", "[2]", "(ca. 5)",
        "a.m.",
        "i.e.", "No. 7.", "\u{1F600}", "\u{2764}\u{FE0F}", "\u{1F469}\u{200D}\u{1F467}", "323223",
        "0xCAFE",
        "Nguy\u{1EC5}n", "Nguye\u{302}\u{303}n", "\u{645}\u{6CC}\u{200C}\u{62E}\u{648}\u{627}\u{647}\u{645}",
        "\u{E17}\u{E35}\u{E48}", "\u{AE40}\u{CCA0}\u{C218}", "\u{41A}\u{438}\u{435}\u{432}", "5 \u{20AC}",
        "x+y=2",
        "#1", "24/7", "and/or", "1\u{BD}", "Caf\u{E9}", "AT&T", "e-post", "\"Kari\"", "dot", "at",
    ]

    /// What a phone opens, or a reader would.
    static let links = [
        "https://evil.com", "http://evil", "hxxp://evil.com", "hxxps:evil", "//evil", "ftp://x",
        "javascript:alert(1)",
        "tel:+4790000000", "evil.com", "evil[.]com", "evil(dot)com", "evil.com-",
        "evil.com\u{FF0D}a", "evil.com.7", "evil.com[.]34", "evil [dot] com", "evil{.}com",
        "evil[.com].net",
        "hxxps[:]//evil[.]com", "user[at]evil[.]com", "localhost:8080", "localhost/x", "[::1]",
        "[2001:db8::1]:80",
        "2001:db8::1", "1:2:3:4:5:6:7:8", "::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1:80/x", "0300.0250.0.1",
        "0xC0.0xA8.0.1", "3232235521/login", "3232235521:80", "0xC0A80001/x", "\\\\evil\\x", "\\evil",
        "evil\\x",
        "paypal.com@evil.com", "user:pw@evil.com", "evil%2Ecom", "%2F%2Fevil", "evil%252Ecom",
        "xn--vil-6bd.com",
        "\u{435}vil.com", "\u{FF45}vil\u{FF0E}com", "evil\u{3002}com", "\u{1D41E}vil.\u{1D41C}om",
        "evil.\u{24D2}om",
        "\u{FF11}\u{FF10}.0.0.1", "e\u{301}vil.com", "evil.c\u{301}om", "http\u{FF1A}evil", "www.evil",
        "t.co/x",
        "evil.capital", "EVIL.COM", "Evil.Com", "evil.com.", "router.local", "x=evil.com", "...10.0.0.1",
        "\u{2026}2001:db8::1\u{2026}", "\u{2026}evil.com\u{2026}",
    ]

    /// Of a type that permits domain names and e-mail addresses.
    static let namesThatStandAlone = [
        "Amazon.com", "booking.com", "FINN.no", "help@getdrop.no", "kari.nordmann@gmail.com",
        "ola+bank@drop.no", "J.P.Morgan",
        "sub.shop.example", "(FINN.no).", "H&M.com", "Amazon.com:", "FINN.no.",
    ]

    static let linksDespiteNames =
        links.filter {
            ![
                "evil.com", "EVIL.COM", "Evil.Com", "evil.com.", "evil.com-", "evil.com.7", "evil.capital",
                "router.local",
            ].contains($0)
        } + [
            "paypal.com@evil.com", "a@b@evil.com", "Amazon.com/x", "Amazon.com:443", "booking.com?x",
            "b\u{E5}nk.no",
            "kari@\u{435}vil.com", "kari@10.0.0.1", "kari@localhost",
        ]

    @Test func `what ordinary texts are made of stays a text in any order`() {
        var random = SeededNumbers(seed: 9)
        for _ in 0..<20_000 {
            let isNamed = Bool.random(using: &random)
            let words = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                (isNamed ? Self.ordinary + Self.namesThatStandAlone : Self.ordinary).randomElement(
                    using: &random)!
            }
            // Figures of several things in a row are read as one number; between two of them stands a word.
            let text = words.joined(
                separator: [" ", "  ", ", ", " - ", "; "].map { "\($0)og " + String($0.reversed()) }
                    .randomElement(using: &random)!)
            let rule = PlainTextRule(allowing: isNamed ? [.domainNames, .emailAddresses] : [])
            #expect(rule.violation(in: text) == nil, "\(text)")
        }
    }

    @Test func `a link is found wherever it stands and however it is wrapped`() {
        var random = SeededNumbers(seed: 10)
        let wraps = [
            ("", ""), ("(", ")"), ("\"", "\""), ("\u{AB}", "\u{BB}"), ("\u{1F600}", "\u{1F600}"), ("", "!"),
            ("", ","),
            ("\u{201C}", "\u{201D}"), ("<", ">"), ("*", "*"), ("\u{2192}", ""), ("", "\u{2026}"), ("'", "'"),
        ]
        for _ in 0..<20_000 {
            let isNamed = Bool.random(using: &random)
            var link = (isNamed ? Self.linksDespiteNames : Self.links).randomElement(using: &random)!
            if Bool.random(using: &random) { link = link.uppercased() }
            if Bool.random(using: &random) {
                // Full-width forms of ASCII are ASCII to their reader.
                link = String(
                    String.UnicodeScalarView(
                        link.unicodeScalars.map { scalar in
                            (0x21...0x7E).contains(scalar.value) && Bool.random(using: &random)
                                ? Unicode.Scalar(scalar.value + 0xFEE0)! : scalar
                        }))
            }
            let wrap = wraps.randomElement(using: &random)!
            var words = [wrap.0 + link + wrap.1]
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                words.insert(
                    Self.ordinary.randomElement(using: &random)!,
                    at: Int.random(in: 0...words.count, using: &random))
            }
            let text = words.joined(separator: " ")
            #expect(
                PlainTextRule(allowing: isNamed ? [.domainNames, .emailAddresses] : []).violation(in: text)
                    != nil,
                "\(text)")
        }
    }

    private static let brackets: [Unicode.GeneralCategory] = [.openPunctuation, .closePunctuation]

    /// Symbols of every kind that IDNA 2003 registries took into names: emoji with and without a variation selector, skin tones,
    /// joined families, flags, keycaps, arrows, card suits and currencies.
    static let symbols =
        [
            "\u{2764}", "\u{2764}\u{FE0F}", "\u{1F4A9}", "\u{260E}", "\u{27A1}", "\u{2192}", "\u{2660}",
            "\u{20AC}",
            "\u{1F44D}\u{1F3FD}", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}", "\u{1F1F3}\u{1F1F4}",
            "1\u{FE0F}\u{20E3}", "\u{2168}", "\u{203C}\u{FE0F}", "\u{3030}", "\u{221E}", "\u{2122}\u{2764}",
        ]
        + [
            0x2190...0x21FF, 0x2600...0x26FF, 0x2700...0x27BF, 0x1F300...0x1F64F, 0x1F680...0x1F6C5,
            0x1F900...0x1F9FF,
        ]
        .flatMap {
            $0.compactMap { Unicode.Scalar($0 as Int) }.filter {
                !brackets.contains($0.properties.generalCategory)
            }.map { String(Character($0)) }
        }

    @Test func `a name of emoji or other symbols is a link, and a sentence that ends with one is none`() {
        let endings = [
            "ws", "la", "to", "fm", "tk", "ml", "ga", "cf", "gq", "st", "je", "gg", "kz", "uz", "com", "com.",
        ]
        for (place, symbol) in Self.symbols.enumerated() {
            let ending = endings[place % endings.count]
            for link in [
                "\(symbol).\(ending)", "i\(symbol).\(ending)/x", "https \(symbol)x.\(ending)",
                "a@\(symbol).\(ending)", "\(symbol)\u{3002}\(ending)", "\(symbol)[.]\(ending)",
                "\(symbol)[.\(ending)", "go.\(symbol).\(ending):80", "\(symbol)%2E\(ending)",
            ] {
                #expect(PlainTextRule().violation(in: "see \(link) now") != nil, "\(link)")
                #expect(PlainTextRule(allowing: [.domainNames]).violation(in: link) != nil, "\(link)")
                #expect(PlainTextRule(allowing: [.emailAddresses]).violation(in: link) != nil, "\(link)")
            }
            // Some are read as a letter or a digit, which belongs to the name beside it.
            let isLetter = TextFolding.folded(symbol).contains {
                $0.properties.isAlphabetic || $0.properties.numericType != nil
            }
            for link in ["\(symbol)evil.com\(symbol)", "\(symbol)10.0.0.1\(symbol)"] where !isLetter {
                #expect(PlainTextRule().violation(in: link) != nil, "\(link)")
            }
            for text in [
                "Great \(symbol). So nice", "\(symbol).", "\(symbol)", "Nice\(symbol)... Thanks \(symbol)!",
                "\(symbol)4.5 of 5\(symbol)", "kr 1.234,50\(symbol)", "v2.0\(symbol)",
            ] where !symbol.hasPrefix("1") {
                #expect(PlainTextRule().violation(in: text) == nil, "\(text)")
            }
        }
    }

    /// Hosts that browsers resolve and IDNA 2008 forbids, in the spellings of their full stop.
    static let symbolHosts = [
        "i❤.ws/x", "💩.la", "https i❤.ws", "☎.com", "➡.ws", "❤\u{FE0F}.ws", "👨\u{200D}👩\u{200D}👧.ws",
        "1\u{FE0F}\u{20E3}.ws", "🇳🇴.ws", "❤\u{301}.ws", "i❤\u{3002}ws", "i❤\u{FF0E}ws", "i❤\u{FF61}ws",
        "i❤\u{2024}ws", "i❤ (dot) ws", "i❤[punkt]ws", "i❤%2Ews", "i❤%E3%80%82ws", "i❤%EF%BC%8Ews",
        "i%E2%9D%A4.ws", "%F0%9F%92%A9.la/x", "💩.la:80", "u:p@💩.la", "a@💩.la", "💩.la.", "💩.LA", "💩.рф",
        "💩.xn--p1ai", "xn--ls8h.la", "💩-x.la", "x.💩.la", "💩.co.uk", "(💩.la)", "«💩.la»", "💩.la❤", "💩.la?x=1",
        "€.ws", "½.ws", "∞.ws", "†.ws", "•.la", "§.to", "※.tk", "a•b.com", "”.ws", "evil%E3%80%82com",
        // `.to` and `.vi` are top-level domains, as in `nice.to`.
        "Love it ❤\u{FE0F}.to be continued", "Bra jobba 💪.Vi ses",
    ]

    @Test(arguments: symbolHosts)
    func `a host with a symbol in its name is a link in each of its spellings`(text: String) throws {
        #expect(try #require(PlainTextRule().violation(in: text)).contains("no link"))
    }

    @Test(arguments: [
        "Great ❤. So nice", "❤.", "❤...", "Nice 👍.Thanks", "Supert 🎉.Du er i mål", "✅.Done", "5 ★.", "★4.5",
        "1.50€.",
        "€1.234.567", "£3.50.", "20°C.", "a.m.☀", "Drop™. Nytt", "3×4.5", "❤.❤", "🔥.🔥.🔥",
        "ordre #7 ✓. Kommer",
        "•First.•Second", "«Hei».Takk", "谢谢😀。你好吗", "50‰.", "12.11.2026✓", "U.S.A.❤", "👍.Nei❤.Ja",
    ])
    func `a symbol at the end of a sentence makes no host of it, with or without a blank after it`(
        text: String
    ) {
        #expect(PlainTextRule().violation(in: text) == nil)
    }

    @Test func `a symbol beside a name or an address that is allowed does not take it away`() {
        let names = PlainTextRule(allowing: [.domainNames])
        for text in [
            "FINN.no.❤", "FINN.no❤", "•Booking.com", "«Booking.com og FINN.no»", "¿Amazon.com te cobró?",
        ] {
            #expect(names.violation(in: text) == nil, "\(text)")
        }
        for text in ["❤.com", "•.com", "x§.com", "FINN.no.❤.no"] {
            #expect(names.violation(in: text) != nil, "\(text)")
        }
        let addresses = PlainTextRule(allowing: [.emailAddresses])
        for text in ["📧help@getdrop.no", "help@getdrop.no📧", "•help@getdrop.no", "a@drop.no→c@drop.no"] {
            #expect(addresses.violation(in: text) == nil, "\(text)")
        }
        for text in ["❤.ws@evil.com", "a@❤.ws", "a@§.ws"] {
            #expect(addresses.violation(in: text) != nil, "\(text)")
        }
        let shortened = PlainTextRule(allowing: [.abbreviations])
        #expect(shortened.violation(in: "❤Md.Rahim") == nil && shortened.violation(in: "❤.Team") != nil)
    }

    /// Every character that IDNA 2008 forbids for its category (RFC 5892 section 2.6), that is seen and that is not read as another.
    private static let forbidden: [Unicode.Scalar] = (0xA1...0x1_FFFF).compactMap { (value: UInt32) in
        guard let scalar = Unicode.Scalar(value), TextFolding.folded(scalar) == [scalar] else { return nil }
        switch scalar.properties.generalCategory {
        case .otherSymbol, .mathSymbol, .currencySymbol, .modifierSymbol, .letterNumber, .otherNumber,
            .otherPunctuation, .dashPunctuation, .connectorPunctuation, .openPunctuation, .closePunctuation,
            .initialPunctuation, .finalPunctuation:
            return PlainTextRule().violation(in: "a \(scalar) b") == nil ? scalar : nil
        default: return nil
        }
    }

    @Test
    func `whatever symbols a name is made of, a known ending makes a link of it and a sentence does not`() {
        let seed = Soak.seed("names of symbols")
        var random = SeededNumbers(seed: seed)
        #expect(Self.forbidden.count > 5_000)
        let endings = [
            "ws", "la", "to", "fm", "tk", "ml", "ga", "cf", "gq", "st", "je", "gg", "kz", "uz", "com",
        ]
        for scalar in Self.forbidden {
            let others = (0..<Int.random(in: 0...2, using: &random)).map { _ in
                Character(Self.forbidden.randomElement(using: &random)!)
            }
            let name = "\(scalar)" + String(others)
            let ending = endings.randomElement(using: &random)!
            for link in [
                "\(name).\(ending)", "https \(name).\(ending)", "\(name).\(ending)/path",
                "a@\(name).\(ending)",
            ] {
                #expect(
                    PlainTextRule().violation(in: link)?.contains("no link") == true,
                    "\(link), SENDGATE_SEED=\(seed)")
            }
            for text in ["text \(name). Text", "text \(name).", "text \(name).Text"] {
                #expect(PlainTextRule().violation(in: text) == nil, "\(text), SENDGATE_SEED=\(seed)")
            }
        }
    }

    /// Each way to read a decoded word decodes it further, so that searched one by one these were two to the power of 31 texts.
    @Test(.timeLimit(.minutes(1)))
    func `a word that is encoded again and again is searched in every layer, and each text of it once`() {
        func encoded(_ byte: String, _ count: Int) -> String {
            "%" + String(repeating: "25", count: count) + byte
        }
        let noise = (0..<31).map { encoded("FF", $0) }.joined()
        #expect(noise.utf8.count < 1_024)
        #expect(!PlainTextRule.findsLink(in: noise))
        for layer in [0, 3, 8] {
            let link = noise.prefix(80) + encoded("FF", layer) + "evil" + encoded("2E", layer) + "com"
            #expect(PlainTextRule.findsLink(in: String(link)), "\(link)")
        }
    }

    private static func lines(_ count: Int) -> String {
        Array(repeating: "A line", count: count).joined(separator: "\n")
    }

    @Test func `flags, line feeds and blanks have bounds`() {
        let lines = PlainTextRule(allowing: [.lineBreaks])
        #expect(lines.violation(in: "a" + String(repeating: "\n", count: 200) + "b") != nil)
        #expect(lines.violation(in: "a" + String(repeating: "\n ", count: 3) + "b") != nil)
        // Figures on lines of their own would be read as one number.
        #expect(lines.violation(in: Self.lines(22))?.contains("20 line feeds") == true)
        #expect(lines.violation(in: Self.lines(21)) == nil)
        #expect(lines.violation(in: "One.\n\nTwo.") == nil)
        for mark in ["\u{301}", "\u{336}", "\u{20DD}", "\u{489}"] {
            #expect(PlainTextRule().violation(in: "a" + String(repeating: mark, count: 40)) != nil)
            #expect(PlainTextRule().violation(in: mark + "a") != nil)
        }
        #expect(PlainTextRule().violation(in: "a" + String(repeating: " ", count: 5) + "b") != nil)
    }
}
