import CanonicalJSON
import CourierModel
import Foundation
import GateVocabulary
import SealedFormat
import Testing

/// What the courier writes, read by Python's `email`.
@Suite struct MailReadBackTests {
    /// SplitMix64: the same texts on every run.
    struct Texts {
        var state: UInt64

        mutating func next(_ bound: Int) -> Int {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
        }

        mutating func text(_ pieces: [String], countMax: Int) -> String {
            (0..<next(countMax + 1)).map { _ in pieces[next(pieces.count)] }.joined()
        }
    }

    static let words = [
        "Payment", "kr 1\u{A0}000,00", "Ødegård", "支付成功", "تم الدفع", "🇳🇴", "👩‍👩‍👧", "e\u{301}", "a",
        "=?utf-8?Q?x?=", "=?", "?=", "\"", "\\",
        "(", ")", "<", ">", ",", ";", ":", "@", ".", "=", "_", "  ", " ", " ", " ", "=20", "&", "\u{FEFF}",
        "ß", "\u{10FFFD}",
        String(repeating: "x", count: 70), String(repeating: "é", count: 40),
    ]
    static let lines =
        words + [
            "\n", "\r\n", "\n.", "\n..", "\n.\n", "\t", " \n", "\t\n", "\r", "From ", "\nFrom ", "--=_",
            "\n\n", "=\n",
        ]

    static let names = [
        "Örsted Pay", "Pay, Ltd.", "\"Pay\" \\ <a@b>", "=?utf-8?Q?x?=", "支付", "Pay 🇳🇴 (Norge)", "a",
        "Pay: us; them",
        "P\u{10FFFD}y", "Pay & Co. of a Name that is Rather Long, for All I Know",
    ]

    @Test func `any subject, name and body come back as they were`() throws {
        let reader = try PeerProcess("read_mail.py", [])
        var texts = Texts(state: 42)
        for number in 0..<400 {
            let subject = texts.text(Self.words, countMax: 40)
            let name = Self.names[number % Self.names.count]
            let plain = texts.text(Self.lines, countMax: 60)
            let html = texts.next(2) == 0 ? texts.text(Self.lines, countMax: 60) : nil
            let order = TestClock.order(number: UInt64(number), subject: subject, text: plain, html: html)
            let mail = try MailMessage(
                order, from: MailSender(address: "noreply@pay.example", name: name), at: TestClock.now)
            try reader.write(Base64.encode(mail.content))
            let read = try reader.readJSON()
            #expect(read["subject"] == .string(subject), "\(String(decoding: mail.content, as: UTF8.self))")
            #expect(read["name"] == .string(name), "\(String(decoding: mail.content, as: UTF8.self))")
            #expect(read["from"] == "noreply@pay.example" && read["to"] == "ola@example.org")
            #expect(read["date"] == "2026-11-29T12:00:00+00:00")
            #expect(read["id"] == .string("<\(order.message.uuidText)@pay.example>"))
            #expect(read["unsubscribe"] == .string("<https://pay.example/u/\(number)>"))
            #expect(read["plain"] == .string(Self.written(plain)))
            #expect(read["html"] == (html.map { .string(Self.written($0)) } ?? .null))
            #expect(read["type"] == (html == nil ? "text/plain" : "multipart/alternative"))
            #expect(read["defects"] == [] && read["bare"] == 0, "\(read)")
            let longest = try #require(Int(read.text("longest")))
            #expect(longest <= 76)
            // One of each: nothing that a text brings in makes a header.
            let fields = try read.text("fields").split(separator: " ")
            #expect(Set(fields).count == fields.count && fields.count == (html == nil ? 12 : 11))
        }
    }

    /// Lines that end with CRLF, the last one, too.
    static func written(_ text: String) -> String {
        var lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map {
            Array($0)
        }
        let isEnded = lines.count > 1 && lines.last!.isEmpty
        if isEnded { lines.removeLast() }
        for index in lines.indices where lines[index].last == "\r" && (isEnded || index < lines.count - 1) {
            lines[index].removeLast()
        }
        var written = String.UnicodeScalarView()
        for line in lines { written.append(contentsOf: line + ["\r", "\n"]) }
        return String(written)
    }
}
