import GateVocabulary
import Testing

/// One form of a phone number, whoever wrote it. What other people's code says of the same numbers is in
/// `AddressFormTests`.
@Suite struct PhoneNumberTests {
    @Test(arguments: [
        ("a trunk zero after the country code", "+4407700900359", "+447700900359"),
        ("the same in parentheses", "+44 (0)7700 900359", "+447700900359"),
        ("one in Germany, in France", "+49 0151 00000000", "+4915100000000"),
        ("text relay", "+44 18002 0 7700900359", "+447700900359"),
        ("1 of North America", "+1 1 (212) 555-0100", "+12125550100"),
        ("8 of Russia", "+7 8 912 345 67 89", "+79123456789"),
        ("8 of Kazakhstan", "+7 8 701 234 5678", "+77012345678"),
        ("06 of Hungary", "+36 06 20 123 4567", "+36201234567"),
        ("8 of Lithuania, and 0 after it", "+370 8 612 34567", "+37061234567"),
        ("0 of Lithuania", "+370 0 612 34567", "+37061234567"),
        ("80 of Belarus", "+375 8 029 491 1911", "+375294911911"),
        ("8 of Turkmenistan", "+993 8 66 123456", "+99366123456"),
        ("1 of Mexico's mobile numbers from abroad", "+5215512340562", "+525512340562"),
        ("044 of Mexico", "+52 044 55 1234 0562", "+525512340562"),
        ("01 of Mexico", "+52 01 55 1234 0562", "+525512340562"),
        ("15 of Argentina", "+54 011 15-2345-6789", "+5491123456789"),
        ("15 after four digits", "+54 02901 15-512345", "+5492901512345"),
        ("0 of Argentina", "+54 011 2345-6789", "+541123456789"),
        ("ninth digit of Brazil", "+55 11 8765-4321", "+5511987654321"),
        ("trunk and carrier of Brazil", "+55 0 15 11 98765-4321", "+5511987654321"),
        ("trunk and no ninth digit", "+55 0 11 8765-4321", "+5511987654321"),
        ("ten digits of Bénin", "+229 95 12 34 56", "+2290195123456"),
        ("nine digits of Gabon", "+241 066 12 34 56", "+24166123456"),
        ("0549 of San Marino", "+378 886377", "+3780549886377"),
        ("Norfolk Island", "+672 22123", "+672322123"),
    ])
    func `two spellings of one subscriber are one number`(_ what: String, spelling: String, number: String)
        throws
    {
        #expect(try PhoneNumber(spelling).text == number, "\(what)")
        #expect(try PhoneNumber(spelling) == PhoneNumber(number))
    }

    @Test(arguments: [
        ("0 is a part of the number in Italy", "+39 02 1234 5678", "+39 2 1234 5678"),
        ("and of one in Côte d'Ivoire", "+225 07 12 34 56 78", "+225 7 12 34 56 78"),
        ("and of one in Congo", "+242 06 612 3456", "+242 6 612 3456"),
        ("and of eight digits in Gabon", "+241 06 12 34 56", "+241 6 12 34 56"),
        (
            "Argentina: with 9 it is a mobile telephone, without a fixed one", "+54 9 11 2345 6789",
            "+54 11 2345 6789"
        ),
        ("Brazil: 7 was trunked radio's", "+55 11 7765 4321", "+55 11 97765 4321"),
        ("Brazil: a fixed line has no ninth digit", "+55 11 3765 4321", "+55 11 93765 4321"),
        ("Russia: 8 begins a number of ten digits", "+7 800 123 4567", "+7 001 234 567"),
        ("North America: 1 before nine digits is none", "+1 1 212 555 010", "+1 212 555 010"),
        ("Belarus: 8 begins a number", "+375 810 123 4567", "+375 10 123 4567"),
        ("Rwanda: 06 begins a number", "+250 06 123456", "+250 6 123456"),
        ("Japan: a carrier's toll-free number", "+81 0037 68 9012 3456", "+81 90 123 456"),
    ])
    func `digits that two subscribers could have are not folded`(_ what: String, one: String, other: String) {
        #expect((try? PhoneNumber(one)) != (try? PhoneNumber(other)), "\(what)")
    }

    @Test(arguments: [
        ("+999 123456", PhoneNumber.Fault.unknownCountryCode), ("+0790000000", .unknownCountryCode),
        ("+210 123456", .unknownCountryCode),
        ("+47 12345678 12345678", .tooLong), ("+1234567890123456", .tooLong),
        ("+34 0612345678", .zero(code: "34")), ("+44 00 7700900359", .zero(code: "44")),
        ("+47 090000000", .zero(code: "47")),
        ("4790000000", .noCountryCode), ("004790000000", .noCountryCode), ("07700900359", .noCountryCode),
        ("+44", .incomplete(code: "44")), ("+44 0", .zero(code: "44")),
        ("+47 9000 CALL", .unreadable), ("", .unreadable), ("+", .unreadable), ("++4790000000", .unreadable),
        ("47+90000000", .unreadable), ("a@b.no", .unreadable),
    ])
    func `what E.164 has no number for is refused, with the reason`(text: String, fault: PhoneNumber.Fault) {
        #expect(throws: fault) { try PhoneNumber(text) }
        #expect(fault.description.hasPrefix("expected "))
    }

    @Test(arguments: [
        "+447700900359", "+44 7700 900359", "+44-7700-900-359", "(+44) 7700.900.359", "+44/7700/900359",
        "tel:+44-7700-900359", "TEL:+447700900359;ext=1", "tel:7700-900359;phone-context=+44",
        "sms:+447700900359?body=a",
        "\u{FF0B}\u{FF14}\u{FF14}\u{FF17}\u{FF17}\u{FF10}\u{FF10}900359",
        "\u{202A}+44\u{A0}7700\u{2011}900359\u{202C}",
        "+٤٤٧٧٠٠٩٠٠٣٥٩", "00447700900359", "0044 0 7700 900359", "447700900359", " 447700900359",
        "4407700900359", "whatsapp:+447700900359", "WhatsApp:+447700900359",
        "sip:+447700900359@host.example;user=phone", "sips:+44-7700-900359@host.example",
        "sip:447700900359@host.example;user=phone",
        "sip:7700900359;phone-context=+44@host.example;user=phone",
        "<sip:+447700900359@host.example;user=phone>;tag=a6c85cf", "<tel:+447700900359>",
        "tel:+44-7700-900359;phone-context=example.com", "tel:7700900359;phone-context=+44",
        "tel:07700900359;phone-context=+44", "tel:%2B447700900359", "sms:+44-7700-900359",
        "SMS:+447700900359",
        "smsto:+447700900359", "smsto:+447700900359?body=STOP", "mms:+447700900359", "mmsto:+447700900359",
        "\"Ola\" <+447700900359>", "\"Ola\" \u{2039}+447700900359\u{203A}", "Ola Nordmann <+447700900359>",
        "<+447700900359>", "\"Ola <at home>\" <tel:+447700900359>", "\"+447700900359\"", "+44_7700900359",
        "+44_7700_900_359", "+4790000017 <+447700900359>", "+447700900359/TYPE=PLMN",
        "\u{200E}tel:+447700900359 ",
        // A 0 in parentheses is dialled inside of the country.
        "+44 (0) 7700 900359", "+44(0)7700900359", "0044 (0) 7700 900359",
        // What a spreadsheet has.
        "'+447700900359", "\u{2019}+447700900359", "=\"+447700900359\"", "'447700900359", "'+447700900359'",
        "\u{AB}+447700900359\u{BB}",
        // A name without brackets.
        "Ola Nordmann +447700900359", "Nordmann, Ola +44 7700 900359", "Ola: +447700900359",
        "+447700900359 (Ola Nordmann)",
        "\"Ola\" +447700900359", "Åse \u{FF0B}447700900359",
        // North America's international prefix.
        "011 44 7700 900359", "011447700900359",
    ])
    func `a carrier may name a sender in any spelling that has its country`(spelling: String) throws {
        #expect(PhoneNumber(sender: spelling)?.text == "+447700900359")
    }

    @Test(arguments: [
        "whatsapp:+447700900359", "sip:+447700900359@host.example;user=phone", "smsto:+447700900359",
        "\"Ola\" <+447700900359>", "+44_7700900359", "\"+447700900359\"", "+447700900359/TYPE=PLMN",
    ])
    func `what systems put around a sender is refused at registration`(spelling: String) {
        #expect(throws: PhoneNumber.Fault.unreadable) { try PhoneNumber(spelling) }
    }

    @Test(arguments: [
        ("+47 (0) 90011010", "+4790011010"), ("0047 (0)90011010", "+4790011010"),
        ("+34 (0) 612345678", "+34612345678"),
        ("+47\u{FF08}0\u{FF09}90011010", "+4790011010"), ("Ola +47 (0) 90011010", "+4790011010"),
        // Where the 0 is a part of the number, parentheses do not take it away.
        ("+39 (0) 2 1234 5678", "+390212345678"), ("+49 (0) 151 00000000", "+4915100000000"),
        ("011 1 212 555 0123", "+12125550123"), ("011 47 90011010", "+4790011010"),
        ("'011 47 90011010", "+4790011010"),
    ])
    func `a sender's number is read where it can be one subscriber's only`(spelling: String, number: String)
        throws
    {
        #expect(PhoneNumber(sender: spelling)?.text == number)
        #expect(try PhoneNumber(number).text == number)
    }

    @Test(arguments: ["+47 (0) 90011010", "'+4790011010", "Ola Nordmann +4790011010", "011 1 212 555 0123"])
    func `a spelling that only a sender has is refused at registration`(spelling: String) {
        #expect(throws: PhoneNumber.Fault.self) { try PhoneNumber(spelling) }
    }

    @Test(arguments: [
        // Two subscribers could have it, in two countries.
        "6834003", "'6834003", "Ola 6834003", "Ola Nordmann 90011010",
        // In Turin, Delhi, Sheffield, Buenos Aires with and without its 15, and São Paulo.
        "011 123 4567", "011 2345 6789", "0114 496 0000", "011 15 2345 6789", "011 98765 4321",
        "011 1 212 555 012",
        "7-Eleven +4790011010", "Ola +4790011010 Kari +4790011011", "+4790011010 ext 5", "+47 9000 CALL",
        "Ola+4790011010",
        "a@b +4790011010", "+47 0 90011010", "(Ola) 90011010", "+4790011010 (5)x",
    ])
    func `a sender that could be somebody else is nobody`(spelling: String) {
        #expect(PhoneNumber(sender: spelling) == nil)
    }

    @Test func `a landline of San Marino is one with 0549 and without it, and nothing else is folded`() throws
    {
        #expect(try PhoneNumber("+378 886377") == PhoneNumber("+378 0549 886377"))
        #expect(try PhoneNumber("+378 991234").text == "+3780549991234")
        // No source leaves out the 0 alone: there is no trunk prefix, and numbers that begin with 5 are of IP telephony.
        #expect(try PhoneNumber("+378 549 886377").text == "+378549886377")
        #expect(try PhoneNumber("+378 66 661212").text == "+37866661212")
        #expect(throws: PhoneNumber.Fault.zero(code: "378")) { try PhoneNumber("+378 0549 8863") }
    }

    @Test(arguments: [
        "Drop", "60606", "2525", "", "07700900359", "+44", "STOP", "+999123456789",
        "1234567",
        "mailto:+447700900359", "http://+447700900359", "x:+447700900359", ":+447700900359", "tel:",
        "whatsapp:",
        "tel:7700900359;phone-context=example.com", "sip:447700900359@host.example", "sip:+447700900359",
        "sip:ola@host.example;user=phone", "<+447700900359", "+447700900359>",
        "<+447700900359>, <+4790000017>",
        "<<+447700900359>>", "<+447700900359> +4790000017", "tel:+447700900359,+4790000017", "\"Ola\"",
        "tel:%",
        "+447700900359@host.example", "_", "+44_", "tel:+447700900359%00",
        "+4477009003594477009003", String(repeating: "9", count: 400), "+\u{1F4DE}", "\0",
    ])
    func `a short code, a name and a number without its country are nobody's`(sender: String) {
        #expect(PhoneNumber(sender: sender) == nil)
    }

    @Test func `each row of the table names its source, and each country code is assigned once`() {
        let codes = NumberingPlan.all.map(\.code)
        #expect(Set(codes).count == codes.count && codes.count > 200)
        for plan in NumberingPlan.all {
            #expect(plan.source.count > 10, "\(plan.code)")
            #expect(!codes.contains { $0 != plan.code && $0.hasPrefix(plan.code) }, "\(plan.code)")
        }
    }

    @Test func `the canonical form of a canonical form is itself, for random digits after each country code`()
        throws
    {
        var dice = SeededDice(state: 0x5EED_0164)
        var count = 0
        for plan in NumberingPlan.all {
            let beginnings = [
                "", "0", "00", "1", "8", "80", "06", "9", "90", "15", "0549", "1115", "22015", "180020",
            ]
            for _ in 0..<400 {
                let digits = (0..<dice.next(below: 15)).map { _ in "\(dice.next(below: 10))" }.joined()
                let text = "+" + plan.code + beginnings[dice.next(below: beginnings.count)] + digits
                guard let number = try? PhoneNumber(text) else { continue }
                count += 1
                #expect(try PhoneNumber(number.text) == number, "\(text)")
                #expect(PhoneNumber(sender: number.text) == number, "\(text)")
                #expect(number.text.wholeMatch(of: /\+[1-9][0-9]{1,14}/) != nil, "\(text)")
                #expect(number.text.hasPrefix("+" + plan.code))
            }
        }
        #expect(count > 30_000)
    }

    @Test func `where a number belongs is told by its canonical form`() throws {
        #expect(NumberPrefix.of(try PhoneNumber("+1 1 212 555 0100").text) == "+1212")
        #expect(NumberPrefix.of(try PhoneNumber("+7 8 701 234 5678").text) == "+77")
        #expect(NumberPrefix.of("+4790000000") == "+47" && NumberPrefix.of("+354123") == "+354")
        #expect(NumberPrefix.of("+9991234") == "+999" && NumberPrefix.of("47") == nil)
    }
}

/// SplitMix64.
struct SeededDice {
    var state: UInt64

    mutating func next(below bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
    }
}
