import Foundation
import GateTestKit
import GateVocabulary
import PayloadComposition
import Testing

/// What the rule for texts passes is what a body says, byte for byte.
@Suite struct WrittenTextTests {
    /// Texts of one run, over all threads.
    private static let textCount = Soak.count(1_040_000, short: 104_000)

    private static let rules: [PlainTextRule] =
        [PlainTextRule()] + TextAllowance.allCases.map { PlainTextRule(allowing: [$0]) } + [
            PlainTextRule(allowing: [.lineBreaks, .domainNames, .emailAddresses]),
            PlainTextRule(allowing: Set(TextAllowance.allCases)),
        ]

    @Test
    func
        `over random and hostile texts, a million in a whole run, what the rule passes is written as it was judged`()
        async throws
    {
        let seed = Soak.seed("written texts")
        let partCount = 8
        let findings = await withTaskGroup(of: Finding.self) { group in
            for part in 0..<partCount {
                group.addTask {
                    Self.finding(
                        seed: seed &* 31 &+ UInt64(part), textCount: Self.textCount / partCount)
                }
            }
            return await group.reduce(into: Finding()) { $0.add($1) }
        }
        for fault in findings.faults.prefix(20) { Issue.record("\(fault), SENDGATE_SEED=\(seed)") }
        #expect(findings.faults.isEmpty)
        // Neither passes everything nor refuses everything, so the texts are of both kinds.
        #expect(findings.passedCount > Self.textCount / 20, "\(findings.passedCount)")
        #expect(findings.passedCount < Self.textCount * 19 / 20, "\(findings.passedCount)")
        #expect(findings.changedCount > Self.textCount / 1_040, "\(findings.changedCount)")
    }

    private struct Finding: Sendable {
        var passedCount = 0
        /// Passed texts whose canonical form is another one.
        var changedCount = 0
        var faults: [String] = []

        mutating func add(_ other: Finding) {
            passedCount += other.passedCount
            changedCount += other.changedCount
            faults += other.faults
        }
    }

    private static func finding(seed: UInt64, textCount: Int) -> Finding {
        var random = SeededNumbers(seed: seed)
        var finding = Finding()
        for _ in 0..<textCount {
            let text = hostileText(&random)
            let rule = rules[Int(random.next() % UInt64(rules.count))]
            guard let checked = try? rule.checked(text) else { continue }
            finding.passedCount += 1
            do {
                if Array(checked.text.utf8) != Array(text.utf8) { finding.changedCount += 1 }
                if let fault = try fault(of: text, checked, by: rule) {
                    finding.faults.append("\(fault): \(spelled(text)) by \(rule.words)")
                }
            } catch {
                finding.faults.append("\(error): \(spelled(text))")
            }
        }
        return finding
    }

    /// - Returns: What is wrong with the way from a text to what is written of it.
    private static func fault(
        of text: String, _ checked: CheckedText, by rule: PlainTextRule
    ) throws -> String? {
        let template = MessageText.plain(MessageTemplate([.param("text")]))
        let body = try template.filled(with: ListedParams([("text", .text(checked))], in: .last))
        // Read from its bytes, as a phone does.
        let written = String(decoding: Array(body.utf8), as: UTF8.self)
        let isIsolated = written.unicodeScalars.contains("\u{2068}")
        let lines = written.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            guard line.unicodeScalars.first == "\u{2068}", line.unicodeScalars.last == "\u{2069}" else {
                return String(line)
            }
            return String(String.UnicodeScalarView(line.unicodeScalars.dropFirst().dropLast()))
        }
        let bare = lines.joined(separator: "\n")
        guard Array(bare.utf8) == Array(words(of: text).utf8) else { return "written otherwise" }
        guard let again = try? rule.checked(bare) else { return "refused when judged again" }
        guard again == checked, Array(again.text.utf8) == Array(bare.utf8) else {
            return "changed when judged again"
        }
        guard isIsolated || bare == written else { return "no isolates and yet another text" }
        let seen = plainReading(of: written)
        let isOfNames = rule.allowances.contains(.domainNames) || rule.allowances.contains(.emailAddresses)
        if !isOfNames, hasLink(seen) { return "a link" }
        if !isOfNames, !rule.allowances.contains(.abbreviations), PlainTextRule.findsLink(in: written) {
            return "a link in what is written"
        }
        if !rule.allowances.contains(.phoneNumbers), !rule.allowances.contains(.reference), hasNumber(seen) {
            return "a number"
        }
        return nil
    }

    /// Whether `evil.com` stands in a text and is not the beginning of a longer name.
    private static func hasLink(_ seen: [Unicode.Scalar]) -> Bool {
        places(of: "evil.com", in: seen).contains { place in
            guard place.upperBound < seen.count else { return true }
            let next = seen[place.upperBound].properties
            return !next.isAlphabetic && next.numericType == nil
        }
    }

    /// Whether eight digits stand in a text, and neither in a word, as of a model, nor behind a decimal point.
    private static func hasNumber(_ seen: [Unicode.Scalar]) -> Bool {
        func isCased(_ place: Int) -> Bool {
            seen.indices.contains(place)
                && [.uppercaseLetter, .lowercaseLetter, .titlecaseLetter]
                    .contains(seen[place].properties.generalCategory)
        }
        return places(of: "22345678", in: seen).contains { place in
            !isCased(place.lowerBound - 1) && !isCased(place.upperBound)
                && !["0.", "0,"].contains {
                    seen[..<place.lowerBound].suffix(2).elementsEqual($0.unicodeScalars)
                }
        }
    }

    private static func places(of word: String, in seen: [Unicode.Scalar]) -> [Range<Int>] {
        let word = Array(word.unicodeScalars)
        guard seen.count >= word.count else { return [] }
        return (0...(seen.count - word.count)).filter { seen[$0...].starts(with: word) }
            .map { $0..<($0 + word.count) }
    }

    /// What a text is but for its blanks, said without the rule: the words of each line, one blank apart.
    private static func words(of text: String) -> String {
        text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.split(whereSeparator: \.properties.isWhitespace).map { String($0) }.joined(separator: " ")
        }.joined(separator: "\n").trimmingCharacters(in: .newlines)
    }

    /// What is left of a text for a reader who sees neither marks nor what has no shape.
    private static func plainReading(of text: String) -> [Unicode.Scalar] {
        text.unicodeScalars.compactMap { scalar in
            if scalar.isASCII { return scalar }
            if scalar.properties.isDefaultIgnorableCodePoint { return nil }
            switch scalar.properties.generalCategory {
            case .format, .unassigned, .privateUse, .surrogate, .control, .nonspacingMark, .enclosingMark:
                return nil
            default: return scalar
            }
        }
    }

    private static func spelled(_ text: String) -> String {
        text.unicodeScalars.map { scalar in
            (0x21...0x7E).contains(scalar.value)
                ? String(scalar) : "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
        }.joined()
    }

    // MARK: Texts

    private static let pieces: [[Unicode.Scalar]] = [
        "evil.com", "evil", ".com", ".", "com", "www", "://", "@", "/", "22345678", "22 34 56 78", "22", "34",
        "56", "78", "+47", "12.11.2026", "NOK 500", "kr 1.234,50", "Kari", "Nordmann", "Md.", "Rahim", " ",
        " ", "  ", "\u{A0}", "\u{3000}", "\n", "[.]", "(dot)", "محمد", "דוד", "Åse", "김철수", "。", "中国",
        "पा", "ก็", "👩\u{200D}🚀", "❤\u{FE0F}", "٢٢٣٤", "Ⅳ", "－", "ㆍ", "ー",
    ].map { Array($0.unicodeScalars) }

    /// Code points that tests of others forget: ends of planes, unassigned ones, marks, joiners, bidi controls, tags,
    /// variation selectors, fillers.
    private static let oddities: [Unicode.Scalar] = [
        0x378, 0x379, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x202A,
        0x202E, 0x2028, 0x2060, 0x2066, 0x2069, 0x206F, 0x2800, 0x3164, 0xFDD0, 0xFDEF, 0xFE00, 0xFE0E,
        0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0, 0xFFF9, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF, 0x1_FFFE, 0x1_D159, 0x2_FFFF,
        0xE_0001, 0xE_0020, 0xE_007F, 0xE_0100, 0xE_01EF, 0xF_FFFD, 0x10_FFFF, 0x300, 0x489, 0x20DD, 0x20E3,
        0x64B, 0x903, 0x0, 0x7, 0x1B, 0x7F, 0x85, 0x9D, 0xAD, 0xE000,
    ].compactMap { Unicode.Scalar(UInt32($0)) }

    private static func hostileText(_ random: inout SeededNumbers) -> String {
        var scalars = String.UnicodeScalarView()
        func below(_ bound: Int, _ random: inout SeededNumbers) -> Int {
            Int(truncatingIfNeeded: random.next() % UInt64(bound))
        }
        // Most texts are of one kind of piece, so that many of them pass.
        let weight = below(4, &random)
        for _ in 0...below(6, &random) {
            switch weight == 0 ? below(10, &random) : below(30, &random) {
            case 0: scalars.append(oddities[below(oddities.count, &random)])
            case 1: if let any = Unicode.Scalar(UInt32(below(0x11_0000, &random))) { scalars.append(any) }
            case 2: if let low = Unicode.Scalar(UInt32(below(0x3000, &random))) { scalars.append(low) }
            case 3:
                if let wide = Unicode.Scalar(UInt32(0x1_0000 + below(0x1_0000, &random))) {
                    scalars.append(wide)
                }
            case 4: scalars.append(Unicode.Scalar(UInt8(0x20 + below(0x5F, &random))))
            case 5: scalars.append(Unicode.Scalar(UInt8(0x30 + below(10, &random))))
            default: scalars.append(contentsOf: pieces[below(pieces.count, &random)])
            }
        }
        return String(scalars)
    }
}
