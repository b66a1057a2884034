import GateVocabulary
import Testing

/// One form of a mailbox, whatever a mail system makes of it.
@Suite struct MailboxTests {
    @Test(arguments: [
        "ann.lee+bank@xn--bcher-kva.example", "Ann.Lee+Bank@Bücher.Example",
        "ANN.LEE+BANK@XN--BCHER-KVA.EXAMPLE.",
        "ann.lee+bank@bu\u{308}cher.example", "ann.lee+bank@bücher。example", "ann.lee+bank＠bücher．example",
        "\"ann.lee+bank\"@bücher.example", "\"ann\\.lee+bank\"@bücher.example", "\"ann.lee\".x@y.z ",
        "  ann.lee+bank@bücher.example\r\n", "<ann.lee+bank@bücher.example>",
        "Ann Lee <ann.lee+bank@bücher.example>",
        "\"Lee, Ann (bank)\" <ann.lee+bank@bücher.example>", "Lee, Ann <ann.lee+bank@bücher.example>",
        "\"ann@evil.example\" <ann.lee+bank@bücher.example>",
        "ann@evil.example <ann.lee+bank@bücher.example>",
        "ann.lee+bank@bücher.example (Ann (at home))", "(Ann \\) Lee) ann.lee+bank@bücher.example",
        "ann . lee+bank @ bücher . example", "<@relay.example,@b.example:ann.lee+bank@bücher.example>",
        "mailto:ann.lee%2Bbank@bücher.example?subject=STOP", " MAILTO:ann.lee+bank@bücher.example",
        "<mailto:ann.lee+bank@bücher.example>", "Ann <mailto:ann.lee%2Bbank@bücher.example?subject=x>",
        "Grp: ann.lee+bank@bücher.example;", "Grp:Ann Lee <ann.lee+bank@bücher.example> ; ",
        "\"Grp: a@b\": \"Lee, Ann\" <ann.lee+bank@bücher.example>;",
        "Grp: <mailto:ann.lee+bank@bücher.example>;", "\"Ann\" \u{2039}ann.lee+bank@bücher.example\u{203A}",
        "\u{200E}ann.lee+bank@bücher.example\u{200F}",
    ])
    func `each spelling of a mailbox is the mailbox`(spelling: String) {
        let expected = spelling.contains("y.z") ? "ann.lee.x@y.z" : "ann.lee+bank@xn--bcher-kva.example"
        #expect(Mailbox(sender: spelling)?.text == expected)
    }

    @Test(arguments: [
        ("ann.lee@x.org", "annlee@x.org"), ("ann+a@x.org", "ann@x.org"), ("ann@x.org", "ann@mail.x.org"),
        ("ann@straße.de", "ann@strasse.de"), ("ann-lee@x.org", "ann_lee@x.org"),
    ])
    func `mailboxes that RFC 5321 tells apart stay apart`(one: String, other: String) throws {
        #expect(try #require(Mailbox(sender: one)) != #require(Mailbox(sender: other)))
    }

    @Test(arguments: [
        "", "@", "ann", "ann@", "@x.org", "ann@x", "ann@x..org", "ann@-x.org", "ann@x-.org", "ann@x_y.org",
        "ann@x.org, bob@x.org", "ann@x.org; bob@x.org", "<ann@x.org>, <bob@x.org>", "Ann <ann@x.org",
        "ann@x.org>", "Grp: ann@x.org, bob@x.org;", "Grp: ann@x.org, Bob <bob@x.org>;", "Grp:;", "Grp: ;",
        "Grp: ann@x.org", ": ann@x.org;", "Grp: Ann;", "ann@x.org;", "<ann@x.org>;", "A: B: ann@x.org;",
        "sip:ann@x.org", "<sip:ann@x.org>", "<http:ann@x.org>", "<mailto:>", "<mailto:ann@x.org",
        "<mailto:ann@x.org,bob@x.org>", "mailto:ann@x.org,bob@x.org", "<mailto:a%3E@x.org>", "mailto:Grp",
        "ann lee@x.org", "\"ann\"lee@x.org", "\"ann lee\"@x.org", "ann@[192.0.2.1]", "a@b@x.org",
        "josé@x.org", "\"ann@x.org",
        "(ann@x.org", "ann@x.org..", "Mail Delivery System", "\"\"@x.org", "ann@\u{0}x.org",
        String(repeating: "a", count: 65) + "@x.org", "a@" + String(repeating: "b", count: 64) + ".org",
        String(repeating: "a", count: 5_000),
    ])
    func `what is no one mailbox that can be written to is nobody's`(sender: String) {
        #expect(Mailbox(sender: sender) == nil)
    }

    @Test(arguments: [
        ("Ann@Example.ORG", "ann@example.org", "Ann@Example.ORG"), ("ann@x.org.", "ann@x.org", "ann@x.org"),
        ("Ann@Bücher.de", "ann@xn--bcher-kva.de", "Ann@xn--bcher-kva.de"),
        ("\"ann..lee\"@docomo.example", "ann..lee@docomo.example", "\"ann..lee\"@docomo.example"),
        ("ann..lee@docomo.example", "ann..lee@docomo.example", "ann..lee@docomo.example"),
    ])
    func `mail goes out to the spelling that was verified`(
        written: String, canonical: String, spelling: String
    ) throws {
        let address = try RegisteredAddress(.email, written)
        #expect(address.key.value == canonical && address.value == spelling)
        #expect(AddressKey(.email, registered: address.value) == address.key)
    }

    @Test(arguments: [
        "Ann <ann@x.org>", "<ann@x.org>", " ann@x.org", "ann@x.org (Ann)", "mailto:ann@x.org",
        "<mailto:ann@x.org>",
        "Grp: ann@x.org;", "\u{2039}ann@x.org\u{203A}", "josé@x.org", "ann@x",
        "ann@x.org,b@x.org",
    ])
    func `what is registered is an address and nothing beside it`(written: String) {
        #expect(throws: RegisteredAddress.Fault.self) { try RegisteredAddress(.email, written) }
    }

    @Test func `the canonical form of a canonical form is itself, for random texts near a mailbox`() {
        var dice = SeededDice(state: 0x5EED_5321)
        let signs: [Unicode.Scalar] = Array(
            "aAzZ09._+-'\"\\@@@<>(),;: \u{FF20}\u{3002}üßİſK\u{308}\u{200D}\u{0}中ّ".unicodeScalars)
        let seeds = [
            "Ann Lee <ann.lee@Bücher.example>", "\"ann\"@x.org", "ann@中文.测试", "(a)ann@x.org", "a@b.c",
        ]
        var (count, registeredCount) = (0, 0)
        for _ in 0..<60_000 {
            var scalars = Array(seeds[dice.next(below: seeds.count)].unicodeScalars)
            for _ in 0..<dice.next(below: 5) {
                let place = dice.next(below: scalars.count)
                if dice.next(below: 3) == 0, scalars.count > 1 {
                    scalars.remove(at: place)
                } else {
                    scalars.insert(signs[dice.next(below: signs.count)], at: place)
                }
            }
            var text = ""
            text.unicodeScalars.append(contentsOf: scalars)
            if let mailbox = Mailbox(sender: text) {
                count += 1
                #expect(Mailbox(sender: mailbox.text) == mailbox, "\(text.debugDescription)")
                #expect(mailbox.text.utf8.allSatisfy { $0 < 0x80 }, "\(text.debugDescription)")
            }
            if let address = try? RegisteredAddress(.email, text) {
                registeredCount += 1
                #expect(AddressKey(.email, sender: address.value) == address.key, "\(text.debugDescription)")
                #expect(
                    (try? RegisteredAddress(.email, address.value)) == address, "\(text.debugDescription)")
            }
        }
        #expect(count > 5_000)
        #expect(registeredCount > 1_000)
    }
}
